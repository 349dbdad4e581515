//! From a loop of one process to the loops of all that it communicates with.
//!
//! Each member gets the number of its iterations in a joint one, as a fraction of that of the
//! first: on a channel with b messages an iteration at one end and b' at the other, b' of the
//! first loop's iterations belong to b of the second's. Where two channels ask for different
//! numbers there is no joint loop.

use super::cut::Aligning;
use super::{JointLoop, Member, Run, Scope, Taken};
use crate::questions::communication::channels::{ChannelTable, End, Side};
use crate::questions::communication::processes::Processes;
use crate::questions::patterns::{Located, LoopCollapsed, LoopInstance};
use hashbrown::HashMap;

/// Iterations of a loop in a joint iteration, relative to the first member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    up: u128,
    down: u128,
}

impl Ratio {
    const ONE: Self = Self { up: 1, down: 1 };

    /// This one times `up / down`, in lowest terms.
    fn times(self, up: u64, down: u64) -> Option<Self> {
        let (up, down) = (self.up.checked_mul(up.into())?, self.down.checked_mul(down.into())?);
        let common = gcd(up, down);
        Some(Self { up: up / common, down: down / common })
    }
}

pub(super) fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

/// A member while others are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) run: Run,
    /// The iterations that have messages in common with the member by which it was found.
    common: Run,
    ratio: Ratio,
    /// The member and the channel by which it was found.
    pub(super) by: Option<(usize, u32)>,
    /// How many of its iterations are in a joint one, once that is known.
    pub(super) iterations: u64,
}

impl Candidate {
    /// The events of a joint iteration.
    pub(super) fn period(&self) -> u64 {
        self.iterations * self.run.body
    }
}

pub(super) struct Growing<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    scope: &'p Scope,
    members: Vec<Candidate>,
    /// Members by streams, once there are many.
    by_stream: HashMap<u32, usize>,
    taken: &'p Taken,
}

/// Members that are found by looking at all of them.
const FEW: usize = 32;
/// More members times channels than this are not looked at from one loop.
const MOST_STEPS: usize = 1 << 22;

impl<'p, 'a> Growing<'p, 'a> {
    pub(super) fn new(
        processes: &'p Processes<'a>,
        table: &'p ChannelTable,
        scope: &'p Scope,
        taken: &'p Taken,
    ) -> Self {
        Self { processes, table, scope, members: Vec::new(), by_stream: HashMap::new(), taken }
    }

    /// The joint loop that has this run. Returns `None` if there is none.
    pub(super) fn grow(mut self, run: Run) -> Option<JointLoop> {
        self.add(Candidate { run, common: run, ratio: Ratio::ONE, by: None, iterations: 0 });
        let (mut next, mut steps) = (0, 0);
        while next < self.members.len() {
            let ends = self.ends(next);
            steps += ends.len();
            if steps > MOST_STEPS {
                return None;
            }
            let common = self.members[next].common;
            let located = self.nest(common.stream).locate(common.start);
            for (end, each) in ends {
                self.follow(next, end, each, &located)?;
            }
            next += 1;
        }
        if self.members.len() < 2 || !self.pools_balance() {
            return None;
        }
        self.set_iterations()?;
        let aligned = Aligning::new(self.processes, self.table, self.scope, &self.members).align()?;
        let member = |(candidate, &start): (&Candidate, &u64)| Member {
            stream: candidate.run.stream,
            start,
            body: candidate.period(),
        };
        let mut members: Vec<Member> = self.members.iter().zip(&aligned.starts).map(member).collect();
        members.sort_unstable_by_key(|member| member.stream);
        Some(JointLoop { members, times: aligned.times, within: None, in_flight: aligned.in_flight })
    }

    fn nest(&self, stream: u32) -> &'p LoopCollapsed {
        self.processes.nest(stream)
    }

    fn ends(&self, member: usize) -> Vec<(u32, u64)> {
        let run = self.members[member].run;
        self.table.streams[run.stream as usize].of_loop(run.found).to_vec()
    }

    fn add(&mut self, candidate: Candidate) {
        self.members.push(candidate);
        if self.members.len() > FEW {
            let known = self.by_stream.len();
            let more = self.members.iter().enumerate().skip(known);
            self.by_stream.extend(more.map(|(index, member)| (member.run.stream, index)));
        }
    }

    /// The member of a stream.
    fn member(&self, stream: u32) -> Option<usize> {
        match self.members.len() > FEW {
            true => self.by_stream.get(&stream).copied(),
            false => self.members.iter().position(|member| member.run.stream == stream),
        }
    }

    /// Adds the loops at the other ends of a channel of a member, or checks those that are
    /// members. Returns `None` if they do not fit.
    fn follow(&mut self, member: usize, number: u32, each: u64, located: &Option<Located>) -> Option<()> {
        let Candidate { run, common, ratio, .. } = self.members[member];
        let end = self.table.end(run.stream, number);
        let channel = self.table.channel(end);
        let is_ordered = channel.is_ordered();
        for &(side, stream, other) in &channel.ends {
            if (stream, other) == (run.stream, number) || (side == end.side && side != Side::Member) {
                continue;
            }
            let other = self.table.end(stream, other);
            if stream == run.stream && is_ordered {
                // Of messages to oneself the loop must have both ends.
                (other.each(run.found) == each).then_some(())?;
                continue;
            }
            if !is_ordered {
                let range = self.range(end, common, each, located.as_ref());
                self.follow_pool(member, end, other, stream, range);
                continue;
            }
            if let Some(known) = self.member(stream) {
                let candidate = self.members[known];
                let each_there = other.each(candidate.run.found);
                let fits = each_there > 0 && ratio.times(each, each_there)? == candidate.ratio;
                fits.then_some(())?;
                continue;
            }
            let range = self.range(end, common, each, located.as_ref());
            let (run, each_there) = self.partner(other, stream, range, each)?;
            let common = self.common(other, run, each_there, range);
            let by = Some((member, end.channel));
            self.add(Candidate { run, common, ratio: ratio.times(each, each_there)?, by, iterations: 0 });
        }
        // Without another end nothing fits.
        let is_connected = channel.ends.iter().any(|&(side, stream, _)| {
            stream == run.stream && side != end.side || self.member(stream).is_some() && stream != run.stream
        });
        is_connected.then_some(())
    }

    /// The numbers of a run's messages on a channel, from the first to behind the last. What is
    /// in flight at the begin of the scope is added to those received.
    fn range(&self, end: &End, run: Run, each: u64, begin: Option<&Located>) -> (i128, i128) {
        let before = begin.map_or(end.total, |begin| end.before(self.nest(run.stream), begin));
        let first = i128::from(before) + self.scope.received_before(end);
        (first, first + i128::from(each) * i128::from(run.times))
    }

    /// The iterations of a run with messages of a range.
    fn common(&self, end: &End, run: Run, each: u64, range: (i128, i128)) -> Run {
        let first = self.range(end, run, each, self.nest(run.stream).locate(run.start).as_ref()).0;
        let iterations = |messages: i128| messages.clamp(0, i128::from(each) * i128::from(run.times)) as u64;
        let (from, to) = (iterations(range.0 - first) / each, iterations(range.1 - first).div_ceil(each));
        Run { start: run.start + from * run.body, times: to.saturating_sub(from), ..run }
    }

    /// The outermost loop around the message in the middle of a range that has two joint
    /// iterations in common with it, and its messages in an iteration. If there is none, one that
    /// has them if both go on for an iteration before and behind: they may be written in
    /// different rotations. Then the message in the middle may just not be in the loop.
    fn partner(&self, other: &End, stream: u32, range: (i128, i128), each: u64) -> Option<(Run, u64)> {
        let shift = self.scope.received_before(other);
        let last = range.1.min(i128::from(other.total) + shift) - 1;
        let around = |nth: i128| {
            let nth = u64::try_from(nth - shift).ok()?;
            self.nest(stream).locate(other.position(self.nest(stream), nth)?)
        };
        let middle = around((range.0 + last + 1).div_euclid(2)).filter(|_| last >= range.0)?;
        let with_more = |located: &Located, more| {
            let mut around = located.around.iter();
            around.find_map(|instance| self.partner_at(other, stream, instance, range, each, more))
        };
        let found = with_more(&middle, 0).or_else(|| with_more(&middle, 1)).or_else(|| {
            let before = around((range.0 + last).div_euclid(2))?;
            with_more(&before, 1)
        });
        found.filter(|&(run, _)| !self.taken.holds(run))
    }

    /// A loop, if it has two joint iterations in common with a range when both have so many
    /// iterations more at either end.
    fn partner_at(
        &self,
        end: &End,
        stream: u32,
        instance: &LoopInstance,
        range: (i128, i128),
        each: u64,
        more: i128,
    ) -> Option<(Run, u64)> {
        let nest = self.nest(stream);
        let run = self.scope.clipped(stream, nest, instance)?;
        let each_there = end.each(run.found);
        let theirs = self.range(end, run, each_there, nest.locate(run.start).as_ref());
        let (more_here, more_there) = (more * i128::from(each), more * i128::from(each_there));
        let first = (range.0 - more_here).max(theirs.0 - more_there);
        let behind = (range.1 + more_here).min(theirs.1 + more_there);
        let joint = u128::from(each) / gcd(each.into(), each_there.into()) * u128::from(each_there);
        (behind - first >= 2 * joint as i128).then_some((run, each_there))
    }

    /// Adds the loop at one of the other ends of a pool, whose messages have no common order: the
    /// one in the same place in proportion. It may have none.
    fn follow_pool(&mut self, member: usize, end: &End, other: &End, stream: u32, range: (i128, i128)) {
        if self.member(stream).is_some() || end.total == 0 || other.total == 0 {
            return;
        }
        let nest = self.nest(stream);
        let middle = (range.0 + (range.1 - range.0) / 2).clamp(0, i128::from(end.total) - 1);
        let there = (middle * i128::from(other.total) / i128::from(end.total)) as u64;
        let located = other.position(nest, there).and_then(|position| nest.locate(position));
        let Candidate { run, ratio, .. } = self.members[member];
        let fitting = located.iter().flat_map(|located| &located.around).find_map(|instance| {
            let theirs = self.scope.clipped(stream, nest, instance)?;
            // As many joint iterations as here.
            let ratio = ratio.times(theirs.times, run.times)?;
            (theirs.times >= run.times || ratio.down == 1).then_some((theirs, ratio))
        });
        if let Some((run, ratio)) = fitting {
            self.add(Candidate { run, common: run, ratio, by: Some((member, end.channel)), iterations: 0 });
        }
    }

    /// Whether as much goes into each pool as comes out of it.
    fn pools_balance(&self) -> bool {
        let mut open: HashMap<u32, [f64; 2]> = HashMap::new();
        for candidate in &self.members {
            let Run { stream, found, .. } = candidate.run;
            for &(number, each) in self.table.streams[stream as usize].of_loop(found) {
                let end = self.table.end(stream, number);
                if !self.table.channel(end).is_ordered() {
                    let messages = each as f64 * candidate.ratio.up as f64 / candidate.ratio.down as f64;
                    open.entry(end.channel).or_default()[usize::from(end.side == Side::Send)] += messages;
                }
            }
        }
        open.values().all(|[received, sent]| (received - sent).abs() < 1e-6 * sent.max(1.0))
    }

    /// The smallest whole numbers of iterations.
    fn set_iterations(&mut self) -> Option<()> {
        let mut down = 1u128;
        for candidate in &self.members {
            down = (down / gcd(down, candidate.ratio.down)).checked_mul(candidate.ratio.down)?;
        }
        let mut common = 0;
        for candidate in &self.members {
            common = gcd(candidate.ratio.up.checked_mul(down / candidate.ratio.down)?, common);
        }
        for candidate in &mut self.members {
            let iterations = candidate.ratio.up * (down / candidate.ratio.down) / common.max(1);
            candidate.iterations = u64::try_from(iterations).ok()?;
            candidate.iterations.checked_mul(candidate.run.body)?;
        }
        Some(())
    }
}
