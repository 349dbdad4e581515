//! From a loop of one process to the loops of all that it communicates with.
//!
//! Each member gets the number of its iterations in a joint one, as a fraction of that of the
//! first: on a channel with b messages an iteration at one end and b' at the other, b' of the
//! first loop's iterations belong to b of the second's. Where two channels ask for different
//! numbers there is no joint loop.
//!
//! Mostly the loops at the ends of a channel have the same messages, from the first to the last.
//! These are known before the search (`loop_links`), and if all loops of a joint one are such,
//! their begins are an empty cut. Only where loops are written in different rotations, or have
//! iterations that the others do not have, the loop around a message is searched.

use super::cut::Aligning;
use super::{JointLoop, Member, Run, Scope, Taken, first_execution};
use crate::questions::communication::channels::{
    ChannelEnds, ChannelTable, End, LoopEnd, LoopMessages, LoopSummary, MessageLoop, Side,
};
use crate::questions::communication::processes::Processes;
use crate::questions::patterns::{Located, LoopCollapsed};
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
        if up == down {
            return Some(self);
        }
        let (up, down) = (self.up.checked_mul(up.into())?, self.down.checked_mul(down.into())?);
        let common = gcd(up, down);
        Some(Self { up: up / common, down: down / common })
    }
}

pub(super) fn gcd(a: u128, b: u128) -> u128 {
    match b {
        0 => a.max(1),
        // Numbers are mostly small, and dividing large ones is slow.
        1 => 1,
        _ => gcd(b, a % b),
    }
}

/// The messages of a joint iteration of two loops, by those of one iteration of each.
fn joint_messages(one: u64, other: u64) -> u128 {
    match one == other {
        true => one.into(),
        false => u128::from(one) / gcd(one.into(), other.into()) * u128::from(other),
    }
}

/// A member while others are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) run: Run,
    /// The iterations that have messages in common with the member by which it was found.
    common: Run,
    /// Whether these are all of the loop, in its first execution.
    is_first: bool,
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

/// The loop at the other end of a channel.
struct Partner {
    run: Run,
    /// Its iterations with messages of the loop at this end.
    common: Run,
    /// How many messages one iteration has.
    each: u64,
}

/// The iterations of a run with messages of a range, by the number of its first message.
fn common(run: Run, each: u64, first: i128, range: (i128, i128)) -> Run {
    let iterations = |messages: i128| messages.clamp(0, i128::from(each) * i128::from(run.times)) as u64;
    let (from, to) = (iterations(range.0 - first) / each, iterations(range.1 - first).div_ceil(each));
    Run { start: run.start + from * run.body, times: to.saturating_sub(from), ..run }
}

pub(super) struct Growing<'p, 'a> {
    processes: &'p Processes<'a>,
    table: &'p ChannelTable,
    scope: &'p Scope,
    members: Vec<Candidate>,
    marks: &'p mut Marks,
    taken: &'p Taken,
    /// Whether the begins of all members so far are an empty cut. If not, they still may be.
    starts_agree: bool,
}

/// Which streams and channels one search after the other has met.
pub(super) struct Marks {
    /// The number of the search.
    round: u64,
    /// For each channel the last search that followed it.
    channels: Vec<u64>,
    /// For each stream the last search that has it, and its number among the members.
    members: Vec<(u64, usize)>,
    /// For each loop of each stream the last scope in which all iterations of its first execution
    /// were taken by a joint loop that begins with them.
    taken_in: Vec<Vec<u32>>,
    /// The members of the last search, whose memory the next one uses.
    candidates: Vec<Candidate>,
}

impl Marks {
    pub(super) fn new(processes: &Processes<'_>, table: &ChannelTable) -> Self {
        let loops = |stream: usize| vec![0; processes.nest(stream as u32).loops().len()];
        Self {
            round: 0,
            channels: vec![0; table.channels.len()],
            members: vec![(0, 0); table.streams.len()],
            taken_in: (0..table.streams.len()).map(loops).collect(),
            candidates: Vec::new(),
        }
    }

    /// Marks the loop of a member if all of it is taken.
    pub(super) fn take(&mut self, table: &ChannelTable, member: &Member, times: u64, taken: &Taken) {
        if let Some(found) = member.found
            && table.streams[member.stream as usize].summary(found as usize).times == times
        {
            self.taken_in[member.stream as usize][found as usize] = taken.scope;
        }
    }

    /// Whether a loop is marked. That is only faster than looking at what is taken.
    pub(super) fn is_taken(&self, stream: u32, found: usize, taken: &Taken) -> bool {
        self.taken_in[stream as usize][found] == taken.scope
    }
}

/// More members times channels than this are not looked at from one loop.
const MOST_STEPS: usize = 1 << 22;

impl<'p, 'a> Growing<'p, 'a> {
    pub(super) fn new(
        processes: &'p Processes<'a>,
        table: &'p ChannelTable,
        scope: &'p Scope,
        taken: &'p Taken,
        marks: &'p mut Marks,
    ) -> Self {
        marks.round += 1;
        let mut members = std::mem::take(&mut marks.candidates);
        members.clear();
        Self { processes, table, scope, members, marks, taken, starts_agree: true }
    }

    /// The joint loop that has this run, and whether joint iterations have loops of two processes.
    /// Returns `None` if there is none.
    pub(super) fn grow(mut self, run: Run) -> Option<(JointLoop, bool)> {
        let grown = self.grown(run);
        self.marks.candidates = self.members;
        grown
    }

    fn grown(&mut self, run: Run) -> Option<(JointLoop, bool)> {
        self.add(run, run, Ratio::ONE, None);
        let (mut next, mut steps) = (0, 0);
        while next < self.members.len() {
            let Candidate { run, common, .. } = self.members[next];
            let table = self.table;
            let ends = table.streams[run.stream as usize].of_loop(run.found);
            steps += ends.len();
            if steps > MOST_STEPS {
                return None;
            }
            let is_written = run.start == self.summary(run).first;
            let located = if is_written { None } else { self.nest(run.stream).locate(common.start) };
            for end in ends {
                self.follow(next, end, &located)?;
            }
            next += 1;
        }
        if self.members.len() < 2 || !self.pools_balance() {
            return None;
        }
        self.set_iterations()?;
        let aligned =
            Aligning::new(self.processes, self.table, self.scope, &self.members).align(self.starts_agree)?;
        let member = |(candidate, &start): (&Candidate, &u64)| {
            let Run { stream, found, .. } = candidate.run;
            let is_written = candidate.iterations == 1 && start == self.summary(candidate.run).first;
            let found = is_written.then_some(found as u32);
            Member { stream, start, body: candidate.period(), found }
        };
        let mut members: Vec<Member> = self.members.iter().zip(&aligned.starts).map(member).collect();
        let with_loops =
            self.members.iter().zip(&members).filter(|both| self.has_loops_inside(both.0, both.1));
        let is_nested = with_loops.take(2).count() == 2;
        members.sort_unstable_by_key(|member| member.stream);
        let joint = JointLoop { members, times: aligned.times, within: None, in_flight: aligned.in_flight };
        Some((joint, is_nested))
    }

    /// Whether a joint iteration of a member has loops.
    fn has_loops_inside(&self, candidate: &Candidate, member: &Member) -> bool {
        match candidate.iterations == 1 && candidate.run.start <= member.start {
            // One iteration, in whichever rotation, has those of the loop's body.
            true => !self.summary(candidate.run).is_flat,
            false => {
                let nest = self.nest(member.stream);
                nest.flat_range(member.start, member.start + member.body).is_none()
            }
        }
    }

    /// The loop of a run.
    fn summary(&self, run: Run) -> &'p LoopSummary {
        self.table.streams[run.stream as usize].summary(run.found)
    }

    fn nest(&self, stream: u32) -> &'p LoopCollapsed {
        self.processes.nest(stream)
    }

    fn add(&mut self, run: Run, common: Run, ratio: Ratio, by: Option<(usize, u32)>) {
        let &LoopSummary { first, times, .. } = self.summary(run);
        let is_first = common == run && run.times == times && run.start == first;
        self.marks.members[run.stream as usize] = (self.marks.round, self.members.len());
        self.starts_agree &= is_first;
        self.members.push(Candidate { run, common, is_first, ratio, by, iterations: 0 });
    }

    /// The member of a stream.
    fn member(&self, stream: u32) -> Option<usize> {
        let (round, member) = self.marks.members[stream as usize];
        (round == self.marks.round).then_some(member)
    }

    /// Adds the loops at the other ends of a channel of a member, or checks those that are
    /// members. Returns `None` if they do not fit.
    fn follow(&mut self, member: usize, loop_end: &LoopEnd, located: &Option<Located>) -> Option<()> {
        let Candidate { run, ratio, .. } = self.members[member];
        let &LoopEnd { number, messages: LoopMessages { each, .. }, .. } = loop_end;
        let end = self.table.end(run.stream, number);
        let channel = self.table.channel(end);
        if !channel.is_ordered() {
            return self.follow_pools(member, loop_end, located);
        }
        // From one end all others were compared with it.
        let mark = &mut self.marks.channels[end.channel as usize];
        if std::mem::replace(mark, self.marks.round) == self.marks.round {
            return Some(());
        }
        if let Some(same) = self.same_loop(member, loop_end, channel, end.side)
            && let Some(followed) = self.follow_same(member, loop_end, end.channel, same)
        {
            return followed.then_some(());
        }
        let range = self.common_range(member, end, &loop_end.messages, located);
        let mut is_connected = false;
        for &(side, stream, number) in &channel.ends {
            if (stream, number) == (run.stream, loop_end.number) || (side == end.side && side != Side::Member)
            {
                continue;
            }
            is_connected = true;
            let ends = &self.table.streams[stream as usize];
            match self.member(stream) {
                // Of messages to oneself the loop must have both ends.
                Some(known) if known == member => (ends.each(run.found, number) == each).then_some(())?,
                Some(known) => {
                    let candidate = self.members[known];
                    let each_there = ends.each(candidate.run.found, number);
                    let fits = each_there > 0 && ratio.times(each, each_there)? == candidate.ratio;
                    fits.then_some(())?;
                }
                None => {
                    let near = loop_end.other.place();
                    let partner = self.partner(&ends.ends[number as usize], stream, near, range, each)?;
                    let ratio = ratio.times(each, partner.each)?;
                    self.add(partner.run, partner.common, ratio, Some((member, end.channel)));
                }
            }
            self.starts_agree = self.starts_agree && self.first_message(stream, number) == Some(range.0);
        }
        // Without another end nothing fits.
        is_connected.then_some(())
    }

    /// Adds the loops at the other ends of a pool. Returns `None` if no member is there.
    fn follow_pools(&mut self, member: usize, loop_end: &LoopEnd, located: &Option<Located>) -> Option<()> {
        let run = self.members[member].run;
        let end = self.table.end(run.stream, loop_end.number);
        let channel = self.table.channel(end);
        let range = self.common_range(member, end, &loop_end.messages, located);
        for &(_, stream, other) in channel.ends.iter().filter(|&&(side, ..)| side != end.side) {
            self.follow_pool(member, end, self.table.end(stream, other), stream, range);
        }
        let is_connected = channel.ends.iter().any(|&(side, stream, _)| {
            stream == run.stream && side != end.side || self.member(stream).is_some() && stream != run.stream
        });
        is_connected.then_some(())
    }

    /// The number of the first message of a member, if it has the first execution of its loop.
    fn first_message(&self, stream: u32, number: u32) -> Option<i128> {
        let Candidate { run, is_first, .. } = self.members[self.member(stream)?];
        let ends = &self.table.streams[stream as usize];
        let messages = ends.in_loop(run.found, number).filter(|_| is_first)?;
        Some(i128::from(messages.before) + self.scope.received_before(&ends.ends[number as usize]))
    }

    /// The numbers of a member's messages on a channel in the iterations in common.
    fn common_range(
        &self,
        member: usize,
        end: &End,
        messages: &LoopMessages,
        located: &Option<Located>,
    ) -> (i128, i128) {
        let Candidate { run, common, .. } = self.members[member];
        match run.start == self.summary(run).first {
            true => {
                let earlier = ((common.start - run.start) / run.body).saturating_mul(messages.each);
                let before = messages.before.saturating_add(earlier);
                self.numbers_behind(end, common, messages.each, before)
            }
            false => self.range(end, common, messages.each, located.as_ref()),
        }
    }

    /// The numbers of a run's messages on a channel, from the first to behind the last. What is
    /// in flight at the begin of the scope is added to those received.
    fn range(&self, end: &End, run: Run, each: u64, begin: Option<&Located>) -> (i128, i128) {
        let before = begin.map_or(end.total, |begin| end.before(self.nest(run.stream), begin));
        self.numbers_behind(end, run, each, before)
    }

    fn numbers_behind(&self, end: &End, run: Run, each: u64, before: u64) -> (i128, i128) {
        let first = i128::from(before) + self.scope.received_before(end);
        (first, first + i128::from(each) * i128::from(run.times))
    }

    /// The stream at the other end of a channel of two ends, and its loop that has all messages of
    /// a member and no others. It is the one around the message in the middle that
    /// [`Self::partner`] would find: those around it have as many messages in one iteration.
    fn same_loop(
        &self,
        member: usize,
        loop_end: &LoopEnd,
        channel: &ChannelEnds,
        side: Side,
    ) -> Option<(u32, usize)> {
        let Candidate { run, is_first, .. } = self.members[member];
        let found = loop_end.other.found()?;
        // What is in flight makes other numbers.
        let (stream, _) = channel.other(side).filter(|_| is_first && self.scope.in_flight.is_empty())?;
        (stream != run.stream).then_some((stream, found))
    }

    /// Adds a loop that has the messages of a member, or compares it, and says whether it fits. So
    /// the begins of both agree. Returns `None` if another loop has to be looked for.
    fn follow_same(
        &mut self,
        member: usize,
        loop_end: &LoopEnd,
        channel: u32,
        (stream, found): (u32, usize),
    ) -> Option<bool> {
        let Candidate { run, ratio, .. } = self.members[member];
        let each = loop_end.messages.each;
        // As many messages in all.
        let all = u128::from(each) * u128::from(run.times);
        let each_there =
            |times: u64| if times == run.times { each } else { (all / u128::from(times)) as u64 };
        if let Some(known) = self.member(stream) {
            let Candidate { run: there, is_first, ratio: expected, .. } = self.members[known];
            let is_known = is_first && there.found == found;
            return is_known.then(|| ratio.times(each, each_there(there.times)) == Some(expected));
        }
        let there = first_execution(self.table, stream, found);
        let (from, to) = self.scope.of_member(stream)?;
        let each_there = each_there(there.times);
        if there.start < from || to < there.end() || all < 2 * joint_messages(each, each_there) {
            return None;
        }
        let Some(ratio) = ratio.times(each, each_there).filter(|_| !self.is_taken(there)) else {
            return Some(false);
        };
        self.add(there, there, ratio, Some((member, channel)));
        Some(true)
    }

    /// The loop that belongs to a range of messages of another one: the outermost loop around the
    /// message in the middle that has two joint iterations in common with it. If there is none, one
    /// that has them if both go on for an iteration before and behind: they may be written in
    /// different rotations. Then the message in the middle may just not be in the loop.
    /// `near` is the place of a loop there that begins near.
    fn partner(
        &self,
        other: &End,
        stream: u32,
        near: usize,
        range: (i128, i128),
        each: u64,
    ) -> Option<Partner> {
        let shift = self.scope.received_before(other);
        let last = range.1.min(i128::from(other.total) + shift) - 1;
        if last < range.0 {
            return None;
        }
        let with_more = |nth: i128, more| {
            let nth = u64::try_from(nth - shift).ok()?;
            let mut around = other.loops_around(self.nest(stream), nth, near);
            around.find_map(|around| self.partner_at(other, stream, &around, range, each, more))
        };
        let (middle, before) = ((range.0 + last + 1).div_euclid(2), (range.0 + last).div_euclid(2));
        let found = with_more(middle, 0).or_else(|| with_more(middle, 1)).or_else(|| with_more(before, 1));
        found.filter(|partner| !self.is_taken(partner.run))
    }

    /// Whether a run is known to be taken. If it is, but not known, the joint loop is not free.
    fn is_taken(&self, run: Run) -> bool {
        self.marks.is_taken(run.stream, run.found, self.taken) && run.start == self.summary(run).first
    }

    /// A loop, if it has two joint iterations in common with a range when both have so many
    /// iterations more at either end.
    fn partner_at(
        &self,
        end: &End,
        stream: u32,
        around: &MessageLoop,
        range: (i128, i128),
        each: u64,
        more: i128,
    ) -> Option<Partner> {
        let nest = self.nest(stream);
        let run = self.scope.clipped(stream, nest, &around.instance)?;
        let theirs = match run.start == around.instance.start {
            true => self.numbers_behind(end, run, around.each, around.before),
            false => self.range(end, run, around.each, nest.locate(run.start).as_ref()),
        };
        let (more_here, more_there) = (more * i128::from(each), more * i128::from(around.each));
        let first = (range.0 - more_here).max(theirs.0 - more_there);
        let behind = (range.1 + more_here).min(theirs.1 + more_there);
        let has_two = behind - first >= 2 * joint_messages(each, around.each) as i128;
        has_two.then(|| {
            let common = common(run, around.each, theirs.0, range);
            Partner { run, common, each: around.each }
        })
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
            self.add(run, run, ratio, Some((member, end.channel)));
        }
    }

    /// Whether as much goes into each pool as comes out of it.
    fn pools_balance(&self) -> bool {
        let mut open: HashMap<u32, [f64; 2]> = HashMap::new();
        for candidate in &self.members {
            let Run { stream, found, .. } = candidate.run;
            for loop_end in self.table.streams[stream as usize].of_loop(found) {
                let end = self.table.end(stream, loop_end.number);
                if !self.table.channel(end).is_ordered() {
                    let messages = loop_end.messages.each as f64 * candidate.ratio.up as f64
                        / candidate.ratio.down as f64;
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
