//! Measures how fast waits are found, on a generated program with times: a stencil on a ring of
//! 16 processes. Beside it, on the same archive, a plain program that holds all events in lists
//! and matches them message by message. Both run in a process of their own, from an open fold, on
//! one core; memory is that beyond the open fold. Their sums must be equal.

use super::measure::memory;
use super::{Settings, progress};
use crate::table::{Column, Table, grouped, short};
use crate::{Arguments, clock};
use anyhow::{Context, Result, bail, ensure};
use loopfold::folders::{Auto, Folding};
use loopfold::mpi::{Calls, Peer};
use loopfold::questions::waits::{Config, Waits};
use loopfold::trace::{Event, Field, Name, Projection, Role, Sink as _, TimesKept, Timing, Value};
use loopfold::{Fold, archive};
use loopfold_testing::Rng;
use loopfold_testing::waits::{self, Kind, Simulated};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// The hidden chore of a child process.
pub(crate) const CHILD: &str = "bench-waits";

const PROCESSES: usize = 16;

/// Measures and prints the table.
pub(super) fn run(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("program"),
        Column::Number("events"),
        Column::Number("million events/s"),
        Column::Number("peak bytes an event"),
        Column::Number("waiting, ms"),
    ];
    let mut table = Table::new("Waits of 16 processes, on one core", &columns);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("program.fold");
    let lengths: &[usize] = if settings.quick { &[4_000] } else { &[4_000, 40_000] };
    for &steps in lengths {
        progress(format_args!("waits of {steps} steps"));
        let fold = fold(&waits::ring(PROCESSES, steps, &mut Rng::new(1)))?;
        archive::write(&fold, &mut std::fs::File::create(&file)?)?;
        drop(fold);
        let found = [("the question", "fold"), ("message by message", "plain")]
            .map(|(name, how)| in_child(&file, how).map(|found| (name, found)));
        let [ours, plain] = found;
        let ((name, ours), (plain_name, plain)) = (ours?, plain?);
        ensure!(ours.waiting == plain.waiting, "{} and {} ns of waiting", ours.waiting, plain.waiting);
        for (name, found) in [(name, ours), (plain_name, plain)] {
            table.row([
                format!("{name}, {} steps", grouped(steps as u64)),
                grouped(found.events),
                short(found.events as f64 / found.seconds / 1e6),
                short(found.peak_bytes as f64 / found.events as f64),
                short(found.waiting as f64 / 1e6),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

/// The calls of each process as a folded stream with times.
fn fold(simulated: &Simulated) -> Result<Fold> {
    let mut folding = Folding::with(Box::new(Auto), Projection::default(), TimesKept::All, 1)?;
    for (rank, calls) in simulated.calls.iter().enumerate() {
        let stream = folding.stream(&format!("rank {rank}"))?;
        for call in calls {
            let field = |&(key, number): &(&'static str, i64)| Field { key, value: Value::Integer(number) };
            let fields: Vec<Field<'_>> = call.fields.iter().map(field).collect();
            let role = match call.kind {
                Kind::Send => Role::Send,
                Kind::Receive => Role::Receive,
                Kind::Collective => Role::Collective,
                _ => Role::Plain,
            };
            let symbol = folding.intern(&Event { role, fields: &fields, ..Event::named(call.name) })?;
            let (start, duration) = (Some(call.start), Some(call.duration));
            folding.push(stream, symbol, Timing { start, duration, ..Timing::UNKNOWN })?;
        }
    }
    Ok(folding.finish()?)
}

struct Found {
    seconds: f64,
    peak_bytes: u64,
    events: u64,
    waiting: u64,
}

fn in_child(file: &Path, how: &str) -> Result<Found> {
    let output = Command::new(std::env::current_exe()?).arg(CHILD).arg(file).arg(how).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [nanoseconds, peak_bytes, events, waiting] => {
            Ok(Found { seconds: nanoseconds as f64 / 1e9, peak_bytes, events, waiting })
        }
        _ => bail!("finding waits gave no result"),
    }
}

/// The child's side: opens the archive, finds the waits one way, prints nanoseconds, bytes of
/// memory beyond what it had with the archive open, events and nanoseconds of waiting.
pub(crate) fn child(mut arguments: Arguments) -> Result<()> {
    let file = arguments.word().context("an archive")?;
    let is_plain = arguments.word().context("which way")? == "plain";
    arguments.finish()?;
    let (fold, _) = archive::read(std::fs::File::open(file)?, &archive::ReadConfig::new())?;
    let base = memory("VmRSS")?;
    let (waiting, time) = clock::timed(|| match is_plain {
        true => plain(&fold),
        false => Ok(Waits::of(&fold, &Config::new())?.all().time),
    });
    let peak = memory("VmHWM")?.saturating_sub(base);
    println!("{} {peak} {} {}", time.as_nanos(), fold.events().unwrap_or(0), waiting?);
    Ok(())
}

/// An event that waits, and the times that end its wait.
struct Waiting {
    enter: i64,
    leave: i64,
    ends: Vec<i64>,
}

/// The ends of messages from one process to another with a tag: the enter, and the event that
/// waits.
type Messages = HashMap<Channel, Vec<(i64, usize)>>;

/// Sender, receiver and tag.
type Channel = (u32, u32, Option<i64>);

/// The nanoseconds of waiting of a program of `MPI_Isend`, `MPI_Irecv`, `MPI_Waitall` and
/// `MPI_Allreduce`, message by message.
fn plain(fold: &Fold) -> Result<u64> {
    let calls = Calls::of(fold.alphabet());
    let mut events: Vec<Waiting> = Vec::new();
    let (mut sends, mut receives) = (Messages::new(), Messages::new());
    let mut collectives: Vec<Vec<usize>> = Vec::new();
    for (rank, stream) in (0u32..).zip(fold.streams()) {
        let starts = stream.times().starts.as_ref().context("starts")?.values()?;
        let durations = stream.times().durations.as_ref().context("durations")?.values()?;
        let mut pending: Vec<(bool, Channel, usize)> = Vec::new();
        let mut nth = 0;
        for ((symbol, &enter), &duration) in fold.unfold(stream.root()).zip(&starts).zip(&durations) {
            let index = events.len();
            events.push(Waiting { enter, leave: enter + duration, ends: Vec::new() });
            let name = fold.alphabet().meaning(symbol).name;
            match calls.get(symbol) {
                Some(call) if call.collective.is_some() => {
                    collectives.resize(collectives.len().max(nth + 1), Vec::new());
                    collectives[nth].push(index);
                    nth += 1;
                }
                Some(call) => {
                    for message in &call.sends {
                        let Peer::Rank(to) = message.peer else { continue };
                        let messages = sends.entry((rank, to, message.tag)).or_default();
                        pending.push((true, (rank, to, message.tag), messages.len()));
                        messages.push((enter, index));
                    }
                    for message in &call.receives {
                        let Peer::Rank(from) = message.peer else { continue };
                        let messages = receives.entry((from, rank, message.tag)).or_default();
                        pending.push((false, (from, rank, message.tag), messages.len()));
                        messages.push((enter, index));
                    }
                }
                None if name == Name::Text(b"MPI_Waitall") => {
                    for (is_send, channel, nth) in pending.drain(..) {
                        let messages = if is_send { &mut sends } else { &mut receives };
                        messages.entry(channel).or_default()[nth].1 = index;
                    }
                }
                None => {}
            }
        }
    }
    for (channel, sent) in &sends {
        for (&(sent_at, sender), &(posted_at, receiver)) in sent.iter().zip(&receives[channel]) {
            events[receiver].ends.push(sent_at);
            if posted_at <= events[sender].leave {
                events[sender].ends.push(posted_at);
            }
        }
    }
    for operation in &collectives {
        let last = operation.iter().map(|&event| events[event].enter).max().unwrap_or(0);
        operation.iter().for_each(|&event| events[event].ends.push(last));
    }
    let wait = |event: &Waiting| {
        let wait = |&end: &i64| end.min(event.leave) - event.enter;
        event.ends.iter().map(wait).max().unwrap_or(0).max(0) as u64
    };
    Ok(events.iter().map(wait).sum())
}
