//! Every iteration of a loop, one after the other, and the slowest ones with the parts that grew.

use crate::nest::part;
use crate::{JsonWriter, Labels, nanoseconds};
use loopfold::fold::FoldedStream;
use loopfold::questions::iterations::{Grown, Iteration, SlowIteration};
use loopfold::questions::nest::Nest;
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

/// Begins the iterations of a loop in one stream.
pub fn begin_loop<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    stream: StreamId,
    nest: &Nest,
    header: Header,
) -> Result<()> {
    out.begin_object()?;
    out.field("stream", fold.stream(stream).title())?;
    body(out, fold, nest, header)?;
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

/// Writes an iteration.
pub fn iteration<W: Write>(
    out: &mut JsonWriter<W>,
    stream: &FoldedStream,
    iteration: &Iteration<'_>,
) -> Result<()> {
    out.begin_object()?;
    place(out, stream, iteration.iteration, iteration.outer, &iteration.events)?;
    out.field("iterations", iteration.iterations)?;
    out.field("start_ns", iteration.start.map(nanoseconds))?;
    out.field("duration_ns", iteration.time.map(nanoseconds))?;
    out.field("busy_ns", iteration.busy.map(nanoseconds))?;
    out.field("last", iteration.is_last)?;
    out.field("exception", iteration.kind)?;
    out.end()
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

/// Writes the slowest iterations of a loop.
pub fn slow<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    nest: &Nest,
    header: Header,
    median: Option<f64>,
    slow: &[(StreamId, SlowIteration)],
) -> Result<()> {
    out.begin_object()?;
    body(out, fold, nest, header)?;
    out.field("median_ns", median)?;
    out.key("slow")?;
    out.begin_array()?;
    for (stream, slow) in slow {
        out.begin_object()?;
        out.field("stream", fold.stream(*stream).title())?;
        place(out, fold.stream(*stream), slow.iteration, &slow.outer, &slow.events)?;
        out.field("start_ns", slow.start.map(nanoseconds))?;
        out.field("duration_ns", nanoseconds(slow.time))?;
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
    out.field("duration_ns", nanoseconds(grown.time))?;
    out.field("median_ns", grown.median)?;
    out.end()
}
