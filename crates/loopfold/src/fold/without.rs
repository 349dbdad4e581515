//! A fold without some of its symbols.
//!
//! Each rule is rewritten once: items of dropped symbols and of rules that become empty
//! disappear, neighbours that become equal are joined to one item, and a rule that becomes a
//! single item is replaced by it, so that the invariants of a fold hold. What was hidden by the
//! dropped events is a loop only if the items show it; folding again finds the others.
//!
//! Starts and durations of the events that remain are unchanged. Sums of durations and metrics
//! stay exact, as they are kept by event; what depends on the events together (self times of
//! nested events, the span, the sums of rules that lost events) is dropped instead of guessed.
//!
//! Cost: O(items), and O(events) for streams that have times.

use super::{Fold, FoldBuilder, FoldedStream, Item, ProducerCount, StreamSums, Target};
use crate::{Error, Result, RuleId, Symbol};

impl Fold {
    /// The same streams without the symbols that are not `kept`; those that are not in the list
    /// are kept.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::trace::{Collector, Event, Sink};
    ///
    /// let mut collector = Collector::default();
    /// let stream = collector.stream("main")?;
    /// for name in ["read", "futex", "write", "read", "write", "futex"] {
    ///     collector.push_event(stream, &Event::named(name))?;
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let fold = fold.without(&[true, false, true])?;
    /// assert_eq!(fold.to_string(), "main: read write read write\n");
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn without(&self, kept: &[bool]) -> Result<Fold> {
        let is_kept = |symbol: Symbol| kept.get(symbol.index()).copied().unwrap_or(true);
        let mut rewriting = Rewriting {
            builder: FoldBuilder::new(self.alphabet().clone()),
            rules: Vec::with_capacity(self.rules().len()),
            changed: Vec::with_capacity(self.rules().len()),
        };
        for rule in self.rules() {
            rewriting.rewrite(self.body(rule), is_kept)?;
        }
        let Rewriting { mut builder, rules, changed } = rewriting;
        let unchanged = |rule: RuleId| match rules[rule.index()] {
            Some(Rewritten { item, root }) if !changed[rule.index()] => root.or(match item.target() {
                Target::Rule(rule) => Some(rule),
                Target::Symbol(_) => None,
            }),
            _ => None,
        };
        let mut partial = Vec::new();
        let mut roots = Vec::new();
        for stream in self.streams() {
            let root = root_of(&mut builder, rules[stream.root().index()])?;
            roots.push(root);
        }
        builder.join_sums_of_rules(self, unchanged)?;
        // A rule that lost events may have become equal to one that did not.
        for rule in self.rules().filter(|rule| changed[rule.index()]) {
            if let Some(Target::Rule(now)) = rules[rule.index()].map(|now| now.item.target()) {
                partial.push(now);
            }
        }
        partial.extend(
            self.streams()
                .iter()
                .zip(&roots)
                .filter(|(old, _)| changed[old.root().index()])
                .map(|(_, &now)| now),
        );
        if let Some(sums) = builder.rule_sums_mut() {
            partial.into_iter().for_each(|rule| sums.forget(rule));
        }
        let mut streams = Vec::with_capacity(roots.len());
        for (stream, root) in self.streams().iter().zip(roots) {
            let is_changed = changed[stream.root().index()];
            let stream = if is_changed { self.stream_without(stream, &is_kept)? } else { stream.clone() };
            streams.push(FoldedStream { root, ..stream });
        }
        forget_self_times(self.streams(), &mut streams);
        streams.into_iter().for_each(|stream| builder.known_stream(stream));
        Ok(builder.finish().canonical())
    }

    /// The times and sums of a stream without what is dropped.
    fn stream_without(
        &self,
        stream: &FoldedStream,
        is_kept: &impl Fn(Symbol) -> bool,
    ) -> Result<FoldedStream> {
        let times = match stream.times().is_empty() {
            true => stream.times().clone(),
            false => stream.times().kept(self.unfold(stream.root()).map(is_kept))?,
        };
        let sums = stream.sums().map(|sums| sums_without(sums, is_kept)).transpose()?;
        let mut left = FoldedStream { times, sums, ..stream.clone() };
        ProducerCount::remove(&mut left.notes);
        Ok(left)
    }
}

/// Self times of some streams would be taken for those of all.
fn forget_self_times(before: &[FoldedStream], now: &mut [FoldedStream]) {
    let has = |stream: &FoldedStream| stream.sums.as_ref().is_some_and(|sums| sums.self_times.is_some());
    if before.iter().zip(&*now).any(|(before, now)| has(before) && !has(now)) {
        now.iter_mut().filter_map(|stream| stream.sums.as_mut()).for_each(|sums| sums.self_times = None);
    }
}

fn sums_without(sums: &StreamSums, is_kept: &impl Fn(Symbol) -> bool) -> Result<StreamSums> {
    let total = |list: &Option<Vec<(Symbol, super::DurationSum)>>| -> i128 {
        list.iter().flatten().map(|(_, sum)| sum.total).sum()
    };
    // Where events do not nest, the self time of an event is its duration, whatever else is there.
    let nests = total(&sums.self_times) != total(&sums.durations);
    let mut left = sums.renamed(|symbol| Some(symbol).filter(|&symbol| is_kept(symbol)))?;
    if nests {
        left.self_times = None;
    }
    (left.began, left.ended) = (None, None);
    Ok(left)
}

/// What became of a rule.
#[derive(Clone, Copy)]
struct Rewritten {
    item: Item,
    /// The rule itself, where it is a single item: only roots are.
    root: Option<RuleId>,
}

/// Rules that are rewritten one after the other.
struct Rewriting {
    builder: FoldBuilder,
    /// For each old rule what it is now. `None` if nothing is left.
    rules: Vec<Option<Rewritten>>,
    /// For each old rule whether it lost events.
    changed: Vec<bool>,
}

impl Rewriting {
    fn rewrite(&mut self, old: &[Item], is_kept: impl Fn(Symbol) -> bool) -> Result<()> {
        let mut body: Vec<Item> = Vec::with_capacity(old.len());
        let mut is_changed = false;
        for &item in old {
            let now = match item.target() {
                Target::Symbol(symbol) => Some(item).filter(|_| is_kept(symbol)),
                Target::Rule(rule) => {
                    is_changed |= self.changed[rule.index()];
                    self.rules[rule.index()].map(|now| repeated(now.item, item.times())).transpose()?
                }
            };
            is_changed |= now.is_none();
            if let Some(now) = now {
                push_joined(&mut body, now, is_changed)?;
            }
        }
        self.changed.push(is_changed);
        let rewritten = match body[..] {
            [] => None,
            // A root of the fold as it was.
            [only] if !is_changed => Some(Rewritten { item: only, root: Some(self.builder.rule(&body)?) }),
            [only] => Some(Rewritten { item: only, root: None }),
            _ => Some(Rewritten { item: Item::new(Target::Rule(self.builder.rule(&body)?), 1), root: None }),
        };
        self.rules.push(rewritten);
        Ok(())
    }
}

fn root_of(builder: &mut FoldBuilder, rewritten: Option<Rewritten>) -> Result<RuleId> {
    match rewritten {
        None => builder.rule(&[]),
        Some(Rewritten { root: Some(root), .. }) => Ok(root),
        Some(Rewritten { item, .. }) => match item.target() {
            Target::Rule(rule) if item.times() == 1 => Ok(rule),
            _ => builder.rule(&[item]),
        },
    }
}

/// An item that repeats.
fn repeated(item: Item, times: u64) -> Result<Item> {
    let times = item.times().checked_mul(times).ok_or_else(too_often)?;
    Ok(Item::new(item.target(), times))
}

/// Appends an item, to the last one if both have the same target and `join`.
pub(super) fn push_joined(body: &mut Vec<Item>, item: Item, join: bool) -> Result<()> {
    match body.last_mut() {
        Some(last) if join && last.target() == item.target() => {
            let times = last.times().checked_add(item.times()).ok_or_else(too_often)?;
            *last = Item::new(item.target(), times);
        }
        _ => body.push(item),
    }
    Ok(())
}

fn too_often() -> Error {
    Error::limit("a loop repeats more often than can be counted")
}
