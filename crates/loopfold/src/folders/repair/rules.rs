//! Converts pairs to the rules of a fold, and inlines some of them.
//!
//! A symbol that stands for a sequence becomes the rule of that sequence, which must be there
//! before; so rules and sequences are written in the order in which they need each other.
//!
//! Time and memory are O(items of the fold), independent of the depth of the pairs.

use super::kinds::{Kinds, Repeated};
use super::savings::written_in_place;
use super::sequence::Sequence;
use crate::fold::{FoldBuilder, Item, Target};
use crate::{Error, Result, RuleId, Symbol};

/// Which symbols stand for sequences.
#[derive(Debug, Default)]
pub(in crate::folders) struct Bodies {
    /// The first symbol that may stand for one; 0 if none does.
    pub(in crate::folders) first: u32,
    /// The sequences of that symbol and those after it.
    pub(in crate::folders) sequences: Vec<usize>,
}

impl Bodies {
    fn sequence(&self, symbol: Symbol) -> Option<usize> {
        let number = symbol.raw().checked_sub(self.first)?;
        self.sequences.get(number as usize).copied()
    }
}

/// Adds the rules of all sequences and returns those of the first `roots`.
pub(super) fn add(
    mut sequence: Sequence,
    kinds: &Kinds,
    roots: usize,
    bodies: &Bodies,
    builder: &mut FoldBuilder,
) -> Result<Vec<RuleId>> {
    sequence.close_holes();
    let sequences: Vec<&[u32]> = sequence.streams().collect();
    let mut writer = Writer {
        kinds,
        bodies,
        in_place: written_in_place(&sequence, kinds),
        rules: vec![None; kinds.rules().len()],
        others: vec![None; sequences.len()],
        sequences,
        pending: Vec::new(),
        open: Vec::new(),
    };
    for rule in 0..kinds.rules().len() {
        writer.add(Part::Rule(rule), builder)?;
    }
    let mut added = Vec::new();
    for root in 0..roots {
        writer.add_needed(Part::Sequence(root), builder)?;
        let mut body = Vec::with_capacity(writer.sequences[root].len());
        writer.write(Part::Sequence(root), &mut body)?;
        added.push(builder.root_rule(body)?);
    }
    Ok(added)
}

/// Something that is written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Rule(usize),
    Sequence(usize),
}

/// How uses of a part are written.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// As the items that it consists of.
    InPlace,
    /// As one item.
    Item(Target, u64),
}

struct Writer<'a> {
    kinds: &'a Kinds,
    bodies: &'a Bodies,
    in_place: Vec<bool>,
    sequences: Vec<&'a [u32]>,
    /// How rules and sequences are written. `None` for those that are not written yet.
    rules: Vec<Option<Written>>,
    others: Vec<Option<Written>>,
    /// Parts that wait for others, and how many of their kinds are known to be there.
    pending: Vec<(Part, usize)>,
    /// Kinds that are still to be written, the next one last.
    open: Vec<u32>,
}

impl<'a> Writer<'a> {
    fn kinds_of(&self, part: Part) -> &'a [u32] {
        match part {
            Part::Rule(rule) => &self.kinds.rules()[rule],
            Part::Sequence(sequence) => self.sequences[sequence],
        }
    }

    fn written(&mut self, part: Part) -> &mut Option<Written> {
        match part {
            Part::Rule(rule) => &mut self.rules[rule],
            Part::Sequence(sequence) => &mut self.others[sequence],
        }
    }

    /// The part that items of a kind need.
    fn needed(&self, kind: u32) -> Option<Part> {
        match self.kinds.meaning(kind).0 {
            Repeated::Rule(rule) => Some(Part::Rule(rule)),
            Repeated::Symbol(symbol) => self.bodies.sequence(symbol).map(Part::Sequence),
        }
    }

    /// Adds a part, and before it what it needs.
    fn add(&mut self, part: Part, builder: &mut FoldBuilder) -> Result<()> {
        if self.written(part).is_some() {
            return Ok(());
        }
        self.add_needed(part, builder)?;
        let written = self.add_rule(part, builder)?;
        *self.written(part) = Some(written);
        Ok(())
    }

    /// Adds what a part needs. Parts do not contain themselves, so that comes to an end.
    fn add_needed(&mut self, part: Part, builder: &mut FoldBuilder) -> Result<()> {
        self.pending.push((part, 0));
        while let Some((waiting, known)) = self.pending.pop() {
            let missing = self.kinds_of(waiting)[known..]
                .iter()
                .position(|&kind| self.needed(kind).is_some_and(|part| self.written(part).is_none()));
            if let Some(after) = missing {
                let known = known + after;
                let needed = self.needed(self.kinds_of(waiting)[known]);
                self.pending.push((waiting, known));
                self.pending.extend(needed.map(|part| (part, 0)));
            } else if waiting != part {
                let written = self.add_rule(waiting, builder)?;
                *self.written(waiting) = Some(written);
            }
        }
        Ok(())
    }

    /// Adds the rule of a part all of whose parts are there.
    fn add_rule(&mut self, part: Part, builder: &mut FoldBuilder) -> Result<Written> {
        if let Part::Rule(rule) = part
            && self.in_place[rule]
        {
            return Ok(Written::InPlace);
        }
        let mut body = Vec::new();
        self.write(part, &mut body)?;
        let item = builder.repeat(&body, 1)?;
        Ok(Written::Item(item.target(), item.times()))
    }

    /// Appends the items of a part to a body.
    fn write(&mut self, part: Part, body: &mut Vec<Item>) -> Result<()> {
        for &kind in self.kinds_of(part) {
            self.open.push(kind);
            while let Some(kind) = self.open.pop() {
                let (repeated, times) = self.kinds.meaning(kind);
                let written = match self.needed(kind) {
                    Some(part) => *self.written(part),
                    None => None,
                };
                match (repeated, written) {
                    (_, Some(Written::Item(target, each))) => push(target, each, times, body)?,
                    (Repeated::Symbol(symbol), _) => push(Target::Symbol(symbol), 1, times, body)?,
                    (Repeated::Rule(rule), _) => self.open.extend(self.kinds.rules()[rule].iter().rev()),
                }
            }
        }
        Ok(())
    }
}

/// Appends an item; if it repeats the one before, that repeats more often.
fn push(target: Target, each: u64, times: u32, body: &mut Vec<Item>) -> Result<()> {
    let before = match body.last() {
        Some(last) if last.target() == target => last.times(),
        _ => 0,
    };
    let times = each.checked_mul(times.into()).and_then(|times| times.checked_add(before));
    let times = times.ok_or_else(|| Error::limit("a loop repeats more often than can be counted"))?;
    if before > 0 {
        body.pop();
    }
    body.push(Item::new(target, times));
    Ok(())
}
