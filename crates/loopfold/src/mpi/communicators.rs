//! Maps streams to processes, and communicators to their members, in their order, and to their
//! grid.
//!
//! The sources are the notes of streams (`comm N`, `comm N shape`), and the calls that create
//! communicators, if they record color and key ([`Creation`](super::Creation)). A communicator
//! that neither describes is that of all processes. Time and memory are O(streams + members of
//! communicators that calls created).

use super::grid::Grid;
use super::peers::survey;
use crate::Fold;
use crate::trace::Trace;
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// The processes of a communicator, in its order, as ranks of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) ranks: Vec<u32>,
    pub(super) own: HashMap<u32, u32>,
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
    /// How many processes the communicator of all of them has.
    world: u32,
    size: u32,
    /// For each stream, the communicators that are not simply the world.
    members: Vec<HashMap<String, Arc<Members>>>,
    grids: HashMap<String, Grid>,
    /// Equal lists of members, kept once.
    known: HashMap<Vec<u32>, Arc<Members>>,
}

impl Communicators {
    /// From the names and notes of the streams.
    pub fn new<'a>(streams: impl Iterator<Item = (&'a str, &'a [(String, String)])>) -> Self {
        let mut result = Self::default();
        let mut named = Vec::new();
        // Notes that many streams share are read once.
        let mut lists: HashMap<&str, Option<Arc<Members>>> = HashMap::new();
        let mut room = MOST_RANKS;
        for (name, notes) in streams {
            named.push(rank_of(name));
            let mut members = HashMap::new();
            for (key, value) in notes {
                let Some(comm) = key.strip_prefix("comm ") else { continue };
                match comm.split_once(' ') {
                    None => {
                        let list = lists.entry(value).or_insert_with(|| {
                            let ranks = ranks_in(value, room)?;
                            room -= ranks.len();
                            Some(result.members_of(ranks))
                        });
                        members.extend(list.iter().map(|list| (comm.to_string(), Arc::clone(list))));
                    }
                    Some((comm, "shape")) => {
                        result.grids.extend(Grid::parse(value).map(|grid| (comm.to_string(), grid)));
                    }
                    Some(_) => {}
                }
            }
            result.members.push(members);
        }
        // Where no stream is called after a rank, they are processes in their order.
        if named.iter().all(Option::is_none) {
            named = (0..named.len() as u32).map(Some).collect();
        }
        let last = named.iter().flatten().max();
        let last_member = result.members.iter().flat_map(HashMap::values).flat_map(|list| &list.ranks).max();
        result.world = last.max(last_member).map_or(0, |&last| last.saturating_add(1));
        result.size = result.world;
        for rank in named {
            // Beside ranks, other streams (of a GPU, say) are no processes of the world.
            result.ranks.push(rank.unwrap_or(result.size));
            result.size = result.size.saturating_add(u32::from(rank.is_none()));
        }
        result
    }

    /// From a fold: its streams, and the calls that create communicators.
    pub fn of(fold: &Fold) -> Self {
        let mut result = Self::new(fold.streams().iter().map(|stream| (stream.name().raw(), stream.notes())));
        let made = survey::creations(&Trace::default(), std::slice::from_ref(fold));
        result.learn(&made.by_stream);
        result
    }

    /// The communicator with these members.
    pub(super) fn members_of(&mut self, ranks: Vec<u32>) -> Arc<Members> {
        Arc::clone(self.known.entry(ranks).or_insert_with_key(|ranks| Members::new(ranks.clone())))
    }

    /// The members of a communicator after a split, by their keys and ranks in the order of the
    /// parent. Returns `None` if it is the world.
    pub(super) fn group(&mut self, mut group: Vec<(i64, u32)>) -> Option<Arc<Members>> {
        // The sort is stable: equal keys stay in the order of the parent.
        group.sort_by_key(|&(key, _)| key);
        let ranks: Vec<u32> = group.into_iter().map(|(_, rank)| rank).collect();
        let is_world = ranks.len() == self.world as usize && ranks.iter().copied().eq(0..self.world);
        (!is_world).then(|| self.members_of(ranks))
    }

    /// A communicator of a stream, if its name is not known yet. `None` are the members of the
    /// world.
    pub(super) fn add(
        &mut self,
        stream: usize,
        name: &str,
        members: Option<Arc<Members>>,
        grid: Option<&Grid>,
    ) {
        if let Some(members) = members {
            self.members[stream].entry_ref(name).or_insert(members);
        }
        if let Some(grid) = grid {
            self.grids.entry_ref(name).or_insert_with(|| grid.clone());
        }
    }

    /// The members of a communicator of a stream, as far as they are known.
    pub(super) fn known_members(&self, stream: usize, comm: &str) -> Option<Arc<Members>> {
        self.members[stream].get(comm).cloned()
    }

    /// How many processes the communicator of all of them has.
    pub(super) fn world_size(&self) -> u32 {
        self.world
    }

    /// The first stream of each process.
    pub(super) fn stream_of(&self) -> HashMap<u32, usize> {
        self.ranks.iter().enumerate().rev().map(|(stream, &rank)| (rank, stream)).collect()
    }

    /// How many processes there are, including those that only communicators name, and streams
    /// that are no processes: these have numbers behind all ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Which process a stream is.
    pub fn rank(&self, stream: usize) -> u32 {
        self.ranks[stream]
    }

    /// The rank of a stream's process in a communicator. Returns `None` if it is not a member.
    pub fn own_rank(&self, stream: usize, comm: &str) -> Option<u32> {
        match self.members[stream].get(comm) {
            Some(members) => members.own.get(&self.ranks[stream]).copied(),
            None => Some(self.ranks[stream]).filter(|&rank| rank < self.world),
        }
    }

    /// The process with this rank in a communicator of a stream.
    pub fn world_rank(&self, stream: usize, comm: &str, rank: u32) -> Option<u32> {
        match self.members[stream].get(comm) {
            Some(members) => members.ranks.get(rank as usize).copied(),
            None => (rank < self.world).then_some(rank),
        }
    }

    /// The members of a communicator of a stream that is not simply the world.
    pub fn members(&self, stream: usize, comm: &str) -> Option<&[u32]> {
        self.members[stream].get(comm).map(|members| &members.ranks[..])
    }

    /// The communicators of a stream that are not simply the world, in no order, and their members.
    pub(crate) fn of_stream(&self, stream: usize) -> impl Iterator<Item = (&str, &[u32])> {
        self.members[stream].iter().map(|(comm, members)| (comm.as_str(), &members.ranks[..]))
    }

    /// The communicators that are not simply the world for some stream.
    pub(super) fn with_members(&self) -> HashSet<&str> {
        self.members.iter().flat_map(HashMap::keys).map(String::as_str).collect()
    }

    /// How many members a communicator of a stream has.
    pub fn comm_size(&self, stream: usize, comm: &str) -> u32 {
        self.members(stream, comm).map_or(self.world, |members| members.len() as u32)
    }

    /// The grid of a communicator.
    pub fn grid(&self, comm: &str) -> Option<&Grid> {
        self.grids.get(comm)
    }
}

/// The rank in a stream's name, `rank 5` or `rank 5 thread 1`. Returns `None` if it is larger
/// than any machine has.
pub fn rank_of(name: &str) -> Option<u32> {
    let rank = name.strip_prefix("rank ")?.split(' ').next()?.parse().ok();
    rank.filter(|&rank: &u32| (rank as usize) < MOST_RANKS)
}

/// Ranks such as `0-12:4,13`, in their order. Returns `None` if they are more than there is
/// room for, or larger than any machine has.
fn ranks_in(text: &str, room: usize) -> Option<Vec<u32>> {
    let mut ranks = Vec::new();
    for part in text.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last, step): (u32, u32, usize) =
            (first.parse().ok()?, last.parse().ok()?, step.parse().ok().filter(|&step| step > 0)?);
        let more = (first..=last).step_by(step);
        if more.size_hint().0 > room - ranks.len() || last as usize >= MOST_RANKS {
            return None;
        }
        ranks.extend(more);
    }
    Some(ranks)
}

/// With more members than this, in all communicators together, the rest is not looked at.
const MOST_RANKS: usize = 1 << 22;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mpi::Creation;
    use crate::mpi::creation::MOST_EFFORT;

    fn notes(notes: &[(&str, &str)]) -> Vec<(String, String)> {
        notes.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn creation(parent: &str, made: &str, color: i64, key: i64) -> Creation {
        Creation { parent: parent.into(), made: Some(made.into()), color: Some(color), key, grid: None }
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
        // Rows, reversed, and then a copy of them; columns have the same names as rows.
        let calls = |rank: i64| {
            vec![
                creation("0", "1", rank / 2, -rank),
                Creation { color: None, ..creation("1", "2", 0, 0) },
                creation("0", "3", rank % 2, 0),
                Creation { color: None, grid: Grid::parse("1x3"), ..creation("0", "4", 0, 0) },
                Creation { color: None, ..creation("0", "5", 0, 0) },
            ]
        };
        comms.learn(&[calls(0), calls(1), calls(2), calls(3)]);
        assert_eq!(comms.members(0, "1"), Some(&[1, 0][..]));
        assert_eq!(comms.members(3, "1"), Some(&[3, 2][..]));
        assert_eq!(comms.members(3, "2"), Some(&[3, 2][..]));
        assert_eq!(comms.members(3, "3"), Some(&[1, 3][..]));
        assert_eq!(comms.own_rank(3, "2"), Some(0));
        assert_eq!((comms.own_rank(2, "4"), comms.own_rank(3, "4")), (Some(2), None));
        assert_eq!((comms.members(3, "5"), comms.own_rank(3, "5")), (None, Some(3)));
    }

    #[test]
    fn those_who_get_no_communicator_have_called_all_the_same() {
        let names = ["rank 0", "rank 1", "rank 2", "rank 3"];
        let mut comms = Communicators::new(names.iter().map(|&name| (name, &[][..])));
        // Ranks 0 to 2, reversed; then two pairs.
        let calls = |rank: i64| {
            let first = creation("0", "1", if rank < 3 { 0 } else { -32766 }, -rank);
            let first = if rank < 3 { first } else { Creation { made: None, ..first } };
            vec![first, creation("0", "2", rank % 2, 0)]
        };
        comms.learn(&[calls(0), calls(1), calls(2), calls(3)]);
        assert_eq!(comms.members(0, "1"), Some(&[2, 1, 0][..]));
        assert_eq!(comms.members(1, "2"), Some(&[1, 3][..]));
        assert_eq!(comms.members(3, "2"), Some(&[1, 3][..]));
        assert_eq!(comms.members(3, "1"), None);
    }

    #[test]
    fn claims_of_large_communicators_are_bounded() {
        let names = ["rank 4194303", "rank 0"];
        let mut comms = Communicators::new(names.iter().map(|&name| (name, &[][..])));
        let cart = |side: u32| Creation {
            color: None,
            grid: Grid::parse(&side.to_string()),
            ..creation("0", &side.to_string(), 0, 0)
        };
        let calls: Vec<Creation> = (0..200).map(|less| cart(4_000_000 - less)).collect();
        comms.learn(&[calls, vec![]]);
        let members: u64 = comms.known.keys().map(|ranks| ranks.len() as u64).sum();
        assert!(members <= MOST_EFFORT, "{members}");
        assert!(members > 0);
    }

    #[test]
    fn ranks_may_be_missing_and_other_streams_be_there() {
        let names = ["rank 5", "GPU", "rank 4000000"];
        let mut comms = Communicators::new(names.iter().map(|&name| (name, &[][..])));
        assert_eq!((comms.own_rank(0, "0"), comms.own_rank(1, "0")), (Some(5), None));
        assert_eq!((comms.comm_size(0, "0"), comms.rank(1), comms.size()), (4_000_001, 4_000_001, 4_000_002));
        assert_eq!((rank_of("rank 4194303"), rank_of("rank 4194304")), (Some(4_194_303), None));
        let copy = Creation { color: None, ..creation("0", "1", 0, 0) };
        comms.learn(&[vec![copy, creation("0", "2", 0, 0)], vec![], vec![creation("0", "2", 0, -1)]]);
        assert_eq!(comms.own_rank(0, "1"), Some(5));
        assert_eq!(comms.own_rank(0, "2"), Some(0));
    }

    #[test]
    fn lists_of_ranks_have_steps_and_a_limit() {
        assert_eq!(ranks_in("5,1-3,0-9:4", 7), Some(vec![5, 1, 2, 3, 0, 4, 8]));
        assert_eq!((ranks_in("5,1-3,0-9:4", 6), ranks_in("4294967295", 9)), (None, None));
        assert_eq!((ranks_in("a", 9), ranks_in("1-2:0", 9)), (None, None));
    }
}
