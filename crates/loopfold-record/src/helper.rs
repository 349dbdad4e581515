//! The process that folds: it reads the records of one rank, writes segments, and merges.
//!
//! The preloaded library starts it before MPI does, and talks to it over a socket, which is its
//! standard input: lines of text that are answered by a line. It belongs to a process group of its
//! own, so that what kills the program does not kill it: when the socket is closed or the process
//! is gone, it takes what is left in the rings, writes it and ends.
//!
//! A batch system that ends a job first asks all processes to end, and kills them some seconds later.
//! So the helper does not end when it is asked to: it saves what there is at once, and from then on
//! several times a second, until the program is gone.
//!
//! | line | is answered |
//! | --- | --- |
//! | `?` | `ok` and the number of its process, when it is ready |
//! | `I rank pid base offset time job` | `ok` and the folder, when the file of the rank is there; `taken` and why if the output is that of another job; else why not |
//! | `P` | where the program sends its paths, or why it does not |
//! | `w`, without an end | nothing: there are many records |
//! | `S` | `ok`, when all is written |
//! | `O offset time` | `ok`, how many calls were recorded, and how many events of paths are lost: the clocks at the end; nothing comes after it |
//! | `X` | a number of bytes, and the archive of this rank and those that were merged |
//! | `M bytes`, and an archive | `ok`, when it is merged |
//! | `F` | `ok`, when the archive is written; else why not |
//! | `D`, `K` | `ok`; the file of the rank is removed, or kept |

use crate::lanes::Lanes;
use crate::parts::{PartFile, spilling};
use crate::paths::{Extent, RankPaths};
use crate::recorder::{Clocks, Process, Recorder};
use crate::ring::Rings;
use crate::{Error, Result, variables};
use loopfold::Fold;
use loopfold::archive::{self, Archive, SectionKind, WriteConfig};
use loopfold::fold::FoldBuilder;
use loopfold::mpi::RelativePeers;
use loopfold::questions::path::PathBlocks;
use loopfold::questions::rule_sums::summarize;
use loopfold::sections;
use loopfold::trace::Spill;
use loopfold_output::{DataFolder, ErrorKind, Job, Output, Target};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the rings are looked at when nothing is asked.
const TICK: Duration = Duration::from_millis(200);
/// The same if paths are recorded, which come faster: at first, and at most.
const SHORT: Duration = Duration::from_micros(100);
const LONG: Duration = Duration::from_millis(2);

/// How long records are taken before anything else is looked at.
const LONGEST_DRAIN: Duration = Duration::from_millis(50);

/// How often what there is is saved when the helper was asked to end, and for how long: a program that
/// goes on beyond that was not meant to be killed soon.
const HURRIED: Duration = Duration::from_millis(150);
const HURRIED_FOR: Duration = Duration::from_secs(600);

/// The bytes of an answer, at most: the library has room for 600.
const MOST_ANSWERED: usize = 500;

/// Writes a fold in another form than an archive, given its name and where.
pub type WriteOther<'a> = &'a dyn Fn(&Fold, &str, &Path) -> std::result::Result<(), String>;

/// Runs the helper: the command's entry for what the preloaded library starts. `write_other`
/// writes what is not an archive.
pub fn run(is_detached: bool, write_other: WriteOther<'_>) -> Result<()> {
    if !is_detached {
        return detach();
    }
    let own = std::io::stdin().as_fd().try_clone_to_owned()?;
    let memory = File::options().read(true).write(true).open("/proc/self/fd/3")?;
    // It yields to the program, which waits for it only if a ring is full.
    let _ = rustix::process::setpriority_process(None, 5);
    let settings = Settings::from_environment()?;
    let requests = EndRequests::receive()?;
    let socket = UnixStream::from(own);
    report_panics(&socket);
    let mut helper = Helper {
        socket,
        input: Vec::new(),
        rings: Rings::new(memory),
        words: Vec::new(),
        lanes: Lanes::default(),
        recorder: Recorder::new(settings.times != "none"),
        paths: None,
        pause: TICK,
        is_behind: false,
        settings,
        recording: None,
        merged: None,
        spill: None,
        process: None,
        output: None,
        write_other,
        requests,
    };
    helper.serve().inspect_err(|error| {
        // Standard error leads nowhere; the library passes this line on.
        let _ = helper.socket.write_all(answer_line(error).as_bytes());
    })
}

/// An error as an answer: one line that is no longer than the library reads.
fn answer_line(error: &dyn std::fmt::Display) -> String {
    let line = error.to_string().replace('\n', " ");
    let end = line.char_indices().map(|(at, _)| at).take_while(|&at| at <= MOST_ANSWERED).last().unwrap_or(0);
    let is_short = line.len() <= MOST_ANSWERED;
    format!("{}\n", if is_short { &line } else { &line[..end] })
}

/// Lets the program print why the helper ends, if that is an error of its own.
fn report_panics(socket: &UnixStream) {
    let Ok(socket) = socket.try_clone() else { return };
    std::panic::set_hook(Box::new(move |panic| {
        let _ = (&socket).write_all(answer_line(panic).as_bytes());
    }));
}

/// Starts itself once more and ends, so that the program has no child that it did not start.
fn detach() -> Result<()> {
    let program = std::env::current_exe()?;
    Command::new(program).args(["record-helper", "--detached"]).process_group(0).spawn()?;
    Ok(())
}

/// What the user asked for, from the environment.
struct Settings {
    output: PathBuf,
    times: String,
    with_sites: bool,
    interval: Duration,
    to: String,
}

impl Settings {
    fn from_environment() -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let output = std::env::var_os(variables::OUTPUT).ok_or_else(|| Error::new("there is no output"))?;
        let seconds = variable(variables::SEGMENT).and_then(|text| text.parse().ok()).unwrap_or(5.0f64);
        Ok(Self {
            output: output.into(),
            times: variable(variables::TIMES).unwrap_or_default(),
            with_sites: variable(variables::SITES).is_some(),
            interval: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(5)),
            to: variable(variables::TO).unwrap_or_default(),
        })
    }
}

struct Helper<'a> {
    socket: UnixStream,
    input: Vec<u8>,
    rings: Rings,
    /// The records of a single thread, to be used again.
    words: Vec<i64>,
    lanes: Lanes,
    recorder: Recorder,
    /// The paths of the program, if they are recorded.
    paths: Option<RankPaths>,
    /// How long it waits for something to do.
    pause: Duration,
    /// Whether there may be more records than it had time for.
    is_behind: bool,
    settings: Settings,
    recording: Option<Recording>,
    /// The ranks below this one in the tree, and this one.
    merged: Option<Merged>,
    /// Where the times of merged ranks are.
    spill: Option<Arc<Spill>>,
    process: Option<OwnedFd>,
    /// The archive, in the process of rank 0.
    output: Option<Output>,
    write_other: WriteOther<'a>,
    requests: EndRequests,
}

/// Signals by which the helper is asked to end. It does not, so it does not matter whether they were
/// ignored before.
struct EndRequests {
    /// A byte for each.
    received: UnixStream,
    last: Option<Instant>,
}

impl EndRequests {
    fn receive() -> Result<Self> {
        let (received, sender) = UnixStream::pair()?;
        received.set_nonblocking(true)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(Self { received, last: None })
    }

    /// Whether one has come since this was called last.
    fn take(&mut self) -> bool {
        let mut bytes = [0; 64];
        let has_come = matches!((&self.received).read(&mut bytes), Ok(1..));
        if has_come {
            self.last = Some(Instant::now());
        }
        has_come
    }

    /// Whether the program may be killed soon.
    fn is_hurried(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() < HURRIED_FOR)
    }
}

/// Where a rank is written to.
struct Recording {
    file: PartFile,
    written: Instant,
    interval: Duration,
}

/// Ranks that were merged, how their peers are restored, and the blocks of their paths.
struct Merged {
    fold: Fold,
    peers: RelativePeers,
    blocks: PathBlocks,
}

impl Merged {
    fn add(self, fold: Fold, peers: &RelativePeers, its_blocks: &PathBlocks) -> Result<Self> {
        let Self { fold: own, peers: mut all, mut blocks } = self;
        blocks.join(its_blocks);
        let mut builder = FoldBuilder::default();
        all.append(peers, own.streams().len(), fold.streams().len());
        builder.join(&own)?;
        drop(own);
        builder.join(&fold)?;
        Ok(Self { fold: builder.finish(), peers: all, blocks })
    }
}

fn nothing_recorded() -> Error {
    Error::new("nothing is recorded")
}

/// Whether the program is still there.
#[derive(PartialEq)]
enum Program {
    Runs,
    Gone,
}

impl Helper<'_> {
    fn serve(&mut self) -> Result<()> {
        loop {
            let program = self.wait()?;
            self.drain_for(LONGEST_DRAIN)?;
            self.read_paths()?;
            while let Some(line) = self.line() {
                match self.answer(&line) {
                    Ok(false) => {}
                    Ok(true) => return Ok(()),
                    // The program may have been killed while it waited for the answer.
                    Err(error) => return self.close().and(Err(error)),
                }
            }
            if program == Program::Gone {
                return self.close();
            }
            if self.requests.take() {
                self.write_what_there_is();
            }
            self.write_when_due();
        }
    }

    /// Waits for something to do, and reads what was sent.
    fn wait(&mut self) -> Result<Program> {
        let mut waiting = vec![
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::new(&self.requests.received, PollFlags::IN),
        ];
        if let Some(process) = &self.process {
            waiting.push(PollFd::new(process, PollFlags::IN));
        }
        let pause = if self.is_behind { Duration::ZERO } else { self.pause };
        let time = rustix::time::Timespec { tv_sec: 0, tv_nsec: pause.as_nanos() as i64 };
        if poll(&mut waiting, Some(&time)).is_err() {
            return Ok(Program::Runs);
        }
        let has_input = !waiting[0].revents().is_empty();
        let is_gone = waiting.get(2).is_some_and(|process| !process.revents().is_empty());
        if has_input {
            let mut bytes = [0; 4096];
            match self.socket.read(&mut bytes) {
                Ok(0) => return Ok(Program::Gone),
                Ok(count) => {
                    // Of calls to wake up, nothing is left.
                    let sent = &bytes[..count];
                    if self.input.is_empty() && sent.iter().all(|&byte| byte == b'w') {
                        return Ok(Program::Runs);
                    }
                    self.input.extend_from_slice(sent);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(Program::Gone),
            }
        }
        Ok(if is_gone && !has_input { Program::Gone } else { Program::Runs })
    }

    /// The next whole line that was sent.
    fn line(&mut self) -> Option<String> {
        let wakes = self.input.iter().take_while(|&&byte| byte == b'w').count();
        self.input.drain(..wakes);
        let end = self.input.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.input.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    /// Takes the records that are in the rings, until there are none, or for so long: a program may
    /// write faster than they are folded.
    fn drain_for(&mut self, most: Duration) -> Result<()> {
        let begin = Instant::now();
        self.is_behind = true;
        while self.is_behind && begin.elapsed() < most {
            self.is_behind = self.drain_once()?;
        }
        Ok(())
    }

    /// Takes the records that are in the rings now, in an order in which each follows what it depends
    /// on: see [`Lanes`]. False if there were none.
    fn drain_once(&mut self) -> Result<bool> {
        let (recorder, words) = (&mut self.recorder, &mut self.words);
        let first = self.rings.heads()?;
        let second = self.rings.heads()?;
        let has_one = second.len() <= 1 && self.lanes.is_empty();
        if has_one {
            words.clear();
            if first.is_empty() || !self.rings.take(0, first[0], words)? {
                return Ok(false);
            }
            recorder.take(0, words)?;
        } else {
            for (lane, &head) in first.iter().enumerate() {
                self.lanes.add(lane, |words| self.rings.take(lane, head, words))?;
            }
            if self.lanes.is_empty() {
                return Ok(false);
            }
            let latest = self.lanes.latest();
            for (lane, &head) in second.iter().enumerate() {
                self.lanes.add(lane, |words| self.rings.take(lane, head, words))?;
            }
            self.lanes.merge(latest, |lane, words| recorder.take(lane, words))?;
        }
        recorder.fold_ready()?;
        Ok(true)
    }

    /// Takes all records: no more come.
    fn drain_last(&mut self) -> Result<()> {
        self.drain_for(Duration::MAX)?;
        let recorder = &mut self.recorder;
        self.lanes.finish(|lane, words| recorder.take(lane, words))?;
        recorder.flush()?;
        // Behind the records: each has its mark.
        self.read_written_paths(Extent::All)?;
        self.recorder.set_counted(self.rings.counted()?);
        if let Some(paths) = &mut self.paths {
            self.recorder.set_thrown(paths.thrown());
        }
        self.recorder.finish()
    }

    /// Reads what paths there are, and waits shorter for the next ones.
    fn read_paths(&mut self) -> Result<()> {
        let Some(paths) = &mut self.paths else { return Ok(()) };
        let is_busy = paths.read(Extent::Complete, self.recorder.joint())?;
        self.pause = if is_busy { Duration::ZERO } else { LONG.min(self.pause * 2).max(SHORT) };
        if is_busy {
            self.recorder.joint().advance()?;
            self.recorder.limit_waiting()?;
        }
        Ok(())
    }

    /// Reads also chunks that are not complete.
    fn read_written_paths(&mut self, extent: Extent) -> Result<()> {
        let Some(paths) = &mut self.paths else { return Ok(()) };
        paths.read(extent, self.recorder.joint())?;
        self.recorder.joint().advance()
    }

    fn write_when_due(&mut self) {
        let Some(recording) = &self.recording else { return };
        let has_unwritten = || self.paths.is_some() || self.recorder.has_unwritten();
        let interval =
            if self.requests.is_hurried() { recording.interval.min(HURRIED) } else { recording.interval };
        let is_due = recording.written.elapsed() >= interval && has_unwritten();
        if is_due || self.recorder.is_full() {
            self.write_what_there_is();
        }
    }

    /// Writes a segment. A full disk may have room again later; until then events are kept.
    fn write_what_there_is(&mut self) {
        let _ = self.read_written_paths(Extent::Settled);
        let _ = self.recorder.fold_old();
        let Some(recording) = &mut self.recording else { return };
        recording.written = Instant::now();
        recording.interval = self.settings.interval;
        let _ = self.write_segment();
    }

    /// Writes a segment with what the program has counted, and reports to it how many events are saved.
    fn write_segment(&mut self) -> Result<()> {
        let Some(Recording { file, .. }) = &mut self.recording else { return Err(nothing_recorded()) };
        let rings = &self.rings;
        self.recorder.set_counted(rings.counted()?);
        let outcome = self.recorder.write_segment(file, &|events| drop(rings.set_saved(events)));
        rings.set_saved(self.recorder.saved())?;
        outcome
    }

    /// Answers a line; true if it was the last.
    fn answer(&mut self, line: &str) -> Result<bool> {
        let (command, rest) = line.split_at_checked(1).unwrap_or((line, ""));
        let outcome = match command {
            "?" => return self.say(&format!("ok {}\n", std::process::id())).map(|()| false),
            "P" => return self.listen().map(|()| false),
            "I" => return self.introduce(rest).map(|()| false),
            "S" => self.write_all(),
            "O" => return self.end(rest).map(|()| false),
            "X" => return self.export().map(|()| false),
            "M" => self.merge(rest),
            "F" => self.write_archive(),
            "D" | "K" => {
                self.leave(command == "K")?;
                // Whoever records to the same output next need not wait until this process has ended.
                self.output = None;
                return self.say("ok\n").map(|()| true);
            }
            _ => Err(Error::new("an unknown question")),
        };
        let text = outcome.map_or_else(|error| answer_line(&error), |()| "ok\n".to_string());
        self.say(&text).map(|()| false)
    }

    fn say(&mut self, text: &str) -> Result<()> {
        Ok(self.socket.write_all(text.as_bytes())?)
    }

    /// Keeps the file of the rank or removes it. It is complete only if it has all events.
    fn leave(&mut self, is_kept: bool) -> Result<()> {
        let is_saved = self.recording.is_some() && is_kept && self.write_segment().is_ok();
        let Some(Recording { mut file, .. }) = self.recording.take() else { return Ok(()) };
        match is_kept {
            true if is_saved => file.finish(),
            true => Ok(()),
            false => {
                file.remove();
                Ok(())
            }
        }
    }

    fn introduce(&mut self, text: &str) -> Result<()> {
        let answer = match self.begin(text) {
            Ok(folder) => format!("ok {}\n", folder.display()),
            Err(error) => answer_line(&error),
        };
        self.say(&answer)
    }

    /// Begins the file of the rank, and returns the folder that it is in. Rank 0 also claims the archive.
    fn begin(&mut self, text: &str) -> Result<PathBuf> {
        let numbers: Vec<i64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [rank, pid, base, offset, time, job] = numbers[..] else {
            return Err(Error::new("an introduction of another form"));
        };
        let clocks = Clocks { offset, time };
        let process = Process { rank: rank as u32, pid: pid as u32, base, clocks };
        self.process = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let file = self.part(process.rank, Job(job as u64))?;
        let folder = file.folder().to_path_buf();
        self.recorder.introduce(process, self.settings.with_sites);
        // The first segment comes early, so that there soon is something to look at.
        let interval = self.settings.interval.min(Duration::from_secs(1));
        self.recording = Some(Recording { file, written: Instant::now(), interval });
        Ok(folder)
    }

    /// The file of a rank.
    fn part(&mut self, rank: u32, job: Job) -> Result<PartFile> {
        let explain = |error: loopfold_output::Error| match error.kind() {
            ErrorKind::Taken => Error::new(format_args!("taken {error}")),
            _ => Error::new(error),
        };
        let output = &self.settings.output;
        let folder = if rank == 0 {
            let claimed = Output::claim_for_recording(output).map_err(explain)?;
            let folder = DataFolder::join(claimed.target(), job).map_err(explain)?;
            self.output = Some(claimed);
            folder
        } else {
            DataFolder::join(&Target::named(output)?, job).map_err(explain)?
        };
        PartFile::create(folder, rank)
    }

    /// Says where the program sends its paths.
    fn listen(&mut self) -> Result<()> {
        let answer = match self.settings.to.as_str() {
            "" | "fold" => RankPaths::listen(self.recorder.shared()).map(|paths| {
                let address = paths.address().to_string();
                self.paths = Some(paths);
                address
            }),
            _ => Err(Error::new("only an archive has paths")),
        };
        let text = answer.map_or_else(|error| answer_line(&error), |address| format!("{address}\n"));
        self.say(&text)
    }

    fn recording(&mut self) -> Result<&mut Recording> {
        self.recording.as_mut().ok_or_else(nothing_recorded)
    }

    fn write_all(&mut self) -> Result<()> {
        self.drain_for(Duration::MAX)?;
        self.recorder.flush()?;
        self.read_written_paths(Extent::All)?;
        self.write_segment()
    }

    /// No more events come: answers how many calls there are, and how many events of paths are lost.
    fn end(&mut self, text: &str) -> Result<()> {
        let text = match self.end_recording(text) {
            Ok(()) => format!("ok {} {}\n", self.recorder.recorded(), self.recorder.lost_paths()),
            Err(error) => answer_line(&error),
        };
        self.say(&text)
    }

    fn end_recording(&mut self, text: &str) -> Result<()> {
        self.drain_last()?;
        let numbers: Vec<i64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        if let Some(paths) = self.paths.take() {
            paths.stop();
        }
        if let [offset, time] = numbers[..] {
            self.recorder.set_clocks_at_end(Clocks { offset, time });
        }
        self.write_segment()?;
        let (recorder, Recording { file, .. }) =
            (&self.recorder, self.recording.as_ref().ok_or_else(nothing_recorded)?);
        // Without room for it, times are in memory.
        let spill = file.scratch().ok().map(Spill::new);
        let (fold, peers) = recorder.whole(file, spill.as_ref())?;
        let blocks = recorder.shared().symbols().blocks.clone();
        (self.merged, self.spill) = (Some(Merged { fold, peers, blocks }), spill);
        Ok(())
    }

    fn merged(&mut self) -> Result<Merged> {
        self.merged.take().ok_or_else(|| Error::new("the recording has not ended"))
    }

    fn export(&mut self) -> Result<()> {
        let Ok((mut file, length)) = self.exported() else { return Ok(self.socket.write_all(b"0\n")?) };
        self.socket.write_all(format!("{length}\n").as_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        std::io::copy(&mut file, &mut self.socket)?;
        Ok(())
    }

    /// The archive of what was merged, in a file without a name, and its length.
    fn exported(&mut self) -> Result<(File, u64)> {
        let merged = self.merged()?;
        let mut file = self.recording()?.file.scratch()?;
        let config = sections::with_blocks(WriteConfig::new(), &merged.blocks);
        archive::write_relative(&merged.fold, &merged.peers, BufWriter::new(&mut file), &config)?;
        let length = file.stream_position()?;
        Ok((file, length))
    }

    fn merge(&mut self, text: &str) -> Result<()> {
        let length: usize = text.trim().parse().map_err(Error::new)?;
        let have = self.input.len().min(length);
        let rest = self.input.split_off(have);
        let begin = std::mem::replace(&mut self.input, rest);
        let mut sent = begin.as_slice().chain((&self.socket).take((length - have) as u64));
        let recording = self.recording.as_ref().ok_or_else(nothing_recorded);
        let scratch = recording.and_then(|recording| recording.file.scratch());
        let file = scratch.and_then(|mut file| {
            std::io::copy(&mut sent, &mut file)?;
            Ok(file)
        });
        // All of it is read, whether or not there is room for it: the next line is behind it.
        std::io::copy(&mut sent, &mut std::io::sink())?;
        let mut archive = Archive::open(BufReader::new(file?))?;
        let blocks = sections::blocks(&archive.all_sections(SectionKind::Paths)?)?;
        let (fold, peers) = archive::read_relative(spilling(archive, self.spill.as_ref()))?;
        self.merged = Some(self.merged()?.add(fold, &peers, &blocks)?);
        Ok(())
    }

    fn write_archive(&mut self) -> Result<()> {
        let Merged { mut fold, peers, blocks } = self.merged()?;
        let output = self.output.as_ref().ok_or_else(nothing_recorded)?;
        if !matches!(self.settings.to.as_str(), "" | "fold") {
            let fold = peers.absolute(&fold)?;
            let write = |path: &Path| (self.write_other)(&fold, &self.settings.to, path).map_err(Error::new);
            return output.write_new_by(write);
        }
        if self.settings.times == "summary" {
            fold = summarize(fold)?;
        }
        let config = sections::with_blocks(WriteConfig::new(), &blocks);
        output.write(|out| -> Result<()> { Ok(archive::write_relative(&fold, &peers, out, &config)?) })?;
        Ok(())
    }

    /// The program is gone: what is left is written, and the file is complete.
    fn close(&mut self) -> Result<()> {
        self.drain_last()?;
        match self.recording {
            Some(_) => self.leave(true),
            None => Ok(()),
        }
    }
}
