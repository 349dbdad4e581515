//! `loopfold stats`: sizes and counts.

use crate::args::{FolderName, Form, StatsArgs};
use crate::nodes::TimeSums;
use crate::show::{self, Costs, Labels, Names};
use crate::{Outcome, input, save, tables};
use anyhow::Result;
use loopfold::archive::WriteConfig;
use loopfold::fold::{FoldedStream, ProducerCount};
use loopfold::questions::path::PathIndex;
use loopfold::questions::statistics::Statistics;
use loopfold::questions::sums::EventSums;
use loopfold::sections;
use loopfold::trace::TimesKept;
use loopfold::{Fold, StreamId};
use std::io::Write;

/// The note on why its folder was chosen for a stream.
const WHY_NOTE: &str = "why";

pub(super) fn run(arguments: &StatsArgs) -> Result<Outcome> {
    if arguments.streams {
        return super::streams::run(arguments);
    }
    let folder = arguments.folder.or(FolderName::Auto);
    let mut loaded = input::load_for(&arguments.read, TimesKept::All, &folder)?;
    // The size is that of whole archives.
    let stored = loaded.archive_bytes.filter(|_| arguments.read.stream.is_empty());
    let (index, chunks) = (loaded.index_bytes, loaded.chunk_bytes);
    let ranges = loaded.is_indexed().then_some(PathIndex::RANGES);
    let shared_times = loaded.shared_times.take().filter(|times| times.is_as_read);
    let (fold, notes) = loaded.fold_as_stored(&folder)?;
    let summed = shared_times.map(|times| times.sums(&fold)).transpose()?;
    let statistics = statistics_of(&fold, summed.as_ref())?;
    let config = sections::write_config(ranges, None);
    let time = summed.as_ref().map_or_else(|| fold.run_time(), |summed| Ok(summed.time))?;
    let sizes = Sizes { index, chunks, ..Sizes::of(&fold, stored, &config, time)? };
    show::notes(&notes);
    let (sums, own) = match summed {
        Some(summed) => (shown_sums(summed.events)?, summed.own),
        None => (shown_sums(fold.event_sums())?, fold.self_sums()?),
    };
    let costs = Costs { fold: &fold, sums: &sums, own: own.as_ref() };
    show::notes(&costs.notes());
    if arguments.form.is_data() {
        print_data(&arguments.form, &statistics, &sizes, &costs)?;
    } else {
        let mut out = show::stdout();
        Printer { arguments, fold: &fold, statistics: &statistics, sizes: &sizes }.print(&mut out, &costs)?;
        out.flush()?;
    }
    Ok(Outcome::Done)
}

/// Sizes and counts; the times of streams may be summed already.
fn statistics_of(fold: &Fold, summed: Option<&TimeSums>) -> Result<Statistics> {
    let Some(summed) = summed else { return Ok(fold.statistics()?) };
    let mut bare = fold.clone();
    fold.stream_ids().for_each(|stream| drop(bare.take_times(stream)));
    let mut statistics = bare.statistics()?;
    for (stream, &span) in statistics.streams.iter_mut().zip(&summed.spans) {
        stream.span = span;
    }
    Ok(statistics)
}

/// What tables of whole program paths compare: the trace, the archive and the execution.
struct Sizes {
    /// The duration of the execution, in nanoseconds.
    time: Option<u64>,
    /// The bytes of the traces, if they are noted.
    trace: Option<u64>,
    /// The bytes of the archive.
    archive: u64,
    /// How many of these are the index of functions.
    index: u64,
    /// How many of these are chunks of the events.
    chunks: u64,
}

impl Sizes {
    /// `stored` are the bytes of the archive if there is one; if not, these are the options
    /// of the one that `fold` would write.
    fn of(fold: &Fold, stored: Option<u64>, options: &WriteConfig<'_>, time: Option<u64>) -> Result<Self> {
        let noted =
            fold.streams().iter().filter_map(|stream| stream.note(input::BYTES_NOTE)?.raw().parse().ok());
        let trace = noted.reduce(u64::saturating_add);
        let archive = stored.map_or_else(|| save::archive_bytes(fold, options), Ok)?;
        Ok(Self { time, trace, archive, index: 0, chunks: 0 })
    }

    /// How many times larger the trace is.
    fn ratio(&self) -> Option<f64> {
        Some(self.trace? as f64 / self.archive.max(1) as f64)
    }

    /// These bytes for each second of the execution.
    fn per_second(&self, bytes: Option<u64>) -> Option<f64> {
        let time = self.time.filter(|&time| time > 0)?;
        Some(bytes? as f64 / (time as f64 / 1e9))
    }
}

fn rules_per_event(statistics: &Statistics) -> Option<f64> {
    (statistics.alphabet > 0).then(|| statistics.rules as f64 / statistics.alphabet as f64)
}

/// The costs of events. Sizes and counts are shown even if the sums overflow.
fn shown_sums(sums: loopfold::Result<EventSums>) -> Result<EventSums> {
    match sums {
        Err(error) if error.kind() == loopfold::ErrorKind::Limit => {
            show::notes(&[error.to_string()]);
            Ok(EventSums::default())
        }
        sums => Ok(sums?),
    }
}

/// The folders that made a fold, each once, as an archive says.
pub(super) fn folder_names(fold: &Fold) -> String {
    let mut names: Vec<&str> = fold.streams().iter().map(|stream| stream.folder().raw()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn print_data(form: &Form, statistics: &Statistics, sizes: &Sizes, costs: &Costs<'_>) -> Result<()> {
    let &Costs { fold, sums, .. } = costs;
    let stats = loopfold_json::stats::Stats {
        fold,
        statistics,
        calls: &fold.call_statistics()?,
        folder: &folder_names(fold),
        sizes: loopfold_json::stats::Sizes {
            archive: sizes.archive,
            index: sizes.index,
            chunks: sizes.chunks,
            trace: sizes.trace,
            time: sizes.time,
            trace_per_second: sizes.per_second(sizes.trace),
            archive_per_second: sizes.per_second(Some(sizes.archive)),
            ratio: sizes.ratio(),
            rules_per_event: rules_per_event(statistics),
        },
    };
    let (durations, metrics) = (costs.durations(), show::metric_costs(fold, sums));
    tables::print_answer(form, "stats", "counts", |out| {
        Ok(loopfold_json::stats::stats(out, &stats, durations, metrics)?)
    })
}

/// Prints what a user asks first, first: how much happened, what cost most; then sizes.
struct Printer<'a> {
    arguments: &'a StatsArgs,
    fold: &'a Fold,
    statistics: &'a Statistics,
    sizes: &'a Sizes,
}

impl Printer<'_> {
    fn print(&self, out: &mut impl Write, costs: &Costs<'_>) -> Result<()> {
        self.summary(out)?;
        let names = self.names(costs);
        costs.print(out, &names, self.arguments.top.most())?;
        self.counts(out, &names)?;
        self.streams(out)?;
        self.sizes(out)
    }

    fn summary(&self, out: &mut impl Write) -> Result<()> {
        let &Self { fold, statistics, sizes, .. } = self;
        let mut parts = vec![
            show::events(statistics.events),
            format!("{} distinct", show::count(statistics.alphabet as u64)),
            show::plural(fold.streams().len() as u64, "stream"),
        ];
        parts.extend(sizes.time.map(|time| show::duration(time.into())));
        let calls = fold.call_statistics()?;
        if calls.functions > 0 {
            let functions = show::plural(calls.functions, "function");
            parts.push(format!("{functions}, up to {} deep", show::plural(calls.deepest, "call")));
        }
        for line in show::wrapped(&parts, show::line_width()) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// The names of all events that are shown: the same in each table.
    fn names(&self, costs: &Costs<'_>) -> Names {
        let most = self.arguments.top.most();
        let counts = self.statistics.counts.iter().flatten().take(most).map(|&(symbol, _)| symbol);
        let shown = costs.shown(most).into_iter().chain(counts).collect();
        let room = (!self.arguments.full.on).then(|| costs.room().min(counts_room()));
        Names::of(shown, &Labels::new(self.fold, self.arguments.hex.on), room)
    }

    fn limit(&self, length: usize) -> usize {
        self.arguments.top.most().min(length)
    }

    fn counts(&self, out: &mut impl Write, names: &Names) -> Result<()> {
        let Some(counts) = &self.statistics.counts else { return Ok(()) };
        writeln!(out, "\nmost frequent events")?;
        for &(symbol, count) in &counts[..self.limit(counts.len())] {
            let share = count as f64 / self.statistics.events.unwrap_or(u64::MAX).max(1) as f64;
            let label = names.of_event(symbol);
            writeln!(out, "{:>15}  {:>9}  {label}", show::count(count), show::percent(share))?;
        }
        show::more(out, counts.len() - self.limit(counts.len()))
    }

    fn streams(&self, out: &mut impl Write) -> Result<()> {
        let &Self { fold, statistics, .. } = self;
        writeln!(out, "\nstreams")?;
        let several_folders = fold.streams().windows(2).any(|pair| pair[0].folder() != pair[1].folder());
        let ids: Vec<StreamId> = fold.stream_ids().collect();
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(statistics.streams[index].events));
        for &index in &order[..self.limit(order.len())] {
            let (stream, its) = (&fold.streams()[index], &statistics.streams[index]);
            let span =
                its.span.map_or(String::new(), |span| format!("  over {}", show::duration(span.into())));
            let noun = if its.events == 1 { "event " } else { "events" };
            let room = show::line_width().saturating_sub(24 + span.chars().count());
            let title = show::shorten(&show::plain(stream.title()), room);
            writeln!(out, "{:>15} {noun}  {title}{span}", show::count(its.events))?;
            print_notes(out, stream, several_folders)?;
            print_count(out, fold, ids[index])?;
        }
        show::more(out, order.len() - self.limit(order.len()))
    }

    fn sizes(&self, out: &mut impl Write) -> Result<()> {
        let &Self { fold, statistics, sizes, .. } = self;
        let unknown = || "-".to_string();
        let ratio = |ratio: Option<f64>| match ratio {
            None => unknown(),
            Some(small) if small < 10.0 => format!("{small:.2}"),
            Some(ratio) => show::ratio(ratio),
        };
        let rate = |bytes: Option<u64>| {
            let rate = sizes.per_second(bytes);
            rate.map_or(String::new(), |rate| format!("{}/s", show::bytes(rate.round() as u64)))
        };
        let rules = show::count(statistics.rules as u64);
        let mut line = |name: &str, value: &str, remark: &str| {
            writeln!(out, "{}", format!("{name:<10}{value:<12}  {remark}").trim_end())
        };
        line("\nsizes", "", "")?;
        if let Some(trace) = sizes.trace {
            line("trace", &show::bytes(trace), &rate(sizes.trace))?;
        }
        line("archive", &show::bytes(sizes.archive), &rate(Some(sizes.archive)))?;
        if sizes.index > 0 {
            line("index", &show::bytes(sizes.index), "")?;
        }
        if sizes.chunks > 0 {
            line("chunks", &show::bytes(sizes.chunks), "")?;
        }
        if sizes.trace.is_some() {
            line("ratio", &ratio(sizes.ratio()), "")?;
        }
        line("rules", &rules, &format!("{} per distinct event", ratio(rules_per_event(statistics))))?;
        line("items", &show::count(statistics.items as u64), "")?;
        line("depth", &statistics.depth.to_string(), "")?;
        line("folder", &show::plain(folder_names(fold)), "")?;
        Ok(())
    }
}

/// The room for names among the most frequent events.
fn counts_room() -> usize {
    show::line_width().saturating_sub(28)
}

/// The other notes of a stream: its folder if it is not printed above or was chosen for a reason,
/// and the notes of the source.
fn print_notes(out: &mut impl Write, stream: &FoldedStream, several_folders: bool) -> Result<()> {
    let folder = stream.folder().raw();
    match stream.note(WHY_NOTE) {
        Some(why) => print_note(out, "folder", &[folder, why.raw()].join(", "))?,
        None if several_folders => print_note(out, "folder", folder)?,
        None => {}
    }
    for (key, value) in stream.notes() {
        let is_known = ["title", "format", WHY_NOTE, input::BYTES_NOTE].contains(&key.as_str());
        if !is_known && !ProducerCount::is_note(key) {
            print_note(out, key, value)?;
        }
    }
    Ok(())
}

/// What the producer of a stream has counted. Where nothing is missing, that is the number of events.
fn print_count(out: &mut impl Write, fold: &Fold, stream: StreamId) -> Result<()> {
    let count = fold.producer_count(stream).filter(|count| count.missing > 0);
    if let Some(ProducerCount { produced, missing }) = count {
        print_note(out, "produced", &produced.to_string())?;
        print_note(out, "missing", &missing.to_string())?;
    }
    if fold.is_unfinished(stream) {
        print_note(out, "unfinished", "its end was not recorded")?;
    }
    Ok(())
}

fn print_note(out: &mut impl Write, key: &str, value: &str) -> Result<()> {
    let room = show::line_width().saturating_sub(24);
    let text = show::shorten(&format!("{}: {}", show::plain(key), show::plain(value)), room);
    Ok(writeln!(out, "{:>24}{text}", "")?)
}
