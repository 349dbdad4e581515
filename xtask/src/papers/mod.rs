//! `cargo xtask papers`: reproduces the papers' tables and figures, printed beside the published
//! values. The key claims are unit tests as well.
//!
//! * Xu, Subhlok, Hammen, "Efficient Discovery of Loop Nests in Execution Traces": tables
//!   I, III, IV and V, and the bound on what the greedy order loses.
//!   With `--recorded`, III to V also from recordings of MPI programs of that structure.
//! * Alawneh, Hamou-Lhadj, "Pattern Recognition Techniques Applied to the Abstraction of Traces of
//!   Inter-Process Communication": the case studies, with `--recorded`.
//! * Knödtel et al., "Efficient Hierarchical Decomposition of Repetitive Traces for
//!   ML-Driven Analysis": figure 1; with `--figures DIR` figures 6(a) and 6(b), as plots there.
//! * Larus, "Whole Program Paths": figure 9; with `--paths` table 1 and figure 8 from recordings of
//!   real programs.
//! * Zhang, Gupta, "Path Matching in Compressed Control Flow Traces": figures 11 and 12
//!   (figure 13 is `cargo xtask bench paths`).

mod bound;
mod calls;
mod case_studies;
mod figures;
mod hot;
mod nas;
mod notation;
mod recorded;
mod stencil;
mod tables;
mod whole_program_paths;

use crate::Arguments;
use crate::real_programs::RealPrograms;
use crate::recording::Programs;
use anyhow::Result;
use loopfold::Symbol;
use loopfold::fold::{FoldBuilder, FoldedStream, Target};
use loopfold::folders::Folder;
use loopfold::{Fold, RuleId};
use loopfold_testing::Nest;
use loopfold_testing::nest::Node;
use std::path::PathBuf;
use tables::Traces;

/// Prints everything.
pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    let traces = arguments.option("--traces")?.map(PathBuf::from);
    let with_recordings = arguments.flag("--recorded");
    let with_paths = arguments.flag("--paths");
    let figures = arguments.option("--figures")?.map(PathBuf::from);
    arguments.finish()?;
    if let Some(directory) = figures {
        return figures::write(&directory);
    }
    if with_paths {
        return whole_program_paths::print(&RealPrograms::new()?);
    }
    tables::print_table_one()?;
    print_tables(&Traces::generated())?;
    bound::print()?;
    stencil::print()?;
    if with_recordings {
        let programs = Programs::new()?;
        print_tables(&recorded::traces(&programs)?)?;
        case_studies::print(&programs)?;
    }
    hot::print(traces.as_deref())?;
    calls::print(traces.as_deref())
}

fn print_tables(traces: &Traces) -> Result<()> {
    tables::print_structures(traces)?;
    tables::print_times(traces)
}

/// The nest that a folder finds in a stream.
fn nest_of(stream: &[u32], folder: &dyn Folder) -> Result<Nest> {
    let fold = fold(&symbols(stream)?, folder)?;
    let root = fold.streams()[0].root();
    Ok(Nest(nodes_of(&fold, root)))
}

fn symbols(stream: &[u32]) -> Result<Vec<Symbol>> {
    Ok(stream.iter().map(|&raw| Symbol::new(raw as usize)).collect::<loopfold::Result<_>>()?)
}

fn fold(stream: &[Symbol], folder: &dyn Folder) -> Result<Fold> {
    let mut builder = FoldBuilder::default();
    let root = folder.fold(stream, &mut builder)?;
    builder.stream(FoldedStream::new("", folder.name(), root));
    Ok(builder.finish())
}

fn nodes_of(fold: &Fold, rule: RuleId) -> Vec<Node> {
    let mut nodes = Vec::new();
    for item in fold.body(rule) {
        let once = match item.target() {
            Target::Symbol(symbol) => vec![Node::Event(symbol.raw())],
            Target::Rule(rule) => nodes_of(fold, rule),
        };
        match item.times() {
            1 => nodes.extend(once),
            times => nodes.push(Node::Loop(once, times)),
        }
    }
    nodes
}

/// How many events some nodes stand for.
fn events_of(nodes: &[Node]) -> u64 {
    let events = |node: &Node| match node {
        Node::Event(_) => 1,
        Node::Loop(body, times) => times * events_of(body),
    };
    nodes.iter().map(events).sum()
}

/// The loops in some nodes at any depth: body and iterations.
fn loops_in(nodes: &[Node]) -> Vec<(&[Node], u64)> {
    let mut loops = Vec::new();
    for node in nodes {
        if let Node::Loop(body, times) = node {
            loops.push((body.as_slice(), *times));
            loops.extend(loops_in(body));
        }
    }
    loops
}
