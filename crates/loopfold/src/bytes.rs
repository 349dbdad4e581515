//! Encodes numbers and texts as bytes, and decodes them from memory or a file without trusting
//! a length.
//!
//! A number is a LEB128 varint: seven bits a byte, low bits first; all bytes but the last have
//! their high bit set. A text is its length as a number, then its bytes.

use crate::{Error, Result};
use std::io::{Read, Seek, SeekFrom};

/// The message for stored bytes that do not match their checksum.
pub(crate) const CHECKSUM_FAILS: &str = "its checksum does not fit its content";

/// Appends a number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    put_wide(out, number.into());
}

/// Appends a number of up to 128 bits.
pub(crate) fn put_wide(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a text.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// The part of a section that is not read yet.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    left: &'a [u8],
    place: &'static str,
}

impl<'a> Bytes<'a> {
    /// The bytes of a section; `place` is its name for errors.
    pub(crate) fn new(bytes: &'a [u8], place: &'static str) -> Self {
        Self { left: bytes, place }
    }

    /// An error in this section.
    pub(crate) fn damaged(&self, reason: &str) -> Error {
        Error::damaged(self.place, reason)
    }

    fn ended(&self) -> Error {
        self.damaged("it ends too early")
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&byte, left) = self.left.split_first().ok_or_else(|| self.ended())?;
        self.left = left;
        Ok(byte)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (&array, left) = self.left.split_first_chunk().ok_or_else(|| self.ended())?;
        self.left = left;
        Ok(array)
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        u64::try_from(self.wide()?).map_err(|_| self.damaged("a number is too large"))
    }

    pub(crate) fn wide(&mut self) -> Result<u128> {
        let mut number = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.damaged("a number is too large"))
    }

    pub(crate) fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let taken = usize::try_from(length).ok().and_then(|length| self.left.split_at_checked(length));
        let (taken, left) = taken.ok_or_else(|| self.ended())?;
        self.left = left;
        Ok(taken)
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    pub(crate) fn string(&mut self) -> Result<String> {
        let text = self.text()?;
        let text = std::str::from_utf8(text).map_err(|_| self.damaged("a name is not UTF-8"))?;
        Ok(text.to_string())
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.left
    }

    /// Fails unless everything was read.
    pub(crate) fn finish(self) -> Result<()> {
        if self.left.is_empty() { Ok(()) } else { Err(self.damaged("there is more than belongs in it")) }
    }
}

/// Up to `length` bytes from `offset` on; fewer where the input ends. Memory grows with what is
/// read, not with `length`.
pub(crate) fn read_at(input: &mut (impl Read + Seek), offset: u64, length: u64) -> Result<Vec<u8>> {
    input.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
