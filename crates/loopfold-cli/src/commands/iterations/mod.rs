//! `loopfold iterations`: every iteration of a loop, or the slowest ones and why.
//!
//! `slow` is `--slow`, `describe` prints a loop in a line.

mod describe;
mod slow;

use super::loops;
use crate::args::{Form, IterationsArgs};
use crate::show::{self, JsonOut, Labels};
use crate::{Outcome, input, tables};
use anyhow::{Result, bail};
use describe::describe;
use loopfold::emit::Text;
use loopfold::questions::classes::{Class, by_weight};
use loopfold::questions::clock::EventClock;
use loopfold::questions::iterations::{
    Iteration, LoopPlace, LoopTimes, SlowConfig, SlowIteration, SlowIterations, WantedLoop, loop_places,
    loop_times, slow_iterations, visit_iterations,
};
use loopfold::questions::nest::{Nest, Node};
use loopfold::questions::query::no_such_event;
use loopfold::trace::{Times, TimesKept};
use loopfold::{Fold, StreamId};
use loopfold_json::iterations as json;
use std::io::Write;
use std::ops::Range;

/// A loop of a class whose iterations are shown.
struct Shown<'a> {
    fold: &'a Fold,
    nest: Nest,
    streams: Vec<StreamId>,
    chosen: LoopPlace,
    /// The iterations that are shown, of each occurrence; all if there is no selection.
    numbers: Option<Range<u64>>,
    /// When the trace began.
    origin: Option<i64>,
}

pub(super) fn run(arguments: &IterationsArgs) -> Result<Outcome> {
    let form = arguments.form.or_csv(arguments.csv);
    check_rows(&form, arguments.slow)?;
    let (mut read, wanted) = arguments.split_loop()?;
    let numbers = read.select.wanted_iterations()?;
    // Of the loop that is shown, unless another one is named: they keep their numbers.
    let selected = if read.select.within.is_none() { read.select.iterations.take() } else { None };
    let numbers = selected.as_ref().map(|_| numbers);
    let (fold, notes) = input::load(&read, TimesKept::All, &arguments.folder)?.fold(&arguments.folder)?;
    show::notes(&notes);
    let labels = Labels::new(&fold, arguments.hex.on);
    if arguments.list {
        return list(arguments, &fold, &labels);
    }
    let shown = shown(arguments, &fold, wanted.as_deref(), numbers)?;
    if shown.is_empty() {
        let why = wanted.as_deref().map_or("there are no loops".to_string(), |wanted| no_loop(&fold, wanted));
        show::notes(&[format!("{why}; `loopfold iterations --list` shows all")]);
        if form.table_format().is_some() {
            print_data(&form, 0, &[])?;
        }
        return Ok(Outcome::Nothing);
    }
    if let Some(text) = selected.filter(|_| !shown.iter().any(Shown::has_selected)) {
        bail!("--iterations {text}: {}", how_many(&shown));
    }
    if !fold
        .streams()
        .iter()
        .any(|stream| stream.times().starts.is_some() || stream.times().durations.is_some())
    {
        show::notes(&["the trace has no times of events".to_string()]);
    }
    match arguments.slow {
        Some(most) => slow::print(arguments, &shown, &labels, most)?,
        None if form.is_data() => {
            let most = if arguments.csv { usize::MAX } else { arguments.top.most() };
            print_data(&form, most, &shown)?;
        }
        None => print_table(arguments, &shown, &labels)?,
    }
    Ok(Outcome::Done)
}

/// Refuses rows that the answer does not have.
fn check_rows(form: &Form, slow: Option<usize>) -> Result<()> {
    match (form.rows(), slow) {
        (Some("slow"), None) => bail!("--rows slow needs --slow K"),
        (Some("iterations"), Some(_)) => bail!("--slow has the rows `slow`, not `iterations`"),
        _ => Ok(()),
    }
}

/// How many iterations there are: `the loop has 60 iterations, #0 to #59`.
fn how_many(shown: &[Shown<'_>]) -> String {
    let most = shown.iter().map(Shown::iterations).max().unwrap_or(0);
    let number = show::plural(most, "iteration");
    format!("the loop has {number}, #0 to #{}", show::count(most.saturating_sub(1)))
}

/// Why there is no such loop.
fn no_loop(fold: &Fold, wanted: &str) -> String {
    match WantedLoop::parse(wanted, fold.alphabet()) {
        Ok(WantedLoop::Around(events)) if events.is_empty() => no_such_event(fold.alphabet(), wanted),
        Ok(WantedLoop::Around(_)) => format!("no loop has {wanted} in it"),
        _ => format!("there is no loop {wanted}"),
    }
}

/// The loop that is meant, in each class that has it.
fn shown<'a>(
    arguments: &IterationsArgs,
    fold: &'a Fold,
    wanted: Option<&str>,
    numbers: Option<Range<u64>>,
) -> Result<Vec<Shown<'a>>> {
    let wanted = wanted.map(|wanted| WantedLoop::parse(wanted, fold.alphabet())).transpose()?;
    let wanted = wanted.unwrap_or(WantedLoop::Main);
    let mut all = Vec::new();
    let origin = EventClock::new(fold).origin()?;
    for class in by_weight(fold.classes()?) {
        let exact = arguments.exact || arguments.folder.is_chosen();
        let nest = loops::shown_nest(fold, &class, exact)?;
        if let Some(chosen) = wanted.find(&nest) {
            all.push(Shown { fold, nest, streams: class.streams, chosen, numbers: numbers.clone(), origin });
        }
    }
    Ok(all)
}

/// Lists the loops of each class with their numbers.
fn list(arguments: &IterationsArgs, fold: &Fold, labels: &Labels<'_>) -> Result<Outcome> {
    let exact = arguments.exact || arguments.folder.is_chosen();
    let of_class = |class: Class| -> Result<ListedClass> {
        let nest = loops::shown_nest(fold, &class, exact)?;
        let places = loop_places(&nest);
        Ok(ListedClass { nest, streams: class.streams, places })
    };
    let classes: Vec<ListedClass> =
        by_weight(fold.classes()?).into_iter().map(of_class).collect::<Result<_>>()?;
    let most = arguments.top.most();
    if arguments.form.is_data() {
        show::print_json_line(|out| -> Result<()> { list_data(out, fold, &classes, most) })?;
    } else {
        print_list(fold, labels, &classes, most)?;
    }
    let any = classes.iter().any(|class| !class.places.is_empty());
    Ok(if any { Outcome::Done } else { Outcome::Nothing })
}

/// The loops of a class.
struct ListedClass {
    nest: Nest,
    streams: Vec<StreamId>,
    places: Vec<LoopPlace>,
}

fn list_data(out: &mut JsonOut<'_>, fold: &Fold, classes: &[ListedClass], most: usize) -> Result<()> {
    out.begin_object()?;
    out.key("classes")?;
    out.begin_array()?;
    let mut labels = loopfold_json::Labels::new(fold.alphabet());
    for ListedClass { nest, streams, places } in classes {
        let listed = listed(nest, places, most);
        json::loops_of_class(out, &mut labels, fold, (nest, streams), &listed, places.len())?;
    }
    out.end()?;
    labels.cut_field(out)?;
    Ok(out.end()?)
}

fn print_list(fold: &Fold, labels: &Labels<'_>, classes: &[ListedClass], most: usize) -> Result<()> {
    let mut out = show::stdout();
    for ListedClass { nest, streams, places } in classes {
        let titles: Vec<String> =
            streams.iter().take(20).map(|&stream| show::plain(fold.stream(stream).title())).collect();
        let width = show::line_width();
        writeln!(out, "{}", show::shorten(&titles.join(", "), width))?;
        for chosen in listed(nest, places, most) {
            let pad = "  ".repeat(chosen.depth.min(10));
            let room = width.saturating_sub(8 + pad.len());
            writeln!(out, "{:>6}  {pad}{}", chosen.number, describe(nest, labels, &chosen, room))?;
        }
        show::more(&mut out, places.len().saturating_sub(most))?;
    }
    Ok(out.flush()?)
}

/// The loops that cover most, at most so many, in the order of the nest.
fn listed(nest: &Nest, all: &[LoopPlace], most: usize) -> Vec<LoopPlace> {
    let mut listed = all.to_vec();
    listed.sort_by_key(|chosen| (chosen.depth, std::cmp::Reverse(nest.node_length(chosen.node))));
    listed.truncate(most);
    listed.sort_by_key(|chosen| chosen.number);
    listed
}

impl Shown<'_> {
    /// Visits at most so many iterations of the loop in one of the streams. Returns whether there
    /// are more: an archive can declare any number, so the others are not counted.
    fn visit(
        &self,
        stream: StreamId,
        most: usize,
        mut visit: impl FnMut(Iteration<'_>) -> Result<()>,
    ) -> Result<bool> {
        let (mut visited, mut stopped) = (0, None);
        let ended = visit_iterations(&self.nest, self.fold.stream(stream).times(), |iteration| {
            let is_shown = self.numbers.as_ref().is_none_or(|numbers| iteration.is_in(numbers));
            if iteration.node != self.chosen.node || !is_shown {
                return Ok(());
            }
            visited += 1;
            let stop = if visited > most { Some(Ok(())) } else { visit(iteration).err().map(Err) };
            match stop {
                None => Ok(()),
                stop => {
                    stopped = stop;
                    Err(loopfold::Error::limit("enough iterations"))
                }
            }
        });
        match stopped {
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => Err(error),
            None => Ok(ended.map(|_| false)?),
        }
    }

    /// Whether some occurrence has an iteration that is selected.
    fn has_selected(&self) -> bool {
        self.numbers.as_ref().is_none_or(|numbers| numbers.start < self.iterations())
    }

    /// The most iterations of an occurrence.
    fn iterations(&self) -> u64 {
        match self.nest.nodes[self.chosen.node] {
            Node::Loop { times, .. } => times,
            Node::Near { near, .. } => self.nest.near[near].iterations.1,
            Node::Event(_) | Node::LeftOut(_) => 0,
        }
    }

    /// The times of the loop in a stream, if they are known.
    fn times(&self, stream: StreamId) -> Result<Option<LoopTimes>> {
        let times = loop_times(&self.nest, [(stream, self.fold.stream(stream).times())])?;
        Ok(times.and_then(|times| times.of_loop(self.chosen.node).cloned()))
    }

    /// The slowest iterations in some streams.
    fn slow(&self, streams: &[StreamId], most: usize) -> Result<SlowIterations> {
        let streams: Vec<(StreamId, &Times)> =
            streams.iter().map(|&stream| (stream, self.fold.stream(stream).times())).collect();
        let config = SlowConfig::new(most).numbers(self.numbers.clone());
        Ok(slow_iterations(&self.nest, &streams, self.chosen.node, &config)?)
    }

    /// How long after the start of the trace something began.
    fn since_start(&self, start: Option<i128>) -> Option<i128> {
        start.map(|start| start - self.origin.map_or(0, i128::from))
    }

    fn title(&self, stream: StreamId) -> Text<'_> {
        self.fold.stream(stream).title()
    }

    /// What an exception is, in at most `room` characters.
    fn exception(&self, kind: Option<usize>, labels: &Labels<'_>, room: usize) -> Option<String> {
        let Node::Near { near, .. } = self.nest.nodes[self.chosen.node] else { return None };
        let near = &self.nest.near[near];
        Some(show::near_change(near.kinds.get(kind?)?, labels, near.lengths.0, room))
    }
}

/// Which iteration it is, and of which iterations of the loops around it.
fn numbered(iteration: u64, iterations: u64, outer: &[u64]) -> String {
    let last = match iterations {
        1 => format!("#{}", show::count(iteration)),
        _ => format!("#{} to #{}", show::count(iteration), show::count(iteration + iterations - 1)),
    };
    let outer = outer.iter().map(|&outer| format!("#{}", show::count(outer)));
    outer.chain([last]).collect::<Vec<_>>().join(" ")
}

fn print_table(arguments: &IterationsArgs, shown: &[Shown<'_>], labels: &Labels<'_>) -> Result<()> {
    let mut out = show::stdout();
    for loop_of_class in shown.iter().filter(|shown| shown.has_selected()) {
        for &stream in &loop_of_class.streams {
            table(&mut out, arguments, loop_of_class, stream, labels)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn table(
    out: &mut impl Write,
    arguments: &IterationsArgs,
    shown: &Shown<'_>,
    stream: StreamId,
    labels: &Labels<'_>,
) -> Result<()> {
    let bold = anstyle::Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}", show::plain(shown.title(stream)))?;
    let width = show::line_width();
    writeln!(out, "{}", describe(&shown.nest, labels, &shown.chosen, width))?;
    summary(out, shown, stream)?;
    writeln!(
        out,
        "{:>13}  {:>9}  {:>9}  {:>9}  {:>13}  note",
        "iteration", "start", "duration", "busy", "first event"
    )?;
    let room = width.saturating_sub(63).max(16);
    let has_more = shown.visit(stream, arguments.top.most(), |iteration| {
        let time = |time: Option<i128>| time.map_or("-".to_string(), show::duration);
        writeln!(
            out,
            "{:>13}  {:>9}  {:>9}  {:>9}  {:>13}  {}",
            numbered(iteration.iteration, iteration.iterations, iteration.outer),
            time(shown.since_start(iteration.start)),
            time(iteration.time),
            time(iteration.busy),
            show::count(shown.fold.whole_position(stream, iteration.events.start)),
            note(shown, &iteration, labels, room)
        )?;
        Ok(())
    })?;
    if has_more {
        writeln!(out, "{:>13}  … (--top 0 shows all)", "")?;
    }
    writeln!(out)?;
    Ok(())
}

/// Slow iterations that are named above the table.
const SLOWEST: usize = 3;

/// All iterations in short, their phases, and the slowest ones.
fn summary(out: &mut impl Write, shown: &Shown<'_>, stream: StreamId) -> Result<()> {
    let Some(times) = shown.times(stream)? else { return Ok(()) };
    let mut all = show::middle_and_spread(&times);
    all.extend(show::busy_share(&times).map(|share| format!("busy {}", show::percent(share))));
    let slow = shown.slow(&[stream], SLOWEST)?.iterations;
    let name = |slow: &SlowIteration| {
        let number = numbered(slow.iteration, slow.iterations, &slow.outer);
        format!("{number} {}", show::duration(slow.time))
    };
    let mut slowest: Vec<String> = slow.iter().map(name).collect();
    if let Some(first) = slowest.first_mut() {
        *first = format!("slowest {first}");
        slowest.push(format!("--slow {SLOWEST} shows why"));
    }
    for parts in [all, show::phase_remarks(&times), slowest] {
        for line in show::wrapped(&parts, show::line_width()) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// What is special about an iteration.
fn note(shown: &Shown<'_>, iteration: &Iteration<'_>, labels: &Labels<'_>, room: usize) -> String {
    let last = if iteration.is_last { "last" } else { "" };
    match shown.exception(iteration.kind, labels, room.saturating_sub(last.len() + 2)) {
        Some(exception) if iteration.is_last => format!("{exception}, {last}"),
        Some(exception) => exception,
        None => last.to_string(),
    }
}

fn print_data(form: &Form, most: usize, shown: &[Shown<'_>]) -> Result<()> {
    tables::print_answer(form, "iterations", "iterations", |out| {
        json::begin(out)?;
        for loop_of_class in shown {
            for &stream in &loop_of_class.streams {
                json::begin_loop(
                    out,
                    loop_of_class.fold,
                    stream,
                    &loop_of_class.nest,
                    loop_of_class.header(),
                    loop_of_class.times(stream)?.as_ref(),
                )?;
                let (folded, origin) = (loop_of_class.fold.stream(stream), loop_of_class.origin);
                loop_of_class
                    .visit(stream, most, |iteration| Ok(json::iteration(out, folded, origin, &iteration)?))?;
                json::end_loop(out)?;
            }
        }
        Ok(json::end(out)?)
    })
}

impl Shown<'_> {
    fn header(&self) -> json::Header {
        json::Header { number: self.chosen.number, node: self.chosen.node }
    }
}
