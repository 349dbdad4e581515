//! Measures: values of a monoid, computed once for each rule.
//!
//! The first of the five traversals of a fold, from symbols up to roots. One pass over the
//! rules, each after the rules it is made of, computes any measure in O(items × the cost of a
//! join) plus the logarithm of each count, independent of the length of the trace.
//!
//! Most callers have a [`Measure`] and take [`measure_rules`] or [`Measured`], which knows
//! symbols, rules and items. A caller with a layout of its own (bits, an index into a table,
//! a value that is absent for most rules) takes [`bottom_up`], which hands it each body
//! together with the values of all nodes before it.

use super::reach::below;
use super::{Fold, Grammar, Item, Node, Target};
use crate::interrupt::{Pace, later_blocks};
use crate::{Error, Result, RuleId, Symbol};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// A value for every stretch of a trace: a monoid.
///
/// `join` must be associative and `empty` its neutral element, and `repeat` and `append` must
/// equal as many joins; then the value of a stretch does not depend on how the fold divides
/// it. (A measure of the fold instead of the trace, such as [`Depth`], breaks the last rule on
/// purpose.)
///
/// While rules are measured no stretch exceeds 2⁶⁴ − 1 events, so lengths need no checks;
/// products and sums of anything else do.
///
/// The longest stretch without some event, as a measure:
///
/// ```
/// use loopfold::fold::measure::{Measure, measure_rules};
/// use loopfold::fold::{FoldBuilder, Item, Target};
/// use loopfold::trace::{Alphabet, Event};
/// use loopfold::{Result, Symbol};
///
/// struct Without(Symbol);
///
/// /// Events before the first occurrence, behind the last one, and in the longest gap.
/// #[derive(Clone, Copy, Default)]
/// struct Gaps {
///     length: u64,
///     first: u64,
///     last: u64,
///     longest: u64,
/// }
///
/// impl Measure for Without {
///     type Value = Gaps;
///     fn empty(&self) -> Gaps {
///         Gaps::default()
///     }
///     fn symbol(&self, symbol: Symbol) -> Gaps {
///         let gap = u64::from(symbol != self.0);
///         Gaps { length: 1, first: gap, last: gap, longest: gap }
///     }
///     fn join(&self, left: &Gaps, right: &Gaps) -> Result<Gaps> {
///         let is_gap = |gaps: &Gaps| gaps.first == gaps.length;
///         Ok(Gaps {
///             length: left.length + right.length,
///             first: left.first + if is_gap(left) { right.first } else { 0 },
///             last: right.last + if is_gap(right) { left.last } else { 0 },
///             longest: left.longest.max(right.longest).max(left.last + right.first),
///         })
///     }
/// }
///
/// let mut alphabet = Alphabet::default();
/// let tick = alphabet.intern(&Event::named("tick"), None)?;
/// let work = alphabet.intern(&Event::named("work"), None)?;
/// let mut builder = FoldBuilder::new(alphabet);
/// let step = builder.repeat(&[Item::new(Target::Symbol(work), 7), Item::once(tick)], 1_000_000)?;
/// let root = builder.rule(&[step, Item::new(Target::Symbol(work), 9)])?;
/// let fold = builder.finish();
/// assert_eq!(measure_rules(&fold, &Without(tick))?[root.index()].longest, 9);
/// # Ok::<(), loopfold::Error>(())
/// ```
pub trait Measure {
    /// The value of a stretch.
    type Value: Clone;

    /// The value of no events.
    fn empty(&self) -> Self::Value;

    /// The value of one event.
    fn symbol(&self, symbol: Symbol) -> Self::Value;

    /// The value of two stretches, one after the other.
    fn join(&self, left: &Self::Value, right: &Self::Value) -> Result<Self::Value>;

    /// The value of a stretch repeated `times` times, at least once: by squaring, unless the
    /// measure knows better.
    fn repeat(&self, value: &Self::Value, times: u64) -> Result<Self::Value> {
        power(self.empty(), value.clone(), times, |left, right| self.append(left, right, 1))
    }

    /// Joins a stretch, repeated `times` times, to the end of another: in place, where the
    /// measure knows how.
    fn append(&self, value: &mut Self::Value, next: &Self::Value, times: u64) -> Result<()> {
        *value = match times {
            1 => self.join(value, next)?,
            times => self.join(value, &self.repeat(next, times)?)?,
        };
        Ok(())
    }
}

/// `once` appended to itself `times` times, by repeated squaring: at most 2 log₂ `times`
/// appends.
pub fn power<T: Clone, E>(
    empty: T,
    once: T,
    times: u64,
    append: impl Fn(&mut T, &T) -> std::result::Result<(), E>,
) -> std::result::Result<T, E> {
    power_until(empty, once, times, append, |_, _| None)
}

/// As [`power`], for values that stop changing: `settled` gets each square, and when it returns
/// the power, no more squares are computed.
pub fn power_until<T: Clone, E>(
    empty: T,
    once: T,
    times: u64,
    append: impl Fn(&mut T, &T) -> std::result::Result<(), E>,
    settled: impl Fn(&T, u64) -> Option<T>,
) -> std::result::Result<T, E> {
    if times == 0 {
        return Ok(empty);
    }
    let (mut result, mut square, mut rest) = (None, once, times);
    while rest > 1 {
        if let Some(all) = settled(&square, rest) {
            square = all;
            break;
        }
        if rest & 1 == 1 {
            match &mut result {
                None => result = Some(square.clone()),
                Some(result) => append(result, &square)?,
            }
        }
        rest >>= 1;
        let half = square.clone();
        append(&mut square, &half)?;
    }
    let Some(mut result) = result else { return Ok(square) };
    append(&mut result, &square)?;
    Ok(result)
}

/// The measure of every rule, by its index.
pub fn measure_rules<M: Measure>(fold: &Fold, measure: &M) -> Result<Vec<M::Value>> {
    let mut values: Vec<M::Value> = Vec::with_capacity(fold.rules().len());
    let mut pace = Pace::default();
    for body in fold.rule_bodies() {
        pace.steps(body.len());
        let value = measure_body(measure, body, |rule| &values[rule.index()])?;
        values.push(value);
    }
    Ok(values)
}

/// The measure of a body, by those of the rules in it.
#[inline]
fn measure_body<'v, M: Measure>(
    measure: &M,
    body: &[Item],
    of_rule: impl Fn(RuleId) -> &'v M::Value,
) -> Result<M::Value>
where
    M::Value: 'v,
{
    let mut value = measure.empty();
    for block in later_blocks(body) {
        for item in block {
            match item.target() {
                Target::Symbol(symbol) => {
                    measure.append(&mut value, &measure.symbol(symbol), item.times())?
                }
                Target::Rule(rule) => measure.append(&mut value, of_rule(rule), item.times())?,
            }
        }
    }
    Ok(value)
}

/// The measure of a rule and of all that it is made of: O(items of these rules), however
/// large the fold is.
pub fn measure_below<M: Measure>(
    fold: &Fold,
    measure: &M,
    root: RuleId,
) -> Result<HashMap<RuleId, M::Value, RandomState>> {
    let mut values: HashMap<RuleId, M::Value, RandomState> = HashMap::default();
    let mut pace = Pace::default();
    for rule in below(fold, root, |_| Ok(true))? {
        pace.steps(fold.body(rule).len());
        // Each comes after those that it is made of.
        let value = measure_body(measure, fold.body(rule), |inner| &values[&inner])?;
        values.insert(rule, value);
    }
    Ok(values)
}

/// A measure of all rules, with the values of symbols, rules and items.
///
/// ```
/// use loopfold::fold::{FoldBuilder, Item, Length, Target, measure::Measured};
/// # use loopfold::trace::{Alphabet, Event};
///
/// # let mut alphabet = Alphabet::default();
/// # let a = alphabet.intern(&Event::named("a"), None)?;
/// # let b = alphabet.intern(&Event::named("b"), None)?;
/// let mut builder = FoldBuilder::new(alphabet);
/// let rule = builder.rule(&[Item::once(a), Item::once(b)])?;
/// let fold = builder.finish();
/// let lengths = Measured::new(&fold, Length)?;
/// assert_eq!(lengths.of_item(Item::new(Target::Rule(rule), 50))?, 100);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Measured<M: Measure> {
    measure: M,
    rules: Vec<M::Value>,
}

impl<M: Measure> Measured<M> {
    /// One pass over the rules.
    pub fn new(fold: &Fold, measure: M) -> Result<Self> {
        let rules = measure_rules(fold, &measure)?;
        Ok(Self { measure, rules })
    }

    /// The measure itself.
    pub fn measure(&self) -> &M {
        &self.measure
    }

    /// The value of a rule.
    pub fn of_rule(&self, rule: RuleId) -> &M::Value {
        &self.rules[rule.index()]
    }

    /// The value of a symbol or a rule.
    pub fn of(&self, target: Target) -> M::Value {
        match target {
            Target::Symbol(symbol) => self.measure.symbol(symbol),
            Target::Rule(rule) => self.of_rule(rule).clone(),
        }
    }

    /// The value of an item.
    pub fn of_item(&self, item: Item) -> Result<M::Value> {
        self.measure.repeat(&self.of(item.target()), item.times())
    }
}

/// A value for every node, from the symbols up: `symbols` has those of the symbols, and
/// `of_rule` makes that of a rule from its number, its body and the values of all nodes before
/// it.
pub fn bottom_up<G: Grammar, T>(
    grammar: &G,
    symbols: Vec<T>,
    mut of_rule: impl FnMut(RuleId, &[G::Item], &[T]) -> Result<T>,
) -> Result<Vec<T>> {
    debug_assert_eq!(symbols.len(), grammar.symbol_count());
    let mut values = symbols;
    let bodies = grammar.rule_bodies();
    values.reserve_exact(bodies.len());
    let mut pace = Pace::default();
    for (rule, body) in (0..).map(RuleId::from_raw).zip(bodies) {
        pace.steps(body.len());
        let value = of_rule(rule, body, &values)?;
        values.push(value);
    }
    Ok(values)
}

/// Which nodes are or hold a symbol that is wanted.
pub fn holding<G: Grammar>(grammar: &G, is_wanted: impl Fn(Node) -> bool) -> Vec<bool> {
    let symbols = (0..grammar.symbol_count() as u32).map(|number| is_wanted(Node::new(number))).collect();
    let of_rule = |_: RuleId, body: &[G::Item], holds: &[bool]| {
        Ok(body.iter().any(|&item| holds[grammar.item_node(item).index()]))
    };
    bottom_up(grammar, symbols, of_rule).unwrap_or_default()
}

/// How deep rules are nested in rules below each node: 0 for a symbol.
pub fn rule_depths<G: Grammar>(grammar: &G) -> Vec<u32> {
    let of_rule = |_: RuleId, body: &[G::Item], depths: &[u32]| {
        let inner = body.iter().map(|&item| depths[grammar.item_node(item).index()]);
        Ok(inner.max().unwrap_or(0) + 1)
    };
    bottom_up(grammar, vec![0; grammar.symbol_count()], of_rule).unwrap_or_default()
}

pub(super) fn add(left: u64, right: u64) -> Result<u64> {
    left.checked_add(right).ok_or_else(too_many)
}

pub(super) fn multiply(left: u64, right: u64) -> Result<u64> {
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

/// How much a stretch weighs, by the weights of its events; cut off at 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Weight<F>(pub F);

impl<F: Fn(Symbol) -> u64> Measure for Weight<F> {
    type Value = u64;
    fn empty(&self) -> u64 {
        0
    }
    fn symbol(&self, symbol: Symbol) -> u64 {
        (self.0)(symbol)
    }
    fn join(&self, left: &u64, right: &u64) -> Result<u64> {
        Ok(left.saturating_add(*right))
    }
    fn repeat(&self, value: &u64, times: u64) -> Result<u64> {
        Ok(value.saturating_mul(times))
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
pub struct NestLength;

impl Measure for NestLength {
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

impl Fold {
    /// A measure of one rule. All rules before it are measured too: for several rules
    /// [`measure_rules`] costs the same.
    pub fn measure<M: Measure>(&self, measure: &M, rule: RuleId) -> Result<M::Value> {
        Ok(measure_rules(self, measure)?.swap_remove(rule.index()))
    }
}
