//! The sections of times: starts, durations and metrics, each a list of columns.
//!
//! A column is stored as the compressed chunks it has in memory, so neither writing
//! nor reading decompresses a full chunk. The sum of each full chunk is stored beside
//! it, for sums over ranges. A section is written and read a chunk at a time: with a
//! [`Spill`], no more than that is in memory.

use super::content::Content;
use super::window::Window;
use crate::bytes::{Bytes, put_number, put_text, put_wide};
use crate::fold::FoldedStream;
use crate::trace::{CHUNK, Cell, Chunk, Column, Content as ChunkContent, Spill, Sum, Times};
use crate::{Error, Result};
use std::io::{Read, Seek};
use std::sync::Arc;

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

fn put_column<'a, T: Stored>(out: &mut Content<'a>, column: &'a Column<T>) {
    put_number(out.bytes(), column.len() as u64);
    for chunk in column.chunks() {
        put_number(out.bytes(), chunk.content.len() as u64);
        out.chunk(&chunk.content);
        if chunk.values == CHUNK {
            T::put_sum(out.bytes(), chunk.sum);
        }
    }
    if let Some(last) = column.encoded_tail() {
        put_text(out.bytes(), &last);
    }
}

fn take_column<T: Stored, R: Read + Seek>(
    section: &mut Window<'_, R>,
    spill: Option<&Arc<Spill>>,
) -> Result<Column<T>> {
    let mut left = section.number()?;
    let mut chunks = Vec::new();
    while left > 0 {
        let values = left.min(CHUNK as u64) as usize;
        left -= values as u64;
        let is_full = values == CHUNK;
        let content = ChunkContent::new(section.text()?, spill.filter(|_| is_full));
        let sum = if is_full { section.decode(SUM, T::take_sum)? } else { Sum::default() };
        chunks.push(Chunk { content, values, sum });
    }
    Column::from_chunks(chunks, spill)
}

/// The most bytes that a sum takes.
const SUM: u64 = 19;

/// Writes the column that `column_of` finds in each stream that has one.
pub(super) fn write_columns<'a>(
    streams: &'a [FoldedStream],
    column_of: impl Fn(&'a Times) -> Option<&'a Column<i64>>,
) -> Content<'a> {
    let mut section = Content::default();
    for (index, stream) in streams.iter().enumerate() {
        if let Some(column) = column_of(stream.times()) {
            put_number(section.bytes(), index as u64);
            put_column(&mut section, column);
        }
    }
    section
}

/// Reads such columns; each goes to `keep` with the index of its stream.
pub(super) fn read_columns<R: Read + Seek>(
    mut section: Window<'_, R>,
    spill: Option<&Arc<Spill>>,
    mut keep: impl FnMut(u64, Column<i64>) -> Result<()>,
) -> Result<()> {
    while !section.is_empty() {
        keep(section.number()?, take_column(&mut section, spill)?)?;
    }
    Ok(())
}

/// Writes all metrics.
pub(super) fn write_metrics(streams: &[FoldedStream]) -> Content<'_> {
    let mut section = Content::default();
    for (index, stream) in streams.iter().enumerate() {
        for (name, column) in &stream.times().metrics {
            put_number(section.bytes(), index as u64);
            put_text(section.bytes(), name.as_bytes());
            put_column(&mut section, column);
        }
    }
    section
}

/// Reads all metrics; each goes to `keep` with the index of its stream and its name.
pub(super) fn read_metrics<R: Read + Seek>(
    mut section: Window<'_, R>,
    spill: Option<&Arc<Spill>>,
    mut keep: impl FnMut(u64, String, Column<f64>) -> Result<()>,
) -> Result<()> {
    while !section.is_empty() {
        let stream = section.number()?;
        let name = String::from_utf8(section.text()?)
            .map_err(|_| Error::damaged("metrics", "a name is not UTF-8"))?;
        keep(stream, name, take_column(&mut section, spill)?)?;
    }
    Ok(())
}
