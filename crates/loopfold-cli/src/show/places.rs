//! Places in streams as text, with their times.

use super::{count, duration, plain};
use anyhow::Result;
use loopfold::questions::clock::EventClock;
use loopfold::questions::find::{Found, Place};
use loopfold::{Fold, StreamId};

/// Formats places with their times.
pub(crate) struct Clock<'a> {
    fold: &'a Fold,
    clock: EventClock<'a>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(fold: &'a Fold) -> Self {
        Self { fold, clock: EventClock::new(fold) }
    }

    /// When an event began, in nanoseconds as the source has them.
    pub(crate) fn start(&mut self, stream: StreamId, position: u64) -> Result<Option<i64>> {
        Ok(self.clock.start(stream, position)?)
    }

    /// How long after the first event of the trace an event began, as text.
    pub(crate) fn since(&mut self, stream: StreamId, position: u64) -> Result<Option<String>> {
        Ok(self.clock.since_first(stream, position)?.map(duration))
    }

    /// The earliest of the first occurrences in these streams, if their times are known.
    pub(crate) fn earliest(&mut self, found: &Found<'_>, streams: &[StreamId]) -> Result<Option<Place>> {
        Ok(self.clock.earliest(found, streams)?)
    }

    /// A place as people read it: `rank 3, events 12 to 14, at 1.20 ms`.
    pub(crate) fn place(&mut self, place: Place) -> Result<String> {
        let at = self.since(place.stream, place.start)?.map_or(String::new(), |at| format!(", at {at}"));
        let title = plain(self.fold.stream(place.stream).title());
        Ok(format!("{title}, {}{at}", events(self.whole(place))))
    }

    /// A place as a line for other programs: stream, start, end, and when, if known.
    pub(crate) fn line(&mut self, place: Place) -> Result<String> {
        let title = plain(self.fold.stream(place.stream).title());
        let start = self.start(place.stream, place.start)?.map_or(String::new(), |ns| format!("\t{ns}"));
        let place = self.whole(place);
        Ok(format!("{title}\t{}\t{}{start}", place.start, place.end))
    }

    /// A place with its positions in the whole stream.
    fn whole(&self, place: Place) -> Place {
        let position = |position| self.fold.whole_position(place.stream, position);
        Place { start: position(place.start), end: position(place.end), ..place }
    }
}

/// The positions of a place: `event 12`, `events 12 to 14`.
fn events(place: Place) -> String {
    if place.start == place.end {
        format!("event {}", count(place.start))
    } else {
        format!("events {} to {}", count(place.start), count(place.end))
    }
}
