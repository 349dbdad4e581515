//! Runs a command in many processes, each of which reads and folds a part of the streams.
//!
//! Every process is given the same arguments. They agree on version and inputs (`agree`), each
//! reads what the `plan` gives it, and the `share`s become one fold in process 0, which goes on as
//! the only process would: the answer is the same, byte for byte, as all commands work on the
//! canonical form. The times of events stay in the processes that read them; process 0 asks for
//! chunks, for sums of times, for times of loops, for waits, and for archives to be folded again (`serve`,
//! `sums`, `loops`, `waits`, `refold`).
//!
//! Memory: what each process has read, folded, and its times, compressed; in process 0 also the
//! fold of the whole. No process holds the events of others.
//!
//! How messages travel is not known here: whoever starts the processes gives an [`Exchange`].

mod agree;
mod loops;
mod plan;
mod refold;
mod serve;
mod share;
mod sums;
mod waits;
mod wire;

pub(crate) use plan::{Kind, OwnStreams, Plan};
pub(crate) use refold::{Refolded, refold};
pub(crate) use serve::{serve, with_lengths_only};
pub(crate) use share::{OwnTimes, Remarks, Share};
pub(crate) use sums::{SharedTimes, TimeSums};

use crate::args::{self, Command, Parsed, ReadArgs};
use crate::{Outcome, commands, show};
use anyhow::{Result, anyhow, bail};
use loopfold_output::Output;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wire::{Message, Received};

/// How processes exchange messages. Those from one process to another arrive in order.
pub trait Exchange: Send + Sync {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// The name of the node it runs on, for messages.
    fn node(&self) -> String;

    /// Sends a message.
    fn send(&self, to: usize, message: &[u8]) -> std::io::Result<()>;

    /// Waits for the next message of a process.
    fn receive(&self, from: usize) -> std::io::Result<Vec<u8>>;
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status, as all others did.
    Status(u8),
    /// By an error, which is printed; the others must be stopped.
    Failed,
}

/// The processes.
pub(crate) struct Nodes {
    exchange: Box<dyn Exchange>,
    /// One question at a time, from whichever thread.
    asking: Mutex<()>,
    sent: AtomicU64,
    received: AtomicU64,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank(), self.size())
    }
}

static NODES: OnceLock<Nodes> = OnceLock::new();

/// The processes, if there are several.
pub(crate) fn current() -> Option<&'static Nodes> {
    NODES.get().filter(|nodes| nodes.size() > 1)
}

/// Returned by a process that has served another one to the end.
#[derive(Debug)]
pub(crate) struct Served;

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all that was asked for is answered")
    }
}

impl std::error::Error for Served {}

impl Nodes {
    pub(crate) fn rank(&self) -> usize {
        self.exchange.rank()
    }

    pub(crate) fn size(&self) -> usize {
        self.exchange.size()
    }

    fn send(&self, to: usize, message: &[u8]) -> Result<()> {
        self.sent.fetch_add(message.len() as u64, Ordering::Relaxed);
        self.exchange
            .send(to, message)
            .map_err(|error| anyhow!("nothing can be sent to process {to}: {error}"))
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        let message = self.exchange.receive(from);
        let message = message.map_err(|error| anyhow!("nothing comes from process {from}: {error}"))?;
        self.received.fetch_add(message.len() as u64, Ordering::Relaxed);
        Ok(message)
    }

    /// Sends a request and waits for the answer.
    fn ask(&self, whom: usize, request: &[u8]) -> Result<Vec<u8>> {
        let _one_at_a_time = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.send(whom, request)?;
        self.receive(whom)
    }
}

/// Runs the command of the arguments as one of several processes.
pub fn run(exchange: Box<dyn Exchange>) -> Ended {
    let nodes =
        Nodes { exchange, asking: Mutex::new(()), sent: AtomicU64::new(0), received: AtomicU64::new(0) };
    let nodes = NODES.get_or_init(|| nodes);
    // The same in all processes: one of them says so.
    match args::parse("loopfold-mpi", std::env::args_os()) {
        Ok(parsed) => run_command(nodes, parsed),
        Err(error) => {
            if nodes.rank() == 0 {
                let _ = error.print();
            }
            Ended::Status(error.exit_code() as u8)
        }
    }
}

fn run_command(nodes: &'static Nodes, parsed: Parsed) -> Ended {
    let outcome = match reading(&parsed.command) {
        Ok(arguments) => agree::agree(nodes, &arguments).and_then(|()| commands::run(parsed)),
        Err(error) => {
            if nodes.rank() == 0 {
                show::error(&error);
            }
            return Ended::Status(2);
        }
    };
    match outcome {
        Ok(outcome) if nodes.rank() == 0 => end(nodes, outcome),
        Ok(_) => failed(nodes, anyhow!("this process has nothing to do; are all of the same version?")),
        Err(error) if error.is::<Served>() => Ended::Status(0),
        Err(error) => failed(nodes, error),
    }
}

/// Ends the other processes.
fn end(nodes: &Nodes, outcome: Outcome) -> Ended {
    match serve::end(nodes).and_then(|usages| report(&usages)) {
        Ok(()) => Ended::Status(outcome.status()),
        Err(error) => failed(nodes, error),
    }
}

/// Prints an error of this process. Where process 0 has the same one, it prints it first, and then
/// stops the others.
fn failed(nodes: &Nodes, error: anyhow::Error) -> Ended {
    if nodes.rank() == 0 {
        crate::print_error(&error);
    } else {
        std::thread::sleep(Duration::from_millis((300 + 20 * nodes.rank() as u64).min(2000)));
        let place = format!("process {} on {}", nodes.rank(), nodes.exchange.node());
        crate::print_error(&error.context(place));
    }
    Ended::Failed
}

/// What a command reads. Fails for one that does not run in several processes.
fn reading(command: &Command) -> Result<ReadArgs> {
    Ok(match command {
        Command::Fold(arguments) => arguments.read.clone(),
        Command::Loops(arguments) => arguments.read.clone(),
        Command::Stats(arguments) => arguments.read.clone(),
        Command::Waits(arguments) => arguments.read.clone(),
        Command::Patterns(arguments) if !arguments.follow => arguments.read.clone(),
        Command::Similar(arguments) => {
            let is_given =
                arguments.pattern.is_some() || arguments.like.is_some() || arguments.number.is_some();
            if is_given { arguments.read.clone() } else { arguments.read.split_query()?.0 }
        }
        _ => bail!(
            "loopfold-mpi runs fold, loops, patterns (without --follow), similar, stats and waits; run other \
             commands by `loopfold`, on an archive that `loopfold-mpi fold` wrote"
        ),
    })
}

/// What a process has used in the end.
struct Usage {
    sent: u64,
    received: u64,
    /// The most memory it had, in bytes.
    memory: u64,
    /// The time that it computed, in nanoseconds.
    time: u64,
}

impl Usage {
    fn of(nodes: &Nodes) -> Self {
        let [sent, received] = [&nodes.sent, &nodes.received].map(|count| count.load(Ordering::Relaxed));
        Self { sent, received, memory: peak_memory(), time: computed() }
    }

    fn encode(&self) -> Vec<u8> {
        [self.sent, self.received, self.memory, self.time]
            .iter()
            .fold(Message::default(), |to, &one| to.number(one))
            .0
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut received = Received(bytes);
        let mut next = || received.number();
        Ok(Self { sent: next()?, received: next()?, memory: next()?, time: next()? })
    }
}

/// The variable that names a file for what each process has used, a line of JSON for each.
const REPORT: &str = "LOOPFOLD_MPI_REPORT";

fn report(usages: &[Usage]) -> Result<()> {
    let Some(path) = std::env::var_os(REPORT).map(PathBuf::from) else { return Ok(()) };
    let line = |(process, usage): (usize, &Usage)| {
        let Usage { sent, received, memory, time } = usage;
        format!(
            "{{\"process\":{process},\"sent\":{sent},\"received\":{received},\"memory\":{memory},\"time\":{time}}}\n"
        )
    };
    let lines: String = usages.iter().enumerate().map(line).collect();
    Output::claim(&path)?.write(|out| -> Result<()> { Ok(out.write_all(lines.as_bytes())?) })?;
    Ok(())
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// The time of all threads of this process.
fn computed() -> u64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
    }
    #[cfg(not(unix))]
    0
}
