//! Maps streams to processes, and communicators to their members, in their order, and to their
//! grid.
//!
//! The sources are the notes of streams (`comm N`, `comm N shape`), and the calls that create
//! communicators, if they record color and key. A communicator that neither describes is that
//! of all processes. Time and memory are O(streams + members of communicators that calls
//! created).

use super::call::{WORLD, text_of};
use super::grid::Grid;
use super::peers::survey;
use crate::Fold;
use crate::trace::{Meaning, Name, Trace, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

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
        let mut result = Self::new(fold.streams().iter().map(|stream| (stream.name(), stream.notes())));
        let made = survey::creations(&Trace::default(), std::slice::from_ref(fold));
        result.learn(&made.by_stream);
        result
    }

    fn members_of(&mut self, ranks: Vec<u32>) -> Arc<Members> {
        Arc::clone(self.known.entry(ranks).or_insert_with_key(|ranks| Members::new(ranks.clone())))
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

/// A call that makes a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    parent: String,
    /// Its name. `None` for those that are not in it.
    made: Option<String>,
    /// Only those with the same color are in it. `None` if all are.
    color: Option<i64>,
    key: i64,
    grid: Option<Grid>,
}

impl Creation {
    /// The communicator that an event creates, if it creates one and states its kind.
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
        let made = meaning.field("newcomm").map(text_of);
        // Those that get no communicator from a call have made it all the same.
        if made.is_none() && color.is_none() {
            return None;
        }
        Some(Self {
            parent: meaning.field("comm").map_or_else(|| WORLD.to_string(), text_of),
            made,
            color,
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
        // Those that have no stream make no calls.
        let mut world: Vec<u32> = stream_of.keys().copied().filter(|&rank| rank < self.world).collect();
        world.sort_unstable();
        let mut by_parent: Vec<HashMap<&str, Vec<&Creation>>> = Vec::new();
        let mut ordinals: Vec<Vec<usize>> = Vec::new();
        for creations in creations {
            let mut parents: HashMap<&str, Vec<&Creation>> = HashMap::new();
            let mut own_ordinals = Vec::new();
            for creation in creations {
                let earlier = parents.entry(&creation.parent).or_default();
                own_ordinals.push(earlier.len());
                earlier.push(creation);
            }
            ordinals.push(own_ordinals);
            by_parent.push(parents);
        }
        // Each call is examined once for all that take part in it.
        let mut divided: HashMap<(usize, &str, usize), Division<'_>> = HashMap::new();
        let mut effort = MOST_EFFORT;
        let rounds = creations.iter().map(Vec::len).max().unwrap_or(0);
        for round in 0..rounds {
            // All calls of a round see what the rounds before have made.
            let mut made = Vec::new();
            for (stream, (creations, ordinals)) in creations.iter().zip(&ordinals).enumerate() {
                let Some((creation, &ordinal)) = creations.get(round).zip(ordinals.get(round)) else {
                    continue;
                };
                let Some(name) = creation.made.as_deref() else { continue };
                if creation.color.is_none() {
                    let copy = self.copy_of(stream, creation, &mut effort);
                    made.push((stream, creation, name, copy));
                    continue;
                }
                let parent = self.members[stream].get(&creation.parent).map(Arc::clone);
                let instance = parent.as_ref().map_or(0, |parent| Arc::as_ptr(parent) as usize);
                let call = (instance, creation.parent.as_str(), ordinal);
                if !divided.contains_key(&call) {
                    let everyone = parent.as_ref().map_or(&world, |parent| &parent.ranks);
                    let Some(rest) = effort.checked_sub(everyone.len() as u64) else { return };
                    effort = rest;
                    let calls = everyone.iter().filter_map(|&rank| {
                        let theirs = by_parent.get(*stream_of.get(&rank)?)?;
                        Some((rank, *theirs.get(creation.parent.as_str())?.get(ordinal)?))
                    });
                    divided.insert(call, self.divide(calls));
                }
                let own = divided[&call].get(&(creation.color, name));
                // Another stream of the same process may have said something else.
                let members = own.cloned().unwrap_or_else(|| Some(self.members_of(Vec::new())));
                made.push((stream, creation, name, members));
            }
            for (stream, creation, name, members) in made {
                if let Some(members) = members {
                    self.members[stream].entry_ref(name).or_insert(members);
                }
                if let Some(grid) = &creation.grid {
                    self.grids.entry_ref(name).or_insert_with(|| grid.clone());
                }
            }
        }
    }

    /// The groups after a call that splits a communicator, by the color and key of each rank.
    fn divide<'a>(&mut self, calls: impl Iterator<Item = (u32, &'a Creation)>) -> Division<'a> {
        let mut groups: HashMap<Said<'_>, Vec<(i64, u32)>> = HashMap::new();
        for (rank, call) in calls {
            let Some(made) = &call.made else { continue };
            groups.entry((call.color, made)).or_default().push((call.key, rank));
        }
        let mut members = |mut group: Vec<(i64, u32)>| {
            // The sort is stable: equal keys stay in the order of the parent.
            group.sort_by_key(|&(key, _)| key);
            let ranks: Vec<u32> = group.into_iter().map(|(_, rank)| rank).collect();
            let is_world = ranks.len() == self.world as usize && ranks.iter().copied().eq(0..self.world);
            (!is_world).then(|| self.members_of(ranks))
        };
        groups.into_iter().map(|(said, group)| (said, members(group))).collect()
    }

    /// The members of what is made of a whole communicator, or of as many as its grid has
    /// places for. Returns `None` if that is the world.
    fn copy_of(&mut self, stream: usize, creation: &Creation, effort: &mut u64) -> Option<Arc<Members>> {
        let parent = self.members[stream].get(&creation.parent).map(Arc::clone);
        let size = self.comm_size(stream, &creation.parent);
        let places = creation.grid.as_ref().and_then(Grid::size).unwrap_or(size);
        if places >= size {
            return parent;
        }
        *effort = effort.checked_sub(places.into())?;
        let ranks = match parent {
            Some(parent) => parent.ranks[..places as usize].to_vec(),
            None => (0..places).collect(),
        };
        Some(self.members_of(ranks))
    }
}

/// The members of what a call makes, by color and what it is called. `None` for the world.
type Division<'a> = HashMap<Said<'a>, Option<Arc<Members>>>;

/// The color that a rank gives, and what it calls the communicator that is made.
type Said<'a> = (Option<i64>, &'a str);

/// How many members of all communicators together are examined.
const MOST_EFFORT: u64 = 1 << 24;

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
