//! A loop nest: events are strings, loops objects with `times` and `body`, what is left out an
//! object with `left_out`. Loops with exceptions have `near`, their place in the list of these,
//! instead of `times`. Loops whose times are known have `time`.
//!
//! The nest is walked in the order of its nodes with a stack of the loops that are open.
//! Cost: O(nodes), and O(log loops) for each loop to find its times; memory O(depth).

use crate::{JsonWriter, Labels, nanoseconds};
use loopfold::Fold;
use loopfold::questions::iterations::{ClassTimes, LoopTimes, Phase, Scope, Slowest};
use loopfold::questions::nest::{Nest, Node};
use std::io::{Result, Write};
use std::ops::Range;

/// The times of the loops of a nest.
#[derive(Clone, Copy, Debug)]
pub struct NestTimes<'a> {
    /// The fold that has the streams.
    pub fold: &'a Fold,
    /// The times.
    pub times: &'a ClassTimes,
}

/// Writes a nest as an array, its loops with their times if there are any.
pub fn nest<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    nest: &Nest,
    times: Option<NestTimes<'_>>,
) -> Result<()> {
    part(out, labels, nest, 0..nest.nodes.len(), times)
}

/// Writes whole nodes of a nest as an array.
pub(crate) fn part<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    nest: &Nest,
    range: Range<usize>,
    times: Option<NestTimes<'_>>,
) -> Result<()> {
    // Which nodes the open loops are, and where they end.
    let mut open: Vec<(usize, usize)> = Vec::new();
    out.begin_array()?;
    for (at, node) in range.clone().zip(&nest.nodes[range]) {
        while let Some((node, _)) = open.pop_if(|(_, end)| *end == at) {
            end_loop(out, node, times)?;
        }
        match *node {
            Node::Event(symbol) => labels.event(out, symbol)?,
            Node::LeftOut(events) => {
                out.begin_object()?;
                out.field("left_out", events)?;
                out.end()?;
            }
            Node::Loop { times, end, .. } => {
                out.begin_object()?;
                out.field("times", times)?;
                out.key("body")?;
                out.begin_array()?;
                open.push((at, end));
            }
            Node::Near { near, end } => {
                out.begin_object()?;
                out.field("near", near)?;
                out.key("body")?;
                out.begin_array()?;
                open.push((at, end));
            }
        }
    }
    while let Some((node, _)) = open.pop() {
        end_loop(out, node, times)?;
    }
    out.end()
}

fn end_loop<W: Write>(out: &mut JsonWriter<W>, node: usize, times: Option<NestTimes<'_>>) -> Result<()> {
    out.end()?;
    time(out, node, times)?;
    out.end()
}

/// The time of the loop at a node, if it is known.
pub(crate) fn time<W: Write>(
    out: &mut JsonWriter<W>,
    node: usize,
    times: Option<NestTimes<'_>>,
) -> Result<()> {
    if let Some(NestTimes { fold, times }) = times
        && let Some(times) = times.of_loop(node)
    {
        out.key("time")?;
        loop_time(out, fold, times)?;
    }
    Ok(())
}

/// The times of the iterations of a loop.
pub(crate) fn loop_time<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, times: &LoopTimes) -> Result<()> {
    let spread = &times.times;
    out.begin_object()?;
    out.field("total_ns", nanoseconds(spread.total))?;
    out.field("busy_ns", times.busy.map(nanoseconds))?;
    out.field("iterations", spread.count)?;
    out.field("mean_ns", spread.mean())?;
    out.field("deviation_ns", spread.deviation())?;
    median(out, times.median)?;
    out.field("min_ns", nanoseconds(spread.minimum))?;
    out.field("max_ns", nanoseconds(spread.maximum))?;
    out.field("slowest", times.slowest.as_ref().map(|slowest| slowest.iteration))?;
    if let Some(slowest) = &times.slowest {
        out.key("slowest_outer")?;
        out.array(slowest.outer.iter().copied())?;
    }
    let position = |slowest: &Slowest| fold.whole_position(slowest.stream, slowest.position);
    out.field("slowest_start", times.slowest.as_ref().map(position))?;
    out.field("slowest_stream", times.slowest.as_ref().map(|slowest| fold.stream(slowest.stream).title()))?;
    phases(out, &times.phases)?;
    out.field("phases_stream", times.phases_stream.map(|stream| fold.stream(stream).title()))?;
    out.field("shared", times.scope != Scope::Own)?;
    out.field("other_streams", times.scope == Scope::OtherStreams)?;
    out.end()
}

/// Iterations between which the program changed its pace.
fn phases<W: Write>(out: &mut JsonWriter<W>, phases: &[Phase]) -> Result<()> {
    out.key("phases")?;
    out.begin_array()?;
    for phase in phases {
        out.begin_object()?;
        out.field("first", phase.first)?;
        out.field("last", phase.last)?;
        median(out, Some(phase.median))?;
        out.end()?;
    }
    out.end()
}

/// Whole floats up to here are written without a point.
const LARGEST_WHOLE: f64 = (1u64 << 53) as f64;

/// The mean of the middle two need not be whole.
fn median<W: Write>(out: &mut JsonWriter<W>, median: Option<f64>) -> Result<()> {
    match median {
        Some(median) if median.fract() == 0.0 && median.abs() <= LARGEST_WHOLE => {
            out.field("median_ns", median as i64)
        }
        median => out.field("median_ns", median),
    }
}
