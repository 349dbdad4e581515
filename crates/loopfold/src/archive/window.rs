//! Reads a section from its file a stretch at a time, for sections that may be larger than what
//! should be in memory.

use super::layout::Section;
use crate::Result;
use crate::bytes::{Bytes, read_at};
use std::io::{Read, Seek};

/// How much is read at once.
const STRETCH: u64 = 1 << 16;

/// The rest of a section.
pub(super) struct Window<'a, R> {
    input: &'a mut R,
    /// Where in the file the bytes behind `bytes` are, and where the section ends.
    offset: u64,
    end: u64,
    bytes: Vec<u8>,
    used: usize,
    place: &'static str,
}

impl<'a, R: Read + Seek> Window<'a, R> {
    pub(super) fn new(input: &'a mut R, section: &Section, place: &'static str) -> Self {
        let (offset, end) = (section.offset(), section.offset() + section.length());
        Self { input, offset, end, bytes: Vec::new(), used: 0, place }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == self.bytes.len() && self.offset == self.end
    }

    /// Decodes something that takes at most this many bytes.
    pub(super) fn decode<T>(
        &mut self,
        most: u64,
        decode: impl FnOnce(&mut Bytes<'_>) -> Result<T>,
    ) -> Result<T> {
        let have = (self.bytes.len() - self.used) as u64;
        if have < most && self.offset < self.end {
            self.bytes.drain(..self.used);
            self.used = 0;
            let length = (most - have).max(STRETCH).min(self.end - self.offset);
            let more = read_at(self.input, self.offset, length)?;
            self.offset += more.len() as u64;
            self.bytes.extend_from_slice(&more);
        }
        let mut bytes = Bytes::new(&self.bytes[self.used..], self.place);
        let decoded = decode(&mut bytes)?;
        self.used = self.bytes.len() - bytes.rest().len();
        Ok(decoded)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        // A number of 128 bits takes at most 19 bytes.
        self.decode(19, |bytes| bytes.number())
    }

    pub(super) fn text(&mut self) -> Result<Vec<u8>> {
        let length = self.number()?;
        self.decode(length, |bytes| bytes.take(length).map(<[u8]>::to_vec))
    }
}
