//! Event filters: which events of a trace are kept at all.
//!
//! An event that is dropped leaves no trace: positions count the events that are kept, as if the
//! others had never happened, and the starts and durations of the kept ones stay as they are.
//!
//! A [projection](super::Projection) may show an event under another name and without some of its
//! fields. A filter knows it by both: as the source emits it, and as it is shown.
//!
//! Cost: one decision for each distinct event.

use super::alphabet::Meaning;
use super::pattern::EventPattern;
use super::{Alphabet, Column, Projection, Times, Trace};
use crate::{Result, Symbol};
use std::sync::{Arc, Mutex, PoisonError};

/// Which events are kept: those of `only`, all if there is none, except those of `drop`.
///
/// ```
/// use loopfold::trace::{Collector, Event, EventFilter, Projection, Sink, TimesKept};
///
/// let filter = EventFilter::new(&[], &["futex*"])?;
/// let mut collector = Collector::new(Projection { filter, ..Projection::default() }, TimesKept::All);
/// let stream = collector.stream("main")?;
/// for name in ["accept", "futex_wait", "read", "futex_wake", "close"] {
///     collector.push_event(stream, &Event::named(name))?;
/// }
/// let trace = collector.finish()?;
/// assert_eq!((trace.events(), trace.alphabet.len()), (3, 3));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    only: Vec<EventPattern>,
    drop: Vec<EventPattern>,
    /// Shared by all clones, as readers have their own.
    seen: Arc<Mutex<Seen>>,
}

/// What a filter has seen, for messages about patterns that fit nothing.
#[derive(Debug, Default)]
struct Seen {
    /// The places of the patterns that fitted an event.
    fitted: Vec<usize>,
    events: Alphabet,
}

/// Distinct events that are remembered.
const MOST_SEEN: usize = 1 << 12;

impl EventFilter {
    /// Keeps what one of `only` stands for, or everything if there is none, and drops what one of
    /// `drop` stands for. The words are those of [`EventPattern`].
    pub fn new(only: &[&str], drop: &[&str]) -> Result<Self> {
        let patterns = |words: &[&str]| words.iter().map(|word| EventPattern::parse(word)).collect();
        let (only, drop): (Result<_>, Result<_>) = (patterns(only), patterns(drop));
        Ok(Self { only: only?, drop: drop?, seen: Arc::default() })
    }

    /// True if nothing is dropped.
    pub fn keeps_all(&self) -> bool {
        self.only.is_empty() && self.drop.is_empty()
    }

    /// How many words say what is kept.
    pub fn only_count(&self) -> usize {
        self.only.len()
    }

    /// The words that stood for no event so far, those of `only` and those of `drop`.
    pub fn unfitted(&self) -> [Vec<&str>; 2] {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let words = |patterns: std::ops::Range<usize>| {
            let all = self.only.iter().chain(&self.drop).enumerate();
            let unfitted = all.filter(|(place, _)| patterns.contains(place) && !seen.fitted.contains(place));
            unfitted.map(|(_, pattern)| pattern.word()).collect()
        };
        let all = self.only.len() + self.drop.len();
        [words(0..self.only.len()), words(self.only.len()..all)]
    }

    /// Some of the events that it has decided on, kept or not.
    pub fn seen_events(&self) -> Alphabet {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).events.clone()
    }

    /// True if an event is kept, which is emitted and shown as these.
    pub fn keeps(&self, emitted: &Meaning<'_>, shown: &Meaning<'_>) -> bool {
        let fits = |pattern: &EventPattern| pattern.fits(emitted) || pattern.fits(shown);
        let fitted: Vec<bool> = self.only.iter().chain(&self.drop).map(fits).collect();
        self.remember(emitted, &fitted);
        let (only, drop) = fitted.split_at(self.only.len());
        (only.is_empty() || only.contains(&true)) && !drop.contains(&true)
    }

    fn remember(&self, emitted: &Meaning<'_>, fitted: &[bool]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for place in (0..fitted.len()).filter(|&place| fitted[place]) {
            if !seen.fitted.contains(&place) {
                seen.fitted.push(place);
            }
        }
        if seen.events.len() < MOST_SEEN {
            // It is only for messages.
            let _ = seen.events.intern(&emitted.event(), None);
        }
    }

    /// For each symbol of an alphabet whether it is kept, if it is shown as the projection says.
    pub fn of_alphabet(&self, alphabet: &Alphabet, shown: &Projection) -> Vec<bool> {
        let keeps = |symbol: Symbol| {
            let emitted = alphabet.meaning(symbol);
            shown.apply(&emitted.event(), |event| {
                let shown = Meaning { name: event.name, role: event.role, fields: event.fields.to_vec() };
                self.keeps(&emitted, &shown)
            })
        };
        alphabet.symbols().map(keeps).collect()
    }
}

impl Times {
    /// The times of those events that are kept, of which this says one after the other.
    pub(crate) fn kept(&self, kept: impl Iterator<Item = bool> + Clone) -> Result<Self> {
        Ok(Self {
            starts: self.starts.as_ref().map(|column| column.kept(kept.clone())).transpose()?,
            durations: self.durations.as_ref().map(|column| column.kept(kept.clone())).transpose()?,
            metrics: self
                .metrics
                .iter()
                .map(|(name, column)| Ok((name.clone(), column.kept(kept.clone())?)))
                .collect::<Result<_>>()?,
        })
    }

    /// The times of a range of events.
    pub(crate) fn range(&self, range: std::ops::Range<u64>) -> Result<Self> {
        Ok(Self {
            starts: self.starts.as_ref().map(|column| column.range(range.clone())).transpose()?,
            durations: self.durations.as_ref().map(|column| column.range(range.clone())).transpose()?,
            metrics: self
                .metrics
                .iter()
                .map(|(name, column)| Ok((name.clone(), column.range(range.clone())?)))
                .collect::<Result<_>>()?,
        })
    }
}

impl<T: super::Cell> Column<T> {
    fn kept(&self, kept: impl Iterator<Item = bool>) -> Result<Self> {
        let (mut reader, mut column) = (self.reader(), Self::default());
        for (index, _) in (0..self.len()).zip(kept).filter(|(_, kept)| *kept) {
            column.push(reader.get(index)?);
        }
        Ok(column)
    }
}

impl Trace {
    /// The same trace without the events whose symbols are not kept.
    pub fn filtered(mut self, kept: &[bool]) -> Result<Self> {
        for stream in &mut self.streams {
            let is_kept = |symbol: &Symbol| kept.get(symbol.index()).copied().unwrap_or(true);
            stream.times = stream.times.kept(stream.symbols.iter().map(is_kept))?;
            stream.symbols.retain(is_kept);
        }
        let mut alphabet = Alphabet::default();
        let mut renamed = Vec::with_capacity(self.alphabet.len());
        let nothing = Symbol::new(0)?;
        for symbol in self.alphabet.symbols() {
            let is_kept = kept.get(symbol.index()).copied().unwrap_or(true);
            let entry = self.alphabet.entry(symbol);
            renamed.push(if is_kept { alphabet.intern_entry(entry, None)? } else { nothing });
        }
        Ok(self.with_alphabet(alphabet, &renamed))
    }
}
