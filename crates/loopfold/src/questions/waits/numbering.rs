//! Which iterations the events of a stream belong to, and which events count.
//!
//! Rules number the iterations of exact loops. Users know other numbers: those of the loops that
//! they are shown, which may have exceptions. So whoever shows loops passes the nest of each
//! stream, and the iterations of its outermost loops are numbered as that nest numbers them.
//!
//! Cost: 16 bytes for each iteration, none for exact loops in nests without exceptions; O(1) an
//! event, since positions only grow.

use crate::bytes::put_number;
use crate::questions::iterations::visit_iterations;
use crate::questions::nest::{Nest, Node};
use crate::questions::wire::{Reader, put_list, put_optional};
use crate::trace::Times;
use crate::{Error, Result};
use hashbrown::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Iterations that are listed: an archive can declare any number.
const MOST_LISTED: usize = 1 << 26;

/// What of a fold is asked about, and how iterations are numbered.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    /// For each stream the numbers of its iterations. Where there are none, iterations are those
    /// of the rules.
    pub numbers: Vec<Rc<IterationNumbers>>,
    /// For each stream the positions whose waits count, in order, if not all do. All messages are
    /// matched nevertheless.
    pub parts: Option<Vec<Vec<Range<u64>>>>,
    /// For each stream whether its process is asked about, if not all are: its waits count, and
    /// those of others for it in [`Waits::pairs`](super::Waits::pairs) and
    /// [`Waits::ranks`](super::Waits::ranks).
    pub streams: Option<Vec<bool>>,
}

impl Focus {
    /// The focus as bytes, for other processes. Numbers that several streams share are written once.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut distinct: Vec<&Rc<IterationNumbers>> = Vec::new();
        let mut places: HashMap<*const IterationNumbers, u64> = HashMap::new();
        let place = |numbers| {
            *places.entry(Rc::as_ptr(numbers)).or_insert_with(|| {
                distinct.push(numbers);
                distinct.len() as u64 - 1
            })
        };
        let of_streams: Vec<u64> = self.numbers.iter().map(place).collect();
        put_list(&mut out, distinct, |out, numbers| numbers.put(out));
        put_list(&mut out, of_streams, put_number);
        put_optional(&mut out, self.parts.as_ref().map(|parts| parts.len() as u64));
        for ranges in self.parts.iter().flatten() {
            put_list(&mut out, ranges, put_range);
        }
        put_optional(&mut out, self.streams.as_ref().map(|streams| streams.len() as u64));
        out.extend(self.streams.iter().flatten().map(|&chosen| u8::from(chosen)));
        out
    }

    /// The focus of these bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes.to_vec());
        let distinct = reader.list(|reader| Ok(Rc::new(IterationNumbers::take(reader)?)))?;
        let numbers = reader.list(|reader| {
            let place = reader.number()? as usize;
            distinct.get(place).cloned().ok_or_else(|| Reader::damaged("the number of an iteration"))
        })?;
        let count = reader.optional()?;
        let parts = count.map(|count| (0..count).map(|_| reader.list(range)).collect::<Result<_>>());
        let parts = parts.transpose()?;
        let count = reader.optional()?;
        let streams = count.map(|count| (0..count).map(|_| Ok(reader.byte()? > 0)).collect::<Result<_>>());
        Ok(Self { numbers, parts, streams: streams.transpose()? })
    }
}

fn put_range(out: &mut Vec<u8>, range: &Range<u64>) {
    put_number(out, range.start);
    put_number(out, range.end);
}

fn range(reader: &mut Reader) -> Result<Range<u64>> {
    Ok(reader.number()?..reader.number()?)
}

/// The iterations of the outermost loops of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationNumbers {
    /// In the order of the stream.
    loops: Vec<NumberedLoop>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NumberedLoop {
    events: Range<u64>,
    /// How many iterations it has.
    times: u64,
    /// The events of its shortest iteration.
    length: u64,
    /// Where iterations begin, and their numbers; empty if all are as long.
    listed: Vec<(u64, u64)>,
}

impl IterationNumbers {
    /// Those of a nest.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if there are too many iterations.
    pub fn of(nest: &Nest) -> Result<Self> {
        let mut loops: Vec<NumberedLoop> = Vec::new();
        let mut position = 0;
        let mut by_node = Vec::new();
        for node in nest.children(0..nest.nodes.len()) {
            let events = position..position + nest.node_length(node);
            position = events.end;
            let (times, length) = match nest.nodes[node] {
                Node::Loop { times, length, .. } => (times, length),
                Node::Near { near, .. } => (nest.near[near].iterations.1, nest.near[near].lengths.0),
                Node::Event(_) | Node::LeftOut(_) => continue,
            };
            by_node.push(node);
            loops.push(NumberedLoop { events, times, length, listed: Vec::new() });
        }
        if !nest.near.is_empty() {
            let mut listed = 0;
            visit_iterations(nest, &Times::default(), |iteration| {
                if !iteration.outer.is_empty() {
                    return Ok(());
                }
                listed += 1;
                if listed > MOST_LISTED {
                    return Err(Error::limit("too many iterations to number them"));
                }
                if let Ok(index) = by_node.binary_search(&iteration.node) {
                    loops[index].listed.push((iteration.events.start, iteration.iteration));
                }
                Ok(())
            })?;
        }
        Ok(Self { loops })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_list(out, &self.loops, |out, numbered| {
            put_range(out, &numbered.events);
            put_number(out, numbered.times);
            put_number(out, numbered.length);
            // Both grow.
            let mut last = (0, 0);
            put_list(out, &numbered.listed, |out, &(start, number)| {
                put_number(out, start.wrapping_sub(last.0));
                put_number(out, number.wrapping_sub(last.1));
                last = (start, number);
            });
        });
    }

    fn take(reader: &mut Reader) -> Result<Self> {
        let loops = reader.list(|reader| {
            let (events, times, length) = (range(reader)?, reader.number()?, reader.number()?);
            let mut last = (0u64, 0u64);
            let listed = reader.list(|reader| {
                last = (last.0.wrapping_add(reader.number()?), last.1.wrapping_add(reader.number()?));
                Ok(last)
            })?;
            Ok(NumberedLoop { events, times, length, listed })
        })?;
        Ok(Self { loops })
    }
}

/// Where an event is among numbered iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    /// Which loop of the stream.
    pub(super) index: usize,
    pub(super) times: u64,
    pub(super) length: u64,
    pub(super) iteration: u64,
}

/// Looks up iterations at positions that never decrease.
#[derive(Debug, Default)]
pub(super) struct NumberCursor {
    numbers: Option<Rc<IterationNumbers>>,
    index: usize,
    listed: usize,
}

impl NumberCursor {
    pub(super) fn new(numbers: Option<Rc<IterationNumbers>>) -> Self {
        Self { numbers, index: 0, listed: 0 }
    }

    /// The iteration at a position. Returns `None` outside of numbered loops.
    pub(super) fn at(&mut self, position: u64) -> Option<Numbered> {
        let loops = &self.numbers.as_ref()?.loops;
        while loops.get(self.index).is_some_and(|numbered| numbered.events.end <= position) {
            self.index += 1;
            self.listed = 0;
        }
        let found = loops.get(self.index).filter(|numbered| numbered.events.start <= position)?;
        let next = |at: usize| found.listed.get(at + 1);
        while next(self.listed).is_some_and(|&(start, _)| start <= position) {
            self.listed += 1;
        }
        let iteration = match found.listed.get(self.listed) {
            Some(&(_, number)) => number,
            None => (position - found.events.start) / found.length.max(1),
        };
        Some(Numbered { index: self.index, times: found.times, length: found.length, iteration })
    }
}

/// Which positions of a stream count, asked at positions that never decrease.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// `None` if all do.
    parts: Option<Vec<Range<u64>>>,
    index: usize,
}

impl Counted {
    pub(super) fn new(parts: Option<Vec<Range<u64>>>) -> Self {
        Self { parts, index: 0 }
    }

    pub(super) fn contains(&mut self, position: u64) -> bool {
        let Some(parts) = &self.parts else { return true };
        while parts.get(self.index).is_some_and(|part| part.end <= position) {
            self.index += 1;
        }
        parts.get(self.index).is_some_and(|part| part.contains(&position))
    }
}
