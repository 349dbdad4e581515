//! The trace in chunks, to be stored beside the fold: the symbols of all streams in order, cut
//! into chunks that are compressed separately, and an index of the functions that each chunk
//! contains.
//!
//! This is the trace as section 4.3 of the paper on paths stores it, so that a search can
//! decompress what it needs and nothing else. Opening what was stored reads its directory
//! alone; a chunk is read, checked against a checksum of its own and decompressed when it is
//! requested, at about a thousand million symbols a second. Writing unfolds the fold and
//! compresses, some ten nanoseconds a symbol. Memory: one chunk, and about a hundred bytes for
//! each in the directory.
//!
//! A chunk *contains* a function if it has an entry, a block or an exit of it. Where exits and
//! blocks do not state their function, they belong to the innermost open call.

mod functions;

use self::functions::IndexBuilder;
use super::{Functions, NestingLevels, TraceChunks};
use crate::bytes::{Bytes, CHECKSUM_FAILS, put_number, put_text, read_at};
use crate::fold::Unfold;
use crate::{Error, Fold, Result, Symbol};
use bytemuck::TransparentWrapper as _;
use roaring::RoaringBitmap;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

/// Decompression is what matters; higher levels take several times longer to write.
const LEVEL: i32 = 3;

/// The most symbols of all streams that are unfolded to be stored: 64 GiB.
const MOST_SYMBOLS: u64 = 1 << 34;

/// The most chunks, so that the directory stays below a few gigabytes.
const MOST_CHUNKS: u64 = 1 << 26;

/// Room for the length of the directory and its checksum.
const MARK: u64 = 10 + 4;

/// How many symbols a chunk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize(u32);

impl Default for ChunkSize {
    /// 4 MiB, as in the paper.
    fn default() -> Self {
        Self(1 << 20)
    }
}

impl ChunkSize {
    /// The most symbols of a chunk: 256 MiB.
    pub const MOST: u64 = 1 << 26;

    /// Chunks of this many symbols.
    pub fn of_symbols(symbols: u64) -> Result<Self> {
        match u32::try_from(symbols) {
            Ok(small) if small > 0 && symbols <= Self::MOST => Ok(Self(small)),
            _ => Err(Error::invalid(format_args!("a chunk has from 1 to {} symbols", Self::MOST))),
        }
    }

    /// Chunks of this many bytes, four for each symbol.
    pub fn of_bytes(bytes: u64) -> Result<Self> {
        Self::of_symbols(bytes / 4)
            .map_err(|_| Error::invalid(format_args!("a chunk has from 4 to {} bytes", 4 * Self::MOST)))
    }

    /// How many symbols a chunk has.
    pub fn symbols(self) -> u64 {
        self.0.into()
    }

    /// The chunks of a fold as bytes, for [`Chunks::open`]. A fold that is stored in another
    /// numbering needs the chunks of that: an archive stores the
    /// [canonical form](Fold::canonical).
    pub fn encode(self, fold: &Fold) -> Result<Vec<u8>> {
        let mut contents = Vec::new();
        let directory = cut(fold, self, |compressed| contents.extend_from_slice(compressed))?.write()?;
        let mut stored = Vec::new();
        put_number(&mut stored, directory.len() as u64);
        stored.extend_from_slice(&crc32fast::hash(&directory).to_le_bytes());
        stored.extend_from_slice(&directory);
        stored.append(&mut contents);
        Ok(stored)
    }
}

/// A chunk as the directory lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    stream: usize,
    first: u64,
    symbols: u64,
    /// Where it begins behind the directory.
    offset: u64,
    bytes: u64,
    checksum: u32,
    levels: NestingLevels,
}

impl Chunk {
    /// The index of its stream.
    pub fn stream(&self) -> usize {
        self.stream
    }

    /// The position of its first symbol in the stream.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// How many symbols it has.
    pub fn symbols(&self) -> u64 {
        self.symbols
    }

    /// How many bytes it is stored in.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How calls are nested in it. The paper's exit level is that before the chunk, less
    /// the calls that are left, and the calls that are entered.
    pub fn levels(&self) -> &NestingLevels {
        &self.levels
    }
}

/// The list of chunks, and which functions they contain.
#[derive(Debug)]
struct Directory {
    size: ChunkSize,
    /// How many symbols the alphabet has.
    alphabet: u64,
    /// How many events each stream has.
    lengths: Vec<u64>,
    /// For each stream its first chunk, and how many chunks there are.
    starts: Vec<usize>,
    chunks: Vec<Chunk>,
    /// For each function the chunks that contain it.
    functions: Vec<RoaringBitmap>,
}

/// Stored chunks of a trace.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::path::{ChunkSize, Chunks};
/// use loopfold::trace::{Collector, Event, Sink};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["a", "b", "a", "b", "a"] {
///     collector.push_event(stream, &Event::named(name))?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let stored = ChunkSize::of_symbols(2)?.encode(&fold)?;
/// let chunks = Chunks::open(std::io::Cursor::new(stored))?;
/// assert_eq!(chunks.all().len(), 3);
/// let mut symbols = Vec::new();
/// chunks.read(2, &mut symbols)?;
/// assert_eq!(symbols.len(), 1);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Debug)]
pub struct Chunks<R> {
    input: Mutex<R>,
    /// Where in the input the first chunk begins.
    begins: u64,
    directory: Directory,
}

impl<R: Read + Seek> Chunks<R> {
    /// Opens what [`ChunkSize::encode`] gave, which is all of the input: reads the directory.
    pub fn open(mut input: R) -> Result<Self> {
        let stored = input.seek(SeekFrom::End(0))?;
        let mark = read_at(&mut input, 0, MARK)?;
        let mut bytes = Bytes::new(&mark, "chunks");
        let length = bytes.number()?;
        let checksum = u32::from_le_bytes(bytes.array()?);
        let head = (mark.len() - bytes.rest().len()) as u64;
        let contents = stored.checked_sub(head).and_then(|rest| rest.checked_sub(length));
        let contents =
            contents.ok_or_else(|| Error::damaged("chunks", "the directory does not fit in it"))?;
        let content = read_at(&mut input, head, length)?;
        if content.len() as u64 != length || crc32fast::hash(&content) != checksum {
            return Err(Error::damaged("chunks, directory", CHECKSUM_FAILS));
        }
        let directory = Directory::read(&content, contents)?;
        Ok(Self { input: Mutex::new(input), begins: head + length, directory })
    }

    /// All chunks, stream by stream.
    pub fn all(&self) -> &[Chunk] {
        &self.directory.chunks
    }

    /// How many symbols a chunk has, but the last of a stream.
    pub fn size(&self) -> ChunkSize {
        self.directory.size
    }

    /// Fails unless these can be the chunks of a fold: its streams, their lengths and its
    /// functions. What is in the chunks is not looked at.
    pub fn check(&self, fold: &Fold) -> Result<()> {
        self.directory.check(fold, &Functions::of(fold.alphabet())?)
    }

    /// Reads, checks and decompresses a chunk, and returns how many bytes came out.
    pub fn read(&self, chunk: usize, symbols: &mut Vec<Symbol>) -> Result<u64> {
        let directory = &self.directory;
        let about = directory.chunks.get(chunk);
        let about = about.ok_or_else(|| Error::invalid(format_args!("there is no chunk {chunk}")))?;
        let compressed = {
            // Whoever panicked before left nothing behind: each seeks first.
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            read_at(&mut *input, self.begins + about.offset, about.bytes)?
        };
        let place = || format!("chunks, {}", directory.name_of(chunk));
        if crc32fast::hash(&compressed) != about.checksum {
            return Err(Error::damaged(place(), CHECKSUM_FAILS));
        }
        decompress(&compressed, about.symbols, directory.alphabet, symbols)
            .map_err(|reason| Error::damaged(place(), reason))
    }

    /// Decompresses all chunks and compares them, and what is known of them, with a fold;
    /// returns how many there are.
    pub fn verify(&self, fold: &Fold) -> Result<u64> {
        let directory = &self.directory;
        let functions = Functions::of(fold.alphabet())?;
        directory.check(fold, &functions)?;
        let mut index = IndexBuilder::new(fold, &functions);
        let (mut stored, mut unfolded) = (Vec::new(), Vec::new());
        for stream in 0..fold.streams().len() {
            index.begin_stream();
            let mut events = fold.unfold(fold.streams()[stream].root());
            for chunk in directory.starts[stream]..directory.starts[stream + 1] {
                self.read(chunk, &mut stored)?;
                fill(&mut events, directory.chunks[chunk].symbols, &mut unfolded);
                let place = || format!("chunks, {}", directory.name_of(chunk));
                if stored != unfolded {
                    return Err(Error::damaged(place(), "it does not have the events of the fold"));
                }
                if index.add(&stored)? != directory.chunks[chunk].levels {
                    return Err(Error::damaged(place(), "its nesting is not that of its events"));
                }
            }
        }
        if index.finish() != directory.functions {
            return Err(Error::damaged(
                "chunks, directory",
                "the chunks do not contain the functions that it says",
            ));
        }
        Ok(directory.chunks.len() as u64)
    }
}

impl<R: Read + Seek + Send> TraceChunks for Chunks<R> {
    fn check(&self, fold: &Fold) -> Result<()> {
        Chunks::check(self, fold)
    }

    fn chunk_symbols(&self) -> u64 {
        self.size().symbols()
    }

    fn first_of(&self, stream: usize) -> usize {
        self.directory.starts.get(stream).copied().unwrap_or(self.all().len())
    }

    fn levels_of(&self, chunk: usize) -> NestingLevels {
        self.all().get(chunk).map(|chunk| chunk.levels).unwrap_or_default()
    }

    fn containing(&self, function: usize) -> Option<&RoaringBitmap> {
        self.directory.functions.get(function)
    }

    fn read(&self, chunk: usize, symbols: &mut Vec<Symbol>) -> Result<u64> {
        Chunks::read(self, chunk, symbols)
    }
}

impl Directory {
    fn read(content: &[u8], contents: u64) -> Result<Self> {
        let mut bytes = Bytes::new(content, "chunks, directory");
        let size =
            ChunkSize::of_symbols(bytes.number()?).map_err(|error| error.within("chunks, directory"))?;
        let alphabet = bytes.number()?;
        let mut directory = Self {
            size,
            alphabet,
            lengths: Vec::new(),
            starts: vec![0],
            chunks: Vec::new(),
            functions: Vec::new(),
        };
        let mut offset = 0u64;
        for stream in 0..bytes.number()? {
            let length = bytes.number()?;
            let mut first = 0;
            while first < length {
                let symbols = size.symbols().min(length - first);
                let chunk = read_chunk(&mut bytes, stream as usize, first, symbols, offset)?;
                let end = offset.checked_add(chunk.bytes).filter(|&end| end <= contents);
                offset = end.ok_or_else(|| bytes.damaged("there is less than it says"))?;
                directory.chunks.push(chunk);
                first += symbols;
            }
            directory.lengths.push(length);
            directory.starts.push(directory.chunks.len());
        }
        if offset != contents {
            return Err(bytes.damaged("there is more than it says"));
        }
        for _ in 0..bytes.number()? {
            let bitmap = RoaringBitmap::deserialize_from(bytes.text()?);
            let bitmap = bitmap.map_err(|_| bytes.damaged("a set of chunks makes no sense"))?;
            if bitmap.max().is_some_and(|last| last as usize >= directory.chunks.len()) {
                return Err(bytes.damaged("a function is in a chunk that is not there"));
            }
            directory.functions.push(bitmap);
        }
        bytes.finish()?;
        Ok(directory)
    }

    fn write(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        put_number(&mut out, self.size.symbols());
        put_number(&mut out, self.alphabet);
        put_number(&mut out, self.lengths.len() as u64);
        for (stream, &length) in self.lengths.iter().enumerate() {
            put_number(&mut out, length);
            for chunk in &self.chunks[self.starts[stream]..self.starts[stream + 1]] {
                put_number(&mut out, chunk.bytes);
                out.extend_from_slice(&chunk.checksum.to_le_bytes());
                put_number(&mut out, chunk.levels.leaves);
                put_number(&mut out, chunk.levels.enters);
                put_number(&mut out, chunk.levels.returns().unwrap_or(0));
            }
        }
        put_number(&mut out, self.functions.len() as u64);
        let mut bitmap = Vec::new();
        for chunks in &self.functions {
            bitmap.clear();
            chunks.serialize_into(&mut bitmap)?;
            put_text(&mut out, &bitmap);
        }
        Ok(out)
    }

    fn check(&self, fold: &Fold, functions: &Functions) -> Result<()> {
        let lengths = fold.streams().iter().map(|stream| fold.length(stream.root()));
        let fits = self.lengths.iter().copied().eq(lengths)
            && self.alphabet == fold.alphabet().len() as u64
            && self.functions.len() == functions.all().len();
        if fits { Ok(()) } else { Err(Error::damaged("chunks", "they are not those of this fold")) }
    }

    /// The name of a chunk in errors.
    fn name_of(&self, chunk: usize) -> String {
        let Chunk { stream, first, symbols, .. } = self.chunks[chunk];
        let last = first + symbols - 1;
        format!(
            "chunk {} of {} (stream {}, events {first} to {last})",
            chunk + 1,
            self.chunks.len(),
            stream + 1
        )
    }
}

fn read_chunk(bytes: &mut Bytes<'_>, stream: usize, first: u64, symbols: u64, offset: u64) -> Result<Chunk> {
    let length = bytes.number()?;
    let checksum = u32::from_le_bytes(bytes.array()?);
    let (leaves, enters, returns) = (bytes.number()?, bytes.number()?, bytes.number()?);
    let fits = [leaves, enters, returns].iter().all(|&calls| calls <= symbols);
    let levels = NestingLevels::stored(leaves, enters, (returns > 0).then_some(returns));
    let levels = levels.filter(|_| fits).ok_or_else(|| bytes.damaged("calls cannot be nested like that"))?;
    Ok(Chunk { stream, first, symbols, offset, bytes: length, checksum, levels })
}

/// Cuts the streams of a fold into chunks, and gives each to `keep` as it is stored.
fn cut(fold: &Fold, size: ChunkSize, mut keep: impl FnMut(&[u8])) -> Result<Directory> {
    if fold.events().is_none_or(|events| events > MOST_SYMBOLS) {
        return Err(Error::limit(format_args!(
            "chunks hold at most {MOST_SYMBOLS} events, and these are more; the fold needs no chunks"
        )));
    }
    let lengths = fold.streams().iter().map(|stream| fold.length(stream.root()));
    if lengths.map(|length| length.div_ceil(size.symbols())).sum::<u64>() > MOST_CHUNKS {
        return Err(Error::limit("the chunks are so small that there are too many of them"));
    }
    let functions = Functions::of(fold.alphabet())?;
    let mut index = IndexBuilder::new(fold, &functions);
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let (mut lengths, mut starts, mut chunks) = (Vec::new(), vec![0], Vec::new());
    let (mut symbols, mut offset) = (Vec::new(), 0);
    for (stream, folded) in fold.streams().iter().enumerate() {
        let length = fold.length(folded.root());
        let mut events = fold.unfold(folded.root());
        index.begin_stream();
        let mut first = 0;
        while first < length {
            fill(&mut events, size.symbols().min(length - first), &mut symbols);
            let compressed = compressor.compress(&to_bytes(&mut symbols))?;
            keep(&compressed);
            let (bytes, checksum) = (compressed.len() as u64, crc32fast::hash(&compressed));
            let (count, levels) = (symbols.len() as u64, index.add(&symbols)?);
            chunks.push(Chunk { stream, first, symbols: count, offset, bytes, checksum, levels });
            first += count;
            offset += bytes;
        }
        lengths.push(length);
        starts.push(chunks.len());
    }
    let alphabet = fold.alphabet().len() as u64;
    Ok(Directory { size, alphabet, lengths, starts, chunks, functions: index.finish() })
}

/// The next events, up to so many.
fn fill(events: &mut Unfold<'_>, count: u64, symbols: &mut Vec<Symbol>) {
    symbols.resize(count as usize, Symbol::from_raw(0));
    let filled = events.fill(symbols);
    symbols.truncate(filled);
}

/// Symbols as they are stored before compression: four bytes each, low byte first.
fn to_bytes(symbols: &mut [Symbol]) -> std::borrow::Cow<'_, [u8]> {
    let numbers: &[u32] = Symbol::peel_slice(symbols);
    if cfg!(target_endian = "little") {
        bytemuck::cast_slice(numbers).into()
    } else {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>().into()
    }
}

/// Decompresses this many symbols, all of which are below `alphabet`.
fn decompress(
    compressed: &[u8],
    count: u64,
    alphabet: u64,
    symbols: &mut Vec<Symbol>,
) -> Result<u64, &'static str> {
    const NOT_SO_MANY: &str = "it does not have as many events as it says";
    symbols.resize(count as usize, Symbol::from_raw(0));
    let numbers: &mut [u32] = Symbol::peel_slice_mut(symbols);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(numbers);
    let length = zstd::bulk::decompress_to_buffer(compressed, bytes).map_err(|_| NOT_SO_MANY)?;
    if length != bytes.len() {
        return Err(NOT_SO_MANY);
    }
    if cfg!(target_endian = "big") {
        numbers.iter_mut().for_each(|number| *number = number.swap_bytes());
    }
    match numbers.iter().max() {
        Some(&largest) if u64::from(largest) >= alphabet => {
            numbers.fill(0);
            Err("it has an event that the alphabet does not have")
        }
        _ => Ok(length as u64),
    }
}

/// How large the chunks of a fold are, as in figure 12 of the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkTotals {
    /// How many chunks there are.
    pub chunks: u64,
    /// The bytes of all chunks, compressed.
    pub bytes: u64,
    /// The bytes of the directory, most of which are the index.
    pub directory: u64,
    /// The bytes of the sets of chunks, one for each function.
    pub index: u64,
}

/// How large the chunks of a fold would be; nothing is kept of them.
pub fn chunk_totals(fold: &Fold, size: ChunkSize) -> Result<ChunkTotals> {
    let mut bytes = 0;
    let directory =
        cut(&fold.canonical_without_times(), size, |compressed| bytes += compressed.len() as u64)?;
    let index = directory.functions.iter().map(|chunks| chunks.serialized_size() as u64).sum();
    let chunks = directory.chunks.len() as u64;
    Ok(ChunkTotals { chunks, bytes, directory: directory.write()?.len() as u64, index })
}
