//! Tables I, III, IV and V of Xu's paper.

use super::nas::{BENCHMARKS, Benchmark, Published};
use super::notation::{letters, main_loop, parse};
use super::{events_of, fold, loops_in, nest_of, symbols};
use crate::clock;
use crate::table::{Column, Table, grouped, short};
use anyhow::Result;
use loopfold::folders::{Folder, Innermost, Outermost};
use loopfold_testing::nest::Node;
use loopfold_testing::{Nest, streams};

/// The nest of LU, class C, as table I prints it.
const TABLE_ONE: &str = "(V)^3(W)^2X(W)^3(QJYQHYQEYQCY)^2RU((NKID)^160(MLGB)^160QJYQHYQEYQCY)^249\
                         (NKID)^160(MLGB)^160RQJYQHYQEYQCYRSRPYAOYF(T)^3";

/// A name, its folder, and where the paper's values for it are.
type Order = (&'static str, Box<dyn Folder>, fn(&Benchmark) -> &Published);

/// The paper's optimal and greedy order.
fn orders() -> [Order; 2] {
    [
        ("outermost", Box::new(Outermost::default()), |benchmark| &benchmark.optimal),
        ("innermost", Box::new(Innermost::default()), |benchmark| &benchmark.greedy),
    ]
}

/// A stream for each benchmark, and where they are from.
pub(super) struct Traces {
    pub(super) origin: &'static str,
    pub(super) streams: Vec<Vec<u32>>,
}

impl Traces {
    pub(super) fn generated() -> Self {
        let streams = BENCHMARKS.iter().map(Benchmark::stream).collect();
        Self { origin: "generated streams of the published structure", streams }
    }
}

/// Table I: the nest of LU.
pub(super) fn print_table_one() -> Result<()> {
    let columns = [Column::Text("order"), Column::Text("nest"), Column::Text("as printed")];
    let mut table = Table::new("Xu, table I: LU class C, 323,048 events, 69 in the nest", &columns);
    for (order, folder, _) in orders() {
        let nest = nest_of(&streams::lu(160, 249), &*folder)?;
        let equal = if nest == parse(TABLE_ONE) { "yes" } else { "NO" };
        table.row([order.to_string(), letters(&nest.0), equal.to_string()]);
    }
    println!("{table}");
    Ok(())
}

/// Tables III and V: the loops found, and how much shorter the trace becomes.
pub(super) fn print_structures(traces: &Traces) -> Result<()> {
    let columns = [
        Column::Text("trace"),
        Column::Number("events"),
        Column::Text("order"),
        Column::Text("main loop"),
        Column::Text("published"),
        Column::Number("span %"),
        Column::Number("published"),
        Column::Number("folded"),
        Column::Number("published"),
        Column::Number("ratio"),
        Column::Number("published"),
    ];
    let title = format!(
        "Xu, tables III and V: main loops in {}.\n\
         We count the events written in the nest; the paper counts otherwise (LU: 69 are printed\n\
         in table I, 60 lie outside the loops). We read its main loops as sums, in any order of the parts",
        traces.origin
    );
    let mut table = Table::new(title, &columns);
    for (benchmark, stream) in BENCHMARKS.iter().zip(&traces.streams) {
        for (order, folder, published) in orders() {
            let nest = nest_of(stream, &*folder)?;
            let published = published(benchmark);
            let (events, folded) = (stream.len() as f64, nest.folded());
            table.row([
                benchmark.name.to_string(),
                grouped(stream.len() as u128),
                order.to_string(),
                main_loop(&nest).unwrap_or_default(),
                published.structure.to_string(),
                format!("{:.2}", 100.0 * longest_span(&nest) as f64 / events),
                format!("{:.2}", benchmark.span),
                folded.to_string(),
                format!("{:.0}", events / published.ratio),
                format!("{:.2}", events / folded as f64),
                format!("{:.2}", published.ratio),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

fn longest_span(nest: &Nest) -> u64 {
    let loops = nest.0.iter().filter(|node| matches!(node, Node::Loop(..)));
    loops.map(|node| events_of(std::slice::from_ref(node))).max().unwrap_or(0)
}

/// Tables IV and V: the times, and the lengths of the loop bodies.
pub(super) fn print_times(traces: &Traces) -> Result<()> {
    let columns = [
        Column::Text("trace"),
        Column::Number("events"),
        Column::Text("order"),
        Column::Number("ms"),
        Column::Number("published s"),
        Column::Number("faster"),
        Column::Number("shortest body"),
        Column::Number("longest"),
        Column::Number("published"),
        Column::Number("longest"),
    ];
    let title = format!(
        "Xu, tables IV and V: {}.\n\
         CPU time in milliseconds, the published times in seconds (on the machines of their day),\n\
         and the shortest and longest loop bodies. The paper does not count LU's repeats of one\n\
         event outside the main loop",
        traces.origin
    );
    let mut table = Table::new(title, &columns);
    for (benchmark, stream) in BENCHMARKS.iter().zip(&traces.streams) {
        let symbols = symbols(stream)?;
        for (order, folder, published) in orders() {
            let (folded, time) = clock::best(|| fold(&symbols, &*folder));
            folded?;
            let seconds = published(benchmark).seconds;
            let [shortest, longest] = body_lengths(&nest_of(stream, &*folder)?);
            let mut row = vec![
                benchmark.name.to_string(),
                grouped(stream.len() as u128),
                order.to_string(),
                format!("{:.3}", 1e3 * time.as_secs_f64()),
                format!("{seconds:.2}"),
                format!("{}x", short(seconds / time.as_secs_f64())),
            ];
            row.extend([shortest, longest].map(|length| length.to_string()));
            if order == "outermost" {
                row.extend(benchmark.bodies.map(|length| length.to_string()));
            }
            table.row(row);
        }
    }
    println!("{table}");
    Ok(())
}

/// The shortest and the longest loop body of a nest.
fn body_lengths(nest: &Nest) -> [u64; 2] {
    let lengths = || loops_in(&nest.0).into_iter().map(|(body, _)| events_of(body));
    [lengths().min().unwrap_or(0), lengths().max().unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The main loop in each order.
    fn main_loops(name: &str) -> [String; 2] {
        let benchmark = BENCHMARKS.iter().find(|benchmark| benchmark.name == name).unwrap();
        orders().map(|(_, folder, _)| main_loop(&nest_of(&benchmark.stream(), &*folder).unwrap()).unwrap())
    }

    #[test]
    fn table_one_is_found_as_printed() {
        for (order, folder, _) in orders() {
            let nest = nest_of(&streams::lu(160, 249), &*folder).unwrap();
            assert_eq!(nest, parse(TABLE_ONE), "{order}");
            assert_eq!(nest.folded(), 69);
        }
    }

    #[test]
    fn streams_have_the_published_lengths_and_spans() {
        let lengths: Vec<usize> = BENCHMARKS.iter().map(|benchmark| benchmark.stream().len()).collect();
        assert_eq!(lengths, [17_106, 26_888, 41_954, 8_909, 10_047, 203_048, 323_048]);
        for benchmark in BENCHMARKS {
            let stream = benchmark.stream();
            let nest = nest_of(&stream, &Outermost::default()).unwrap();
            let span = 100.0 * longest_span(&nest) as f64 / stream.len() as f64;
            assert!((span - benchmark.span).abs() < 0.01, "{}: {span}", benchmark.name);
            assert_eq!(body_lengths(&nest)[1], benchmark.bodies[1], "{}", benchmark.name);
        }
    }

    #[test]
    fn both_orders_find_the_published_loops() {
        for benchmark in BENCHMARKS.iter().filter(|benchmark| benchmark.name != "CG B/C") {
            let published = [benchmark.optimal.structure, benchmark.greedy.structure];
            assert_eq!(main_loops(benchmark.name), published, "{}", benchmark.name);
        }
    }

    #[test]
    fn the_greedy_order_loses_an_inner_iteration_of_cg() {
        let [outermost, innermost] = main_loops("CG B/C");
        assert_eq!(outermost, "(552)^75 = (5 + (21)^26 + 1)^75");
        assert_eq!(innermost, "(552)^75 = (5 + (21)^25 + 22)^75");
    }
}
