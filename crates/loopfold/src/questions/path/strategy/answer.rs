//! The result of a search for a path: the occurrences, the scheme, why it was chosen, and the
//! work done.

use crate::questions::path::{PathFound, PathPlace};
use crate::{Error, Result, StreamId};

/// A search scheme, as numbered in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Scheme 1: all symbols are unfolded or decompressed, and scanned.
    Unfolded,
    /// Scheme 2: every rule of the fold once, nothing is unfolded.
    Folded,
    /// Scheme 3: only chunks that hold something of the function are unfolded or
    /// decompressed, and scanned.
    Chunks,
    /// Scheme 4: only those parts of the fold that hold something of the function.
    Indexed,
}

impl Scheme {
    /// All of them, in the paper's order.
    pub const ALL: [Scheme; 4] = [Scheme::Unfolded, Scheme::Folded, Scheme::Chunks, Scheme::Indexed];

    /// The number in the paper.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Unfolded => "unfolded",
            Scheme::Folded => "folded",
            Scheme::Chunks => "chunks",
            Scheme::Indexed => "indexed",
        }
    }
}

/// How much of something was examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How many were examined.
    pub touched: u64,
    /// Of how many.
    pub all: u64,
}

/// The work of a search; `None` for what its scheme does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Ranges of the index.
    pub ranges: Option<Share>,
    /// Chunks of the trace.
    pub chunks: Option<Share>,
    /// Rules of the fold.
    pub rules: Option<Share>,
    /// Symbols that were unfolded or decompressed.
    pub symbols: u64,
    /// Bytes that came out of compressed chunks.
    pub decompressed_bytes: u64,
}

/// The result of a search.
pub struct PathAnswer<'a> {
    /// The occurrences.
    pub found: Box<dyn PathOccurrences + 'a>,
    /// How they were found.
    pub scheme: Scheme,
    /// Why this scheme was chosen.
    pub reason: String,
    /// The work done. Listing places adds to it.
    pub effort: Effort,
    /// The chunks that were damaged, and how; their events were unfolded instead.
    pub damage: Vec<String>,
}

impl std::fmt::Debug for PathAnswer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scheme, reason, effort, damage, .. } = self;
        let mut answer = f.debug_struct("PathAnswer");
        answer.field("scheme", scheme).field("reason", reason).field("effort", effort);
        answer.field("damage", damage).finish_non_exhaustive()
    }
}

/// The occurrences of a path, found by any scheme.
pub trait PathOccurrences {
    /// How often it occurs in a stream.
    ///
    /// # Panics
    /// If there is no such stream.
    fn count_in(&self, stream: StreamId) -> u64;

    /// How many streams there are.
    fn streams(&self) -> usize;

    /// The streams, in order.
    fn stream_ids(&self) -> std::iter::Map<std::ops::Range<u32>, fn(u32) -> StreamId> {
        (0..self.streams() as u32).map(StreamId::from_raw)
    }

    /// Skips `skip` occurrences of a stream, then visits each that follows, until `visit`
    /// returns false.
    fn each_in(&self, stream: StreamId, skip: u64, visit: &mut dyn FnMut(PathPlace) -> bool) -> Result<()>;

    /// How often it occurs in all streams together.
    fn count_all(&self) -> Result<u64> {
        let mut counts = self.stream_ids().map(|stream| self.count_in(stream));
        let count = counts.try_fold(0u64, u64::checked_add);
        count.ok_or_else(|| Error::limit("the path occurs more than 2^64 times"))
    }

    /// The first occurrence, in the order of the streams and of the last blocks.
    fn first_place(&self) -> Result<Option<PathPlace>> {
        let mut first = None;
        if let Some(stream) = self.stream_ids().find(|&stream| self.count_in(stream) > 0) {
            self.each_in(stream, 0, &mut |place| {
                first = Some(place);
                false
            })?;
        }
        Ok(first)
    }

    /// The occurrences as found on rules. Returns `None` if they were found otherwise.
    fn on_rules(&self) -> Option<&PathFound<'_>> {
        None
    }
}

impl PathOccurrences for PathFound<'_> {
    fn count_in(&self, stream: StreamId) -> u64 {
        PathFound::count_in(self, stream)
    }

    fn streams(&self) -> usize {
        self.fold.streams().len()
    }

    fn each_in(&self, stream: StreamId, skip: u64, visit: &mut dyn FnMut(PathPlace) -> bool) -> Result<()> {
        let mut places = self.places_in(stream);
        let mut next = places.skip_to(skip);
        while let Some(place) = next
            && visit(place)
        {
            next = places.next();
        }
        Ok(())
    }

    fn on_rules(&self) -> Option<&PathFound<'_>> {
        Some(self)
    }
}
