//! The adaptive models of version 1: how likely each alternative is, learnt from what
//! came before.

use super::coder::{Decoder, Span, TOTAL_LIMIT};
use crate::{Error, Result};

/// A yes or no. Never surer than 127 in 128: that each flag costs at least 0.011 bits
/// is what bounds the items that a section of a given size can hold.
#[derive(Clone, Copy)]
pub(super) struct Flag {
    no: u16,
    yes: u16,
}

impl Default for Flag {
    fn default() -> Self {
        Self { no: 1, yes: 1 }
    }
}

impl Flag {
    const STEP: u16 = 4;
    const LIMIT: u16 = 1024;
    const SUREST: u32 = TOTAL_LIMIT - TOTAL_LIMIT / 128;

    /// A flag that expects to be what it was once.
    pub(super) fn expecting(value: bool) -> Self {
        let mut flag = Self::default();
        flag.learn(value);
        flag
    }

    pub(super) fn decode(&mut self, coder: &mut Decoder<'_>) -> Result<bool> {
        let share = ((u32::from(self.no) << 20) / u32::from(self.no + self.yes)) << 4;
        let no = share.clamp(TOTAL_LIMIT - Self::SUREST, Self::SUREST);
        let value = coder.decode(TOTAL_LIMIT, |place| match place >= no {
            false => Span { what: false, start: 0, size: no },
            true => Span { what: true, start: no, size: TOTAL_LIMIT - no },
        })?;
        self.learn(value);
        Ok(value)
    }

    fn learn(&mut self, value: bool) {
        *(if value { &mut self.yes } else { &mut self.no }) += Self::STEP;
        if self.no + self.yes > Self::LIMIT {
            self.no = self.no.div_ceil(2);
            self.yes = self.yes.div_ceil(2);
        }
    }
}

/// The values seen in one context, the frequent ones first, and a way out for values
/// that were not.
pub(super) struct Recent<T> {
    seen: Vec<(T, u32)>,
    total: u32,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { seen: Vec::new(), total: 0 }
    }
}

impl<T: Copy + PartialEq> Recent<T> {
    const LENGTH: usize = 32;
    const LIMIT: u32 = 1 << 16;

    /// Decodes a value that was seen before; nothing if it was not: then the caller
    /// decodes it in another way and has it [learnt](Self::learn).
    pub(super) fn decode(&mut self, coder: &mut Decoder<'_>) -> Result<Option<T>> {
        if self.seen.is_empty() {
            return Ok(None);
        }
        let escape = self.seen.len() as u32;
        let index = coder.decode(self.total + escape, |place| self.find(place))?;
        let Some(&(value, _)) = self.seen.get(index) else { return Ok(None) };
        self.count(index);
        Ok(Some(value))
    }

    fn find(&self, place: u32) -> Span<usize> {
        let mut start = 0;
        for (index, &(_, size)) in self.seen.iter().enumerate() {
            if place < start + size {
                return Span { what: index, start, size };
            }
            start += size;
        }
        Span { what: self.seen.len(), start, size: self.seen.len() as u32 }
    }

    fn count(&mut self, index: usize) {
        self.seen[index].1 += 1;
        self.total += 1;
        if index > 0 && self.seen[index].1 > self.seen[index - 1].1 {
            self.seen.swap(index, index - 1);
        }
        if self.total > Self::LIMIT {
            self.seen.iter_mut().for_each(|(_, count)| *count = count.div_ceil(2));
            self.total = self.seen.iter().map(|(_, count)| count).sum();
        }
    }

    /// Adds a value that was not seen before; a full list forgets its last one.
    pub(super) fn learn(&mut self, value: T) {
        if self.seen.len() == Self::LENGTH {
            let forgotten = self.seen.pop().map_or(0, |(_, count)| count);
            self.total -= forgotten;
        }
        self.seen.push((value, 1));
        self.total += 1;
    }
}

/// One of a growing number of alternatives, by index: a Fenwick tree of weights.
#[derive(Default)]
pub(super) struct Choice {
    tree: Vec<u32>,
    total: u32,
}

impl Choice {
    const STEP: u32 = 2;
    const LIMIT: u32 = TOTAL_LIMIT / 4;
    /// With more alternatives than this all count as equally likely.
    const ADAPTIVE: usize = 1 << 20;

    pub(super) fn with(alternatives: usize) -> Self {
        let mut choice = Self::default();
        (0..alternatives).for_each(|_| choice.grow());
        choice
    }

    pub(super) fn len(&self) -> usize {
        self.tree.len()
    }

    /// Adds an alternative.
    pub(super) fn grow(&mut self) {
        let number = self.tree.len() + 1;
        let mut weight = 1;
        let mut span = 1;
        while number & span == 0 {
            weight += self.tree[number - span - 1];
            span <<= 1;
        }
        self.tree.push(weight);
        self.total += 1;
    }

    pub(super) fn decode(&mut self, coder: &mut Decoder<'_>) -> Result<usize> {
        match self.tree.len() {
            0 => Err(Error::damaged("rules", "a choice without alternatives")),
            1 => Ok(0),
            length if length > Self::ADAPTIVE => decode_uniform(coder, length),
            _ => {
                let index = coder.decode(self.total, |place| self.find(place))?;
                self.count(index);
                Ok(index)
            }
        }
    }

    /// The weight of one alternative: of the stretch that its node sums up, what the
    /// nodes below it do not account for.
    fn weight(&self, index: usize) -> u32 {
        let number = index + 1;
        let first = number & (number - 1);
        let (mut weight, mut below) = (self.tree[index], index);
        while below > first {
            weight -= self.tree[below - 1];
            below &= below - 1;
        }
        weight
    }

    fn find(&self, place: u32) -> Span<usize> {
        let (mut index, mut rest) = (0, place);
        let mut step = 1 << self.tree.len().ilog2();
        while step > 0 {
            if index + step <= self.tree.len() && self.tree[index + step - 1] <= rest {
                index += step;
                rest -= self.tree[index - 1];
            }
            step >>= 1;
        }
        Span { what: index, start: place - rest, size: self.weight(index) }
    }

    fn count(&mut self, index: usize) {
        let mut number = index + 1;
        while number <= self.tree.len() {
            self.tree[number - 1] += Self::STEP;
            number += number & number.wrapping_neg();
        }
        self.total += Self::STEP;
        if self.total > Self::LIMIT {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let weights: Vec<u32> = (0..self.tree.len()).map(|index| self.weight(index).div_ceil(2)).collect();
        self.total = weights.iter().sum();
        self.tree = weights;
        for number in 1..=self.tree.len() {
            let parent = number + (number & number.wrapping_neg());
            if parent <= self.tree.len() {
                self.tree[parent - 1] += self.tree[number - 1];
            }
        }
    }
}

/// One of `length` equally likely alternatives: the high bits, then sixteen bits.
pub(super) fn decode_uniform(coder: &mut Decoder<'_>, length: usize) -> Result<usize> {
    let last = length.saturating_sub(1);
    let high = decode_flat(coder, (last >> 16) + 1)?;
    let low = if last >> 16 == 0 { last + 1 } else { 1 << 16 };
    let index = high << 16 | decode_flat(coder, low)?;
    if index > last {
        return Err(Error::damaged("rules", "a choice of none of its alternatives"));
    }
    Ok(index)
}

/// As [`decode_uniform`], for few alternatives.
fn decode_flat(coder: &mut Decoder<'_>, length: usize) -> Result<usize> {
    if length <= 1 {
        return Ok(0);
    }
    coder.decode(length as u32, |place| Span { what: place as usize, start: place, size: 1 })
}

/// A number of any size: how many bits it has, adaptively, then its bits.
pub(super) struct Number {
    bits: Choice,
}

impl Default for Number {
    fn default() -> Self {
        Self { bits: Choice::with(65) }
    }
}

impl Number {
    pub(super) fn decode(&mut self, coder: &mut Decoder<'_>) -> Result<u64> {
        let bits = self.bits.decode(coder)?;
        if bits == 0 {
            return Ok(0);
        }
        let (mut number, mut left) = (1u64, bits - 1);
        while left > 0 {
            let part = left.min(16);
            left -= part;
            number = number << part | decode_flat(coder, 1 << part)? as u64;
        }
        Ok(number)
    }
}
