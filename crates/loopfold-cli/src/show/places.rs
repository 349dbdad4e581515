//! Places in streams: as text, as JSON, and when it was.

use super::{count, duration, plain};
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::{Found, Place};
use loopfold::trace::{ColumnReader, Times};
use serde_json::{Value, json};

/// Looks up when events began.
pub(crate) struct Clock<'a> {
    fold: &'a Fold,
    /// The stream that was asked for last: places mostly come in order.
    reader: Option<(usize, ColumnReader<'a, i64>)>,
    /// When the first event of the trace began, once that was asked for.
    origin: Option<Option<i64>>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(fold: &'a Fold) -> Self {
        Self { fold, reader: None, origin: None }
    }

    fn origin(&mut self) -> Result<Option<i64>> {
        if let Some(origin) = self.origin {
            return Ok(origin);
        }
        let mut origin = None;
        for stream in 0..self.fold.streams().len() {
            let start = self.start(stream, 0)?;
            origin = [origin, start].into_iter().flatten().min();
        }
        self.origin = Some(origin);
        Ok(origin)
    }

    /// When an event began, in nanoseconds as the source has them.
    pub(crate) fn start(&mut self, stream: usize, position: u64) -> Result<Option<i64>> {
        let Some(starts) = &self.fold.streams()[stream].times().starts else { return Ok(None) };
        if position >= starts.len() as u64 {
            return Ok(None);
        }
        if self.reader.as_ref().is_none_or(|(known, _)| *known != stream) {
            self.reader = Some((stream, starts.reader()));
        }
        let Some((_, reader)) = &mut self.reader else { return Ok(None) };
        let start = reader.get(position as usize)?;
        Ok((start != Times::UNKNOWN_START).then_some(start))
    }

    /// How long after the first event of the trace an event began, as text.
    pub(crate) fn since(&mut self, stream: usize, position: u64) -> Result<Option<String>> {
        let Some(start) = self.start(stream, position)? else { return Ok(None) };
        let since = self.origin()?.map(|origin| i128::from(start) - i128::from(origin));
        Ok(since.map(duration))
    }

    /// Of the first occurrences in these streams the one that began first; nothing when
    /// that is not known of one of them.
    pub(crate) fn earliest(&mut self, found: &Found<'_>, streams: &[usize]) -> Result<Option<Place>> {
        let mut earliest: Option<(i64, Place)> = None;
        for &stream in streams {
            let Some(first) = found.places_in(stream).next() else { continue };
            let Some(start) = self.start(stream, first.start)? else { return Ok(None) };
            if earliest.is_none_or(|(least, _)| start < least) {
                earliest = Some((start, first));
            }
        }
        Ok(earliest.map(|(_, first)| first))
    }

    /// A place as people read it: `rank 3, events 12 to 14, at 1.20 ms`.
    pub(crate) fn place(&mut self, place: Place) -> Result<String> {
        let at = self.since(place.stream, place.start)?.map_or(String::new(), |at| format!(", at {at}"));
        let title = plain(self.fold.streams()[place.stream].title());
        Ok(format!("{title}, {}{at}", events(place)))
    }

    /// A place as `{"stream", "start", "end"}`, with `start_ns` where that is known.
    pub(crate) fn json(&mut self, place: Place) -> Result<Value> {
        let name = self.fold.streams()[place.stream].name();
        let mut value = json!({"stream": name, "start": place.start, "end": place.end});
        if let Some(start) = self.start(place.stream, place.start)? {
            value["start_ns"] = json!(start);
        }
        Ok(value)
    }

    /// A place as a line for other programs: stream, start, end, and when, if known.
    pub(crate) fn line(&mut self, place: Place) -> Result<String> {
        let title = plain(self.fold.streams()[place.stream].title());
        let start = self.start(place.stream, place.start)?.map_or(String::new(), |ns| format!("\t{ns}"));
        Ok(format!("{title}\t{}\t{}{start}", place.start, place.end))
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
