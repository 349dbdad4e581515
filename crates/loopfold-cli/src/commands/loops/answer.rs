//! The first line of `loops`: how many streams there are, and the loop that most of them spend
//! their time in.

use crate::show::{self, Labels};
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::classes::Class;
use loopfold::questions::iterations::{ClassTimes, Scope};
use loopfold::questions::largest::{LargestLoop, largest_loops};
use loopfold::questions::nest::{Nest, Node};
use std::io::Write;
use std::ops::RangeInclusive;

/// If no loop covers more than this share of the events and of the time, the largest ones are
/// listed, wherever they are.
const HARDLY_ANY: f64 = 0.2;
/// Rows of that list.
const LARGEST: usize = 8;
/// Different main loops that are named, and the least share of all events that each must cover.
const NAMED: usize = 3;
const LEAST_NAMED: f64 = 0.05;

/// The main loop of a class.
pub(super) struct MainLoop {
    streams: usize,
    /// The name of the first stream.
    title: String,
    /// Such as `≈ 200`; `None` if there is no loop.
    times: Option<String>,
    /// The events of an iteration.
    lengths: RangeInclusive<u64>,
    /// The events of the loop and of the stream, in all streams of the class.
    events: [f64; 2],
    /// The time of the loop and of all streams, if known.
    time: Option<[f64; 2]>,
}

impl MainLoop {
    pub(super) fn of(fold: &Fold, class: &Class, nest: &Nest, times: &ClassTimes) -> Self {
        let streams = class.streams.len();
        let title = class.streams.first().map(|&stream| show::plain(fold.stream(stream).title()));
        let is_loop = |at: &usize| matches!(nest.nodes[*at], Node::Loop { .. } | Node::Near { .. });
        let loops = nest.children(0..nest.nodes.len()).filter(is_loop);
        let main = loops.max_by_key(|&at| (nest.node_length(at), std::cmp::Reverse(at)));
        let (number, lengths) = match main.map(|at| nest.nodes[at]) {
            Some(Node::Loop { times, length, .. }) => (Some(show::count(times)), length..=length),
            Some(Node::Near { near, .. }) => {
                let near = &nest.near[near];
                let about = if near.kinds.is_empty() { "" } else { "≈ " };
                (Some(format!("{about}{}", show::near_times(near))), near.lengths.0..=near.lengths.1)
            }
            _ => (None, 0..=0),
        };
        let of_time = main.and_then(|at| times.of_loop(at)).filter(|times| times.scope == Scope::Own);
        let all = times.total() as f64;
        let whole = |events: u64| events as f64 * streams as f64;
        Self {
            streams,
            title: title.unwrap_or_default(),
            times: number,
            lengths,
            events: [whole(main.map_or(0, |at| nest.node_length(at))), whole(class.events)],
            time: of_time.filter(|_| all > 0.0).map(|times| [times.times.total as f64, all]),
        }
    }

    fn shares(&self) -> [Option<f64>; 2] {
        let share = |[part, whole]: [f64; 2]| (whole > 0.0).then(|| (part / whole).min(1.0));
        [share(self.events), self.time.and_then(share)]
    }

    /// Whether hardly anything of the class is a loop.
    pub(super) fn is_small(&self) -> bool {
        self.events[1] > 0.0 && self.shares().into_iter().flatten().all(|share| share < HARDLY_ANY)
    }
}

/// Prints the line on all classes. `left_out` streams are of others.
pub(super) fn print(out: &mut impl Write, classes: &[MainLoop], left_out: usize, width: usize) -> Result<()> {
    let bold = anstyle::Style::new().bold();
    if classes.is_empty() {
        return Ok(writeln!(out, "no events")?);
    }
    let line = [streams(classes, left_out), main_loops(classes, left_out)].concat();
    for line in show::wrapped(&line, width) {
        writeln!(out, "{bold}{line}{bold:#}")?;
    }
    Ok(())
}

/// How many streams there are, and how many kinds of them.
fn streams(classes: &[MainLoop], left_out: usize) -> Vec<String> {
    let streams = classes.iter().map(|class| class.streams).sum::<usize>() + left_out;
    let are_ranks = classes.iter().all(|class| class.title.starts_with("rank "));
    let noun = if are_ranks { "rank" } else { "stream" };
    match (classes, streams) {
        ([only], 1) => vec![only.title.clone()],
        _ if left_out > 0 => vec![show::plural(streams as u64, noun)],
        ([_], _) => vec![format!("{}, all with the same events", show::plural(streams as u64, noun))],
        _ => vec![format!(
            "{}, {}",
            show::plural(streams as u64, noun),
            show::plural(classes.len() as u64, "class")
        )],
    }
}

/// The main loops, those with the most events first.
fn main_loops(classes: &[MainLoop], left_out: usize) -> Vec<String> {
    let mut groups: Vec<Vec<&MainLoop>> = Vec::new();
    for class in classes.iter().filter(|class| class.times.is_some() && !class.is_small()) {
        match groups.iter_mut().find(|group| group[0].times == class.times) {
            Some(group) => group.push(class),
            None => groups.push(vec![class]),
        }
    }
    let all: f64 = classes.iter().map(|class| class.events[1]).sum();
    groups.retain(|group| events_of(group)[0] >= LEAST_NAMED * all);
    if groups.is_empty() {
        let most = classes.iter().filter_map(|class| class.shares()[0]).fold(0.0, f64::max);
        return match most {
            _ if all == 0.0 => vec!["no events".to_string()],
            0.0 => vec!["no loops".to_string()],
            _ => vec![format!("no loop covers more than {} of the events", show::percent(most))],
        };
    }
    groups.sort_by(|a, b| events_of(b)[0].total_cmp(&events_of(a)[0]));
    let everything = groups[0].len() == classes.len() && left_out == 0;
    groups.iter().take(NAMED).map(|group| main_loop(group, everything, classes.len())).collect()
}

fn events_of(group: &[&MainLoop]) -> [f64; 2] {
    group.iter().fold([0.0; 2], |[part, whole], class| [part + class.events[0], whole + class.events[1]])
}

/// Such as `all: 249 × (406 to 812 events), 98.5 % of the time`.
fn main_loop(group: &[&MainLoop], everything: bool, classes: usize) -> String {
    let streams: usize = group.iter().map(|class| class.streams).sum();
    let whose = match everything {
        true if classes > 1 => "all: ".to_string(),
        true => String::new(),
        false if streams == 1 => format!("{}: ", show::shorten(&group[0].title, 30)),
        false => format!("{streams} of them: "),
    };
    let (mut least, mut most) = (u64::MAX, 0);
    for class in group {
        (least, most) = (least.min(*class.lengths.start()), most.max(*class.lengths.end()));
    }
    let events = match least == most {
        true => show::plural(most, "event"),
        false => format!("{} to {}", show::count(least), show::plural(most, "event")),
    };
    let times: Option<Vec<[f64; 2]>> = group.iter().map(|class| class.time).collect();
    let (parts, noun) = match times {
        Some(times) => (times, "time"),
        None => (group.iter().map(|class| class.events).collect(), "events"),
    };
    let [part, whole] = parts.iter().fold([0.0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    let share = show::percent((part / whole.max(1.0)).min(1.0));
    let number = group[0].times.as_deref().unwrap_or_default();
    format!("{whose}{number} × ({events}), {share} of the {noun}")
}

/// Lists the largest loops of a class, wherever they are.
pub(super) fn print_largest(
    out: &mut impl Write,
    fold: &Fold,
    class: &Class,
    labels: &Labels<'_>,
    width: usize,
) -> Result<()> {
    let loops = largest_loops(fold, class.root)?;
    if loops.is_empty() {
        return Ok(());
    }
    writeln!(out, "  the largest loops, wherever they are")?;
    writeln!(out, "  {:>7}  {:>13}  {:>10}  {:>11}  body", "share", "iterations", "executions", "first at")?;
    for entry in loops.iter().take(LARGEST) {
        let LargestLoop { covered, executions, iterations: (least, most), first, .. } = *entry;
        let share = show::percent(covered as f64 / class.events.max(1) as f64);
        let iterations =
            if least == most { show::count(most) } else { [least, most].map(show::count).join("..") };
        let [executions, first] = [executions, first].map(show::count);
        let room = width.saturating_sub(53).max(20);
        let body = show::body_line(fold, entry.body, labels, room);
        writeln!(out, "  {share:>7}  {iterations:>13}  {executions:>10}  {first:>11}  {body}")?;
    }
    if loops.len() > LARGEST {
        writeln!(out, "  … and {} more", show::count((loops.len() - LARGEST) as u64))?;
    }
    Ok(())
}
