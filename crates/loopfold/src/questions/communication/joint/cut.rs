//! The first empty cut behind the begins of runs.
//!
//! The empty cuts of some processes are closed under taking the larger position of two in each
//! of them. So there is a first one behind given positions, and it is found from these by
//! moving: where a channel has more sends before the cut than receives, the receiver moves
//! behind the receive of the last one, and the other way round, until nothing moves. If the
//! loops are written in the same rotation it is where they begin, and nothing moves at all.

use super::grow::Candidate;
use super::{Run, Scope};
use crate::questions::communication::channels::{ChannelTable, End, Side};
use crate::questions::communication::processes::Processes;
use crate::questions::patterns::{Located, LoopCollapsed};
use std::collections::BTreeSet;

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

pub(super) struct Aligning<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    scope: &'p Scope,
    members: &'p [Candidate],
    /// The ends of ordered channels in members, by channels: the member, and the end's number.
    ends: Vec<(u32, usize, u32)>,
}

/// The ends of one channel.
type ChannelGroup<'e> = &'e [(u32, usize, u32)];

impl<'p, 'a> Aligning<'p, 'a> {
    pub(super) fn new(
        processes: &'p Processes<'a>,
        table: &'p ChannelTable,
        scope: &'p Scope,
        members: &'p [Candidate],
    ) -> Self {
        let mut ends = Vec::new();
        for (member, candidate) in members.iter().enumerate() {
            let Run { stream, found, .. } = candidate.run;
            for &(number, _) in table.streams[stream as usize].of_loop(found) {
                let end = table.end(stream, number);
                if table.channel(end).is_ordered() {
                    ends.push((end.channel, member, number));
                }
            }
        }
        ends.sort_unstable();
        Self { processes, table, scope, members, ends }
    }

    /// The joint iterations. Returns `None` if there are fewer than two.
    pub(super) fn align(&self) -> Option<Aligned> {
        let starts: Vec<u64> = self.members.iter().map(|member| member.run.start).collect();
        let written: Vec<u64> = self.members.iter().map(|member| member.run.end()).collect();
        if self.is_empty(&self.located(&starts)) {
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
            Some(first) if self.is_empty(&self.located(&starts)) => self
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

    fn end(&self, (_, member, number): (u32, usize, u32)) -> &'p End {
        self.table.end(self.members[member].run.stream, number)
    }

    fn channels(&self) -> impl Iterator<Item = ChannelGroup<'_>> {
        self.ends.chunk_by(|one, next| one.0 == next.0)
    }

    /// What is at each position of a cut.
    fn located(&self, cut: &[u64]) -> Vec<Option<Located>> {
        cut.iter().enumerate().map(|(member, &position)| self.nest(member).locate(position)).collect()
    }

    /// How many messages of an end come before a cut.
    fn before(&self, at: (u32, usize, u32), cut: &[Option<Located>]) -> i128 {
        let end = self.end(at);
        let before = cut[at.1].as_ref().map_or(end.total, |located| end.before(self.nest(at.1), located));
        i128::from(before) + self.scope.received_before(end)
    }

    fn is_empty(&self, cut: &[Option<Located>]) -> bool {
        self.channels().all(|ends| {
            let mut counts = ends.iter().map(|&end| self.before(end, cut));
            let first = counts.next();
            counts.all(|count| Some(count) == first)
        })
    }

    /// How far the repetition of a run goes on before its begin and behind its end.
    fn continued(&self, run: Run) -> (u64, u64) {
        let trace = &self.processes.traces()[run.stream as usize];
        let nest = trace.nest();
        let (from, to) = self.scope.of_member(run.stream).unwrap_or((run.start, run.end()));
        let kind = |position| nest.index_at(position).map(|index| trace.kind(index));
        let most = MOST_CONTINUED.min(run.body - 1);
        let (mut begin, mut end) = (run.start, run.end());
        while begin > from && run.start - begin < most && kind(begin - 1) == kind(begin - 1 + run.body) {
            begin -= 1;
        }
        while end < to && end - run.end() < most && kind(end) == kind(end - run.body) {
            end += 1;
        }
        (begin, end)
    }

    /// Moves a cut until it is empty. Returns `None` if that takes it out of the runs.
    fn first_empty_cut(&self, mut cut: Vec<u64>, ends: &[u64]) -> Option<Vec<u64>> {
        let channels: Vec<ChannelGroup<'_>> = self.channels().collect();
        let mut moves = MOST_MOVES + 16 * channels.len();
        let mut located = self.located(&cut);
        let mut of_member: Vec<Vec<usize>> = vec![Vec::new(); self.members.len()];
        for (channel, ends) in channels.iter().enumerate() {
            ends.iter().for_each(|&(_, member, _)| of_member[member].push(channel));
        }
        let mut waiting: BTreeSet<usize> = (0..channels.len()).collect();
        while let Some(channel) = waiting.pop_first() {
            let counts: Vec<i128> = channels[channel].iter().map(|&end| self.before(end, &located)).collect();
            let most = counts.iter().copied().max().unwrap_or(0);
            for (&at, count) in channels[channel].iter().zip(counts) {
                if count == most {
                    continue;
                }
                moves = moves.checked_sub(1)?;
                let (end, member) = (self.end(at), at.1);
                let last = u64::try_from(most - self.scope.received_before(end) - 1).ok()?;
                let moved = end.position(self.nest(member), last)? + 1;
                if moved + 2 * self.members[member].period() > ends[member] {
                    return None;
                }
                cut[member] = moved;
                located[member] = self.nest(member).locate(moved);
                waiting.extend(&of_member[member]);
            }
        }
        Some(cut)
    }

    /// A cut at iterations of all runs, so that on the channels by which members were found less
    /// than a joint iteration is in flight.
    fn nearest_cut(&self, mut cut: Vec<u64>, ends: &[u64]) -> Option<Vec<u64>> {
        let mut located = self.located(&cut);
        for _ in 0..=self.members.len() {
            let mut is_moved = false;
            for (index, candidate) in self.members.iter().enumerate() {
                let Some((by, channel)) = candidate.by else { continue };
                let of =
                    |member: usize| self.ends.iter().copied().find(|end| end.0 == channel && end.1 == member);
                let (Some(here), Some(there)) = (of(index), of(by)) else { continue };
                let (own, other) = (self.before(here, &located), self.before(there, &located));
                let (behind, at, by_messages) =
                    if own < other { (index, here, other - own) } else { (by, there, own - other) };
                let each = self.end(at).each(self.members[behind].run.found).max(1);
                let iterations = u64::try_from(by_messages).ok()? / each;
                if iterations > 0 {
                    is_moved = true;
                    cut[behind] += iterations.checked_mul(self.members[behind].run.body)?;
                    (cut[behind] < ends[behind]).then_some(())?;
                    located[behind] = self.nest(behind).locate(cut[behind]);
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
        let cut = &self.located(cut)[..];
        let mut in_flight = Vec::new();
        for ends in self.channels() {
            let at_begin = i128::from(self.scope.in_flight.get(&ends[0].0).copied().unwrap_or(0));
            let mut sent_less_received = 0i128;
            for &at in ends {
                match self.end(at).side {
                    Side::Send => sent_less_received += self.before(at, cut),
                    Side::Receive => sent_less_received -= self.before(at, cut) - at_begin,
                    // Members that have begun fewer operations than the first.
                    Side::Member => sent_less_received += self.before(ends[0], cut) - self.before(at, cut),
                }
            }
            if sent_less_received != 0 || at_begin != 0 {
                in_flight.push((ends[0].0, i64::try_from(sent_less_received).unwrap_or(i64::MAX)));
            }
        }
        in_flight
    }
}
