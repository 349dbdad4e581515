//! Paths of functions: the four schemes beside each other, as in figure 13 of the paper by
//! Zhang and Gupta, many paths at once, growth with the length of the trace, and an FM
//! index of the same events.
//!
//! The traces are those of control flow (`.bb`, `.trc`, `.calls`) under a directory, or
//! generated ones: a program that loops over data, and an interpreter that recurses.

mod choose;
mod fm;

use super::archive_sizes::{collector, files_under, recorded};
use super::{Settings, progress};
use crate::clock::{best, timed};
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result, ensure};
use choose::{CHUNK, Chosen, choose};
use loopfold::archive::{self, Archive, ReadConfig, SectionReader};
use loopfold::folders::{Auto, fold_trace};
use loopfold::questions::path::{
    ChunkSize, Chunks, Functions, PathIndex, PathPlace, PathQuery, PathScan, PathSearcher, Scheme,
    TraceChunks, find_path,
};
use loopfold::sections;
use loopfold::{Fold, Symbol, Trace};
use loopfold_sources::{Context, Input, Options, by_name};
use loopfold_testing::programs::{Kind, Token, control_flow};
use std::fmt::Write as _;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measures everything and prints it.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let length = if settings.quick { 1_000_000 } else { 10_000_000 };
    let files: Vec<PathBuf> = settings.traces.iter().flat_map(|folder| files_under(folder)).collect();
    let mut figure = Figure::default();
    let mut batches = batch_table();
    let mut beside_fm = Table::new(fm::TITLE, &fm::COLUMNS);
    for (name, trace) in control_flow_traces(&files, length)? {
        progress(format_args!("paths of functions in {name}"));
        let subject = Subject::new(name, trace)?;
        figure.add(&subject)?;
        let batch = subject.batch()?;
        batches.row(batch.row(&subject));
        beside_fm.row(fm::row(&subject, batch.time)?);
    }
    println!("{}\n{}\n{batches}\n{beside_fm}", figure.table(), figure.targets());
    println!("{}", growth(length / 8)?);
    Ok(())
}

/// The traces of control flow among some files; if there are none, generated ones of `length`
/// events.
pub(crate) fn control_flow_traces(files: &[PathBuf], length: usize) -> Result<Vec<(String, Trace)>> {
    let mut traces = Vec::new();
    for path in files {
        traces.extend(of_file(path)?);
    }
    if traces.is_empty() {
        traces.push(("loops".to_string(), generated(Kind::Loops, length)?));
        traces.push(("recursion".to_string(), generated(Kind::Recursion, length)?));
    }
    Ok(traces)
}

/// A trace of control flow with functions, of one thread. Returns `None` for other files.
fn of_file(path: &Path) -> Result<Option<(String, Trace)>> {
    let extension = path.extension().unwrap_or_default();
    if !["bb", "trc", "calls"].iter().any(|known| extension == *known) {
        return Ok(None);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(recorded(path)?.filter(|trace| trace.streams.len() == 1).map(|trace| (name, trace)))
}

/// The control flow of a program, read from text as users have it.
fn generated(kind: Kind, length: usize) -> Result<Trace> {
    let mut text = String::with_capacity(4 * length);
    for token in control_flow(kind, length, 1) {
        match token {
            Token::Call(function) => writeln!(text, "call f{function}")?,
            Token::Return => text.push_str("return\n"),
            Token::Block(block) => writeln!(text, "{block}")?,
        }
    }
    let source = by_name("calls").context("the source of calls")?;
    let mut input = Input::open(text.as_bytes(), true)?;
    let options = Options::default();
    let mut collector = collector();
    source.read(&mut input, &mut Context::new(&options, &mut collector, "generated", false))?;
    Ok(collector.finish()?)
}

/// A trace to search for paths, as it comes out of its archive.
struct Subject {
    name: String,
    fold: Fold,
    functions: Functions,
    symbols: Vec<Symbol>,
    archive_bytes: u64,
    index_bytes: u64,
    index: Option<PathIndex>,
    chunks: Chunks<SectionReader<Cursor<Vec<u8>>>>,
    /// Decompressing all chunks.
    decompression: Duration,
    /// Folding the trace and writing its archive with the index.
    build: Duration,
}

impl Subject {
    fn new(name: String, trace: Trace) -> Result<Self> {
        let options = sections::write_config(Some(PathIndex::RANGES), None);
        let (fold, build) = timed(|| -> Result<Fold> {
            let fold = fold_trace(trace, &Auto, 1)?;
            archive::write_with(&fold, &mut Vec::new(), &options)?;
            Ok(fold)
        });
        let fold = fold?;
        let mut file = Vec::new();
        let size = ChunkSize::of_symbols(CHUNK as u64)?;
        let options = sections::write_config(Some(PathIndex::RANGES), Some(size));
        archive::write_with(&fold, &mut file, &options)?;
        let mut archive = Archive::open(Cursor::new(file))?;
        let sizes = archive.sizes();
        let (fold, _) = archive.read(&ReadConfig::new().times(false))?;
        let index = sections::index(&mut archive, &fold)?;
        let chunks = sections::chunks(archive)?.context("the archive has no chunks")?;
        let mut symbols = Vec::new();
        for stream in fold.streams() {
            symbols.extend(fold.unfold(stream.root()));
        }
        let all: Vec<usize> = (0..chunks.all().len()).collect();
        let (read, decompression) = best(|| decompress(&chunks, &all));
        read?;
        Ok(Self {
            name,
            functions: Functions::of(fold.alphabet())?,
            fold,
            symbols,
            archive_bytes: sizes.total - sizes.chunks - sizes.index,
            index_bytes: sizes.index,
            index,
            chunks,
            decompression,
            build,
        })
    }

    /// Times all schemes on a path; all must give the same answer.
    fn time(&self, query: &PathQuery) -> Result<Times> {
        let answer = find_path(&self.fold, query)?;
        let (count, first) = (answer.count()?, answer.first());
        let (scanned, matching) = best(|| self.scan(query));
        ensure!(scanned == count, "scheme 1 finds {scanned}, scheme 2 {count}");
        let (folded, scheme_2) =
            best(|| find_path(&self.fold, query).map(|found| (found.count().ok(), found.first())));
        ensure!(folded? == (Some(count), first), "scheme 2 is not sure");
        let held: Vec<usize> = self.chunks_with(query).iter().map(|&chunk| chunk as usize).collect();
        let (read, decompression_3) = best(|| decompress(&self.chunks, &held));
        read?;
        let searcher = PathSearcher::new(&self.fold, self.index.as_ref())?.with_chunks(Some(&self.chunks));
        let (chunked, scheme_3) =
            best(|| searcher.search(query, Some(Scheme::Chunks)).and_then(|answer| answer.found.count_all()));
        ensure!(chunked? == count, "scheme 3 finds something else");
        searcher.prepare()?;
        let search = |scheme: Option<Scheme>| -> Result<(u64, Option<PathPlace>)> {
            searcher.forget();
            let found = searcher.search(query, scheme)?.found;
            Ok((found.count_all()?, found.first_place()?))
        };
        let (indexed, scheme_4) = best(|| search(Some(Scheme::Indexed)));
        ensure!(indexed? == (count, first), "scheme 4 finds something else");
        let (chosen, auto) = best(|| search(None));
        ensure!(chosen? == (count, first), "auto finds something else");
        searcher.search(query, None)?;
        let (_, again) = best(|| searcher.search(query, None).map(|answer| answer.found.count_all()));
        let matching_3 = scheme_3.saturating_sub(decompression_3);
        Ok(Times { count, matching, scheme_2, decompression_3, matching_3, scheme_4, auto, again })
    }

    fn scan(&self, query: &PathQuery) -> u64 {
        let mut scan = PathScan::new(query);
        self.symbols.chunks(CHUNK).for_each(|part| scan.feed(part));
        scan.count()
    }

    fn chunks_with(&self, query: &PathQuery) -> Vec<u32> {
        let function = self.functions.all().iter().position(|function| function.name() == query.function());
        let set = function.and_then(|function| self.chunks.containing(function));
        set.map(|set| set.iter().collect()).unwrap_or_default()
    }

    /// A thousand paths, with all that is built for them.
    fn batch(&self) -> Result<Batch> {
        let paths = choose::windows(&self.fold, &self.functions, &self.symbols, 1_000);
        let (found, time) = best(|| self.count_all(&paths));
        Ok(Batch { paths: paths.len(), found: found?, time })
    }

    /// How often all paths occur, with all that is built for them.
    fn count_all(&self, paths: &[PathQuery]) -> Result<u64> {
        let mut searcher = PathSearcher::new(&self.fold, self.index.as_ref())?;
        searcher.search_together(paths)?;
        let mut sum = 0;
        for path in paths {
            sum += searcher.search(path, None)?.found.count_all()?;
        }
        Ok(sum)
    }
}

/// The search for many paths at once.
struct Batch {
    paths: usize,
    found: u64,
    time: Duration,
}

impl Batch {
    fn row(&self, subject: &Subject) -> Vec<String> {
        vec![
            subject.name.clone(),
            grouped(subject.symbols.len() as u128),
            grouped(self.paths as u128),
            grouped(self.found),
            milliseconds(self.time),
            short(1e6 * self.time.as_secs_f64() / self.paths.max(1) as f64),
            if self.time < Duration::from_secs(1) { "met" } else { "MISSED" }.to_string(),
        ]
    }
}

fn decompress(chunks: &Chunks<SectionReader<Cursor<Vec<u8>>>>, which: &[usize]) -> Result<u64> {
    let (mut symbols, mut bytes) = (Vec::new(), 0);
    for &chunk in which {
        bytes += chunks.read(chunk, &mut symbols)?;
    }
    Ok(bytes)
}

/// How long the schemes take for a path.
struct Times {
    count: u64,
    matching: Duration,
    scheme_2: Duration,
    decompression_3: Duration,
    matching_3: Duration,
    scheme_4: Duration,
    auto: Duration,
    /// A later search for a path of the same function.
    again: Duration,
}

fn milliseconds(time: Duration) -> String {
    short(1e3 * time.as_secs_f64())
}

/// Figure 13, and what it says of the targets.
#[derive(Default)]
struct Figure {
    rows: Vec<Row>,
    sizes: Vec<(String, u64, u64)>,
}

struct Row {
    trace: String,
    symbols: usize,
    chunks: usize,
    decompression: Duration,
    chosen: Chosen,
    times: Times,
}

impl Row {
    fn scheme_1(&self) -> f64 {
        (self.decompression + self.times.matching).as_secs_f64()
    }

    /// How many times faster than scheme 1.
    fn faster(&self, time: Duration) -> f64 {
        self.scheme_1() / time.as_secs_f64().max(1e-9)
    }

    /// Million symbols a second.
    fn speed(&self) -> f64 {
        self.symbols as f64 / self.times.matching.as_secs_f64() / 1e6
    }
}

impl Figure {
    fn add(&mut self, subject: &Subject) -> Result<()> {
        self.sizes.push((subject.name.clone(), subject.archive_bytes, subject.index_bytes));
        for chosen in choose(&subject.fold, &subject.functions, &subject.symbols)? {
            let times = subject.time(&chosen.query)?;
            self.rows.push(Row {
                trace: subject.name.clone(),
                symbols: subject.symbols.len(),
                chunks: subject.chunks.all().len(),
                decompression: subject.decompression,
                chosen,
                times,
            });
        }
        Ok(())
    }

    fn table(&self) -> Table {
        let columns = [
            Column::Text("trace"),
            Column::Text("path"),
            Column::Text("function"),
            Column::Number("share"),
            Column::Number("chunks"),
            Column::Number("count"),
            Column::Number("scheme 1"),
            Column::Number("Msym/s"),
            Column::Number("scheme 2"),
            Column::Number("scheme 3"),
            Column::Number("scheme 4"),
            Column::Number("auto"),
            Column::Number("again"),
            Column::Number("1/2"),
            Column::Number("1/4"),
        ];
        let title = "Zhang and Gupta, figure 13: a path of a function, in milliseconds of CPU time with the archive\n\
                     open; schemes 1 and 3 as decompression + matching. `again` is a later path of the same function";
        let mut table = Table::new(title, &columns);
        for row in &self.rows {
            let Row { chosen, times, .. } = row;
            let both = |one, other| format!("{} + {}", milliseconds(one), milliseconds(other));
            let recurses = if chosen.recurses { " (recurses)" } else { "" };
            table.row([
                row.trace.clone(),
                chosen.kind.to_string(),
                format!("{}{recurses}", chosen.function),
                format!("{:.2} %", 100.0 * chosen.share),
                format!("{}/{}", chosen.chunks, row.chunks),
                grouped(times.count),
                both(row.decompression, times.matching),
                short(row.speed()),
                milliseconds(times.scheme_2),
                both(times.decompression_3, times.matching_3),
                milliseconds(times.scheme_4),
                milliseconds(times.auto),
                milliseconds(times.again),
                short(row.faster(times.scheme_2)),
                short(row.faster(times.scheme_4)),
            ]);
        }
        table
    }

    fn targets(&self) -> Table {
        let columns = [
            Column::Text("target"),
            Column::Text("worst of"),
            Column::Number("limit"),
            Column::Number("measured"),
            Column::Text(""),
        ];
        let mut table = Table::new("Targets for paths, on one core", &columns);
        let mut judge = |name: &str, limit: f64, least: bool, values: Vec<(String, f64)>| {
            let order = |one: &(String, f64), other: &(String, f64)| one.1.total_cmp(&other.1);
            let worst =
                if least { values.into_iter().min_by(order) } else { values.into_iter().max_by(order) };
            let Some((place, value)) = worst else { return };
            let is_met = if least { value >= limit } else { value <= limit };
            let sign = if least { ">=" } else { "<=" };
            let verdict = if is_met { "met" } else { "MISSED" };
            table.row([
                name.to_string(),
                place,
                format!("{sign} {}", short(limit)),
                short(value),
                verdict.to_string(),
            ]);
        };
        let of = |wanted: &dyn Fn(&Row) -> bool, value: &dyn Fn(&Row) -> f64| -> Vec<(String, f64)> {
            let rows = self.rows.iter().filter(|row| wanted(row));
            rows.map(|row| (format!("{} in {}", row.chosen.function, row.trace), value(row))).collect()
        };
        let faster = |row: &Row| row.faster(row.times.scheme_2);
        judge("scheme 2 beside 1, no recursion", 30.0, true, of(&|row| !row.chosen.recurses, &faster));
        judge("scheme 2 beside 1, recursion", 8.0, true, of(&|row| row.chosen.recurses, &faster));
        let indexed = |row: &Row| row.faster(row.times.scheme_4);
        judge("scheme 4 beside 1, low coverage", 300.0, true, of(&|row| row.chosen.kind == "low", &indexed));
        let beside = |row: &Row| row.times.auto.as_secs_f64() / row.times.scheme_2.as_secs_f64();
        judge("auto beside scheme 2", 1.1, false, of(&|_| true, &beside));
        judge("Msym/s of the scan, hot", 400.0, true, of(&|row| row.chosen.share >= 0.01, &Row::speed));
        judge("Msym/s of the scan, rare", 1000.0, true, of(&|row| row.chosen.share < 0.01, &Row::speed));
        let index = self.sizes.iter().map(|(name, archive, index)| {
            (name.clone(), *index as f64 / (*archive as f64 / 100.0).max(20_000.0))
        });
        judge("index beside 1 % or 20 kB", 1.0, false, index.collect());
        table
    }
}

fn batch_table() -> Table {
    let columns = [
        Column::Text("trace"),
        Column::Number("events"),
        Column::Number("paths"),
        Column::Number("occurrences"),
        Column::Number("ms in all"),
        Column::Number("us a path"),
        Column::Text(""),
    ];
    Table::new(
        "Up to 1,000 different paths of four blocks at once, with all that is built for them, on one core",
        &columns,
    )
}

/// The same program, executed 1, 2, 4 and 8 times longer.
fn growth(length: usize) -> Result<Table> {
    let columns = [
        Column::Text("program"),
        Column::Number("events"),
        Column::Number("items"),
        Column::Text("path"),
        Column::Number("scheme 1"),
        Column::Number("scheme 2"),
        Column::Number("scheme 4"),
    ];
    let title = "Growth: the same program executed longer, in milliseconds; the time of schemes 2 and 4 grows with the\n\
                 items of the fold, not with the events";
    let mut table = Table::new(title, &columns);
    for (name, kind) in [("loops", Kind::Loops), ("recursion", Kind::Recursion)] {
        for times in [1, 2, 4, 8] {
            progress(format_args!("paths in {times} times as many events of {name}"));
            let subject = Subject::new(name.to_string(), generated(kind, times * length)?)?;
            for chosen in choose(&subject.fold, &subject.functions, &subject.symbols)? {
                if !["low", "high"].contains(&chosen.kind) {
                    continue;
                }
                let found = subject.time(&chosen.query)?;
                table.row([
                    name.to_string(),
                    grouped(subject.symbols.len() as u128),
                    grouped(subject.fold.items() as u128),
                    chosen.kind.to_string(),
                    milliseconds(subject.decompression + found.matching),
                    milliseconds(found.scheme_2),
                    milliseconds(found.scheme_4),
                ]);
            }
        }
    }
    Ok(table)
}
