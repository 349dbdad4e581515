//! The rules of a grammar as rings of linked items, with an index of their digrams.
//!
//! A rule is a ring: its head, then its items. All live in one arena and refer to each
//! other by number; what is freed is used again. The index has every digram once, at one
//! of its places; where places overlap, at the first of them.
//!
//! Whenever neighbours change, the place goes to a list of places to check, and
//! [`Grammar::settle`] works it off. Checking a place too often, or one that has changed
//! meanwhile, does no harm.

use crate::fold::{FoldBuilder, Item, Target};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher;

/// The symbol that comes next, if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookAhead {
    /// It does not matter, or there is none.
    Nothing,
    /// It will be known later: a new rule for the last digram of the start rule waits.
    Unknown,
    /// This one.
    Symbol(Symbol),
}

/// A number in the arena.
type Place = u32;

/// What is at a place: a symbol, or one of the following with a number.
type Value = u32;
/// The use of a rule.
const RULE: Value = 0b10 << 30;
/// The head of a rule.
const HEAD: Value = 0b11 << 30;
/// A place that is not in use; as the head of a rule that cannot be.
const FREE: Value = u32::MAX;
/// The part of a value that is a number.
const NUMBER: u32 = !HEAD;

/// The start rule, and its head.
const START_RULE: u32 = 0;
const START: Place = 0;

/// A node of a ring.
#[derive(Clone, Copy)]
struct Node {
    value: Value,
    previous: Place,
    next: Place,
}

#[derive(Clone, Copy)]
struct Rule {
    head: Place,
    uses: u32,
}

/// A grammar whose start rule unfolds to what was appended.
#[derive(Clone)]
pub(super) struct Grammar {
    nodes: Vec<Node>,
    free_nodes: Vec<Place>,
    rules: Vec<Rule>,
    free_rules: Vec<u32>,
    digrams: HashTable<Place>,
    hasher: foldhash::fast::RandomState,
    /// Places whose digram may be new.
    unchecked: Vec<Place>,
    /// Whether the last digram of the start rule occurs elsewhere and waits.
    waiting: bool,
}

impl Default for Grammar {
    fn default() -> Self {
        Self {
            nodes: vec![Node { value: HEAD | START_RULE, previous: START, next: START }],
            free_nodes: Vec::new(),
            rules: vec![Rule { head: START, uses: 0 }],
            free_rules: Vec::new(),
            digrams: HashTable::new(),
            hasher: foldhash::fast::RandomState::default(),
            unchecked: Vec::new(),
            waiting: false,
        }
    }
}

/// Restoring the two properties.
impl Grammar {
    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.rules.capacity() * size_of::<Rule>()
            + self.digrams.allocation_size()
    }

    /// Appends a symbol to the start rule. [`Grammar::settle`] must follow.
    pub(super) fn append(&mut self, symbol: Symbol) -> Result<()> {
        let last = self.previous(START);
        let new = self.new_node(symbol.raw())?;
        self.link(last, new);
        self.link(new, START);
        self.unchecked.push(last);
        Ok(())
    }

    /// Makes digrams unique and rules useful again, except that the last digram of the
    /// start rule may wait for the symbol after it.
    pub(super) fn settle(&mut self, look_ahead: LookAhead) -> Result<()> {
        if std::mem::take(&mut self.waiting) {
            self.unchecked.push(self.last_digram());
        }
        while let Some(place) = self.unchecked.pop() {
            self.check(place, look_ahead)?;
        }
        Ok(())
    }

    /// Whether a digram waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting
    }

    fn check(&mut self, place: Place, look_ahead: LookAhead) -> Result<()> {
        let Some(place) = self.first_of_overlapping(place) else { return Ok(()) };
        let Some(other) = self.find_or_enter(place) else { return Ok(()) };
        if let Some(rule) = self.rule_with_body_at(other) {
            self.substitute(place, rule);
            self.keep_useful(rule);
        } else if let Some(rule) = self.rule_with_body_at(place) {
            self.substitute(other, rule);
            self.keep_useful(rule);
        } else if !self.waits(place, other, look_ahead) {
            let rule = self.new_rule(digram_at(&self.nodes, place))?;
            self.substitute(other, rule);
            self.substitute(place, rule);
            self.unchecked.push(self.first(rule));
            self.keep_useful(rule);
        }
        Ok(())
    }

    /// Whether a digram with these two places is not to become a new rule, or not yet:
    /// one of them is the last of the start rule, and the next symbol may belong
    /// to it, or does.
    fn waits(&mut self, place: Place, other: Place, look_ahead: LookAhead) -> bool {
        let last = self.last_digram();
        let waits = (place == last || other == last) && self.is_better_put_off(look_ahead);
        if waits && other == last {
            // What waits may break up, so the index must have the other one.
            let hash = self.hasher.hash_one(digram_at(&self.nodes, place));
            if let Some(known) = self.digrams.find_mut(hash, |&known| known == other) {
                *known = place;
            }
        }
        self.waiting |= waits && look_ahead == LookAhead::Unknown;
        waits
    }

    /// Whether a rule for the last symbol of the start rule and the next one is
    /// there already, or may be.
    fn is_better_put_off(&self, look_ahead: LookAhead) -> bool {
        match look_ahead {
            LookAhead::Nothing => false,
            LookAhead::Unknown => true,
            LookAhead::Symbol(symbol) => {
                let digram = [self.value(self.previous(START)), symbol.raw()];
                self.find(digram).is_some_and(|place| self.rule_with_body_at(place).is_some())
            }
        }
    }

    /// Puts a rule in the place of the digram that is its body.
    fn substitute(&mut self, place: Place, rule: u32) {
        let second = self.next(place);
        let before = self.previous(place);
        for broken in [before, place, second] {
            self.forget(broken);
        }
        for value in [self.value(place), self.value(second)] {
            if value & HEAD == RULE {
                self.rules[(value & NUMBER) as usize].uses -= 1;
            }
        }
        self.rules[rule as usize].uses += 1;
        self.nodes[place as usize].value = RULE | rule;
        self.link(place, self.next(second));
        self.free_node(second);
        self.unchecked.extend([place, before]);
    }

    /// Writes out the rules in a body of two that are used nowhere else.
    fn keep_useful(&mut self, rule: u32) {
        for place in [self.first(rule), self.last(rule)] {
            let value = self.value(place);
            if value & HEAD == RULE && self.rules[(value & NUMBER) as usize].uses == 1 {
                self.write_out(place);
            }
        }
    }

    /// Puts the body of a rule in the place of its only use.
    fn write_out(&mut self, place: Place) {
        let rule = self.value(place) & NUMBER;
        let (before, after) = (self.previous(place), self.next(place));
        let (first, last) = (self.first(rule), self.last(rule));
        self.forget(before);
        self.forget(place);
        self.link(before, first);
        self.link(last, after);
        self.free_node(place);
        self.free_node(self.rules[rule as usize].head);
        self.free_rules.push(rule);
        self.unchecked.extend([last, before]);
    }
}

/// Digrams.
impl Grammar {
    /// Where the last digram of the start rule is.
    fn last_digram(&self) -> Place {
        self.previous(self.previous(START))
    }

    /// The place of a digram: the first one, if there are several that overlap. Returns `None`
    /// if there is none here.
    fn first_of_overlapping(&self, mut place: Place) -> Option<Place> {
        let value = self.value(place);
        if value >= HEAD || self.value(self.next(place)) >= HEAD {
            return None;
        }
        if value == self.value(self.next(place)) {
            while self.value(self.previous(place)) == value {
                place = self.previous(place);
            }
        }
        Some(place)
    }

    /// Another place with the digram at `place`, which is the first of those that overlap.
    /// If there is none, this one is entered.
    fn find_or_enter(&mut self, place: Place) -> Option<Place> {
        let digram = digram_at(&self.nodes, place);
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let is_same = |&other: &Place| digram_at(nodes, other) == digram;
        let hash_again = |&other: &Place| hasher.hash_one(digram_at(nodes, other));
        match self.digrams.entry(hasher.hash_one(digram), is_same, hash_again) {
            Entry::Vacant(vacant) => {
                vacant.insert(place);
                None
            }
            Entry::Occupied(mut known) => {
                let second = nodes[place as usize].next;
                let other = *known.get();
                if other != place && other != second {
                    return Some(other);
                }
                *known.get_mut() = place;
                // Of four in a row the third two do not overlap the first two.
                let third = nodes[second as usize].next;
                (digram[0] == digram[1] && digram_at(nodes, third) == digram).then_some(third)
            }
        }
    }

    fn find(&self, digram: [Value; 2]) -> Option<Place> {
        let is_same = |&other: &Place| digram_at(&self.nodes, other) == digram;
        self.digrams.find(self.hasher.hash_one(digram), is_same).copied()
    }

    /// The digram at a place is about to break.
    fn forget(&mut self, place: Place) {
        let digram = digram_at(&self.nodes, place);
        if digram[0] >= HEAD || digram[1] >= HEAD {
            return;
        }
        let is_this = |&other: &Place| other == place;
        if let Ok(known) = self.digrams.find_entry(self.hasher.hash_one(digram), is_this) {
            known.remove();
        }
        if digram[0] == digram[1] {
            // One that overlaps may stay, and is not in the index.
            self.unchecked.extend([self.next(place), self.previous(place)]);
        }
    }

    /// The rule whose whole body is the digram at a place.
    fn rule_with_body_at(&self, place: Place) -> Option<u32> {
        let head = self.value(self.previous(place));
        let is_whole = head >= HEAD && self.value(self.next(self.next(place))) == head;
        (is_whole && head != HEAD | START_RULE).then_some(head & NUMBER)
    }
}

/// The two values from a place on.
fn digram_at(nodes: &[Node], place: Place) -> [Value; 2] {
    let node = nodes[place as usize];
    [node.value, nodes[node.next as usize].value]
}

/// Rings.
impl Grammar {
    fn value(&self, place: Place) -> Value {
        self.nodes[place as usize].value
    }

    fn next(&self, place: Place) -> Place {
        self.nodes[place as usize].next
    }

    fn previous(&self, place: Place) -> Place {
        self.nodes[place as usize].previous
    }

    fn first(&self, rule: u32) -> Place {
        self.next(self.rules[rule as usize].head)
    }

    fn last(&self, rule: u32) -> Place {
        self.previous(self.rules[rule as usize].head)
    }

    fn link(&mut self, left: Place, right: Place) {
        self.nodes[left as usize].next = right;
        self.nodes[right as usize].previous = left;
    }

    /// A ring with these two items, each with one more use.
    fn new_rule(&mut self, body: [Value; 2]) -> Result<u32> {
        let rule = match self.free_rules.pop() {
            Some(rule) => rule,
            None => {
                self.rules.push(Rule { head: START, uses: 0 });
                self.rules.len() as u32 - 1
            }
        };
        if rule == NUMBER {
            return Err(Error::limit("the sequitur folders make fewer than 2^30 rules"));
        }
        let head = self.new_node(HEAD | rule)?;
        self.rules[rule as usize] = Rule { head, uses: 0 };
        let mut last = head;
        for value in body {
            let new = self.new_node(value)?;
            self.link(last, new);
            last = new;
            if value & HEAD == RULE {
                self.rules[(value & NUMBER) as usize].uses += 1;
            }
        }
        self.link(last, head);
        Ok(rule)
    }

    fn new_node(&mut self, value: Value) -> Result<Place> {
        let node = Node { value, previous: START, next: START };
        if let Some(place) = self.free_nodes.pop() {
            self.nodes[place as usize] = node;
            return Ok(place);
        }
        let place = Place::try_from(self.nodes.len());
        let place = place.map_err(|_| Error::limit("the sequitur folders make fewer than 2^32 items"))?;
        self.nodes.push(node);
        Ok(place)
    }

    fn free_node(&mut self, place: Place) {
        self.nodes[place as usize].value = FREE;
        self.free_nodes.push(place);
    }
}

/// Conversion to a fold.
impl Grammar {
    /// Adds the rules to a builder and returns the start rule.
    pub(super) fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId> {
        let mut added: Vec<Option<RuleId>> = vec![None; self.rules.len()];
        // The items so far of all rules that are open, and where those of each begin.
        let mut items: Vec<Item> = Vec::new();
        let mut open = vec![(self.first(START_RULE), 0)];
        while let Some((place, start)) = open.last_mut() {
            let value = self.value(*place);
            let target = match value & HEAD {
                HEAD if value == HEAD | START_RULE => break,
                HEAD => {
                    added[(value & NUMBER) as usize] = Some(builder.rule(&items[*start..])?);
                    items.truncate(*start);
                    open.pop();
                    continue;
                }
                RULE => match added[(value & NUMBER) as usize] {
                    Some(rule) => Target::Rule(rule),
                    None => {
                        open.push((self.first(value & NUMBER), items.len()));
                        continue;
                    }
                },
                _ => Target::Symbol(Symbol::from_raw(value)),
            };
            *place = self.next(*place);
            items.push(Item::new(target, 1));
        }
        builder.root_rule(items)
    }
}
