//! Columns of numbers beside the events, compressed in chunks while they grow and readable in
//! any order. Without the feature `archive` chunks are not compressed.
//!
//! A chunk holds [`CHUNK`] values; reading a value decompresses its chunk, and a
//! [`ColumnReader`] keeps the last one, so reading forwards costs a few nanoseconds a
//! value. Cumulative sums per chunk make the sum of any range cost two chunks.
//!
//! Full chunks are shared by copies of a column; with a [`Spill`] they are in a file, and the
//! column takes 40 bytes of memory a chunk. A column that is [sealed](Column::sealed) has its last
//! values in a chunk as well, which is shorter; what is pushed then opens that chunk again.

use super::spill::{Content, Spill};
use crate::interrupt;
use crate::{Error, Result};
use std::sync::Arc;

/// Values in a full chunk.
pub(crate) const CHUNK: usize = 1 << 15;

/// A number a column can hold.
pub trait Cell: Copy + std::fmt::Debug + Default + PartialEq + Into<Sum> {
    /// Its bits: values that are no numbers are equal if these are.
    fn bits(self) -> u64;

    /// At most [`CHUNK`] values as bytes.
    fn encode(values: &[Self]) -> Vec<u8>;

    /// The reverse of [`encode`](Self::encode). Returns `None` unless the bytes are as many values.
    fn decode(bytes: &[u8], values: &mut [Self]) -> Option<()>;
}

macro_rules! cell {
    ($number:ty, $bits:expr) => {
        impl Cell for $number {
            fn bits(self) -> u64 {
                $bits(self)
            }

            #[cfg(feature = "archive")]
            fn encode(values: &[Self]) -> Vec<u8> {
                // Fails only for a chunk of more than 2^24 values or an unknown setting.
                pco::standalone::simple_compress(values, &pco::ChunkConfig::default()).unwrap_or_default()
            }

            #[cfg(feature = "archive")]
            fn decode(bytes: &[u8], values: &mut [Self]) -> Option<()> {
                let progress = pco::standalone::simple_decompress_into(bytes, values).ok()?;
                (progress.n_processed == values.len() && progress.finished).then_some(())
            }

            #[cfg(not(feature = "archive"))]
            fn encode(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|value| value.to_le_bytes()).collect()
            }

            #[cfg(not(feature = "archive"))]
            fn decode(bytes: &[u8], values: &mut [Self]) -> Option<()> {
                let (cells, rest) = bytes.as_chunks();
                let fits = cells.len() == values.len() && rest.is_empty();
                values.iter_mut().zip(cells).for_each(|(value, &cell)| *value = Self::from_le_bytes(cell));
                fits.then_some(())
            }
        }
    };
}

cell!(i64, |value| value as u64);
cell!(f64, f64::to_bits);

/// The sum of many cells: whole numbers exactly, others as a float.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The sum of the whole numbers; negative ones mark the unknown and are left out.
    pub whole: i128,
    /// The sum of the others; cells that are not numbers are left out.
    pub real: f64,
}

impl From<i64> for Sum {
    fn from(value: i64) -> Self {
        Sum { whole: value.max(0).into(), real: 0.0 }
    }
}

impl From<f64> for Sum {
    fn from(value: f64) -> Self {
        Sum { whole: 0, real: if value.is_nan() { 0.0 } else { value } }
    }
}

impl std::ops::Add for Sum {
    type Output = Sum;
    fn add(self, other: Sum) -> Sum {
        Sum { whole: self.whole + other.whole, real: self.real + other.real }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) content: Content,
    pub(crate) values: usize,
    /// The sum of this chunk's values.
    pub(crate) sum: Sum,
}

/// A growing list of numbers, compressed.
#[derive(Clone, Debug)]
pub struct Column<T: Cell> {
    chunks: Vec<Chunk>,
    tail: Vec<T>,
    spill: Option<Arc<Spill>>,
}

impl<T: Cell> Default for Column<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), tail: Vec::new(), spill: None }
    }
}

impl<T: Cell> PartialEq for Column<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && {
            let (mut left, mut right) = (self.reader(), other.reader());
            (0..self.len()).all(|index| match (left.get(index), right.get(index)) {
                (Ok(a), Ok(b)) => a.bits() == b.bits(),
                _ => false,
            })
        }
    }
}

impl<T: Cell> Column<T> {
    /// A column without values whose chunks go to the same file as those of this one, if they do.
    pub fn another(&self) -> Self {
        Self { spill: self.spill.clone(), ..Self::default() }
    }

    /// A column without values whose full chunks go to this file.
    pub fn spilling(spill: &Arc<Spill>) -> Self {
        Self { spill: Some(Arc::clone(spill)), ..Self::default() }
    }

    /// Appends a value. Where the last values are in another process and cannot be read, nothing is
    /// appended, so that the column does not have as many values as the stream has events, and is
    /// not written.
    pub fn push(&mut self, value: T) {
        if self.tail.is_empty() && self.open().is_err() {
            return;
        }
        self.tail.push(value);
        if self.tail.len() == CHUNK {
            self.seal();
        }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        let missing = self.chunks.last().map_or(0, |last| CHUNK - last.values);
        self.chunks.len() * CHUNK - missing + self.tail.len()
    }

    /// Whether the last values are in a chunk that is not full.
    fn is_sealed(&self) -> bool {
        self.chunks.last().is_some_and(|last| last.values < CHUNK)
    }

    /// The same column with its last values in a chunk, too.
    pub(crate) fn sealed(mut self) -> Self {
        if !self.tail.is_empty() {
            self.seal();
        }
        self
    }

    /// Makes the last values appendable again.
    fn open(&mut self) -> Result<()> {
        if let Some(last) = self.chunks.last().filter(|_| self.is_sealed()) {
            self.tail = decompress(last)?;
            self.chunks.pop();
        }
        Ok(())
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For reading values.
    pub fn reader(&self) -> ColumnReader<'_, T> {
        let mut sums = Vec::with_capacity(self.chunks.len() + 1);
        let mut sum = Sum::default();
        sums.push(sum);
        for chunk in &self.chunks {
            sum = sum + chunk.sum;
            sums.push(sum);
        }
        ColumnReader {
            column: self,
            loaded: usize::MAX,
            values: Vec::new(),
            before: None,
            sums,
            last_sum: (0, Sum::default()),
        }
    }

    /// All values, in order.
    pub fn values(&self) -> Result<Vec<T>> {
        let mut reader = self.reader();
        (0..self.len()).map(|index| reader.get(index)).collect()
    }

    /// Appends all values of another column, and from now on spills where that one does.
    pub(crate) fn append(&mut self, other: &Self) -> Result<()> {
        if self.spill.is_none() {
            self.spill.clone_from(&other.spill);
        }
        self.open()?;
        if self.tail.is_empty() {
            self.chunks.extend_from_slice(&other.chunks);
            self.tail.extend_from_slice(&other.tail);
            return Ok(());
        }
        for chunk in &other.chunks {
            decompress(chunk)?.into_iter().for_each(|value| self.push(value));
        }
        other.tail.iter().for_each(|&value| self.push(value));
        Ok(())
    }

    /// The values of a range, clipped to the column: whole chunks are copied as they are if the
    /// range begins with one.
    pub(crate) fn range(&self, range: std::ops::Range<u64>) -> Result<Self> {
        let clip = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(self.len());
        let (start, end) = (clip(range.start), clip(range.end));
        let (mut column, mut at) = (Self::default(), start);
        if start % CHUNK == 0 && start < end {
            let whole = start / CHUNK..(end / CHUNK).min(self.chunks.len());
            at += whole.len() * CHUNK;
            column.chunks.extend_from_slice(&self.chunks[whole]);
        }
        let mut reader = self.reader();
        while at < end {
            column.push(reader.get(at)?);
            at += 1;
        }
        Ok(column)
    }

    /// Appends a value many times; full chunks of it are compressed once.
    pub fn append_repeated(&mut self, value: T, mut times: u64) -> Result<()> {
        self.open()?;
        if !self.tail.is_empty() {
            let room = (CHUNK - self.tail.len()) as u64;
            let fitting = times.min(room);
            self.tail.resize(self.tail.len() + fitting as usize, value);
            times -= fitting;
            if fitting == room {
                self.seal();
            }
        }
        if times >= CHUNK as u64 {
            let chunk = compress(&[value; CHUNK], self.spill.as_ref());
            let full = (times / CHUNK as u64) as usize;
            self.chunks.extend(std::iter::repeat_n(chunk, full));
        }
        (0..times % CHUNK as u64).for_each(|_| self.push(value));
        Ok(())
    }

    /// Fails unless every chunk holds what it says.
    pub(crate) fn check(&self) -> Result<()> {
        for chunk in &self.chunks {
            let sum = sum_of(&decompress::<T>(chunk)?);
            if (sum.whole, sum.real.to_bits()) != (chunk.sum.whole, chunk.sum.real.to_bits()) {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn seal(&mut self) {
        let chunk = compress(&self.tail, self.spill.as_ref());
        self.chunks.push(chunk);
        self.tail.clear();
    }

    /// The chunks: those that are full, and the last one of a sealed column.
    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The values behind the chunks, compressed, if there are any.
    pub(crate) fn encoded_tail(&self) -> Option<Vec<u8>> {
        (!self.tail.is_empty()).then(|| T::encode(&self.tail))
    }

    /// A sealed column from its chunks, wherever these are; only the last may be shorter than the others.
    pub(crate) fn from_sealed_chunks(chunks: Vec<Chunk>) -> Result<Self> {
        let full = chunks.len().saturating_sub(1);
        let fits = |(place, chunk): (usize, &Chunk)| match place < full {
            true => chunk.values == CHUNK,
            false => (1..=CHUNK).contains(&chunk.values),
        };
        if !chunks.iter().enumerate().all(fits) {
            return Err(damaged());
        }
        Ok(Self { chunks, tail: Vec::new(), spill: None })
    }

    /// A column from its chunks, the last one perhaps shorter than the others.
    pub(crate) fn from_chunks(mut chunks: Vec<Chunk>, spill: Option<&Arc<Spill>>) -> Result<Self> {
        let tail = match chunks.last() {
            Some(last) if last.values != CHUNK => decompress(&chunks.pop().ok_or_else(damaged)?)?,
            _ => Vec::new(),
        };
        if tail.len() >= CHUNK || chunks.iter().any(|chunk| chunk.values != CHUNK) {
            return Err(damaged());
        }
        Ok(Self { chunks, tail, spill: spill.cloned() })
    }
}

fn damaged() -> Error {
    Error::damaged("times", "a chunk does not hold what it says")
}

fn compress<T: Cell>(values: &[T], spill: Option<&Arc<Spill>>) -> Chunk {
    let content = Content::new(T::encode(values), spill);
    Chunk { content, values: values.len(), sum: sum_of(values) }
}

fn sum_of<T: Cell>(values: &[T]) -> Sum {
    values.iter().fold(Sum::default(), |sum, &value| sum + value.into())
}

fn decompress<T: Cell>(chunk: &Chunk) -> Result<Vec<T>> {
    let mut values = Vec::new();
    decompress_into(chunk, &mut values)?;
    Ok(values)
}

/// Makes `values` those of a chunk. Its memory is reused: fresh memory for every chunk would
/// cost about as much as decompressing it.
fn decompress_into<T: Cell>(chunk: &Chunk, values: &mut Vec<T>) -> Result<()> {
    values.resize(chunk.values.min(CHUNK), T::default());
    match chunk.content.with(|bytes| T::decode(bytes, values))? {
        Some(()) if values.len() == chunk.values => Ok(()),
        _ => Err(damaged()),
    }
}

/// Reads a column, remembering the chunk read last.
#[derive(Debug)]
pub struct ColumnReader<'a, T: Cell> {
    column: &'a Column<T>,
    loaded: usize,
    values: Vec<T>,
    /// The last value of the chunk before the one loaded, if that was loaded before it:
    /// otherwise, reading neighbours would load both chunks again and again.
    before: Option<(usize, T)>,
    /// The sum of all chunks before each chunk.
    sums: Vec<Sum>,
    /// The index requested last, and the sum before it: sums are mostly requested in order.
    last_sum: (usize, Sum),
}

impl<T: Cell> ColumnReader<'_, T> {
    /// The value at `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    pub fn get(&mut self, index: usize) -> Result<T> {
        let chunk = index / CHUNK;
        if chunk == self.column.chunks.len() {
            return Ok(self.column.tail[index % CHUNK]);
        }
        if chunk != self.loaded {
            if let Some((at, value)) = self.before
                && at == index
            {
                return Ok(value);
            }
            self.load(chunk)?;
        }
        Ok(self.values[index % CHUNK])
    }

    /// The sum of the values before `index`.
    pub fn sum_before(&mut self, index: usize) -> Result<Sum> {
        let (chunk, within) = (index / CHUNK, index % CHUNK);
        let (last, sum) = self.last_sum;
        let goes_on = last / CHUNK == chunk && last <= index;
        let (from, sum) = if goes_on { (last % CHUNK, sum) } else { (0, self.sums[chunk]) };
        let values = if chunk == self.column.chunks.len() {
            &self.column.tail[from..within]
        } else {
            self.load(chunk)?;
            &self.values[from..within]
        };
        let sum = values.iter().fold(sum, |sum, &value| sum + value.into());
        self.last_sum = (index, sum);
        Ok(sum)
    }

    /// All values of a chunk; the last one may be shorter than [`CHUNK`].
    ///
    /// # Panics
    /// If there is no such chunk.
    pub(crate) fn chunk(&mut self, chunk: usize) -> Result<&[T]> {
        if chunk == self.column.chunks.len() {
            return Ok(&self.column.tail);
        }
        self.load(chunk)?;
        Ok(&self.values)
    }

    fn load(&mut self, chunk: usize) -> Result<()> {
        if self.loaded != chunk {
            interrupt::poll();
            let is_next = self.loaded.checked_add(1) == Some(chunk);
            self.before = self.values.last().filter(|_| is_next).map(|&value| (chunk * CHUNK - 1, value));
            self.loaded = usize::MAX;
            decompress_into(&self.column.chunks[chunk], &mut self.values)?;
            self.loaded = chunk;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks_of<T: Cell>(column: &Column<T>) -> Vec<Chunk> {
        let last = (!column.tail.is_empty()).then(|| compress(&column.tail, None));
        column.chunks().iter().cloned().chain(last).collect()
    }

    #[test]
    fn a_column_gives_back_what_was_pushed() {
        let mut column = Column::default();
        let count = 2 * CHUNK + 17;
        for index in 0..count {
            column.push(index as i64 * 1000 + (index % 7) as i64);
        }
        let again = Column::<i64>::from_chunks(chunks_of(&column), None).unwrap();
        assert_eq!(column, again);
        let mut reader = again.reader();
        for index in [0, 5, CHUNK - 1, CHUNK, count - 1, 3] {
            assert_eq!(reader.get(index).unwrap(), index as i64 * 1000 + (index % 7) as i64);
        }
        let values = column.values().unwrap();
        for index in [0, 9, 5, 7, CHUNK, CHUNK + 1, 2 * CHUNK + 3, 2 * CHUNK + 1, count, 3] {
            let expected: i128 = values[..index].iter().map(|&value| i128::from(value)).sum();
            assert_eq!(reader.sum_before(index).unwrap().whole, expected);
        }
    }

    #[test]
    fn columns_are_appended_at_any_place() {
        for length in [0, 1, 5, CHUNK - 1, CHUNK, CHUNK + 3] {
            for repeated in [0, 4, CHUNK - 4, 2 * CHUNK, 2 * CHUNK + 9] {
                let mut column = Column::default();
                (0..length as i64).for_each(|value| column.push(value));
                column.append_repeated(-1, repeated as u64).unwrap();
                let again = column.clone();
                column.append(&again).unwrap();
                column.check().unwrap();
                let mut expected: Vec<i64> = (0..length as i64).collect();
                expected.extend(std::iter::repeat_n(-1, repeated));
                assert_eq!(column.values().unwrap(), expected.repeat(2));
            }
        }
    }

    #[test]
    fn a_range_is_a_column_of_its_own() {
        let mut column = Column::default();
        (0..2 * CHUNK as i64 + 17).for_each(|value| column.push(value * 3));
        let values = column.values().unwrap();
        let places = [0, 1, CHUNK - 1, CHUNK, CHUNK + 5, 2 * CHUNK, 2 * CHUNK + 17, 3 * CHUNK];
        for start in places {
            for end in places.into_iter().filter(|&end| start <= end) {
                let range = column.range(start as u64..end as u64).unwrap();
                range.check().unwrap();
                let length = values.len();
                assert_eq!(range.values().unwrap(), values[start.min(length)..end.min(length)]);
            }
        }
    }

    #[test]
    fn floats_keep_their_bits() {
        let mut column = Column::default();
        for value in [0.1, f64::NAN, -0.0, f64::INFINITY] {
            column.push(value);
        }
        let again = Column::<f64>::from_chunks(chunks_of(&column), None).unwrap();
        assert!(again.values().unwrap()[1].is_nan());
        assert_eq!(column, again);
    }

    #[test]
    fn a_spilled_column_holds_the_same_values() {
        let spill = Spill::new(tempfile::tempfile().unwrap());
        let mut spilled = Column { spill: Some(spill), ..Column::default() };
        let mut column = Column::default();
        for index in 0..3 * CHUNK as i64 + 5 {
            spilled.push(index * index);
            column.push(index * index);
        }
        assert!(spilled.chunks.iter().all(|chunk| matches!(chunk.content, Content::Spilled { .. })));
        assert_eq!(spilled, column);
        // Behind values that fill no chunk, chunks are compressed again, and spilled too.
        let mut both = Column::default();
        both.push(7);
        both.append(&spilled).unwrap();
        assert!(both.chunks.iter().all(|chunk| matches!(chunk.content, Content::Spilled { .. })));
        assert_eq!(both.range(1..both.len() as u64).unwrap(), column);
        both.check().unwrap();
    }

    #[test]
    fn a_spill_that_takes_nothing_leaves_chunks_in_memory() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut column = Column { spill: Some(Spill::new(file)), ..Column::default() };
        (0..CHUNK as i64).for_each(|value| column.push(value));
        assert!(matches!(column.chunks[0].content, Content::Memory(_)));
        assert_eq!(column.values().unwrap().len(), CHUNK);
    }

    #[test]
    fn damaged_chunks_are_errors() {
        let mut column = Column::default();
        (0..100i64).for_each(|value| column.push(value * value));
        let whole = chunks_of(&column)[0].clone();
        let bytes = whole.content.with(<[u8]>::to_vec).unwrap();
        for position in 0..bytes.len() {
            let content = Content::new(bytes[..position].to_vec(), None);
            assert!(Column::<i64>::from_chunks(vec![Chunk { content, ..whole }], None).is_err());
        }
    }
}
