//! Folders: the algorithms that convert a stream to rules of counted items.
//!
//! All are lossless, and all give the same fold for the same stream, on one thread or
//! many. One file per folder.
//!
//! | folder | what it takes | online |
//! | --- | --- | --- |
//! | [`Outermost`] | the longest loop body first: the nest to show | |
//! | [`Innermost`] | the shortest loop body first | |
//! | [`Guarded`] | the shortest first, and rotates bodies to match earlier ones | |
//! | [`Halving`] | the longest first, from left to right | |
//! | [`Minimum`] | the smallest nest, for short streams | |
//! | [`Repair`] | the most frequent pair of items first: small archives | |
//! | [`Sequitur`], [`Sequitur1`] | a grammar without counts, symbol by symbol | yes |
//! | [`SequiturRuns`] | a grammar with counts, symbol by symbol | yes |
//! | [`Auto`] | `SequiturRuns`, folded again by `Repair` in the end; or `Outermost` where rules beyond loops would not pay | yes |
//! | [`AutoOnline`] | the same without `Repair` | yes |
//! | [`Smallest`] | the smallest of `Repair`, `SequiturRuns` and `Outermost` | |
//!
//! [`fold_trace`] folds a trace in memory, [`Folding`] folds events as they are pushed.

mod auto;
mod boundaries;
mod folding;
mod innermost;
mod minimum;
mod nest;
mod online;
mod outermost;
mod parts;
mod repair;
mod rotations;
mod select;
mod sequitur;
mod sequitur_runs;
mod smallest;

pub use auto::{Auto, AutoOnline};
pub use folding::Folding;
pub use innermost::{Guarded, Innermost};
pub use minimum::Minimum;
pub use online::{Choice, FoldedRoot, Online};
pub use outermost::{Halving, Outermost};
pub use parts::{finish_parts, with_streams_by};
pub use repair::Repair;
pub use sequitur::{Sequitur, Sequitur1};
pub use sequitur_runs::SequiturRuns;
pub use smallest::{CodedSize, Smallest};

use crate::fold::{Fold, FoldBuilder, FoldedStream};
use crate::parallel::parallel_map;
use crate::trace::{STREAM_LIMIT, Stream, Trace};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::num::NonZeroU32;

/// An algorithm that folds a stream.
pub trait Folder: Send + Sync {
    /// The name that users give.
    fn name(&self) -> &'static str;

    /// Its name, and those of its settings that are not the default.
    fn describe(&self) -> String {
        self.name().to_string()
    }

    /// Adds the rules of a stream to the builder and returns the one that unfolds to
    /// the stream.
    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId>;

    /// The same, with the choice of a folder that chooses among others.
    fn fold_with_choice(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        self.fold(stream, builder).map(FoldedRoot::from)
    }

    /// The same on up to `threads` threads: the very same rules, sooner if the folder can divide
    /// the work of one stream.
    fn fold_on(&self, stream: &[Symbol], _threads: usize, builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        self.fold_with_choice(stream, builder)
    }

    /// Folds several streams with shared rules and returns the root of each. Returns `None` for
    /// a folder that takes one stream at a time, or if the streams are too long.
    fn fold_together(
        &self,
        _streams: &[&[Symbol]],
        _builder: &mut FoldBuilder,
    ) -> Option<Result<Vec<FoldedRoot>>> {
        None
    }

    /// Folds streams again when all of them are complete, from the rules of each, as a folder can
    /// that began to fold them [online](Self::online). Returns other rules and the roots in them,
    /// or `None` if the rules stay as they are.
    fn refine(&self, _fold: &Fold, _roots: &[FoldedRoot]) -> Result<Option<(Fold, Vec<FoldedRoot>)>> {
        Ok(None)
    }

    /// Begins to fold a stream whose symbols are still to come. Returns `None` for a folder
    /// that must see the whole stream first.
    fn online(&self) -> Option<Box<dyn Online>> {
        None
    }
}

/// Every folder, with its default settings; [`Smallest`] compares sizes by `coded_size`.
pub fn all(coded_size: CodedSize) -> Vec<Box<dyn Folder>> {
    vec![
        Box::new(Outermost::default()),
        Box::new(Innermost::default()),
        Box::new(Guarded::default()),
        Box::new(Halving::default()),
        Box::new(Minimum::default()),
        Box::new(Repair),
        Box::new(Sequitur),
        Box::new(Sequitur1),
        Box::new(SequiturRuns),
        Box::new(Auto),
        Box::new(Smallest::new(coded_size)),
    ]
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

/// The setters of a folder that has [`Settings`].
macro_rules! loop_setters {
    () => {
        /// Which of several equally long loop bodies is taken first.
        #[must_use]
        pub const fn ties(mut self, ties: Ties) -> Self {
            self.settings.ties = ties;
            self
        }

        /// How many iterations a loop must have.
        #[must_use]
        pub const fn min_times(mut self, min_times: MinTimes) -> Self {
            self.settings.min_times = min_times;
            self
        }
    };
}
use loop_setters;

/// The settings of folders that look for loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Settings {
    ties: Ties,
    min_times: MinTimes,
}

impl Settings {
    /// The folder's name with the settings that are not the default.
    fn describe(&self, name: &str) -> String {
        let mut text = name.to_string();
        if self.ties != Ties::default() {
            text.push_str(" ties=left");
        }
        if self.min_times != MinTimes::default() {
            text.push_str(&format!(" min-times={}", self.min_times.get()));
        }
        text
    }
}

impl From<MinTimes> for Settings {
    fn from(min_times: MinTimes) -> Self {
        Settings { min_times, ..Settings::default() }
    }
}

fn check_length(stream: &[Symbol]) -> Result<()> {
    if stream.len() > STREAM_LIMIT { Err(too_long(stream.len() as u64)) } else { Ok(()) }
}

fn too_long(events: u64) -> Error {
    Error::limit(format_args!(
        "a stream of {events} events; folders that hold it in memory take at most {STREAM_LIMIT}"
    ))
}

/// Folds every stream of a trace, on up to `threads` threads; the fold is the same on any number of
/// them. Equal streams are folded once; others together, if the folder can do that.
pub fn fold_trace(trace: Trace, folder: &dyn Folder, threads: usize) -> Result<Fold> {
    let Trace { alphabet, mut streams } = trace;
    let first_equal = first_equal_streams(&streams);
    let distinct: Vec<usize> = (0..streams.len()).filter(|&index| first_equal[index] == index).collect();
    let mut builder = FoldBuilder::new(alphabet);
    let mut made: HashMap<usize, FoldedRoot> = HashMap::new();
    if let [only] = distinct[..] {
        // Straight into the builder: a fold of its own would be one copy more.
        made.insert(only, folder.fold_on(&streams[only].symbols, threads, &mut builder)?);
    } else if let Some(together) = fold_together(&distinct, &streams, folder, &mut builder) {
        made.extend(distinct.iter().copied().zip(together?));
    } else {
        let folded =
            fold_all(&distinct, |&index| Cow::Borrowed(&streams[index].symbols[..]), folder, threads);
        for (&index, fold) in distinct.iter().zip(folded) {
            streams[index].symbols = Vec::new();
            made.insert(index, append(&mut builder, fold?)?);
        }
    }
    for (index, stream) in streams.into_iter().enumerate() {
        let folded = made[&first_equal[index]].stream(&stream.name, folder, &stream.notes);
        builder.stream(folded.with_times(stream.times));
    }
    Ok(builder.finish())
}

fn fold_together(
    distinct: &[usize],
    streams: &[Stream],
    folder: &dyn Folder,
    builder: &mut FoldBuilder,
) -> Option<Result<Vec<FoldedRoot>>> {
    let symbols: Vec<&[Symbol]> = distinct.iter().map(|&index| &streams[index].symbols[..]).collect();
    folder.fold_together(&symbols, builder)
}

/// Folds the streams of a fold again: each distinct one is unfolded into memory, folded and
/// freed.
pub fn refold(fold: &Fold, folder: &dyn Folder, threads: usize) -> Result<Fold> {
    let mut distinct: Vec<RuleId> = fold.streams().iter().map(FoldedStream::root).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if let Some(&long) = distinct.iter().find(|&&root| fold.length(root) > STREAM_LIMIT as u64) {
        return Err(too_long(fold.length(long)));
    }
    let unfold = |&root: &RuleId| Cow::Owned(fold.unfold(root).collect());
    let folded = fold_all(&distinct, unfold, folder, threads);
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let mut made: HashMap<RuleId, FoldedRoot> = HashMap::new();
    for (&root, folded) in distinct.iter().zip(folded) {
        made.insert(root, append(&mut builder, folded?)?);
    }
    for stream in fold.streams() {
        let folded = made[&stream.root()].stream(stream.name().raw(), folder, stream.notes());
        builder.stream(FoldedStream { times: stream.times.clone(), sums: stream.sums.clone(), ..folded });
    }
    Ok(builder.finish())
}

/// Folds streams in parallel; the results are in their order.
fn fold_all<'a, T: Sync>(
    streams: &[T],
    symbols: impl Fn(&T) -> Cow<'a, [Symbol]> + Sync,
    folder: &dyn Folder,
    threads: usize,
) -> Vec<Result<(Fold, FoldedRoot)>> {
    let for_each = threads / streams.len().max(1);
    parallel_map(streams, threads, |stream| fold_stream(&symbols(stream), folder, for_each))
}

/// Folds one stream into a fold of its own, without alphabet and streams.
fn fold_stream(symbols: &[Symbol], folder: &dyn Folder, threads: usize) -> Result<(Fold, FoldedRoot)> {
    let mut builder = FoldBuilder::default();
    let folded = folder.fold_on(symbols, threads, &mut builder)?;
    Ok((builder.finish(), folded))
}

/// Adds the rules of a fold that was made of one stream.
fn append(builder: &mut FoldBuilder, (fold, folded): (Fold, FoldedRoot)) -> Result<FoldedRoot> {
    let renamed = builder.append_rules(&fold, Ok)?;
    Ok(FoldedRoot { root: renamed[folded.root.index()], ..folded })
}

/// For each stream the first stream with the same events. Only streams of equal length
/// are compared, so a long stream that stands alone costs nothing.
fn first_equal_streams(streams: &[Stream]) -> Vec<usize> {
    let mut distinct: HashMap<usize, Vec<usize>> = HashMap::new();
    let first = |(index, stream): (usize, &Stream)| {
        let candidates = distinct.entry(stream.symbols.len()).or_default();
        let equal = candidates.iter().copied().find(|&other| streams[other].symbols == stream.symbols);
        equal.unwrap_or_else(|| {
            candidates.push(index);
            index
        })
    };
    streams.iter().enumerate().map(first).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ErrorKind;
    use crate::interrupt::counted::polls;
    use crate::trace::Sink as _;
    use loopfold_testing::streams::FAMILIES;

    /// Every folder polls at least once in so many symbols that it reads or rules that it makes.
    #[test]
    fn folders_can_be_interrupted() {
        for folder in all(crate::archive::coded_size) {
            let length = if folder.name() == "minimum" { 2_000 } else { 60_000 };
            for family in FAMILIES {
                let stream: Vec<Symbol> = family.make(length).into_iter().map(Symbol::from_raw).collect();
                let fold = || fold_stream(&stream, &*folder, 1);
                let (count, whole) = polls(None, fold);
                let whole = whole.unwrap();
                assert!(count >= 3, "{} {}: {count}", folder.name(), family.name);
                for at in [1, 2, count / 2, count] {
                    let (_, ended) = polls(Some(at), fold);
                    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted, "{}", folder.name());
                }
                assert_eq!(polls(None, fold).1.unwrap(), whole, "{}", folder.name());
            }
        }
    }

    #[test]
    fn threads_of_folding_end_with_it() {
        for at in [1, 5, 20] {
            let (_, ended) = polls(Some(at), || {
                let mut folding =
                    Folding::with(Box::new(Auto), Default::default(), crate::trace::TimesKept::None, 3)?;
                let streams = ["a", "b", "c", "d"].map(|name| folding.stream(name));
                let symbols = [0, 1].map(|number| folding.intern(&crate::trace::Event::integer(number)));
                let [zero, one] = [symbols[0].clone()?, symbols[1].clone()?];
                for round in 0..100_000 {
                    let stream = streams[round % 4].clone()?;
                    folding.push_symbols(stream, &[zero, one, if round % 7 == 0 { one } else { zero }])?;
                }
                folding.finish()
            });
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
        }
    }
}
