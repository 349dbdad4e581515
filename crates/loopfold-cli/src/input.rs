//! From the command line to a fold: opening inputs, guessing their formats, reading
//! them into one trace, and folding that; archives come as folds already.

use crate::args::{FolderArgs, FolderName, ReadArgs, TiesName};
use crate::progress::Watched;
use anyhow::{Context as _, Result, anyhow, bail};
use loopfold::archive::{self, ReadOptions};
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::{
    self, Folder, Guarded, Halving, Innermost, MinTimes, Minimum, Outermost, Settings, Ties,
};
use loopfold::trace::{Collector, NameMap, Projection, Sink as _, Stream, TimesKept};
use loopfold::{Fold, StreamId, Trace};
use loopfold_sources::{Context, Damage, Input, Options, Source};
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What was read.
#[derive(Default)]
pub(crate) struct Loaded {
    /// The traces, in one.
    pub(crate) trace: Trace,
    /// The archives.
    pub(crate) folds: Vec<Fold>,
    /// What users should know, for standard error.
    pub(crate) notes: Vec<String>,
    /// The names of the formats that were read.
    pub(crate) formats: Vec<&'static str>,
    /// The bytes of archives.
    pub(crate) archive_bytes: u64,
    projection: Projection,
    /// Whether an archive has sums of its rules instead of times.
    has_rule_sums: bool,
    /// Of streams with names of their own, only those that contain this.
    only: Option<String>,
}

/// Reads all inputs.
pub(crate) fn load(arguments: &ReadArgs, times: TimesKept) -> Result<Loaded> {
    let projection = projection(arguments)?;
    let mut reader = Reader {
        arguments,
        options: options(arguments),
        collector: Collector::new(projection.clone(), times),
        loaded: Loaded { projection, ..Loaded::default() },
        times: times == TimesKept::All,
        several: arguments.inputs.len() > 1,
        archive_fields: HashSet::new(),
    };
    for (path, name) in arguments.inputs.iter().zip(input_names(&arguments.inputs)) {
        reader.read(path, &name)?;
    }
    reader.check_fields()?;
    let Reader { collector, mut loaded, .. } = reader;
    loaded.trace = collector.finish()?;
    loaded.note_what_is_missing();
    Ok(loaded)
}

/// What each input is called: its file name, or its path where names are equal, or
/// that with a number.
fn input_names(paths: &[PathBuf]) -> Vec<String> {
    let base = |path: &Path| match path.file_name() {
        _ if path.as_os_str() == "-" => "stdin".to_string(),
        Some(base) => base.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    };
    let bases: Vec<String> = paths.iter().map(|path| base(path)).collect();
    let is_taken = |name: &String| bases.iter().filter(|&other| other == name).count() > 1;
    let name = |(path, base): (&PathBuf, &String)| {
        if is_taken(base) { path.display().to_string() } else { base.clone() }
    };
    let mut names: Vec<String> = paths.iter().zip(&bases).map(name).collect();
    for index in 1..names.len() {
        let before = names[..index].iter().filter(|&name| *name == names[index]).count();
        if before > 0 {
            names[index] = format!("{} ({})", names[index], before + 1);
        }
    }
    names
}

fn options(arguments: &ReadArgs) -> Options {
    Options {
        select: arguments.select.clone(),
        stream: arguments.stream.clone(),
        mask: arguments.mask,
        event: arguments.event.clone(),
        start: arguments.start.clone(),
        duration: arguments.duration.clone(),
        metric: arguments.metric.clone(),
        time_unit: arguments.time_unit.clone(),
        calls: arguments.calls,
        category: arguments.category.clone(),
        lenient: arguments.lenient,
    }
}

fn projection(arguments: &ReadArgs) -> Result<Projection> {
    let map = match &arguments.map {
        None => NameMap::default(),
        Some(path) => {
            let text = std::fs::read(path).with_context(|| path.display().to_string())?;
            NameMap::parse(&text).with_context(|| path.display().to_string())?
        }
    };
    Ok(Projection { key: arguments.key.clone(), ignore: arguments.ignore.clone(), map })
}

struct Reader<'a> {
    arguments: &'a ReadArgs,
    options: Options,
    collector: Collector,
    loaded: Loaded,
    times: bool,
    several: bool,
    /// The fields that events in archives have.
    archive_fields: HashSet<String>,
}

impl Reader<'_> {
    fn read(&mut self, path: &Path, base: &str) -> Result<()> {
        if path.as_os_str() == "-" {
            return self.read_bytes(std::io::stdin(), None, base).context("standard input");
        }
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        let about = file.metadata().with_context(|| name.clone())?;
        if about.is_dir() {
            bail!("{name}: is a directory; name the files in it");
        }
        self.read_file(file, base, about.is_file().then_some(about.len())).with_context(|| name)
    }

    fn read_file(&mut self, mut file: File, base: &str, length: Option<u64>) -> Result<()> {
        if length.is_some() && self.arguments.format.is_none() {
            let mut head = Vec::new();
            file.by_ref().take(64).read_to_end(&mut head)?;
            file.seek(SeekFrom::Start(0))?;
            if archive::looks_like(&head) {
                return self.read_archive(std::io::BufReader::new(file), base);
            }
        }
        self.read_bytes(file, length, base)
    }

    fn read_archive(&mut self, input: impl Read + Seek, base: &str) -> Result<()> {
        let options = ReadOptions { times: self.times, lenient: self.arguments.lenient };
        let mut archive = archive::Archive::open(input)?;
        self.loaded.archive_bytes += archive.sizes().total;
        let (mut fold, report) = archive.read(&options)?;
        if let Some(damage) = report.damage {
            self.loaded
                .notes
                .push(format!("{base}: damaged: {damage}; {} segments were read", report.segments));
        }
        if !self.loaded.projection.is_identity() {
            let alphabet = fold.alphabet();
            for symbol in alphabet.symbols() {
                let fields = alphabet.meaning(symbol).fields;
                self.archive_fields.extend(fields.iter().map(|field| field.key.to_string()));
            }
            let (alphabet, renamed) = self.loaded.projection.of_alphabet(fold.alphabet())?;
            fold = fold.with_alphabet(alphabet, &renamed)?;
        }
        self.loaded.only = self.arguments.stream.clone();
        self.loaded.has_rule_sums |= fold.rule_sums().is_some();
        self.loaded.folds.push(fold);
        Ok(())
    }

    fn read_bytes(&mut self, bytes: impl Read + Send, length: Option<u64>, base: &str) -> Result<()> {
        let mut input = Input::open(Watched::new(bytes, length), self.arguments.lenient)?;
        let source = self.source(input.head()?, base)?;
        if archive::looks_like(input.head()?) && self.arguments.format.is_none() {
            // An archive that is compressed or comes through a pipe: it must be whole in memory.
            let mut whole = Vec::new();
            input.read_to_end(&mut whole)?;
            return self.read_archive(std::io::Cursor::new(whole), base);
        }
        let Some(source) = source else {
            bail!(
                "this looks like binary data of no known format; say what it is with --format, for example \
                 u8, u16, u32, u64, bytes or lines"
            );
        };
        let streams_before = self.collector.stream_count();
        let mut context = Context::new(&self.options, &mut self.collector, base, self.several);
        source.read(&mut input, &mut context)?;
        let damage = context.into_damage();
        self.note_damage(base, &damage, input.damage());
        for stream in streams_before..self.collector.stream_count() {
            self.collector.describe(StreamId::new(stream)?, "format", source.name())?;
        }
        if !["lines", "csv"].contains(&source.name()) {
            self.loaded.only = self.arguments.stream.clone();
        }
        self.loaded.formats.push(source.name());
        Ok(())
    }

    fn source(&self, head: &[u8], base: &str) -> Result<Option<&'static dyn Source>> {
        match &self.arguments.format {
            Some(name) => {
                let known = || {
                    loopfold_sources::ALL.iter().map(|source| source.name()).collect::<Vec<_>>().join(", ")
                };
                let source = loopfold_sources::by_name(name);
                Ok(Some(source.ok_or_else(|| anyhow!("no format is called {name}; there are {}", known()))?))
            }
            None if self.means_a_table(base) => Ok(loopfold_sources::by_name("csv")),
            None => Ok(loopfold_sources::guess(head, Some(base))),
        }
    }

    /// A table needs to be told which column is the event, so it is not guessed from the
    /// content; but options and endings tell.
    fn means_a_table(&self, base: &str) -> bool {
        let ReadArgs { event, start, duration, metric, .. } = self.arguments;
        let ending = |ending: &str| {
            [".gz", ".zst", ".xz", ""].iter().any(|packed| base.ends_with(&format!("{ending}{packed}")))
        };
        !event.is_empty()
            || start.is_some()
            || duration.is_some()
            || !metric.is_empty()
            || ending(".csv")
            || ending(".tsv")
    }

    /// A field that no event has would make all events equal, or change nothing.
    fn check_fields(&mut self) -> Result<()> {
        let named: Vec<String> = self.loaded.projection.fields().map(String::from).collect();
        let archives_only = self.loaded.formats.is_empty();
        let absent = |field: &&String| {
            let in_traces = !archives_only && !self.collector.unseen_fields().contains(field);
            !in_traces && !self.archive_fields.contains(*field)
        };
        let Some(absent) = named.iter().find(absent) else { return Ok(()) };
        let sources = self.loaded.formats.iter().filter_map(|format| loopfold_sources::by_name(format));
        let known: Vec<&str> = sources.flat_map(|source| source.fields()).copied().collect();
        if known.contains(&absent.as_str()) || self.collector.events() == 0 && self.loaded.folds.is_empty() {
            self.loaded.notes.push(format!("no event has the field {absent}"));
            return Ok(());
        }
        match (archives_only, known.as_slice()) {
            (true, _) => bail!(
                "no event in the archive has the field {absent}; an archive has the fields that `fold --key` kept"
            ),
            (false, []) => bail!("no event has the field {absent}; this format has no fields"),
            (false, known) => bail!("no event has the field {absent}; there are: name, {}", known.join(", ")),
        }
    }

    fn note_damage(&mut self, base: &str, damage: &Damage, cut: Option<&str>) {
        for first in &damage.first {
            self.loaded.notes.push(format!("{base}: damaged: {first}"));
        }
        if damage.count > damage.first.len() as u64 {
            let more = damage.count - damage.first.len() as u64;
            self.loaded.notes.push(format!("{base}: and {more} more like that"));
        }
        if let Some(cut) = cut {
            self.loaded.notes.push(format!("{base}: damaged: {cut}"));
        }
    }
}

impl From<Trace> for Loaded {
    fn from(trace: Trace) -> Self {
        Self { trace, ..Self::default() }
    }
}

impl Loaded {
    /// Notes why there may be less than expected.
    fn note_what_is_missing(&mut self) {
        let left_out: u64 = self.trace.streams.iter().filter_map(left_out).sum();
        if left_out > 0 {
            self.notes.push(format!("{left_out} lines do not match --select and are left out"));
        }
        if self.folds.is_empty() && self.trace.events() == 0 {
            self.notes.push("there are no events".to_string());
        }
    }

    /// Everything as one fold, made by this folder. Archives made by another one are
    /// unfolded and folded again, unless they are too long for that.
    pub(crate) fn fold(mut self, chosen: &FolderArgs) -> Result<(Fold, Vec<String>)> {
        let folder = folder(chosen)?;
        let wanted = folder.describe();
        let changed = !self.projection.is_identity();
        for fold in &mut self.folds {
            if !changed && fold.streams().iter().all(|stream| stream.folder() == wanted) {
                continue;
            }
            match refold(fold, &*folder, threads(chosen))? {
                Some(folded) => *fold = folded,
                None => self.notes.push(format!(
                    "the archive unfolds to more than fits in memory, so these are the loops that {} found",
                    fold.streams().first().map_or("its folder", |stream| stream.folder())
                )),
            }
        }
        self.fold_as_stored(chosen)
    }

    /// Everything as one fold, archives as they are.
    pub(crate) fn fold_as_stored(self, chosen: &FolderArgs) -> Result<(Fold, Vec<String>)> {
        let Self { trace, mut folds, mut notes, only, has_rule_sums, .. } = self;
        if !trace.streams.is_empty() || folds.is_empty() {
            folds.insert(0, folders::fold_trace(trace, &*folder(chosen)?, threads(chosen))?);
        }
        let fold = choose_streams(join(folds)?, only.as_deref())?;
        if has_rule_sums && fold.rule_sums().is_none() {
            notes.push(
                "the archive has no times but sums, those of loops for its loops and streams as they are stored; \
                 so the times of these loops are not known"
                    .to_string(),
            );
        }
        Ok((fold, notes))
    }
}

fn left_out(stream: &Stream) -> Option<u64> {
    let (_, count) = stream.notes.iter().find(|(key, _)| key == "lines-left-out")?;
    count.parse().ok()
}

/// Folds again what fits in memory; nothing when it does not.
fn refold(fold: &Fold, folder: &dyn Folder, threads: usize) -> Result<Option<Fold>> {
    let longest = fold.streams().iter().map(|stream| fold.length(stream.root())).max().unwrap_or(0);
    // A folder needs up to 30 bytes an event.
    let room = available_memory() / 30 / threads.max(1) as u64;
    if longest > room.min(u64::from(u32::MAX) - 2) {
        return Ok(None);
    }
    Ok(Some(folders::refold(fold, folder, threads)?))
}

fn available_memory() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(4 << 30, |kilobytes| kilobytes * 1024)
}

/// Joins folds; a stream whose name is taken gets a number.
fn join(mut folds: Vec<Fold>) -> Result<Fold> {
    if folds.len() == 1
        && let Some(only) = folds.pop()
    {
        return Ok(only);
    }
    let mut builder = FoldBuilder::default();
    for fold in &folds {
        builder.join(fold)?;
    }
    Ok(builder.with_unique_stream_names().finish())
}

/// The streams whose name or title contains a text.
fn choose_streams(fold: Fold, only: Option<&str>) -> Result<Fold> {
    let Some(only) = only else { return Ok(fold) };
    let chosen = |stream: &FoldedStream| stream.name().contains(only) || stream.title().contains(only);
    if !fold.streams().iter().any(chosen) {
        let mut names: Vec<&str> = fold.streams().iter().take(8).map(FoldedStream::title).collect();
        if names.len() < fold.streams().len() {
            names.push("…");
        }
        bail!("no stream's name contains {only:?}; there are: {}", names.join(", "));
    }
    // In canonical form, so that rules and symbols of other streams are gone.
    Ok(fold.with_streams(chosen).canonical())
}

/// The folder that the arguments ask for.
pub(crate) fn folder(arguments: &FolderArgs) -> Result<Box<dyn Folder>> {
    let min_times = arguments.min_times.map(MinTimes::new).transpose()?.unwrap_or_default();
    let ties = match arguments.ties {
        Some(TiesName::Left) => Ties::Left,
        _ => Ties::Iterations,
    };
    let name = arguments.folder.unwrap_or_default();
    let always_left = matches!(name, FolderName::Guarded | FolderName::Halving);
    if always_left && arguments.ties == Some(TiesName::Iterations) {
        bail!(
            "the folders guarded and halving take the leftmost loop first; --ties iterations has no meaning for them"
        );
    }
    if name == FolderName::Minimum && arguments.ties.is_some() {
        bail!("the folder minimum has no ties to break; leave --ties out");
    }
    let settings = Settings { ties, min_times };
    Ok(match name {
        FolderName::Outermost => Box::new(Outermost { settings }),
        FolderName::Innermost => Box::new(Innermost { settings }),
        FolderName::Guarded => Box::new(Guarded { min_times }),
        FolderName::Halving => Box::new(Halving { min_times }),
        FolderName::Minimum => Box::new(Minimum { min_times }),
    })
}

fn threads(arguments: &FolderArgs) -> usize {
    arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}
