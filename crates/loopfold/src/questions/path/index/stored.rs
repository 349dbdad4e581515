//! Encodes the index as bytes, to be stored beside the fold.
//!
//! Sets of ranges are stored in the portable form of roaring bitmaps, each different one once,
//! and all of it is compressed like text. A few hundred functions and 128 ranges take some
//! kilobytes. Time: a few nanoseconds a byte.

use super::PathIndex;
use crate::bytes::{Bytes, put_number};
use crate::packed::{pack, unpack};
use crate::questions::path::Functions;
use crate::{Fold, Result};
use hashbrown::HashMap;
use roaring::RoaringBitmap;

/// How many times longer than stored the index may be.
const EXPANSION: usize = 1024;

const DOES_NOT_FIT: &str = "it does not fit the rules: it is of another fold";

impl PathIndex {
    /// The index as bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut text = self.fingerprint.to_le_bytes().to_vec();
        put_number(&mut text, self.asked as u64);
        put_number(&mut text, self.ends.len() as u64);
        let mut before = 0;
        for &end in &self.ends {
            put_number(&mut text, end - before);
            before = end;
        }
        let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut sets, mut functions) = (Vec::new(), Vec::new());
        for set in &self.functions {
            let mut bytes = Vec::with_capacity(set.serialized_size());
            set.serialize_into(&mut bytes)?;
            let next = numbers.len();
            let number = *numbers.entry_ref(&bytes).or_insert(next);
            if number == next {
                sets.extend_from_slice(&bytes);
            }
            put_number(&mut functions, number as u64);
        }
        put_number(&mut text, numbers.len() as u64);
        text.extend_from_slice(&sets);
        put_number(&mut text, self.functions.len() as u64);
        text.extend_from_slice(&functions);
        pack(&text, EXPANSION)
    }

    /// The index of a fold that [`encode`](Self::encode) gave. Fails if it is of another fold.
    pub fn decode(stored: &[u8], fold: &Fold) -> Result<Self> {
        let text = unpack(stored, "index", EXPANSION)?;
        let mut bytes = Bytes::new(&text, "index");
        let fingerprint = u64::from_le_bytes(bytes.array()?);
        let asked = bytes.number()?;
        let ranges = bytes.number()?;
        let asked = usize::try_from(asked).ok().filter(|&asked| asked <= Self::MAX_RANGES);
        let asked = asked.filter(|&asked| ranges <= asked as u64);
        let asked = asked.ok_or_else(|| bytes.damaged("it has too many ranges"))?;
        let ends = read_ends(&mut bytes, ranges)?;
        let sets = read_sets(&mut bytes, ranges)?;
        let functions = Functions::of(fold.alphabet())?;
        if bytes.number()? != functions.all().len() as u64 {
            return Err(bytes.damaged(DOES_NOT_FIT));
        }
        let mut of_functions = Vec::new();
        for _ in functions.all() {
            let set = usize::try_from(bytes.number()?).ok().and_then(|number| sets.get(number));
            of_functions
                .push(set.ok_or_else(|| bytes.damaged("a function has a set that is not there"))?.clone());
        }
        bytes.finish()?;
        let index = Self::from_parts(fingerprint, asked, ends, of_functions, &functions);
        if index.fits(fold)? { Ok(index) } else { Err(bytes.damaged(DOES_NOT_FIT)) }
    }

    /// Builds the index again and compares; returns how many ranges it has.
    pub fn verify(stored: &[u8], fold: &Fold) -> Result<u64> {
        let index = Self::decode(stored, fold)?;
        match index.is_right(fold)? {
            true => Ok(index.ranges() as u64),
            false => Err(Bytes::new(stored, "index").damaged("it does not say what the rules hold")),
        }
    }
}

fn read_ends(bytes: &mut Bytes<'_>, ranges: u64) -> Result<Vec<u64>> {
    let (mut ends, mut end) = (Vec::new(), 0u64);
    for _ in 0..ranges {
        let length = bytes.number()?;
        end = end.checked_add(length).ok_or_else(|| bytes.damaged("its ranges are too long"))?;
        ends.push(end);
    }
    Ok(ends)
}

fn read_sets(bytes: &mut Bytes<'_>, ranges: u64) -> Result<Vec<RoaringBitmap>> {
    let mut sets = Vec::new();
    for _ in 0..bytes.number()? {
        let mut rest = bytes.rest();
        let before = rest.len();
        let set = RoaringBitmap::deserialize_from(&mut rest);
        let set = set.map_err(|_| bytes.damaged("a set of ranges is not valid"))?;
        if set.max().is_some_and(|range| u64::from(range) >= ranges) {
            return Err(bytes.damaged("a set has a range that is not there"));
        }
        bytes.take((before - rest.len()) as u64)?;
        sets.push(set);
    }
    Ok(sets)
}
