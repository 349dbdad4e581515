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
//! Building takes O(written ends of messages), memory is 8 bytes for each and 24 for each event;
//! a closure takes O(its written messages).
//!
//! Many closures fail: links of two events lead to events of one process that lie in no place
//! together. Once no general closure is computed any more, so that failing is all that there is to
//! know, the shortest such intervals are found for all events, and what has one is not begun.

use super::{MOST_LONGER, MOST_TIMES_LONGER, Search, Stretch, Taking};
use crate::questions::communication::channels::{ChannelTable, End, Side};
use crate::questions::communication::processes::Processes;
use crate::questions::patterns::LoopCollapsed;

/// The other ends of messages between first occurrences.
pub(super) struct Links {
    streams: Vec<StreamLinks>,
}

struct StreamLinks {
    /// One more than there are events.
    events: Vec<LinkedEvent>,
    /// Streams, and indices of events there.
    links: Vec<(u32, u32)>,
    /// The positions of the events.
    positions: Vec<u64>,
}

/// What closures need to know of an event: side by side, as it is looked at together.
#[derive(Clone, Copy)]
struct LinkedEvent {
    /// Where its links begin.
    links: u32,
    /// The innermost loop around it, or [`NO_LOOP`].
    around: u32,
    /// The end of the place or loop that goes furthest, of those that begin with it or before.
    furthest: u32,
    /// The least end of an interval from here on or from a later event that no closure can have.
    impossible: u32,
}

/// The other end is not a first occurrence, does not exist, or is one of several.
const FAR: (u32, u32) = (u32::MAX, 0);
const NO_LOOP: u32 = u32::MAX;
/// Earlier events that an event is compared with, of those linked with the same stream.
const LAST_LINKED: usize = 4;

impl Links {
    /// `furthest` for each event of each stream is the end of the place or loop that goes furthest.
    pub(super) fn of(processes: &Processes<'_>, table: &ChannelTable, furthest: Vec<Vec<u32>>) -> Self {
        let of_stream = |(stream, furthest)| StreamLinks::new(processes, table, stream, furthest);
        let mut streams: Vec<StreamLinks> = furthest.into_iter().enumerate().map(of_stream).collect();
        let begins = |stream: &StreamLinks| stream.events.iter().map(|event| event.links).collect();
        let mut next: Vec<Vec<u32>> = streams.iter().map(begins).collect();
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
        let StreamLinks { events, links, .. } = &self.streams[stream as usize];
        &links[events[index as usize].links as usize..events[index as usize + 1].links as usize]
    }

    /// Whether a loop is around an event.
    pub(super) fn is_in_a_loop(&self, stream: u32, index: u32) -> bool {
        self.event(stream, index).around != NO_LOOP
    }

    /// The positions from an event to before another one, if both are in no loop.
    pub(super) fn stretch_outside(&self, stream: u32, start: u32, end: u32) -> Option<Stretch> {
        let is_outside = !self.is_in_a_loop(stream, start) && !self.is_in_a_loop(stream, end - 1);
        let positions = &self.streams[stream as usize].positions;
        is_outside.then(|| (positions[start as usize], positions[end as usize - 1] + 1))
    }

    /// The positions of an interval.
    pub(super) fn stretch(&self, nest: &LoopCollapsed, stream: u32, interval: &Interval) -> Stretch {
        let &Interval { start, end, around, .. } = interval;
        let positions = &self.streams[stream as usize].positions;
        let first = positions[start as usize];
        // The last event is the end, unless it is in a loop that is repeated in the interval.
        match self.event(stream, end - 1).around == around {
            true => (first, positions[end as usize - 1] + 1),
            false => (first, first + nest.events(start as usize, end as usize)),
        }
    }

    /// How many events there are.
    pub(super) fn events(&self) -> usize {
        self.streams.iter().map(|stream| stream.events.len() - 1).sum()
    }

    fn event(&self, stream: u32, index: u32) -> &LinkedEvent {
        &self.streams[stream as usize].events[index as usize]
    }

    /// Whether a stretch lies in a place of its stream or in a loop, or is one event, by its first
    /// and its last event: what a family has that occurs again must occur again itself.
    pub(super) fn lies_in_a_place(&self, stream: u32, first: u32, last: u32) -> bool {
        first == last || self.event(stream, first).furthest > last
    }

    /// Whether an interval is known to be in no closure: it has an event without a link, or two
    /// events whose other ends are too far from each other. All that is larger is in none either.
    pub(super) fn is_impossible(&self, stream: u32, start: u32, end: u32) -> bool {
        self.event(stream, start).impossible <= end
    }

    /// Finds the intervals that are in no closure by links, as far as that follows from two events.
    pub(super) fn find_impossible(&mut self) {
        // Again, as those of one stream make more of them in others.
        for stream in (0..self.streams.len() as u32).cycle().take(2 * self.streams.len()) {
            let least = self.impossible_from(stream);
            let events = &mut self.streams[stream as usize].events;
            let mut so_far = u32::MAX;
            for (event, least) in events.iter_mut().zip(least).rev() {
                so_far = so_far.min(least);
                event.impossible = so_far;
            }
        }
    }

    /// For each event the least end of an interval that begins with it and is in no closure.
    fn impossible_from(&self, stream: u32) -> Vec<u32> {
        let events = self.streams[stream as usize].events.len();
        let mut least = vec![u32::MAX; events];
        // For each other stream the last events that are linked with it, and with which.
        let mut last = vec![[(u32::MAX, 0); LAST_LINKED]; self.streams.len()];
        for index in 0..events as u32 - 1 {
            for &link in self.of_event(stream, index) {
                if link == FAR {
                    least[index as usize] = index + 1;
                    continue;
                }
                let (other, there) = link;
                let known = &mut last[other as usize];
                let too_far = |&&(event, linked): &&(u32, u32)| {
                    let (first, last) = (there.min(linked), there.max(linked));
                    event != u32::MAX
                        && (!self.lies_in_a_place(other, first, last)
                            || self.is_impossible(other, first, last + 1))
                };
                if let Some(&(event, _)) = known.iter().find(too_far) {
                    least[event as usize] = least[event as usize].min(index + 1);
                }
                known.rotate_right(1);
                known[0] = (index, there);
            }
        }
        least
    }
}

impl StreamLinks {
    fn new(processes: &Processes<'_>, table: &ChannelTable, stream: usize, furthest: Vec<u32>) -> Self {
        let trace = &processes.traces()[stream];
        let mut events = Vec::with_capacity(furthest.len() + 1);
        let mut links = 0;
        for (index, furthest) in furthest.into_iter().enumerate() {
            events.push(LinkedEvent { links, around: NO_LOOP, furthest, impossible: u32::MAX });
            links += table.streams[stream].of_kind(trace.kind(index)).len() as u32;
        }
        events.push(LinkedEvent { links, around: NO_LOOP, furthest: 0, impossible: u32::MAX });
        // Inner loops come behind those around them.
        for (found, number) in trace.nest().loops().iter().zip(0..) {
            let inside = &mut events[found.start as usize..found.end as usize];
            inside.iter_mut().for_each(|event| event.around = number);
        }
        let positions = trace.nest().positions().collect();
        Self { events, links: vec![FAR; links as usize], positions }
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
        let found = search.links.event(stream, index).around;
        let Interval { around, times, .. } = self.intervals[stream as usize];
        if found == around { 1 } else { times_of(search.nest(stream), found) / times }
    }

    /// The interval of a place. Returns `None` if it cuts through a loop.
    fn interval(&self, search: &Search<'_, '_>, stream: u32, start: u32, end: u32) -> Option<Interval> {
        let nest = search.nest(stream);
        let around = |index: u32| {
            let mut around = search.links.event(stream, index).around;
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
            || !search.links.lies_in_a_place(stream, grown.start, grown.end - 1)
            || search.links.is_impossible(stream, grown.start, grown.end)
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
        let (start, end) = search.place_around(stream, index, count)?;
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
        let mut around = search.links.event(stream, index).around;
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
