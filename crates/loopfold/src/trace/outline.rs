//! Times whose chunks stay where they are: another process gets an outline of the columns and reads
//! chunks when it needs them.
//!
//! An outline has the number of values, the size and the sum of each chunk, 10 to 40 bytes for
//! 2^15 events. So a process can ask questions about streams whose times are in the memory of
//! others; what it holds is a chunk for each column that it reads at the moment.

use super::{CHUNK, Cell, Chunk, Column, Content, Spill, Sum, Times};
use crate::bytes::{Bytes, put_number, put_text};
use crate::{Error, Result};
use std::sync::Arc;

/// The chunks of the times of some streams, for others to read.
///
/// ```
/// use loopfold::trace::{ChunkStore, ChunkTable, Column, Spill, Times};
///
/// #[derive(Debug)]
/// struct Elsewhere(ChunkTable);
///
/// impl ChunkStore for Elsewhere {
///     fn append(&mut self, _: &[u8]) -> std::io::Result<u64> {
///         Err(std::io::ErrorKind::Unsupported.into())
///     }
///     fn read(&mut self, number: u64, bytes: &mut [u8]) -> std::io::Result<()> {
///         let chunk = self.0.chunk(number).map_err(std::io::Error::other)?;
///         Ok(bytes.copy_from_slice(&chunk))
///     }
/// }
///
/// let mut starts = Column::default();
/// (0..100_000).for_each(|start| starts.push(start));
/// let times = Times { starts: Some(starts), ..Times::default() };
/// let mut chunks = ChunkTable::default();
/// let outline = chunks.outline(times.clone());
/// let again = Times::from_outline(&outline, &Spill::to(Elsewhere(chunks)))?;
/// assert_eq!(again, times);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ChunkTable {
    chunks: Vec<Content>,
}

impl ChunkTable {
    /// Takes the chunks of a stream's times and returns their outline.
    pub fn outline(&mut self, times: Times) -> Vec<u8> {
        let Times { starts, durations, metrics } = times;
        let mut out = Vec::new();
        for column in [starts, durations] {
            self.optional(column, &mut out);
        }
        put_number(&mut out, metrics.len() as u64);
        for (name, column) in metrics {
            put_text(&mut out, name.as_bytes());
            self.column(column, &mut out);
        }
        out
    }

    /// The bytes of a chunk, by the number that is its place in the outline.
    pub fn chunk(&self, number: u64) -> Result<Vec<u8>> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let chunk =
            self.chunks.get(place).ok_or_else(|| Error::invalid("there is no such chunk of times"))?;
        chunk.with(<[u8]>::to_vec)
    }

    /// The bytes of all chunks together.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    fn optional(&mut self, column: Option<Column<i64>>, out: &mut Vec<u8>) {
        out.push(u8::from(column.is_some()));
        if let Some(column) = column {
            self.column(column, out);
        }
    }

    fn column<T: Cell>(&mut self, column: Column<T>, out: &mut Vec<u8>) {
        let column = column.sealed();
        put_number(out, column.len() as u64);
        put_number(out, self.chunks.len() as u64);
        for chunk in column.chunks() {
            put_number(out, chunk.content.len() as u64);
            out.extend_from_slice(&chunk.sum.whole.to_le_bytes());
            out.extend_from_slice(&chunk.sum.real.to_bits().to_le_bytes());
            self.chunks.push(chunk.content.clone());
        }
    }
}

impl Times {
    /// The times that an outline describes; `chunks` reads a chunk by its number.
    pub fn from_outline(outline: &[u8], chunks: &Arc<Spill>) -> Result<Self> {
        let mut bytes = Bytes::new(outline, "outline of times");
        let starts = optional(&mut bytes, chunks)?;
        let durations = optional(&mut bytes, chunks)?;
        let count = bytes.number()?;
        let mut metrics = Vec::new();
        for _ in 0..count {
            metrics.push((bytes.string()?, column(&mut bytes, chunks)?));
        }
        bytes.finish()?;
        Ok(Self { starts, durations, metrics })
    }
}

fn optional(bytes: &mut Bytes<'_>, chunks: &Arc<Spill>) -> Result<Option<Column<i64>>> {
    match bytes.byte()? {
        0 => Ok(None),
        _ => column(bytes, chunks).map(Some),
    }
}

fn column<T: Cell>(bytes: &mut Bytes<'_>, chunks: &Arc<Spill>) -> Result<Column<T>> {
    let mut left = bytes.number()?;
    let mut number = bytes.number()?;
    let mut all = Vec::new();
    while left > 0 {
        let values = left.min(CHUNK as u64) as usize;
        let length = usize::try_from(bytes.number()?).map_err(|_| bytes.damaged("a chunk is too large"))?;
        let whole = i128::from_le_bytes(bytes.array()?);
        let real = f64::from_bits(u64::from_le_bytes(bytes.array()?));
        let content = Content::Spilled { spill: Arc::clone(chunks), offset: number, length };
        all.push(Chunk { content, values, sum: Sum { whole, real } });
        left -= values as u64;
        number += 1;
    }
    Column::from_sealed_chunks(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::trace::ChunkStore;

    #[derive(Debug)]
    struct Elsewhere(ChunkTable);

    impl ChunkStore for Elsewhere {
        fn append(&mut self, _: &[u8]) -> std::io::Result<u64> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        fn read(&mut self, number: u64, bytes: &mut [u8]) -> std::io::Result<()> {
            bytes.copy_from_slice(&self.0.chunk(number).map_err(std::io::Error::other)?);
            Ok(())
        }
    }

    fn times(length: i64) -> Times {
        let (mut starts, mut durations, mut energy) =
            (Column::default(), Column::default(), Column::default());
        for value in 0..length {
            starts.push(value * 7);
            durations.push(value % 13 - 1);
            energy.push(value as f64 / 3.0);
        }
        Times { starts: Some(starts), durations: Some(durations), metrics: vec![("energy".into(), energy)] }
    }

    #[test]
    fn times_elsewhere_are_the_same() {
        for length in [0, 1, 100, CHUNK as i64, CHUNK as i64 + 1, 3 * CHUNK as i64 - 1] {
            let mut chunks = ChunkTable::default();
            // Numbers of chunks do not begin with 0.
            chunks.outline(times(5));
            let here = times(length);
            let outline = chunks.outline(here.clone());
            let there = Times::from_outline(&outline, &Spill::to(Elsewhere(chunks))).unwrap();
            assert_eq!(there, here, "{length}");
            let (mut one, mut other) =
                (here.durations.as_ref().unwrap().reader(), there.durations.as_ref().unwrap().reader());
            for index in [0, length / 2, length - 1, length].into_iter().filter(|&index| index >= 0) {
                let index = index as usize;
                assert_eq!(one.sum_before(index).unwrap(), other.sum_before(index).unwrap());
            }
            let range = 1..length.max(2) as u64 - 1;
            assert_eq!(there.range(range.clone()).unwrap(), here.range(range).unwrap());
        }
    }

    #[test]
    fn a_sealed_column_grows_again() {
        let mut chunks = ChunkTable::default();
        let outline = chunks.outline(times(CHUNK as i64 + 9));
        let mut there = Times::from_outline(&outline, &Spill::to(Elsewhere(chunks))).unwrap();
        let column = there.starts.as_mut().unwrap();
        column.push(-5);
        column.append(&times(3).starts.unwrap()).unwrap();
        let mut expected = times(CHUNK as i64 + 9).starts.unwrap().values().unwrap();
        expected.extend([-5, 0, 7, 14]);
        assert_eq!(column.values().unwrap(), expected);
    }

    #[test]
    fn a_damaged_outline_is_an_error_or_other_times() {
        let mut chunks = ChunkTable::default();
        let outline = chunks.outline(times(40_000));
        let spill = Spill::to(Elsewhere(chunks));
        for length in 0..outline.len() {
            assert!(Times::from_outline(&outline[..length], &spill).is_err());
        }
        assert!(Times::from_outline(&[1, 9, 99, 1], &spill).is_err());
    }
}
