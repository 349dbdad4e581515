//! A trace: an alphabet and the streams written in it.
//!
//! Sources push symbols into a [`Sink`], which gives each kind of [`Event`] its symbol; a
//! [`Collector`] is the sink that keeps the whole trace in memory. Symbols take 4 bytes an event, times about what pco
//! needs for them (1 to 4 bytes for typical clocks).

mod alphabet;
mod collector;
mod column;
mod event;
mod filter;
mod glob;
mod intake;
mod outline;
mod pattern;
mod projection;
mod spill;

pub(crate) use alphabet::is_bare_integer;
pub use alphabet::{Alphabet, Meaning};
pub use collector::{Collector, STREAM_LIMIT};
pub(crate) use column::{CHUNK, Cell, Chunk, Sum};
pub use column::{Column, ColumnReader};
pub use event::{Event, Field, Name, OFF_CPU, RECORDING, Role, Timing, Value};
pub use filter::EventFilter;
pub use glob::Glob;
pub(crate) use intake::Intake;
pub use intake::TimesKept;
pub use outline::ChunkTable;
pub use pattern::EventPattern;
pub(crate) use pattern::{integer, is_field, name_if_printed, printed};
pub use projection::{NameMap, Projection};
pub(crate) use spill::Content;
pub use spill::{ChunkStore, Spill};

use crate::{Result, StreamId, Symbol};

/// Where a source delivers what it reads. Collecting a trace is one sink; folding
/// while reading is another.
///
/// A source that knows its kinds of events interns each once and then pushes symbols, so
/// that an event costs neither encoding nor a look-up. A symbol belongs to the sink, not
/// to a stream: threads that share a sink behind a lock intern a kind once for all of
/// them, gather symbols and times on their own, and hold the lock only to push a batch.
///
/// ```
/// use loopfold::trace::{Collector, Event, Sink, Timing};
///
/// let mut collector = Collector::default();
/// let step = collector.intern(&Event::named("step"))?;
/// for worker in ["worker 0", "worker 1"] {
///     let stream = collector.stream(worker)?;
///     for start in [0, 10, 20] {
///         collector.push(stream, step, Timing { start: Some(start), ..Timing::UNKNOWN })?;
///     }
///     collector.push_event(stream, &Event::named("done"))?;
/// }
/// let trace = collector.finish()?;
/// assert_eq!((trace.events(), trace.alphabet.len()), (8, 2));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub trait Sink: Send {
    /// Opens a stream, or finds the one opened before under the same name.
    fn stream(&mut self, name: &str) -> Result<StreamId>;

    /// Notes something about a stream, such as a title to show (`title`). A later
    /// note under the same key replaces the earlier one.
    fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> Result<()>;

    /// The symbol of an event, good for every stream of this sink. The sink's projection
    /// is applied here, so different events may get the same symbol.
    fn intern(&mut self, event: &Event<'_>) -> Result<Symbol>;

    /// Appends an occurrence of a symbol that [`Sink::intern`] gave.
    fn push(&mut self, stream: StreamId, symbol: Symbol, timing: Timing<'_>) -> Result<()>;

    /// Interns an event and appends it without times: for sources that do not know
    /// beforehand which events there are, such as lines of text.
    #[inline]
    fn push_event(&mut self, stream: StreamId, event: &Event<'_>) -> Result<()> {
        let symbol = self.intern(event)?;
        self.push(stream, symbol, Timing::UNKNOWN)
    }

    /// Appends occurrences of symbols whose times are not known, such as a batch that a thread
    /// gathered.
    fn push_symbols(&mut self, stream: StreamId, symbols: &[Symbol]) -> Result<()> {
        symbols.iter().try_for_each(|&symbol| self.push(stream, symbol, Timing::UNKNOWN))
    }

    /// The projection: what counts as the same event. It states which fields the user
    /// requested, so that a source need not produce unused fields: a source always emits its
    /// default fields, and others only on request.
    fn projection(&self) -> &Projection;

    /// Whether the sink uses starts, durations and metrics.
    fn wants_times(&self) -> bool;

    /// How many streams were opened so far.
    fn stream_count(&self) -> usize;

    /// How many events were pushed so far.
    fn events(&self) -> u64;

    /// The fields that the user named but no event has had so far.
    fn unseen_fields(&self) -> &[String];

    /// Reports how large streams are, in whatever unit, from a source that knows it before it reads
    /// them and can leave some out.
    fn weigh(&mut self, _sizes: &[(StreamId, u64)]) {}

    /// Whether the sink keeps the events of a stream: of those that it does not, a source need not
    /// push any.
    fn wants_stream(&self, _stream: StreamId) -> bool {
        true
    }
}

/// The known times of a stream's events, in nanoseconds. Kept beside the symbols: an event's
/// time never changes which symbol it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// When each event began; [`Times::UNKNOWN_START`] where that is not known.
    pub starts: Option<Column<i64>>,
    /// How long each event took; [`Times::UNKNOWN_DURATION`] where that is not known.
    pub durations: Option<Column<i64>>,
    /// Further measurements by name; `NaN` where an event has none.
    pub metrics: Vec<(String, Column<f64>)>,
}

impl Times {
    /// Marks an event whose start is not known.
    pub const UNKNOWN_START: i64 = i64::MIN;
    /// Marks an event whose duration is not known. Any other negative duration counts as
    /// unknown too.
    pub const UNKNOWN_DURATION: i64 = -1;

    /// True when nothing at all is known.
    pub fn is_empty(&self) -> bool {
        self.starts.is_none() && self.durations.is_none() && self.metrics.is_empty()
    }

    /// How many values each of the columns has.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> {
        let columns = self.starts.iter().chain(&self.durations).map(Column::len);
        columns.chain(self.metrics.iter().map(|(_, column)| column.len()))
    }
}

/// The events of one thread, rank, process or GPU queue, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// The name that the source gives the stream; unique within a trace.
    pub name: String,
    /// Notes of the source (`title`, …), in the order they were first made.
    pub notes: Vec<(String, String)>,
    /// The events.
    pub symbols: Vec<Symbol>,
    /// Their times.
    pub times: Times,
}

/// An alphabet and its streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The meanings of the symbols.
    pub alphabet: Alphabet,
    /// The streams, in the order in which the source opened them.
    pub streams: Vec<Stream>,
}

impl Trace {
    /// A trace of one stream, whose events are integers.
    ///
    /// ```
    /// use loopfold::Trace;
    /// use loopfold::folders::{Outermost, fold_trace};
    ///
    /// let trace = Trace::of_integers("numbers", [0u32, 1, 2, 0, 1, 2, 0, 1, 2, 7])?;
    /// let fold = fold_trace(trace, &Outermost::default(), 1)?;
    /// assert_eq!(fold.to_string(), "numbers: (0 1 2)^3 7\n");
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn of_integers(name: &str, integers: impl IntoIterator<Item: Into<u64>>) -> Result<Self> {
        let mut collector = Collector::default();
        let stream = collector.stream(name)?;
        for integer in integers {
            collector.push_event(stream, &Event::integer(integer.into()))?;
        }
        collector.finish()
    }

    /// The number of events in all streams together.
    pub fn events(&self) -> u64 {
        self.streams.iter().map(|stream| stream.symbols.len() as u64).sum()
    }

    /// The same trace over another alphabet: symbol `s` becomes `renamed[s]`.
    #[must_use]
    pub fn with_alphabet(mut self, alphabet: Alphabet, renamed: &[Symbol]) -> Self {
        for stream in &mut self.streams {
            stream.symbols.iter_mut().for_each(|symbol| *symbol = renamed[symbol.index()]);
        }
        Self { alphabet, streams: self.streams }
    }

    /// Rewrites the text of every name: `rewrite` is given the old text and writes the
    /// new one. Events whose names become the same become the same symbol.
    pub fn rewrite_names(&mut self, mut rewrite: impl FnMut(&[u8], &mut Vec<u8>)) -> Result<()> {
        let mut alphabet = Alphabet::default();
        let mut renamed = Vec::with_capacity(self.alphabet.len());
        let mut text = Vec::new();
        for symbol in self.alphabet.symbols() {
            let mut meaning = self.alphabet.meaning(symbol);
            if let Name::Text(old) = meaning.name {
                text.clear();
                rewrite(old, &mut text);
                meaning.name = Name::Text(&text);
            }
            renamed.push(alphabet.intern(&meaning.event(), None)?);
        }
        *self = std::mem::take(self).with_alphabet(alphabet, &renamed);
        Ok(())
    }
}
