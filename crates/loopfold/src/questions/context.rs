//! Context: what comes before and after an event or a sequence, with counts.
//!
//! For every occurrence of the query the events around it are counted, up to a depth on either
//! side. A stretch of up to w events (the query and its neighbours on one side) that occurs in
//! the trace belongs to exactly one place in the rules: the lowest rule in which it reaches
//! from one item into another, or the item that repeats in which it reaches from one iteration
//! into another. So each rule is processed once: its items, each cut to its first and last w -
//! 1 events, are concatenated, and a stretch that crosses a seam counts as often as the rule is
//! used. In an item that repeats t times, a stretch that begins in the first iteration and ends
//! in the k-th one after it occurs t - k times.
//!
//! Cost: for each item that may hold the query about 2 w steps, and some more for each
//! occurrence that is written; memory for the [borders](crate::fold::borders) of w - 1 events,
//! and for the resulting tree, which is bounded.

use super::query::Query;
use crate::fold::borders::{Borders, GAP};
use crate::fold::measure::holding;
use crate::fold::{Fold, Grammar, Item, Target, rule_uses};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::ops::Range;

/// What comes before and after a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// How often the query occurs in all streams.
    pub count: u64,
    /// What comes before it, the nearest first.
    pub before: ContextTree,
    /// What comes after it, the nearest first.
    pub after: ContextTree,
}

/// A neighbour of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Neighbour {
    /// An event.
    Event(Symbol),
    /// Nothing: the stream begins or ends here.
    Edge,
}

/// A neighbour, given the ones between it and the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextNode {
    /// The neighbour.
    pub neighbour: Neighbour,
    /// How many occurrences of the query have it there.
    pub count: u64,
    children: Range<usize>,
}

/// The neighbours on one side, as a tree: the children of a node are the neighbours one
/// further away, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextTree {
    nodes: Vec<ContextNode>,
    nearest: Range<usize>,
}

impl ContextTree {
    /// The direct neighbours of the query.
    pub fn nearest(&self) -> &[ContextNode] {
        &self.nodes[self.nearest.clone()]
    }

    /// The neighbours one further away than a node of this tree.
    pub fn beyond(&self, node: &ContextNode) -> &[ContextNode] {
        self.nodes.get(node.children.clone()).unwrap_or_default()
    }
}

/// The most events that a query and its neighbours on one side can be: the cost grows
/// with it.
const WIDEST: usize = 64;

/// Nodes of a tree that are kept, in a few hundred megabytes.
const MOST_NODES: usize = 1 << 23;

/// First and last events of rules that are kept, in a gigabyte.
const MOST_BORDERS: usize = 1 << 28;

impl Fold {
    /// What comes before and after a query, up to `depth` events away.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::questions::context::Neighbour;
    /// use loopfold::questions::query::Query;
    /// use loopfold::trace::{Collector, Event, Sink};
    ///
    /// let mut collector = Collector::default();
    /// let stream = collector.stream("main")?;
    /// for name in ["open", "read", "read", "read", "close"] {
    ///     collector.push_event(stream, &Event::named(name))?;
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let context = fold.context(&Query::parse("read", fold.alphabet())?, 2)?;
    /// assert_eq!(context.count, 3);
    /// let [read, close] = context.after.nearest() else { panic!() };
    /// assert_eq!((read.count, close.count), (2, 1));
    /// assert_eq!(context.after.beyond(close)[0].neighbour, Neighbour::Edge);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn context(&self, query: &Query, depth: usize) -> Result<Context> {
        let width = query.len().saturating_add(depth);
        if width > WIDEST {
            return Err(Error::limit(format_args!(
                "a query of {} events to a depth of {depth}; together at most {WIDEST} events can be looked at",
                query.len()
            )));
        }
        let count = self.find(query)?.count()?;
        let mut scan = Scan::new(query, depth);
        if depth > 0 && count > 0 {
            let borders = Borders::new(self, width - 1, MOST_BORDERS).map_err(|_| {
                Error::limit("this self has too many rules to look so far; ask for a smaller depth")
            })?;
            scan.rules(self, &borders)?;
            scan.streams(self, &borders)?;
        }
        Ok(Context { count, before: scan.before.finish(), after: scan.after.finish() })
    }
}

/// Stands for the beginning and the end of a stream. Symbols are smaller, and it is not
/// [`GAP`].
const EDGE: u32 = u32::MAX - 1;

/// Events written one after the other, each in a unit: an item or an iteration.
#[derive(Default)]
struct Text {
    events: Vec<u32>,
    units: Vec<u32>,
    /// How many of them were examined.
    read: usize,
    /// The places of the query that the last of those can be, given the ones before it.
    matched: u64,
}

/// Long bodies are written and read piece by piece, so that they stay in the nearest
/// cache.
const PIECE: usize = 2048;

impl Text {
    fn clear(&mut self) {
        self.events.clear();
        self.units.clear();
        (self.read, self.matched) = (0, 0);
    }

    /// Forgets all but the last `kept` of the events that were read.
    fn forget(&mut self, kept: usize) {
        let forgotten = self.read.saturating_sub(kept);
        self.events.drain(..forgotten);
        self.units.drain(..forgotten);
        self.read -= forgotten;
    }

    /// Puts what was written since into a unit.
    fn close(&mut self, unit: u32) {
        self.units.resize(self.events.len(), unit);
    }

    fn write(&mut self, event: u32, unit: u32) {
        self.events.push(event);
        self.close(unit);
    }

    /// Writes an item, its middle left out where it is long.
    fn write_item(&mut self, item: Item, borders: &Borders<'_, Fold>, unit: u32) {
        borders.push_item(item, &mut self.events);
        self.close(unit);
    }
}

/// Looks for the query in texts and adds what stands around it to the trees.
struct Scan {
    query_length: usize,
    depth: usize,
    /// For each symbol the places of the query where it can be, as bits.
    places: Vec<u64>,
    before: Growing,
    after: Growing,
}

impl Scan {
    fn new(query: &Query, depth: usize) -> Self {
        let symbols = query.events().iter().flatten().map(|symbol| symbol.index() + 1).max().unwrap_or(0);
        let mut places = vec![0; symbols];
        for (place, event) in query.events().iter().enumerate() {
            event.iter().for_each(|symbol| places[symbol.index()] |= 1 << place);
        }
        let (before, after) = (Growing::default(), Growing::default());
        Self { query_length: query.len(), depth, places, before, after }
    }

    fn places_of(&self, event: u32) -> u64 {
        self.places.get(event as usize).copied().unwrap_or(0)
    }

    /// Counts the stretches that cross a seam between items or iterations.
    fn rules(&mut self, fold: &Fold, borders: &Borders<'_, Fold>) -> Result<()> {
        let uses = rule_uses(fold)?;
        let holds = holding(fold, |node| self.places_of(node.raw()) != 0);
        let mut text = Text::default();
        for (rule, &uses) in fold.rules().zip(&uses) {
            if uses == 0 || !holds[fold.rule_node(rule).index()] {
                continue;
            }
            let body = fold.body(rule);
            text.clear();
            let weight = |first, last| Ok(if first == last { 0 } else { uses });
            for (unit, &item) in (0..).zip(body) {
                text.write_item(item, borders, unit);
                if text.events.len() > PIECE {
                    self.scan(&mut text, self.depth, weight)?;
                    text.forget(self.depth + self.query_length);
                }
            }
            self.scan(&mut text, 0, weight)?;
            for &item in body {
                if item.times() > 1 && holds[fold.item_node(item).index()] {
                    self.iterations(item, uses, borders, &mut text)?;
                }
            }
        }
        Ok(())
    }

    /// Counts the stretches from the first iteration of an item into later ones.
    fn iterations(
        &mut self,
        item: Item,
        uses: u64,
        borders: &Borders<'_, Fold>,
        text: &mut Text,
    ) -> Result<()> {
        let once = Item::new(item.target(), 1);
        let length = borders.item_length(once);
        text.clear();
        // Enough for what begins at the end of the first one.
        let mut unit = 0;
        while u64::from(unit) < item.times() && unit as usize <= borders.width() {
            text.write_item(once, borders, unit);
            if u64::from(unit) * length > borders.width() as u64 {
                break;
            }
            unit += 1;
        }
        self.scan(text, 0, |first, last| match first {
            0 if last > 0 => multiply(uses, item.times() - u64::from(last)),
            _ => Ok(0),
        })
    }

    /// Counts the occurrences at the beginning or the end of a stream.
    fn streams(&mut self, fold: &Fold, borders: &Borders<'_, Fold>) -> Result<()> {
        let mut streams: HashMap<RuleId, u64> = HashMap::new();
        fold.streams().iter().for_each(|stream| *streams.entry(stream.root()).or_default() += 1);
        let mut text = Text::default();
        for (root, count) in streams {
            let whole = Item::new(Target::Rule(root), 1);
            text.clear();
            text.write(EDGE, 0);
            text.write_item(whole, borders, 1);
            text.write(EDGE, 2);
            self.scan(&mut text, 0, |first, last| Ok(if first == last { 0 } else { count }))?;
        }
        Ok(())
    }

    /// Adds the neighbours of every occurrence in what was written, except for the last `held`
    /// events, whose neighbours are still to come. `weight` says how often a stretch between
    /// two units is to be counted.
    fn scan(&mut self, text: &mut Text, held: usize, weight: impl Fn(u32, u32) -> Result<u64>) -> Result<()> {
        let complete = 1u64 << (self.query_length - 1);
        let from = text.read;
        text.read = text.events.len().saturating_sub(held).max(from);
        for end in from..text.read {
            text.matched = (text.matched << 1 | 1) & self.places_of(text.events[end]);
            if text.matched & complete == 0 {
                continue;
            }
            let start = end + 1 - self.query_length;
            let (first, last) = (text.units[start], text.units[end]);
            let after = (end + 1..text.events.len()).take(self.depth);
            self.after.add(text, after, |unit| weight(first, unit))?;
            let before = (0..start).rev().take(self.depth);
            self.before.add(text, before, |unit| weight(unit, last))?;
        }
        Ok(())
    }
}

fn multiply(left: u64, right: u64) -> Result<u64> {
    left.checked_mul(right).ok_or_else(too_many)
}

fn too_many() -> Error {
    Error::limit("more than 2^64 occurrences cannot be counted")
}

/// A tree that is being made.
struct Growing {
    /// The query itself, then its neighbours.
    nodes: Vec<Grown>,
    children: HashMap<(u32, u32), u32>,
}

#[derive(Clone, Copy)]
struct Grown {
    parent: u32,
    event: u32,
    count: u64,
    /// The child that was added to last: mostly it is the same one again.
    recent: u32,
}

/// The node of the query itself, which is its own parent.
const QUERY: u32 = 0;

impl Default for Growing {
    fn default() -> Self {
        let query = Grown { parent: QUERY, event: GAP, count: 0, recent: QUERY };
        Self { nodes: vec![query], children: HashMap::new() }
    }
}

impl Growing {
    /// Adds the neighbours at these positions, each with the weight of what reaches from
    /// the occurrence to its unit.
    fn add(
        &mut self,
        text: &Text,
        positions: impl Iterator<Item = usize>,
        weight: impl Fn(u32) -> Result<u64>,
    ) -> Result<()> {
        let mut parent = QUERY;
        // A neighbour that does not count may stand before one that does.
        let mut waiting = 0;
        let mut path = [0u32; WIDEST];
        for position in positions {
            let event = text.events[position];
            if event == GAP {
                break;
            }
            path[waiting] = event;
            waiting += 1;
            let weight = weight(text.units[position])?;
            if weight > 0 {
                for &event in &path[..waiting] {
                    parent = self.child(parent, event)?;
                }
                waiting = 0;
                let count = &mut self.nodes[parent as usize].count;
                *count = count.checked_add(weight).ok_or_else(too_many)?;
            }
            if event == EDGE {
                break;
            }
        }
        Ok(())
    }

    fn child(&mut self, parent: u32, event: u32) -> Result<u32> {
        let recent = self.nodes[parent as usize].recent;
        if self.nodes[recent as usize].event == event && recent != QUERY {
            return Ok(recent);
        }
        let next = self.nodes.len() as u32;
        let child = *self.children.entry((parent, event)).or_insert(next);
        if child == next {
            if self.nodes.len() >= MOST_NODES {
                return Err(Error::limit("there are too many different contexts; ask for a smaller depth"));
            }
            self.nodes.push(Grown { parent, event, count: 0, recent: QUERY });
        }
        self.nodes[parent as usize].recent = child;
        Ok(child)
    }

    /// The tree with the children of each node adjacent, the most frequent first.
    fn finish(self) -> ContextTree {
        let Self { nodes: grown, children } = self;
        drop(children);
        let mut tree = ContextTree::default();
        let mut moved = vec![0usize; grown.len()];
        for mut level in levels(&grown) {
            // Sorted by parents first, so that the children of each are together.
            level.sort_unstable_by_key(|&node| {
                let Grown { parent, event, count, .. } = grown[node as usize];
                (moved[parent as usize], std::cmp::Reverse(count), event)
            });
            for node in level {
                let Grown { parent, event, count, .. } = grown[node as usize];
                let index = tree.nodes.len();
                let siblings = match parent {
                    QUERY => &mut tree.nearest,
                    parent => &mut tree.nodes[moved[parent as usize]].children,
                };
                *siblings = if siblings.end == 0 { index } else { siblings.start }..index + 1;
                let neighbour = match event {
                    EDGE => Neighbour::Edge,
                    raw => Neighbour::Event(Symbol::from_raw(raw)),
                };
                tree.nodes.push(ContextNode { neighbour, count, children: 0..0 });
                moved[node as usize] = index;
            }
        }
        tree
    }
}

/// The neighbours by their distance from the query, the nearest first. Parents are made before
/// their children.
fn levels(nodes: &[Grown]) -> Vec<Vec<u32>> {
    let mut depths: Vec<usize> = vec![0];
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for (index, node) in (0..).zip(nodes).skip(1) {
        let depth = depths[node.parent as usize] + 1;
        depths.push(depth);
        if levels.len() < depth {
            levels.push(Vec::new());
        }
        levels[depth - 1].push(index);
    }
    levels
}
