//! What a fold holds of one function: the rules and items with a symbol of it, and nothing
//! else.
//!
//! All that a search for a path does, it does here: joining the values of items, and
//! walking to where the path occurs. Items without a symbol of the function do nothing to
//! its paths, so they are left out; rules that are alike without them are one *part*, with
//! one value. A projection depends on the function alone: many paths can be looked for in
//! one, each at the cost of its parts.
//!
//! Made by one pass over all items, one to two nanoseconds each and some ten more for those
//! that stay; or from [`Uses`](super::uses::Uses) or an index, see there, at the cost of
//! what stays. Memory: 8 bytes an item that stays, 12 a rule.

mod stretches;

use super::functions::Step;
use super::way::Way;
use crate::fold::{Fold, Item, Target};
use crate::{Error, Result, RuleId, Symbol};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher as _;
use std::ops::Range;
pub(super) use stretches::{Stretch, Stretches};

/// What has one value: a symbol of the function, or all rules that hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part(u32);

impl Part {
    /// What holds nothing of the function.
    pub(super) const NONE: Self = Self(Self::REPEATED - 1);
    const REPEATED: u32 = 1 << 31;

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// An item that stays.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Where it is among all items of the fold.
    place: u32,
    /// The part of its target; the highest bit tells that it repeats.
    part: u32,
}

impl Held {
    fn new(place: u32, part: Part, item: Item) -> Self {
        Self { place, part: part.0 | if item.times() > 1 { Part::REPEATED } else { 0 } }
    }

    fn part(self) -> Part {
        Part(self.part & !Part::REPEATED)
    }

    fn repeats(self) -> bool {
        self.part & Part::REPEATED != 0
    }
}

/// The part of a fold that one function has.
#[derive(Debug, Default)]
pub(super) struct Projection {
    /// What symbols do to frames of the function; the first parts, in order.
    steps: Vec<(Symbol, Step)>,
    /// The rules that hold something, in order.
    rules: Vec<RuleId>,
    /// Where the items of each end.
    ends: Vec<u32>,
    /// The part that each is.
    parts: Vec<Part>,
    items: Vec<Held>,
    /// For each part that is no symbol, the first rule that is it, by its index in `rules`.
    bodies: Vec<u32>,
    /// True if the function never calls itself and is nowhere open without having been
    /// entered, so that its frames need no levels.
    is_tame: bool,
    /// How many rules were looked at to make this.
    visited: u64,
}

impl Projection {
    /// One pass over all rules.
    pub(super) fn of(fold: &Fold, steps: &[(Symbol, Step)], alike: Alike) -> Result<Self> {
        let mut maker = Maker::new(fold, steps, alike)?;
        // Rules, then symbols.
        let rules = fold.rules().len();
        let mut parts = vec![Part::NONE; rules + fold.alphabet().len()];
        for (index, (symbol, _)) in steps.iter().enumerate() {
            parts[rules + symbol.index()] = Part(index as u32);
        }
        for rule in fold.rules() {
            let (body, first) = (fold.body(rule), fold.item_range(rule).start);
            // A symbol that is not in the alphabet is no part of anything.
            let part_of = |item: Item| parts.get(item.slot(rules as u32)).copied().unwrap_or(Part::NONE);
            maker.hold(body, first, part_of);
            parts[rule.index()] = maker.close(rule);
        }
        Ok(maker.finish(fold.rules().len() as u64))
    }

    /// From the places of all items that hold something, in order, and the rules that they
    /// are in. `visited` rules were looked at for this, and `scratch` has room for a part
    /// of each rule and symbol.
    pub(super) fn of_places(
        fold: &Fold,
        steps: &[(Symbol, Step)],
        places: impl Iterator<Item = (u32, RuleId)>,
        scratch: &mut Scratch,
        alike: Alike,
        visited: u64,
    ) -> Result<Self> {
        let mut maker = Maker::new(fold, steps, alike)?;
        for (index, (symbol, _)) in steps.iter().enumerate() {
            scratch.symbols[symbol.index()] = Part(index as u32);
        }
        let mut current = None;
        for (place, rule) in places {
            if current != Some(rule)
                && let Some(before) = current.replace(rule)
            {
                scratch.set(before, maker.close(before));
            }
            let item = fold.all_items()[place as usize];
            let part = match item.target() {
                Target::Symbol(symbol) => scratch.symbols.get(symbol.index()).copied().unwrap_or(Part::NONE),
                Target::Rule(inner) => scratch.get(inner),
            };
            if part != Part::NONE {
                maker.items.push(Held::new(place, part, item));
            }
        }
        if let Some(last) = current {
            scratch.set(last, maker.close(last));
        }
        scratch.clear();
        steps.iter().for_each(|(symbol, _)| scratch.symbols[symbol.index()] = Part::NONE);
        Ok(maker.finish(visited))
    }

    /// The same with rules that hold the same as one part.
    pub(super) fn joined(&self, fold: &Fold) -> Result<Self> {
        let mut maker = Maker::new(fold, &self.steps, Alike::Joined)?;
        let mut parts: Vec<Part> = (0..self.steps.len()).map(|index| Part(index as u32)).collect();
        parts.resize(self.len(), Part::NONE);
        for (index, &rule) in self.rules.iter().enumerate() {
            maker.items.extend(self.items[self.range(index)].iter().map(|held| {
                let repeated = held.part & Part::REPEATED;
                Held { part: parts[held.part().index()].0 | repeated, ..*held }
            }));
            parts[self.parts[index].index()] = maker.close(rule);
        }
        Ok(maker.finish(self.visited))
    }

    /// What symbols do to frames of the function: the parts that are symbols, in order.
    pub(super) fn steps(&self) -> &[(Symbol, Step)] {
        &self.steps
    }

    /// How many parts there are.
    pub(super) fn len(&self) -> usize {
        self.steps.len() + self.bodies.len()
    }

    /// The bodies of the parts that are rules, each after the parts it is made of.
    pub(super) fn bodies<'a>(
        &'a self,
        fold: &'a Fold,
    ) -> impl Iterator<Item = impl Iterator<Item = (Part, u64)> + 'a> + 'a {
        self.bodies.iter().map(|&rule| {
            let held = &self.items[self.range(rule as usize)];
            held.iter().map(|&held| (held.part(), self.times(fold, held)))
        })
    }

    #[inline]
    fn times(&self, fold: &Fold, held: Held) -> u64 {
        if held.repeats() { fold.all_items()[held.place as usize].times() } else { 1 }
    }

    pub(super) fn is_tame(&self) -> bool {
        self.is_tame
    }

    /// How many rules were looked at to make this.
    pub(super) fn visited(&self) -> u64 {
        self.visited
    }

    /// How many items hold something of the function.
    pub(super) fn items(&self) -> usize {
        self.items.len()
    }

    /// The part of a rule.
    pub(super) fn part(&self, rule: RuleId) -> Part {
        self.rules.binary_search(&rule).map_or(Part::NONE, |index| self.parts[index])
    }

    /// Where the event is that is the n-th of the function in a rule, given how many events
    /// of it each part has.
    pub(super) fn position(&self, fold: &Fold, mut rule: RuleId, lengths: &[u64], mut n: u64) -> Option<u64> {
        let mut base = 0;
        'down: while let Ok(index) = self.rules.binary_search(&rule) {
            for &held in &self.items[self.range(index)] {
                let (once, item) = (lengths[held.part().index()], fold.all_items()[held.place as usize]);
                let all = once.saturating_mul(item.times());
                if n >= all {
                    n -= all;
                    continue;
                }
                let events = fold.target_length(item.target());
                base += fold.item_end(held.place as usize) - item.times() * events + n / once * events;
                n %= once;
                match item.target() {
                    Target::Symbol(_) => return Some(base),
                    Target::Rule(inner) => rule = inner,
                }
                continue 'down;
            }
            return None;
        }
        None
    }

    fn range(&self, rule: usize) -> Range<usize> {
        let start = rule.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[rule] as usize
    }
}

/// Whether rules that hold the same are looked for. That takes about as long as a search,
/// and later ones may take less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    /// They become one part.
    Joined,
    /// Each is a part, unless it holds a single item.
    Apart,
}

struct Maker<'a> {
    fold: &'a Fold,
    projection: Projection,
    items: Vec<Held>,
    /// What each part does to the frame.
    ways: Vec<Way>,
    /// The parts that are rules, by what they hold.
    known: Option<HashTable<Part>>,
}

impl<'a> Maker<'a> {
    fn new(fold: &'a Fold, steps: &[(Symbol, Step)], alike: Alike) -> Result<Self> {
        let slots = fold.alphabet().len() + fold.rules().len();
        let parts = steps.len() + fold.rules().len();
        if u32::try_from(fold.items()).is_err() || parts >= Part::NONE.index() || slots >= Item::MOST_SLOTS {
            return Err(Error::limit("a path can be looked for in at most 2^32 items"));
        }
        if steps.iter().any(|(symbol, _)| symbol.index() >= fold.alphabet().len()) {
            return Err(Error::invalid("the path is of another trace"));
        }
        let projection = Projection { steps: steps.to_vec(), is_tame: true, ..Projection::default() };
        Ok(Self {
            fold,
            projection,
            items: Vec::new(),
            ways: steps.iter().map(|&(_, step)| Way::of(step)).collect(),
            known: (alike == Alike::Joined).then(HashTable::new),
        })
    }

    /// Adds those items of a body that hold something. The first is at this place.
    #[inline]
    fn hold(&mut self, body: &[Item], first: usize, part_of: impl Fn(Item) -> Part) {
        let start = self.items.len();
        if start < first / 8 {
            // Few items stay, so nothing is what the processor expects.
            for (item, place) in body.iter().zip(first..) {
                let part = part_of(*item);
                if part != Part::NONE {
                    self.items.push(Held::new(place as u32, part, *item));
                }
            }
            return;
        }
        // Which items stay is hard to foresee, so nothing is made to depend on it.
        self.items.resize(start + body.len(), Held { place: 0, part: 0 });
        let room = &mut self.items[start..];
        let mut count = 0;
        for (item, place) in body.iter().zip(first..) {
            let part = part_of(*item);
            room[count] = Held::new(place as u32, part, *item);
            count += usize::from(part != Part::NONE);
        }
        self.items.truncate(start + count);
    }

    /// All that a rule holds is there.
    #[inline]
    fn close(&mut self, rule: RuleId) -> Part {
        let start = self.projection.ends.last().map_or(0, |&end| end as usize);
        let part = match self.items[start..] {
            [] => return Part::NONE,
            [only] if !only.repeats() => only.part(),
            _ => self.part_of_body(start),
        };
        self.projection.rules.push(rule);
        self.projection.ends.push(self.items.len() as u32);
        self.projection.parts.push(part);
        part
    }

    /// The part of the items from here on.
    fn part_of_body(&mut self, start: usize) -> Part {
        let new = Part((self.projection.steps.len() + self.projection.bodies.len()) as u32);
        if let Some(mut known) = self.known.take() {
            let found = self.known_or(&mut known, start, new);
            self.known = Some(known);
            if found != new {
                return found;
            }
        }
        self.projection.bodies.push(self.projection.rules.len() as u32);
        if self.projection.is_tame {
            let body = self.items[start..].iter();
            let way = Way::joined(body.map(|held| (self.ways[held.part().index()], held.repeats())));
            self.projection.is_tame = way.is_some();
            self.ways.extend(way);
        }
        new
    }

    /// The part of equal items if there is one; the new one if not.
    fn known_or(&self, known: &mut HashTable<Part>, start: usize, new: Part) -> Part {
        let all = self.fold.all_items();
        let times = |held: Held| if held.repeats() { all[held.place as usize].times() } else { 1 };
        let hash_of = |items: &[Held]| {
            let each =
                |hash: u64, &held: &Held| (hash.rotate_left(5) ^ u64::from(held.part)).wrapping_mul(MIX);
            FixedState::default().hash_one(items.iter().fold(0, each))
        };
        let items_of = |part: Part| {
            let rule = self.projection.bodies[part.index() - self.projection.steps.len()] as usize;
            &self.items[self.projection.range(rule)]
        };
        let body = &self.items[start..];
        let is_equal = |&part: &Part| {
            let other = items_of(part);
            let alike = |(&one, &two): (&Held, &Held)| one.part == two.part && times(one) == times(two);
            other.len() == body.len() && other.iter().zip(body).all(alike)
        };
        let entry = known.entry(hash_of(body), is_equal, |&part| hash_of(items_of(part)));
        *entry.or_insert(new).get()
    }

    fn finish(mut self, visited: u64) -> Projection {
        let mut projection = self.projection;
        projection.items = std::mem::take(&mut self.items);
        projection.visited = visited;
        let goes_well = |root: RuleId| match projection.part(root) {
            Part::NONE => true,
            part => self.ways[part.index()].begins_outside(),
        };
        projection.is_tame =
            projection.is_tame && self.fold.streams().iter().all(|stream| goes_well(stream.root()));
        projection
    }
}

/// An odd number without a pattern, for hashing.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// A part for each rule and symbol, cleared at the cost of those that were set: so that what is small
/// costs little, however large the fold is.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    parts: Vec<Part>,
    symbols: Vec<Part>,
    set: Vec<RuleId>,
}

impl Scratch {
    pub(super) fn new(fold: &Fold) -> Self {
        let none = |count: usize| vec![Part::NONE; count];
        Self { parts: none(fold.rules().len()), symbols: none(fold.alphabet().len()), set: Vec::new() }
    }

    /// Marks a rule; false if it was already.
    pub(super) fn mark(&mut self, rule: RuleId) -> bool {
        let is_new = self.get(rule) == Part::NONE;
        if is_new {
            self.set(rule, Part(0));
        }
        is_new
    }

    /// How many rules are marked.
    pub(super) fn marked(&self) -> u64 {
        self.set.len() as u64
    }

    fn set(&mut self, rule: RuleId, part: Part) {
        self.parts[rule.index()] = part;
        self.set.push(rule);
    }

    fn get(&self, rule: RuleId) -> Part {
        self.parts[rule.index()]
    }

    pub(super) fn clear(&mut self) {
        self.set.drain(..).for_each(|rule| self.parts[rule.index()] = Part::NONE);
    }
}
