//! Follows inputs that are still being written.
//!
//! Each trace is read by a thread of its own, which waits where a file ends for more of it; all of
//! them push into one [`Folding`]. A report gets the fold of what came so far, which costs O(rules).
//! Archives are read again when they change. Reports wait so long that they take at most a tenth of
//! the time.

use super::{Intake, files, input_names, join, peers, projection, reader, taken_in};
use crate::args::{FolderArgs, FolderName, ReadArgs};
use crate::folding::folder;
use crate::{formats, interrupt, streams};
use anyhow::{Context as _, Result, anyhow, bail};
use loopfold::folders::Folding;
use loopfold::mpi::Peers;
use loopfold::trace::{Event, Projection, Sink, TimesKept, Timing};
use loopfold::{Fold, StreamId, Symbol, archive};
use loopfold_sources::Input;
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// When reports come, and when following ends.
pub(crate) struct Pace {
    /// The least time between reports.
    pub(crate) every: Duration,
    /// Ends when no input has grown for this long. Pipes end by themselves.
    pub(crate) idle: Option<Duration>,
}

/// How often files are looked at.
const TICK: Duration = Duration::from_millis(50);

/// More inputs would be more threads than a system allows.
const MOST_INPUTS: usize = 4096;

/// Calls `report` with what came so far, again and again, and returns everything at the end.
pub(crate) fn follow(
    arguments: &ReadArgs,
    chosen: &FolderArgs,
    pace: &Pace,
    mut report: impl FnMut((Fold, Vec<String>)) -> Result<()>,
) -> Result<(Fold, Vec<String>)> {
    if peers(arguments) != Peers::Absolute {
        bail!("--peers rewrites a whole trace, so --follow cannot be used with it");
    }
    let mut following = Following::start(arguments, &chosen.or(FolderName::AutoOnline), pace)?;
    let (mut last, mut pause) = (Instant::now(), pace.every);
    while !following.has_ended()? {
        if last.elapsed() < pause || !following.has_news()? {
            continue;
        }
        let started = Instant::now();
        report((following.so_far()?, following.notes.clone()))?;
        last = Instant::now();
        pause = pace.every.max(9 * (last - started));
    }
    following.finish()
}

struct Following {
    arguments: Arc<ReadArgs>,
    folding: Arc<Mutex<Folding>>,
    archives: Vec<FollowedArchive>,
    /// What threads report when they end, and how many have not.
    ended: std::sync::mpsc::Receiver<Result<Vec<String>>>,
    reading: usize,
    activity: Arc<Activity>,
    notes: Vec<String>,
    /// Events at the last report.
    reported: u64,
}

impl Following {
    fn start(arguments: &ReadArgs, chosen: &FolderArgs, pace: &Pace) -> Result<Self> {
        if arguments.inputs.len() > MOST_INPUTS {
            bail!("--follow can follow {MOST_INPUTS} inputs at most");
        }
        if !arguments.symbols.is_empty() {
            bail!("--follow cannot be used with --symbols, which needs all addresses");
        }
        if arguments.select.is_part() || !arguments.select.class.is_empty() {
            bail!(
                "--follow reports whole streams; it cannot be used with --class, --from, --to, --within or --iterations"
            );
        }
        files::check_inputs(&arguments.inputs)?;
        let projection = taken_in(arguments, &projection(arguments)?);
        let folding = Folding::with(folder(chosen)?, projection.clone(), TimesKept::None, 1)?;
        let (sender, ended) = channel();
        let mut following = Self {
            arguments: Arc::new(arguments.clone()),
            folding: Arc::new(Mutex::new(folding)),
            archives: Vec::new(),
            ended,
            reading: 0,
            activity: Arc::new(Activity::new(pace.idle)),
            notes: Vec::new(),
            reported: 0,
        };
        let names = input_names(&arguments.inputs).into_iter().zip(formats::ranks(&arguments.inputs));
        for (path, (name, rank)) in arguments.inputs.iter().zip(names) {
            following
                .open(path, name, rank, &projection, &sender)
                .with_context(|| path.display().to_string())?;
        }
        Ok(following)
    }

    fn open(
        &mut self,
        path: &Path,
        name: String,
        rank: u64,
        projection: &Projection,
        ended: &Sender<Result<Vec<String>>>,
    ) -> Result<()> {
        let bytes: Box<dyn Read + Send> = if path.as_os_str() == "-" {
            Box::new(Noticed { inner: interrupt::stdin()?, activity: Arc::clone(&self.activity) })
        } else if path.is_dir() && formats::file_of_folder(path).is_none() {
            bail!("is a directory; name the files in it");
        } else if path.is_dir() || path.extension().is_some_and(|extension| extension == "otf2") {
            bail!(
                "OTF2 archives are complete only when the program has ended, so --follow cannot follow them"
            );
        } else {
            let mut file = files::open(path)?;
            if file.metadata()?.is_file() {
                let mut head = Vec::new();
                file.by_ref().take(64).read_to_end(&mut head)?;
                file.rewind()?;
                if archive::looks_like(&head) && self.arguments.format.is_none() {
                    self.archives.push(FollowedArchive::new(path.to_path_buf(), name));
                    return Ok(());
                }
                Box::new(FollowedFile { file, position: 0, activity: Arc::clone(&self.activity) })
            } else {
                Box::new(Noticed { inner: file, activity: Arc::clone(&self.activity) })
            }
        };
        let thread = ReaderThread {
            arguments: Arc::clone(&self.arguments),
            sink: SharedFolding { folding: Arc::clone(&self.folding), projection: projection.clone() },
            path: path.to_path_buf(),
            name,
            rank,
        };
        let ended = ended.clone();
        std::thread::Builder::new().spawn(move || {
            // Nobody listens any more if another input has failed.
            let _ = ended.send(thread.read(bytes));
        })?;
        self.reading += 1;
        Ok(())
    }

    /// Waits a moment; fails if reading an input has.
    fn has_ended(&mut self) -> Result<bool> {
        let is_over = |following: &Self| {
            following.reading == 0 && (following.archives.is_empty() || following.activity.is_over())
        };
        if is_over(self) {
            return Ok(true);
        }
        match self.ended.recv_timeout(TICK) {
            Ok(outcome) => {
                self.notes.extend(outcome?);
                self.reading -= 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if self.reading > 0 => {
                bail!("a thread that reads an input has ended without a word")
            }
            // Archives are read by this thread.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
        Ok(is_over(self))
    }

    fn has_news(&mut self) -> Result<bool> {
        let mut any = lock(&self.folding).events() != self.reported;
        for archive in &mut self.archives {
            any |= archive.read_again(&self.arguments, &self.activity)?;
        }
        Ok(any)
    }

    fn so_far(&mut self) -> Result<Fold> {
        let (fold, events) = {
            let mut folding = lock(&self.folding);
            (folding.so_far()?, folding.events())
        };
        self.reported = events;
        joined(fold, &self.archives, &self.arguments.stream)
    }

    fn finish(mut self) -> Result<(Fold, Vec<String>)> {
        self.has_news()?;
        for archive in &mut self.archives {
            if let Some(error) = archive.failure.take() {
                return Err(error);
            }
        }
        let Self { arguments, folding, archives, mut notes, .. } = self;
        let folding = Arc::into_inner(folding).ok_or_else(|| anyhow!("an input is still being read"))?;
        let fold = folding.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
        if fold.events() == Some(0) && archives.is_empty() {
            notes.push("there are no events".to_string());
        }
        Ok((joined(fold, &archives, &arguments.stream)?, notes))
    }
}

/// The selected streams of all traces and archives.
fn joined(fold: Fold, archives: &[FollowedArchive], selectors: &[String]) -> Result<Fold> {
    let traces = Some(fold).filter(|fold| !fold.streams().is_empty() || archives.is_empty());
    let folds = archives.iter().flat_map(|archive| &archive.folds).cloned();
    streams::choose(join(traces.into_iter().chain(folds).collect())?, selectors)
}

fn lock(folding: &Mutex<Folding>) -> MutexGuard<'_, Folding> {
    // What a thread pushed before it failed is whole.
    folding.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a thread needs to read one input.
struct ReaderThread {
    arguments: Arc<ReadArgs>,
    sink: SharedFolding,
    path: PathBuf,
    name: String,
    rank: u64,
}

impl ReaderThread {
    /// Reads up to the end and returns notes for the user.
    fn read(self, bytes: Box<dyn Read + Send>) -> Result<Vec<String>> {
        let mut reader = reader(
            &self.arguments,
            TimesKept::None,
            Intake::Shared(self.sink),
            projection(&self.arguments)?,
        )?;
        reader.options.rank = Some(self.rank);
        let path = Some(&*self.path).filter(|path| path.as_os_str() != "-");
        let input = Input::open(bytes, self.arguments.lenient)?.still_written();
        let outcome = reader.read_bytes(input, path, &self.name);
        outcome.with_context(|| self.path.display().to_string())?;
        Ok(reader.loaded.notes)
    }
}

/// The sink that all inputs share.
pub(crate) struct SharedFolding {
    folding: Arc<Mutex<Folding>>,
    projection: Projection,
}

impl Sink for SharedFolding {
    fn stream(&mut self, name: &str) -> loopfold::Result<StreamId> {
        lock(&self.folding).stream(name)
    }

    fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> loopfold::Result<()> {
        lock(&self.folding).describe(stream, key, value)
    }

    fn intern(&mut self, event: &Event<'_>) -> loopfold::Result<Symbol> {
        lock(&self.folding).intern(event)
    }

    fn push(&mut self, stream: StreamId, symbol: Symbol, timing: Timing<'_>) -> loopfold::Result<()> {
        lock(&self.folding).push(stream, symbol, timing)
    }

    fn projection(&self) -> &Projection {
        &self.projection
    }

    fn wants_times(&self) -> bool {
        false
    }

    fn stream_count(&self) -> usize {
        lock(&self.folding).stream_count()
    }

    fn events(&self) -> u64 {
        lock(&self.folding).events()
    }

    /// Fields may still come.
    fn unseen_fields(&self) -> &[String] {
        &[]
    }
}

/// When an input last grew.
struct Activity {
    started: Instant,
    /// In milliseconds since then.
    last: AtomicU64,
    idle: Option<Duration>,
}

impl Activity {
    fn new(idle: Option<Duration>) -> Self {
        Self { started: Instant::now(), last: AtomicU64::new(0), idle }
    }

    fn notice(&self) {
        self.last.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Whether nothing has grown for so long that following ends.
    fn is_over(&self) -> bool {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.idle.is_some_and(|idle| self.started.elapsed().saturating_sub(last) > idle)
    }
}

/// A pipe, whose end is the end.
struct Noticed<R> {
    inner: R,
    activity: Arc<Activity>,
}

impl<R: Read> Read for Noticed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.activity.notice();
        Ok(count)
    }
}

/// A file that may grow.
struct FollowedFile {
    file: File,
    position: u64,
    activity: Arc<Activity>,
}

impl Read for FollowedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.file.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                self.position += count as u64;
                self.activity.notice();
                return Ok(count);
            }
            if self.activity.is_over() {
                return Ok(0);
            }
            if self.file.metadata()?.len() < self.position {
                return Err(io::Error::other("the file has become shorter while it was followed"));
            }
            std::thread::sleep(TICK);
        }
    }
}

/// An archive that is written again and again.
struct FollowedArchive {
    path: PathBuf,
    name: String,
    /// Its length and time when it was read.
    read: Option<(u64, SystemTime)>,
    folds: Vec<Fold>,
    /// Why it could not be read the last time.
    failure: Option<anyhow::Error>,
}

impl FollowedArchive {
    fn new(path: PathBuf, name: String) -> Self {
        Self { path, name, read: None, folds: Vec::new(), failure: None }
    }

    /// Reads it again if it has changed. What is there stays if it cannot be read, as in the middle
    /// of writing.
    fn read_again(&mut self, arguments: &ReadArgs, activity: &Activity) -> Result<bool> {
        let about = std::fs::metadata(&self.path).with_context(|| self.path.display().to_string())?;
        let state = Some((about.len(), about.modified()?));
        if self.read == state {
            return Ok(false);
        }
        self.read = state;
        activity.notice();
        let mut reader =
            reader(arguments, TimesKept::None, Intake::Trace(Default::default()), projection(arguments)?)?;
        match reader.read(&self.path, &self.name) {
            Ok(()) => {
                (self.folds, self.failure) = (reader.loaded.folds, None);
                Ok(true)
            }
            Err(error) => {
                self.failure = Some(error);
                Ok(false)
            }
        }
    }
}
