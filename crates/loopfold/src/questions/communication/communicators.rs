//! Who is who: which process a stream is, which processes a communicator has, in which order,
//! and in which grid.
//!
//! The notes of streams say so (`comm N`, `comm N shape`), or the calls that make
//! communicators do, as far as they tell color and key. A communicator that nobody speaks of
//! is that of all processes. Time and memory go with the streams, and the members of
//! communicators that were made by calls.

use super::call::{WORLD, text_of};
use crate::trace::{Meaning, Name, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// The sides of a grid of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// How many processes there are in each dimension; the last one varies fastest.
    pub sides: Vec<u32>,
    /// In which dimensions the ends meet.
    pub periodic: Vec<bool>,
}

impl Grid {
    /// Reads sides such as `4x4`, with a `p` after those whose ends meet.
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
}

/// The processes of a communicator, in its order, as ranks of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Members {
    ranks: Vec<u32>,
    own: HashMap<u32, u32>,
}

impl Members {
    fn new(ranks: Vec<u32>) -> Arc<Self> {
        let own = ranks.iter().enumerate().map(|(index, &rank)| (rank, index as u32)).collect();
        Arc::new(Self { ranks, own })
    }
}

/// Which process each stream is, and the members of its communicators.
#[derive(Clone, Debug, Default)]
pub struct Communicators {
    /// The rank of each stream.
    ranks: Vec<u32>,
    size: u32,
    /// For each stream, the communicators that are not simply the world.
    members: Vec<HashMap<String, Arc<Members>>>,
    grids: HashMap<String, Grid>,
    /// Equal lists of members, kept once.
    known: HashMap<Vec<u32>, Arc<Members>>,
}

impl Communicators {
    /// What the names and notes of the streams say.
    pub fn new<'a>(streams: impl Iterator<Item = (&'a str, &'a [(String, String)])>) -> Self {
        let mut result = Self::default();
        let mut named = Vec::new();
        for (name, notes) in streams {
            named.push(rank_of(name));
            let mut members = HashMap::new();
            for (key, value) in notes {
                let Some(comm) = key.strip_prefix("comm ") else { continue };
                match comm.split_once(' ') {
                    None => {
                        if let Some(ranks) = ranks_in(value) {
                            members.insert(comm.to_string(), result.members_of(ranks));
                        }
                    }
                    Some((comm, "shape")) => {
                        result.grids.extend(Grid::parse(value).map(|grid| (comm.to_string(), grid)));
                    }
                    Some(_) => {}
                }
            }
            result.members.push(members);
        }
        // Streams that are not called after ranks are processes in their order.
        let by_name: Option<Vec<u32>> = named.iter().copied().collect();
        result.ranks = by_name.unwrap_or_else(|| (0..named.len() as u32).collect());
        let last = result.ranks.iter().max().map_or(0, |&last| last.saturating_add(1));
        let members = result.members.iter().flat_map(HashMap::values);
        let last_member = members.flat_map(|members| &members.ranks).max();
        result.size = last_member.map_or(last, |&member| last.max(member.saturating_add(1)));
        result
    }

    fn members_of(&mut self, ranks: Vec<u32>) -> Arc<Members> {
        Arc::clone(self.known.entry(ranks).or_insert_with_key(|ranks| Members::new(ranks.clone())))
    }

    /// How many processes there are, those included that only communicators name.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Which process a stream is.
    pub fn rank(&self, stream: usize) -> u32 {
        self.ranks[stream]
    }

    /// What a stream's process is called in a communicator; nothing if it is not in it.
    pub fn own_rank(&self, stream: usize, comm: &str) -> Option<u32> {
        match self.members[stream].get(comm) {
            Some(members) => members.own.get(&self.ranks[stream]).copied(),
            None => Some(self.ranks[stream]),
        }
    }

    /// The process that a communicator of a stream calls so.
    pub fn world_rank(&self, stream: usize, comm: &str, rank: u32) -> Option<u32> {
        match self.members[stream].get(comm) {
            Some(members) => members.ranks.get(rank as usize).copied(),
            None => (rank < self.size).then_some(rank),
        }
    }

    /// The members of a communicator of a stream that is not simply the world.
    pub fn members(&self, stream: usize, comm: &str) -> Option<&[u32]> {
        self.members[stream].get(comm).map(|members| &members.ranks[..])
    }

    /// How many members a communicator of a stream has.
    pub fn comm_size(&self, stream: usize, comm: &str) -> u32 {
        self.members(stream, comm).map_or(self.size, |members| members.len() as u32)
    }

    /// The grid of a communicator.
    pub fn grid(&self, comm: &str) -> Option<&Grid> {
        self.grids.get(comm)
    }
}

/// A call that makes a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    parent: String,
    made: String,
    /// Only those with the same color are in it; nothing for none, who is in no new one.
    color: Option<i64>,
    key: i64,
    grid: Option<Grid>,
}

impl Creation {
    /// What an event says of a new communicator, if it makes one and says of which kind.
    pub fn of(meaning: &Meaning<'_>) -> Option<Self> {
        let Name::Text(name) = meaning.name else { return None };
        let name = name.to_ascii_lowercase();
        let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
        let number = |key| match meaning.field(key) {
            Some(Value::Integer(number)) => Some(number),
            _ => None,
        };
        let color = number("color");
        // Of other calls it is not known who is in what they make.
        if !has(b"comm_dup") && !has(b"comm_idup") && !has(b"cart_create") && color.is_none() {
            return None;
        }
        Some(Self {
            parent: meaning.field("comm").map_or_else(|| WORLD.to_string(), text_of),
            made: text_of(meaning.field("newcomm")?),
            color: color.or(Some(0)),
            key: number("key").unwrap_or(0),
            grid: meaning.field("dims").and_then(|dims| grid_of(&text_of(dims), meaning.field("periods"))),
        })
    }
}

/// Sides such as `4x4` or `4,4`, and which of them are periodic, such as `1x0`.
fn grid_of(dims: &str, periods: Option<Value<'_>>) -> Option<Grid> {
    let mut grid = Grid::parse(dims)?;
    for (periodic, word) in
        grid.periodic.iter_mut().zip(periods.map(text_of).unwrap_or_default().split(['x', ',']))
    {
        *periodic |= !matches!(word, "" | "0" | "false");
    }
    Some(grid)
}

impl Communicators {
    /// Learns from the calls that make communicators, for each stream in its order. The n-th
    /// such call on a communicator is the same one for all of its members.
    pub fn learn(&mut self, creations: &[Vec<Creation>]) {
        let stream_of: HashMap<u32, usize> =
            self.ranks.iter().enumerate().rev().map(|(stream, &rank)| (rank, stream)).collect();
        let mut by_parent: Vec<HashMap<&str, Vec<&Creation>>> = Vec::new();
        for creations in creations {
            let mut parents: HashMap<&str, Vec<&Creation>> = HashMap::new();
            for creation in creations {
                parents.entry(&creation.parent).or_default().push(creation);
            }
            by_parent.push(parents);
        }
        let mut effort = MOST_EFFORT;
        let rounds = creations.iter().map(Vec::len).max().unwrap_or(0);
        for round in 0..rounds {
            // All calls of a round see what the rounds before have made.
            let mut made = Vec::new();
            for (stream, creations) in creations.iter().enumerate() {
                let Some(creation) = creations.get(round) else { continue };
                let before = &creations[..round];
                let ordinal = before.iter().filter(|earlier| earlier.parent == creation.parent).count();
                let everyone: Vec<u32> = match self.members(stream, &creation.parent) {
                    Some(members) => members.to_vec(),
                    None => (0..self.size).collect(),
                };
                effort = effort.saturating_sub(everyone.len() as u64);
                let mut chosen: Vec<(i64, u32)> = Vec::new();
                for rank in everyone {
                    let same = stream_of.get(&rank).and_then(|&stream| {
                        by_parent.get(stream)?.get(creation.parent.as_str())?.get(ordinal).copied()
                    });
                    if same.is_some_and(|same| same.color == creation.color && same.made == creation.made) {
                        chosen.push((same.map_or(0, |same| same.key), rank));
                    }
                }
                // The sort is stable: equal keys stay in the order of the parent.
                chosen.sort_by_key(|&(key, _)| key);
                made.push((stream, creation, chosen.into_iter().map(|(_, rank)| rank).collect::<Vec<u32>>()));
            }
            for (stream, creation, ranks) in made {
                let is_world = ranks.len() == self.size as usize && ranks.iter().copied().eq(0..self.size);
                if !is_world && !self.members[stream].contains_key(&creation.made) {
                    let members = self.members_of(ranks);
                    self.members[stream].insert(creation.made.clone(), members);
                }
                if let Some(grid) = &creation.grid {
                    self.grids.entry(creation.made.clone()).or_insert_with(|| grid.clone());
                }
            }
            if effort == 0 {
                return;
            }
        }
    }
}

/// How many members of all communicators together are looked at.
const MOST_EFFORT: u64 = 1 << 28;

/// The rank in a stream's name, `rank 5` or `rank 5 thread 1`.
pub fn rank_of(name: &str) -> Option<u32> {
    name.strip_prefix("rank ")?.split(' ').next()?.parse().ok()
}

/// Ranks such as `0-12:4,13`, in their order.
fn ranks_in(text: &str) -> Option<Vec<u32>> {
    let mut ranks = Vec::new();
    for part in text.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last, step): (u32, u32, usize) =
            (first.parse().ok()?, last.parse().ok()?, step.parse().ok().filter(|&step| step > 0)?);
        let room = MOST_RANKS.checked_sub(ranks.len())?;
        ranks.extend((first..=last).step_by(step).take(room));
    }
    Some(ranks)
}

/// Communicators with more members than this are not looked at.
const MOST_RANKS: usize = 1 << 24;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn notes(notes: &[(&str, &str)]) -> Vec<(String, String)> {
        notes.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn creation(parent: &str, made: &str, color: i64, key: i64) -> Creation {
        Creation { parent: parent.into(), made: made.into(), color: Some(color), key, grid: None }
    }

    #[test]
    fn notes_say_who_is_in_a_communicator() {
        let all = notes(&[("comm 3", "0-12:4"), ("comm 3 shape", "2px2"), ("title", "x")]);
        let none = notes(&[]);
        let comms = Communicators::new([("rank 4", &all[..]), ("rank 1", &none[..])].into_iter());
        assert_eq!(comms.size(), 13);
        assert_eq!((comms.rank(0), comms.rank(1)), (4, 1));
        assert_eq!((comms.own_rank(0, "3"), comms.own_rank(0, "0")), (Some(1), Some(4)));
        assert_eq!((comms.world_rank(0, "3", 2), comms.world_rank(0, "3", 4)), (Some(8), None));
        assert_eq!(comms.grid("3"), Some(&Grid { sides: vec![2, 2], periodic: vec![true, false] }));
        assert_eq!(comms.comm_size(0, "3"), 4);
    }

    #[test]
    fn streams_without_ranks_are_processes_in_their_order() {
        let comms = Communicators::new([("a", &[][..]), ("b", &[][..])].into_iter());
        assert_eq!((comms.rank(0), comms.rank(1), comms.size()), (0, 1, 2));
        assert_eq!(rank_of("rank 7 thread 2"), Some(7));
        assert_eq!((rank_of("rank x"), rank_of("7")), (None, None));
    }

    #[test]
    fn a_split_is_known_by_color_and_key() {
        let names = ["rank 0", "rank 1", "rank 2", "rank 3"];
        let mut comms = Communicators::new(names.iter().map(|&name| (name, &[][..])));
        // Rows, turned around, and then a copy of them; columns are called as rows are.
        let calls = |rank: i64| {
            vec![
                creation("0", "1", rank / 2, -rank),
                creation("1", "2", 0, 0),
                creation("0", "3", rank % 2, 0),
            ]
        };
        comms.learn(&[calls(0), calls(1), calls(2), calls(3)]);
        assert_eq!(comms.members(0, "1"), Some(&[1, 0][..]));
        assert_eq!(comms.members(3, "1"), Some(&[3, 2][..]));
        assert_eq!(comms.members(3, "2"), Some(&[3, 2][..]));
        assert_eq!(comms.members(3, "3"), Some(&[1, 3][..]));
        assert_eq!(comms.own_rank(3, "2"), Some(0));
    }

    #[test]
    fn grids_have_places() {
        let grid = Grid::parse("2x3x4").unwrap();
        assert_eq!((grid.size(), grid.place(17)), (Some(24), vec![1, 1, 1]));
        assert_eq!(Grid::parse("0x3"), None);
        assert_eq!(Grid::parse("65536x65536"), None);
        assert_eq!(Grid::parse("x"), None);
        assert_eq!(ranks_in("5,1-3,0-9:4"), Some(vec![5, 1, 2, 3, 0, 4, 8]));
        assert_eq!((ranks_in("a"), ranks_in("1-2:0")), (None, None));
    }
}
