//! Paths of functions: blocks that one invocation executes one after the other, whatever it calls
//! in between.

use super::places::{Asked, Places, Shared, Spot, function_label, order};
use super::scheme::{Answer, Searcher};
use super::stored::Stored;
use super::{limit, listed, note_more, outcome, rows};
use crate::args::{FindArgs, FindShown};
use crate::{Outcome, show, tables};
use anyhow::{Context as _, Result, bail};
use loopfold::questions::path::{Effort, Functions, PathQuery, Share};
use loopfold::{Fold, StreamId};
use loopfold_json::JsonWriter;
use loopfold_json::find::{PathAnswer, PathSearch};
use std::io::{BufWriter, Write};
use std::time::Duration;

/// The paths of a query.
pub(super) struct Question<'q> {
    pub(super) text: &'q str,
    /// One for each function.
    pub(super) paths: &'q [PathQuery],
    /// True if the functions are those that fit a pattern.
    pub(super) is_pattern: bool,
}

pub(super) fn run(
    arguments: &FindArgs,
    fold: &Fold,
    stored: Stored,
    question: &Question<'_>,
    opened: Duration,
) -> Result<Outcome> {
    let Question { text, paths, is_pattern } = *question;
    if arguments.before.is_some() {
        bail!("--before is for sequences of events, not for paths of functions");
    }
    show::notes(&never_entered(fold, paths)?);
    let searcher = Searcher::new(fold, arguments.method.wanted(), arguments.read.lenient, &stored)?;
    let asked = search(&searcher, paths)?;
    let shared = Shared::new(fold, paths);
    let found = Found { fold, asked: &asked, count: total(&asked)?, shared: &shared, is_pattern };
    if arguments.form.is_data() {
        return found.print_data(arguments, text, opened);
    }
    let mut out = BufWriter::new(show::raw_stdout());
    let outcome = found.print(&mut out, arguments)?;
    out.flush()?;
    if arguments.explain {
        show::notes(&explanation(&asked, opened));
    }
    Ok(outcome)
}

/// Searches for paths, and notes what was damaged.
pub(super) fn search<'a>(searcher: &'a Searcher<'_>, paths: &[PathQuery]) -> Result<Vec<Asked<'a>>> {
    let mut asked = Vec::with_capacity(paths.len());
    for path in paths {
        let answer = searcher.search(path)?;
        let damage = answer.damage.iter().map(|damage| format!("{damage}; its events were unfolded"));
        show::notes(&damage.collect::<Vec<_>>());
        asked.push(Asked { query: path.clone(), answer });
    }
    Ok(asked)
}

/// Notes on functions whose frames are not known, so that there is nothing to find.
fn never_entered(fold: &Fold, paths: &[PathQuery]) -> Result<Vec<String>> {
    let functions = Functions::of(fold.alphabet())?;
    let known = |path: &&PathQuery| functions.named(path.function()).is_some_and(|of| of.is_entered());
    let unknown = paths.iter().filter(|path| !known(path));
    Ok(unknown
        .map(|path| {
            let name = function_label(path);
            format!("the trace does not show {name} being entered, so none of its paths is known")
        })
        .collect())
}

fn explanation(asked: &[Asked<'_>], opened: Duration) -> Vec<String> {
    let mut notes = vec![format!("opened in {}", show::duration(opened.as_nanos() as i128))];
    // A readable number; --json lists all.
    const MOST: usize = 20;
    for Asked { query, answer } in asked.iter().take(MOST) {
        notes.push(format!("{}: {}", show::shorten(&function_label(query), 60), explain(answer)));
    }
    if asked.len() > MOST {
        notes.push(format!("and {} more functions", show::count((asked.len() - MOST) as u64)));
    }
    notes
}

/// How often all paths occur together.
pub(super) fn total(asked: &[Asked<'_>]) -> Result<u64> {
    let mut sum = 0u64;
    for Asked { answer, .. } in asked {
        sum = sum.checked_add(answer.found.count_all()?).context("there are more than 2^64 occurrences")?;
    }
    Ok(sum)
}

/// The streams in which one of the paths occurs.
pub(super) fn streams_of(fold: &Fold, asked: &[Asked<'_>]) -> Vec<StreamId> {
    let occurs = |&stream: &StreamId| asked.iter().any(|asked| asked.answer.found.count_in(stream) > 0);
    fold.stream_ids().filter(occurs).collect()
}

/// The occurrence of a path in a stream after the first `skip`.
fn nth_of(asked: &[Asked<'_>], index: usize, stream: StreamId, skip: u64) -> Result<Option<Spot>> {
    let mut spot = None;
    asked[index].answer.found.each_in(stream, skip, &mut |place| {
        spot = Some(Spot { asked: index, place });
        false
    })?;
    Ok(spot)
}

/// The first occurrence of any of the paths in a stream.
pub(super) fn first_in(asked: &[Asked<'_>], stream: StreamId) -> Result<Option<Spot>> {
    let mut first: Option<Spot> = None;
    for index in 0..asked.len() {
        let other = nth_of(asked, index, stream, 0)?;
        first = first.into_iter().chain(other).min_by_key(order);
    }
    Ok(first)
}

/// What was found of one path, or of one for each function that a pattern stands for.
struct Found<'s, 'a> {
    fold: &'a Fold,
    asked: &'s [Asked<'s>],
    count: u64,
    shared: &'s Shared<'a>,
    is_pattern: bool,
}

impl Found<'_, '_> {
    fn count_in(&self, stream: StreamId) -> u64 {
        let counts = self.asked.iter().map(|asked| asked.answer.found.count_in(stream));
        counts.fold(0, u64::saturating_add)
    }

    fn last_in(&self, stream: StreamId) -> Result<Option<Spot>> {
        let mut last: Option<Spot> = None;
        for (index, asked) in self.asked.iter().enumerate() {
            if let Some(before) = asked.answer.found.count_in(stream).checked_sub(1) {
                let other = nth_of(self.asked, index, stream, before)?;
                last = last.into_iter().chain(other).max_by_key(order);
            }
        }
        Ok(last)
    }

    /// Visits the occurrences after the first `skip`, function by function and stream by stream,
    /// until `visit` returns false.
    fn each(&self, mut skip: u64, mut visit: impl FnMut(Spot) -> Result<bool>) -> Result<()> {
        for (index, Asked { answer, .. }) in self.asked.iter().enumerate() {
            for stream in self.fold.stream_ids() {
                let count = answer.found.count_in(stream);
                if let Some(rest) = skip.checked_sub(count) {
                    skip = rest;
                    continue;
                }
                let mut go_on = Ok(true);
                answer.found.each_in(stream, skip, &mut |place| {
                    go_on = visit(Spot { asked: index, place });
                    matches!(go_on, Ok(true))
                })?;
                if !go_on? {
                    return Ok(());
                }
                skip = 0;
            }
        }
        Ok(())
    }

    fn nth(&self, before: u64) -> Result<Option<Spot>> {
        let mut spot = None;
        self.each(before, |found| {
            spot = Some(found);
            Ok(false)
        })?;
        Ok(spot)
    }

    fn print(&self, out: &mut impl Write, arguments: &FindArgs) -> Result<Outcome> {
        let FindShown { count: only_count, first, nth, all, per_stream } = arguments.shown;
        if only_count {
            writeln!(out, "{}", self.count)?;
            return Ok(outcome(self.count > 0));
        }
        let mut places = Places::new(self.asked, self.shared);
        if all {
            return self.print_all(out, arguments, &mut places);
        }
        let streams = streams_of(self.fold, self.asked);
        if nth.is_some() || first {
            let spot = match (nth, streams.first()) {
                (Some(nth), _) => self.nth(nth - 1)?,
                (None, Some(&stream)) => first_in(self.asked, stream)?,
                (None, None) => None,
            };
            let Some(spot) = spot else {
                show::notes(&[format!("there are only {}", show::plural(self.count, "occurrence"))]);
                return Ok(Outcome::Nothing);
            };
            writeln!(out, "{}", places.line(spot, arguments.stacks)?)?;
            return Ok(Outcome::Done);
        }
        if per_stream {
            return self.print_streams(out, arguments, &mut places, streams);
        }
        self.print_summary(out, arguments, &mut places, &streams)
    }

    fn print_summary(
        &self,
        out: &mut impl Write,
        arguments: &FindArgs,
        places: &mut Places<'_, '_>,
        streams: &[StreamId],
    ) -> Result<Outcome> {
        writeln!(out, "count      {}", show::count(self.count))?;
        if let [only] = self.asked
            && self.is_pattern
        {
            writeln!(out, "function   {}", function_label(&only.query))?;
        }
        if self.asked.len() > 1 {
            let of = show::count(self.asked.len() as u64);
            writeln!(out, "functions  {} of {of}", show::count(self.that_occur().len() as u64))?;
        }
        let Some(&first_stream) = streams.first() else { return Ok(Outcome::Nothing) };
        if self.fold.streams().len() > 1 {
            let all = show::count(self.fold.streams().len() as u64);
            writeln!(out, "streams    {} of {all}", show::count(streams.len() as u64))?;
        }
        let first = first_in(self.asked, first_stream)?;
        if let Some(first) = first {
            writeln!(out, "first      {}", places.text(first)?)?;
        }
        if let Some(earliest) = self.earliest(places, streams)?
            && first.is_none_or(|first| order(&first) != order(&earliest))
        {
            writeln!(out, "earliest   {}", places.text(earliest)?)?;
        }
        if let Some(&last_stream) = streams.last()
            && self.count > 1
            && let Some(last) = self.last_in(last_stream)?
        {
            writeln!(out, "last       {}", places.text(last)?)?;
        }
        if self.asked.len() > 1 {
            self.print_functions(out, arguments)?;
        }
        Ok(Outcome::Done)
    }

    /// Those paths that occur, the most frequent first, with their counts.
    fn that_occur(&self) -> Vec<(usize, u64)> {
        // All counts fit 64 bits together.
        let count = |asked: &Asked<'_>| asked.answer.found.count_all().unwrap_or(0);
        let mut occur: Vec<(usize, u64)> = self.asked.iter().map(count).enumerate().collect();
        occur.retain(|&(_, count)| count > 0);
        occur.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        occur
    }

    /// The functions that a pattern stands for.
    fn print_functions(&self, out: &mut impl Write, arguments: &FindArgs) -> Result<()> {
        let occur = self.that_occur();
        let shown = limit(arguments.top, occur.len() as u64);
        for &(index, count) in &occur[..shown as usize] {
            let share = show::percent(count as f64 / self.count as f64);
            let name = function_label(&self.asked[index].query);
            writeln!(out, "{:>15}  {share:>9}  {name}", show::count(count))?;
        }
        note_more(out, occur.len() as u64 - shown)
    }

    /// The earliest of the first occurrences in these streams. Returns `None` if the time of one of
    /// them is not known.
    fn earliest(&self, places: &mut Places<'_, '_>, streams: &[StreamId]) -> Result<Option<Spot>> {
        let mut earliest: Option<(i64, Spot)> = None;
        for &stream in streams {
            if places.clock.start(stream, 0)?.is_none() {
                return Ok(None);
            }
            let Some(first) = first_in(self.asked, stream)? else { continue };
            let position = places.start(first)?.unwrap_or(first.place.end);
            let Some(start) = places.clock.start(stream, position)? else { return Ok(None) };
            if earliest.is_none_or(|(least, _)| start < least) {
                earliest = Some((start, first));
            }
        }
        Ok(earliest.map(|(_, first)| first))
    }

    fn print_all(
        &self,
        out: &mut impl Write,
        arguments: &FindArgs,
        places: &mut Places<'_, '_>,
    ) -> Result<Outcome> {
        let shown = limit(arguments.top, self.count);
        let mut printed = 0;
        self.each(0, |spot| {
            writeln!(out, "{}", places.line(spot, arguments.stacks)?)?;
            printed += 1;
            Ok(printed < shown)
        })?;
        note_more(out, self.count - shown)?;
        Ok(outcome(self.count > 0))
    }

    fn print_streams(
        &self,
        out: &mut impl Write,
        arguments: &FindArgs,
        places: &mut Places<'_, '_>,
        mut streams: Vec<StreamId>,
    ) -> Result<Outcome> {
        streams.sort_by_key(|&stream| std::cmp::Reverse(self.count_in(stream)));
        let shown = limit(arguments.top, streams.len() as u64);
        for &stream in &streams[..shown as usize] {
            let in_stream = self.count_in(stream);
            let share = show::percent(in_stream as f64 / self.count as f64);
            let first = first_in(self.asked, stream)?.map(|first| places.text(first)).transpose()?;
            let first = first.unwrap_or_default();
            writeln!(out, "{:>15}  {share:>9}  first: {first}", show::count(in_stream))?;
        }
        note_more(out, streams.len() as u64 - shown)?;
        Ok(outcome(self.count > 0))
    }

    fn print_data(&self, arguments: &FindArgs, text: &str, opened: Duration) -> Result<Outcome> {
        let mut places = Places::new(self.asked, self.shared);
        let (all, per_stream) = listed(arguments);
        tables::print_answer(&arguments.form, "find", rows(arguments).unwrap_or("all"), |out| {
            let mut answer = begin_answer(out, self.fold, self.asked, text, true, &mut places)?;
            if let Some(nth) = arguments.shown.nth {
                let spot = self.nth(nth - 1)?.map(|spot| places.for_json(spot, true)).transpose()?;
                answer.nth(spot.as_ref())?;
            }
            if per_stream {
                let streams = self.fold.stream_ids().map(|stream| -> Result<_> {
                    let first = first_in(self.asked, stream)?;
                    let first = first.map(|first| places.for_json(first, arguments.stacks)).transpose()?;
                    Ok((stream, self.count_in(stream), first))
                });
                answer.streams(streams)?;
            }
            if arguments.explain {
                answer.opened(opened)?;
                answer.searches(searches(self.asked))?;
            }
            if all {
                let shown = limit(arguments.top, self.count);
                let mut printed = 0;
                answer.all(self.count - shown, |print| {
                    self.each(0, |spot| {
                        print(&places.for_json(spot, arguments.stacks)?)?;
                        printed += 1;
                        Ok(printed < shown)
                    })
                })?;
            }
            Ok(answer.end()?)
        })?;
        Ok(outcome(self.count >= arguments.shown.nth.unwrap_or(1)))
    }
}

/// Begins the answer with what every query has: its text, its count, and its first place,
/// with the stack if asked for.
pub(super) fn begin_answer<'w, 'a, W: Write>(
    out: &'w mut JsonWriter<W>,
    fold: &'a Fold,
    asked: &[Asked<'_>],
    text: &str,
    stack: bool,
    places: &mut Places<'_, '_>,
) -> Result<PathAnswer<'w, 'a, W>> {
    let stream = streams_of(fold, asked).first().copied();
    let first = stream.map(|stream| first_in(asked, stream)).transpose()?.flatten();
    let first = first.map(|first| places.for_json(first, stack)).transpose()?;
    let scheme = asked.first().map(|asked| asked.answer.scheme);
    let mut functions = Vec::with_capacity(asked.len());
    for Asked { query, answer } in asked {
        functions.push((query.function(), answer.found.count_all()?));
    }
    Ok(PathAnswer::begin(out, fold, text, total(asked)?, first.as_ref(), scheme, &functions)?)
}

/// What was done for each function.
pub(super) fn searches<'s>(asked: &'s [Asked<'s>]) -> impl Iterator<Item = PathSearch<'s>> {
    asked.iter().map(|Asked { query, answer }| PathSearch {
        function: query.function(),
        scheme: answer.scheme,
        reason: &answer.reason,
        effort: answer.effort,
        took: answer.took,
    })
}

/// What was done, in words.
fn explain(answer: &Answer<'_>) -> String {
    let Effort { ranges, chunks, rules, symbols, decompressed_bytes } = answer.effort;
    let mut text = format!("scheme {} ({}), {}", answer.scheme.number(), answer.scheme.name(), answer.reason);
    for (share, noun) in [(ranges, "index ranges"), (chunks, "chunks"), (rules, "rules")] {
        if let Some(Share { touched, all }) = share {
            text.push_str(&format!("; {} of {} {noun}", show::count(touched), show::count(all)));
        }
    }
    if symbols > 0 {
        text.push_str(&format!("; {} unfolded", show::plural(symbols, "event")));
    }
    if decompressed_bytes > 0 {
        text.push_str(&format!("; {} decompressed", show::bytes(decompressed_bytes)));
    }
    text.push_str(&format!("; searched in {}", show::duration(answer.took.as_nanos() as i128)));
    text
}
