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
use std::sync::{Arc, Mutex, PoisonError};

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
}

/// A stream whose lane has ended.
struct Stream {
    name: LaneName,
    grammar: Box<dyn Online>,
    cycles: Column<f64>,
    notes: Vec<(String, String)>,
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
        Self { shared: Arc::default(), metric, is_left_out, spill, streams: Mutex::default() }
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
            grammar: SequiturRuns.online().ok_or_else(|| Error::new("no online folder"))?,
            cycles: self.spill.as_ref().map_or_else(Column::default, Column::spilling),
            tokens: 0,
        };
        lane.decoder.begin(open, &mut lane.decoded)?;
        lane.push()?;
        Ok(lane)
    }

    /// Whether every event has ticks.
    pub(super) fn is_timed(&self) -> bool {
        self.metric.is_some()
    }

    /// Ends a lane of which so many events are missing. Returns how many were produced.
    pub(super) fn end(&self, lane: FoldedLane, missing: u64) -> u64 {
        let (stream, produced) = lane.finish(missing);
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        produced
    }

    /// All streams as a fold.
    pub(super) fn finish(&self) -> Result<Recorded> {
        let mut streams = std::mem::take(&mut *self.streams.lock().unwrap_or_else(PoisonError::into_inner));
        streams.sort_by_key(|stream| stream.name);
        let mut symbols = std::mem::take(&mut *self.shared.symbols());
        let mut builder = FoldBuilder::new(std::mem::take(&mut symbols.alphabet));
        let metric = self.metric.filter(|_| !self.is_left_out.load(Ordering::Relaxed));
        for Stream { name, grammar, cycles, notes } in streams {
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

    fn finish(self, missing: u64) -> (Stream, u64) {
        let Self { name, program, decoder, grammar, cycles, tokens, .. } = self;
        let produced = grammar.events() + missing;
        let mut notes = vec![("format".to_string(), "paths".to_string())];
        notes.extend((!program.is_empty()).then(|| ("program".to_string(), program)));
        for (key, count) in [
            ("bytes", tokens * 4),
            ("open-calls", decoder.depth() as u64),
            ("unmatched-returns", decoder.unmatched_returns),
            ("abandoned-calls", decoder.abandoned),
        ] {
            if count > 0 {
                notes.push((key.to_string(), count.to_string()));
            }
        }
        ProducerCount { produced, missing }.write(&mut notes);
        (Stream { name, grammar, cycles, notes }, produced)
    }
}
