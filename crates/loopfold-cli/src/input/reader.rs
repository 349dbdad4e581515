//! Reads one input after the other: archives and grammars as folds, traces through their source.

use super::files;
use super::{ARCHIVE, BYTES_NOTE, GRAMMAR, Intake, Loaded, project};
use crate::args::ReadArgs;
use crate::call;
use crate::formats;
use crate::interrupt::{self, Interruptible};
use crate::names;
use crate::progress::Watched;
use crate::show;
use anyhow::{Context as _, Result, anyhow, bail};
use loopfold::archive::{self, Archive, ReadConfig, SectionKind, Sizes};
use loopfold::export::grammar;
use loopfold::{Fold, StreamId};
use loopfold_sources::{Context, Damage, FunctionNames, Input, Options, Source};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

pub(super) struct Reader<'a> {
    pub(super) arguments: &'a ReadArgs,
    pub(super) options: Options,
    pub(super) intake: Intake,
    pub(super) loaded: Loaded,
    pub(super) times: bool,
    pub(super) several: bool,
    /// Whether all inputs are read here, and none by other processes.
    pub(super) reads_all: bool,
    /// The formats of the inputs that were opened, archives and grammars among them.
    pub(super) input_formats: Vec<&'static str>,
    /// The fields that events in archives have.
    pub(super) archive_fields: HashSet<String>,
}

impl Reader<'_> {
    /// Handles an early end of reading: keeps what came before if `keep` and if there are events.
    pub(super) fn cut(&mut self, error: anyhow::Error, keep: bool) -> Result<()> {
        if !keep || self.intake.sink_ref().events() == 0 {
            return Err(error);
        }
        self.loaded.cut = Some(error);
        Ok(())
    }

    pub(super) fn read(&mut self, path: &Path, base: &str) -> Result<()> {
        if let Some(fold) = call::with(|call| call.fold.clone()).flatten() {
            return self.take_fold(&fold);
        }
        if path.as_os_str() == "-" {
            let bytes = Watched::new(interrupt::stdin()?, None);
            return self
                .read_bytes(Input::open(bytes, self.arguments.lenient)?, None, base)
                .context("standard input");
        }
        let name = path.display().to_string();
        if path.is_dir() && loopfold_record::is_recording(path) {
            return self.read_recording(path, base).with_context(|| name);
        }
        let anchor = if path.is_dir() { formats::file_of_folder(path) } else { None };
        let path = anchor.as_deref().unwrap_or(path);
        let file = files::open(path).with_context(|| name.clone())?;
        let about = file.metadata().with_context(|| name.clone())?;
        if about.is_dir() {
            bail!(
                "{name}: is a directory, and neither an OTF2 archive nor a recording; name the files in it"
            );
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
            if loopfold_record::is_spool(&head) {
                return self.read_spool(path, base);
            }
        }
        let bytes = Watched::new(Interruptible(file), length);
        self.read_bytes(Input::open(bytes, self.arguments.lenient)?, Some(path), base)
    }

    /// A fold that is in memory, as if it were an archive.
    fn take_fold(&mut self, fold: &Fold) -> Result<()> {
        self.is_of_format(ARCHIVE)?;
        self.loaded.archive_bytes = None;
        self.loaded.without_index += 1;
        let mut fold = fold.clone();
        for stream in fold.stream_ids().filter(|_| !self.times) {
            fold.take_times(stream);
        }
        self.keep(fold)
    }

    /// The parts of a recording, up to the last segment of each rank.
    fn read_recording(&mut self, folder: &Path, base: &str) -> Result<()> {
        self.is_of_format(ARCHIVE)?;
        let parts = loopfold_record::read_parts(folder, self.times)?;
        self.loaded.without_index += 1;
        self.loaded.archive_bytes = self.loaded.archive_bytes.map(|sum| sum.saturating_add(parts.bytes));
        for (path, why) in &parts.unreadable {
            self.loaded.notes.push(format!("{}: damaged: {why}", path.display()));
        }
        let (complete, ranks) = (parts.complete, parts.ranks);
        self.loaded.is_of_unfinished_recording |= complete < ranks;
        self.loaded.notes.push(if complete == ranks {
            format!("{base}: the recording of {} that did not end in MPI_Finalize", show::plural(ranks as u64, "rank"))
        } else {
            let open = show::plural((ranks - complete) as u64, "rank");
            format!("{base}: a recording that is still being written, or was stopped: {open} of {ranks} up to the last segment")
        });
        self.loaded.spooled_blocks.join(&parts.blocks);
        self.keep(parts.fold)
    }

    /// What a recorder has left that was killed.
    fn read_spool(&mut self, path: &Path, base: &str) -> Result<()> {
        self.is_of_format(ARCHIVE)?;
        let spooled = loopfold_record::read_spool(path)?;
        self.loaded.archive_bytes = self.loaded.archive_bytes.map(|sum| sum.saturating_add(spooled.bytes));
        self.loaded.is_of_unfinished_recording |= !spooled.is_complete;
        if !spooled.is_complete {
            self.loaded
                .notes
                .push(format!("{base}: a recording that is still being written, or was stopped"));
        }
        self.loaded.spooled_blocks.join(&spooled.recorded.blocks);
        self.keep(spooled.recorded.fold)
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
        match archive.all_sections(SectionKind::Paths) {
            Ok(blocks) => self.loaded.block_sections.extend(blocks),
            Err(_) if self.arguments.lenient => {}
            Err(error) => return Err(error.into()),
        }
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
        let all_known = self.reads_all && self.input_formats.len() == self.arguments.inputs.len();
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
        }
        // Peers depend on all processes, and names of addresses on all addresses.
        if !self.loaded.is_rewritten() {
            project(&mut fold, &self.loaded.projection)?;
        }
        self.loaded.has_rule_sums |= fold.rule_sums().is_some();
        self.loaded.folds.push(fold);
        Ok(())
    }

    pub(super) fn read_bytes(&mut self, input: Input<'_>, path: Option<&Path>, base: &str) -> Result<()> {
        let mut input = input.interrupted_by(interrupt::check);
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
        let beside = path.and_then(names::beside);
        match beside.as_deref().map(names::read) {
            None => Ok(FunctionNames::default()),
            Some(Ok(names)) => Ok(names),
            Some(Err(error)) if beside.as_deref().is_some_and(loopfold_output::is_being_replaced) => {
                Err(error)
            }
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
    pub(super) fn check_fields(&mut self, unseen: &[String], events: u64) -> Result<()> {
        let named: Vec<String> = self.loaded.projection.fields().map(String::from).collect();
        let archives_only = self.loaded.formats.is_empty();
        let absent = |field: &&String| {
            let in_traces = !archives_only && !unseen.contains(field);
            !in_traces && !self.archive_fields.contains(*field)
        };
        let Some(absent) = named.iter().find(absent) else { return Ok(()) };
        let sources = self.loaded.formats.iter().filter_map(|format| formats::by_name(format));
        let known: Vec<&str> = sources.flat_map(|source| source.fields()).copied().collect();
        if known.contains(&absent.as_str()) || events == 0 && self.loaded.folds.is_empty() {
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
