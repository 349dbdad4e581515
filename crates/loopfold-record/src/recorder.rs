//! Folds the events of one process while it runs, and keeps what was not written yet.
//!
//! Every event goes to two grammars: one of the whole stream, from which the archive is made at
//! the end, and one of the present segment, which begins anew when the segment is written. So a
//! segment can be read alone, and the archive has the loops of the whole, not of its segments.
//! Times are kept for the present segment only; at the end they are copied from the file to a
//! spill, and from there to the archive.
//!
//! Memory is O(distinct content) and a segment of times: 16 bytes an event before they are
//! compressed, in chunks of 32,768.

use crate::events::{Communicator, Decoder, Timed};
use crate::kind::comm_text;
use crate::parts::PartFile;
use crate::sites::Sites;
use crate::{Error, Result};
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::{Folder, Online, SequiturRuns};
use loopfold::mpi::RelativePeers;
use loopfold::trace::{Alphabet, Column, Spill, Times};
use loopfold::{Fold, Symbol};
use std::sync::Arc;

/// When there are that many events, they are written, whatever the clock says.
const MOST_UNWRITTEN: u64 = 1 << 18;

/// A process as the preloaded library introduces it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) pid: u32,
    /// The time that is 0.
    pub(crate) base: i64,
    /// The clocks at the start.
    pub(crate) clocks: Clocks,
}

/// A measurement of clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// How far the clock of rank 0 is ahead.
    pub(crate) offset: i64,
    /// When that was measured, by the clock of the process.
    pub(crate) time: i64,
}

/// A recording of one process.
pub(crate) struct Recorder {
    process: Process,
    decoder: Decoder,
    streams: Vec<Stream>,
    with_times: bool,
    /// Events that are in no segment yet.
    unwritten: u64,
    /// The clocks at the end, as they may drift.
    at_end: Option<Clocks>,
}

/// The stream of a thread.
struct Stream {
    name: String,
    whole: Box<dyn Online>,
    segment: Box<dyn Online>,
    starts: Column<i64>,
    durations: Column<i64>,
    symbols: Vec<Symbol>,
}

fn grammar() -> Result<Box<dyn Online>> {
    SequiturRuns.online().ok_or_else(|| Error::new("no online folder"))
}

impl Recorder {
    pub(crate) fn new(process: Process, with_times: bool, with_sites: bool) -> Self {
        let sites = with_sites.then(|| Sites::new(process.pid));
        Self {
            process,
            decoder: Decoder::new(sites),
            streams: Vec::new(),
            with_times,
            unwritten: 0,
            at_end: None,
        }
    }

    /// Takes records of a thread.
    pub(crate) fn take(&mut self, lane: usize, words: &[i64]) -> Result<()> {
        Ok(self.decoder.read(lane, words)?)
    }

    /// Folds the events of the records that were taken.
    pub(crate) fn fold_ready(&mut self) -> Result<()> {
        self.decoder.release_ready()?;
        for lane in 0..self.decoder.lanes() {
            let mut events = std::mem::take(self.decoder.ready(lane));
            self.push(lane, &events)?;
            events.clear();
            *self.decoder.ready(lane) = events;
        }
        Ok(())
    }

    fn push(&mut self, lane: usize, events: &[Timed]) -> Result<()> {
        let rank = self.process.rank;
        while self.streams.len() <= lane {
            let name = match self.streams.len() {
                0 => format!("rank {rank}"),
                thread => format!("rank {rank} thread {thread}"),
            };
            self.streams.push(Stream {
                name,
                whole: grammar()?,
                segment: grammar()?,
                starts: Column::default(),
                durations: Column::default(),
                symbols: Vec::new(),
            });
        }
        let stream = &mut self.streams[lane];
        stream.symbols.clear();
        stream.symbols.extend(events.iter().map(|event| event.symbol));
        stream.whole.extend(&stream.symbols)?;
        stream.segment.extend(&stream.symbols)?;
        if self.with_times {
            let shift = self.process.clocks.offset - self.process.base;
            for event in events {
                stream.starts.push(event.start.wrapping_add(shift));
                stream.durations.push(event.duration.max(Times::UNKNOWN_DURATION));
            }
        }
        self.unwritten += events.len() as u64;
        Ok(())
    }

    /// True if there are so many events that a segment should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.unwritten >= MOST_UNWRITTEN
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        self.unwritten > 0 || self.decoder.has_held()
    }

    /// Folds the events that have waited since the last segment for what they receive, too.
    pub(crate) fn fold_old(&mut self) -> Result<()> {
        self.decoder.release_old()?;
        self.fold_ready()
    }

    /// Writes what came since the last segment. If that fails it is kept.
    pub(crate) fn write_segment(&mut self, file: &mut PartFile) -> Result<()> {
        if self.unwritten == 0 {
            return Ok(());
        }
        let fold = self.fold(|stream| {
            let times = Times {
                starts: (!stream.starts.is_empty()).then(|| stream.starts.clone()),
                durations: (!stream.durations.is_empty()).then(|| stream.durations.clone()),
                metrics: Vec::new(),
            };
            (&*stream.segment, times)
        })?;
        file.append(&fold, &self.peers())?;
        for stream in &mut self.streams {
            stream.segment = grammar()?;
            stream.starts = Column::default();
            stream.durations = Column::default();
        }
        self.unwritten = 0;
        Ok(())
    }

    /// Folds all events, whether or not they wait for what they receive.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.decoder.finish()?;
        self.fold_ready()
    }

    pub(crate) fn set_clocks_at_end(&mut self, clocks: Clocks) {
        self.at_end = Some(clocks);
    }

    /// The fold of everything, with the times that the file has.
    pub(crate) fn whole(&self, file: &PartFile, spill: Option<&Arc<Spill>>) -> Result<(Fold, RelativePeers)> {
        let mut stored = if self.with_times { file.read(spill)? } else { Fold::default() };
        let mut all = Vec::new();
        for stream in &self.streams {
            let place = stored.stream_ids().find(|&id| stored.stream(id).name() == stream.name);
            let times = place.map(|place| stored.take_times(place)).unwrap_or_default();
            all.push(self.corrected(times)?);
        }
        drop(stored);
        let mut all = all.into_iter();
        let fold = self.fold(|stream| (&*stream.whole, all.next().unwrap_or_default()))?;
        Ok((fold, self.peers()))
    }

    fn fold<'a>(&'a self, mut part: impl FnMut(&'a Stream) -> (&'a dyn Online, Times)) -> Result<Fold> {
        let mut builder = FoldBuilder::new(self.alphabet().clone());
        let notes = self.notes();
        for stream in &self.streams {
            let (grammar, times) = part(stream);
            let root = grammar.rules(&mut builder)?;
            let folded = FoldedStream::new(stream.name.as_str(), SequiturRuns.name(), root);
            builder.stream(folded.with_notes(notes.clone()).with_times(times));
        }
        Ok(builder.finish())
    }

    fn alphabet(&self) -> &Alphabet {
        &self.decoder.kinds.alphabet
    }

    fn communicators(&self) -> Vec<(i64, &Communicator)> {
        let mut all: Vec<_> =
            self.decoder.communicators.iter().map(|(&number, comm)| (number, comm)).collect();
        all.sort_by_key(|&(number, _)| number);
        all
    }

    /// Members of communicators, as far as they do not follow from the calls that make them.
    fn notes(&self) -> Vec<(String, String)> {
        let listed = |(number, comm): (i64, &Communicator)| {
            // The communicator of the process alone is hardly ever used.
            let is_alone = number == 1 && comm.size == 1;
            (!comm.members.is_empty() && !is_alone)
                .then(|| (format!("comm {}", comm_text(number)), ranges(&comm.members)))
        };
        self.communicators().into_iter().filter_map(listed).collect()
    }

    fn peers(&self) -> RelativePeers {
        let mut peers = RelativePeers::default();
        for (number, comm) in self.communicators() {
            // Of one process alone there is nothing to restore.
            if comm.size > 1 {
                for stream in 0..self.streams.len() {
                    peers.push(&comm_text(number), stream, comm.own, comm.size);
                }
            }
        }
        peers
    }

    /// The times, with the drift of the clock between the two measurements taken out.
    fn corrected(&self, times: Times) -> Result<Times> {
        let start = self.process.clocks;
        let drift = self.at_end.and_then(|end| Drift::between(start, end));
        let (Some(starts), Some(drift)) = (&times.starts, drift) else { return Ok(times) };
        let (mut reader, mut corrected) = (starts.reader(), starts.another());
        // Times are already by the clock of rank 0, as it was at the start.
        let shift = start.offset - self.process.base;
        for index in 0..starts.len() {
            let value = reader.get(index)?;
            corrected.push(value.saturating_add(drift.at(value.saturating_sub(shift))));
        }
        Ok(Times { starts: Some(corrected), ..times })
    }
}

/// How the offset of a clock changes: along the line through two measurements, before and after
/// them too. It is one line for all streams of a process, as they have one clock.
#[derive(Clone, Copy, Debug)]
struct Drift {
    since: i64,
    change: i128,
    span: i128,
}

impl Drift {
    /// Returns `None` if the clocks do not drift, as far as can be measured.
    fn between(start: Clocks, end: Clocks) -> Option<Self> {
        let change = i128::from(end.offset) - i128::from(start.offset);
        let span = i128::from(end.time) - i128::from(start.time);
        let is_drift = change.abs() > LEAST_DRIFT && span > 0;
        is_drift.then_some(Self { since: start.time, change, span })
    }

    /// What the offset has changed by at a time of the process' clock.
    fn at(&self, time: i64) -> i64 {
        let since = i128::from(time) - i128::from(self.since);
        (self.change * since / self.span) as i64
    }
}

/// A difference that measuring clocks cannot distinguish from none, in nanoseconds.
const LEAST_DRIFT: i128 = 2_000;

/// Ranks such as `0-12:4,13`.
fn ranges(ranks: &[u32]) -> String {
    let mut parts = Vec::new();
    let mut rest = ranks;
    while let [first, ..] = *rest {
        let step = rest.get(1).map_or(0, |&second| second.saturating_sub(first));
        let is_next =
            |place: usize| u64::from(rest[place]) == u64::from(first) + place as u64 * u64::from(step);
        let count =
            if step == 0 { 1 } else { (1..rest.len()).take_while(|&place| is_next(place)).count() + 1 };
        let last = rest[count - 1];
        parts.push(match (count, step) {
            (1, _) => first.to_string(),
            (2, step) if step > 1 => format!("{first},{last}"),
            (_, 1) => format!("{first}-{last}"),
            _ => format!("{first}-{last}:{step}"),
        });
        rest = &rest[count..];
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranks_are_written_as_ranges() {
        for (ranks, text) in [
            (&[0, 4, 8, 12][..], "0-12:4"),
            (&[3], "3"),
            (&[5, 2], "5,2"),
            (&[0, 1, 2, 7, 9], "0-2,7,9"),
            (&[2, 1, 0], "2,1,0"),
        ] {
            assert_eq!(ranges(ranks), text);
        }
    }

    #[test]
    fn drift_is_a_line_through_both_measurements() {
        let start = Clocks { offset: -500, time: 1_000_000 };
        let end = Clocks { offset: 9_500, time: 2_000_000 };
        let drift = Drift::between(start, end).unwrap();
        for (time, change) in [(1_000_000, 0), (1_500_000, 5_000), (2_000_000, 10_000), (900_000, -1_000)] {
            assert_eq!(drift.at(time), change);
        }
        // Too little to be measured, and no time between.
        assert!(Drift::between(start, Clocks { offset: 1_000, ..end }).is_none());
        assert!(Drift::between(start, Clocks { time: 1_000_000, ..end }).is_none());
    }
}
