//! `loopfold iterations --slow K`: the slowest iterations, and what grew in them.

use super::{Shown, describe, numbered};
use crate::args::{Form, IterationsArgs};
use crate::show::{self, Labels};
use crate::tables;
use anyhow::Result;
use loopfold::questions::iterations::{Grown, PartTime, SlowIteration, SlowIterations, loop_places};
use loopfold::questions::nest::Node;
use loopfold_json::iterations as json;
use std::io::Write;

/// Parts that are shown of an iteration.
const MOST_PARTS: usize = 4;

pub(super) fn print(
    arguments: &IterationsArgs,
    shown: &[Shown<'_>],
    labels: &Labels<'_>,
    most: usize,
) -> Result<()> {
    if arguments.form.is_data() {
        return print_data(&arguments.form, shown, most);
    }
    let mut out = show::stdout();
    let width = show::line_width();
    for loop_of_class in shown.iter().filter(|shown| shown.has_selected()) {
        let slow = loop_of_class.slow(&loop_of_class.streams, most)?;
        heading(&mut out, loop_of_class, width)?;
        writeln!(out, "{}", describe(&loop_of_class.nest, labels, &loop_of_class.chosen, width))?;
        if let Some(median) = slow.median {
            writeln!(out, "median {}", show::duration(median.round() as i128))?;
        }
        for iteration in &slow.iterations {
            one(&mut out, loop_of_class, &slow, iteration, labels)?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}

/// The streams of a class.
fn heading(out: &mut impl Write, shown: &Shown<'_>, width: usize) -> Result<()> {
    let bold = anstyle::Style::new().bold();
    let titles: Vec<String> =
        shown.streams.iter().take(50).map(|&stream| show::plain(shown.title(stream))).collect();
    let several = match shown.streams.len() {
        1 => String::new(),
        count => format!(" ({count} streams)"),
    };
    let titles = show::shorten(&titles.join(", "), width.saturating_sub(several.len()));
    Ok(writeln!(out, "{bold}{titles}{bold:#}{several}")?)
}

fn one(
    out: &mut impl Write,
    shown: &Shown<'_>,
    all: &SlowIterations,
    slow: &SlowIteration,
    labels: &Labels<'_>,
) -> Result<()> {
    let bold = anstyle::Style::new().bold();
    let name = numbered(slow.iteration, slow.iterations, &slow.outer);
    let position = shown.fold.whole_position(slow.stream, slow.events.start);
    let stream = if shown.streams.len() > 1 {
        format!(" of {}", show::plain(shown.title(slow.stream)))
    } else {
        String::new()
    };
    let since = shown.since_start(slow.start);
    let since = since.map(|since| format!("{}, ", show::duration(since))).unwrap_or_default();
    let ratio = all
        .median
        .filter(|&median| median > 0.0)
        .map(|median| format!(" · {} of the median", show::percent(slow.time as f64 / median)));
    let width = show::line_width();
    writeln!(
        out,
        "{bold}{name}{stream}{bold:#}  {} at {since}event {}{}",
        show::duration(slow.time),
        show::count(position),
        ratio.unwrap_or_default(),
    )?;
    if let Some(kind) = shown.exception(slow.kind, labels, width.saturating_sub(4)) {
        writeln!(out, "    {kind}")?;
    }
    if let (Some(busy), Some(busy_median), Some(gap_median)) = (slow.busy, all.busy_median, all.gap_median) {
        let beside = |name: &str, time: i128, median: f64| {
            format!("{name} {} (median {})", show::duration(time), show::duration(median.round() as i128))
        };
        let (busy, gaps) = (beside("busy", busy, busy_median), beside("gaps", slow.time - busy, gap_median));
        writeln!(out, "    {busy} · {gaps}")?;
    }
    for grown in slow.grown.iter().take(MOST_PARTS) {
        let by = show::duration(grown.by().round() as i128);
        let times = format!(
            "({}, median {})",
            show::duration(grown.time),
            show::duration(grown.median.round() as i128)
        );
        let preposition = match grown.which {
            PartTime::Inside => "in",
            PartTime::After => "after",
            PartTime::Span => "from",
        };
        let used = by.chars().count() + times.chars().count() + preposition.len() + 9;
        let room = width.saturating_sub(used).max(20);
        writeln!(out, "    + {by} {preposition} {} {times}", part(shown, grown, labels, room))?;
    }
    Ok(())
}

fn part(shown: &Shown<'_>, grown: &Grown, labels: &Labels<'_>, room: usize) -> String {
    let Some(node) = grown.node else { return "the exception that follows".to_string() };
    match shown.nest.nodes[node] {
        Node::Event(symbol) => show::shorten_name(&labels.of(symbol), room),
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

fn print_data(form: &Form, shown: &[Shown<'_>], most: usize) -> Result<()> {
    tables::print_answer(form, "iterations", "slow", |out| {
        json::begin(out)?;
        for loop_of_class in shown {
            let slow = loop_of_class.slow(&loop_of_class.streams, most)?;
            let (nest, header) = (&loop_of_class.nest, loop_of_class.header());
            json::slow(out, loop_of_class.fold, nest, header, loop_of_class.origin, &slow)?;
        }
        Ok(json::end(out)?)
    })
}
