//! The size of archives, beside general compressors on the same symbols as 32-bit
//! integers.

use super::{Settings, progress};
use crate::clock::best;
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result};
use loopfold::archive::ReadOptions;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::trace::{Collector, Event, Projection, Sink, TimesKept};
use loopfold::{Fold, Trace};
use loopfold_sources::{Context, Input, Options, guess};
use loopfold_testing::streams;
use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

/// Prints the sizes for generated traces, and for those under a folder if one is given.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("trace"),
        Column::Number("events"),
        Column::Number("items"),
        Column::Number("archive"),
        Column::Number("without names"),
        Column::Number("zstd -19 --long=27"),
        Column::Number("xz -6"),
        Column::Text("smallest"),
        Column::Number("write ns/item"),
        Column::Number("open ns/item"),
    ];
    let title = "Bytes of an archive (outermost, without times), whole and without the names of events and\n\
                 streams, and of the symbols as compressed 32-bit integers, which have no names either";
    let mut table = Table::new(title, &columns);
    let length = if settings.quick { 100_000 } else { 1_000_000 };
    for family in settings.families() {
        progress(format_args!("the archive of {}", family.name));
        table.row(sizes(family.name, generated(family.make(length))?)?);
    }
    table.row(sizes("LU class C", generated(streams::lu(160, 249))?)?);
    for path in settings.traces.iter().flat_map(|folder| files_under(folder)) {
        progress(format_args!("the archive of {}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match recorded(&path) {
            Ok(Some(trace)) if trace.events() > 0 => table.row(sizes(&name, trace)?),
            Ok(_) => table.row([name, "not a trace we read".to_string()]),
            Err(error) => table.row([name, format!("{error:#}")]),
        }
    }
    println!("{table}");
    Ok(())
}

fn sizes(name: &str, trace: Trace) -> Result<Vec<String>> {
    let events = trace.events();
    let bytes: Vec<u8> = trace
        .streams
        .iter()
        .flat_map(|stream| &stream.symbols)
        .flat_map(|symbol| symbol.raw().to_le_bytes())
        .collect();
    let fold = fold_trace(trace, &Outermost::default(), 1)?;
    let (archive, write_time) = best(|| archive_of(&fold));
    let archive = archive?;
    let (opened, open_time) =
        best(|| loopfold::archive::read(Cursor::new(&archive), &ReadOptions::default()));
    opened?;
    let sizes = loopfold::archive::sizes(Cursor::new(&archive))?;
    let without_names = usize::try_from(sizes.total - sizes.alphabet - sizes.streams)?;
    let candidates = [("archive", without_names), ("zstd", zstd_of(&bytes)?.len()), ("xz", xz_size(&bytes)?)];
    let smallest = candidates.iter().map(|&(name, size)| (size, name)).min();
    let per_item = |time: std::time::Duration| short(1e9 * time.as_secs_f64() / fold.items().max(1) as f64);
    let mut cells = vec![
        name.to_string(),
        grouped(events),
        grouped(fold.items() as u128),
        grouped(archive.len() as u128),
    ];
    cells.extend(candidates.map(|(_, size)| grouped(size as u128)));
    cells.push(smallest.map_or("", |(_, name)| name).to_string());
    cells.extend([per_item(write_time), per_item(open_time)]);
    Ok(cells)
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

pub(super) fn collector() -> Collector {
    Collector::new(Projection::default(), TimesKept::None)
}

fn generated(stream: Vec<u32>) -> Result<Trace> {
    let mut collector = collector();
    let only = collector.stream("generated")?;
    for symbol in stream {
        collector.push(only, &Event::named(&symbol.to_string()))?;
    }
    Ok(collector.finish()?)
}

/// Reads a file with the source that its content fits best.
pub(crate) fn recorded(path: &Path) -> Result<Option<Trace>> {
    let file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let mut input = Input::open(file, true)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(source) = guess(input.head()?, name) else { return Ok(None) };
    let options = Options { lenient: true, ..Options::default() };
    let mut collector = collector();
    source.read(&mut input, &mut Context::new(&options, &mut collector, "recorded", false))?;
    Ok(Some(collector.finish()?))
}

/// All files under a folder, in order of their names.
pub(crate) fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
