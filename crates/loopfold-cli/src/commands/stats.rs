//! `loopfold stats`: sizes and counts.

use crate::args::StatsArgs;
use crate::show::{self, Labels};
use crate::{Outcome, input};
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::{EventSums, Statistics, event_sums, statistics};
use loopfold::trace::TimesKept;
use serde_json::{Value, json};
use std::io::Write;

pub(super) fn run(arguments: &StatsArgs) -> Result<Outcome> {
    let loaded = input::load(&arguments.read, TimesKept::All)?;
    // The size is that of whole archives.
    let bytes = if arguments.read.stream.is_none() { loaded.archive_bytes } else { 0 };
    let (fold, notes) = loaded.fold_as_stored(&arguments.folder)?;
    let statistics = statistics(&fold)?;
    show::notes(&notes);
    let sums = sums_of(&fold)?;
    if arguments.json {
        let mut value = to_json(&fold, &statistics, bytes);
        (value["durations"], value["metrics"]) = show::sums_json(&fold, &sums);
        show::print_json(&value)?;
    } else {
        let mut out = anstream::stdout().lock();
        print(&mut out, arguments, &fold, &statistics, bytes)?;
        show::print_sums(&mut out, &fold, &sums, &Labels::new(&fold, arguments.hex), arguments.top)?;
    }
    Ok(Outcome::Done)
}

/// What the events cost; sizes and counts are shown even where there is too much to sum.
fn sums_of(fold: &Fold) -> Result<EventSums> {
    match event_sums(fold) {
        Err(error) if error.is_limit() => {
            show::notes(&[error.to_string()]);
            Ok(EventSums::default())
        }
        sums => Ok(sums?),
    }
}

/// The folders that made a fold, each once.
pub(super) fn folder_names(fold: &Fold) -> String {
    let mut names: Vec<&str> = fold.streams().iter().map(|stream| stream.folder()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn to_json(fold: &Fold, statistics: &Statistics, bytes: u64) -> Value {
    let streams: Vec<Value> = fold
        .streams()
        .iter()
        .zip(&statistics.streams)
        .map(|(stream, its)| {
            let notes: serde_json::Map<String, Value> =
                stream.notes().iter().map(|(key, value)| (key.clone(), json!(value))).collect();
            json!({"stream": stream.name(), "events": its.events, "span_ns": its.span, "folder": stream.folder(), "notes": notes})
        })
        .collect();
    json!({
        "streams": fold.streams().len(),
        "events": statistics.events,
        "alphabet": statistics.alphabet,
        "rules": statistics.rules,
        "items": statistics.items,
        "depth": statistics.depth,
        "folder": folder_names(fold),
        "bytes": if bytes == 0 { Value::Null } else { json!(bytes) },
        "stream_list": streams,
        "counts": statistics.counts.as_ref().map(|counts| {
            counts.iter().map(|&(symbol, count)| json!({"event": fold.alphabet().label(symbol), "count": count})).collect::<Vec<_>>()
        }),
    })
}

fn print(
    out: &mut impl Write,
    arguments: &StatsArgs,
    fold: &Fold,
    statistics: &Statistics,
    bytes: u64,
) -> Result<()> {
    let events = statistics.events.map_or("more than 2^64".to_string(), show::count);
    writeln!(out, "streams   {}", show::count(fold.streams().len() as u64))?;
    writeln!(out, "events    {events}")?;
    writeln!(out, "distinct  {}", show::count(statistics.alphabet as u64))?;
    writeln!(out, "rules     {}", show::count(statistics.rules as u64))?;
    writeln!(out, "items     {}", show::count(statistics.items as u64))?;
    writeln!(out, "depth     {}", statistics.depth)?;
    writeln!(out, "folder    {}", show::plain(&folder_names(fold)))?;
    if bytes > 0 {
        writeln!(out, "archive   {}", show::bytes(bytes))?;
    }
    let limit = |length: usize| if arguments.top == 0 { length } else { arguments.top.min(length) };
    let labels = Labels::new(fold, arguments.hex);
    if let Some(counts) = &statistics.counts {
        writeln!(out, "\nmost frequent events")?;
        for &(symbol, count) in &counts[..limit(counts.len())] {
            let share = count as f64 / statistics.events.unwrap_or(u64::MAX).max(1) as f64;
            let label = show::shorten(&labels.of(symbol), 100);
            writeln!(out, "{:>15}  {:>9}  {label}", show::count(count), show::percent(share))?;
        }
        show::more(out, counts.len() - limit(counts.len()))?;
    }
    writeln!(out, "\nstreams")?;
    let mut order: Vec<usize> = (0..fold.streams().len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(statistics.streams[index].events));
    for &index in &order[..limit(order.len())] {
        let (stream, its) = (&fold.streams()[index], &statistics.streams[index]);
        let span = its.span.map_or(String::new(), |span| format!("  over {}", show::duration(span.into())));
        let noun = if its.events == 1 { "event " } else { "events" };
        writeln!(out, "{:>15} {noun}  {}{span}", show::count(its.events), show::plain(stream.title()))?;
        for (key, value) in stream.notes().iter().filter(|(key, _)| key != "title" && key != "format") {
            writeln!(out, "{:>15}         {}: {}", "", show::plain(key), show::plain(value))?;
        }
    }
    show::more(out, order.len() - limit(order.len()))
}
