//! Tables of the papers from recordings: MPI programs of the published structure, recorded on as
//! many processes, and what is found in the recordings.
//!
//! Xu's traces are played by `examples/mpi/nest.c`, which is given the nest of each of the
//! streams of `nas` on its command line. The case studies of Alawneh and Hamou-Lhadj are played by
//! programs with the topology, the number of repetitions and the number of events that the paper
//! gives; what it does not give is invented.

use super::nas::BENCHMARKS;
use super::notation::main_loop;
use super::{fold, nest_of, nodes_of};
use crate::clock;
use crate::recording::Programs;
use crate::table::{Column, Table};
use anyhow::{Context as _, Result};
use loopfold::archive::{self, ReadConfig};
use loopfold::folders::{Folder, Innermost, Outermost};
use loopfold::{Fold, Symbol};
use loopfold_testing::Nest;
use loopfold_testing::nest::Node;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;

/// Processes of the published traces.
const PROCESSES: usize = 16;

pub(super) fn print() -> Result<()> {
    let programs = Programs::new()?;
    print_nests(&programs)?;
    print_case_studies(&programs)
}

fn read(programs: &Programs) -> Result<Fold> {
    let file = File::open(programs.archive())?;
    Ok(archive::read(BufReader::new(file), &ReadConfig::new())?.0)
}

/// Tables III to V.
fn print_nests(programs: &Programs) -> Result<()> {
    let columns = [
        Column::Text("trace"),
        Column::Number("events"),
        Column::Text("order"),
        Column::Text("main loop"),
        Column::Text("published"),
        Column::Number("ratio"),
        Column::Number("published"),
        Column::Number("ms"),
        Column::Number("published s"),
        Column::Number("archive bytes"),
    ];
    let title = "Xu, tables III to V, from recordings: the nest of each trace played by an MPI program on 16\n\
                 processes and recorded; the events of rank 5, of which those between MPI_Init and MPI_Finalize";
    let mut table = Table::new(title, &columns);
    let program = programs.compile("examples/mpi/nest.c")?;
    for benchmark in BENCHMARKS {
        eprintln!("recording {} …", benchmark.name);
        let stream = benchmark.stream();
        let nest = nest_of(&stream, &Outermost::default())?;
        programs.run(PROCESSES, &program, &[&text_of(&nest.0)], Some(&["--times", "none"]))?;
        let bytes = programs.archive().metadata()?.len();
        let recorded = symbols_of_rank(&read(programs)?, "rank 5")?;
        let orders: [(&str, Box<dyn Folder>, _); 2] = [
            ("outermost", Box::new(Outermost::default()), &benchmark.optimal),
            ("innermost", Box::new(Innermost::default()), &benchmark.greedy),
        ];
        for (order, folder, published) in orders {
            let (folded, time) = clock::best(|| fold(&recorded, &*folder));
            let folded = folded?;
            let nest = Nest(nodes_of(&folded, folded.streams()[0].root()));
            table.row([
                benchmark.name.to_string(),
                recorded.len().to_string(),
                order.to_string(),
                main_loop(&nest).unwrap_or_default(),
                published.structure.to_string(),
                format!("{:.2}", recorded.len() as f64 / nest.folded() as f64),
                format!("{:.2}", published.ratio),
                format!("{:.3}", 1e3 * time.as_secs_f64()),
                format!("{:.2}", published.seconds),
                bytes.to_string(),
            ]);
        }
    }
    println!("{table}");
    Ok(())
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

/// The exchanges of a rank.
fn symbols_of_rank(fold: &Fold, name: &str) -> Result<Vec<Symbol>> {
    let stream =
        fold.streams().iter().find(|stream| stream.name() == name).context("the rank is recorded")?;
    let is_exchange = |symbol: &Symbol| fold.alphabet().label(*symbol).starts_with("MPI_Sendrecv");
    Ok(fold.unfold(stream.root()).filter(is_exchange).collect())
}

/// A case study: the program that plays it, and what the paper says.
struct Case {
    name: &'static str,
    source: &'static str,
    processes: usize,
    arguments: &'static [&'static str],
    published: &'static str,
}

const CASES: [Case; 3] = [
    Case {
        name: "WRF",
        source: "examples/mpi/weather.c",
        processes: 16,
        arguments: &["100", "35", "10"],
        published: "336,960 events; 2-D mesh, 3,510 times, in START_DOMAIN_EM (once) and SOLVE_EM (100 times); 37 s",
    },
    Case {
        name: "SP",
        source: "examples/mpi/allpairs.c",
        processes: 4,
        arguments: &["401", "4"],
        published: "38,544 events; all processes with all others, 401 times; 12 s",
    },
    Case {
        name: "FLASH",
        source: "examples/mpi/irregular.c",
        processes: 16,
        arguments: &["202", "20"],
        published: "633,490 events; 202 distinct patterns, one of them 927 times; 228 s",
    },
];

fn print_case_studies(programs: &Programs) -> Result<()> {
    println!("Alawneh and Hamou-Lhadj, section V, from recordings of programs of the published structure\n");
    for case in CASES {
        eprintln!("recording {} …", case.name);
        let program = programs.compile(case.source)?;
        programs.run(case.processes, &program, case.arguments, Some(&[]))?;
        let started = std::time::Instant::now();
        let answer = programs.ask(&["patterns", "--top", "2"])?;
        println!("{}: published {}", case.name, case.published);
        println!("recorded, and found in {:.2} s:", started.elapsed().as_secs_f64());
        // What each process does is in the program.
        let is_of_process = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("rank ") || line.split(' ').nth(1) == Some("processes")
        };
        answer.lines().filter(|line| !is_of_process(line)).take(16).for_each(|line| println!("    {line}"));
        println!();
    }
    Ok(())
}
