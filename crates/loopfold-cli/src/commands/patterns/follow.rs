//! `patterns --follow`: reports patterns while the inputs are still being written.

use super::communication::LEGEND;
use super::{Answer, answer, most, print_answer, print_data};
use crate::args::PatternsArgs;
use crate::input::{self, Pace};
use crate::{Outcome, show};
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::time::Duration;

pub(super) fn run(arguments: &PatternsArgs) -> Result<Outcome> {
    let pace = Pace {
        every: seconds("--every", arguments.every)?,
        idle: arguments.idle.map(|idle| seconds("--idle", idle)).transpose()?,
    };
    let mut news = News::default();
    let read = input::follow(&arguments.read, &arguments.folder, &pace, |read| {
        answer(arguments, read, |answer| news.report(answer))
    })?;
    answer(arguments, read, |answer| {
        if news.any_reported && !arguments.form.is_data() {
            writeln!(show::stdout(), "\nthe input has ended\n")?;
        }
        print_answer(answer)
    })
}

fn seconds(option: &str, given: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(given).with_context(|| format!("{option} {given} is no time"))
}

/// What was reported before.
#[derive(Default)]
struct News {
    /// The number of a pattern, and how often it occurred.
    known: HashMap<String, (usize, u64)>,
    notes: HashSet<String>,
    any_reported: bool,
}

impl News {
    fn report(&mut self, answer: &Answer<'_>) -> Result<()> {
        let new_notes = answer.notes.iter().filter(|&note| self.notes.insert(note.clone()));
        show::notes(&new_notes.cloned().collect::<Vec<_>>());
        if answer.arguments.form.is_data() {
            return print_data(answer);
        }
        let (arguments, most) = (answer.arguments, most(answer.arguments));
        let mut out = show::stdout();
        let is_first = !std::mem::replace(&mut self.any_reported, true);
        if !is_first {
            writeln!(out)?;
        }
        if answer.communication.count() == 0 {
            answer.process.print(&mut out, arguments, 0, most)?;
        } else {
            let bold = anstyle::Style::new().bold();
            writeln!(
                out,
                "{bold}{}{bold:#} after {} of {}{}",
                show::plural(answer.communication.count() as u64, "communication pattern"),
                show::events(answer.process.events()),
                show::plural(answer.fold.streams().len() as u64, "stream"),
                if is_first { LEGEND } else { "" },
            )?;
            answer.communication.print_news(&mut out, &mut self.known, most, arguments.full.on)?;
        }
        Ok(out.flush()?)
    }
}
