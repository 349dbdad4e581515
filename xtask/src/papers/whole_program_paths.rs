//! Table 1 and figure 8 of Larus' paper, from recordings of real programs.
//!
//! The trace is the tokens that the program emits, 4 bytes each: paths, entries and exits. The
//! paper's whole program path is the text of a SEQUITUR grammar, so that is what *WPP* is here, too;
//! the archive of the default folder stands beside it.

use crate::real_programs::{RealProgram, RealPrograms};
use crate::table::{Column, Table, grouped};
use anyhow::{Context as _, Result};
use loopfold::Symbol;
use loopfold::archive::{self, ReadConfig};
use loopfold::trace::Role;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

/// Prints both.
pub(super) fn print(programs: &RealPrograms) -> Result<()> {
    print_table_one(programs)?;
    print_figure_eight(programs)
}

fn print_table_one(programs: &RealPrograms) -> Result<()> {
    let columns = [
        Column::Text("program"),
        Column::Number("time s"),
        Column::Number("trace MB"),
        Column::Number("MB/s"),
        Column::Number("WPP kB"),
        Column::Number("trace/WPP"),
        Column::Number("archive kB"),
        Column::Number("% of trace"),
        Column::Number("threads"),
        Column::Number("paths"),
        Column::Number("rules"),
        Column::Number("rules/path"),
    ];
    let title = "Larus, table 1: time without instrumentation, the trace and how fast it is written, the text of\n\
                 its SEQUITUR grammar, our archive, different paths, and rules of the grammar. Published for\n\
                 SPECint95 and two commercial programs: 5.2 to 75 MB/s, trace/WPP 7.3 to 393, rules/path 2.6 to 159";
    let mut table = Table::new(title, &columns);
    for program in programs.all(false)? {
        eprintln!("recording {} …", program.name);
        table.row(table_row(programs, &program)?);
    }
    println!("{table}");
    Ok(())
}

fn table_row(programs: &RealPrograms, program: &RealProgram) -> Result<Vec<String>> {
    let plain = program.time(&program.plain)?.as_secs_f64();
    let (archive, elapsed) = programs.record(program)?;
    let recorded = Sizes::of(programs, &archive)?;
    let (grammar, text) = grammar_of(programs, &archive)?;
    let trace = recorded.events as f64 * 4.0;
    let paths = recorded.paths.max(1) as f64;
    Ok(vec![
        program.name.to_string(),
        format!("{plain:.2}"),
        format!("{:.1}", trace / 1e6),
        format!("{:.1}", trace / 1e6 / elapsed.as_secs_f64()),
        format!("{:.1}", text as f64 / 1e3),
        format!("{:.1}", trace / text as f64),
        format!("{:.1}", recorded.bytes as f64 / 1e3),
        format!("{:.3}", 100.0 * recorded.bytes as f64 / trace),
        recorded.streams.to_string(),
        grouped(recorded.paths as u128),
        grouped(grammar.rules as u128),
        format!("{:.1}", grammar.rules as f64 / paths),
    ])
}

/// What `stats` says of an archive.
struct Sizes {
    streams: u64,
    events: u64,
    rules: u64,
    /// Different events that are neither entries nor exits of functions.
    paths: u64,
    bytes: u64,
}

impl Sizes {
    fn of(programs: &RealPrograms, file: &Path) -> Result<Self> {
        let path = file.display().to_string();
        let stats: serde_json::Value = serde_json::from_slice(&programs.ask(&["stats", &path, "--json"])?)?;
        let number = |key: &str| stats[key].as_u64().with_context(|| format!("stats has no {key}"));
        let opened = BufReader::new(File::open(file)?);
        let (fold, _) = archive::read(opened, &ReadConfig::new().times(false))?;
        let is_path =
            |symbol: &Symbol| !matches!(fold.alphabet().meaning(*symbol).role, Role::Enter | Role::Leave);
        let paths = fold.alphabet().symbols().filter(is_path);
        Ok(Self {
            streams: number("streams")?,
            events: number("events")?,
            rules: number("rules")?,
            paths: paths.count() as u64,
            bytes: file.metadata()?.len(),
        })
    }
}

/// The grammar that SEQUITUR makes of a recording, and the bytes of its text.
fn grammar_of(programs: &RealPrograms, archive: &Path) -> Result<(Sizes, usize)> {
    let grammar = programs.path("sequitur.fold");
    let (from, to) = (archive.display().to_string(), grammar.display().to_string());
    programs.ask(&["fold", &from, "--folder", "sequitur", "--times", "none", "-o", &to])?;
    let text = programs.ask(&["export", &to, "--to", "grammar"])?.len();
    Ok((Sizes::of(programs, &grammar)?, text))
}

/// Lengths of inputs, as in the paper.
const LENGTHS: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

fn print_figure_eight(programs: &RealPrograms) -> Result<()> {
    let columns = [
        Column::Number("input bytes"),
        Column::Number("plain s"),
        Column::Number("thrown away s"),
        Column::Number("recorded s"),
        Column::Number("SEQUITUR s"),
        Column::Number("trace kB"),
        Column::Number("WPP kB"),
        Column::Number("archive kB"),
    ];
    let title = "Larus, figure 8: a compressor (bzip2) on inputs of 100 to 1,000,000 bytes. Published for compress:\n\
                 the WPP grows a little slower than time and trace, the time to make it faster than the trace";
    let mut table = Table::new(title, &columns);
    for length in LENGTHS {
        let text = programs.text(length)?;
        let program = programs.bzip2(vec!["-kfc".to_string(), text.display().to_string()])?;
        let plain = program.time(&program.plain)?;
        let thrown = program.time(&program.instrumented)?;
        let (archive, recorded) = programs.record(&program)?;
        let sizes = Sizes::of(programs, &archive)?;
        let start = Instant::now();
        let (_, wpp) = grammar_of(programs, &archive)?;
        let sequitur = start.elapsed();
        let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
        let kilobytes = |bytes: f64| format!("{:.1}", bytes / 1e3);
        table.row([
            grouped(length as u128),
            seconds(plain),
            seconds(thrown),
            seconds(recorded),
            seconds(sequitur),
            kilobytes(sizes.events as f64 * 4.0),
            kilobytes(wpp as f64),
            kilobytes(sizes.bytes as f64),
        ]);
    }
    println!("{table}");
    Ok(())
}
