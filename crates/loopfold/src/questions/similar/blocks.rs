//! Searches streams of any length, block by block.
//!
//! Whether a window is taken depends on the windows that overlap it and are better, on those
//! that overlap them and are better still, and so on: there are (k + 1)(k + 2) / 2 pairs of a
//! distance and a difference of length, so windows further away than that many do not matter.
//! Nor does anything behind a place that no window crosses. So the windows of a block that
//! start that far before its end are final; the search continues behind them, as if the stream
//! began there. Time: that of the search in a slice, with the little that two blocks have in
//! common; memory 10 bytes an event of a block, which has 64 thousand events, or more where
//! windows overlap for longer than that.

use super::letters::Letter;
use super::{Filtered, LikePattern, Search};
use crate::fold::{Fold, Unfold};
use crate::{RuleId, Symbol};

/// A window of a stream that is similar to a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SimilarPlace {
    /// The position of its first event in the stream.
    pub start: u64,
    /// The position of its last event in the stream.
    pub end: u64,
    /// How many events of it were compared.
    pub length: usize,
    /// How many edits make it the pattern.
    pub distance: usize,
}

/// Reports the windows of a stream that are similar to a pattern, in their order, until
/// `report` returns false. `root` is the rule that unfolds to the stream; `compared` has for
/// each symbol of the fold its symbol in the pattern, or `None` for events that are skipped.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::similar::{LikePattern, Likeness, find_similar};
/// use loopfold::trace::{Collector, Event, Sink};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["a", "b", "wait", "d", "a", "b", "c", "d", "a", "b", "wait", "c", "d"] {
///     collector.push_event(stream, &Event::named(name))?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let symbol = |name: &str| fold.alphabet().symbols().find(|&one| fold.alphabet().label(one) == name);
/// let compared: Vec<_> =
///     fold.alphabet().symbols().map(|one| Some(one).filter(|_| Some(one) != symbol("wait"))).collect();
/// let pattern: Vec<_> = ["a", "b", "c", "d"].iter().filter_map(|name| symbol(name)).collect();
/// let pattern = LikePattern::new(&pattern, Likeness::default())?;
/// let mut found = Vec::new();
/// find_similar(&fold, fold.streams()[0].root(), &compared, &pattern, &mut |place| {
///     found.push((place.start, place.end, place.length, place.distance));
///     true
/// });
/// assert_eq!(found, [(0, 3, 3, 1), (4, 7, 4, 0), (8, 12, 4, 0)]);
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn find_similar(
    fold: &Fold,
    root: RuleId,
    compared: &[Option<Symbol>],
    pattern: &LikePattern,
    report: &mut dyn FnMut(SimilarPlace) -> bool,
) -> Filtered {
    let letter =
        |symbol: &Option<Symbol>| symbol.map_or(PASSED_OVER, |symbol| pattern.letters.of_symbol(symbol));
    let events = Events {
        unfold: fold.unfold(root),
        letters: compared.iter().map(letter).collect(),
        page: vec![Symbol::from_raw(0); PAGE],
        position: 0,
    };
    Blocks { pattern, events, block: Block::default(), size: BLOCK }.find(report)
}

/// An event that is not compared. No pattern has so many letters.
const PASSED_OVER: Letter = Letter::MAX;
/// Symbols that are unfolded at a time.
const PAGE: usize = 1 << 13;
/// Events of a block.
const BLOCK: usize = 1 << 16;

/// The events of a stream, as letters.
struct Events<'a> {
    unfold: Unfold<'a>,
    letters: Vec<Letter>,
    page: Vec<Symbol>,
    position: u64,
}

impl Events<'_> {
    /// Adds events until there are at least `size`; false if these are the last.
    fn fill(&mut self, block: &mut Block, size: usize) -> bool {
        while block.letters.len() < size {
            let filled = self.unfold.fill(&mut self.page);
            if filled == 0 {
                return false;
            }
            for symbol in &self.page[..filled] {
                let letter = self.letters.get(symbol.index()).copied().unwrap_or(PASSED_OVER);
                if letter != PASSED_OVER {
                    block.letters.push(letter);
                    block.positions.push(self.position);
                }
                self.position += 1;
            }
        }
        true
    }
}

/// Events that are compared, and where they are in the stream.
#[derive(Default)]
struct Block {
    letters: Vec<Letter>,
    positions: Vec<u64>,
}

impl Block {
    fn drop_first(&mut self, events: usize) {
        self.letters.drain(..events);
        self.positions.drain(..events);
    }
}

struct Blocks<'a> {
    pattern: &'a LikePattern,
    events: Events<'a>,
    block: Block,
    size: usize,
}

impl Blocks<'_> {
    fn find(mut self, report: &mut dyn FnMut(SimilarPlace) -> bool) -> Filtered {
        let mut search = Search::new(self.pattern);
        let mut filtered = Filtered::default();
        loop {
            let is_last = !self.events.fill(&mut self.block, self.size);
            search.find(&self.block.letters);
            let all = self.block.letters.len();
            let settled =
                if is_last { all } else { search.settled.max(all.saturating_sub(self.depends_on())) };
            let mut done = settled;
            for window in search.taken.iter().take_while(|window| window.start < settled) {
                done = done.max(window.start + window.length);
                let end = window.start + window.length - 1;
                let (start, end) = (self.block.positions[window.start], self.block.positions[end]);
                if !report(SimilarPlace { start, end, length: window.length, distance: window.distance }) {
                    filtered.verified = search.verified;
                    return filtered;
                }
            }
            filtered.places += done as u64;
            if is_last {
                filtered.verified = search.verified;
                return filtered;
            }
            // A block with few final windows is examined again, so it must become longer.
            if done <= all / 2 {
                self.size = self.size.saturating_mul(2);
            }
            self.block.drop_first(done);
        }
    }

    /// How many events further on can matter to whether a window is taken.
    fn depends_on(&self) -> usize {
        let k = self.pattern.likeness.edits;
        let steps = (k + 1) * (k + 2) / 2 + 1;
        steps.saturating_mul(self.pattern.len() + k)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::{Likeness, SimilarWindow};
    use super::*;
    use crate::folders::{Outermost, fold_trace};
    use crate::trace::{Collector, Event, Sink};
    use loopfold_testing::Rng;

    /// Any symbol above the fifth is skipped.
    fn in_blocks(fold: &Fold, pattern: &LikePattern, size: usize) -> Vec<SimilarPlace> {
        let letters = fold.alphabet().symbols().map(|symbol| match fold.alphabet().label(symbol).as_str() {
            "-" => PASSED_OVER,
            name => pattern.letters.of_symbol(Symbol::new(name.as_bytes()[0].into()).unwrap()),
        });
        let (unfold, letters) = (fold.unfold(fold.streams()[0].root()), letters.collect());
        let page = vec![Symbol::from_raw(0); 1 + size / 7];
        let events = Events { unfold, letters, page, position: 0 };
        let mut found = Vec::new();
        let blocks = Blocks { pattern, events, block: Block::default(), size };
        blocks.find(&mut |place| {
            found.push(place);
            true
        });
        found
    }

    #[test]
    fn blocks_of_any_size_give_what_the_whole_stream_gives() {
        let mut rng = Rng::new(12);
        let mut found = 0;
        for _ in 0..4_000 {
            let letters = rng.between(1, 4);
            let pattern: Vec<u8> = (0..rng.between(1, 8)).map(|_| b'a' + rng.below(letters) as u8).collect();
            let mut stream = Vec::new();
            let unit: Vec<u8> = (0..rng.between(1, 9)).map(|_| b'a' + rng.below(letters + 1) as u8).collect();
            for _ in 0..rng.below(30) {
                stream.extend(if rng.one_in(3) { &pattern } else { &unit });
                if rng.one_in(4) {
                    stream.push(b'-');
                }
            }
            let mut collector = Collector::default();
            let main = collector.stream("main").unwrap();
            stream.iter().for_each(|letter| collector.push_event(main, &Event::named(&[*letter])).unwrap());
            let fold = fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap();
            let symbols = |text: &[u8]| -> Vec<Symbol> {
                text.iter().map(|&letter| Symbol::new(letter.into()).unwrap()).collect()
            };
            let likeness = Likeness { edits: rng.below(pattern.len()).min(3), ngram: rng.between(1, 3) };
            let like = LikePattern::new(&symbols(&pattern), likeness).unwrap();
            let compared: Vec<usize> = (0..stream.len()).filter(|&at| stream[at] != b'-').collect();
            let text: Vec<u8> = compared.iter().map(|&at| stream[at]).collect();
            let place = |window: &SimilarWindow| SimilarPlace {
                start: compared[window.start] as u64,
                end: compared[window.start + window.length - 1] as u64,
                length: window.length,
                distance: window.distance,
            };
            let expected: Vec<SimilarPlace> = like.find_in(&symbols(&text)).0.iter().map(place).collect();
            for size in [1, rng.between(1, 40), 1000] {
                let text = String::from_utf8_lossy(&stream);
                assert_eq!(in_blocks(&fold, &like, size), expected, "{text} {pattern:?} {likeness:?} {size}");
            }
            found += expected.len();
        }
        assert!(found > 10_000, "{found}");
    }
}
