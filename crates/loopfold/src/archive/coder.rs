//! The entropy coder under the models: a range coder with a range of 64 bits and words
//! of 32. A yes of probability `c` costs `log2(65536 / c)` bits, an alternative of weight
//! `size` among `total` costs `log2(total / size)`.
//!
//! A model is written once for both directions: the encoder gets the value to code, the decoder
//! ignores it and decodes it, and both return the value. So the two directions cannot differ. A
//! yes or no costs 2 ns, a choice by weight two divisions.

use crate::{Error, Result};

/// An alternative and its place among the weights of all: `start..start + size`.
#[derive(Clone, Copy)]
pub(super) struct Span<T> {
    pub(super) what: T,
    pub(super) start: u32,
    pub(super) size: u32,
}

/// The probability of a certain yes. Probabilities lie between 0 and this, both excluded.
pub(super) const CERTAIN: u32 = 1 << 16;

/// One direction of coding.
pub(super) trait Coder {
    /// Codes a yes or no; `probability` says how likely a yes is.
    fn bit(&mut self, probability: u32, value: bool) -> bool;

    /// Codes one of several alternatives whose weights add up to `total`. The encoder
    /// writes the one that is `known`; the decoder has it found by its place.
    fn choose<T: Copy>(
        &mut self,
        total: u32,
        known: impl FnOnce() -> Span<T>,
        find: impl FnOnce(u32) -> Span<T>,
    ) -> Result<T>;

    /// Codes one of `count` equally likely numbers. A choice of one costs nothing.
    fn flat(&mut self, count: u32, number: u32) -> Result<u32> {
        let span = |number| Span { what: number, start: number, size: 1 };
        if count <= 1 { Ok(0) } else { self.choose(count, || span(number), span) }
    }

    /// Codes a yes or no, both equally likely.
    fn even(&mut self, value: bool) -> bool {
        self.bit(CERTAIN / 2, value)
    }
}

/// A range below this is widened by a word.
const NARROW: u64 = 1 << 32;

/// Writes.
pub(super) struct Encoder {
    words: Vec<u32>,
    low: u64,
    range: u64,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { words: Vec::new(), low: 0, range: u64::MAX }
    }
}

impl Encoder {
    /// Narrows the range to the part that begins at `start` and is `size` long.
    #[inline]
    fn take(&mut self, start: u64, size: u64) {
        let (low, carries) = self.low.overflowing_add(start);
        self.low = low;
        self.range = size;
        if carries {
            self.carry();
        }
        if self.range < NARROW {
            self.words.push((self.low >> 32) as u32);
            self.low <<= 32;
            self.range <<= 32;
        }
    }

    #[cold]
    fn carry(&mut self) {
        for word in self.words.iter_mut().rev() {
            *word = word.wrapping_add(1);
            if *word != 0 {
                break;
            }
        }
    }

    /// The bytes: all complete words, high byte first, then the fewest bytes that lie in the
    /// range. Zeros at the end are not written.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let (point, length) = shortest_point(self.low, self.range);
        if point < self.low {
            self.carry();
        }
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend_from_slice(&point.to_be_bytes()[..length]);
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes
    }
}

/// The number in `low..low + range` with the fewest bytes before its zeros.
fn shortest_point(low: u64, range: u64) -> (u64, usize) {
    for length in 0..8 {
        let below = u64::MAX.checked_shr(8 * length).unwrap_or(0);
        let point = low.wrapping_add(below) & !below;
        if point.wrapping_sub(low) < range {
            return (point, length as usize);
        }
    }
    (low, 8)
}

impl Coder for Encoder {
    #[inline]
    fn bit(&mut self, probability: u32, value: bool) -> bool {
        let split = (self.range >> 16) * u64::from(probability);
        if value {
            self.take(0, split)
        } else {
            self.take(split, self.range - split)
        }
        value
    }

    #[inline]
    fn choose<T: Copy>(
        &mut self,
        total: u32,
        known: impl FnOnce() -> Span<T>,
        _: impl FnOnce(u32) -> Span<T>,
    ) -> Result<T> {
        let span = known();
        debug_assert!(span.size > 0 && span.start + span.size <= total);
        let unit = self.range / u64::from(total);
        self.take(unit * u64::from(span.start), unit * u64::from(span.size));
        Ok(span.what)
    }
}

/// Reads. Past the end of its bytes it continues with zeros.
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    /// Where what was coded lies, from the low end of the range.
    point: u64,
    range: u64,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { bytes, point: 0, range: u64::MAX };
        decoder.point = decoder.word() << 32;
        decoder.point |= decoder.word();
        decoder
    }

    #[inline]
    fn word(&mut self) -> u64 {
        if let Some((&word, rest)) = self.bytes.split_first_chunk() {
            self.bytes = rest;
            return u32::from_be_bytes(word).into();
        }
        let mut word = [0; 4];
        word[..self.bytes.len()].copy_from_slice(self.bytes);
        self.bytes = &[];
        u32::from_be_bytes(word).into()
    }

    #[inline]
    fn take(&mut self, start: u64, size: u64) {
        self.point -= start;
        self.range = size;
        if self.range < NARROW {
            self.point = self.point << 32 | self.word();
            self.range <<= 32;
        }
    }
}

impl Coder for Decoder<'_> {
    #[inline]
    fn bit(&mut self, probability: u32, _: bool) -> bool {
        let split = (self.range >> 16) * u64::from(probability);
        let value = self.point < split;
        if value {
            self.take(0, split)
        } else {
            self.take(split, self.range - split)
        }
        value
    }

    #[inline]
    fn choose<T: Copy>(
        &mut self,
        total: u32,
        _: impl FnOnce() -> Span<T>,
        find: impl FnOnce(u32) -> Span<T>,
    ) -> Result<T> {
        let unit = self.range / u64::from(total);
        let place = self.point / unit;
        if place >= u64::from(total) {
            return Err(Error::damaged("coded", "there is nothing at the place that is coded"));
        }
        let span = find(place as u32);
        self.take(unit * u64::from(span.start), unit * u64::from(span.size));
        Ok(span.what)
    }
}
