//! Reads the inputs of a command into one fold: opens them, guesses their formats, and folds traces
//! while they are read, or after that if the folder needs whole streams. Archives are folds already.

pub(crate) mod files;
mod follow;
mod kept;
mod parts;
mod peer_notes;
mod reader;
mod shared;
mod symbols;

use crate::args::{FolderArgs, FolderName, PeersName, ReadArgs, UselessOption};
use crate::folding::{folder, refold, threads};
use crate::formats;
use crate::interrupt;
use crate::nodes::{self, OwnStreams, Plan, SharedTimes};
use crate::progress::Phase;
use crate::selection::Selection;
use crate::show;
use anyhow::{Context as _, Result, anyhow, bail};
use follow::SharedFolding;
pub(crate) use follow::{Pace, follow};
pub(crate) use kept::Kept;
use kept::kept_or;
use loopfold::archive::Archive;
use loopfold::fold::FoldBuilder;
use loopfold::folders::{self, Folding};
use loopfold::mpi::Peers;
use loopfold::questions::path::PathBlocks;
use loopfold::questions::query::no_such_event;
use loopfold::questions::selection::Bound;
use loopfold::trace::{Collector, EventFilter, NameMap, Projection, Sink, TimesKept};
use loopfold::{Fold, Trace, sections};
use loopfold_sources::Options;
pub(crate) use parts::fold_part;
use peer_notes::notes_on_peers;
use reader::Reader;
use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
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
    /// For each archive its path, where this process reads all inputs.
    fold_names: Vec<String>,
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
    /// The sections of the archives that have the blocks of paths.
    pub(super) block_sections: Vec<Vec<u8>>,
    /// The blocks of paths of recordings that are no archives yet.
    pub(super) spooled_blocks: PathBlocks,
    /// It is noted that a recording was read that is still being written, or was stopped.
    pub(super) is_of_unfinished_recording: bool,
    /// The number of archives without such an index.
    without_index: usize,
    /// Whether traces of slices were read as calls.
    slices_are_calls: bool,
    /// Why reading ended early, if what came before is kept.
    pub(crate) cut: Option<anyhow::Error>,
    projection: Projection,
    peers: Peers,
    /// The programs whose functions have names for addresses.
    symbols: Vec<PathBuf>,
    /// Whether an archive has sums of its rules instead of times.
    has_rule_sums: bool,
    /// The processes that have the times, if all streams are traces and have the events that were read.
    pub(crate) shared_times: Option<SharedTimes>,
    /// Whether other processes have read the same archives.
    others_have_archives: bool,
    /// Whether the traces were folded by the folder of the command, though not as they are now.
    is_folded_before: bool,
    /// The words of `--only` and `--drop` that stand for no event in any process, if there are
    /// several.
    unfitted: Option<[Vec<String>; 2]>,
    /// The streams and parts of them that are selected.
    pub(crate) selection: Selection,
}

/// Reads all inputs; traces are kept in memory, or folded by this folder if others read parts of them.
pub(crate) fn load(arguments: &ReadArgs, times: TimesKept, chosen: &FolderArgs) -> Result<Loaded> {
    let times = times_needed(arguments, times)?;
    let projection = projection(arguments)?;
    kept_or(arguments, times, &"symbols", || {
        let collector = Collector::new(taken_in(arguments, &projection), times);
        read_all(arguments, times, Intake::Trace(collector), projection, false, chosen)
    })
}

/// Reads all inputs into one fold to ask questions of, archives as they are. The default folder is
/// `auto` without `repair`.
pub(crate) fn fold(
    arguments: &ReadArgs,
    times: TimesKept,
    chosen: &FolderArgs,
) -> Result<(Fold, Vec<String>)> {
    let chosen = chosen.or(FolderName::AutoOnline);
    load_for(arguments, times, &chosen)?.fold_as_stored(&chosen)
}

/// Distinguishes communicators whose number is used again, for questions on communication. What
/// changes is folded again.
pub(crate) fn with_unique_communicators(
    (fold, mut notes): (Fold, Vec<String>),
    chosen: &FolderArgs,
) -> Result<(Fold, Vec<String>)> {
    let (mut fold, reused) = loopfold::mpi::with_unique_communicators(fold)?;
    if !reused.is_empty() {
        notes.push(peer_notes::note_on_reused(&reused));
        if let Some(folded) = refold(&fold, &*folder(&chosen.or(FolderName::AutoOnline))?, threads(chosen))? {
            fold = folded;
        }
        fold = fold.into_canonical();
    }
    Ok((fold, notes))
}

/// Reads all inputs; traces are folded while they are read if the folder can do that.
pub(crate) fn load_for(arguments: &ReadArgs, times: TimesKept, chosen: &FolderArgs) -> Result<Loaded> {
    let times = times_needed(arguments, times)?;
    let projection = projection(arguments)?;
    kept_or(arguments, times, chosen, || {
        let intake = Intake::by(chosen, taken_in(arguments, &projection), times)?;
        read_all(arguments, times, intake, projection, false, chosen)
    })
}

/// The same, but keeps input that cannot be read again when reading ends early.
pub(crate) fn load_what_comes(arguments: &ReadArgs, times: TimesKept, chosen: &FolderArgs) -> Result<Loaded> {
    let times = times_needed(arguments, times)?;
    let projection = projection(arguments)?;
    let intake = Intake::by(chosen, taken_in(arguments, &projection), times)?;
    read_all(arguments, times, intake, projection, true, chosen)
}

/// The times that are read: all if a part is selected by them.
fn times_needed(arguments: &ReadArgs, times: TimesKept) -> Result<TimesKept> {
    let (from, to) = arguments.select.bounds()?;
    arguments.select.wanted_iterations()?;
    let by_time = [from, to].iter().flatten().any(|bound| matches!(bound, Bound::Time(_)));
    Ok(if by_time { TimesKept::All } else { times })
}

/// A reader that has read nothing yet.
fn reader(
    arguments: &ReadArgs,
    times: TimesKept,
    intake: Intake,
    projection: Projection,
) -> Result<Reader<'_>> {
    Ok(Reader {
        arguments,
        options: Options { lenient: arguments.lenient, ..arguments.formats.options.clone() },
        intake,
        loaded: Loaded {
            projection,
            peers: peers(arguments),
            symbols: arguments.symbols.clone(),
            archive_bytes: Some(0),
            slices_are_calls: arguments.formats.options.calls,
            selection: Selection { streams: arguments.stream.clone(), select: arguments.select.clone() },
            ..Loaded::default()
        },
        times: times == TimesKept::All,
        several: arguments.inputs.len() > 1,
        reads_all: true,
        input_formats: Vec::new(),
        archive_fields: HashSet::new(),
    })
}

fn read_all(
    arguments: &ReadArgs,
    times: TimesKept,
    intake: Intake,
    projection: Projection,
    keep_what_came: bool,
    chosen: &FolderArgs,
) -> Result<Loaded> {
    files::check_inputs(&arguments.inputs)?;
    let mut others_have_archives = false;
    if let Some(nodes) = nodes::current() {
        let plan = Plan::of((nodes.rank(), nodes.size()), arguments)?;
        others_have_archives = plan.is_folded();
        match plan.is_alone() {
            false => return shared::read(nodes, plan, arguments, times, intake, projection, chosen),
            true if nodes.rank() > 0 => {
                return Err(shared::serve_alone(nodes, &plan, arguments, intake, projection, chosen));
            }
            true => {}
        }
    }
    let mut reader = reader(arguments, times, intake, projection)?;
    reader.loaded.others_have_archives = others_have_archives;
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
        let folds = reader.loaded.folds.len();
        reader.loaded.fold_names.resize(folds, path.display().to_string());
    }
    interrupt::let_go();
    // A signal that came after the last read, while its bytes were still being parsed.
    if let Err(error) = interrupt::check()
        && reader.loaded.cut.is_none()
    {
        reader.cut(error.into(), keep_what_came)?;
    }
    if reader.loaded.cut.is_none() {
        let unseen = reader.intake.sink_ref().unseen_fields().to_vec();
        let events = reader.intake.sink_ref().events();
        reader.check_fields(&unseen, events)?;
    }
    let Reader { intake, mut loaded, .. } = reader;
    match intake {
        Intake::Trace(collector) => loaded.trace = collector.finish()?,
        Intake::Fold(folding) => loaded.folded = Some(folding.finish()?.into_canonical()),
        Intake::Shared(_) | Intake::Own(_) => {}
    }
    loaded.rewrite()?;
    loaded.check_filter()?;
    loaded.note_what_is_missing();
    Ok(loaded)
}

/// The sink of the events of traces.
pub(crate) enum Intake {
    Trace(Collector),
    Fold(Folding),
    /// With other readers, each in its thread.
    Shared(SharedFolding),
    /// With other processes, each with streams of its own.
    Own(Box<OwnStreams>),
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

    pub(crate) fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Intake::Trace(collector) => collector,
            Intake::Fold(folding) => folding,
            Intake::Shared(folding) => folding,
            Intake::Own(streams) => &mut **streams,
        }
    }

    pub(crate) fn sink_ref(&self) -> &dyn Sink {
        match self {
            Intake::Trace(collector) => collector,
            Intake::Fold(folding) => folding,
            Intake::Shared(folding) => folding,
            Intake::Own(streams) => &**streams,
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
            let text = files::read(path).with_context(|| path.display().to_string())?;
            NameMap::parse(&text).with_context(|| path.display().to_string())?
        }
    };
    let only: Vec<&str> = arguments.select.only.iter().map(String::as_str).collect();
    let drop: Vec<&str> = arguments.select.drop.iter().map(String::as_str).collect();
    let filter = EventFilter::new(&only, &drop)?;
    let (key, ignore) = (arguments.key.clone(), arguments.ignore.clone());
    Ok(Projection { key, ignore, map, filter, ..Projection::default() })
}

fn peers(arguments: &ReadArgs) -> Peers {
    match arguments.peers {
        PeersName::Absolute => Peers::Absolute,
        PeersName::Relative => Peers::Relative,
        PeersName::Cartesian => Peers::Cartesian,
    }
}

/// The projection while traces are read: the members of communicators must still be known when
/// peers are rewritten, and are dropped afterwards, as are events.
fn taken_in(arguments: &ReadArgs, projection: &Projection) -> Projection {
    let mut needed: Vec<&str> = Vec::new();
    if peers(arguments) != Peers::Absolute {
        needed.extend(Peers::NEEDS);
    }
    if !arguments.symbols.is_empty() {
        needed.extend(symbols::NEEDS);
    }
    if needed.is_empty() { projection.clone() } else { projection.keeping(&needed) }
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
    /// The blocks of the paths of recordings.
    pub(crate) fn blocks(&self) -> Result<PathBlocks> {
        let mut blocks = sections::blocks(&self.block_sections)?;
        blocks.join(&self.spooled_blocks);
        Ok(blocks)
    }

    /// Another trace, with the same selection.
    pub(crate) fn with_trace(&self, trace: Trace) -> Self {
        Self { trace, selection: self.selection.clone(), ..Self::default() }
    }

    /// Adds notes on why there may be fewer events than expected.
    fn note_what_is_missing(&mut self) {
        let in_traces = self.trace.streams.iter().filter_map(|stream| left_out(&stream.notes));
        let streams = self.folded.iter().flat_map(Fold::streams);
        let left_out: u64 = in_traces.chain(streams.filter_map(|stream| left_out(stream.notes()))).sum();
        if left_out > 0 {
            self.notes.push(format!("{left_out} lines do not match --select and are left out"));
        }
        self.note_what_was_not_recorded();
        let has_events = self.folded.as_ref().is_some_and(|fold| fold.events() != Some(0));
        if self.folds.is_empty() && self.trace.events() == 0 && !has_events {
            self.notes.push("there are no events".to_string());
        }
    }

    /// Adds a note if recordings lack events that the program has counted, or ends of streams.
    fn note_what_was_not_recorded(&mut self) {
        let unfinished = self.folds.iter().map(|fold| {
            let all = fold.stream_ids();
            all.filter(|&stream| fold.is_unfinished(stream)).count()
        });
        let unfinished: usize = unfinished.sum();
        if unfinished > 0 && !self.is_of_unfinished_recording {
            let streams = show::plural(unfinished as u64, "stream");
            self.notes.push(format!("the end of {streams} was not recorded: what came later is missing"));
        }
        let counted = self.folds.iter().flat_map(|fold| {
            fold.stream_ids().filter_map(|stream| fold.producer_count(stream)).collect::<Vec<_>>()
        });
        let (produced, missing) = counted.fold((0u64, 0u64), |(produced, missing), one| {
            (produced.saturating_add(one.produced), missing.saturating_add(one.missing))
        });
        if missing > 0 {
            let (missing, produced) = (show::count(missing), show::events(Some(produced)));
            self.notes.push(format!("{missing} of {produced} of the program are missing in the recording"));
        }
    }

    /// Reports words of `--only` and `--drop` that stand for no event.
    fn check_filter(&mut self) -> Result<()> {
        let filter = &self.projection.filter;
        let [only, drop] = match &self.unfitted {
            Some(words) => words.each_ref().map(|words| words.iter().map(String::as_str).collect()),
            None => filter.unfitted(),
        };
        if only.is_empty() && drop.is_empty() {
            return Ok(());
        }
        let seen = filter.seen_events();
        let why = |option: &str, word: &&str| format!("{option} {word}: {}", no_such_event(&seen, word));
        let notes: Vec<String> = only.iter().map(|word| why("--only", word)).collect();
        let (nothing_left, events) = (!only.is_empty() && only.len() == filter.only_count(), seen.len());
        if let Some(first) = notes.first().filter(|_| nothing_left && events > 0) {
            bail!("{first}");
        }
        self.notes.extend(notes);
        self.notes.extend(drop.iter().map(|word| why("--drop", word)));
        Ok(())
    }

    /// True if events are dropped.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.projection.filter.keeps_all()
    }

    /// True if events are rewritten when everything is read, so that fields and events that do
    /// not count are still there until then.
    fn is_rewritten(&self) -> bool {
        self.peers != Peers::Absolute || !self.symbols.is_empty()
    }

    /// Rewrites the addresses and the peers of all inputs as the arguments ask for, and then
    /// removes the events and fields that do not count.
    fn rewrite(&mut self) -> Result<()> {
        if !self.is_rewritten() {
            return Ok(());
        }
        let is_folded = self.folded.is_some();
        let mut folds: Vec<Fold> = self.folded.take().into_iter().chain(self.folds.drain(..)).collect();
        if !self.symbols.is_empty() {
            symbols::name_addresses(&self.symbols, &mut self.trace, &mut folds)?;
        }
        if self.peers != Peers::Absolute {
            match self.peers.apply(&mut self.trace, &mut folds) {
                Ok(rewrite) => self.notes.extend(notes_on_peers(&rewrite)),
                // What was read before the end is kept, even if its peers are not rewritten.
                Err(error) => match self.cut.take() {
                    Some(cut) => self.cut = Some(anyhow!("{cut:#}; peers are written as ranks: {error}")),
                    None => return Err(error.into()),
                },
            }
        }
        if !self.projection.filter.keeps_all() {
            let kept = self.projection.filter.of_alphabet(&self.trace.alphabet, &self.projection);
            self.trace = std::mem::take(&mut self.trace).filtered(&kept)?;
        }
        if !self.projection.is_identity() {
            let (alphabet, renamed) = self.projection.of_alphabet(&self.trace.alphabet)?;
            self.trace = std::mem::take(&mut self.trace).with_alphabet(alphabet, &renamed);
        }
        for fold in &mut folds {
            project(fold, &self.projection)?;
        }
        let mut folds = folds.into_iter();
        self.folded = if is_folded { folds.next() } else { None };
        self.folds = folds.collect();
        Ok(())
    }

    /// Joins all inputs into one fold made by this folder. Archives made by another folder are
    /// unfolded and folded again, unless they are too long for memory.
    pub(crate) fn fold(mut self, chosen: &FolderArgs) -> Result<(Fold, Vec<String>)> {
        let _shown = Phase::new("folding");
        let folder = folder(chosen)?;
        let wanted = folder.describe();
        let changed = !self.projection.is_identity() || self.is_filtered() || self.is_rewritten();
        if let Some(folded) = self.folded.as_mut().filter(|_| self.is_folded_before)
            && let Some(again) = refold(folded, &*folder, threads(chosen))?
        {
            *folded = again;
        }
        for (number, fold) in self.folds.iter_mut().enumerate() {
            if !changed && fold.streams().iter().all(|stream| stream.folder().raw() == wanted) {
                continue;
            }
            if !changed && chosen.folder.is_none() && fold.rule_sums().is_some() {
                let by = folder_of(fold);
                self.notes.push(format!(
                    "the archive has sums of times for its own loops only; so these are the loops that {by} found \
                     (--folder {wanted} shows others, without times)"
                ));
                continue;
            }
            match shared::refold(number, fold, &*folder, chosen, self.others_have_archives)? {
                Some(folded) => *fold = folded,
                None => self.notes.push(format!(
                    "the archive unfolds to more than fits in memory, so these are the loops that {} found",
                    folder_of(fold)
                )),
            }
        }
        let is_part = self.selection.select.is_part();
        let (mut fold, notes) = self.fold_as_stored(chosen)?;
        // The rules of a part are those of the whole stream.
        if is_part && let Some(folded) = refold(&fold, &*folder, threads(chosen))? {
            fold = folded;
        }
        Ok((fold, notes))
    }

    /// Joins all inputs into one fold, archives as they are.
    pub(crate) fn fold_as_stored(self, chosen: &FolderArgs) -> Result<(Fold, Vec<String>)> {
        let is_filtered = self.is_filtered();
        let Self { trace, folded, mut folds, mut notes, selection, has_rule_sums, .. } = self;
        let folded = folded.filter(|fold| !fold.streams().is_empty());
        if !trace.streams.is_empty() || (folds.is_empty() && folded.is_none()) {
            let _shown = Phase::new("folding");
            folds.insert(0, folders::fold_trace(trace, &*folder(chosen)?, threads(chosen))?.into_canonical());
        }
        folds.splice(..0, folded);
        let fold = selection.of(join(folds)?, &mut notes)?;
        // The size in bytes of some of the events is not known.
        let fold = if is_filtered { fold.without_notes(BYTES_NOTE) } else { fold };
        if has_rule_sums && fold.rule_sums().is_none() && !selection.select.is_part() {
            notes.push(
                "the archive has sums instead of the times of every event, and only for its own loops; so the \
                 times of these loops are not known"
                    .to_string(),
            );
        }
        Ok((fold, notes))
    }
}

/// Applies a projection to a fold, after dropping the events that it does not take.
fn project(fold: &mut Fold, projection: &Projection) -> Result<()> {
    if !projection.filter.keeps_all() {
        *fold = fold.without(&projection.filter.of_alphabet(fold.alphabet(), projection))?;
    }
    if !projection.is_identity() {
        let (alphabet, renamed) = projection.of_alphabet(fold.alphabet())?;
        *fold = fold.with_alphabet(alphabet, &renamed)?;
    }
    Ok(())
}

fn left_out(notes: &[(String, String)]) -> Option<u64> {
    let (_, count) = notes.iter().find(|(key, _)| key == "lines-left-out")?;
    count.parse().ok()
}

/// Joins folds; a stream whose name is taken gets a number.
/// The folder that made a fold, for messages.
fn folder_of(fold: &Fold) -> String {
    fold.streams().first().map_or("its folder".to_string(), |stream| stream.folder().terminal().to_string())
}

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
