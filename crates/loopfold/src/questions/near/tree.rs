//! The nest with loops with exceptions in it, on all levels.
//!
//! The nest of the highest level is written, its tokens as the loops they stand for, with the
//! nest of their bodies; in every body, loops with exceptions are searched again. What lies
//! between them is written as the exact nest has it; where a loop with exceptions begins or ends
//! inside of an exact loop, that one is cut there.
//!
//! Cost: O(nodes) and O(iterations of loops that contain tokens), besides that of the search in
//! every body.

use super::levels::{Level, Part, Token, levels, parts};
use super::{Change, Config, Edit, Kind, NearLoop, NearSearch};
use crate::fold::{Fold, Item, Target};
use crate::questions::nest::{Nest, Node};
use crate::{Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Rules that are nested deeper are left out.
const DEEPEST: usize = 200;

/// A loop some of whose iterations differ, or whose number of iterations does: all its occurrences
/// at one place of the nest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NearNode {
    /// Where the first occurrence begins.
    pub start: u64,
    /// Where the last occurrence that is listed ends.
    pub end: u64,
    /// How many occurrences there are.
    pub occurrences: u64,
    /// The fewest iterations of an occurrence, and the most.
    pub iterations: (u64, u64),
    /// The iterations of all occurrences.
    pub all_iterations: u64,
    /// How many of them are equal to the body.
    pub equal: u64,
    /// The fewest events of an iteration that is equal to the body, and the most: they differ if
    /// the iterations of loops inside do.
    pub lengths: (u64, u64),
    /// The events of all occurrences.
    pub events: u64,
    /// The kinds of exceptions, in the order of their first occurrence.
    pub kinds: Vec<Kind>,
    /// The parts of the occurrences that are listed, in the order of the stream; exceptions are in
    /// events. If there are fewer of these than occurrences, they recur in the same order.
    listed: Vec<Part>,
    /// Where the parts of each of these occurrences end.
    ends: Vec<usize>,
}

impl NearNode {
    /// The parts of all occurrences that are listed, and where those of each end.
    pub(in crate::questions) fn listed(&self) -> (&[Part], &[usize]) {
        (&self.listed, &self.ends)
    }

    /// One of which only the iterations are known.
    pub(in crate::questions) fn of_parts(
        all_iterations: u64,
        kinds: Vec<Kind>,
        (listed, ends): (Vec<Part>, Vec<usize>),
    ) -> Self {
        Self { all_iterations, kinds, listed, ends, ..Self::default() }
    }

    /// The parts of an occurrence, counted from 0 in the order of the stream.
    pub fn parts(&self, occurrence: u64) -> &[Part] {
        let index = (occurrence % self.ends.len().max(1) as u64) as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.get(index).map_or(&[], |&end| &self.listed[start..end])
    }

    /// How many iterations are equal to the body but followed by something more.
    pub fn followed(&self) -> u64 {
        self.kinds.iter().filter(|kind| kind.iterations == 0).map(|kind| kind.count).sum()
    }

    /// How many iterations differ.
    pub fn odd(&self) -> u64 {
        self.all_iterations - self.equal
    }

    /// How many events are written for its exceptions: those of each kind, and one for each that
    /// is listed.
    pub fn written(&self) -> u64 {
        let listed = self.listed.iter().filter(|part| matches!(part, Part::Exception(..)));
        self.kinds.iter().map(|kind| kind.change.written()).sum::<u64>() + listed.count() as u64
    }

    /// How many equal iterations lie before, between and behind the exceptions of a loop that
    /// occurs once.
    pub fn runs(&self) -> Option<Vec<u64>> {
        let equal = |part: &Part| match part {
            Part::Equal(times) => Some(*times),
            Part::Exception(..) => None,
        };
        (self.occurrences == 1 && !self.kinds.is_empty())
            .then(|| self.listed.iter().filter_map(equal).collect())
    }

    /// The kinds of the exceptions in turn, if there are at least two and their order repeats at
    /// least three times, in a loop that occurs once.
    pub fn order(&self) -> Option<Vec<usize>> {
        let kind = |part: &Part| match part {
            Part::Exception(_, kind) => Some(*kind),
            Part::Equal(_) => None,
        };
        let kinds: Vec<usize> = self.listed.iter().filter_map(kind).collect();
        let period =
            (2..=kinds.len() / 3).find(|&period| kinds[period..] == kinds[..kinds.len() - period])?;
        (self.kinds.len() > 1 && self.occurrences == 1).then(|| kinds[..period].to_vec())
    }

    fn add_iterations(&mut self, iterations: u64) {
        let (least, most) = self.iterations;
        let is_first = self.ends.is_empty();
        self.iterations =
            if is_first { (iterations, iterations) } else { (least.min(iterations), most.max(iterations)) };
    }

    fn add_length(&mut self, events: u64) {
        let (shortest, longest) = self.lengths;
        self.lengths =
            if longest == 0 { (events, events) } else { (shortest.min(events), longest.max(events)) };
    }
}

/// The nest of a rule with loops with exceptions in it, of about `limit` nodes at most. Returns
/// `None` if there are none.
pub fn near_nest(fold: &Fold, rule: RuleId, limit: usize, config: Config<'_>) -> Result<Option<Nest>> {
    let levels = levels(fold, rule, config)?;
    let mut writer = Writer::new(&levels, limit, config);
    let Some((top, level)) = levels.iter().enumerate().next_back() else { return Ok(None) };
    let place = Place { level: top, starts: vec![0], repeated: 1 };
    let mut search = NearSearch::new(&level.fold, config)?;
    if top == 0 && level.near.is_empty() && !any_body_has_some(&mut search, rule)? {
        return Ok(None);
    }
    writer.rule_with(&mut search, level.root, &level.near, &place)?;
    let nest = writer.nest;
    Ok((!nest.near.is_empty()).then_some(nest))
}

/// Whether the body of some loop below a rule has a loop with exceptions: most nests have none, and
/// need not be written to know that.
fn any_body_has_some(search: &mut NearSearch<'_>, rule: RuleId) -> Result<bool> {
    for body in search.long_bodies(rule)? {
        if !search.analysis(body)?.loops.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where something is written: on which level, and where it begins there.
struct Place {
    level: usize,
    /// On the level of events, only the first.
    starts: Vec<u64>,
    /// How many times each of these recurs.
    repeated: u64,
}

impl Place {
    fn new(level: usize, mut starts: Vec<u64>, mut repeated: u64) -> Self {
        if level == 0 {
            repeated = repeated.saturating_mul(starts.len() as u64);
            starts.truncate(1);
        }
        Self { level, starts, repeated }
    }

    /// The iterations of a loop that begins after so many symbols.
    fn iterations(&self, offset: u64, times: u64, length: u64) -> Self {
        if self.level == 0 {
            let starts = self.starts.iter().map(|start| start + offset).collect();
            return Self::new(0, starts, self.repeated.saturating_mul(times));
        }
        let of_start = |start: &u64| {
            let first = start + offset;
            (0..times).map(move |iteration| first + iteration * length)
        };
        Self::new(self.level, self.starts.iter().flat_map(of_start).collect(), self.repeated)
    }
}

struct Writer<'a> {
    levels: &'a [Level<'a>],
    config: Config<'a>,
    nest: Nest,
    limit: usize,
    depth: usize,
    bodies: HashMap<Vec<Symbol>, Rc<Body>, foldhash::fast::FixedState>,
}

/// The body of a loop with exceptions.
struct Body {
    fold: Fold,
    root: RuleId,
    near: Vec<NearLoop>,
}

impl<'a> Writer<'a> {
    fn new(levels: &'a [Level<'a>], limit: usize, config: Config<'a>) -> Self {
        Self { levels, config, nest: Nest::default(), limit, depth: 0, bodies: HashMap::default() }
    }

    /// The event at which a position of a level begins.
    fn event(&self, level: usize, at: u64) -> u64 {
        (1..=level).rev().fold(at, |at, level| self.levels[level].tokens.below(at))
    }

    /// The body of a loop: with its own loops with exceptions.
    fn rule(&mut self, search: &mut NearSearch<'_>, rule: RuleId, place: &Place) -> Result<()> {
        let near = search.analysis(rule)?.loops;
        self.rule_with(search, rule, &near, place)
    }

    fn rule_with(
        &mut self,
        search: &mut NearSearch<'_>,
        rule: RuleId,
        near: &[NearLoop],
        place: &Place,
    ) -> Result<()> {
        let mut next = 0;
        for near in near {
            self.range(search, rule, next..near.start, 0, place)?;
            if self.nest.nodes.len() >= self.limit {
                next = near.start;
                break;
            }
            self.near_loop(near, place)?;
            next = near.end;
        }
        let length = search.fold.length(rule);
        self.range(search, rule, next..length, 0, place)
    }

    /// A range of what a rule unfolds to; the rule begins `offset` symbols after the place.
    fn range(
        &mut self,
        search: &mut NearSearch<'_>,
        rule: RuleId,
        range: Range<u64>,
        offset: u64,
        place: &Place,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if self.nest.nodes.len() >= self.limit || self.depth >= DEEPEST {
            self.left_out(offset + range.start..offset + range.end, place);
            return Ok(());
        }
        self.depth += 1;
        let fold = search.fold;
        let first = fold.item_ends(rule).partition_point(|&end| end <= range.start);
        let mut begin = first.checked_sub(1).map_or(0, |before| fold.item_ends(rule)[before]);
        for &item in &fold.body(rule)[first..] {
            let end = begin + fold.item_length(item);
            let inner = range.start.max(begin)..range.end.min(end);
            if inner.start < inner.end {
                self.item(search, item, inner.start - begin..inner.end - begin, offset + begin, place)?;
            }
            begin = end;
            if begin >= range.end {
                break;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn left_out(&mut self, range: Range<u64>, place: &Place) {
        let start = place.starts.first().copied().unwrap_or(0);
        let events =
            self.event(place.level, start + range.end) - self.event(place.level, start + range.start);
        match self.nest.nodes.last_mut() {
            Some(Node::LeftOut(before)) => *before += events,
            _ => self.nest.nodes.push(Node::LeftOut(events)),
        }
    }

    /// A range of an item: the end of an iteration, whole iterations, the beginning of one.
    fn item(
        &mut self,
        search: &mut NearSearch<'_>,
        item: Item,
        range: Range<u64>,
        offset: u64,
        place: &Place,
    ) -> Result<()> {
        let length = search.fold.target_length(item.target());
        let first = range.start.next_multiple_of(length);
        if first > range.end {
            // Inside of one iteration.
            let base = first - length;
            return self.once(search, item, range.start - base..range.end - base, offset + base, place);
        }
        if range.start < first {
            self.once(search, item, range.start + length - first..length, offset + first - length, place)?;
        }
        let times = (range.end - first) / length;
        let last = first + times * length;
        match times {
            0 => {}
            1 => self.once(search, item, 0..length, offset + first, place)?,
            _ => self.whole_loop(search, item, times, offset + first, place)?,
        }
        if last < range.end {
            self.once(search, item, 0..range.end - last, offset + last, place)?;
        }
        Ok(())
    }

    /// A range of one iteration.
    fn once(
        &mut self,
        search: &mut NearSearch<'_>,
        item: Item,
        range: Range<u64>,
        offset: u64,
        place: &Place,
    ) -> Result<()> {
        match item.target() {
            Target::Rule(rule) => self.range(search, rule, range, offset, place),
            Target::Symbol(symbol) => self.symbol(symbol, &place.iterations(offset, 1, 1)),
        }
    }

    fn whole_loop(
        &mut self,
        search: &mut NearSearch<'_>,
        item: Item,
        times: u64,
        offset: u64,
        place: &Place,
    ) -> Result<()> {
        let length = search.fold.target_length(item.target());
        let mut gathered = Gathered::new(self, length, &[], place.level);
        for start in &place.starts {
            gathered.occurrence(start + offset, &[Part::Equal(times)]);
        }
        let node = self.open(gathered.node.repeated(place.repeated));
        let body = place.iterations(offset, times, length);
        match item.target() {
            Target::Symbol(symbol) => self.symbol(symbol, &body)?,
            Target::Rule(rule) => self.rule(search, rule, &body)?,
        }
        self.close(node);
        Ok(())
    }

    /// Begins a loop.
    fn open(&mut self, near: NearNode) -> usize {
        let node = self.nest.nodes.len();
        if near.is_constant() {
            self.nest.nodes.push(Node::Loop { times: near.iterations.0, length: near.lengths.0, end: 0 });
        } else {
            self.nest.nodes.push(Node::Near { near: self.nest.near.len(), end: 0 });
            self.nest.near.push(near);
        }
        node
    }

    fn close(&mut self, node: usize) {
        let after = self.nest.nodes.len();
        match &mut self.nest.nodes[node] {
            Node::Loop { end, .. } | Node::Near { end, .. } => *end = after,
            Node::Event(_) | Node::LeftOut(_) => {}
        }
    }

    /// A symbol: an event, or a token, which is a loop on the level below.
    fn symbol(&mut self, symbol: Symbol, place: &Place) -> Result<()> {
        let levels = self.levels;
        let tokens = &levels[place.level].tokens;
        let Some(token) = tokens.token(symbol) else {
            // A token of a lower level is the same symbol there.
            if place.level > 0 && self.is_token(symbol, place.level) {
                let starts = place.starts.iter().map(|&start| tokens.below(start)).collect();
                return self.symbol(symbol, &Place::new(place.level - 1, starts, place.repeated));
            }
            self.nest.nodes.push(Node::Event(symbol));
            return Ok(());
        };
        let occurrences = place.starts.iter().map(|&start| tokens.occurrence(start));
        let Token { body, kinds, .. } = token;
        self.near(body, kinds, occurrences, place.level - 1, place.repeated)
    }

    fn is_token(&self, symbol: Symbol, level: usize) -> bool {
        self.levels[..level].iter().any(|level| level.tokens.token(symbol).is_some())
    }

    fn near_loop(&mut self, near: &NearLoop, place: &Place) -> Result<()> {
        let all: Vec<Part> = parts(near).collect();
        let occurrences = place.starts.iter().map(|start| (start + near.start, &all[..]));
        self.near(&near.body, &near.kinds, occurrences, place.level, place.repeated)
    }

    /// The occurrences of a loop with exceptions: where each begins, and its parts.
    fn near<'p>(
        &mut self,
        body: &[Symbol],
        kinds: &[Kind],
        occurrences: impl Iterator<Item = (u64, &'p [Part])>,
        level: usize,
        repeated: u64,
    ) -> Result<()> {
        let mut gathered = Gathered::new(self, body.len() as u64, kinds, level);
        for (start, parts) in occurrences {
            gathered.occurrence(start, parts);
        }
        let Gathered { starts, node: gathered, .. } = gathered;
        let gathered = gathered.repeated(repeated);
        let body = self.body(body)?;
        let place = match level {
            0 => Place { level, starts: starts.into_iter().take(1).collect(), repeated: gathered.equal },
            _ => Place::new(level, starts, repeated),
        };
        if gathered.is_constant() && gathered.iterations.0 == 1 {
            return self.body_of_near(&body, &place);
        }
        let node = self.open(gathered);
        self.body_of_near(&body, &place)?;
        self.close(node);
        Ok(())
    }

    /// A body as rules, with its own loops with exceptions. Different loops mostly have the same
    /// few bodies.
    fn body(&mut self, body: &[Symbol]) -> Result<Rc<Body>> {
        if let Some(known) = self.bodies.get(body) {
            return Ok(Rc::clone(known));
        }
        let (fold, root) = self.config.folded(body)?;
        let near = NearSearch::new(&fold, self.config)?.analysis(root)?.loops;
        let known = Rc::new(Body { fold, root, near });
        self.bodies.insert(body.to_vec(), Rc::clone(&known));
        Ok(known)
    }

    fn body_of_near(&mut self, body: &Body, place: &Place) -> Result<()> {
        let mut search = NearSearch::new(&body.fold, self.config)?;
        self.rule_with(&mut search, body.root, &body.near, place)
    }

    /// Events with tokens as their bodies, once.
    fn flattened(&self, symbols: &[Symbol]) -> Vec<Symbol> {
        let mut events = Vec::with_capacity(symbols.len());
        for &symbol in symbols {
            match self.levels.iter().find_map(|level| level.tokens.token(symbol)) {
                Some(token) => events.extend(self.flattened(&token.body)),
                None => events.push(symbol),
            }
        }
        events
    }

    fn flattened_kind(&self, kind: &Kind) -> Kind {
        let edit = |edit: &Edit| Edit {
            at: edit.at,
            removed: self.flattened(&edit.removed),
            inserted: self.flattened(&edit.inserted),
        };
        let change = match &kind.change {
            Change::Events(events) => Change::Events(self.flattened(events)),
            Change::Edits(edits) => Change::Edits(edits.iter().map(edit).collect()),
        };
        Kind { count: 0, first: u64::MAX, iterations: kind.iterations, change }
    }
}

/// What is known of the occurrences of a loop.
struct Gathered<'w, 'a> {
    writer: &'w Writer<'a>,
    period: u64,
    level: usize,
    /// Where equal iterations begin.
    starts: Vec<u64>,
    node: NearNode,
}

impl<'w, 'a> Gathered<'w, 'a> {
    fn new(writer: &'w Writer<'a>, period: u64, kinds: &[Kind], level: usize) -> Self {
        let kinds = kinds.iter().map(|kind| writer.flattened_kind(kind)).collect();
        let node = NearNode { kinds, ..NearNode::default() };
        Self { writer, period, level, starts: Vec::new(), node }
    }

    fn event(&self, at: u64) -> u64 {
        self.writer.event(self.level, at)
    }

    fn occurrence(&mut self, start: u64, parts: &[Part]) {
        let (mut at, mut iterations) = (start, 0);
        for mut part in parts.iter().copied() {
            match &mut part {
                Part::Equal(times) => {
                    iterations += *times;
                    self.node.equal += *times;
                    // All iterations on the level of events are equally long.
                    let different = if self.level == 0 { (*times).min(1) } else { *times };
                    for iteration in 0..different {
                        let start = at + iteration * self.period;
                        self.node.add_length(self.event(start + self.period) - self.event(start));
                        self.starts.push(start);
                    }
                    at += *times * self.period;
                }
                Part::Exception(length, kind) => {
                    let (first, end) = (self.event(at), self.event(at + *length));
                    at += *length;
                    *length = end - first;
                    let kind = &mut self.node.kinds[*kind];
                    kind.count += 1;
                    kind.first = kind.first.min(first);
                    iterations += kind.iterations;
                }
            }
            self.node.listed.push(part);
        }
        let (first, end) = (self.event(start), self.event(at));
        if self.node.occurrences == 0 {
            self.node.start = first;
        }
        self.node.end = end;
        self.node.occurrences += 1;
        self.node.all_iterations += iterations;
        self.node.events += end - first;
        self.node.add_iterations(iterations);
        self.node.ends.push(self.node.listed.len());
    }
}

impl NearNode {
    /// With all numbers for occurrences that recur, and without the kinds that do not occur.
    fn repeated(mut self, repeated: u64) -> Self {
        let numbers = [&mut self.occurrences, &mut self.all_iterations, &mut self.equal, &mut self.events];
        numbers.into_iter().for_each(|number| *number = number.saturating_mul(repeated));
        let mut places = Vec::with_capacity(self.kinds.len());
        let mut next = 0;
        for kind in &mut self.kinds {
            kind.count = kind.count.saturating_mul(repeated);
            places.push(next);
            next += usize::from(kind.count > 0);
        }
        self.kinds.retain(|kind| kind.count > 0);
        for part in &mut self.listed {
            if let Part::Exception(_, kind) = part {
                *kind = places[*kind];
            }
        }
        self
    }

    /// Whether all occurrences have the same iterations.
    fn is_constant(&self) -> bool {
        self.kinds.is_empty() && self.iterations.0 == self.iterations.1 && self.lengths.0 == self.lengths.1
    }
}
