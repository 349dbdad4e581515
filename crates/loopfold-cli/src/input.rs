//! Reads the inputs of a command into one fold: opens them, guesses their formats, and folds traces
//! while they are read, or after that if the folder needs whole streams. Archives are folds already.

use crate::args::{FolderArgs, FolderName, PeersName, ReadArgs, TiesName, UselessOption};
use crate::formats;
use crate::interrupt::{self, Interruptible};
use crate::names;
use crate::progress::Watched;
use crate::show;
use crate::streams;
use anyhow::{Context as _, Result, anyhow, bail};
use loopfold::archive::{self, Archive, ReadConfig, SectionKind, Sizes};
use loopfold::export::grammar;
use loopfold::fold::FoldBuilder;
use loopfold::folders::{
    self, Auto, Folder, Folding, Guarded, Halving, Innermost, MinTimes, Minimum, Outermost, Repair, Sequitur,
    Sequitur1, SequiturRuns, Smallest, Ties,
};
use loopfold::questions::communication::{PeerRewrite, Peers};
use loopfold::questions::patterns::MemoryBudget;
use loopfold::trace::{Collector, NameMap, Projection, STREAM_LIMIT, Sink, TimesKept};
use loopfold::{Fold, RuleId, StreamId, Symbol, Trace};
use loopfold_sources::{Context, Damage, FunctionNames, Input, Options, Source};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The note of how many bytes an input had, after decompression, at the first of its
/// streams: so the sum over all streams is that of all inputs, also once they are joined.
pub(crate) const BYTES_NOTE: &str = "bytes";

/// The note for an archive that had chunks, written to one that has none.
pub(crate) const CHUNKS_LEFT_OUT: &str =
    "the chunks of the events are left out; `fold --chunks` makes new ones";

/// What was read.
#[derive(Default)]
pub(crate) struct Loaded {
    /// The traces, in one.
    pub(crate) trace: Trace,
    /// The traces, when they were folded while they were read.
    folded: Option<Fold>,
    /// The archives.
    pub(crate) folds: Vec<Fold>,
    /// Notes for the user, on standard error.
    pub(crate) notes: Vec<String>,
    /// The names of the formats that were read.
    pub(crate) formats: Vec<&'static str>,
    /// The bytes of the archives, if nothing else was read.
    pub(crate) archive_bytes: Option<u64>,
    /// The archive, if nothing else was read and it is a file: for what it has beside the fold.
    pub(crate) archive: Option<Archive<BufReader<File>>>,
    /// The bytes of the chunks of events in the archives.
    pub(crate) chunk_bytes: u64,
    /// The bytes of the indexes of functions in the archives.
    pub(crate) index_bytes: u64,
    /// The number of archives without such an index.
    without_index: usize,
    /// Whether traces of slices were read as calls.
    slices_are_calls: bool,
    /// Why reading ended early, if what came before is kept.
    pub(crate) cut: Option<anyhow::Error>,
    projection: Projection,
    peers: Peers,
    /// Whether an archive has sums of its rules instead of times.
    has_rule_sums: bool,
    /// The values of `--stream`; all streams are selected if there is none.
    pub(crate) selectors: Vec<String>,
}

/// Reads all inputs; traces are kept in memory.
pub(crate) fn load(arguments: &ReadArgs, times: TimesKept) -> Result<Loaded> {
    let collector = Collector::new(taken_in(arguments)?, times);
    read_all(arguments, times, Intake::Trace(collector), false)
}

/// Reads all inputs into one fold, archives as they are. The default folder is `auto`.
pub(crate) fn fold(
    arguments: &ReadArgs,
    times: TimesKept,
    chosen: &FolderArgs,
) -> Result<(Fold, Vec<String>)> {
    let chosen = chosen.or(FolderName::Auto);
    load_for(arguments, times, &chosen)?.fold_as_stored(&chosen)
}

/// Reads all inputs; traces are folded while they are read if the folder can do that.
pub(crate) fn load_for(arguments: &ReadArgs, times: TimesKept, chosen: &FolderArgs) -> Result<Loaded> {
    read_all(arguments, times, Intake::by(chosen, taken_in(arguments)?, times)?, false)
}

/// The same, but keeps input that cannot be read again when reading ends early.
pub(crate) fn load_what_comes(arguments: &ReadArgs, times: TimesKept, chosen: &FolderArgs) -> Result<Loaded> {
    read_all(arguments, times, Intake::by(chosen, taken_in(arguments)?, times)?, true)
}

fn read_all(arguments: &ReadArgs, times: TimesKept, intake: Intake, keep_what_came: bool) -> Result<Loaded> {
    let mut reader = Reader {
        arguments,
        options: Options { lenient: arguments.lenient, ..arguments.formats.options.clone() },
        intake,
        loaded: Loaded {
            projection: projection(arguments)?,
            peers: peers(arguments),
            archive_bytes: Some(0),
            slices_are_calls: arguments.formats.options.calls,
            selectors: arguments.stream.clone(),
            ..Loaded::default()
        },
        times: times == TimesKept::All,
        several: arguments.inputs.len() > 1,
        input_formats: Vec::new(),
        archive_fields: HashSet::new(),
    };
    let names = input_names(&arguments.inputs).into_iter().zip(formats::ranks(&arguments.inputs));
    for (path, (name, rank)) in arguments.inputs.iter().zip(names) {
        reader.options.rank = Some(rank);
        // What comes through a pipe cannot be read again, and a line may be cut off.
        let is_pipe = path.as_os_str() == "-";
        reader.options.whole_lines = keep_what_came && is_pipe && !arguments.lenient;
        if let Err(error) = reader.read(path, &name) {
            // Neither the fault of this input nor a reason to keep what came before.
            if let Some(useless) = error.downcast_ref::<UselessOption>() {
                bail!("{useless}");
            }
            let is_lost = is_pipe || interrupt::check().is_err();
            reader.cut(error, keep_what_came && is_lost)?;
            break;
        }
    }
    interrupt::let_go();
    // A signal that came after the last read, while its bytes were still being parsed.
    if let Err(error) = interrupt::check()
        && reader.loaded.cut.is_none()
    {
        reader.cut(error.into(), keep_what_came)?;
    }
    if reader.loaded.cut.is_none() {
        reader.check_fields()?;
    }
    let Reader { intake, mut loaded, .. } = reader;
    match intake {
        Intake::Trace(collector) => loaded.trace = collector.finish()?,
        Intake::Fold(folding) => loaded.folded = Some(folding.finish()?),
    }
    loaded.rewrite_peers()?;
    loaded.note_what_is_missing();
    Ok(loaded)
}

/// The sink of the events of traces.
enum Intake {
    Trace(Collector),
    Fold(Folding),
}

impl Intake {
    /// Folds events as they are read if the folder can, and collects them otherwise.
    fn by(chosen: &FolderArgs, projection: Projection, times: TimesKept) -> Result<Self> {
        let folder = folder(chosen)?;
        if folder.online().is_none() {
            return Ok(Intake::Trace(Collector::new(projection, times)));
        }
        Ok(Intake::Fold(Folding::with(folder, projection, times, threads(chosen))?))
    }

    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Intake::Trace(collector) => collector,
            Intake::Fold(folding) => folding,
        }
    }

    fn sink_ref(&self) -> &dyn Sink {
        match self {
            Intake::Trace(collector) => collector,
            Intake::Fold(folding) => folding,
        }
    }
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

fn projection(arguments: &ReadArgs) -> Result<Projection> {
    let map = match &arguments.map {
        None => NameMap::default(),
        Some(path) => {
            let text = std::fs::read(path).with_context(|| path.display().to_string())?;
            NameMap::parse(&text).with_context(|| path.display().to_string())?
        }
    };
    Ok(Projection { key: arguments.key.clone(), ignore: arguments.ignore.clone(), map, keep: Vec::new() })
}

fn peers(arguments: &ReadArgs) -> Peers {
    match arguments.peers {
        PeersName::Absolute => Peers::Absolute,
        PeersName::Relative => Peers::Relative,
        PeersName::Cartesian => Peers::Cartesian,
    }
}

/// The projection while traces are read: the members of communicators must still be known when
/// peers are rewritten, and are dropped afterwards.
fn taken_in(arguments: &ReadArgs) -> Result<Projection> {
    let projection = projection(arguments)?;
    match peers(arguments) {
        Peers::Absolute => Ok(projection),
        _ => Ok(projection.keeping(&Peers::NEEDS)),
    }
}

struct Reader<'a> {
    arguments: &'a ReadArgs,
    options: Options,
    intake: Intake,
    loaded: Loaded,
    times: bool,
    several: bool,
    /// The formats of the inputs that were opened, archives and grammars among them.
    input_formats: Vec<&'static str>,
    /// The fields that events in archives have.
    archive_fields: HashSet<String>,
}

impl Reader<'_> {
    /// Handles an early end of reading: keeps what came before if `keep` and if there are events.
    fn cut(&mut self, error: anyhow::Error, keep: bool) -> Result<()> {
        if !keep || self.intake.sink_ref().events() == 0 {
            return Err(error);
        }
        self.loaded.cut = Some(error);
        Ok(())
    }

    fn read(&mut self, path: &Path, base: &str) -> Result<()> {
        if path.as_os_str() == "-" {
            return self.read_bytes(interrupt::stdin()?, None, None, base).context("standard input");
        }
        let name = path.display().to_string();
        let anchor = if path.is_dir() { formats::file_of_folder(path) } else { None };
        let path = anchor.as_deref().unwrap_or(path);
        let file = File::open(path).with_context(|| name.clone())?;
        let about = file.metadata().with_context(|| name.clone())?;
        if about.is_dir() {
            bail!("{name}: is a directory, and no OTF2 archive; name the files in it");
        }
        self.read_file(file, path, base, about.is_file().then_some(about.len())).with_context(|| name)
    }

    fn read_file(&mut self, mut file: File, path: &Path, base: &str, length: Option<u64>) -> Result<()> {
        if length.is_some() && self.arguments.format.is_none() {
            let mut head = Vec::new();
            file.by_ref().take(64).read_to_end(&mut head)?;
            file.seek(SeekFrom::Start(0))?;
            if archive::looks_like(&head) {
                let archive = self.read_archive(BufReader::new(file), base)?;
                self.loaded.archive = (!self.several).then_some(archive);
                return Ok(());
            }
        }
        self.read_bytes(Interruptible(file), length, Some(path), base)
    }

    fn read_archive<R: Read + Seek>(&mut self, input: R, base: &str) -> Result<Archive<R>> {
        let options = ReadConfig::new().times(self.times).lenient(self.arguments.lenient);
        self.is_of_format(ARCHIVE)?;
        let mut archive = Archive::open(input)?;
        let Sizes { total: bytes, chunks, index, .. } = archive.sizes();
        self.loaded.chunk_bytes = self.loaded.chunk_bytes.saturating_add(chunks);
        self.loaded.index_bytes = self.loaded.index_bytes.saturating_add(index);
        self.loaded.without_index += usize::from(!archive.has_section(SectionKind::Index));
        self.loaded.archive_bytes = self.loaded.archive_bytes.map(|sum| sum.saturating_add(bytes));
        let (fold, report) = archive.read(&options)?;
        if let Some(damage) = report.damage {
            self.loaded
                .notes
                .push(format!("{base}: damaged: {damage}; {} segments were read", report.segments));
        }
        self.keep(fold)?;
        Ok(archive)
    }

    fn read_grammar(&mut self, input: &mut Input<'_>, base: &str) -> Result<()> {
        self.is_of_format(GRAMMAR)?;
        self.loaded.archive_bytes = None;
        let fold = if self.arguments.lenient {
            let (fold, damage) = grammar::read_leniently(&mut *input)?;
            self.loaded.notes.extend(damage.map(|damage| {
                let streams = show::plural(fold.streams().len() as u64, "stream");
                format!("{base}: damaged: {damage}; what comes before is {streams}")
            }));
            fold
        } else {
            grammar::read(&mut *input)?
        };
        self.note_damage(base, &Damage::default(), input.damage());
        self.keep(fold)
    }

    /// Records the format of the input to be read next. Once the formats of all inputs are known, an
    /// option that is for none of them is an error.
    fn is_of_format(&mut self, format: &'static str) -> Result<()> {
        self.input_formats.push(format);
        let all_known = self.input_formats.len() == self.arguments.inputs.len();
        if all_known { Ok(self.arguments.formats.check(&self.input_formats)?) } else { Ok(()) }
    }

    /// Adds an input that is a fold already, after applying the projection.
    fn keep(&mut self, mut fold: Fold) -> Result<()> {
        if !self.loaded.projection.is_identity() {
            let alphabet = fold.alphabet();
            for symbol in alphabet.symbols() {
                let fields = alphabet.meaning(symbol).fields;
                self.archive_fields.extend(fields.iter().map(|field| field.key.to_string()));
            }
            // Peers depend on all processes, so they are rewritten when everything is read.
            if self.loaded.peers == Peers::Absolute {
                fold = project(&fold, &self.loaded.projection)?;
            }
        }
        self.loaded.has_rule_sums |= fold.rule_sums().is_some();
        self.loaded.folds.push(fold);
        Ok(())
    }

    fn read_bytes(
        &mut self,
        bytes: impl Read + Send,
        length: Option<u64>,
        path: Option<&Path>,
        base: &str,
    ) -> Result<()> {
        let mut input = Input::open(Watched::new(bytes, length), self.arguments.lenient)?
            .interrupted_by(interrupt::check);
        let called = path.and_then(Path::file_name).map(|name| name.to_string_lossy());
        let source = self.source(input.head()?, called.as_deref().unwrap_or(base))?;
        if archive::looks_like(input.head()?) && self.arguments.format.is_none() {
            // An archive that is compressed or comes through a pipe: it must be whole in memory.
            let mut whole = Vec::new();
            input.read_to_end(&mut whole)?;
            return self.read_archive(std::io::Cursor::new(whole), base).map(drop);
        }
        if grammar::looks_like(input.head()?) && self.arguments.format.is_none() {
            return self.read_grammar(&mut input, base);
        }
        let Some(source) = source else {
            bail!(
                "this looks like binary data of no known format; say what it is with --format, for example \
                 u8, u16, u32, u64, bytes or lines"
            );
        };
        self.is_of_format(source.name())?;
        self.loaded.archive_bytes = None;
        if source.name() == "calls-binary" {
            self.options.functions = self.function_names(path, base)?.into();
        }
        let sink = self.intake.sink();
        let streams_before = sink.stream_count();
        let mut context = Context::new(&self.options, sink, base, self.several).at(path, interrupt::check);
        let outcome = source.read(&mut input, &mut context);
        let bytes = match context.other_bytes() {
            0 => input.bytes_read(),
            bytes => bytes,
        };
        let damage = context.into_damage();
        let sink = self.intake.sink();
        for stream in streams_before..sink.stream_count() {
            sink.describe(StreamId::new(stream)?, "format", source.name())?;
        }
        if streams_before < sink.stream_count() {
            sink.describe(StreamId::new(streams_before)?, BYTES_NOTE, &bytes.to_string())?;
        }
        outcome?;
        self.note_damage(base, &damage, input.damage());
        self.loaded.formats.push(source.name());
        Ok(())
    }

    /// The names of functions: from the file that the user names, or from one beside the trace. Nobody
    /// asked for the latter, so it is no error if that file is something else.
    fn function_names(&mut self, path: Option<&Path>, base: &str) -> Result<FunctionNames> {
        if let Some(given) = &self.options.names {
            return names::read(given);
        }
        match path.and_then(names::beside).as_deref().map(names::read) {
            None => Ok(FunctionNames::default()),
            Some(Ok(names)) => Ok(names),
            Some(Err(error)) => {
                self.loaded.notes.push(format!("{base}: functions have no names: {error:#}"));
                Ok(FunctionNames::default())
            }
        }
    }

    fn source(&self, head: &[u8], base: &str) -> Result<Option<&'static dyn Source>> {
        match &self.arguments.format {
            Some(name) => {
                let known = || formats::all().map(|source| source.name()).collect::<Vec<_>>().join(", ");
                let source = formats::by_name(name);
                Ok(Some(source.ok_or_else(|| anyhow!("no format is called {name}; there are {}", known()))?))
            }
            None => match self.arguments.formats.implied_format() {
                Some(implied) => Ok(formats::by_name(implied)),
                None => Ok(formats::guess(head, base)),
            },
        }
    }

    /// Reports a field that no event has: it would make all events equal, or change nothing.
    fn check_fields(&mut self) -> Result<()> {
        let named: Vec<String> = self.loaded.projection.fields().map(String::from).collect();
        let archives_only = self.loaded.formats.is_empty();
        let absent = |field: &&String| {
            let in_traces = !archives_only && !self.intake.sink_ref().unseen_fields().contains(field);
            !in_traces && !self.archive_fields.contains(*field)
        };
        let Some(absent) = named.iter().find(absent) else { return Ok(()) };
        let sources = self.loaded.formats.iter().filter_map(|format| formats::by_name(format));
        let known: Vec<&str> = sources.flat_map(|source| source.fields()).copied().collect();
        if known.contains(&absent.as_str())
            || self.intake.sink_ref().events() == 0 && self.loaded.folds.is_empty()
        {
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

/// The format names of inputs that are folds already.
const ARCHIVE: &str = "fold";
const GRAMMAR: &str = "grammar";

/// Formats of traces of calls.
const CALLS: [&str; 3] = ["calls", "calls-binary", "finstrument"];

impl Loaded {
    /// True if all inputs are traces of calls, or archives that have an index of functions.
    pub(crate) fn is_indexed(&self) -> bool {
        let is_calls = |format: &&str| CALLS.contains(format) || *format == "chrome" && self.slices_are_calls;
        let something = self.index_bytes > 0 || !self.formats.is_empty();
        something && self.without_index == 0 && self.formats.iter().all(is_calls)
    }
}

impl Loaded {
    /// Another trace, with the same selection of streams.
    pub(crate) fn with_trace(&self, trace: Trace) -> Self {
        Self { trace, selectors: self.selectors.clone(), ..Self::default() }
    }

    /// Adds notes on why there may be fewer events than expected.
    fn note_what_is_missing(&mut self) {
        let in_traces = self.trace.streams.iter().filter_map(|stream| left_out(&stream.notes));
        let streams = self.folded.iter().flat_map(Fold::streams);
        let left_out: u64 = in_traces.chain(streams.filter_map(|stream| left_out(stream.notes()))).sum();
        if left_out > 0 {
            self.notes.push(format!("{left_out} lines do not match --select and are left out"));
        }
        let has_events = self.folded.as_ref().is_some_and(|fold| fold.events() != Some(0));
        if self.folds.is_empty() && self.trace.events() == 0 && !has_events {
            self.notes.push("there are no events".to_string());
        }
    }

    /// Rewrites the peers of all inputs as the arguments ask for, and then removes the fields
    /// that do not count.
    fn rewrite_peers(&mut self) -> Result<()> {
        if self.peers == Peers::Absolute {
            return Ok(());
        }
        let is_folded = self.folded.is_some();
        let mut folds: Vec<Fold> = self.folded.take().into_iter().chain(self.folds.drain(..)).collect();
        match self.peers.apply(&mut self.trace, &mut folds) {
            Ok(rewrite) => self.notes.extend(notes_on_peers(&rewrite)),
            // What was read before the end is kept, even if its peers are not rewritten.
            Err(error) => match self.cut.take() {
                Some(cut) => self.cut = Some(anyhow!("{cut:#}; peers are written as ranks: {error}")),
                None => return Err(error.into()),
            },
        }
        if !self.projection.is_identity() {
            let (alphabet, renamed) = self.projection.of_alphabet(&self.trace.alphabet)?;
            self.trace = std::mem::take(&mut self.trace).with_alphabet(alphabet, &renamed);
            for fold in &mut folds {
                *fold = project(fold, &self.projection)?;
            }
        }
        let mut folds = folds.into_iter();
        self.folded = if is_folded { folds.next() } else { None };
        self.folds = folds.collect();
        Ok(())
    }

    /// Joins all inputs into one fold made by this folder. Archives made by another folder are
    /// unfolded and folded again, unless they are too long for memory.
    pub(crate) fn fold(mut self, chosen: &FolderArgs) -> Result<(Fold, Vec<String>)> {
        let folder = folder(chosen)?;
        let wanted = folder.describe();
        let changed = !self.projection.is_identity() || self.peers != Peers::Absolute;
        for fold in &mut self.folds {
            if !changed && fold.streams().iter().all(|stream| stream.folder() == wanted) {
                continue;
            }
            if !changed && chosen.folder.is_none() && fold.rule_sums().is_some() {
                let by = fold.streams().first().map_or("its folder", |stream| stream.folder());
                self.notes.push(format!(
                    "the archive has sums of times for its own loops only; so these are the loops that {by} found \
                     (--folder {wanted} shows others, without times)"
                ));
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

    /// Joins all inputs into one fold, archives as they are.
    pub(crate) fn fold_as_stored(self, chosen: &FolderArgs) -> Result<(Fold, Vec<String>)> {
        let Self { trace, folded, mut folds, mut notes, selectors, has_rule_sums, .. } = self;
        let folded = folded.filter(|fold| !fold.streams().is_empty());
        if !trace.streams.is_empty() || (folds.is_empty() && folded.is_none()) {
            folds.insert(0, folders::fold_trace(trace, &*folder(chosen)?, threads(chosen))?);
        }
        folds.splice(..0, folded);
        let fold = streams::choose(join(folds)?, &selectors)?;
        if has_rule_sums && fold.rule_sums().is_none() {
            notes.push(
                "the archive has sums instead of the times of every event, and only for its own loops and all of its \
                 streams; so the times of these loops are not known"
                    .to_string(),
            );
        }
        Ok((fold, notes))
    }
}

/// The most communicators that a note names.
const MOST_NAMED: usize = 8;
const LONGEST_NAME: usize = 40;

/// Notes for the user on how peers were rewritten.
fn notes_on_peers(rewrite: &PeerRewrite) -> Vec<String> {
    let mut notes = Vec::new();
    if !rewrite.has_messages {
        notes.push("no event has the rank of a peer, so --peers changes nothing".to_string());
    }
    let inferred: Vec<_> = rewrite.grids.iter().filter(|grid| grid.is_inferred).collect();
    for grid in inferred.iter().take(MOST_NAMED) {
        notes.push(format!("communicator {}: a grid of {grid}", show::shorten(&grid.comm, LONGEST_NAME)));
    }
    if inferred.len() > MOST_NAMED {
        notes.push(format!(
            "and {} more communicators whose messages show a grid",
            inferred.len() - MOST_NAMED
        ));
    }
    let about = |comms: &[String], what: &str| {
        (!comms.is_empty()).then(|| format!("{}: {what}", some_communicators(comms)))
    };
    notes.extend(about(&rewrite.without_grid, "no grid is known, so its peers are written as distances"));
    notes.extend(about(
        &rewrite.unclear,
        "the trace does not list its members, so it is assumed to contain all processes",
    ));
    notes.extend(about(
        &rewrite.unplaced,
        "some processes use it, but the trace does not show them as members; their peers are written as ranks",
    ));
    notes
}

/// The names of the first few communicators.
fn some_communicators(comms: &[String]) -> String {
    let shown = comms.iter().take(MOST_NAMED);
    let mut names: Vec<String> = shown.map(|comm| show::shorten(comm, LONGEST_NAME)).collect();
    if comms.len() > MOST_NAMED {
        names.push(format!("and {} more", comms.len() - MOST_NAMED));
    }
    format!("communicator {}", names.join(", "))
}

/// Applies a projection to a fold.
fn project(fold: &Fold, projection: &Projection) -> Result<Fold> {
    let (alphabet, renamed) = projection.of_alphabet(fold.alphabet())?;
    Ok(fold.with_alphabet(alphabet, &renamed)?)
}

fn left_out(notes: &[(String, String)]) -> Option<u64> {
    let (_, count) = notes.iter().find(|(key, _)| key == "lines-left-out")?;
    count.parse().ok()
}

/// Folds a fold again with another folder. Returns `None` if it does not fit in memory.
fn refold(fold: &Fold, folder: &dyn Folder, threads: usize) -> Result<Option<Fold>> {
    let longest = fold.streams().iter().map(|stream| fold.length(stream.root())).max().unwrap_or(0);
    if longest > events_in(available_memory(), threads) {
        return Ok(None);
    }
    Ok(Some(folders::refold(fold, folder, threads)?))
}

/// The folder passed to questions that find loops of their own.
pub(crate) fn outermost(stream: &[Symbol], builder: &mut FoldBuilder) -> loopfold::Result<RuleId> {
    Outermost::default().fold(stream, builder)
}

/// How many events and symbols of streams fit in memory.
pub(crate) fn memory_budget(chosen: &FolderArgs) -> MemoryBudget {
    let threads = threads(chosen);
    let events = events_in(available_memory(), threads);
    let symbols = usize::try_from(events).unwrap_or(usize::MAX).min(MOST_STORED);
    MemoryBudget { events, symbols, threads }
}

/// The longest stream that a folder can hold in this much memory, if each of the threads folds
/// one: it needs up to 30 bytes an event.
fn events_in(memory: u64, threads: usize) -> u64 {
    (memory / 30 / threads.max(1) as u64).min(STREAM_LIMIT as u64)
}

/// The most symbols of a stream whose loops are taken as an archive has them.
const MOST_STORED: usize = 1 << 26;

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
    let has_no_settings = matches!(
        name,
        FolderName::Repair
            | FolderName::Sequitur
            | FolderName::Sequitur1
            | FolderName::SequiturRuns
            | FolderName::Auto
            | FolderName::Smallest
    );
    if has_no_settings && (arguments.ties.is_some() || arguments.min_times.is_some()) {
        bail!(
            "--ties and --min-times are for folders that search for loops, such as outermost; this one has no such choice"
        );
    }
    Ok(match name {
        FolderName::Outermost => Box::new(Outermost::default().ties(ties).min_times(min_times)),
        FolderName::Innermost => Box::new(Innermost::default().ties(ties).min_times(min_times)),
        FolderName::Guarded => Box::new(Guarded::default().min_times(min_times)),
        FolderName::Halving => Box::new(Halving::default().min_times(min_times)),
        FolderName::Minimum => Box::new(Minimum::default().min_times(min_times)),
        FolderName::Repair => Box::new(Repair),
        FolderName::Sequitur => Box::new(Sequitur),
        FolderName::Sequitur1 => Box::new(Sequitur1),
        FolderName::SequiturRuns => Box::new(SequiturRuns),
        FolderName::Auto => Box::new(Auto),
        FolderName::Smallest => Box::new(Smallest::new(archive::coded_size)),
    })
}

fn threads(arguments: &FolderArgs) -> usize {
    arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stream_in_memory_is_the_library_s_limit() {
        assert_eq!(events_in(u64::MAX, 1), STREAM_LIMIT as u64);
        assert_eq!(events_in(30 << 20, 2), 1 << 19);
        assert_eq!(events_in(0, 0), 0);
    }
}
