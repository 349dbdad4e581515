//! Sums of times and metrics, kept in place of the values of every event.
//!
//! A stream has sums by event ([`StreamSums`]), a fold has sums by rule and by loop
//! ([`RuleSums`]). They are of what the columns do not hold: a stream either has columns
//! or sums, and one that was joined from parts of both kinds has both, each for its part.
//! Sums take about 100 bytes for a rule or a loop and 50 for each event of a stream.

use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The durations of all events that count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSum {
    /// How many of the events have a known duration.
    pub known: u64,
    /// Those durations together, in nanoseconds.
    pub total: i128,
}

impl DurationSum {
    /// The mean of the known durations, in nanoseconds. Returns `None` when none is known.
    pub fn mean(&self) -> Option<f64> {
        (self.known > 0).then(|| self.total as f64 / self.known as f64)
    }
}

/// The values of one metric of all events that count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricSum {
    /// How many of the events have a known value.
    pub known: u64,
    /// Those values together.
    pub total: f64,
}

impl MetricSum {
    /// The mean of the known values. Returns `None` when none is known.
    pub fn mean(&self) -> Option<f64> {
        (self.known > 0).then(|| self.total / self.known as f64)
    }
}

/// How many whole numbers there are, their sum, and how they are spread: the times of a
/// loop's iterations, or of a rule's occurrences. Exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many numbers.
    pub count: u64,
    /// Their sum.
    pub total: i128,
    /// The smallest; 0 when there is none.
    pub minimum: i128,
    /// The largest; 0 when there is none.
    pub maximum: i128,
    /// The sum of their squares. `None` when 128 bits cannot hold it.
    pub squares: Option<u128>,
}

impl Default for Spread {
    fn default() -> Self {
        Self { count: 0, total: 0, minimum: 0, maximum: 0, squares: Some(0) }
    }
}

impl Spread {
    /// The spread of a single number.
    pub fn of(number: i128) -> Self {
        Self { count: 1, total: number, minimum: number, maximum: number, squares: square(number) }
    }

    /// Takes one more number.
    pub fn add(&mut self, number: i128) -> Result<()> {
        if self.count == 0 {
            *self = Self::of(number);
            return Ok(());
        }
        self.count = self.count.checked_add(1).ok_or_else(too_large)?;
        self.total = self.total.checked_add(number).ok_or_else(too_large)?;
        self.minimum = self.minimum.min(number);
        self.maximum = self.maximum.max(number);
        self.squares = self.squares.and_then(|squares| squares.checked_add(square(number)?));
        Ok(())
    }

    /// Takes all numbers of another spread.
    pub fn join(&mut self, other: &Self) -> Result<()> {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = *other;
            }
            return Ok(());
        }
        *self = Self {
            count: self.count.checked_add(other.count).ok_or_else(too_large)?,
            total: self.total.checked_add(other.total).ok_or_else(too_large)?,
            minimum: self.minimum.min(other.minimum),
            maximum: self.maximum.max(other.maximum),
            squares: self.squares.zip(other.squares).and_then(|(left, right)| left.checked_add(right)),
        };
        Ok(())
    }

    /// The mean. Returns `None` when there are no numbers.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64)
    }

    /// The standard deviation of the numbers from their mean. Returns `None` when there are no
    /// numbers or when they are too large.
    pub fn deviation(&self) -> Option<f64> {
        let (_, rest) = self.whole_mean()?;
        let (count, rest) = (self.count as f64, rest as f64);
        let variance = self.squared_distances()? as f64 / count - (rest / count).powi(2);
        Some(variance.max(0.0).sqrt())
    }

    /// The mean rounded down, and what is left of the total: below the count.
    fn whole_mean(&self) -> Option<(i128, i128)> {
        let count = i128::from(self.count);
        Some((self.total.checked_div_euclid(count)?, self.total.checked_rem_euclid(count)?))
    }

    /// The squares of the distances from the mean rounded down, together: the sum of squares
    /// minus the part that the count and the total determine.
    pub(crate) fn squared_distances(&self) -> Option<u128> {
        // Σ(x−m)² = Σx² − 2mΣx + nm², and nm = Σx − rest.
        let (mean, rest) = self.whole_mean()?;
        let explained = mean.checked_mul(self.total.checked_add(rest)?)?;
        self.squares?.checked_add_signed(explained.checked_neg()?)
    }

    /// The inverse: the sum of squares from the squared distances.
    pub(crate) fn squares_from(&self, distances: u128) -> Option<u128> {
        let (mean, rest) = self.whole_mean()?;
        distances.checked_add_signed(mean.checked_mul(self.total.checked_add(rest)?)?)
    }
}

/// The times of the iterations of a loop, over all its occurrences.
///
/// The last iteration of an occurrence has no next one to which it could last, so it lacks what
/// comes between two iterations. Last ones are kept apart: then loops of several archives can
/// be joined, and still only iterations of the same kind are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IterationSpread {
    /// The iterations that last until the next one begins.
    pub others: Spread,
    /// The last iterations of occurrences, which last until their own events have ended.
    pub lasts: Spread,
}

impl IterationSpread {
    /// The fewest other iterations that are compared without the last ones.
    pub(crate) const ENOUGH: u64 = 2;

    /// Takes one more iteration.
    pub(crate) fn record(&mut self, time: i128, is_last: bool) -> Result<()> {
        if is_last { self.lasts.add(time) } else { self.others.add(time) }
    }

    /// All iterations. The smallest and the largest leave out last iterations if at least two
    /// others remain; the number, the sum and the squares do not.
    pub fn summary(&self) -> Result<Spread> {
        let mut all = self.others;
        all.join(&self.lasts)?;
        if self.others.count >= Self::ENOUGH {
            (all.minimum, all.maximum) = (self.others.minimum, self.others.maximum);
        }
        Ok(all)
    }
}

fn square(number: i128) -> Option<u128> {
    let size = number.unsigned_abs();
    match u64::try_from(size) {
        // Nearly always, and several times faster.
        Ok(size) => Some(u128::from(size) * u128::from(size)),
        Err(_) => size.checked_mul(size),
    }
}

/// As [`Spread`], of the values of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricSpread {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub total: f64,
    /// The smallest; 0 when there is none.
    pub minimum: f64,
    /// The largest; 0 when there is none.
    pub maximum: f64,
}

impl MetricSpread {
    /// The spread of a single value.
    pub fn of(value: f64) -> Self {
        Self { count: 1, total: value, minimum: value, maximum: value }
    }

    /// Takes all values of another spread.
    pub fn join(&mut self, other: &Self) -> Result<()> {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = *other;
            }
            return Ok(());
        }
        self.count = self.count.checked_add(other.count).ok_or_else(too_large)?;
        self.total += other.total;
        self.minimum = self.minimum.min(other.minimum);
        self.maximum = self.maximum.max(other.maximum);
        Ok(())
    }

    /// The mean. Returns `None` when there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total / self.count as f64)
    }
}

fn too_large() -> Error {
    Error::limit("a sum of times is too large")
}

/// A sum that can take another one.
pub(crate) trait Additive: Copy + Default {
    fn add(&mut self, other: &Self) -> Result<()>;
}

impl Additive for DurationSum {
    fn add(&mut self, other: &Self) -> Result<()> {
        self.known = self.known.checked_add(other.known).ok_or_else(too_large)?;
        self.total = self.total.checked_add(other.total).ok_or_else(too_large)?;
        Ok(())
    }
}

impl Additive for MetricSum {
    fn add(&mut self, other: &Self) -> Result<()> {
        self.known = self.known.checked_add(other.known).ok_or_else(too_large)?;
        self.total += other.total;
        Ok(())
    }
}

impl Additive for Spread {
    fn add(&mut self, other: &Self) -> Result<()> {
        self.join(other)
    }
}

impl Additive for IterationSpread {
    fn add(&mut self, other: &Self) -> Result<()> {
        self.others.join(&other.others)?;
        self.lasts.join(&other.lasts)
    }
}

impl Additive for MetricSpread {
    fn add(&mut self, other: &Self) -> Result<()> {
        self.join(other)
    }
}

/// The sums of one stream, for those of its events that have any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamSums {
    /// The earliest start of its events, in nanoseconds.
    pub began: Option<i64>,
    /// The latest end of its events.
    pub ended: Option<i64>,
    /// By symbol, in ascending order. `None` when the stream knows no durations.
    pub durations: Option<Vec<(Symbol, DurationSum)>>,
    /// The same for self times: durations without the events inside. Of a stream that was joined
    /// from parts, each part for itself.
    pub self_times: Option<Vec<(Symbol, DurationSum)>>,
    /// The same for each metric, by its name.
    pub metrics: Vec<(String, Vec<(Symbol, MetricSum)>)>,
}

impl StreamSums {
    /// From the earliest start to the latest end.
    pub fn span(&self) -> Option<i64> {
        self.ended?.checked_sub(self.began?)
    }

    /// All durations together. Returns `None` when the stream knows none.
    pub fn total_duration(&self) -> Result<Option<i128>> {
        let Some(durations) = &self.durations else { return Ok(None) };
        let mut all = DurationSum::default();
        durations.iter().try_for_each(|(_, sum)| all.add(sum))?;
        Ok(Some(all.total))
    }

    /// The sums of the same stream after its symbols are renamed to `symbol`.
    pub(crate) fn renamed(&self, mut symbol: impl FnMut(Symbol) -> Option<Symbol>) -> Result<Self> {
        let mut renamed = Self::default();
        renamed.join(self, &mut symbol)?;
        Ok(renamed)
    }

    /// Adds the sums of another part of the stream, whose symbols are `symbol` here.
    pub(crate) fn join(
        &mut self,
        part: &Self,
        symbol: &mut impl FnMut(Symbol) -> Option<Symbol>,
    ) -> Result<()> {
        self.began = [self.began, part.began].into_iter().flatten().min();
        self.ended = self.ended.max(part.ended);
        if let Some(durations) = &part.durations {
            join_sorted(self.durations.get_or_insert_default(), durations, symbol)?;
        }
        if let Some(self_times) = &part.self_times {
            join_sorted(self.self_times.get_or_insert_default(), self_times, symbol)?;
        }
        let places = places_of(&mut self.metrics, &part.metrics);
        for ((_, sums), place) in part.metrics.iter().zip(places) {
            join_sorted(&mut self.metrics[place].1, sums, symbol)?;
        }
        Ok(())
    }
}

/// Joins two lists that are sorted by symbol into one.
fn join_sorted<S: Additive>(
    list: &mut Vec<(Symbol, S)>,
    more: &[(Symbol, S)],
    symbol: &mut impl FnMut(Symbol) -> Option<Symbol>,
) -> Result<()> {
    list.extend(more.iter().filter_map(|&(old, sum)| Some((symbol(old)?, sum))));
    list.sort_by_key(|&(symbol, _)| symbol);
    let mut kept: usize = 0;
    for index in 0..list.len() {
        let (symbol, sum) = list[index];
        match kept.checked_sub(1).map(|last| &mut list[last]) {
            Some((last, all)) if *last == symbol => all.add(&sum)?,
            _ => {
                list[kept] = (symbol, sum);
                kept += 1;
            }
        }
    }
    list.truncate(kept);
    Ok(())
}

/// Where the lists with the names of these others are; names that are new get a list. An
/// archive may have any number of names, so they are not searched one by one.
fn places_of<T: Default, O>(lists: &mut Vec<(String, T)>, others: &[(String, O)]) -> Vec<usize> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let (mut places, mut new) = (Vec::new(), Vec::new());
    for (place, (name, _)) in lists.iter().enumerate() {
        known.entry(name).or_insert(place);
    }
    for (name, _) in others {
        let place = *known.entry(name).or_insert(lists.len() + new.len());
        if place == lists.len() + new.len() {
            new.push((name.clone(), T::default()));
        }
        places.push(place);
    }
    drop(known);
    lists.append(&mut new);
    places
}

/// The sums of the rules of a fold, over all their occurrences in all streams. An unknown value
/// counts as 0; streams without values do not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSums {
    /// By the index of the rule: the durations of its events together, spread over its
    /// occurrences. `None` when no stream knows durations.
    pub durations: Option<Vec<Spread>>,
    /// The same for each metric, by its name.
    pub metrics: Vec<(String, Vec<MetricSpread>)>,
    /// The times of the iterations of loops: of the item at a place in the body of a
    /// rule. Loops whose times are not known are left out.
    pub loops: BTreeMap<(RuleId, usize), IterationSpread>,
    /// Rules whose sums include streams that are not in the fold: those that were left out when
    /// streams were chosen. They are not stored.
    pub wider: BTreeSet<RuleId>,
}

impl RuleSums {
    /// The sums of a metric.
    pub fn metric(&self, name: &str) -> Option<&[MetricSpread]> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, sums)| &sums[..])
    }

    pub(crate) fn metric_mut(&mut self, name: &str) -> &mut Vec<MetricSpread> {
        let index = self.metrics.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.metrics.push((name.to_string(), Vec::new()));
            self.metrics.len() - 1
        });
        &mut self.metrics[index].1
    }

    /// Adds the sums of other rules, which are `rule` here; rules that are not here are left
    /// out. Equal rules become one, and their sums are added.
    pub(crate) fn join(
        &mut self,
        other: &Self,
        mut rule: impl FnMut(RuleId) -> Option<RuleId>,
    ) -> Result<()> {
        if let Some(durations) = &other.durations {
            join_rules(self.durations.get_or_insert_default(), durations, &mut rule)?;
        }
        let places = places_of(&mut self.metrics, &other.metrics);
        for ((_, sums), place) in other.metrics.iter().zip(places) {
            join_rules(&mut self.metrics[place].1, sums, &mut rule)?;
        }
        for (&(old, item), spread) in &other.loops {
            if let Some(rule) = rule(old) {
                self.loops.entry((rule, item)).or_default().add(spread)?;
            }
        }
        self.wider.extend(other.wider.iter().filter_map(|&old| rule(old)));
        Ok(())
    }

    /// The same without the sums that include streams which are not in the fold.
    pub(crate) fn without_wider(&self) -> Cow<'_, Self> {
        if self.wider.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut sums = self.clone();
        self.wider.iter().for_each(|&rule| sums.forget(rule));
        Cow::Owned(sums)
    }

    /// Makes every list as long as there are rules.
    pub(crate) fn resize(&mut self, rules: usize) {
        if let Some(durations) = &mut self.durations {
            durations.resize(rules, Spread::default());
        }
        for (_, sums) in &mut self.metrics {
            sums.resize(rules, MetricSpread::default());
        }
    }

    /// Adds an occurrence of a rule that is the whole of a stream.
    pub(crate) fn add_root(&mut self, rule: RuleId, stream: &StreamSums) -> Result<()> {
        if let Some(total) = stream.total_duration()? {
            at(self.durations.get_or_insert_default(), rule).add(total)?;
        }
        let places = places_of(&mut self.metrics, &stream.metrics);
        for ((_, sums), place) in stream.metrics.iter().zip(places) {
            let mut all = MetricSum::default();
            sums.iter().try_for_each(|(_, sum)| all.add(sum))?;
            at(&mut self.metrics[place].1, rule).join(&MetricSpread::of(all.total))?;
        }
        Ok(())
    }

    /// Drops the sums of a rule that has lost some of its occurrences.
    pub(crate) fn forget(&mut self, rule: RuleId) {
        if let Some(durations) = &mut self.durations {
            *at(durations, rule) = Spread::default();
        }
        for (_, sums) in &mut self.metrics {
            *at(sums, rule) = MetricSpread::default();
        }
        let loops = self.loops.range((rule, 0)..=(rule, usize::MAX)).map(|(&key, _)| key);
        for key in loops.collect::<Vec<_>>() {
            self.loops.remove(&key);
        }
        self.wider.remove(&rule);
    }
}

/// The sum of a rule in a list that grows.
fn at<S: Additive>(sums: &mut Vec<S>, rule: RuleId) -> &mut S {
    if sums.len() <= rule.index() {
        sums.resize(rule.index() + 1, S::default());
    }
    &mut sums[rule.index()]
}

fn join_rules<S: Additive>(
    list: &mut Vec<S>,
    more: &[S],
    rule: &mut impl FnMut(RuleId) -> Option<RuleId>,
) -> Result<()> {
    for (index, sum) in more.iter().enumerate() {
        if let Some(rule) = rule(RuleId::new(index)?) {
            at(list, rule).add(sum)?;
        }
    }
    Ok(())
}
