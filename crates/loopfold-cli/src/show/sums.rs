//! The costs of events: tables of their durations and metrics, on a terminal and for JSON.

use super::{Labels, count, duration, percent, plain, shorten};
use anyhow::Result;
use loopfold::Fold;
use loopfold::fold::{DurationSum, MetricSum};
use loopfold::questions::sums::EventSums;
use loopfold_json::stats::{CostTable, EventCost};
use std::io::Write;

/// A row of a table: one event.
trait Cost: Copy {
    fn known(&self) -> u64;
    fn size(&self) -> f64;
    fn total(&self) -> String;
    fn mean(&self) -> String;
}

impl Cost for DurationSum {
    fn known(&self) -> u64 {
        self.known
    }
    fn size(&self) -> f64 {
        self.total as f64
    }
    fn total(&self) -> String {
        duration(self.total)
    }
    fn mean(&self) -> String {
        duration(DurationSum::mean(self).unwrap_or_default().round() as i128)
    }
}

impl Cost for MetricSum {
    fn known(&self) -> u64 {
        self.known
    }
    fn size(&self) -> f64 {
        self.total
    }
    fn total(&self) -> String {
        number(self.total)
    }
    fn mean(&self) -> String {
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
    fn of(fold: &Fold, sums: &[S]) -> Self {
        let event = |(symbol, &sum): (_, &S)| EventCost { symbol, sum, share: None };
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

    fn print(&self, out: &mut impl Write, title: &str, labels: &Labels<'_>, top: usize) -> Result<()> {
        writeln!(out, "\n{title}")?;
        writeln!(out, "{:>15}  {:>9}  {:>15}  {:>10}", "total", "share", "count", "mean")?;
        let shown = if top == 0 { self.events.len() } else { top.min(self.events.len()) };
        for EventCost { symbol, sum, share } in &self.events[..shown] {
            let share = share.map_or(String::new(), percent);
            let label = shorten(&labels.of(*symbol), 100);
            let (total, known, mean) = (sum.total(), count(sum.known()), sum.mean());
            writeln!(out, "{total:>15}  {share:>9}  {known:>15}  {mean:>10}  {label}")?;
        }
        super::more(out, self.events.len() - shown)
    }
}

/// Tables of the most costly events: by duration, and by each metric.
pub(crate) fn print_sums(
    out: &mut impl Write,
    fold: &Fold,
    sums: &EventSums,
    labels: &Labels<'_>,
    top: usize,
) -> Result<()> {
    if let Some(durations) = &sums.durations {
        Ranking::of(fold, durations).print(out, "most costly events", labels, top)?;
    }
    let shown = if top == 0 { sums.metrics.len() } else { top.min(sums.metrics.len()) };
    for (name, metric) in &sums.metrics[..shown] {
        let title = format!("events with the most {}", shorten(&plain(name), 60));
        Ranking::of(fold, metric).print(out, &title, labels, top)?;
    }
    match sums.metrics.len() - shown {
        0 => Ok(()),
        more => {
            Ok(writeln!(out, "\n… and {} (--top 0 shows all)", super::plural(more as u64, "more metric"))?)
        }
    }
}

/// The durations of events, for JSON.
pub(crate) fn duration_costs(fold: &Fold, sums: &EventSums) -> Option<CostTable<DurationSum, i128>> {
    let durations = sums.durations.as_ref()?;
    let Ranking { events, known, .. } = Ranking::of(fold, durations);
    let total = durations.iter().fold(0i128, |total, sum| total.saturating_add(sum.total));
    Some(CostTable { known, total, events })
}

/// The sums of each metric, for JSON.
pub(crate) fn metric_costs<'a>(
    fold: &'a Fold,
    sums: &'a EventSums,
) -> impl Iterator<Item = (&'a str, CostTable<MetricSum, f64>)> {
    sums.metrics.iter().map(|(name, metric)| {
        let Ranking { events, known, whole } = Ranking::of(fold, metric);
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
