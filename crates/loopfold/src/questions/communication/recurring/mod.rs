//! Stretches of several processes that occur again, outside of joint loops or inside of one
//! joint iteration.
//!
//! It begins with a stretch of one process that occurs again, a *place*. The **closure** of a
//! place is the smallest family of stretches, one for each process, that has it and the other
//! end of every message in it. Where a process is added, and a place of it that holds what is
//! needed occurs as often as the first place, that place is taken. A closure that would cut
//! through a joint loop that is larger is none, nor one with a stretch that lies in no place and
//! no loop of its process, or with far more of a process than the first place has. Families in
//! which every process does the same are one pattern. A place is in one family only: that of the
//! place whose repetitions are most events.
//!
//! Most closures follow links between events (`linked`); the `general` one is computed for at most
//! 1,024 places. Time: O(written events of the families × depth of loops); memory: 32 bytes for
//! each written event, about 35 for each place and 6 for each of its events, and the result.

mod general;
mod linked;

use super::channels::{ChannelEnds, ChannelTable, Side};
use super::joint::{JointLoop, Member};
use super::pattern::{Occurrence, Part};
use super::processes::Processes;
use crate::StreamId;
use crate::questions::patterns::{CollapsedLoop, Holders, LoopCollapsed, LoopInstance, RecurringPlace};
use general::{Closure, Span};
use hashbrown::HashMap;
use linked::{Interval, Linked, LinkedClosure, Links};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// A stretch by positions.
type Stretch = (u64, u64);

/// How much more of a process than of the first one may be in a family.
const MOST_TIMES_LONGER: u64 = 8;
const MOST_LONGER: u64 = 64;
/// General closures: those that links do not suffice for, of the largest places.
const MOST_GENERAL: usize = 1 << 10;
/// Events for which intervals that fail are found in the time of a closure.
const EVENTS_OF_A_CLOSURE: usize = 8;
/// Events of a place that a family begins with.
const FEWEST: u32 = 2;
/// Places that are looked at for one that holds what is needed.
const MOST_SEEN: usize = 16;

/// What occurs again, and which symbols of what is shown its parts are, where that is known.
pub(super) type Found = (Occurrence, Vec<Option<Range<usize>>>);

/// The families of all places.
pub(super) fn recurring(
    processes: &Processes<'_>,
    table: &ChannelTable,
    joint: &[JointLoop],
    places: &[Vec<RecurringPlace>],
) -> Vec<Found> {
    let places: Vec<Places> =
        places.iter().enumerate().map(|(stream, all)| Places::of(processes, stream, all)).collect();
    let furthest = |(stream, places): (usize, &Places)| furthest(processes.nest(stream as u32), places);
    let furthest = places.iter().enumerate().map(furthest).collect();
    let mut search = Search {
        processes,
        table,
        links: Links::of(processes, table, furthest),
        general: Cell::new(MOST_GENERAL),
        is_complete: table.channels.iter().all(|channel| is_complete(table, channel)),
        joint: JointStretches::of(processes, joint),
        places,
    };
    let mut found = Vec::new();
    let mut linked = LinkedClosure::new(processes.traces().len());
    let mut knows_impossible = false;
    let seeds = search.seeds();
    for (tried, &(stream, place)) in seeds.iter().enumerate() {
        if search.places[stream as usize].is_used[place as usize] {
            continue;
        }
        // A closure costs as much as several events of the search for those that fail.
        let is_worth = || search.links.events() / EVENTS_OF_A_CLOSURE < seeds.len() - tried;
        if search.general.get() == 0 && !knows_impossible && is_worth() {
            search.links.find_impossible();
            knows_impossible = true;
        }
        found.extend(search.family(stream, place, &mut linked));
    }
    found
}

/// Whether every message of a channel has its other end.
fn is_complete(table: &ChannelTable, channel: &ChannelEnds) -> bool {
    let mut totals = channel.ends.iter().map(|&(_, stream, number)| table.end(stream, number).total);
    let is_same = channel.ends.len() == 2 && totals.next() == totals.next();
    channel.ends.iter().all(|&(side, ..)| side == Side::Member) || channel.is_ordered() && is_same
}

/// The places of a stream.
struct Places {
    /// By indices of the nest, the shortest first: how often each occurs.
    holders: Holders<u64>,
    /// Their positions, in the same order, where the nest is not what is shown.
    stretches: Vec<(u32, u32, Stretch)>,
    /// For what holds the events, one after the other, how often it occurs, without the higher
    /// bits: that is looked at far more often than the rest.
    counts: Vec<u16>,
    is_used: Vec<bool>,
    by_bounds: HashMap<(u32, u32), u32, foldhash::fast::RandomState>,
}

impl Places {
    fn of(processes: &Processes<'_>, stream: usize, all: &[RecurringPlace]) -> Self {
        let trace = &processes.traces()[stream];
        let (shown, nest) = (trace.shown(), trace.nest());
        let in_nest = |place: &RecurringPlace| {
            let (start, end) = (place.start as usize, place.end as usize);
            let first = shown.first(start, end);
            let stretch = (first, first + shown.events(start, end));
            let (start, last) = (nest.index_at(stretch.0)?, nest.index_at(stretch.1 - 1)?);
            (start <= last).then_some((start as u32, last as u32 + 1, (place.count, stretch)))
        };
        let (sorted, stretches) = match trace.nest_is_shown() {
            // Few positions are needed, and then they are computed.
            true => {
                let places = all.iter().filter(|place| place.start < place.end);
                let places = places.map(|place| (place.start, place.end, place.count));
                (sorted_places(places.collect(), |&count| count), Vec::new())
            }
            false => {
                let sorted = sorted_places(all.iter().filter_map(in_nest).collect(), |&(count, _)| count);
                let stretches = sorted.iter().map(|&(start, end, (_, stretch))| (start, end, stretch));
                let stretches = stretches.collect();
                (sorted.into_iter().map(|(start, end, (count, _))| (start, end, count)).collect(), stretches)
            }
        };
        let holders = Holders::new(nest.symbols().len(), sorted);
        let mut by_bounds = HashMap::with_capacity_and_hasher(holders.all().len(), Default::default());
        let bounds = (0..).zip(holders.all()).map(|(place, &(start, end, _))| ((start, end), place));
        by_bounds.extend(bounds.filter(|&((start, end), _)| end >= start + FEWEST));
        let count = |&place: &u32| holders.all()[place as usize].2 as u16;
        let counts = holders.holding().iter().map(count).collect();
        Self { counts, is_used: vec![false; holders.all().len()], by_bounds, stretches, holders }
    }
}

/// Places with something to know of each, the shortest first. Of equal ones the one that occurs
/// most is kept.
fn sorted_places<T>(mut places: Vec<(u32, u32, T)>, count: impl Fn(&T) -> u64) -> Vec<(u32, u32, T)> {
    places
        .sort_unstable_by_key(|(start, end, known)| (length_and_start(*start, *end), Reverse(count(known))));
    places.dedup_by_key(|&mut (start, end, _)| (start, end));
    places
}

/// What places are sorted by, in one number.
fn length_and_start(start: u32, end: u32) -> u64 {
    u64::from(end - start) << 32 | u64::from(start)
}

/// For each event of a nest the end of what goes furthest: of a place or a loop that begins there or
/// before.
fn furthest(nest: &LoopCollapsed, places: &Places) -> Vec<u32> {
    let mut furthest = vec![0; nest.symbols().len()];
    let places = places.holders.all().iter().map(|&(start, end, _)| (start, end));
    for (start, end) in places.chain(nest.loops().iter().map(|found| (found.start, found.end))) {
        let known = &mut furthest[start as usize];
        *known = end.max(*known);
    }
    let mut so_far = 0;
    for end in &mut furthest {
        so_far = so_far.max(*end);
        *end = so_far;
    }
    furthest
}

struct Search<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    links: Links,
    /// How many general closures may still be computed.
    general: Cell<usize>,
    /// Whether every message has its other end, so that none crosses the borders of a closure.
    is_complete: bool,
    joint: JointStretches<'p>,
    places: Vec<Places>,
}

impl<'p> Search<'p, '_> {
    fn nest(&self, stream: u32) -> &'p LoopCollapsed {
        self.processes.nest(stream)
    }

    /// All places of two events or more, those first that are most events with all that is
    /// repeated, not counting loops inside.
    fn seeds(&self) -> Vec<(u32, u32)> {
        let mut by_rank: Vec<u32> = (0..self.places.len() as u32).collect();
        by_rank.sort_unstable_by_key(|&stream| (self.processes.communicators.rank(stream as usize), stream));
        let mut seeds: Vec<(Reverse<u64>, u32, u32)> = Vec::new();
        for (order, &stream) in (0..).zip(&by_rank) {
            for (place, &(start, end, _)) in (0..).zip(self.places[stream as usize].holders.all()) {
                if end - start >= FEWEST {
                    let times = self.nest(stream).times(start as usize, end as usize);
                    seeds.push((Reverse(times.saturating_mul((end - start).into())), order, place));
                }
            }
        }
        seeds.sort_unstable();
        seeds.into_iter().map(|(_, order, place)| (by_rank[order as usize], place)).collect()
    }

    /// The occurrence that has a place, if its closure is one.
    fn family(&mut self, stream: u32, place: u32, linked: &mut LinkedClosure) -> Option<Found> {
        let (start, end, _) = self.places[stream as usize].holders.all()[place as usize];
        if self.links.is_impossible(stream, start, end) {
            return None;
        }
        let (Family { members, crossing }, around) = self.closure(stream, place, linked)?;
        members.iter().for_each(|member| self.use_place(member));
        if members.len() < 2 {
            return None;
        }
        let part = |&FamilyMember { stream, stretch: (start, end), .. }: &FamilyMember| {
            StreamId::new(stream as usize).ok().map(|stream| Part { stream, start, end })
        };
        let (repeated, periods) = self.repeated(&members, around);
        let times = around.map_or(1, |around| self.joint.times(around)).saturating_mul(repeated);
        let parts = members.iter().map(part).collect::<Option<_>>()?;
        let shown = members.iter().map(|member| self.shown_symbols(member)).collect();
        Some((Occurrence { parts, periods, times, in_a_row: repeated, crossing }, shown))
    }

    /// The symbols of what is shown that a member has, if its interval is known.
    fn shown_symbols(&self, member: &FamilyMember) -> Option<Range<usize>> {
        let is_shown = self.processes.traces()[member.stream as usize].nest_is_shown();
        let (start, end) = member.bounds;
        (is_shown && member.is_interval).then_some(start as usize..end as usize)
    }

    /// The closure of a place, if it is a family, and the joint loop in whose iteration it is.
    fn closure(
        &self,
        stream: u32,
        place: u32,
        linked: &mut LinkedClosure,
    ) -> Option<(Family, Option<usize>)> {
        // As long as general closures are computed, only for places that can be in a family.
        let known = match self.general.get() {
            0 => None,
            _ => Some(self.around_place(stream, place)?),
        };
        let (smallest, has_larger) = self.closed(stream, place, Taking::Events, linked)?;
        let around = known.or_else(|| self.around_place(stream, place))?;
        // With places it is no smaller.
        let larger = match has_larger {
            true => self.closed(stream, place, Taking::Places, linked).map(|(larger, _)| larger),
            false => {
                // As many general closures are computed as if it were not known.
                if matches!(smallest, Closed::General(_)) {
                    self.general.set(self.general.get().saturating_sub(1));
                }
                None
            }
        };
        let larger = larger.and_then(|larger| self.fitting(larger, around));
        let family = larger.or_else(|| self.fitting(smallest, around))?;
        Some((family, around))
    }

    /// The joint loop in whose iteration a place is, if any. Returns `None` if it cuts through one.
    fn around_place(&self, stream: u32, place: u32) -> Option<Option<usize>> {
        let (start, end, _) = self.places[stream as usize].holders.all()[place as usize];
        match self.joint.touches(stream, start, end) {
            false => Some(None),
            true => self.joint.inside(stream, self.place_stretch(stream, start, end)).of(),
        }
    }

    /// The positions of a place.
    fn place_stretch(&self, stream: u32, start: u32, end: u32) -> Stretch {
        let known = &self.places[stream as usize].stretches;
        let sorted_by = |&(start, end, _): &(u32, u32, Stretch)| length_and_start(start, end);
        if let Ok(at) = known.binary_search_by_key(&length_and_start(start, end), sorted_by) {
            return known[at].2;
        }
        self.links.stretch_outside(stream, start, end).unwrap_or_else(|| {
            let (nest, start, end) = (self.nest(stream), start as usize, end as usize);
            let first = nest.first(start, end);
            (first, first + nest.events(start, end))
        })
    }

    /// The family of a closure, if it lies in the same joint iteration, and cuts through nothing.
    fn fitting(&self, closed: Closed, around: Option<usize>) -> Option<Family> {
        let fits = |stream, stretch| self.joint.inside(stream, stretch).of() == Some(around);
        let family = match closed {
            Closed::General(family) => family,
            Closed::Linked(intervals) => {
                // Where no joint loop is, it cuts through none and is in none.
                let fits = |&(stream, interval): &(u32, Interval)| match self.joint.touches(
                    stream,
                    interval.start,
                    interval.end,
                ) {
                    true => fits(stream, self.links.stretch(self.nest(stream), stream, &interval)),
                    false => around.is_none(),
                };
                return intervals.iter().all(fits).then(|| self.family_of(intervals));
            }
        };
        let fits = |member: &FamilyMember| fits(member.stream, member.stretch);
        family.members.iter().all(fits).then_some(family)
    }

    /// The closure of a place, and whether it may be larger where places are taken.
    fn closed(
        &self,
        stream: u32,
        place: u32,
        taking: Taking,
        linked: &mut LinkedClosure,
    ) -> Option<(Closed, bool)> {
        let (start, end, count) = self.places[stream as usize].holders.all()[place as usize];
        match linked.close(self, (stream, start, end), count, taking) {
            Linked::Closed(intervals) => Some((Closed::Linked(intervals), linked.has_larger())),
            Linked::Fails => None,
            Linked::Unknown => {
                self.general.set(self.general.get().checked_sub(1)?);
                let stretch = self.place_stretch(stream, start, end);
                let first = Span { start: stretch.0, end: stretch.1, first: start, last: end - 1 };
                let (family, has_larger) = Closure::new(self, stream, first, count, taking).close()?;
                Some((Closed::General(family), has_larger || linked.has_larger()))
            }
        }
    }

    fn family_of(&self, mut intervals: Vec<(u32, Interval)>) -> Family {
        intervals.sort_unstable_by_key(|&(stream, _)| stream);
        let member = |(stream, interval): (u32, Interval)| FamilyMember {
            stream,
            stretch: self.links.stretch(self.nest(stream), stream, &interval),
            bounds: (interval.start, interval.end),
            is_interval: true,
        };
        Family { members: intervals.into_iter().map(member).collect(), crossing: 0 }
    }

    /// The largest place with an event that occurs so often.
    fn place_around(&self, stream: u32, index: u32, count: u64) -> Option<(u32, u32)> {
        let places = &self.places[stream as usize];
        let range = places.holders.range_of(index as usize);
        let seen = range.start.max(range.end.saturating_sub(MOST_SEEN))..range.end;
        let mut similar = seen.rev().filter(|&at| places.counts[at] == count as u16);
        similar.find_map(|at| {
            let place = places.holders.holding()[at];
            let (start, end, known) = places.holders.all()[place as usize];
            (known == count).then_some((start, end))
        })
    }

    /// A place that is a part of a family begins no other one.
    fn use_place(&mut self, member: &FamilyMember) {
        let (start, end) = member.bounds;
        if end < start + FEWEST {
            return;
        }
        let places = &mut self.places[member.stream as usize];
        if let Some(&place) = places.by_bounds.get(&member.bounds) {
            places.is_used[place as usize] = true;
        }
    }

    /// How often a family is repeated by loops around it which no joint loop has, and at which
    /// distances: if all of its processes have one, with the same number of messages at both ends
    /// of each channel.
    fn repeated(&self, members: &[FamilyMember], around: Option<usize>) -> (u64, Vec<u64>) {
        let loop_around = |member: &FamilyMember| Some((member.stream, self.loop_around(member, around)?));
        let loops: Option<BTreeMap<u32, usize>> = members.iter().map(loop_around).collect();
        let once = || (1, members.iter().map(|member| member.stretch.1 - member.stretch.0).collect());
        let Some(loops) = loops.filter(|loops| self.are_in_step(loops)) else { return once() };
        let times = loops.iter().map(|(&stream, &found)| self.nest(stream).loops()[found].times).min();
        let periods = loops.iter().map(|(&stream, &found)| self.nest(stream).body_events(found));
        (times.unwrap_or(1), periods.collect())
    }

    /// Whether iterations of loops have as many messages at both ends of each channel between
    /// them.
    fn are_in_step(&self, loops: &BTreeMap<u32, usize>) -> bool {
        loops.iter().all(|(&stream, &found)| {
            let inside = self.table.streams[stream as usize].of_loop(found);
            inside.iter().all(|end| {
                let channel = self.table.channel(self.table.end(stream, end.number));
                channel.ends.iter().all(|&(_, other, number)| {
                    let there = &self.table.streams[other as usize];
                    loops.get(&other).is_none_or(|&found| there.each(found, number) == end.messages.each)
                })
            })
        })
    }

    /// The innermost loop with a stretch in its first iteration, inside of a joint iteration.
    fn loop_around(&self, member: &FamilyMember, around: Option<usize>) -> Option<usize> {
        let &FamilyMember { stream, stretch: (start, end), bounds: (first, _), .. } = member;
        if !self.links.is_in_a_loop(stream, first) {
            return None;
        }
        let nest = self.nest(stream);
        let located = nest.locate(start)?;
        let holds = |instance: &&LoopInstance| {
            let body = nest.body_events(instance.found);
            instance.iteration == 0 && end <= instance.start + body
        };
        let found = located.around.iter().rev().find(holds)?;
        let behind = found.start + nest.body_events(found.found) * nest.loops()[found.found].times;
        let is_inside = around.is_none_or(|around| self.joint.has(around, stream, (found.start, behind)));
        is_inside.then_some(found.found)
    }
}

/// Where joint loops are in the streams.
struct JointStretches<'p> {
    joint: &'p [JointLoop],
    /// Those in no other, by streams.
    outermost: Vec<Vec<LoopStretch>>,
    /// Those in another one, by the stream and that one.
    inside: HashMap<(u32, usize), Vec<LoopStretch>>,
    /// For each stream the events, by their indices, that joint loops may have: 64 each.
    touched: Vec<Vec<u64>>,
}

/// All iterations of a joint loop in a stream. They do not overlap, and come in their order.
struct LoopStretch {
    start: u64,
    end: u64,
    /// Where the first iteration ends.
    first_end: u64,
    /// Which joint loop it is.
    index: usize,
}

/// Where a stretch is.
enum Inside {
    /// In one iteration of a joint loop, or in none.
    Of(Option<usize>),
    /// It cuts through a joint loop, or is one of its iterations.
    Cuts,
}

impl Inside {
    /// The joint loop, if it cuts through none.
    fn of(self) -> Option<Option<usize>> {
        match self {
            Self::Of(around) => Some(around),
            Self::Cuts => None,
        }
    }
}

impl<'p> JointStretches<'p> {
    fn of(processes: &Processes<'_>, joint: &'p [JointLoop]) -> Self {
        let streams = 0..processes.traces().len();
        let mut outermost: Vec<Vec<LoopStretch>> = streams.map(|_| Vec::new()).collect();
        let mut inside: HashMap<(u32, usize), Vec<LoopStretch>> = HashMap::new();
        for (index, found) in joint.iter().enumerate() {
            for &Member { stream, start, body, .. } in &found.members {
                let (first_end, end) = (start + body, start + body * found.times);
                let stretches = match found.within {
                    None => &mut outermost[stream as usize],
                    Some(around) => inside.entry((stream, around)).or_default(),
                };
                stretches.push(LoopStretch { start, end, first_end, index });
            }
        }
        for stretches in outermost.iter_mut().chain(inside.values_mut()) {
            stretches.sort_unstable_by_key(|stretch| stretch.start);
        }
        let touched = |(stream, stretches): (usize, &Vec<LoopStretch>)| {
            touched_events(processes.nest(stream as u32), stretches)
        };
        let touched = outermost.iter().enumerate().map(touched).collect();
        Self { joint, outermost, inside, touched }
    }

    /// Whether joint loops may have events of an interval that is not empty.
    fn touches(&self, stream: u32, start: u32, end: u32) -> bool {
        let touched = &self.touched[stream as usize];
        // In the first and the last word only the bits of the interval.
        let (first, last) = (start as usize / 64, (end - 1) as usize / 64);
        let (from, to) = (u64::MAX << (start % 64), u64::MAX >> (63 - (end - 1) % 64));
        match first == last {
            true => touched[first] & from & to != 0,
            false => {
                touched[first] & from != 0
                    || touched[last] & to != 0
                    || touched[first + 1..last].iter().any(|&word| word != 0)
            }
        }
    }

    /// The joint loops of a stream in one iteration of another, or in none.
    fn directly_in(&self, stream: u32, around: Option<usize>) -> &[LoopStretch] {
        match around {
            None => &self.outermost[stream as usize],
            Some(around) => self.inside.get(&(stream, around)).map_or(&[], Vec::as_slice),
        }
    }

    /// How often a joint loop iterates in all.
    fn times(&self, index: usize) -> u64 {
        let around = self.joint[index].within.map_or(1, |around| self.times(around));
        around.saturating_mul(self.joint[index].times)
    }

    fn first_iteration(&self, index: usize, stream: u32) -> Option<Stretch> {
        let member = self.joint[index].members.iter().find(|member| member.stream == stream)?;
        Some((member.start, member.start + member.body))
    }

    /// Whether a stretch lies in the first iteration of a joint loop.
    fn has(&self, index: usize, stream: u32, (start, end): Stretch) -> bool {
        self.first_iteration(index, stream).is_some_and(|(from, to)| from <= start && end <= to)
    }

    fn inside(&self, stream: u32, (start, end): Stretch) -> Inside {
        let mut around = None;
        'inwards: loop {
            let stretches = self.directly_in(stream, around);
            let before = stretches.partition_point(|stretch| stretch.start < end);
            let overlapping = stretches[..before].iter().rev().take_while(|stretch| stretch.end > start);
            for &LoopStretch { start: from, end: behind, first_end, index } in overlapping {
                // It may hold a joint loop, and take a part of one that is smaller than itself.
                if (start <= from && behind <= end) || behind - from < end - start {
                    continue;
                }
                if from <= start && end <= first_end && (start, end) != (from, first_end) {
                    around = Some(index);
                    continue 'inwards;
                }
                return Inside::Cuts;
            }
            return Inside::Of(around);
        }
    }
}

/// A bit for each event of a nest, set if stretches may have it: of the outermost loops that they
/// have a part of, all. The stretches come in their order and do not overlap, so both are merged.
fn touched_events(nest: &LoopCollapsed, stretches: &[LoopStretch]) -> Vec<u64> {
    let mut touched = vec![0; nest.symbols().len().div_ceil(64)];
    let mut mark = |events: Range<u64>| {
        events.for_each(|event| touched[event as usize / 64] |= 1 << (event % 64));
    };
    let (mut stretches, mut loops) = (stretches.iter().peekable(), (0..nest.loops().len()).peekable());
    let (mut index, mut position) = (0, 0);
    while stretches.peek().is_some() && index < nest.symbols().len() as u64 {
        let outermost = loops.next_if(|&found| u64::from(nest.loops()[found].start) == index);
        // All iterations of a loop, or what is written up to the next one.
        let (next_index, next_position) = match outermost.map(|found| (found, nest.loops()[found])) {
            Some((found, CollapsedLoop { end, times, .. })) => {
                while loops.next_if(|&inside| nest.loops()[inside].start < end).is_some() {}
                (u64::from(end), position + times * nest.body_events(found))
            }
            None => {
                let next = loops
                    .peek()
                    .map_or(nest.symbols().len() as u64, |&found| nest.loops()[found].start.into());
                (next, position + (next - index))
            }
        };
        while let Some(&&LoopStretch { start, end, .. }) =
            stretches.peek().filter(|next| next.start < next_position)
        {
            match outermost {
                Some(_) => mark(index..next_index),
                None => mark(
                    index + (start.max(position) - position)..index + (end.min(next_position) - position),
                ),
            }
            if end > next_position {
                break;
            }
            stretches.next();
        }
        (index, position) = (next_index, next_position);
    }
    touched
}

/// Stretches of several processes with both ends of all messages.
struct Family {
    /// By streams.
    members: Vec<FamilyMember>,
    /// Messages that were never completed, or that are received from anyone and have one end
    /// elsewhere.
    crossing: u64,
}

/// What a family has of a stream.
#[derive(Clone, Copy)]
struct FamilyMember {
    stream: u32,
    stretch: Stretch,
    /// The index of the first event, and the one behind that of the last.
    bounds: (u32, u32),
    /// Whether it is what is written between these: it is in one iteration of the loops around it
    /// and cuts through none.
    is_interval: bool,
}

/// What is taken of a process that is added to a family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    /// The events that are needed.
    Events,
    /// A place with these, if one occurs as often as the first.
    Places,
}

/// A closure, before it is known whether it is a family.
enum Closed {
    Linked(Vec<(u32, Interval)>),
    General(Family),
}
