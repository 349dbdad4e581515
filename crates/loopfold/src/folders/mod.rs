//! Folders: the algorithms that turn a stream into rules of counted items.
//!
//! All are lossless, and all give the same fold for the same stream, on one thread or
//! many. One file per folder.

mod boundaries;
mod innermost;
mod minimum;
mod nest;
mod outermost;
mod rotations;
mod select;

pub use innermost::{Guarded, Innermost};
pub use minimum::Minimum;
pub use outermost::{Halving, Outermost};

use crate::fold::{Fold, FoldBuilder, FoldedStream};
use crate::trace::{STREAM_LIMIT, Stream, Trace};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A way to fold a stream.
pub trait Folder: Sync {
    /// What users call it.
    fn name(&self) -> &'static str;

    /// Adds the rules of a stream to the builder and returns the one that unfolds to
    /// the stream.
    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId>;
}

/// Which of several loops with equally long bodies is taken first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The one with the most iterations, then the leftmost.
    #[default]
    Iterations,
    /// The leftmost.
    Left,
}

/// How many iterations a loop must have; fewer stay written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinTimes(NonZeroU32);

impl MinTimes {
    /// At least two: one iteration is no loop.
    pub fn new(times: u32) -> Result<Self> {
        match NonZeroU32::new(times) {
            Some(times) if times.get() >= 2 => Ok(Self(times)),
            _ => Err(Error::invalid("a loop has at least 2 iterations; ask for 2 or more")),
        }
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl Default for MinTimes {
    fn default() -> Self {
        Self(NonZeroU32::MIN.saturating_add(1))
    }
}

/// What the folders that look for loops can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Which of several equally long loop bodies is taken first.
    pub ties: Ties,
    /// How many iterations a loop must have.
    pub min_times: MinTimes,
}

fn check_length(stream: &[Symbol]) -> Result<()> {
    if stream.len() > STREAM_LIMIT {
        return Err(Error::limit(format_args!(
            "a stream of {} events; this folder takes at most {STREAM_LIMIT}",
            stream.len()
        )));
    }
    Ok(())
}

/// Folds every stream of a trace, on up to `threads` threads. Equal streams are
/// folded once.
pub fn fold_trace(trace: Trace, folder: &dyn Folder, threads: usize) -> Result<Fold> {
    let Trace { alphabet, mut streams } = trace;
    let first_equal = first_equal_streams(&streams);
    let distinct: Vec<usize> = (0..streams.len()).filter(|&index| first_equal[index] == index).collect();

    let next = AtomicUsize::new(0);
    let folded: Mutex<Vec<Option<Result<Fold>>>> = Mutex::new(distinct.iter().map(|_| None).collect());
    let work = || {
        while let Some(&index) = distinct.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = fold_stream(&streams[index].symbols, folder);
            let slot = distinct.binary_search(&index).unwrap_or_default();
            folded.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[slot] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(distinct.len()) {
            scope.spawn(work);
        }
        work();
    });

    let folded = folded.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut builder = FoldBuilder::new(alphabet);
    let mut roots: HashMap<usize, RuleId> = HashMap::new();
    for (&index, fold) in distinct.iter().zip(folded) {
        let Some(fold) = fold else { continue };
        let fold = fold?;
        streams[index].symbols = Vec::new();
        let renamed = builder.append_rules(&fold, Ok)?;
        roots.insert(index, renamed[fold.streams()[0].root().index()]);
    }
    for (index, stream) in streams.into_iter().enumerate() {
        let folded = FoldedStream::new(stream.name, folder.name(), roots[&first_equal[index]]);
        builder.stream(folded.with_notes(stream.notes).with_times(stream.times));
    }
    Ok(builder.finish())
}

/// Folds one stream into a fold of its own, whose only stream has no name and whose
/// alphabet is empty.
fn fold_stream(symbols: &[Symbol], folder: &dyn Folder) -> Result<Fold> {
    let mut builder = FoldBuilder::default();
    let root = folder.fold(symbols, &mut builder)?;
    builder.stream(FoldedStream::new("", folder.name(), root));
    Ok(builder.finish())
}

/// For each stream the first stream with the same events.
fn first_equal_streams(streams: &[Stream]) -> Vec<usize> {
    let mut first: HashMap<&[Symbol], usize> = HashMap::new();
    streams.iter().enumerate().map(|(index, stream)| *first.entry(&stream.symbols).or_insert(index)).collect()
}
