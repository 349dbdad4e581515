//! Folds streams again by `repair`, together, from the rules of an online folder.
//!
//! Traces of loops are not unfolded: an item that repeats a rule stays one symbol, and the body
//! of that loop is a sequence of its own, written once. The other rules, which are where an online
//! folder has to guess, are resolved. Then the work is O(what is left when loops are written once),
//! which is next to nothing. Control flow, of which nearly everything is left, is unfolded.
//!
//! The result is taken if its items have less entropy, that is, if it makes the smaller archive.
//!
//! Rules are taken in their canonical order, so that the result depends on the streams and their
//! rules, and not on how these were numbered: folds of parts of a trace that were joined in any
//! order become the same.
//!
//! Memory: up to 15 bytes for each item that is left, see [`repair`](super::super::repair).

use super::{Novelty, ONLY_LOOPS, RULES_PAY, SequiturRuns, bits_of_fold, bits_of_rules};
use crate::fold::measure::bottom_up;
use crate::fold::reach::below_marked;
use crate::fold::{Canonical, FoldBuilder, Grammar, Item, Target};
use crate::folders::repair::{Bodies, Sequences};
use crate::folders::{Choice, FoldedRoot, Folder, Repair};
use crate::interrupt::Pace;
use crate::{Error, Fold, Result, RuleId};

/// The most events of streams that are unfolded.
pub(super) const MOST_EVENTS: u64 = 1 << 26;

/// Longer streams are folded again only if no more items are left when loops are written once, so
/// that memory stays flat however long they are.
const FEW_ITEMS: u64 = 1 << 20;

/// An item that repeats a rule at least so often is a loop, where loops are not resolved.
const LOOP: u64 = 4;

/// Loops are resolved too where that makes the sequences no more than so many times longer, or no
/// longer than [`FEW`]: found again, they are aligned with what is around them, and archives of
/// control flow are up to a tenth smaller. Traces of loops would take ten times as long for nothing.
const WORTH: u64 = 8;
const FEW: u64 = 1 << 18;

/// Folds streams again, except long ones in which hardly anything repeats. Returns the rules of
/// all streams, if that makes them smaller.
pub(super) fn refine(fold: &Fold, roots: &[FoldedRoot]) -> Result<Option<(Fold, Vec<FoldedRoot>)>> {
    let rules: Vec<RuleId> = roots.iter().map(|folded| folded.root).collect();
    let (canonical, symbols, rules) = Canonical::of_roots(fold, &rules).into_fold();
    let renumbered = |(folded, &root): (&FoldedRoot, &RuleId)| FoldedRoot { root, ..folded.clone() };
    let roots: Vec<FoldedRoot> = roots.iter().zip(&rules).map(renumbered).collect();
    let Some((refined, roots)) = refine_canonical(&canonical, &roots)? else { return Ok(None) };
    let mut builder = FoldBuilder::default();
    let renamed = builder.append_rules(&refined, |symbol| Ok(symbols[symbol.index()]))?;
    Ok(Some((builder.finish(), roots.into_iter().map(|folded| folded.renamed(&renamed)).collect())))
}

fn refine_canonical(fold: &Fold, roots: &[FoldedRoot]) -> Result<Option<(Fold, Vec<FoldedRoot>)>> {
    let is_refined = |folded: &&FoldedRoot| {
        let by = folded.choice.as_ref().map(|choice| choice.folder);
        by == Some(SequiturRuns.name()) || fold.length(folded.root) < Novelty::BLOCK as u64
    };
    let mut distinct: Vec<RuleId> = Vec::new();
    let mut number = vec![None; fold.rules().len()];
    for folded in roots.iter().filter(is_refined) {
        let number = &mut number[folded.root.index()];
        if number.is_none() {
            *number = Some(distinct.len());
            distinct.push(folded.root);
        }
    }
    let Some(resolved) = Resolved::new(fold, distinct)? else { return Ok(None) };
    let mut builder = FoldBuilder::default();
    let new_roots = resolved.fold(&mut builder)?;
    let refined = builder.finish();
    if bits_of_fold(&refined) >= bits_of_rules(fold, &resolved.rules) {
        return Ok(None);
    }
    let kept: Vec<RuleId> =
        roots.iter().filter(|folded| !is_refined(folded)).map(|folded| folded.root).collect();
    let mut builder = FoldBuilder::default();
    let of_refined = builder.append_rules(&refined, Ok)?;
    let of_kept = append_below(&mut builder, fold, kept)?;
    let folded = |folded: &FoldedRoot| match (number[folded.root.index()], &folded.choice) {
        (Some(number), Some(choice)) if is_refined(&folded) => {
            let root = of_refined[new_roots[number].index()];
            let why = if choice.why == ONLY_LOOPS { RULES_PAY } else { choice.why };
            FoldedRoot { root, choice: Some(Choice { folder: Repair.name(), why }) }
        }
        _ => folded.clone().renamed(&of_kept),
    };
    let folded = roots.iter().map(folded).collect();
    Ok(Some((builder.finish(), folded)))
}

/// Adds the rules below some rules; the identifiers of others are not meant.
fn append_below(builder: &mut FoldBuilder, fold: &Fold, roots: Vec<RuleId>) -> Result<Vec<RuleId>> {
    let mut renamed: Vec<RuleId> = fold.rules().collect();
    let mut body = Vec::new();
    for rule in rules_below(fold, roots)? {
        body.clear();
        body.extend(fold.body(rule).iter().map(|item| match item.target() {
            Target::Symbol(_) => *item,
            Target::Rule(inner) => Item::new(Target::Rule(renamed[inner.index()]), item.times()),
        }));
        renamed[rule.index()] = builder.rule(&body)?;
    }
    Ok(renamed)
}

fn rules_below(fold: &Fold, roots: Vec<RuleId>) -> Result<Vec<RuleId>> {
    let mut marked = vec![false; fold.rules().len()];
    below_marked(fold, roots, |rule| Ok(!std::mem::replace(&mut marked[rule.index()], true)))
}

/// The rule that an item repeats as a loop, if it does so at least so many times.
fn loop_of(item: &Item, least: u64) -> Option<RuleId> {
    match item.target() {
        Target::Rule(rule) if item.times() >= least => Some(rule),
        _ => None,
    }
}

/// Streams and bodies of loops as sequences in which only loops are rules.
struct Resolved<'a> {
    fold: &'a Fold,
    /// The rules of all sequences: those of the streams, then the bodies of loops.
    sequences: Vec<RuleId>,
    streams: usize,
    /// All rules below them.
    rules: Vec<RuleId>,
    /// An item that repeats a rule so often is a loop.
    least: u64,
}

impl<'a> Resolved<'a> {
    /// Returns `None` if there are no streams, or if they are too long.
    fn new(fold: &'a Fold, streams: Vec<RuleId>) -> Result<Option<Self>> {
        let rules = rules_below(fold, streams.clone())?;
        let is_counted = |&rule: &RuleId| fold.body(rule).iter().all(|item| item.times() <= MOST_TIMES);
        if streams.is_empty() || !rules.iter().all(is_counted) {
            return Ok(None);
        }
        let events = streams.iter().map(|&root| fold.length(root)).fold(0, u64::saturating_add);
        let mut resolved = Self { fold, streams: streams.len(), sequences: streams, rules, least: LOOP };
        let items = resolved.find_loops()?;
        if events > MOST_EVENTS {
            return Ok((items <= FEW_ITEMS).then_some(resolved));
        }
        if events <= items.saturating_mul(WORTH).max(FEW) {
            resolved.sequences.truncate(resolved.streams);
            resolved.least = u64::MAX;
        }
        Ok(Some(resolved))
    }

    /// Adds the bodies of loops and returns how many items all sequences have.
    fn find_loops(&mut self) -> Result<u64> {
        let mut is_loop = vec![false; self.fold.rules().len()];
        for item in self.rules.iter().flat_map(|&rule| self.fold.body(rule)) {
            if let Some(rule) = loop_of(item, self.least) {
                is_loop[rule.index()] = true;
            }
        }
        self.sequences.extend(self.rules.iter().copied().filter(|rule| is_loop[rule.index()]));
        let lengths = resolved_lengths(self.fold, self.least)?;
        let all = self.sequences.iter().map(|&rule| lengths[self.fold.rule_node(rule).index()]);
        Ok(all.fold(0, u64::saturating_add))
    }

    /// Adds the rules that `repair` makes and returns those of the streams.
    fn fold(&self, builder: &mut FoldBuilder) -> Result<Vec<RuleId>> {
        let symbols = self.fold.symbol_count();
        let mut sequences = Sequences::new(self.fold.node_count());
        let mut of_rules = vec![usize::MAX; self.fold.rules().len()];
        for (number, &rule) in self.sequences.iter().enumerate() {
            if number >= self.streams {
                of_rules[rule.index()] = number;
            }
            self.write(rule, &mut sequences)?;
            sequences.end();
        }
        let bodies = Bodies { first: symbols as u32, sequences: of_rules };
        sequences.fold(self.streams, &bodies, builder)
    }

    /// Appends the items of a rule, with those of rules that are not loops.
    fn write(&self, rule: RuleId, sequences: &mut Sequences) -> Result<()> {
        let mut run: Option<(u32, u64)> = None;
        let mut open = vec![(self.fold.body(rule), 0, 1)];
        let mut pace = Pace::default();
        while let Some((body, next, times)) = open.last_mut() {
            let Some(item) = body.get(*next) else {
                pace.steps(body.len());
                (*next, *times) = (0, *times - 1);
                if *times == 0 {
                    open.pop();
                }
                continue;
            };
            *next += 1;
            match item.target() {
                Target::Rule(inner) if loop_of(item, self.least).is_none() => {
                    open.push((self.fold.body(inner), 0, item.times()));
                }
                _ => {
                    let (node, times) = (self.fold.item_node(*item).raw(), item.times());
                    match &mut run {
                        Some((last, count)) if *last == node => *count += times,
                        _ => push(run.replace((node, times)), sequences)?,
                    }
                }
            }
        }
        push(run, sequences)
    }
}

/// The most repetitions of one item. At most three such items, at the end of a rule, after it
/// and at the beginning of the next, become one, whose count must have 32 bits.
const MOST_TIMES: u64 = 1 << 30;

fn push(run: Option<(u32, u64)>, sequences: &mut Sequences) -> Result<()> {
    let Some((node, times)) = run else { return Ok(()) };
    let too_often = |_| Error::limit("an event repeats more often than can be counted");
    sequences.push(node, u32::try_from(times).map_err(too_often)?)
}

/// How many items each node has when all rules that are not loops are resolved.
fn resolved_lengths(fold: &Fold, least: u64) -> Result<Vec<u64>> {
    bottom_up(fold, vec![1; fold.symbol_count()], |_, body, lengths: &[u64]| {
        let of_item = |item: &Item| match item.target() {
            Target::Rule(_) if loop_of(item, least).is_none() => {
                item.times().saturating_mul(lengths[fold.item_node(*item).index()])
            }
            _ => 1,
        };
        Ok(body.iter().map(of_item).fold(0, u64::saturating_add))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Symbol;
    use loopfold_testing::{Rng, streams};

    fn folded(streams: &[Vec<Symbol>], folder: &dyn Folder) -> (Fold, Vec<RuleId>) {
        let mut builder = FoldBuilder::default();
        let roots = streams.iter().map(|stream| folder.fold(stream, &mut builder).unwrap()).collect();
        (builder.finish(), roots)
    }

    /// The same with loops that are kept or resolved, of whichever number of iterations.
    #[test]
    fn nothing_is_lost_whichever_loops_are_kept() {
        let mut rng = Rng::new(51);
        for round in 0..3_000 {
            let several: Vec<Vec<Symbol>> = (0..rng.between(1, 3))
                .map(|_| match round % 3 {
                    0 => streams::nests(rng.between(1, 400), rng.next_u64()),
                    _ => streams::small(&mut rng, 200),
                })
                .map(|stream| stream.into_iter().map(Symbol::from_raw).collect())
                .collect();
            let folder: &dyn Folder =
                if rng.one_in(2) { &SequiturRuns } else { &crate::folders::Outermost::default() };
            let (fold, roots) = folded(&several, folder);
            for least in [2, 3, LOOP, u64::MAX] {
                let rules = rules_below(&fold, roots.clone()).unwrap();
                let mut resolved =
                    Resolved { fold: &fold, streams: roots.len(), sequences: roots.clone(), rules, least };
                resolved.find_loops().unwrap();
                let mut builder = FoldBuilder::default();
                let new_roots = resolved.fold(&mut builder).unwrap();
                let refined = builder.finish();
                for (&root, stream) in new_roots.iter().zip(&several) {
                    assert!(refined.unfold(root).eq(stream.iter().copied()), "{least}: {stream:?}");
                }
                if least == u64::MAX {
                    let slices: Vec<&[Symbol]> = several.iter().map(Vec::as_slice).collect();
                    let mut builder = FoldBuilder::default();
                    Repair.fold_together(&slices, &mut builder).unwrap().unwrap();
                    assert_eq!(refined.items(), builder.finish().items(), "{several:?}");
                }
            }
        }
    }

    /// A loop of many iterations costs what its body costs, and is folded as well.
    #[test]
    fn loops_are_not_unfolded() {
        let body = streams::control_flow(2_000, 8);
        let stream: Vec<Symbol> = (0..1_000).flat_map(|_| body.clone()).map(Symbol::from_raw).collect();
        let (fold, roots) = folded(&[stream], &SequiturRuns);
        let resolved = Resolved::new(&fold, roots).unwrap().unwrap();
        assert_eq!(resolved.least, LOOP);
        let mut builder = FoldBuilder::default();
        resolved.fold(&mut builder).unwrap();
        let refined = builder.finish();
        assert!(refined.items() <= fold.items(), "{} {}", refined.items(), fold.items());
    }

    #[test]
    fn counts_beyond_32_bits_stay_as_they_are() {
        let mut builder = FoldBuilder::default();
        let symbol = Target::Symbol(Symbol::from_raw(0));
        let root = builder.rule(&[Item::new(symbol, 1 << 40)]).unwrap();
        assert!(Resolved::new(&builder.finish(), vec![root]).unwrap().is_none());
    }
}
