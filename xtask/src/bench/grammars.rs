//! Grammars of streams: the paper's online procedure (`sequitur`), its variant, ours on
//! counted items, the folder that chooses, and the offline `repair`, beside a general
//! compressor on the same symbols.
//!
//! The streams are made here: random loop nests, a stencil, and the superblocks that gzip
//! executes when it packs the sources of this repository, recorded with valgrind's lackey
//! if that is installed.

use super::measure::{Cost, Job, measure};
use super::{Settings, progress, targets};
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result};
use loopfold::trace::{Collector, Projection, TimesKept};
use loopfold_sources::{Context, Input, Options, by_name};
use loopfold_testing::streams;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is measured on every stream.
const JOBS: [Job; 6] = [Job::Sequitur, Job::Sequitur1, Job::SequiturRuns, Job::Auto, Job::Repair, Job::Zstd];

/// The stream whose control flow is that of a real program.
pub(crate) const REAL: &str = "superblocks of gzip";

/// One job on one stream.
pub(crate) struct Row {
    pub(crate) stream: &'static str,
    pub(crate) job: Job,
    pub(crate) cost: Cost,
    symbols: usize,
}

/// Measures everything and prints it.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let length = if settings.quick { 1_000_000 } else { 10_000_000 };
    let mut rows = measure_all("random nests", &nests(length))?;
    rows.extend(measure_all("stencil", &streams::stencil(length, 1))?);
    match superblocks(length) {
        Ok(blocks) => rows.extend(measure_all(REAL, &blocks)?),
        Err(error) => println!("No superblocks of gzip: {error:#}\n"),
    }
    println!("{}", table(&rows));
    targets::print_grammars(&rows);
    Ok(())
}

/// Measures everything in two rounds and keeps the better one, since a machine can be slow
/// for some seconds.
fn measure_all(stream: &'static str, symbols: &[u32]) -> Result<Vec<Row>> {
    let measured = |job: Job| {
        progress(format_args!("{} on {stream}", job.name()));
        measure(job, symbols)
    };
    let row = |job| Ok(Row { stream, job, cost: measured(job)?, symbols: symbols.len() });
    let mut rows: Vec<Row> = JOBS.into_iter().map(row).collect::<Result<_>>()?;
    for row in rows.iter_mut().filter(|row| row.job != Job::Zstd) {
        row.cost = row.cost.better(measured(row.job)?);
    }
    Ok(rows)
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        Column::Text("stream"),
        Column::Number("symbols"),
        Column::Text("folder"),
        Column::Number("ns a symbol"),
        Column::Number("items"),
        Column::Number("archive bytes"),
        Column::Number("peak MB"),
    ];
    let title = "Grammars: CPU time, items of all rules, bytes of the archive, and peak memory (with the 4 bytes a\n\
                 symbol of the input, which online folders do not need); and what a compressor makes of the symbols";
    let mut table = Table::new(title, &columns);
    for row in rows {
        let name = if row.job == Job::Zstd { "(zstd -19 --long=27)" } else { row.job.name() };
        table.row([
            row.stream.to_string(),
            grouped(row.symbols as u128),
            name.to_string(),
            short(row.cost.nanoseconds()),
            row.cost.items().map_or("-".to_string(), grouped),
            grouped(row.cost.stored_bytes()),
            short(row.cost.peak_bytes() as f64 / 1e6),
        ]);
    }
    table
}

/// Forty programs' worth of random loop nests.
fn nests(length: usize) -> Vec<u32> {
    const PROGRAMS: usize = 40;
    let program = |seed| streams::nests(length / PROGRAMS, seed as u64);
    (0..PROGRAMS).flat_map(program).collect()
}

/// The first superblocks of gzip at work.
fn superblocks(length: usize) -> Result<Vec<u32>> {
    let packed = std::env::temp_dir().join(format!("loopfold-bench-{}.txt", std::process::id()));
    File::create(&packed)?.write_all(&sources()?)?;
    let blocks = record(&packed, length);
    std::fs::remove_file(&packed)?;
    blocks
}

/// Runs gzip on a file under valgrind, until enough blocks were seen.
fn record(packed: &Path, length: usize) -> Result<Vec<u32>> {
    progress("nothing yet: recording gzip with valgrind");
    let mut command = Command::new("valgrind");
    command.args(["--tool=lackey", "--basic-counts=no", "--trace-superblocks=yes", "gzip", "-c"]);
    let command = command.arg(packed).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("valgrind, which records them, did not start")?;
    let log = child.stderr.take().context("valgrind has no output")?;
    let blocks = blocks_in(log, length);
    // It may still be running, though its output is not read any more.
    let _ = child.kill();
    child.wait()?;
    blocks
}

fn blocks_in(log: impl Read + Send, length: usize) -> Result<Vec<u32>> {
    // `SB 04001234` and the line's end are 12 bytes; the last line may be cut.
    const LONGEST_LINE: u64 = 14;
    let options = Options { lenient: true, ..Options::default() };
    let mut input = Input::open(log.take(length as u64 * LONGEST_LINE), true)?;
    let mut collector = Collector::new(Projection::default(), TimesKept::None);
    let lackey = by_name("lackey").context("there is no source `lackey`")?;
    lackey.read(&mut input, &mut Context::new(&options, &mut collector, "gzip", false))?;
    let trace = collector.finish()?;
    let symbols = trace.streams.first().map(|stream| &stream.symbols[..]).unwrap_or_default();
    anyhow::ensure!(symbols.len() > length / 2, "valgrind recorded only {} of them", symbols.len());
    Ok(symbols.iter().take(length).map(|symbol| symbol.raw()).collect())
}

/// The sources of this repository, end to end.
fn sources() -> Result<Vec<u8>> {
    let mut files: Vec<PathBuf> = ["crates", "xtask"]
        .into_iter()
        .flat_map(|folder| super::archive_sizes::files_under(&crate::root().join(folder)))
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    let mut text = Vec::new();
    for file in files {
        File::open(file)?.read_to_end(&mut text)?;
    }
    Ok(text)
}
