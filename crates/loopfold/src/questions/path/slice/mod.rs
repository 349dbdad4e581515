//! The slice of a fold for one function: only the rules and items that contain a symbol of it.
//!
//! Items without a symbol of the function do nothing to its paths, so a search leaves them out.
//! Its *nodes* are the symbols of the function, then its distinct rules: a rule that holds a
//! single item, once, is the node of that item, and with [`Dedup::Yes`] all rules that hold the
//! same are one node. A slice depends on the function alone, so it serves many paths, each at
//! the cost of its nodes.
//!
//! A slice is a [`Grammar`] by its nodes and [`Located`] by the rules of the fold, so that the
//! traversals of a fold work on it.
//!
//! Built by one pass over all items, one to two nanoseconds each and some ten more for those
//! that stay; or in O(items that stay), from an index of uses or from the index of functions.
//! Memory: 8 bytes an item that stays, 12 a rule.

mod build;

use super::functions::Step;
use crate::fold::{Fold, Grammar, Located, Node, Target};
use crate::{RuleId, Symbol};
pub(super) use build::{Dedup, Scratch};
use std::ops::Range;

/// An item that holds something of the function.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceItem {
    /// Its place among all items of the fold.
    place: u32,
    /// The node of its target; the highest bit is set if it repeats.
    node: u32,
}

impl SliceItem {
    const REPEATS: u32 = 1 << 31;

    #[inline]
    pub(super) fn node(self) -> Node {
        Node::new(self.node & !Self::REPEATS)
    }

    #[inline]
    pub(super) fn repeats(self) -> bool {
        self.node & Self::REPEATS != 0
    }
}

/// The slice of a fold that one function has.
#[derive(Debug)]
pub(super) struct FunctionSlice<'a> {
    fold: &'a Fold,
    /// The effect of symbols on frames of the function; the first nodes, in order.
    steps: Vec<(Symbol, Step)>,
    /// The rules that hold something, in order.
    rules: Vec<RuleId>,
    /// Where the items of each end.
    ends: Vec<u32>,
    /// The node that each is.
    nodes: Vec<Node>,
    items: Vec<SliceItem>,
    /// For each node that is no symbol, the first rule that is it, by its index in `rules`.
    bodies: Vec<u32>,
    is_recursive: bool,
    /// How many rules were examined to make this.
    visited: u64,
}

impl<'a> FunctionSlice<'a> {
    /// The fold that this is a slice of.
    pub(super) fn fold(&self) -> &'a Fold {
        self.fold
    }

    /// The effect of symbols on frames of the function: the nodes that are symbols, in order.
    pub(super) fn steps(&self) -> &[(Symbol, Step)] {
        &self.steps
    }

    /// False if every stream enters the function only while it is not open, and has its
    /// blocks and exits only while it is; then its frames need no levels.
    pub(super) fn is_recursive(&self) -> bool {
        self.is_recursive
    }

    /// How many rules were examined to make this.
    pub(super) fn visited(&self) -> u64 {
        self.visited
    }

    /// How many items hold something of the function.
    pub(super) fn items(&self) -> usize {
        self.items.len()
    }

    /// The node of a rule. Returns `None` if the rule holds nothing of the function.
    pub(super) fn node(&self, rule: RuleId) -> Option<Node> {
        self.rules.binary_search(&rule).ok().map(|index| self.nodes[index])
    }

    /// The symbol that a node is and what it does; `None` for a rule.
    pub(super) fn step(&self, node: Node) -> Option<(Symbol, Step)> {
        self.steps.get(node.index()).copied()
    }

    #[inline]
    fn range(&self, rule: usize) -> Range<usize> {
        let start = rule.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[rule] as usize
    }
}

impl Grammar for FunctionSlice<'_> {
    type Item = SliceItem;

    fn symbol_count(&self) -> usize {
        self.steps.len()
    }

    #[inline]
    fn rule_bodies(&self) -> impl DoubleEndedIterator<Item = &[SliceItem]> + ExactSizeIterator {
        self.bodies.iter().map(|&rule| &self.items[self.range(rule as usize)])
    }

    #[inline]
    fn item_node(&self, item: SliceItem) -> Node {
        item.node()
    }

    /// Only an item that repeats is looked up in the fold.
    #[inline]
    fn item_times(&self, item: SliceItem) -> u64 {
        if item.repeats() { self.fold.all_items()[item.place as usize].times() } else { 1 }
    }
}

impl Located for FunctionSlice<'_> {
    type Item = SliceItem;

    const CONTIGUOUS: bool = false;

    fn located_body(&self, rule: RuleId) -> &[SliceItem] {
        self.rules.binary_search(&rule).map_or(&[], |index| &self.items[self.range(index)])
    }

    #[inline]
    fn located_target(&self, item: SliceItem) -> Target {
        self.fold.all_items()[item.place as usize].target()
    }

    #[inline]
    fn located_times(&self, item: SliceItem) -> u64 {
        self.item_times(item)
    }

    #[inline]
    fn iteration_length(&self, item: SliceItem) -> u64 {
        self.fold.target_length(self.located_target(item))
    }

    #[inline]
    fn item_offset(&self, _: RuleId, body: &[SliceItem], index: usize) -> u64 {
        match (body.get(index), body.last()) {
            (Some(&item), _) => {
                let place = item.place as usize;
                self.fold.item_end(place) - self.fold.item_length(self.fold.all_items()[place])
            }
            (None, Some(last)) => self.fold.item_end(last.place as usize),
            (None, None) => 0,
        }
    }

    fn items_until(&self, rule: RuleId, offset: u64) -> usize {
        let body = self.located_body(rule);
        body.partition_point(|item| self.fold.item_end(item.place as usize) <= offset)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fold::cursor::Cursor;
    use crate::fold::measure::bottom_up;
    use crate::fold::rank::select;
    use crate::fold::reach::UseIndex;
    use crate::fold::{FoldBuilder, FoldedStream};
    use crate::folders::{Folder as _, SequiturRuns};
    use crate::questions::path::Functions;
    use crate::trace::{Alphabet, Event, Field, Role, Value};
    use loopfold_testing::{Rng, streams};

    /// Two functions of two blocks, and a symbol of neither.
    fn alphabet() -> Alphabet {
        let mut alphabet = Alphabet::default();
        for name in ["f", "g"] {
            let fields = &[Field { key: "function", value: Value::Text(name.as_bytes()) }];
            let block = |name| Event { role: Role::Block, fields, ..Event::named(name) };
            let leave = Event { role: Role::Leave, fields, ..Event::named("return") };
            let enter = Event { role: Role::Enter, ..Event::named(name) };
            for event in [enter, leave, block("B0"), block("B1")] {
                alphabet.intern(&event, None).unwrap();
            }
        }
        alphabet.intern(&Event::named("other"), None).unwrap();
        alphabet
    }

    fn random_fold(rng: &mut Rng) -> Fold {
        let mut builder = FoldBuilder::new(alphabet());
        for name in ["one", "two"] {
            let raw = streams::small(rng, 80);
            let symbols: Vec<Symbol> = raw.iter().map(|raw| Symbol::from_raw(raw % 9)).collect();
            let root = SequiturRuns.fold(&symbols, &mut builder).unwrap();
            builder.stream(FoldedStream::new(name, "sequitur-runs", root));
        }
        builder.finish()
    }

    /// The function's symbols in a stream, and where they are.
    fn expected(slice: &FunctionSlice<'_>, root: RuleId) -> Vec<(Symbol, u64)> {
        let is_own = |symbol: &Symbol| slice.steps().iter().any(|(own, _)| own == symbol);
        slice.fold().unfold(root).zip(0..).filter(|(symbol, _)| is_own(symbol)).collect()
    }

    fn check(slice: &FunctionSlice<'_>, rng: &mut Rng) {
        let of_rule = |_, body: &[SliceItem], texts: &[Vec<Symbol>]| {
            let of_item =
                |&item: &SliceItem| texts[item.node().index()].repeat(slice.item_times(item) as usize);
            Ok(body.iter().flat_map(of_item).collect())
        };
        let symbols = slice.steps().iter().map(|&(symbol, _)| vec![symbol]).collect();
        let texts = bottom_up(slice, symbols, of_rule).unwrap();
        for stream in slice.fold().streams() {
            let expected = expected(slice, stream.root());
            let text = slice.node(stream.root()).map_or(&[][..], |node| &texts[node.index()]);
            assert_eq!(text, expected.iter().map(|&(symbol, _)| symbol).collect::<Vec<_>>());
            // The positions of single events, forwards, backwards and by number.
            let mut cursor = Cursor::new(slice, stream.root());
            let mut positions = Vec::new();
            while cursor.peek().is_some() {
                positions.extend(cursor.enter());
            }
            assert!(positions.iter().eq(expected.iter().map(|(_, position)| position)));
            let from = rng.between(0, slice.fold().length(stream.root()) as usize) as u64;
            let mut cursor = Cursor::at(slice, stream.root(), from);
            let mut before = Vec::new();
            while cursor.peek_back().is_some() {
                before.extend(cursor.enter_back());
            }
            before.reverse();
            positions.retain(|&position| position < from);
            assert_eq!(before, positions);
            for k in 0..=expected.len() {
                let weight = |item: SliceItem| texts[item.node().index()].len() as u64;
                let position = expected.get(k).map(|&(_, position)| position);
                assert_eq!(select(slice, stream.root(), k as u64, weight), position);
            }
        }
    }

    #[test]
    fn a_slice_has_the_symbols_of_a_function_however_it_is_made() {
        let mut rng = Rng::new(88);
        let functions = Functions::of(&alphabet()).unwrap();
        for _ in 0..300 {
            let fold = random_fold(&mut rng);
            let uses = UseIndex::new(&fold).unwrap();
            let mut scratch = Scratch::new(&fold);
            for function in functions.all() {
                let steps = functions.steps_of(function);
                let apart = FunctionSlice::from_pass(&fold, &steps, Dedup::No).unwrap();
                let joined = FunctionSlice::from_pass(&fold, &steps, Dedup::Yes).unwrap();
                let few = apart.items().saturating_sub(1);
                assert!(
                    FunctionSlice::from_uses(&fold, &steps, &uses, &mut scratch, few).unwrap().is_none()
                        || apart.items() == 0
                );
                let by_uses = FunctionSlice::from_uses(&fold, &steps, &uses, &mut scratch, usize::MAX);
                let by_uses = by_uses.unwrap().unwrap();
                let again = apart.deduplicated();
                assert_eq!(again.node_count(), joined.node_count());
                assert_eq!(by_uses.node_count(), apart.node_count());
                for slice in [apart, joined, by_uses, again] {
                    check(&slice, &mut rng);
                }
            }
        }
    }
}
