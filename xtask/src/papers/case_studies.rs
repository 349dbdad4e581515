//! The case studies of Alawneh and Hamou-Lhadj (section V) from recordings: MPI programs with the
//! number of processes, the topology, the repetitions and the events that the paper gives, and what
//! `loopfold patterns` finds in their recordings. What the paper does not give is invented.
//!
//! A published number is compared with one that is found, never with what the program was given.

use crate::recording::Programs;
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::time::Instant;

/// A case study: the program that plays it, and what the paper says.
struct Case {
    name: &'static str,
    source: &'static str,
    processes: usize,
    arguments: &'static [&'static str],
    figures: &'static [Figure],
}

/// A published value, and where to find ours.
type Figure = (&'static str, &'static str, fn(&Answers) -> String);

/// What is found in a recording.
struct Answers {
    messages: Value,
    collectives: Value,
    /// Reading the archive included.
    seconds: f64,
}

const CASES: [Case; 3] = [
    Case {
        name: "WRF",
        source: "examples/mpi/weather.c",
        processes: 16,
        arguments: &["100", "35", "10", "76"],
        figures: &[
            ("point-to-point events", "336,960", events),
            ("topology", "2-D mesh", |all| topology(first(all))),
            ("repetitions", "3,510", |all| count(first(all))),
            ("calls of START_DOMAIN_EM with it", "1", |all| calls(all, "start_domain")),
            ("calls of SOLVE_EM with it", "100", |all| calls(all, "solve")),
            ("Bcast Gather Gatherv Gather Scatterv, repetitions", "60", |all| collective(all, 5)),
            ("Bcast Gather Gatherv, repetitions, with those in the longer one", "116 + 60", |all| {
                collective(all, 3)
            }),
            ("seconds", "37", seconds),
        ],
    },
    Case {
        name: "SP",
        source: "examples/mpi/allpairs.c",
        processes: 4,
        arguments: &["401", "4", "2"],
        figures: &[
            ("point-to-point events", "38,544", events),
            ("topology", "all with all", |all| topology(first(all))),
            ("repetitions", "401", |all| count(first(all))),
            ("seconds", "12", seconds),
        ],
    },
    Case {
        name: "FLASH",
        source: "examples/mpi/adaptive.c",
        processes: 16,
        arguments: &["202", "927", "5", "1540"],
        figures: &[
            ("point-to-point events", "633,490", events),
            ("distinct patterns", "202", |all| grouped(patterns(&all.messages).len() as u64)),
            ("repetitions of the pattern of figure 10a", "927", |all| with_count(all, 927)),
            ("repetitions of the pattern of figure 10b", "5", |all| with_count(all, 5)),
            ("seconds", "228", seconds),
        ],
    },
];

/// Communication patterns; those of single processes are counted apart, here as in the paper.
fn patterns(answer: &Value) -> Vec<&Value> {
    let all = answer["patterns"].as_array().into_iter().flatten();
    all.filter(|pattern| pattern["kind"] == "communication").collect()
}

/// The pattern that covers the most events.
fn first(all: &Answers) -> &Value {
    patterns(&all.messages).first().copied().unwrap_or(&Value::Null)
}

fn count(pattern: &Value) -> String {
    pattern["count"].as_u64().map_or("-".to_string(), grouped)
}

fn topology(pattern: &Value) -> String {
    let Some(name) = pattern["topology"]["name"].as_str() else { return "none".to_string() };
    let sides = pattern["topology"]["shape"].as_array().into_iter().flatten();
    let shape: Vec<String> = sides.map(Value::to_string).collect();
    format!("{name} of {}", shape.join(" by "))
}

fn events(all: &Answers) -> String {
    all.messages["events"].as_u64().map_or("-".to_string(), grouped)
}

fn seconds(all: &Answers) -> String {
    short(all.seconds)
}

/// In how many calls of a function the pattern of messages occurs.
fn calls(all: &Answers, function: &str) -> String {
    let mut contexts = first(all)["contexts"].as_array().into_iter().flatten();
    let found = contexts.find(|context| context["function"] == function);
    found.and_then(|context| context["calls"].as_u64()).map_or("-".to_string(), grouped)
}

/// How often the pattern of that many collective operations occurs, without loops in it.
fn collective(all: &Answers, length: usize) -> String {
    let is_wanted = |pattern: &&Value| {
        let nest = pattern["nests"]["rank 0"].as_array();
        nest.is_some_and(|nest| nest.len() == length && nest.iter().all(Value::is_string))
    };
    patterns(&all.collectives).into_iter().find(is_wanted).map_or("-".to_string(), count)
}

fn with_count(all: &Answers, wanted: u64) -> String {
    let mut found = patterns(&all.messages).into_iter().filter(|pattern| pattern["count"] == wanted);
    found.next().map_or("none".to_string(), count)
}

pub(super) fn print(programs: &Programs) -> Result<()> {
    let title = "Alawneh and Hamou-Lhadj, section V: patterns in recordings of programs of the published\n\
                 structure. Repetitions of a pattern include those within longer ones, which the paper\n\
                 counts only for the longer. The patterns of the program for FLASH share no sequence; a\n\
                 program that draws its partners, such as irregular.c, has short patterns in common\n\
                 between epochs by chance, with 202 epochs some 600";
    let columns = [
        Column::Text("trace"),
        Column::Text("figure"),
        Column::Number("published"),
        Column::Number("recorded"),
    ];
    let mut table = Table::new(title, &columns);
    for case in CASES {
        eprintln!("recording {} …", case.name);
        let program = programs.compile(case.source)?;
        programs.run(case.processes, &program, case.arguments, Some(&[]))?;
        let ask = |kind: &str| -> Result<Value> {
            let text = programs.ask(&["patterns", "--json", "--top", "0", "--kind", kind])?;
            serde_json::from_str(&text).with_context(|| format!("patterns of {}", case.name))
        };
        let started = Instant::now();
        let messages = ask("messages")?;
        let seconds = started.elapsed().as_secs_f64();
        let answers = Answers { messages, collectives: ask("collectives")?, seconds };
        for (what, published, ours) in case.figures {
            table.row([case.name, what, published].map(str::to_string).into_iter().chain([ours(&answers)]));
        }
    }
    println!("{table}");
    Ok(())
}
