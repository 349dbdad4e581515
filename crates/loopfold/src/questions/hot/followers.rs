//! What can come after a part of a fold, wherever the part is used.
//!
//! A *part* is a symbol or a rule; both have numbers of one kind here. Where a part is
//! used, one of three things follows it: the part again, if its item repeats; the next
//! item of the rule; or, if it is the last item, whatever follows the rule. The first
//! two are kept for every part, sorted by the first event of what follows, with the
//! number of times that happens in all streams, so that a question can add up whole
//! classes of followers without looking at each.
//!
//! Cost: a counting sort over the items; about 60 bytes an item. The search jumps
//! from item to item all over the fold, so what it wants to know of one lies together.

use crate::fold::{Fold, Item, Target, rule_uses, symbol_counts_of};
use crate::{Error, Result, RuleId};
use std::ops::Range;

/// A symbol or a rule: symbols first, then rules.
pub(super) type Part = u32;

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
    turn: u32,
    /// How often the rule that the item is in is unfolded.
    uses: u64,
}

/// The subpath began in another repetition of the same item.
const LOOPED: u32 = 1 << 31;

/// Items beyond this number cannot be told from those with a mark.
const LARGEST_FOLD: usize = 1 << 31;

impl Place {
    /// The item, by its number among those of all rules.
    pub(super) fn item(self) -> usize {
        self.item as usize
    }

    /// How often the rule that the item is in is unfolded.
    pub(super) fn uses(self) -> u64 {
        self.uses
    }

    fn is_looped(self) -> bool {
        self.turn & LOOPED != 0
    }

    fn passed(self) -> u64 {
        u64::from(self.turn & !LOOPED)
    }

    /// The same, one repetition on.
    fn again(self) -> Self {
        Self { turn: self.turn + 1, ..self }
    }
}

/// A place that follows a part.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// The item, and [`LOOPED`] if it is the one before again.
    item: u32,
    part: Part,
    /// The first event of the part.
    symbol: u32,
    uses: u64,
}

impl Record {
    fn place(self) -> Place {
        Place { item: self.item & !LOOPED, turn: self.item & LOOPED, uses: self.uses }
    }
}

/// Followers of one part that begin with the same event.
#[derive(Clone, Copy, Debug)]
struct Class {
    symbol: u32,
    /// The first of its records; the next class begins where it ends.
    records: u32,
    /// How often the part is followed so.
    count: u64,
}

/// What the search wants to know of an item.
#[derive(Clone, Copy, Debug)]
struct Spot {
    part: Part,
    /// The first event of the part.
    first: u32,
    /// The rule that the item is in.
    rule: u32,
    /// How often it repeats, if that is less than [`MANY`].
    times: u32,
}

const MANY: u32 = u32::MAX;

/// Where some occurrences go on after the end of a part.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// At a place: the part there and its first event, and how many occurrences go on so.
    Place { place: Place, part: Part, symbol: u32, count: u64 },
    /// With whatever follows this part.
    After(Part),
}

/// The parts of a fold and what follows each.
pub(super) struct Followers<'a> {
    pub(super) fold: &'a Fold,
    symbols: u32,
    /// How often each rule is unfolded.
    uses: Vec<u64>,
    symbol_counts: Vec<u64>,
    spots: Vec<Spot>,
    /// How many events each part is, or [`MANY`].
    lengths: Vec<u32>,
    /// For each part the first of its classes.
    class_starts: Vec<u32>,
    classes: Vec<Class>,
    records: Vec<Record>,
    /// For each part the first of the rules that end with it.
    ended_starts: Vec<u32>,
    ended: Vec<u32>,
}

impl<'a> Followers<'a> {
    pub(super) fn new(fold: &'a Fold) -> Result<Self> {
        let items = fold.all_items();
        if items.len() >= LARGEST_FOLD {
            return Err(Error::limit(format_args!("a fold of {} items is too large for this", items.len())));
        }
        let uses = rule_uses(fold)?;
        let mut followers = Self {
            fold,
            symbols: fold.alphabet().len() as u32,
            symbol_counts: symbol_counts_of(fold, &uses)?,
            uses,
            spots: Vec::with_capacity(items.len()),
            lengths: Vec::new(),
            class_starts: Vec::new(),
            classes: Vec::new(),
            records: Vec::new(),
            ended_starts: Vec::new(),
            ended: Vec::new(),
        };
        followers.find_spots(items);
        followers.find_classes();
        followers.find_ended();
        Ok(followers)
    }

    fn find_spots(&mut self, items: &[Item]) {
        let mut first: Vec<u32> = (0..self.symbols).collect();
        self.lengths.resize(first.len(), 1);
        for rule in self.fold.rules() {
            let range = self.fold.item_range(rule);
            let start = range.start;
            for &item in &items[range] {
                let part = self.part(item.target());
                let times = u32::try_from(item.times()).unwrap_or(MANY);
                self.spots.push(Spot { part, first: first[part as usize], rule: rule.raw(), times });
            }
            // Only the rule of an empty stream has no first event, and nothing contains it.
            first.push(self.spots.get(start).map_or(0, |spot| spot.first));
            self.lengths.push(u32::try_from(self.fold.length(rule)).unwrap_or(MANY));
        }
    }

    /// Every place that follows a part, by the part, and by its first event for each.
    fn find_classes(&mut self) {
        let mut starts = vec![0u32; self.parts() + 1];
        self.each_record(|before, _| starts[before as usize + 1] += 1);
        for part in 0..self.parts() {
            starts[part + 1] += starts[part];
        }
        let mut records = vec![Record::default(); starts[self.parts()] as usize];
        let mut next = starts.clone();
        self.each_record(|before, record| {
            let at = &mut next[before as usize];
            records[*at as usize] = record;
            *at += 1;
        });
        for part in 0..self.parts() {
            let of_part = starts[part] as usize..starts[part + 1] as usize;
            self.class_starts.push(self.classes.len() as u32);
            records[of_part.clone()].sort_by_key(|record| record.symbol);
            for (at, record) in of_part.clone().zip(&records[of_part.clone()]) {
                let count = self.count(record.place());
                match self.classes.last_mut() {
                    Some(class) if at > of_part.start && class.symbol == record.symbol => {
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

    /// Goes through the places that follow parts, with the part before each.
    fn each_record(&self, mut visit: impl FnMut(Part, Record)) {
        for rule in self.used_rules() {
            let uses = self.uses(rule);
            let range = self.fold.item_range(rule);
            for item in range.clone() {
                let Spot { part, first, times, .. } = self.spots[item];
                if item > range.start {
                    visit(self.spots[item - 1].part, Record { item: item as u32, part, symbol: first, uses });
                }
                if times > 1 {
                    visit(part, Record { item: item as u32 | LOOPED, part, symbol: first, uses });
                }
            }
        }
    }

    fn find_ended(&mut self) {
        let rules = self.used_rules().filter(|&rule| !self.fold.body(rule).is_empty());
        let rules: Vec<u32> = rules.map(RuleId::raw).collect();
        let last = |rule| self.spots[self.fold.item_range(RuleId::from_raw(rule)).end - 1].part;
        (self.ended, self.ended_starts) = counting_sort(&rules, self.parts(), last);
    }

    /// The rules that some stream uses.
    pub(super) fn used_rules(&self) -> impl Iterator<Item = RuleId> {
        self.fold.rules().filter(|&rule| self.uses(rule) > 0)
    }

    /// How often a rule is unfolded.
    pub(super) fn uses(&self, rule: RuleId) -> u64 {
        self.uses[rule.index()]
    }

    /// How many parts there are.
    pub(super) fn parts(&self) -> usize {
        self.lengths.len()
    }

    /// How many symbols there are.
    pub(super) fn symbols(&self) -> usize {
        self.symbols as usize
    }

    /// The part that an item repeats.
    pub(super) fn part(&self, target: Target) -> Part {
        match target {
            Target::Symbol(symbol) => symbol.raw(),
            Target::Rule(rule) => self.part_of_rule(rule.raw()),
        }
    }

    fn part_of_rule(&self, rule: u32) -> Part {
        self.symbols + rule
    }

    /// The rule that a part is, unless it is a symbol.
    pub(super) fn rule(&self, part: Part) -> Option<RuleId> {
        part.checked_sub(self.symbols).map(RuleId::from_raw)
    }

    /// How many events a part is; where that is very many, fewer.
    pub(super) fn length(&self, part: Part) -> u32 {
        self.lengths[part as usize]
    }

    fn spot(&self, place: Place) -> Spot {
        self.spots[place.item as usize]
    }

    /// How often the item at a place repeats.
    fn times(&self, place: Place) -> u64 {
        match self.spot(place).times {
            MANY => self.fold.all_items()[place.item as usize].times(),
            times => times.into(),
        }
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
    fn count(&self, place: Place) -> u64 {
        // Most places are not looped, and need no look at their item.
        if place.is_looped() { place.uses * self.left(place).0 } else { place.uses }
    }

    /// How often each symbol occurs.
    pub(super) fn symbol_counts(&self) -> &[u64] {
        &self.symbol_counts
    }

    /// The rules that have a symbol as an item, and how often.
    pub(super) fn rules_with(&self, symbol: u32) -> Vec<(u32, u64)> {
        let items = self.fold.all_items().iter().zip(&self.spots);
        items.filter(|(_, spot)| spot.part == symbol).map(|(item, spot)| (spot.rule, item.times())).collect()
    }

    /// The numbers of all classes.
    pub(super) fn all_classes(&self) -> Range<u32> {
        0..self.classes.len() as u32 - 1
    }

    /// The classes of what follows a part: their numbers.
    pub(super) fn classes(&self, part: Part) -> Range<u32> {
        self.class_starts[part as usize]..self.class_starts[part as usize + 1]
    }

    /// The first event of a class, how often the class follows its part, and the place
    /// and its part if there is only one.
    pub(super) fn class(&self, class: u32) -> (u32, u64, Option<(Place, Part)>) {
        let Class { symbol, count, records } = self.classes[class as usize];
        let only = self.classes[class as usize + 1].records == records + 1;
        let only = only.then(|| self.records[records as usize]);
        (symbol, count, only.map(|record| (record.place(), record.part)))
    }

    /// Where the first event of a class is: the place, its part, and how often.
    pub(super) fn places(&self, class: u32) -> impl Iterator<Item = (Place, Part, u64)> {
        let range = self.classes[class as usize].records..self.classes[class as usize + 1].records;
        let records = &self.records[range.start as usize..range.end as usize];
        records.iter().map(|record| {
            let place = record.place();
            (place, record.part, self.count(place))
        })
    }

    /// The rules that end with a part, as parts.
    pub(super) fn ended_by(&self, part: Part) -> impl Iterator<Item = Part> {
        let range = self.ended_starts[part as usize]..self.ended_starts[part as usize + 1];
        self.ended[range.start as usize..range.end as usize].iter().map(|&rule| self.part_of_rule(rule))
    }

    /// What comes after the end of the repetition in which occurrences end at a place:
    /// another repetition for some, what follows the item for others.
    pub(super) fn after(&self, place: Place) -> (Option<Next>, Option<Next>) {
        let spot = self.spot(place);
        if spot.times == 1 {
            return (None, Some(self.after_item(place, spot.rule)));
        }
        let (occurrences, repeats) = self.left(place);
        // One leaves; of those that began in the item itself, the others go on.
        let leaving = place.is_looped() || repeats == 0;
        let going_on = occurrences - u64::from(leaving);
        let again = (going_on > 0).then(|| Next::Place {
            place: place.again(),
            part: spot.part,
            symbol: spot.first,
            count: going_on * place.uses,
        });
        (again, leaving.then(|| self.after_item(place, spot.rule)))
    }

    fn after_item(&self, place: Place, rule: u32) -> Next {
        match self.spots.get(place.item as usize + 1) {
            Some(next) if next.rule == rule => Next::Place {
                place: Place { item: place.item + 1, turn: 0, uses: place.uses },
                part: next.part,
                symbol: next.first,
                count: place.uses,
            },
            _ => Next::After(self.part_of_rule(rule)),
        }
    }
}

/// Sorts by a key below `keys`, equal ones in the order they were in; and where each key
/// starts.
fn counting_sort(values: &[u32], keys: usize, key: impl Fn(u32) -> u32) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; keys + 1];
    for &value in values {
        starts[key(value) as usize + 1] += 1;
    }
    for at in 0..keys {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut sorted = vec![0; values.len()];
    for &value in values {
        let at = &mut next[key(value) as usize];
        sorted[*at as usize] = value;
        *at += 1;
    }
    (sorted, starts)
}
