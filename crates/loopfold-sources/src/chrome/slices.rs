//! The slices of one thread, and the order in which they are emitted.
//!
//! Memory is 24 bytes a slice. Sorting is linear for slices that are in order.

use super::kinds::Kinds;
use std::cmp::Reverse;

/// A slice whose end is not known.
const UNKNOWN: i64 = -1;
/// Not a slice but a point in time.
const INSTANT: i64 = -2;

/// How many open slices are searched for the beginning of an end.
const DEEPEST_MATCH: usize = 256;

/// A stretch of time in which a thread did something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) start: i64,
    /// In nanoseconds, or one of the marks above.
    duration: i64,
    pub(super) kind: u32,
    /// How many slices were open when this one began, if begin and end events show that.
    depth: u32,
}

impl Slice {
    pub(super) fn duration(&self) -> Option<i64> {
        (self.duration >= 0).then_some(self.duration)
    }

    fn end(&self) -> Option<i64> {
        self.start.checked_add(self.duration()?)
    }

    /// For sorting: what is still open is longer than anything.
    fn length(&self) -> i64 {
        if self.duration == UNKNOWN { i64::MAX } else { self.duration }
    }
}

/// A slice that began and has not ended.
struct Open {
    /// Its index; `None` if its category is not wanted.
    slice: Option<usize>,
    kind: u32,
}

/// The slices of one thread.
#[derive(Default)]
pub(super) struct Slices {
    all: Vec<Slice>,
    open: Vec<Open>,
    /// Some slices came as one event, so only times show how slices nest.
    by_time: bool,
    ends_without_begin: u64,
}

/// One step of a thread's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Enter { kind: u32, at: i64, caller: Option<u32> },
    Leave { kind: u32, at: i64 },
    Instant { kind: u32, at: i64, function: Option<u32> },
}

impl Slices {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn ends_without_begin(&self) -> u64 {
        self.ends_without_begin
    }

    /// How many slices began and never ended.
    pub(super) fn begins_without_end(&self) -> usize {
        self.all.iter().filter(|slice| slice.duration == UNKNOWN).count()
    }

    /// A slice that came whole.
    pub(super) fn complete(&mut self, kind: u32, start: i64, duration: Option<i64>) {
        self.by_time = true;
        self.add(kind, start, duration.filter(|&duration| duration >= 0).unwrap_or(UNKNOWN));
    }

    pub(super) fn instant(&mut self, kind: u32, at: i64) {
        self.add(kind, at, INSTANT);
    }

    /// A slice begins; `wanted` is whether to keep it.
    pub(super) fn begin(&mut self, kind: u32, start: i64, wanted: bool) {
        let slice = wanted.then_some(self.all.len());
        if wanted {
            self.add(kind, start, UNKNOWN);
        }
        self.open.push(Open { slice, kind });
    }

    fn add(&mut self, kind: u32, start: i64, duration: i64) {
        let depth = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        self.all.push(Slice { start, duration, kind, depth });
    }

    /// The innermost open slice of this name ends, and with it, without an end of their
    /// own, those inside it. Without a name it is the innermost one.
    pub(super) fn end(&mut self, name: Option<&[u8]>, at: i64, kinds: &Kinds) {
        let mut innermost = self.open.iter().enumerate().rev().take(DEEPEST_MATCH);
        let found = innermost.find(|(_, open)| name.is_none_or(|name| kinds.name(open.kind) == name));
        let Some((index, _)) = found else {
            self.ends_without_begin += 1;
            return;
        };
        if let Some(slice) = self.open[index].slice {
            let slice = &mut self.all[slice];
            slice.duration = at.checked_sub(slice.start).filter(|&time| time >= 0).unwrap_or(UNKNOWN);
        }
        self.open.truncate(index);
    }

    /// Brings the slices in the order of their starts, each before what is inside it.
    pub(super) fn into_ordered(mut self) -> Ordered {
        let in_order = self.all.is_sorted_by_key(|slice| slice.start);
        if self.by_time {
            // A file in the order of ends has the inner of two equal slices first.
            if !in_order && self.all.is_sorted_by_key(|slice| slice.end().unwrap_or(slice.start)) {
                self.all.reverse();
            }
            self.all.sort_by_key(|slice| (slice.start, Reverse(slice.length())));
        } else if !in_order {
            self.all.sort_by_key(|slice| slice.start);
        }
        Ordered { slices: self.all, by_depth: in_order && !self.by_time }
    }
}

/// The slices of one thread, in order.
pub(super) struct Ordered {
    pub(super) slices: Vec<Slice>,
    /// Begins and ends came in order, so their depths say how they nest.
    by_depth: bool,
}

impl Ordered {
    /// Walks through the slices as calls that enter and leave, properly nested: a slice
    /// that would outlast the one around it is left together with it.
    pub(super) fn walk<E>(&self, mut step: impl FnMut(Step) -> Result<(), E>) -> Result<(), E> {
        let mut open: Vec<(Slice, i64)> = Vec::new();
        let mut now = i64::MIN;
        for slice in &self.slices {
            while let Some(&(inner, end)) = open.last() {
                let over = if self.by_depth { inner.depth >= slice.depth } else { end <= slice.start };
                if !over {
                    break;
                }
                now = if end == i64::MAX { slice.start } else { now.max(end) };
                step(Step::Leave { kind: inner.kind, at: now })?;
                open.pop();
            }
            now = slice.start;
            let around = open.last().map(|(outer, _)| outer.kind);
            if slice.duration == INSTANT {
                step(Step::Instant { kind: slice.kind, at: now, function: around })?;
                continue;
            }
            step(Step::Enter { kind: slice.kind, at: now, caller: around })?;
            let outer_end = open.last().map_or(i64::MAX, |&(_, end)| end);
            open.push((*slice, slice.end().unwrap_or(i64::MAX).min(outer_end)));
        }
        while let Some((inner, end)) = open.pop() {
            now = if end == i64::MAX { now } else { now.max(end) };
            step(Step::Leave { kind: inner.kind, at: now })?;
        }
        Ok(())
    }
}
