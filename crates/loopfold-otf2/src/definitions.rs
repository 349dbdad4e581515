//! Resolves the numbers in records: regions, communicators, and the rank and thread of each
//! location.
//!
//! Numbers are looked up in maps, so a huge one in a damaged archive costs nothing: memory is
//! O(definitions read).

use hashbrown::HashMap;
use loopfold_sources::Result;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

const PARADIGM_MPI: u8 = 4;
const GROUP_OF_LOCATIONS: u8 = 4;
const GROUP_OF_RANKS: u8 = 5;
const GROUP_OF_ONE: u8 = 6;
const LOCATION_THREAD: u8 = 1;

/// Numbers and their definitions.
type Map<V> = HashMap<u32, V, foldhash::fast::RandomState>;

/// The definitions of an archive.
#[derive(Default)]
pub(crate) struct Definitions {
    ticks: u64,
    offset: u64,
    strings: Map<Vec<u8>>,
    regions: Map<Region>,
    groups: Map<Group>,
    comms: BTreeMap<u32, Comm>,
    location_groups: Map<u32>,
    locations: Vec<Location>,
    dimensions: Map<Dimension>,
    /// For communicators with the shape of a grid, their dimensions.
    grids: BTreeMap<u32, Vec<u32>>,
}

/// A region of the program: a function, a loop, an MPI call.
#[derive(Clone, Copy)]
struct Region {
    name: u32,
    paradigm: u8,
}

struct Group {
    kind: u8,
    paradigm: u8,
    members: Vec<u64>,
}

struct Comm {
    name: u32,
    group: u32,
}

/// One dimension of a grid.
struct Dimension {
    size: u32,
    is_ring: bool,
}

/// A thread, or something else that has records of its own.
#[derive(Clone)]
pub(crate) struct Location {
    pub(crate) id: u64,
    name: u32,
    kind: u8,
    /// The number of records that the archive declares.
    pub(crate) records: u64,
    group: u32,
}

/// A location and the stream it becomes.
pub(crate) struct NamedLocation {
    pub(crate) location: Location,
    pub(crate) name: String,
    /// Its name in the archive; empty for the main thread of a rank.
    pub(crate) title: String,
    pub(crate) rank: Option<u64>,
}

/// Definitions as the library reads them.
impl Definitions {
    pub(crate) fn clock(&mut self, ticks: u64, offset: u64) {
        (self.ticks, self.offset) = (ticks, offset);
    }

    pub(crate) fn string(&mut self, id: u32, text: &[u8]) {
        self.strings.insert(id, text.to_vec());
    }

    pub(crate) fn location_group(&mut self, id: u32, name: u32) {
        self.location_groups.insert(id, name);
    }

    pub(crate) fn location(&mut self, id: u64, name: u32, kind: u8, records: u64, group: u32) {
        self.locations.push(Location { id, name, kind, records, group });
    }

    pub(crate) fn region(&mut self, id: u32, name: u32, paradigm: u8) {
        self.regions.insert(id, Region { name, paradigm });
    }

    pub(crate) fn group(&mut self, id: u32, kind: u8, paradigm: u8, members: &[u64]) {
        self.groups.insert(id, Group { kind, paradigm, members: members.to_vec() });
    }

    pub(crate) fn comm(&mut self, id: u32, name: u32, group: u32) {
        self.comms.insert(id, Comm { name, group });
    }

    pub(crate) fn dimension(&mut self, id: u32, size: u32, is_ring: bool) {
        self.dimensions.insert(id, Dimension { size, is_ring });
    }

    pub(crate) fn grid(&mut self, comm: u32, dimensions: &[u32]) {
        self.grids.insert(comm, dimensions.to_vec());
    }
}

/// What records need.
impl Definitions {
    /// The name of a region, `region 7` if the archive has none, and whether it has one.
    pub(crate) fn region_name(&self, region: u32) -> (Vec<u8>, bool) {
        let name = self.regions.get(&region).and_then(|region| self.strings.get(&region.name));
        name.map_or_else(|| (format!("region {region}").into_bytes(), false), |name| (name.clone(), true))
    }

    /// Whether a region is an MPI call.
    pub(crate) fn is_mpi(&self, region: u32) -> bool {
        self.regions.get(&region).is_some_and(|region| {
            let name = self.text(region.name);
            region.paradigm == PARADIGM_MPI || name.starts_with(b"MPI_")
        })
    }

    /// How many ranks a communicator has, if that is known.
    pub(crate) fn ranks_of(&self, comm: u32) -> Option<u64> {
        let group = self.groups.get(&self.comms.get(&comm)?.group)?;
        match group.kind {
            GROUP_OF_ONE => Some(1),
            _ => Some(group.members.len() as u64).filter(|&ranks| ranks > 0),
        }
    }

    /// Nanoseconds since the archive's beginning, if they fit.
    pub(crate) fn nanoseconds(&self, time: u64) -> Option<i64> {
        const SECOND: u64 = 1_000_000_000;
        let ticks = time.abs_diff(self.offset);
        let nanoseconds = match self.ticks {
            SECOND => ticks,
            // A clock without a resolution counts nanoseconds.
            0 => ticks,
            // The rest is below `second`, so that times 10⁹ it fits 64 bits.
            second if second < u64::MAX / SECOND => {
                let whole = (ticks / second).checked_mul(SECOND)?;
                whole.checked_add(ticks % second * SECOND / second)?
            }
            second => u64::try_from(u128::from(ticks) * u128::from(SECOND) / u128::from(second)).ok()?,
        };
        let nanoseconds = i64::try_from(nanoseconds).ok()?;
        Some(if time < self.offset { -nanoseconds } else { nanoseconds })
    }

    fn text(&self, string: u32) -> &[u8] {
        self.strings.get(&string).map_or(b"", Vec::as_slice)
    }
}

/// Locations and ranks.
impl Definitions {
    /// The locations in the order of their ranks, each with the name of its stream: `rank 3`,
    /// `rank 3 thread 1`, or its own name if it is no thread of a rank. What is not a thread
    /// and has no records is left out.
    pub(crate) fn named_locations(&self) -> Vec<NamedLocation> {
        let by_location = self.ranks_by_location();
        let by_group = self.ranks_by_group(&by_location);
        let mut known: Vec<(Option<u64>, usize, &Location)> = Vec::new();
        for (index, location) in self.locations.iter().enumerate() {
            let is_thread = location.kind == LOCATION_THREAD;
            if is_thread || location.records > 0 {
                let rank = by_group.get(&location.group).copied().filter(|_| is_thread);
                known.push((by_location.get(&location.id).copied().or(rank), index, location));
            }
        }
        // Those without a rank come last; a rank's main thread comes before its others.
        let is_main = |location: &Location| by_location.contains_key(&location.id);
        known.sort_by_key(|&(rank, index, location)| (rank.is_none(), rank, !is_main(location), index));
        let mut names = HashSet::new();
        let mut threads: HashMap<u64, u64> = HashMap::new();
        let mut named = Vec::new();
        for (rank, _, location) in known {
            let own = String::from_utf8_lossy(self.text(location.name)).into_owned();
            let group = self.location_groups.get(&location.group).map_or(&b""[..], |&name| self.text(name));
            let group = String::from_utf8_lossy(group);
            let mut name = match rank {
                None => own.clone(),
                Some(rank) => match threads.entry(rank).and_modify(|thread| *thread += 1).or_insert(0) {
                    0 => format!("rank {rank}"),
                    thread => format!("rank {rank} thread {thread}"),
                },
            };
            if name.is_empty() || names.contains(&name) {
                name = format!("{group} {own}").trim().to_string();
            }
            if name.is_empty() || names.contains(&name) {
                name = format!("{name} location {}", location.id).trim().to_string();
            }
            names.insert(name.clone());
            let is_plain = rank.is_some_and(|rank| threads.get(&rank) == Some(&0));
            let title = if is_plain { String::new() } else { format!("{group} {own}").trim().to_string() };
            named.push(NamedLocation { location: location.clone(), name, title, rank });
        }
        named
    }

    /// The group that says which location is which rank, if there is one.
    fn world(&self) -> Option<&Group> {
        let is_world = |group: &&Group| group.kind == GROUP_OF_LOCATIONS && group.paradigm == PARADIGM_MPI;
        self.groups.values().find(is_world)
    }

    fn ranks_by_location(&self) -> HashMap<u64, u64> {
        let members = self.world().map_or(&[][..], |world| &world.members);
        members.iter().zip(0..).map(|(&location, rank)| (location, rank)).collect()
    }

    /// The ranks of processes. Without a group that lists them, their names may: `MPI Rank 3`.
    fn ranks_by_group(&self, by_location: &HashMap<u64, u64>) -> HashMap<u32, u64> {
        let ranks = self
            .locations
            .iter()
            .filter_map(|location| Some((location.group, by_location.get(&location.id).copied()?)));
        let mut ranks: HashMap<u32, u64> = ranks.collect();
        if ranks.is_empty() {
            let from_name = |(&group, &name): (&u32, &u32)| {
                let number = self.text(name).strip_prefix(b"MPI Rank ")?;
                Some((group, std::str::from_utf8(number).ok()?.parse().ok()?))
            };
            ranks = self.location_groups.iter().filter_map(from_name).collect();
        }
        ranks
    }

    /// Calls `report` with what the definitions say that cannot be: ranks without a location,
    /// communicators with ranks that do not exist.
    pub(crate) fn check(&self, mut report: impl FnMut(String, String) -> Result<()>) -> Result<()> {
        let Some(world) = self.world() else { return Ok(()) };
        let locations: HashSet<u64> = self.locations.iter().map(|location| location.id).collect();
        for (rank, location) in world.members.iter().enumerate() {
            if !locations.contains(location) {
                report(
                    format!("rank {rank}"),
                    format!("the archive has no location {location}, which it should be"),
                )?;
            }
        }
        let ranks = world.members.len() as u64;
        for (number, comm) in &self.comms {
            let Some(group) = self.groups.get(&comm.group) else {
                report(format!("communicator {number}"), format!("its group {} is not defined", comm.group))?;
                continue;
            };
            let absent = group.members.iter().find(|&&member| member >= ranks);
            if let Some(absent) = absent.filter(|_| group.kind == GROUP_OF_RANKS) {
                report(
                    format!("communicator {number}"),
                    format!("it names rank {absent}, but there are {ranks} ranks"),
                )?;
            }
        }
        Ok(())
    }

    /// The communicators that a rank is in and whose ranks are not those of the world: their
    /// numbers, and the world's ranks in their order, such as `0-12:4` for 0, 4, 8 and 12.
    pub(crate) fn comms_of(&self, rank: u64) -> impl Iterator<Item = (u32, String)> + '_ {
        let everyone = self.world().map_or(0, |world| world.members.len());
        let is_world = move |members: &[u64]| {
            members.len() == everyone && members.iter().copied().eq(0..everyone as u64)
        };
        self.comms.iter().filter_map(move |(&number, comm)| {
            let group = self.groups.get(&comm.group)?;
            let is_member = group.kind == GROUP_OF_RANKS && group.members.contains(&rank);
            (is_member && !is_world(&group.members)).then(|| (number, ranges(&group.members)))
        })
    }

    /// What the archive calls its communicators, where it does.
    pub(crate) fn comm_names(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        self.comms.iter().filter_map(|(&number, comm)| {
            let name = String::from_utf8_lossy(self.text(comm.name)).into_owned();
            (!name.is_empty()).then_some((number, name))
        })
    }
}

impl Definitions {
    /// The shapes of communicators that are grids, such as `4x4`, with `p` after the size of a
    /// dimension that is periodic.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        self.grids.iter().filter_map(|(&comm, dimensions)| {
            let side = |id: &u32| {
                let Dimension { size, is_ring } = self.dimensions.get(id)?;
                Some(format!("{size}{}", if *is_ring { "p" } else { "" }))
            };
            let sides: Option<Vec<String>> = dimensions.iter().map(side).collect();
            Some((comm, sides?.join("x"))).filter(|(_, shape)| !shape.is_empty())
        })
    }
}

/// Numbers in their order, with `first-last:step` for three or more at equal distances.
fn ranges(numbers: &[u64]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let [first, after @ ..] = rest {
        let step = after.first().and_then(|second| second.checked_sub(*first)).filter(|&step| step > 0);
        let length = step.map_or(1, |step| {
            1 + rest.windows(2).take_while(|pair| pair[1].checked_sub(pair[0]) == Some(step)).count()
        });
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a text does not fail.
        let _ = match (length, step) {
            (3.., Some(1)) => write!(text, "{comma}{first}-{}", rest[length - 1]),
            (3.., Some(step)) => write!(text, "{comma}{first}-{}:{step}", rest[length - 1]),
            _ => write!(text, "{comma}{first}"),
        };
        rest = if length >= 3 { &rest[length..] } else { after };
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn with_clock(ticks: u64, offset: u64) -> Definitions {
        let mut definitions = Definitions::default();
        definitions.clock(ticks, offset);
        definitions
    }

    #[test]
    fn ticks_become_nanoseconds() {
        assert_eq!(with_clock(1_000_000_000, 5).nanoseconds(12), Some(7));
        assert_eq!(with_clock(1_000_000_000, 12).nanoseconds(5), Some(-7));
        assert_eq!(with_clock(1_000, 0).nanoseconds(1_234), Some(1_234_000_000));
        assert_eq!(with_clock(3, 0).nanoseconds(1), Some(333_333_333));
        assert_eq!(with_clock(4_000_000_000_000, 0).nanoseconds(4_001), Some(1));
        assert_eq!(with_clock(u64::MAX, 0).nanoseconds(u64::MAX), Some(1_000_000_000));
        assert_eq!(with_clock(1, 0).nanoseconds(u64::MAX), None);
        assert_eq!(with_clock(0, 0).nanoseconds(9), Some(9));
        assert_eq!(with_clock(1_000_000_000, 0).nanoseconds(u64::MAX), None);
    }

    #[test]
    fn ranks_are_written_as_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1]), "0,1");
        assert_eq!(ranges(&[0, 1, 2, 3]), "0-3");
        assert_eq!(ranges(&[0, 4, 8, 12]), "0-12:4");
        assert_eq!(ranges(&[3, 2, 1, 5, 6, 7, 9]), "3,2,1,5-7,9");
        assert_eq!(ranges(&[7, 7, 7, u64::MAX]), "7,7,7,18446744073709551615");
    }

    #[test]
    fn locations_are_named_after_ranks_and_threads() {
        let mut definitions = Definitions::default();
        for (id, text) in ["", "Master", "OMP 1", "MPI Rank 0", "MPI Rank 1", "GPU"].iter().enumerate() {
            definitions.string(id as u32, text.as_bytes());
        }
        definitions.location_group(0, 3);
        definitions.location_group(1, 4);
        definitions.location(10, 2, 1, 5, 0);
        definitions.location(11, 1, 1, 5, 0);
        definitions.location(20, 1, 1, 0, 1);
        definitions.location(30, 5, 2, 5, 0);
        definitions.location(31, 5, 2, 5, 1);
        definitions.location(40, 5, 3, 0, 1);
        let names = |definitions: &Definitions| {
            definitions.named_locations().into_iter().map(|named| named.name).collect::<Vec<_>>()
        };
        let expected = ["rank 0", "rank 0 thread 1", "rank 1", "GPU", "MPI Rank 1 GPU"];
        // By the names of processes, then by a group that reverses them.
        assert_eq!(names(&definitions), expected);
        definitions.group(0, GROUP_OF_LOCATIONS, PARADIGM_MPI, &[20, 11]);
        let expected = ["rank 0", "rank 1", "rank 1 thread 1", "GPU", "MPI Rank 1 GPU"];
        assert_eq!(names(&definitions), expected);
    }
}
