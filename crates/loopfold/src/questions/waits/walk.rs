//! Walks along a stream: its events in order, with their times, the function they are in, and
//! the loops around them.
//!
//! Nests of loops are numbered over all streams, so that an event costs O(1). Memory: two chunks
//! of columns, and O(depth of rules + open functions).

use super::kinds::{Kind, Symbols};
use super::numbering::NumberCursor;
use crate::fold::Target;
use crate::fold::cursor::{Cursor, Step};
use crate::trace::{ColumnReader, Times};
use crate::{Error, Fold, Result, StreamId, Symbol};
use hashbrown::HashMap;

/// The loops around an event: their times, the outermost first.
#[derive(Default)]
pub(super) struct LoopNests {
    inner: HashMap<(u32, u64), u32, foldhash::fast::RandomState>,
    /// The nest around each but the innermost loop, and the times of that loop.
    nests: Vec<(u32, u64)>,
    /// The times of the outermost loop of each.
    outermost: Vec<u64>,
}

/// The number of the nest without a loop; the others follow.
pub(super) const NO_LOOP: u32 = 0;
/// No function.
pub(super) const NOWHERE: u32 = u32::MAX;
/// Different nests of loops.
const MOST_NESTS: usize = 1 << 24;
/// Functions that are open at once; more are not distinguished.
const DEEPEST: usize = 1 << 20;
/// Iterations that are distinguished.
const MOST_ITERATIONS: u64 = 1 << 14;

impl LoopNests {
    /// A loop inside a nest.
    fn with_loop(&mut self, nest: u32, times: u64) -> Result<u32> {
        let next = self.nests.len() as u32 + 1;
        let number = *self.inner.entry((nest, times)).or_insert(next);
        if number == next {
            if self.nests.len() >= MOST_NESTS {
                return Err(Error::limit("more than 2^24 different nests of loops"));
            }
            self.outermost.push(self.outermost(nest).unwrap_or(times));
            self.nests.push((nest, times));
        }
        Ok(number)
    }

    /// The nest of loops of these times, the outermost first.
    pub(super) fn of_times(&mut self, times: &[u64]) -> Result<u32> {
        times.iter().try_fold(NO_LOOP, |nest, &times| self.with_loop(nest, times))
    }

    /// The times of the outermost loop. Returns `None` without a loop.
    pub(super) fn outermost(&self, nest: u32) -> Option<u64> {
        self.outermost.get((nest as usize).checked_sub(1)?).copied()
    }

    /// The times of the loops, the outermost first.
    pub(super) fn times(&self, mut nest: u32) -> Vec<u64> {
        let mut all = Vec::new();
        while nest != NO_LOOP {
            let (outer, times) = self.nests[nest as usize - 1];
            all.push(times);
            nest = outer;
        }
        all.reverse();
        all
    }
}

/// How many iterations of a loop are taken as one, as a power of two.
pub(super) fn shift_of(times: u64) -> u32 {
    let mut shift = 0;
    while (times.saturating_sub(1) >> shift) >= MOST_ITERATIONS {
        shift += 1;
    }
    shift
}

/// Where an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) symbol: Symbol,
    pub(super) function: u32,
    pub(super) nest: u32,
    /// The iteration of the outermost loop, as [`shift_of`] numbers them.
    pub(super) iteration: u32,
}

/// An event of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) site: Site,
    pub(super) position: u64,
    pub(super) enter: Option<i64>,
    pub(super) leave: Option<i64>,
    pub(super) has_duration: bool,
}

/// A loop of the rules.
#[derive(Clone, Copy)]
struct RuleLoop {
    times: u64,
    /// The events of an iteration.
    length: u64,
    iteration: u64,
}

/// The walk along one stream.
pub(super) struct Walk<'a> {
    fold: &'a Fold,
    cursor: Cursor<'a, Fold>,
    starts: Option<(ColumnReader<'a, i64>, u64)>,
    durations: Option<(ColumnReader<'a, i64>, u64)>,
    offset: i64,
    /// The loops of the rules around the position.
    loops: Vec<RuleLoop>,
    /// How many of them are around each rule that was entered.
    around: Vec<usize>,
    numbers: NumberCursor,
    /// The nest that was looked up last, and for which numbered loop; none if loops were entered
    /// or left since.
    known: Option<(Option<usize>, u32)>,
    functions: Vec<u32>,
    /// Functions beyond [`DEEPEST`].
    deeper: u64,
}

impl<'a> Walk<'a> {
    /// `offset` is added to all times.
    pub(super) fn new(fold: &'a Fold, stream: StreamId, offset: i64, numbers: NumberCursor) -> Self {
        let stream = fold.stream(stream);
        let Times { starts, durations, .. } = stream.times();
        Self {
            cursor: Cursor::new(fold, stream.root()),
            starts: starts.as_ref().map(|column| (column.reader(), column.len() as u64)),
            durations: durations.as_ref().map(|column| (column.reader(), column.len() as u64)),
            offset,
            fold,
            loops: Vec::new(),
            around: Vec::new(),
            numbers,
            known: None,
            functions: Vec::new(),
            deeper: 0,
        }
    }

    /// The same without durations, which take time to read.
    pub(super) fn without_durations(mut self) -> Self {
        self.durations = None;
        self
    }

    /// The next event. Events behind the column of starts are not visited: their number is
    /// what an archive claims.
    pub(super) fn next(&mut self, nests: &mut LoopNests) -> Result<Option<Seen>> {
        loop {
            match self.cursor.step() {
                None => return Ok(None),
                Some(Step::End { .. }) => {
                    if let Some(around) = self.around.pop() {
                        self.leave_loops(around);
                    }
                }
                Some(Step::Stretch(stretch)) => {
                    let around = self.loops.len();
                    let length = match stretch.target {
                        Target::Rule(rule) => self.fold.length(rule),
                        Target::Symbol(_) => 1,
                    };
                    let times = stretch.before + stretch.times;
                    if times > 1 {
                        self.loops.push(RuleLoop { times, length, iteration: stretch.before });
                        self.known = None;
                    }
                    self.cursor.enter();
                    match stretch.target {
                        Target::Rule(_) => self.around.push(around),
                        Target::Symbol(symbol) => {
                            let seen = self.seen(symbol, stretch.position, nests)?;
                            self.leave_loops(around);
                            return Ok(seen);
                        }
                    }
                }
            }
        }
    }

    fn leave_loops(&mut self, around: usize) {
        if self.loops.len() > around {
            self.loops.truncate(around);
            self.known = None;
        }
    }

    /// The nest around a position, and the iteration of its outermost loop. Of the loops of the
    /// rules inside of a numbered loop, those count whose iterations are shorter.
    #[inline]
    fn nest(&mut self, position: u64, nests: &mut LoopNests) -> Result<(u32, u32)> {
        let numbered = self.numbers.at(position);
        let index = numbered.map(|numbered| numbered.index);
        let nest = match self.known {
            Some((known, nest)) if known == index => nest,
            _ => {
                let mut nest = NO_LOOP;
                if let Some(numbered) = numbered {
                    nest = nests.with_loop(nest, numbered.times)?;
                }
                let longest = numbered.map_or(u64::MAX, |numbered| numbered.length.saturating_sub(1));
                for inner in self.loops.iter().filter(|inner| inner.length <= longest) {
                    nest = nests.with_loop(nest, inner.times)?;
                }
                self.known = Some((index, nest));
                nest
            }
        };
        let outermost = self.loops.first().map(|outermost| (outermost.times, outermost.iteration));
        let outermost = numbered.map(|numbered| (numbered.times, numbered.iteration)).or(outermost);
        Ok((nest, outermost.map_or(0, |(times, iteration)| (iteration >> shift_of(times)) as u32)))
    }

    fn seen(&mut self, symbol: Symbol, position: u64, nests: &mut LoopNests) -> Result<Option<Seen>> {
        if self.starts.as_ref().is_none_or(|&(_, length)| position >= length) {
            return Ok(None);
        }
        let (nest, iteration) = self.nest(position, nests)?;
        let Some((starts, _)) = &mut self.starts else { return Ok(None) };
        let start = Some(starts.get(position as usize)?).filter(|&start| start != Times::UNKNOWN_START);
        let duration = match &mut self.durations {
            Some((reader, length)) if position < *length => reader.get(position as usize)?,
            _ => Times::UNKNOWN_DURATION,
        };
        let enter = start.map(|start| start.saturating_add(self.offset));
        let leave = enter.map(|enter| enter.saturating_add(duration.max(0)));
        let function = self.functions.last().copied().unwrap_or(NOWHERE);
        let site = Site { symbol, function, nest, iteration };
        Ok(Some(Seen { site, position, enter, leave, has_duration: duration >= 0 }))
    }

    /// Follows the functions that an event enters and leaves.
    pub(super) fn follow(&mut self, symbol: Symbol, symbols: &Symbols) {
        match symbols.kinds[symbol.index()] {
            Kind::Enter(_) if self.functions.len() == DEEPEST => self.deeper += 1,
            Kind::Enter(function) => self.functions.push(function),
            Kind::Leave if self.deeper > 0 => self.deeper -= 1,
            Kind::Leave => {
                self.functions.pop();
            }
            _ => {}
        }
    }
}
