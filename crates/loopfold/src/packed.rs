//! Stores text as it is or compressed by zstd at its highest level, whichever is smaller; the
//! first byte says which.
//!
//! The text may be at most `expansion` times as long as its stored form, so a small file cannot
//! ask for much memory. The writer stores text as it is where compression would exceed that.

use crate::bytes::Bytes;
use crate::{Error, Result};
use std::io::Read;

const LEVEL: i32 = 19;
/// The largest window of level 19, as a power of two. A frame that asks for more is refused.
const WINDOW: u32 = 23;
/// What every zstd frame begins with; not stored.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const STORED: u8 = 0;
const COMPRESSED: u8 = 1;

/// Compresses a text if that makes it smaller.
pub(crate) fn pack(text: &[u8], expansion: usize) -> Result<Vec<u8>> {
    let frame = zstd::bulk::compress(text, LEVEL)?;
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
