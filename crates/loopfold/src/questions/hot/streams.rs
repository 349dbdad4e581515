//! Counts the occurrences of subpaths in each stream.
//!
//! An occurrence belongs to one rule, so the count in a stream is the sum over rules of
//! how often the rule has it and how often the stream unfolds the rule. Streams with one
//! root have the same counts; for each different root the rules below it are gone
//! through once, for many subpaths at a time.

use super::best::Candidate;
use super::search::Search;
use super::successors::SuccessorIndex;
use crate::fold::Fold;
use crate::fold::reach::UsesBelow;
use crate::{Result, RuleId, StreamId};
use std::ops::Range;

/// The streams of a subpath and the count in each.
type StreamCounts = Vec<(StreamId, u64)>;

/// Rules of subpaths that are held at a time.
const LARGEST_BATCH: usize = 1 << 22;

/// The streams of each subpath.
pub(super) fn of(
    successors: &SuccessorIndex<'_>,
    search: &mut Search<'_>,
    subpaths: &[Candidate],
) -> Result<Vec<StreamCounts>> {
    let roots = Root::all(successors.fold);
    let mut streams: Vec<StreamCounts> = vec![Vec::new(); subpaths.len()];
    if let [only] = &roots[..] {
        for (subpath, counts) in subpaths.iter().zip(&mut streams) {
            let each = subpath.count / only.streams.len() as u64;
            counts.extend(only.streams.iter().map(|&stream| (stream, each)));
        }
        return Ok(streams);
    }
    let mut uses = UsesBelow::new(successors.fold);
    let mut done = 0;
    while done < subpaths.len() {
        let batch = Batch::locate(successors, search, subpaths, done)?;
        for root in &roots {
            uses.count(root.rule)?;
            for (subpath, rules) in batch.subpaths() {
                let count =
                    rules.iter().map(|&(rule, count)| count * uses.uses(RuleId::from_raw(rule))).sum();
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
    streams: Vec<StreamId>,
}

impl Root {
    fn all(fold: &Fold) -> Vec<Root> {
        let mut order: Vec<StreamId> = fold.stream_ids().collect();
        let rule = |stream: &StreamId| fold.stream(*stream).root();
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
        successors: &SuccessorIndex<'_>,
        search: &mut Search<'_>,
        subpaths: &[Candidate],
        first: usize,
    ) -> Result<Self> {
        let mut batch = Self { range: first..first, rules: Vec::new(), ends: Vec::new() };
        while batch.range.end < subpaths.len() && batch.rules.len() < LARGEST_BATCH {
            let located = match subpaths[batch.range.end].events[..] {
                [symbol] => successors.rules_with(symbol),
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
