//! Parts of streams as a fold of their own, without unfolding.
//!
//! A part is a range of positions of a stream. Its root is the stretches that a cursor passes
//! from its first event to its last: whole items where they lie inside, and items of the rules
//! that the borders cut. All other rules stay as they are, so that a loop whose iterations lie in
//! the part is still that loop.
//!
//! A part knows where it comes from: [`FoldedStream::first_position`] is the position of its first
//! event in the whole stream, and [`FoldedStream::clock_zero`] the start of the first event of the
//! whole trace. Both are notes of the stream, so archives keep them, and a part of a part counts
//! from the same zero.
//!
//! Cost: O(items) for all parts together, and for each part the items of the rules that its
//! borders cut; times are copied by chunks where borders allow, else value by value.

use super::cursor::Cursor;
use super::without::push_joined;
use super::{Fold, FoldBuilder, FoldedStream, Item, ProducerCount, Target};
use crate::{Error, Result, RuleId, StreamId};
use std::ops::Range;

/// The note of where a part of a stream begins in the whole stream.
const FIRST_EVENT: &str = "first-event";

/// The note of when the first event of the whole trace began.
const CLOCK_ZERO: &str = "clock-zero";

/// The note of whether a stream of lines ends with the end of a line.
const FINAL_NEWLINE: &str = "final-newline";

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPart {
    /// The stream.
    pub stream: StreamId,
    /// Its positions in the stream of the fold.
    pub range: Range<u64>,
    /// Its number among the parts of the stream, from 1, if there are several.
    pub number: Option<usize>,
}

impl FoldedStream {
    /// The position of its first event in the whole stream: 0 unless it is a part of one. What
    /// questions call positions are offsets from it.
    pub fn first_position(&self) -> u64 {
        self.note(FIRST_EVENT).and_then(|first| first.raw().parse().ok()).unwrap_or(0)
    }

    /// When the first event of the whole trace began, if this is a part of a stream.
    pub fn clock_zero(&self) -> Option<i64> {
        self.note(CLOCK_ZERO).and_then(|zero| zero.raw().parse().ok())
    }

    fn set_note(&mut self, key: &str, value: String) {
        match self.notes.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.notes.push((key.to_string(), value)),
        }
    }
}

impl Fold {
    /// The position in the whole stream of what a question calls `position`. They differ if the
    /// stream is a [part](Fold::parts) of another.
    pub fn whole_position(&self, stream: StreamId, position: u64) -> u64 {
        self.stream(stream).first_position().saturating_add(position)
    }

    /// Parts of streams as streams of their own, in this order. `clock_zero` is when the first
    /// event of the trace began, from which times are counted. Ranges are clipped to their
    /// streams.
    ///
    /// ```
    /// use loopfold::fold::StreamPart;
    /// use loopfold::folders::{Outermost, fold_trace};
    ///
    /// let trace = loopfold::Trace::of_integers("n", [7u32, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])?;
    /// let fold = fold_trace(trace, &Outermost::default(), 1)?;
    /// let stream = fold.stream_ids().next().unwrap();
    /// let part = fold.parts(&[StreamPart { stream, range: 3..10, number: None }], None)?;
    /// assert_eq!(part.to_string(), "n: 2 (0 1 2)^2\n");
    /// assert_eq!(part.streams()[0].first_position(), 3);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn parts(&self, parts: &[StreamPart], clock_zero: Option<i64>) -> Result<Fold> {
        let mut builder = FoldBuilder::new(self.alphabet().clone());
        let rules = builder.append_rules(self, Ok)?;
        let mut all_whole = true;
        for part in parts {
            let stream = self.streams().get(part.stream.index());
            let stream = stream.ok_or_else(|| Error::invalid("a part of a stream that is not there"))?;
            let length = self.length(stream.root());
            let end = part.range.end.min(length);
            let range = part.range.start.min(end)..end;
            if range == (0..length) {
                let root = rules[stream.root().index()];
                builder.known_stream(FoldedStream { root, ..part.name(stream, clock_zero) });
                continue;
            }
            all_whole &= stream.sums().is_none();
            let mut body = Vec::new();
            for item in self.items_between(stream, &range, &rules) {
                push_joined(&mut body, item, true)?;
            }
            let root = match body[..] {
                [only] if only.times() == 1 => only_root(&mut builder, only)?,
                _ => builder.rule(&body)?,
            };
            let mut cut = part.name(stream, clock_zero);
            ProducerCount::remove(&mut cut.notes);
            cut.set_note(FIRST_EVENT, stream.first_position().saturating_add(range.start).to_string());
            if range.end < length {
                cut.notes.retain(|(key, _)| key != FINAL_NEWLINE);
            }
            cut.times = stream.times().range(range)?;
            cut.sums = None;
            builder.known_stream(FoldedStream { root, ..cut });
        }
        if all_whole {
            builder.join_rule_sums(self, &rules)?;
        }
        // Sums of rules cover all streams, and some are gone.
        let is_same = all_whole && parts.len() == self.streams().len();
        let fold = builder.finish();
        Ok(if is_same { fold } else { fold.with_rule_sums(None) }.canonical())
    }

    /// The stretches of a stream between two positions, with the new numbers of their rules.
    fn items_between(&self, stream: &FoldedStream, range: &Range<u64>, rules: &[RuleId]) -> Vec<Item> {
        let renamed = |target: Target| match target {
            Target::Rule(rule) => Target::Rule(rules[rule.index()]),
            symbol => symbol,
        };
        let mut cursor = Cursor::new(self, stream.root());
        cursor.advance_to(range.start, |_| {});
        let mut items = Vec::new();
        cursor.advance_to(range.end, |stretch| items.push(Item::new(renamed(stretch.target), stretch.times)));
        items
    }
}

impl StreamPart {
    /// The stream with the number of the part in its names, and with the zero of its clock.
    fn name(&self, stream: &FoldedStream, clock_zero: Option<i64>) -> FoldedStream {
        let mut stream = stream.clone();
        if let Some(number) = self.number {
            let title = format!("{} part {number}", stream.title().raw());
            stream.name = format!("{} part {number}", stream.name);
            if stream.note("title").is_some() {
                stream.set_note("title", title);
            }
        }
        if let Some(zero) = stream.clock_zero().or(clock_zero) {
            stream.set_note(CLOCK_ZERO, zero.to_string());
        }
        stream
    }
}

/// The root that is a single item: its rule, or a rule of that one event.
fn only_root(builder: &mut FoldBuilder, only: Item) -> Result<RuleId> {
    match only.target() {
        Target::Rule(rule) => Ok(rule),
        Target::Symbol(_) => builder.rule(&[only]),
    }
}
