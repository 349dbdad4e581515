//! Finding a path of a function in a trace of calls, without unfolding.
//!
//! A path is a sequence of blocks that one invocation of a function runs through, one
//! directly after the other there. In the trace other things may stand between them: the
//! calls that the invocation makes, with all their events, which may be of the same
//! function. Paths may overlap, and all count; the blocks of an invocation that was not
//! seen to be entered do not. A path may have gaps, where any blocks of the invocation may
//! come between (see [`gaps`]).
//!
//! Asking for a short path of a function that never calls itself costs one pass over the
//! items of the fold, 1 to 4 ns each, and 16 bytes a rule (see [`direct`]). Otherwise it costs
//! one pass to find the items that hold something of the function (see [`slice`]), and
//! one over these: a few nanoseconds each if it never calls itself (see [`tame`]), some tens
//! if it does, times the levels of recursion that differ (see [`value`]). After that a count
//! costs nothing and a place a walk down the rules (see [`matcher`]). Memory: 4 bytes a rule,
//! and 8 for each item and a word or value for each rule that holds a symbol of the function.
//! [`PathSearcher`] needs less than a full pass for each path, and [`strategy`] says which way
//! is chosen when; [`PathScan`] does the same on symbols as they come.

mod back;
mod batch;
mod brackets;
mod direct;
mod frame;
mod functions;
mod gaps;
mod glob;
mod index;
mod levels;
mod locate;
mod matcher;
mod runs;
mod scan;
mod slice;
mod starts;
mod stored_chunks;
mod strategy;
mod syntax;
mod tame;
mod value;
mod values;

use super::Query;
use crate::fold::Fold;
use crate::{Error, Result, Symbol};
pub use back::CallStacks;
use functions::Step;
pub use functions::{Function, Functions};
pub use index::{IndexRange, PathIndex};
pub use levels::{Deepest, Levels, Nesting, NestingLevels};
use locate::{EmitBlock, End, PathEnds, PathMatcher};
pub use scan::{PathScan, ScanOptions, TraceChunks};
pub use starts::{PathMemory, PathStarts};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
pub use stored_chunks::{Chunk, ChunkSize, ChunkTotals, Chunks, chunk_totals};
pub use strategy::{Effort, PathAnswer, PathOccurrences, PathSearcher, Scheme, Share, find_path};
pub use syntax::{PathReader, is_path};

/// A path of a function to look for.
#[derive(Clone, Debug, PartialEq)]
pub struct PathQuery {
    function: Vec<u8>,
    /// What symbols do to frames of the function; the others do nothing.
    steps: Vec<(Symbol, Step)>,
    pattern: Query,
    /// True if exits and blocks say whose they are.
    qualified: bool,
    /// Which of all functions it is.
    number: usize,
    /// The places of the path before which any blocks may come, and the automaton of that.
    gaps: Option<(Vec<usize>, Arc<gaps::Automaton>)>,
}

impl PathQuery {
    /// A path of a function: for each block the symbols that it may be. Any block of the
    /// function is [`Functions::blocks_of`] it.
    pub fn new(functions: &Functions, function: &Function, blocks: Vec<Vec<Symbol>>) -> Result<Self> {
        let known = functions.blocks_of(function);
        if blocks.iter().flatten().any(|block| known.binary_search(block).is_err()) {
            return Err(Error::invalid(format_args!(
                "a block of the path is none of {}",
                String::from_utf8_lossy(function.name()).escape_debug()
            )));
        }
        let (steps, pattern) = (functions.steps_of(function), Query::new(blocks)?);
        let number = functions.index_of(function.name()).unwrap_or(usize::MAX);
        let (function, qualified) = (function.name().to_vec(), functions.is_qualified());
        Ok(Self { function, steps, pattern, qualified, number, gaps: None })
    }

    /// The same path with gaps before some of its blocks, where any blocks of the function
    /// may come, or none. `before` are their places in the path, from 1, in order.
    ///
    /// What counts then is distinct ends: the last blocks with which the path can end.
    pub fn with_gaps(self, before: &[usize]) -> Result<Self> {
        let fit = before.iter().all(|&place| 0 < place && place < self.len());
        if !fit || !before.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid("a gap is between two blocks of a path"));
        }
        let gaps = match before {
            [] => None,
            before => Some((before.to_vec(), Arc::new(gaps::Automaton::new(&self.pattern, before)?))),
        };
        Ok(Self { gaps, ..self })
    }

    /// The places of the path before which any blocks may come, in order.
    pub fn gaps(&self) -> &[usize] {
        self.gaps.as_ref().map_or(&[], |(before, _)| before)
    }

    /// True if blocks of the path may have others between them.
    pub fn has_gaps(&self) -> bool {
        self.gaps.is_some()
    }

    /// How many blocks of a frame are looked at for the beginning of a path with gaps.
    pub const FURTHEST: u64 = 1 << 16;

    /// The name of the function.
    pub fn function(&self) -> &[u8] {
        &self.function
    }

    /// For each block the symbols it may be, in order.
    pub fn blocks(&self) -> &[Vec<Symbol>] {
        self.pattern.events()
    }

    /// How many blocks are looked for.
    #[allow(clippy::len_without_is_empty, reason = "a path is never empty")]
    pub fn len(&self) -> usize {
        self.pattern.len()
    }

    /// The symbols that matter for the path: what holds none of them can be passed over.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> {
        self.steps.iter().map(|&(symbol, _)| symbol)
    }

    /// True if exits and blocks say whose they are, so that other functions do not matter.
    fn is_qualified(&self) -> bool {
        self.qualified
    }

    /// Which of all functions it is a path of.
    fn function_number(&self) -> usize {
        self.number
    }

    /// The automaton of a path with gaps; without any it has nothing to find.
    fn automaton(&self) -> Arc<gaps::Automaton> {
        self.gaps.as_ref().map_or_else(Arc::default, |(_, automaton)| Arc::clone(automaton))
    }

    fn pattern(&self) -> &Query {
        &self.pattern
    }

    /// Where an occurrence begins whose last block is known, from what tells the blocks of
    /// its frame before that, the last first.
    fn start(
        &self,
        place: &PathPlace,
        last: Symbol,
        memory: &mut PathMemory,
        before: impl FnOnce(&mut EmitBlock<'_>),
    ) -> Option<u64> {
        let mut beginning = gaps::Beginning::new(self.blocks(), self.gaps());
        let mut way = memory.way(place.stream);
        let mut pass = |block, position| {
            if beginning.pass(block) {
                way.begins(Some(position));
            } else if let Some(part) = beginning.waiting() {
                way.waits(part, position);
            } else if beginning.is_lost() {
                way.begins(None);
            }
            way.goes_on()
        };
        if pass(last, place.end) {
            let mut looked_at = 0;
            before(&mut |block, position| {
                looked_at += 1;
                pass(block, position) && (looked_at < Self::FURTHEST || !self.has_gaps())
            });
        }
        way.start()
    }

    fn steps(&self) -> &[(Symbol, Step)] {
        &self.steps
    }
}

impl Eq for PathQuery {}

/// By what was asked for; the rest follows from it.
impl Hash for PathQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.function, self.blocks(), self.gaps()).hash(state);
    }
}

/// Where a path occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPlace {
    /// The index of the stream.
    pub stream: usize,
    /// The position of its last block in the stream, from 0.
    pub end: u64,
    /// How many frames of the function are open there: 1 unless it calls itself.
    pub depth: u64,
}

/// The occurrences of a path in a fold.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::{Functions, PathPlace, PathQuery, find_path};
/// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// let f = [Field { key: "function", value: Value::Text(b"f") }];
/// let enter = Event { role: Role::Enter, ..Event::named("f") };
/// let leave = Event { role: Role::Leave, fields: &f, ..Event::named("return") };
/// let b1 = Event { role: Role::Block, fields: &f, ..Event::named("B1") };
/// let b2 = Event { role: Role::Block, fields: &f, ..Event::named("B2") };
/// // The call in the middle has a B1 and no B2; the path goes on behind it.
/// for event in [enter, b1, enter, b1, leave, b2, leave] {
///     collector.push_event(stream, &event)?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let functions = Functions::of(fold.alphabet())?;
/// let function = functions.named(b"f").unwrap();
/// let blocks = function.blocks().iter().map(|&block| vec![block]).collect();
/// let found = find_path(&fold, &PathQuery::new(&functions, function, blocks)?)?;
/// assert_eq!(found.count()?, 1);
/// let first = found.first().unwrap();
/// assert_eq!(first, PathPlace { stream: 0, end: 5, depth: 1 });
/// assert_eq!(found.start(&first), Some(1));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct PathFound<'a> {
    fold: &'a Fold,
    matcher: Box<dyn PathMatcher + 'a>,
    query: PathQuery,
}

impl<'a> PathFound<'a> {
    fn new(fold: &'a Fold, matcher: Box<dyn PathMatcher + 'a>, query: &PathQuery) -> Self {
        Self { fold, matcher, query: query.clone() }
    }
}

impl PathFound<'_> {
    /// How often it occurs in all streams together.
    pub fn count(&self) -> Result<u64> {
        self.count_all()
    }

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.fold.streams().len()
    }

    /// How often it occurs in a stream.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn count_in(&self, stream: usize) -> u64 {
        self.matcher.count(self.fold.streams()[stream].root())
    }

    /// The first occurrence, in the order of the streams and of the last blocks.
    pub fn first(&self) -> Option<PathPlace> {
        self.places().next()
    }

    /// All occurrences, stream by stream in the order of their last blocks, found as they
    /// are asked for. Passing over many with [`PathPlaces::skip_to`] costs no more than
    /// passing over one.
    pub fn places(&self) -> PathPlaces<'_> {
        PathPlaces { found: self, streams: 0..self.fold.streams().len(), ends: None }
    }

    /// The occurrences in one stream.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn places_in(&self, stream: usize) -> PathPlaces<'_> {
        assert!(stream < self.fold.streams().len(), "there is no stream {stream}");
        PathPlaces { found: self, streams: stream..stream + 1, ends: None }
    }

    /// The position of the first block of an occurrence: a way down the rules for each
    /// block of the path. Nothing if there is no such occurrence. Of a path with gaps it is
    /// the last block with which it can begin, and nothing if there are more than
    /// [`PathQuery::FURTHEST`] blocks between that and the end.
    pub fn start(&self, place: &PathPlace) -> Option<u64> {
        let root = self.fold.streams().get(place.stream)?.root();
        let before = |emit: &mut EmitBlock<'_>| self.matcher.blocks_before(root, place.end, emit);
        let last = self.fold.symbol_at(root, place.end)?;
        self.query.start(place, last, &mut PathMemory::default(), before)
    }
}

/// Occurrences in order; see [`PathFound::places`].
pub struct PathPlaces<'f> {
    found: &'f PathFound<'f>,
    /// The streams that are still to come.
    streams: std::ops::Range<usize>,
    /// The stream that is looked at.
    ends: Option<(usize, Box<dyn PathEnds + 'f>)>,
}

impl PathPlaces<'_> {
    /// Passes over `skip` occurrences and returns the next one.
    pub fn skip_to(&mut self, mut skip: u64) -> Option<PathPlace> {
        loop {
            if let Some((stream, ends)) = &mut self.ends
                && let Some(End { position, depth }) = ends.next(&mut skip)
            {
                return Some(PathPlace { stream: *stream, end: position, depth });
            }
            self.ends = None;
            let stream = self.streams.next()?;
            match skip.checked_sub(self.found.count_in(stream)) {
                Some(rest) => skip = rest,
                None => {
                    let root = self.found.fold.streams()[stream].root();
                    self.ends = Some((stream, self.found.matcher.ends(root)));
                }
            }
        }
    }
}

impl Iterator for PathPlaces<'_> {
    type Item = PathPlace;

    fn next(&mut self) -> Option<PathPlace> {
        self.skip_to(0)
    }

    fn nth(&mut self, n: usize) -> Option<PathPlace> {
        self.skip_to(n as u64)
    }
}
