//! `loops --patterns`: the nests of streams in which communication patterns are single events.

use super::times::Timer;
use super::{class_nests, note_unrotated, print};
use crate::args::{LoopsArgs, ReadArgs};
use crate::commands::patterns;
use crate::{Outcome, folding, input, show, streams, tables};
use anyhow::{Result, bail};
use loopfold::questions::communication::{AbstractedTrace, Processes, TracePatterns, abstracted};
use loopfold::questions::patterns::EventChoice;
use loopfold::trace::TimesKept;
use loopfold_json::loops::{Abstracted, Loops};
use std::cell::Cell;
use std::io::Write;

pub(super) fn run(arguments: &LoopsArgs) -> Result<Outcome> {
    // A message needs both of its processes, so streams are selected at the end.
    let read = ReadArgs { stream: Vec::new(), ..arguments.read.clone() };
    let read_in = input::fold(&read, TimesKept::None, &arguments.folder)?;
    let (fold, mut notes) = input::with_unique_communicators(read_in, &arguments.folder)?;
    let choice = EventChoice { left_out: patterns::left_out(&arguments.read), ..EventChoice::default() };
    let budget = folding::memory_budget(&arguments.folder);
    let processes = Processes::of(&fold, &choice, budget, &folding::outermost)?;
    if !processes.communicate() {
        bail!(
            "--patterns needs a trace with communication, and this one has no sends, receives or collectives; \
             `loopfold patterns` finds the patterns of single streams"
        );
    }
    notes.extend(patterns::stored_note(&fold, &processes));
    show::notes(&notes);
    // Patterns of single processes are not shown, so those inside of others need not be known.
    let found = TracePatterns::of(&processes, &patterns::default_config().look_inside(0))?;
    let folder = folding::folder(&arguments.folder)?;
    let trace = abstracted(&processes, &found, budget, &|stream, builder| folder.fold(stream, builder))?;
    let heading = heading(&trace);
    let trace = AbstractedTrace { fold: streams::choose(trace.fold, &arguments.read.stream)?, ..trace };
    if arguments.form.is_data() {
        print_data(arguments, &trace, folder.name())?;
        return Ok(Outcome::Done);
    }
    let mut out = show::stdout();
    writeln!(out, "{heading}\n")?;
    print(&mut out, arguments, Timer::new(&trace.fold, None))?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// What was replaced.
fn heading(trace: &AbstractedTrace) -> String {
    let share = if trace.events == 0 { 0.0 } else { trace.replaced as f64 / trace.events as f64 };
    format!(
        "{} for {} of {} in {}",
        show::plural(trace.names.len() as u64, "communication pattern"),
        show::percent(share),
        show::events(Some(trace.events)),
        show::plural(trace.fold.streams().len() as u64, "stream"),
    )
}

fn print_data(arguments: &LoopsArgs, trace: &AbstractedTrace, folder: &str) -> Result<()> {
    let any_rotated = Cell::new(false);
    let loops = Loops {
        folder,
        fold: &trace.fold,
        classes: class_nests(arguments, Timer::new(&trace.fold, None), &any_rotated)?,
    };
    let abstracted = Abstracted {
        events: trace.events,
        replaced: trace.replaced,
        names: trace.names.iter().map(|(&number, (_, name))| (number, name.as_str())),
    };
    tables::print_answer(&arguments.form, "loops", "classes", |out| {
        loopfold_json::loops::abstracted(out, loops, abstracted)
    })?;
    note_unrotated(arguments, &trace.fold, any_rotated.get())
}
