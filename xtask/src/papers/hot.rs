//! Figure 9 of Larus' paper: how many minimal hot subpaths there are, against the
//! greatest length that they may have, for two limits on their cost.
//!
//! The paper counts instructions; here every event is given a number of them that its
//! symbol determines. Subpaths have at least 10 events, as in the paper. A subpath that
//! is hot and minimal stays so when longer ones are allowed, so the numbers can only
//! grow; the paper's claim is that they hardly do beyond 100.

use crate::bench::{files_under, recorded};
use crate::table::{Column, Table, grouped};
use anyhow::Result;
use loopfold::Fold;
use loopfold::folders::{SequiturRuns, fold_trace};
use loopfold::questions::hot::{self, EventCosts, Limit};
use loopfold::trace::{Collector, Event, Projection, Sink as _, TimesKept};
use loopfold_testing::{Rng, streams};
use std::path::Path;

/// The limits on cost, in instructions.
const COSTS: [u32; 2] = [10_000, 100_000];
/// The limits on length.
const LENGTHS: [usize; 5] = [100, 250, 500, 750, 1000];
/// The lengths of the traces for figure 9, in events.
const SIZES: std::ops::Range<u64> = 100_000..20_000_000;

/// Prints the figure for a generated program, and for the traces under a directory if one
/// is given.
pub(super) fn print(traces: Option<&Path>) -> Result<()> {
    let columns = [
        Column::Text("trace"),
        Column::Number("events"),
        Column::Number("instructions"),
        Column::Number("cost at least"),
        Column::Number("up to 100"),
        Column::Number("250"),
        Column::Number("500"),
        Column::Number("750"),
        Column::Number("1000 events"),
    ];
    let title = "Larus, figure 9: minimal hot subpaths of at least 10 events, against the most events they may\n\
                 have. Published for SPECint95: flat curves beyond 100 but for gcc, compress and the commercial\n\
                 programs, which find 2.5 to 3 times as many; 1.8 to 13.9 times fewer at ten times the cost";
    let mut table = Table::new(title, &columns);
    figure(&mut table, "control flow", &generated(1_000_000)?)?;
    for path in traces.into_iter().flat_map(files_under) {
        let Ok(Some(trace)) = recorded(&path) else { continue };
        if SIZES.contains(&trace.events()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            figure(&mut table, &name, &fold_trace(trace, &SequiturRuns, 1)?)?;
        }
    }
    println!("{table}");
    Ok(())
}

fn generated(length: usize) -> Result<Fold> {
    let mut collector = Collector::new(Projection::default(), TimesKept::None);
    let stream = collector.stream("generated")?;
    for symbol in streams::control_flow(length, 7) {
        collector.push_event(stream, &Event::integer(symbol.into()))?;
    }
    Ok(fold_trace(collector.finish()?, &SequiturRuns, 1)?)
}

fn figure(table: &mut Table, name: &str, fold: &Fold) -> Result<()> {
    let mut rng = Rng::new(9);
    let instructions: Vec<f64> = fold.alphabet().symbols().map(|_| rng.between(1, 20) as f64).collect();
    let costs = EventCosts::new(&instructions)?;
    for cost in COSTS {
        let mut row = vec![
            name.to_string(),
            grouped(fold.events().unwrap_or(u64::MAX)),
            grouped(costs.total(fold)? as u128),
            grouped(cost),
        ];
        for max_length in LENGTHS {
            row.push(grouped(hot_at(fold, &costs, cost, max_length)?));
        }
        table.row(row);
    }
    Ok(())
}

/// How many minimal hot subpaths there are.
fn hot_at(fold: &Fold, costs: &EventCosts, cost: u32, max_length: usize) -> Result<u64> {
    let min_cost = Limit::Cost(cost.into());
    let settings = hot::Config::new().min_length(10).max_length(max_length).min_cost(min_cost).keep(0);
    Ok(fold.hot_subpaths(costs, &settings)?.found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dearer_subpaths_are_fewer_and_longer_ones_more() {
        let fold = generated(20_000).unwrap();
        let costs = EventCosts::one_each(&fold);
        let found = |cost, length| hot_at(&fold, &costs, cost, length).unwrap();
        assert!(found(100, 50) > found(1000, 50) && found(1000, 50) > 0);
        assert!(found(1000, 200) >= found(1000, 50));
    }
}
