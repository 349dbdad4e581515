//! A loop nest: events are strings, loops objects with `times` and `body`, what is left out an
//! object with `left_out`. Loops whose times are known have `time`.
//!
//! The nest is walked in the order of its nodes with a stack of the loops that are open.
//! Cost: O(nodes), and O(log loops) for each loop to find its times; memory O(depth).

use crate::{JsonWriter, Labels, nanoseconds};
use loopfold::questions::iterations::LoopTimes;
use loopfold::questions::nest::{Nest, Node};
use std::io::{Result, Write};

/// Writes a nest as an array. The times are in the order of their nodes.
pub fn nest<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    nest: &Nest,
    times: &[LoopTimes],
) -> Result<()> {
    // Which nodes the open loops are, and where they end.
    let mut open: Vec<(usize, usize)> = Vec::new();
    out.begin_array()?;
    for (at, node) in nest.nodes.iter().enumerate() {
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
        }
    }
    while let Some((node, _)) = open.pop() {
        end_loop(out, node, times)?;
    }
    out.end()
}

fn end_loop<W: Write>(out: &mut JsonWriter<W>, node: usize, times: &[LoopTimes]) -> Result<()> {
    out.end()?;
    if let Ok(index) = times.binary_search_by_key(&node, |times| times.node) {
        out.key("time")?;
        loop_time(out, &times[index])?;
    }
    out.end()
}

fn loop_time<W: Write>(out: &mut JsonWriter<W>, times: &LoopTimes) -> Result<()> {
    let spread = &times.times;
    out.begin_object()?;
    out.field("total_ns", nanoseconds(spread.total))?;
    out.field("iterations", spread.count)?;
    out.field("mean_ns", spread.mean())?;
    out.field("deviation_ns", spread.deviation())?;
    out.field("median_ns", times.median)?;
    out.field("min_ns", nanoseconds(spread.minimum))?;
    out.field("max_ns", nanoseconds(spread.maximum))?;
    out.field("slowest", times.slowest.map(|slowest| slowest.iteration))?;
    out.field("slowest_start", times.slowest.map(|slowest| slowest.position))?;
    out.field("shared", times.shared)?;
    out.end()
}
