//! `loopfold stats --streams`: the streams, with the numbers that `--stream` takes.

use crate::args::{FolderName, StatsArgs};
use crate::{Outcome, input, show, streams, tables};
use anyhow::Result;
use loopfold::trace::TimesKept;
use loopfold::{Fold, StreamId};
use std::io::Write as _;

pub(super) fn run(arguments: &StatsArgs) -> Result<Outcome> {
    let folder = arguments.folder.or(FolderName::AutoOnline);
    let mut loaded = input::load_for(&arguments.read, TimesKept::None, &folder)?;
    // Numbers are those among all streams, also where only some are listed.
    let selectors = std::mem::take(&mut loaded.selection.streams);
    let (fold, notes) = loaded.fold_as_stored(&folder)?;
    let chosen = streams::chosen(&fold, &selectors)?;
    let listed: Vec<StreamId> = fold.stream_ids().filter(|stream| chosen[stream.index()]).collect();
    show::notes(&notes);
    if arguments.form.is_data() {
        tables::print_answer(&arguments.form, "streams", "stream_list", |out| {
            Ok(loopfold_json::stats::stream_list(out, &fold, listed)?)
        })?;
    } else {
        print(&fold, &listed)?;
    }
    Ok(Outcome::Done)
}

fn print(fold: &Fold, listed: &[StreamId]) -> Result<()> {
    let mut out = std::io::BufWriter::new(show::stdout());
    let events: Vec<String> =
        listed.iter().map(|&number| show::count(fold.length(fold.stream(number).root()))).collect();
    let wide = events.iter().map(String::len).max().unwrap_or(0).max("events".len());
    writeln!(out, "{:>6}  {:>wide$}  {:<12}  name", "number", "events", "format")?;
    for (&number, events) in listed.iter().zip(events) {
        let stream = fold.stream(number);
        let (name, title) = (show::plain(stream.name()), show::plain(stream.title()));
        let title = if title == name { String::new() } else { format!(" ({title})") };
        let format = stream.note("format").map_or("-".to_string(), show::plain);
        let number = number.index();
        let room = show::line_width().saturating_sub(24 + wide).max(20);
        let name = show::shorten(&(name + &title), room);
        writeln!(out, "{number:>6}  {events:>wide$}  {format:<12}  {name}")?;
    }
    Ok(out.flush()?)
}
