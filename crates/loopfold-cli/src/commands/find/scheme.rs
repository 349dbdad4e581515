//! The way in which a path is looked for: the only place of the command that knows which
//! there are, and which of them to take. It knows no arguments and prints nothing.

use super::stored::Stored;
use loopfold::questions::{
    Effort, PathOccurrences, PathPlace, PathQuery, PathSearcher, PathSummary, ScanFound, ScanOptions, Scheme,
    TraceChunks, scan_chunks, scan_unfolded,
};
use loopfold::{Fold, Result, Symbol};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Looks for any number of paths in one fold, on any number of threads.
pub(super) struct Searcher<'a> {
    fold: &'a Fold,
    /// The way that is asked for, if it is not to be chosen.
    wanted: Option<Scheme>,
    lenient: bool,
    of_rules: PathSearcher<'a>,
    stored: Stored,
    /// Paths that were looked for together.
    together: HashMap<PathKey, PathSummary>,
}

/// The function and the blocks of a path without gaps.
type PathKey = (Vec<u8>, Vec<Vec<Symbol>>);

fn key_of(query: &PathQuery) -> Option<PathKey> {
    (!query.has_gaps()).then(|| (query.function().to_vec(), query.blocks().to_vec()))
}

/// The occurrences of a path, and how they were found.
pub(super) struct Answer<'a> {
    pub(super) found: Box<dyn PathOccurrences + 'a>,
    pub(super) scheme: Scheme,
    /// Why it was looked for in that way, what was done, and how long it took.
    pub(super) reason: String,
    pub(super) effort: Effort,
    pub(super) took: Duration,
    /// What was damaged and did without.
    pub(super) damage: Vec<String>,
}

impl<'a> Searcher<'a> {
    /// With what the archive has beside the rules, if it is one. A lenient search does without
    /// what of that is damaged.
    pub(super) fn new(
        fold: &'a Fold,
        wanted: Option<Scheme>,
        lenient: bool,
        mut stored: Stored,
    ) -> Result<Self> {
        let of_rules = PathSearcher::new(fold, stored.index.take())?;
        Ok(Self { fold, wanted, lenient, of_rules, stored, together: HashMap::new() })
    }

    /// Looks for many paths together, as far as they can be.
    pub(super) fn look_for(&mut self, paths: &[PathQuery]) -> Result<()> {
        if self.wanted.is_some() {
            return Ok(());
        }
        for (path, summary) in paths.iter().zip(self.of_rules.search_many(paths)?) {
            if let (Some(key), Some(summary)) = (key_of(path), summary) {
                self.together.insert(key, summary);
            }
        }
        Ok(())
    }

    pub(super) fn search(&self, query: &PathQuery) -> Result<Answer<'_>> {
        let started = Instant::now();
        if let Some(scheme @ (Scheme::Unfolded | Scheme::Chunks)) = self.wanted {
            let found = self.scan(scheme, query)?;
            let reason = match self.stored.chunks {
                Some(_) => "it was asked for; the archive has the events in chunks",
                None => "it was asked for; there are no chunks, so ranges of the fold are unfolded",
            };
            let (reason, effort, damage) = (reason.to_string(), found.effort(), found.damage().to_vec());
            let took = started.elapsed();
            return Ok(Answer { found: Box::new(found), scheme, reason, effort, took, damage });
        }
        if let Some(summary) = key_of(query).and_then(|key| self.together.get(&key)) {
            return Ok(Answer {
                found: Box::new(Summarized { searcher: &self.of_rules, query: query.clone(), summary }),
                scheme: Scheme::Folded,
                reason: "together with other paths of the function".to_string(),
                effort: Effort::default(),
                took: started.elapsed(),
                damage: Vec::new(),
            });
        }
        let answer = self.of_rules.search(query, self.wanted)?;
        Ok(Answer {
            found: Box::new(answer.found),
            scheme: answer.scheme,
            reason: answer.reason,
            effort: answer.effort,
            took: started.elapsed(),
            damage: Vec::new(),
        })
    }

    fn scan(&self, scheme: Scheme, query: &PathQuery) -> Result<ScanFound<'_>> {
        let options = ScanOptions { lenient: self.lenient, ..ScanOptions::default() };
        let chunks = self.stored.chunks.as_ref().map(|chunks| chunks as &dyn TraceChunks);
        match scheme {
            Scheme::Chunks => scan_chunks(self.fold, chunks, query, &options),
            _ => scan_unfolded(self.fold, chunks, query, &options),
        }
    }
}

/// A path of many: what is known of it, and the search for what is not.
struct Summarized<'a, 'f> {
    searcher: &'a PathSearcher<'f>,
    query: PathQuery,
    summary: &'a PathSummary,
}

impl PathOccurrences for Summarized<'_, '_> {
    fn count_in(&self, stream: usize) -> u64 {
        self.summary.counts[stream]
    }

    fn streams(&self) -> usize {
        self.summary.counts.len()
    }

    fn each_in(&self, stream: usize, skip: u64, tell: &mut dyn FnMut(PathPlace) -> bool) -> Result<()> {
        let Some(first) = self.summary.firsts[stream] else { return Ok(()) };
        if skip == 0 && !tell(first) {
            return Ok(());
        }
        self.searcher.search(&self.query, None)?.found.each_in(stream, skip.max(1), tell)
    }
}
