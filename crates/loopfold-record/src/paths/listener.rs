//! Follows the processes of a recording while they run: one event loop, whatever their number.
//!
//! The loop waits for messages, for the ends of processes, for workers and for signals, and looks at
//! the lanes of each process when it is due: every 100 µs while something is found, more and more
//! seldom while nothing is. Each round goes in an order that makes waiting unnecessary:
//!
//! 1. Processes that have ended are noted, then messages are taken: what they sent before is there.
//! 2. The heads of lanes are read, then messages are taken again: functions that occur before these
//!    heads have their modules.
//! 3. Lanes are given to workers up to these heads. Those of a copy are, once its parent's lane has
//!    come to the fork.
//!
//! A process costs two files and a few hundred bytes while it runs, and about 50 µs in all. Where
//! there are too many files, it costs one: whether it has ended is then asked whenever it is due.

use super::lane::LaneReader;
use super::memory::{Lane, Memory};
use super::messages::{Failure, Inbox, Library, Message, Parent};
use super::process::Process;
use super::session::{Session, Target};
use super::workers::Workers;
use hashbrown::HashMap;
use loopfold_paths::Module;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// After how long a process is looked at again: at first, and at most, if there are few.
const SHORT: Duration = Duration::from_micros(100);
const LONG: Duration = Duration::from_millis(2);
/// With more processes, in proportion up to this.
const FEW: u32 = 16;
const LONGEST: Duration = Duration::from_millis(50);
/// How long a process may take to begin that its parent could not promise, once that has ended.
const GRACE: Duration = Duration::from_secs(1);
/// How long the program may take to end, once the recorder was asked to.
const NOTICE: Duration = Duration::from_millis(600);
/// How long reading what is there may take then.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many processes are watched less if files are missing.
const UNWATCHED: usize = 16;

// What is waited for; processes have their numbers from PROCESS on.
const CONTROL: u64 = 0;
const SOCKET: u64 = 1;
const PROGRESS: u64 = 2;
const PROGRAM: u64 = 3;
const PROCESS: u64 = 4;

/// Listens to processes.
pub(super) struct Listener {
    session: Arc<Session>,
    inbox: Inbox,
    /// A byte for each signal that asks for the end: 1, or 0 if the program gets it, too.
    control: UnixStream,
    epoll: OwnedFd,
    /// Readable when the program that was started has ended.
    program: OwnedFd,
    is_ending: bool,
    /// When recording is given up, if the program does not end.
    stop_at: Option<Instant>,
    /// When reading is given up that should have come to its end.
    give_up_at: Option<Instant>,
    followed: HashMap<u64, Followed>,
    /// By their numbers in the system; of a number that is used again the last.
    by_library: HashMap<Library, Arc<Process>>,
    count: usize,
    /// How many processes should have begun as copies of others that are over and could not promise
    /// them, less those that have.
    awaited: i64,
    /// When the wait for them ends.
    awaited_until: Option<Instant>,
    workers: Workers,
}

/// A process that may still write, or that was not read to its end.
struct Followed {
    library: Library,
    process: Arc<Process>,
    parent: Option<Arc<Process>>,
    memory: Arc<Memory>,
    /// Readable when it has ended; `None` if it had before, or if there is no file for it.
    end: Option<OwnedFd>,
    is_over: bool,
    /// Workers have all there is of it.
    is_given: bool,
    /// Lanes wait for what was open in the parent.
    is_waiting: bool,
    is_stopped: bool,
    /// It is of another version, and only what it throws away is known.
    is_refused: bool,
    /// The present use of each lane that has a reader.
    lanes: Vec<Option<Arc<LaneReader>>>,
    unfinished: Arc<AtomicUsize>,
    /// When it is looked at next, and how long after that.
    due: Instant,
    pause: Duration,
}

impl Listener {
    /// Listens for processes of the program with this number.
    pub(super) fn new(
        session: Arc<Session>,
        inbox: Inbox,
        control: UnixStream,
        program: OwnedFd,
    ) -> io::Result<Self> {
        control.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        add(&epoll, &control, CONTROL)?;
        add(&epoll, inbox.socket(), SOCKET)?;
        add(&epoll, session.progress(), PROGRESS)?;
        add(&epoll, &program, PROGRAM)?;
        Ok(Self {
            session,
            inbox,
            control,
            epoll,
            program,
            is_ending: false,
            stop_at: None,
            give_up_at: None,
            followed: HashMap::new(),
            by_library: HashMap::new(),
            count: 0,
            awaited: 0,
            awaited_until: None,
            workers: Workers::start(),
        })
    }

    /// Listens until the program has ended and all processes that were recorded have; returns how
    /// many there were.
    pub(super) fn run(mut self) -> io::Result<usize> {
        while !self.is_done() {
            if self.give_up_at.is_some_and(|at| Instant::now() >= at) {
                self.give_up();
                return Ok(self.count);
            }
            let ended = self.wait()?;
            self.take_messages();
            if self.inbox.is_full() {
                self.watch_fewer();
            }
            for number in ended {
                self.end(number);
            }
            self.look();
            self.remove_read();
        }
        if self.awaited > 0 && !self.session.is_stopped() {
            self.session.note(format!(
                "{} processes were to begin as copies of others and did not report: they could not begin, or \
                 were ended at once",
                self.awaited
            ));
            self.session.lose(None, "processes that did not report".to_string(), self.awaited as u64);
        }
        Ok(self.count)
    }

    /// Something is not read to its end, which should take no time any more.
    fn give_up(&mut self) {
        for followed in self.followed.values() {
            let number = followed.process.number;
            let of = format!("process {}", number + 1);
            self.session.note(format!("{of} was not read to its end"));
            self.session.lose(Some(number), of, 1);
        }
        self.workers.abandon();
    }

    /// Nothing is followed any more, and nothing is expected.
    fn is_done(&mut self) -> bool {
        let is_promised = self.inbox.is_promised() && !self.session.is_stopped();
        if !self.is_ending || !self.followed.is_empty() || is_promised {
            self.awaited_until = None;
            return false;
        }
        if self.awaited <= 0 && !self.inbox.is_full() || self.session.is_stopped() {
            return true;
        }
        Instant::now() >= *self.awaited_until.get_or_insert_with(|| Instant::now() + GRACE)
    }

    // ---- waiting ----

    /// Waits until something happens or a process is due; returns the processes that have ended.
    fn wait(&mut self) -> io::Result<Vec<u64>> {
        let timeout = self
            .timeout()
            .map(|time| Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() });
        if self.inbox.is_full() {
            // Until processes have ended, whose files are closed.
            std::thread::sleep(LONG);
        }
        let mut events = Vec::with_capacity(256);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            result => _ = result?,
        }
        let mut ended = Vec::new();
        for event in events {
            match event.data.u64() {
                CONTROL => self.take_signal(),
                SOCKET => {}
                PROGRESS => self.session.take_progress(),
                PROGRAM => {
                    self.is_ending = true;
                    let _ = epoll::delete(&self.epoll, &self.program);
                }
                number => ended.push(number - PROCESS),
            }
        }
        if self.stop_at.is_some_and(|at| Instant::now() >= at) {
            self.stop();
        }
        Ok(ended)
    }

    /// How long nothing needs to be looked at.
    fn timeout(&self) -> Option<Duration> {
        let due = self.followed.values().filter(|followed| !followed.is_given).map(|one| one.due);
        let first = due.chain(self.stop_at).chain(self.give_up_at).chain(self.awaited_until).min();
        let now = Instant::now();
        let time = first.map(|first| first.saturating_duration_since(now));
        match self.inbox.is_waiting() {
            true => Some(time.unwrap_or(LONG).min(LONG).max(SHORT)),
            false => time,
        }
    }

    fn take_signal(&mut self) {
        let mut bytes = [0; 16];
        let count = self.control.read(&mut bytes).unwrap_or(0);
        let is_sent = bytes[..count].contains(&1);
        if self.is_ending {
            self.stop();
        } else if is_sent && self.stop_at.is_none() {
            self.stop_at = Some(Instant::now() + NOTICE);
        }
    }

    /// Ends the recording, whatever still runs.
    fn stop(&mut self) {
        self.stop_at = None;
        self.is_ending = true;
        self.give_up_at.get_or_insert_with(|| Instant::now() + PATIENCE);
        self.session.stop();
        let running: Vec<u64> = self.followed.keys().copied().collect();
        running.into_iter().for_each(|number| self.end(number));
    }

    // ---- messages ----

    fn take_messages(&mut self) {
        for message in self.inbox.take_all() {
            match message {
                Message::Hello { library, parent, memory } => self.begin(library, parent, memory),
                Message::Module { library, first, description } => {
                    self.register(library, first, &description)
                }
                Message::NoCounter { error } => {
                    self.session.leave_out_counter(&io::Error::from_raw_os_error(error));
                }
                Message::Failure { reason, is_counted, .. } => {
                    self.awaited -= i64::from(is_counted);
                    self.leave_out(reason);
                }
            }
        }
    }

    /// A process is not recorded.
    fn leave_out(&mut self, reason: Failure) {
        let problem = match reason {
            Failure::NoMemory(error) => format!(
                "a process has no shared memory for recording ({}), so it is not recorded; it takes 3 MiB and a \
                 limit of file sizes (ulimit -f) and of memory (ulimit -v) that allow them",
                io::Error::from_raw_os_error(error)
            ),
            Failure::NotReceived => {
                "a process is not recorded, as the recorder has too many open files (ulimit -n)".to_string()
            }
            Failure::Malformed => "a process sent what is not understood".to_string(),
            Failure::OtherUser => "a process of another user is not recorded".to_string(),
        };
        // Of those of other users it is not known which connections are of the same process.
        if reason == Failure::OtherUser && self.session.problems().contains(&problem) {
            return;
        }
        self.session.note(problem);
        self.session.lose(None, "a process that is not recorded".to_string(), 1);
    }

    fn begin(&mut self, library: Library, parent: Option<Parent>, memory: File) {
        let memory = Memory::new(memory);
        self.end_programs_before(library);
        self.awaited -= i64::from(parent.is_some_and(|parent| parent.is_counted));
        let is_refused = !memory.is_understood();
        if is_refused {
            let _ = memory.stop();
            self.session
                .note("a part of the program was compiled by another version of loopfold".to_string());
        }
        let from =
            parent.and_then(|parent| Some((self.by_library.get(&parent.library)?.clone(), parent.first_own)));
        if parent.is_some_and(|parent| parent.is_mixed) {
            self.session.note(
                "a process was copied without the C library: what it did first is mixed with what its parent did"
                    .to_string(),
            );
            let of = from.as_ref().map_or(self.count, |(parent, _)| parent.number);
            self.session.lose(Some(of), format!("process {}", of + 1), 1);
        }
        let process = Arc::new(match &from {
            Some((parent, own)) => Process::forked_from(self.count, parent, *own),
            None => Process::new(self.count, program_of(library.pid)),
        });
        if let Target::Spool(spool) = &self.session.target {
            let parent = from.as_ref().map(|(parent, own)| (parent.number, *own));
            spool.process(&process, parent).unwrap_or_else(|error| self.session.fail(&error));
        }
        self.by_library.insert(library, Arc::clone(&process));
        let number = self.count as u64;
        let end = Pid::from_raw(library.pid as i32)
            .map_or(Err(Errno::SRCH), |pid| pidfd_open(pid, PidfdFlags::empty()));
        let is_over = matches!(end, Err(Errno::SRCH));
        let end = end.ok().filter(|end| add(&self.epoll, end, PROCESS + number).is_ok());
        let followed = Followed {
            library,
            process,
            parent: from.map(|(parent, _)| parent),
            memory: Arc::new(memory),
            end,
            is_over: false,
            is_given: false,
            is_waiting: false,
            is_stopped: false,
            is_refused,
            lanes: Vec::new(),
            unfinished: Arc::default(),
            due: Instant::now(),
            pause: SHORT,
        };
        self.followed.insert(number, followed);
        self.count += 1;
        // It had ended before.
        if is_over || self.session.is_stopped() && self.is_ending {
            self.end(number);
        }
    }

    /// A process that has become another program writes no more to the memory of the one before.
    fn end_programs_before(&mut self, library: Library) {
        let before: Vec<u64> = self
            .followed
            .iter()
            .filter(|(_, one)| one.is_before(library))
            .map(|(&number, _)| number)
            .collect();
        before.into_iter().for_each(|number| self.end(number));
    }

    fn register(&mut self, library: Library, first: u32, description: &[u8]) {
        let Some(process) = self.by_library.get(&library) else { return };
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

    // ---- processes ----

    /// A process writes no more.
    fn end(&mut self, number: u64) {
        let Some(followed) = self.followed.get_mut(&number).filter(|followed| !followed.is_over) else {
            return;
        };
        followed.is_over = true;
        followed.due = Instant::now();
        followed.leave(&self.epoll);
        if !followed.is_refused {
            self.awaited += i64::from(followed.memory.forks().unwrap_or(0));
        }
    }

    /// Makes room for more files: some processes are asked from now on whether they have ended.
    fn watch_fewer(&mut self) {
        let watched = self.followed.values_mut().filter(|followed| followed.end.is_some());
        watched.take(UNWATCHED).for_each(|followed| followed.leave(&self.epoll));
    }

    /// Looks at the lanes of all processes that are due, or have lanes that wait for their parents.
    fn look(&mut self) {
        let now = Instant::now();
        let is_stopped = self.session.is_stopped();
        let longest = (LONG * (self.followed.len() as u32).div_ceil(FEW)).min(LONGEST);
        let is_due = |one: &Followed| !one.is_given && (one.is_waiting || one.due <= now);
        let unwatched =
            self.followed.iter().filter(|(_, one)| !one.is_over && one.end.is_none() && is_due(one));
        let gone: Vec<u64> =
            unwatched.filter(|(_, one)| has_ended(one.library.pid)).map(|(&number, _)| number).collect();
        gone.into_iter().for_each(|number| self.end(number));
        let looked_at = self.followed.iter().filter(|(_, one)| is_due(one));
        let heads: Vec<(u64, bool, Vec<Lane>)> =
            looked_at.map(|(&number, one)| (number, one.is_over, one.agreed_lanes())).collect();
        // The modules of functions that occur before these heads were sent before.
        self.take_messages();
        for (number, was_over, lanes) in heads {
            let Some(followed) = self.followed.get_mut(&number) else { continue };
            if is_stopped {
                followed.stop();
            }
            let found = followed.give(&self.session, &self.workers, &lanes, was_over);
            followed.pause = if found { SHORT } else { (followed.pause * 2).min(longest) };
            followed.due = now + followed.pause;
        }
        self.session.set_awaited(self.followed.values().any(|followed| followed.is_waiting));
    }

    /// Forgets what was read to its end.
    fn remove_read(&mut self) {
        let session = &self.session;
        self.followed.retain(|_, followed| {
            let is_read = followed.is_given && followed.unfinished.load(Ordering::Acquire) == 0;
            if is_read {
                followed.process.set_read();
                session.end_process(followed.process.number, &followed.memory, followed.is_refused);
            }
            !is_read
        });
    }
}

impl Followed {
    /// Tokens are wanted no longer.
    fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            let _ = self.memory.stop();
        }
    }

    /// Whether this is of a program that its process executed before.
    fn is_before(&self, library: Library) -> bool {
        let (before, now) = (self.library.program, library.program);
        // It is not known of all versions.
        self.library.pid == library.pid && before != now && before != 0 && now != 0
    }

    /// Its end is not waited for any more.
    fn leave(&mut self, epoll: &OwnedFd) {
        if let Some(end) = self.end.take() {
            let _ = epoll::delete(epoll, &end);
        }
    }

    /// All its lanes; heads that are not known yet are as they were at some moment.
    fn agreed_lanes(&self) -> Vec<Lane> {
        let mut lanes = self.memory.lanes().unwrap_or_default();
        for (number, lane) in lanes.iter_mut().enumerate() {
            let known = self.lanes.get(number).and_then(Option::as_ref);
            if known.is_none_or(|reader| reader.limit() != lane.head) {
                lane.head = self.memory.head(number).unwrap_or(0);
            }
        }
        lanes
    }

    /// Gives workers what there is in the lanes, which is all there will be if the process was over
    /// before they were looked at. Returns whether there was something new.
    fn give(&mut self, session: &Arc<Session>, workers: &Workers, lanes: &[Lane], was_over: bool) -> bool {
        let lanes = if self.is_refused { &[] } else { lanes };
        self.lanes.resize(lanes.len().max(self.lanes.len()), None);
        self.is_waiting = false;
        let mut found = false;
        for (number, lane) in lanes.iter().enumerate() {
            let known = self.lanes[number].as_ref().filter(|reader| reader.usage() == lane.begun).cloned();
            let Some(reader) = known.or_else(|| self.begin_lane(session, number, lane)) else {
                self.is_waiting = true;
                continue;
            };
            let is_new = reader.extend(lane.head, was_over || lane.ended == lane.begun);
            if is_new && reader.schedule() {
                workers.give(reader);
            }
            found |= is_new;
        }
        self.is_given = was_over && !self.is_waiting;
        found
    }

    /// A reader for a use of a lane; `None` if the lane of the parent has not come to the fork.
    fn begin_lane(&mut self, session: &Arc<Session>, number: usize, lane: &Lane) -> Option<Arc<LaneReader>> {
        let parent = self.parent.as_ref().filter(|_| lane.mark > 0 && session.needs_open());
        let open = match parent {
            Some(parent) => parent.try_open_at(lane.mark)?,
            None => Vec::new(),
        };
        let place = (number, *lane);
        let reader = LaneReader::new(session, &self.process, &self.memory, place, &open, &self.unfinished);
        let reader = Arc::new(reader);
        self.lanes[number] = Some(Arc::clone(&reader));
        Some(reader)
    }
}

/// Whether a process has ended, found out without a file. One that is not waited for executes nothing.
fn has_ended(pid: u32) -> bool {
    let executes = |process: &str| std::fs::read_link(format!("/proc/{process}/exe"));
    let is_gone = Pid::from_raw(pid as i32).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
    let is_nothing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    // Its first thread may have ended before others.
    let has_others = || std::fs::metadata(format!("/proc/{pid}/task")).is_ok_and(|task| task.nlink() > 3);
    is_gone || executes(&pid.to_string()).is_err_and(is_nothing) && executes("self").is_ok() && !has_others()
}

fn add(epoll: &OwnedFd, source: impl AsFd, number: u64) -> io::Result<()> {
    Ok(epoll::add(epoll, source, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?)
}

/// The name of the program that a process executes.
fn program_of(pid: u32) -> String {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
