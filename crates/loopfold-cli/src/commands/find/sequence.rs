//! Sequences of events, one directly after the other.

use super::{limit, listed, note_more, outcome, rows};
use crate::args::{FindArgs, FindShown};
use crate::show::{self, Clock};
use crate::{Outcome, tables};
use anyhow::Result;
use loopfold::questions::find::Found;
use loopfold::{Fold, StreamId};
use loopfold_json::find::Wanted;
use std::io::Write;

pub(super) fn print(
    out: &mut impl Write,
    arguments: &FindArgs,
    fold: &Fold,
    found: &Found<'_>,
) -> Result<Outcome> {
    let count = found.count()?;
    let FindShown { count: only_count, first, nth, all, per_stream } = arguments.shown;
    if only_count {
        writeln!(out, "{count}")?;
        return Ok(outcome(count > 0));
    }
    let mut clock = Clock::new(fold);
    if all {
        return print_all(out, arguments, found, &mut clock, count);
    }
    if let Some(nth) = nth.or(first.then_some(1)) {
        let Some(place) = found.places().skip_to(nth - 1) else {
            show::notes(&[format!("there are only {}", show::plural(count, "occurrence"))]);
            return Ok(Outcome::Nothing);
        };
        writeln!(out, "{}", clock.line(place)?)?;
        return Ok(Outcome::Done);
    }
    if per_stream {
        return print_streams(out, arguments, fold, found, &mut clock, count);
    }
    writeln!(out, "count     {}", show::count(count))?;
    let Some(first) = found.first() else { return Ok(Outcome::Nothing) };
    let streams: Vec<StreamId> = fold.stream_ids().filter(|&stream| found.count_in(stream) > 0).collect();
    if fold.streams().len() > 1 {
        let all = show::count(fold.streams().len() as u64);
        writeln!(out, "streams   {} of {all}", show::count(streams.len() as u64))?;
    }
    writeln!(out, "first     {}", clock.place(first)?)?;
    if let Some(earliest) = clock.earliest(found, &streams)?.filter(|&earliest| earliest != first) {
        writeln!(out, "earliest  {}", clock.place(earliest)?)?;
    }
    if count > 1
        && let Some(last) = streams.last().and_then(|&stream| found.last_in(stream))
    {
        writeln!(out, "last      {}", clock.place(last)?)?;
    }
    Ok(Outcome::Done)
}

fn print_all(
    out: &mut impl Write,
    arguments: &FindArgs,
    found: &Found<'_>,
    clock: &mut Clock<'_>,
    count: u64,
) -> Result<Outcome> {
    let shown = limit(arguments.top, count);
    let mut places = found.places();
    for _ in 0..shown {
        let Some(place) = places.next() else { break };
        writeln!(out, "{}", clock.line(place)?)?;
    }
    note_more(out, count - shown)?;
    Ok(outcome(count > 0))
}

fn print_streams(
    out: &mut impl Write,
    arguments: &FindArgs,
    fold: &Fold,
    found: &Found<'_>,
    clock: &mut Clock<'_>,
    count: u64,
) -> Result<Outcome> {
    let mut streams: Vec<StreamId> = fold.stream_ids().filter(|&stream| found.count_in(stream) > 0).collect();
    streams.sort_by_key(|&stream| std::cmp::Reverse(found.count_in(stream)));
    let shown = limit(arguments.top, streams.len() as u64);
    for &stream in &streams[..shown as usize] {
        let in_stream = found.count_in(stream);
        let share = show::percent(in_stream as f64 / count as f64);
        let first = found.places_in(stream).next().map(|first| clock.place(first)).transpose()?;
        let first = first.unwrap_or_default();
        writeln!(out, "{:>15}  {share:>9}  first: {first}", show::count(in_stream))?;
    }
    note_more(out, streams.len() as u64 - shown)?;
    Ok(outcome(count > 0))
}

pub(super) fn print_data(
    arguments: &FindArgs,
    query: &str,
    fold: &Fold,
    found: &Found<'_>,
) -> Result<Outcome> {
    let count = found.count()?;
    let nth = arguments.shown.nth;
    let (all, per_stream) = listed(arguments);
    let wanted = Wanted { nth, per_stream, all: all.then(|| limit(arguments.top, count)) };
    tables::print_answer(&arguments.form, "find", rows(arguments).unwrap_or("all"), |out| {
        Ok(loopfold_json::find::sequence(out, fold, query, found, wanted)?)
    })?;
    Ok(outcome(count >= nth.unwrap_or(1)))
}
