//! What a source is given besides the bytes: options, the sink, and a place to put
//! what it found wrong.

use crate::{Error, FunctionNames, Result};
use loopfold::StreamId;
use loopfold::trace::{Event, Sink};
use std::fmt::Display;
use std::sync::Arc;

/// What a user can ask of sources. Each source says which options it heeds.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `lines`: a regular expression whose capture groups are the event.
    pub select: Option<String>,
    /// `lines`: a regular expression whose capture groups name the stream; `csv`: the
    /// column that does.
    pub stream: Option<String>,
    /// `lines`: write placeholders for times, numbers, addresses and the like.
    pub mask: bool,
    /// `csv`: the columns that make the event.
    pub event: Vec<String>,
    /// `csv`: the column with the start.
    pub start: Option<String>,
    /// `csv`: the column with the duration.
    pub duration: Option<String>,
    /// `csv`: columns with metrics.
    pub metric: Vec<String>,
    /// `csv`: the unit of times, where the column's name does not tell: `s`, `ms`, `us`, `ns`.
    pub time_unit: Option<String>,
    /// `chrome`: a slice is an enter and a leave.
    pub calls: bool,
    /// `chrome`: only slices of these categories.
    pub category: Vec<String>,
    /// `calls-binary`: what the functions are called.
    pub functions: Arc<FunctionNames>,
    /// Go on past damage and report it, instead of stopping with an error.
    pub lenient: bool,
    /// `lines`: a last line without its end was cut off, which is damage.
    pub whole_lines: bool,
}

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

/// The surroundings of a source while it reads one input.
pub struct Context<'a> {
    /// What the user asked for.
    pub options: &'a Options,
    /// Where events go.
    sink: &'a mut dyn Sink,
    /// What the input is called, for streams that have no name of their own.
    input: &'a str,
    /// Whether streams of different inputs must be told apart by the input's name.
    one_of_several: bool,
    damage: Damage,
}

/// How many descriptions of damage are kept.
const DAMAGE_SHOWN: usize = 5;

impl<'a> Context<'a> {
    /// For an input called `input`, `one_of_several` if there are others.
    pub fn new(options: &'a Options, sink: &'a mut dyn Sink, input: &'a str, one_of_several: bool) -> Self {
        Self { options, sink, input, one_of_several, damage: Damage::default() }
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

    /// Notes something about a stream; see [`Sink::describe`].
    pub fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> Result<()> {
        Ok(self.sink.describe(stream, key, value)?)
    }

    /// Appends an event.
    #[inline]
    pub fn push(&mut self, stream: StreamId, event: &Event<'_>) -> Result<()> {
        Ok(self.sink.push(stream, event)?)
    }

    /// Whether the user asked for this field.
    pub fn wants(&self, field: &str) -> bool {
        self.sink.wants(field)
    }

    /// Whether times are of any use.
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
