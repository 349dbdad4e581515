//! In which streams subpaths occur, and how often in each.
//!
//! An occurrence belongs to one rule, so the count in a stream is the sum over rules of
//! how often the rule has it and how often the stream unfolds the rule. Streams with one
//! root have the same counts; for each different root the rules below it are gone
//! through once, for many subpaths at a time.

use super::best::Candidate;
use super::followers::Followers;
use super::search::Search;
use crate::fold::{Fold, Target};
use crate::{Result, RuleId};
use std::ops::Range;

/// The streams of a subpath, by their indices, and the count in each.
type StreamCounts = Vec<(usize, u64)>;

/// Rules of subpaths that are held at a time.
const LARGEST_BATCH: usize = 1 << 22;

/// The streams of each subpath.
pub(super) fn of(
    followers: &Followers<'_>,
    search: &mut Search<'_>,
    subpaths: &[Candidate],
) -> Result<Vec<StreamCounts>> {
    let roots = Root::all(followers.fold);
    let mut streams: Vec<StreamCounts> = vec![Vec::new(); subpaths.len()];
    if let [only] = &roots[..] {
        for (subpath, counts) in subpaths.iter().zip(&mut streams) {
            let each = subpath.count / only.streams.len() as u64;
            counts.extend(only.streams.iter().map(|&stream| (stream, each)));
        }
        return Ok(streams);
    }
    let mut uses = UsesBelow::new(followers.fold);
    let mut done = 0;
    while done < subpaths.len() {
        let batch = Batch::locate(followers, search, subpaths, done)?;
        for root in &roots {
            uses.unfold(root.rule);
            for (subpath, rules) in batch.subpaths() {
                let count = rules.iter().map(|&(rule, count)| count * uses.of(rule)).sum();
                if count > 0 {
                    streams[subpath].extend(root.streams.iter().map(|&stream| (stream, count)));
                }
            }
        }
        done = batch.range.end;
    }
    streams.iter_mut().for_each(|streams| streams.sort_unstable());
    Ok(streams)
}

/// A rule and the streams that unfold from it.
struct Root {
    rule: RuleId,
    streams: Vec<usize>,
}

impl Root {
    fn all(fold: &Fold) -> Vec<Root> {
        let mut order: Vec<usize> = (0..fold.streams().len()).collect();
        let rule = |stream: &usize| fold.streams()[*stream].root();
        order.sort_by_key(rule);
        order
            .chunk_by(|a, b| rule(a) == rule(b))
            .map(|same| Root { rule: rule(&same[0]), streams: same.to_vec() })
            .collect()
    }
}

/// Some subpaths and the rules they occur in.
struct Batch {
    range: Range<usize>,
    /// The rules of all of them, and how often each has the subpath.
    rules: Vec<(u32, u64)>,
    ends: Vec<usize>,
}

impl Batch {
    /// As many as fit, one at least.
    fn locate(
        followers: &Followers<'_>,
        search: &mut Search<'_>,
        subpaths: &[Candidate],
        first: usize,
    ) -> Result<Self> {
        let mut batch = Self { range: first..first, rules: Vec::new(), ends: Vec::new() };
        while batch.range.end < subpaths.len() && batch.rules.len() < LARGEST_BATCH {
            let located = match subpaths[batch.range.end].events[..] {
                [symbol] => followers.rules_with(symbol),
                ref events => search.locate(events)?,
            };
            batch.rules.extend(located);
            batch.ends.push(batch.rules.len());
            batch.range.end += 1;
        }
        Ok(batch)
    }

    fn subpaths(&self) -> impl Iterator<Item = (usize, &[(u32, u64)])> {
        let start = |at: usize| if at == 0 { 0 } else { self.ends[at - 1] };
        self.range
            .clone()
            .enumerate()
            .map(move |(at, subpath)| (subpath, &self.rules[start(at)..self.ends[at]]))
    }
}

/// How often rules are unfolded when one rule is.
struct UsesBelow<'a> {
    fold: &'a Fold,
    uses: Vec<u64>,
    /// The rules that are.
    reached: Vec<u32>,
}

impl<'a> UsesBelow<'a> {
    fn new(fold: &'a Fold) -> Self {
        Self { fold, uses: vec![0; fold.rules().len()], reached: Vec::new() }
    }

    fn of(&self, rule: u32) -> u64 {
        self.uses[rule as usize]
    }

    /// Takes another rule. No use is more than [`rule_uses`](crate::fold::rule_uses)
    /// counted for all streams, so nothing overflows.
    fn unfold(&mut self, root: RuleId) {
        for rule in self.reached.drain(..) {
            self.uses[rule as usize] = 0;
        }
        self.reach(root);
        // Rules refer to earlier ones: the latest first, and each is complete in its turn.
        self.reached.sort_unstable_by(|a, b| b.cmp(a));
        self.uses[root.index()] = 1;
        for at in 0..self.reached.len() {
            let rule = RuleId::from_raw(self.reached[at]);
            let uses = self.uses[rule.index()];
            for item in self.fold.body(rule) {
                if let Target::Rule(inner) = item.target() {
                    self.uses[inner.index()] += uses * item.times();
                }
            }
        }
    }

    /// Finds the rules below a rule; their uses serve as a mark and are 0 again after.
    fn reach(&mut self, root: RuleId) {
        self.reached.push(root.raw());
        self.uses[root.index()] = 1;
        let mut looked_at = 0;
        while let Some(&rule) = self.reached.get(looked_at) {
            looked_at += 1;
            for item in self.fold.body(RuleId::from_raw(rule)) {
                if let Target::Rule(inner) = item.target()
                    && self.uses[inner.index()] == 0
                {
                    self.uses[inner.index()] = 1;
                    self.reached.push(inner.raw());
                }
            }
        }
        for &rule in &self.reached {
            self.uses[rule as usize] = 0;
        }
    }
}
