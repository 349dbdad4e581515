//! The size of archives, beside general compressors on the same symbols as 32-bit
//! integers.

use super::{Settings, progress};
use crate::clock::best;
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result};
use brotli::enc::BrotliEncoderParams;
use loopfold::archive::ReadConfig;
use loopfold::folders::{self, Folder, fold_trace};
use loopfold::trace::{Collector, Event, Projection, Sink, TimesKept};
use loopfold::{Fold, Trace};
use loopfold_sources::{Context, Input, Options, guess};
use loopfold_testing::streams;
use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folders whose archives are compared. The first is the default of `fold`, the last
/// that of `fold --smallest`; those between are what they choose from.
const FOLDERS: [&str; 5] = ["auto", "outermost", "sequitur-runs", "repair", "smallest"];

pub(super) fn folder(name: &str) -> Result<Box<dyn Folder>> {
    let known = folders::all(loopfold::archive::coded_size).into_iter().find(|folder| folder.name() == name);
    known.with_context(|| format!("there is no folder {name}"))
}

/// Prints the sizes for generated traces, and for those under a directory if one is given.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let mut rows = Vec::new();
    let length = if settings.quick { 100_000 } else { 1_000_000 };
    for family in settings.families() {
        progress(format_args!("the archive of {}", family.name));
        rows.push(Row::new(family.name, generated(family.make(length))?)?);
    }
    rows.push(Row::new("LU class C", generated(streams::lu(160, 249))?)?);
    for path in settings.traces.iter().flat_map(|folder| files_under(folder)) {
        progress(format_args!("the archive of {}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match recorded(&path) {
            Ok(Some(trace)) if trace.events() > 0 => rows.push(Row::new(&name, trace)?),
            Ok(_) => println!("{name}: not a trace we read"),
            Err(error) => println!("{name}: {error:#}"),
        }
    }
    println!("{}", table_of_sizes(&rows));
    println!("{}", table_of_costs(&rows));
    Ok(())
}

/// What there is to say of one trace.
struct Row {
    name: String,
    events: u64,
    /// The bytes of the archives, names included, one for each of [`FOLDERS`].
    archives: [usize; FOLDERS.len()],
    /// What compressors make of the symbols as 32-bit integers, names not included.
    general: [(&'static str, usize); 3],
    /// Of the default archive.
    names: u64,
    items: usize,
    write: Duration,
    open: Duration,
}

impl Row {
    fn new(name: &str, trace: Trace) -> Result<Self> {
        let symbols = trace.streams.iter().flat_map(|stream| &stream.symbols);
        let bytes: Vec<u8> = symbols.flat_map(|symbol| symbol.raw().to_le_bytes()).collect();
        let mut archives = [0; FOLDERS.len()];
        for (size, name) in archives.iter_mut().zip(FOLDERS) {
            *size = archive_of(&fold_trace(trace.clone(), &*folder(name)?, 1)?)?.len();
        }
        let events = trace.events();
        let fold = fold_trace(trace, &*folder(FOLDERS[0])?, 1)?;
        let (archive, write) = best(|| archive_of(&fold));
        let archive = archive?;
        let (opened, open) =
            best(|| loopfold::archive::read(Cursor::new(&archive), &ReadConfig::new().times(false)));
        opened?;
        let sizes = loopfold::archive::sizes(Cursor::new(&archive))?;
        Ok(Self {
            name: name.to_string(),
            events,
            archives,
            general: [
                ("zstd", zstd_of(&bytes)?.len()),
                ("xz", xz_size(&bytes)?),
                ("brotli", brotli_size(&bytes)?),
            ],
            names: sizes.alphabet + sizes.streams,
            items: fold.items(),
            write,
            open,
        })
    }

    fn best_general(&self) -> usize {
        self.general.iter().map(|&(_, size)| size).min().unwrap_or(0)
    }

    fn smallest(&self) -> usize {
        self.archives.iter().copied().min().unwrap_or(0)
    }
}

fn table_of_sizes(rows: &[Row]) -> Table {
    let mut columns = vec![Column::Text("trace"), Column::Number("events")];
    columns.extend(FOLDERS.map(Column::Number));
    columns.extend(["zstd", "xz", "brotli", "auto/best", "smallest/best", "auto/least"].map(Column::Number));
    let title = "Bytes of archives without times, by folder, names of events and streams included; of the symbols as\n\
                 32-bit integers, which have no names, by zstd -19 --long=27, xz -6 and brotli -q 11 --large_window=27;\n\
                 how the default and the smallest archive compare with the best of those, and the default with the\n\
                 least of the archives";
    let mut table = Table::new(title, &columns);
    for row in rows {
        let mut cells = vec![row.name.clone(), grouped(row.events)];
        cells.extend(row.archives.map(|size| grouped(size as u128)));
        cells.extend(row.general.map(|(_, size)| grouped(size as u128)));
        let [default, .., smallest] = row.archives;
        let best = row.best_general() as f64;
        cells.push(short(default as f64 / best));
        cells.push(short(smallest as f64 / best));
        cells.push(short(default as f64 / row.smallest() as f64));
        table.row(cells);
    }
    table
}

fn table_of_costs(rows: &[Row]) -> Table {
    let columns = [
        Column::Text("trace"),
        Column::Number("items"),
        Column::Number("names"),
        Column::Number("write ns/item"),
        Column::Number("open ns/item"),
    ];
    let title = "The default archive: items, bytes of names, and the CPU time of writing and opening it, names included";
    let mut table = Table::new(title, &columns);
    for row in rows {
        let per_item = |time: Duration| short(1e9 * time.as_secs_f64() / row.items.max(1) as f64);
        table.row([
            row.name.clone(),
            grouped(row.items as u128),
            grouped(row.names),
            per_item(row.write),
            per_item(row.open),
        ]);
    }
    table
}

fn archive_of(fold: &Fold) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loopfold::archive::write(fold, &mut bytes)?;
    Ok(bytes)
}

/// What `zstd -19 --long=27` makes of some bytes.
pub(crate) fn zstd_of(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 19)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.long_distance_matching(true)?;
    encoder.window_log(27)?;
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn xz_size(bytes: &[u8]) -> Result<usize> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

/// What `brotli -q 11 --large_window=27` makes of some bytes.
fn brotli_size(bytes: &[u8]) -> Result<usize> {
    let settings = BrotliEncoderParams {
        quality: 11,
        lgwin: 27,
        large_window: true,
        size_hint: bytes.len(),
        ..BrotliEncoderParams::default()
    };
    let mut compressed = Vec::new();
    Ok(brotli::BrotliCompress(&mut Cursor::new(bytes), &mut compressed, &settings)?)
}

pub(super) fn collector() -> Collector {
    Collector::new(Projection::default(), TimesKept::None)
}

fn generated(stream: Vec<u32>) -> Result<Trace> {
    let mut collector = collector();
    let only = collector.stream("generated")?;
    for symbol in stream {
        collector.push_event(only, &Event::named(&symbol.to_string()))?;
    }
    Ok(collector.finish()?)
}

/// Reads a file with the source that its content fits best. Returns `None` if there is none.
pub(crate) fn recorded(path: &Path) -> Result<Option<Trace>> {
    let mut collector = collector();
    let read = guessed(path, &mut collector)?;
    read.then(|| Ok(collector.finish()?)).transpose()
}

/// The same into any sink. Returns whether there is such a source.
pub(super) fn guessed(path: &Path, sink: &mut dyn Sink) -> Result<bool> {
    let file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let mut input = Input::open(file, true)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(source) = guess(input.head()?, name) else { return Ok(false) };
    let options = Options { lenient: true, ..Options::default() };
    source.read(&mut input, &mut Context::new(&options, sink, "recorded", false))?;
    Ok(true)
}

/// All files under a directory, in order of their names.
pub(crate) fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
