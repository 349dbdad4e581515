//! Schemes 1 and 3 of the paper: scans a trace chunk by chunk, all chunks or only those that
//! contain the function.
//!
//! The scan counts; it records which chunks have occurrences, and the state of the search at
//! their beginning, so that places are found by scanning those chunks again. Memory: the
//! symbols of one chunk, and up to 32 MiB of such states.
//!
//! What is in a stored chunk is in the fold too. So a damaged chunk costs no answer: a
//! lenient search unfolds its range instead, and reports it.

use super::source::{Reader, ScanConfig, Source, TraceChunks, check_frames};
use super::{PathScan, ScanState};
use crate::fold::Fold;
use crate::questions::path::strategy::{Effort, PathOccurrences, Share};
use crate::questions::path::{PathPlace, PathQuery};
use crate::{Error, Result, StreamId};

/// Machine words of states that are kept for scanning again.
const MOST_WORDS: usize = 1 << 22;

fn too_long(config: &ScanConfig) -> Error {
    Error::limit(format_args!(
        "scanning more than {} events would take too long; schemes 2 and 4 do without",
        config.most_symbols
    ))
}

/// The occurrences of a path, found by scanning.
pub(in crate::questions::path) struct ScanFound<'a> {
    source: Source<'a>,
    /// A search from the beginning.
    scan: PathScan,
    counts: Vec<u64>,
    /// For each stream the chunks with occurrences.
    stops: Vec<Vec<Stop>>,
    pub(in crate::questions::path) effort: Effort,
    pub(in crate::questions::path) damage: Vec<String>,
}

/// A chunk with occurrences.
struct Stop {
    /// Which of the stream's chunks it is.
    chunk: u64,
    /// How many occurrences there are before it.
    before: u64,
    /// The search when it came there, if there was room for that.
    state: Option<ScanState>,
}

/// The totals of scanning all streams.
struct Totals {
    effort: Effort,
    damage: Vec<String>,
    /// Machine words of states.
    words: usize,
}

impl Totals {
    /// Scans the chunks of the reader's stream.
    fn scan_stream(
        &mut self,
        reader: &mut Reader<'_, '_>,
        scan: &mut PathScan,
        config: &ScanConfig,
    ) -> Result<Vec<Stop>> {
        let mut stops = Vec::new();
        while let Some(loaded) = reader.advance(scan)? {
            self.effort.symbols = self.effort.symbols.saturating_add(reader.symbols.len() as u64);
            if self.effort.symbols > config.most_symbols {
                return Err(too_long(config));
            }
            self.effort.decompressed_bytes += loaded.bytes;
            if let Some(chunks) = &mut self.effort.chunks {
                chunks.touched += 1;
            }
            self.damage.extend(loaded.damage);
            let before = scan.count();
            let state = (self.words < MOST_WORDS).then(|| scan.state());
            scan.feed(&reader.symbols);
            check_frames(scan)?;
            if scan.count() > before {
                self.words += state.as_ref().map_or(0, ScanState::words);
                stops.push(Stop { chunk: loaded.chunk, before, state });
            }
        }
        Ok(stops)
    }
}

impl<'a> ScanFound<'a> {
    /// Scheme 1: scans all chunks of a trace, or all of a fold where there are none.
    pub(in crate::questions::path) fn of_all(
        fold: &'a Fold,
        chunks: Option<&'a dyn TraceChunks>,
        query: &PathQuery,
        config: &ScanConfig,
    ) -> Result<Self> {
        let lengths = fold.streams().iter().map(|stream| fold.length(stream.root()));
        if lengths.fold(0, u64::saturating_add) > config.most_symbols {
            return Err(too_long(config));
        }
        Self::new(Source::all(fold, chunks, config)?, query, config)
    }

    /// Scheme 3: scans only chunks that hold something of the function. Where there are no
    /// chunks, ranges of the fold without a symbol that matters are skipped.
    pub(in crate::questions::path) fn of_holding(
        fold: &'a Fold,
        chunks: Option<&'a dyn TraceChunks>,
        query: &PathQuery,
        config: &ScanConfig,
    ) -> Result<Self> {
        Self::new(Source::holding(fold, chunks, query, config)?, query, config)
    }

    fn new(source: Source<'a>, query: &PathQuery, config: &ScanConfig) -> Result<Self> {
        let chunks = Some(Share { touched: 0, all: source.chunks() });
        let effort = Effort { chunks, ..Effort::default() };
        let mut totals = Totals { effort, damage: Vec::new(), words: 0 };
        let streams = source.fold.streams().len();
        let (mut counts, mut stops) = (Vec::with_capacity(streams), Vec::with_capacity(streams));
        let start = PathScan::new(query);
        let (mut scan, mut reader) = (start.clone(), Reader::new(&source));
        for stream in 0..streams {
            scan.restart();
            reader.go_to(stream, 0);
            stops.push(totals.scan_stream(&mut reader, &mut scan, config)?);
            counts.push(scan.count());
        }
        let Totals { effort, damage, .. } = totals;
        Ok(Self { source, scan: start, counts, stops, effort, damage })
    }
}

impl PathOccurrences for ScanFound<'_> {
    fn count_in(&self, stream: StreamId) -> u64 {
        self.counts[stream.index()]
    }

    fn streams(&self) -> usize {
        self.counts.len()
    }

    fn each_in(&self, stream: StreamId, skip: u64, visit: &mut dyn FnMut(PathPlace) -> bool) -> Result<()> {
        let (stops, count) = (&self.stops[stream.index()], self.counts[stream.index()]);
        // The chunk of the first that is visited, and the last one from which a search can
        // continue.
        let target = stops.partition_point(|stop| stop.before <= skip);
        if skip >= count || target == 0 {
            return Ok(());
        }
        let known = stops[..target].iter().rev().find_map(|stop| Some((stop, stop.state.as_ref()?)));
        let (mut scan, mut reader) = (self.scan.clone(), Reader::new(&self.source));
        reader.go_to(stream.index(), 0);
        let mut passed = 0;
        if let Some((stop, state)) = known {
            scan.go_back(state);
            reader.go_to(stream.index(), stop.chunk);
            passed = stop.before;
        }
        while passed < count
            && let Some(_) = reader.advance(&mut scan)?
        {
            let goes_on = scan.feed_while(&reader.symbols, |end, depth| {
                passed += 1;
                passed <= skip || visit(PathPlace { stream, end, depth })
            });
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}
