//! Finds all hot subpaths exactly, by extending each from its first event, or from the first
//! events that it has at least (see [`Windows`]).
//!
//! A depth-first search over continuations, with the ends of their occurrences (see [`Ends`]);
//! only the first events of rules are unfolded. A subpath is pruned if its count is too small
//! for any continuation of at most the greatest length to be hot; so is a hot one, unless all
//! are wanted.
//!
//! Each rule is left at its end at most once for each length, so the cost is bounded by items
//! times length, times how far subpaths are followed into a part that they did not begin in;
//! with limits such as a thousandth of all events nearly everything is pruned after a few
//! events. A fold without structure is sorted as a plain stream would be, by one event after
//! another. Memory: that of [`SuccessorIndex`], and the ends of the prefixes of the current
//! subpath.

use super::best::Best;
use super::chunks::WindowEnd;
use super::costs::reaches;
use super::ends::{Ends, Mark, Span};
use super::successors::SuccessorIndex;
use super::upper_bound::UpperBound;
use super::windows::Windows;
use crate::fold::Grammar;
use crate::interrupt;
use crate::parallel::parallel_map;
use crate::{Result, RuleId};
use std::ops::Range;

/// The parameters of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) shortest: usize,
    pub(super) longest: usize,
    /// The least cost that is hot.
    pub(super) limit: u128,
    /// Also those that continue from a hot one.
    pub(super) all: bool,
    /// The cost of the most expensive event.
    pub(super) max_event_cost: u64,
}

impl Wanted {
    /// Whether a subpath is hot.
    fn is_hot(&self, length: usize, count: u64, cost: u128) -> bool {
        length >= self.shortest && reaches(count, cost, self.limit)
    }

    /// Whether a subpath that continues from this one may be wanted: it occurs no more often,
    /// and its further events cost no more than the most expensive one.
    fn goes_on(&self, length: usize, count: u64, cost: u128) -> bool {
        let more = (self.longest - length) as u128 * u128::from(self.max_event_cost);
        length < self.longest && reaches(count, cost.saturating_add(more), self.limit)
    }

    /// Offers a subpath if it is hot. Returns whether those that continue from it are to be
    /// examined.
    fn look_at(&self, events: &[u32], count: u64, cost: u128, best: &mut Best) -> bool {
        let hot = self.is_hot(events.len(), count, cost);
        if hot {
            best.offer(events, count, cost);
        }
        (self.all || !hot) && self.goes_on(events.len(), count, cost)
    }
}

/// Offers every subpath that is wanted, searching on so many threads. `windows` are those with which
/// the search begins, if it does not begin with single events.
pub(super) fn run<'a>(
    successors: &'a SuccessorIndex<'a>,
    costs: &'a [u64],
    windows: Option<&Windows<'_>>,
    wanted: &Wanted,
    threads: usize,
    best: &mut Best,
) -> Result<()> {
    let bound = UpperBound::new(successors, costs, wanted.longest, wanted.limit)?;
    let search = || {
        let mut search = Search::new(successors, costs, wanted.longest);
        search.set_bound(bound.as_ref());
        search
    };
    let found = match windows {
        None => {
            let portions = portions(successors.fold.symbol_count(), threads);
            let of_portion = |symbols: &Range<u32>| {
                let mut found = best.another();
                search().begin_with_events(symbols.clone(), wanted, &mut found)?;
                Ok(found)
            };
            parallel_map(&portions, threads, of_portion)
        }
        Some(windows) => {
            let open = search().open_windows(windows, wanted, best);
            let groups: Vec<&[u32]> = windows.groups(&open, threads).collect();
            let of_group = |group: &&[u32]| {
                let mut found = best.another();
                search().begin_with_windows(windows, group, wanted, &mut found)?;
                Ok(found)
            };
            parallel_map(&groups, threads, of_group)
        }
    };
    for found in found {
        best.add(found?);
    }
    Ok(())
}

/// Symbols that one thread begins with. Where there is more than one, portions are small, as what
/// continues from a symbol may be most of the work.
fn portions(symbols: usize, threads: usize) -> Vec<Range<u32>> {
    let portion = if threads > 1 { symbols.div_ceil(8 * threads).max(1) } else { symbols.max(1) };
    let portion = |start: usize| start as u32..symbols.min(start + portion) as u32;
    (0..symbols).step_by(portion(0).len().max(1)).map(portion).collect()
}

/// A subpath whose continuations are still to be examined.
#[derive(Clone, Copy, Debug)]
struct Open {
    symbol: u32,
    length: usize,
    /// The cost of its events.
    cost: u128,
    ends: Span,
    /// Where its ends end.
    mark: Mark,
}

/// The search and its memory, which is used again for every subpath.
pub(super) struct Search<'a> {
    successors: &'a SuccessorIndex<'a>,
    costs: &'a [u64],
    /// The cost of every event, if all cost the same.
    each: Option<u64>,
    ends: Ends<'a>,
    /// The present subpath.
    events: Vec<u32>,
    open: Vec<Open>,
    /// For each symbol how often it follows the present subpath.
    counts: Vec<u64>,
    /// For each symbol what is ahead of these occurrences.
    aheads: Vec<f64>,
    /// The symbols that do.
    following: Vec<u32>,
}

impl<'a> Search<'a> {
    /// A search for subpaths of at most `longest` events; `costs` says what each costs.
    pub(super) fn new(successors: &'a SuccessorIndex<'a>, costs: &'a [u64], longest: usize) -> Self {
        let symbols = successors.fold.symbol_count();
        Self {
            successors,
            costs,
            each: costs.first().copied().filter(|each| costs.iter().all(|cost| cost == each)),
            ends: Ends::new(successors, longest),
            events: Vec::new(),
            open: Vec::new(),
            counts: vec![0; symbols],
            aheads: vec![0.0; symbols],
            following: Vec::new(),
        }
    }

    /// From now on, subpaths are left out that this bound says cannot become hot.
    fn set_bound(&mut self, bound: Option<&'a UpperBound<'a>>) {
        self.ends.set_bound(bound);
    }

    /// Offers every subpath that is wanted and begins with one of these events.
    fn begin_with_events(&mut self, symbols: Range<u32>, wanted: &Wanted, best: &mut Best) -> Result<()> {
        for symbol in symbols {
            let count = self.successors.symbol_counts()[symbol as usize];
            let cost = self.cost_of(symbol);
            self.events.clear();
            self.events.push(symbol);
            if count == 0 || !wanted.look_at(&self.events, count, cost, best) {
                continue;
            }
            self.ends.begin(symbol);
            self.branch(wanted, cost, best)?;
            self.continue_all(wanted, best)?;
        }
        Ok(())
    }

    /// Offers windows that are hot, and returns those from which to continue.
    fn open_windows(&self, windows: &Windows<'_>, wanted: &Wanted, best: &mut Best) -> Vec<u32> {
        let is_open = |&window: &u32| {
            let events = windows.events(window as usize);
            wanted.look_at(events, windows.count(window as usize), self.cost_of_all(events), best)
        };
        (0..windows.len() as u32).filter(is_open).collect()
    }

    /// Offers every subpath that is wanted and continues from one of these windows.
    fn begin_with_windows(
        &mut self,
        windows: &Windows<'_>,
        group: &[u32],
        wanted: &Wanted,
        best: &mut Best,
    ) -> Result<()> {
        let mut ends = windows.ends(group);
        for (at, &window) in group.iter().enumerate() {
            self.begin_at(windows.events(window as usize), ends.of(at))?;
            self.continue_all(wanted, best)?;
        }
        Ok(())
    }

    /// Opens a window if it can become hot.
    fn begin_at(&mut self, events: &[u32], ends: &mut [WindowEnd]) -> Result<()> {
        let Some(&symbol) = events.last() else { return Ok(()) };
        self.events.clear();
        self.events.extend_from_slice(events);
        let (ends, ahead) = self.ends.begin_at(ends)?;
        let (length, cost) = (events.len(), self.cost_of_all(events));
        let count = self.ends.count(ends);
        if self.ends.bound().is_none_or(|bound| bound.suffices(count, cost, ahead)) {
            self.open.push(Open { symbol, length, cost, ends, mark: self.ends.mark() });
        }
        Ok(())
    }

    /// Examines what continues from open subpaths, until there are none.
    fn continue_all(&mut self, wanted: &Wanted, best: &mut Best) -> Result<()> {
        while let Some(subpath) = self.open.pop() {
            interrupt::poll();
            self.events.truncate(subpath.length - 1);
            self.events.push(subpath.symbol);
            self.ends.forget(subpath.mark);
            self.continue_from(subpath, wanted, best)?;
        }
        Ok(())
    }

    fn cost_of_all(&self, events: &[u32]) -> u128 {
        events.iter().map(|&event| self.cost_of(event)).sum()
    }

    fn cost_of(&self, symbol: u32) -> u128 {
        self.costs[symbol as usize].into()
    }

    /// The rules in which a subpath of at least two events lies in more than one item or
    /// repetition, and how often it does so each time the rule is unfolded.
    pub(super) fn locate(&mut self, events: &[u32]) -> Result<Vec<(u32, u64)>> {
        let Some((&first, rest)) = events.split_first() else { return Ok(Vec::new()) };
        self.ends.begin(first);
        let mut last = (0, 0);
        for (index, &symbol) in rest.iter().enumerate() {
            if index > 0 {
                self.ends.gather(last);
            }
            self.ends.keep_steps(|next| next == symbol);
            last = self.ends.take(0..self.ends.steps().len())?;
        }
        Ok(self.ends.places(last).map(|place| self.successors.count_in_rule(place)).collect())
    }

    /// How often a subpath occurs.
    pub(super) fn count(&mut self, events: &[u32]) -> Result<u64> {
        let located = match events {
            [symbol] => self.successors.rules_with(*symbol),
            events => self.locate(events)?,
        };
        Ok(located.iter().map(|&(rule, count)| count * self.successors.uses(RuleId::from_raw(rule))).sum())
    }

    /// Looks at everything that continues from the present subpath.
    fn continue_from(&mut self, mut subpath: Open, wanted: &Wanted, best: &mut Best) -> Result<()> {
        if self.walk(&mut subpath, wanted, best)? {
            self.ends.gather(subpath.ends);
            self.branch(wanted, subpath.cost, best)?;
        }
        Ok(())
    }

    /// Takes the events that follow the present subpath in any case. Returns whether to
    /// continue after them.
    fn walk(&mut self, subpath: &mut Open, wanted: &Wanted, best: &mut Best) -> Result<bool> {
        let Some(mut walk) = self.ends.walk(subpath.ends) else { return Ok(true) };
        // Cheaper than to multiply at every event.
        let hot_cost = wanted.limit.div_ceil(u128::from(walk.count()));
        loop {
            let events = self.ends.events_of(&mut walk);
            if events.is_empty() {
                break;
            }
            let events = &events[..events.len().min(wanted.longest - self.events.len())];
            // Too short a subpath is not hot, whatever it costs.
            let at_least = wanted.shortest.saturating_sub(self.events.len()).max(1);
            let missing = hot_cost.saturating_sub(subpath.cost);
            let (taken, cost) = match self.each {
                Some(each) => equal_costs(each, events.len(), missing, at_least),
                None => costs_of(self.costs, events, missing, at_least),
            };
            self.events.extend_from_slice(&events[..taken]);
            walk.advance(taken);
            subpath.cost += cost;
            if cost >= missing && taken >= at_least {
                best.offer(&self.events, walk.count(), subpath.cost);
                if !wanted.all {
                    return Ok(false);
                }
            }
            if self.events.len() == wanted.longest {
                return Ok(false);
            }
        }
        let count = walk.count();
        self.ends.end_walk(walk, subpath.ends)?;
        Ok(wanted.goes_on(self.events.len(), count, subpath.cost))
    }

    /// Looks at the present subpath, whose events cost `cost`, with each event that can follow,
    /// and opens those from which to continue.
    fn branch(&mut self, wanted: &Wanted, cost: u128, best: &mut Best) -> Result<()> {
        for step in self.ends.steps() {
            let count = &mut self.counts[step.symbol as usize];
            if *count == 0 {
                self.following.push(step.symbol);
            }
            *count += step.count;
            self.aheads[step.symbol as usize] += step.ahead;
        }
        let mut left_out = 0;
        for &symbol in &self.following {
            let count = &mut self.counts[symbol as usize];
            let ahead = std::mem::take(&mut self.aheads[symbol as usize]);
            let cost = cost + u128::from(self.costs[symbol as usize]);
            self.events.push(symbol);
            if !wanted.look_at(&self.events, *count, cost, best)
                || self.ends.bound().is_some_and(|all| !all.suffices(*count, cost, ahead))
            {
                *count = 0;
                left_out += 1;
            }
            self.events.pop();
        }
        if left_out > 0 {
            self.ends.keep_steps(|symbol| self.counts[symbol as usize] > 0);
        }
        if self.following.len() - left_out > 1 {
            self.ends.sort_steps();
        }
        self.open_steps(cost)?;
        for symbol in self.following.drain(..) {
            self.counts[symbol as usize] = 0;
        }
        Ok(())
    }

    /// Opens the present subpath with each event that there are steps for.
    fn open_steps(&mut self, cost: u128) -> Result<()> {
        let mut start = 0;
        while let Some(step) = self.ends.steps().get(start) {
            let symbol = step.symbol;
            let same = self.ends.steps()[start..].iter().take_while(|step| step.symbol == symbol).count();
            let ends = self.ends.take(start..start + same)?;
            let (length, cost) = (self.events.len() + 1, cost + self.cost_of(symbol));
            self.open.push(Open { symbol, length, cost, ends, mark: self.ends.mark() });
            start += same;
        }
        Ok(())
    }
}

/// How many of some events to take, at least `at_least`, until they cost `missing`, and
/// what they cost, where each costs the same.
fn equal_costs(each: u64, events: usize, missing: u128, at_least: usize) -> (usize, u128) {
    let needed = missing.div_ceil(u128::from(each.max(1)));
    let taken = events.min(at_least.max(usize::try_from(needed).unwrap_or(usize::MAX)));
    (taken, taken as u128 * u128::from(each))
}

/// The same where costs differ.
fn costs_of(costs: &[u64], events: &[u32], missing: u128, at_least: usize) -> (usize, u128) {
    let mut sum = 0;
    for (taken, &event) in (1..).zip(events) {
        sum += u128::from(costs[event as usize]);
        if sum >= missing && taken >= at_least {
            return (taken, sum);
        }
    }
    (events.len(), sum)
}

#[cfg(test)]
mod tests {
    use super::super::successors::Items;
    use super::*;
    use crate::Symbol;
    use crate::fold::{Fold, FoldBuilder, FoldedStream};
    use crate::folders::{Folder, SequiturRuns};
    use crate::trace::{Alphabet, Event};
    use loopfold_testing::streams;

    fn fold_of(stream: &[u32], folder: &dyn Folder) -> Fold {
        let mut alphabet = Alphabet::default();
        let intern = |&raw: &u32| alphabet.intern(&Event::integer(raw.into()), None).unwrap();
        let symbols: Vec<Symbol> = stream.iter().map(intern).collect();
        let mut builder = FoldBuilder::new(alphabet);
        let root = folder.fold(&symbols, &mut builder).unwrap();
        builder.stream(FoldedStream::new("s", folder.name(), root));
        builder.finish()
    }

    /// Without room for the first events of rules, each is looked up, with the same result.
    #[test]
    fn little_memory_changes_nothing() {
        let fold = fold_of(&streams::control_flow(20_000, 3), &SequiturRuns);
        let items = Items::new(&fold).unwrap();
        let successors = SuccessorIndex::new(&items);
        let costs: Vec<u64> = (0..fold.alphabet().len() as u64).map(|symbol| 1 + symbol % 5).collect();
        let wanted = Wanted { shortest: 8, longest: 60, limit: 100, all: false, max_event_cost: 5 };
        let found = |room: usize| {
            let bound = UpperBound::new(&successors, &costs, wanted.longest, wanted.limit).unwrap();
            let windows = Windows::new(&items, wanted.shortest, 1).unwrap().unwrap();
            let mut search = Search::new(&successors, &costs, wanted.longest);
            search.set_bound(bound.as_ref());
            search.ends.prefixes.set_room(room);
            let mut best = Best::new(usize::MAX);
            let open = search.open_windows(&windows, &wanted, &mut best);
            search.begin_with_windows(&windows, &open, &wanted, &mut best).unwrap();
            best.finish()
        };
        let expected = found(usize::MAX);
        assert!(expected.0 > 20, "{}", expected.0);
        for room in [0, 100] {
            assert_eq!(found(room), expected);
        }
    }
}
