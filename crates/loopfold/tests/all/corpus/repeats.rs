//! Patterns of single streams, which do not depend on a fold.

use super::Unfolded;
use crate::support::patterns::{Summary, expected_repeats, repeats, settled, summary_of};
use crate::support::{outermost, patterns as support};
use loopfold::questions::patterns::{self, LoopCollapsed, PatternMethod, Patterns};

pub(super) fn ngrams(Unfolded { streams, .. }: &Unfolded<'_>) {
    for stream in *streams {
        assert_eq!(support::ngrams(stream), loopfold_testing::patterns::ngrams(stream));
    }
}

pub(super) fn exact_repeats(Unfolded { streams, .. }: &Unfolded<'_>) {
    for stream in *streams {
        assert_eq!(repeats(stream), expected_repeats(stream));
    }
}

/// Which occurrence belongs to which pattern.
pub(super) fn process_patterns(Unfolded { trace, .. }: &Unfolded<'_>) {
    for stream in &trace.streams {
        let collapsed = LoopCollapsed::of(&stream.symbols, &outermost).unwrap();
        for method in [PatternMethod::Ngrams, PatternMethod::Exact] {
            let settings = patterns::Config::new().method(method).min_count(0);
            let found = Patterns::of(&[&collapsed], &settings).unwrap();
            let mut all: Vec<Summary> = found.patterns.iter().map(summary_of).collect();
            all.sort();
            assert_eq!(all, settled(&collapsed, method), "{method:?}");
        }
    }
}
