//! What the producer of a stream has counted: how many events the program made, and how many of
//! them the recording lacks.
//!
//! A recorder has two ends. The one inside of the program counts every event, whether or not it can
//! hand it over; the one that folds counts what arrives. Where both are compared, nothing is lost
//! without a word. The counts are notes of the stream, so that archives keep them, parts of a
//! recording pass them on, and formats need no field for what only recordings have.
//!
//! Invariant: a stream of a recording that has ended has `produced = events + missing`. The last
//! segment of a recording that was killed may have counted more than it has. A stream whose end was
//! not recorded is noted to be unfinished: its count is a lower bound. Whatever makes a stream of
//! other events (a part, a selection of events, patterns or blocks as events) removes the notes, by
//! [`ProducerCount::remove`]; what keeps the number of events keeps them.
//!
//! Cost: O(notes) for each stream.

use super::{Fold, FoldedStream};
use crate::StreamId;

/// The note of how many events the producer has counted.
const PRODUCED: &str = "produced";

/// The note of how many of them are not in the stream. Absent if there are none.
const MISSING: &str = "missing";

/// The note of a stream whose end was not recorded. Its value says nothing.
const UNFINISHED: &str = "unfinished";

/// The events of a stream as its producer has counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerCount {
    /// How many there were.
    pub produced: u64,
    /// How many of them were not recorded.
    pub missing: u64,
}

impl ProducerCount {
    /// From what both ends have counted.
    ///
    /// ```
    /// use loopfold::fold::ProducerCount;
    ///
    /// let mut notes = Vec::new();
    /// ProducerCount::compared(47_125, 35_840).write(&mut notes);
    /// let text = |key: &str, value: &str| (key.to_string(), value.to_string());
    /// assert_eq!(notes, [text("produced", "47125"), text("missing", "11285")]);
    /// ```
    pub fn compared(produced: u64, recorded: u64) -> Self {
        Self { produced, missing: produced.saturating_sub(recorded) }
    }

    /// Writes the count to the notes of its stream, in place of an earlier one.
    pub fn write(self, notes: &mut Vec<(String, String)>) {
        Self::remove(notes);
        notes.push((PRODUCED.to_string(), self.produced.to_string()));
        if self.missing > 0 {
            notes.push((MISSING.to_string(), self.missing.to_string()));
        }
    }

    /// Notes that the end of the stream was not recorded: the count, if there is one, is a lower bound.
    pub fn write_unfinished(notes: &mut Vec<(String, String)>) {
        notes.retain(|(key, _)| key != UNFINISHED);
        notes.push((UNFINISHED.to_string(), "yes".to_string()));
    }

    /// Removes the count from the notes of a stream whose events change.
    pub fn remove(notes: &mut Vec<(String, String)>) {
        notes.retain(|(key, _)| !Self::is_note(key));
    }

    /// Whether a note of a stream with this key is one of these.
    pub fn is_note(key: &str) -> bool {
        [PRODUCED, MISSING, UNFINISHED].contains(&key)
    }
}

/// A stream of a recording, with what both ends have counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStream {
    /// The name of the stream.
    pub name: String,
    /// How many events the stream has.
    pub recorded: u64,
    /// What its producer has counted. If the stream is unfinished, at least this.
    pub counted: ProducerCount,
    /// The end of the stream was not recorded.
    pub is_unfinished: bool,
}

impl RecordedStream {
    /// Whether something is known to be missing, or may be.
    pub fn is_incomplete(&self) -> bool {
        self.counted.missing > 0 || self.is_unfinished
    }
}

impl FoldedStream {
    /// What the producer of the stream, which has this many events, has counted. Returns `None` if
    /// no recorder has noted it.
    fn producer_count(&self, recorded: u64) -> Option<ProducerCount> {
        let number = |key: &str| self.note(key).and_then(|value| value.raw().parse::<u64>().ok());
        let produced = number(PRODUCED)?;
        let missing = number(MISSING).unwrap_or(0).max(produced.saturating_sub(recorded));
        Some(ProducerCount { produced, missing })
    }
}

impl Fold {
    /// What the producer of a stream has counted. Returns `None` if no recorder has noted it.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn producer_count(&self, stream: StreamId) -> Option<ProducerCount> {
        let stream = self.stream(stream);
        stream.producer_count(self.length(stream.root()))
    }

    /// Whether the end of a stream is known not to have been recorded.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn is_unfinished(&self, stream: StreamId) -> bool {
        self.stream(stream).note(UNFINISHED).is_some()
    }

    /// The streams whose producers have counted or that are unfinished, in order.
    pub fn recorded_streams(&self) -> Vec<RecordedStream> {
        let recorded = |id: StreamId| {
            let name = self.stream(id).name().raw().to_string();
            let recorded = self.length(self.stream(id).root());
            let is_unfinished = self.is_unfinished(id);
            // Of a copy only what it has is known.
            let of_copy = is_unfinished.then(|| ProducerCount::compared(recorded, recorded));
            let counted = self.producer_count(id).or(of_copy)?;
            Some(RecordedStream { name, recorded, counted, is_unfinished })
        };
        self.stream_ids().filter_map(recorded).collect()
    }

    /// The same fold with all of its streams noted to be unfinished: of a recorder that was killed.
    pub fn with_unfinished_streams(mut self) -> Fold {
        self.streams_mut().iter_mut().for_each(|stream| ProducerCount::write_unfinished(&mut stream.notes));
        self
    }

    /// The same fold without the counts of producers: for folds of other events than were recorded.
    pub fn without_producer_counts(mut self) -> Fold {
        self.streams_mut().iter_mut().for_each(|stream| ProducerCount::remove(&mut stream.notes));
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Trace;
    use crate::fold::StreamPart;
    use crate::folders::{Outermost, fold_trace};

    /// A recording of 12 events of 14.
    fn recording(count: ProducerCount) -> Fold {
        let events = [0u32, 1, 2].into_iter().cycle().take(12);
        let mut fold =
            fold_trace(Trace::of_integers("n", events).unwrap(), &Outermost::default(), 1).unwrap();
        count.write(&mut fold.streams_mut()[0].notes);
        fold
    }

    #[test]
    fn counts_are_those_of_the_whole_stream() {
        let count = ProducerCount::compared(14, 12);
        let fold = recording(count);
        let stream = fold.stream_ids().next().unwrap();
        assert_eq!(fold.producer_count(stream), Some(count));
        let of = |fold: &Fold| fold.recorded_streams().into_iter().map(|one| one.counted).collect::<Vec<_>>();
        let part = |range| fold.parts(&[StreamPart { stream, range, number: None }], None).unwrap();
        assert_eq!(of(&part(0..12)), [count]);
        assert_eq!(of(&part(0..11)), []);
        assert_eq!(of(&fold.without(&[true, true, true]).unwrap()), [count]);
        assert_eq!(of(&fold.without(&[true, false, true]).unwrap()), []);
        assert_eq!(of(&fold.clone().without_producer_counts()), []);
    }

    #[test]
    fn a_recording_that_was_killed_lacks_what_it_has_not_saved() {
        let fold = recording(ProducerCount { produced: 15, missing: 1 });
        let [one] = &fold.recorded_streams()[..] else { panic!("one stream") };
        assert_eq!((one.recorded, one.counted), (12, ProducerCount { produced: 15, missing: 3 }));
    }

    #[test]
    fn an_unfinished_stream_keeps_its_count_and_may_lack_more() {
        let count = ProducerCount::compared(14, 12);
        let fold = recording(count).with_unfinished_streams().with_unfinished_streams();
        let [one] = &fold.recorded_streams()[..] else { panic!("one stream") };
        assert_eq!((one.recorded, one.counted, one.is_unfinished), (12, count, true));
        assert_eq!(fold.streams()[0].notes().iter().filter(|(key, _)| key == UNFINISHED).count(), 1);
        assert!(fold.without_producer_counts().recorded_streams().is_empty());
        // A copy has no count.
        let mut fold = recording(count).without_producer_counts();
        fold = fold.with_unfinished_streams();
        let [one] = &fold.recorded_streams()[..] else { panic!("one stream") };
        assert!(one.is_incomplete());
        assert_eq!(one.counted, ProducerCount::compared(12, 12));
    }

    #[test]
    fn nothing_is_missing_without_a_word() {
        let mut notes = vec![("title".to_string(), "main".to_string())];
        ProducerCount::compared(9, 7).write(&mut notes);
        ProducerCount::compared(9, 9).write(&mut notes);
        let keys: Vec<&str> = notes.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["title", PRODUCED]);
    }
}
