//! Folds the tokens of lanes: each lane is a stream, with a grammar of its own.
//!
//! Memory is O(distinct content) of each stream; with cycles, full chunks of them go to a file
//! without a name.

use super::events::{Decoded, Decoder, Shared};
use super::process::Process;
use crate::{Error, Result};
use loopfold::Fold;
use loopfold::fold::{FoldBuilder, FoldedStream, ProducerCount};
use loopfold::folders::{Folder as _, Online, SequiturRuns};
use loopfold::questions::path::PathBlocks;
use loopfold::questions::rule_sums::summarize;
use loopfold::trace::{Column, Spill, Times};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The metric of what the paths of an archive cost.
pub(crate) const INSTRUCTIONS: &str = "instructions";
pub(super) const CYCLES: &str = "cycles";

/// Which lane a stream is of: they are sorted by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneName {
    pub(crate) process: usize,
    pub(crate) thread: u32,
    pub(crate) level: u32,
    /// Which of the lanes of the process.
    pub(crate) usage: u32,
}

impl LaneName {
    pub(super) fn text(self) -> String {
        let process = match self.process {
            0 => String::new(),
            number => format!("process {} ", number + 1),
        };
        let thread = match self.thread {
            0 => "main".to_string(),
            number => format!("thread {number}"),
        };
        format!("{process}{thread}{}", self.level_text())
    }

    /// The name for a rank of an MPI program, whose first thread has that of the rank.
    pub(crate) fn of_rank(self, rank: u32) -> String {
        let library = match self.process {
            0 => String::new(),
            number => format!(" library {}", number + 1),
        };
        let thread = match self.thread {
            0 => String::new(),
            number => format!(" thread {number}"),
        };
        format!("rank {rank}{library}{thread}{}", self.level_text())
    }

    fn level_text(self) -> String {
        match self.level {
            0 => String::new(),
            1 => " signals".to_string(),
            level => format!(" signals {level}"),
        }
    }
}

/// All lanes that are being folded.
#[derive(Debug)]
pub(super) struct Folding {
    pub(super) shared: Arc<Shared>,
    /// What is measured for every event.
    metric: Option<&'static str>,
    is_left_out: AtomicBool,
    spill: Option<Arc<Spill>>,
    streams: Mutex<Vec<Stream>>,
    /// What is lost of processes, and of no stream that is known.
    lost: Mutex<Vec<Lost>>,
    /// The lanes that copies are made of while they are folded.
    live: Mutex<Vec<Weak<LiveLane>>>,
}

/// A lane that is folded while its program runs; `None` when it has ended.
pub(super) type LiveLane = Mutex<Option<FoldedLane>>;

/// A stream whose lane has ended.
struct Stream {
    name: LaneName,
    grammar: Box<dyn Online>,
    cycles: Column<f64>,
    notes: Vec<(String, String)>,
    missing: u64,
    is_unfinished: bool,
}

/// What a process threw away: at least so many events.
#[derive(Clone, Copy, Debug)]
struct Lost {
    process: usize,
    missing: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What was recorded.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recorded {
    /// The events, with the instructions of paths as sums.
    pub fold: Fold,
    /// The blocks of the paths that occur.
    pub blocks: PathBlocks,
}

impl Folding {
    /// With what is measured for every event, if something is; full chunks of it go to the spill.
    pub(super) fn new(metric: Option<&'static str>, spill: Option<Arc<Spill>>) -> Self {
        let is_left_out = AtomicBool::new(false);
        let (streams, lost, live) = Default::default();
        Self { shared: Arc::default(), metric, is_left_out, spill, streams, lost, live }
    }

    /// What should be measured cannot be.
    pub(super) fn leave_out_metric(&self) {
        self.is_left_out.store(true, Ordering::Relaxed);
    }

    /// Begins a lane, with the functions that were open when its process began.
    pub(super) fn lane(&self, process: &Arc<Process>, name: LaneName, open: &[u32]) -> Result<FoldedLane> {
        let mut lane = FoldedLane {
            name,
            program: process.program.clone(),
            decoder: Decoder::new(process, &self.shared, self.metric.is_some()),
            decoded: Decoded::default(),
            grammar: grammar()?,
            cycles: self.spill.as_ref().map_or_else(Column::default, Column::spilling),
            tokens: 0,
        };
        lane.decoder.begin(open, &mut lane.decoded)?;
        lane.push()?;
        Ok(lane)
    }

    /// The same, for [`Self::so_far`], too.
    pub(super) fn live_lane(
        &self,
        process: &Arc<Process>,
        name: LaneName,
        open: &[u32],
    ) -> Result<Arc<LiveLane>> {
        let lane = Arc::new(Mutex::new(Some(self.lane(process, name, open)?)));
        let mut live = locked(&self.live);
        if live.len() == live.capacity() {
            live.retain(|lane| lane.strong_count() > 0);
        }
        live.push(Arc::downgrade(&lane));
        Ok(lane)
    }

    /// Whether every event has ticks.
    pub(super) fn is_timed(&self) -> bool {
        self.metric.is_some()
    }

    /// Ends a lane of which so many events are missing, or more if its end is.
    pub(super) fn end(&self, lane: FoldedLane, missing: u64, is_unfinished: bool) {
        locked(&self.streams).push(lane.finish(missing, is_unfinished));
    }

    /// The same for a live lane, which is either that or a stream whenever a copy is made. Returns how
    /// many events were produced.
    pub(super) fn end_live(&self, lane: &LiveLane, missing: u64, is_unfinished: bool) -> u64 {
        let mut streams = locked(&self.streams);
        let Some(lane) = locked(lane).take() else { return missing };
        let stream = lane.finish(missing, is_unfinished);
        let produced = stream.count().produced;
        streams.push(stream);
        produced
    }

    /// A process has lost events, at least so many, or its end.
    pub(super) fn lose(&self, process: usize, missing: u64) {
        locked(&self.lost).push(Lost { process, missing });
    }

    /// All that was folded so far, without what is measured: a copy, made while nothing is folded.
    pub(super) fn so_far(&self) -> Result<Recorded> {
        let streams = locked(&self.streams);
        let live: Vec<_> = locked(&self.live).iter().filter_map(Weak::upgrade).collect();
        let lanes: Vec<_> = live.iter().map(|lane| locked(lane)).collect();
        let lanes = lanes.iter().filter_map(|lane| lane.as_ref());
        // Whoever adds symbols has locked a lane.
        let (alphabet, costs, blocks) = {
            let symbols = self.shared.symbols();
            (symbols.alphabet.clone(), symbols.costs(), symbols.blocks.clone())
        };
        let mut builder = FoldBuilder::new(alphabet);
        let ended = streams.iter().map(|one| (one.name, &one.grammar, one.counted_notes()));
        let mut all: Vec<_> =
            ended.chain(lanes.map(|lane| (lane.name, &lane.grammar, lane.notes()))).collect();
        all.sort_by_key(|(name, ..)| *name);
        for (name, grammar, mut notes) in all {
            let root = grammar.rules(&mut builder)?;
            ProducerCount::write_unfinished(&mut notes);
            builder.stream(FoldedStream::new(name.text(), SequiturRuns.name(), root).with_notes(notes));
        }
        drop(streams);
        let fold = builder.with_unique_stream_names().finish();
        Ok(Recorded { fold: fold.with_metric_of_events(INSTRUCTIONS, &costs)?, blocks })
    }

    /// Notes what processes have lost of their first streams. Those that have none get one.
    fn note_lost(&self, streams: &mut Vec<Stream>) -> Result<()> {
        for Lost { process, missing } in locked(&self.lost).drain(..) {
            let place = streams.iter().position(|stream| stream.name.process == process);
            let place = match place {
                Some(place) => place,
                None => {
                    streams.push(Stream::without_events(process)?);
                    streams.len() - 1
                }
            };
            streams[place].missing += missing;
            streams[place].is_unfinished = true;
        }
        Ok(())
    }

    /// All streams as a fold.
    pub(super) fn finish(&self) -> Result<Recorded> {
        let mut streams = std::mem::take(&mut *locked(&self.streams));
        streams.sort_by_key(|stream| stream.name);
        self.note_lost(&mut streams)?;
        streams.sort_by_key(|stream| stream.name);
        let mut symbols = std::mem::take(&mut *self.shared.symbols());
        let mut builder = FoldBuilder::new(std::mem::take(&mut symbols.alphabet));
        let metric = self.metric.filter(|_| !self.is_left_out.load(Ordering::Relaxed));
        for stream in streams {
            let notes = stream.counted_notes();
            let Stream { name, grammar, cycles, .. } = stream;
            let root = grammar.rules(&mut builder)?;
            let metrics = metric.map(|metric| (metric.to_string(), cycles)).into_iter().collect();
            let stream = FoldedStream::new(name.text(), SequiturRuns.name(), root).with_notes(notes);
            builder.stream(stream.with_times(Times { metrics, ..Times::default() }));
        }
        let mut fold = builder.with_unique_stream_names().finish();
        if metric.is_some() {
            fold = summarize(fold)?;
        }
        // Entries and exits have none.
        let fold = fold.with_metric_of_events(INSTRUCTIONS, &symbols.costs())?;
        Ok(Recorded { fold, blocks: symbols.blocks })
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lane that is being folded.
pub(super) struct FoldedLane {
    name: LaneName,
    program: String,
    decoder: Decoder,
    decoded: Decoded,
    grammar: Box<dyn Online>,
    cycles: Column<f64>,
    tokens: u64,
}

impl FoldedLane {
    /// Takes the tokens of a chunk; returns how many it has.
    pub(super) fn chunk(&mut self, tokens: &[u32]) -> Result<u64> {
        let count = self.decoder.chunk(tokens, &mut self.decoded)?;
        self.push()?;
        self.tokens += count;
        Ok(count)
    }

    /// How many tokens it has taken.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    fn push(&mut self) -> Result<()> {
        self.grammar.extend(&self.decoded.symbols)?;
        self.decoded.cycles.iter().for_each(|&cycles| self.cycles.push(cycles));
        self.decoded.clear();
        Ok(())
    }

    fn notes(&self) -> Vec<(String, String)> {
        let mut notes = vec![("format".to_string(), "paths".to_string())];
        notes.extend((!self.program.is_empty()).then(|| ("program".to_string(), self.program.clone())));
        for (key, count) in [
            ("bytes", self.tokens * 4),
            ("open-calls", self.decoder.depth() as u64),
            ("unmatched-returns", self.decoder.unmatched_returns),
            ("abandoned-calls", self.decoder.abandoned),
        ] {
            if count > 0 {
                notes.push((key.to_string(), count.to_string()));
            }
        }
        notes
    }

    fn finish(self, missing: u64, is_unfinished: bool) -> Stream {
        let notes = self.notes();
        let Self { name, grammar, cycles, .. } = self;
        Stream { name, grammar, cycles, notes, missing, is_unfinished }
    }
}

impl Stream {
    /// Of a process of which nothing is there.
    fn without_events(process: usize) -> Result<Self> {
        let name = LaneName { process, thread: 0, level: 0, usage: 0 };
        let notes = vec![("format".to_string(), "paths".to_string())];
        let cycles = Column::default();
        Ok(Self { name, grammar: grammar()?, cycles, notes, missing: 0, is_unfinished: true })
    }

    /// The program counts tokens, and a token may be no event (a mark) or several (a jump). So what is
    /// missing is what was counted less what was read, both in tokens; what was produced is that and
    /// the events that there are.
    fn count(&self) -> ProducerCount {
        ProducerCount { produced: self.grammar.events() + self.missing, missing: self.missing }
    }

    fn counted_notes(&self) -> Vec<(String, String)> {
        let mut notes = self.notes.clone();
        self.count().write(&mut notes);
        if self.is_unfinished {
            ProducerCount::write_unfinished(&mut notes);
        }
        notes
    }
}

fn grammar() -> Result<Box<dyn Online>> {
    SequiturRuns.online().ok_or_else(|| Error::new("no online folder"))
}
