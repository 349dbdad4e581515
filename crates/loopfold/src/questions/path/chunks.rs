//! Schemes 1 and 3: scanning a trace chunk by chunk, all chunks or only those that hold
//! something of the function.
//!
//! The chunks are those that an archive stores, or ranges of the fold that are unfolded
//! one after the other. Scanning counts; it remembers which chunks have occurrences, and
//! where the search was when it came to them, so that places are found by scanning those
//! chunks again. Memory: the symbols of one chunk, and up to 32 MiB of such states.
//!
//! What is in a stored chunk is in the fold too. So a damaged chunk costs no answer: a
//! lenient search unfolds its range instead, and says so.

use super::ranges::Holding;
use super::scan::{PathScan, ScanState};
use super::schemes::{Effort, PathOccurrences, Share};
use super::{NestingLevels, PathPlace, PathQuery};
use crate::fold::{Fold, Unfold};
use crate::{Error, Result, Symbol};
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
    /// index among [all functions](super::Functions::all).
    fn containing(&self, function: usize) -> Option<&RoaringBitmap>;

    /// Gives the symbols of a chunk, and returns how many bytes came out of it.
    fn read(&self, chunk: usize, symbols: &mut Vec<Symbol>) -> Result<u64>;
}

/// How to scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Unfold the range of a chunk that is damaged, and go on, instead of an error.
    pub lenient: bool,
    /// How many symbols a range of the fold has that takes the place of a chunk.
    pub range: u64,
    /// More symbols than that are not scanned: a fold may claim any number.
    pub most_symbols: u64,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { lenient: false, range: 1 << 20, most_symbols: 1 << 36 }
    }
}

/// The largest range: as large as the largest chunk.
const MOST_RANGE: u64 = 1 << 26;

/// The most frames that may be open: a gigabyte.
const MOST_FRAMES: usize = 1 << 27;

/// Machine words of states that are kept for scanning again.
const MOST_WORDS: usize = 1 << 22;

/// Scheme 1: scans all chunks of a trace, or all of a fold where there are none.
pub fn scan_unfolded<'a>(
    fold: &'a Fold,
    chunks: Option<&'a dyn TraceChunks>,
    query: &PathQuery,
    options: &ScanOptions,
) -> Result<ScanFound<'a>> {
    let events = fold.streams().iter().map(|stream| fold.length(stream.root())).fold(0, u64::saturating_add);
    if events > options.most_symbols {
        return Err(too_long(options));
    }
    ScanFound::new(Source::new(fold, chunks, options)?, query, options)
}

fn too_long(options: &ScanOptions) -> Error {
    Error::limit(format_args!(
        "scanning more than {} events would take too long; schemes 2 and 4 do without",
        options.most_symbols
    ))
}

/// Scheme 3: scans only those chunks that hold something of the function. Where there are
/// no chunks, ranges of the fold without a symbol that matters are passed over.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::{Functions, PathOccurrences, PathQuery, ScanOptions, scan_chunks};
/// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// let f = [Field { key: "function", value: Value::Text(b"f") }];
/// collector.push_event(stream, &Event { role: Role::Enter, ..Event::named("f") })?;
/// collector.push_event(stream, &Event { role: Role::Block, fields: &f, ..Event::named("B1") })?;
/// (0..100).try_for_each(|_| collector.push_event(stream, &Event::named("something else")))?;
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let functions = Functions::of(fold.alphabet())?;
/// let function = functions.named(b"f").unwrap();
/// let query = PathQuery::new(&functions, function, vec![function.blocks().to_vec()])?;
/// let options = ScanOptions { range: 10, ..ScanOptions::default() };
/// let found = scan_chunks(&fold, None, &query, &options)?;
/// assert_eq!(found.count_all()?, 1);
/// let chunks = found.effort().chunks.unwrap();
/// assert_eq!((chunks.touched, chunks.all), (1, 11));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn scan_chunks<'a>(
    fold: &'a Fold,
    chunks: Option<&'a dyn TraceChunks>,
    query: &PathQuery,
    options: &ScanOptions,
) -> Result<ScanFound<'a>> {
    let mut source = Source::new(fold, chunks, options)?;
    source.wanted = match chunks {
        None => Wanted::Holding(Holding::new(fold, query)),
        Some(chunks) => {
            chunks.containing(query.function_number()).map_or(Wanted::All, |set| Wanted::Stored(set.clone()))
        }
    };
    ScanFound::new(source, query, options)
}

/// The occurrences of a path, found by scanning.
pub struct ScanFound<'a> {
    source: Source<'a>,
    /// A search from the beginning.
    scan: PathScan,
    counts: Vec<u64>,
    /// For each stream the chunks with occurrences.
    stops: Vec<Vec<Stop>>,
    effort: Effort,
    damage: Vec<String>,
}

/// A chunk with occurrences.
struct Stop {
    /// Which of the stream's chunks it is.
    chunk: u64,
    /// How many occurrences there are before it.
    before: u64,
    /// Where the search was when it came there, if there was room for that.
    state: Option<ScanState>,
}

impl<'a> ScanFound<'a> {
    fn new(source: Source<'a>, query: &PathQuery, options: &ScanOptions) -> Result<Self> {
        let all = source.all_chunks();
        let effort = Effort { chunks: Some(Share { touched: 0, all }), ..Effort::default() };
        let (scan, streams) = (PathScan::new(query), source.fold.streams().len());
        let (counts, stops) = (Vec::with_capacity(streams), Vec::with_capacity(streams));
        let mut found = Self { source, scan, counts, stops, effort, damage: Vec::new() };
        let mut scan = found.scan.clone();
        let mut reader = Reader::new(found.source.fold);
        let mut words = 0;
        for stream in 0..streams {
            scan.restart();
            let stops = found.scan_stream(stream, &mut scan, &mut reader, &mut words, options)?;
            found.counts.push(scan.count());
            found.stops.push(stops);
        }
        Ok(found)
    }

    fn scan_stream(
        &mut self,
        stream: usize,
        scan: &mut PathScan,
        reader: &mut Reader<'a>,
        words: &mut usize,
        options: &ScanOptions,
    ) -> Result<Vec<Stop>> {
        let mut stops = Vec::new();
        let mut behind = 0;
        while let Some(chunk) = self.source.next(stream, behind) {
            self.source.pass_over(stream, behind..chunk, scan)?;
            self.effort.symbols = self.effort.symbols.saturating_add(self.source.symbols(stream, chunk));
            if self.effort.symbols > options.most_symbols {
                return Err(too_long(options));
            }
            let loaded = self.source.load(stream, chunk, reader)?;
            self.effort.decompressed_bytes += loaded.bytes;
            if let Some(chunks) = &mut self.effort.chunks {
                chunks.touched += 1;
            }
            self.damage.extend(loaded.damage);
            let before = scan.count();
            let state = (*words < MOST_WORDS).then(|| scan.state());
            scan.feed(&reader.symbols);
            check_frames(scan)?;
            if scan.count() > before {
                *words += state.as_ref().map_or(0, ScanState::words);
                stops.push(Stop { chunk, before, state });
            }
            behind = chunk + 1;
        }
        Ok(stops)
    }

    /// What the search did. Telling places takes more of the same.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// The chunks that were damaged, and how; their events were unfolded instead.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// The first occurrence, in the order of the streams and of the last blocks: scans one
    /// chunk again.
    pub fn first(&self) -> Result<Option<PathPlace>> {
        let mut first = None;
        if let Some(stream) = self.counts.iter().position(|&count| count > 0) {
            self.each_in(stream, 0, &mut |place| {
                first = Some(place);
                false
            })?;
        }
        Ok(first)
    }
}

impl PathOccurrences for ScanFound<'_> {
    fn count_in(&self, stream: usize) -> u64 {
        self.counts[stream]
    }

    fn streams(&self) -> usize {
        self.counts.len()
    }

    fn each_in(&self, stream: usize, skip: u64, tell: &mut dyn FnMut(PathPlace) -> bool) -> Result<()> {
        let (stops, count) = (&self.stops[stream], self.counts[stream]);
        // The chunk of the first that is told, and the last one from which a search can go on.
        let target = stops.partition_point(|stop| stop.before <= skip);
        if skip >= count || target == 0 {
            return Ok(());
        }
        let known = stops[..target].iter().rev().find_map(|stop| Some((stop, stop.state.as_ref()?)));
        let mut scan = self.scan.clone();
        let (mut behind, mut passed) = (0, 0);
        if let Some((stop, state)) = known {
            scan.go_back(state);
            (behind, passed) = (stop.chunk, stop.before);
        }
        let mut reader = Reader::new(self.source.fold);
        while passed < count
            && let Some(chunk) = self.source.next(stream, behind)
        {
            self.source.pass_over(stream, behind..chunk, &mut scan)?;
            self.source.load(stream, chunk, &mut reader)?;
            let goes_on = scan.feed_while(&reader.symbols, |end, depth| {
                passed += 1;
                passed <= skip || tell(PathPlace { stream, end, depth })
            });
            if !goes_on {
                break;
            }
            behind = chunk + 1;
        }
        Ok(())
    }
}

fn check_frames(scan: &PathScan) -> Result<()> {
    if scan.open_frames() > MOST_FRAMES {
        return Err(Error::limit("calls are nested too deep to scan for this path"));
    }
    Ok(())
}

/// Where the symbols come from.
struct Source<'a> {
    fold: &'a Fold,
    stored: Option<&'a dyn TraceChunks>,
    /// Symbols of a chunk.
    size: u64,
    wanted: Wanted<'a>,
    lenient: bool,
}

/// Which chunks are scanned.
enum Wanted<'a> {
    All,
    /// Those in which something is that matters.
    Holding(Holding<'a>),
    /// Those that contain the function.
    Stored(RoaringBitmap),
}

/// What unfolds or decompresses, and the symbols of the last chunk.
struct Reader<'a> {
    unfold: Option<(Unfold<'a>, usize, u64)>,
    fold: &'a Fold,
    symbols: Vec<Symbol>,
}

impl<'a> Reader<'a> {
    fn new(fold: &'a Fold) -> Self {
        Self { unfold: None, fold, symbols: Vec::new() }
    }

    /// Unfolds a range of a stream.
    fn unfold(&mut self, stream: usize, first: u64, count: u64) {
        let root = self.fold.streams()[stream].root();
        let (mut unfold, of, position) =
            self.unfold.take().unwrap_or_else(|| (self.fold.unfold(root), stream, 0));
        if (of, position) != (stream, first) {
            unfold.seek(root, first);
        }
        self.symbols.resize(count as usize, Symbol::from_raw(0));
        let filled = unfold.fill(&mut self.symbols);
        self.symbols.truncate(filled);
        self.unfold = Some((unfold, stream, first + count));
    }
}

struct Loaded {
    /// How many bytes came out of a compressed chunk.
    bytes: u64,
    damage: Option<String>,
}

impl<'a> Source<'a> {
    fn new(fold: &'a Fold, stored: Option<&'a dyn TraceChunks>, options: &ScanOptions) -> Result<Self> {
        if let Some(chunks) = stored {
            chunks.check(fold)?;
        }
        let size = stored.map_or(options.range, TraceChunks::chunk_symbols);
        if size == 0 || size > MOST_RANGE {
            return Err(Error::invalid(format_args!("a range has from 1 to {MOST_RANGE} events")));
        }
        Ok(Self { fold, stored, size, wanted: Wanted::All, lenient: options.lenient })
    }

    fn length(&self, stream: usize) -> u64 {
        self.fold.length(self.fold.streams()[stream].root())
    }

    fn all_chunks(&self) -> u64 {
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
            (Wanted::Holding(holding), _) => {
                Some(holding.next(self.fold.streams()[stream].root(), begins)? / self.size)
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

    /// Passes over chunks of a stream that hold nothing of the function.
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

    /// Gives the symbols of a chunk to the reader.
    fn load(&self, stream: usize, chunk: u64, reader: &mut Reader<'a>) -> Result<Loaded> {
        let (first, count) = (chunk * self.size, self.symbols(stream, chunk));
        let mut damage = None;
        if let Some(stored) = self.stored {
            match stored.read(stored.first_of(stream) + chunk as usize, &mut reader.symbols) {
                Ok(bytes) => return Ok(Loaded { bytes, damage }),
                Err(error) if self.lenient && error.is_damaged() => damage = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        reader.unfold(stream, first, count);
        Ok(Loaded { bytes: 0, damage })
    }
}
