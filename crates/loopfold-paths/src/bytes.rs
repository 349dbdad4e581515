//! Numbers and texts as bytes, decoded without trusting a length.
//!
//! A number is a LEB128 varint: seven bits a byte, low bits first. A signed number is interleaved
//! (0, −1, 1, −2, …). A text is its length as a number, then its bytes. Like the bytes of
//! archives, but this crate depends on nothing, so that the compiler pass stays small.

use crate::{Error, Result};

/// Appends a number.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends a text.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// The bytes that are not read yet.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&byte, left) = self.0.split_first().ok_or_else(ended)?;
        self.0 = left;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::new("a number is too large"))
    }

    pub(crate) fn number_u32(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| Error::new("a number is too large"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number of things, each of which takes at least a byte, so there cannot be more than bytes
    /// are left; memory may be reserved for them.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = usize::try_from(self.number()?).ok().filter(|&count| count <= self.0.len());
        count.ok_or_else(ended)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length).ok_or_else(ended)?;
        self.0 = left;
        Ok(taken)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        let length = self.count()?;
        std::str::from_utf8(self.take(length)?).map_err(|_| Error::new("a name is not UTF-8"))
    }
}

fn ended() -> Error {
    Error::new("it ends too early")
}
