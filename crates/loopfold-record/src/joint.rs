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
}

impl Joint {
    pub(crate) fn new(with_times: bool) -> Self {
        Self { lanes: Vec::new(), calls: HashMap::new(), with_times }
    }

    /// Begins a lane of paths and returns its place here.
    pub(crate) fn begin(&mut self, name: LaneName) -> Result<usize> {
        let stream = Stream::new(self.with_times)?;
        self.lanes.push(Lane { name, stream, waiting: Vec::new(), marks: VecDeque::new() });
        Ok(self.lanes.len() - 1)
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
            let calls = Some(lane.name.usage).filter(|_| lane.name.process == 0);
            if let Some(calls) = calls.and_then(|usage| self.calls.get_mut(&usage)) {
                lane.advance(calls)?;
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
            lane.waiting.clear();
            // Of these, the run-time library no longer recorded the paths.
            if lane.name.process == 0
                && let Some(calls) = self.calls.remove(&lane.name.usage)
            {
                lane.stream.calls(&Vec::from(calls))?;
            }
        }
        Ok(self.calls.drain().flat_map(|(_, calls)| calls).collect())
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
