//! Searches for a pattern in all streams that it concerns: one sequence in every stream, or a
//! separate sequence for each process, whose windows are joined to occurrences.
//!
//! Equal streams are searched once. Every variant of a pattern is searched, and the one that
//! fits best is taken. Time: that of [`find_similar`] for each distinct stream, and of
//! [`join_similar`] for each variant, which [`MessagesInOrder`] are matched for once. Memory is
//! O(similar windows), at most 2²⁴ for each process.

use super::{
    Compared, Filtered, LikePattern, Likeness, MessagesInOrder, ProcessStreams, RolesAndPeers,
    SimilarOccurrence, SimilarPlace, find_similar, join_similar,
};
use crate::fold::Fold;
use crate::mpi::KnownPattern;
use crate::questions::communication::{FirstPlace, Part, Processes, TracePatterns};
use crate::{Error, Result, RuleId, StreamId, Symbol};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What each event of a sequence may be.
pub type EventSequence = Vec<Vec<Symbol>>;

/// A pattern to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimilarPattern {
    /// In all streams the same.
    Everywhere(EventSequence),
    /// A separate sequence for each process, in one of several variants.
    Processes(Vec<SimilarVariant>),
}

/// A variant of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimilarVariant {
    /// What is done first, if there are other variants.
    pub order: Option<String>,
    /// The events of each process.
    pub sequences: BTreeMap<usize, EventSequence>,
}

/// The part of the trace that is compared with the pattern.
#[derive(Clone, Debug)]
pub enum ComparedEvents {
    /// Events by their names and fields.
    Fields(Compared),
    /// Sends and receives, and the processes at their other ends.
    RolesAndPeers(RolesAndPeers),
}

/// Settings of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// What counts as similar in one stream.
    pub likeness: Likeness,
    /// The most edits of an occurrence in several processes, as a share of the pattern's events.
    pub max_error: f64,
    /// The most windows that are kept, the first ones; all are counted.
    pub keep: u64,
}

impl Config {
    /// The defaults.
    pub const fn new() -> Self {
        Self { likeness: Likeness::DEFAULT, max_error: 0.1, keep: u64::MAX }
    }

    setters! {
        /// What counts as similar in one stream.
        likeness: Likeness,
        /// The most edits of an occurrence in several processes, as a share of the pattern's events.
        max_error: f64,
        /// The most windows that are kept, the first ones; all are counted.
        keep: u64,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimilarFound {
    /// Streams and windows, as many as are kept.
    pub matches: Vec<(StreamId, SimilarPlace)>,
    /// How many windows there are.
    pub count: u64,
    /// How many of them are the pattern itself.
    pub exact: u64,
    /// How many streams have some.
    pub streams: u64,
    /// How much the filter left to do.
    pub filtered: Filtered,
    /// For a pattern of several processes: the occurrences that the windows form.
    pub joined: Option<JoinedOccurrences>,
    /// Other variants that occur too, and how often.
    pub other_orders: Vec<(String, usize)>,
    /// How many processes of the pattern the trace does not have.
    pub absent_processes: usize,
}

/// The occurrences of a pattern of several processes.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedOccurrences {
    /// Which of several variants it is.
    pub order: Option<String>,
    /// How many events the pattern has, in all processes.
    pub pattern_events: u64,
    /// Windows belong to processes of the pattern; these are the streams of those that the
    /// trace has.
    pub streams: BTreeMap<usize, StreamId>,
    /// The occurrences.
    pub occurrences: Vec<SimilarOccurrence>,
}

/// More windows do not fit in memory together.
const MOST_WINDOWS: usize = 1 << 24;

/// No pattern has more processes; those between them take memory too.
const MOST_PROCESSES: usize = 1 << 22;

/// More events would take too long.
const MOST_EVENTS: u64 = 1 << 40;

impl SimilarPattern {
    /// The most events of one process in a pattern from a list.
    pub const LONGEST_LISTED: u64 = 4096;

    /// A pattern that is known by name, and what is to be compared with it.
    pub fn known(pattern: &KnownPattern) -> Result<(Self, ComparedEvents)> {
        let mut numbers = RolesAndPeers::default();
        let mut variants = Vec::new();
        for variant in pattern.variants() {
            let mut sequences = BTreeMap::new();
            for (process, events) in
                variant.events.iter().enumerate().filter(|(_, events)| !events.is_empty())
            {
                let symbols = events.iter().map(|&(role, peer)| Ok(vec![numbers.symbol(role, Some(peer))?]));
                sequences.insert(process, symbols.collect::<Result<EventSequence>>()?);
            }
            variants.push(SimilarVariant { order: Some(variant.order), sequences });
        }
        Ok((Self::Processes(variants), ComparedEvents::RolesAndPeers(numbers)))
    }

    /// The pattern of a number, from 1, in the list of a trace. Returns `None` if there is no such
    /// number.
    pub fn numbered(
        processes: &Processes<'_>,
        patterns: &TracePatterns,
        number: usize,
    ) -> Result<Option<Self>> {
        let sequence = |part: Part| {
            let shown = processes.traces()[part.stream.index()].shown();
            if part.end - part.start > Self::LONGEST_LISTED {
                return Err(Error::limit(format_args!(
                    "pattern {number} has more than {} events of one process",
                    Self::LONGEST_LISTED
                )));
            }
            let nest = shown.nest_between(part.start, part.end, usize::MAX);
            let events = nest.events(Self::LONGEST_LISTED);
            Ok(events.into_iter().map(|symbol| vec![symbol]).collect::<EventSequence>())
        };
        Ok(match patterns.first_place(processes, number) {
            None => None,
            Some(FirstPlace::Process(part)) => Some(Self::Everywhere(sequence(part)?)),
            Some(FirstPlace::Communication(parts)) => {
                let mut sequences = BTreeMap::new();
                for part in parts {
                    let process = processes.communicators().rank(part.stream.index()) as usize;
                    sequences.insert(process, sequence(part)?);
                }
                Some(Self::Processes(vec![SimilarVariant { order: None, sequences }]))
            }
        })
    }
}

/// Looks for a pattern.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::patterns::EventChoice;
/// use loopfold::questions::similar::{Compared, ComparedEvents, ProcessStreams, SimilarPattern, self, search_similar};
/// use loopfold::trace::{Collector, Event, Sink};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["a", "b", "c", "d", "x", "a", "b", "d", "x"] {
///     collector.push_event(stream, &Event::named(name))?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let compared = Compared::of(fold.alphabet(), &EventChoice::default())?;
/// let pattern = SimilarPattern::Everywhere(compared.called(fold.alphabet(), &["a", "b", "c", "d"])?);
/// let events = ComparedEvents::Fields(compared);
/// let config = similar::Config::new();
/// let found = search_similar(&fold, &ProcessStreams::of(&fold), &events, &pattern, &config)?;
/// let windows: Vec<_> = found.matches.iter().map(|(_, place)| (place.start, place.distance)).collect();
/// assert_eq!(windows, [(0, 0), (5, 1)]);
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn search_similar(
    fold: &Fold,
    processes: &ProcessStreams<'_>,
    events: &ComparedEvents,
    pattern: &SimilarPattern,
    config: &Config,
) -> Result<SimilarFound> {
    let longest = fold.streams().iter().map(|stream| fold.length(stream.root())).max().unwrap_or(0);
    if longest > MOST_EVENTS {
        return Err(Error::limit(format_args!(
            "a stream of {longest} events is too long to look at all of it"
        )));
    }
    let mut search = Search { fold, processes, events, config, messages: None };
    match pattern {
        SimilarPattern::Everywhere(sequence) => search.everywhere(sequence),
        SimilarPattern::Processes(variants) => search.in_processes(variants),
    }
}

/// How well a variant fits: its occurrences, how few edits they have, and the events of similar
/// windows.
type Rank = (usize, Reverse<u64>, u64);

struct Search<'a> {
    fold: &'a Fold,
    processes: &'a ProcessStreams<'a>,
    events: &'a ComparedEvents,
    config: &'a Config,
    /// Matched when the first windows are to be joined.
    messages: Option<MessagesInOrder>,
}

impl Search<'_> {
    /// The compared form of each symbol in a stream.
    fn compared(&self, stream: StreamId) -> Result<Vec<Option<Symbol>>> {
        match self.events {
            ComparedEvents::Fields(compared) => Ok(compared.symbols().to_vec()),
            ComparedEvents::RolesAndPeers(numbers) => {
                self.processes.roles_and_peers(stream, &mut numbers.clone())
            }
        }
    }

    fn everywhere(&self, sequence: &EventSequence) -> Result<SimilarFound> {
        let pattern = LikePattern::of_events(sequence, self.config.likeness)?;
        let mut found = SimilarFound::default();
        // Equal streams are examined once.
        let mut known: HashMap<RuleId, SimilarFound> = HashMap::new();
        for stream in self.fold.stream_ids() {
            let root = self.fold.stream(stream).root();
            let one = match known.remove(&root) {
                Some(one) => one,
                None => self.in_stream(stream, &pattern)?,
            };
            found.add(stream, &one, self.config.keep);
            known.insert(root, one);
        }
        Ok(found)
    }

    fn in_stream(&self, stream: StreamId, pattern: &LikePattern) -> Result<SimilarFound> {
        let compared = self.compared(stream)?;
        let root = self.fold.stream(stream).root();
        let mut found = SimilarFound::default();
        found.filtered = find_similar(self.fold, root, &compared, pattern, &mut |place| {
            found.take(stream, place, self.config.keep);
            true
        });
        Ok(found)
    }

    fn in_processes(&mut self, variants: &[SimilarVariant]) -> Result<SimilarFound> {
        let last = variants.iter().flat_map(|variant| variant.sequences.keys()).max().copied();
        if let Some(last) = last.filter(|&last| last >= MOST_PROCESSES) {
            return Err(Error::limit(format_args!("a pattern with the rank {last}; ranks are below 2^22")));
        }
        let mut best: Option<(SimilarFound, Rank)> = None;
        let mut orders: Vec<(&str, usize)> = Vec::new();
        for variant in variants {
            let (found, rank) = self.variant(variant)?;
            orders.extend(variant.order.as_deref().map(|order| (order, rank.0)));
            // Of equals the most usual one, which comes first.
            if best.as_ref().is_none_or(|(_, known)| rank > *known) {
                best = Some((found, rank));
            }
        }
        let (mut found, _) = best.ok_or_else(|| Error::invalid("the pattern has no processes"))?;
        // A program may do the same in one direction and then in the other.
        let chosen = found.joined.as_ref().and_then(|joined| joined.order.as_deref());
        let others = orders.into_iter().filter(|&(order, count)| count > 0 && Some(order) != chosen);
        found.other_orders = others.map(|(order, count)| (order.to_string(), count)).collect();
        let all = 0..last.map_or(0, |last| last + 1);
        found.absent_processes = all.filter(|&process| self.processes.stream(process).is_none()).count();
        Ok(found)
    }

    fn variant(&mut self, variant: &SimilarVariant) -> Result<(SimilarFound, Rank)> {
        let processes = variant.sequences.keys().last().map_or(0, |last| last + 1);
        let mut windows = vec![Vec::new(); processes];
        let mut lengths = vec![0; processes];
        let mut streams = BTreeMap::new();
        let mut found = SimilarFound::default();
        for (&process, sequence) in &variant.sequences {
            lengths[process] = sequence.len();
            let Some(stream) = self.processes.stream(process) else { continue };
            streams.insert(process, stream);
            found.filtered.add(self.windows(stream, sequence, &mut windows[process])?);
            found.streams += u64::from(!windows[process].is_empty());
        }
        let mut events = 0;
        for (&process, &stream) in &streams {
            for &place in &windows[process] {
                found.take(stream, place, self.config.keep);
                events += (place.length - place.distance.min(place.length)) as u64;
            }
        }
        found.matches.sort_by_key(|&(stream, place)| (stream, place.start));
        if found.count > 0 && self.messages.is_none() {
            self.messages = Some(MessagesInOrder::of(self.fold, self.processes)?);
        }
        let occurrences = match &self.messages {
            Some(messages) => join_similar(&windows, &lengths, messages, self.config.max_error),
            None => Vec::new(),
        };
        let edits = occurrences.iter().map(|occurrence| occurrence.distance).sum();
        let rank = (occurrences.len(), Reverse(edits), events);
        let pattern_events = lengths.iter().map(|&length| length as u64).sum();
        found.joined =
            Some(JoinedOccurrences { order: variant.order.clone(), pattern_events, streams, occurrences });
        Ok((found, rank))
    }

    /// The windows of one process. A pattern of few events has fewer edits.
    fn windows(
        &self,
        stream: StreamId,
        sequence: &EventSequence,
        windows: &mut Vec<SimilarPlace>,
    ) -> Result<Filtered> {
        let Likeness { edits, ngram } = self.config.likeness;
        let edits = edits.min(sequence.len().saturating_sub(1));
        let pattern = LikePattern::of_events(sequence, Likeness { edits, ngram })?;
        let compared = self.compared(stream)?;
        let root = self.fold.stream(stream).root();
        let filtered = find_similar(self.fold, root, &compared, &pattern, &mut |place| {
            windows.push(place);
            windows.len() <= MOST_WINDOWS
        });
        if windows.len() > MOST_WINDOWS {
            return Err(Error::limit(format_args!(
                "more than {MOST_WINDOWS} windows of a process are like the pattern"
            )));
        }
        Ok(filtered)
    }
}

impl SimilarFound {
    fn take(&mut self, stream: StreamId, place: SimilarPlace, keep: u64) {
        if self.count < keep {
            self.matches.push((stream, place));
        }
        self.count += 1;
        self.exact += u64::from(place.distance == 0);
    }

    /// Adds what was found in a stream.
    fn add(&mut self, stream: StreamId, one: &Self, keep: u64) {
        let room = usize::try_from(keep.saturating_sub(self.matches.len() as u64)).unwrap_or(usize::MAX);
        self.matches.extend(one.matches.iter().take(room).map(|&(_, place)| (stream, place)));
        self.count = self.count.saturating_add(one.count);
        self.exact = self.exact.saturating_add(one.exact);
        self.streams += u64::from(one.count > 0);
        self.filtered.add(one.filtered);
    }
}

impl Filtered {
    fn add(&mut self, other: Self) {
        self.places = self.places.saturating_add(other.places);
        self.verified = self.verified.saturating_add(other.verified);
    }
}
