//! The way in which a path is looked for: the only place of the command that knows which
//! there are, and which of them to take.

use super::stored::Stored;
use crate::args::{FindArgs, SchemeName};
use crate::show;
use anyhow::Result;
use loopfold::questions::{
    Effort, PathOccurrences, PathPlace, PathQuery, PathSearcher, PathSummary, ScanFound, ScanOptions, Scheme,
    Share, TraceChunks, scan_chunks, scan_unfolded,
};
use loopfold::{Fold, Symbol};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Looks for any number of paths in one fold, on any number of threads.
pub(super) struct Searcher<'a> {
    fold: &'a Fold,
    wanted: SchemeName,
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
    reason: String,
    effort: Effort,
    took: Duration,
}

impl<'a> Searcher<'a> {
    /// With what the archive has beside the rules, if it is one.
    pub(super) fn new(fold: &'a Fold, arguments: &FindArgs, mut stored: Stored) -> Result<Self> {
        let of_rules = PathSearcher::new(fold, stored.index.take())?;
        let lenient = arguments.read.lenient;
        Ok(Self { fold, wanted: arguments.scheme, lenient, of_rules, stored, together: HashMap::new() })
    }

    /// Looks for many paths together, as far as they can be.
    pub(super) fn look_for(&mut self, paths: &[PathQuery]) -> Result<()> {
        if self.wanted != SchemeName::Auto {
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
        let scheme = match self.wanted {
            SchemeName::Auto => None,
            SchemeName::Unfolded => Some(Scheme::Unfolded),
            SchemeName::Folded => Some(Scheme::Folded),
            SchemeName::Chunks => Some(Scheme::Chunks),
            SchemeName::Indexed => Some(Scheme::Indexed),
        };
        if let Some(scheme @ (Scheme::Unfolded | Scheme::Chunks)) = scheme {
            let found = self.scan(scheme, query)?;
            let reason = match self.stored.chunks {
                Some(_) => "it was asked for; the archive has the events in chunks",
                None => "it was asked for; there are no chunks, so ranges of the fold are unfolded",
            };
            let (reason, effort) = (reason.to_string(), found.effort());
            return Ok(Answer { found: Box::new(found), scheme, reason, effort, took: started.elapsed() });
        }
        if let Some(summary) = key_of(query).and_then(|key| self.together.get(&key)) {
            return Ok(Answer {
                found: Box::new(Summarized { searcher: &self.of_rules, query: query.clone(), summary }),
                scheme: Scheme::Folded,
                reason: "together with other paths of the function".to_string(),
                effort: Effort::default(),
                took: started.elapsed(),
            });
        }
        let answer = self.of_rules.search(query, scheme)?;
        Ok(Answer {
            found: Box::new(answer.found),
            scheme: answer.scheme,
            reason: answer.reason,
            effort: answer.effort,
            took: started.elapsed(),
        })
    }

    fn scan(&self, scheme: Scheme, query: &PathQuery) -> Result<ScanFound<'_>> {
        let options = ScanOptions { lenient: self.lenient, ..ScanOptions::default() };
        let chunks = self.stored.chunks.as_ref().map(|chunks| chunks as &dyn TraceChunks);
        let found = match scheme {
            Scheme::Chunks => scan_chunks(self.fold, chunks, query, &options)?,
            _ => scan_unfolded(self.fold, chunks, query, &options)?,
        };
        let damage = found.damage().iter();
        show::notes(&damage.map(|damage| format!("{damage}; its events were unfolded")).collect::<Vec<_>>());
        Ok(found)
    }
}

/// A path of many: what is known of it, and the search for what is not.
struct Summarized<'s, 'f> {
    searcher: &'s PathSearcher<'f>,
    query: PathQuery,
    summary: &'s PathSummary,
}

impl PathOccurrences for Summarized<'_, '_> {
    fn count_in(&self, stream: usize) -> u64 {
        self.summary.counts[stream]
    }

    fn streams(&self) -> usize {
        self.summary.counts.len()
    }

    fn each_in(
        &self,
        stream: usize,
        skip: u64,
        tell: &mut dyn FnMut(PathPlace) -> bool,
    ) -> loopfold::Result<()> {
        let Some(first) = self.summary.firsts[stream] else { return Ok(()) };
        if skip == 0 && !tell(first) {
            return Ok(());
        }
        self.searcher.search(&self.query, None)?.found.each_in(stream, skip.max(1), tell)
    }
}

impl Answer<'_> {
    /// What was done, in words.
    pub(super) fn explain(&self) -> String {
        let Effort { segments, chunks, rules, symbols, decompressed_bytes } = self.effort;
        let mut text = format!("scheme {} ({}), {}", self.scheme.number(), self.scheme.name(), self.reason);
        for (share, noun) in [(segments, "segments"), (chunks, "chunks"), (rules, "rules")] {
            if let Some(Share { touched, all }) = share {
                text.push_str(&format!("; {} of {} {noun}", show::count(touched), show::count(all)));
            }
        }
        if symbols > 0 {
            text.push_str(&format!("; {} unfolded", show::plural(symbols, "event")));
        }
        if decompressed_bytes > 0 {
            text.push_str(&format!("; {} decompressed", show::bytes(decompressed_bytes)));
        }
        text.push_str(&format!("; searched in {}", show::duration(self.took.as_nanos() as i128)));
        text
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let Effort { segments, chunks, rules, symbols, decompressed_bytes } = self.effort;
        let mut value = json!({
            "scheme": self.scheme.name(),
            "reason": self.reason,
            "symbols": symbols,
            "decompressed_bytes": decompressed_bytes,
            "search_ns": self.took.as_nanos() as u64,
        });
        for (share, key) in [(segments, "segments"), (chunks, "chunks"), (rules, "rules")] {
            if let Some(Share { touched, all }) = share {
                value[key] = json!({"touched": touched, "all": all});
            }
        }
        value
    }
}
