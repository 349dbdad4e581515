//! Stores text as it is or compressed by zstd at its highest level, whichever is smaller; the
//! first byte says which. A long text that the lowest level compresses as well, such as random
//! numbers, is compressed by that, ten to a hundred times faster.
//!
//! The text may be at most `expansion` times as long as its stored form, so a small file cannot
//! ask for much memory. The writer stores text as it is where compression would exceed that.

use crate::bytes::Bytes;
use crate::{Error, Result};
use std::io::Read;

const LEVEL: i32 = 19;
/// The level of long texts for which a higher one gains less than two parts in a hundred.
const LOW_LEVEL: i32 = 1;
/// A text longer than this is long.
const LONG: usize = 1 << 20;
/// How many samples are taken of it, and their length.
const SAMPLES: usize = 8;
const SAMPLE: usize = 1 << 15;

/// The largest window of level 19, as a power of two. A frame that asks for more is refused.
const WINDOW: u32 = 23;
/// What every zstd frame begins with; not stored.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const STORED: u8 = 0;
const COMPRESSED: u8 = 1;

/// Compresses a text if that makes it smaller.
pub(crate) fn pack(text: &[u8], expansion: usize) -> Result<Vec<u8>> {
    let frame = zstd::bulk::compress(text, level(text)?)?;
    let (method, content) = match frame.strip_prefix(&ZSTD_MAGIC) {
        Some(frame) if frame.len() < text.len() && text.len() / expansion < frame.len() => {
            (COMPRESSED, frame)
        }
        _ => (STORED, text),
    };
    let mut packed = vec![method];
    packed.extend_from_slice(content);
    Ok(packed)
}

/// The level that a text is worth, judged by samples: low for long texts of which neither level
/// makes half, and the high one next to nothing less.
fn level(text: &[u8]) -> Result<i32> {
    if text.len() <= LONG {
        return Ok(LEVEL);
    }
    let parts = text.chunks_exact(text.len() / SAMPLES);
    let samples: Vec<u8> = parts.flat_map(|part| &part[..SAMPLE]).copied().collect();
    let size = |level| zstd::bulk::compress(&samples, level).map(|frame| frame.len());
    let low = size(LOW_LEVEL)?;
    let is_low = low > samples.len() / 2 && size(LEVEL)? >= low / 100 * 98;
    Ok(if is_low { LOW_LEVEL } else { LEVEL })
}

/// The reverse of [`pack`].
pub(crate) fn unpack(packed: &[u8], place: &'static str, expansion: usize) -> Result<Vec<u8>> {
    let mut bytes = Bytes::new(packed, place);
    match bytes.byte()? {
        STORED => Ok(bytes.rest().to_vec()),
        COMPRESSED => decompress(bytes.rest(), expansion)
            .map_err(|_| Error::damaged(place, "the compressed text is not valid")),
        _ => Err(bytes.damaged("an unknown compression")),
    }
}

fn decompress(frame: &[u8], expansion: usize) -> std::io::Result<Vec<u8>> {
    let limit = frame.len().saturating_mul(expansion);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(ZSTD_MAGIC.chain(frame))?.single_frame();
    decoder.window_log_max(WINDOW)?;
    let mut text = Vec::new();
    let read = decoder.by_ref().take(limit as u64 + 1).read_to_end(&mut text)?;
    let beyond = decoder.finish().read(&mut [0])?;
    if read > limit || beyond > 0 { Err(std::io::ErrorKind::InvalidData.into()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use loopfold_testing::Rng;

    #[test]
    fn long_texts_come_back_at_every_level() {
        let mut rng = Rng::new(5);
        let random: Vec<u8> = (0..3 * LONG + 5).map(|_| rng.below(256) as u8).collect();
        let names: Vec<u8> =
            (0..200_000).flat_map(|n| format!("name{} ", n * 7 % 1000).into_bytes()).collect();
        for (text, expected) in [(random, LOW_LEVEL), (names, LEVEL), (b"short".to_vec(), LEVEL)] {
            assert_eq!(level(&text).unwrap(), expected);
            assert_eq!(unpack(&pack(&text, 1000).unwrap(), "text", 1000).unwrap(), text);
        }
    }
}
