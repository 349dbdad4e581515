//! Segments: every distinct stretch of events without a loop, once, with how often it occurs; and
//! samples: the first iterations of each loop, with weights for the others.
//!
//! This is the weighted decomposition of Knödtel and Reichenbach (*Efficient Hierarchical Decomposition
//! of Repetitive Traces for ML-Driven Analysis*): a model is trained on what a nest writes once, weighted
//! by how often it occurs, and a prediction for the whole trace is the sum of weight times prediction.
//!
//! A *segment* is a maximal sequence of events between the borders of loops in the nest. Every event of
//! a trace lies in one occurrence of one segment; so the weights of all segments, their lengths times
//! their occurrences, sum up to the number of events, exactly. Segments with the same events are one,
//! wherever they occur, in all streams. A *sample* keeps what a segment has lost, the events before it:
//! an architecture reaches its steady state after a few iterations, so the last iteration that is kept
//! stands for all that are left out. Its weights sum up to the number of events as well.
//!
//! Cost: O(nest) time and memory for segments, and O(events that are kept) for a sample.

use super::classes::Class;
use super::nest::{Nest, Node};
use crate::{Error, Fold, Result, StreamId, Symbol};
use hashbrown::HashMap;

/// The most nodes of a nest, and the most events of a sample: beyond that, an error.
pub const MOST_NODES: usize = 1 << 24;

/// A sequence of events without a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its events.
    pub events: Vec<Symbol>,
    /// The stream of its first occurrence.
    pub stream: StreamId,
    /// The position of that in the stream.
    pub start: u64,
    /// How many loops are around that.
    pub depth: u32,
    /// How often it occurs, in all streams.
    pub times: u64,
}

impl Segment {
    /// How many events it stands for.
    pub fn weight(&self) -> u64 {
        self.times * self.events.len() as u64
    }
}

/// Consecutive events of a sample that have the same weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The stream.
    pub stream: StreamId,
    /// The position of the first event.
    pub start: u64,
    /// How many events.
    pub length: u64,
    /// How many events each of them stands for.
    pub weight: u64,
}

impl Fold {
    /// The distinct segments of all streams, in the order of their first occurrences; the loops are
    /// those that the folder found.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::trace::{Collector, Event, Sink};
    ///
    /// let mut collector = Collector::default();
    /// let main = collector.stream("main")?;
    /// for name in "init load add store load add store load add store done".split(' ') {
    ///     collector.push_event(main, &Event::named(name))?;
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let segments = fold.segments()?;
    /// let rows: Vec<_> = segments.iter().map(|it| (it.start, it.events.len(), it.times)).collect();
    /// assert_eq!(rows, [(0, 1, 1), (1, 3, 3), (10, 1, 1)]);
    /// assert_eq!(segments.iter().map(|it| it.weight()).sum::<u64>(), 11);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn segments(&self) -> Result<Vec<Segment>> {
        self.events().ok_or_else(uncounted)?;
        let mut found = Found::default();
        for class in self.classes()? {
            let nest = self.whole_nest(&class)?;
            let streams = class.streams.len() as u64;
            let Some(&stream) = class.streams.first() else { continue };
            found.add(&nest, stream, streams);
        }
        Ok(found.segments)
    }

    /// The first `steady_state` iterations of each loop, in the order of the streams; the last of them
    /// has the weight of all that are left out. Streams with the same events are sampled once.
    pub fn sample(&self, steady_state: u64) -> Result<Vec<Stretch>> {
        if steady_state == 0 {
            return Err(Error::invalid("a sample has at least one iteration of each loop"));
        }
        self.events().ok_or_else(uncounted)?;
        let mut sampler = Sampler { steady_state, stretches: Vec::new(), events: 0 };
        for class in self.classes()? {
            let nest = self.whole_nest(&class)?;
            let Some(&stream) = class.streams.first() else { continue };
            sampler.add(&nest, stream, class.streams.len() as u64)?;
        }
        Ok(sampler.stretches)
    }

    fn whole_nest(&self, class: &Class) -> Result<Nest> {
        let nest = self.nest(class.root, MOST_NODES);
        if nest.is_cut() {
            return Err(Error::limit(format_args!(
                "the nest has more than {MOST_NODES} parts; select a part of the trace"
            )));
        }
        Ok(nest)
    }
}

fn uncounted() -> Error {
    Error::limit("there are more events than 64 bits can count")
}

/// The segments so far.
#[derive(Default)]
struct Found {
    segments: Vec<Segment>,
    /// The place of each in the list.
    known: HashMap<Vec<Symbol>, usize>,
}

impl Found {
    /// Adds the segments of a nest that `streams` streams have.
    fn add(&mut self, nest: &Nest, stream: StreamId, streams: u64) {
        // Open loops: the node behind the body, the position behind the loop, and how often it occurs.
        let mut open: Vec<(usize, u64, u64)> = Vec::new();
        let (mut position, mut times) = (0, streams);
        let mut at = 0;
        while at < nest.nodes.len() {
            let end_of_body = open.last().map_or(nest.nodes.len(), |&(end, ..)| end);
            if at == end_of_body {
                if let Some((_, behind, outer)) = open.pop() {
                    (position, times) = (behind, outer);
                }
                continue;
            }
            if let Node::Loop { times: iterations, length, end } = nest.nodes[at] {
                open.push((end, position + iterations * length, times));
                times *= iterations;
                at += 1;
                continue;
            }
            let events = events_from(nest, at, end_of_body);
            let length = events.len();
            self.occurs(events, stream, position, open.len(), times);
            position += length as u64;
            at += length.max(1);
        }
    }

    fn occurs(&mut self, events: Vec<Symbol>, stream: StreamId, start: u64, depth: usize, times: u64) {
        if let Some(&place) = self.known.get(&events) {
            self.segments[place].times += times;
            return;
        }
        self.known.insert(events.clone(), self.segments.len());
        self.segments.push(Segment { events, stream, start, depth: depth as u32, times });
    }
}

/// The events from a node up to the next loop or the end of the body.
fn events_from(nest: &Nest, at: usize, end: usize) -> Vec<Symbol> {
    let event = |node: &Node| if let Node::Event(symbol) = node { Some(*symbol) } else { None };
    nest.nodes[at..end].iter().map_while(event).collect()
}

struct Sampler {
    steady_state: u64,
    stretches: Vec<Stretch>,
    /// The events of all stretches.
    events: u64,
}

/// A loop that is being sampled.
struct Sampled {
    body: usize,
    end: usize,
    times: u64,
    length: u64,
    iteration: u64,
    /// Iterations that are kept.
    kept: u64,
    /// Where it begins, and the weight outside of it.
    start: u64,
    outer: u64,
}

impl Sampled {
    /// The weight of the current iteration: the last one stands for the rest.
    fn weight(&self) -> u64 {
        let is_last = self.iteration + 1 == self.kept;
        self.outer * if is_last { self.times - self.kept + 1 } else { 1 }
    }
}

impl Sampler {
    fn add(&mut self, nest: &Nest, stream: StreamId, streams: u64) -> Result<()> {
        let mut open: Vec<Sampled> = Vec::new();
        let (mut at, mut position, mut weight) = (0, 0, streams);
        loop {
            if let Some(inner) = open.last_mut().filter(|inner| inner.end == at) {
                inner.iteration += 1;
                if inner.iteration < inner.kept {
                    at = inner.body;
                    position = inner.start + inner.iteration * inner.length;
                    weight = inner.weight();
                } else {
                    (position, weight) = (inner.start + inner.times * inner.length, inner.outer);
                    open.pop();
                }
                continue;
            }
            match nest.nodes.get(at) {
                None => return Ok(()),
                Some(&Node::Loop { times, length, end }) => {
                    let kept = times.min(self.steady_state);
                    let (start, outer) = (position, weight);
                    let inner =
                        Sampled { body: at + 1, end, times, length, iteration: 0, kept, start, outer };
                    weight = inner.weight();
                    open.push(inner);
                }
                Some(_) => {
                    self.take(stream, position, weight)?;
                    position += 1;
                }
            }
            at += 1;
        }
    }

    fn take(&mut self, stream: StreamId, position: u64, weight: u64) -> Result<()> {
        self.events += 1;
        if self.events > MOST_NODES as u64 {
            return Err(Error::limit(format_args!(
                "the sample has more than {MOST_NODES} events; keep fewer iterations, or select a part"
            )));
        }
        match self.stretches.last_mut() {
            Some(last)
                if (last.stream, last.start + last.length, last.weight) == (stream, position, weight) =>
            {
                last.length += 1;
            }
            _ => self.stretches.push(Stretch { stream, start: position, length: 1, weight }),
        }
        Ok(())
    }
}
