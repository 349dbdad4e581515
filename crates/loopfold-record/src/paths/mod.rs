//! Records the control flow of programs that `loopfold cc` compiled: which paths every thread
//! executes, folded while the program runs.
//!
//! The run-time library (`runtime.c`) is linked into the program. It hands tokens over through
//! shared memory (`memory`), and sends the descriptions of functions over a socket (`messages`).
//! [`PathLaunch`] starts the program and follows its processes and threads (`live`, `process`);
//! tokens are decoded to events (`tokens`, `functions`, `events`) and folded (`folding`), or kept in
//! a file and folded afterwards (`spool`). The paths of an MPI program are read by the process that
//! folds its calls (`rank`).

mod address;
mod counters;
mod events;
mod folding;
mod functions;
mod live;
mod memory;
mod messages;
mod process;
mod rank;
mod spool;
mod tokens;

pub use counters::Counter;
pub(crate) use events::{Decoded, Shared};
pub use folding::Recorded;
pub(crate) use folding::{INSTRUCTIONS, LaneName};
pub(crate) use rank::{Extent, RankPaths};
pub use spool::{Spooled, is_spool, read_spool};

use crate::{Error, Result};
use folding::Folding;
use live::{Followers, Listener, Session, Target};
use loopfold::trace::Spill;
use loopfold_output::{Claim, Output, signals};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use spool::Spool;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that names the socket, for the run-time library.
pub(crate) const SOCKET: &str = "LOOPFOLD_PATHS";
/// Set if the run-time library writes cycles, too.
pub(crate) const CYCLES: &str = "LOOPFOLD_PATHS_CYCLES";
/// What it counts instead of cycles.
const COUNTER: &str = "LOOPFOLD_PATHS_COUNTER";

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
    /// What was recorded; `None` if no process was compiled with `loopfold cc`.
    pub recorded: Option<Recorded>,
    /// How the program ended.
    pub status: ExitStatus,
    /// What was not recorded, and why.
    pub problems: Vec<String>,
    /// The spool, which is not needed any more when the archive is written.
    pub spool: Option<Claim>,
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
    /// sent the signals that are sent to it.
    pub fn run(&self, program: &[OsString]) -> Result<PathRun> {
        let [name, arguments @ ..] = program else { return Err(Error::new("there is no program to record")) };
        let path = crate::launch::find(Path::new(name))?;
        let output = Output::claim_for_recording(&self.output)?;
        let scratch = self.is_measured().then(|| output.scratch().ok()).flatten().map(Spill::new);
        let session = Arc::new(Session::new(self.target(&output, scratch.clone())?, self.counter));
        let (address, socket) = address::listen()?;
        let (control, controlled) = UnixStream::pair()?;
        let forwarding = Forwarding::begin(control.try_clone()?)?;
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
        // The threads that fold yield to the program, which waits for them only if a ring is full.
        let followed = Followers::default();
        let listener = Listener { session: Arc::clone(&session), socket, control: controlled, followed };
        let listening = std::thread::spawn(move || {
            let _ = rustix::process::setpriority_process(None, 5);
            listener.run()
        });
        let status = child.wait()?;
        forwarding.ended();
        (&control).write_all(b"e")?;
        let processes = listening.join().map_err(|_| Error::new("the recorder has failed"))??;
        drop(forwarding);
        let problems = std::mem::take(&mut *session.problems());
        let (recorded, spool) = match &session.target {
            Target::Fold(folding) => (folding.finish()?, None),
            Target::Spool(spool) => (spool.finish(scratch)?, Some(spool.claim().clone())),
        };
        Ok(PathRun { recorded: (processes > 0).then_some(recorded), status, problems, spool, output })
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

/// Passes signals on that other processes send to this one. A terminal sends its signals to the
/// program itself.
struct Forwarding {
    handle: signal_hook::iterator::Handle,
    child: Arc<std::sync::atomic::AtomicI32>,
    has_ended: Arc<AtomicBool>,
}

impl Forwarding {
    fn begin(control: UnixStream) -> Result<Self> {
        let passed = signals::not_ignored(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]);
        let mut signals = SignalsInfo::<WithOrigin>::new(passed)?;
        let handle = signals.handle();
        let (child, has_ended): (Arc<std::sync::atomic::AtomicI32>, Arc<AtomicBool>) = Default::default();
        let (to, is_over) = (Arc::clone(&child), Arc::clone(&has_ended));
        std::thread::spawn(move || {
            for Origin { signal, cause, .. } in &mut signals {
                if is_over.load(Ordering::Acquire) {
                    // What still runs was left behind by the program; it goes on without being recorded.
                    let _ = (&control).write_all(b"s");
                } else if matches!(cause, Cause::Sent(_))
                    && let Some(pid) = Pid::from_raw(to.load(Ordering::Acquire))
                    && let Some(signal) = Signal::from_named_raw(signal)
                {
                    let _ = kill_process(pid, signal);
                }
            }
        });
        Ok(Self { handle, child, has_ended })
    }

    fn to(&self, child: u32) {
        self.child.store(child as i32, Ordering::Release);
    }

    fn ended(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.handle.close();
    }
}
