//! The symbols of a scan: stored chunks, or ranges of the fold that are unfolded one after the
//! other; all of them, or those that contain the function.
//!
//! A cursor skips ranges without a symbol that matters, guided by which rules contain one: one
//! pass over the rules, then for each other range O(depth × log body) and the items it skips.

use super::PathScan;
use crate::fold::cursor::Cursor;
use crate::fold::measure::holding;
use crate::fold::{Fold, Unfold};
use crate::questions::path::{NestingLevels, PathQuery};
use crate::{Error, Result, RuleId, Symbol};
use roaring::RoaringBitmap;

/// The symbols of a trace in chunks of one size, stream by stream.
pub trait TraceChunks: Sync {
    /// Fails unless these can be the chunks of a fold.
    fn check(&self, fold: &Fold) -> Result<()>;

    /// How many symbols a chunk has, but the last of a stream.
    fn chunk_symbols(&self) -> u64;

    /// The first chunk of a stream; for the number of streams, how many chunks there are.
    fn first_of(&self, stream: usize) -> usize;

    /// How calls are nested in a chunk.
    fn levels_of(&self, chunk: usize) -> NestingLevels;

    /// The chunks with an entry, a block or an exit of a function, which is given by its
    /// index among [all functions](crate::questions::path::Functions::all).
    fn containing(&self, function: usize) -> Option<&RoaringBitmap>;

    /// Reads the symbols of a chunk, and returns how many bytes they were decompressed to.
    fn read(&self, chunk: usize, symbols: &mut Vec<Symbol>) -> Result<u64>;
}

/// How to scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanConfig {
    /// Unfold the range of a chunk that is damaged, and continue, instead of an error.
    pub lenient: bool,
    /// How many symbols a range of the fold has that takes the place of a chunk.
    pub range: u64,
    /// More symbols than that are not scanned: a fold may claim any number.
    pub most_symbols: u64,
}

impl ScanConfig {
    /// The defaults.
    pub const fn new() -> Self {
        Self { lenient: false, range: 1 << 20, most_symbols: 1 << 36 }
    }

    setters! {
        /// Unfold the range of a chunk that is damaged, and continue, instead of an error.
        lenient: bool,
        /// How many symbols a range of the fold has that takes the place of a chunk.
        range: u64,
        /// More symbols than that are not scanned: a fold may claim any number.
        most_symbols: u64,
    }
}

impl Default for ScanConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// The largest range: as large as the largest chunk.
const MOST_RANGE: u64 = 1 << 26;

/// The most frames that may be open: a gigabyte.
const MOST_FRAMES: usize = 1 << 27;

pub(super) fn check_frames(scan: &PathScan) -> Result<()> {
    if scan.open_frames() > MOST_FRAMES {
        return Err(Error::limit("calls are nested too deep to scan for this path"));
    }
    Ok(())
}

/// The chunks of all streams, stored or not.
pub(super) struct Source<'a> {
    pub(super) fold: &'a Fold,
    stored: Option<&'a dyn TraceChunks>,
    /// Symbols of a chunk.
    size: u64,
    wanted: Wanted,
    lenient: bool,
}

/// Which chunks are scanned.
enum Wanted {
    All,
    /// Those with a symbol that matters, given which nodes hold one.
    Holding(Vec<bool>),
    /// Those that contain the function.
    Stored(RoaringBitmap),
}

impl<'a> Source<'a> {
    /// All chunks.
    pub(super) fn all(
        fold: &'a Fold,
        stored: Option<&'a dyn TraceChunks>,
        config: &ScanConfig,
    ) -> Result<Self> {
        if let Some(chunks) = stored {
            chunks.check(fold)?;
        }
        let size = stored.map_or(config.range, TraceChunks::chunk_symbols);
        if size == 0 || size > MOST_RANGE {
            return Err(Error::invalid(format_args!("a range has from 1 to {MOST_RANGE} events")));
        }
        Ok(Self { fold, stored, size, wanted: Wanted::All, lenient: config.lenient })
    }

    /// Only chunks with something of the function of a path.
    pub(super) fn holding(
        fold: &'a Fold,
        stored: Option<&'a dyn TraceChunks>,
        query: &PathQuery,
        config: &ScanConfig,
    ) -> Result<Self> {
        let wanted = match stored {
            None => {
                let mut symbols: Vec<u32> = query.symbols().map(Symbol::raw).collect();
                symbols.sort_unstable();
                Wanted::Holding(holding(fold, |node| symbols.binary_search(&node.raw()).is_ok()))
            }
            Some(chunks) => match chunks.containing(query.function_number()) {
                Some(set) => Wanted::Stored(set.clone()),
                None => Wanted::All,
            },
        };
        Ok(Self { wanted, ..Self::all(fold, stored, config)? })
    }

    fn root(&self, stream: usize) -> RuleId {
        self.fold.streams()[stream].root()
    }

    fn length(&self, stream: usize) -> u64 {
        self.fold.length(self.root(stream))
    }

    /// How many chunks there are.
    pub(super) fn chunks(&self) -> u64 {
        let streams = 0..self.fold.streams().len();
        streams.map(|stream| self.length(stream).div_ceil(self.size)).fold(0, u64::saturating_add)
    }

    /// How many symbols a chunk of a stream has.
    fn symbols(&self, stream: usize, chunk: u64) -> u64 {
        self.size.min(self.length(stream).saturating_sub(chunk * self.size))
    }

    /// The next chunk of a stream that is scanned, from one on.
    fn next(&self, stream: usize, from: u64) -> Option<u64> {
        let begins = from.checked_mul(self.size).filter(|&begins| begins < self.length(stream))?;
        match (&self.wanted, self.stored) {
            (Wanted::Holding(holds), _) => {
                Some(next_held(self.fold, holds, self.root(stream), begins)? / self.size)
            }
            (Wanted::Stored(set), Some(stored)) => {
                let (first, end) = (stored.first_of(stream), stored.first_of(stream + 1));
                let from = u32::try_from(first as u64 + from).ok()?;
                let next = set.range(from..).next().filter(|&next| (next as usize) < end)?;
                Some(next as u64 - first as u64)
            }
            _ => Some(from),
        }
    }

    /// Skips chunks of a stream that hold nothing of the function.
    fn pass_over(&self, stream: usize, chunks: std::ops::Range<u64>, scan: &mut PathScan) -> Result<()> {
        // What holds nothing that matters leaves the frames as they are.
        if let (Wanted::Stored(_), Some(stored)) = (&self.wanted, self.stored) {
            for chunk in chunks.clone() {
                let levels = stored.levels_of(stored.first_of(stream) + chunk as usize);
                scan.pass_over(self.symbols(stream, chunk), &levels);
                check_frames(scan)?;
            }
        }
        scan.go_to(chunks.end * self.size);
        Ok(())
    }
}

/// The first position of a rule, from one on, whose event holds something.
fn next_held(fold: &Fold, holds: &[bool], rule: RuleId, from: u64) -> Option<u64> {
    let mut cursor = Cursor::at(fold, rule, from);
    while let Some(stretch) = cursor.peek() {
        if !holds[fold.node(stretch.target).index()] {
            cursor.skip(stretch.times);
        } else if let Some(position) = cursor.enter() {
            return Some(position);
        }
    }
    None
}

/// A chunk that was read.
pub(super) struct Loaded {
    /// Which of the stream's chunks it is.
    pub(super) chunk: u64,
    /// How many bytes came out of a compressed chunk.
    pub(super) bytes: u64,
    pub(super) damage: Option<String>,
}

/// Reads the chunks of streams one after the other.
pub(super) struct Reader<'s, 'a> {
    source: &'s Source<'a>,
    stream: usize,
    /// The first chunk that is not yet read or passed over.
    next: u64,
    /// Stands at a position of a stream.
    unfold: Option<(Unfold<'a>, usize, u64)>,
    /// Those of the last chunk.
    pub(super) symbols: Vec<Symbol>,
}

impl<'s, 'a> Reader<'s, 'a> {
    pub(super) fn new(source: &'s Source<'a>) -> Self {
        Self { source, stream: 0, next: 0, unfold: None, symbols: Vec::new() }
    }

    pub(super) fn go_to(&mut self, stream: usize, chunk: u64) {
        (self.stream, self.next) = (stream, chunk);
    }

    /// Reads the next chunk of the stream that is wanted, and takes a scan to where it begins.
    /// Returns `None` if there is none left.
    pub(super) fn advance(&mut self, scan: &mut PathScan) -> Result<Option<Loaded>> {
        let Some(chunk) = self.source.next(self.stream, self.next) else { return Ok(None) };
        self.source.pass_over(self.stream, self.next..chunk, scan)?;
        self.next = chunk + 1;
        self.load(chunk).map(Some)
    }

    fn load(&mut self, chunk: u64) -> Result<Loaded> {
        let source = self.source;
        let mut damage = None;
        if let Some(stored) = source.stored {
            match stored.read(stored.first_of(self.stream) + chunk as usize, &mut self.symbols) {
                Ok(bytes) => return Ok(Loaded { chunk, bytes, damage }),
                Err(error) if source.lenient && error.kind() == crate::ErrorKind::Damaged => {
                    damage = Some(error.to_string())
                }
                Err(error) => return Err(error),
            }
        }
        self.unfold(chunk * source.size, source.symbols(self.stream, chunk));
        Ok(Loaded { chunk, bytes: 0, damage })
    }

    fn unfold(&mut self, first: u64, count: u64) {
        let root = self.source.root(self.stream);
        let (mut unfold, stream, position) =
            self.unfold.take().unwrap_or_else(|| (self.source.fold.unfold(root), self.stream, 0));
        if (stream, position) != (self.stream, first) {
            unfold.seek(root, first);
        }
        self.symbols.resize(count as usize, Symbol::from_raw(0));
        let filled = unfold.fill(&mut self.symbols);
        self.symbols.truncate(filled);
        self.unfold = Some((unfold, self.stream, first + count));
    }
}
