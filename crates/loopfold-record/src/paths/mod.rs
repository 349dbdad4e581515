//! Records the control flow of programs that `loopfold-cc` compiled: which paths every thread
//! executes, folded while the program runs.
//!
//! The run-time library (`runtime/`) is linked into the program. It hands tokens over through shared
//! memory (`memory`), and sends the descriptions of functions over a socket (`messages`).
//! [`PathLaunch`] starts the program; one event loop follows its processes (`listener`, `process`),
//! and a few threads (`workers`) read their lanes (`lane`). Tokens are decoded to events (`tokens`,
//! `functions`, `events`) and folded (`folding`), or kept in a file and folded afterwards (`spool`);
//! what is lost on the way is counted (`session`), and copies are made now and then (`snapshot`). The
//! paths of an MPI program are read by the process that folds its calls (`rank`).

mod address;
mod counters;
mod events;
mod folding;
mod functions;
mod lane;
mod listener;
mod memory;
mod messages;
mod process;
mod rank;
mod session;
mod snapshot;
mod spool;
mod tokens;
mod workers;

pub use counters::Counter;
pub(crate) use events::{Decoded, Shared};
pub use folding::Recorded;
pub(crate) use folding::{INSTRUCTIONS, LaneName};
pub(crate) use rank::{Extent, RankPaths};
pub use spool::{Spooled, is_spool, read_spool};

use crate::launch::{check_program, check_target};
use crate::{Error, Result};
use folding::Folding;
use listener::Listener;
use loopfold::trace::Spill;
use loopfold_output::signals::{self, Response};
use loopfold_output::{Claim, Output};
use messages::Inbox;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, kill_process, pidfd_open, setrlimit,
};
pub use session::Loss;
use session::{Session, Target};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
pub use snapshot::Partial;
use snapshot::Snapshots;
use spool::Spool;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// The variable that names the socket, for the run-time library.
pub(crate) const SOCKET: &str = "LOOPFOLD_PATHS";
/// Set if the run-time library writes cycles, too.
pub(crate) const CYCLES: &str = "LOOPFOLD_PATHS_CYCLES";
/// What it counts instead of cycles.
const COUNTER: &str = "LOOPFOLD_PATHS_COUNTER";

/// How long an archive that is being written has to be finished, once this process is asked to end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The object that is linked into instrumented programs. Empty where programs cannot be recorded.
pub fn runtime_object() -> &'static [u8] {
    include_bytes!(concat!(env!("OUT_DIR"), "/runtime.o"))
}

/// How to record the paths of a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathLaunch {
    /// The archive that will be written; files that recording needs are beside it.
    pub output: PathBuf,
    /// Write the tokens to a file while the program runs, and fold them afterwards.
    pub spool: bool,
    /// Measure the cycles of every path.
    pub cycles: bool,
    /// Measure this for every path instead; not with a spool.
    pub counter: Option<Counter>,
}

/// How a recording went.
#[derive(Debug)]
#[non_exhaustive]
pub struct PathRun {
    /// What was recorded; `None` if no process was compiled with `loopfold-cc`, or it is left in the
    /// spool.
    pub recorded: Option<Recorded>,
    /// The recorder was asked to end, so the spool was not folded.
    pub is_left_in_spool: bool,
    /// How the program ended. If the recording was stopped before, as if by the signal that did.
    pub status: ExitStatus,
    /// The recording was stopped by a signal, and the program goes on without it.
    pub is_stopped: bool,
    /// What was not recorded, and why.
    pub problems: Vec<String>,
    /// What is known to be missing.
    pub losses: Vec<Loss>,
    /// The spool, which is not needed any more when the archive is written.
    pub spool: Option<Claim>,
    /// An early copy of what was recorded, which is not needed any more, either.
    pub partial: Option<Partial>,
    /// The archive, which nobody else writes until this is dropped.
    pub output: Output,
}

impl PathLaunch {
    /// Records to this archive, folding while the program runs.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self { output: output.into(), spool: false, cycles: false, counter: None }
    }

    /// Starts the program, records it until it and all recorded processes that it has started end,
    /// and folds what was recorded. The program has the standard streams of this process, and is
    /// sent the signals that are sent to it. If that was SIGTERM, SIGINT or SIGHUP, the recording
    /// ends within a second, even if the program does not.
    pub fn run(&self, program: &[OsString]) -> Result<PathRun> {
        let [name, arguments @ ..] = program else { return Err(Error::new("there is no program to record")) };
        let path = crate::launch::find(Path::new(name))?;
        check_program(&path, &check_target(loopfold_output::Target::named(&self.output)?)?)?;
        let output = Output::claim_for_recording(&self.output)?;
        let scratch = self.is_measured().then(|| output.scratch().ok()).flatten().map(Spill::new);
        let session = Arc::new(Session::new(self.target(&output, scratch.clone())?, self.counter)?);
        let (address, socket) = address::listen()?;
        let inbox = Inbox::new(socket)?;
        let (control, controlled) = UnixStream::pair()?;
        let forwarding = Forwarding::begin(control)?;
        let mut command = Command::new(name);
        command.args(arguments).env(SOCKET, &address).env_remove(CYCLES).env_remove(COUNTER);
        if self.is_measured() {
            command.env(CYCLES, "1");
        }
        if let Some(counter) = self.counter {
            command.env(COUNTER, counter.variable());
        }
        let mut child = command.spawn().map_err(|error| Error::at(&path, error))?;
        forwarding.to(child.id());
        allow_files();
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(Error::new)?;
        let listener = Listener::new(Arc::clone(&session), inbox, controlled, end)?;
        let snapshots = Snapshots::begin(&session, &output);
        let processes = listener.run()?;
        let partial = snapshots.end();
        // Its number may be used again once it is waited for.
        forwarding.to(0);
        end_when_asked(partial.is_some() || self.spool)?;
        let ended = child.try_wait()?;
        let signal = forwarding.last_signal();
        drop(forwarding);
        let status = ended.unwrap_or_else(|| ExitStatus::from_raw(signal));
        let is_stopped = ended.is_none();
        let (recorded, spool) = match &session.target {
            Target::Fold(folding) => (Some(folding.finish()?), None),
            // Whoever sends such a signal does not wait until a spool is folded.
            Target::Spool(spool) if signal != 0 => (spool.end().map(|()| None)?, Some(spool.claim().clone())),
            Target::Spool(spool) => (Some(spool.finish(scratch)?), Some(spool.claim().clone())),
        };
        let is_left_in_spool = recorded.is_none() && processes > 0;
        let recorded = recorded.filter(|_| processes > 0);
        let problems = std::mem::take(&mut *session.problems());
        // The archive says what is missing; a spool that is not folded yet does not.
        let losses = match &recorded {
            Some(recorded) => Loss::of_all(&recorded.fold),
            None => std::mem::take(&mut *session.losses()),
        };
        Ok(PathRun {
            recorded,
            is_left_in_spool,
            status,
            is_stopped,
            problems,
            losses,
            spool,
            partial,
            output,
        })
    }

    /// Where tokens go; cycles are kept in `spill` until they are summed, or without it in memory.
    fn target(&self, output: &Output, spill: Option<Arc<Spill>>) -> Result<Target> {
        if self.spool {
            let spool = Spool::create(Claim::spool(output.target())?, self.cycles)?;
            return Ok(Target::Spool(Arc::new(spool)));
        }
        let metric = self.counter.map(Counter::metric).or(self.cycles.then_some(folding::CYCLES));
        Ok(Target::Fold(Folding::new(metric, spill)))
    }

    /// Whether something is measured for every path.
    fn is_measured(&self) -> bool {
        self.cycles || self.counter.is_some()
    }
}

/// Lets the recorder open as many files as it may: it has two for each process. The program has its
/// own limits.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// From here on a signal that asks for the end ends this process, after some time in which the archive
/// may be finished, if what was recorded is in another file, too. If not, the second one does.
fn end_when_asked(is_kept: bool) -> Result<()> {
    let was_asked = AtomicBool::new(is_kept);
    signals::watch(move |_| {
        if is_kept {
            std::thread::sleep(LAST_WORDS);
        }
        if was_asked.swap(true, Ordering::Relaxed) { Response::End } else { Response::Continue }
    })?;
    Ok(())
}

/// Passes signals on that other processes send to this one, and reports to the listener those that ask
/// for the end. A terminal sends its signals to the program itself, which may go on.
struct Forwarding {
    handle: signal_hook::iterator::Handle,
    child: Arc<AtomicI32>,
    /// The last signal that asked for the end, or 0.
    last: Arc<AtomicI32>,
}

impl Forwarding {
    fn begin(control: UnixStream) -> Result<Self> {
        let passed = signals::not_ignored(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]);
        let mut signals = SignalsInfo::<WithOrigin>::new(passed)?;
        let handle = signals.handle();
        let (child, last): (Arc<AtomicI32>, Arc<AtomicI32>) = Default::default();
        let (to, latest) = (Arc::clone(&child), Arc::clone(&last));
        std::thread::spawn(move || {
            for Origin { signal, cause, .. } in &mut signals {
                let is_sent = matches!(cause, Cause::Sent(_));
                if is_sent
                    && let Some(pid) = Pid::from_raw(to.load(Ordering::Acquire))
                    && let Some(signal) = Signal::from_named_raw(signal)
                {
                    // Its number is not used again before it is waited for.
                    let _ = kill_process(pid, signal);
                }
                if [SIGHUP, SIGINT, SIGTERM].contains(&signal) {
                    if is_sent {
                        latest.store(signal, Ordering::Release);
                    }
                    let _ = (&control).write_all(&[u8::from(is_sent)]);
                }
            }
        });
        Ok(Self { handle, child, last })
    }

    fn to(&self, child: u32) {
        self.child.store(child as i32, Ordering::Release);
    }

    fn last_signal(&self) -> i32 {
        self.last.load(Ordering::Acquire)
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.handle.close();
    }
}
