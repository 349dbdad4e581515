//! Searching for paths by the scheme that is asked for, and printing what `--explain` shows of
//! it. Which way to search is chosen in the library.

use super::stored::Stored;
use crate::args::{FindArgs, SchemeName};
use crate::show;
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::{
    Effort, PathAnswer, PathOccurrences, PathQuery, PathSearcher, ScanOptions, Scheme, Share, TraceChunks,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Searches for any number of paths in one fold, on any number of threads.
pub(super) struct Searcher<'a> {
    searcher: PathSearcher<'a>,
    wanted: Option<Scheme>,
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
    pub(super) fn new(fold: &'a Fold, arguments: &FindArgs, stored: &'a Stored) -> Result<Self> {
        let chunks = stored.chunks.as_ref().map(|chunks| chunks as &dyn TraceChunks);
        let options = ScanOptions { lenient: arguments.read.lenient, ..ScanOptions::default() };
        let searcher = PathSearcher::new(fold, stored.index.as_ref())?;
        let searcher = searcher.with_chunks(chunks).with_scan_options(options);
        let wanted = match arguments.scheme {
            SchemeName::Auto => None,
            SchemeName::Unfolded => Some(Scheme::Unfolded),
            SchemeName::Folded => Some(Scheme::Folded),
            SchemeName::Chunks => Some(Scheme::Chunks),
            SchemeName::Indexed => Some(Scheme::Indexed),
        };
        Ok(Self { searcher, wanted })
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
        let took = started.elapsed();
        let damage = damage.iter().map(|damage| format!("{damage}; its events were unfolded"));
        show::notes(&damage.collect::<Vec<_>>());
        Ok(Answer { found, scheme, reason, effort, took })
    }
}

impl Answer<'_> {
    /// What was done, in words.
    pub(super) fn explain(&self) -> String {
        let Effort { ranges, chunks, rules, symbols, decompressed_bytes } = self.effort;
        let mut text = format!("scheme {} ({}), {}", self.scheme.number(), self.scheme.name(), self.reason);
        for (share, noun) in [(ranges, "index ranges"), (chunks, "chunks"), (rules, "rules")] {
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
        let Effort { ranges, chunks, rules, symbols, decompressed_bytes } = self.effort;
        let mut value = json!({
            "scheme": self.scheme.name(),
            "reason": self.reason,
            "symbols": symbols,
            "decompressed_bytes": decompressed_bytes,
            "search_ns": self.took.as_nanos() as u64,
        });
        for (share, key) in [(ranges, "segments"), (chunks, "chunks"), (rules, "rules")] {
            if let Some(Share { touched, all }) = share {
                value[key] = json!({"touched": touched, "all": all});
            }
        }
        value
    }
}
