//! Every iteration of a loop, one after the other, and the slowest ones with the parts that grew.

use crate::nest::{loop_time, part};
use crate::{JsonWriter, Labels, nanoseconds};
use loopfold::fold::FoldedStream;
use loopfold::questions::iterations::{Grown, Iteration, LoopPlace, LoopTimes, SlowIterations};
use loopfold::questions::nest::{Nest, Node};
use loopfold::{Fold, StreamId};
use std::io::{Result, Write};
use std::ops::Range;

/// Which loop it is.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Its number among the loops of the nest, from 1.
    pub number: usize,
    /// Its node.
    pub node: usize,
}

/// Writes the loops of a class: those that are `listed`, of `found` in all.
pub fn loops_of_class<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    fold: &Fold,
    (nest, streams): (&Nest, &[StreamId]),
    listed: &[LoopPlace],
    found: usize,
) -> Result<()> {
    out.begin_object()?;
    out.key("streams")?;
    out.array(streams.iter().map(|&stream| fold.stream(stream).title()))?;
    out.field("found", found)?;
    out.key("loops")?;
    out.begin_array()?;
    for place in listed {
        out.begin_object()?;
        let (iterations, lengths, is_exact) = match nest.nodes[place.node] {
            Node::Near { near, .. } => (nest.near[near].iterations, nest.near[near].lengths, false),
            Node::Loop { times, length, .. } => ((times, times), (length, length), true),
            // None of the nodes at which there are loops.
            Node::Event(_) | Node::LeftOut(_) => ((0, 0), (0, 0), true),
        };
        out.field("loop", place.number)?;
        out.field("depth", place.depth)?;
        out.field("exact", is_exact)?;
        out.field("least_iterations", iterations.0)?;
        out.field("most_iterations", iterations.1)?;
        out.field("length", lengths.0)?;
        out.field("longest", lengths.1)?;
        out.key("body")?;
        part(out, labels, nest, nest.body(place.node), None)?;
        out.end()?;
    }
    out.end()?;
    out.end()
}

/// Begins the list of loops.
pub fn begin<W: Write>(out: &mut JsonWriter<W>) -> Result<()> {
    out.begin_object()?;
    out.key("loops")?;
    out.begin_array()
}

/// Ends the list of loops.
pub fn end<W: Write>(out: &mut JsonWriter<W>) -> Result<()> {
    out.end()?;
    out.end()
}

/// Begins the iterations of a loop in one stream, with the times of all of them.
pub fn begin_loop<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    stream: StreamId,
    nest: &Nest,
    header: Header,
    times: Option<&LoopTimes>,
) -> Result<()> {
    out.begin_object()?;
    out.field("stream", fold.stream(stream).title())?;
    body(out, fold, nest, header)?;
    out.key("time")?;
    match times {
        Some(times) => loop_time(out, fold, times)?,
        None => out.value(None::<u64>)?,
    }
    out.key("iterations")?;
    out.begin_array()
}

fn body<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, nest: &Nest, header: Header) -> Result<()> {
    out.field("loop", header.number)?;
    out.key("body")?;
    part(out, &mut Labels::new(fold.alphabet()), nest, nest.body(header.node), None)
}

/// Ends the iterations of a loop.
pub fn end_loop<W: Write>(out: &mut JsonWriter<W>) -> Result<()> {
    out.end()?;
    out.end()
}

/// Writes an iteration. `origin` is when the trace began.
pub fn iteration<W: Write>(
    out: &mut JsonWriter<W>,
    stream: &FoldedStream,
    origin: Option<i64>,
    iteration: &Iteration<'_>,
) -> Result<()> {
    out.begin_object()?;
    place(out, stream, iteration.iteration, iteration.outer, &iteration.events)?;
    out.field("iterations", iteration.iterations)?;
    starts(out, iteration.start, origin)?;
    out.field("duration_ns", iteration.time.map(nanoseconds))?;
    out.field("busy_ns", iteration.busy.map(nanoseconds))?;
    out.field("last", iteration.is_last)?;
    out.field("exception", iteration.kind)?;
    out.end()
}

/// When something began, as the source has it and since the start of the trace.
fn starts<W: Write>(out: &mut JsonWriter<W>, start: Option<i128>, origin: Option<i64>) -> Result<()> {
    out.field("start_ns", start.map(nanoseconds))?;
    out.field("since_start_ns", start.map(|start| nanoseconds(start - origin.map_or(0, i128::from))))
}

fn place<W: Write>(
    out: &mut JsonWriter<W>,
    stream: &FoldedStream,
    iteration: u64,
    outer: &[u64],
    events: &Range<u64>,
) -> Result<()> {
    out.field("iteration", iteration)?;
    out.key("outer")?;
    out.array(outer.iter().copied())?;
    out.field("first_event", stream.first_position().saturating_add(events.start))?;
    out.field("events", events.end - events.start)
}

/// Writes the slowest iterations of a loop. `origin` is when the trace began.
pub fn slow<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    nest: &Nest,
    header: Header,
    origin: Option<i64>,
    slow: &SlowIterations,
) -> Result<()> {
    out.begin_object()?;
    body(out, fold, nest, header)?;
    out.field("median_ns", slow.median)?;
    out.field("busy_median_ns", slow.busy_median)?;
    out.field("gap_median_ns", slow.gap_median)?;
    out.key("slow")?;
    out.begin_array()?;
    for slow in &slow.iterations {
        out.begin_object()?;
        out.field("stream", fold.stream(slow.stream).title())?;
        place(out, fold.stream(slow.stream), slow.iteration, &slow.outer, &slow.events)?;
        out.field("iterations", slow.iterations)?;
        starts(out, slow.start, origin)?;
        out.field("duration_ns", nanoseconds(slow.time))?;
        out.field("busy_ns", slow.busy.map(nanoseconds))?;
        out.field("last", slow.is_last)?;
        out.field("exception", slow.kind)?;
        out.key("grown")?;
        out.begin_array()?;
        for grown in &slow.grown {
            grown_part(out, fold, nest, grown)?;
        }
        out.end()?;
        out.end()?;
    }
    out.end()?;
    out.end()
}

fn grown_part<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, nest: &Nest, grown: &Grown) -> Result<()> {
    out.begin_object()?;
    out.key("part")?;
    match grown.node {
        Some(node) => part(out, &mut Labels::new(fold.alphabet()), nest, node..nest.after(node), None)?,
        None => out.array(["exception"])?,
    }
    out.field("which", grown.which.id())?;
    out.field("duration_ns", nanoseconds(grown.time))?;
    out.field("median_ns", grown.median)?;
    out.end()
}
