//! The entropy coder under the models: a range coder (`constriction`'s) that spends
//! `log2(total / size)` bits on an alternative of weight `size` among `total`.
//!
//! A model is written once for both directions. It tells the coder the weight of all
//! alternatives together, where the one at hand lies (asked by the encoder), and which
//! one a position falls into (asked by the decoder); both answer with the alternative.
//! So the two directions cannot drift apart. A decision costs about 15 ns either way.

use crate::{Error, Result};
use constriction::backends::Cursor;
use constriction::stream::model::{DecoderModel, EncoderModel, EntropyModel};
use constriction::stream::queue::{EncoderSituation, RangeDecoder, RangeEncoder};
use constriction::stream::{Decode, Encode};
use std::borrow::Borrow;
use std::num::NonZeroU32;

/// Weights are scaled to this many bits; no total may be larger.
const PRECISION: usize = 24;

/// The largest total of weights that a model may use.
pub(super) const TOTAL_LIMIT: u32 = 1 << PRECISION;

/// An alternative and its place among the weights of all: `start..start + size`.
pub(super) struct Span<T> {
    pub(super) what: T,
    pub(super) start: u32,
    pub(super) size: u32,
}

/// One direction of coding.
pub(super) trait Coder {
    /// Codes one of several alternatives whose weights add up to `total`. The encoder
    /// writes the one that is `known`; the decoder has it found by its place.
    fn code<T: Copy>(
        &mut self,
        total: u32,
        known: impl Fn() -> Span<T>,
        find: impl Fn(u32) -> Span<T>,
    ) -> Result<T>;
}

/// Writes.
#[derive(Default)]
pub(super) struct Encoder {
    range: RangeEncoder<u32, u64>,
}

impl Encoder {
    /// The bytes: all complete words, high byte first, then the fewest bytes that
    /// still tell what was coded when zeros follow.
    pub(super) fn finish(self) -> Vec<u8> {
        let (mut words, state, situation) = self.range.into_raw_parts();
        let (lower, range) = (state.lower(), state.range().get());
        let (point, length) = shortest_point(lower, range);
        if let EncoderSituation::Inverted(count, first) = situation {
            // Words were held back because a carry might still have changed them.
            let carried = point < lower;
            words.push(if carried { first.wrapping_add(1) } else { first });
            words.extend(std::iter::repeat_n(if carried { 0 } else { u32::MAX }, count.get() - 1));
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend_from_slice(&point.to_be_bytes()[..length]);
        bytes
    }
}

/// The number in `lower..lower + range` with the fewest bytes before its zeros.
fn shortest_point(lower: u64, range: u64) -> (u64, usize) {
    for length in 0..8 {
        let below = u64::MAX.checked_shr(8 * length).unwrap_or(0);
        let point = lower.wrapping_add(below) & !below;
        if point.wrapping_sub(lower) < range {
            return (point, length as usize);
        }
    }
    (lower, 8)
}

impl Coder for Encoder {
    #[inline]
    fn code<T: Copy>(
        &mut self,
        total: u32,
        known: impl Fn() -> Span<T>,
        _: impl Fn(u32) -> Span<T>,
    ) -> Result<T> {
        let span = known();
        let model = Weights { total, find: |_| Span { what: (), start: span.start, size: span.size } };
        self.range
            .encode_symbol((), model)
            .map_err(|_| Error::limit("the rules are too many to be coded"))?;
        Ok(span.what)
    }
}

/// Reads. Past the end of its bytes it goes on with zeros.
pub(super) struct Decoder {
    range: RangeDecoder<u32, u64, Cursor<u32, Vec<u32>>>,
}

impl Decoder {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let words: Vec<u32> = bytes.chunks(4).map(padded_word).collect();
        match RangeDecoder::from_compressed(words) {
            Ok(range) => Self { range },
            Err(never) => match never {},
        }
    }
}

fn padded_word(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    u32::from_be_bytes(word)
}

impl Coder for Decoder {
    #[inline]
    fn code<T: Copy>(
        &mut self,
        total: u32,
        _: impl Fn() -> Span<T>,
        find: impl Fn(u32) -> Span<T>,
    ) -> Result<T> {
        self.range
            .decode_symbol(Weights { total, find })
            .map_err(|_| Error::damaged("rules", "the coded items make no sense"))
    }
}

/// Weights as the range coder wants them: scaled to a power of two.
struct Weights<F> {
    total: u32,
    find: F,
}

impl<F> Weights<F> {
    fn scale<T>(&self, span: &Span<T>) -> (u32, NonZeroU32) {
        debug_assert!(span.size > 0 && span.start + span.size <= self.total && self.total <= TOTAL_LIMIT);
        let scaled = |weight: u32| match self.total {
            TOTAL_LIMIT => weight,
            total => ((u64::from(weight) << PRECISION) / u64::from(total)) as u32,
        };
        let (start, end) = (scaled(span.start), scaled(span.start + span.size));
        (start, NonZeroU32::new(end - start).unwrap_or(NonZeroU32::MIN))
    }
}

impl<T, F: Fn(u32) -> Span<T>> EntropyModel<PRECISION> for Weights<F> {
    type Symbol = T;
    type Probability = u32;
}

impl<F: Fn(u32) -> Span<()>> EncoderModel<PRECISION> for Weights<F> {
    #[inline]
    fn left_cumulative_and_probability(&self, _: impl Borrow<()>) -> Option<(u32, NonZeroU32)> {
        Some(self.scale(&(self.find)(0)))
    }
}

impl<T, F: Fn(u32) -> Span<T>> DecoderModel<PRECISION> for Weights<F> {
    #[inline]
    fn quantile_function(&self, quantile: u32) -> (T, u32, NonZeroU32) {
        // The last weight whose scaled value does not pass the quantile.
        let place = ((u64::from(quantile) + 1) * u64::from(self.total) - 1) >> PRECISION;
        let span = (self.find)(place as u32);
        let (start, size) = self.scale(&span);
        (span.what, start, size)
    }
}
