//! Sizes and counts of a fold.

use super::path::{Deepest, Functions};
use super::sums::extent;
use crate::fold::{Depth, Fold, measure_rules, symbol_counts};
use crate::{Result, Symbol};

/// Sizes and counts of a fold.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Events of all streams. `None` when more than 64 bits can count.
    pub events: Option<u64>,
    /// Distinct events.
    pub alphabet: usize,
    /// Rules.
    pub rules: usize,
    /// Items of all rules.
    pub items: usize,
    /// How deep loops are nested at most.
    pub depth: u32,
    /// Each stream.
    pub streams: Vec<StreamStatistics>,
    /// How often each event occurs in all streams together, the most frequent first. `None`
    /// when more than 64 bits can count.
    pub counts: Option<Vec<(Symbol, u64)>>,
}

/// Sizes of a stream.
#[derive(Clone, Debug)]
pub struct StreamStatistics {
    /// Its events.
    pub events: u64,
    /// From the earliest start to the latest end of its events, in nanoseconds.
    pub span: Option<i64>,
}

impl Fold {
    /// Sizes and counts; costs one pass over the rules, and one over the times of events where
    /// these are kept.
    pub fn statistics(&self) -> Result<Statistics> {
        let depths = measure_rules(self, &Depth)?;
        let mut streams = Vec::new();
        for stream in self.streams() {
            let (began, ended) = extent(stream.times())?;
            let span = ended.zip(began).and_then(|(ended, began)| ended.checked_sub(began));
            let span = span.or_else(|| stream.sums()?.span());
            streams.push(StreamStatistics { events: self.length(stream.root()), span });
        }
        let counts = symbol_counts(self).ok().map(|counts| {
            let mut counts: Vec<(Symbol, u64)> = self.alphabet().symbols().zip(counts).collect();
            counts.sort_by_key(|&(symbol, count)| (std::cmp::Reverse(count), symbol));
            counts
        });
        Ok(Statistics {
            events: self.events(),
            alphabet: self.alphabet().len(),
            rules: self.rules().len(),
            items: self.items(),
            depth: self.streams().iter().map(|stream| depths[stream.root().index()]).max().unwrap_or(0),
            streams,
            counts,
        })
    }
}

/// Statistics of a trace of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStatistics {
    /// How many functions there are.
    pub functions: u64,
    /// The most calls that are open at a time in a stream.
    pub deepest: u64,
}

impl Fold {
    /// Statistics of a trace of calls; all 0 where there are no functions. Costs one pass over
    /// the rules.
    pub fn call_statistics(&self) -> Result<CallStatistics> {
        let functions = Functions::of(self.alphabet())?.all().len() as u64;
        if functions == 0 {
            return Ok(CallStatistics::default());
        }
        let rules = measure_rules(self, &Deepest::new(self.alphabet()))?;
        let of_streams = self.streams().iter().map(|stream| rules[stream.root().index()].deepest());
        Ok(CallStatistics { functions, deepest: of_streams.max().unwrap_or(0) })
    }
}
