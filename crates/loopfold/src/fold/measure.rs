//! Measures: values that can be joined and repeated, computed once per rule.
//!
//! One pass over the rules, each after the rules it is made of, computes any measure
//! in (items × the cost of a join) plus the logarithm of each count, however long the
//! trace is.

use super::{Fold, Target};
use crate::{Error, Result, RuleId, Symbol};

/// A value for every stretch of a trace, which joining two stretches joins.
///
/// `join` must be associative and `empty` its neutral element; then the value of a
/// stretch does not depend on how the fold divides it.
pub trait Measure {
    /// The value of a stretch.
    type Value: Clone;

    /// The value of no events.
    fn empty(&self) -> Self::Value;

    /// The value of one event.
    fn symbol(&self, symbol: Symbol) -> Self::Value;

    /// The value of two stretches, one after the other.
    fn join(&self, left: &Self::Value, right: &Self::Value) -> Result<Self::Value>;

    /// The value of a stretch repeated `times` times: by squaring, unless the measure
    /// knows better.
    fn repeat(&self, value: &Self::Value, times: u64) -> Result<Self::Value> {
        let (mut square, mut rest) = (value.clone(), times);
        let mut result = self.empty();
        loop {
            if rest & 1 == 1 {
                result = self.join(&result, &square)?;
            }
            rest >>= 1;
            if rest == 0 {
                return Ok(result);
            }
            square = self.join(&square, &square)?;
        }
    }
}

/// The measure of every rule, by its index.
pub fn measure_rules<M: Measure>(fold: &Fold, measure: &M) -> Result<Vec<M::Value>> {
    let mut values: Vec<M::Value> = Vec::with_capacity(fold.rules().len());
    for rule in fold.rules() {
        let mut value = measure.empty();
        for item in fold.body(rule) {
            let repeated = match item.target() {
                Target::Symbol(symbol) => measure.repeat(&measure.symbol(symbol), item.times())?,
                Target::Rule(rule) => measure.repeat(&values[rule.index()], item.times())?,
            };
            value = measure.join(&value, &repeated)?;
        }
        values.push(value);
    }
    Ok(values)
}

fn add(left: u64, right: u64) -> Result<u64> {
    left.checked_add(right).ok_or_else(too_many)
}

fn multiply(left: u64, right: u64) -> Result<u64> {
    left.checked_mul(right).ok_or_else(too_many)
}

fn too_many() -> Error {
    Error::limit("more than 2^64 events cannot be counted")
}

/// How many events a stretch is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Length;

impl Measure for Length {
    type Value = u64;
    fn empty(&self) -> u64 {
        0
    }
    fn symbol(&self, _: Symbol) -> u64 {
        1
    }
    fn join(&self, left: &u64, right: &u64) -> Result<u64> {
        add(*left, *right)
    }
    fn repeat(&self, value: &u64, times: u64) -> Result<u64> {
        multiply(*value, times)
    }
}

/// How often one event occurs in a stretch.
#[derive(Clone, Copy, Debug)]
pub struct Occurrences(pub Symbol);

impl Measure for Occurrences {
    type Value = u64;
    fn empty(&self) -> u64 {
        0
    }
    fn symbol(&self, symbol: Symbol) -> u64 {
        u64::from(symbol == self.0)
    }
    fn join(&self, left: &u64, right: &u64) -> Result<u64> {
        add(*left, *right)
    }
    fn repeat(&self, value: &u64, times: u64) -> Result<u64> {
        multiply(*value, times)
    }
}

/// How deep loops are nested in a stretch. What repeats is one loop deeper than its
/// body, so this is a property of the fold, not of the trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Depth;

impl Measure for Depth {
    type Value = u32;
    fn empty(&self) -> u32 {
        0
    }
    fn symbol(&self, _: Symbol) -> u32 {
        0
    }
    fn join(&self, left: &u32, right: &u32) -> Result<u32> {
        Ok(*left.max(right))
    }
    fn repeat(&self, value: &u32, times: u64) -> Result<u32> {
        Ok(value.saturating_add(u32::from(times > 1)))
    }
}

/// How many events are written in the nest of a stretch: each loop body once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Folded;

impl Measure for Folded {
    type Value = u64;
    fn empty(&self) -> u64 {
        0
    }
    fn symbol(&self, _: Symbol) -> u64 {
        1
    }
    fn join(&self, left: &u64, right: &u64) -> Result<u64> {
        add(*left, *right)
    }
    fn repeat(&self, value: &u64, _: u64) -> Result<u64> {
        Ok(*value)
    }
}

/// How much of a stretch lies in loops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage;

/// The value of [`Coverage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Events of the stretch.
    pub events: u64,
    /// Events that lie in some loop.
    pub in_loops: u64,
    /// Events of the loop that spans most.
    pub in_main_loop: u64,
}

impl Measure for Coverage {
    type Value = Covered;
    fn empty(&self) -> Covered {
        Covered::default()
    }
    fn symbol(&self, _: Symbol) -> Covered {
        Covered { events: 1, ..Covered::default() }
    }
    fn join(&self, left: &Covered, right: &Covered) -> Result<Covered> {
        Ok(Covered {
            events: add(left.events, right.events)?,
            in_loops: add(left.in_loops, right.in_loops)?,
            in_main_loop: left.in_main_loop.max(right.in_main_loop),
        })
    }
    fn repeat(&self, value: &Covered, times: u64) -> Result<Covered> {
        if times == 1 {
            return Ok(*value);
        }
        let events = multiply(value.events, times)?;
        Ok(Covered { events, in_loops: events, in_main_loop: events })
    }
}

/// How often each rule is unfolded when all streams are: from the roots down.
pub fn rule_uses(fold: &Fold) -> Result<Vec<u64>> {
    let mut uses = vec![0u64; fold.rules().len()];
    for stream in fold.streams() {
        let uses = &mut uses[stream.root().index()];
        *uses = add(*uses, 1)?;
    }
    for rule in fold.rules().rev() {
        let times_used = uses[rule.index()];
        if times_used == 0 {
            continue;
        }
        for item in fold.body(rule) {
            if let Target::Rule(inner) = item.target() {
                let inner = &mut uses[inner.index()];
                *inner = add(*inner, multiply(times_used, item.times())?)?;
            }
        }
    }
    Ok(uses)
}

/// How often each symbol occurs in all streams together.
pub fn symbol_counts(fold: &Fold) -> Result<Vec<u64>> {
    symbol_counts_of(fold, &rule_uses(fold)?)
}

/// How often each symbol occurs when each rule is unfolded as often as `uses` says.
pub(crate) fn symbol_counts_of(fold: &Fold, uses: &[u64]) -> Result<Vec<u64>> {
    let mut counts = vec![0u64; fold.alphabet().len()];
    for rule in fold.rules() {
        for item in fold.body(rule) {
            if let Target::Symbol(symbol) = item.target() {
                let count = &mut counts[symbol.index()];
                *count = add(*count, multiply(uses[rule.index()], item.times())?)?;
            }
        }
    }
    Ok(counts)
}

impl Fold {
    /// A measure of one rule. To measure many, use [`measure_rules`].
    pub fn measure<M: Measure>(&self, measure: &M, rule: RuleId) -> Result<M::Value> {
        Ok(measure_rules(self, measure)?.swap_remove(rule.index()))
    }
}
