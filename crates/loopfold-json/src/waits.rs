//! Waits: who waits for whom, where and how long.

use crate::{JsonWriter, Labels, rounded};
use loopfold::questions::clock::EventClock;
use loopfold::questions::waits::{CallTime, Class, LeftOut, Pair, PlaceWaits, Sum, Waits, WorstIteration};
use loopfold::{Fold, Symbol};
use std::io::{Result, Write};

/// Writes waits, with the first `most` places. `chosen` says of each stream whether it was
/// selected, if not all were.
pub fn waits<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    waits: &Waits,
    chosen: Option<&[bool]>,
    most: usize,
) -> Result<()> {
    let origin = EventClock::new(fold).origin().ok().flatten();
    let mut labels = Labels::new(waits.alphabet());
    let shown = waits.places.len().min(most);
    out.begin_object()?;
    let streams = chosen.map_or(fold.streams().len(), |chosen| chosen.iter().filter(|one| **one).count());
    out.field("streams", streams)?;
    out.field("total_ns", waits.total)?;
    out.field("messages", waits.messages)?;
    out.field("collectives", waits.collectives)?;
    sum(out, waits, waits.all())?;
    out.field("in_calls_ns", waits.in_calls())?;
    out.field("after_waits_ns", waits.after_waits)?;
    out.key("classes")?;
    out.begin_array()?;
    for (class, &its_sum) in Class::ALL.iter().zip(&waits.classes) {
        out.begin_object()?;
        out.field("class", class.id())?;
        sum(out, waits, its_sum)?;
        out.end()?;
    }
    out.end()?;
    wrong_order(out, waits, waits.wrong_order)?;
    out.field("found", waits.places.len())?;
    out.field("left_out", waits.places.len() - shown)?;
    out.key("places")?;
    out.begin_array()?;
    for place in &waits.places[..shown] {
        one_place(out, waits, place, origin, &mut labels)?;
    }
    out.end()?;
    out.key("calls")?;
    out.begin_array()?;
    for calls in &waits.calls {
        call_time(out, waits, calls, origin, &mut labels)?;
    }
    out.end()?;
    pairs(out, waits, &waits.pairs)?;
    ranks(out, waits)?;
    out.key("iterations")?;
    out.begin_array()?;
    for worst in &waits.iterations {
        iteration(out, worst, origin)?;
    }
    out.end()?;
    clocks(out, fold, waits)?;
    uncounted(out, &waits.left_out)?;
    labels.cut_field(out)?;
    out.end()
}

/// The fields of a sum.
fn sum<W: Write>(out: &mut JsonWriter<W>, waits: &Waits, sum: Sum) -> Result<()> {
    out.field("time_ns", sum.time)?;
    out.field("share", rounded(waits.share(sum.time), 6))?;
    out.field("count", sum.count)
}

fn wrong_order<W: Write>(out: &mut JsonWriter<W>, waits: &Waits, its_sum: Sum) -> Result<()> {
    out.key("wrong_order")?;
    out.begin_object()?;
    sum(out, waits, its_sum)?;
    out.end()
}

fn one_place<W: Write>(
    out: &mut JsonWriter<W>,
    waits: &Waits,
    place: &PlaceWaits,
    origin: Option<i64>,
    labels: &mut Labels<'_>,
) -> Result<()> {
    out.begin_object()?;
    out.field("class", place.class.id())?;
    call(out, place.call, waits.function(place), &place.loops, labels)?;
    sum(out, waits, place.sum)?;
    wrong_order(out, waits, place.wrong_order)?;
    worst(out, place.worst, origin)?;
    pairs(out, waits, &place.pairs)?;
    out.end()
}

/// Calls that waited for nobody.
fn call_time<W: Write>(
    out: &mut JsonWriter<W>,
    waits: &Waits,
    calls: &CallTime,
    origin: Option<i64>,
    labels: &mut Labels<'_>,
) -> Result<()> {
    out.begin_object()?;
    call(out, calls.call, waits.function_of(calls), &calls.loops, labels)?;
    sum(out, waits, calls.sum)?;
    worst(out, calls.worst, origin)?;
    out.key("ranks")?;
    out.begin_array()?;
    for &(rank, its_sum) in &calls.ranks {
        out.begin_object()?;
        out.field("rank", rank)?;
        sum(out, waits, its_sum)?;
        out.end()?;
    }
    out.end()?;
    out.end()
}

/// A call, its function and the loops around it.
fn call<W: Write>(
    out: &mut JsonWriter<W>,
    call: Symbol,
    function: Option<&str>,
    loops: &[u64],
    labels: &mut Labels<'_>,
) -> Result<()> {
    out.key("call")?;
    labels.event(out, call)?;
    out.key("function")?;
    match function {
        Some(function) => labels.function(out, function.as_bytes())?,
        None => out.value(None::<u64>)?,
    }
    out.key("loops")?;
    out.array(loops.iter().copied())
}

fn pairs<W: Write>(out: &mut JsonWriter<W>, waits: &Waits, pairs: &[Pair]) -> Result<()> {
    out.key("pairs")?;
    out.begin_array()?;
    for pair in pairs {
        out.begin_object()?;
        out.field("waiting", pair.waiting)?;
        out.field("cause", pair.cause)?;
        sum(out, waits, pair.sum)?;
        out.end()?;
    }
    out.end()
}

fn worst<W: Write>(
    out: &mut JsonWriter<W>,
    worst: Option<WorstIteration>,
    origin: Option<i64>,
) -> Result<()> {
    out.key("worst")?;
    match &worst {
        Some(worst) => iteration(out, worst, origin),
        None => out.value(None::<u64>),
    }
}

fn iteration<W: Write>(out: &mut JsonWriter<W>, worst: &WorstIteration, origin: Option<i64>) -> Result<()> {
    out.begin_object()?;
    out.field("times", worst.times)?;
    out.field("first", worst.first)?;
    out.field("last", worst.last)?;
    out.field("time_ns", worst.time)?;
    out.field("start_ns", worst.start)?;
    let since = worst.start.zip(origin).map(|(start, origin)| start.saturating_sub(origin));
    out.field("since_start_ns", since)?;
    out.end()
}

fn ranks<W: Write>(out: &mut JsonWriter<W>, waits: &Waits) -> Result<()> {
    out.key("ranks")?;
    out.begin_array()?;
    for rank in &waits.ranks {
        out.begin_object()?;
        out.field("rank", rank.rank)?;
        for (key, its_sum) in [("caused", rank.caused), ("waited", rank.waited)] {
            out.key(key)?;
            out.begin_object()?;
            sum(out, waits, its_sum)?;
            out.end()?;
        }
        out.end()?;
    }
    out.end()
}

fn clocks<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, waits: &Waits) -> Result<()> {
    out.key("violations")?;
    out.begin_array()?;
    for one in &waits.violations {
        out.begin_object()?;
        out.field("from", one.from)?;
        out.field("to", one.to)?;
        out.field("count", one.count)?;
        out.field("worst_ns", one.worst)?;
        out.end()?;
    }
    out.end()?;
    if let Some(offsets) = &waits.offsets {
        out.key("offsets")?;
        out.begin_array()?;
        for &(rank, offset) in &offsets.changed {
            out.begin_object()?;
            out.field("rank", rank)?;
            out.field("offset_ns", offset)?;
            out.end()?;
        }
        out.end()?;
        out.key("drift")?;
        match offsets.drift {
            Some((from, to)) => out.array([from, to])?,
            None => out.value(None::<u64>)?,
        }
    }
    out.key("backward")?;
    out.begin_array()?;
    for one in &waits.backward {
        out.begin_object()?;
        out.field("stream", fold.stream(one.stream).name())?;
        out.field("count", one.count)?;
        out.field("first", one.first)?;
        out.end()?;
    }
    out.end()
}

fn uncounted<W: Write>(out: &mut JsonWriter<W>, left_out: &LeftOut) -> Result<()> {
    out.key("uncounted")?;
    out.begin_object()?;
    out.field("unknown_senders", left_out.unknown_senders)?;
    out.field("absent", left_out.absent)?;
    out.field("unreceived", left_out.unreceived)?;
    out.field("unsent", left_out.unsent)?;
    out.field("incomplete", left_out.incomplete)?;
    out.field("disagreeing", left_out.disagreeing)?;
    out.field("partial", left_out.partial)?;
    out.field("unknown_requests", left_out.unknown_requests)?;
    out.field("without_start", left_out.without_start)?;
    out.field("without_duration", left_out.without_duration)?;
    out.end()
}
