//! Finds the members of communicators from the calls that create them.
//!
//! Such a call is made by all members of the parent communicator, in the same order: the n-th
//! call of each member on the same parent is the same call. So the processes are followed from
//! call to call; each waits until all members of the parent have arrived. Those that never do
//! (their trace is missing or ends early) are not waited for.
//!
//! A communicator that was freed may be followed by another one of the same number. A number
//! with the same members again stays what it is; with other members, it gets a
//! [label](Labels) of its own.
//!
//! Time and memory are O(calls + members of the parents of all calls), up to a limit.

use super::call::{WORLD, text_of};
use super::communicators::{Communicators, Members};
use super::grid::Grid;
use crate::trace::{Meaning, Name, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// A call that creates a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    pub(super) parent: String,
    /// Its name. `None` for those that are not in it.
    pub(super) made: Option<String>,
    /// Only those with the same color are in it. `None` if all are.
    pub(super) color: Option<i64>,
    pub(super) key: i64,
    pub(super) grid: Option<Grid>,
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

/// What communicators are called from a call on, where their number had other members before.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// For each stream, for each of its calls in order; nothing where no number is used again.
    of_stream: Vec<Vec<Option<Arc<str>>>>,
    /// The numbers that are used again.
    pub(super) reused: HashSet<String>,
}

impl Labels {
    /// The labels of what the calls of a stream create, where these are not their numbers.
    pub(super) fn of_stream(&self, stream: usize) -> &[Option<Arc<str>>] {
        self.of_stream.get(stream).map_or(&[], Vec::as_slice)
    }
}

impl Communicators {
    /// Learns from the calls that create communicators, for each stream in its order. A number
    /// keeps the members that it first has in a stream; the labels of others have theirs.
    pub(super) fn learn(&mut self, creations: &[Vec<Creation>]) -> Labels {
        let mut calls = Calls::new(self, creations);
        calls.follow();
        let (instances, created) = (calls.instances, calls.created);
        let labels = Labels::of(self, creations, &instances, &created);
        for (stream, created) in created.iter().enumerate() {
            let mut known = HashSet::new();
            for (nth, (creation, &instance)) in creations[stream].iter().zip(created).enumerate() {
                let (Some(name), Some(instance)) = (creation.made.as_deref(), instance) else { continue };
                let label = labels.of_stream(stream).get(nth).and_then(Option::as_deref);
                let name = known.insert(name).then_some(name);
                for name in name.into_iter().chain(label) {
                    self.add(stream, name, instances[instance].clone(), creation.grid.as_ref());
                }
            }
        }
        labels
    }
}

/// The number of a communicator among all that are created.
type Instance = usize;

/// The color that a rank gives, and what it calls the communicator that is created.
type Said<'a> = (Option<i64>, &'a str);

/// A call of several processes on the same communicator.
struct Call<'a> {
    parent: Instance,
    /// The streams that have arrived, in order of arrival.
    arrived: Vec<usize>,
    /// How many processes have not.
    missing: usize,
    /// What was created, when the call is complete.
    created: Option<HashMap<Said<'a>, Instance>>,
}

/// Follows processes from call to call.
struct Calls<'c, 'a> {
    communicators: &'c mut Communicators,
    creations: &'a [Vec<Creation>],
    /// The stream that makes the calls of a process.
    stream_of: HashMap<u32, usize>,
    /// The processes that have a stream.
    world: Vec<u32>,
    /// The members of each communicator; of the world, if nothing.
    instances: Vec<Option<Arc<Members>>>,
    /// Communicators that no call has created, by their members and name.
    given: HashMap<(usize, &'a str), Instance>,
    /// For each stream what a name stands for at present.
    current: Vec<HashMap<&'a str, Instance>>,
    /// For each stream how many calls it has made on a communicator.
    ordinals: Vec<HashMap<Instance, usize>>,
    calls: Vec<Call<'a>>,
    call_of: HashMap<(Instance, usize), usize>,
    /// For each stream what each of its calls has created.
    created: Vec<Vec<Option<Instance>>>,
    /// The call that each stream is in.
    inside: Vec<Option<usize>>,
    effort: u64,
}

/// How many members of all communicators together are examined.
pub(super) const MOST_EFFORT: u64 = 1 << 24;

impl<'c, 'a> Calls<'c, 'a> {
    fn new(communicators: &'c mut Communicators, creations: &'a [Vec<Creation>]) -> Self {
        let streams = creations.len();
        let stream_of = communicators.stream_of();
        let mut world: Vec<u32> =
            stream_of.keys().copied().filter(|&rank| rank < communicators.world_size()).collect();
        world.sort_unstable();
        Self {
            communicators,
            creations,
            stream_of,
            world,
            instances: Vec::new(),
            given: HashMap::new(),
            current: vec![HashMap::new(); streams],
            ordinals: vec![HashMap::new(); streams],
            calls: Vec::new(),
            call_of: HashMap::new(),
            created: vec![Vec::new(); streams],
            inside: vec![None; streams],
            effort: MOST_EFFORT,
        }
    }

    fn follow(&mut self) {
        let mut ready: Vec<usize> = (0..self.creations.len()).rev().collect();
        loop {
            while let Some(stream) = ready.pop() {
                if self.created[stream].len() == self.creations[stream].len() {
                    continue;
                }
                let Some(call) = self.enter(stream) else { return };
                if self.calls[call].created.is_some() {
                    self.leave(stream, call);
                    ready.push(stream);
                } else if self.calls[call].missing == 0 && self.complete(call, &mut ready).is_none() {
                    return;
                }
            }
            let stuck = self.least_stuck();
            if stuck.is_empty() || stuck.into_iter().any(|call| self.complete(call, &mut ready).is_none()) {
                return;
            }
        }
    }

    /// The next call of a stream. Returns `None` at the limit.
    fn enter(&mut self, stream: usize) -> Option<usize> {
        let parent = self.instance(stream, &self.creation(stream).parent);
        let ordinal = self.ordinals[stream].entry(parent).or_default();
        let next = self.calls.len();
        let call = *self.call_of.entry((parent, *ordinal)).or_insert(next);
        *ordinal += 1;
        if call == next {
            let size = self.members(parent).len();
            self.effort = self.effort.checked_sub(size as u64)?;
            self.calls.push(Call { parent, arrived: Vec::new(), missing: 0, created: None });
            self.calls[call].missing = self.expected(call).count();
        }
        let rank = self.communicators.rank(stream);
        let is_member = self.instances[parent].as_ref().is_none_or(|members| members.own.contains_key(&rank));
        let is_expected = is_member && rank < self.communicators.world_size();
        self.calls[call].arrived.push(stream);
        self.calls[call].missing -= usize::from(is_expected && self.stream_of[&rank] == stream);
        self.inside[stream] = Some(call);
        Some(call)
    }

    /// The processes of a communicator; of the world only those that have a stream.
    fn members(&self, instance: Instance) -> &[u32] {
        self.instances[instance].as_ref().map_or(&self.world, |members| &members.ranks)
    }

    /// What a name stands for in a stream.
    fn instance(&mut self, stream: usize, name: &'a str) -> Instance {
        if let Some(&instance) = self.current[stream].get(name) {
            return instance;
        }
        let members = self.communicators.known_members(stream, name);
        let next = self.instances.len();
        let instance = *self.given.entry((identity(members.as_ref()), name)).or_insert(next);
        if instance == next {
            self.instances.push(members);
        }
        instance
    }

    /// The processes that take part in a call, as far as they have a stream, in the order of the
    /// parent.
    fn expected(&self, call: usize) -> impl Iterator<Item = usize> + '_ {
        let ranks = self.members(self.calls[call].parent);
        ranks.iter().filter_map(|rank| self.stream_of.get(rank).copied())
    }

    /// Calls that wait only for streams that have ended, or else the first one.
    fn least_stuck(&mut self) -> Vec<usize> {
        let mut waiting: Vec<usize> = self.inside.iter().flatten().copied().collect();
        waiting.sort_unstable();
        waiting.dedup();
        let has_ended = |stream: usize| self.inside[stream].is_none();
        let is_hopeless = |&call: &usize| {
            self.expected(call).all(|stream| has_ended(stream) || self.inside[stream] == Some(call))
        };
        let hopeless: Vec<usize> = waiting.iter().copied().filter(is_hopeless).collect();
        if hopeless.is_empty() { waiting.into_iter().take(1).collect() } else { hopeless }
    }

    /// Creates what the streams that have arrived ask for. Returns `None` at the limit.
    fn complete(&mut self, call: usize, ready: &mut Vec<usize>) -> Option<()> {
        let taking_part: Vec<usize> =
            self.expected(call).filter(|&stream| self.inside[stream] == Some(call)).collect();
        let parent = self.instances[self.calls[call].parent].clone();
        let mut groups: HashMap<Said<'a>, Vec<(i64, u32)>> = HashMap::new();
        let mut grids: HashMap<Said<'a>, &'a Grid> = HashMap::new();
        for &stream in &taking_part {
            let creation = self.creation(stream);
            let Some(name) = &creation.made else { continue };
            let said = (creation.color, name.as_str());
            groups.entry(said).or_default().push((creation.key, self.communicators.rank(stream)));
            grids.extend(creation.grid.as_ref().map(|grid| (said, grid)));
        }
        let mut created = HashMap::new();
        for (said, group) in groups {
            let members = match said.0 {
                Some(_) => self.communicators.group(group),
                None => self.copy(parent.as_ref(), grids.get(&said).copied())?,
            };
            created.insert(said, self.instances.len());
            self.instances.push(members);
        }
        self.calls[call].created = Some(created);
        for stream in std::mem::take(&mut self.calls[call].arrived) {
            self.leave(stream, call);
            ready.push(stream);
        }
        Some(())
    }

    fn creation(&self, stream: usize) -> &'a Creation {
        &self.creations[stream][self.created[stream].len()]
    }

    /// The members of a copy of a communicator, or of as many as its grid has places for.
    fn copy(&mut self, parent: Option<&Arc<Members>>, grid: Option<&Grid>) -> Option<Option<Arc<Members>>> {
        let size = parent.map_or(self.communicators.world_size(), |parent| parent.ranks.len() as u32);
        let places = grid.and_then(Grid::size).unwrap_or(size);
        if places >= size {
            return Some(parent.cloned());
        }
        self.effort = self.effort.checked_sub(places.into())?;
        let ranks = match parent {
            Some(parent) => parent.ranks[..places as usize].to_vec(),
            None => (0..places).collect(),
        };
        Some(Some(self.communicators.members_of(ranks)))
    }

    /// What a complete call has created for a stream.
    fn leave(&mut self, stream: usize, call: usize) {
        let creation = self.creation(stream);
        self.inside[stream] = None;
        let Some(name) = creation.made.as_deref() else { return self.created[stream].push(None) };
        let created = self.calls[call].created.as_ref();
        let own = created.and_then(|created| created.get(&(creation.color, name)).copied());
        // Another stream of the same process may have said something else.
        let own = own.unwrap_or_else(|| {
            self.instances.push(Some(self.communicators.members_of(Vec::new())));
            self.instances.len() - 1
        });
        self.current[stream].insert(name, own);
        self.created[stream].push(Some(own));
    }
}

/// Equal lists of members are kept once.
fn identity(members: Option<&Arc<Members>>) -> usize {
    members.map_or(0, |members| Arc::as_ptr(members) as usize)
}

impl Labels {
    /// Members that a number does not have at first in some stream have another label in all,
    /// so that all of them call it the same.
    fn of(
        communicators: &Communicators,
        creations: &[Vec<Creation>],
        instances: &[Option<Arc<Members>>],
        created: &[Vec<Option<Instance>>],
    ) -> Self {
        let mut first: HashMap<(usize, &str), usize> = HashMap::new();
        let mut all: Vec<(usize, usize, &str, usize)> = Vec::new();
        for (stream, created) in created.iter().enumerate() {
            for (nth, (creation, &instance)) in creations[stream].iter().zip(created).enumerate() {
                let (Some(name), Some(instance)) = (creation.made.as_deref(), instance) else { continue };
                all.push((stream, nth, name, identity(instances[instance].as_ref())));
            }
        }
        let mut labels: HashMap<(&str, usize), Arc<str>> = HashMap::new();
        let names: HashSet<&str> = all.iter().map(|&(_, _, name, _)| name).collect();
        let mut numbers: HashMap<&str, u64> = HashMap::new();
        for &(stream, _, name, members) in &all {
            let given = || communicators.known_members(stream, name);
            let before = *first.entry((stream, name)).or_insert_with(|| match given() {
                Some(given) => identity(Some(&given)),
                None => members,
            });
            if before != members && !labels.contains_key(&(name, members)) {
                let label = unused_label(name, numbers.entry(name).or_insert(1), &names);
                labels.insert((name, members), label);
            }
        }
        if labels.is_empty() {
            return Self::default();
        }
        let mut of_stream: Vec<Vec<Option<Arc<str>>>> =
            created.iter().map(|created| vec![None; created.len()]).collect();
        for (stream, nth, name, members) in all {
            of_stream[stream][nth] = labels.get(&(name, members)).cloned();
        }
        Self { of_stream, reused: numbers.into_keys().map(str::to_string).collect() }
    }
}

/// The name with the next number behind it that makes it another: `1.2`, `1.3`.
fn unused_label(name: &str, number: &mut u64, names: &HashSet<&str>) -> Arc<str> {
    loop {
        *number += 1;
        let label = format!("{name}.{number}");
        if !names.contains(label.as_str()) {
            return label.into();
        }
    }
}
