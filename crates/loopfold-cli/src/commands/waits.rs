//! `loopfold waits`: who waits for whom, where and how long.

use crate::args::WaitsArgs;
use crate::selection::numbering;
use crate::show::{self, Labels};
use crate::{Outcome, input, tables};
use anyhow::Result;
use loopfold::questions::waits::{Class, Config, LeftOut, Sum, Waits, WorstIteration};
use loopfold::trace::TimesKept;
use loopfold::{Fold, Symbol};
use std::io::Write;

/// Pairs of processes that are shown.
const MOST_PAIRS: usize = 5;

pub(super) fn run(arguments: &WaitsArgs) -> Result<Outcome> {
    let mut loaded = input::load(&arguments.read, TimesKept::All, &arguments.folder)?;
    // Messages are matched in the whole trace; the selection only says whose waits count.
    let selection = std::mem::take(&mut loaded.selection);
    let shared_times = loaded.shared_times.take();
    let (fold, mut notes) = loaded.fold(&arguments.folder)?;
    let mut focus = selection.focus(&fold, &mut notes)?;
    focus.numbers = numbering(&fold, arguments.folder.is_chosen())?;
    let (fold, mut notes) = input::with_unique_communicators((fold, notes), &arguments.folder)?;
    let config = Config::new().correct_clocks(arguments.correct_clocks);
    let divided = shared_times.map(|times| times.waits(&fold, &config, &focus)).transpose()?.flatten();
    let waits = divided.map_or_else(|| Waits::focused(&fold, &config, &focus), Ok)?;
    notes.extend(clock_notes(&fold, &waits));
    notes.extend(left_out_notes(&waits.left_out));
    show::notes(&notes);
    let most = arguments.top.most();
    let chosen = focus.streams;
    if arguments.form.is_data() {
        tables::print_answer(&arguments.form, "waits", "places", |out| {
            Ok(loopfold_json::waits::waits(out, &fold, &waits, chosen.as_deref(), most)?)
        })?;
    } else {
        let mut out = show::stdout();
        Printer { arguments, fold: &fold, waits: &waits, chosen, origin: waits.origin }
            .print(&mut out, most)?;
        out.flush()?;
    }
    Ok(if waits.all().count > 0 { Outcome::Done } else { Outcome::Nothing })
}

struct Printer<'a> {
    arguments: &'a WaitsArgs,
    fold: &'a Fold,
    waits: &'a Waits,
    /// Which streams are selected, if not all are.
    chosen: Option<Vec<bool>>,
    /// When the trace began.
    origin: Option<i64>,
}

impl Printer<'_> {
    fn print(&self, out: &mut impl Write, most: usize) -> Result<()> {
        if self.waits.messages == 0 && self.waits.collectives == 0 {
            writeln!(out, "no messages or collective operations whose partners are known, so no waits")?;
            return Ok(());
        }
        self.heading(out)?;
        if self.waits.all().count > 0 {
            self.classes(out)?;
            self.places(out, most)?;
            self.causes(out, most)?;
        }
        if !self.waits.pairs.is_empty() {
            self.pairs(out, most.min(MOST_PAIRS))?;
        }
        self.calls(out, most.min(MOST_PAIRS))?;
        if let Some(worst) = self.waits.iterations.first() {
            let share = show::percent(worst.time as f64 / self.waits.all().time.max(1) as f64);
            let (which, long) = (iteration(worst), time(worst.time));
            let starts = self.starts(worst).map(|starts| format!(", which {starts}")).unwrap_or_default();
            let line = format!("most waiting of an iteration: {long}, {share} of all, in {which}{starts}");
            writeln!(out)?;
            for line in show::filled(&line, show::line_width()) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    fn heading(&self, out: &mut impl Write) -> Result<()> {
        let (bold, waits) = (anstyle::Style::new().bold(), self.waits);
        let streams = match &self.chosen {
            Some(chosen) => self.chosen_names(chosen),
            None => show::plural(self.fold.streams().len() as u64, "stream"),
        };
        writeln!(
            out,
            "{bold}{} of waiting{bold:#}, {} of {} in {streams}",
            time(waits.all().time),
            show::percent(waits.share(waits.all().time)),
            time(waits.total),
        )?;
        let mut parts = vec![format!("{} of waiting", time(waits.all().time))];
        if waits.after_waits > 0 {
            parts.push(format!("{} after that", time(waits.after_waits)));
        }
        parts.push(format!("{} in calls that waited for nobody", time(waits.without_waits().time)));
        let line = format!("{} in communication calls: {}", time(waits.in_calls()), parts.join(", "));
        for line in show::filled(&line, show::line_width()) {
            writeln!(out, "{line}")?;
        }
        writeln!(
            out,
            "{}, {}",
            show::plural(waits.messages, "message"),
            show::plural(waits.collectives, "collective operation"),
        )?;
        Ok(())
    }

    /// The selected streams by name, or how many there are.
    fn chosen_names(&self, chosen: &[bool]) -> String {
        let streams = self.fold.streams().iter().zip(chosen).filter(|(_, chosen)| **chosen);
        let names: Vec<String> = streams.map(|(stream, _)| show::plain(stream.title())).collect();
        let joined = names.join(", ");
        match joined.chars().count() <= 30 {
            true => joined,
            false => show::plural(names.len() as u64, "stream"),
        }
    }

    /// When an iteration starts: `starts at 20.9 s`.
    fn starts(&self, worst: &WorstIteration) -> Option<String> {
        let since = i128::from(worst.start?) - i128::from(self.origin?);
        Some(format!("starts at {}", show::duration(since)))
    }

    fn sum(&self, sum: Sum) -> [String; 3] {
        [time(sum.time), show::percent(self.waits.share(sum.time)), show::count(sum.count)]
    }

    fn classes(&self, out: &mut impl Write) -> Result<()> {
        let known = Class::ALL.iter().zip(&self.waits.classes).filter(|(_, sum)| sum.count > 0);
        let mut known: Vec<(&Class, &Sum)> = known.collect();
        known.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.time));
        let mut rows = vec![["time", "share", "count", "class"].map(String::from).to_vec()];
        for (class, &sum) in known {
            rows.push([&self.sum(sum)[..], &[class.name().to_string()]].concat());
            if *class == Class::LateSender && self.waits.wrong_order.count > 0 {
                let name = "  of these in wrong order: another message was there".to_string();
                rows.push([&self.sum(self.waits.wrong_order)[..], &[name]].concat());
            }
        }
        table(out, &rows, 3)
    }

    fn places(&self, out: &mut impl Write, most: usize) -> Result<()> {
        let heads = ["time", "share", "count", "waits most", "main cause", "worst", "class"];
        let mut rows = vec![heads.map(String::from).to_vec()];
        for place in self.waits.places.iter().take(most) {
            let part = |(rank, time): (u32, u64)| {
                format!("{rank} ({})", show::percent(time as f64 / place.sum.time.max(1) as f64))
            };
            let worst = place.worst.as_ref().map_or("-".to_string(), iteration);
            let cells = [part(place.most_waiting()), part(place.main_cause()), worst];
            rows.push([&self.sum(place.sum)[..], &cells, &[place.class.name().to_string()]].concat());
        }
        writeln!(out)?;
        let mut lines = aligned(&rows, 6).into_iter();
        writeln!(out, "{}", lines.next().unwrap_or_default())?;
        for (line, place) in lines.zip(&self.waits.places) {
            let where_it_is = self.place(place.call, self.waits.function(place), &place.loops, place.worst);
            writeln!(out, "{line}\n    {where_it_is}")?;
        }
        show::more(out, self.waits.places.len().saturating_sub(most))
    }

    /// The call, its function and its loops, and when its worst iteration starts.
    fn place(
        &self,
        call: Symbol,
        function: Option<&str>,
        loops: &[u64],
        worst: Option<WorstIteration>,
    ) -> String {
        let labels = Labels::of_alphabet(self.waits.alphabet(), self.arguments.hex.on);
        let mut text = labels.of(call);
        if let Some(function) = function {
            text += &format!(" in {}", show::plain(function));
        }
        let mut rest = String::new();
        if !loops.is_empty() {
            let loops: Vec<String> = loops.iter().map(|&times| show::count(times)).collect();
            rest += &format!(", loop of {}", loops.join(" × "));
        }
        if let Some((worst, starts)) = worst.and_then(|worst| Some((worst, self.starts(&worst)?))) {
            rest += &format!("; #{} {starts}", worst.first);
        }
        let room = (show::line_width() - 4).saturating_sub(rest.chars().count());
        if self.arguments.full.on { text + &rest } else { show::shorten(&text, room) + &rest }
    }

    /// Who waits for whom, at all places.
    fn pairs(&self, out: &mut impl Write, most: usize) -> Result<()> {
        let mut rows = vec![["time", "share", "count", "process", "waits for"].map(String::from).to_vec()];
        for pair in self.waits.pairs.iter().take(most) {
            let cells = [pair.waiting.to_string(), pair.cause.to_string()];
            rows.push([&self.sum(pair.sum)[..], &cells].concat());
        }
        table(out, &rows, 5)?;
        self.more_in_json(out, self.waits.pairs.len().saturating_sub(most))
    }

    /// The calls that waited for nobody.
    fn calls(&self, out: &mut impl Write, most: usize) -> Result<()> {
        let calls = || self.waits.calls.iter().filter(|call| call.sum.time > 0);
        let heads = ["time", "share", "calls", "mean", "most in", "worst"];
        let mut rows = vec![heads.map(String::from).to_vec()];
        let mut places = Vec::new();
        for call in calls().take(most) {
            let of_most = call.ranks.first().map_or("-".to_string(), |(rank, sum)| {
                format!("{rank} ({})", show::percent(sum.time as f64 / call.sum.time.max(1) as f64))
            });
            let worst = call.worst.as_ref().map_or("-".to_string(), iteration);
            let mean = time(call.sum.time / call.sum.count.max(1));
            rows.push([&self.sum(call.sum)[..], &[mean, of_most, worst]].concat());
            places.push(self.place(call.call, self.waits.function_of(call), &call.loops, call.worst));
        }
        if places.is_empty() {
            return Ok(());
        }
        writeln!(out, "\ncalls that waited for nobody")?;
        let mut lines = aligned(&rows, 6).into_iter();
        writeln!(out, "{}", lines.next().unwrap_or_default())?;
        for (line, place) in lines.zip(places) {
            writeln!(out, "{line}\n    {place}")?;
        }
        self.more_in_json(out, calls().count().saturating_sub(most))
    }

    fn more_in_json(&self, out: &mut impl Write, more: usize) -> Result<()> {
        if more > 0 {
            writeln!(out, "{:>15}  … and {} more (--json has all)", "", show::count(more as u64))?;
        }
        Ok(())
    }

    fn causes(&self, out: &mut impl Write, most: usize) -> Result<()> {
        let mut rows =
            vec![["causes", "share", "count", "waits itself", "process"].map(String::from).to_vec()];
        let causing = || self.waits.ranks.iter().filter(|rank| rank.caused.count > 0);
        for rank in causing().take(most) {
            let cells = [time(rank.waited.time), rank.rank.to_string()];
            rows.push([&self.sum(rank.caused)[..], &cells].concat());
        }
        table(out, &rows, 5)?;
        show::more(out, causing().count().saturating_sub(most))?;
        Ok(())
    }
}

/// Which iteration, and of how many.
fn iteration(worst: &WorstIteration) -> String {
    let of = show::count(worst.times);
    match worst.first == worst.last {
        true => format!("#{} of {of}", worst.first),
        false => format!("#{} to {} of {of}", worst.first, worst.last),
    }
}

fn time(nanoseconds: u64) -> String {
    show::duration(nanoseconds.into())
}

/// Prints rows under a blank line; the first `right` columns are aligned to the right, the others
/// to the left.
fn table(out: &mut impl Write, rows: &[Vec<String>], right: usize) -> Result<()> {
    writeln!(out)?;
    for line in aligned(rows, right) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn aligned(rows: &[Vec<String>], right: usize) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let cell = |(column, text): (usize, &String)| match column < right {
        true => format!("{text:>width$}", width = widths[column]),
        false => format!("{text:<width$}", width = widths[column]),
    };
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        cells.join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

fn clock_notes(fold: &Fold, waits: &Waits) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(first) = waits.violations.first() {
        let count = waits.violations.iter().fold(0u64, |sum, one| sum.saturating_add(one.count));
        let worst = waits.violations.iter().map(|one| one.worst).max().unwrap_or(0);
        let help = if waits.offsets.is_none() { "; --correct-clocks shifts them" } else { "" };
        notes.push(format!(
            "{} received before sent, by up to {}, most of them from {} to {}: the clocks of processes differ{help}",
            show::plural(count, "message"),
            time(worst),
            first.from,
            first.to,
        ));
    }
    if let Some(offsets) = &waits.offsets {
        notes.push(match offsets.drift {
            Some((from, to)) => format!(
                "no constant offsets of clocks fit all messages (from {from} to {to} least): the clocks drift, and are \
                 taken as they are"
            ),
            None if offsets.changed.is_empty() => "no clock had to be shifted".to_string(),
            None => {
                let largest = offsets.changed.iter().map(|(_, offset)| offset.unsigned_abs()).max().unwrap_or(0);
                let count = show::plural(offsets.changed.len() as u64, "clock");
                format!("{count} shifted, by up to {}", time(largest))
            }
        });
    }
    for backward in waits.backward.iter().take(3) {
        let name = fold.stream(backward.stream).title().terminal();
        let count = show::plural(backward.count, "time");
        let first = show::count(fold.whole_position(backward.stream, backward.first));
        notes.push(format!("{name}: starts decrease {count}, first at event {first}"));
    }
    if let Some(more) = waits.backward.len().checked_sub(3).filter(|&more| more > 0) {
        notes.push(format!("starts also decrease in {}", show::plural(more as u64, "stream")));
    }
    notes
}

fn left_out_notes(left_out: &LeftOut) -> Vec<String> {
    let parts = [
        (left_out.unknown_senders, "receive", "from an unknown sender or with an unknown tag"),
        (left_out.absent, "message", "from or to processes without a stream"),
        (left_out.unreceived, "send", "without a receive"),
        (left_out.unsent, "receive", "without a send"),
        (left_out.incomplete, "collective operation", "in which members do not take part"),
        (left_out.disagreeing, "collective operation", "whose members disagree on what it is"),
        (left_out.unknown_requests, "completed request", "that no call has posted"),
        (left_out.without_start, "call", "without a start"),
        (left_out.without_duration, "call", "without a duration"),
    ];
    let part = |(count, what, why): (u64, &str, &str)| {
        (count > 0).then(|| format!("left out: {} {why}", show::plural(count, what)))
    };
    let partial = (left_out.partial > 0).then(|| {
        let count = show::plural(left_out.partial, "collective operation");
        format!("{count} of processes that have no stream, too: waits for these are missing")
    });
    parts.into_iter().filter_map(part).chain(partial).collect()
}
