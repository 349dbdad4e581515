//! The paths of an MPI program, read by the process that folds its calls.
//!
//! What is different from other programs: one process is followed, on the thread that also reads
//! its calls, so that the two can be joined without waiting for each other; and the chunk that a
//! thread is writing to is read, too, when a segment is due. Processes that the program starts are
//! not recorded.
//!
//! The socket has a name that is not one of a file, so that nothing is left of it.

use super::address;
use super::events::{Decoded, Decoder, Shared};
use super::folding::LaneName;
use super::memory::{Lane, Memory};
use super::messages::{Inbox, Library, Message};
use super::process::Process;
use crate::Result;
use crate::joint::Joint;
use loopfold_paths::Module;
use std::io;
use std::sync::Arc;

/// How many chunks of a lane are read before others get their turn: all of a ring, and the one that
/// is being written.
const TURN: usize = 17;

/// How much of the lanes is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The chunks that are complete.
    Complete,
    /// All that was written, but for the last token of each lane: a jump out of a handler of signals
    /// may take it back.
    Settled,
    /// All that was written: the program waits, or is gone.
    All,
}

/// What is read of the paths of a rank.
pub(crate) struct RankPaths {
    inbox: Inbox,
    address: String,
    shared: Arc<Shared>,
    sources: Vec<Source>,
    /// Those of another version: only what they throw away is known of them.
    refused: Vec<Memory>,
    /// How many run-time libraries had no memory, so that nothing is known of them.
    failures: u64,
}

/// A run-time library: libraries that hide theirs have more than one.
struct Source {
    library: Library,
    memory: Memory,
    process: Arc<Process>,
    /// The present use of each lane.
    usages: Vec<u32>,
    lanes: Vec<Reading>,
}

/// A lane that is read.
struct Reading {
    number: usize,
    lane: Lane,
    /// The next chunk, and how many of its tokens were read.
    tail: u64,
    offset: usize,
    is_ended: bool,
    /// How many tokens were read, and how many the program has counted.
    tokens: u64,
    written: u64,
    decoder: Decoder,
    /// Its place among the streams.
    place: usize,
}

impl RankPaths {
    pub(crate) fn listen(shared: &Arc<Shared>) -> Result<Self> {
        let (address, socket) = address::listen()?;
        let inbox = Inbox::new(socket)?;
        let (sources, refused) = (Vec::new(), Vec::new());
        Ok(Self { inbox, address, shared: Arc::clone(shared), sources, refused, failures: 0 })
    }

    /// Where the program sends its messages.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Reads lanes; true if there was something. A lane that cannot be read ends.
    pub(crate) fn read(&mut self, extent: Extent, joint: &mut Joint) -> Result<bool> {
        self.accept_all();
        let (mut decoded, mut tokens) = (Decoded::default(), Vec::new());
        let mut found = false;
        for source in 0..self.sources.len() {
            self.sources[source].begin_new(source, &self.shared, joint)?;
            for lane in 0..self.sources[source].lanes.len() {
                for _ in 0..TURN {
                    let Source { memory, lanes, .. } = &mut self.sources[source];
                    let Some(from) = lanes[lane].next(memory, extent, &mut tokens) else { break };
                    found = true;
                    // The modules of functions that occur were sent before.
                    self.accept_all();
                    let own = &mut self.sources[source].lanes[lane];
                    let read = own.decoder.chunk(&tokens[from..], &mut decoded);
                    own.is_ended |= read.is_err();
                    own.tokens += read.unwrap_or(0);
                    joint.take_paths(own.place, &mut decoded)?;
                    if own.is_ended || own.offset > 0 {
                        break;
                    }
                }
                let own = &self.sources[source].lanes[lane];
                if own.is_ended || extent == Extent::All {
                    joint.set_unread(own.place, own.unread());
                }
            }
        }
        Ok(found)
    }

    /// How many tokens are known to be lost that are of no lane: those that were thrown away, and of
    /// libraries that are not followed at least one each.
    pub(crate) fn thrown(&mut self) -> u64 {
        self.accept_all();
        let followed = self.sources.iter().map(|source| source.memory.thrown().unwrap_or(0));
        let refused = self.refused.iter().map(|memory| memory.thrown().unwrap_or(0).max(1));
        followed.chain(refused).sum::<u64>() + self.failures
    }

    /// Paths are wanted no longer: what is thrown away from here on is not lost.
    pub(crate) fn stop(self) {
        self.sources.iter().for_each(|source| drop(source.memory.stop()));
    }

    fn accept_all(&mut self) {
        for message in self.inbox.take_all() {
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Hello { library, parent, memory, .. } => {
                let memory = Memory::new(memory);
                let is_understood = memory.is_understood();
                match parent {
                    None if is_understood => self.begin(library, memory),
                    None => {
                        let _ = memory.stop();
                        self.refused.push(memory);
                    }
                    // Processes that the program starts are not recorded.
                    Some(_) => drop(memory.stop()),
                }
            }
            Message::Module { library, first, description } => self.register(library, first, &description),
            Message::Failure { is_copy, .. } => self.failures += u64::from(!is_copy),
            Message::NoCounter { .. } => {}
        }
    }

    fn begin(&mut self, library: Library, memory: Memory) {
        let process = Arc::new(Process::new(self.sources.len(), String::new()));
        self.sources.push(Source { library, memory, process, usages: Vec::new(), lanes: Vec::new() });
    }

    fn register(&mut self, library: Library, first: u32, description: &[u8]) {
        let Some(source) = self.sources.iter().rfind(|source| source.library == library) else { return };
        if let Ok(module) = Module::decode(description) {
            // In the order of modules, not of first use, so that all ranks have the same names.
            module.functions().iter().for_each(|function| self.shared.see(function));
            source.process.register(first, module);
        }
    }
}

impl Source {
    /// Begins lanes that are new or used again, once the use before was read.
    fn begin_new(&mut self, source: usize, shared: &Arc<Shared>, joint: &mut Joint) -> Result<()> {
        let Ok(lanes) = self.memory.lanes() else { return Ok(()) };
        self.usages.resize(lanes.len().max(self.usages.len()), 0);
        for (number, lane) in lanes.into_iter().enumerate() {
            if lane.begun == self.usages[number] {
                continue;
            }
            self.usages[number] = lane.begun;
            let (thread, level, usage) = (lane.thread, lane.level, lane.begun);
            let place = joint.begin(LaneName { process: source, thread, level, usage })?;
            let decoder = Decoder::new(&self.process, shared, false);
            let tail = self.memory.tail(number).unwrap_or(0);
            self.lanes.push(Reading {
                number,
                lane,
                tail,
                offset: 0,
                is_ended: false,
                tokens: 0,
                written: 0,
                decoder,
                place,
            });
        }
        self.lanes.retain(|lane| !lane.is_ended);
        Ok(())
    }
}

impl Reading {
    /// How many of its tokens were not read. What was counted when the lane was looked at is there when
    /// its chunks are read after that.
    fn unread(&self) -> u64 {
        self.written.saturating_sub(self.tokens)
    }

    /// Reads the next chunk and returns where in it begins what is new. Returns `None` if there is
    /// nothing new. Its first 0 ends it.
    fn next(&mut self, memory: &Memory, extent: Extent, tokens: &mut Vec<u32>) -> Option<usize> {
        let read = self.try_next(memory, extent, tokens);
        read.unwrap_or_else(|_| {
            self.is_ended = true;
            None
        })
    }

    fn try_next(
        &mut self,
        memory: &Memory,
        extent: Extent,
        tokens: &mut Vec<u32>,
    ) -> io::Result<Option<usize>> {
        if self.is_ended {
            return Ok(None);
        }
        let now = memory.lane(self.number)?;
        self.written = now.written;
        let is_over = now.ended == self.lane.begun;
        let is_complete = self.tail < now.head;
        if !is_complete && !is_over && extent == Extent::Complete {
            return Ok(None);
        }
        memory.chunk(self.number, self.tail, tokens)?;
        let from = self.offset;
        if is_complete {
            (self.tail, self.offset) = (self.tail + 1, 0);
            memory.set_tail(self.number, self.tail)?;
            return Ok(Some(from));
        }
        if is_over {
            self.is_ended = true;
            memory.set_drained(self.number, self.lane.begun)?;
            return Ok(Some(from));
        }
        let end = tokens[from..].iter().position(|&token| token == 0).map_or(tokens.len(), |end| from + end);
        let is_unsettled = extent == Extent::Settled && end > from;
        self.offset = end - usize::from(is_unsettled);
        tokens.truncate(self.offset);
        Ok((self.offset > from).then_some(from))
    }
}
