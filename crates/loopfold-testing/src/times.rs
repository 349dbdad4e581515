//! Times of iterations, self times and busy times by their definitions, and generated streams of
//! slices that nest.

use crate::Rng;
use std::ops::Range;

/// When an event began and how long it took, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// When it began.
    pub start: Option<i64>,
    /// How long it took; not known if negative.
    pub duration: Option<i64>,
}

/// When the event at a position ended.
pub fn end_of(slices: &[Slice], at: usize) -> Option<i128> {
    let start = i128::from(slices[at].start?);
    if let Some(duration) = slices[at].duration.filter(|&duration| duration >= 0) {
        return Some(start + i128::from(duration));
    }
    let next = slices.get(at + 1).and_then(|next| next.start).map_or(start, i128::from);
    Some(next.max(start))
}

/// The time of an iteration, from the events at these positions. If no event has a start, it is the
/// sum of the durations.
pub fn iteration_time(slices: &[Slice], events: Range<usize>, is_last: bool) -> Option<i128> {
    if slices.iter().all(|slice| slice.start.is_none()) {
        let durations = slices[events].iter().filter_map(|slice| slice.duration);
        return Some(durations.filter(|&duration| duration >= 0).map(i128::from).sum());
    }
    let begin = slices[events.start].start?;
    let end = if is_last {
        events.filter_map(|at| end_of(slices, at)).max()?
    } else {
        slices[events.end].start?.into()
    };
    Some(end - i128::from(begin))
}

/// From the earliest start to the latest end of a stream; without starts, the sum of its durations.
pub fn stream_time(slices: &[Slice]) -> i128 {
    let earliest = slices.iter().filter_map(|slice| slice.start).min();
    let latest = (0..slices.len()).filter_map(|at| end_of(slices, at)).max();
    match earliest.zip(latest) {
        Some((earliest, latest)) => latest - i128::from(earliest),
        None => iteration_time(slices, 0..slices.len(), true).unwrap_or(0),
    }
}

/// What is said of the iterations of a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// All of them together.
    pub total: i128,
    /// The fastest of those that are compared.
    pub minimum: i128,
    /// Their median.
    pub median: f64,
    /// The slowest of them.
    pub maximum: i128,
}

/// Iterations with and without a next one. The last ones are compared only if fewer than two
/// others are known.
pub fn summary(others: &[i128], lasts: &[i128]) -> Option<Summary> {
    let all = [others, lasts].concat();
    let mut compared = if others.len() >= 2 { others.to_vec() } else { all.clone() };
    compared.sort_unstable();
    let (&minimum, &maximum) = (compared.first()?, compared.last()?);
    let (lower, upper) = (compared[(compared.len() - 1) / 2], compared[compared.len() / 2]);
    let median = (lower + upper) as f64 / 2.0;
    Some(Summary { count: all.len() as u64, total: all.iter().sum(), minimum, median, maximum })
}

/// The interval of an event whose start and duration are known.
fn interval(slice: &Slice) -> Option<Range<i128>> {
    let (start, duration) = (slice.start?, slice.duration.filter(|&duration| duration >= 0)?);
    Some(i128::from(start)..i128::from(start) + i128::from(duration))
}

/// All moments at which an event begins or ends, in order.
fn moments(slices: &[Slice]) -> Vec<i128> {
    let intervals = slices.iter().filter_map(interval);
    let mut moments: Vec<i128> = intervals.flat_map(|interval| [interval.start, interval.end]).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// The self time of each event whose start and duration are known: the time in which no event that
/// began later is open, nor one that began at the same time and comes later in the stream.
pub fn self_times(slices: &[Slice]) -> Vec<Option<i128>> {
    let mut own: Vec<Option<i128>> = slices.iter().map(|slice| interval(slice).map(|_| 0)).collect();
    for pair in moments(slices).windows(2) {
        let is_open = |at: &usize| interval(&slices[*at]).is_some_and(|interval| interval.contains(&pair[0]));
        let owner = (0..slices.len()).filter(is_open).max_by_key(|&at| (slices[at].start, at));
        if let Some(own) = owner.and_then(|owner| own[owner].as_mut()) {
            *own += pair[1] - pair[0];
        }
    }
    own
}

/// How much of the time from one moment to another some event is open.
pub fn busy_time(slices: &[Slice], from: i128, to: i128) -> i128 {
    let mut busy = 0;
    for pair in moments(slices).windows(2) {
        let is_open = |slice: &Slice| interval(slice).is_some_and(|interval| interval.contains(&pair[0]));
        if slices.iter().any(is_open) {
            busy += (pair[1].min(to) - pair[0].max(from)).max(0);
        }
    }
    busy
}

/// A stream of slices: each with its symbol.
pub fn slices(rng: &mut Rng, longest: usize) -> Vec<(u32, Slice)> {
    let mut made = Vec::new();
    let mut clock = rng.below(100) as i64;
    while made.len() < longest / 2 {
        let times = rng.between(1, 6);
        let body: Vec<u32> = (0..rng.between(1, 4)).map(|_| rng.below(4) as u32).collect();
        let depth = rng.between(1, 3);
        for _ in 0..times {
            calls(rng, &body, depth, &mut clock, &mut made);
        }
    }
    made.truncate(longest);
    disturb(rng, &mut made);
    made
}

/// Calls of each symbol, with the same calls inside each other down to a depth.
fn calls(rng: &mut Rng, body: &[u32], depth: usize, clock: &mut i64, made: &mut Vec<(u32, Slice)>) {
    for &symbol in body {
        let (at, start) = (made.len(), *clock);
        made.push((symbol + 4 * depth as u32, Slice { start: Some(start), duration: None }));
        *clock += rng.below(4) as i64;
        if depth > 1 {
            for _ in 0..rng.between(1, 3) {
                calls(rng, &body[..1], depth - 1, clock, made);
            }
        }
        *clock += rng.below(4) as i64;
        made[at].1.duration = Some(*clock - start);
        *clock += rng.below(3) as i64;
    }
}

/// Makes some streams less regular: slices that overlap, times that are not known, a clock that
/// goes back.
fn disturb(rng: &mut Rng, made: &mut [(u32, Slice)]) {
    let [overlaps, unknown_starts, unknown_durations, steps_back] = [(); 4].map(|()| rng.one_in(3));
    let kind = rng.below(12);
    for (_, slice) in made {
        if overlaps && rng.one_in(5) {
            slice.duration = Some(rng.below(20) as i64);
        }
        if steps_back && rng.one_in(9) {
            slice.start = slice.start.map(|start| start - rng.below(30) as i64);
        }
        if kind == 0 || unknown_starts && rng.one_in(9) {
            slice.start = None;
        }
        if kind == 1 || unknown_durations && rng.one_in(9) {
            slice.duration = None;
        }
    }
}
