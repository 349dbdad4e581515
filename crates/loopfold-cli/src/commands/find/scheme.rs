//! Searching for paths by the scheme that is asked for. Which way to search is chosen in the
//! library; what is printed of it, by those who print.

use super::stored::Stored;
use loopfold::questions::path::{
    Effort, PathAnswer, PathOccurrences, PathQuery, PathSearcher, ScanConfig, Scheme, TraceChunks,
};
use loopfold::{Fold, Result};
use std::time::{Duration, Instant};

/// Searches for any number of paths in one fold, on any number of threads.
pub(super) struct Searcher<'a> {
    searcher: PathSearcher<'a>,
    /// The scheme that is asked for, if it is not to be chosen.
    wanted: Option<Scheme>,
}

/// The occurrences of a path, and how they were found.
pub(super) struct Answer<'a> {
    pub(super) found: Box<dyn PathOccurrences + 'a>,
    pub(super) scheme: Scheme,
    pub(super) reason: String,
    pub(super) effort: Effort,
    pub(super) took: Duration,
    /// What of the chunks was damaged and had to be unfolded.
    pub(super) damage: Vec<String>,
}

impl<'a> Searcher<'a> {
    /// With what the archive has beside the rules, if it is one. A lenient search does without
    /// what of that is damaged.
    pub(super) fn new(
        fold: &'a Fold,
        wanted: Option<Scheme>,
        lenient: bool,
        stored: &'a Stored,
    ) -> Result<Self> {
        let chunks = stored.chunks.as_ref().map(|chunks| chunks as &dyn TraceChunks);
        let options = ScanConfig::new().lenient(lenient);
        let searcher = PathSearcher::new(fold, stored.index.as_ref())?;
        Ok(Self { searcher: searcher.with_chunks(chunks).with_scan_options(options), wanted })
    }

    /// Searches for many paths together, as far as they can be.
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
