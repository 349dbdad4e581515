//! The minimum repetition representation (Nakamura et al.): no nest of loops for the stream has
//! fewer written events.
//!
//! Dynamic programming over all stretches. A nest of `start..end` ends in an event or
//! in a loop, and a loop that ends at `end` lies in a run; so with `least[start][end]`
//! for the fewest events, and the runs of the stream,
//!
//! ```text
//! least[s][e] = min(least[s][e-1] + 1,
//!                   least[s][e - k·p] + least[e-p][e]   for every run of period p there, k ≥ 2)
//! ```
//!
//! The smallest `least[s][e - k·p]` over all k follows from the one for `e - p`, so each run
//! costs one step, and at most logarithmically many runs have two periods that end at the same
//! place. Time O(n² log n), memory n² bytes: a reference for the other folders on short
//! streams.

use super::{Folder, MinTimes, Settings};
use crate::fold::{FoldBuilder, Item};
use crate::interrupt;
use crate::repeats::{Run, Runs};
use crate::{Error, Result, RuleId, Symbol};

/// The longest stream that is not refused: 270 MB, and a second, or ten where there are
/// as many runs as in a Fibonacci word.
const LONGEST: usize = 1 << 14;

/// Finds the smallest nest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Minimum {
    min_times: MinTimes,
}

impl Minimum {
    setters! {
        /// How many iterations a loop must have.
        min_times: MinTimes,
    }
}

impl Folder for Minimum {
    fn name(&self) -> &'static str {
        "minimum"
    }

    fn describe(&self) -> String {
        Settings::from(self.min_times).describe(self.name())
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        if stream.len() > LONGEST {
            return Err(Error::limit(format_args!(
                "a stream of {} events; the minimum folder takes at most {LONGEST}, since its time grows \
                 with the square; try outermost",
                stream.len()
            )));
        }
        let runs = Runs::of(bytemuck::TransparentWrapper::peel_slice(stream)).expand();
        let table = Table::new(stream.len(), &runs, self.min_times.get() as usize);
        let items = table.items(stream, 0, stream.len(), builder)?;
        builder.rule(&items)
    }
}

struct Table {
    length: usize,
    /// The fewest events of `start..end`, row by row from `end = start`.
    least: Vec<u16>,
    /// For each end the runs that have a loop of enough iterations ending there, shortest
    /// period first.
    loops_ending: Vec<Vec<Ending>>,
    min_times: usize,
}

#[derive(Clone, Copy)]
struct Ending {
    run_start: usize,
    period: usize,
    /// Where the best beginnings of loops in this run are kept, one for each position
    /// within the period.
    slot: usize,
    /// The fewest events of the body, once they are known.
    body: u16,
}

impl Table {
    fn new(length: usize, runs: &[Run], min_times: usize) -> Self {
        let mut loops_ending: Vec<Vec<Ending>> = vec![Vec::new(); length + 1];
        let mut slots = 0;
        for run in runs {
            let (start, end, period) = (run.start as usize, run.end as usize, run.period as usize);
            for (at, endings) in
                loops_ending.iter_mut().enumerate().take(end + 1).skip(start + min_times * period)
            {
                let slot = slots + (at - start) % period;
                endings.push(Ending { run_start: start, period, slot, body: u16::MAX });
            }
            slots += period;
        }
        for endings in &mut loops_ending {
            endings.sort_unstable_by_key(|ending| ending.period);
        }
        let mut table =
            Self { length, least: vec![0; (length + 1) * (length + 2) / 2], loops_ending, min_times };
        table.fill(slots);
        table
    }

    fn fill(&mut self, slots: usize) {
        let mut best_beginning = vec![u16::MAX; slots];
        for start in (0..self.length).rev() {
            interrupt::poll();
            best_beginning.fill(u16::MAX);
            let row = self.row(start);
            for end in start + 1..=self.length {
                let mut least = self.least[row + end - 1 - start] + 1;
                for ending in &mut self.loops_ending[end] {
                    let shortest = self.min_times * ending.period;
                    if end < shortest + start.max(ending.run_start) {
                        continue;
                    }
                    let best = &mut best_beginning[ending.slot];
                    *best = (*best).min(self.least[row + end - shortest - start]);
                    if ending.body == u16::MAX {
                        // Its row is done: it begins further right.
                        ending.body = self.least[row_of(self.length, end - ending.period) + ending.period];
                    }
                    least = least.min(*best + ending.body);
                }
                self.least[row + end - start] = least;
            }
        }
    }

    /// Where the row of a start begins.
    fn row(&self, start: usize) -> usize {
        row_of(self.length, start)
    }

    fn least(&self, start: usize, end: usize) -> u16 {
        self.least[self.row(start) + end - start]
    }

    /// The items of a smallest nest: where several are equally small, with loops rather
    /// than events, of short bodies and many iterations.
    fn items(
        &self,
        stream: &[Symbol],
        start: usize,
        mut end: usize,
        builder: &mut FoldBuilder,
    ) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        while end > start {
            match self.last_loop(start, end) {
                None => {
                    items.push(Item::once(stream[end - 1]));
                    end -= 1;
                }
                Some((period, times)) => {
                    // A body is at most half as long as what it repeats in: no deep recursion.
                    let body = self.items(stream, end - period, end, builder)?;
                    items.push(builder.repeat(&body, times as u64)?);
                    end -= period * times;
                }
            }
        }
        items.reverse();
        Ok(items)
    }

    fn last_loop(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        for ending in &self.loops_ending[end] {
            let most = (end - start.max(ending.run_start).min(end)) / ending.period;
            let body = self.least(end - ending.period, end);
            for times in (self.min_times..=most).rev() {
                if self.least(start, end - times * ending.period) + body == self.least(start, end) {
                    return Some((ending.period, times));
                }
            }
        }
        None
    }
}

/// Where the row of a start begins in the table of a stream of this length.
fn row_of(length: usize, start: usize) -> usize {
    start * (2 * length + 3 - start) / 2
}
