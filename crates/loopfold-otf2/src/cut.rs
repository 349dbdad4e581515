//! Counts the records of a location that are really in its file.
//!
//! The library reads a file in chunks, and where a file was cut it takes what an earlier chunk
//! left in its buffer for records, possibly forever. So the end of the file is checked first: a whole
//! one ends with a mark. In one that was cut, the records of the last chunk are counted up to the
//! cut.
//!
//! Time and memory: one chunk, of the size that the archive has (1 MB, as a rule).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// A chunk begins with a mark, the order of bytes, and the numbers of its first and last record.
const HEADER: usize = 18;
const END_OF_FILE: u8 = 1;
const END_OF_CHUNK: u8 = 2;
const CHUNK: u8 = 3;
const TIME: u8 = 5;
/// Lower numbers are not those of events.
const FIRST_EVENT: u8 = 10;
/// Larger ones are no chunks.
const LARGEST_CHUNK: u64 = 1 << 28;

/// The most records that can be read: those before the cut, or what the length of the file
/// allows. Returns `None` if there is no such file, as in archives that are compressed or in one
/// file.
pub(crate) fn most_records(file: &Path, chunk: u64) -> Option<u64> {
    let mut file = File::open(file).ok()?;
    let length = file.metadata().ok()?.len();
    // No record is shorter than two bytes.
    Some(before_cut(&mut file, length, chunk).unwrap_or(length / 2).min(length / 2))
}

/// The records before the cut. Returns `None` if the file is whole, or cannot be parsed.
fn before_cut(file: &mut (impl Read + Seek), length: u64, chunk: u64) -> Option<u64> {
    if length == 0 {
        return Some(0);
    }
    if chunk == 0 || chunk > LARGEST_CHUNK {
        return None;
    }
    let start = (length - 1) / chunk * chunk;
    let last = read_at(file, start, chunk)?;
    let Some((first, _)) = numbers(&last) else {
        // Not even the header is whole.
        let Some(before) = start.checked_sub(chunk) else { return Some(0) };
        return numbers(&read_at(file, before, chunk)?).map(|(_, last)| last);
    };
    let mut count = first.checked_sub(1)?;
    let mut rest = &last[HEADER..];
    loop {
        rest = match rest {
            [END_OF_CHUNK, END_OF_FILE, ..] => return None,
            [TIME, after @ ..] if after.len() >= 8 => &after[8..],
            [kind, 0xff, after @ ..] if *kind > TIME && after.len() >= 8 => {
                let (size, after) = after.split_first_chunk::<8>()?;
                let size =
                    if last[1] == b'B' { u64::from_le_bytes(*size) } else { u64::from_be_bytes(*size) };
                let Some(after) = after.get(usize::try_from(size).ok()?..) else { return Some(count) };
                count += u64::from(*kind >= FIRST_EVENT);
                after
            }
            [kind, size, after @ ..] if *kind > TIME && after.len() >= usize::from(*size) => {
                count += u64::from(*kind >= FIRST_EVENT);
                &after[usize::from(*size)..]
            }
            _ => return Some(count),
        }
    }
}

fn read_at(file: &mut (impl Read + Seek), start: u64, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The numbers of a chunk's first and last record.
fn numbers(chunk: &[u8]) -> Option<(u64, u64)> {
    let header = chunk.first_chunk::<HEADER>()?;
    let number = |at: usize| {
        let bytes = *header[at..].first_chunk::<8>()?;
        Some(if header[1] == b'B' { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    };
    (header[0] == CHUNK).then_some((number(2)?, number(10)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::io::Cursor;

    /// Two chunks of 64 bytes with two records and a time each.
    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        for first in [1u64, 3] {
            let begin = bytes.len();
            bytes.extend([CHUNK, b'B']);
            bytes.extend(first.to_le_bytes());
            bytes.extend((first + 1).to_le_bytes());
            bytes.extend([TIME, 0, 0, 0, 0, 0, 0, 0, 0, 12, 1, 7, 13, 1, 7, END_OF_CHUNK]);
            if first == 1 {
                bytes.resize(begin + 64, 0);
            }
        }
        bytes.push(END_OF_FILE);
        bytes
    }

    #[test]
    fn records_before_a_cut_are_counted() {
        let whole = file();
        let at = |length: usize| before_cut(&mut Cursor::new(&whole[..length]), length as u64, 64);
        assert_eq!(at(whole.len()), None);
        assert_eq!(at(whole.len() - 1), Some(4));
        assert_eq!(at(whole.len() - 3), Some(3));
        assert_eq!(at(64 + HEADER), Some(2));
        assert_eq!(at(64 + 5), Some(2));
        assert_eq!(at(64), Some(2));
        assert_eq!(at(HEADER + 12), Some(1));
        assert_eq!(at(5), Some(0));
        assert_eq!(at(0), Some(0));
    }
}
