//! Fewer iterations: which loops are shortened, by how much, and together with which.
//!
//! A logical loop is an iteration of all its processes. Leaving some of its iterations out of all
//! of them keeps messages matched if one iteration is *balanced*: on every channel as many sends
//! as receives, and of every collective operation as many calls by each member. A loop that is
//! not balanced by itself (a master and its workers are different loops, a process that iterates
//! once more has a loop of its own) is joined with loops that have the other ends; of each, so
//! many iterations are left out that together they are balanced. What then is balanced on no
//! account stays as it is, and its inner loops are tried.
//!
//! Task farms (`farm`) are shortened by process: a worker's iteration is balanced but for the
//! messages in the mailbox of the master, whoever they are from. So every worker keeps its share of
//! the tasks, and the master as many iterations as they have together.
//!
//! Loops are tried from the outside, those that span most time first. A loop of fewer iterations
//! than the scale asks for keeps one, and what remains of the scale goes to its inner loops. What
//! remains then shortens the computation, see [`Scaled::work_factor`].
//!
//! Balance keeps the n-th send of a channel the partner of the n-th receive, but with messages in
//! flight from one iteration to the next it does not prove that nobody waits for ever. So the
//! result is executed by the rules of MPI ([`super::simulate`]) under the semantics that the whole
//! program is safe under, and loops are left whole, the last ones first, until it ends.

use super::operations::{NOBODY, Operations};
use super::program::{Node, NodeId, Program};
use super::simulate::{Ended, Sends, execute};
use super::timing::Timing;
use crate::{Error, Result};
use hashbrown::HashMap;

/// A loop with fewer iterations.
#[derive(Clone, Debug)]
pub(super) struct Shortened {
    pub(super) node: NodeId,
    /// Iterations that are left out, of each execution of the loop: for every process.
    pub(super) left_out: Vec<u64>,
}

/// A program with fewer iterations.
pub(super) struct Scaled {
    pub(super) program: Program,
    /// Loops that are shortened together.
    pub(super) groups: Vec<Vec<Shortened>>,
    pub(super) ended: Ended,
    /// Whether the program ends only if messages are buffered.
    pub(super) needs_buffers: bool,
    /// Groups that were left whole again, since the program would not have ended.
    pub(super) left_whole: usize,
}

/// The most calls that are executed to be sure that a program ends.
const MOST_EXECUTED: u64 = 1 << 28;

impl Scaled {
    pub(super) fn of(
        program: &Program,
        operations: &Operations,
        timing: &Timing,
        scale: f64,
    ) -> Result<Self> {
        let whole = Whole::of(program, operations)?;
        let mut scaling = Scaling { program: program.clone(), operations, timing, groups: Vec::new() };
        let top = scaling.loops_in(&program.top);
        scaling.shorten(&top, scale);
        let Scaling { program: scaled, mut groups, .. } = scaling;
        let mut scaled = scaled;
        let mut left_whole = 0;
        loop {
            match whole.check(&scaled, operations) {
                Ok(ended) => {
                    let needs_buffers = whole.is_executed && whole.semantics == Sends::Buffered;
                    return Ok(Self { program: scaled, groups, ended, needs_buffers, left_whole });
                }
                Err(reason) if groups.is_empty() => {
                    return Err(Error::invalid(format_args!("the program cannot be replayed: {reason}")));
                }
                Err(_) => {
                    left_whole += 1;
                    groups.pop();
                    scaled = program.clone();
                    groups.iter().flatten().for_each(|one| scaled.shorten(one));
                }
            }
        }
    }

    /// How much shorter the computation before a call has to be for a process, such that all of
    /// it together is that of the whole program times the scale.
    pub(super) fn work_factor(&self, whole: u64, left: u64, scale: f64) -> f64 {
        if left == 0 { 0.0 } else { whole as f64 * scale / left as f64 }
    }
}

/// How the program ends as it was recorded.
struct Whole {
    semantics: Sends,
    unmatched: usize,
    is_executed: bool,
}

impl Whole {
    fn of(program: &Program, operations: &Operations) -> Result<Self> {
        if program.calls() > MOST_EXECUTED {
            return Ok(Self { semantics: Sends::Buffered, unmatched: 0, is_executed: false });
        }
        for semantics in [Sends::Strict, Sends::Buffered] {
            if let Ok(Ended { unmatched, .. }) = execute(program, operations, semantics) {
                return Ok(Self { semantics, unmatched, is_executed: true });
            }
        }
        let reason = execute(program, operations, Sends::Buffered).err().unwrap_or_default();
        Err(Error::invalid(format_args!("the recorded calls cannot be replayed: {reason}")))
    }

    fn check(&self, program: &Program, operations: &Operations) -> std::result::Result<Ended, String> {
        if program.calls() > MOST_EXECUTED {
            return Err(
                "there are too many calls to be sure that it ends; choose a smaller scale".to_string()
            );
        }
        let ended = execute(program, operations, self.semantics)?;
        if self.is_executed && ended.unmatched > self.unmatched {
            return Err("messages would be left over".to_string());
        }
        Ok(ended)
    }
}

impl Program {
    /// Leaves iterations of a loop out.
    fn shorten(&mut self, one: &Shortened) {
        for (count, left_out) in self.counts[one.node].iter_mut().zip(&one.left_out) {
            *count = count.saturating_sub(*left_out).max(u64::from(*count > 0));
        }
    }
}

struct Scaling<'a> {
    program: Program,
    operations: &'a Operations,
    timing: &'a Timing,
    groups: Vec<Vec<Shortened>>,
}

/// How many more sends than receives there are on each channel, and how many more operations of a
/// member than of the next; without those that are balanced.
type Balance = HashMap<(usize, u32), i128>;

impl Scaling<'_> {
    /// The outermost loops of a body, those that span most time first.
    fn loops_in(&self, body: &[NodeId]) -> Vec<NodeId> {
        let mut loops = Vec::new();
        let mut waiting: Vec<NodeId> = body.to_vec();
        while let Some(node) = waiting.pop() {
            match &self.program.nodes[node] {
                Node::Call(_) => {}
                Node::Loop { .. } => loops.push(node),
                Node::Branch { body, .. } => waiting.extend(body),
            }
        }
        loops.sort_by(|&one, &other| {
            self.timing.weight(other).total_cmp(&self.timing.weight(one)).then(one.cmp(&other))
        });
        loops
    }

    /// Shortens loops that are not in each other.
    fn shorten(&mut self, loops: &[NodeId], scale: f64) {
        if scale >= 1.0 {
            return;
        }
        let balances: HashMap<NodeId, Balance> =
            loops.iter().map(|&node| (node, self.balance(node))).collect();
        let mut taken: Vec<NodeId> = Vec::new();
        for &node in loops {
            if taken.contains(&node) {
                continue;
            }
            if let Some(farm) = self.farm(node, loops, &taken, scale) {
                taken.extend(farm.iter().map(|one| one.node));
                farm.iter().for_each(|one| self.program.shorten(one));
                self.groups.push(farm);
                continue;
            }
            let group = self.group(node, loops, &taken, &balances);
            let group = group.filter(|group| self.fewest(group) > 1);
            let Some(group) = group else {
                let inner = self.loops_in(self.program.body(node));
                self.shorten(&inner, scale);
                continue;
            };
            taken.extend(group.iter().map(|&(node, _)| node));
            let rest = self.shorten_group(&group, scale);
            for &(node, _) in &group {
                let inner = self.loops_in(self.program.body(node));
                self.shorten(&inner, rest);
            }
        }
    }

    /// How often a group can iterate together, at least.
    fn fewest(&self, group: &[(NodeId, u64)]) -> u64 {
        let fewest = |&(node, step): &(NodeId, u64)| {
            self.program.counts[node]
                .iter()
                .filter(|&&count| count > 0)
                .min()
                .map_or(0, |&count| count / step)
        };
        group.iter().map(fewest).min().unwrap_or(0)
    }

    /// Leaves iterations of a group out; returns the scale that remains for what is in it.
    fn shorten_group(&mut self, group: &[(NodeId, u64)], scale: f64) -> f64 {
        // The first one spans most time.
        let (first, step) = group[0];
        let most = self.program.counts[first].iter().max().copied().unwrap_or(0);
        let wanted = ((most as f64 * scale).round() as u64).max(1);
        let left_out = ((most - wanted.min(most)) / step).min(self.fewest(group) - 1);
        let processes = self.program.processes;
        let shortened: Vec<Shortened> = group
            .iter()
            .map(|&(node, step)| Shortened { node, left_out: vec![left_out * step; processes] })
            .collect();
        shortened.iter().for_each(|one| self.program.shorten(one));
        if left_out > 0 {
            self.groups.push(shortened);
        }
        let left = most - left_out * step;
        scale * most as f64 / left.max(1) as f64
    }

    /// The loops that are balanced together with one, and how many iterations of each. Returns
    /// `None` if there are none.
    fn group(
        &self,
        node: NodeId,
        loops: &[NodeId],
        taken: &[NodeId],
        balances: &HashMap<NodeId, Balance>,
    ) -> Option<Vec<(NodeId, u64)>> {
        if balances[&node].is_empty() {
            return Some(vec![(node, 1)]);
        }
        // Shares are fractions while loops are added.
        let mut group: Vec<(NodeId, u128, u128)> = vec![(node, 1, 1)];
        for _ in 0..loops.len() {
            let Some((channel, sum)) = self.unbalanced(&group, balances) else { break };
            // The first one in the program that has the other end, and nothing else.
            let is_other = |&&other: &&NodeId| {
                let more = balances[&other].get(&channel).copied().unwrap_or(0);
                more.signum() == -sum.0.signum()
                    && !taken.contains(&other)
                    && group.iter().all(|&(known, ..)| known != other)
            };
            let other = *loops.iter().filter(is_other).min()?;
            let more = balances[&other].get(&channel)?.unsigned_abs();
            let (above, below) = (sum.0.unsigned_abs(), sum.1.checked_mul(more)?);
            let divisor = greatest_divisor(above, below);
            group.push((other, above / divisor, below / divisor));
        }
        if self.unbalanced(&group, balances).is_some() {
            return None;
        }
        let below = group.iter().try_fold(1u128, |all, &(_, _, below)| {
            let common = all / greatest_divisor(all, below);
            common.checked_mul(below)
        })?;
        group
            .iter()
            .map(|&(node, above, own)| Some((node, u64::try_from(above * (below / own)).ok()?)))
            .collect()
    }

    /// A channel on which a group is not balanced, and by how much, as a fraction.
    fn unbalanced(
        &self,
        group: &[(NodeId, u128, u128)],
        balances: &HashMap<NodeId, Balance>,
    ) -> Option<((usize, u32), (i128, u128))> {
        let mut channels: Vec<(usize, u32)> =
            group.iter().flat_map(|(node, ..)| balances[node].keys().copied()).collect();
        channels.sort_unstable();
        channels.dedup();
        channels.into_iter().find_map(|channel| {
            let (mut above, mut below) = (0i128, 1u128);
            for &(node, share, of) in group {
                let more = balances[&node].get(&channel).copied().unwrap_or(0);
                above = above
                    .checked_mul(of as i128)?
                    .checked_add(more.checked_mul(share as i128)?.checked_mul(below as i128)?)?;
                below = below.checked_mul(of)?;
                let divisor = greatest_divisor(above.unsigned_abs(), below).max(1);
                (above, below) = (above / divisor as i128, below / divisor);
            }
            (above != 0).then_some((channel, (above, below)))
        })
    }

    /// The balance of leaving one iteration out of every execution of a loop.
    fn balance(&self, node: NodeId) -> Balance {
        let mut balance = Balance::new();
        let mut collectives: HashMap<usize, HashMap<u32, i128>> = HashMap::new();
        for process in 0..self.program.processes {
            self.add_balance(node, process, &mut balance, &mut collectives);
        }
        for (channel, counts) in collectives {
            let of = |member: &u32| counts.get(member).copied().unwrap_or(0);
            for two in self.operations.members[channel].windows(2) {
                balance.insert((channel, two[0]), of(&two[0]) - of(&two[1]));
            }
        }
        balance.retain(|&(channel, _), more| *more != 0 && channel != NOBODY);
        balance
    }

    /// Adds what one process has in one iteration of a loop, in all executions of the loop.
    fn add_balance(
        &self,
        node: NodeId,
        process: usize,
        balance: &mut Balance,
        collectives: &mut HashMap<usize, HashMap<u32, i128>>,
    ) {
        let executions = self.program.executions(process);
        let count = self.program.counts[node][process];
        if executions[node] == 0 || count == 0 {
            return;
        }
        let mut add = |channel: usize, more: i128| *balance.entry((channel, u32::MAX)).or_insert(0) += more;
        let mut waiting: Vec<NodeId> = self.program.body(node).to_vec();
        while let Some(inner) = waiting.pop() {
            waiting.extend(self.program.body(inner));
            let Some(operation) = self.operations.get(inner, process) else { continue };
            let times = i128::from(executions[inner] / count);
            for channel in &operation.sends {
                match self.operations.farms.get(channel) {
                    None => add(*channel, times),
                    // Whoever it is from, it is in the mailbox, and has its replies.
                    Some(farm) => {
                        let replies = self.operations.replies.get(&farm.mailbox).copied().unwrap_or(0);
                        add(farm.mailbox, times);
                        add(farm.back, times * i128::from(replies));
                    }
                }
            }
            operation.receives.iter().for_each(|&channel| add(channel, -times));
            if let Some(mailbox) = operation.kind.mailbox() {
                add(mailbox, -times);
            }
            if let Some(channel) = operation.collective {
                *collectives.entry(channel).or_default().entry(process as u32).or_insert(0) += times;
            }
        }
    }

    /// The loops of a task farm, the first of them this one, and what is left out of each. Returns
    /// `None` if it is none, or cannot be shortened.
    fn farm(&self, node: NodeId, loops: &[NodeId], taken: &[NodeId], scale: f64) -> Option<Vec<Shortened>> {
        if self.operations.farms.is_empty() {
            return None;
        }
        let (mailbox, own) = self.mailbox(node)?;
        let (mut members, mut more) = (vec![node], vec![own]);
        for &other in loops.iter().filter(|&&other| other != node && !taken.contains(&other)) {
            if let Some((_, own)) = self.mailbox(other).filter(|(found, _)| *found == mailbox) {
                members.push(other);
                more.push(own);
            }
        }
        let kept = |&count: &u64| ((count as f64 * scale).round() as u64).clamp(count.min(1), count);
        let left_out_of = |&node: &NodeId| {
            let counts = self.program.counts[node].iter();
            counts.map(|count| count - kept(count)).collect::<Vec<u64>>()
        };
        let mut left_out: Vec<Vec<u64>> = members.iter().map(left_out_of).collect();
        even_out(&mut left_out, &more)?;
        let is_shorter = left_out.iter().flatten().any(|&left_out| left_out > 0);
        let shortened = members.into_iter().zip(left_out);
        is_shorter.then(|| shortened.map(|(node, left_out)| Shortened { node, left_out }).collect())
    }

    /// The mailbox that is all to which an iteration of a loop is not balanced for any process by
    /// itself, and how many more messages each process puts into it than it takes out. Returns
    /// `None` if there is no such mailbox.
    fn mailbox(&self, node: NodeId) -> Option<(usize, Vec<i128>)> {
        let (mut found, mut of_processes) = (None, Vec::new());
        for process in 0..self.program.processes {
            let (mut balance, mut collectives) = (Balance::new(), HashMap::new());
            self.add_balance(node, process, &mut balance, &mut collectives);
            balance.retain(|&(channel, _), more| *more != 0 && channel != NOBODY);
            if !collectives.is_empty() || balance.len() > 1 {
                return None;
            }
            let own = balance.into_iter().next();
            if let Some(((channel, _), _)) = own {
                let is_mailbox = self.operations.replies.contains_key(&channel);
                if !is_mailbox || *found.get_or_insert(channel) != channel {
                    return None;
                }
            }
            of_processes.push(own.map_or(0, |(_, more)| more));
        }
        found.map(|mailbox| (mailbox, of_processes))
    }
}

/// Leaves fewer iterations out, of one loop and process, such that as many messages are left out
/// as receives. Returns `None` if that cannot be.
fn even_out(left_out: &mut [Vec<u64>], more: &[Vec<i128>]) -> Option<()> {
    let both = left_out.iter().flatten().zip(more.iter().flatten());
    let sum = both.fold(0i128, |sum, (&count, more)| sum + i128::from(count) * more);
    let candidates = left_out.iter_mut().flatten().zip(more.iter().flatten());
    let fits = |count: u64, more: i128| {
        more.signum() == sum.signum() && sum % more == 0 && i128::from(count) >= sum / more
    };
    if sum != 0 {
        let (count, more) =
            candidates.filter(|(count, more)| fits(**count, **more)).max_by_key(|(count, _)| **count)?;
        *count -= u64::try_from(sum / more).ok()?;
    }
    Some(())
}

fn greatest_divisor(mut one: u128, mut other: u128) -> u128 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
