//! The range decoder of version 1: words of 32 bits, a state of 64, weights scaled to 24
//! bits. Models tell it the weight of all alternatives together and which one a place
//! among the weights falls into.

use crate::{Error, Result};

/// Weights are scaled to this many bits; no total may be larger.
const PRECISION: u32 = 24;

/// The largest total of weights that a model may use.
pub(super) const TOTAL_LIMIT: u32 = 1 << PRECISION;

/// An alternative and its place among the weights of all: `start..start + size`.
pub(super) struct Span<T> {
    pub(super) what: T,
    pub(super) start: u32,
    pub(super) size: u32,
}

/// Reads. Past the end of its bytes it goes on with zeros.
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    lower: u64,
    range: u64,
    point: u64,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { bytes, lower: 0, range: u64::MAX, point: 0 };
        decoder.point = decoder.word() << 32;
        decoder.point |= decoder.word();
        decoder
    }

    fn word(&mut self) -> u64 {
        let mut word = [0; 4];
        let (taken, rest) = self.bytes.split_at(self.bytes.len().min(4));
        word[..taken.len()].copy_from_slice(taken);
        self.bytes = rest;
        u32::from_be_bytes(word).into()
    }

    /// Decodes one of several alternatives whose weights add up to `total`.
    pub(super) fn decode<T>(&mut self, total: u32, find: impl Fn(u32) -> Span<T>) -> Result<T> {
        let scale = self.range >> PRECISION;
        let quantile = self.point.wrapping_sub(self.lower) / scale;
        if quantile >= u64::from(TOTAL_LIMIT) {
            return Err(Error::damaged("rules", "the coded items make no sense"));
        }
        // The last weight whose scaled value does not pass the quantile.
        let place = ((quantile + 1) * u64::from(total) - 1) >> PRECISION;
        let span = find(place as u32);
        let scaled = |weight: u32| (u64::from(weight) << PRECISION) / u64::from(total);
        let (left, right) = (scaled(span.start), scaled(span.start + span.size));
        self.lower = self.lower.wrapping_add(scale * left);
        self.range = scale * (right - left).max(1);
        if self.range < 1 << 32 {
            self.lower <<= 32;
            self.range <<= 32;
            self.point = self.point << 32 | self.word();
        }
        Ok(span.what)
    }
}
