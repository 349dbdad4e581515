//! Joins the paths of a thread with its calls of MPI.
//!
//! Both recorders number nothing: the preloaded library leaves a mark among the paths of the
//! thread, then publishes the record of the call, which names the lane of paths with the mark. So
//! the n-th mark of a lane is the place of the n-th call that names it. Paths behind a mark wait
//! here until the call is there: mostly it is, but a receive with a wildcard is known only when it
//! completes.
//!
//! **What is lost if a thread is killed.** A mark may lack its record, if the thread was killed
//! between the two. Then nothing is behind the mark, or it was not read together with the record:
//! what is behind it is dropped at the end, so that every stream is a prefix. A record never lacks
//! its mark, if marks are read after records.
//!
//! O(1) an event; memory is what waits.

use crate::Result;
use crate::events::Timed;
use crate::paths::{Decoded, LaneName};
use crate::stream::{Stream, Unwritten};
use hashbrown::HashMap;
use loopfold::Symbol;
use loopfold::fold::ProducerCount;
use std::collections::VecDeque;

/// The threads whose paths are recorded.
#[derive(Debug)]
pub(crate) struct Joint {
    lanes: Vec<Lane>,
    /// Calls that wait for their marks, by the use of the lane that has them.
    calls: HashMap<u32, VecDeque<Timed>>,
    with_times: bool,
}

#[derive(Debug)]
struct Lane {
    name: LaneName,
    stream: Stream,
    /// Paths that wait for a call before them.
    waiting: Vec<Symbol>,
    /// How many paths of those that wait are before each mark.
    marks: VecDeque<usize>,
    /// How many tokens of the lane were not read, and how many events were dropped, as the call before
    /// them never came.
    unread: u64,
    dropped: u64,
}

impl Joint {
    pub(crate) fn new(with_times: bool) -> Self {
        Self { lanes: Vec::new(), calls: HashMap::new(), with_times }
    }

    /// Begins a lane of paths and returns its place here.
    pub(crate) fn begin(&mut self, name: LaneName) -> Result<usize> {
        let stream = Stream::new(self.with_times)?;
        let (waiting, marks) = Default::default();
        self.lanes.push(Lane { name, stream, waiting, marks, unread: 0, dropped: 0 });
        Ok(self.lanes.len() - 1)
    }

    /// How many tokens of a lane were not read.
    pub(crate) fn set_unread(&mut self, lane: usize, tokens: u64) {
        self.lanes[lane].unread = tokens;
    }

    /// Takes what was decoded of a lane.
    pub(crate) fn take_paths(&mut self, lane: usize, decoded: &mut Decoded) -> Result<()> {
        let own = &mut self.lanes[lane];
        if own.marks.is_empty() && decoded.marks.is_empty() {
            own.stream.paths(&decoded.symbols)?;
        } else {
            let before = own.waiting.len();
            own.marks.extend(decoded.marks.iter().map(|mark| before + mark));
            own.waiting.extend_from_slice(&decoded.symbols);
        }
        decoded.clear();
        Ok(())
    }

    /// Takes a call that has a mark in this use of a lane.
    pub(crate) fn take_call(&mut self, usage: u32, call: Timed) {
        self.calls.entry(usage).or_default().push_back(call);
    }

    /// Folds what waits for nothing any more.
    pub(crate) fn advance(&mut self) -> Result<()> {
        for lane in self.lanes.iter_mut().filter(|lane| !lane.marks.is_empty()) {
            // Only the first run-time library of a process leaves marks.
            if lane.name.process == 0 {
                lane.advance(self.calls.entry(lane.name.usage).or_default())?;
            }
        }
        Ok(())
    }

    /// How many paths wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.waiting.len()).sum()
    }

    /// Whether calls wait for marks that were not read yet.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls.values().any(|calls| !calls.is_empty())
    }

    /// Nothing comes any more: returns the calls whose paths are not there.
    pub(crate) fn finish(&mut self) -> Result<Vec<Timed>> {
        self.advance()?;
        for lane in &mut self.lanes {
            lane.marks.clear();
            lane.dropped += lane.waiting.drain(..).len() as u64;
            // Of these, the run-time library no longer recorded the paths.
            if lane.name.process == 0
                && let Some(calls) = self.calls.remove(&lane.name.usage)
            {
                lane.stream.calls(&Vec::from(calls))?;
            }
        }
        Ok(self.calls.drain().flat_map(|(_, calls)| calls).collect())
    }

    /// What both ends have counted of each stream, with its name and the use of the lane that it has, if
    /// calls can be among its paths. A token may be no event or several: what is missing are tokens.
    pub(crate) fn counts(&self, rank: u32) -> impl Iterator<Item = (String, Option<u32>, ProducerCount)> {
        self.lanes.iter().map(move |lane| {
            let LaneName { process, usage, .. } = lane.name;
            let missing = lane.unread + lane.dropped;
            let count = ProducerCount { produced: lane.stream.whole.events() + missing, missing };
            (lane.name.of_rank(rank), (process == 0).then_some(usage), count)
        })
    }

    /// How many calls wait for a mark in this use of a lane.
    pub(crate) fn waiting_calls(&self, usage: u32) -> u64 {
        self.calls.get(&usage).map_or(0, |calls| calls.len() as u64)
    }

    /// The streams with their names, in the order of threads.
    pub(crate) fn streams(&self, rank: u32) -> Vec<(String, &Stream)> {
        let mut lanes: Vec<&Lane> = self.lanes.iter().collect();
        lanes.sort_by_key(|lane| lane.name);
        lanes.into_iter().map(|lane| (lane.name.of_rank(rank), &lane.stream)).collect()
    }

    pub(crate) fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.lanes.iter_mut().map(|lane| &mut lane.stream)
    }

    pub(crate) fn unwritten(&self) -> Unwritten {
        self.lanes.iter().fold(Unwritten::default(), |sum, lane| sum + lane.stream.unwritten())
    }
}

impl Lane {
    fn advance(&mut self, calls: &mut VecDeque<Timed>) -> Result<()> {
        let mut taken = 0;
        while let Some(&mark) = self.marks.front()
            && let Some(&call) = calls.front().filter(|call| call.paths != 0)
        {
            self.stream.paths(&self.waiting[taken..mark])?;
            self.stream.calls(&[call])?;
            calls.pop_front();
            self.marks.pop_front();
            taken = mark;
        }
        // Up to the next mark, nothing waits.
        let end = self.marks.front().copied().unwrap_or(self.waiting.len());
        self.stream.paths(&self.waiting[taken..end])?;
        self.waiting.drain(..end);
        self.marks.iter_mut().for_each(|mark| *mark -= end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::events::Between;
    use loopfold::fold::{FoldBuilder, FoldedStream};
    use loopfold::trace::{Alphabet, Event};
    use loopfold_testing::Rng;

    /// What a thread does: paths, and calls.
    #[derive(Clone, Copy)]
    enum Step {
        Path(Symbol),
        Call(Symbol),
    }

    fn symbols() -> (Alphabet, Vec<Symbol>) {
        let mut alphabet = Alphabet::default();
        let names = ["a", "b", "c", "call", "other"];
        let symbols = names.map(|name| alphabet.intern(&Event::named(name), None).unwrap());
        (alphabet, symbols.to_vec())
    }

    fn call(symbol: Symbol, paths: u32) -> Timed {
        Timed { symbol, start: 5, duration: 1, paths, between: Between::default() }
    }

    /// The events of each stream, and of its segment.
    fn folded(joint: &Joint, alphabet: &Alphabet) -> Vec<[Vec<Symbol>; 2]> {
        let unfold = |grammar: &dyn loopfold::folders::Online| {
            let mut builder = FoldBuilder::new(alphabet.clone());
            let root = grammar.rules(&mut builder).unwrap();
            builder.stream(FoldedStream::new("s", "s", root));
            let fold = builder.finish();
            fold.unfold(fold.streams()[0].root()).collect()
        };
        let streams = joint.streams(0).into_iter();
        streams.map(|(_, stream)| [unfold(&*stream.whole), unfold(stream.segment().unwrap().0)]).collect()
    }

    #[test]
    fn calls_are_where_their_marks_are() {
        let (alphabet, symbols) = symbols();
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let lanes = 1 + rng.below(3);
            let mut joint = Joint::new(true);
            let name = |thread| LaneName { process: 0, thread, level: 0, usage: thread + 1 };
            for lane in 0..lanes as u32 {
                joint.begin(name(lane)).unwrap();
            }
            let mut expected = Vec::new();
            let mut queues = Vec::new();
            for _ in 0..lanes {
                let step = |rng: &mut Rng| match rng.below(3) {
                    0 => Step::Call(symbols[3 + rng.below(2)]),
                    _ => Step::Path(symbols[rng.below(3)]),
                };
                let steps: Vec<Step> = (0..rng.below(40)).map(|_| step(&mut rng)).collect();
                let symbol = |step: &Step| match *step {
                    Step::Path(symbol) | Step::Call(symbol) => symbol,
                };
                expected.push(steps.iter().map(symbol).collect::<Vec<_>>());
                let calls: VecDeque<Symbol> =
                    steps.iter().filter(|step| matches!(step, Step::Call(_))).map(symbol).collect();
                queues.push((steps, calls));
            }
            // Both come in pieces, in any order.
            while queues.iter().any(|(steps, calls)| !steps.is_empty() || !calls.is_empty()) {
                let lane = rng.below(lanes);
                let (steps, calls) = &mut queues[lane];
                if rng.one_in(2) {
                    let count = rng.below(6).min(calls.len());
                    for symbol in calls.drain(..count) {
                        joint.take_call(lane as u32 + 1, call(symbol, lane as u32 + 1));
                    }
                } else {
                    let mut decoded = Decoded::default();
                    let count = rng.below(9).min(steps.len());
                    for step in steps.drain(..count) {
                        match step {
                            Step::Path(symbol) => decoded.symbols.push(symbol),
                            Step::Call(_) => decoded.marks.push(decoded.symbols.len()),
                        }
                    }
                    joint.take_paths(lane, &mut decoded).unwrap();
                }
                joint.advance().unwrap();
                for (so_far, expected) in folded(&joint, &alphabet).iter().zip(&expected) {
                    assert!(so_far.iter().all(|part| expected.starts_with(part)), "seed {seed}");
                }
            }
            assert!(joint.finish().unwrap().is_empty());
            for (found, expected) in folded(&joint, &alphabet).into_iter().zip(expected) {
                assert_eq!(found, [expected.clone(), expected], "seed {seed}");
            }
        }
    }

    #[test]
    fn what_is_behind_a_mark_without_a_call_is_dropped() {
        let (alphabet, symbols) = symbols();
        let mut joint = Joint::new(false);
        let lane = joint.begin(LaneName { process: 0, thread: 0, level: 0, usage: 7 }).unwrap();
        let mut decoded = Decoded::default();
        decoded.symbols.extend(&symbols[..2]);
        decoded.marks.push(1);
        joint.take_paths(lane, &mut decoded).unwrap();
        joint.finish().unwrap();
        assert_eq!(folded(&joint, &alphabet)[0][0], [symbols[0]]);
        let counts: Vec<_> = joint.counts(0).map(|(_, _, count)| count).collect();
        assert_eq!(counts, [ProducerCount { produced: 2, missing: 1 }]);
    }

    #[test]
    fn calls_without_marks_follow() {
        let (alphabet, symbols) = symbols();
        let mut joint = Joint::new(true);
        let lane = joint.begin(LaneName { process: 0, thread: 0, level: 0, usage: 7 }).unwrap();
        joint.take_call(7, call(symbols[3], 7));
        joint.take_call(7, call(symbols[4], 0));
        joint.take_call(8, call(symbols[4], 8));
        let mut decoded = Decoded::default();
        decoded.symbols.extend(&symbols[..2]);
        decoded.marks.push(1);
        joint.take_paths(lane, &mut decoded).unwrap();
        joint.advance().unwrap();
        assert!(joint.has_calls());
        // That of another lane is returned.
        assert_eq!(joint.finish().unwrap().len(), 1);
        assert_eq!(folded(&joint, &alphabet)[0][0], [symbols[0], symbols[3], symbols[1], symbols[4]]);
    }
}
