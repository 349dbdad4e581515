//! Patterns of single processes, communication patterns, the communication matrix, and unmatched
//! messages.
//!
//! Patterns come as iterators, and each is written before the next one is made. Of patterns of
//! several processes, the nest of each process is made when it is written, so that memory is that
//! of the longest one. Numbers of places are bounded, whatever sizes an archive declares.

use crate::keys::distinct;
use crate::labels::cut_field;
use crate::{JsonWriter, Labels, nest, rounded};
use loopfold::Fold;
use loopfold::emit::Text;
use loopfold::mpi::{Direction, Topology};
use loopfold::questions::communication::{
    CommunicationPattern, Description, Disagreement, Part, Processes, TracePatterns, Unmatched,
};
use loopfold::questions::nest::Nest;
use loopfold::questions::patterns::{KeptPositions, Pattern, PatternMethod};
use std::io::{Result, Write};

/// Events of a process pattern that are written out; of longer ones each repetition once.
const WRITTEN_OUT: u64 = 4096;
/// Places of a pattern.
const MOST_PLACES: usize = 1000;

/// What is written of all patterns together.
#[derive(Debug)]
pub struct Patterns<'a> {
    /// The fold.
    pub fold: &'a Fold,
    /// Its streams as patterns are made of them.
    pub processes: &'a Processes<'a>,
    /// What was found.
    pub found: &'a TracePatterns,
    /// How it was found.
    pub method: PatternMethod,
    /// The events of all streams that patterns are made of, if 64 bits can count them.
    pub events: Option<u64>,
    /// How many patterns there are.
    pub count: u64,
    /// How many of them are not written.
    pub left_out: u64,
}

/// A pattern of several processes.
#[derive(Debug)]
pub struct CommunicationEntry<'a> {
    /// Its number.
    pub id: usize,
    /// The pattern.
    pub pattern: &'a CommunicationPattern,
    /// Its channels and what else is known of it.
    pub about: &'a Description,
    /// Its share in all events.
    pub share: f64,
    /// The most events of each process that are written.
    pub longest: usize,
}

/// A pattern of single processes.
#[derive(Debug)]
pub struct ProcessEntry<'a> {
    /// Its number.
    pub id: usize,
    /// The pattern.
    pub pattern: &'a Pattern,
    /// Its first occurrence.
    pub nest: Nest,
    /// Its share in all events.
    pub share: f64,
    /// The titles of the streams that have it.
    pub processes: Vec<Text<'a>>,
}

/// Writes patterns, those of several processes first.
pub fn patterns<'a, W: Write>(
    out: &mut JsonWriter<W>,
    patterns: &Patterns<'a>,
    communication: impl IntoIterator<Item = CommunicationEntry<'a>>,
    process: impl IntoIterator<Item = ProcessEntry<'a>>,
) -> Result<()> {
    let &Patterns { fold, processes, found, method, events, count, left_out } = patterns;
    let positions = processes.positions();
    let mut labels = Labels::new(processes.alphabet());
    let mut writer = PatternWriter { fold, processes, found, positions: &positions, labels: &mut labels };
    out.begin_object()?;
    out.field("method", method_name(method))?;
    out.field("streams", fold.streams().len())?;
    out.field("events", events)?;
    out.field("communication", processes.communicate())?;
    out.field("found", count)?;
    out.field("left_out", left_out)?;
    out.key("patterns")?;
    out.begin_array()?;
    for entry in communication {
        writer.communication(out, &entry)?;
    }
    for entry in process {
        writer.process(out, &entry)?;
    }
    out.end()?;
    let partners = &found.partners;
    out.key("matrix")?;
    out.begin_array()?;
    for (&(from, to), traffic) in &partners.matrix {
        out.begin_object()?;
        out.field("from", from)?;
        out.field("to", to)?;
        out.field("messages", traffic.messages)?;
        out.field("bytes", traffic.bytes)?;
        out.end()?;
    }
    out.end()?;
    out.key("unmatched")?;
    out.begin_array()?;
    for one in &partners.unmatched {
        unmatched(out, fold, one)?;
    }
    out.end()?;
    // Those are of the fold's own alphabet, from which fields may have been left out above.
    let mut whole_labels = Labels::new(fold.alphabet());
    out.key("disagreements")?;
    out.begin_array()?;
    for one in &partners.disagreements {
        disagreement(out, fold, &mut whole_labels, one)?;
    }
    out.end()?;
    out.field("absent", partners.absent)?;
    out.field("unresolved", partners.unresolved)?;
    cut_field(out, labels.cut() + whole_labels.cut())?;
    out.end()
}

fn method_name(method: PatternMethod) -> &'static str {
    match method {
        PatternMethod::Ngrams => "ngrams",
        PatternMethod::Exact => "exact",
    }
}

#[derive(Debug)]
struct PatternWriter<'p, 'a> {
    fold: &'a Fold,
    processes: &'a Processes<'a>,
    found: &'a TracePatterns,
    positions: &'p KeptPositions<'a>,
    labels: &'p mut Labels<'a>,
}

impl PatternWriter<'_, '_> {
    fn communication<W: Write>(
        &mut self,
        out: &mut JsonWriter<W>,
        entry: &CommunicationEntry<'_>,
    ) -> Result<()> {
        let &CommunicationEntry { id, pattern, about, share, longest } = entry;
        let first = pattern.parts()[0].stream;
        let rank = |index: usize| self.processes.communicators().rank(pattern.parts()[index].stream.index());
        out.begin_object()?;
        out.field("id", id)?;
        out.field("kind", "communication")?;
        out.field("collective", about.is_collective)?;
        out.key("events")?;
        out.begin_object()?;
        for part in self.distinct_parts(pattern.parts()) {
            out.key(self.name(part))?;
            let events = self.nest(part, longest).events(longest as u64);
            self.labels.events(out, events)?;
        }
        out.end()?;
        out.field("length", pattern.events)?;
        out.key("nests")?;
        out.begin_object()?;
        for part in self.distinct_parts(pattern.parts()) {
            out.key(self.name(part))?;
            let its_nest = self.nest(part, longest);
            nest(out, self.labels, &its_nest, None)?;
        }
        out.end()?;
        out.field("count", pattern.count)?;
        out.field("places", pattern.occurrences.len())?;
        out.field("within", self.found.within(pattern))?;
        out.field("crossing", pattern.crossing)?;
        out.field("share", rounded(share, 4))?;
        out.key("processes")?;
        out.array(pattern.parts().iter().map(|part| self.fold.stream(part.stream).title()))?;
        out.key("groups")?;
        out.begin_array()?;
        for parts in pattern.groups() {
            out.array(parts.iter().map(|part| self.processes.communicators().rank(part.stream.index())))?;
        }
        out.end()?;
        self.communication_positions(out, pattern)?;
        out.key("channels")?;
        out.begin_array()?;
        for (from, to) in about.channels.pairs() {
            out.array([rank(from), rank(to)])?;
        }
        out.end()?;
        out.key("topology")?;
        topology(out, about.topology.as_ref(), rank)?;
        out.key("contexts")?;
        out.begin_array()?;
        for (function, count) in &about.functions {
            out.begin_object()?;
            out.key("function")?;
            self.labels.function(out, function.as_bytes())?;
            out.field("count", *count)?;
            out.field("calls", self.processes.calls(first, function))?;
            out.end()?;
        }
        out.end()?;
        out.end()
    }

    fn communication_positions<W: Write>(
        &self,
        out: &mut JsonWriter<W>,
        pattern: &CommunicationPattern,
    ) -> Result<()> {
        let most = MOST_PLACES / pattern.parts().len().max(1);
        out.key("positions")?;
        out.begin_array()?;
        for occurrence in pattern.occurrences.iter().take(most.max(1)) {
            out.begin_object()?;
            out.key("starts")?;
            out.begin_object()?;
            for part in self.distinct_parts(&occurrence.parts) {
                out.field(self.name(part), self.position(part.stream.index(), part.start))?;
            }
            out.end()?;
            out.field("times", occurrence.times)?;
            out.end()?;
        }
        out.end()
    }

    fn process<W: Write>(&mut self, out: &mut JsonWriter<W>, entry: &ProcessEntry<'_>) -> Result<()> {
        let ProcessEntry { id, pattern, nest: its_nest, share, processes } = entry;
        out.begin_object()?;
        out.field("id", *id)?;
        out.field("kind", "process")?;
        out.key("events")?;
        self.labels.events(out, its_nest.events(WRITTEN_OUT))?;
        out.field("length", its_nest.length(0..its_nest.nodes.len()))?;
        out.key("lengths")?;
        out.array([pattern.fewest_events, pattern.most_events])?;
        out.key("nest")?;
        nest(out, self.labels, its_nest, None)?;
        out.field("count", pattern.count)?;
        out.field("places", pattern.places)?;
        out.field("inside", pattern.inside)?;
        out.field("share", rounded(*share, 4))?;
        out.key("processes")?;
        out.array(processes)?;
        self.process_positions(out, pattern)?;
        out.field("topology", None::<u64>)?;
        if let Some(is_supermaximal) = pattern.is_supermaximal {
            out.field("supermaximal", is_supermaximal)?;
        }
        out.end()
    }

    fn process_positions<W: Write>(&self, out: &mut JsonWriter<W>, pattern: &Pattern) -> Result<()> {
        let streams = self.found.process.streams_of(pattern);
        let places = streams.flat_map(|(stream, places)| places.iter().map(move |place| (stream, place)));
        out.key("positions")?;
        out.begin_array()?;
        for (stream, place) in places.take(MOST_PLACES) {
            let start = place.start as usize;
            out.begin_object()?;
            out.field("stream", self.fold.streams()[stream].name())?;
            out.field("start", self.start(stream, start, start + pattern.symbols.len()))?;
            out.field("times", place.times)?;
            out.end()?;
        }
        out.end()
    }

    /// Where a stretch of what patterns are made of first begins, among all events of its stream.
    fn start(&self, stream: usize, start: usize, end: usize) -> Option<u64> {
        let first = self.processes.traces()[stream].shown().first(start, end);
        self.position(stream, first)
    }

    /// The position in the whole stream of something that patterns are made of.
    fn position(&self, stream: usize, at: u64) -> Option<u64> {
        let first = self.fold.streams()[stream].first_position();
        self.positions.of(stream, at).map(|position| first.saturating_add(position))
    }

    fn nest(&self, part: Part, longest: usize) -> Nest {
        let shown = self.processes.traces()[part.stream.index()].shown();
        shown.nest_between(part.start, part.end, longest)
    }

    fn name(&self, part: Part) -> &str {
        self.fold.stream(part.stream).name().raw()
    }

    /// The parts whose streams have names of their own.
    fn distinct_parts(&self, parts: &[Part]) -> Vec<Part> {
        let kept = distinct(parts.iter().map(|&part| self.name(part)));
        kept.into_iter().map(|index| parts[index]).collect()
    }
}

fn topology<W: Write>(
    out: &mut JsonWriter<W>,
    topology: Option<&Topology>,
    rank: impl Fn(usize) -> u32,
) -> Result<()> {
    let Some(topology) = topology else { return out.value(None::<u64>) };
    let direction = |direction: &Direction| match direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Both => "both",
    };
    out.begin_object()?;
    out.field("name", topology.layout.name())?;
    out.key("shape")?;
    out.array(&topology.shape)?;
    out.key("directions")?;
    out.array(topology.directions.iter().map(direction))?;
    out.field("root", topology.root.map(rank))?;
    out.field("departure", rounded(topology.departure(), 4))?;
    out.field("missing", topology.missing)?;
    out.field("extra", topology.extra)?;
    out.end()
}

fn unmatched<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, found: &Unmatched) -> Result<()> {
    out.begin_object()?;
    out.field("kind", if found.sent { "send" } else { "receive" })?;
    out.field("from", found.from)?;
    out.field("to", found.to)?;
    out.field("comm", &found.comm)?;
    out.field("tag", found.tag)?;
    out.field("count", found.count)?;
    out.key("first")?;
    match found.first {
        None => out.value(None::<u64>)?,
        Some((stream, position)) => {
            out.begin_object()?;
            out.field("stream", fold.streams()[stream].name())?;
            out.field("start", fold.streams()[stream].first_position().saturating_add(position))?;
            out.end()?;
        }
    }
    out.end()
}

fn disagreement<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    labels: &mut Labels<'_>,
    found: &Disagreement,
) -> Result<()> {
    out.begin_object()?;
    out.field("comm", &found.comm)?;
    out.field("nth", found.nth)?;
    out.key("seen")?;
    out.begin_array()?;
    for (stream, at) in found.seen {
        out.begin_object()?;
        out.field("stream", fold.streams()[stream].name())?;
        let first = fold.streams()[stream].first_position();
        out.field("start", at.map(|(position, _)| first.saturating_add(position)))?;
        out.key("event")?;
        match at {
            Some((_, symbol)) => labels.event(out, symbol)?,
            None => out.value(None::<u64>)?,
        }
        out.end()?;
    }
    out.end()?;
    out.end()
}
