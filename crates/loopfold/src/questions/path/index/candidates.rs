//! Finds the items that can contain a symbol of a function, from its index ranges.
//!
//! A cursor moves along the events of the ranges. A rule that lies wholly in a range is taken
//! with all rules below it; a rule that an end of a range cuts is entered, and only its items
//! inside the range are taken. O(items found).
//!
//! Every function-bearing item of a rule lies in some range of the function, whichever
//! occurrence of the rule is examined; so the items of one occurrence stand for all.

use super::{IndexRange, Roots};
use crate::fold::cursor::Cursor;
use crate::fold::reach::below_marked;
use crate::fold::{Fold, Target};
use crate::questions::path::slice::Scratch;
use crate::{Result, RuleId};
use std::ops::Range;

/// Ranges in order, neighbours as one.
pub(super) fn joined(ranges: impl Iterator<Item = IndexRange>) -> Vec<IndexRange> {
    let mut joined: Vec<IndexRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// Items that can hold something.
#[derive(Default)]
pub(super) struct Candidates {
    /// Their places among all items, in any order and perhaps more than once, and their rule.
    places: Vec<(Range<usize>, RuleId)>,
    /// Rules that lie wholly in a range.
    whole: Vec<RuleId>,
}

impl Candidates {
    /// The items of some ranges, which are in order.
    pub(super) fn new(
        fold: &Fold,
        roots: &Roots,
        ranges: &[IndexRange],
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let mut candidates = Self::default();
        for (root, start) in roots.iter(fold) {
            let end = start + fold.length(root);
            let first = ranges.partition_point(|range| range.end <= start);
            for range in ranges[first..].iter().take_while(|range| range.start < end) {
                let (from, to) = (range.start.max(start), range.end.min(end));
                candidates.add_range(fold, root, from - start..to - start);
            }
        }
        let whole = std::mem::take(&mut candidates.whole);
        let below = below_marked(fold, whole, |rule| Ok(scratch.mark(fold.rule_node(rule))));
        scratch.clear();
        candidates.places.extend(below?.into_iter().map(|rule| (fold.item_range(rule), rule)));
        candidates.places.sort_unstable_by_key(|(places, _)| places.start);
        Ok(candidates)
    }

    /// Adds what lies in a range of a root.
    fn add_range(&mut self, fold: &Fold, root: RuleId, range: IndexRange) {
        if range == (0..fold.length(root)) {
            self.whole.push(root);
            return;
        }
        let place = |(rule, index): (RuleId, usize)| {
            let place = fold.item_range(rule).start + index;
            (place..place + 1, rule)
        };
        let mut cursor = Cursor::at(fold, root, range.start);
        self.places.extend(cursor.path().skip(1).map(place));
        while let Some(stretch) = cursor.peek()
            && stretch.position < range.end
        {
            self.places.extend(cursor.path().next().map(place));
            let room = range.end - stretch.position;
            match room.checked_div(stretch.length).unwrap_or(stretch.times).min(stretch.times) {
                0 => {
                    cursor.enter();
                }
                whole => {
                    if let Target::Rule(rule) = stretch.target {
                        self.whole.push(rule);
                    }
                    cursor.skip(whole);
                }
            }
        }
    }

    /// How many rules have some of the items.
    pub(super) fn rules(&self) -> usize {
        self.places.chunk_by(|(_, one), (_, other)| one == other).count()
    }

    /// The items, in order, each once and with its rule.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, RuleId)> + '_ {
        let mut next = 0;
        self.places.iter().flat_map(move |(places, rule)| {
            let new = places.start.max(next)..places.end;
            next = next.max(places.end);
            new.map(|place| (place as u32, *rule))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::fold::cursor::Cursor;
    use crate::fold::{Fold, FoldBuilder, FoldedStream};
    use crate::folders::{Folder, Outermost, Repair, SequiturRuns};
    use crate::questions::path::slice::{Dedup, FunctionSlice, Scratch};
    use crate::questions::path::{Functions, PathIndex, PathQuery};
    use crate::trace::{Alphabet, Event, Field, Role, Value};
    use crate::{RuleId, Symbol};
    use loopfold_testing::{Rng, streams};

    const FUNCTIONS: [&str; 4] = ["a", "b", "c", "d"];

    /// Streams in which functions have one block each, in parts of their own.
    fn random_fold(rng: &mut Rng) -> Fold {
        let mut alphabet = Alphabet::default();
        for name in FUNCTIONS {
            let fields = &[Field { key: "function", value: Value::Text(name.as_bytes()) }];
            alphabet.intern(&Event { role: Role::Enter, ..Event::named(name) }, None).unwrap();
            alphabet.intern(&Event { role: Role::Block, fields, ..Event::named("B0") }, None).unwrap();
        }
        let mut builder = FoldBuilder::new(alphabet);
        for name in ["one", "two"] {
            let mut symbols = Vec::new();
            for _ in 0..rng.between(1, 6) {
                let function = 2 * rng.below(FUNCTIONS.len()) as u32;
                let part = streams::small(rng, 40);
                symbols.extend(part.iter().map(|raw| Symbol::from_raw(function + raw % 2)));
            }
            let folders: [&dyn Folder; 3] = [&Outermost::default(), &Repair, &SequiturRuns];
            let root = folders[rng.below(3)].fold(&symbols, &mut builder).unwrap();
            builder.stream(FoldedStream::new(name, "any", root));
        }
        builder.finish()
    }

    fn positions(slice: &FunctionSlice<'_>, root: RuleId) -> Vec<u64> {
        let mut cursor = Cursor::new(slice, root);
        let mut positions = Vec::new();
        while cursor.peek().is_some() {
            positions.extend(cursor.enter());
        }
        positions
    }

    #[test]
    fn slices_from_ranges_hold_what_slices_from_a_pass_hold() {
        let mut rng = Rng::new(441);
        for _ in 0..2_000 {
            let fold = random_fold(&mut rng);
            let functions = Functions::of(fold.alphabet()).unwrap();
            let Some(index) = PathIndex::of(&fold, rng.between(1, 40)).unwrap() else { continue };
            let mut scratch = Scratch::new(&fold);
            for function in functions.all() {
                let query = PathQuery::new(&functions, function, vec![function.blocks().to_vec()]).unwrap();
                let by_index = index.slice(&fold, &query, &mut scratch).unwrap();
                let by_pass = FunctionSlice::from_pass(&fold, query.steps(), Dedup::No).unwrap();
                assert!(by_index.items() <= by_pass.items() && by_index.visited() <= by_pass.visited());
                for stream in fold.streams() {
                    assert_eq!(positions(&by_index, stream.root()), positions(&by_pass, stream.root()));
                }
            }
        }
    }
}
