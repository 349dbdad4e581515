//! Prints windows and occurrences that are similar to a pattern.

use super::pattern::Asked;
use crate::args::{SimilarArgs, Top};
use crate::{show, tables};
use anyhow::Result;
use loopfold::questions::similar::{
    EnclosingPatterns, JoinedOccurrences, SimilarFound, SimilarOccurrence, SimilarPattern, SimilarPlace,
};
use loopfold::{Fold, StreamId};
use std::io::{BufWriter, Write};

/// Whether it is printed in which larger patterns windows lie: in JSON, and in the text for
/// patterns of one stream.
pub(super) fn shows_larger(arguments: &SimilarArgs, found: &SimilarFound) -> bool {
    let is_shown = arguments.form.is_data() || !arguments.all && found.joined.is_none();
    is_shown && !found.matches.is_empty()
}

pub(super) fn print(
    arguments: &SimilarArgs,
    fold: &Fold,
    asked: &Asked<'_>,
    found: &SimilarFound,
    larger: Option<&EnclosingPatterns<'_, '_>>,
) -> Result<()> {
    if arguments.form.is_data() {
        let most = arguments.top.most() as u64;
        let asked = loopfold_json::similar::Asked { edits: arguments.edits, ngram: arguments.ngram, most };
        return tables::print_answer(&arguments.form, "similar", "matches", |out| {
            Ok(loopfold_json::similar::similar(out, fold, asked, found, larger)?)
        });
    }
    let mut out = BufWriter::new(show::raw_stdout());
    if arguments.all {
        for &(stream, place) in &found.matches {
            let title = show::plain(fold.stream(stream).title());
            let SimilarPlace { start, end, length, distance } = place;
            writeln!(out, "{title}\t{start}\t{end}\t{length}\t{distance}")?;
        }
        out.flush()?;
        super::super::find::note_more(&mut out, found.count - found.matches.len() as u64)?;
    } else {
        print_text(&mut out, arguments, fold, asked, found, larger)?;
    }
    Ok(out.flush()?)
}

fn print_text(
    out: &mut impl Write,
    arguments: &SimilarArgs,
    fold: &Fold,
    asked: &Asked<'_>,
    found: &SimilarFound,
    larger: Option<&EnclosingPatterns<'_, '_>>,
) -> Result<()> {
    let length = match (&asked.pattern, &found.joined) {
        (SimilarPattern::Everywhere(sequence), _) => sequence.len() as u64,
        (_, Some(joined)) => joined.pattern_events,
        _ => 0,
    };
    let edits = show::plural(arguments.edits as u64, "edit");
    writeln!(out, "pattern   {}, within {edits}", show::plural(length, "event"))?;
    if let Some(order) = found.joined.as_ref().and_then(|joined| joined.order.as_ref()) {
        writeln!(out, "order     {order}")?;
    }
    let exact = if found.count > 0 { format!(", {} equal", show::count(found.exact)) } else { String::new() };
    writeln!(out, "windows   {}{exact}", show::count(found.count))?;
    if fold.streams().len() > 1 {
        let all = show::count(fold.streams().len() as u64);
        writeln!(out, "streams   {} of {all}", show::count(found.streams))?;
    }
    let share = found.filtered.verified as f64 / (found.filtered.places.max(1)) as f64;
    writeln!(out, "compared  {} of {} places", show::percent(share), show::count(found.filtered.places))?;
    if let Some(joined) = &found.joined {
        return print_joined(out, fold, joined, arguments.top);
    }
    // Those that are equal have been counted; where all are, the first one is shown.
    let differ = found.matches.iter().filter(|(_, place)| place.distance > 0);
    let shown: Vec<_> = match found.exact < found.count {
        true => differ.take(arguments.top.most()).collect(),
        false => found.matches.iter().take(1).collect(),
    };
    if !shown.is_empty() {
        writeln!(out)?;
    }
    for &&(stream, place) in &shown {
        let within = larger.and_then(|larger| larger.smallest_around(stream, place));
        let within = within.map_or(String::new(), |number| format!(", within pattern {number}"));
        writeln!(out, "{}{within}", line(fold, stream, place))?;
    }
    match found.exact < found.count {
        true => more(out, found.count - found.exact - shown.len() as u64, "--top 0 shows all"),
        false => more(out, found.count - shown.len() as u64, "--all lists them"),
    }
}

fn line(fold: &Fold, stream: StreamId, place: SimilarPlace) -> String {
    let title = show::plain(fold.stream(stream).title());
    let position = |position| show::count(fold.whole_position(stream, position));
    let (start, end) = (position(place.start), position(place.end));
    format!("  {title}, events {start} to {end}: {}", edits(place.distance as u64))
}

fn edits(distance: u64) -> String {
    if distance == 0 { "equal".to_string() } else { show::plural(distance, "edit") }
}

fn print_joined(out: &mut impl Write, fold: &Fold, joined: &JoinedOccurrences, top: Top) -> Result<()> {
    let exact = joined.occurrences.iter().filter(|occurrence| occurrence.distance == 0).count();
    let count = joined.occurrences.len();
    let same = if count > 0 { format!(", {} equal", show::count(exact as u64)) } else { String::new() };
    writeln!(out, "together  {}{same}", show::plural(count as u64, "occurrence"))?;
    let differ = joined.occurrences.iter().filter(|occurrence| occurrence.distance > 0);
    let shown: Vec<&SimilarOccurrence> = match exact < count {
        true => differ.take(top.most()).collect(),
        false => joined.occurrences.iter().take(1).collect(),
    };
    if !shown.is_empty() {
        writeln!(out)?;
    }
    for occurrence in &shown {
        let SimilarOccurrence { windows, distance, error } = occurrence;
        let Some(&(process, first)) = windows.first() else { continue };
        let stream = show::plain(fold.stream(joined.streams[&process]).title());
        let share = if *distance > 0 { format!(", {}", show::percent(*error)) } else { String::new() };
        writeln!(
            out,
            "  {}, {stream} at {}: {}{share}",
            show::plural(windows.len() as u64, "process"),
            show::count(fold.whole_position(joined.streams[&process], first.start)),
            edits(*distance)
        )?;
    }
    match exact < count {
        true => more(out, (count - exact - shown.len()) as u64, "--top 0 shows all"),
        false => more(out, (count - shown.len()) as u64, "--all lists their windows"),
    }
}

fn more(out: &mut impl Write, left_out: u64, how: &str) -> Result<()> {
    if left_out > 0 {
        writeln!(out, "  … and {} more ({how})", show::count(left_out))?;
    }
    Ok(())
}
