//! Prints a loop nest on a terminal.
//!
//! What fits on a line is written as in the papers, `(N K I D)^160`; a larger loop
//! has a heading with its count and what it covers, a line with its times, and its body
//! indented. Long bodies are shortened to their beginning, their end and the loops that matter,
//! with the number of events left out. No line is longer than the terminal is wide.

use super::{Labels, count, duration, near, percent, plain, plural, shorten, spread, wrapped};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::iterations::{ClassTimes, LoopTimes, Phase, Scope, Slowest};
use loopfold::questions::nest::{Nest, Node};
use std::io::Write;
use std::ops::Range;

const LOOP: Style = AnsiColor::Cyan.on_default().bold();
const NOTE: Style = AnsiColor::Green.on_default();
const LESS: Style = Style::new().dimmed();
const EXCEPTION: Style = AnsiColor::Yellow.on_default();

/// How much to show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Characters of a line.
    pub(crate) width: usize,
    /// Everything.
    pub(crate) full: bool,
    /// Loops down to this depth.
    pub(crate) depth: usize,
}

/// Rows shown of a body: its first ones, its last ones, and the largest loops between;
/// the deeper the body, the fewer.
struct Rows {
    first: usize,
    last: usize,
    loops: usize,
}

const ROWS: [Rows; 3] = [
    Rows { first: 6, last: 3, loops: 8 },
    Rows { first: 5, last: 3, loops: 4 },
    Rows { first: 4, last: 2, loops: 2 },
];

/// A loop that covers this much of the events has a row of its own.
const LARGE: f64 = 0.01;
/// A loop that covers this much of the events or of the time is written out, and has a
/// remark, in whatever it lies.
const IMPORTANT: f64 = 0.05;
/// Labels up to this long are written several to a line.
const SHORT_LABEL: usize = 12;

/// What is to be shown with the loops of a class.
pub(crate) struct ClassView<'a> {
    /// The fold that has the class.
    pub(crate) fold: &'a Fold,
    /// The nest.
    pub(crate) nest: &'a Nest,
    /// The events of a stream.
    pub(crate) events: u64,
    /// The times of the class.
    pub(crate) times: &'a ClassTimes,
}

/// Prints nests.
pub(crate) struct NestPrinter<'a, W> {
    out: W,
    view: ClassView<'a>,
    labels: &'a Labels<'a>,
    settings: Settings,
    /// What is written between the events of a line.
    separator: &'static str,
    /// Whether several events go on a line.
    packed: bool,
}

/// A line, or a loop of several lines.
struct Row {
    text: Option<String>,
    nodes: Range<usize>,
    /// How many events of the stream, over all repetitions, it stands for.
    share: f64,
    /// The loop that has the row to itself.
    loop_at: Option<usize>,
}

impl<'a, W: Write> NestPrinter<'a, W> {
    /// Prints to `out`.
    pub(crate) fn new(out: W, view: ClassView<'a>, labels: &'a Labels<'a>, settings: Settings) -> Self {
        let (mut longest, mut blanks) = (0, false);
        for node in view.nest.nodes.iter().take(10_000) {
            if let Node::Event(symbol) = node {
                let label = labels.of(*symbol);
                longest = longest.max(label.chars().count());
                blanks |= label.contains(' ');
            }
        }
        let separator = match longest {
            0 | 1 => "",
            _ if blanks => ", ",
            _ => " ",
        };
        Self { out, view, labels, settings, separator, packed: longest <= SHORT_LABEL }
    }

    /// Prints the whole nest.
    pub(crate) fn print(mut self) -> Result<()> {
        self.body(0..self.view.nest.nodes.len(), 1, 1.0, 0)
    }

    /// Prints a body. `repeated` is how often it is unfolded.
    fn body(&mut self, range: Range<usize>, indent: usize, repeated: f64, depth: usize) -> Result<()> {
        let rows = self.rows(range, indent, repeated, depth);
        let shown = self.choose(&rows, depth);
        let mut left_out = 0..0;
        for (row, shown) in rows.iter().zip(shown) {
            if !shown {
                if left_out.is_empty() {
                    left_out = row.nodes.clone();
                }
                left_out.end = row.nodes.end;
                continue;
            }
            self.left_out(std::mem::take(&mut left_out), indent)?;
            self.row(row, indent, repeated, depth)?;
        }
        self.left_out(left_out, indent)
    }

    fn row(&mut self, row: &Row, indent: usize, repeated: f64, depth: usize) -> Result<()> {
        let pad = padding(indent);
        match (&row.text, row.loop_at) {
            (Some(text), None) => writeln!(self.out, "{pad}{text}")?,
            (Some(text), Some(at)) => {
                let is_important = self.is_important(at, row.share);
                let remark =
                    if depth == 0 || is_important { self.remark(at, row.share, true) } else { Vec::new() };
                self.heading(text, &remark, indent)?;
                if is_important {
                    self.times(at, indent)?;
                }
            }
            (None, Some(at)) => match self.view.nest.nodes[at] {
                Node::Loop { times, length, .. } => {
                    let heading = format!("{} × ({})", count(times), plural(length, "event"));
                    self.heading(&heading, &self.remark(at, row.share, false), indent)?;
                    self.times(at, indent)?;
                    self.body(self.view.nest.body(at), indent + 1, repeated * times as f64, depth + 1)?;
                }
                Node::Near { near, .. } => self.near_loop(at, near, (indent, depth))?,
                Node::Event(_) | Node::LeftOut(_) => {}
            },
            (None, None) => {}
        }
        Ok(())
    }

    /// A loop, or the beginning of one, with a remark beside it or, if there is no room, below.
    fn heading(&mut self, text: &str, remark: &[String], indent: usize) -> Result<()> {
        let pad = padding(indent);
        write!(self.out, "{pad}{LOOP}{text}{LOOP:#}")?;
        let (used, joined) = (pad.len() + text.chars().count() + 2, remark.join(" · "));
        if joined.is_empty() {
            return Ok(writeln!(self.out)?);
        }
        if used + joined.chars().count() <= self.settings.width {
            return Ok(writeln!(self.out, "  {NOTE}{joined}{NOTE:#}")?);
        }
        writeln!(self.out)?;
        self.remarks(remark, indent)
    }

    /// Remarks on lines of their own, indented further than the body.
    fn remarks(&mut self, remarks: &[String], indent: usize) -> Result<()> {
        let pad = padding(indent + 2);
        for line in wrapped(remarks, self.settings.width.saturating_sub(pad.len()).max(20)) {
            writeln!(self.out, "{pad}{NOTE}{line}{NOTE:#}")?;
        }
        Ok(())
    }

    fn times(&mut self, at: usize, indent: usize) -> Result<()> {
        self.remarks(&self.time_remarks(at), indent)?;
        let Some(times) = self.view.times.of_loop(at) else { return Ok(()) };
        let several = self.view.times.streams.len() > 1;
        let stream = times.phases_stream.filter(|_| several);
        let stream = stream.map(|stream| format!("in {}", plain(self.view.fold.stream(stream).title())));
        self.remarks(&phase_remarks(times).into_iter().chain(stream).collect::<Vec<_>>(), indent)
    }

    /// A loop with exceptions: its numbers, the body, then the exceptions by kind.
    fn near_loop(&mut self, at: usize, near: usize, (indent, depth): (usize, usize)) -> Result<()> {
        let nest = self.view.nest;
        let near = &nest.near[near];
        let pad = padding(indent);
        let share = near.events as f64 / self.view.events.max(1) as f64;
        self.heading(&near::heading(near), &self.remark(at, share, false), indent)?;
        self.times(at, indent)?;
        let repeated = near.equal as f64;
        self.body(nest.body(at), indent + 1, repeated, depth + 1)?;
        let room = self.settings.width.saturating_sub(pad.len() + 2).max(20);
        for line in near::exceptions(near, self.labels, room, self.settings.full) {
            writeln!(self.out, "{pad}{EXCEPTION}! {line}{EXCEPTION:#}")?;
        }
        Ok(())
    }

    fn left_out(&mut self, nodes: Range<usize>, indent: usize) -> Result<()> {
        if nodes.is_empty() {
            return Ok(());
        }
        let pad = padding(indent);
        let (events, written) = (self.view.nest.length(nodes.clone()), self.view.nest.folded(nodes));
        let written = if written < events { format!(", {} written", count(written)) } else { String::new() };
        writeln!(self.out, "{pad}{LESS}… {}{written}{LESS:#}", plural(events, "event"))?;
        Ok(())
    }

    /// Divides a body into rows.
    fn rows(&self, range: Range<usize>, indent: usize, repeated: f64, depth: usize) -> Vec<Row> {
        let room = self.settings.width.saturating_sub(padding(indent).len()).max(20);
        let mut rows: Vec<Row> = Vec::new();
        let mut open = false;
        for at in self.view.nest.children(range) {
            let nodes = at..self.view.nest.after(at);
            let is_loop = self.is_loop(at);
            let share = self.share(at, repeated);
            let mut line = self.line(at, room, depth);
            if line.is_none() && depth > 0 && !self.settings.full && !self.is_important(at, share) {
                line = Some(self.summary(at, room));
            }
            let large =
                if depth == 0 || !self.packed { share >= LARGE } else { self.is_important(at, share) };
            let alone = is_loop && (large || line.is_none());
            match (rows.last_mut(), &line) {
                (Some(row), Some(line)) if self.packed && !alone && open => {
                    let text = row.text.get_or_insert_default();
                    let separator =
                        if is_loop || text.ends_with(|c: char| c.is_ascii_digit()) && text.contains('^') {
                            " "
                        } else {
                            self.separator
                        };
                    if text.chars().count() + separator.len() + line.chars().count() <= room {
                        text.push_str(separator);
                        text.push_str(line);
                        row.nodes.end = nodes.end;
                        row.share += share;
                        continue;
                    }
                }
                _ => {}
            }
            let text = line.map(|line| if is_loop { line } else { shorten(&line, self.label_room(room)) });
            rows.push(Row { text, nodes, share, loop_at: alone.then_some(at) });
            open = !alone;
        }
        rows
    }

    fn is_loop(&self, at: usize) -> bool {
        matches!(self.view.nest.nodes[at], Node::Loop { .. } | Node::Near { .. })
    }

    /// The share of a node in all events, if what it lies in occurs so often.
    fn share(&self, at: usize, repeated: f64) -> f64 {
        let events = match self.view.nest.nodes[at] {
            Node::Near { near, .. } => self.view.nest.near[near].events as f64,
            _ => repeated * self.view.nest.node_length(at) as f64,
        };
        events / self.view.events.max(1) as f64
    }

    fn label_room(&self, room: usize) -> usize {
        if self.settings.full { usize::MAX } else { room }
    }

    /// A node on one line, if it fits.
    fn line(&self, at: usize, room: usize, depth: usize) -> Option<String> {
        match self.view.nest.nodes[at] {
            Node::Event(symbol) => Some(self.labels.of(symbol)),
            Node::LeftOut(events) => Some(format!("… {}", plural(events, "event"))),
            Node::Loop { times, .. } => self.loop_line(at, &times.to_string(), room, depth),
            Node::Near { near, .. } => {
                let near = &self.view.nest.near[near];
                // Exceptions take lines of their own.
                let has_room = near.kinds.is_empty() || depth >= self.settings.depth;
                has_room.then(|| self.loop_line(at, &near::times(near), room, depth)).flatten()
            }
        }
    }

    fn loop_line(&self, at: usize, times: &str, room: usize, depth: usize) -> Option<String> {
        let body = self.view.nest.body(at);
        if depth >= self.settings.depth {
            let events = plural(self.view.nest.length(body), "event");
            return Some(format!("(… {events})^{times}"));
        }
        // Only what is short anyway is worth trying.
        if body.len() > room {
            return None;
        }
        let mut text = String::from("(");
        let mut after_loop = false;
        for (index, child) in self.view.nest.children(body.clone()).enumerate() {
            let is_loop = self.is_loop(child);
            if index > 0 {
                text.push_str(if is_loop || after_loop { " " } else { self.separator });
            }
            let line = self.line(child, room, depth + 1)?;
            if body.len() == 1 && !self.settings.full {
                text.push_str(&shorten(&line, room.saturating_sub(20)));
            } else {
                text.push_str(&line);
            }
            after_loop = is_loop;
            if text.chars().count() > room {
                return None;
            }
        }
        text.push_str(&format!(")^{times}"));
        Some(text)
    }

    fn is_important(&self, at: usize, share: f64) -> bool {
        share >= IMPORTANT || self.time_share(at).is_some_and(|share| share >= IMPORTANT)
    }

    /// A loop that is not worth more than a line.
    fn summary(&self, at: usize, room: usize) -> String {
        let (times, length) = match self.view.nest.nodes[at] {
            Node::Loop { times, length, .. } => (times.to_string(), length),
            Node::Near { near, .. } => {
                let near = &self.view.nest.near[near];
                (near::times(near), near.lengths.0)
            }
            Node::Event(_) | Node::LeftOut(_) => return String::new(),
        };
        let first = self.view.nest.nodes[self.view.nest.body(at)].iter().find_map(|node| match node {
            Node::Event(symbol) => Some(self.labels.of(*symbol)),
            _ => None,
        });
        let rest = format!(" … {} events)^{times}", count(length));
        let first = shorten(&first.unwrap_or_default(), room.saturating_sub(rest.len() + 1));
        format!("({first}{rest}")
    }

    /// Which rows to show.
    fn choose(&self, rows: &[Row], depth: usize) -> Vec<bool> {
        let limits = &ROWS[depth.min(ROWS.len() - 1)];
        let mut shown = vec![true; rows.len()];
        if self.settings.full || rows.len() <= limits.first + limits.last + limits.loops {
            return shown;
        }
        shown[limits.first..rows.len() - limits.last].fill(false);
        let mut loops: Vec<usize> =
            (0..rows.len()).filter(|&at| rows[at].loop_at.is_some() && rows[at].share >= LARGE).collect();
        loops.sort_by(|&a, &b| rows[b].share.total_cmp(&rows[a].share));
        loops.iter().take(limits.loops).for_each(|&at| shown[at] = true);
        // A gap of one row is no shorter than the row.
        for at in 1..rows.len() - 1 {
            if !shown[at] && shown[at - 1] && shown[at + 1] {
                shown[at] = true;
            }
        }
        shown
    }

    /// The remark on a loop: its size, where the heading has not, and its shares.
    fn remark(&self, at: usize, share: f64, with_size: bool) -> Vec<String> {
        let mut parts = Vec::new();
        if let Node::Loop { length, .. } = self.view.nest.nodes[at]
            && with_size
            && length > 1
        {
            parts.push(format!("{} events each", count(length)));
        }
        parts.push(format!("{} of the events", percent(share.min(1.0))));
        parts.extend(self.time_share(at).map(|share| format!("{} of the time", percent(share))));
        parts
    }

    /// The share of a loop in the time of all streams.
    fn time_share(&self, at: usize) -> Option<f64> {
        let (all, times) = (self.view.times.total(), self.view.times.of_loop(at)?);
        // If its times include other loops, its part of the time is not known.
        let known = all > 0 && times.scope == Scope::Own;
        known.then(|| (times.times.total as f64 / all as f64).min(1.0))
    }

    /// The times of the iterations of a loop: `median 27.8 ms · 24.4 to 34.7 · slowest #0`.
    fn time_remarks(&self, at: usize) -> Vec<String> {
        let Some(times) = self.view.times.of_loop(at) else { return Vec::new() };
        let several = self.view.times.streams.len() > 1;
        let title = |stream| plain(self.view.fold.stream(stream).title());
        let mut remarks = middle_and_spread(times);
        remarks.extend(times.slowest.as_ref().map(|slowest| match several {
            true => format!("slowest {} of {}", numbered(slowest), title(slowest.stream)),
            false => format!("slowest {}", numbered(slowest)),
        }));
        remarks.extend(busy_share(times).map(|share| format!("busy {}", percent(share))));
        if let Some([(shortest, least), (longest, most)]) = times.streams.filter(|_| several) {
            remarks.push(match (duration(least), duration(most)) {
                (least, most) if least == most => format!("{most} a stream"),
                (least, most) => {
                    format!("{least} ({}) to {most} ({}) a stream", title(shortest), title(longest))
                }
            });
        }
        remarks.extend(match times.scope {
            Scope::Own => None,
            Scope::OtherPlaces => Some("in all places of this loop".to_string()),
            Scope::OtherStreams => Some("in all streams with this loop".to_string()),
        });
        remarks
    }
}

/// The blanks before a line; what lies deeper is not indented further.
fn padding(indent: usize) -> String {
    "  ".repeat(indent.min(16))
}

/// A loop that is idle for less than this share of its time has no remark on it.
const IDLE: f64 = 0.01;

/// For how much of its time events of a loop were open, if they were not nearly always.
pub(crate) fn busy_share(times: &LoopTimes) -> Option<f64> {
    let total = times.times.total;
    let share = times.busy.filter(|_| total > 0)? as f64 / total as f64;
    (share <= 1.0 - IDLE).then_some(share)
}

/// The median of the iterations of a loop, the fastest and the slowest: `median 27.8 ms`,
/// `24.4 to 34.7`.
pub(crate) fn middle_and_spread(times: &LoopTimes) -> Vec<String> {
    let (middle, text) = middle(times);
    let mut remarks = vec![text];
    if times.times.minimum != times.times.maximum {
        remarks.push(spread(times.times.minimum, middle, times.times.maximum));
    }
    remarks
}

/// The phases of a loop, if there are several: `#0 to #195 median 95.0 ms`.
pub(crate) fn phase_remarks(times: &LoopTimes) -> Vec<String> {
    let remark = |phase: &Phase| {
        let median = duration(phase.median.round() as i128);
        format!("#{} to #{} median {median}", count(phase.first), count(phase.last))
    };
    times.phases.iter().map(remark).collect()
}

/// One number for all iterations, also in words: the median, or the mean where that is not known.
fn middle(times: &LoopTimes) -> (i128, String) {
    let rounded = |number: f64| number.round() as i128;
    if let Some(median) = times.median {
        return (rounded(median), format!("median {}", duration(rounded(median))));
    }
    let mean = rounded(times.times.mean().unwrap_or_default());
    let deviation = times.times.deviation().map(|deviation| format!(" ± {}", duration(rounded(deviation))));
    (mean, format!("mean {}{}", duration(mean), deviation.unwrap_or_default()))
}

/// Which iteration it is, and of which iterations of the loops around it: `#147 in #3`.
fn numbered(slowest: &Slowest) -> String {
    let numbers = std::iter::once(&slowest.iteration).chain(slowest.outer.iter().rev());
    let numbers: Vec<String> = numbers.map(|&number| format!("#{}", count(number))).collect();
    numbers.join(" in ")
}
