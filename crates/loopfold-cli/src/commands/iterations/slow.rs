//! `loopfold iterations --slow K`: the slowest iterations, and what grew in them.

use super::{Shown, describe, numbered};
use crate::args::IterationsArgs;
use crate::show::{self, Labels};
use anyhow::Result;
use loopfold::StreamId;
use loopfold::questions::iterations::{
    Grown, LoopTimes, SlowIteration, loop_places, loop_times, slow_iterations,
};
use loopfold::questions::nest::Node;
use loopfold_json::iterations as json;
use std::cmp::Reverse;
use std::io::Write;

/// Parts that are shown of an iteration.
const MOST_PARTS: usize = 4;

pub(super) fn print(
    arguments: &IterationsArgs,
    shown: &[Shown<'_>],
    labels: &Labels<'_>,
    most: usize,
) -> Result<()> {
    if arguments.json.on {
        return print_json(shown, most);
    }
    let mut out = anstream::stdout().lock();
    for loop_of_class in shown {
        let slow = loop_of_class.slow(most)?;
        let width = show::line_width();
        writeln!(out, "{}", describe(&loop_of_class.nest, labels, &loop_of_class.chosen, width))?;
        let median = loop_of_class.times()?.and_then(|times| times.median);
        if let Some(median) = median {
            writeln!(out, "median {}", show::duration(median.round() as i128))?;
        }
        for (stream, iteration) in &slow {
            one(&mut out, loop_of_class, (*stream, iteration), median, labels)?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}

fn one(
    out: &mut impl Write,
    shown: &Shown<'_>,
    (stream, slow): (StreamId, &SlowIteration),
    median: Option<f64>,
    labels: &Labels<'_>,
) -> Result<()> {
    let bold = anstyle::Style::new().bold();
    let name = numbered(slow.iteration, 1, &slow.outer);
    let position = shown.fold.whole_position(stream, slow.events.start);
    let stream = if shown.streams.len() > 1 {
        format!(" of {}", show::plain(shown.title(stream)))
    } else {
        String::new()
    };
    let ratio = median
        .filter(|&median| median > 0.0)
        .map(|median| format!(", {} of the median", show::percent(slow.time as f64 / median)));
    let width = show::line_width();
    writeln!(
        out,
        "{bold}{name}{stream}{bold:#}  {} at event {}{}",
        show::duration(slow.time),
        show::count(position),
        ratio.unwrap_or_default(),
    )?;
    if let Some(kind) = shown.exception(slow.kind, labels) {
        writeln!(out, "    {}", show::shorten(&kind, width.saturating_sub(4)))?;
    }
    for grown in slow.grown.iter().take(MOST_PARTS) {
        let by = show::duration(grown.by().round() as i128);
        let times = format!(
            "({}, median {})",
            show::duration(grown.time),
            show::duration(grown.median.round() as i128)
        );
        let room = width.saturating_sub(by.chars().count() + times.chars().count() + 11).max(20);
        writeln!(out, "    + {by} in {} {times}", part(shown, grown, labels, room))?;
    }
    Ok(())
}

fn part(shown: &Shown<'_>, grown: &Grown, labels: &Labels<'_>, room: usize) -> String {
    let Some(node) = grown.node else { return "the exception that follows".to_string() };
    match shown.nest.nodes[node] {
        Node::Event(symbol) => show::shorten(&labels.of(symbol), room),
        _ => loop_places(&shown.nest).iter().find(|chosen| chosen.node == node).map_or(
            String::new(),
            |chosen| {
                let name = format!("loop {}: ", chosen.number);
                let room = room.saturating_sub(name.len());
                name + &describe(&shown.nest, labels, chosen, room)
            },
        ),
    }
}

impl Shown<'_> {
    /// The slowest iterations of all streams of the class.
    fn slow(&self, most: usize) -> Result<Vec<(StreamId, SlowIteration)>> {
        let mut all = Vec::new();
        for &stream in &self.streams {
            let times = self.fold.stream(stream).times();
            let slow = slow_iterations(&self.nest, times, self.chosen.node, most)?;
            all.extend(slow.into_iter().map(|slow| (stream, slow)));
        }
        all.sort_by_key(|(stream, slow)| (Reverse(slow.time), *stream, slow.events.start));
        all.truncate(most);
        Ok(all)
    }

    fn times(&self) -> Result<Option<LoopTimes>> {
        let streams = self.streams.iter().map(|&stream| (stream, self.fold.stream(stream).times()));
        let times = loop_times(&self.nest, streams)?;
        Ok(times.and_then(|times| times.of_loop(self.chosen.node).cloned()))
    }
}

fn print_json(shown: &[Shown<'_>], most: usize) -> Result<()> {
    show::print_json_line(|out| {
        json::begin(out)?;
        for loop_of_class in shown {
            let slow = loop_of_class.slow(most)?;
            let median = loop_of_class.times()?.and_then(|times| times.median);
            json::slow(out, loop_of_class.fold, &loop_of_class.nest, loop_of_class.header(), median, &slow)?;
        }
        Ok(json::end(out)?)
    })
}
