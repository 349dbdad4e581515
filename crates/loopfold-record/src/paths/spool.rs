//! The spool: tokens as they come, compressed, in a file beside the archive. They are folded when
//! the program has ended, or when the spool that a killed recorder left is read.
//!
//! A file is a magic and records; a record has a kind, four numbers, the length of what follows and
//! a checksum of all of it. Whatever happens to the recorder, the file can be read up to its last
//! complete record. Each chunk is a zstd frame of its own, at the lowest level.

use super::folding::{CYCLES, FoldedLane, Folding, LaneName, Recorded};
use super::process::Process;
use crate::{Error, Result};
use hashbrown::HashMap;
use loopfold::trace::Spill;
use loopfold_output::Claim;
use loopfold_paths::Module;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const MAGIC: [u8; 8] = *b"\x89spool\r\n";
const HEAD: usize = 25;
const LEVEL: i32 = 1;
/// No chunk has more tokens.
const MOST_TOKENS: u32 = 1 << 16;

/// The kinds of records, and what their four numbers are.
mod kind {
    /// Process, its parent and 1 or 0, its first function that is not the parent's, 1 with cycles.
    pub(super) const PROCESS: u8 = b'P';
    /// Process, the number of the first function.
    pub(super) const MODULE: u8 = b'M';
    /// Lane, process, thread, level; the mark of the parent and the use follow.
    pub(super) const LANE: u8 = b'L';
    /// Lane, number of tokens.
    pub(super) const CHUNK: u8 = b'C';
    /// Lane, 1 if the program went on; the number of tokens that it had written follows.
    pub(super) const LANE_END: u8 = b'W';
    /// Process; how many of its tokens are known to be lost follows.
    pub(super) const LOST: u8 = b'T';
    pub(super) const END: u8 = b'E';
}

/// True if a file with this beginning is a spool.
pub fn is_spool(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// A spool that is written.
#[derive(Debug)]
pub(super) struct Spool {
    claim: Claim,
    path: PathBuf,
    file: Mutex<Written>,
    lanes: AtomicU32,
    is_timed: bool,
    /// What could not be written: processes that have lost so many tokens.
    lost: Mutex<Vec<(usize, u64)>>,
}

#[derive(Debug)]
struct Written {
    file: File,
    /// Up to here all records are complete.
    length: u64,
}

impl Spool {
    pub(super) fn create(claim: Claim, is_timed: bool) -> Result<Self> {
        let path = claim.path();
        let failed = |error: io::Error| Error::at(&path, error);
        let mut file = claim.create()?;
        file.write_all(&MAGIC).map_err(failed)?;
        let written = Mutex::new(Written { file, length: MAGIC.len() as u64 });
        let (lanes, lost) = Default::default();
        Ok(Self { file: written, lanes, is_timed, path, claim, lost })
    }

    fn record(&self, kind: u8, numbers: [u32; 4], content: &[u8]) -> Result<()> {
        let bytes = encoded(kind, numbers, content);
        let mut written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = written.file.write_all(&bytes) {
            // What was written of it must not hide records that follow.
            let length = written.length;
            let _ = written.file.set_len(length);
            let _ = written.file.seek(SeekFrom::Start(length));
            return Err(Error::at(&self.path, error));
        }
        written.length += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn process(&self, process: &Process, parent: Option<(usize, u32)>) -> Result<()> {
        let (parent, first_own) = parent.map_or((0, 0), |(number, own)| (number as u32 + 1, own));
        let numbers = [process.number as u32, parent, first_own, self.is_timed.into()];
        self.record(kind::PROCESS, numbers, process.program.as_bytes())
    }

    pub(super) fn module(&self, process: &Process, first: u32, description: &[u8]) -> Result<()> {
        let packed = zstd::bulk::compress(description, LEVEL)?;
        let numbers = [process.number as u32, first, description.len() as u32, 0];
        self.record(kind::MODULE, numbers, &packed)
    }

    /// Whether every token has ticks.
    pub(super) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Begins a lane.
    pub(super) fn lane(self: &Arc<Self>, name: LaneName, mark: u32) -> Result<SpooledLane> {
        let number = self.lanes.fetch_add(1, Ordering::Relaxed);
        let numbers = [number, name.process as u32, name.thread, name.level];
        let rest = [mark.to_le_bytes(), name.usage.to_le_bytes()].concat();
        self.record(kind::LANE, numbers, &rest)?;
        let compressor = zstd::bulk::Compressor::new(LEVEL)?;
        Ok(SpooledLane { spool: Arc::clone(self), number, compressor, bytes: Vec::new(), tokens: 0 })
    }

    /// A process has lost so many tokens, at least.
    pub(super) fn lose(&self, process: usize, missing: u64) {
        let numbers = [process as u32, 0, 0, 0];
        if self.record(kind::LOST, numbers, &missing.to_le_bytes()).is_err() {
            self.lost.lock().unwrap_or_else(PoisonError::into_inner).push((process, missing));
        }
    }

    /// Nothing more comes.
    pub(super) fn end(&self) -> Result<()> {
        self.record(kind::END, [0; 4], &[])
    }

    /// Ends the spool and folds it.
    pub(super) fn finish(&self, spill: Option<Arc<Spill>>) -> Result<Recorded> {
        self.end()?;
        let lost = std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(read_with(&self.path, spill, &lost)?.recorded)
    }

    /// The file, which is not needed any more once the archive is there.
    pub(super) fn claim(&self) -> &Claim {
        &self.claim
    }
}

/// A lane that goes to the spool.
pub(super) struct SpooledLane {
    spool: Arc<Spool>,
    number: u32,
    compressor: zstd::bulk::Compressor<'static>,
    bytes: Vec<u8>,
    tokens: u64,
}

impl SpooledLane {
    /// Writes a chunk; returns how many tokens it has.
    pub(super) fn chunk(&mut self, tokens: &[u32]) -> Result<u64> {
        // Behind the last token there are zeros alone, except for ticks of 0.
        let last = tokens.iter().rposition(|&token| token != 0);
        let Some(last) = last else { return Ok(0) };
        let (words, count) = match self.spool.is_timed {
            false => (last + 1, last + 1),
            true => ((last + 2) & !1, last / 2 + 1),
        };
        let used = &tokens[..words.min(tokens.len())];
        self.bytes.clear();
        self.bytes.extend(used.iter().flat_map(|token| token.to_le_bytes()));
        let packed = self.compressor.compress(&self.bytes)?;
        self.spool.record(kind::CHUNK, [self.number, used.len() as u32, 0, 0], &packed)?;
        self.tokens += count as u64;
        Ok(count as u64)
    }

    /// How many tokens were written.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Ends the lane, for which the program has so many tokens, or more if it goes on.
    pub(super) fn end(self, tokens: u64, is_unfinished: bool) -> Result<()> {
        let numbers = [self.number, is_unfinished.into(), 0, 0];
        self.spool.record(kind::LANE_END, numbers, &tokens.to_le_bytes())
    }
}

fn encoded(kind: u8, numbers: [u32; 4], content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + content.len());
    bytes.push(kind);
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes);
    hasher.update(content);
    bytes.extend_from_slice(&hasher.finalize().to_le_bytes());
    bytes.extend_from_slice(content);
    bytes
}

/// What was read from a spool.
#[derive(Debug)]
#[non_exhaustive]
pub struct Spooled {
    /// What was recorded.
    pub recorded: Recorded,
    /// False if the recorder did not get to the end.
    pub is_complete: bool,
    /// The size of the file.
    pub bytes: u64,
}

/// Folds a spool that a recorder has left.
pub fn read_spool(path: &Path) -> Result<Spooled> {
    let spill = loopfold_output::scratch().ok().map(Spill::new);
    read_with(path, spill, &[])
}

/// With what processes have lost that is not in the file.
fn read_with(path: &Path, spill: Option<Arc<Spill>>, lost: &[(usize, u64)]) -> Result<Spooled> {
    let file = File::open(path).map_err(|error| Error::at(path, error))?;
    let contents = Contents::list(&file).map_err(|error| Error::at(path, error))?;
    let folding = Folding::new(contents.is_timed.then_some(CYCLES), spill);
    contents.fold(&file, &folding).map_err(|error| Error::at(path, error))?;
    contents.lost.iter().chain(lost).for_each(|&(process, missing)| folding.lose(process, missing));
    // Something may have followed of which there is no record.
    if !contents.is_complete && !contents.lanes.iter().any(|lane| lane.is_unfinished) {
        folding.lose(0, 0);
    }
    let bytes = file.metadata().map_or(0, |about| about.len());
    Ok(Spooled { recorded: folding.finish()?, is_complete: contents.is_complete, bytes })
}

/// What a spool has: all but the tokens.
#[derive(Default)]
struct Contents {
    processes: Vec<Arc<Process>>,
    parents: Vec<Option<usize>>,
    lanes: Vec<StoredLane>,
    /// Where lanes are, by their numbers: they begin in any order.
    places: HashMap<u32, usize>,
    lost: Vec<(usize, u64)>,
    is_timed: bool,
    is_complete: bool,
}

struct StoredLane {
    name: LaneName,
    mark: u32,
    chunks: Vec<StoredChunk>,
    /// How many tokens the program has written, and whether its end was not recorded.
    written: u64,
    is_unfinished: bool,
}

struct StoredChunk {
    offset: u64,
    length: u32,
    tokens: u32,
}

/// A record without its content.
struct Record {
    kind: u8,
    numbers: [u32; 4],
    offset: u64,
    length: u32,
}

impl Contents {
    /// Reads all records up to the first that is not complete.
    fn list(file: &File) -> Result<Self> {
        let mut reader = io::BufReader::with_capacity(1 << 20, file);
        let mut magic = [0; MAGIC.len()];
        reader.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(Error::new("it is not a spool of a recording"));
        }
        let mut contents = Self::default();
        let mut offset = MAGIC.len() as u64;
        let mut content = Vec::new();
        while let Some(record) = read_record(&mut reader, offset, &mut content) {
            offset = record.offset + u64::from(record.length);
            contents.add(&record, &content)?;
        }
        Ok(contents)
    }

    fn add(&mut self, record: &Record, content: &[u8]) -> Result<()> {
        let [first, second, third, fourth] = record.numbers;
        match record.kind {
            kind::PROCESS => self.add_process(record.numbers, content),
            kind::MODULE => {
                let process = self.process(first)?;
                let description = zstd::bulk::decompress(content, third as usize)?;
                process.register(second, Module::decode(&description).map_err(Error::new)?);
                Ok(())
            }
            kind::LANE if content.len() == 8 => {
                let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| content[at + index]));
                let process = self.process(second)?.number;
                let name = LaneName { process, thread: third, level: fourth, usage: number(4) };
                self.places.insert(first, self.lanes.len());
                let (chunks, mark) = (Vec::new(), number(0));
                self.lanes.push(StoredLane { name, mark, chunks, written: 0, is_unfinished: true });
                Ok(())
            }
            kind::CHUNK => {
                let place = *self.places.get(&first).ok_or_else(damaged)?;
                let lane = &mut self.lanes[place];
                let chunk = StoredChunk { offset: record.offset, length: record.length, tokens: second };
                lane.chunks.push(chunk);
                Ok(())
            }
            kind::LANE_END => {
                let place = *self.places.get(&first).ok_or_else(damaged)?;
                let written = content.try_into().map_err(|_| damaged())?;
                self.lanes[place].written = u64::from_le_bytes(written);
                self.lanes[place].is_unfinished = second != 0;
                Ok(())
            }
            kind::LOST => {
                let process = self.process(first)?.number;
                self.lost.push((process, u64::from_le_bytes(content.try_into().map_err(|_| damaged())?)));
                Ok(())
            }
            kind::END => {
                self.is_complete = true;
                Ok(())
            }
            _ => Err(damaged()),
        }
    }

    fn process(&self, number: u32) -> Result<&Arc<Process>> {
        self.processes.get(number as usize).ok_or_else(damaged)
    }

    fn add_process(&mut self, [number, parent, own, is_timed]: [u32; 4], program: &[u8]) -> Result<()> {
        let place = self.processes.len();
        if number as usize != place {
            return Err(damaged());
        }
        let parent = parent.checked_sub(1);
        let process = match parent {
            None => Process::new(place, String::from_utf8_lossy(program).into_owned()),
            Some(parent) => Process::forked_from(place, self.process(parent)?, own),
        };
        self.parents.push(parent.map(|parent| parent as usize));
        self.processes.push(Arc::new(process));
        self.is_timed = is_timed != 0;
        Ok(())
    }

    /// Folds all lanes, several at once. A lane may need what was open in its parent's when its
    /// process began; the parent's lanes are taken before.
    fn fold(&self, file: &File, folding: &Folding) -> Result<()> {
        let mut order: Vec<usize> = (0..self.lanes.len()).collect();
        order.sort_by_key(|&lane| self.lanes[lane].name);
        let left: Vec<AtomicUsize> = self.processes.iter().map(|_| AtomicUsize::new(0)).collect();
        self.lanes.iter().for_each(|lane| _ = left[lane.name.process].fetch_add(1, Ordering::Relaxed));
        let is_empty = |process: &&Arc<Process>| left[process.number].load(Ordering::Relaxed) == 0;
        self.processes.iter().filter(is_empty).for_each(|process| process.set_read());
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let work = || {
            while let Some(&lane) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let lane = &self.lanes[lane];
                if let Err(error) = self.fold_lane(file, lane, folding) {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                if left[lane.name.process].fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.processes[lane.name.process].set_read();
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(order.len());
        std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn fold_lane(&self, file: &File, stored: &StoredLane, folding: &Folding) -> Result<()> {
        let process = &self.processes[stored.name.process];
        let parent = self.parents[stored.name.process].filter(|_| stored.mark > 0);
        let open = parent.map(|parent| self.processes[parent].open_at(stored.mark)).unwrap_or_default();
        let mut lane = folding.lane(process, stored.name, &open)?;
        // What was folded before damage is kept.
        let folded = fold_chunks(file, stored, &mut lane);
        let missing = stored.written.saturating_sub(lane.tokens());
        folding.end(lane, missing, stored.is_unfinished);
        folded
    }
}

fn fold_chunks(file: &File, stored: &StoredLane, lane: &mut FoldedLane) -> Result<()> {
    let (mut packed, mut tokens) = (Vec::new(), Vec::new());
    let mut decompressor = zstd::bulk::Decompressor::new()?;
    for chunk in &stored.chunks {
        if chunk.tokens > MOST_TOKENS {
            return Err(damaged());
        }
        packed.resize(chunk.length as usize, 0);
        file.read_exact_at(&mut packed, chunk.offset)?;
        let bytes = decompressor.decompress(&packed, chunk.tokens as usize * 4)?;
        tokens.clear();
        tokens.extend(bytes.as_chunks().0.iter().map(|&token| u32::from_le_bytes(token)));
        lane.chunk(&tokens)?;
    }
    Ok(())
}

/// The next record with its content; `None` where the file ends, or is not what was written.
fn read_record(reader: &mut impl io::Read, offset: u64, content: &mut Vec<u8>) -> Option<Record> {
    let mut head = [0; HEAD];
    reader.read_exact(&mut head).ok()?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| head[at + index]));
    let length = word(17);
    content.clear();
    reader.take(length.into()).read_to_end(content).ok()?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..21]);
    hasher.update(content);
    let is_whole = content.len() as u64 == u64::from(length) && hasher.finalize() == word(21);
    let numbers = [word(1), word(5), word(9), word(13)];
    is_whole.then_some(Record { kind: head[0], numbers, offset: offset + HEAD as u64, length })
}

fn damaged() -> Error {
    Error::new("the spool is damaged")
}
