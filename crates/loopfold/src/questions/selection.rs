//! Selections: the parts of streams that a question is asked about.
//!
//! A part is between two [bounds](Bound), positions or times, or some iterations of a loop.
//! [`Fold::parts`] makes a fold of them, on which every question works; its streams know where
//! they come from, so that positions can be reported in the whole stream.
//!
//! * Positions are those of the whole stream, from 0: the first event of the part, and the first
//!   one behind it.
//! * Times count from the start of the first event of the trace. A part begins with the first
//!   event that starts at that time or later, and ends before the first one after it that starts
//!   at the other time or later. Events whose start is not known begin and end no part.
//! * Iterations are counted from 0, within each occurrence of the loop. The iterations of one
//!   occurrence follow one another, so they are one part; different occurrences are different
//!   parts, since what comes between them is not there. So nothing is found across them.
//!
//! Cost: a bound that is a time reads the starts of the stream up to it. The iterations of a loop
//! that lies in no other one cost nothing; else the occurrences of the loops around it are walked,
//! and those of loops with exceptions.

use super::clock::{EventClock, Starts};
use super::iterations::{LoopPlace, visit_iterations};
use super::nest::{Nest, Node};
use crate::fold::{Fold, StreamPart};
use crate::trace::Times;
use crate::{Error, Result, StreamId};
use std::ops::Range;

/// Where a part begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A position in the whole stream.
    Position(u64),
    /// Nanoseconds since the first event of the trace.
    Time(i64),
}

impl Bound {
    /// A position, `1234` or `1,234`, or a time with its unit: `1.5s`, `20ms`, `3us`, `7ns`,
    /// `2min`.
    ///
    /// ```
    /// use loopfold::questions::selection::Bound;
    /// assert_eq!(Bound::parse("75,189")?, Bound::Position(75_189));
    /// assert_eq!(Bound::parse("2.67 s")?, Bound::Time(2_670_000_000));
    /// assert!(Bound::parse("2.67").is_err() && Bound::parse("soon").is_err());
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format_args!(
                "{text} is neither a position such as 1000 nor a time with its unit such as 1.5s, 20ms, 3us or 7ns"
            ))
        };
        let units = [("min", 60e9), ("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
        let number = text.trim();
        if let Some((number, unit)) =
            units.iter().find_map(|(unit, ns)| Some((number.strip_suffix(unit)?, ns)))
        {
            let time = number.trim().replace(',', "").parse::<f64>().ok().filter(|time| time.is_finite());
            let time = time.ok_or_else(wrong)? * unit;
            return if time.abs() < 9e18 { Ok(Self::Time(time.round() as i64)) } else { Err(wrong()) };
        }
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        let digits = number.replace(',', "");
        digits.parse().ok().filter(|_| is_number).map(Self::Position).ok_or_else(wrong)
    }
}

/// The parts of all streams between two bounds, and when the trace began. Streams that have no
/// event between them have an empty part.
///
/// # Errors
/// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if no stream has an event there, or the
/// trace has no starts and a bound is a time.
pub fn between(
    fold: &Fold,
    from: Option<Bound>,
    to: Option<Bound>,
) -> Result<(Vec<StreamPart>, Option<i64>)> {
    let zero = EventClock::new(fold).origin()?;
    let is_time = |bound: Option<Bound>| matches!(bound, Some(Bound::Time(_)));
    if zero.is_none() && (is_time(from) || is_time(to)) {
        return Err(Error::not_found(
            "the trace has no starts of events, so a part of it begins and ends at positions",
        ));
    }
    let mut parts = Vec::new();
    for stream in fold.stream_ids() {
        let length = fold.length(fold.stream(stream).root());
        let first = match from {
            Some(bound) => position(fold, stream, bound, zero, 0)?,
            None => 0,
        };
        let end = match to {
            Some(bound) => position(fold, stream, bound, zero, first)?,
            None => length,
        };
        parts.push(StreamPart { stream, range: first.min(end)..end, number: None });
    }
    // Two equal bounds are an empty part, on purpose.
    if (from != to || from.is_none()) && parts.iter().all(|part| part.range.is_empty()) {
        return Err(nothing_there(fold, zero)?);
    }
    Ok((parts, zero))
}

/// Where in a stream of the fold a bound is, from a position on.
fn position(fold: &Fold, stream: StreamId, bound: Bound, zero: Option<i64>, from: u64) -> Result<u64> {
    let folded = fold.stream(stream);
    let length = fold.length(folded.root());
    let time = match bound {
        Bound::Position(position) => {
            return Ok(position.saturating_sub(folded.first_position()).min(length));
        }
        Bound::Time(time) => i128::from(time) + i128::from(zero.unwrap_or(0)),
    };
    let Some(mut starts) = Starts::of(folded.times()) else { return Ok(length) };
    for position in from..starts.events().min(length) {
        if starts.start(position)?.is_some_and(|start| i128::from(start) >= time) {
            return Ok(position);
        }
    }
    Ok(length)
}

/// Where the events of the streams are.
fn nothing_there(fold: &Fold, zero: Option<i64>) -> Result<Error> {
    let ends = fold.streams().iter().map(|stream| {
        let first = stream.first_position();
        (first, first.saturating_add(fold.length(stream.root())))
    });
    let (first, last) =
        ends.fold((u64::MAX, 0), |(first, last), (start, end)| (first.min(start), last.max(end)));
    let mut message = match last.checked_sub(1) {
        Some(last) if first <= last => format!("no event is there; positions are {first} to {last}"),
        _ => "there are no events".to_string(),
    };
    let mut latest = None;
    for stream in fold.streams() {
        let Some(mut starts) = Starts::of(stream.times()) else { continue };
        for position in (0..starts.events()).rev() {
            if let Some(start) = starts.start(position)? {
                latest = latest.max(Some(start));
                break;
            }
        }
    }
    if let Some((latest, zero)) = latest.zip(zero) {
        let seconds = (i128::from(latest) - i128::from(zero)) as f64 / 1e9;
        message.push_str(&format!(", times up to {seconds:.6}s"));
    }
    Ok(Error::not_found(message))
}

/// Iterations that are visited to find those of a loop inside of others: an archive can declare
/// any number.
const MOST_VISITED: u64 = 1 << 28;

/// Parts that a stream may have.
const MOST_PARTS: usize = 1 << 16;

/// The iterations of a loop that are selected, as ranges of positions: one for each occurrence
/// that has them, in order.
///
/// # Errors
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if there are too many occurrences.
pub fn iterations_of(nest: &Nest, chosen: LoopPlace, wanted: &Range<u64>) -> Result<Vec<Range<u64>>> {
    if let Node::Loop { times, length, .. } = nest.nodes[chosen.node]
        && chosen.depth == 0
        && nest.near.is_empty()
    {
        let start = nest.length(0..chosen.node);
        let (first, end) = (wanted.start.min(times), wanted.end.min(times));
        let range = start + first * length..start + end.max(first) * length;
        return Ok(if range.is_empty() { Vec::new() } else { vec![range] });
    }
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut last_occurrence = None;
    let mut visited = 0;
    visit_iterations(nest, &Times::default(), |iteration| {
        visited += 1;
        if visited > MOST_VISITED {
            return Err(Error::limit(
                "the loop lies in loops of too many iterations; select one of those around it",
            ));
        }
        // An exception may be several iterations, which are taken or left together.
        if iteration.node != chosen.node || !iteration.is_in(wanted) {
            return Ok(());
        }
        let is_same = last_occurrence.replace(iteration.occurrence) == Some(iteration.occurrence);
        if let Some(range) = found.last_mut().filter(|_| is_same) {
            range.end = iteration.events.end;
            return Ok(());
        }
        if found.len() == MOST_PARTS {
            return Err(Error::limit(format_args!(
                "the loop occurs more than {MOST_PARTS} times; select one of the loops around it"
            )));
        }
        found.push(iteration.events.clone());
        Ok(())
    })?;
    Ok(found)
}
