//! Occurrences of sequences of events and of paths of functions.
//!
//! Answers are written field by field: a sequence by [`sequence`], and paths by a [`PathAnswer`],
//! whose methods are called in the order of the fields. Places are written as they are found.

use crate::{JsonWriter, Labels};
use loopfold::questions::clock::EventClock;
use loopfold::questions::find::{Found, Place};
use loopfold::questions::path::{Effort, PathPlace, Scheme, Share};
use loopfold::{Fold, StreamId, Symbol};
use std::io::{self, Write};
use std::time::Duration;

/// How sequences of events are found: on the rules, nothing unfolded.
pub(crate) const SCHEME: &str = "folded";

/// Writes places of a fold, each as `{"stream", "start", "end"}` with `start_ns` where that is
/// known.
pub(crate) struct Places<'a> {
    fold: &'a Fold,
    clock: EventClock<'a>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(fold: &'a Fold) -> Self {
        Self { fold, clock: EventClock::new(fold) }
    }

    /// A place, or null.
    pub(crate) fn place<W: Write>(
        &mut self,
        out: &mut JsonWriter<W>,
        place: Option<Place>,
    ) -> loopfold::Result<()> {
        let Some(place) = place else { return Ok(out.value(None::<u64>)?) };
        self.begin(out, place)?;
        Ok(out.end()?)
    }

    /// A place whose object is still open.
    pub(crate) fn begin<W: Write>(&mut self, out: &mut JsonWriter<W>, place: Place) -> loopfold::Result<()> {
        out.begin_object()?;
        out.field("stream", self.fold.stream(place.stream).name())?;
        out.field("start", self.fold.whole_position(place.stream, place.start))?;
        out.field("end", self.fold.whole_position(place.stream, place.end))?;
        if let Some(start) = self.clock.start(place.stream, place.start)? {
            out.field("start_ns", start)?;
        }
        Ok(())
    }
}

/// Which places of a sequence are written besides the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The one with this number, from 1.
    pub nth: Option<u64>,
    /// The first of each stream.
    pub per_stream: bool,
    /// This many, from the first on.
    pub all: Option<u64>,
}

/// Writes where a sequence occurs.
pub fn sequence<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    query: &str,
    found: &Found<'_>,
    wanted: Wanted,
) -> loopfold::Result<()> {
    let count = found.count()?;
    let mut places = Places::new(fold);
    out.begin_object()?;
    out.field("query", query)?;
    out.field("count", count)?;
    out.key("first")?;
    places.place(out, found.first())?;
    out.field("scheme", SCHEME)?;
    if let Some(nth) = wanted.nth {
        out.key("nth")?;
        let before = nth.checked_sub(1);
        places.place(out, before.and_then(|before| found.places().skip_to(before)))?;
    }
    if wanted.per_stream {
        out.key("streams")?;
        out.begin_array()?;
        for (index, stream) in fold.stream_ids().zip(fold.streams()) {
            out.begin_object()?;
            out.field("stream", stream.name())?;
            out.field("count", found.count_in(index))?;
            out.key("first")?;
            places.place(out, found.places_in(index).next())?;
            out.end()?;
        }
        out.end()?;
    }
    if let Some(most) = wanted.all {
        let shown = most.min(count);
        out.field("left_out", count - shown)?;
        out.key("all")?;
        out.begin_array()?;
        let mut all = found.places();
        for _ in 0..shown {
            let Some(place) = all.next() else { break };
            places.place(out, Some(place))?;
        }
        out.end()?;
    }
    Ok(out.end()?)
}

/// Writes the answer to a sequence that is one of many queries, the one in line `line`.
pub fn sequence_of_many<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    query: &str,
    found: &Found<'_>,
    line: usize,
) -> loopfold::Result<()> {
    out.begin_object()?;
    out.field("query", query)?;
    out.field("count", found.count()?)?;
    out.key("first")?;
    Places::new(fold).place(out, found.first())?;
    let streams = fold.stream_ids().filter(|&stream| found.count_in(stream) > 0).count();
    out.field("streams", streams)?;
    out.field("scheme", SCHEME)?;
    out.field("line", line)?;
    Ok(out.end()?)
}

/// Writes why one of many queries has no answer.
pub fn error_of_many<W: Write>(
    out: &mut JsonWriter<W>,
    query: &str,
    error: &str,
    line: usize,
) -> io::Result<()> {
    out.begin_object()?;
    out.field("line", line)?;
    out.field("query", query)?;
    out.field("error", error)?;
    out.end()
}

/// A place of a path.
#[derive(Clone, Debug)]
pub struct PathSpot<'a> {
    /// Where it ends.
    pub place: PathPlace,
    /// The position of its first block, if that is known.
    pub start: Option<u64>,
    /// When it began, if that is known.
    pub start_ns: Option<i64>,
    /// Its function, if several were asked for.
    pub function: Option<&'a [u8]>,
    /// The calls that are open at its end, if they are wanted.
    pub stack: Option<Stack>,
}

/// Calls that are open.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The innermost ones, the innermost last.
    pub calls: Vec<Symbol>,
    /// How many there are in all.
    pub depth: u64,
}

/// How the occurrences of a path were found.
#[derive(Clone, Copy, Debug)]
pub struct PathSearch<'a> {
    /// The function.
    pub function: &'a [u8],
    /// The scheme of the search.
    pub scheme: Scheme,
    /// Why this scheme was chosen.
    pub reason: &'a str,
    /// What was searched.
    pub effort: Effort,
    /// How long it took.
    pub took: Duration,
}

/// Writes the answer to a path, or to one for each function of a pattern.
#[derive(Debug)]
pub struct PathAnswer<'w, 'a, W> {
    out: &'w mut JsonWriter<W>,
    fold: &'a Fold,
    labels: Labels<'a>,
}

impl<'w, 'a, W: Write> PathAnswer<'w, 'a, W> {
    /// Begins with what every answer has: how often the paths occur, and where first. Each of the
    /// functions comes with how often its path occurs.
    pub fn begin(
        out: &'w mut JsonWriter<W>,
        fold: &'a Fold,
        query: &str,
        count: u64,
        first: Option<&PathSpot<'_>>,
        scheme: Option<Scheme>,
        functions: &[(&[u8], u64)],
    ) -> io::Result<Self> {
        out.begin_object()?;
        let mut answer = Self { out, fold, labels: Labels::new(fold.alphabet()) };
        answer.out.field("query", query)?;
        answer.out.field("count", count)?;
        answer.out.key("first")?;
        answer.spot(first)?;
        answer.out.field("scheme", scheme.map(Scheme::name))?;
        if let &[(function, _)] = functions {
            answer.out.key("function")?;
            answer.labels.function(answer.out, function)?;
            return Ok(answer);
        }
        answer.out.key("functions")?;
        answer.out.begin_array()?;
        for &(function, count) in functions {
            answer.out.begin_object()?;
            answer.out.key("function")?;
            answer.labels.function(answer.out, function)?;
            answer.out.field("count", count)?;
            answer.out.end()?;
        }
        answer.out.end()?;
        Ok(answer)
    }

    /// The place with the requested number, if there is one.
    pub fn nth(&mut self, spot: Option<&PathSpot<'_>>) -> io::Result<()> {
        self.out.key("nth")?;
        self.spot(spot)
    }

    /// For each stream how often the paths occur in it, and where first.
    pub fn streams<'s, E: From<io::Error>>(
        &mut self,
        streams: impl IntoIterator<Item = Result<(StreamId, u64, Option<PathSpot<'s>>), E>>,
    ) -> Result<(), E> {
        self.out.key("streams")?;
        self.out.begin_array()?;
        for stream in streams {
            let (stream, count, first) = stream?;
            self.out.begin_object()?;
            self.out.field("stream", self.fold.stream(stream).name())?;
            self.out.field("count", count)?;
            self.out.key("first")?;
            self.spot(first.as_ref())?;
            self.out.end()?;
        }
        Ok(self.out.end()?)
    }

    /// In how many streams the paths occur.
    pub fn stream_count(&mut self, streams: usize) -> io::Result<()> {
        self.out.field("streams", streams)
    }

    /// How long it took to open the input.
    pub fn opened(&mut self, took: Duration) -> io::Result<()> {
        self.out.field("open_ns", took.as_nanos() as u64)
    }

    /// How each path was searched for.
    pub fn searches<'s>(&mut self, searches: impl IntoIterator<Item = PathSearch<'s>>) -> io::Result<()> {
        let Self { out, labels, .. } = self;
        out.key("searches")?;
        out.begin_array()?;
        for PathSearch { function, scheme, reason, effort, took } in searches {
            let Effort { ranges, chunks, rules, symbols, decompressed_bytes } = effort;
            out.begin_object()?;
            out.field("scheme", scheme.name())?;
            out.field("reason", reason)?;
            out.field("symbols", symbols)?;
            out.field("decompressed_bytes", decompressed_bytes)?;
            out.field("search_ns", took.as_nanos() as u64)?;
            for (share, key) in [(ranges, "segments"), (chunks, "chunks"), (rules, "rules")] {
                let Some(Share { touched, all }) = share else { continue };
                out.key(key)?;
                out.begin_object()?;
                out.field("touched", touched)?;
                out.field("all", all)?;
                out.end()?;
            }
            out.key("function")?;
            labels.function(out, function)?;
            out.end()?;
        }
        out.end()
    }

    /// All places, but for those left out: `visit` calls its argument with each.
    pub fn all<E: From<io::Error>>(
        &mut self,
        left_out: u64,
        visit: impl FnOnce(&mut dyn FnMut(&PathSpot<'_>) -> io::Result<()>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.out.field("left_out", left_out)?;
        self.out.key("all")?;
        self.out.begin_array()?;
        visit(&mut |spot| self.spot(Some(spot)))?;
        Ok(self.out.end()?)
    }

    /// The line of the query, if it is one of many.
    pub fn line(&mut self, line: usize) -> io::Result<()> {
        self.out.field("line", line)
    }

    /// Ends the answer.
    pub fn end(self) -> io::Result<()> {
        self.labels.cut_field(self.out)?;
        self.out.end()
    }

    fn spot(&mut self, spot: Option<&PathSpot<'_>>) -> io::Result<()> {
        let Self { out, fold, labels } = self;
        let Some(PathSpot { place, start, start_ns, function, stack }) = spot else {
            return out.value(None::<u64>);
        };
        out.begin_object()?;
        out.field("stream", fold.stream(place.stream).name())?;
        out.field("start", start.map(|start| fold.whole_position(place.stream, start)))?;
        out.field("end", fold.whole_position(place.stream, place.end))?;
        out.field("depth", place.depth)?;
        if let Some(start) = start_ns {
            out.field("start_ns", *start)?;
        }
        if let Some(function) = function {
            out.key("function")?;
            labels.function(out, function)?;
        }
        if let Some(Stack { calls, depth }) = stack {
            out.key("stack")?;
            out.begin_array()?;
            for &call in calls {
                labels.name_of(out, call)?;
            }
            out.end()?;
            out.field("stack_depth", *depth)?;
        }
        out.end()
    }
}
