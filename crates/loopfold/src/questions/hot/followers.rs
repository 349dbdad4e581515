//! What can come after a part of a fold, wherever the part is used.
//!
//! A *part* is a symbol or a rule; both have numbers of one kind here. Where a part is
//! used, one of three things follows it: the part again, if its item repeats; the next
//! item of the rule; or, if it is the last item, whatever follows the rule. The first
//! two are kept for every part, sorted by the first event of what follows, with the
//! number of times that happens in all streams, so that a question can add up whole
//! classes of followers without looking at each.
//!
//! Cost: two counting sorts over the items; 4 bytes for each follower and 16 for each
//! class of them, at most about 30 bytes an item.

use crate::fold::{Fold, Item, Target, rule_uses};
use crate::{Error, Result, RuleId};
use std::ops::Range;

/// A symbol or a rule: symbols first, then rules.
pub(super) type Part = u32;

/// An item in which occurrences of a subpath end, and in which of its repetitions.
///
/// Either the subpath began in an item before this one, and has `passed` the ends of as
/// many repetitions; or it began in a repetition of this item and ends in a later one.
/// Then there is one occurrence for each repetition in which it can end: all but the
/// first one and `passed` more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) item: u32,
    /// Repetitions whose ends were passed since, and [`LOOPED`].
    turn: u32,
}

/// The subpath began in another repetition of the same item.
const LOOPED: u32 = 1 << 31;

/// Items beyond this number cannot be told from those with a mark.
const LARGEST_FOLD: usize = 1 << 31;

impl Place {
    fn entered(item: u32) -> Self {
        Self { item, turn: 0 }
    }

    fn looped(item: u32) -> Self {
        Self { item, turn: LOOPED }
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

    fn from_record(record: u32) -> Self {
        if record & LOOPED == 0 { Self::entered(record) } else { Self::looped(record & !LOOPED) }
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

/// What comes next after the end of a place's current repetition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// The same part again, or the next item.
    Place(Place, u64),
    /// Whatever follows this part.
    After(Part),
}

/// The parts of a fold and what follows each.
pub(super) struct Followers<'a> {
    pub(super) fold: &'a Fold,
    items: &'a [Item],
    symbols: u32,
    /// How often each rule is unfolded.
    uses: Vec<u64>,
    /// The rule that each item is in.
    rule_of: Vec<u32>,
    /// The first event of each part.
    first: Vec<u32>,
    /// For each part the first of its classes.
    class_starts: Vec<u32>,
    classes: Vec<Class>,
    /// Places, sorted by the part before them and their first event.
    records: Vec<u32>,
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
        let symbols = fold.alphabet().len() as u32;
        let mut followers = Self {
            fold,
            items,
            symbols,
            uses: rule_uses(fold)?,
            rule_of: Vec::with_capacity(items.len()),
            first: (0..symbols).collect(),
            class_starts: Vec::new(),
            classes: Vec::new(),
            records: Vec::new(),
            ended_starts: Vec::new(),
            ended: Vec::new(),
        };
        followers.number_rules();
        followers.find_records();
        followers.find_classes();
        followers.find_ended();
        Ok(followers)
    }

    fn number_rules(&mut self) {
        for rule in self.fold.rules() {
            let range = self.fold.item_range(rule);
            self.rule_of.resize(range.end, rule.raw());
            // Only the rule of an empty stream has no first event, and nothing contains it.
            let first = self.items[range].first().map_or(0, |&item| self.first[self.part(item) as usize]);
            self.first.push(first);
        }
    }

    /// The parts, each with the rules whose last item it is, and the records of what
    /// else follows it, all in order.
    fn find_records(&mut self) {
        let mut records = Vec::with_capacity(self.items.len());
        for rule in self.used_rules() {
            let range = self.fold.item_range(rule);
            for item in range.clone() {
                if self.items[item].times() > 1 {
                    records.push(item as u32 | LOOPED);
                }
                if item + 1 < range.end {
                    records.push(item as u32 + 1);
                }
            }
        }
        let by_symbol = counting_sort(&records, self.symbols as usize, |record| self.first_of_record(record));
        let by_part = counting_sort(&by_symbol.0, self.parts(), |record| self.part_before(record));
        (self.records, self.class_starts) = by_part;
    }

    /// Turns the starts of the records of each part into starts of its classes.
    fn find_classes(&mut self) {
        let starts = std::mem::take(&mut self.class_starts);
        for part in 0..self.parts() {
            self.class_starts.push(self.classes.len() as u32);
            let mut before = None;
            for at in starts[part]..starts[part + 1] {
                let record = self.records[at as usize];
                let (symbol, count) = (self.first_of_record(record), self.count(Place::from_record(record)));
                match self.classes.last_mut() {
                    Some(class) if before == Some(symbol) => class.count += count,
                    _ => self.classes.push(Class { symbol, records: at, count }),
                }
                before = Some(symbol);
            }
        }
        self.class_starts.push(self.classes.len() as u32);
        self.classes.push(Class { symbol: 0, records: self.records.len() as u32, count: 0 });
    }

    fn find_ended(&mut self) {
        let rules: Vec<u32> =
            self.used_rules().filter(|&rule| self.fold.length(rule) > 0).map(RuleId::raw).collect();
        let last = |rule| {
            let range = self.fold.item_range(RuleId::from_raw(rule));
            self.part(self.items[range.end - 1])
        };
        (self.ended, self.ended_starts) = counting_sort(&rules, self.parts(), last);
    }

    /// The rules that some stream uses.
    pub(super) fn used_rules(&self) -> impl Iterator<Item = RuleId> {
        self.fold.rules().filter(|rule| self.uses[rule.index()] > 0)
    }

    fn first_of_record(&self, record: u32) -> u32 {
        self.first_of(self.part_at(record & !LOOPED))
    }

    fn part_before(&self, record: u32) -> Part {
        let place = Place::from_record(record);
        self.part_at(if place.is_looped() { place.item } else { place.item - 1 })
    }

    /// How many parts there are.
    pub(super) fn parts(&self) -> usize {
        self.first.len()
    }

    /// How many symbols there are.
    pub(super) fn symbols(&self) -> usize {
        self.symbols as usize
    }

    fn part(&self, item: Item) -> Part {
        match item.target() {
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

    /// What an item repeats.
    pub(super) fn part_at(&self, item: u32) -> Part {
        self.part(self.items[item as usize])
    }

    /// The first event of a part.
    pub(super) fn first_of(&self, part: Part) -> u32 {
        self.first[part as usize]
    }

    /// How many events a part is, or `most` if it is more.
    pub(super) fn length(&self, part: Part, most: u32) -> u32 {
        let length = self.rule(part).map_or(1, |rule| self.fold.length(rule));
        length.min(u64::from(most)) as u32
    }

    /// The rule that an item is in, by its number.
    pub(super) fn rule_at(&self, item: u32) -> u32 {
        self.rule_of[item as usize]
    }

    /// How often a rule is unfolded.
    pub(super) fn uses(&self, rule: RuleId) -> u64 {
        self.uses[rule.index()]
    }

    fn uses_at(&self, item: u32) -> u64 {
        self.uses[self.rule_at(item) as usize]
    }

    /// How many occurrences end at a place each time its rule is unfolded.
    pub(super) fn count_in_rule(&self, place: Place) -> u64 {
        if place.is_looped() { self.items[place.item as usize].times() - 1 - place.passed() } else { 1 }
    }

    /// How many occurrences end at a place, in all streams. Fits 64 bits, as it is no
    /// more than its last event occurs.
    pub(super) fn count(&self, place: Place) -> u64 {
        self.count_in_rule(place) * self.uses_at(place.item)
    }

    /// How often each symbol occurs.
    pub(super) fn symbol_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.symbols()];
        for (item, rule) in self.items.iter().zip(&self.rule_of) {
            if let Target::Symbol(symbol) = item.target() {
                counts[symbol.index()] += item.times() * self.uses[*rule as usize];
            }
        }
        counts
    }

    /// The rules that have a symbol as an item, and how often.
    pub(super) fn rules_with(&self, symbol: u32) -> Vec<(u32, u64)> {
        let items = self.items.iter().zip(&self.rule_of);
        let has = |(item, rule): (&Item, &u32)| (self.part(*item) == symbol).then(|| (*rule, item.times()));
        items.filter_map(has).collect()
    }

    /// The classes of what follows a part: their numbers.
    pub(super) fn classes(&self, part: Part) -> Range<u32> {
        self.class_starts[part as usize]..self.class_starts[part as usize + 1]
    }

    /// The first event of a class, and how often the class follows its part.
    pub(super) fn class(&self, class: u32) -> (u32, u64) {
        let Class { symbol, count, .. } = self.classes[class as usize];
        (symbol, count)
    }

    /// Where the first event of a class is.
    pub(super) fn places(&self, class: u32) -> impl Iterator<Item = Place> {
        let range = self.classes[class as usize].records..self.classes[class as usize + 1].records;
        self.records[range.start as usize..range.end as usize]
            .iter()
            .map(|&record| Place::from_record(record))
    }

    /// The rules that end with a part, as parts.
    pub(super) fn ended_by(&self, part: Part) -> impl Iterator<Item = Part> {
        let range = self.ended_starts[part as usize]..self.ended_starts[part as usize + 1];
        self.ended[range.start as usize..range.end as usize].iter().map(|&rule| self.part_of_rule(rule))
    }

    /// What comes after the end of the repetition in which occurrences end at a place:
    /// another repetition for some, what follows the item for others.
    pub(super) fn after(&self, place: Place) -> (Option<Next>, Option<Next>) {
        let uses = self.uses_at(place.item);
        let times = self.items[place.item as usize].times();
        let left = times - 1 - place.passed();
        let (going_on, leaving) = if place.is_looped() { (left - 1, true) } else { (left.min(1), left == 0) };
        let again = (going_on > 0).then(|| Next::Place(place.again(), going_on * uses));
        (again, leaving.then(|| self.after_item(place.item, uses)))
    }

    fn after_item(&self, item: u32, uses: u64) -> Next {
        let rule = self.rule_at(item);
        match self.rule_of.get(item as usize + 1) {
            Some(&next) if next == rule => Next::Place(Place::entered(item + 1), uses),
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
