//! Patterns of single processes, on a terminal and for JSON.

use crate::args::PatternsArgs;
use crate::show::{self, Labels};
use anyhow::Result;
use loopfold::Fold;
use loopfold::emit::Text;
use loopfold::questions::communication::Processes;
use loopfold::questions::nest::Nest;
use loopfold::questions::patterns::{Pattern, Patterns};
use loopfold_json::patterns::ProcessEntry;
use std::io::Write;

/// Symbols of a pattern that are ever shown, and of all together in JSON.
const LONGEST: usize = 1 << 16;
const MOST_SYMBOLS: usize = 1 << 22;
/// Lines of one pattern on a terminal.
const LINES: usize = 12;

/// Everything needed to print them.
pub(super) struct ProcessPatterns<'a> {
    fold: &'a Fold,
    streams: &'a Processes<'a>,
    patterns: &'a Patterns,
    /// How many of them are listed.
    listed: usize,
    /// The number of events that count, in all streams; `None` if it exceeds 64 bits.
    events: Option<u64>,
}

impl<'a> ProcessPatterns<'a> {
    pub(super) fn new(fold: &'a Fold, streams: &'a Processes<'a>, patterns: &'a Patterns) -> Self {
        let mut symbols = 0;
        let fits = |pattern: &&Pattern| {
            symbols += pattern.symbols.len().min(LONGEST);
            symbols <= MOST_SYMBOLS
        };
        let listed = patterns.patterns.iter().take_while(fits).count();
        let events = streams.shown().iter().try_fold(0u64, |sum, stream| sum.checked_add(stream.length()));
        Self { fold, streams, patterns, listed, events }
    }

    /// The number of events that count, in all streams; `None` if it exceeds 64 bits.
    pub(super) fn events(&self) -> Option<u64> {
        self.events
    }

    fn patterns(&self) -> &'a [Pattern] {
        &self.patterns.patterns[..self.listed]
    }

    /// The pattern as its first occurrence has it.
    fn nest(&self, pattern: &Pattern) -> Nest {
        let Some((stream, places)) = self.patterns.streams_of(pattern).next() else { return Nest::default() };
        let collapsed = self.streams.traces()[stream].shown();
        let start = places.first().map_or(0, |place| place.start as usize);
        collapsed.nest_up_to(start, start + pattern.symbols.len(), LONGEST)
    }

    /// The share of a pattern in all events that count.
    fn share(&self, pattern: &Pattern) -> f64 {
        match self.events {
            Some(events) if events > 0 => (pattern.explained as f64 / events as f64).min(1.0),
            _ => 0.0,
        }
    }

    fn titles(&self, pattern: &Pattern) -> Vec<Text<'a>> {
        let mut streams: Vec<usize> = self.patterns.streams_of(pattern).map(|(stream, _)| stream).collect();
        streams.sort_unstable();
        streams.into_iter().map(|stream| self.fold.streams()[stream].title()).collect()
    }

    /// How many patterns there are.
    pub(super) fn found(&self) -> u64 {
        self.patterns.found
    }

    /// How many of the first `most` there are for JSON.
    pub(super) fn entry_count(&self, most: usize) -> usize {
        self.listed.min(most)
    }

    /// The first `most` for JSON, with numbers that continue after `before`.
    pub(super) fn entries(&self, before: usize, most: usize) -> impl Iterator<Item = ProcessEntry<'a>> {
        let patterns = self.patterns().iter().take(most).zip(before + 1..);
        patterns.map(|(pattern, id)| ProcessEntry {
            id,
            pattern,
            nest: self.nest(pattern),
            share: self.share(pattern),
            processes: self.titles(pattern),
        })
    }

    /// Prints the first `most`, with numbers that continue after `before`.
    pub(super) fn print(
        &self,
        out: &mut impl Write,
        arguments: &PatternsArgs,
        before: usize,
        most: usize,
    ) -> Result<()> {
        let patterns: Vec<(&Pattern, usize)> = self.patterns().iter().zip(before + 1..).take(most).collect();
        self.heading(out)?;
        if patterns.is_empty() {
            return Ok(());
        }
        let any_inside = patterns.iter().any(|(pattern, _)| pattern.inside > 0);
        let several = self.fold.streams().len() > 1;
        let heads = ["#", "count", "places", "inside", "events", "share", "streams"];
        let is_shown = |column: &usize| match heads[*column] {
            "inside" => any_inside,
            "streams" => several,
            _ => true,
        };
        let columns: Vec<usize> = (0..heads.len()).filter(is_shown).collect();
        let rows: Vec<[String; 7]> =
            patterns.iter().map(|&(pattern, id)| self.numbers(id, pattern)).collect();
        let width = |&column: &usize| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(heads[column].len())
        };
        let widths: Vec<usize> = columns.iter().map(width).collect();
        let line = |cells: &[&str]| -> String {
            let cells = columns.iter().map(|&column| cells[column]).zip(&widths);
            cells.map(|(cell, &width)| format!("{cell:>width$}  ")).collect()
        };
        let beside = widths.iter().map(|width| width + 2).sum::<usize>();
        let placed = show::Beside::new(beside);
        let most_lines = if arguments.full.on { usize::MAX } else { LINES };
        let labels = Labels::of_alphabet(self.streams.alphabet(), arguments.hex.on);
        writeln!(out, "\n{}pattern", line(&heads))?;
        for ((pattern, _), row) in patterns.iter().zip(&rows) {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            write!(out, "{}", line(&cells))?;
            let lines = show::nest_lines(&labels, &self.nest(pattern), placed.room(), most_lines);
            placed.write(out, &lines)?;
        }
        let left_out = self.patterns.found - patterns.len() as u64;
        if left_out > 0 {
            writeln!(out, "… and {} more (--top 0 shows all)", show::count(left_out))?;
        }
        Ok(())
    }

    fn heading(&self, out: &mut impl Write) -> Result<()> {
        let bold = anstyle::Style::new().bold();
        let is_communication = self.streams.communicate();
        let made_of = if is_communication { "sends, receives and collectives" } else { "events" };
        let whole = format!(
            "{} of {}",
            show::events(self.events),
            show::plural(self.fold.streams().len() as u64, "stream")
        );
        match self.patterns.found {
            0 => {
                writeln!(out, "{bold}no patterns{bold:#} in {whole}\nonly loops repeat, which `loops` shows")?
            }
            found => {
                writeln!(out, "{bold}{}{bold:#} of {made_of}\nin {whole}", show::plural(found, "pattern"))?
            }
        }
        Ok(())
    }

    fn numbers(&self, id: usize, pattern: &Pattern) -> [String; 7] {
        let events = match (pattern.fewest_events, pattern.most_events) {
            (fewest, most) if fewest == most => show::count(most),
            (fewest, most) => format!("{} to {}", show::count(fewest), show::count(most)),
        };
        let streams = match &self.titles(pattern)[..] {
            [only] => show::shorten(&show::plain(only), 20),
            several => show::count(several.len() as u64),
        };
        [
            id.to_string(),
            show::count(pattern.count),
            show::count(pattern.places),
            show::count(pattern.inside),
            events,
            show::percent(self.share(pattern)),
            streams,
        ]
    }
}
