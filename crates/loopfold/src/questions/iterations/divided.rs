//! The times of loops in some of the streams of a class, for a process that has the times of these only:
//! another one adds them to its own.
//!
//! What is sent is what is kept for a summary: sums, the slowest iteration, and the times of iterations for the
//! median, sorted, so that one takes a byte or two. Of a loop of millions of iterations every 2^k-th is kept,
//! counted over all streams of the class. So a process must know how many iterations come before its streams.
//! All streams of a class have as many, unless times are missing: then [`ClassSamples::is_exact`] says so.

use super::samples::{Samples, thinning_of};
use super::{ClassTimes, LoopTimes, Stopwatch, visit_iterations};
use crate::bytes::put_number;
use crate::questions::near::{Change, Kind, NearNode, Part};
use crate::questions::nest::{Nest, Node};
use crate::questions::wire::{Reader, put_list, put_signed};
use crate::trace::Times;
use crate::{Result, StreamId, Symbol};

/// The times of the loops of a nest in some of its streams.
#[derive(Default)]
pub struct ClassSamples {
    // Most nodes are events.
    nodes: Vec<Option<Box<Samples>>>,
    totals: Vec<(StreamId, i128)>,
    is_inexact: bool,
}

opaque_debug!(ClassSamples);

/// How many iterations of each loop one stream has, other and last ones, and how many of them are one sample.
struct Thinning {
    counts: Vec<[u64; 2]>,
    thinning: Vec<[u32; 2]>,
}

impl ClassSamples {
    /// Those of some streams, each with its place among those of the class that have times, of which there are
    /// `all`.
    pub fn of<'a>(
        nest: &Nest,
        all: u64,
        streams: impl IntoIterator<Item = (StreamId, u64, &'a Times)>,
    ) -> Result<Self> {
        let mut samples = Self::default();
        let mut thinning: Option<Option<Thinning>> = None;
        for (stream, place, times) in streams {
            let thinning = match &thinning {
                Some(known) => known,
                None => &*thinning.insert(Thinning::of(nest, all, times.starts.is_some())?),
            };
            let Some(thinning) = thinning else {
                samples.read(nest, stream, times, |_| ())?;
                continue;
            };
            samples.read(nest, stream, times, |samples| thinning.begin(samples, place))?;
            samples.is_inexact |= !thinning.is_as_expected(&samples.nodes, place);
        }
        Ok(samples)
    }

    /// Reads a stream, if it has times, after `begin`.
    pub(super) fn read(
        &mut self,
        nest: &Nest,
        stream: StreamId,
        times: &Times,
        begin: impl FnOnce(&mut Vec<Option<Box<Samples>>>),
    ) -> Result<()> {
        if Stopwatch::new(times).is_none() {
            return Ok(());
        }
        self.nodes.resize_with(nest.nodes.len(), || None);
        begin(&mut self.nodes);
        let nodes = &mut self.nodes;
        let total = visit_iterations(nest, times, |iteration| {
            nodes[iteration.node].get_or_insert_default().add(stream, &iteration)
        })?;
        self.totals.extend(total.map(|total| (stream, total)));
        self.nodes.iter_mut().flatten().for_each(|samples| samples.end_stream());
        Ok(())
    }

    /// Whether they are the samples that are kept if one process has all streams.
    pub fn is_exact(&self) -> bool {
        !self.is_inexact
    }

    /// For another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_inexact)];
        put_number(&mut out, self.nodes.len() as u64);
        put_list(&mut out, &self.totals, |out, &(stream, total)| {
            put_number(out, stream.index() as u64);
            put_signed(out, total);
        });
        let known: Vec<_> = self.nodes.iter().enumerate().filter(|(_, samples)| samples.is_some()).collect();
        put_list(&mut out, known, |out, (node, samples)| {
            put_number(out, node as u64);
            samples.iter().for_each(|samples| samples.put(out));
        });
        out
    }

    /// Adds those of another process, of the same nest and other streams.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if the bytes are none.
    pub fn add(&mut self, nest: &Nest, bytes: &[u8]) -> Result<()> {
        let mut reader = Reader::new(bytes.to_vec());
        self.is_inexact |= reader.byte()? > 0;
        let nodes = reader.number()? as usize;
        if nodes > nest.nodes.len() {
            return Err(Reader::damaged("a nest"));
        }
        self.nodes.resize_with(self.nodes.len().max(nodes), || None);
        let total = |reader: &mut Reader| Ok((StreamId::new(reader.number()? as usize)?, reader.signed()?));
        self.totals.extend(reader.list(total)?);
        self.totals.sort_by_key(|&(stream, _)| stream);
        for _ in 0..reader.number()? {
            let node = self.nodes.get_mut(reader.number()? as usize);
            let node = node.ok_or_else(|| Reader::damaged("a loop"))?;
            node.get_or_insert_default().absorb(&mut reader)?;
        }
        Ok(())
    }

    /// The times of the loops. Returns `None` when no stream has times.
    pub fn finish(self) -> Result<Option<ClassTimes>> {
        if self.totals.is_empty() {
            return Ok(None);
        }
        let summary = |(node, samples): (usize, Option<Box<Samples>>)| samples?.summary(node).transpose();
        let loops: Result<Vec<LoopTimes>> = self.nodes.into_iter().enumerate().filter_map(summary).collect();
        Ok(Some(ClassTimes { streams: self.totals, loops: loops? }))
    }
}

impl Thinning {
    /// Returns `None` if all iterations are kept.
    fn of(nest: &Nest, all: u64, has_starts: bool) -> Result<Option<Self>> {
        let is_loop = |node: &Node| matches!(node, Node::Loop { .. } | Node::Near { .. });
        let repeated = nest.repetitions();
        let mut loops = nest.nodes.iter().zip(repeated).filter(|(node, _)| is_loop(node));
        let is_many = |times: Option<u64>| {
            times.and_then(|times| times.checked_mul(all)).is_none_or(|all| thinning_of(all) > 0)
        };
        if !loops.any(|(_, times)| is_many(times)) {
            return Ok(None);
        }
        let mut counts = vec![[0u64; 2]; nest.nodes.len()];
        visit_iterations(nest, &Times::default(), |iteration| {
            let is_full = !(iteration.is_last && has_starts) && iteration.iterations == 1;
            counts[iteration.node][usize::from(!is_full)] += 1;
            Ok(())
        })?;
        let thinning = counts.iter().map(|counts| counts.map(|count| thinning_of(count.saturating_mul(all))));
        Ok(Some(Self { thinning: thinning.collect(), counts }))
    }

    /// The stream at this place begins.
    fn begin(&self, nodes: &mut [Option<Box<Samples>>], place: u64) {
        for ((node, counts), thinning) in nodes.iter_mut().zip(&self.counts).zip(&self.thinning) {
            if *counts != [0; 2] {
                node.get_or_insert_default()
                    .begin_stream(counts.map(|count| count.saturating_mul(place)), *thinning);
            }
        }
    }

    /// Whether the stream at this place had as many iterations with times as all have.
    fn is_as_expected(&self, nodes: &[Option<Box<Samples>>], place: u64) -> bool {
        let mut known =
            nodes.iter().zip(&self.counts).filter_map(|(node, counts)| Some((node.as_ref()?, counts)));
        known.all(|(node, counts)| node.counts() == counts.map(|count| count.saturating_mul(place + 1)))
    }
}

const EVENTS: u8 = 0;
const LOOP: u8 = 1;
const NEAR: u8 = 2;
const LEFT_OUT: u8 = 3;

impl Nest {
    /// The loops as bytes, for a process that times them: events are counted only.
    pub fn loops_to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.nodes.len() as u64);
        let mut events = 0;
        let put_events = |out: &mut Vec<u8>, events: &mut u64| {
            if *events > 0 {
                out.push(EVENTS);
                put_number(out, std::mem::take(events));
            }
        };
        for node in &self.nodes {
            if let Node::Event(_) = node {
                events += 1;
                continue;
            }
            put_events(&mut out, &mut events);
            let (kind, numbers) = match *node {
                Node::Event(_) => continue,
                Node::Loop { times, length, end } => (LOOP, vec![times, length, end as u64]),
                Node::Near { near, end } => (NEAR, vec![near as u64, end as u64]),
                Node::LeftOut(events) => (LEFT_OUT, vec![events]),
            };
            out.push(kind);
            numbers.into_iter().for_each(|number| put_number(&mut out, number));
        }
        put_events(&mut out, &mut events);
        put_list(&mut out, &self.near, |out, near| near.put(out));
        out
    }

    /// A nest with the loops of these bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if they are none.
    pub fn from_loops(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes.to_vec());
        let count = reader.number()? as usize;
        let mut nodes = Vec::new();
        while nodes.len() < count {
            match reader.byte()? {
                EVENTS => {
                    let events = reader.number()? as usize;
                    if events > count - nodes.len() {
                        return Err(Reader::damaged("a nest"));
                    }
                    nodes.resize(nodes.len() + events, Node::Event(Symbol::from_raw(0)));
                }
                LOOP => {
                    let (times, length, end) =
                        (reader.number()?, reader.number()?, reader.number()? as usize);
                    nodes.push(Node::Loop { times, length, end });
                }
                NEAR => {
                    nodes
                        .push(Node::Near { near: reader.number()? as usize, end: reader.number()? as usize });
                }
                _ => nodes.push(Node::LeftOut(reader.number()?)),
            }
        }
        let near = reader.list(NearNode::take)?;
        Self { nodes, near }.checked()
    }

    /// Fails unless the loops lie in each other.
    fn checked(self) -> Result<Self> {
        let mut open: Vec<usize> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            while open.pop_if(|end| *end == at).is_some() {}
            let around = open.last().copied().unwrap_or(self.nodes.len());
            let end = match *node {
                Node::Loop { end, times, .. } if times > 0 => end,
                Node::Near { near, end } if near < self.near.len() => end,
                Node::Event(_) | Node::LeftOut(_) => continue,
                _ => return Err(Reader::damaged("a loop")),
            };
            if end <= at + 1 || end > around {
                return Err(Reader::damaged("a loop"));
            }
            open.push(end);
        }
        Ok(self)
    }
}

impl NearNode {
    /// What a walk through the loop needs.
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.all_iterations);
        put_list(out, &self.kinds, |out, kind| put_number(out, kind.iterations));
        let (listed, ends) = self.listed();
        put_list(out, listed, |out, part| match *part {
            Part::Equal(times) => {
                out.push(0);
                put_number(out, times);
            }
            Part::Exception(length, kind) => {
                out.push(1);
                put_number(out, length);
                put_number(out, kind as u64);
            }
        });
        put_list(out, ends, |out, &end| put_number(out, end as u64));
    }

    fn take(reader: &mut Reader) -> Result<Self> {
        let all_iterations = reader.number()?;
        let kind = |iterations| Kind { count: 0, first: 0, iterations, change: Change::Events(Vec::new()) };
        let kinds: Vec<Kind> = reader.list(Reader::number)?.into_iter().map(kind).collect();
        let listed = reader.list(|reader| {
            Ok(match reader.byte()? {
                0 => Part::Equal(reader.number()?),
                _ => Part::Exception(reader.number()?, reader.number()? as usize),
            })
        })?;
        let ends = reader.list(|reader| Ok(reader.number()? as usize))?;
        let has_kind = |part: &Part| !matches!(*part, Part::Exception(_, kind) if kind >= kinds.len());
        let is_sound = ends.is_sorted() && ends.iter().all(|&end| end <= listed.len());
        if !is_sound || !listed.iter().all(has_kind) {
            return Err(Reader::damaged("a loop with exceptions"));
        }
        Ok(Self::of_parts(all_iterations, kinds, (listed, ends)))
    }
}
