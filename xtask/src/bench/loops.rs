//! Folding the families of streams in both orders, beside a suffix array with its
//! longest common prefixes of the same stream.

use super::measure::{Cost, Job, measure};
use super::{Settings, progress};
use crate::table::{Column, Table, grouped, short};
use anyhow::Result;
use loopfold_testing::streams::{self, Family};
use std::time::Duration;

/// All that was measured.
pub(crate) struct Measured {
    /// By family, then by length.
    pub(crate) rows: Vec<Row>,
    /// The trace of LU, class C, in both orders.
    pub(crate) class_c: Option<[Duration; 2]>,
}

/// One family at one length.
pub(crate) struct Row {
    pub(crate) family: &'static Family,
    /// The length asked for.
    pub(crate) length: usize,
    pub(crate) outermost: Cost,
    pub(crate) innermost: Cost,
    pub(crate) suffix_array: Cost,
}

impl Row {
    /// The cost of one of the two orders.
    pub(crate) fn cost(&self, order: Job) -> &Cost {
        if order == Job::Innermost { &self.innermost } else { &self.outermost }
    }

    /// How many times faster an order is than the suffix array.
    pub(crate) fn speedup(&self, order: Job) -> f64 {
        self.suffix_array.nanoseconds() / self.cost(order).nanoseconds()
    }
}

/// Measures everything and prints it.
pub(crate) fn run(settings: &Settings) -> Result<Measured> {
    let mut rows = Vec::new();
    for family in settings.families() {
        for &length in settings.lengths() {
            progress(format_args!("{}, {} symbols", family.name, grouped(length as u128)));
            rows.push(measure_row(family, length)?);
        }
    }
    let class_c = settings.only.is_none_or(|family| family.name == "lu").then(class_c).transpose()?;
    let measured = Measured { rows, class_c };
    println!("{}", cost_table(&measured.rows));
    if settings.lengths().iter().any(|&length| length > GROWTH_FROM) {
        println!("{}", growth_table(&measured.rows));
    }
    Ok(measured)
}

fn measure_row(family: &'static Family, length: usize) -> Result<Row> {
    let stream = family.make(length);
    Ok(Row {
        family,
        length,
        outermost: measure(Job::Outermost, &stream)?,
        innermost: measure(Job::Innermost, &stream)?,
        suffix_array: measure(Job::SuffixArray, &stream)?,
    })
}

fn class_c() -> Result<[Duration; 2]> {
    let stream = streams::lu(160, 249);
    Ok([measure(Job::Outermost, &stream)?.time(), measure(Job::Innermost, &stream)?.time()])
}

fn cost_table(rows: &[Row]) -> Table {
    let title = "Folding: CPU time (ns) and peak memory (bytes, the 4 of the input included) a symbol,\n\
                 and how many times faster than a suffix array with LCP (SA) of the same stream";
    let columns = [
        Column::Text("family"),
        Column::Number("symbols"),
        Column::Number("outermost ns"),
        Column::Number("bytes"),
        Column::Number("innermost ns"),
        Column::Number("bytes"),
        Column::Number("SA ns"),
        Column::Number("bytes"),
        Column::Number("SA/outermost"),
        Column::Number("SA/innermost"),
    ];
    let mut table = Table::new(title, &columns);
    for row in rows {
        let mut cells = vec![row.family.name.to_string(), grouped(row.length as u128)];
        for cost in [&row.outermost, &row.innermost, &row.suffix_array] {
            cells.push(short(cost.nanoseconds()));
            cells.push(bytes_of(cost, row.length));
        }
        for order in [Job::Outermost, Job::Innermost] {
            cells.push(format!("{}x", short(row.speedup(order))));
        }
        table.row(cells);
    }
    table
}

/// Of short streams the memory is lost in that of the process.
fn bytes_of(cost: &Cost, length: usize) -> String {
    if length < SHORTEST_FOR_MEMORY { "-".to_string() } else { format!("{:.1}", cost.bytes()) }
}

/// From this length on, memory a symbol is meaningful.
pub(crate) const SHORTEST_FOR_MEMORY: usize = 1_000_000;

/// Growth is counted from this length.
pub(crate) const GROWTH_FROM: usize = 1_000_000;

/// How much the time a symbol grows to the greatest length measured.
pub(crate) fn growth(rows: &[Row], family: &Family, order: Job) -> Option<(usize, f64)> {
    let of_family = || rows.iter().filter(|row| row.family.name == family.name);
    let first = of_family().find(|row| row.length == GROWTH_FROM)?;
    let last = of_family().next_back().filter(|row| row.length > GROWTH_FROM)?;
    Some((last.length, last.cost(order).nanoseconds() / first.cost(order).nanoseconds()))
}

fn growth_table(rows: &[Row]) -> Table {
    let columns = [
        Column::Text("family"),
        Column::Number("from"),
        Column::Number("to"),
        Column::Number("outermost"),
        Column::Number("innermost"),
    ];
    let mut table = Table::new("Growth of the time a symbol", &columns);
    for row in rows.iter().filter(|row| row.length == GROWTH_FROM) {
        let outermost = growth(rows, row.family, Job::Outermost);
        let innermost = growth(rows, row.family, Job::Innermost);
        if let (Some((to, outermost)), Some((_, innermost))) = (outermost, innermost) {
            table.row([
                row.family.name.to_string(),
                grouped(GROWTH_FROM as u128),
                grouped(to as u128),
                format!("{outermost:.2}x"),
                format!("{innermost:.2}x"),
            ]);
        }
    }
    table
}
