//! Converts loops over positions to rules.
//!
//! First the bodies of loops become rules; then the items outside of all loops are written where they
//! stay, which are most of them where there is little structure. Parts of a stream that no loop connects
//! are done side by side, and the rules are the same as if they had been done from left to right.
//!
//! Cost: O(symbols outside of loops and in the first copies of their bodies) time, 12 bytes an item of
//! the result.

use crate::fold::{FoldBuilder, Item, Target};
use crate::interrupt::Pace;
use crate::parallel::side_by_side;
use crate::{Result, RuleId, Symbol};
use std::ops::Range;

/// `times` copies of `stream[start..start + body]`, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) start: u32,
    pub(super) body: u32,
    pub(super) times: u32,
}

impl Loop {
    fn end(self) -> usize {
        self.start as usize + self.body as usize * self.times as usize
    }
}

/// A part of a stream, and all of its loops: nested or apart, the inner ones only in the first copy of
/// the outer body.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) range: Range<usize>,
    pub(super) loops: Vec<Loop>,
}

/// A part whose loops are in order, and what is known of them.
struct Prepared {
    part: Part,
    /// The outer loops with bodies of several symbols.
    loops: Vec<Item>,
    /// How many items there are outside of all loops, these included.
    items: usize,
}

/// Adds the rules of a stream that consists of these parts.
pub(super) fn rules_of(stream: &[Symbol], parts: Vec<Part>, builder: &mut FoldBuilder) -> Result<RuleId> {
    // Rules of their own for all parts but the first, which become those of all afterwards.
    let mut others: Vec<FoldBuilder> = parts.iter().skip(1).map(|_| FoldBuilder::default()).collect();
    let builders = std::iter::once(&mut *builder).chain(&mut others);
    let prepared = side_by_side(parts.into_iter().zip(builders), |(part, own)| prepare(stream, part, own));
    let mut prepared = prepared.into_iter().collect::<Result<Vec<Prepared>>>()?;
    for (part, own) in prepared.iter_mut().skip(1).zip(others) {
        let renamed = builder.append_rules(&own.finish(), Ok)?;
        for item in &mut part.loops {
            if let Target::Rule(rule) = item.target() {
                *item = Item::new(Target::Rule(renamed[rule.index()]), item.times());
            }
        }
    }
    let items = prepared.iter().map(|part| part.items).sum();
    builder.written_rule(items, stream.len() as u64, |body| write(stream, &prepared, body))
}

fn prepare(stream: &[Symbol], mut part: Part, builder: &mut FoldBuilder) -> Result<Prepared> {
    part.loops.sort_unstable_by_key(|found| (found.start, u32::MAX - found.body));
    let loops = outer_loops(stream, &part.loops, builder)?;
    let spanned = |found: Loop| found.end() - found.start as usize;
    let inside: usize = outermost(&part.loops).map(|found| spanned(found) - 1).sum();
    Ok(Prepared { loops, items: part.range.len() - inside, part })
}

/// The loops that are in no other; `loops` are in order.
fn outermost(loops: &[Loop]) -> impl Iterator<Item = Loop> {
    let mut covered = 0;
    loops.iter().copied().filter(move |found| {
        let is_outer = found.start as usize >= covered;
        if is_outer {
            covered = found.end();
        }
        is_outer
    })
}

/// Adds the rules of loops, and returns the items of those that are in no other and have bodies of
/// several symbols.
fn outer_loops(stream: &[Symbol], loops: &[Loop], builder: &mut FoldBuilder) -> Result<Vec<Item>> {
    struct Open {
        /// Where the first copy of the body ends, and where the last one does.
        body_end: usize,
        end: usize,
        times: u32,
        /// The items before those of the body.
        mark: usize,
    }
    let mut outer = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut loops = loops.iter().copied().peekable();
    let mut open: Vec<Open> = Vec::new();
    let mut position = 0;
    loop {
        while let Some(innermost) = open.last().filter(|open| open.body_end == position) {
            let item = builder.repeat(&items[innermost.mark..], innermost.times.into())?;
            items.truncate(innermost.mark);
            position = innermost.end;
            open.pop();
            if open.is_empty() { &mut outer } else { &mut items }.push(item);
        }
        if open.is_empty() {
            // What is in no loop is in no rule but the root.
            while loops.next_if(|found| found.body == 1).is_some() {}
            let Some(found) = loops.peek() else { return Ok(outer) };
            position = found.start as usize;
        }
        match loops.next_if(|found| found.start as usize == position) {
            Some(Loop { body: 1, times, .. }) => {
                items.push(Item::new(Target::Symbol(stream[position]), times.into()));
                position += times as usize;
            }
            Some(found) => open.push(Open {
                body_end: position + found.body as usize,
                end: found.end(),
                times: found.times,
                mark: items.len(),
            }),
            None => {
                let next_loop = loops.peek().map_or(stream.len(), |found| found.start as usize);
                let end = open.last().map_or(next_loop, |open| open.body_end.min(next_loop));
                items.extend(stream[position..end].iter().map(|&symbol| Item::once(symbol)));
                position = end;
            }
        }
    }
}

/// Writes the items outside of all loops, of all parts side by side. Returns one more than the largest
/// symbol among them.
fn write(stream: &[Symbol], parts: &[Prepared], mut body: &mut [Item]) -> u32 {
    let with_room = parts.iter().map(|part| {
        let (own, rest) = std::mem::take(&mut body).split_at_mut(part.items);
        body = rest;
        (part, own)
    });
    let with_room: Vec<_> = with_room.collect();
    side_by_side(with_room, |(part, own)| write_part(stream, part, own)).into_iter().max().unwrap_or(0)
}

fn write_part(stream: &[Symbol], prepared: &Prepared, body: &mut [Item]) -> u32 {
    let Prepared { part: Part { range, loops }, loops: outer, .. } = prepared;
    let (mut outer, mut pace) = (outer.iter(), Pace::default());
    let (mut position, mut written, mut symbols) = (range.start, 0, 0);
    for found in outermost(loops) {
        let start = found.start as usize;
        symbols = symbols.max(write_symbols(&stream[position..start], &mut body[written..], &mut pace));
        written += start - position;
        // The symbols of other loops are in rules, unless there is but one.
        symbols = symbols.max(stream[start].raw() + 1);
        let of_symbol = Item::new(Target::Symbol(stream[start]), found.times.into());
        body[written] = match found.body {
            1 => of_symbol,
            _ => outer.next().copied().unwrap_or(of_symbol),
        };
        written += 1;
        position = found.end();
    }
    symbols.max(write_symbols(&stream[position..range.end], &mut body[written..], &mut pace))
}

fn write_symbols(symbols: &[Symbol], body: &mut [Item], pace: &mut Pace) -> u32 {
    const BLOCK: usize = 1 << 14;
    let mut most = 0;
    for (symbols, slots) in symbols.chunks(BLOCK).zip(body.chunks_mut(BLOCK)) {
        pace.steps(symbols.len());
        for (slot, &symbol) in slots.iter_mut().zip(symbols) {
            *slot = Item::once(symbol);
            most = most.max(symbol.raw() + 1);
        }
    }
    most
}
