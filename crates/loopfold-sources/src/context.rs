//! What a source gets besides the bytes: options, the sink, and a list for the damage it finds.

use crate::{Error, Options, Result};
use loopfold::trace::{Event, Sink, Timing};
use loopfold::{StreamId, Symbol};
use std::fmt::Display;
use std::path::Path;

/// What was wrong with an input that was read leniently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// How many things were wrong.
    pub count: u64,
    /// The first few, each with its place.
    pub first: Vec<String>,
}

impl Damage {
    /// Counts one more thing that was wrong, and keeps its description if it is
    /// among the first.
    pub fn note(&mut self, description: impl Display) {
        self.count += 1;
        if self.first.len() < DAMAGE_SHOWN {
            self.first.push(description.to_string());
        }
    }
}

/// The environment of a source while it reads one input.
pub struct Context<'a> {
    /// What the user asked for.
    pub options: &'a Options,
    /// Where events go.
    sink: &'a mut dyn Sink,
    /// What the input is called, for streams that have no name of their own.
    input: &'a str,
    /// Whether streams of different inputs are distinguished by the input's name.
    one_of_several: bool,
    /// Where the input is, for formats of several files.
    path: Option<&'a Path>,
    /// Fails when the user wants reading to end.
    interrupt: fn() -> std::io::Result<()>,
    /// Bytes read from other files than the input.
    bytes: u64,
    damage: Damage,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut context = f.debug_struct("Context");
        context.field("input", &self.input).field("damage", &self.damage).finish_non_exhaustive()
    }
}

/// How many descriptions of damage are kept.
const DAMAGE_SHOWN: usize = 5;

fn never() -> std::io::Result<()> {
    Ok(())
}

impl<'a> Context<'a> {
    /// For an input called `input`, `one_of_several` if there are others.
    pub fn new(options: &'a Options, sink: &'a mut dyn Sink, input: &'a str, one_of_several: bool) -> Self {
        let (interrupt, damage) = (never as fn() -> _, Damage::default());
        Self { options, sink, input, one_of_several, path: None, interrupt, bytes: 0, damage }
    }

    /// The same for an input that is at this path; `interrupt` fails when reading is to end.
    pub fn at(self, path: Option<&'a Path>, interrupt: fn() -> std::io::Result<()>) -> Self {
        Self { path, interrupt, ..self }
    }

    /// The path of the input. Returns `None` for a pipe.
    pub fn path(&self) -> Option<&'a Path> {
        self.path
    }

    /// An error when the user wants reading to end: for sources that read for long without
    /// asking the input.
    pub fn check_interrupt(&self) -> Result<()> {
        Ok((self.interrupt)()?)
    }

    /// Counts bytes that a source reads from other files than the input.
    pub fn count_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// How many bytes the source read from other files.
    pub fn other_bytes(&self) -> u64 {
        self.bytes
    }

    /// A stream whose name all inputs agree on, such as `rank 5`.
    pub fn shared_stream(&mut self, name: &str) -> Result<StreamId> {
        Ok(self.sink.stream(name)?)
    }

    /// The stream of an input that has only one; it bears the input's name.
    pub fn only_stream(&mut self) -> Result<StreamId> {
        Ok(self.sink.stream(self.input)?)
    }

    /// A stream that the format names, such as `process 7 thread 9`.
    pub fn stream(&mut self, name: &str) -> Result<StreamId> {
        if self.one_of_several {
            Ok(self.sink.stream(&format!("{}: {name}", self.input))?)
        } else {
            Ok(self.sink.stream(name)?)
        }
    }

    /// Reports the sizes of streams before they are read; see [`Sink::weigh`].
    pub fn weigh(&mut self, sizes: &[(StreamId, u64)]) {
        self.sink.weigh(sizes);
    }

    /// Whether the events of a stream are kept; see [`Sink::wants_stream`].
    pub fn wants_stream(&self, stream: StreamId) -> bool {
        self.sink.wants_stream(stream)
    }

    /// Notes something about a stream; see [`Sink::describe`].
    pub fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> Result<()> {
        Ok(self.sink.describe(stream, key, value)?)
    }

    /// The symbol of an event; see [`Sink::intern`].
    #[inline]
    pub fn intern(&mut self, event: &Event<'_>) -> Result<Symbol> {
        Ok(self.sink.intern(event)?)
    }

    /// Appends an occurrence of a symbol.
    #[inline]
    pub fn push(&mut self, stream: StreamId, symbol: Symbol, timing: Timing<'_>) -> Result<()> {
        Ok(self.sink.push(stream, symbol, timing)?)
    }

    /// Interns an event and appends it without times.
    #[inline]
    pub fn push_event(&mut self, stream: StreamId, event: &Event<'_>) -> Result<()> {
        Ok(self.sink.push_event(stream, event)?)
    }

    /// Whether the user asked for this field.
    pub fn wants(&self, field: &str) -> bool {
        self.sink.projection().wants(field)
    }

    /// Whether the user asked for any field.
    pub fn wants_any(&self) -> bool {
        self.sink.projection().wants_any()
    }

    /// Whether times are used.
    pub fn wants_times(&self) -> bool {
        self.sink.wants_times()
    }

    /// Something at `place` is not as it should be: an error, unless reading leniently.
    pub fn damaged(&mut self, place: impl Display, reason: impl Display) -> Result<()> {
        if !self.options.lenient {
            return Err(Error::damaged(place, reason));
        }
        self.damage.note(format_args!("{place}: {reason}"));
        Ok(())
    }

    /// What was wrong, after reading leniently.
    pub fn into_damage(self) -> Damage {
        self.damage
    }
}
