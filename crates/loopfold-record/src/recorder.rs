//! Folds the events of one process while it runs, and keeps what was not written yet.
//!
//! A thread is a [`Stream`]: of its calls alone, or, if its paths are recorded, too, of both in the
//! order in which they happened ([`Joint`]). When a segment is written, the times in it are
//! forgotten; at the end they are copied from the file to a spill, and from there to the archive.
//!
//! The program counts its events, too: calls by thread, tokens of paths by lane. What it has counted is
//! noted of each stream with every segment; at the end, when nothing is on its way any more, what the
//! stream lacks is noted as well.

use crate::events::{Communicator, Decoder, Timed};
use crate::joint::Joint;
use crate::kind::comm_text;
use crate::parts::PartFile;
use crate::paths::{INSTRUCTIONS, Shared};
use crate::ring::Counted;
use crate::sites::Sites;
use crate::stream::{Stream, Unwritten};
use crate::{Error, Result};
use hashbrown::HashMap;
use loopfold::Fold;
use loopfold::fold::{FoldBuilder, FoldedStream, ProducerCount};
use loopfold::folders::{Folder as _, Online, SequiturRuns};
use loopfold::mpi::RelativePeers;
use loopfold::trace::{Spill, Times};
use std::sync::Arc;

/// When there are that many events, they are written, whatever the clock says.
const MOST_UNWRITTEN: u64 = 1 << 18;
/// The same for paths, which have no times.
const MOST_UNWRITTEN_PATHS: u64 = 1 << 26;
/// How many paths may wait behind a call that waits for what it receives.
const MOST_WAITING: usize = 1 << 25;

/// A process as the preloaded library introduces it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    pub(crate) rank: u32,
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
    shared: Arc<Shared>,
    decoder: Decoder,
    /// The threads whose paths are recorded.
    joint: Joint,
    /// Those of which only calls are recorded.
    threads: Vec<Thread>,
    with_times: bool,
    /// How many paths the file has the blocks of.
    written_paths: usize,
    /// The clocks at the end, as they may drift.
    at_end: Option<Clocks>,
    /// What the program has counted, and how many events of that the file knows of.
    counted: Counted,
    written_count: u64,
    /// How many tokens of paths are lost, at least, and of no lane.
    thrown: u64,
    /// Whether all events are here that will ever be.
    is_over: bool,
}

/// The thread of events whose threads could not be recorded: lanes have lower numbers.
const OTHER_THREADS: usize = 128;

/// A thread that calls MPI.
#[derive(Default)]
struct Thread {
    /// The calls that have no mark among paths.
    own: Option<(String, Stream)>,
    /// Where its last call had one, or 0.
    paths: u32,
    /// How many of its calls went there.
    joint_calls: u64,
}

impl Recorder {
    pub(crate) fn new(with_times: bool) -> Self {
        let shared = Arc::<Shared>::default();
        Self {
            process: Process::default(),
            decoder: Decoder::new(Arc::clone(&shared)),
            shared,
            joint: Joint::new(with_times),
            threads: Vec::new(),
            with_times,
            written_paths: 0,
            at_end: None,
            counted: Counted::default(),
            written_count: 0,
            thrown: 0,
            is_over: false,
        }
    }

    /// Before its calls come: what process it is.
    pub(crate) fn introduce(&mut self, process: Process, with_sites: bool) {
        self.process = process;
        if with_sites {
            self.decoder.with_sites(Sites::new(process.pid));
        }
    }

    /// What paths and calls have in common.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The threads whose paths are recorded.
    pub(crate) fn joint(&mut self) -> &mut Joint {
        &mut self.joint
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
            self.push(lane, &mut events)?;
            events.clear();
            *self.decoder.ready(lane) = events;
        }
        self.joint.advance()
    }

    fn push(&mut self, lane: usize, events: &mut [Timed]) -> Result<()> {
        if self.threads.len() <= lane {
            self.threads.resize_with(lane + 1, Thread::default);
        }
        let shift = self.process.clocks.offset - self.process.base;
        events.iter_mut().for_each(|event| event.start = event.start.wrapping_add(shift));
        let is_joint = |paths: u32, event: &Timed| paths | event.paths != 0;
        let mut rest = &*events;
        while let Some(first) = rest.first() {
            let Thread { paths, joint_calls, .. } = &mut self.threads[lane];
            if is_joint(*paths, first) {
                // Without a mark of its own it follows the others.
                *paths = if first.paths > 0 { first.paths } else { *paths };
                *joint_calls += 1;
                self.joint.take_call(*paths, *first);
                rest = &rest[1..];
            } else {
                let count = rest.iter().take_while(|event| !is_joint(*paths, event)).count();
                self.own(lane)?.calls(&rest[..count])?;
                rest = &rest[count..];
            }
        }
        Ok(())
    }

    /// The stream of calls that have no marks.
    fn own(&mut self, lane: usize) -> Result<&mut Stream> {
        if self.threads[lane].own.is_none() {
            let rank = self.process.rank;
            let mut name = match lane {
                0 => format!("rank {rank}"),
                thread => format!("rank {rank} thread {thread}"),
            };
            if self.joint.streams(rank).iter().any(|(known, _)| *known == name) {
                name.push_str(" calls");
            }
            self.threads[lane].own = Some((name, Stream::new(self.with_times)?));
        }
        let own = self.threads[lane].own.as_mut().map(|(_, stream)| stream);
        own.ok_or_else(|| Error::new("a thread has no stream"))
    }

    /// The streams with their names, in the order of threads.
    fn streams(&self) -> Vec<(String, &Stream)> {
        let mut streams = self.joint.streams(self.process.rank);
        let own = self.threads.iter().filter_map(|thread| thread.own.as_ref());
        streams.extend(own.map(|(name, stream)| (name.clone(), stream)));
        streams
    }

    fn unwritten(&self) -> Unwritten {
        let own = self.threads.iter().filter_map(|thread| thread.own.as_ref());
        own.fold(self.joint.unwritten(), |sum, (_, stream)| sum + stream.unwritten())
    }

    /// True if there are so many events that a segment should be written.
    pub(crate) fn is_full(&self) -> bool {
        let Unwritten { calls, paths } = self.unwritten();
        calls >= MOST_UNWRITTEN || paths >= MOST_UNWRITTEN_PATHS
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        self.unwritten() != Unwritten::default() || self.decoder.has_held() || self.joint.has_calls()
    }

    /// How many events the streams have.
    pub(crate) fn recorded(&self) -> u64 {
        self.streams().iter().map(|(_, stream)| stream.count()).sum()
    }

    /// How many of them the file has.
    pub(crate) fn saved(&self) -> u64 {
        self.recorded() - self.unwritten().calls
    }

    /// What the program has counted, read behind its records.
    pub(crate) fn set_counted(&mut self, counted: Counted) {
        self.counted = counted;
    }

    /// So many tokens of paths are lost, at least, that are of no lane.
    pub(crate) fn set_thrown(&mut self, tokens: u64) {
        self.thrown = tokens;
    }

    /// How many tokens of paths are lost, at least.
    pub(crate) fn lost_paths(&self) -> u64 {
        self.thrown + self.joint.counts(self.process.rank).map(|(.., count)| count.missing).sum::<u64>()
    }

    /// Adds streams for threads of which nothing was recorded, so that it can be noted of them.
    fn add_threads_without_events(&mut self) -> Result<()> {
        let mut missed: Vec<usize> =
            (0..self.counted.lanes.len()).filter(|&lane| self.counted.lanes[lane] > 0).collect();
        missed.extend((self.counted.others > 0).then_some(OTHER_THREADS));
        missed.extend((self.thrown > 0 && self.streams().is_empty()).then_some(0));
        for lane in missed {
            if self.threads.len() <= lane {
                self.threads.resize_with(lane + 1, Thread::default);
            }
            if self.threads[lane].paths == 0 {
                self.own(lane)?;
            }
        }
        Ok(())
    }

    /// What the program has counted of each stream, by name.
    fn counts(&self) -> HashMap<String, ProducerCount> {
        let (mut counts, mut by_usage) = (HashMap::new(), HashMap::new());
        for (name, usage, count) in self.joint.counts(self.process.rank) {
            by_usage.extend(usage.map(|usage| (usage, name.clone())));
            counts.insert(name, count);
        }
        for (lane, Thread { own, paths, joint_calls }) in self.threads.iter().enumerate() {
            let counted = match lane {
                OTHER_THREADS => self.counted.others,
                _ => self.counted.lanes.get(lane).copied().unwrap_or(0),
            };
            let produced = counted.saturating_sub(*joint_calls);
            if let Some((name, stream)) = own {
                let produced = produced.max(stream.count());
                let recorded = if self.is_over { stream.count() } else { produced };
                counts.insert(name.clone(), ProducerCount::compared(produced, recorded));
            } else if let Some(count) = by_usage.get(paths).and_then(|name| counts.get_mut(name)) {
                // Calls that did not come, or not yet.
                count.produced += produced;
                count.missing += if self.is_over { produced } else { 0 };
            }
        }
        // Until the end, calls may wait for their marks.
        for (usage, name) in by_usage {
            if let Some(count) = counts.get_mut(&name) {
                count.produced += self.joint.waiting_calls(usage);
            }
        }
        counts
    }

    /// Folds the events that have waited since the last segment for what they receive, too.
    pub(crate) fn fold_old(&mut self) -> Result<()> {
        self.decoder.release_old()?;
        self.fold_ready()
    }

    /// Folds events that wait for what they receive, if too many paths wait behind them.
    pub(crate) fn limit_waiting(&mut self) -> Result<()> {
        if self.joint.waiting() > MOST_WAITING && self.decoder.has_held() {
            self.flush()?;
        }
        Ok(())
    }

    /// Nothing comes any more: folds what still waits.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.flush()?;
        let without_paths = self.joint.finish()?;
        if !without_paths.is_empty() {
            self.threads.resize_with(self.threads.len().max(1), Thread::default);
            self.own(0)?.calls(&without_paths)?;
        }
        self.is_over = true;
        self.add_threads_without_events()
    }

    /// Writes what came since the last segment. If that fails it is kept. `written` is called with how
    /// many events lie there, as soon as they do.
    pub(crate) fn write_segment(&mut self, file: &mut PartFile, written: &dyn Fn(u64)) -> Result<()> {
        let count = self.counted.lanes.iter().sum::<u64>() + self.counted.others + self.lost_paths();
        let is_counted = !self.is_over || count == self.written_count;
        if self.unwritten() == Unwritten::default() && is_counted {
            return Ok(());
        }
        let fold = self.fold(|_, stream| stream.segment())?;
        let shared = Arc::clone(&self.shared);
        let symbols = shared.symbols();
        let is_new = symbols.blocks.len() > self.written_paths;
        let recorded = self.recorded();
        file.append(&fold, &self.peers(), is_new.then_some(&symbols.blocks), &|| written(recorded))?;
        self.written_paths = symbols.blocks.len();
        self.written_count = count;
        let own = self.threads.iter_mut().filter_map(|thread| thread.own.as_mut());
        let own = own.map(|(_, stream)| stream);
        self.joint.streams_mut().chain(own).try_for_each(Stream::begin_segment)
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
        let mut all = HashMap::new();
        for (name, _) in self.streams() {
            let place = stored.stream_ids().find(|&id| stored.stream(id).name().raw() == name);
            let times = place.map(|place| stored.take_times(place)).unwrap_or_default();
            all.insert(name, self.corrected(times)?);
        }
        drop(stored);
        let fold = self.fold(|name, stream| Ok((&*stream.whole, all.remove(name).unwrap_or_default())))?;
        Ok((fold, self.peers()))
    }

    fn fold<'a>(
        &'a self,
        mut part: impl FnMut(&str, &'a Stream) -> Result<(&'a dyn Online, Times)>,
    ) -> Result<Fold> {
        let symbols = self.shared.symbols();
        let mut builder = FoldBuilder::new(symbols.alphabet.clone());
        let (notes, counts) = (self.notes(), self.counts());
        for (place, (name, stream)) in self.streams().into_iter().enumerate() {
            let (grammar, times) = part(&name, stream)?;
            let root = grammar.rules(&mut builder)?;
            let mut notes = notes.clone();
            // What is of no lane is noted of the first stream.
            let thrown = if place == 0 { self.thrown } else { 0 };
            if let Some(&ProducerCount { produced, missing }) = counts.get(&name) {
                let (produced, missing) = (produced + thrown, missing + thrown);
                ProducerCount { produced, missing }.write(&mut notes);
            }
            if thrown > 0 {
                ProducerCount::write_unfinished(&mut notes);
            }
            let folded = FoldedStream::new(name, SequiturRuns.name(), root);
            builder.stream(folded.with_notes(notes).with_times(times));
        }
        let fold = builder.finish();
        match symbols.blocks.is_empty() {
            true => Ok(fold),
            false => Ok(fold.with_metric_of_events(INSTRUCTIONS, &symbols.costs())?),
        }
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
        let streams = self.streams().len();
        for (number, comm) in self.communicators() {
            // Of one process alone there is nothing to restore.
            if comm.size > 1 {
                for stream in 0..streams {
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
            corrected.push(match reader.get(index)? {
                Times::UNKNOWN_START => Times::UNKNOWN_START,
                value => value.saturating_add(drift.at(value.saturating_sub(shift))),
            });
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
