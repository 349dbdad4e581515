//! The way in which a path is looked for: the only place of the command that knows which
//! there are, and which of them to take.

use crate::args::SchemeName;
use crate::show;
use anyhow::{Result, bail};
use loopfold::questions::{
    Effort, PathOccurrences, PathPlace, PathQuery, PathScan, Scheme, Share, find_path,
};
use loopfold::{Fold, Symbol};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Looks for any number of paths in one fold, on any number of threads.
pub(super) struct Searcher<'a> {
    fold: &'a Fold,
    wanted: SchemeName,
}

/// The occurrences of a path, and how they were found.
pub(super) struct Answer<'a> {
    pub(super) found: Box<dyn PathOccurrences + 'a>,
    pub(super) scheme: Scheme,
    reason: &'static str,
    effort: Effort,
    took: Duration,
}

impl<'a> Searcher<'a> {
    pub(super) fn new(fold: &'a Fold, wanted: SchemeName) -> Self {
        Self { fold, wanted }
    }

    pub(super) fn search(&self, query: &PathQuery) -> Result<Answer<'a>> {
        let asked = "as asked for";
        let (scheme, reason) = match self.wanted {
            SchemeName::Auto => (Scheme::Folded, "the archive has no index"),
            SchemeName::Folded => (Scheme::Folded, asked),
            SchemeName::Unfolded => (Scheme::Unfolded, asked),
            SchemeName::Chunks | SchemeName::Indexed => {
                bail!("this scheme is not available yet; 1 (unfolded) and 2 (folded) are")
            }
        };
        let started = Instant::now();
        let (found, effort): (Box<dyn PathOccurrences + 'a>, Effort) = match scheme {
            Scheme::Unfolded => {
                let (scanned, symbols) = Scanned::new(self.fold, query)?;
                (Box::new(scanned), Effort { symbols, ..Effort::default() })
            }
            _ => {
                let all = self.fold.rules().len() as u64;
                let rules = Some(Share { touched: all, all });
                (Box::new(find_path(self.fold, query)?), Effort { rules, ..Effort::default() })
            }
        };
        Ok(Answer { found, scheme, reason, effort, took: started.elapsed() })
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

/// The occurrences of a path as a scan of the unfolded streams finds them. Places are found
/// by another scan.
struct Scanned<'a> {
    fold: &'a Fold,
    query: PathQuery,
    counts: Vec<u64>,
}

/// More events than anyone would wait for: some minutes.
const MOST_EVENTS: u64 = 1 << 36;

/// Events unfolded at a time.
const PART: usize = 1 << 12;

impl<'a> Scanned<'a> {
    /// Also tells how many events were unfolded.
    fn new(fold: &'a Fold, query: &PathQuery) -> Result<(Self, u64)> {
        let lengths = fold.streams().iter().map(|stream| fold.length(stream.root()));
        let symbols = lengths.fold(0, u64::saturating_add);
        if symbols > MOST_EVENTS {
            bail!(
                "--scheme unfolded would take too long on {}; use another one",
                show::plural(symbols, "event")
            );
        }
        let mut scanned = Self { fold, query: query.clone(), counts: Vec::new() };
        for stream in 0..fold.streams().len() {
            let mut scan = PathScan::new(query);
            scanned.parts(stream, |part| {
                scan.feed(part);
                true
            });
            scanned.counts.push(scan.count());
        }
        Ok((scanned, symbols))
    }

    /// The events of a stream in parts, until the answer is false.
    fn parts(&self, stream: usize, mut tell: impl FnMut(&[Symbol]) -> bool) {
        let mut symbols = self.fold.unfold(self.fold.streams()[stream].root());
        let mut part = Vec::with_capacity(PART);
        loop {
            part.clear();
            part.extend(symbols.by_ref().take(PART));
            if part.is_empty() || !tell(&part) {
                return;
            }
        }
    }
}

impl PathOccurrences for Scanned<'_> {
    fn count_in(&self, stream: usize) -> u64 {
        self.counts[stream]
    }

    fn streams(&self) -> usize {
        self.counts.len()
    }

    fn each_in(
        &self,
        stream: usize,
        mut skip: u64,
        tell: &mut dyn FnMut(PathPlace) -> bool,
    ) -> loopfold::Result<()> {
        if skip >= self.counts[stream] {
            return Ok(());
        }
        let mut scan = PathScan::new(&self.query);
        let mut go_on = true;
        self.parts(stream, |part| {
            scan.feed_each(part, |end, depth| match skip.checked_sub(1) {
                Some(rest) => skip = rest,
                None => go_on = go_on && tell(PathPlace { stream, end, depth }),
            });
            go_on
        });
        Ok(())
    }
}
