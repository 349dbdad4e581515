//! The part that all sinks share: interns an event, finds its stream, stores its times. Each
//! sink handles the symbols itself.

use super::{Alphabet, Column, Event, Meaning, Projection, Times, Timing};
use crate::{Error, Result, StreamId, Symbol};
use hashbrown::HashMap;

/// Which times a sink keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimesKept {
    /// Start, duration and metrics of every event.
    #[default]
    All,
    /// None.
    None,
}

/// All of a stream but its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) times: Times,
    pub(crate) events: u64,
}

/// The part that sinks have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intake {
    pub(crate) alphabet: Alphabet,
    pub(crate) streams: Vec<Head>,
    pub(crate) projection: Projection,
    times: TimesKept,
    by_name: HashMap<String, StreamId>,
    /// The symbol interned last, from which the alphabet guesses the next.
    last: Option<Symbol>,
    /// Fields that the projection names and no event has had so far.
    unseen: Vec<String>,
    /// The events as sources emit them, if some are dropped.
    filtered: Option<Filtered>,
}

/// What a filter decided of each event so far.
#[derive(Clone, Debug, Default)]
struct Filtered {
    emitted: Alphabet,
    /// For each of these the symbol, or [`DROPPED`].
    symbols: Vec<Symbol>,
    last: Option<Symbol>,
}

/// The symbol of events that are dropped. No alphabet has as many symbols.
pub(crate) const DROPPED: Symbol = Symbol::from_raw(Symbol::LIMIT - 1);

impl Intake {
    pub(crate) fn new(projection: Projection, times: TimesKept) -> Self {
        let unseen = projection.fields().map(String::from).collect();
        let filtered = (!projection.filter.keeps_all()).then(Filtered::default);
        Self { projection, times, unseen, filtered, ..Self::default() }
    }

    pub(crate) fn events(&self) -> u64 {
        self.streams.iter().map(|stream| stream.events).sum()
    }

    pub(crate) fn unseen_fields(&self) -> &[String] {
        &self.unseen
    }

    /// The stream of this name, and whether it is new.
    pub(crate) fn stream(&mut self, name: &str) -> Result<(StreamId, bool)> {
        if let Some(&stream) = self.by_name.get(name) {
            return Ok((stream, false));
        }
        let id = StreamId::new(self.streams.len())?;
        self.streams.push(Head { name: name.to_string(), ..Head::default() });
        self.by_name.insert(name.to_string(), id);
        Ok((id, true))
    }

    pub(crate) fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> Result<()> {
        let notes = &mut self.streams.get_mut(stream.index()).ok_or_else(never_opened)?.notes;
        match notes.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value.to_string(),
            None => notes.push((key.to_string(), value.to_string())),
        }
        Ok(())
    }

    /// The symbol of an event as the projection sees it.
    #[inline]
    pub(crate) fn intern(&mut self, event: &Event<'_>) -> Result<Symbol> {
        if self.filtered.is_some() {
            return self.intern_filtered(event);
        }
        self.intern_kept(event)
    }

    /// The same where events may be dropped: then it is [`DROPPED`].
    fn intern_filtered(&mut self, event: &Event<'_>) -> Result<Symbol> {
        let Some(filtered) = &mut self.filtered else { return self.intern_kept(event) };
        let emitted = filtered.emitted.intern(event, filtered.last)?;
        filtered.last = Some(emitted);
        if let Some(&known) = filtered.symbols.get(emitted.index()) {
            return Ok(known);
        }
        let emitted = meaning_of(event);
        let keeps = |shown: &Event<'_>| self.projection.filter.keeps(&emitted, &meaning_of(shown));
        let symbol = if self.projection.apply(event, keeps) { self.intern_kept(event)? } else { DROPPED };
        if let Some(filtered) = &mut self.filtered {
            filtered.symbols.push(symbol);
        }
        Ok(symbol)
    }

    #[inline]
    fn intern_kept(&mut self, event: &Event<'_>) -> Result<Symbol> {
        let Self { alphabet, projection, unseen, last, .. } = self;
        if !unseen.is_empty() {
            unseen.retain(|wanted| event.fields.iter().all(|field| field.key != wanted));
        }
        let symbol = projection.apply(event, |event| alphabet.intern(event, *last))?;
        *last = Some(symbol);
        Ok(symbol)
    }

    /// Takes the times of an event that is appended to a stream. Returns false if the event is
    /// dropped. Fails for a stream or a symbol that is of another sink.
    #[inline]
    pub(crate) fn take(&mut self, stream: StreamId, symbol: Symbol, timing: Timing<'_>) -> Result<bool> {
        let head = self.streams.get_mut(stream.index()).ok_or_else(never_opened)?;
        if symbol.index() >= self.alphabet.len() {
            if symbol == DROPPED && self.filtered.is_some() {
                return Ok(false);
            }
            return Err(Error::invalid("a symbol that was never interned"));
        }
        if self.times == TimesKept::All {
            keep_times(&mut head.times, head.events, timing);
        }
        head.events += 1;
        Ok(true)
    }

    pub(crate) fn wants_times(&self) -> bool {
        self.times == TimesKept::All
    }
}

fn meaning_of<'a>(event: &Event<'a>) -> Meaning<'a> {
    Meaning { name: event.name, role: event.role, fields: event.fields.to_vec() }
}

pub(crate) fn never_opened() -> Error {
    Error::invalid("a stream that was never opened")
}

/// Appends the event's times. `before` events came earlier: a column that begins now
/// is filled up with unknowns, and one that this event has nothing for gets another.
fn keep_times(times: &mut Times, before: u64, timing: Timing<'_>) {
    keep(&mut times.starts, before, timing.start, Times::UNKNOWN_START);
    keep(&mut times.durations, before, timing.duration, Times::UNKNOWN_DURATION);
    for (name, column) in &mut times.metrics {
        let value = timing.metrics.iter().find(|(metric, _)| metric == name);
        column.push(value.map_or(f64::NAN, |&(_, value)| value));
    }
    for &(name, value) in timing.metrics {
        if times.metrics.iter().all(|(known, _)| known != name) {
            let mut column = Column::default();
            (0..before).for_each(|_| column.push(f64::NAN));
            column.push(value);
            times.metrics.push((name.to_string(), column));
        }
    }
}

fn keep(column: &mut Option<Column<i64>>, before: u64, value: Option<i64>, unknown: i64) {
    match (column, value) {
        (Some(column), value) => column.push(value.unwrap_or(unknown)),
        (None, None) => {}
        (empty, Some(value)) => {
            let mut column = Column::default();
            (0..before).for_each(|_| column.push(unknown));
            column.push(value);
            *empty = Some(column);
        }
    }
}
