//! A stream with each contiguous repetition written once: the symbols of its loop nest, and
//! the loops as intervals of them.
//!
//! Patterns are searched in this form, so that the iterations of a loop are not found as
//! patterns; [`LoopCollapsed::times`] and [`LoopCollapsed::events`] add the repetitions again.
//!
//! An interval of the loop-collapsed stream that starts inside a loop and ends behind it is a
//! stretch that starts in the last iteration; one that starts before a loop and ends inside
//! it ends in the first iteration. So every interval stands for a contiguous stretch of the
//! stream, at least once.
//!
//! Time: that of folding, and then O(depth of loops) for a question about symbols, O(log n) for
//! one about positions: as every loop at least doubles its content, at most 64 are nested.
//! Memory: 8 bytes a symbol and about 80 a loop.

mod positions;

pub(in crate::questions) use positions::{Located, LoopInstance, Piece};

use crate::fold::cursor::{Cursor, Move, Stretch, Visitor};
use crate::fold::{Fold, FoldBuilder, Item, NestLength, Target, measure_rules};
use crate::questions::nest::{Nest, Node};
use crate::{Error, Result, RuleId, Symbol};
use std::convert::Infallible;

/// Folds a stream: adds its rules to a builder and returns the one that unfolds to it, as
/// [`Folder::fold`](crate::folders::Folder::fold) does. Questions do not know the folders, so a
/// question that folds takes this function as a parameter.
pub type FoldStream<'a> = &'a (dyn Fn(&[Symbol], &mut FoldBuilder) -> Result<RuleId> + Sync);

/// A loop of a loop-collapsed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollapsedLoop {
    /// Its first symbol.
    pub start: u32,
    /// The symbol behind its last one.
    pub end: u32,
    /// How often it repeats, at least twice.
    pub times: u64,
}

/// A stream with each contiguous repetition written once.
///
/// ```
/// use loopfold::Symbol;
/// use loopfold::folders::{Folder, Outermost};
/// use loopfold::questions::patterns::LoopCollapsed;
///
/// let events: Vec<Symbol> = "xababab".bytes().map(|name| Symbol::new(name.into()).unwrap()).collect();
/// let collapsed = LoopCollapsed::of(&events, &|events, builder| Outermost::default().fold(events, builder))?;
/// assert_eq!(collapsed.symbols(), &events[..3]);
/// assert_eq!(collapsed.times(1, 3), 3);
/// assert_eq!(collapsed.events(0, 3), 7);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoopCollapsed {
    symbols: Vec<Symbol>,
    /// Nested or apart; sorted by start, outer ones first.
    loops: Vec<CollapsedLoop>,
    /// For each symbol how many loops start at it or before.
    started: Vec<u32>,
    inner: Vec<Inner>,
    /// For each loop, sorted by end: that end, and what all loops up to it add to the stream.
    added: Vec<(u32, u64)>,
    ended: EndedLoops,
}

/// How many loops have ended at a position, about: so few are searched for the exact number.
#[derive(Clone, Debug, Default)]
struct EndedLoops {
    /// Every 2^`shift` positions, and at the end.
    counts: Vec<u32>,
    shift: u32,
}

impl EndedLoops {
    /// From what loops add to a stream of this length: about as many counts as there are loops.
    fn new(added: &[(u32, u64)], length: u64) -> Self {
        let shift = (length / (added.len() as u64 + 1)).max(1).ilog2();
        let mut counts = Vec::with_capacity((length >> shift) as usize + 2);
        let mut ended = 0;
        for place in 0..=length >> shift {
            let is_ended = |&&(end, sum): &&(u32, u64)| u64::from(end).saturating_add(sum) <= place << shift;
            ended += added[ended..].iter().take_while(is_ended).count();
            counts.push(ended as u32);
        }
        counts.push(added.len() as u32);
        Self { counts, shift }
    }

    /// The least and the most that have ended at a position of the stream.
    fn at(&self, position: u64) -> (usize, usize) {
        let place = (position >> self.shift) as usize;
        (self.counts[place] as usize, self.counts[place + 1] as usize)
    }
}

/// Further data of a loop.
#[derive(Clone, Copy, Debug)]
struct Inner {
    /// The loop around it, or [`NONE`].
    outer: u32,
    /// The product of its times and those of all loops around it.
    times: u64,
    /// How many events its iterations after the first have.
    added: u64,
    /// How many events an iteration has.
    body: u64,
    /// Where its first event is in the stream.
    first: u64,
}

const NONE: u32 = u32::MAX;

impl PartialEq for LoopCollapsed {
    fn eq(&self, other: &Self) -> bool {
        self.symbols == other.symbols && self.loops == other.loops
    }
}

impl Eq for LoopCollapsed {}

impl LoopCollapsed {
    /// The loops are those that `fold_stream` finds.
    pub fn of(stream: &[Symbol], fold_stream: FoldStream<'_>) -> Result<Self> {
        let mut builder = FoldBuilder::default();
        let root = fold_stream(stream, &mut builder)?;
        Self::flattened(&builder.finish(), root)
    }

    /// The loops of a fold as they are, for a stream too long to be unfolded; an error if
    /// even so it has more than `limit` symbols.
    pub fn of_rule(fold: &Fold, rule: RuleId, limit: usize) -> Result<Self> {
        let written = measure_rules(fold, &NestLength)?[rule.index()];
        if written > limit.min(NONE as usize - 1) as u64 {
            return Err(Error::limit(format_args!(
                "a stream of {} events that has {written} of them even with each repetition written once",
                fold.length(rule)
            )));
        }
        Self::flattened(fold, rule)
    }

    /// The caller knows that it is not too long.
    fn flattened(fold: &Fold, rule: RuleId) -> Result<Self> {
        let mut collapsing = Collapsing::default();
        let Ok(()) = Cursor::new(fold, rule).visit(&mut collapsing);
        Self::with_loops(collapsing.symbols, collapsing.loops)
    }

    /// The loops are sorted by start, outer ones first.
    fn with_loops(symbols: Vec<Symbol>, loops: Vec<CollapsedLoop>) -> Result<Self> {
        let mut inner: Vec<Inner> = Vec::with_capacity(loops.len());
        let mut open: Vec<u32> = Vec::new();
        let mut by_end: Vec<u32> = Vec::with_capacity(loops.len());
        for (index, found) in loops.iter().enumerate() {
            while let Some(ended) = open.pop_if(|&mut open| loops[open as usize].end <= found.start) {
                by_end.push(ended);
            }
            let outer = open.last().copied().unwrap_or(NONE);
            let around = inner.get(outer as usize).map_or(1, |outer| outer.times);
            let times = around.checked_mul(found.times).ok_or_else(too_long)?;
            inner.push(Inner { outer, times, added: 0, body: 0, first: 0 });
            open.push(index as u32);
        }
        by_end.extend(open.into_iter().rev());
        let mut added: Vec<(u32, u64)> = Vec::with_capacity(loops.len());
        for index in by_end {
            let CollapsedLoop { start, end, times } = loops[index as usize];
            let sum = added.last().map_or(0, |&(_, sum)| sum);
            // One iteration has its symbols and what the loops inside add to them; of these,
            // all that ended before it did and began after it began.
            let before = sum_before(&added, start);
            let body = u64::from(end - start) + (sum - before);
            let more = body.checked_mul(times - 1).ok_or_else(too_long)?;
            let found = &mut inner[index as usize];
            (found.added, found.body, found.first) = (more, body, u64::from(start) + before);
            added.push((end, sum.checked_add(more).ok_or_else(too_long)?));
        }
        let started = started(symbols.len(), &loops);
        let length = added.last().map_or(0, |&(_, sum)| sum).saturating_add(symbols.len() as u64);
        let ended = EndedLoops::new(&added, length);
        Ok(Self { symbols, loops, started, inner, added, ended })
    }

    /// The same loops over other symbols.
    pub(crate) fn renamed(mut self, mut symbol: impl FnMut(Symbol) -> Symbol) -> Self {
        self.symbols.iter_mut().for_each(|old| *old = symbol(*old));
        self
    }

    /// Some of the symbols only, and the loops around them.
    pub(crate) fn filtered(&self, mut is_kept: impl FnMut(Symbol) -> bool) -> Result<Self> {
        let mut kept_before = Vec::with_capacity(self.symbols.len() + 1);
        let mut symbols = Vec::new();
        for &symbol in &self.symbols {
            kept_before.push(symbols.len() as u32);
            if is_kept(symbol) {
                symbols.push(symbol);
            }
        }
        kept_before.push(symbols.len() as u32);
        let mut loops: Vec<CollapsedLoop> = Vec::new();
        for found in &self.loops {
            let (start, end) = (kept_before[found.start as usize], kept_before[found.end as usize]);
            match loops.last_mut() {
                _ if start == end => {}
                // A loop of nothing but another one is that one, more often.
                Some(last) if (last.start, last.end) == (start, end) => {
                    last.times = last.times.checked_mul(found.times).ok_or_else(too_long)?;
                }
                _ => loops.push(CollapsedLoop { start, end, times: found.times }),
            }
        }
        Self::with_loops(symbols, loops)
    }

    /// The symbols, each repetition once.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The loops, nested or apart, sorted by start, outer ones first. No two are equal.
    pub fn loops(&self) -> &[CollapsedLoop] {
        &self.loops
    }

    /// How many events the stream has.
    pub fn length(&self) -> u64 {
        self.symbols.len() as u64 + self.added.last().map_or(0, |&(_, sum)| sum)
    }

    /// How often an interval occurs that is not empty: the product of the times of all
    /// loops that contain it.
    pub fn times(&self, start: usize, end: usize) -> u64 {
        let mut around = self.around(start).filter(|&index| self.loops[index].end as usize >= end);
        around.next().map_or(1, |index| self.inner[index].times)
    }

    /// How many events one occurrence of an interval has, with the loops inside it written
    /// out. A loop that is the interval counts for [`times`](Self::times) instead.
    pub fn events(&self, start: usize, end: usize) -> u64 {
        if start >= end {
            return 0;
        }
        if self.started_before(start) == self.started_before(end) {
            return (end - start) as u64;
        }
        self.behind(start, end) - self.first(start, end)
    }

    /// How many events a loop is in all, by its place among the loops: with how often it occurs.
    pub(super) fn loop_events(&self, index: usize) -> u128 {
        u128::from(self.inner[index].times) * u128::from(self.inner[index].body)
    }

    /// Where the first occurrence of a symbol is in the stream.
    pub fn position(&self, index: usize) -> u64 {
        // Of the loops that started, those that are not around it have ended.
        let ended = self.started(index) - self.around(index).count();
        index as u64 + ended.checked_sub(1).map_or(0, |last| self.added[last].1)
    }

    /// Where the first occurrences of all symbols are in the stream.
    pub(in crate::questions) fn positions(&self) -> impl Iterator<Item = u64> + '_ {
        let (mut ended, mut sum) = (self.added.iter().peekable(), 0);
        (0..self.symbols.len() as u32).map(move |index| {
            while let Some(&(_, more)) = ended.next_if(|&&(end, _)| end <= index) {
                sum = more;
            }
            u64::from(index) + sum
        })
    }

    /// How many loops start at a symbol or before.
    fn started(&self, index: usize) -> usize {
        self.started.get(index).map_or(self.loops.len(), |&started| started as usize)
    }

    /// How many loops start before a symbol.
    fn started_before(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.started(before))
    }

    /// The symbol of the event at a position of the stream. Returns `None` past its end.
    pub fn index_at(&self, mut position: u64) -> Option<usize> {
        if position >= self.length() {
            return None;
        }
        loop {
            // The last symbol whose first occurrence is not behind the position. Behind the
            // loops that ended before it, one symbol is one event.
            let (least, most) = self.ended.at(position);
            let between = &self.added[least..most];
            let ended = least + between.partition_point(|&(end, sum)| u64::from(end) + sum <= position);
            let sum = ended.checked_sub(1).map_or(0, |last| self.added[last].1);
            let next_end = self.added.get(ended).map_or(self.symbols.len(), |&(end, _)| end as usize);
            let low = usize::try_from(position - sum).unwrap_or(usize::MAX).min(next_end - 1);
            // Behind the first iteration of a loop it is what it would be in the first; the
            // outermost loop comes last.
            let later = |&found: &usize| position - self.inner[found].first >= self.inner[found].body;
            let Some(found) = self.around(low).filter(later).last() else { return Some(low) };
            let Inner { first, body, .. } = self.inner[found];
            position = first + (position - first) % body;
        }
    }

    /// Where the first occurrence of an interval starts in the stream. That is not the first
    /// occurrence of its first symbol if it starts inside a loop and ends behind it.
    pub fn first(&self, start: usize, end: usize) -> u64 {
        let left = self.around(start).filter(|&index| {
            let CollapsedLoop { start: begin, end: behind, .. } = self.loops[index];
            (begin as usize) < start && (behind as usize) < end
        });
        self.position(start) + left.map(|index| self.inner[index].added).sum::<u64>()
    }

    /// Where the first occurrence of an interval that is not empty ends in the stream.
    fn behind(&self, start: usize, end: usize) -> u64 {
        let inside = self.around(end - 1).filter(|&index| {
            let CollapsedLoop { start: begin, end: behind, .. } = self.loops[index];
            let (begin, behind) = (begin as usize, behind as usize);
            begin >= start && behind <= end && (begin, behind) != (start, end)
        });
        self.position(end - 1) + 1 + inside.map(|index| self.inner[index].added).sum::<u64>()
    }

    /// An interval that is not empty without what it takes of loops that it cuts through:
    /// those in which it starts but that it leaves, and those in which it ends.
    pub fn uncut(&self, start: usize, end: usize) -> (usize, usize) {
        let bounds = |index: usize| (self.loops[index].start as usize, self.loops[index].end as usize);
        let left = self.around(start).map(bounds).filter(|&(begin, behind)| begin < start && behind < end);
        let right = self.around(end - 1).map(bounds).filter(|&(begin, behind)| begin > start && behind > end);
        let begins = left.map(|(_, behind)| behind).max().unwrap_or(start);
        let ends = right.map(|(begin, _)| begin).min().unwrap_or(end);
        (begins, ends)
    }

    /// The loops that contain a symbol, the innermost first.
    pub(in crate::questions) fn around(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.started(index).checked_sub(1);
        std::iter::from_fn(move || {
            let found = next?;
            let outer = self.inner[found].outer;
            next = (outer != NONE).then_some(outer as usize);
            Some(found)
        })
        .filter(move |&found| self.loops[found].end as usize > index)
    }

    /// An interval as a nest: its symbols, and the loops inside it.
    pub fn nest(&self, start: usize, end: usize) -> Nest {
        let mut nodes: Vec<Node> = Vec::with_capacity(end.saturating_sub(start));
        // Where the nodes of open loops are, and where the loops end.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut next = self.started_before(start);
        for index in start..end {
            while let Some(found) = self.loops.get(next).filter(|found| found.start as usize == index) {
                let behind = found.end as usize;
                if behind <= end && (index, behind) != (start, end) {
                    open.push((nodes.len(), behind));
                    let length = (u64::from(found.end - found.start) + self.added_inside(next)).max(1);
                    nodes.push(Node::Loop { times: found.times, length, end: 0 });
                }
                next += 1;
            }
            nodes.push(Node::Event(self.symbols[index]));
            while let Some((node, _)) = open.pop_if(|(_, behind)| *behind == index + 1) {
                let after = nodes.len();
                if let Node::Loop { end, .. } = &mut nodes[node] {
                    *end = after;
                }
            }
        }
        Nest { nodes, near: Vec::new() }
    }

    /// The same, cut behind this many symbols; how many events the rest is, is in the last
    /// node.
    pub fn nest_up_to(&self, start: usize, end: usize, longest: usize) -> Nest {
        let cut = end.min(start.saturating_add(longest));
        let mut nest = self.nest(start, cut);
        if cut < end {
            let shown = nest.length(0..nest.nodes.len());
            nest.nodes.push(Node::LeftOut(self.events(start, end).saturating_sub(shown)));
        }
        nest
    }

    /// What the loops inside a loop add to one of its iterations.
    fn added_inside(&self, index: usize) -> u64 {
        let CollapsedLoop { start, end, .. } = self.loops[index];
        self.inner[index].body - u64::from(end - start)
    }
}

/// Writes the body of each loop once.
#[derive(Default)]
struct Collapsing {
    symbols: Vec<Symbol>,
    loops: Vec<CollapsedLoop>,
    /// The rules that are open, the outermost left out: those that are loops.
    open: Vec<Option<usize>>,
}

impl Visitor<Item> for Collapsing {
    type Error = Infallible;

    #[inline]
    fn stretch(
        &mut self,
        Stretch { target, times, .. }: Stretch<Item>,
        _: (RuleId, usize),
    ) -> std::result::Result<Move, Infallible> {
        let start = self.symbols.len() as u32;
        let looped = (times > 1).then_some(self.loops.len());
        if looped.is_some() {
            self.loops.push(CollapsedLoop { start, end: start + 1, times });
        }
        let Target::Symbol(symbol) = target else {
            self.open.push(looped);
            return Ok(Move::Enter);
        };
        self.symbols.push(symbol);
        Ok(Move::Skip)
    }

    fn end(&mut self, _: RuleId, _: u64, _: u64) -> std::result::Result<Move, Infallible> {
        if let Some(index) = self.open.pop().flatten() {
            self.loops[index].end = self.symbols.len() as u32;
        }
        Ok(Move::Skip)
    }
}

/// For each of this many symbols how many loops start at it or before.
fn started(symbols: usize, loops: &[CollapsedLoop]) -> Vec<u32> {
    let mut started = Vec::with_capacity(symbols);
    for (count, found) in (0..).zip(loops) {
        started.resize(found.start as usize, count);
    }
    started.resize(symbols, loops.len() as u32);
    started
}

fn too_long() -> Error {
    Error::limit("a loop-collapsed stream that stands for more than 2^64 events")
}

/// What the loops that end at or before a symbol add to the stream.
fn sum_before(added: &[(u32, u64)], index: u32) -> u64 {
    let ended = added.partition_point(|&(end, _)| end <= index);
    ended.checked_sub(1).map_or(0, |last| added[last].1)
}
