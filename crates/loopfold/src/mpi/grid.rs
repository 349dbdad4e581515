//! Grids of processes: where each process is, and the steps from one to another.

use std::fmt;

/// The sides of a grid of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// How many processes there are in each dimension; the last one varies fastest.
    pub sides: Vec<u32>,
    /// Which dimensions are periodic.
    pub periodic: Vec<bool>,
}

impl Grid {
    /// Reads sides such as `4x4`, with a `p` after those that are periodic.
    pub fn parse(text: &str) -> Option<Self> {
        let mut grid = Grid { sides: Vec::new(), periodic: Vec::new() };
        for side in text.split(['x', ',']) {
            let digits = side.strip_suffix('p');
            grid.periodic.push(digits.is_some());
            grid.sides.push(digits.unwrap_or(side).parse().ok().filter(|&side| side > 0)?);
        }
        grid.size().map(|_| grid)
    }

    /// How many processes there are, if that can be counted.
    pub fn size(&self) -> Option<u32> {
        self.sides.iter().try_fold(1u32, |size, &side| size.checked_mul(side))
    }

    /// Where a process is.
    pub fn place(&self, mut rank: u32) -> Vec<u32> {
        let mut place: Vec<u32> = self
            .sides
            .iter()
            .rev()
            .map(|&side| {
                let at = rank % side;
                rank /= side;
                at
            })
            .collect();
        place.reverse();
        place
    }

    /// The steps from one process to another: in each dimension how many steps up, or down if
    /// negative. In a periodic dimension the shorter direction, and up if both are equally
    /// long.
    pub fn way(&self, from: u32, to: u32) -> Vec<i64> {
        let dimensions = self.sides.iter().zip(&self.periodic);
        let places = self.place(from).into_iter().zip(self.place(to));
        let step = |((from, to), (&side, &ends_meet)): ((u32, u32), (&u32, &bool))| {
            let (step, side) = (i64::from(to) - i64::from(from), i64::from(side));
            let up = step.rem_euclid(side);
            match ends_meet {
                false => step,
                true if 2 * up <= side => up,
                true => up - side,
            }
        };
        places.zip(dimensions).map(step).collect()
    }
}

impl fmt::Display for Grid {
    /// As [`Grid::parse`] reads it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (side, &ends_meet)) in self.sides.iter().zip(&self.periodic).enumerate() {
            let (before, after) = (if index == 0 { "" } else { "x" }, if ends_meet { "p" } else { "" });
            write!(out, "{before}{side}{after}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn grids_have_places() {
        let grid = Grid::parse("2x3x4").unwrap();
        assert_eq!((grid.size(), grid.place(17)), (Some(24), vec![1, 1, 1]));
        assert_eq!(grid.way(17, 4), [-1, 0, -1]);
        let ring = Grid::parse("3x4p").unwrap();
        assert_eq!((ring.way(0, 3), ring.way(3, 0), ring.way(1, 11)), (vec![0, -1], vec![0, 1], vec![2, 2]));
        assert_eq!(ring.to_string(), "3x4p");
        assert_eq!(Grid::parse("0x3"), None);
        assert_eq!(Grid::parse("65536x65536"), None);
        assert_eq!(Grid::parse("x"), None);
    }
}
