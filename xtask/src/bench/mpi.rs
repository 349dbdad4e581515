//! Measures how fast communication patterns are found, on generated programs of the shapes of the
//! paper's three case studies and ten times as long: from an open fold to process patterns,
//! partners and communication patterns, on one core, with the memory that it takes beside
//! that of the fold. The paper's own procedure for process patterns is executed beside it on one
//! process, because it is quadratic.

use super::measure::memory;
use super::{Settings, progress};
use crate::table::{Column, Table, grouped, short};
use crate::{Arguments, clock};
use anyhow::{Context, Result, bail, ensure};
use loopfold::folders::{Folder as _, Outermost, SequiturRuns};
use loopfold::questions::communication::{Partners, Processes, communication_patterns};
use loopfold::questions::patterns::{self, EventChoice, MemoryBudget, Patterns};
use loopfold::questions::similar::{Compared, Filtered, LikePattern, Likeness, find_similar};
use loopfold::trace::{Collector, Event, Field, Projection, Role, Sink as _, TimesKept, Value};
use loopfold::{Fold, StreamId, Symbol, archive, folders};
use loopfold_testing::mpi::{self, Call, Program};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// The hidden chore of a child process.
pub(crate) const CHILD: &str = "bench-patterns";

/// A program of one of the paper's shapes, some times as long.
struct Case {
    name: &'static str,
    /// The seconds that the paper reports for its own execution; `None` for a case of ours,
    /// which has no target.
    paper_seconds: Option<f64>,
    make: fn(usize) -> Program,
}

const CASES: [Case; 5] = [
    Case { name: "SP, 4 processes", paper_seconds: Some(12.0), make: |times| mpi::sp(401 * times - 1) },
    Case {
        name: "weather model, 16",
        paper_seconds: Some(37.0),
        make: |times| mpi::weather(4, 4, 3510 * times),
    },
    // The paper found 202 patterns; a longer execution has longer phases.
    Case {
        name: "adaptive mesh, 16",
        paper_seconds: Some(228.0),
        make: |times| mpi::adaptive(16, 202, 9900 * times, 200 * times, 1),
    },
    Case {
        name: "many short phases",
        paper_seconds: None,
        make: |times| mpi::adaptive(16, 202, 9900 * times, 40, 1),
    },
    Case {
        name: "no phases at all",
        paper_seconds: None,
        make: |times| mpi::shuffled(16, 202, 9900 * times, 1),
    },
];

/// Millions of events a second, at least.
const TARGET: f64 = 10.0;

/// Measures and prints the tables.
pub(super) fn run(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("program"),
        Column::Number("events"),
        Column::Number("items"),
        Column::Number("patterns"),
        Column::Number("ms"),
        Column::Number("million events/s"),
        Column::Number("peak MB"),
        Column::Number("paper's run, s"),
        Column::Number("paper's procedure, times"),
    ];
    let mut table = Table::new("Patterns of communication, on one core", &columns);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("program.fold");
    let mut slowest = f64::INFINITY;
    let lengths: &[usize] = if settings.quick { &[1] } else { &[1, 10] };
    for case in &CASES {
        for &times in lengths {
            progress(format_args!("patterns of {} × {times}", case.name));
            let program = (case.make)(times);
            let fold = fold(&program)?;
            archive::write(&fold, &mut std::fs::File::create(&file)?)?;
            let found = in_child(&file)?;
            let speed = found.events as f64 / found.seconds / 1e6;
            if case.paper_seconds.is_some() {
                slowest = slowest.min(speed);
            }
            let literal = (times == 1 && !settings.quick)
                .then(|| literal(&program, found.seconds / found.events as f64));
            table.row([
                format!("{} × {times}", case.name),
                grouped(found.events),
                grouped(fold.items() as u64),
                grouped(found.patterns),
                short(1e3 * found.seconds),
                short(speed),
                short(found.peak_bytes as f64 / 1e6),
                case.paper_seconds.filter(|_| times == 1).map_or(String::new(), short),
                literal.map_or(String::new(), short),
            ]);
        }
    }
    println!("{table}");
    let verdict = if slowest >= TARGET { "met" } else { "MISSED" };
    println!(
        "target: at least {TARGET} million events a second: {verdict}, the slowest has {}\n",
        short(slowest)
    );
    similar(settings)
}

/// Millions of events a second that are searched for windows, at least.
const SIMILAR_TARGET: f64 = 20.0;

/// Measures how fast windows similar to a pattern are found: the first events of the first process, as they
/// are and with one of them changed, in the streams of all processes.
fn similar(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("program"),
        Column::Text("pattern"),
        Column::Number("events"),
        Column::Number("similar windows"),
        Column::Number("edit distance, %"),
        Column::Number("million events/s"),
    ];
    let mut table =
        Table::new("Windows similar to a pattern of 24 events, n = 2, k = 1, on one core", &columns);
    let mut slowest = f64::INFINITY;
    let times = if settings.quick { 1 } else { 10 };
    for case in &CASES {
        progress(format_args!("windows like a pattern in {} × {times}", case.name));
        let fold = fold(&(case.make)(times))?;
        let compared = Compared::of(fold.alphabet(), &EventChoice::default())?;
        let first = fold.unfold(fold.streams()[0].root());
        let events = first.filter_map(|symbol| compared.symbols()[symbol.index()]);
        let pattern: Vec<Symbol> =
            events.skip_while(|&symbol| is_collective(&compared, symbol)).take(24).collect();
        let mut changed = pattern.clone();
        let middle = changed.len() / 2;
        changed[middle] =
            pattern.iter().copied().find(|&other| other != pattern[middle]).unwrap_or(pattern[0]);
        for (name, pattern) in [("as it is", &pattern), ("one event changed", &changed)] {
            let like = LikePattern::new(pattern, Likeness { edits: 1, ngram: 2 })?;
            let ((found, filtered), time) = clock::best(|| {
                let (mut found, mut filtered) = (0u64, Filtered::default());
                for stream in fold.streams() {
                    let one = find_similar(&fold, stream.root(), compared.symbols(), &like, &mut |_| {
                        found += 1;
                        true
                    });
                    filtered.places += one.places;
                    filtered.verified += one.verified;
                }
                (found, filtered)
            });
            let speed = filtered.places as f64 / time.as_secs_f64() / 1e6;
            slowest = slowest.min(speed);
            table.row([
                format!("{} × {times}", case.name),
                name.to_string(),
                grouped(filtered.places),
                grouped(found),
                short(100.0 * filtered.verified as f64 / filtered.places.max(1) as f64),
                short(speed),
            ]);
        }
    }
    println!("{table}");
    let verdict = if slowest >= SIMILAR_TARGET { "met" } else { "MISSED" };
    println!(
        "target: at least {SIMILAR_TARGET} million events a second: {verdict}, the slowest has {}\n",
        short(slowest)
    );
    Ok(())
}

fn is_collective(compared: &Compared, symbol: Symbol) -> bool {
    compared.alphabet().meaning(symbol).role == Role::Collective
}

/// How many times as long an event takes in the paper's procedure, on the first process.
fn literal(program: &Program, ours: f64) -> f64 {
    let mut numbers: HashMap<Call, u32> = HashMap::new();
    let mut stream = Vec::new();
    for call in &program[0] {
        let call = match *call {
            Call::Send(to, ..) => Call::Send(to, 0, 0),
            Call::Receive(from, ..) => Call::Receive(from, 0, 0),
            Call::Message(_) | Call::Collective(..) | Call::CollectiveOn(..) => *call,
            Call::Wait | Call::Enter(_) | Call::Leave(_) => continue,
        };
        let next = numbers.len() as u32;
        stream.push(*numbers.entry(call).or_insert(next));
    }
    let (_, time) = clock::timed(|| loopfold_testing::patterns::ngrams(&stream));
    time.as_secs_f64() / stream.len() as f64 / ours
}

/// The calls of each process as a folded stream.
pub(crate) fn fold(program: &Program) -> Result<Fold> {
    let mut collector = Collector::new(Projection::default(), TimesKept::None);
    for (rank, calls) in program.iter().enumerate() {
        let stream = collector.stream(&format!("rank {rank}"))?;
        calls.iter().try_for_each(|call| push(&mut collector, stream, call))?;
    }
    Ok(folders::fold_trace(collector.finish()?, &SequiturRuns, 1)?)
}

fn push(collector: &mut Collector, stream: StreamId, call: &Call) -> Result<()> {
    let field = |key, value: u32| Field { key, value: Value::Integer(value.into()) };
    let message = |key, peer, tag, bytes| vec![field(key, peer), field("tag", tag), field("bytes", bytes)];
    let (name, role, fields) = match *call {
        Call::Send(to, tag, bytes) => ("MPI_Isend", Role::Send, message("dest", to, tag, bytes)),
        Call::Receive(from, tag, bytes) => ("MPI_Irecv", Role::Receive, message("src", from, tag, bytes)),
        Call::Wait => ("MPI_Waitall", Role::Plain, vec![]),
        Call::Collective(name, root) => {
            (name, Role::Collective, root.map(|root| field("root", root)).into_iter().collect())
        }
        Call::Enter(name) => (name, Role::Enter, vec![]),
        Call::Leave(name) => (name, Role::Leave, vec![]),
        Call::Message(_) | Call::CollectiveOn(..) => bail!("programs of the benchmark have one communicator"),
    };
    Ok(collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(name) })?)
}

struct Found {
    seconds: f64,
    peak_bytes: u64,
    events: u64,
    patterns: u64,
}

/// Runs the child on an archive.
fn in_child(file: &Path) -> Result<Found> {
    let output = Command::new(std::env::current_exe()?).arg(CHILD).arg(file).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [nanoseconds, peak_bytes, events, patterns] => {
            Ok(Found { seconds: nanoseconds as f64 / 1e9, peak_bytes, events, patterns })
        }
        _ => bail!("finding patterns gave no result"),
    }
}

/// The child's side: opens the archive, finds the patterns, prints nanoseconds, bytes of
/// memory beyond what it had with the archive open, events and patterns.
pub(crate) fn child(mut arguments: Arguments) -> Result<()> {
    let file = arguments.word().context("an archive")?;
    arguments.finish()?;
    let mut archive = archive::Archive::open(std::io::BufReader::new(std::fs::File::open(file)?))?;
    let (fold, _) = archive.read(&archive::ReadConfig::new().times(false))?;
    drop(archive);
    let base = memory("VmRSS")?;
    let (first, time) = clock::timed(|| patterns_of(&fold));
    let (events, patterns) = first?;
    let peak = memory("VmHWM")?;
    let (_, again) = clock::best(|| patterns_of(&fold));
    println!("{} {} {events} {patterns}", time.min(again).as_nanos(), peak.saturating_sub(base));
    Ok(())
}

/// How many communication events there are, and how many patterns.
fn patterns_of(fold: &Fold) -> Result<(u64, u64)> {
    let processes =
        Processes::of(fold, &EventChoice::default(), MemoryBudget::default(), &|stream, builder| {
            Outermost::default().fold(stream, builder)
        })?;
    let shown = processes.shown();
    let events = shown.iter().map(|stream| stream.length()).sum();
    // As many as the command shows.
    let found = Patterns::of(&shown, &patterns::Config::new().look_inside(20))?;
    let places = found.places(shown.len());
    let partners = Partners::of(&processes)?;
    let patterns = communication_patterns(&processes, &partners, &places);
    Ok((events, patterns.len() as u64))
}
