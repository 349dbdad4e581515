//! The index of functions: which segments of the fold hold which, see
//! [`PathIndex`](crate::questions::PathIndex).
//!
//! Sets of segments are stored in the portable form of roaring bitmaps, each different one
//! once, and all of it is packed as text is. A few hundred functions and 128 segments take
//! some kilobytes.

use super::text::{pack, unpack};
use crate::bytes::{Bytes, put_number};
use crate::questions::{Functions, NestingLevels, PathIndex};
use crate::{Fold, Result};
use hashbrown::HashMap;
use roaring::RoaringBitmap;

/// How many times longer than stored the index may be.
const EXPANSION: usize = 1024;

/// An index as a section.
pub(super) fn write(index: &PathIndex) -> Result<Vec<u8>> {
    let mut text = index.fingerprint.to_le_bytes().to_vec();
    put_number(&mut text, index.asked as u64);
    put_number(&mut text, index.ends.len() as u64);
    let mut before = 0;
    for (&end, levels) in index.ends.iter().zip(&index.levels) {
        put_number(&mut text, end - before);
        before = end;
        put_number(&mut text, levels.leaves);
        put_number(&mut text, levels.enters);
        // The lowest level of an exit is at least one above the lowest of all.
        put_number(&mut text, levels.returns().unwrap_or(0));
    }
    let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
    let (mut sets, mut functions) = (Vec::new(), Vec::new());
    for set in &index.functions {
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
    put_number(&mut text, index.functions.len() as u64);
    text.extend_from_slice(&functions);
    pack(&text, EXPANSION)
}

/// Reads the index of a fold. Fails if it is of another one.
pub(super) fn read(section: &[u8], fold: &Fold) -> Result<PathIndex> {
    let text = unpack(section, "index", EXPANSION)?;
    let mut bytes = Bytes::new(&text, "index");
    let fingerprint = u64::from_le_bytes(bytes.array()?);
    let asked = bytes.number()?;
    let segments = bytes.number()?;
    let asked = usize::try_from(asked).ok().filter(|&asked| asked <= PathIndex::MOST_SEGMENTS);
    let asked = asked.filter(|&asked| segments <= asked as u64);
    let asked = asked.ok_or_else(|| bytes.damaged("it has too many segments"))?;
    let (mut ends, mut levels, mut end) = (Vec::new(), Vec::new(), 0u64);
    for _ in 0..segments {
        let length = bytes.number()?;
        end = end.checked_add(length).ok_or_else(|| bytes.damaged("its segments are too long"))?;
        ends.push(end);
        let (leaves, enters) = (bytes.number()?, bytes.number()?);
        let returns = Some(bytes.number()?).filter(|&level| level > 0);
        let nesting = NestingLevels::stored(leaves, enters, returns);
        levels.push(nesting.ok_or_else(|| bytes.damaged("its levels of calls cannot be"))?);
    }
    let sets = read_sets(&mut bytes, segments)?;
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
    let index = PathIndex::from_parts(fingerprint, asked, ends, levels, of_functions, &functions);
    if index.fits(fold)? { Ok(index) } else { Err(bytes.damaged(DOES_NOT_FIT)) }
}

const DOES_NOT_FIT: &str = "it does not fit the rules: it is of another fold";

fn read_sets(bytes: &mut Bytes<'_>, segments: u64) -> Result<Vec<RoaringBitmap>> {
    let mut sets = Vec::new();
    for _ in 0..bytes.number()? {
        let mut rest = bytes.rest();
        let before = rest.len();
        let set = RoaringBitmap::deserialize_from(&mut rest);
        let set = set.map_err(|_| bytes.damaged("a set of segments is not valid"))?;
        if set.max().is_some_and(|segment| u64::from(segment) >= segments) {
            return Err(bytes.damaged("a set has a segment that is not there"));
        }
        bytes.take((before - rest.len()) as u64)?;
        sets.push(set);
    }
    Ok(sets)
}
