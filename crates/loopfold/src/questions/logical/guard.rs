//! Which processes do something: conditions on the rank or on coordinates in the grid.
//!
//! A guard is fitted to a set of processes among those that could be meant: the tightest bounds
//! on each term, and of those the fewest that are enough. Where no bounds describe the set, nor
//! what is left out of it, the ranks are listed. O(processes × terms) for each set.

use super::place::Place;
use std::fmt;

/// A condition on a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// All of these hold; no condition if there is none.
    All(Vec<Condition>),
    /// Not all of these hold.
    NotAll(Vec<Condition>),
    /// The process is one of these, as ranges of ranks with their ends, in order: an exception
    /// that no condition describes.
    Ranks(Vec<(i64, i64)>),
}

/// A term of a process compared with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// What is compared.
    pub term: Term,
    /// How.
    pub relation: Relation,
    /// With what.
    pub bound: Bound,
}

/// A number that each process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// Its rank.
    Rank,
    /// Its coordinate in a dimension of the grid of all processes.
    Coordinate(usize),
    /// The rest of its rank divided by a number.
    Remainder(i64),
}

/// How a term is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Equal.
    Equal,
    /// Different.
    Different,
    /// Less.
    Less,
    /// At least.
    AtLeast,
    /// The first or the last value; the bound does not count.
    Edge,
    /// Neither the first nor the last value; the bound does not count.
    Inner,
}

/// A number, counted from 0 or back from how many values the term has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The number.
    Start(i64),
    /// So many before the end.
    End(i64),
}

impl Term {
    /// Its value for a process.
    pub fn value(self, place: &Place) -> i64 {
        match self {
            Term::Rank => place.rank,
            Term::Coordinate(dimension) => place.coordinate(dimension),
            Term::Remainder(divisor) => place.rank % divisor,
        }
    }

    /// How many values it has.
    pub fn extent(self, place: &Place) -> i64 {
        match self {
            Term::Rank => place.size,
            Term::Coordinate(dimension) => place.side(dimension),
            Term::Remainder(divisor) => divisor,
        }
    }

    /// The bound at a value: from the end where that is nearer.
    fn bound(self, value: i64, place: &Place) -> Bound {
        let from_end = self.extent(place) - value;
        let is_nearer = from_end < value && !matches!(self, Term::Remainder(_));
        if is_nearer { Bound::End(from_end) } else { Bound::Start(value) }
    }
}

impl Condition {
    /// Whether it holds.
    pub fn holds(&self, place: &Place) -> bool {
        let value = self.term.value(place);
        let bound = match self.bound {
            Bound::Start(bound) => bound,
            Bound::End(back) => self.term.extent(place) - back,
        };
        match self.relation {
            Relation::Equal => value == bound,
            Relation::Different => value != bound,
            Relation::Less => value < bound,
            Relation::AtLeast => value >= bound,
            Relation::Edge => value == 0 || value + 1 == self.term.extent(place),
            Relation::Inner => value > 0 && value + 1 < self.term.extent(place),
        }
    }

    /// How hard it is to read, and how unlikely to be what the program says.
    fn cost(&self) -> u32 {
        let term = match self.term {
            Term::Rank => 0,
            Term::Coordinate(_) => 1,
            Term::Remainder(divisor) => 2 + divisor.min(64) as u32 / 8,
        };
        let is_edge = match self.bound {
            Bound::Start(at) => at <= 1,
            Bound::End(back) => back <= 1,
        };
        let is_remainder = matches!(self.term, Term::Remainder(_));
        let is_both = matches!(self.relation, Relation::Edge | Relation::Inner);
        term + if is_edge || is_remainder { 0 } else { 4 } + u32::from(is_both)
    }
}

impl Guard {
    /// Whether it holds.
    pub fn holds(&self, place: &Place) -> bool {
        match self {
            Guard::All(conditions) => conditions.iter().all(|condition| condition.holds(place)),
            Guard::NotAll(conditions) => !conditions.iter().all(|condition| condition.holds(place)),
            Guard::Ranks(ranges) => {
                let after = ranges.partition_point(|&(first, _)| first <= place.rank);
                after > 0 && place.rank <= ranges[after - 1].1
            }
        }
    }

    /// Whether it lists ranks instead of describing them.
    pub fn is_exception(&self) -> bool {
        matches!(self, Guard::Ranks(_))
    }

    /// How many parts it is written with.
    pub fn len(&self) -> usize {
        match self {
            Guard::All(conditions) | Guard::NotAll(conditions) => conditions.len(),
            Guard::Ranks(ranges) => ranges.len(),
        }
    }

    /// Whether it has no parts: no condition.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A guard that holds for exactly those of `places` that are `chosen`.
    pub fn fit(places: &[&Place], chosen: &[bool]) -> Self {
        if chosen.iter().all(|&is| is) {
            return Guard::All(Vec::new());
        }
        if let Some(conditions) = described(places, chosen) {
            return Guard::All(conditions);
        }
        let others: Vec<bool> = chosen.iter().map(|is| !is).collect();
        if let Some(conditions) = described(places, &others) {
            return Guard::NotAll(conditions);
        }
        let mut ranks: Vec<i64> =
            places.iter().zip(chosen).filter(|(_, is)| **is).map(|(place, _)| place.rank).collect();
        ranks.sort_unstable();
        Guard::Ranks(ranges(&ranks))
    }
}

/// Numbers in order as ranges.
pub(super) fn ranges(numbers: &[i64]) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 >= number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// The fewest and simplest conditions that hold for exactly the chosen.
fn described(places: &[&Place], chosen: &[bool]) -> Option<Vec<Condition>> {
    let mut candidates = candidates(places, chosen);
    candidates.sort_by_key(Condition::cost);
    let others: Vec<&Place> =
        places.iter().zip(chosen).filter(|(_, is)| !**is).map(|(place, _)| *place).collect();
    let excludes =
        |condition: &Condition| -> Vec<bool> { others.iter().map(|place| !condition.holds(place)).collect() };
    let excluded: Vec<Vec<bool>> = candidates.iter().map(excludes).collect();
    if let Some(one) = excluded.iter().position(|out| out.iter().all(|&is| is)) {
        return Some(vec![candidates[one]]);
    }
    let pair = cheapest_pair(&candidates, &excluded);
    if let Some((one, other)) = pair {
        return Some(vec![candidates[one], candidates[other]]);
    }
    // Enough remainders single out any set of ranks, and say nothing.
    let is_plain = |at: &usize| !matches!(candidates[*at].term, Term::Remainder(_));
    let plain: Vec<usize> = (0..candidates.len()).filter(is_plain).collect();
    let excluded: Vec<&[bool]> = plain.iter().map(|&at| excluded[at].as_slice()).collect();
    let is_enough = (0..others.len()).all(|place| excluded.iter().any(|out| out[place]));
    if !is_enough {
        return None;
    }
    Some(cover(&excluded, others.len()).into_iter().map(|at| candidates[plain[at]]).collect())
}

/// The two candidates that exclude all together, at the least cost.
fn cheapest_pair(candidates: &[Condition], excluded: &[Vec<bool>]) -> Option<(usize, usize)> {
    let mut best: Option<(u32, usize, usize)> = None;
    for one in 0..candidates.len() {
        for other in one + 1..candidates.len() {
            let cost = candidates[one].cost() + candidates[other].cost();
            if best.is_some_and(|(least, ..)| least <= cost) {
                continue;
            }
            if excluded[one].iter().zip(&excluded[other]).all(|(one, other)| *one || *other) {
                best = Some((cost, one, other));
            }
        }
    }
    best.map(|(_, one, other)| (one, other))
}

/// Candidates that exclude all together: each time the one that excludes most of the rest.
fn cover(excluded: &[&[bool]], others: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..others).collect();
    let mut taken = Vec::new();
    while !left.is_empty() {
        let gain = |out: &[bool]| left.iter().filter(|&&place| out[place]).count();
        let best = (0..excluded.len()).rev().max_by_key(|&at| gain(excluded[at]));
        let Some(best) = best.filter(|&best| gain(excluded[best]) > 0) else { break };
        left.retain(|&place| !excluded[best][place]);
        taken.push(best);
    }
    taken.sort_unstable();
    taken
}

/// Conditions that hold for all of the chosen, as tight as they can be.
fn candidates(places: &[&Place], chosen: &[bool]) -> Vec<Condition> {
    let Some(any) = places.first() else { return Vec::new() };
    let mut terms = vec![Term::Rank];
    terms.extend((0..any.dimensions()).filter(|&at| any.side(at) > 1).map(Term::Coordinate));
    let diagonal = (any.size.max(0) as u64).isqrt() as i64 + 1;
    let divisors = [2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 512, 1024].into_iter().chain([diagonal]);
    // Of few processes, some remainder is always different from the others.
    let is_several = |wanted: bool| chosen.iter().filter(|&&is| is == wanted).count() > 1;
    if is_several(true) && is_several(false) {
        terms.extend(divisors.filter(|&divisor| divisor < any.size).map(Term::Remainder));
    }
    terms.into_iter().flat_map(|term| bounds(term, places, chosen)).collect()
}

/// The tightest conditions on a term.
fn bounds(term: Term, places: &[&Place], chosen: &[bool]) -> Vec<Condition> {
    let values = |wanted: bool| {
        let chosen = places.iter().zip(chosen).filter(move |(_, is)| **is == wanted);
        chosen.map(|(place, _)| term.value(place))
    };
    let (Some(least), Some(most)) = (values(true).min(), values(true).max()) else { return Vec::new() };
    let at = |relation, value| Condition { term, relation, bound: term.bound(value, places[0]) };
    let mut found = Vec::new();
    if least == most {
        found.push(at(Relation::Equal, least));
    }
    if let (Some(first), Some(last)) = (values(false).min(), values(false).max()) {
        // Next to the end of a grid, a program asks whether there is a neighbour: `row > 0`.
        let is_neighbour_test = matches!(term, Term::Coordinate(_)) && (last < least || first > most);
        if first == last && values(true).all(|value| value != first) && !is_neighbour_test {
            found.push(at(Relation::Different, first));
        }
        // Halves and quarters of powers of two are what programs test; others fit by chance.
        if matches!(term, Term::Remainder(divisor) if divisor < 4 || divisor.count_ones() > 1) {
            return found;
        }
        let end = term.extent(places[0]) - 1;
        let both = |relation| Condition { term, relation, bound: Bound::Start(0) };
        let has_edges = !matches!(term, Term::Remainder(_)) && least != most;
        if has_edges && values(true).all(|value| value == 0 || value == end) {
            found.push(both(Relation::Edge));
        }
        if has_edges && least > 0 && most < end {
            found.push(both(Relation::Inner));
        }
        if first < least {
            found.push(at(Relation::AtLeast, least));
        }
        if last > most {
            found.push(at(Relation::Less, most + 1));
        }
    }
    found
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Rank => f.write_str("rank"),
            Term::Coordinate(dimension) => write!(f, "{}", coordinate_name(*dimension)),
            Term::Remainder(divisor) => write!(f, "rank % {divisor}"),
        }
    }
}

/// What a coordinate is called: those of a plane have names.
pub(super) fn coordinate_name(dimension: usize) -> String {
    match dimension {
        0 => "row".to_string(),
        1 => "column".to_string(),
        2 => "layer".to_string(),
        more => format!("place{more}"),
    }
}

/// How many values a coordinate has.
pub(super) fn side_name(dimension: usize) -> String {
    format!("{}s", coordinate_name(dimension))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = match self.term {
            Term::Rank => "size".to_string(),
            Term::Coordinate(dimension) => side_name(dimension),
            Term::Remainder(divisor) => divisor.to_string(),
        };
        let (relation, bound) = match (self.relation, self.bound) {
            (Relation::AtLeast, Bound::Start(bound)) => (">", Bound::Start(bound - 1)),
            (Relation::AtLeast, Bound::End(back)) => (">=", Bound::End(back)),
            (Relation::Less, bound) => ("<", bound),
            (Relation::Equal, bound) => ("==", bound),
            (Relation::Different, bound) => ("!=", bound),
            (Relation::Edge, _) => return write!(f, "{} at an edge", self.term),
            (Relation::Inner, _) => return write!(f, "{} inside", self.term),
        };
        match bound {
            Bound::Start(bound) => write!(f, "{} {relation} {bound}", self.term),
            Bound::End(0) => write!(f, "{} {relation} {extent}", self.term),
            Bound::End(back) => write!(f, "{} {relation} {extent} - {back}", self.term),
        }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |conditions: &[Condition], by: &str| {
            conditions.iter().map(Condition::to_string).collect::<Vec<_>>().join(by)
        };
        match self {
            Guard::All(conditions) if conditions.is_empty() => f.write_str("true"),
            Guard::All(conditions) => f.write_str(&joined(conditions, " && ")),
            Guard::NotAll(conditions) => write!(f, "!({})", joined(conditions, " && ")),
            Guard::Ranks(ranges) => {
                let range = |&(first, last): &(i64, i64)| match last - first {
                    0 => first.to_string(),
                    _ => format!("{first}-{last}"),
                };
                write!(f, "rank in {}", ranges.iter().map(range).collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mpi::Grid;
    use std::sync::Arc;

    fn fitted(size: i64, grid: Option<&str>, chosen: impl Fn(&Place) -> bool) -> String {
        let grid = grid.map(|text| Arc::new(Grid::parse(text).unwrap()));
        let places: Vec<Place> = (0..size).map(|rank| Place { rank, size, grid: grid.clone() }).collect();
        let places: Vec<&Place> = places.iter().collect();
        let wanted: Vec<bool> = places.iter().map(|place| chosen(place)).collect();
        let guard = Guard::fit(&places, &wanted);
        let held: Vec<bool> = places.iter().map(|place| guard.holds(place)).collect();
        assert_eq!(held, wanted, "{guard}");
        guard.to_string()
    }

    #[test]
    fn guards_are_what_a_program_would_say() {
        let rank = |is: fn(i64) -> bool| move |place: &Place| is(place.rank);
        assert_eq!(fitted(16, None, rank(|rank| rank == 0)), "rank == 0");
        assert_eq!(fitted(16, None, rank(|rank| rank > 0)), "rank != 0");
        assert_eq!(fitted(16, None, rank(|rank| rank == 15)), "rank == size - 1");
        assert_eq!(fitted(16, None, rank(|rank| rank % 2 == 0)), "rank % 2 == 0");
        assert_eq!(fitted(16, None, rank(|rank| rank % 4 == 0 && rank > 0)), "rank inside && rank % 4 == 0");
        assert_eq!(fitted(16, Some("4x4"), |place| place.rank >= 4), "row > 0");
        assert_eq!(fitted(16, Some("4x4"), |place| place.coordinate(1) < 3), "column < columns - 1");
        let is_corner = |place: &Place| [0, 3, 12, 15].contains(&place.rank);
        assert_eq!(fitted(16, Some("4x4"), is_corner), "row at an edge && column at an edge");
        let is_border = |place: &Place| ![5, 6, 9, 10].contains(&place.rank);
        assert_eq!(fitted(16, Some("4x4"), is_border), "!(row inside && column inside)");
        assert_eq!(fitted(9, None, rank(|rank| [1, 2, 5].contains(&rank))), "rank in 1-2,5");
        assert_eq!(fitted(16, None, rank(|rank| rank == 6)), "rank == 6");
    }
}
