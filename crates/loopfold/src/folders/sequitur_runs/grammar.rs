//! The grammar that grows: counted items in linked lists, one list a rule, with an index
//! of the digrams.
//!
//! A node is an item or the guard that closes a rule's list to a ring; it takes 16 bytes.
//! The index is an open hash table of 8 bytes a slot, between a third and two thirds full.
//! Everything here takes constant time, apart from growing.

use crate::fold::{FoldBuilder, Item};
use crate::{Error, Result, RuleId, Symbol};

/// The index of a node.
pub(super) type NodeId = u32;
/// No node.
pub(super) const NONE: NodeId = u32::MAX;
/// Nodes are 32-bit numbers; the rest is room for what a single symbol may add.
const NODE_LIMIT: usize = u32::MAX as usize - (1 << 20);

const RULE: u32 = 0b10 << 30;
const GUARD: u32 = 0b11 << 30;

/// A symbol, a rule, or the guard of a rule, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Part(u32);

impl Part {
    /// What a free node stands for: a guard of no rule.
    pub(super) const NOTHING: Part = Part(u32::MAX);

    /// A symbol. Returns `None` when its number is too large for the two bits that mark rules.
    pub(super) fn symbol(symbol: Symbol) -> Option<Part> {
        (symbol.raw() < 1 << 30).then_some(Part(symbol.raw()))
    }

    fn rule(index: usize) -> Part {
        Part(index as u32 | RULE)
    }

    fn guard(index: usize) -> Part {
        Part(index as u32 | GUARD)
    }

    #[inline(always)]
    pub(super) fn is_rule(self) -> bool {
        self.0 >> 30 == 0b10
    }

    #[inline(always)]
    pub(super) fn is_guard(self) -> bool {
        self.0 >= GUARD
    }

    /// The rule that a guard belongs to.
    fn guarded(self) -> Part {
        Part(self.0 & !GUARD | RULE)
    }

    /// The index of the rule, of a rule or its guard.
    #[inline(always)]
    fn rule_index(self) -> usize {
        (self.0 & !GUARD) as usize
    }
}

/// An item, or the guard of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) part: Part,
    pub(super) times: u32,
    pub(super) previous: NodeId,
    pub(super) next: NodeId,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    guard: NodeId,
    /// How many items refer to the rule.
    uses: u32,
    /// The symbol that the rule begins with.
    first: Part,
    hint: NodeId,
}

#[derive(Clone)]
pub(super) struct Grammar {
    nodes: Vec<Node>,
    free_node: NodeId,
    rules: Vec<Rule>,
    free_rules: Vec<u32>,
    digrams: Digrams,
    hints: Hints,
    /// The guard of the start rule.
    pub(super) start: NodeId,
}

impl Grammar {
    pub(super) fn new() -> Self {
        let mut grammar = Grammar {
            nodes: Vec::new(),
            free_node: NONE,
            rules: Vec::new(),
            free_rules: Vec::new(),
            digrams: Digrams::new(),
            hints: Hints::new(),
            start: NONE,
        };
        grammar.start = grammar.new_rule(Part::NOTHING).1;
        grammar
    }

    /// Fails before the numbers of nodes or rules run out.
    pub(super) fn check_room(&self) -> Result<()> {
        if self.nodes.len() > NODE_LIMIT || self.rules.len() > (1 << 30) - (1 << 20) {
            return Err(Error::limit("a stream whose rules have more items than can be numbered"));
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    #[inline(always)]
    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// The last item of the start rule, or its guard when it is empty.
    #[inline(always)]
    pub(super) fn last(&self) -> NodeId {
        self.node(self.start).previous
    }

    /// The first item of a rule.
    #[inline(always)]
    pub(super) fn head(&self, rule: Part) -> NodeId {
        self.node(self.rules[rule.rule_index()].guard).next
    }

    /// The symbol that a part begins with.
    #[inline(always)]
    pub(super) fn first(&self, part: Part) -> Part {
        if part.is_rule() { self.rules[part.rule_index()].first } else { part }
    }

    /// Whether a part is a rule that begins with this symbol.
    #[inline(always)]
    pub(super) fn is_rule_from(&self, part: Part, symbol: Part) -> bool {
        part.is_rule() && self.rules[part.rule_index()].first == symbol
    }

    pub(super) fn add_use(&mut self, part: Part) {
        if part.is_rule() {
            self.rules[part.rule_index()].uses += 1;
        }
    }

    pub(super) fn drop_use(&mut self, part: Part) {
        if part.is_rule() {
            self.rules[part.rule_index()].uses -= 1;
        }
    }

    fn is_used_once(&self, part: Part) -> bool {
        part.is_rule() && self.rules[part.rule_index()].uses == 1
    }

    fn allocate(&mut self, part: Part, times: u32) -> NodeId {
        let node = Node { part, times, previous: NONE, next: NONE };
        if self.free_node == NONE {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as NodeId;
        }
        let id = self.free_node;
        self.free_node = self.node(id).next;
        *self.node_mut(id) = node;
        id
    }

    fn release(&mut self, id: NodeId) {
        let next = std::mem::replace(&mut self.free_node, id);
        *self.node_mut(id) = Node { part: Part::NOTHING, times: 0, previous: NONE, next };
    }

    fn link(&mut self, left: NodeId, right: NodeId) {
        self.node_mut(left).next = right;
        self.node_mut(right).previous = left;
    }

    /// An empty rule that will begin with this symbol, and its guard.
    fn new_rule(&mut self, first: Part) -> (Part, NodeId) {
        let index = self.free_rules.pop().map_or(self.rules.len(), |index| index as usize);
        let guard = self.allocate(Part::guard(index), 0);
        self.link(guard, guard);
        let rule = Rule { guard, uses: 0, first, hint: NONE };
        if index == self.rules.len() {
            self.rules.push(rule);
        } else {
            self.rules[index] = rule;
        }
        (Part::rule(index), guard)
    }

    /// Puts an item behind the start rule's last, without looking at the digram.
    pub(super) fn append(&mut self, part: Part, times: u32) {
        let (last, start) = (self.last(), self.start);
        let id = self.allocate(part, times);
        self.link(last, id);
        self.link(id, start);
        self.add_use(part);
    }

    /// Takes the start rule's last item off; its digram is not in the index.
    pub(super) fn drop_last(&mut self) {
        let (last, start) = (self.last(), self.start);
        let Node { part, previous, .. } = *self.node(last);
        self.drop_use(part);
        self.release(last);
        self.link(previous, start);
    }

    /// Closes the start rule for good: it becomes an ordinary rule, which is the first
    /// item of a new start rule.
    pub(super) fn restart(&mut self) {
        let old = self.node(self.start).part.guarded();
        let first = self.first(self.node(self.head(old)).part);
        self.rules[old.rule_index()].first = first;
        self.start = self.new_rule(Part::NOTHING).1;
        self.append(old, 1);
    }

    /// The rule whose whole body is `from..=to`. Returns `None` if there is none.
    pub(super) fn whole_rule(&self, from: NodeId, to: NodeId) -> Option<Part> {
        let (before, after) = (self.node(from).previous, self.node(to).next);
        // Two guards around a list that has items are the same one.
        let is_body = before == after && before != self.start && self.node(before).part.is_guard();
        is_body.then(|| self.node(before).part.guarded())
    }

    /// Makes `from..=to` the body of a new rule and puts one use of it in their place.
    pub(super) fn splice_out(&mut self, from: NodeId, to: NodeId) -> Part {
        let (before, after) = (self.node(from).previous, self.node(to).next);
        self.remove_digram(before);
        self.remove_digram(to);
        let (rule, guard) = self.new_rule(self.first(self.node(from).part));
        self.link(guard, from);
        self.link(to, guard);
        let item = self.allocate(rule, 1);
        self.link(before, item);
        self.link(item, after);
        self.add_use(rule);
        self.insert_digram(before);
        self.insert_digram(item);
        rule
    }

    /// Writes a rule's body out where it stands, if this item is its only use and does
    /// not repeat it.
    pub(super) fn inline_if_used_once(&mut self, item: NodeId) {
        let Node { part, times, previous, next } = *self.node(item);
        if times != 1 || !self.is_used_once(part) {
            return;
        }
        let guard = self.rules[part.rule_index()].guard;
        let Node { previous: last, next: first, .. } = *self.node(guard);
        self.remove_digram(previous);
        self.remove_digram(item);
        self.link(previous, first);
        self.link(last, next);
        self.rules[part.rule_index()].guard = NONE;
        self.free_rules.push(part.rule_index() as u32);
        self.release(guard);
        self.release(item);
        self.find_or_insert_digram(previous);
        self.find_or_insert_digram(last);
    }

    /// Where an item with this part was found again lately, if that is remembered. The
    /// node may have become something else since.
    #[inline(always)]
    pub(super) fn hint(&self, part: Part) -> NodeId {
        if part.is_rule() { self.rules[part.rule_index()].hint } else { self.hints.get(part) }
    }

    pub(super) fn set_hint(&mut self, node: NodeId) {
        let part = self.node(node).part;
        if part.is_rule() {
            self.rules[part.rule_index()].hint = node;
        } else {
            self.hints.set(part, node);
        }
    }

    /// Looks for a digram equal to the one that begins at `left` and returns where; if
    /// there is none, enters this one. The ends of a rule have no digrams.
    #[inline]
    pub(super) fn find_or_insert_digram(&mut self, left: NodeId) -> Option<NodeId> {
        let a = *self.node(left);
        let b = *self.node(a.next);
        if a.part.is_guard() || b.part.is_guard() {
            return None;
        }
        let is_equal = |other: NodeId| {
            let c = &self.nodes[other as usize];
            c.part == a.part && c.times == a.times && {
                let d = &self.nodes[c.next as usize];
                d.part == b.part && d.times == b.times
            }
        };
        let found = self.digrams.find_or_insert(digram_tag(&a, &b), left, is_equal);
        if found.is_none() && self.digrams.is_full() {
            self.grow_index();
        }
        found
    }

    /// Enters the digram that begins at `left`, which is known to be new.
    fn insert_digram(&mut self, left: NodeId) {
        if let Some(tag) = self.digram(left) {
            self.digrams.insert(tag, left);
            if self.digrams.is_full() {
                self.grow_index();
            }
        }
    }

    /// Removes the digram that begins at `left`, if it is that one which is entered.
    #[inline]
    pub(super) fn remove_digram(&mut self, left: NodeId) {
        if let Some(tag) = self.digram(left) {
            self.digrams.remove(tag, left);
        }
    }

    fn digram(&self, left: NodeId) -> Option<u32> {
        let a = self.node(left);
        let b = self.node(a.next);
        (!a.part.is_guard() && !b.part.is_guard()).then(|| digram_tag(a, b))
    }

    #[cold]
    fn grow_index(&mut self) {
        self.digrams.grow();
        self.hints.grow_to(self.digrams.slots.len() / 4, &self.nodes);
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.rules.capacity() * size_of::<Rule>()
            + self.digrams.slots.capacity() * size_of::<u64>()
            + self.hints.nodes.capacity() * size_of::<NodeId>()
    }

    /// Adds the rules that `root` needs to the builder, then a rule of these items.
    pub(super) fn emit(&self, root: &[(Part, u32)], builder: &mut FoldBuilder) -> Result<RuleId> {
        let mut emitted: Vec<Option<Item>> = vec![None; self.rules.len()];
        let mut body = Vec::new();
        for &(part, times) in root {
            let once = self.emit_part(part, &mut emitted, builder)?;
            put(&mut body, 0, once, times)?;
        }
        builder.root_rule(body)
    }

    /// The item that stands for a part once, after the rules below it were added: a
    /// depth-first walk with a stack of its own.
    fn emit_part(&self, part: Part, emitted: &mut [Option<Item>], builder: &mut FoldBuilder) -> Result<Item> {
        let mut items: Vec<Item> = Vec::new();
        let mut open: Vec<(Part, NodeId, usize)> = Vec::new();
        if let Some(known) = self.known_item(part, emitted) {
            return Ok(known);
        }
        open.push((part, self.head(part), 0));
        loop {
            let Some((rule, next, begin)) = open.last_mut() else {
                return Err(Error::invalid("a rule was not added"));
            };
            let node = self.node(*next);
            if node.part.is_guard() {
                let item = builder.repeat(&items[*begin..], 1)?;
                emitted[rule.rule_index()] = Some(item);
                items.truncate(*begin);
                open.pop();
                if open.is_empty() {
                    return Ok(item);
                }
            } else if let Some(once) = self.known_item(node.part, emitted) {
                put(&mut items, *begin, once, node.times)?;
                *next = node.next;
            } else {
                open.push((node.part, self.head(node.part), items.len()));
            }
        }
    }

    fn known_item(&self, part: Part, emitted: &[Option<Item>]) -> Option<Item> {
        if part.is_rule() { emitted[part.rule_index()] } else { Some(Item::once(Symbol::from_raw(part.0))) }
    }

    /// The rules as lists of items, the start rule first.
    #[cfg(test)]
    pub(super) fn lists(&self) -> Vec<(Part, Vec<(Part, u32)>)> {
        let start = self.node(self.start).part.guarded();
        let used = (0..self.rules.len()).filter(|&index| self.rules[index].guard != NONE).map(Part::rule);
        let mut rules = vec![start];
        rules.extend(used.filter(|&rule| rule != start));
        let list = |rule: Part| {
            let mut items = Vec::new();
            let mut node = self.node(self.head(rule));
            while !node.part.is_guard() {
                items.push((node.part, node.times));
                node = self.node(node.next);
            }
            (rule, items)
        };
        rules.into_iter().map(list).collect()
    }

    /// The number of uses that the grammar keeps for a rule.
    #[cfg(test)]
    pub(super) fn uses(&self, rule: Part) -> u32 {
        self.rules[rule.rule_index()].uses
    }

    /// How many digrams are in the index.
    #[cfg(test)]
    pub(super) fn digrams(&self) -> usize {
        self.digrams.used
    }
}

/// Appends an item to the body that begins at `begin`; the same thing again adds to the
/// item before.
fn put(items: &mut Vec<Item>, begin: usize, once: Item, times: u32) -> Result<()> {
    let too_often = || Error::limit("a loop repeats more often than can be counted");
    let times = once.times().checked_mul(u64::from(times)).ok_or_else(too_often)?;
    match items[begin..].last_mut() {
        Some(last) if last.target() == once.target() => {
            let sum = last.times().checked_add(times).ok_or_else(too_often)?;
            *last = Item::new(last.target(), sum);
        }
        _ => items.push(Item::new(once.target(), times)),
    }
    Ok(())
}

#[inline(always)]
fn digram_tag(a: &Node, b: &Node) -> u32 {
    let left = (u64::from(a.part.0) | u64::from(a.times) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let right = (u64::from(b.part.0) | u64::from(b.times) << 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let mixed = u128::from(left.rotate_left(29) ^ right) * 0xA076_1D64_78BD_642F;
    ((mixed >> 64) as u64 ^ mixed as u64) as u32
}

/// The digrams by their 32-bit tags: where the left item of each is.
#[derive(Clone)]
struct Digrams {
    /// The tag in the high half, the node in the low half.
    slots: Vec<u64>,
    /// A tag's high bits are its slot.
    shift: u32,
    used: usize,
}

const EMPTY: u64 = u64::MAX;

impl Digrams {
    fn new() -> Self {
        Self { slots: vec![EMPTY; 64], shift: 32 - 6, used: 0 }
    }

    fn is_full(&self) -> bool {
        self.used * 3 > self.slots.len() * 2
    }

    fn entry(tag: u32, node: NodeId) -> u64 {
        u64::from(tag) << 32 | u64::from(node)
    }

    #[inline(always)]
    fn home(&self, entry: u64) -> usize {
        ((entry >> 32) as u32 >> self.shift) as usize
    }

    #[inline]
    fn find_or_insert(
        &mut self,
        tag: u32,
        node: NodeId,
        is_equal: impl Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let mask = self.slots.len() - 1;
        let mut slot = (tag >> self.shift) as usize;
        loop {
            let entry = self.slots[slot];
            if entry == EMPTY {
                self.slots[slot] = Self::entry(tag, node);
                self.used += 1;
                return None;
            }
            if (entry >> 32) as u32 == tag && is_equal(entry as NodeId) {
                return Some(entry as NodeId);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn insert(&mut self, tag: u32, node: NodeId) {
        self.find_or_insert(tag, node, |_| false);
    }

    fn remove(&mut self, tag: u32, node: NodeId) {
        let wanted = Self::entry(tag, node);
        let mask = self.slots.len() - 1;
        let mut hole = (tag >> self.shift) as usize;
        while self.slots[hole] != wanted {
            if self.slots[hole] == EMPTY {
                return;
            }
            hole = (hole + 1) & mask;
        }
        // What comes behind the hole moves up, unless that is before its own home.
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let entry = self.slots[slot];
            if entry == EMPTY {
                break;
            }
            let from_home = slot.wrapping_sub(self.home(entry)) & mask;
            if from_home >= (slot.wrapping_sub(hole) & mask) {
                self.slots[hole] = entry;
                hole = slot;
            }
        }
        self.slots[hole] = EMPTY;
        self.used -= 1;
    }

    fn grow(&mut self) {
        // Past 2^32 slots tags could not distinguish them; nodes run out long before.
        let larger = vec![EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        self.shift = self.shift.saturating_sub(1);
        let mask = self.slots.len() - 1;
        for entry in old.into_iter().filter(|&entry| entry != EMPTY) {
            let mut slot = self.home(entry);
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = entry;
        }
    }
}

/// The hints of symbols. A rule keeps its own; symbols share a table that grows with the
/// grammar, where one may replace another: a lost hint may cost compression, never correctness.
#[derive(Clone)]
struct Hints {
    nodes: Vec<NodeId>,
}

impl Hints {
    fn new() -> Self {
        Self { nodes: vec![NONE; 16] }
    }

    #[inline(always)]
    fn slot(&self, part: Part) -> usize {
        part.0 as usize & (self.nodes.len() - 1)
    }

    #[inline(always)]
    fn get(&self, part: Part) -> NodeId {
        self.nodes[self.slot(part)]
    }

    fn set(&mut self, part: Part, node: NodeId) {
        let slot = self.slot(part);
        self.nodes[slot] = node;
    }

    fn grow_to(&mut self, slots: usize, nodes: &[Node]) {
        if slots <= self.nodes.len() {
            return;
        }
        let old = std::mem::replace(&mut self.nodes, vec![NONE; slots]);
        for node in old.into_iter().filter(|&node| node != NONE) {
            self.set(nodes[node as usize].part, node);
        }
    }
}
