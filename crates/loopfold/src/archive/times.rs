//! The sections of times: starts, durations and metrics, each a list of columns.
//!
//! A column is stored as the compressed chunks it has in memory, so neither writing
//! nor reading decompresses a full chunk. The sum of each full chunk is stored beside
//! it, for sums over ranges.

use crate::Result;
use crate::bytes::{Bytes, put_number, put_text, put_wide};
use crate::fold::FoldedStream;
use crate::trace::{CHUNK, Cell, Chunk, Column, Sum, Times};

/// How the sum of a chunk is stored.
pub(super) trait Stored: Cell {
    fn put_sum(out: &mut Vec<u8>, sum: Sum);
    fn take_sum(bytes: &mut Bytes<'_>) -> Result<Sum>;
}

impl Stored for i64 {
    fn put_sum(out: &mut Vec<u8>, sum: Sum) {
        put_wide(out, sum.whole.unsigned_abs());
    }

    fn take_sum(bytes: &mut Bytes<'_>) -> Result<Sum> {
        let whole = i128::try_from(bytes.wide()?).ok().filter(|&sum| sum <= MOST_IN_A_CHUNK);
        let whole = whole.ok_or_else(|| bytes.damaged("a sum is too large"))?;
        Ok(Sum { whole, real: 0.0 })
    }
}

/// The sum of a chunk of the largest values there are.
const MOST_IN_A_CHUNK: i128 = i64::MAX as i128 * CHUNK as i128;

impl Stored for f64 {
    fn put_sum(out: &mut Vec<u8>, sum: Sum) {
        out.extend_from_slice(&sum.real.to_bits().to_le_bytes());
    }

    fn take_sum(bytes: &mut Bytes<'_>) -> Result<Sum> {
        let real = f64::from_bits(u64::from_le_bytes(bytes.array()?));
        Ok(Sum { whole: 0, real })
    }
}

fn put_column<T: Stored>(out: &mut Vec<u8>, column: &Column<T>) {
    put_number(out, column.len() as u64);
    for chunk in column.to_chunks() {
        put_text(out, &chunk.bytes);
        if chunk.values == CHUNK {
            T::put_sum(out, chunk.sum);
        }
    }
}

fn take_column<T: Stored>(bytes: &mut Bytes<'_>) -> Result<Column<T>> {
    let mut left = bytes.number()?;
    let mut chunks = Vec::new();
    while left > 0 {
        let values = left.min(CHUNK as u64) as usize;
        left -= values as u64;
        let content = bytes.text()?.to_vec();
        let sum = if values == CHUNK { T::take_sum(bytes)? } else { Sum::default() };
        chunks.push(Chunk { bytes: content, values, sum });
    }
    Column::from_chunks(chunks)
}

/// Writes the column that `column_of` finds in each stream that has one.
pub(super) fn write_columns(
    streams: &[FoldedStream],
    column_of: impl Fn(&Times) -> Option<&Column<i64>>,
) -> Vec<u8> {
    let mut section = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        if let Some(column) = column_of(stream.times()) {
            put_number(&mut section, index as u64);
            put_column(&mut section, column);
        }
    }
    section
}

/// Reads such columns; each goes to `keep` with the index of its stream.
pub(super) fn read_columns(
    section: &[u8],
    place: &'static str,
    mut keep: impl FnMut(u64, Column<i64>) -> Result<()>,
) -> Result<()> {
    let mut bytes = Bytes::new(section, place);
    while !bytes.rest().is_empty() {
        keep(bytes.number()?, take_column(&mut bytes)?)?;
    }
    Ok(())
}

/// Writes all metrics.
pub(super) fn write_metrics(streams: &[FoldedStream]) -> Vec<u8> {
    let mut section = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        for (name, column) in &stream.times().metrics {
            put_number(&mut section, index as u64);
            put_text(&mut section, name.as_bytes());
            put_column(&mut section, column);
        }
    }
    section
}

/// Reads all metrics; each goes to `keep` with the index of its stream and its name.
pub(super) fn read_metrics(
    section: &[u8],
    mut keep: impl FnMut(u64, String, Column<f64>) -> Result<()>,
) -> Result<()> {
    let mut bytes = Bytes::new(section, "metrics");
    while !bytes.rest().is_empty() {
        keep(bytes.number()?, bytes.string()?, take_column(&mut bytes)?)?;
    }
    Ok(())
}
