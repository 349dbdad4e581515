//! What `fold` does if nothing is said (`auto`), beside `fold --smallest` and the online folder
//! that `auto` begins with: bytes of the archive, CPU time of reading and folding, and peak memory.
//!
//! Every figure comes from a process of its own, which reads the trace as the command does: while
//! it folds, if the folder can do that, and into memory otherwise.

use super::archive_sizes::{collector, files_under, folder, guessed};
use super::measure::memory;
use super::{Settings, progress};
use crate::table::{Column, Table, grouped, short};
use crate::{Arguments, clock};
use anyhow::{Result, bail, ensure};
use loopfold::Fold;
use loopfold::folders::{Folding, fold_trace};
use loopfold::trace::{Projection, TimesKept};
use loopfold_testing::streams;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The hidden chore of a child process.
pub(crate) const CHILD: &str = "bench-default";

/// The folders that are compared: the default, what it begins with, and the smallest archive.
const FOLDERS: [&str; 3] = ["auto", "sequitur-runs", "smallest"];

/// How much larger than the smallest archive the default one may be.
const WITHIN: f64 = 1.03;

/// Measures generated streams, and the traces under a directory if one is given.
pub(super) fn run(settings: &Settings) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("loopfold-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let measured = measure_all(settings, &directory);
    std::fs::remove_dir_all(&directory)?;
    let rows = measured?;
    println!("{}", table(&rows));
    let near = rows.iter().filter(|row| row.ratio() <= WITHIN).count();
    println!("auto is within 3 % of smallest on {near} of {} traces", rows.len());
    Ok(())
}

fn measure_all(settings: &Settings, directory: &Path) -> Result<Vec<Row>> {
    let length = if settings.quick { 400_000 } else { 4_000_000 };
    let mut paths = Vec::new();
    for (name, stream) in [
        ("random integers", streams::random(length, 1 << 31, 1)),
        ("random nests", streams::nests(length, 11)),
        ("control flow", streams::control_flow(length, 7)),
    ] {
        let path = directory.join(name).with_extension("u32");
        std::fs::write(&path, stream.iter().flat_map(|symbol| symbol.to_le_bytes()).collect::<Vec<u8>>())?;
        paths.push(path);
    }
    paths.extend(settings.traces.iter().flat_map(|folder| files_under(folder)));
    let mut rows = Vec::new();
    for path in paths {
        let name = path.file_stem().filter(|_| path.starts_with(directory)).or(path.file_name());
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        progress(format_args!("the default for {name}"));
        match measure(&path) {
            Ok(Some(costs)) => rows.push(Row { name, costs }),
            Ok(None) => println!("{name}: not a trace we read"),
            Err(error) => println!("{name}: {error:#}"),
        }
    }
    Ok(rows)
}

/// What one folder took for one trace.
#[derive(Clone, Copy, Debug)]
struct Cost {
    events: u64,
    bytes: u64,
    nanoseconds: u64,
    peak: u64,
}

struct Row {
    name: String,
    costs: [Cost; FOLDERS.len()],
}

impl Row {
    /// The default archive beside the smallest.
    fn ratio(&self) -> f64 {
        self.costs[0].bytes as f64 / self.costs[2].bytes.max(1) as f64
    }
}

/// Measures a trace with all folders. Returns `None` for what is no trace.
fn measure(path: &Path) -> Result<Option<[Cost; FOLDERS.len()]>> {
    let mut costs = Vec::new();
    for folder in FOLDERS {
        let output = Command::new(std::env::current_exe()?).arg(CHILD).arg(folder).arg(path).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        match numbers[..] {
            [] => return Ok(None),
            [events, bytes, nanoseconds, peak] => costs.push(Cost { events, bytes, nanoseconds, peak }),
            _ => bail!("measuring {folder} gave no result"),
        }
    }
    Ok(costs.try_into().ok())
}

/// The child's side: prints events, bytes, nanoseconds and bytes of memory, or nothing for what is
/// no trace.
pub(crate) fn child(mut arguments: Arguments) -> Result<()> {
    let name = arguments.word().unwrap_or_default();
    let path = PathBuf::from(arguments.word().unwrap_or_default());
    arguments.finish()?;
    let base = memory("VmRSS")?;
    let (fold, time) = clock::timed(|| fold(&name, &path));
    let Some(fold) = fold? else { return Ok(()) };
    let peak = memory("VmHWM")?.saturating_sub(base);
    let mut archive = Vec::new();
    loopfold::archive::write(&fold, &mut archive)?;
    println!("{} {} {} {peak}", fold.events().unwrap_or(u64::MAX), archive.len(), time.as_nanos());
    Ok(())
}

/// Reads and folds a trace.
fn fold(name: &str, path: &Path) -> Result<Option<Fold>> {
    let by = folder(name)?;
    if by.online().is_none() {
        let mut collector = collector();
        let read = guessed(path, &mut collector)?;
        return read.then(|| Ok(fold_trace(collector.finish()?, &*by, 1)?)).transpose();
    }
    let mut folding = Folding::with(by, Projection::default(), TimesKept::None, 1)?;
    let read = guessed(path, &mut folding)?;
    read.then(|| Ok(folding.finish()?)).transpose()
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        Column::Text("trace"),
        Column::Number("events"),
        Column::Number("auto"),
        Column::Number("online"),
        Column::Number("smallest"),
        Column::Number("auto/smallest"),
        Column::Number("auto ms"),
        Column::Number("online ms"),
        Column::Number("smallest ms"),
        Column::Number("auto MB"),
        Column::Number("online MB"),
        Column::Number("smallest MB"),
        Column::Number("auto B/event"),
    ];
    let title = "The default of `fold` (auto), the folder that it begins with (online: sequitur-runs) and --smallest:\n\
                 bytes of the archive without times, CPU time of reading and folding, and peak memory of both";
    let mut table = Table::new(title, &columns);
    for row in rows {
        let [auto, online, smallest] = row.costs;
        let mut cells = vec![row.name.clone(), grouped(auto.events)];
        cells.extend([auto, online, smallest].map(|cost| grouped(cost.bytes)));
        cells.push(format!("{:.3}", row.ratio()));
        cells.extend([auto, online, smallest].map(|cost| short(cost.nanoseconds as f64 / 1e6)));
        cells.extend([auto, online, smallest].map(|cost| short(cost.peak as f64 / 1e6)));
        cells.push(short(auto.peak as f64 / auto.events.max(1) as f64));
        table.row(cells);
    }
    table
}
