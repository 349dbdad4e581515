//! Searches for paths with the scheme that the user asks for; if none is named, the library
//! chooses one.

use super::stored::Stored;
use loopfold::questions::path::{
    Effort, PathAnswer, PathOccurrences, PathQuery, PathSearcher, ScanConfig, Scheme, TraceChunks,
};
use loopfold::{Fold, Result};
use std::time::{Duration, Instant};

/// Searches for any number of paths in one fold, on any number of threads.
pub(super) struct Searcher<'a> {
    searcher: PathSearcher<'a>,
    /// The requested scheme; `None` if it is to be chosen.
    wanted: Option<Scheme>,
}

/// The occurrences of a path, and how they were found.
pub(super) struct Answer<'a> {
    pub(super) found: Box<dyn PathOccurrences + 'a>,
    pub(super) scheme: Scheme,
    pub(super) reason: String,
    pub(super) effort: Effort,
    pub(super) took: Duration,
    /// The chunks that were damaged, so that their events had to be unfolded.
    pub(super) damage: Vec<String>,
}

impl<'a> Searcher<'a> {
    /// Also uses the index and the chunks of the archive, if there are any. A lenient search skips
    /// those that are damaged.
    pub(super) fn new(
        fold: &'a Fold,
        wanted: Option<Scheme>,
        lenient: bool,
        stored: &'a Stored,
    ) -> Result<Self> {
        let chunks = stored.chunks.as_ref().map(|chunks| chunks as &dyn TraceChunks);
        let options = ScanConfig::new().lenient(lenient);
        let searcher = PathSearcher::new(fold, stored.index.as_ref())?;
        Ok(Self { searcher: searcher.with_chunks(chunks).with_scan_config(options), wanted })
    }

    /// Searches for many paths, together where possible.
    pub(super) fn search_together(&mut self, paths: &[PathQuery]) -> Result<()> {
        if self.wanted.is_none() {
            self.searcher.search_together(paths)?;
        }
        Ok(())
    }

    pub(super) fn search(&self, query: &PathQuery) -> Result<Answer<'a>> {
        let started = Instant::now();
        let PathAnswer { found, scheme, reason, effort, damage } =
            self.searcher.search(query, self.wanted)?;
        Ok(Answer { found, scheme, reason, effort, took: started.elapsed(), damage })
    }
}
