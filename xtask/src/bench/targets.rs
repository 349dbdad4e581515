//! The targets of speed and memory, and whether they are met. The worst of all lengths
//! counts.

use super::grammars;
use super::loops::{self, Measured, Row};
use super::measure::Job;
use super::reading::Speed;
use crate::table::{Column, Table, short};

/// Prints every target that something was measured for.
pub(crate) fn print(measured: &Measured, speeds: &[Speed]) {
    let mut targets = Targets::new();
    targets.of_default(measured);
    for order in [Job::Outermost, Job::Innermost] {
        targets.of_order(measured, order);
    }
    for speed in speeds {
        let name = format!("reading `{}`, MB/s", speed.source);
        targets.at_least(&name, "", Some(("".to_string(), speed.megabytes)), speed.target);
    }
    println!("{}", targets.0);
}

/// Prints the targets of grammars.
pub(crate) fn print_grammars(rows: &[grammars::Row]) {
    let mut targets = Targets::new();
    let slowest = |job: Job, is_real: bool| {
        let of_kind = rows.iter().filter(|row| row.job == job && (row.stream == grammars::REAL) == is_real);
        let times = of_kind.map(|row| (row.stream.to_string(), row.cost.nanoseconds()));
        times.max_by(|left, right| left.1.total_cmp(&right.1))
    };
    targets.at_most("loops: ns a symbol", "sequitur-runs", slowest(Job::SequiturRuns, false), 5.0);
    targets.at_most("control flow: ns a symbol", "sequitur-runs", slowest(Job::SequiturRuns, true), 60.0);
    targets.at_most("loops: ns a symbol", "repair", slowest(Job::Repair, false), 100.0);
    targets.at_most("control flow: ns a symbol", "repair", slowest(Job::Repair, true), 100.0);
    let twice = rows.iter().filter(|row| row.job == Job::Auto).filter_map(|auto| {
        let runs = rows.iter().find(|row| row.job == Job::SequiturRuns && row.stream == auto.stream)?;
        Some((auto.stream.to_string(), auto.cost.nanoseconds() / runs.cost.nanoseconds()))
    });
    let twice = twice.max_by(|left, right| left.1.total_cmp(&right.1));
    targets.at_most("time beside that of sequitur-runs", "auto", twice, 3.0);
    println!("{}", targets.0);
}

struct Targets(Table);

impl Targets {
    fn new() -> Self {
        let columns = [
            Column::Text("target"),
            Column::Text("order"),
            Column::Text("worst of"),
            Column::Number("limit"),
            Column::Number("measured"),
            Column::Text(""),
        ];
        Self(Table::new("Targets, on one core", &columns))
    }

    /// What holds for every order.
    fn of_order(&mut self, measured: &Measured, order: Job) {
        let rows = &measured.rows;
        let name = if order == Job::Outermost { "outermost" } else { "innermost" };
        let time = |row: &Row| row.cost(order).nanoseconds();
        let bytes = |row: &Row| row.cost(order).bytes();
        self.at_most("every family: ns a symbol", name, worst(rows, |_| true, time), 150.0);
        self.at_most("every family: bytes a symbol", name, worst(rows, |_| true, bytes), 30.0);
        let class_c = measured.class_c.map(|times| times[usize::from(order == Job::Innermost)]);
        let class_c = class_c.map(|time| ("323,048".to_string(), 1e3 * time.as_secs_f64()));
        self.at_most("LU class C: ms", name, class_c, 3.0);
    }

    /// What is asked of the default on top: innermost goes over the stream once for each
    /// body length that it tests, and is not expected to keep up.
    fn of_default(&mut self, measured: &Measured) {
        let (rows, order, name) = (&measured.rows, Job::Outermost, "outermost");
        let time = |row: &Row| row.cost(order).nanoseconds();
        let bytes = |row: &Row| row.cost(order).bytes();
        let slowest_ratio = worst(rows, is_loop_dominated, |row| -row.speedup(order));
        self.at_least(
            "loop-dominated: times faster than SA",
            name,
            slowest_ratio.map(|(at, value)| (at, -value)),
            10.0,
        );
        self.at_most("loop-dominated: ns a symbol", name, worst(rows, is_loop_dominated, time), 3.0);
        self.at_most("random nests: ns a symbol", name, worst(rows, is_random_nests, time), 12.0);
        self.at_most("loop traces: bytes a symbol", name, worst(rows, |row| row.family.loops, bytes), 8.0);
        let growth = |row: &Row| loops::growth(rows, row.family, order).map_or(f64::NAN, |(_, grown)| grown);
        self.at_most("growth of time, Fibonacci", name, worst(rows, is_fibonacci, growth), 2.0);
        self.at_most("growth of time, others", name, worst(rows, |row| !is_fibonacci(row), growth), 1.5);
    }

    fn at_most(&mut self, target: &str, order: &str, value: Option<(String, f64)>, limit: f64) {
        let Some((at, value)) = value else { return };
        self.row(target, order, at, format!("<= {limit}"), value, value <= limit);
    }

    fn at_least(&mut self, target: &str, order: &str, value: Option<(String, f64)>, limit: f64) {
        let Some((at, value)) = value else { return };
        self.row(target, order, at, format!(">= {limit}"), value, value >= limit);
    }

    fn row(&mut self, target: &str, order: &str, at: String, limit: String, value: f64, met: bool) {
        let verdict = if met { "met" } else { "MISSED" };
        let cells = [target, order, &at, &limit, &short(value), verdict];
        self.0.row(cells.map(str::to_string));
    }
}

/// The greatest value among some rows, and where it was.
fn worst(rows: &[Row], among: impl Fn(&Row) -> bool, value: impl Fn(&Row) -> f64) -> Option<(String, f64)> {
    rows.iter()
        .filter(|row| row.length >= SHORTEST && among(row))
        .map(|row| (format!("{}, 10^{}", row.family.name, row.length.ilog10()), value(row)))
        .filter(|(_, value)| !value.is_nan())
        .max_by(|left, right| left.1.total_cmp(&right.1))
}

/// Targets are about long streams; of shorter ones the memory cannot be measured.
const SHORTEST: usize = loops::SHORTEST_FOR_MEMORY;

fn is_loop_dominated(row: &Row) -> bool {
    row.family.loops && !is_random_nests(row)
}

fn is_random_nests(row: &Row) -> bool {
    row.family.name == "nests"
}

fn is_fibonacci(row: &Row) -> bool {
    row.family.name == "fibonacci"
}
