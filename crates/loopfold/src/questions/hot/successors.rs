//! An index of what can follow a [`Node`] of a fold, over all its uses.
//!
//! Where a node is used, one of three things follows it: the node again, if its item
//! repeats; the next item of the rule; or, if it is the last item, whatever follows the
//! rule. The first two are kept for every node, sorted by the first event of what follows,
//! with the number of times that happens in all streams, so that a question can add up
//! whole classes of successors without looking at each.
//!
//! Cost: a counting sort over the items; about 60 bytes an item. The search accesses items in
//! random order, so the data of one item lies together.

use crate::fold::measure::bottom_up;
use crate::fold::reach::node_uses;
use crate::fold::{Fold, Grammar, Node};
use crate::{Error, Result, RuleId};
use std::ops::Range;

/// An item in which occurrences of a subpath end, and in which of its repetitions.
///
/// Either the subpath began in an item before this one, and has passed the ends of some
/// repetitions; or it began in a repetition of this item and ends in a later one. Then
/// there is one occurrence for each repetition in which it can end: all but the first
/// one and those that were passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    item: u32,
    /// Repetitions whose ends were passed, and [`LOOPED`].
    repetitions: u32,
    /// How often the rule that the item is in is unfolded.
    uses: u64,
}

/// The subpath began in another repetition of the same item.
const LOOPED: u32 = 1 << 31;

/// Larger item numbers cannot be distinguished from marked ones.
const LARGEST_FOLD: usize = 1 << 31;

impl Place {
    /// In repetition `passed` of an item, of a subpath that began in an item before it. The rule
    /// is unfolded `uses` times.
    pub(super) fn after_another(item: u32, passed: u32, uses: u64) -> Self {
        Self { item, repetitions: passed, uses }
    }

    /// In a repetition of an item, of subpaths that began in an earlier one; `passed` lie between
    /// the two.
    pub(super) fn after_itself(item: u32, passed: u32, uses: u64) -> Self {
        Self { item, repetitions: passed | LOOPED, uses }
    }

    /// The item, by its number among those of all rules.
    pub(super) fn item(self) -> usize {
        self.item as usize
    }

    /// How often the rule that the item is in is unfolded.
    pub(super) fn uses(self) -> u64 {
        self.uses
    }

    fn is_looped(self) -> bool {
        self.repetitions & LOOPED != 0
    }

    fn passed(self) -> u64 {
        u64::from(self.repetitions & !LOOPED)
    }

    /// The same, one repetition on.
    fn again(self) -> Self {
        Self { repetitions: self.repetitions + 1, ..self }
    }
}

/// A place that follows a node.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// The item, and [`LOOPED`] if it is the one before again.
    item: u32,
    node: Node,
    /// The first event of the node.
    symbol: u32,
    uses: u64,
}

impl Record {
    fn place(self) -> Place {
        Place { item: self.item & !LOOPED, repetitions: self.item & LOOPED, uses: self.uses }
    }
}

/// Successors of one node that begin with the same event.
#[derive(Clone, Copy, Debug)]
struct Class {
    symbol: u32,
    /// The first of its records; the next class begins where it ends.
    records: u32,
    /// How often the node is followed so.
    count: u64,
}

/// The data of an item that the search needs.
#[derive(Clone, Copy, Debug)]
struct Spot {
    node: Node,
    /// The first event of the node.
    first: u32,
    /// The rule that the item is in.
    rule: u32,
    /// How often it repeats, if that is less than [`MANY`].
    times: u32,
}

const MANY: u32 = u32::MAX;

/// Where some occurrences continue after the end of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// At a place: the node there and its first event, and how many occurrences continue this
    /// way.
    Place { place: Place, node: Node, symbol: u32, count: u64 },
    /// With whatever follows this node.
    After(Node),
}

/// The items of a fold, and the nodes they repeat.
pub(super) struct Items<'a> {
    pub(super) fold: &'a Fold,
    /// How often each node is unfolded.
    uses: Vec<u64>,
    spots: Vec<Spot>,
    /// How many events each node is, or [`MANY`].
    lengths: Vec<u32>,
}

/// What follows each node of a fold.
pub(super) struct SuccessorIndex<'a> {
    items: &'a Items<'a>,
    /// For each node the first of its classes.
    class_starts: Vec<u32>,
    classes: Vec<Class>,
    records: Vec<Record>,
    /// For each node the first of the rules that end with it.
    ended_starts: Vec<u32>,
    ended: Vec<u32>,
}

impl<'a> Items<'a> {
    pub(super) fn new(fold: &'a Fold) -> Result<Self> {
        let items = fold.all_items();
        if items.len() >= LARGEST_FOLD {
            return Err(Error::limit(format_args!("a fold of {} items is too large for this", items.len())));
        }
        let of_rules = fold.rules().map(|rule| u32::try_from(fold.length(rule)).unwrap_or(MANY));
        let mut items = Self {
            fold,
            uses: node_uses(fold, fold.streams().iter().map(|stream| (fold.rule_node(stream.root()), 1)))?,
            spots: Vec::with_capacity(items.len()),
            lengths: std::iter::repeat_n(1, fold.symbol_count()).chain(of_rules).collect(),
        };
        items.find_spots()?;
        Ok(items)
    }

    fn find_spots(&mut self) -> Result<()> {
        let fold = self.fold;
        // The first event of each node.
        bottom_up(fold, (0..fold.symbol_count() as u32).collect(), |rule, body, first| {
            let start = self.spots.len();
            for &item in body {
                let node = fold.item_node(item);
                let times = u32::try_from(item.times()).unwrap_or(MANY);
                self.spots.push(Spot { node, first: first[node.index()], rule: rule.raw(), times });
            }
            // Only the rule of an empty stream has no first event, and nothing contains it.
            Ok(self.spots.get(start).map_or(0, |spot| spot.first))
        })?;
        Ok(())
    }

    /// The rules that some stream uses.
    pub(super) fn used_rules(&self) -> impl Iterator<Item = RuleId> {
        self.fold.rules().filter(|&rule| self.uses(rule) > 0)
    }

    /// How often a rule is unfolded.
    pub(super) fn uses(&self, rule: RuleId) -> u64 {
        self.uses[self.fold.rule_node(rule).index()]
    }

    /// How often the rule that an item is in is unfolded.
    pub(super) fn uses_of_item(&self, item: usize) -> u64 {
        self.uses(RuleId::from_raw(self.spots[item].rule))
    }

    /// The rule that a node is; `None` for a symbol.
    pub(super) fn rule(&self, node: Node) -> Option<RuleId> {
        self.fold.rule_of(node)
    }

    /// How many events a node is; where that is very many, fewer.
    pub(super) fn length(&self, node: Node) -> u32 {
        self.lengths[node.index()]
    }

    fn spot(&self, place: Place) -> Spot {
        self.spots[place.item as usize]
    }

    /// The node of an item and how often it repeats.
    pub(super) fn item(&self, item: usize) -> (Node, u64) {
        let Spot { node, times, .. } = self.spots[item];
        let times = if times == MANY { self.fold.all_items()[item].times() } else { times.into() };
        (node, times)
    }

    /// How often the item at a place repeats.
    fn times(&self, place: Place) -> u64 {
        self.item(place.item()).1
    }

    /// How many occurrences end at a place each time its rule is unfolded, and how many
    /// repetitions are still to come for the first of them.
    pub(super) fn left(&self, place: Place) -> (u64, u64) {
        let left = self.times(place) - 1 - place.passed();
        if place.is_looped() { (left, left - 1) } else { (1, left) }
    }

    /// The rule of a place, and how many occurrences end there each time it is unfolded.
    pub(super) fn count_in_rule(&self, place: Place) -> (u32, u64) {
        (self.spot(place).rule, self.left(place).0)
    }

    /// How many occurrences end at a place, in all streams. Fits 64 bits, as it is no
    /// more than its last event occurs.
    pub(super) fn count(&self, place: Place) -> u64 {
        // Most places are not looped, and need no look at their item.
        if place.is_looped() { place.uses * self.left(place).0 } else { place.uses }
    }

    /// How often each symbol occurs.
    pub(super) fn symbol_counts(&self) -> &[u64] {
        &self.uses[..self.fold.symbol_count()]
    }

    /// The rules that have a symbol as an item, and how often.
    pub(super) fn rules_with(&self, symbol: u32) -> Vec<(u32, u64)> {
        let items = self.fold.all_items().iter().zip(&self.spots);
        items
            .filter(|(_, spot)| spot.node.raw() == symbol)
            .map(|(item, spot)| (spot.rule, item.times()))
            .collect()
    }

    /// What comes after the end of the repetition in which occurrences end at a place:
    /// another repetition for some, what follows the item for others.
    pub(super) fn after(&self, place: Place) -> (Option<Next>, Option<Next>) {
        let spot = self.spot(place);
        if spot.times == 1 {
            return (None, Some(self.after_item(place, spot.rule)));
        }
        let (occurrences, repeats) = self.left(place);
        // One leaves; of those that began in the item itself, the others continue.
        let leaving = place.is_looped() || repeats == 0;
        let going_on = occurrences - u64::from(leaving);
        let again = (going_on > 0).then(|| Next::Place {
            place: place.again(),
            node: spot.node,
            symbol: spot.first,
            count: going_on * place.uses,
        });
        (again, leaving.then(|| self.after_item(place, spot.rule)))
    }

    fn after_item(&self, place: Place, rule: u32) -> Next {
        match self.spots.get(place.item as usize + 1) {
            Some(next) if next.rule == rule => Next::Place {
                place: Place { item: place.item + 1, repetitions: 0, uses: place.uses },
                node: next.node,
                symbol: next.first,
                count: place.uses,
            },
            _ => Next::After(self.fold.rule_node(RuleId::from_raw(rule))),
        }
    }
}

impl<'a> std::ops::Deref for SuccessorIndex<'a> {
    type Target = Items<'a>;

    fn deref(&self) -> &Items<'a> {
        self.items
    }
}

impl<'a> SuccessorIndex<'a> {
    pub(super) fn new(items: &'a Items<'a>) -> Self {
        let mut successors = Self {
            items,
            class_starts: Vec::new(),
            classes: Vec::new(),
            records: Vec::new(),
            ended_starts: Vec::new(),
            ended: Vec::new(),
        };
        successors.find_classes();
        successors.find_ended();
        successors
    }

    /// Every place that follows a node, by the node, and by its first event for each.
    fn find_classes(&mut self) {
        let nodes = self.fold.node_count();
        let mut starts = vec![0u32; nodes + 1];
        self.each_record(|before, _| starts[before.index() + 1] += 1);
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let none = Record { item: 0, node: Node::new(0), symbol: 0, uses: 0 };
        let mut records = vec![none; starts[nodes] as usize];
        let mut next = starts.clone();
        self.each_record(|before, record| {
            let at = &mut next[before.index()];
            records[*at as usize] = record;
            *at += 1;
        });
        for node in 0..nodes {
            let of_node = starts[node] as usize..starts[node + 1] as usize;
            self.class_starts.push(self.classes.len() as u32);
            records[of_node.clone()].sort_unstable_by_key(|record| record.symbol);
            for (at, record) in of_node.clone().zip(&records[of_node.clone()]) {
                let count = self.count(record.place());
                match self.classes.last_mut() {
                    Some(class) if at > of_node.start && class.symbol == record.symbol => {
                        class.count += count
                    }
                    _ => self.classes.push(Class { symbol: record.symbol, records: at as u32, count }),
                }
            }
        }
        self.class_starts.push(self.classes.len() as u32);
        self.classes.push(Class { symbol: 0, records: records.len() as u32, count: 0 });
        self.records = records;
    }

    /// Goes through the places that follow nodes, with the node before each.
    fn each_record(&self, mut visit: impl FnMut(Node, Record)) {
        for rule in self.used_rules() {
            let uses = self.uses(rule);
            let range = self.fold.item_range(rule);
            for item in range.clone() {
                let Spot { node, first, times, .. } = self.spots[item];
                if item > range.start {
                    visit(self.spots[item - 1].node, Record { item: item as u32, node, symbol: first, uses });
                }
                if times > 1 {
                    visit(node, Record { item: item as u32 | LOOPED, node, symbol: first, uses });
                }
            }
        }
    }

    fn find_ended(&mut self) {
        let rules = self.used_rules().filter(|&rule| !self.fold.body(rule).is_empty());
        let rules: Vec<u32> = rules.map(RuleId::raw).collect();
        let last = |rule| self.spots[self.fold.item_range(RuleId::from_raw(rule)).end - 1].node;
        (self.ended, self.ended_starts) = counting_sort(&rules, self.fold.node_count(), last);
    }

    /// The numbers of all classes.
    pub(super) fn all_classes(&self) -> Range<u32> {
        0..self.classes.len() as u32 - 1
    }

    /// The classes of what follows a node: their numbers.
    pub(super) fn classes(&self, node: Node) -> Range<u32> {
        self.class_starts[node.index()]..self.class_starts[node.index() + 1]
    }

    /// The first event of a class, how often the class follows its node, and the place
    /// and its node if there is only one.
    pub(super) fn class(&self, class: u32) -> (u32, u64, Option<(Place, Node)>) {
        let Class { symbol, count, records } = self.classes[class as usize];
        let only = self.classes[class as usize + 1].records == records + 1;
        let only = only.then(|| self.records[records as usize]);
        (symbol, count, only.map(|record| (record.place(), record.node)))
    }

    /// Where the first event of a class is: the place, its node, and how often.
    pub(super) fn places(&self, class: u32) -> impl Iterator<Item = (Place, Node, u64)> {
        let range = self.classes[class as usize].records..self.classes[class as usize + 1].records;
        let records = &self.records[range.start as usize..range.end as usize];
        records.iter().map(|record| {
            let place = record.place();
            (place, record.node, self.count(place))
        })
    }

    /// The rules that end with a node.
    pub(super) fn ended_by(&self, node: Node) -> impl Iterator<Item = Node> {
        let range = self.ended_starts[node.index()]..self.ended_starts[node.index() + 1];
        let rules = &self.ended[range.start as usize..range.end as usize];
        rules.iter().map(|&rule| self.fold.rule_node(RuleId::from_raw(rule)))
    }
}

/// Sorts by a key below `keys`, equal ones in the order they were in; and where each key
/// starts.
fn counting_sort(values: &[u32], keys: usize, key: impl Fn(u32) -> Node) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; keys + 1];
    for &value in values {
        starts[key(value).index() + 1] += 1;
    }
    for at in 0..keys {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut sorted = vec![0; values.len()];
    for &value in values {
        let at = &mut next[key(value).index()];
        sorted[*at as usize] = value;
        *at += 1;
    }
    (sorted, starts)
}
