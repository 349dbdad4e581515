//! Numbers byte strings: each distinct one is kept once.
//!
//! A look-up costs a hash of the bytes; an entry takes its bytes and about 16 more.

use crate::{Error, Result};
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Numbers distinct byte strings in the order in which they first come.
#[derive(Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    /// Where each entry ends.
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
}

impl Interner {
    /// The number of this entry.
    pub(crate) fn intern(&mut self, entry: &[u8]) -> Result<u32> {
        let hash = self.hasher.hash_one(entry);
        if let Some(&known) = self.index.find(hash, |&other| self.get(other) == entry) {
            return Ok(known);
        }
        let number = u32::try_from(self.ends.len())
            .map_err(|_| Error::option("more than 2^32 distinct events are not supported"))?;
        self.bytes.extend_from_slice(entry);
        self.ends.push(self.bytes.len());
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.index.insert_unique(hash, number, |&other| hasher.hash_one(slice_of(bytes, ends, other)));
        Ok(number)
    }

    /// The entry with this number, which must be one that [`Interner::intern`] gave.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        slice_of(&self.bytes, &self.ends, number)
    }
}

fn slice_of<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let index = number as usize;
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &bytes[start..ends[index]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_entries_have_one_number() {
        let mut interner = Interner::default();
        let numbers: Vec<u32> =
            ["a", "", "b", "a", ""].iter().map(|entry| interner.intern(entry.as_bytes()).unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 0, 1]);
        assert_eq!(interner.get(2), b"b");
    }
}
