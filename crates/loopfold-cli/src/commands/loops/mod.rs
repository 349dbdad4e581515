//! `loopfold loops`: the loop nest of each class of streams.
//!
//! `answer` is the first line, and the list of the largest loops where there is hardly any loop; `times` has
//! the times of nests; `abstracted` is `loops --patterns`, `logical` is `loops --logical`.

mod abstracted;
mod answer;
mod logical;
mod times;

use crate::args::{LoopsArgs, PeersName};
use crate::input::{self, Loaded};
use crate::nodes::SharedTimes;
use crate::show::{self, ClassView, Labels, NestPrinter, NestSettings};
use crate::{Outcome, folding, tables};
use anyhow::Result;
use loopfold::questions::align::{self, Align, align};
use loopfold::questions::classes::{Class, by_weight};
use loopfold::questions::iterations::ClassTimes;
use loopfold::questions::near;
use loopfold::questions::nest::Nest;
use loopfold::questions::query::{no_such_event, symbols_called};
use loopfold::trace::{Projection, Times, TimesKept};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_json::loops::{ClassNest, Loops};
use loopfold_sources::Mask;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::Write;
use times::Timer;

/// The most nodes of a nest that are visited, whatever sizes an archive declares. A shortened
/// nest needs fewer than one that is printed whole.
const LARGEST_SHOWN: usize = 1 << 20;
const LARGEST_PRINTED: usize = 1 << 22;

pub(super) fn run(arguments: &LoopsArgs) -> Result<Outcome> {
    if arguments.patterns {
        return abstracted::run(arguments);
    }
    if arguments.logical {
        return logical::run(arguments);
    }
    let mut loaded = input::load(&arguments.read, TimesKept::All, &arguments.folder)?;
    // The times of a part of a stream are not those that others have.
    let shared_times = loaded.shared_times.take().filter(|_| !arguments.read.select.is_part());
    let shared_times = shared_times.as_ref();
    let masked = masked_instead(&loaded, arguments)?;
    let (fold, notes) = loaded.fold(&arguments.folder)?;
    show::notes(&notes);
    if arguments.form.is_data() {
        let masked = masked.map(|(masked, _)| masked.fold(&arguments.folder)).transpose()?;
        print_data(arguments, &fold, masked.as_ref().map(|(fold, _)| fold), shared_times)?;
        return Ok(Outcome::Done);
    }
    let mut out = show::stdout();
    print(&mut out, arguments, Timer::new(&fold, shared_times))?;
    if let Some((masked, share)) = masked {
        out.flush()?;
        let (fold, _) = masked.fold(&arguments.folder)?;
        show::notes(&[format!(
            "the lines differ ({} of them are distinct), so there is little to fold; below is what --mask gives, \
             which writes placeholders for times, numbers, addresses and paths: {} distinct lines",
            show::percent(share),
            show::count(fold.alphabet().len() as u64)
        )]);
        writeln!(out, "\nThe same with --mask:")?;
        print(&mut out, arguments, Timer::new(&fold, shared_times))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The fold whose nests are shown.
pub(crate) fn fold(arguments: &LoopsArgs) -> Result<Fold> {
    let (fold, notes) =
        input::load(&arguments.read, TimesKept::None, &arguments.folder)?.fold(&arguments.folder)?;
    show::notes(&notes);
    Ok(fold)
}

/// Logs whose every line differs have no loops: for those, the trace with masked lines
/// and the share of distinct lines.
fn masked_instead(loaded: &Loaded, arguments: &LoopsArgs) -> Result<Option<(Loaded, f64)>> {
    let events = loaded.trace.events();
    let share = loaded.trace.alphabet.len() as f64 / events.max(1) as f64;
    let options = &arguments.read.formats.options;
    let plain_lines = loaded.formats == ["lines"] && !options.mask && options.select.is_none();
    if !plain_lines || events < 100 || share < 0.25 {
        return Ok(None);
    }
    let mut masked = loaded.trace.clone();
    masked.rewrite_names(|line, out| Mask.apply(line, out))?;
    let helps = masked.alphabet.len() * 4 < loaded.trace.alphabet.len();
    Ok(helps.then(|| (loaded.with_trace(masked), share)))
}

fn alignment(arguments: &LoopsArgs, fold: &Fold) -> Result<Option<Align>> {
    Ok(match arguments.align.as_deref() {
        None | Some("none") => None,
        Some("calls") => Some(Align::Calls),
        Some("gap") => Some(Align::Gap),
        Some(event) => {
            let events = symbols_called(fold.alphabet(), &[event])?;
            Some(Align::Event(events.into_iter().flatten().collect()))
        }
    })
}

/// The nest of a class as it is to be shown.
struct Shown {
    nest: Nest,
    /// The class, with the numbers of that nest.
    class: Class,
    /// Whether loops were rotated.
    is_rotated: bool,
    /// Nodes that the nest may have.
    largest: usize,
}

/// Whether a class is not searched for loops with exceptions.
fn is_long(class: &Class) -> bool {
    !near::is_searched(class.events, class.folded)
}

/// Notes on what loops with exceptions do not cover.
fn note_near(fold: &Fold, classes: &[Class]) {
    if classes.iter().any(is_long) {
        show::notes(&["loops with exceptions are not searched in streams that are so long".to_string()]);
    }
    if fold.rule_sums().is_some() {
        show::notes(&[
            "sums of times are those of exact loops: with --exact, all loops have them".to_string()
        ]);
    }
}

/// The nest of a class with loops with exceptions. Returns `None` if it has none.
fn near_nest_of(
    alignment: Option<&Align>,
    fold: &Fold,
    class: &Class,
    largest: usize,
) -> Result<Option<Shown>> {
    let beginnings =
        |body: &[Symbol]| alignment.map_or(Vec::new(), |how| align::beginnings(body, how, fold.alphabet()));
    let config = near::Config::new(&folding::outermost).beginnings(&beginnings);
    let Some(nest) = near::near_nest(fold, class.root, largest, config)? else { return Ok(None) };
    let nest = nest.at_position(first_position(fold, class));
    let mut shown = aligned(alignment, fold, class, nest, largest)?;
    shown.class = class.with_nest(&shown.nest);
    // Sums of times are those of the loops of the exact nest.
    shown.is_rotated = true;
    Ok(Some(shown))
}

/// Where the first stream of a class begins, if it is a part of another.
fn first_position(fold: &Fold, class: &Class) -> u64 {
    class.streams.first().map_or(0, |&stream| fold.stream(stream).first_position())
}

/// The nest of a class as `loops` shows it, without alignment.
pub(crate) fn shown_nest(fold: &Fold, class: &Class, exact: bool) -> Result<Nest> {
    let near = if exact {
        None
    } else {
        near::near_nest(fold, class.root, LARGEST_PRINTED, near::Config::new(&folding::outermost))?
    };
    let nest = near.unwrap_or_else(|| fold.nest(class.root, LARGEST_PRINTED));
    Ok(nest.at_position(first_position(fold, class)))
}

/// The exact nest of a class.
fn nest_of(alignment: Option<&Align>, fold: &Fold, class: &Class, largest: usize) -> Result<Shown> {
    aligned(alignment, fold, class, fold.nest(class.root, largest), largest)
}

fn aligned(
    alignment: Option<&Align>,
    fold: &Fold,
    class: &Class,
    nest: Nest,
    largest: usize,
) -> Result<Shown> {
    let as_it_is = |nest| Shown { nest, class: class.clone(), is_rotated: false, largest };
    let Some(how) = alignment else { return Ok(as_it_is(nest)) };
    let nothing = Times::default();
    let first = class.streams.first().map_or(&nothing, |&stream| fold.stream(stream).times());
    let rotated = align(&nest, how, fold.alphabet(), first)?;
    if rotated == nest {
        return Ok(as_it_is(nest));
    }
    Ok(Shown { class: class.with_nest(&rotated), nest: rotated, is_rotated: true, largest })
}

/// Notes that no loop was rotated.
fn note_unrotated(arguments: &LoopsArgs, fold: &Fold, any_rotated: bool) -> Result<()> {
    if any_rotated {
        return Ok(());
    }
    let event = arguments.align.as_deref().unwrap_or_default();
    let note = match alignment(arguments, fold)? {
        None => return Ok(()),
        Some(Align::Event(events)) if events.is_empty() => &no_such_event(fold.alphabet(), event),
        Some(Align::Event(_)) => "no loop could be rotated to begin at that event",
        Some(Align::Calls) => {
            "no loop could be rotated; are there calls? (--calls, or a format that has them)"
        }
        Some(Align::Gap) => "no loop could be rotated; are there times?",
    };
    show::notes(&[note.to_string()]);
    Ok(())
}

fn print_data(
    arguments: &LoopsArgs,
    fold: &Fold,
    masked: Option<&Fold>,
    shared_times: Option<&SharedTimes>,
) -> Result<()> {
    let folder = folding::folder(&arguments.folder)?.name();
    let any_rotated = Cell::new(false);
    let loops_of = |fold| -> Result<_> {
        let classes = class_nests(arguments, Timer::new(fold, shared_times), &any_rotated)?;
        Ok(Loops { folder, fold, classes })
    };
    let loops = loops_of(fold)?;
    let masked = masked.map(loops_of).transpose()?;
    tables::print_answer(&arguments.form, "loops", "classes", |out| {
        loopfold_json::loops::loops(out, loops, masked)
    })?;
    note_unrotated(arguments, fold, any_rotated.get())
}

/// The classes with their nests, computed some at a time; sets `any_rotated` if a loop was rotated.
fn class_nests<'a>(
    arguments: &'a LoopsArgs,
    timer: Timer<'a>,
    any_rotated: &'a Cell<bool>,
) -> Result<impl Iterator<Item = Result<ClassNest>> + 'a> {
    let classes = timer.fold.classes()?;
    // The number of each class, by its rule.
    let numbers: HashMap<RuleId, usize> =
        by_weight(classes.clone()).iter().zip(1..).map(|(class, number)| (class.root, number)).collect();
    let mut classes = classes.into_iter();
    let mut ready = Vec::new().into_iter();
    let mut more = move || -> Result<Option<ClassNest>> {
        if ready.len() == 0 {
            let next: Vec<Class> = classes.by_ref().take(timer.at_once).collect();
            ready = timed_classes(arguments, timer, &next, any_rotated)?.into_iter();
        }
        Ok(ready.next())
    };
    Ok(std::iter::from_fn(move || more().transpose()).map(move |nest| {
        let nest = nest?;
        let number = numbers.get(&nest.class.root).copied().unwrap_or(0);
        Ok(ClassNest { number, ..nest })
    }))
}

/// Some classes with their nests and times, without numbers.
fn timed_classes(
    arguments: &LoopsArgs,
    timer: Timer<'_>,
    classes: &[Class],
    any_rotated: &Cell<bool>,
) -> Result<Vec<ClassNest>> {
    let fold = timer.fold;
    let alignment = alignment(arguments, fold)?;
    let (mut exact, mut near) = (Vec::new(), Vec::new());
    for class in classes {
        let shown = nest_of(alignment.as_ref(), fold, class, LARGEST_PRINTED)?;
        any_rotated.set(any_rotated.get() | shown.is_rotated);
        exact.push(shown);
        near.push(match arguments.exact {
            true => None,
            false => near_nest_of(alignment.as_ref(), fold, class, LARGEST_PRINTED)?,
        });
    }
    let all: Vec<&Shown> = exact.iter().chain(near.iter().flatten()).collect();
    let mut times = timer.times_of(&all)?;
    let mut of_near = times.split_off(exact.len()).into_iter();
    let nest = |((shown, times), near): ((Shown, Option<ClassTimes>), Option<Shown>)| ClassNest {
        number: 0,
        class: shown.class,
        nest: shown.nest,
        times,
        near: near.map(|shown| (shown.nest, of_near.next().flatten())),
    };
    Ok(exact.into_iter().zip(times).zip(near).map(nest).collect())
}

fn print(out: &mut impl Write, arguments: &LoopsArgs, timer: Timer<'_>) -> Result<()> {
    let fold = timer.fold;
    let classes = by_weight(fold.classes()?);
    let (shown, rest) = classes.split_at(arguments.top.most().min(classes.len()));
    let left_out: usize = rest.iter().map(|class| class.streams.len()).sum();
    let mut printer = Printer::new(arguments, timer)?;
    // The answer to the whole comes first, and is known last. What is printed in full may be long.
    let mut text = Vec::new();
    let mut index = 0;
    for some in shown.chunks(timer.at_once) {
        for (class, timed) in some.iter().zip(printer.timed(some)?) {
            let heading = (classes.len() > 1 || arguments.full.on).then_some(index);
            index += 1;
            match arguments.full.on {
                true => printer.class(out, class, timed, heading)?,
                false => printer.class(&mut text, class, timed, heading)?,
            }
        }
    }
    if !arguments.full.on {
        // The same for all classes, however many are shown.
        let is_known = classes.len() <= MOST_ANSWERED;
        for some in rest.chunks(timer.at_once).filter(|_| is_known) {
            printer.add_mains(some)?;
        }
        answer::print(out, &printer.mains, if is_known { 0 } else { left_out }, printer.width)?;
        out.write_all(&text)?;
    }
    note_peers(arguments, fold, classes.len())?;
    note_unrotated(arguments, fold, printer.any_rotated)?;
    if printer.any_near {
        note_near(fold, &classes);
    }
    if left_out > 0 {
        let (classes, streams) =
            (show::plural(rest.len() as u64, "class"), show::plural(left_out as u64, "stream"));
        writeln!(out, "\n… and {classes} more, of {streams} (--top 0 shows all)")?;
    }
    Ok(())
}

/// Classes whose main loops are looked for even if they are not shown.
const MOST_ANSWERED: usize = 256;

/// The fields that name the other end of a message.
const PEERS: [&str; 2] = ["dest", "src"];

/// Notes that classes differ only in the other ends of their messages.
fn note_peers(arguments: &LoopsArgs, fold: &Fold, classes: usize) -> Result<()> {
    let has_peers = || {
        fold.alphabet().symbols().any(|symbol| {
            let meaning = fold.alphabet().meaning(symbol);
            PEERS.iter().any(|peer| meaning.field(peer).is_some())
        })
    };
    if classes < 2 || arguments.read.peers != PeersName::Absolute || !has_peers() {
        return Ok(());
    }
    let ignore = PEERS.iter().map(ToString::to_string).collect();
    let (alphabet, renamed) = Projection { ignore, ..Projection::default() }.of_alphabet(fold.alphabet())?;
    let without = fold.with_alphabet(alphabet, &renamed)?.classes()?.len();
    if without < classes {
        let differ = match without {
            1 => format!("the {classes} classes differ only in the other ends of their messages"),
            _ => format!(
                "without the other ends of messages, there are {without} classes instead of {classes}"
            ),
        };
        show::notes(&[format!("{differ}; --peers relative writes these as distances from the own rank")]);
    }
    Ok(())
}

/// Prints classes, and collects what the first line needs.
struct Printer<'a> {
    arguments: &'a LoopsArgs,
    timer: Timer<'a>,
    fold: &'a Fold,
    labels: Labels<'a>,
    width: usize,
    alignment: Option<Align>,
    mains: Vec<answer::MainLoop>,
    any_rotated: bool,
    any_near: bool,
}

impl<'a> Printer<'a> {
    fn new(arguments: &'a LoopsArgs, timer: Timer<'a>) -> Result<Self> {
        let fold = timer.fold;
        Ok(Self {
            arguments,
            timer,
            fold,
            labels: Labels::new(fold, arguments.hex.on),
            width: show::line_width(),
            alignment: shown_alignment(arguments, fold)?,
            mains: Vec::new(),
            any_rotated: false,
            any_near: false,
        })
    }

    /// The nests of some classes, with their times.
    fn timed(&mut self, classes: &[Class]) -> Result<Vec<(Shown, ClassTimes)>> {
        let shown = classes.iter().map(|class| self.shown(class)).collect::<Result<Vec<_>>>()?;
        let times = self.timer.times_of(&shown.iter().collect::<Vec<_>>())?;
        Ok(shown.into_iter().zip(times.into_iter().map(Option::unwrap_or_default)).collect())
    }

    /// A class; with a heading if it has a number.
    fn class(
        &mut self,
        out: &mut impl Write,
        class: &Class,
        (shown, times): (Shown, ClassTimes),
        number: Option<usize>,
    ) -> Result<()> {
        let &mut Self { arguments, fold, width, .. } = self;
        self.any_rotated |= shown.is_rotated;
        if let Some(index) = number {
            if index > 0 || !arguments.full.on {
                writeln!(out)?;
            }
            heading(out, fold, &shown.class, index + 1, width)?;
        }
        sizes(out, &shown.class, width)?;
        let main = answer::MainLoop::of(fold, &shown.class, &shown.nest, &times);
        let view = ClassView { fold, nest: &shown.nest, events: class.events, times: &times };
        let depth = arguments.depth.unwrap_or(usize::MAX);
        let settings = NestSettings { width, full: arguments.full.on, depth };
        NestPrinter::new(&mut *out, view, &self.labels, settings).print()?;
        if main.is_small() && !arguments.full.on {
            answer::print_largest(out, fold, class, &self.labels, width)?;
        }
        self.mains.push(main);
        Ok(())
    }

    /// Only what the first line needs.
    fn add_mains(&mut self, classes: &[Class]) -> Result<()> {
        for (shown, times) in self.timed(classes)? {
            self.mains.push(answer::MainLoop::of(self.fold, &shown.class, &shown.nest, &times));
        }
        Ok(())
    }

    /// The nest of a class, with loops with exceptions if it has any and they are wanted.
    fn shown(&mut self, class: &Class) -> Result<Shown> {
        let &mut Self { arguments, fold, .. } = self;
        let alignment = self.alignment.as_ref();
        let largest = if arguments.full.on { LARGEST_PRINTED } else { LARGEST_SHOWN };
        let is_exact = is_exact(arguments);
        let near = if is_exact { None } else { near_nest_of(alignment, fold, class, largest)? };
        self.any_near |= near.is_some() || !is_exact && is_long(class);
        match near {
            Some(shown) => Ok(shown),
            None => nest_of(alignment, fold, class, largest),
        }
    }
}

/// Whether the nest is shown as the folder finds it: who chooses a folder wants to see that.
fn is_exact(arguments: &LoopsArgs) -> bool {
    arguments.exact || arguments.folder.is_chosen()
}

/// How loops are rotated for reading: as asked, or so that calls are balanced in control flow.
fn shown_alignment(arguments: &LoopsArgs, fold: &Fold) -> Result<Option<Align>> {
    if arguments.align.is_some() || is_exact(arguments) {
        return alignment(arguments, fold);
    }
    Ok((fold.call_statistics()?.functions > 0).then_some(Align::Calls))
}

/// The streams of a class and its number, which `--class` takes.
fn heading(out: &mut impl Write, fold: &Fold, class: &Class, number: usize, width: usize) -> Result<()> {
    let bold = anstyle::Style::new().bold();
    let titles: Vec<String> =
        class.streams.iter().take(50).map(|&index| show::plain(fold.stream(index).title())).collect();
    let several = match class.streams.len() {
        1 => String::new(),
        count => format!(" ({count} streams, {} each)", show::plural(class.events, "event")),
    };
    let several = format!("{several} · class {number}");
    let titles = show::shorten(&titles.join(", "), width.saturating_sub(several.chars().count()));
    writeln!(out, "{bold}{titles}{bold:#}{several}")?;
    Ok(())
}

fn sizes(out: &mut impl Write, class: &Class, width: usize) -> Result<()> {
    let events = show::plural(class.events, "event");
    let parts = match class {
        Class { events: 0, .. } => vec!["no events".to_string()],
        Class { in_loops: 0, .. } => vec![events, "no loops".to_string()],
        _ => vec![
            format!("{events} written as {}", show::count(class.folded)),
            format!("{} times fewer", show::ratio(class.ratio())),
            format!("{} in loops", show::percent(class.covered())),
        ],
    };
    for line in show::wrapped(&parts, width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
