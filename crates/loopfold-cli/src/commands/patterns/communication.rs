//! Communication patterns, the communication matrix, and unmatched messages and collectives, on a
//! terminal and for JSON.

use crate::show;
use anyhow::Result;
use loopfold::Fold;
use loopfold::emit::Text;
use loopfold::mpi::Grid;
use loopfold::questions::communication::{
    CommunicationPattern, Description, Part, Partners, Processes, TracePatterns, Unmatched,
};
use loopfold::questions::nest::{Nest, Node};
use loopfold::trace::{Name, Role, Value as FieldValue};
use loopfold::{StreamId, Symbol};
use loopfold_json::patterns::CommunicationEntry;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// How events are written.
pub(super) const LEGEND: &str = "\nS3 is a send to process 3, R3 a receive from it";

/// Processes of a pattern on a terminal.
const PROCESSES: usize = 16;
/// Lines for one process.
const LINES: usize = 4;
/// Events of one process that are shown.
const LONGEST: usize = 1 << 12;
/// Events and channels of all patterns together in JSON, but for those of the first.
const MOST_SYMBOLS: usize = 1 << 22;
/// What is unmatched, on a terminal.
const MOST_UNMATCHED: usize = 10;

/// Everything needed to print communication.
pub(super) struct Communication<'a> {
    fold: &'a Fold,
    processes: &'a Processes<'a>,
    found: &'a TracePatterns,
    /// The number of events that count, in all streams.
    events: u64,
    /// The grid that the processes are known to be.
    grid: Option<Grid>,
}

impl<'a> Communication<'a> {
    pub(super) fn new(
        fold: &'a Fold,
        processes: &'a Processes<'a>,
        found: &'a TracePatterns,
        grid: Option<Grid>,
    ) -> Self {
        let events = processes.shown().iter().fold(0u64, |sum, stream| sum.saturating_add(stream.length()));
        Self { fold, processes, found, events, grid }
    }

    /// How many patterns there are.
    pub(super) fn count(&self) -> usize {
        self.found.communication.len()
    }

    fn title(&self, stream: StreamId) -> Text<'a> {
        self.fold.stream(stream).title()
    }

    fn share(&self, pattern: &CommunicationPattern) -> f64 {
        if self.events == 0 { 0.0 } else { (pattern.explains as f64 / self.events as f64).min(1.0) }
    }

    fn nest(&self, part: Part, longest: usize) -> Nest {
        let shown = self.processes.traces()[part.stream.index()].shown();
        shown.nest_between(part.start, part.end, longest)
    }
}

/// For JSON.
impl<'a> Communication<'a> {
    /// The first `most` patterns described; fewer where they are very long.
    pub(super) fn described(&self, most: usize) -> Vec<Description> {
        let mut room = MOST_SYMBOLS;
        let mut described = Vec::new();
        for pattern in self.found.communication.iter().take(most) {
            let about = Description::of(pattern, self.processes, &self.found.partners, self.grid.as_ref());
            let longest = longest_in(pattern);
            room = room.saturating_sub(about.channels.pairs().len());
            for &part in pattern.parts() {
                let nest = self.nest(part, longest);
                room = room.saturating_sub(nest.events(longest as u64).len() + nest.nodes.len());
            }
            described.push(about);
            if room == 0 {
                break;
            }
        }
        described
    }

    /// Those patterns, numbered from 1.
    pub(super) fn entries<'d>(
        &self,
        described: &'d [Description],
    ) -> impl Iterator<Item = CommunicationEntry<'d>>
    where
        'a: 'd,
    {
        let found = self.found;
        found.communication.iter().zip(described).zip(1..).map(|((pattern, about), id)| CommunicationEntry {
            id,
            pattern,
            about,
            share: self.share(pattern),
            longest: longest_in(pattern),
        })
    }
}

/// The most events of each process of a pattern that JSON has.
fn longest_in(pattern: &CommunicationPattern) -> usize {
    (MOST_SYMBOLS / pattern.parts().len().max(1)).clamp(1, LONGEST)
}

/// On a terminal.
impl Communication<'_> {
    pub(super) fn print(&self, out: &mut impl Write, most: usize, full: bool) -> Result<()> {
        let bold = anstyle::Style::new().bold();
        let found = self.count();
        if found > 0 {
            writeln!(
                out,
                "{bold}{}{bold:#} in {} of {}{LEGEND}",
                show::plural(found as u64, "communication pattern"),
                show::events(Some(self.events)),
                show::plural(self.fold.streams().len() as u64, "stream"),
            )?;
        }
        for (pattern, id) in self.found.communication.iter().take(most).zip(1..) {
            self.print_pattern(out, id, self.found.within(pattern), pattern, full)?;
        }
        if found > most {
            writeln!(out, "\n… and {} more (--top 0 shows all)", show::count((found - most) as u64))?;
        }
        Ok(())
    }

    /// Prints patterns that are not known yet, and how much more often the others occur. Patterns
    /// keep their numbers.
    pub(super) fn print_news(
        &self,
        out: &mut impl Write,
        known: &mut HashMap<String, (usize, u64)>,
        most: usize,
        full: bool,
    ) -> Result<()> {
        for pattern in self.found.communication.iter().take(most) {
            let next = known.len() + 1;
            let (id, before) = known.entry(self.key(pattern)).or_insert((next, 0));
            let more = pattern.count.saturating_sub(*before);
            match (*id == next, more) {
                (true, _) => self.print_pattern(out, next, None, pattern, full)?,
                (false, 0) => {}
                (false, more) => {
                    writeln!(out, "\n#{id}  {}, {} more", times(pattern.count), show::count(more))?;
                }
            }
            *before = pattern.count;
        }
        Ok(())
    }

    /// What a pattern is: the events of each process.
    fn key(&self, pattern: &CommunicationPattern) -> String {
        let part = |&part: &Part| {
            format!("{}: {}\n", self.title(part.stream).terminal(), self.words(part).join(" "))
        };
        pattern.parts().iter().map(part).collect()
    }

    fn print_pattern(
        &self,
        out: &mut impl Write,
        id: usize,
        within: Option<usize>,
        pattern: &CommunicationPattern,
        full: bool,
    ) -> Result<()> {
        let bold = anstyle::Style::new().bold();
        let about = Description::of(pattern, self.processes, &self.found.partners, self.grid.as_ref());
        let parts = pattern.parts();
        let groups = about.groups.map_or(String::new(), |groups| format!(", {groups}"));
        writeln!(out, "\n{bold}#{id}  {}{groups}{bold:#}", about.name())?;
        let within = within.map_or(String::new(), |id| format!(", within #{id}"));
        let numbers = [
            format!(
                "{} in {}",
                times(pattern.count),
                show::plural(pattern.occurrences.len() as u64, "place")
            ),
            format!("{} of {} each", show::plural(pattern.events, "event"), processes_text(parts.len())),
            format!("{} of all{within}", show::percent(self.share(pattern))),
        ];
        for line in show::wrapped(&numbers, show::line_width() - 4) {
            writeln!(out, "    {line}")?;
        }
        if pattern.crossing > 0 {
            let crossing = show::plural(pattern.crossing, "message");
            writeln!(out, "    {crossing} in flight when it begins and when it ends")?;
        }
        for (function, count) in &about.functions {
            let calls = self.processes.calls(parts[0].stream, function);
            writeln!(
                out,
                "    in {}: {}, in {}",
                show::plain(function),
                times(*count),
                show::plural(calls, "call")
            )?;
        }
        self.print_parts(out, parts, full)
    }

    /// What each process does; those that do the same, as collective operations do, at once.
    fn print_parts(&self, out: &mut impl Write, parts: &[Part], full: bool) -> Result<()> {
        let width = show::line_width();
        let mut same: Vec<(Vec<String>, Vec<Part>)> = Vec::new();
        let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for &part in parts {
            let words = self.words(part);
            let next = same.len();
            let at = *known.entry(words.clone()).or_insert(next);
            if at == next {
                same.push((words, Vec::new()));
            }
            same[at].1.push(part);
        }
        let name = |parts: &[Part]| match parts {
            [only] => show::shorten(&show::plain(self.title(only.stream)), 24),
            several => processes_text(several.len()),
        };
        let most = if full { usize::MAX } else { PROCESSES };
        let names: Vec<String> = same.iter().take(most).map(|(_, parts)| name(parts)).collect();
        let indent = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let room = width.saturating_sub(indent + 6).max(20);
        for (name, (words, _)) in names.iter().zip(&same) {
            let lines = wrapped(words, room, if full { usize::MAX } else { LINES });
            let between = format!("\n{}", " ".repeat(indent + 6));
            writeln!(out, "    {name:<indent$}  {}", lines.join(&between))?;
        }
        if same.len() > most {
            let left_out = same.len() - most;
            writeln!(out, "    … and {} more (--full shows all)", show::count(left_out as u64))?;
        }
        Ok(())
    }

    /// The events of a stretch in short, loops in parentheses.
    fn words(&self, part: Part) -> Vec<String> {
        let nest = self.nest(part, LONGEST);
        let mut words: Vec<String> = Vec::new();
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        let mut before = String::new();
        for (at, node) in nest.nodes.iter().enumerate() {
            match *node {
                Node::Loop { times, end, .. } => {
                    open.push((at, end, times));
                    before.push_str(if end - at > 2 { "(" } else { "" });
                }
                Node::Event(symbol) => words.push(std::mem::take(&mut before) + &self.word(part, symbol)),
                // Those of patterns are exact.
                Node::Near { .. } => {}
                Node::LeftOut(events) => words.push(format!("… {}", show::plural(events, "event"))),
            }
            while let Some((start, end, times)) = open.pop_if(|(_, end, _)| *end == at + 1) {
                if let Some(last) = words.last_mut() {
                    last.push_str(&format!("{}^{times}", if end - start > 2 { ")" } else { "" }));
                }
            }
        }
        words
    }

    /// An event in short: `S3`, `R3`, `S3R1` for both at once, `Bcast(0)`.
    fn word(&self, part: Part, symbol: Symbol) -> String {
        let meaning = self.processes.alphabet().meaning(symbol);
        let comm = meaning.field("comm").map_or_else(|| "0".to_string(), text);
        let peers = |key: &str, letter: &str| {
            let peer = |peer: &str| match peer.parse() {
                Ok(rank) => {
                    let communicators = self.processes.communicators();
                    let rank = communicators.world_rank(part.stream.index(), &comm, rank).unwrap_or(rank);
                    format!("{letter}{rank}")
                }
                Err(_) => format!("{letter}{peer}"),
            };
            meaning.field(key).map(text).map(|peers| peers.split(',').map(peer).collect::<String>())
        };
        let messages = [peers("dest", "S"), peers("src", "R")].into_iter().flatten().collect::<String>();
        if meaning.role != Role::Collective && !messages.is_empty() {
            return show::plain(&messages);
        }
        let name = match meaning.name {
            Name::Text(name) => String::from_utf8_lossy(name).into_owned(),
            Name::Integer(number) => number.to_string(),
        };
        let name = name.strip_prefix("MPI_").unwrap_or(&name).to_string();
        let root = meaning.field("root").map_or(String::new(), |root| format!("({})", text(root)));
        show::plain(&(name + &root))
    }

    /// Prints unmatched messages, and collectives that processes disagree on.
    pub(super) fn print_unmatched(&self, out: &mut impl Write, full: bool) -> Result<()> {
        let Partners { unmatched, disagreements, .. } = &self.found.partners;
        let most = if full { usize::MAX } else { MOST_UNMATCHED };
        let bold = anstyle::Style::new().bold();
        if !unmatched.is_empty() {
            let count = unmatched.iter().fold(0u64, |sum, found| sum.saturating_add(found.count));
            writeln!(out, "\n{bold}{}{bold:#} unmatched", show::plural(count, "message"))?;
        }
        for found in unmatched.iter().take(most) {
            broken_line(out, &self.unmatched_text(found))?;
        }
        if unmatched.len() > most {
            writeln!(
                out,
                "    … and {} more kinds (--full shows all)",
                show::count((unmatched.len() - most) as u64)
            )?;
        }
        if !disagreements.is_empty() {
            writeln!(out, "\n{bold}collective operations that processes disagree on{bold:#}")?;
        }
        for found in disagreements.iter().take(most) {
            let [first, second] = found.seen.map(|(stream, at)| {
                let begin = self.fold.streams()[stream].first_position();
                let stream = show::plain(self.fold.streams()[stream].title());
                match at {
                    Some((position, symbol)) => {
                        let label = show::shorten(&self.fold.alphabet().label(symbol), 60);
                        format!("{stream} has {label} (event {})", begin.saturating_add(position))
                    }
                    None => format!("{stream} has none"),
                }
            });
            let comm = show::plain(&found.comm);
            let number = show::count(found.nth.saturating_add(1));
            let text = format!("number {number} on communicator {comm}: {first}; {second}");
            broken_line(out, &text)?;
        }
        if disagreements.len() > most {
            writeln!(
                out,
                "    … and {} more (--full shows all)",
                show::count((disagreements.len() - most) as u64)
            )?;
        }
        Ok(())
    }

    fn unmatched_text(&self, found: &Unmatched) -> String {
        let (one, many) = if found.sent {
            ("send is never received", "sends are never received")
        } else {
            ("receive is never sent to", "receives are never sent to")
        };
        let what = if found.count == 1 { one } else { many };
        let from = found.from.map_or("anyone".to_string(), |from| format!("process {from}"));
        let tag = found.tag.map_or(String::new(), |tag| format!(", tag {tag}"));
        let first = found.first.map_or(String::new(), |(stream, position)| {
            let position = self.fold.streams()[stream].first_position().saturating_add(position);
            let stream = show::plain(self.fold.streams()[stream].title());
            format!("; the first is event {position} of {stream}")
        });
        let comm = show::plain(&found.comm);
        format!(
            "{} {what}: from {from} to process {}, communicator {comm}{tag}{first}",
            show::count(found.count),
            found.to
        )
    }
}

/// A line, or one for each of its parts if it is too long.
fn broken_line(out: &mut impl Write, text: &str) -> Result<()> {
    let room = show::line_width() - 4;
    if text.chars().count() <= room {
        return Ok(writeln!(out, "    {text}")?);
    }
    let is_break = |(at, _): &(usize, &str)| text[..*at].ends_with([':', ';']);
    let mut start = 0;
    for (at, _) in text.match_indices(' ').filter(is_break).chain([(text.len(), "")]) {
        let indent = if start == 0 { "    " } else { "      " };
        writeln!(out, "{indent}{}", &text[start..at])?;
        start = (at + 1).min(text.len());
    }
    Ok(())
}

/// Notes on messages that could not be matched although they may have been completed.
pub(super) fn notes(partners: &Partners) -> Vec<String> {
    let mut notes = Vec::new();
    if partners.absent > 0 {
        notes.push(format!(
            "{} to or from processes that are not in the trace",
            show::plural(partners.absent, "message")
        ));
    }
    if partners.unresolved > 0 {
        notes.push(format!(
            "{} from anyone: the trace does not show the sender",
            show::plural(partners.unresolved, "receive")
        ));
    }
    notes
}

fn text(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Integer(number) => number.to_string(),
        FieldValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_string(),
        2 => "twice".to_string(),
        count => format!("{} times", show::count(count)),
    }
}

fn processes_text(count: usize) -> String {
    match count {
        1 => "1 process".to_string(),
        count => format!("{} processes", show::count(count as u64)),
    }
}

/// Words in lines of limited width; beyond `most` lines they are only counted.
fn wrapped(words: &[String], width: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_full = lines.len() >= most;
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ if is_full => {
                lines.push(format!("… {} more", words.len() - at));
                return lines;
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}
