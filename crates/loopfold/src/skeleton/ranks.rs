//! The same program for another number of processes.
//!
//! Possible where every value, count and guard is a rule: of the rank, of its place in a grid, or
//! the same for all. What lists ranks was not understood, and is not known for others. The grid of
//! all processes becomes the most even one of as many dimensions; communicators are made anew, as
//! the calls that create them say. Message sizes, numbers of iterations and computation stay what
//! they are for each process. Whether the result is a program that ends is checked by the caller.

use super::operations::Members;
use crate::emit::Terminal;
use crate::mpi::{Grid, WORLD};
use crate::questions::logical::{
    Bound, Condition, Expression, Guard, LogicalEvent, LogicalNode, LogicalPart, Place, Places, Term, Token,
};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A program for another number of processes.
pub(super) struct Extrapolated {
    pub(super) part: LogicalPart,
    pub(super) places: Places,
    pub(super) members: Members,
    pub(super) notes: Vec<String>,
}

/// The program of a part for `ranks` processes instead of `recorded`.
pub(super) fn extrapolate(part: &LogicalPart, world: &Place, ranks: usize) -> Result<Extrapolated> {
    let recorded = world.size;
    check(&part.nodes)?;
    let grid = world.grid.as_ref().map(|grid| {
        let sides = even_sides(ranks as u32, grid.sides.len());
        Arc::new(Grid { sides, periodic: grid.periodic.clone() })
    });
    let place = |rank| Place { rank, size: ranks as i64, grid: grid.clone() };
    let mut making = Making {
        places: Places::of_world((0..ranks as i64).map(place).collect()),
        members: Members::of_world(ranks),
        ranks,
        grids: BTreeMap::new(),
    };
    (0..ranks).for_each(|process| making.places.set(process, WORLD, place(process as i64)));
    let mut part = part.clone();
    making.nodes(&mut part.nodes)?;
    let mut notes = vec![format!(
        "extrapolated from {recorded} to {ranks} processes: sizes of messages, iterations and computation of each process are those of the recording"
    )];
    if let Some(grid) = &grid {
        notes.push(format!(
            "the processes are a grid of {grid}, where they were {}",
            world.grid.as_ref().map_or_else(String::new, |grid| grid.to_string())
        ));
    }
    Ok(Extrapolated { part, places: making.places, members: making.members, notes })
}

/// Fails if something is listed by rank.
fn check(nodes: &[LogicalNode]) -> Result<()> {
    let refused = |what: &str| {
        Error::invalid(format_args!(
            "another number of ranks cannot be known: {what} follows no rule of the rank or of a grid"
        ))
    };
    for node in nodes {
        match node {
            LogicalNode::Event(event) => {
                let is_listed = |value: &Expression| lists_ranks(value);
                if let Some(field) = event.fields.iter().find(|field| field.values.iter().any(is_listed)) {
                    let name = Terminal::of(event.text().unwrap_or("an event"));
                    return Err(refused(&format!("{} of {name}", Terminal::of(&field.key))));
                }
            }
            LogicalNode::Loop { times, body } => {
                if lists_ranks(times) {
                    return Err(refused("how often a loop iterates"));
                }
                check(body)?;
            }
            LogicalNode::Branch { guard, body } => {
                if has_middle(guard) {
                    return Err(refused(&format!("which ranks are in a branch (`{guard}`)")));
                }
                check(body)?;
            }
        }
    }
    Ok(())
}

/// Whether some cases of a value are for ranks that no rule describes.
fn lists_ranks(value: &Expression) -> bool {
    match value {
        Expression::Cases(cases, otherwise) => {
            cases.iter().any(|(guard, value)| has_middle(guard) || lists_ranks(value))
                || lists_ranks(otherwise)
        }
        _ => false,
    }
}

/// Whether a guard lists ranks, or compares a rank with one that is neither near the first nor the last.
fn has_middle(guard: &Guard) -> bool {
    let is_middle = |condition: &Condition| {
        let (Bound::Start(at) | Bound::End(at)) = condition.bound;
        at > 2 && condition.term == Term::Rank
    };
    match guard {
        Guard::All(conditions) | Guard::NotAll(conditions) => conditions.iter().any(is_middle),
        Guard::Ranks(_) => true,
    }
}

/// The most even sides, the largest first, as `MPI_Dims_create` chooses them.
pub(super) fn even_sides(size: u32, dimensions: usize) -> Vec<u32> {
    let mut sides = vec![1u32; dimensions.max(1)];
    let (mut left, mut factors) = (size.max(1), Vec::new());
    let mut divisor = 2;
    while divisor * divisor <= left {
        while left.is_multiple_of(divisor) {
            factors.push(divisor);
            left /= divisor;
        }
        divisor += 1;
    }
    if left > 1 {
        factors.push(left);
    }
    for factor in factors.into_iter().rev() {
        if let Some(least) = sides.iter_mut().min() {
            *least *= factor;
        }
    }
    sides.sort_unstable_by(|one, other| other.cmp(one));
    sides
}

/// Makes communicators as calls do.
struct Making {
    places: Places,
    members: Members,
    ranks: usize,
    grids: BTreeMap<String, Arc<Grid>>,
}

impl Making {
    fn nodes(&mut self, nodes: &mut [LogicalNode]) -> Result<()> {
        for node in nodes {
            match node {
                LogicalNode::Event(event) => self.event(event)?,
                LogicalNode::Loop { body, .. } | LogicalNode::Branch { body, .. } => self.nodes(body)?,
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &mut LogicalEvent) -> Result<()> {
        let Some(made) =
            event.field("newcomm").and_then(|field| field.values.first()).map(ToString::to_string)
        else {
            return Ok(());
        };
        let name = event.text().unwrap_or_default().to_string();
        let parent = event.comm.clone().unwrap_or_else(|| WORLD.to_string());
        let members_of = |making: &Self, process: usize| -> Arc<Vec<u32>> {
            let all = || Arc::new((0..making.ranks as u32).collect::<Vec<u32>>());
            making.members.get(process, &parent).cloned().unwrap_or_else(all)
        };
        match name.as_str() {
            "MPI_Comm_dup" => {
                for process in 0..self.ranks {
                    let members = members_of(self, process);
                    let grid = self.grids.get(&parent).cloned();
                    self.enter(process, &made, &members, grid);
                }
            }
            "MPI_Cart_create" => {
                let dims =
                    event.field("dims").and_then(|field| field.values.first()).map(ToString::to_string);
                let periods =
                    event.field("periods").and_then(|field| field.values.first()).map(ToString::to_string);
                let (dims, periods) = (dims.unwrap_or_default(), periods.unwrap_or_default());
                let first = members_of(self, 0);
                let sides = even_sides(first.len() as u32, dims.split('x').count());
                let periodic: Vec<bool> = periods.split('x').map(|period| period != "0").collect();
                if periodic.len() != sides.len() {
                    return Err(Error::invalid("MPI_Cart_create has another number of periods than of dims"));
                }
                let grid = Arc::new(Grid { sides: sides.clone(), periodic });
                let text: Vec<String> = sides.iter().map(ToString::to_string).collect();
                let is_one = sides.len() == 1;
                for field in event.fields.iter_mut().filter(|field| field.key == "dims") {
                    let token = match is_one {
                        true => Token::Number(sides[0].into()),
                        false => Token::word(text.join("x").as_bytes()),
                    };
                    field.values = vec![Expression::Same(token)];
                }
                self.grids.insert(made.clone(), Arc::clone(&grid));
                for process in 0..self.ranks {
                    let members = members_of(self, process);
                    self.enter(process, &made, &members, Some(Arc::clone(&grid)));
                }
            }
            "MPI_Comm_split" => self.split(event, &made, &parent)?,
            _ => {
                return Err(Error::invalid(format_args!(
                    "another number of ranks cannot be known: {} does not say which processes are in its communicator",
                    Terminal::of(&name)
                )));
            }
        }
        Ok(())
    }

    fn split(&mut self, event: &LogicalEvent, made: &str, parent: &str) -> Result<()> {
        // By the members of the parent and the color: the keys and ranks of the new members.
        let mut groups: BTreeMap<_, Vec<(i64, u32)>> = BTreeMap::new();
        let value = |making: &Self, process: usize, key: &str| {
            let value = event.field(key).and_then(|field| field.values.first());
            value.and_then(|value| value.integer(making.places.at(process, Some(parent)))).unwrap_or(0)
        };
        for process in 0..self.ranks {
            let around =
                self.members.get(process, parent).map(|members| members.to_vec()).unwrap_or_default();
            let (color, key) = (value(self, process, "color"), value(self, process, "key"));
            groups.entry((around, color)).or_default().push((key, process as u32));
        }
        for mut group in groups.into_values() {
            group.sort_by_key(|&(key, _)| key);
            let members = Arc::new(group.into_iter().map(|(_, process)| process).collect::<Vec<u32>>());
            for &process in members.iter() {
                self.enter(process as usize, made, &members, None);
            }
        }
        Ok(())
    }

    fn enter(&mut self, process: usize, comm: &str, members: &Arc<Vec<u32>>, grid: Option<Arc<Grid>>) {
        let Some(own) = members.iter().position(|&member| member as usize == process) else { return };
        self.members.set(process, comm, members);
        let place = Place { rank: own as i64, size: members.len() as i64, grid };
        self.places.set(process, comm, place);
    }
}

#[cfg(test)]
mod tests {
    use super::even_sides;

    #[test]
    fn sides_are_even() {
        assert_eq!(even_sides(16, 2), [4, 4]);
        assert_eq!(even_sides(12, 2), [4, 3]);
        assert_eq!(even_sides(24, 3), [4, 3, 2]);
        assert_eq!(even_sides(7, 2), [7, 1]);
        assert_eq!(even_sides(1, 2), [1, 1]);
    }
}
