//! `loopfold cat`: prints the events. They are written as they are unfolded, so memory does not
//! depend on the length of the trace. Names are printed as they are, unless somebody looks: on a
//! terminal they are escaped as everywhere else.

use crate::args::{CatArgs, FolderArgs, FolderName, ReadArgs};
use crate::show::calls::{self, Style};
use crate::{Outcome, input, names, show, tables};
use anyhow::{Result, bail};
use loopfold::emit::Text;
use loopfold::fold::FoldedStream;
use loopfold::trace::{ColumnReader, Meaning, Name, Role, Times, TimesKept};
use loopfold::{Fold, Symbol};
use loopfold_json::cat as json;
use loopfold_sources::FunctionNames;
use std::borrow::Cow;
use std::io::{BufWriter, Write};

pub(super) fn run(arguments: &CatArgs) -> Result<Outcome> {
    let (fold, notes) = fold_and_notes(arguments)?;
    show::notes(&notes);
    if arguments.form.is_data() {
        let is_table = arguments.form.table_format().is_some();
        tables::print_answer(&arguments.form, "cat", "events", |out| {
            Ok(match is_table {
                true => json::events(out, &fold, arguments.times),
                false => json::cat(out, &fold, arguments.times),
            }?)
        })?;
        return Ok(Outcome::Done);
    }
    let mut out = BufWriter::with_capacity(1 << 18, show::raw_stdout());
    if arguments.raw {
        tables::check_terminal("--raw", None)?;
        print_all_raw(&mut out, arguments, &fold)?;
    } else {
        let threads = calls::threads(&fold).filter(|_| !arguments.times);
        let prefixed = fold.streams().len() > 1 && threads.is_none();
        let mut forms = Forms::new(&fold, arguments.hex.on);
        for (index, stream) in fold.streams().iter().enumerate() {
            if let Some(id) = threads.as_ref().and_then(|threads| threads[index]) {
                out.write_all(b"thread ")?;
                out.write_all(&forms.exact(id))?;
                out.write_all(b"\n")?;
            }
            print_stream(&mut out, arguments, &fold, stream, prefixed, &mut forms)?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The fold of the events that are printed.
pub(crate) fn fold(arguments: &CatArgs) -> Result<Fold> {
    Ok(fold_and_notes(arguments)?.0)
}

fn fold_and_notes(arguments: &CatArgs) -> Result<(Fold, Vec<String>)> {
    let times = if arguments.times { TimesKept::All } else { TimesKept::None };
    let folder = FolderArgs::default().or(FolderName::SequiturRuns);
    let mut read = arguments.read.clone();
    if arguments.raw {
        // Names are also for what is written, whatever is read.
        read.formats = read.formats.not_only_for_reading("names");
    }
    read_all(&read, times, &folder, arguments.blocks)
}

fn read_all(
    read: &ReadArgs,
    times: TimesKept,
    folder: &FolderArgs,
    as_blocks: bool,
) -> Result<(Fold, Vec<String>)> {
    if !as_blocks {
        return input::fold(read, times, folder);
    }
    let loaded = input::load_for(read, times, folder)?;
    let blocks = loaded.blocks()?;
    if blocks.is_empty() {
        bail!("--blocks: the blocks of paths are not known; `loopfold record` keeps them");
    }
    let (fold, notes) = loaded.fold_as_stored(folder)?;
    Ok((blocks.decode_paths(&fold)?, notes))
}

/// How each event is written, made once.
struct Forms<'a> {
    fold: &'a Fold,
    hex: bool,
    /// Whether they are to be looked at, and not to be read by a program.
    is_escaped: bool,
    style: Style,
    forms: Vec<Option<Box<[u8]>>>,
}

impl<'a> Forms<'a> {
    fn new(fold: &'a Fold, hex: bool) -> Self {
        let is_escaped = show::is_on_terminal();
        Self { fold, hex, is_escaped, style: Style::default(), forms: vec![None; fold.alphabet().len()] }
    }

    /// Text as it is, or escaped.
    fn exact<'t>(&self, text: Text<'t>) -> Cow<'t, [u8]> {
        match self.is_escaped {
            true => Cow::Owned(show::plain(text).into_bytes()),
            false => Cow::Borrowed(text.raw().as_bytes()),
        }
    }

    /// From now on in this style.
    fn set_style(&mut self, style: Style) {
        if self.style != style {
            self.style = style;
            self.forms.fill(None);
        }
    }

    fn of(&mut self, symbol: Symbol) -> &[u8] {
        let &mut Self { fold, hex, is_escaped, style, .. } = self;
        self.forms[symbol.index()].get_or_insert_with(|| {
            let meaning = fold.alphabet().meaning(symbol);
            let line = style.line(&meaning, hex).map_or_else(|| written(&meaning, hex), Into::into);
            if is_escaped { show::plain(line).into_bytes().into() } else { line }
        })
    }
}

/// An event that is only a name is written byte for byte; others as they are shown.
fn written(meaning: &Meaning<'_>, hex: bool) -> Box<[u8]> {
    match meaning.name {
        Name::Text(text) if meaning.fields.is_empty() && meaning.role == Role::Plain => text.into(),
        _ if hex => format!("{meaning:#}").into_bytes().into(),
        _ => meaning.to_string().into_bytes().into(),
    }
}

fn print_stream(
    out: &mut impl Write,
    arguments: &CatArgs,
    fold: &Fold,
    stream: &FoldedStream,
    prefixed: bool,
    forms: &mut Forms<'_>,
) -> Result<()> {
    let window = fold.unfold(stream.root());
    let format = stream.note("format").map(Text::raw);
    forms.set_style(Style::of(stream));
    if format == Some("bytes") && !prefixed && !arguments.times {
        // A character may be several events: the terminal gets what they are together.
        forms.is_escaped = false;
        let mut any = false;
        for symbol in window {
            any = true;
            out.write_all(forms.of(symbol))?;
        }
        if any && stream.has_note("final-newline", "yes") {
            out.write_all(b"\n")?;
        }
        return Ok(());
    }
    let mut clock = arguments.times.then(|| Clock::new(stream.times()));
    let prefix = if prefixed { [&forms.exact(stream.title())[..], b"\t"].concat() } else { Vec::new() };
    let mut first = true;
    for (position, symbol) in (0..).zip(window) {
        if !first {
            out.write_all(b"\n")?;
        }
        first = false;
        out.write_all(&prefix)?;
        if let Some(clock) = &mut clock {
            let (start, duration) = clock.at(position)?;
            write!(out, "{start}\t{duration}\t")?;
        }
        out.write_all(forms.of(symbol))?;
    }
    let unfinished = stream.has_note("final-newline", "no") && !prefixed;
    if !first && !unfinished {
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The start and the duration of events, `-` where they are not known.
struct Clock<'a> {
    starts: Option<ColumnReader<'a, i64>>,
    durations: Option<ColumnReader<'a, i64>>,
}

impl<'a> Clock<'a> {
    fn new(times: &'a Times) -> Self {
        Self {
            starts: times.starts.as_ref().map(|column| column.reader()),
            durations: times.durations.as_ref().map(|column| column.reader()),
        }
    }

    fn at(&mut self, position: u64) -> Result<(String, String)> {
        let known = |column: &mut Option<ColumnReader<'_, i64>>, unknown: i64| -> Result<Option<i64>> {
            match column {
                None => Ok(None),
                Some(column) => Ok(Some(column.get(position as usize)?).filter(|&value| value != unknown)),
            }
        };
        let text = |value: Option<i64>| value.map_or("-".to_string(), |value| value.to_string());
        let start = known(&mut self.starts, Times::UNKNOWN_START)?;
        let duration = known(&mut self.durations, Times::UNKNOWN_DURATION)?;
        Ok((text(start), text(duration)))
    }
}

fn print_all_raw(out: &mut impl Write, arguments: &CatArgs, fold: &Fold) -> Result<()> {
    let is_tokens = |stream: &FoldedStream| stream.has_note("format", "calls-binary");
    if fold.streams().iter().any(is_tokens) {
        let threads = calls::threads(fold).filter(|_| fold.streams().iter().all(is_tokens));
        let Some(threads) = threads else { bail!("--raw: these are not the threads of one trace of calls") };
        return print_tokens(out, arguments, fold, &threads);
    }
    for stream in fold.streams() {
        print_raw(out, fold.unfold(stream.root()), fold, stream.note("format").map(Text::raw))?;
    }
    Ok(())
}

/// Writes the tokens of all threads. Whether every event has one is known before the first
/// is written.
fn print_tokens(
    out: &mut impl Write,
    arguments: &CatArgs,
    fold: &Fold,
    threads: &[Option<Text<'_>>],
) -> Result<()> {
    let functions = function_names(arguments)?;
    let alphabet = fold.alphabet();
    let tokens = alphabet.symbols().map(|symbol| calls::token(&alphabet.meaning(symbol), &functions));
    let tokens: Vec<u32> = tokens.collect::<Result<_>>()?;
    let switches = threads.iter().map(|id| id.map(calls::thread_token).transpose());
    let switches: Vec<Option<u32>> = switches.collect::<Result<_>>()?;
    for (stream, switch) in fold.streams().iter().zip(switches) {
        let window = fold.unfold(stream.root()).map(|symbol| tokens[symbol.index()]);
        for token in switch.into_iter().chain(window) {
            out.write_all(&token.to_le_bytes())?;
        }
    }
    Ok(())
}

/// The names that are given, or that lie beside the only input.
fn function_names(arguments: &CatArgs) -> Result<FunctionNames> {
    let given = arguments.read.formats.options.names.clone();
    let beside = || match arguments.read.inputs.as_slice() {
        [only] if only.as_os_str() != "-" => names::beside(only),
        _ => None,
    };
    Ok(given.or_else(beside).map(|path| names::read(&path)).transpose()?.unwrap_or_default())
}

fn print_raw(
    out: &mut impl Write,
    symbols: impl Iterator<Item = Symbol>,
    fold: &Fold,
    format: Option<&str>,
) -> Result<()> {
    let width = match format {
        Some("u8") => 1,
        Some("u16") => 2,
        Some("u32") => 4,
        Some("u64") => 8,
        _ => bail!("--raw is for streams that were read as u8, u16, u32, u64 or calls-binary"),
    };
    for symbol in symbols {
        match fold.alphabet().meaning(symbol).name {
            Name::Integer(number) if width < 8 && number >> (8 * width) > 0 => {
                bail!("--raw: {number} does not fit {width} bytes")
            }
            Name::Integer(number) => out.write_all(&number.to_le_bytes()[..width])?,
            Name::Text(_) => bail!("--raw: an event that is not an integer"),
        }
    }
    Ok(())
}
