//! Closures by links from event to event.
//!
//! A stretch that lies in one iteration of the loops around it and cuts through no loop is an
//! interval of the nest. An event of it occurs in it as often as the loops inside the interval
//! iterate. If each event of such intervals is linked with one that occurs as often, by the
//! numbers of the messages of their first occurrences, then the intervals have the same
//! messages at both ends of each channel: these are contiguous at either end, begin with the
//! same one and are equally many. So a closure can work on indices, and follow links that were
//! made once. Where a link does not exist, or two ends occur differently often, the general
//! closure has to be computed.
//!
//! Building takes O(written ends of messages), memory is 8 bytes for each and 8 for each event;
//! a closure takes O(its written messages).

use super::{MOST_LONGER, MOST_TIMES_LONGER, Search, Stretch, Taking};
use crate::questions::communication::channels::{ChannelTable, End, Side};
use crate::questions::communication::processes::Processes;
use crate::questions::patterns::LoopCollapsed;

/// The other ends of messages between first occurrences.
pub(super) struct Links {
    streams: Vec<StreamLinks>,
}

struct StreamLinks {
    /// Where the links of each event begin, and where those of the last end.
    starts: Vec<u32>,
    /// Streams, and indices of events there.
    links: Vec<(u32, u32)>,
    /// The innermost loop around each event, or [`NO_LOOP`].
    loops: Vec<u32>,
}

/// The other end is not a first occurrence, does not exist, or is one of several.
const FAR: (u32, u32) = (u32::MAX, 0);
const NO_LOOP: u32 = u32::MAX;

impl Links {
    pub(super) fn of(processes: &Processes<'_>, table: &ChannelTable) -> Self {
        let mut streams: Vec<StreamLinks> =
            (0..processes.traces().len()).map(|stream| StreamLinks::new(processes, table, stream)).collect();
        let mut next: Vec<Vec<u32>> = streams.iter().map(|stream| stream.starts.clone()).collect();
        let mut link = |stream: u32, index: u32, other: (u32, u32)| {
            let slot = &mut next[stream as usize][index as usize];
            streams[stream as usize].links[*slot as usize] = other;
            *slot += 1;
        };
        for channel in &table.channels {
            let is_ordered = channel.is_ordered();
            for (place, &(side, stream, number)) in channel.ends.iter().enumerate() {
                // Members of a communicator are linked in a ring.
                let other = &channel.ends[(place + 1) % channel.ends.len()];
                let end = table.end(stream, number);
                let is_pair = is_ordered && (side == Side::Member || other.0 != side);
                let there = is_pair.then(|| (other.1, table.end(other.1, other.2)));
                each_other_end(end, there, |index, other| link(stream, index, other));
            }
        }
        Self { streams }
    }

    fn of_event(&self, stream: u32, index: u32) -> &[(u32, u32)] {
        let StreamLinks { starts, links, .. } = &self.streams[stream as usize];
        &links[starts[index as usize] as usize..starts[index as usize + 1] as usize]
    }
}

impl StreamLinks {
    fn new(processes: &Processes<'_>, table: &ChannelTable, stream: usize) -> Self {
        let trace = &processes.traces()[stream];
        let nest = trace.nest();
        let mut starts = Vec::with_capacity(nest.symbols().len() + 1);
        let mut count = 0;
        starts.push(0);
        for index in 0..nest.symbols().len() {
            count += table.streams[stream].of_kind(trace.kind(index)).len() as u32;
            starts.push(count);
        }
        let mut loops = vec![NO_LOOP; nest.symbols().len()];
        // Inner loops come behind those around them.
        for (found, number) in nest.loops().iter().zip(0..) {
            loops[found.start as usize..found.end as usize].fill(number);
        }
        Self { starts, links: vec![FAR; count as usize], loops }
    }
}

/// Calls `then` with the index of each message's first occurrence at an end, and the one with
/// the same number at the other end, if that is a first occurrence too.
fn each_other_end(end: &End, there: Option<(u32, &End)>, mut then: impl FnMut(u32, (u32, u32))) {
    let mut others = there.map(|(_, other)| other.first_occurrences().peekable());
    for (index, nth) in end.first_occurrences() {
        let mut found = None;
        if let (Some(others), Some((stream, _))) = (&mut others, there) {
            while others.next_if(|&(_, other)| other < nth).is_some() {}
            found = others.peek().filter(|&&(_, other)| other == nth).map(|&(index, _)| (stream, index));
        }
        then(index, found.unwrap_or(FAR));
    }
}

/// How a closure ended.
pub(super) enum Linked {
    /// It is closed: the streams, and their intervals.
    Closed(Vec<(u32, Interval)>),
    /// There is none.
    Fails,
    /// Links do not suffice.
    Unknown,
}

/// An interval of a nest in one iteration of the loops around it.
#[derive(Clone, Copy, Default)]
pub(super) struct Interval {
    round: u64,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The innermost loop around it, or [`NO_LOOP`], and how often that iterates in all.
    around: u32,
    times: u64,
}

impl Interval {
    pub(super) fn stretch(&self, nest: &LoopCollapsed) -> Stretch {
        let (start, end) = (self.start as usize, self.end as usize);
        let first = nest.position(start);
        (first, first + nest.events(start, end))
    }
}

/// What a closure needs again in the next one.
pub(super) struct LinkedClosure {
    /// For each stream its interval, if it was added in this round.
    intervals: Vec<Interval>,
    round: u64,
    /// Streams that were added in this round.
    added: Vec<u32>,
    /// Events whose links are to be followed.
    next: Vec<(u32, u32, u32)>,
    /// Whether a place was not taken that is more than the events that were needed.
    has_larger: bool,
}

/// What is the same during a closure.
#[derive(Clone, Copy)]
struct First {
    /// How often the first place occurs.
    count: u64,
    taking: Taking,
    /// The most events of a process.
    longest: u64,
}

impl LinkedClosure {
    pub(super) fn new(streams: usize) -> Self {
        let intervals = vec![Interval::default(); streams];
        Self { intervals, round: 0, added: Vec::new(), next: Vec::new(), has_larger: false }
    }

    /// Whether the last closure may be larger where places are taken.
    pub(super) fn has_larger(&self) -> bool {
        self.has_larger
    }

    /// The closure of a place that occurs `count` times.
    pub(super) fn close(
        &mut self,
        search: &Search<'_, '_>,
        (stream, start, end): (u32, u32, u32),
        count: u64,
        taking: Taking,
    ) -> Linked {
        self.round += 1;
        self.has_larger = false;
        self.added.clear();
        self.next.clear();
        let Some(first) = self.interval(search, stream, start, end) else { return Linked::Unknown };
        self.added.push(stream);
        self.intervals[stream as usize] = first;
        self.next.push((stream, start, end));
        let longest = u64::from(end - start) * MOST_TIMES_LONGER + MOST_LONGER;
        let first = First { count, taking, longest };
        while let Some((stream, start, end)) = self.next.pop() {
            for index in start..end {
                for &link in search.links.of_event(stream, index) {
                    match link {
                        FAR => return Linked::Unknown,
                        _ => {
                            let times = self.times(search, stream, index);
                            if let Some(ended) = self.add(search, link, times, first) {
                                return ended;
                            }
                        }
                    }
                }
            }
        }
        Linked::Closed(self.added.iter().map(|&stream| (stream, self.intervals[stream as usize])).collect())
    }

    /// How often an event of an interval occurs in it.
    fn times(&self, search: &Search<'_, '_>, stream: u32, index: u32) -> u64 {
        let found = search.links.streams[stream as usize].loops[index as usize];
        let Interval { around, times, .. } = self.intervals[stream as usize];
        if found == around { 1 } else { times_of(search.nest(stream), found) / times }
    }

    /// The interval of a place. Returns `None` if it cuts through a loop.
    fn interval(&self, search: &Search<'_, '_>, stream: u32, start: u32, end: u32) -> Option<Interval> {
        let nest = search.nest(stream);
        let loops = &search.links.streams[stream as usize].loops;
        let around = |index: u32| {
            let mut around = loops[index as usize];
            let mut whole = None;
            // Up to the first loop that holds all of it.
            while let Some(found) = nest.loops().get(around as usize)
                && !(found.start <= start && end <= found.end)
            {
                whole = Some(found);
                around = nest.outer(around as usize).map_or(NO_LOOP, |outer| outer as u32);
            }
            whole.is_none_or(|whole| start <= whole.start && whole.end <= end).then_some(around)
        };
        let around = around(start).filter(|_| around(end - 1).is_some())?;
        Some(Interval { round: self.round, start, end, around, times: times_of(nest, around) })
    }

    /// Adds an event that must occur so often; returns how the closure ends, if it does.
    fn add(
        &mut self,
        search: &Search<'_, '_>,
        (stream, index): (u32, u32),
        times: u64,
        first: First,
    ) -> Option<Linked> {
        let known = self.intervals[stream as usize];
        let is_new = known.round != self.round;
        let Some(mut grown) = self.occurring(search, (stream, index), times) else {
            return Some(Linked::Unknown);
        };
        if !is_new {
            if grown.around != known.around {
                return Some(Linked::Unknown);
            }
            if known.start <= grown.start && grown.end <= known.end {
                return None;
            }
            (grown.start, grown.end) = (grown.start.min(known.start), grown.end.max(known.end));
        } else if !self.has_larger
            && let Some(place) = self.place_around(search, (stream, index), &grown, first.count)
        {
            match first.taking {
                Taking::Places => grown = place,
                Taking::Events => self.has_larger = (place.start, place.end) != (grown.start, grown.end),
            }
        }
        if u64::from(grown.end - grown.start) > first.longest
            || !search.lies_in_a_place(stream, grown.start as usize, grown.end as usize - 1)
        {
            return Some(Linked::Fails);
        }
        self.intervals[stream as usize] = grown;
        if is_new {
            self.added.push(stream);
            self.next.push((stream, grown.start, grown.end));
        } else {
            let more = [(grown.start, known.start), (known.end, grown.end)];
            let more = more.into_iter().filter(|(from, to)| from < to);
            self.next.extend(more.map(|(from, to)| (stream, from, to)));
        }
        None
    }

    /// The largest place with an event that occurs `count` times, if it has an interval with this
    /// event, in the same iteration of the same loops.
    fn place_around(
        &self,
        search: &Search<'_, '_>,
        (stream, index): (u32, u32),
        needed: &Interval,
        count: u64,
    ) -> Option<Interval> {
        let (start, end, _) = search.place_around(stream, index, count)?;
        let place = self.interval(search, stream, start, end)?;
        let has_it = place.around == needed.around && start <= needed.start && needed.end <= end;
        has_it.then_some(place)
    }

    /// The smallest interval in which an event occurs so often.
    fn occurring(
        &self,
        search: &Search<'_, '_>,
        (stream, index): (u32, u32),
        times: u64,
    ) -> Option<Interval> {
        let nest = search.nest(stream);
        let mut around = search.links.streams[stream as usize].loops[index as usize];
        let all = times_of(nest, around);
        let (mut start, mut end) = (index, index + 1);
        while let Some(found) = nest.loops().get(around as usize)
            && all / times_of(nest, around) < times
        {
            (start, end) = (found.start, found.end);
            around = nest.outer(around as usize).map_or(NO_LOOP, |outer| outer as u32);
        }
        let of_around = times_of(nest, around);
        (all == of_around.saturating_mul(times)).then_some(Interval {
            round: self.round,
            start,
            end,
            around,
            times: of_around,
        })
    }
}

/// How often a loop iterates in all, those around it counted; once without a loop.
fn times_of(nest: &LoopCollapsed, found: u32) -> u64 {
    if found == NO_LOOP { 1 } else { nest.loop_times(found as usize) }
}
