//! Follows the processes of a recording while they run: takes their messages, and reads their lanes
//! on a thread each.
//!
//! One thread listens. It also notices the end of processes, after it has taken what they sent
//! before: so what a lane waits for either comes or is known never to come. For each process a
//! thread looks for new lanes, and each lane has one that reads its chunks and folds or spools
//! them. Threads look every few hundred microseconds to a few milliseconds; a program that runs
//! faster than its lanes are read waits.

use super::counters::Counter;
use super::folding::{FoldedLane, Folding, LaneName};
use super::memory::{Lane, Memory};
use super::messages::{Message, Parent, next_messages};
use super::process::Process;
use super::spool::{Spool, SpooledLane};
use crate::{Error, Result};
use hashbrown::HashMap;
use loopfold_paths::Module;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a thread sleeps that has found nothing: at first, and at most.
const SHORT: Duration = Duration::from_micros(100);
const LONG: Duration = Duration::from_millis(2);
/// How long a process may take to begin, once its parent has ended.
const GRACE: Duration = Duration::from_secs(1);

/// What is done with the tokens.
#[derive(Debug)]
pub(super) enum Target {
    Fold(Folding),
    Spool(Arc<Spool>),
}

/// What the threads of a recording share.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) target: Target,
    /// What is counted for every path instead of cycles.
    counter: Option<Counter>,
    /// Tokens are wanted no longer.
    is_stopped: AtomicBool,
    problems: Mutex<Vec<String>>,
}

impl Session {
    pub(super) fn new(target: Target, counter: Option<Counter>) -> Self {
        Self { target, counter, is_stopped: AtomicBool::new(false), problems: Mutex::default() }
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// What went wrong so far, each once.
    pub(super) fn problems(&self) -> MutexGuard<'_, Vec<String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, problem: String) {
        let mut problems = self.problems();
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Nothing more can be kept: the program goes on without being recorded.
    fn fail(&self, error: &Error) {
        self.note(format!("{error}; the rest is not recorded"));
        self.stop();
    }

    fn lane(&self, process: &Arc<Process>, parent: Option<&Process>, lane: &Lane) -> Result<LaneTarget> {
        let name =
            LaneName { process: process.number, thread: lane.thread, level: lane.level, usage: lane.begun };
        match &self.target {
            Target::Fold(folding) => {
                let parent = parent.filter(|_| lane.mark > 0);
                let open = parent.map(|parent| parent.open_at(lane.mark)).unwrap_or_default();
                Ok(LaneTarget::Folded(Box::new(folding.lane(process, name, &open)?)))
            }
            Target::Spool(spool) => Ok(LaneTarget::Spooled(Box::new(spool.lane(name, lane.mark)?))),
        }
    }

    fn end(&self, lane: LaneTarget) {
        if let (Target::Fold(folding), LaneTarget::Folded(lane)) = (&self.target, lane) {
            folding.end(*lane);
        }
    }
}

enum LaneTarget {
    Folded(Box<FoldedLane>),
    Spooled(Box<SpooledLane>),
}

impl LaneTarget {
    fn chunk(&mut self, tokens: &[u32]) -> Result<()> {
        match self {
            Self::Folded(lane) => lane.chunk(tokens),
            Self::Spooled(lane) => lane.chunk(tokens),
        }
    }
}

/// A process that may still write.
struct Followed {
    pid: u32,
    process: Arc<Process>,
    memory: Arc<Memory>,
    /// Readable when it has ended; `None` if it had before.
    end: Option<OwnedFd>,
}

/// Listens to processes.
pub(super) struct Listener {
    pub(super) session: Arc<Session>,
    pub(super) socket: UnixListener,
    /// A byte `e` says that no more processes are expected than there are, `s` that recording stops.
    pub(super) control: UnixStream,
    pub(super) followed: Followers,
}

/// The processes of a recording.
#[derive(Default)]
pub(super) struct Followers {
    running: Vec<Followed>,
    /// By their numbers in the system; of a number that is used again the last.
    by_pid: HashMap<u32, Arc<Process>>,
    count: usize,
    /// How many processes should have begun as copies of others that are over, less those that have.
    awaited: i64,
    threads: Vec<JoinHandle<()>>,
}

impl Followers {
    /// A process is over.
    fn end(&mut self, index: usize) {
        let Followed { process, memory, .. } = self.running.swap_remove(index);
        self.awaited += i64::from(memory.forks().unwrap_or(0));
        process.set_over();
    }
}

impl Listener {
    /// Listens until the program has ended and all processes that were recorded have; returns how
    /// many there were.
    pub(super) fn run(mut self) -> io::Result<usize> {
        self.socket.set_nonblocking(true)?;
        let mut is_ending = false;
        loop {
            let ended = self.wait(&mut is_ending)?;
            self.accept_all();
            // What they sent before their end was taken now.
            for index in ended.into_iter().rev() {
                self.followed.end(index);
            }
            if self.session.is_stopped() && is_ending {
                (0..self.followed.running.len()).rev().for_each(|index| self.followed.end(index));
            }
            if is_ending && self.followed.running.is_empty() && !self.await_children() {
                break;
            }
        }
        for thread in self.followed.threads {
            let _ = thread.join();
        }
        Ok(self.followed.count)
    }

    /// Waits until something happens; returns the places of the processes that have ended.
    fn wait(&mut self, is_ending: &mut bool) -> io::Result<Vec<usize>> {
        let running = &self.followed.running;
        let is_gone = |followed: &Followed| followed.end.is_none();
        if running.iter().any(is_gone) {
            return Ok((0..running.len()).filter(|&index| is_gone(&running[index])).collect());
        }
        let mut waiting =
            vec![PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        waiting.extend(running.iter().flat_map(|one| &one.end).map(|end| PollFd::new(end, PollFlags::IN)));
        match poll(&mut waiting, None) {
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            result => result?,
        };
        let is_ready: Vec<bool> = waiting.iter().map(|waited| !waited.revents().is_empty()).collect();
        if is_ready[0] {
            let mut byte = [b'e'];
            // Whoever holds the other end is gone: the same as its last word.
            let _ = self.control.read(&mut byte)?;
            *is_ending = true;
            if byte[0] == b's' {
                self.session.stop();
            }
        }
        let ended = is_ready[2..].iter().enumerate();
        Ok(ended.filter_map(|(index, &is_ready)| is_ready.then_some(index)).collect())
    }

    /// Waits for processes that were about to begin when their parents ended; true if one did.
    fn await_children(&mut self) -> bool {
        let since = Instant::now();
        while self.followed.awaited > 0 && since.elapsed() < GRACE && !self.session.is_stopped() {
            std::thread::sleep(LONG);
            self.accept_all();
            if !self.followed.running.is_empty() {
                return true;
            }
        }
        false
    }

    fn accept_all(&mut self) {
        while let Some(messages) = next_messages(&self.socket) {
            messages.into_iter().for_each(|message| self.take(message));
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Hello { pid, parent, memory } => self.begin(pid, parent, Memory::new(memory)),
            Message::Module { pid, first, description } => self.register(pid, first, &description),
            Message::NoCounter { error } => {
                let error = io::Error::from_raw_os_error(error);
                if let (Some(counter), Target::Fold(folding)) = (self.session.counter, &self.session.target) {
                    folding.leave_out_metric();
                    self.session.note(counter.missing(&error));
                }
            }
            Message::Failure { error } => {
                let error = io::Error::from_raw_os_error(error);
                self.session.note(format!(
                        "a process has no shared memory for recording ({error}), so it is not recorded; it takes \
                         3 MiB and a limit of file sizes (ulimit -f) and of memory (ulimit -v) that allow them"
                    ));
            }
        }
    }

    fn begin(&mut self, pid: u32, parent: Option<Parent>, memory: io::Result<Memory>) {
        let memory = match memory {
            Ok(memory) => memory,
            Err(error) => return self.session.note(error.to_string()),
        };
        let memory = Arc::new(memory);
        // The process has become another program.
        for index in (0..self.followed.running.len()).rev() {
            if self.followed.running[index].pid == pid {
                self.followed.end(index);
            }
        }
        let Followers { running, by_pid, count, awaited, threads } = &mut self.followed;
        *awaited -= i64::from(parent.is_some());
        let from = parent.and_then(|parent| Some((by_pid.get(&parent.pid)?.clone(), parent.first_own)));
        let process = Arc::new(match &from {
            Some((parent, own)) => Process::forked_from(*count, parent, *own),
            None => Process::new(*count, program_of(pid)),
        });
        if let Target::Spool(spool) = &self.session.target {
            let parent = from.as_ref().map(|(parent, own)| (parent.number, *own));
            spool.process(&process, parent).unwrap_or_else(|error| self.session.fail(&error));
        }
        *count += 1;
        by_pid.insert(pid, Arc::clone(&process));
        let end = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        running.push(Followed { pid, process: Arc::clone(&process), memory: Arc::clone(&memory), end });
        let session = Arc::clone(&self.session);
        let parent = from.map(|(parent, _)| parent);
        threads.push(std::thread::spawn(move || follow(&session, &process, parent, memory)));
    }

    fn register(&mut self, pid: u32, first: u32, description: &[u8]) {
        let Some(process) = self.followed.by_pid.get(&pid) else { return };
        match Module::decode(description) {
            Ok(module) => {
                if let Target::Spool(spool) = &self.session.target {
                    let spooled = spool.module(process, first, description);
                    spooled.unwrap_or_else(|error| self.session.fail(&error));
                }
                process.register(first, module);
            }
            Err(error) => {
                self.session.note(format!("the description of a module is not understood: {error}"));
            }
        }
    }
}

/// The name of the program that a process executes.
fn program_of(pid: u32) -> String {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Follows the lanes of a process until it is over.
fn follow(session: &Arc<Session>, process: &Arc<Process>, parent: Option<Arc<Process>>, memory: Arc<Memory>) {
    let mut lanes = Lanes { memory: Arc::clone(&memory), usages: Vec::new(), threads: Vec::new() };
    let mut pause = SHORT;
    loop {
        let is_over = process.is_over();
        if session.is_stopped() {
            let _ = memory.stop();
        }
        let found = lanes.begin_new(session, process, parent.as_ref());
        pause = if found { SHORT } else { LONG.min(pause * 2) };
        if is_over {
            break;
        }
        std::thread::sleep(pause);
    }
    for thread in lanes.threads {
        let _ = thread.join();
    }
    process.set_read();
    match memory.missed() {
        Ok(0) | Err(_) => {}
        Ok(missed) => session.note(format!(
            "{missed} threads were not recorded, or not to their end: there were too many at once, or too little memory"
        )),
    }
}

/// The lanes of a process.
struct Lanes {
    memory: Arc<Memory>,
    /// The present use of each lane.
    usages: Vec<u32>,
    threads: Vec<JoinHandle<()>>,
}

impl Lanes {
    /// Begins to read lanes that are new or used again; true if there were any.
    fn begin_new(
        &mut self,
        session: &Arc<Session>,
        process: &Arc<Process>,
        parent: Option<&Arc<Process>>,
    ) -> bool {
        let Ok(lanes) = self.memory.lanes() else { return false };
        self.usages.resize(lanes.len().max(self.usages.len()), 0);
        let mut found = false;
        for (number, lane) in lanes.into_iter().enumerate() {
            if lane.begun == self.usages[number] {
                continue;
            }
            self.usages[number] = lane.begun;
            found = true;
            let (session, process, parent) = (Arc::clone(session), Arc::clone(process), parent.cloned());
            let reading = Reading { memory: Arc::clone(&self.memory), number, lane };
            self.threads.push(std::thread::spawn(move || reading.run(&session, &process, parent.as_deref())));
        }
        self.threads.retain(|thread| !thread.is_finished());
        found
    }
}

/// A lane that is being read.
struct Reading {
    memory: Arc<Memory>,
    number: usize,
    lane: Lane,
}

impl Reading {
    fn run(self, session: &Session, process: &Arc<Process>, parent: Option<&Process>) {
        let mut target = match session.lane(process, parent, &self.lane) {
            Ok(target) => Some(target),
            Err(error) => {
                session.fail(&error);
                None
            }
        };
        let read = self.read(process, |tokens| {
            let Some(into) = &mut target else { return };
            if let Err(error) = into.chunk(tokens) {
                session.fail(&error);
                if let Some(cut) = target.take() {
                    session.end(cut);
                }
            }
        });
        if let Err(error) = read {
            session.fail(&error.into());
        }
        if let Some(target) = target {
            session.end(target);
        }
    }

    /// Takes all chunks of the lane until its use, or the process, ends.
    fn read(&self, process: &Process, mut take: impl FnMut(&[u32])) -> io::Result<()> {
        let Self { memory, number, lane } = self;
        let mut tail = memory.tail(*number)?;
        let mut tokens = Vec::new();
        let mut pause = SHORT;
        loop {
            // In this order: what is there at the end is there after it.
            let is_over = process.is_over();
            let now = memory.lane(*number)?;
            let is_over = is_over || now.ended == lane.begun;
            let is_new = tail < now.head;
            while tail < now.head {
                memory.chunk(*number, tail, &mut tokens)?;
                take(&tokens);
                tail += 1;
                memory.set_tail(*number, tail)?;
            }
            if is_over {
                memory.chunk(*number, tail, &mut tokens)?;
                take(&tokens);
                return memory.set_drained(*number, lane.begun);
            }
            if is_new {
                pause = SHORT;
            } else {
                std::thread::sleep(pause);
                pause = LONG.min(pause * 2);
            }
        }
    }
}
