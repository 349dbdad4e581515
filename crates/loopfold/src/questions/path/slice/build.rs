//! Builds the slice of a function: rule by rule, each after the rules it is made of.

use super::super::brackets::FrameBoundary;
use super::super::functions::Step;
use super::{FunctionSlice, SliceItem};
use crate::fold::measure::bottom_up;
use crate::fold::reach::UseIndex;
use crate::fold::{Fold, Grammar as _, Item, Node};
use crate::{Error, Result, RuleId, Symbol};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher as _;

/// Whether rules with equal content become one node. That takes about as long as a search, and
/// later searches may take less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Dedup {
    /// They do.
    Yes,
    /// Each rule is a node, unless it holds a single item.
    No,
}

/// The node of what holds nothing of the function.
const NONE: Node = Node::new(SliceItem::REPEATS - 1);

impl<'a> FunctionSlice<'a> {
    /// One pass over all rules.
    pub(in super::super) fn from_pass(
        fold: &'a Fold,
        steps: &[(Symbol, Step)],
        dedup: Dedup,
    ) -> Result<Self> {
        let mut builder = Builder::new(fold, steps, dedup)?;
        let mut symbols = vec![NONE; fold.symbol_count()];
        for (number, (symbol, _)) in (0..).zip(steps) {
            symbols[symbol.index()] = Node::new(number);
        }
        bottom_up(fold, symbols, |rule, body, nodes| {
            let place = fold.item_range(rule).start;
            builder.hold(body, place, |item| nodes[fold.item_node(item).index()]);
            Ok(builder.close(rule))
        })?;
        Ok(builder.finish(fold.rules().len() as u64))
    }

    /// From where symbols and rules are used: up from those of the function. `None` if that
    /// is more than `most` items.
    pub(in super::super) fn from_uses(
        fold: &'a Fold,
        steps: &[(Symbol, Step)],
        uses: &UseIndex,
        scratch: &mut Scratch,
        most: usize,
    ) -> Result<Option<Self>> {
        let symbols = steps.iter().map(|&(symbol, _)| Node::new(symbol.raw()));
        let held = uses.above(fold, symbols, most, |rule| scratch.mark(fold.rule_node(rule)));
        let visited = scratch.clear();
        let Some(held) = held else { return Ok(None) };
        let places = held.iter().map(|&place| (place, uses.rule(place)));
        Self::from_places(fold, steps, places, scratch, visited).map(Some)
    }

    /// From the places of all items that may hold something, in order, and the rules that they
    /// are in. `visited` rules were examined for this.
    pub(in super::super) fn from_places(
        fold: &'a Fold,
        steps: &[(Symbol, Step)],
        places: impl Iterator<Item = (u32, RuleId)>,
        scratch: &mut Scratch,
        visited: u64,
    ) -> Result<Self> {
        let mut builder = Builder::new(fold, steps, Dedup::No)?;
        for (number, (symbol, _)) in (0..).zip(steps) {
            scratch.set(Node::new(symbol.raw()), Node::new(number));
        }
        let mut current = None;
        for (place, rule) in places {
            if current != Some(rule)
                && let Some(before) = current.replace(rule)
            {
                scratch.set(fold.rule_node(before), builder.close(before));
            }
            let item = fold.all_items()[place as usize];
            let node = scratch.get(fold.item_node(item));
            if node != NONE {
                builder.slice.items.push(SliceItem::new(place, node, item));
            }
        }
        if let Some(last) = current {
            builder.close(last);
        }
        scratch.clear();
        Ok(builder.finish(visited))
    }

    /// The same with rules that hold the same as one node.
    pub(in super::super) fn deduplicated(&self) -> Self {
        let mut builder = Builder::of(self.fold, &self.steps, Dedup::Yes);
        let mut nodes: Vec<Node> = (0..self.node_count() as u32).map(Node::new).collect();
        for (index, &rule) in self.rules.iter().enumerate() {
            builder.slice.items.extend(self.items[self.range(index)].iter().map(|item| {
                let repeats = item.node & SliceItem::REPEATS;
                SliceItem { node: nodes[item.node().index()].raw() | repeats, ..*item }
            }));
            nodes[self.nodes[index].index()] = builder.close(rule);
        }
        builder.finish(self.visited)
    }
}

impl SliceItem {
    #[inline]
    fn new(place: u32, node: Node, item: Item) -> Self {
        Self { place, node: node.raw() | if item.times() > 1 { Self::REPEATS } else { 0 } }
    }
}

struct Builder<'a> {
    slice: FunctionSlice<'a>,
    /// How each node begins and ends; of rules only as long as the function is not recursive.
    boundaries: Vec<FrameBoundary>,
    /// The nodes that are rules, by what they hold.
    known: Option<HashTable<Node>>,
}

impl<'a> Builder<'a> {
    fn new(fold: &'a Fold, steps: &[(Symbol, Step)], dedup: Dedup) -> Result<Self> {
        if u32::try_from(fold.items()).is_err() {
            return Err(Error::limit("a path can be looked for in at most 2^32 items"));
        }
        if steps.iter().any(|(symbol, _)| symbol.index() >= fold.alphabet().len()) {
            return Err(Error::invalid("the path is of another trace"));
        }
        Ok(Self::of(fold, steps, dedup))
    }

    /// For a fold that is small enough, and steps that are of its symbols.
    fn of(fold: &'a Fold, steps: &[(Symbol, Step)], dedup: Dedup) -> Self {
        let slice = FunctionSlice {
            fold,
            steps: steps.to_vec(),
            rules: Vec::new(),
            ends: Vec::new(),
            nodes: Vec::new(),
            items: Vec::new(),
            bodies: Vec::new(),
            is_recursive: false,
            visited: 0,
        };
        let boundaries = steps.iter().map(|&(_, step)| FrameBoundary::of(step)).collect();
        Self { slice, boundaries, known: (dedup == Dedup::Yes).then(HashTable::new) }
    }

    /// Adds those items of a body that hold something. The first is at this place.
    #[inline]
    fn hold(&mut self, body: &[Item], first: usize, node_of: impl Fn(Item) -> Node) {
        let items = &mut self.slice.items;
        let start = items.len();
        if start < first / 8 {
            // Few items stay, so the processor expects none to.
            for (item, place) in body.iter().zip(first..) {
                let node = node_of(*item);
                if node != NONE {
                    items.push(SliceItem::new(place as u32, node, *item));
                }
            }
            return;
        }
        // Which items stay is hard to predict, so no branch depends on it.
        items.resize(start + body.len(), SliceItem { place: 0, node: 0 });
        let room = &mut items[start..];
        let mut count = 0;
        for (item, place) in body.iter().zip(first..) {
            let node = node_of(*item);
            room[count] = SliceItem::new(place as u32, node, *item);
            count += usize::from(node != NONE);
        }
        items.truncate(start + count);
    }

    /// All that a rule holds has been added.
    #[inline]
    fn close(&mut self, rule: RuleId) -> Node {
        let slice = &mut self.slice;
        let start = slice.ends.last().map_or(0, |&end| end as usize);
        let node = match slice.items[start..] {
            [] => return NONE,
            [only] if !only.repeats() => only.node(),
            _ => self.node_of_body(start),
        };
        let slice = &mut self.slice;
        slice.rules.push(rule);
        slice.ends.push(slice.items.len() as u32);
        slice.nodes.push(node);
        node
    }

    /// The node of the items from here on.
    fn node_of_body(&mut self, start: usize) -> Node {
        let new = Node::new((self.slice.steps.len() + self.slice.bodies.len()) as u32);
        if let Some(mut known) = self.known.take() {
            let found = self.known_or(&mut known, start, new);
            self.known = Some(known);
            if found != new {
                return found;
            }
        }
        self.slice.bodies.push(self.slice.rules.len() as u32);
        if !self.slice.is_recursive {
            let body = self.slice.items[start..].iter();
            let boundaries = body.map(|item| (self.boundaries[item.node().index()], item.repeats()));
            let joined = FrameBoundary::joined(boundaries);
            self.slice.is_recursive = joined.is_none();
            self.boundaries.extend(joined);
        }
        new
    }

    /// The node of equal items if there is one; the new one if not.
    fn known_or(&self, known: &mut HashTable<Node>, start: usize, new: Node) -> Node {
        let slice = &self.slice;
        let hash_of = |items: &[SliceItem]| {
            let each =
                |hash: u64, item: &SliceItem| (hash.rotate_left(5) ^ u64::from(item.node)).wrapping_mul(MIX);
            FixedState::default().hash_one(items.iter().fold(0, each))
        };
        let items_of = |node: Node| {
            let rule = slice.bodies[node.index() - slice.steps.len()] as usize;
            &slice.items[slice.range(rule)]
        };
        let body = &slice.items[start..];
        let is_equal = |&node: &Node| {
            let other = items_of(node);
            let equal = |(&one, &two): (&SliceItem, &SliceItem)| {
                one.node == two.node && slice.item_times(one) == slice.item_times(two)
            };
            other.len() == body.len() && other.iter().zip(body).all(equal)
        };
        let entry = known.entry(hash_of(body), is_equal, |&node| hash_of(items_of(node)));
        *entry.or_insert(new).get()
    }

    fn finish(self, visited: u64) -> FunctionSlice<'a> {
        let Self { mut slice, boundaries, .. } = self;
        slice.visited = visited;
        let is_closed =
            |root: RuleId| slice.node(root).is_none_or(|node| boundaries[node.index()].begins_outside());
        let all_closed = || slice.fold.streams().iter().all(|stream| is_closed(stream.root()));
        slice.is_recursive = slice.is_recursive || !all_closed();
        slice
    }
}

/// An odd number without a pattern, for hashing.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// A node of a slice for each node of a fold, cleared at the cost of those that were set: so
/// that a small slice costs little, however large the fold is.
#[derive(Debug)]
pub(in super::super) struct Scratch {
    nodes: Vec<Node>,
    set: Vec<Node>,
}

impl Scratch {
    pub(in super::super) fn new(fold: &Fold) -> Self {
        Self { nodes: vec![NONE; fold.node_count()], set: Vec::new() }
    }

    /// Marks a node of the fold; false if it was marked already.
    pub(in super::super) fn mark(&mut self, node: Node) -> bool {
        let is_new = self.get(node) == NONE;
        if is_new {
            self.set(node, Node::new(0));
        }
        is_new
    }

    /// Clears all nodes, and returns how many were set or marked.
    pub(in super::super) fn clear(&mut self) -> u64 {
        let count = self.set.len() as u64;
        self.set.drain(..).for_each(|node| self.nodes[node.index()] = NONE);
        count
    }

    fn set(&mut self, node: Node, known: Node) {
        self.nodes[node.index()] = known;
        self.set.push(node);
    }

    fn get(&self, node: Node) -> Node {
        self.nodes[node.index()]
    }
}
