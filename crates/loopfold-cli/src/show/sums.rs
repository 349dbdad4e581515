//! The costs of events: tables of their durations and metrics, on a terminal and for JSON.

use super::{Names, TimeUnit, count, line_width, percent, plain, shorten};
use anyhow::Result;
use loopfold::fold::MetricSum;
use loopfold::questions::self_time::SelfSums;
use loopfold::questions::sums::EventSums;
use loopfold::{Fold, Symbol};
use loopfold_json::stats::{CostTable, Durations, EventCost, EventTimes};
use std::io::Write;

/// The units of a table: of sums, and of means.
#[derive(Clone, Copy)]
struct Units {
    sums: TimeUnit,
    means: TimeUnit,
}

/// A row of a table: one event.
trait Cost: Copy {
    /// How many values are known.
    fn known(&self) -> u64;
    /// What the rows are ranked by, and have shares of.
    fn size(&self) -> f64;
    /// The time that the unit of a column has to fit, and that of the column of means.
    fn times(&self) -> Option<[i128; 2]> {
        None
    }
    fn total(&self, units: Units) -> String;
    fn mean(&self, units: Units) -> String;
    /// The self time, in a table that has them.
    fn own(&self, _: Units) -> Option<String> {
        None
    }
}

impl Cost for EventTimes {
    fn known(&self) -> u64 {
        self.durations.known
    }
    fn size(&self) -> f64 {
        self.durations.total as f64
    }
    fn times(&self) -> Option<[i128; 2]> {
        Some([self.durations.total, self.durations.mean().unwrap_or_default().round() as i128])
    }
    fn total(&self, units: Units) -> String {
        units.sums.number(self.durations.total)
    }
    fn mean(&self, units: Units) -> String {
        units.means.number(self.durations.mean().unwrap_or_default().round() as i128)
    }
}

/// The same where events nest, and self times matter more.
#[derive(Clone, Copy)]
struct NestedTimes(EventTimes);

impl Cost for NestedTimes {
    fn known(&self) -> u64 {
        self.0.known()
    }
    fn size(&self) -> f64 {
        self.0.own.map_or(0.0, |own| own.total as f64)
    }
    fn times(&self) -> Option<[i128; 2]> {
        self.0.times()
    }
    fn total(&self, units: Units) -> String {
        self.0.total(units)
    }
    fn mean(&self, units: Units) -> String {
        self.0.mean(units)
    }
    fn own(&self, units: Units) -> Option<String> {
        Some(self.0.own.map_or("-".to_string(), |own| units.sums.number(own.total)))
    }
}

impl Cost for MetricSum {
    fn known(&self) -> u64 {
        self.known
    }
    fn size(&self) -> f64 {
        self.total
    }
    fn total(&self, _: Units) -> String {
        number(self.total)
    }
    fn mean(&self, _: Units) -> String {
        number(MetricSum::mean(self).unwrap_or_default())
    }
}

/// The events whose cost is known, the most costly first.
struct Ranking<S> {
    events: Vec<EventCost<S>>,
    known: u64,
    whole: f64,
}

impl<S: Cost> Ranking<S> {
    fn of(fold: &Fold, sums: impl IntoIterator<Item = S>) -> Self {
        let event = |(symbol, sum): (_, S)| EventCost { symbol, sum, share: None };
        let mut events: Vec<EventCost<S>> = fold.alphabet().symbols().zip(sums).map(event).collect();
        events.retain(|event| event.sum.known() > 0);
        events.sort_by(|a, b| b.sum.size().total_cmp(&a.sum.size()));
        let known = events.iter().fold(0u64, |known, event| known.saturating_add(event.sum.known()));
        let whole: f64 = events.iter().map(|event| event.sum.size()).sum();
        // There are no shares where some costs are negative.
        let least = events.last().map_or(0.0, |event| event.sum.size());
        for event in &mut events {
            let share = event.sum.size() / whole;
            event.share = (least >= 0.0 && share.is_finite()).then_some(share);
        }
        Self { events, known, whole }
    }

    /// One unit for all sums, and one for all means: those of the largest.
    fn units(shown: &[EventCost<S>]) -> Units {
        let largest = |column: usize| {
            shown.iter().filter_map(|event| Some(event.sum.times()?[column])).max().unwrap_or_default()
        };
        Units { sums: TimeUnit::of(largest(0)), means: TimeUnit::of(largest(1)) }
    }

    fn shown(&self, top: usize) -> &[EventCost<S>] {
        &self.events[..if top == 0 { self.events.len() } else { top.min(self.events.len()) }]
    }

    fn print(&self, out: &mut impl Write, title: &str, names: &Names, top: usize) -> Result<()> {
        writeln!(out, "\n{title}")?;
        let shown = self.shown(top);
        let units = Self::units(shown);
        let has_times = shown.first().is_some_and(|event| event.sum.times().is_some());
        let named = |head: &str, unit: TimeUnit| match has_times {
            true => format!("{head}, {}", unit.name()),
            false => head.to_string(),
        };
        let has_own = shown.first().is_some_and(|event| event.sum.own(units).is_some());
        let first = named(if has_own { "self" } else { "total" }, units.sums);
        let total = |text: &str| if has_own { format!("  {text:>9}") } else { String::new() };
        let (totals, mean) = (total(&named("total", units.sums)), named("mean", units.means));
        let head = format!("{first:>11}  {:>9}{totals}  {:>11}  {mean:>9}  ", "share", "count");
        writeln!(out, "{head}event")?;
        for EventCost { symbol, sum, share } in shown {
            let share = share.map_or(String::new(), percent);
            let label = names.of_event(*symbol);
            let first = sum.own(units).unwrap_or_else(|| sum.total(units));
            let (known, mean, total) = (count(sum.known()), sum.mean(units), total(&sum.total(units)));
            writeln!(out, "{first:>11}  {share:>9}{total}  {known:>11}  {mean:>9}  {label}")?;
        }
        super::more(out, self.events.len() - shown.len())
    }
}

/// The costs of the events of a fold.
pub(crate) struct Costs<'a> {
    pub(crate) fold: &'a Fold,
    pub(crate) sums: &'a EventSums,
    pub(crate) own: Option<&'a SelfSums>,
}

impl Costs<'_> {
    fn nested(&self) -> bool {
        self.own.is_some_and(|own| own.nests)
    }

    /// The times of every event.
    fn times(&self) -> Option<impl Iterator<Item = EventTimes>> {
        let durations = self.sums.durations.as_ref()?;
        let own = |index: usize| self.own.map(|own| own.events[index]).filter(|own| own.known > 0);
        let times = move |(index, &durations)| EventTimes { durations, own: own(index) };
        Some(durations.iter().enumerate().map(times))
    }

    /// The room for names in all tables.
    pub(crate) fn room(&self) -> usize {
        // As `Ranking::print` writes the other columns.
        let columns = if self.nested() { 59 } else { 48 };
        line_width().saturating_sub(columns).max(20)
    }

    /// The events that tables show.
    pub(crate) fn shown(&self, top: usize) -> Vec<Symbol> {
        fn first<S: Cost>(ranking: &Ranking<S>, top: usize) -> Vec<Symbol> {
            ranking.shown(top).iter().map(|event| event.symbol).collect()
        }
        let mut shown = match self.times() {
            Some(times) if self.nested() => first(&Ranking::of(self.fold, times.map(NestedTimes)), top),
            Some(times) => first(&Ranking::of(self.fold, times), top),
            None => Vec::new(),
        };
        for (_, metric) in &self.sums.metrics {
            shown.extend(first(&Ranking::of(self.fold, metric.iter().copied()), top));
        }
        shown
    }

    /// Tables of the most costly events: by time, and by each metric.
    pub(crate) fn print(&self, out: &mut impl Write, names: &Names, top: usize) -> Result<()> {
        let &Self { fold, sums, .. } = self;
        match self.times() {
            Some(times) if self.nested() => {
                let title = "most costly events, by self time (the duration without the events inside)";
                Ranking::of(fold, times.map(NestedTimes)).print(out, title, names, top)?;
            }
            Some(times) => Ranking::of(fold, times).print(out, "most costly events", names, top)?,
            None => {}
        }
        let shown = if top == 0 { sums.metrics.len() } else { top.min(sums.metrics.len()) };
        for (name, metric) in &sums.metrics[..shown] {
            let title = format!("events with the most {}", shorten(&plain(name), 60));
            let mut ranking = Ranking::of(fold, metric.iter().copied());
            ranking.events.retain(|event| event.sum.size() != 0.0);
            ranking.print(out, &title, names, top)?;
        }
        match sums.metrics.len() - shown {
            0 => Ok(()),
            more => Ok(writeln!(
                out,
                "\n… and {} (--top 0 shows all)",
                super::plural(more as u64, "more metric")
            )?),
        }
    }

    /// What must be said of self times.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Some(own) = self.own.filter(|own| own.nests) else { return Vec::new() };
        let durations = self.sums.durations.iter().flatten();
        let known = durations.fold(0u64, |known, sum| known.saturating_add(sum.known));
        match known.saturating_sub(own.known()) {
            0 => Vec::new(),
            1 => vec!["one event has a duration but no start, and so no self time".to_string()],
            more => {
                vec![format!("{} events have a duration but no start, and so no self time", count(more))]
            }
        }
    }

    /// The times of events, for JSON.
    pub(crate) fn durations(&self) -> Option<Durations> {
        let total = self.times()?.fold(0i128, |total, times| total.saturating_add(times.durations.total));
        let (events, known) = if self.nested() {
            let Ranking { events, known, .. } = Ranking::of(self.fold, self.times()?.map(NestedTimes));
            let plain = |EventCost { symbol, sum: NestedTimes(sum), share }| EventCost { symbol, sum, share };
            (events.into_iter().map(plain).collect(), known)
        } else {
            let Ranking { events, known, .. } = Ranking::of(self.fold, self.times()?);
            (events, known)
        };
        let table = CostTable { known, total, events };
        Some(Durations { table, busy: self.own.map(SelfSums::busy), nested: self.nested() })
    }
}

/// The sums of each metric, for JSON.
pub(crate) fn metric_costs<'a>(
    fold: &'a Fold,
    sums: &'a EventSums,
) -> impl Iterator<Item = (&'a str, CostTable<MetricSum, f64>)> {
    sums.metrics.iter().map(|(name, metric)| {
        let Ranking { events, known, whole } = Ranking::of(fold, metric.iter().copied());
        (name.as_str(), CostTable { known, total: whole, events })
    })
}

/// A number of any kind: whole ones with thousands apart, others with four digits.
fn number(number: f64) -> String {
    let size = number.abs();
    if size < 1e15 && number.fract() == 0.0 {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{}", count(size as u64));
    }
    if (1e-3..1e15).contains(&size) {
        let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
        return format!("{number:.decimals$}");
    }
    format!("{number:.3e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_are_short() {
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(-12.0), "-12");
        assert_eq!(number(2.71), "2.710");
        assert_eq!(number(123456.789), "123457");
        assert_eq!(number(0.0123456), "0.01235");
        assert_eq!(number(1.5e300), "1.500e300");
        assert_eq!(number(f64::INFINITY), "inf");
    }
}
