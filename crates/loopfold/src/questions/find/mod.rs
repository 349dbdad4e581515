//! Finds how often a sequence of events occurs, and where, without unfolding.
//!
//! An occurrence is where the events of the query are consecutive in one stream; occurrences
//! may overlap, and all count. The answer does not depend on which folder made the fold.
//!
//! A query costs one pass over the items of the fold, a few nanoseconds each (see `summary`);
//! after that a count costs nothing and a place one descent of the rules (see `matcher`).
//! Memory: 4 bytes a node, and a summary for each rule that holds a symbol of the query.
//! Queries of more than 64 events cost up to some nanoseconds an item for every 64 of them,
//! unless they are rare (see `listed`).

pub(super) mod bits;
mod listed;
mod matcher;
pub(super) mod summary;

use super::query::Query;
use crate::fold::Fold;
use crate::{Error, Result, StreamId};
use bits::Wide;
use listed::Listed;
use matcher::{OccurrenceIndex, OccurrenceSearch, SummaryIndex};

/// Where a query occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The stream.
    pub stream: StreamId,
    /// The position of its first event in the stream, from 0.
    pub start: u64,
    /// The position of its last event, which belongs to it.
    pub end: u64,
}

impl Place {
    /// Its positions, as [`Fold::window`] takes them.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.start..self.end + 1
    }
}

/// The occurrences of a query in a fold.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::find::Place;
/// use loopfold::questions::query::Query;
/// use loopfold::trace::{Collector, Event, Sink};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["init", "read", "write", "read", "write", "read", "write", "close"] {
///     collector.push_event(stream, &Event::named(name))?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let found = fold.find(&Query::parse("write read", fold.alphabet())?)?;
/// assert_eq!(found.count()?, 2);
/// assert_eq!(found.first(), Some(Place { stream, start: 2, end: 3 }));
/// assert_eq!(found.places().nth(1), Some(Place { stream, start: 4, end: 5 }));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct Found<'a> {
    fold: &'a Fold,
    index: Box<dyn OccurrenceIndex + 'a>,
    length: u64,
}

opaque_debug!(Found<'a>);

impl Fold {
    /// Looks for a query in all streams of a fold.
    pub fn find(&self, query: &Query) -> Result<Found<'_>> {
        let index: Box<dyn OccurrenceIndex + '_> = if query.len() <= 64 {
            Box::new(SummaryIndex::<u64>::new(self, query)?)
        } else if let Some(listed) = Listed::of(self, query)? {
            Box::new(listed)
        } else {
            Box::new(SummaryIndex::<Wide>::new(self, query)?)
        };
        Ok(Found { fold: self, index, length: query.len() as u64 })
    }
}

impl Found<'_> {
    /// How often it occurs in all streams together.
    pub fn count(&self) -> Result<u64> {
        let streams = self.fold.stream_ids();
        streams
            .map(|stream| self.count_in(stream))
            .try_fold(0u64, u64::checked_add)
            .ok_or_else(|| Error::limit("the query occurs more than 2^64 times"))
    }

    /// How often it occurs in a stream.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn count_in(&self, stream: StreamId) -> u64 {
        self.index.count(self.fold.stream(stream).root())
    }

    /// The first occurrence, in the order of the streams.
    pub fn first(&self) -> Option<Place> {
        self.places().next()
    }

    /// The last occurrence in a stream.
    pub fn last_in(&self, stream: StreamId) -> Option<Place> {
        self.places_in(stream).skip_to(self.count_in(stream).checked_sub(1)?)
    }

    /// All occurrences, stream by stream, found as they are requested. Skipping many with
    /// [`Places::skip_to`] costs no more than skipping one.
    pub fn places(&self) -> Places<'_> {
        Places { found: self, streams: 0..self.fold.streams().len() as u32, search: None }
    }

    /// The occurrences in one stream, in order.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn places_in(&self, stream: StreamId) -> Places<'_> {
        assert!(stream.index() < self.fold.streams().len(), "there is no {stream:?}");
        Places { found: self, streams: stream.raw()..stream.raw() + 1, search: None }
    }

    /// The first occurrence in a stream that begins at a position or later.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn first_from(&self, stream: StreamId, position: u64) -> Option<Place> {
        let mut search = self.search(stream);
        // What begins before the position ends before this.
        search.advance_to(position.checked_add(self.length - 1)?);
        Some(self.place(stream, search.next_end(&mut 0)?))
    }

    /// How many occurrences in a stream end before a position.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn count_before(&self, stream: StreamId, position: u64) -> u64 {
        self.search(stream).advance_to(position)
    }

    fn search(&self, stream: StreamId) -> Box<dyn OccurrenceSearch + '_> {
        self.index.search(self.fold.stream(stream).root())
    }

    fn place(&self, stream: StreamId, end: u64) -> Place {
        Place { stream, start: end + 1 - self.length, end }
    }
}

/// Occurrences in order; see [`Found::places`].
pub struct Places<'f> {
    found: &'f Found<'f>,
    /// The streams that are still to come.
    streams: std::ops::Range<u32>,
    /// The stream that is searched.
    search: Option<(StreamId, Box<dyn OccurrenceSearch + 'f>)>,
}

opaque_debug!(Places<'f>);

impl Places<'_> {
    /// Skips `skip` occurrences and returns the next one.
    pub fn skip_to(&mut self, mut skip: u64) -> Option<Place> {
        loop {
            if let Some((stream, search)) = &mut self.search
                && let Some(end) = search.next_end(&mut skip)
            {
                return Some(self.found.place(*stream, end));
            }
            self.search = None;
            let stream = StreamId::from_raw(self.streams.next()?);
            let count = self.found.count_in(stream);
            match skip.checked_sub(count) {
                Some(rest) => skip = rest,
                None => self.search = Some((stream, self.found.search(stream))),
            }
        }
    }
}

impl Iterator for Places<'_> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        self.skip_to(0)
    }

    fn nth(&mut self, n: usize) -> Option<Place> {
        self.skip_to(n as u64)
    }
}
