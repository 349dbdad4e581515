//! The general closure, by positions: for stretches that begin or end inside of loops, and for
//! messages whose ends are in different iterations.
//!
//! Each stretch comes with the indices of its first and last event, which are known from its
//! messages, so that no position has to be searched. Time: O(channels of the stretches × log n).

use super::{Family, FamilyMember, MOST_LONGER, MOST_TIMES_LONGER, Search, Stretch, Taking};
use crate::questions::communication::channels::Side;
use crate::questions::patterns::{Located, LoopCollapsed};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Channels that are followed for one family.
const MOST_STEPS: usize = 1 << 14;

/// A stretch by positions, and its first and last event by their indices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Span {
    fn holds(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The smallest that has both.
    fn hull(&self, other: &Self) -> Self {
        let begins = if self.start <= other.start { self } else { other };
        let ends = if self.end >= other.end { self } else { other };
        Self { start: begins.start, first: begins.first, end: ends.end, last: ends.last }
    }

    /// Whether it is what is written from its first event to its last one, with all iterations of the
    /// loops there.
    fn is_whole(&self, nest: &LoopCollapsed) -> bool {
        let (first, last) = (self.first as usize, self.last as usize);
        let behind = last + 1;
        let end = if behind == nest.symbols().len() { nest.length() } else { nest.position(behind) };
        (first <= last && nest.position(first) == self.start && end == self.end)
            && nest.around(first).all(|around| nest.loops()[around].start as usize == first)
            && nest.around(last).all(|around| nest.loops()[around].end as usize == behind)
    }

    /// What lies before and behind another one that it holds.
    fn around(&self, other: &Self, nest: &LoopCollapsed) -> impl Iterator<Item = Self> {
        let before = |last: usize| Self { end: other.start, last: last as u32, ..*self };
        let behind = |first: usize| Self { start: other.end, first: first as u32, ..*self };
        let is_before = self.start < other.start;
        let last_before = is_before.then(|| nest.index_before(other.start, other.first as usize));
        let is_behind = other.end < self.end;
        let first_behind = is_behind.then(|| nest.index_behind(other.end - 1, other.last as usize));
        let before = last_before.flatten().map(before);
        before.into_iter().chain(first_behind.flatten().map(behind))
    }
}

/// A family while it grows.
pub(super) struct Closure<'s, 'p> {
    search: &'s Search<'p, 'p>,
    spans: BTreeMap<u32, Span>,
    /// Stretches whose messages are to be followed.
    next: Vec<(u32, Span)>,
    /// How often the first place occurs.
    count: u64,
    taking: Taking,
    /// Whether a place was not taken that is more than the events that were needed.
    has_larger: bool,
    longest: u64,
    steps: usize,
}

impl<'s, 'p> Closure<'s, 'p> {
    pub(super) fn new(
        search: &'s Search<'p, 'p>,
        stream: u32,
        first: Span,
        count: u64,
        taking: Taking,
    ) -> Self {
        let events = first.end - first.start;
        Self {
            search,
            spans: BTreeMap::from([(stream, first)]),
            next: vec![(stream, first)],
            count,
            taking,
            has_larger: false,
            longest: events.saturating_mul(MOST_TIMES_LONGER).saturating_add(MOST_LONGER),
            steps: MOST_STEPS,
        }
    }

    /// The family, and whether it may be larger where places are taken. Returns `None` if it gets
    /// too large, or has a stretch that does not occur again.
    pub(super) fn close(mut self) -> Option<(Family, bool)> {
        while let Some((stream, span)) = self.next.pop() {
            self.follow(stream, span)?;
        }
        let uncompleted = |(&stream, span)| self.uncompleted(stream, span);
        let crossing = match self.search.is_complete {
            true => 0,
            false => self.spans.iter().map(uncompleted).sum::<u64>() + self.open_in_pools(),
        };
        let member = |(stream, Span { start, end, first, last })| FamilyMember {
            stream,
            stretch: (start, end),
            bounds: (first, last + 1),
            is_interval: false,
        };
        let members = self.spans.into_iter().map(member).collect();
        Some((Family { members, crossing }, self.has_larger))
    }

    /// The ends of channels in a stretch, and the numbers of their messages.
    fn ends(&self, stream: u32, span: &Span) -> Vec<(u32, Stretch)> {
        let trace = &self.search.processes.traces()[stream as usize];
        let nest = trace.nest();
        let of_stream = &self.search.table.streams[stream as usize];
        let of_index = |index: usize| of_stream.of_kind(trace.kind(index)).iter().copied();
        let &Span { start, end, first, last } = span;
        let is_flat = nest.is_flat(start..end, first as usize, last as usize);
        let is_whole = !is_flat && span.is_whole(nest);
        let mut numbers: Vec<u32> = match is_flat || is_whole {
            true => (first as usize..=last as usize).flat_map(of_index).collect(),
            false => nest.indices(&nest.pieces(start, end)).flat_map(of_index).collect(),
        };
        numbers.sort_unstable();
        numbers.dedup();
        if is_flat && nest.around(first as usize).all(|around| nest.loops()[around].end > last) {
            return self.ends_of_flat(stream, span, numbers);
        }
        if is_whole {
            let between = |number: u32| self.search.table.end(stream, number).numbers_between(first, last);
            return numbers.into_iter().map(|number| (number, between(number))).collect();
        }
        let (begin, behind) = (nest.locate(start), nest.locate(end));
        let before = |number: u32, at: &Option<Located>| {
            let of_end = self.search.table.end(stream, number);
            at.as_ref().map_or(of_end.total, |located| of_end.before(nest, located))
        };
        numbers
            .into_iter()
            .map(|number| (number, (before(number, &begin), before(number, &behind))))
            .collect()
    }

    /// The numbers of the messages of ends in a stretch without the begin or end of a loop.
    fn ends_of_flat(&self, stream: u32, span: &Span, ends: Vec<u32>) -> Vec<(u32, Stretch)> {
        let around = self.search.nest(stream).instances(span.start, span.first as usize);
        let of_end = |number: u32| {
            let end = self.search.table.end(stream, number);
            let (first, behind) = end.numbers_in(span.first, span.last)?;
            let later = around.iter().filter(|instance| instance.iteration > 0);
            let more: u64 = later.map(|instance| instance.iteration * end.each(instance.found)).sum();
            Some((number, (first + more, behind + more)))
        };
        ends.into_iter().filter_map(of_end).collect()
    }

    /// Adds the other ends of what a stretch has.
    fn follow(&mut self, stream: u32, span: Span) -> Option<()> {
        let search = self.search;
        for (number, (first, behind)) in self.ends(stream, &span) {
            self.steps = self.steps.checked_sub(1)?;
            let end = search.table.end(stream, number);
            let channel = search.table.channel(end);
            for &(side, other, number) in &channel.ends {
                if side == end.side && (side != Side::Member || other == stream) {
                    continue;
                }
                let there = search.table.end(other, number);
                // What is received from anyone is followed from nowhere.
                if !channel.is_ordered() || there.total <= first {
                    continue;
                }
                let nest = search.nest(other);
                let last = behind.min(there.total) - 1;
                let [from, to] = there.first_and_last(nest, first, last)?;
                self.add(other, Span { start: from.0, end: to.0 + 1, first: from.1, last: to.1 })?;
            }
        }
        Some(())
    }

    fn add(&mut self, stream: u32, needed: Span) -> Option<()> {
        let known = self.spans.get(&stream).copied();
        let grown = match known {
            Some(known) if known.holds(&needed) => return Some(()),
            Some(known) => known.hull(&needed),
            None => self.added(stream, needed),
        };
        if grown.end - grown.start > self.longest
            || !self.search.links.lies_in_a_place(stream, grown.first, grown.last)
        {
            return None;
        }
        self.spans.insert(stream, grown);
        match known {
            None => self.next.push((stream, grown)),
            Some(known) => {
                let around = grown.around(&known, self.search.nest(stream));
                self.next.extend(around.map(|more| (stream, more)));
            }
        }
        Some(())
    }

    /// What is taken of a process that is added.
    fn added(&mut self, stream: u32, needed: Span) -> Span {
        if self.has_larger {
            return needed;
        }
        match self.place_around(stream, &needed) {
            Some(place) if self.taking == Taking::Places => place,
            Some(place) => {
                self.has_larger = place != needed;
                needed
            }
            None => needed,
        }
    }

    /// The largest place around a stretch that occurs as often as the first place.
    fn place_around(&self, stream: u32, needed: &Span) -> Option<Span> {
        let (first, behind) = self.search.place_around(stream, needed.first, self.count)?;
        let (start, end) = self.search.place_stretch(stream, first, behind);
        Some(Span { start, end, first, last: behind - 1 }).filter(|place| place.holds(needed))
    }

    /// Messages that are received from anyone of which one end must be elsewhere: there are more
    /// of the other.
    fn open_in_pools(&self) -> u64 {
        let mut sent_less_received: HashMap<u32, i64> = HashMap::new();
        for (&stream, span) in &self.spans {
            for (number, (first, behind)) in self.ends(stream, span) {
                let end = self.search.table.end(stream, number);
                if !self.search.table.channel(end).is_ordered() {
                    let count = i64::try_from(behind - first).unwrap_or(i64::MAX);
                    let open = sent_less_received.entry(end.channel).or_default();
                    *open = open.saturating_add(if end.side == Side::Send { count } else { -count });
                }
            }
        }
        sent_less_received.values().map(|open| open.unsigned_abs()).sum()
    }

    /// Messages of a stretch whose other end does not exist.
    fn uncompleted(&self, stream: u32, span: &Span) -> u64 {
        let table = self.search.table;
        let missing = |(number, (first, behind)): (u32, Stretch)| {
            let end = table.end(stream, number);
            let channel = table.channel(end);
            if !channel.is_ordered() || end.side == Side::Member {
                return 0;
            }
            let there = channel.other(end.side).map_or(0, |(other, number)| table.end(other, number).total);
            behind.saturating_sub(first.max(there))
        };
        self.ends(stream, span).into_iter().map(missing).sum()
    }
}
