//! The first empty cut behind the begins of runs.
//!
//! The empty cuts of some processes are closed under taking the larger position of two in each
//! of them. So there is a first one behind given positions, and it is found from these by
//! moving: where a channel has more sends before the cut than receives, the receiver moves
//! behind the receive of the last one, and the other way round, until nothing moves. If the
//! loops are written in the same rotation it is where they begin, and nothing moves at all.
//!
//! A run repeats, so how many messages lie before a position of it follows from where those of
//! one iteration are ([`RunMessages`]): O(log messages) for each move and channel.

use super::grow::Candidate;
use super::{Run, Scope};
use crate::questions::communication::channels::{ChannelTable, End, LoopEnd, LoopMessages, Side};
use crate::questions::communication::processes::Processes;
use crate::questions::patterns::{Located, LoopCollapsed};

/// Where the joint iterations of some runs begin.
pub(super) struct Aligned {
    /// The first position of each member.
    pub(super) starts: Vec<u64>,
    /// How many joint iterations.
    pub(super) times: u64,
    /// Channels with messages in flight at every cut, and how many.
    pub(super) in_flight: Vec<(u32, i64)>,
}

/// Events by which a run is continued before its first iteration and behind its last.
const MOST_CONTINUED: u64 = 1 << 12;
/// Moves of a cut, beyond some for each channel.
const MOST_MOVES: usize = 1 << 8;

/// Messages of an iteration whose places are kept.
const MOST_KEPT: u64 = 1 << 8;

pub(super) struct Aligning<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    scope: &'p Scope,
    members: &'p [Candidate],
    /// The ends of ordered channels in members, by channels.
    ends: Vec<RunMessages<'p>>,
    /// Where the messages of iterations are, relative to their begins.
    offsets: Vec<u64>,
}

/// The messages of a run on a channel.
struct RunMessages<'p> {
    channel: u32,
    member: usize,
    end: &'p End,
    each: u64,
    /// How many come before the run.
    before: i128,
    /// Where those of one iteration are in the list; `None` if they are too many.
    offsets: Option<std::ops::Range<usize>>,
}

/// Where a run begins.
enum Begin {
    /// Where its loop is executed first.
    AsWritten,
    Within(Located),
    /// Behind the end of the stream.
    Behind,
}

/// The ends of one channel.
type ChannelGroup<'e, 'p> = &'e [RunMessages<'p>];

impl<'p, 'a> Aligning<'p, 'a> {
    pub(super) fn new(
        processes: &'p Processes<'a>,
        table: &'p ChannelTable,
        scope: &'p Scope,
        members: &'p [Candidate],
    ) -> Self {
        Self { processes, table, scope, members, ends: Vec::new(), offsets: Vec::new() }
    }

    fn set_ends(&mut self) {
        let mut by_channel: Vec<(u32, u32, &LoopEnd)> = Vec::with_capacity(8 * self.members.len());
        for (member, Candidate { run, .. }) in self.members.iter().enumerate() {
            for loop_end in self.table.streams[run.stream as usize].of_loop(run.found) {
                let end = self.table.end(run.stream, loop_end.number);
                if self.table.channel(end).is_ordered() {
                    by_channel.push((end.channel, member as u32, loop_end));
                }
            }
        }
        by_channel.sort_unstable_by_key(|&(channel, member, _)| (channel, member));
        let begins: Vec<Begin> = (0..self.members.len()).map(|member| self.begin(member)).collect();
        self.ends.reserve(by_channel.len());
        self.offsets.reserve(by_channel.len());
        for (_, member, loop_end) in by_channel {
            let member = member as usize;
            let end = self.table.end(self.members[member].run.stream, loop_end.number);
            let before = match &begins[member] {
                Begin::AsWritten => loop_end.messages.before,
                Begin::Within(located) => end.before(self.nest(member), located),
                Begin::Behind => end.total,
            };
            let messages = self.messages_of(member, end, &loop_end.messages, before);
            self.ends.push(messages);
        }
    }

    fn begin(&self, member: usize) -> Begin {
        let (nest, run) = (self.nest(member), self.members[member].run);
        match run.start == nest.loop_first(run.found) {
            true => Begin::AsWritten,
            false => nest.locate(run.start).map_or(Begin::Behind, Begin::Within),
        }
    }

    /// The messages of a run of which so many come before it.
    fn messages_of(
        &mut self,
        member: usize,
        end: &'p End,
        messages: &LoopMessages,
        before: u64,
    ) -> RunMessages<'p> {
        let (run, nest, each) = (self.members[member].run, self.nest(member), messages.each);
        let first = self.offsets.len();
        let found = nest.loops()[run.found];
        if each > MOST_KEPT {
            // Their places are computed when they are needed.
        } else if run.start != nest.loop_first(run.found) {
            let positions = (before..before + each).map_while(|nth| end.position(nest, nth));
            self.offsets.extend(positions.map(|position| position - run.start));
        } else if u64::from(found.end - found.start) == run.body {
            let inside = end.in_flat_loop(messages).iter();
            self.offsets.extend(inside.map(|&index| u64::from(index - found.start)));
        } else {
            end.add_offsets(nest, messages, &mut self.offsets);
        }
        let kept = first..self.offsets.len();
        RunMessages {
            channel: end.channel,
            member,
            end,
            each,
            before: i128::from(before) + self.scope.received_before(end),
            offsets: (kept.len() as u64 == each).then_some(kept),
        }
    }

    /// The joint iterations. Returns `None` if there are fewer than two. `starts_agree` if the
    /// begins of all members are known to be an empty cut.
    pub(super) fn align(mut self, starts_agree: bool) -> Option<Aligned> {
        let starts: Vec<u64> = self.members.iter().map(|member| member.run.start).collect();
        let written: Vec<u64> = self.members.iter().map(|member| member.run.end()).collect();
        if starts_agree && self.scope.in_flight.is_empty() {
            return self.aligned(starts, &written, true);
        }
        self.set_ends();
        if starts_agree || self.is_empty(&starts) {
            return self.aligned(starts, &written, true);
        }
        let continued: Vec<(u64, u64)> =
            self.members.iter().map(|member| self.continued(member.run)).collect();
        let begins = continued.iter().map(|&(begin, _)| begin).collect();
        let ends: Vec<u64> = continued.iter().map(|&(_, end)| end).collect();
        let first = self.first_empty_cut(begins, &ends).and_then(|starts| self.aligned(starts, &ends, true));
        let Some(starts) = self.nearest_cut(starts, &written) else { return first };
        match first {
            // Of as many iterations those as written: others can overlap with the loop before.
            Some(first) if self.is_empty(&starts) => self
                .aligned(starts, &ends, true)
                .filter(|nearest| nearest.times >= first.times)
                .or(Some(first)),
            Some(first) => Some(first),
            None => self.aligned(starts, &written, false),
        }
    }

    fn aligned(&self, starts: Vec<u64>, ends: &[u64], is_empty: bool) -> Option<Aligned> {
        let iterations = |((member, &start), &end): ((&Candidate, &u64), &u64)| {
            end.saturating_sub(start) / member.period().max(1)
        };
        let times = self.members.iter().zip(&starts).zip(ends).map(iterations).min()?;
        (times >= 2).then(|| Aligned { in_flight: self.in_flight(&starts, is_empty), starts, times })
    }

    fn nest(&self, member: usize) -> &'p LoopCollapsed {
        self.processes.nest(self.members[member].run.stream)
    }

    fn channels(&self) -> impl Iterator<Item = ChannelGroup<'_, 'p>> {
        self.ends.chunk_by(|one, next| one.channel == next.channel)
    }

    /// How many messages of an end come before a cut through the runs, as far as they repeat.
    fn before(&self, at: &RunMessages<'_>, cut: &[u64]) -> i128 {
        let (run, position) = (self.members[at.member].run, cut[at.member]);
        if position == run.start {
            return at.before;
        }
        let Some(offsets) = at.offsets.clone() else {
            let nest = self.nest(at.member);
            let located = nest.locate(position);
            let before = located.map_or(at.end.total, |located| at.end.before(nest, &located));
            return i128::from(before) + self.scope.received_before(at.end);
        };
        let (iteration, rest) = match position.checked_sub(run.start) {
            Some(behind) => (i128::from(behind / run.body), behind % run.body),
            // Less than an iteration before it.
            None => (-1, position + run.body - run.start),
        };
        let in_iteration = self.offsets[offsets].iter().take_while(|&&offset| offset < rest).count();
        at.before + iteration * i128::from(at.each) + in_iteration as i128
    }

    /// The position of the message of this number, as far as the run repeats. Returns `None` if
    /// it does not exist.
    fn position(&self, at: &RunMessages<'_>, nth: i128) -> Option<u64> {
        let (run, since) = (self.members[at.member].run, nth - at.before);
        let Some(offsets) = at.offsets.clone() else {
            let nth = u64::try_from(nth - self.scope.received_before(at.end)).ok()?;
            return at.end.position(self.nest(at.member), nth);
        };
        let iteration = since.div_euclid(at.each.into()) * i128::from(run.body);
        let offset = self.offsets[offsets][since.rem_euclid(at.each.into()) as usize];
        u64::try_from(i128::from(run.start) + iteration + i128::from(offset)).ok()
    }

    fn is_empty(&self, cut: &[u64]) -> bool {
        self.channels().all(|ends| {
            let mut counts = ends.iter().map(|end| self.before(end, cut));
            let first = counts.next();
            counts.all(|count| Some(count) == first)
        })
    }

    /// How far the repetition of a run goes on before its begin and behind its end.
    fn continued(&self, run: Run) -> (u64, u64) {
        let trace = &self.processes.traces()[run.stream as usize];
        let nest = trace.nest();
        let (from, to) = self.scope.of_member(run.stream).unwrap_or((run.start, run.end()));
        let most = MOST_CONTINUED.min(run.body - 1);
        let same = |one: usize, other: usize| trace.kind(one) == trace.kind(other);
        let (mut begin, mut end) = (run.start, run.end());
        let mut before = if begin > from { self.events_before(run) } else { None };
        while run.start - begin < most
            && let Some((one, other)) = before
            && same(one, other)
        {
            begin -= 1;
            let next = || nest.index_before(begin, one).zip(nest.index_before(begin + run.body, other));
            before = if begin > from { next() } else { None };
        }
        let mut behind = if end < to { self.events_behind(run) } else { None };
        while end - run.end() < most
            && let Some((one, other)) = behind
            && same(one, other)
        {
            end += 1;
            let next = || nest.index_behind(end - 1, one).zip(nest.index_behind(end - 1 - run.body, other));
            behind = if end < to { next() } else { None };
        }
        (begin, end)
    }

    /// The event before a run and the one an iteration later, by their indices.
    fn events_before(&self, run: Run) -> Option<(usize, usize)> {
        let nest = self.processes.nest(run.stream);
        let found = nest.loops()[run.found];
        match run.start == nest.loop_first(run.found) {
            // Before the first execution is what is written before.
            true => (found.start as usize).checked_sub(1).zip(Some(found.end as usize - 1)),
            false => nest.index_at(run.start.checked_sub(1)?).zip(nest.index_at(run.start + run.body - 1)),
        }
    }

    /// The event behind a run and the one an iteration earlier, by their indices.
    fn events_behind(&self, run: Run) -> Option<(usize, usize)> {
        let nest = self.processes.nest(run.stream);
        let found = nest.loops()[run.found];
        let is_whole = run.start == nest.loop_first(run.found) && run.times == found.times;
        // Behind the first execution is what is written behind, unless the loop around it ends too.
        let until = match nest.outer(run.found) {
            Some(outer) => nest.loops()[outer].end as usize,
            None => nest.symbols().len(),
        };
        match is_whole && (found.end as usize) < until {
            true => Some((found.end as usize, found.start as usize)),
            false => nest.index_at(run.end()).zip(nest.index_at(run.end() - run.body)),
        }
    }

    /// Moves a cut until it is empty. Returns `None` if that takes it out of the runs.
    fn first_empty_cut(&self, mut cut: Vec<u64>, ends: &[u64]) -> Option<Vec<u64>> {
        let channels: Vec<ChannelGroup<'_, '_>> = self.channels().collect();
        let mut moves = MOST_MOVES + 16 * channels.len();
        let of_members = MemberChannels::new(self.members.len(), &channels);
        let mut waiting = Waiting::all(channels.len());
        while let Some(channel) = waiting.pop_first() {
            let counts = channels[channel].iter().map(|end| self.before(end, &cut));
            let most = counts.max().unwrap_or(0);
            for at in channels[channel] {
                let member = at.member;
                if self.before(at, &cut) >= most {
                    continue;
                }
                moves = moves.checked_sub(1)?;
                let moved = self.position(at, most - 1)? + 1;
                if moved + 2 * self.members[member].period() > ends[member] {
                    return None;
                }
                cut[member] = moved;
                of_members.get(member).iter().for_each(|&channel| waiting.insert(channel as usize));
            }
        }
        Some(cut)
    }

    /// A cut at iterations of all runs, so that on the channels by which members were found less
    /// than a joint iteration is in flight.
    fn nearest_cut(&self, mut cut: Vec<u64>, ends: &[u64]) -> Option<Vec<u64>> {
        for _ in 0..=self.members.len() {
            let mut is_moved = false;
            for (index, candidate) in self.members.iter().enumerate() {
                let Some((by, channel)) = candidate.by else { continue };
                let of = |member: usize| {
                    let at =
                        self.ends.binary_search_by_key(&(channel, member), |end| (end.channel, end.member));
                    at.ok().map(|at| &self.ends[at])
                };
                let (Some(here), Some(there)) = (of(index), of(by)) else { continue };
                let (own, other) = (self.before(here, &cut), self.before(there, &cut));
                let (behind, at, by_messages) =
                    if own < other { (index, here, other - own) } else { (by, there, own - other) };
                let iterations = u64::try_from(by_messages).ok()? / at.each.max(1);
                if iterations > 0 {
                    is_moved = true;
                    cut[behind] += iterations.checked_mul(self.members[behind].run.body)?;
                    (cut[behind] < ends[behind]).then_some(())?;
                }
            }
            if !is_moved {
                return Some(cut);
            }
        }
        None
    }

    /// The channels with messages in flight at a cut, or at the begin of the scope, and how many
    /// at the cut.
    fn in_flight(&self, cut: &[u64], is_empty: bool) -> Vec<(u32, i64)> {
        if is_empty && self.scope.in_flight.is_empty() {
            return Vec::new();
        }
        let mut in_flight = Vec::new();
        for ends in self.channels() {
            let at_begin = i128::from(self.scope.in_flight.get(&ends[0].channel).copied().unwrap_or(0));
            let mut sent_less_received = 0i128;
            for at in ends {
                match at.end.side {
                    Side::Send => sent_less_received += self.before(at, cut),
                    Side::Receive => sent_less_received -= self.before(at, cut) - at_begin,
                    // Members that have begun fewer operations than the first.
                    Side::Member => sent_less_received += self.before(&ends[0], cut) - self.before(at, cut),
                }
            }
            if sent_less_received != 0 || at_begin != 0 {
                in_flight.push((ends[0].channel, i64::try_from(sent_less_received).unwrap_or(i64::MAX)));
            }
        }
        in_flight
    }
}

/// The channels of each member.
struct MemberChannels {
    /// Where those of each member end.
    ends: Vec<u32>,
    channels: Vec<u32>,
}

impl MemberChannels {
    fn new(members: usize, channels: &[ChannelGroup<'_, '_>]) -> Self {
        let mut begins = vec![0; members + 1];
        for end in channels.iter().copied().flatten() {
            begins[end.member + 1] += 1;
        }
        for member in 0..members {
            begins[member + 1] += begins[member];
        }
        let mut of_members = vec![0; begins[members] as usize];
        for (channel, ends) in (0..).zip(channels) {
            for end in *ends {
                let next = &mut begins[end.member];
                of_members[*next as usize] = channel;
                *next += 1;
            }
        }
        Self { ends: begins, channels: of_members }
    }

    fn get(&self, member: usize) -> &[u32] {
        let begin = member.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.channels[begin as usize..self.ends[member] as usize]
    }
}

/// Channels that are to be looked at.
struct Waiting {
    is_waiting: Vec<bool>,
    /// None before this one waits.
    lowest: usize,
}

impl Waiting {
    fn all(count: usize) -> Self {
        Self { is_waiting: vec![true; count], lowest: 0 }
    }

    fn insert(&mut self, channel: usize) {
        self.is_waiting[channel] = true;
        self.lowest = self.lowest.min(channel);
    }

    fn pop_first(&mut self) -> Option<usize> {
        let first = self.lowest + self.is_waiting[self.lowest..].iter().position(|&waits| waits)?;
        self.is_waiting[first] = false;
        self.lowest = first + 1;
        Some(first)
    }
}
