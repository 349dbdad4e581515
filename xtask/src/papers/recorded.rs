//! The traces of Xu's tables from recordings: the nest of each of the streams of `nas` is played by
//! `examples/mpi/nest.c`, on as many processes as the published traces have, and recorded.

use super::nas::BENCHMARKS;
use super::nest_of;
use super::tables::Traces;
use crate::recording::Programs;
use anyhow::{Context as _, Result};
use loopfold::Fold;
use loopfold::archive::{self, ReadConfig};
use loopfold::folders::Outermost;
use loopfold_testing::nest::Node;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;

/// Processes of the published traces.
const PROCESSES: usize = 16;

/// A trace for each benchmark.
pub(super) fn traces(programs: &Programs) -> Result<Traces> {
    let program = programs.compile("examples/mpi/nest.c")?;
    let mut streams = Vec::new();
    for benchmark in BENCHMARKS {
        eprintln!("recording {} …", benchmark.name);
        let nest = nest_of(&benchmark.stream(), &Outermost::default())?;
        programs.run(PROCESSES, &program, &[&text_of(&nest.0)], Some(&["--times", "none"]))?;
        let file = BufReader::new(File::open(programs.archive())?);
        streams.push(exchanges(&archive::read(file, &ReadConfig::new())?.0, "rank 5")?);
    }
    Ok(Traces { origin: "recordings of MPI programs of the published structure (rank 5 of 16)", streams })
}

/// A nest as `nest.c` takes it.
fn text_of(nodes: &[Node]) -> String {
    let mut text = String::new();
    for node in nodes {
        let _ = match node {
            Node::Event(event) => write!(text, "#{event} "),
            Node::Loop(body, times) => write!(text, "({})^{times} ", text_of(body)),
        };
    }
    text
}

/// The exchanges of a rank, which are all but the calls that begin and end the program.
fn exchanges(fold: &Fold, name: &str) -> Result<Vec<u32>> {
    let stream =
        fold.streams().iter().find(|stream| stream.name() == name).context("the rank is recorded")?;
    let symbols = fold.unfold(stream.root());
    let is_exchange = |symbol: &_| fold.alphabet().label(*symbol).starts_with("MPI_Sendrecv");
    Ok(symbols.filter(is_exchange).map(|symbol| symbol.raw()).collect())
}
