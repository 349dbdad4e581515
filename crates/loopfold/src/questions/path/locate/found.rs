//! The result of a search: counts, places, and where each occurrence begins.

use super::super::PathQuery;
use super::super::slice::FunctionSlice;
use super::super::strategy::PathOccurrences as _;
use super::super::summary::frame::FrameState;
use super::super::summary::gaps::GapState;
use super::direct::DirectMatcher;
use super::flat::FlatMatcher;
use super::nested::NestedMatcher;
use super::starts::{PathMemory, start_of};
use super::{End, PathEnds, PathMatcher};
use crate::fold::Fold;
use crate::questions::find::bits::Wide;
use crate::{Result, StreamId};
use std::sync::Arc;

/// Where a path occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPlace {
    /// The stream.
    pub stream: StreamId,
    /// The position of its last block in the stream, from 0.
    pub end: u64,
    /// How many frames of the function are open there: 1 unless it calls itself.
    pub depth: u64,
}

/// The occurrences of a path in a fold.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::path::{Functions, PathPlace, PathQuery, find_path};
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
/// assert_eq!(first, PathPlace { stream, end: 5, depth: 1 });
/// assert_eq!(found.start(&first), Some(1));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct PathFound<'a> {
    pub(in super::super) fold: &'a Fold,
    matcher: Box<dyn PathMatcher + 'a>,
    query: PathQuery,
}

opaque_debug!(PathFound<'a>);

impl<'a> PathFound<'a> {
    /// Looks for a path straight over all rules; `None` if the function is recursive, or the
    /// path is long or has gaps.
    pub(in super::super) fn directly(fold: &'a Fold, query: &PathQuery) -> Option<Self> {
        let matcher = DirectMatcher::new(fold, query)?;
        Some(Self { fold, matcher: Box::new(matcher), query: query.clone() })
    }

    /// Looks for a path in the slice of its function.
    pub(in super::super) fn new(slice: &Arc<FunctionSlice<'a>>, query: &PathQuery) -> Result<Self> {
        let matcher = match query.len() {
            _ if query.has_gaps() => matcher_of::<GapState>(slice, query)?,
            ..=32 => matcher_of::<u32>(slice, query)?,
            33..=64 => matcher_of::<u64>(slice, query)?,
            _ => matcher_of::<Wide>(slice, query)?,
        };
        Ok(Self { fold: slice.fold(), matcher, query: query.clone() })
    }
}

fn matcher_of<'a, S: FrameState + 'a>(
    slice: &Arc<FunctionSlice<'a>>,
    query: &PathQuery,
) -> Result<Box<dyn PathMatcher + 'a>> {
    Ok(match slice.is_recursive() {
        false => Box::new(FlatMatcher::<S>::new(slice, query)?),
        true => Box::new(NestedMatcher::<S>::new(slice, query)?),
    })
}

impl PathFound<'_> {
    /// How often it occurs in all streams together.
    pub fn count(&self) -> Result<u64> {
        self.count_all()
    }

    /// How often it occurs in a stream.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn count_in(&self, stream: StreamId) -> u64 {
        self.matcher.count(self.fold.stream(stream).root())
    }

    /// The first occurrence, in the order of the streams and of the last blocks.
    pub fn first(&self) -> Option<PathPlace> {
        self.places().next()
    }

    /// All occurrences, stream by stream in the order of their last blocks, found as they are
    /// requested. Skipping many with [`PathPlaces::skip_to`] costs no more than skipping one.
    pub fn places(&self) -> PathPlaces<'_> {
        PathPlaces { found: self, streams: 0..self.fold.streams().len() as u32, ends: None }
    }

    /// The occurrences in one stream.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn places_in(&self, stream: StreamId) -> PathPlaces<'_> {
        assert!(stream.index() < self.fold.streams().len(), "there is no {stream:?}");
        PathPlaces { found: self, streams: stream.raw()..stream.raw() + 1, ends: None }
    }

    /// The position of the first block of an occurrence: a descent of the rules for each
    /// block of the path. `None` if there is no such occurrence. Of a path with gaps it is
    /// the last block with which it can begin, and `None` if there are more than
    /// [`PathQuery::FURTHEST`] blocks between that and the end.
    pub fn start(&self, place: &PathPlace) -> Option<u64> {
        let root = self.fold.streams().get(place.stream.index())?.root();
        let last = self.fold.symbol_at(root, place.end)?;
        start_of(&self.query, place, last, &mut PathMemory::default(), |emit| {
            self.matcher.blocks_before(root, place.end, emit);
        })
    }
}

/// Occurrences in order; see [`PathFound::places`].
pub struct PathPlaces<'f> {
    found: &'f PathFound<'f>,
    /// The streams that are still to come.
    streams: std::ops::Range<u32>,
    /// The stream that is examined.
    ends: Option<(StreamId, Box<dyn PathEnds + 'f>)>,
}

opaque_debug!(PathPlaces<'f>);

impl PathPlaces<'_> {
    /// Skips `skip` occurrences and returns the next one.
    pub fn skip_to(&mut self, mut skip: u64) -> Option<PathPlace> {
        loop {
            if let Some((stream, ends)) = &mut self.ends
                && let Some(End { position, depth }) = ends.next(&mut skip)
            {
                return Some(PathPlace { stream: *stream, end: position, depth });
            }
            self.ends = None;
            let stream = StreamId::from_raw(self.streams.next()?);
            match skip.checked_sub(self.found.count_in(stream)) {
                Some(rest) => skip = rest,
                None => {
                    let root = self.found.fold.stream(stream).root();
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
