//! Joining segments into one fold: equal symbols and equal rules become one, and a
//! stream goes on where the segment before left it.
//!
//! A stream that is in several segments gets a new root: the roots it had, one after
//! the other. Joining costs a hash of every rule and entry; full chunks of times are
//! taken over as they are if the segment before ended at the end of a chunk, and
//! compressed again if not.

use crate::fold::{FoldBuilder, FoldedStream, Item, Target};
use crate::trace::{Cell, Column, Times};
use crate::{Error, Fold, Result, RuleId};
use hashbrown::HashMap;

/// Segments joined so far.
#[derive(Default)]
pub(super) struct Joiner {
    builder: FoldBuilder,
    streams: Vec<Joined>,
    /// Streams by their name and, for streams of one segment that share a name, by
    /// which of them it is.
    by_name: HashMap<(String, usize), usize>,
    /// A first segment is kept as it is until there is a second.
    only: Option<Fold>,
    /// Values that were filled up so far.
    filled: Filled,
}

/// A stream that may go on.
struct Joined {
    stream: FoldedStream,
    /// The roots of its parts.
    roots: Vec<RuleId>,
    events: u64,
    times: Times,
}

impl Joiner {
    /// Adds the next segment.
    pub(super) fn add(&mut self, fold: Fold) -> Result<()> {
        match self.only.take() {
            None if self.streams.is_empty() => self.only = Some(fold),
            None => self.join(fold)?,
            Some(first) => {
                self.join(first)?;
                self.join(fold)?;
            }
        }
        Ok(())
    }

    /// All segments as one fold, in canonical form.
    pub(super) fn finish(mut self) -> Result<Fold> {
        if let Some(fold) = self.only {
            return Ok(fold);
        }
        let mut all_times = Vec::with_capacity(self.streams.len());
        for joined in self.streams {
            let root = root_of(&mut self.builder, &joined.roots)?;
            self.builder.stream(FoldedStream { root, ..joined.stream });
            all_times.push(joined.times);
        }
        let mut fold = self.builder.finish().canonical();
        for (stream, times) in fold.streams_mut().iter_mut().zip(all_times) {
            stream.times = times;
        }
        Ok(fold)
    }

    fn join(&mut self, mut fold: Fold) -> Result<()> {
        let renamed = self.builder.join_rules(&fold)?;
        let mut namesakes: HashMap<String, usize> = HashMap::new();
        for stream in fold.streams_mut() {
            let times = std::mem::take(&mut stream.times);
            let root = renamed[stream.root.index()];
            let namesake = namesakes.entry(stream.name.clone()).or_default();
            let index = self.stream(stream, *namesake);
            *namesake += 1;
            let events = self.builder.length(root);
            self.streams[index].extend(stream, root, events, times, &mut self.filled)?;
        }
        Ok(())
    }

    fn stream(&mut self, stream: &FoldedStream, namesake: usize) -> usize {
        *self.by_name.entry((stream.name.clone(), namesake)).or_insert_with(|| {
            let times = Times::default();
            self.streams.push(Joined { stream: stream.clone(), roots: Vec::new(), events: 0, times });
            self.streams.len() - 1
        })
    }
}

impl Joined {
    fn extend(
        &mut self,
        part: &FoldedStream,
        root: RuleId,
        events: u64,
        times: Times,
        filled: &mut Filled,
    ) -> Result<()> {
        for (key, value) in &part.notes {
            match self.stream.notes.iter_mut().find(|(known, _)| known == key) {
                Some((_, old)) => old.clone_from(value),
                None => self.stream.notes.push((key.clone(), value.clone())),
            }
        }
        join_times(&mut self.times, self.events, times, events, filled)?;
        let too_long = || Error::limit("a stream of more than 2^64 events");
        self.events = self.events.checked_add(events).ok_or_else(too_long)?;
        self.roots.push(root);
        Ok(())
    }
}

/// A rule that unfolds to these rules, one after the other.
fn root_of(builder: &mut FoldBuilder, parts: &[RuleId]) -> Result<RuleId> {
    if let [only] = parts {
        return Ok(*only);
    }
    let mut body = Vec::new();
    for &part in parts {
        match *builder.body(part) {
            [] => {}
            // A rule of a single item is allowed as a root only.
            [item] => push_item(&mut body, item)?,
            _ => push_item(&mut body, Item::new(Target::Rule(part), 1))?,
        }
    }
    if let [item] = body[..]
        && let (Target::Rule(rule), 1) = (item.target(), item.times())
    {
        return Ok(rule);
    }
    builder.rule(&body)
}

/// Appends an item, or lets the last one repeat more often if it is the same.
fn push_item(body: &mut Vec<Item>, item: Item) -> Result<()> {
    match body.last_mut() {
        Some(last) if last.target() == item.target() => {
            let times = last.times().checked_add(item.times());
            let times = times.ok_or_else(|| Error::limit("a loop repeats more often than can be counted"))?;
            *last = Item::new(item.target(), times);
        }
        _ => body.push(item),
    }
    Ok(())
}

/// Appends the times of the `events` events that follow the `before` events so far.
/// What one of the two does not know is filled up.
fn join_times(times: &mut Times, before: u64, part: Times, events: u64, filled: &mut Filled) -> Result<()> {
    join_column(&mut times.starts, before, part.starts, events, Times::UNKNOWN_START, filled)?;
    join_column(&mut times.durations, before, part.durations, events, Times::UNKNOWN_DURATION, filled)?;
    let mut parts = part.metrics;
    for (name, column) in &mut times.metrics {
        let found = parts.iter().position(|(other, _)| other == name).map(|index| parts.remove(index).1);
        filled.append(column, found, events, f64::NAN)?;
    }
    for (name, part) in parts {
        let mut column = Column::default();
        filled.append(&mut column, None, before, f64::NAN)?;
        filled.append(&mut column, Some(part), events, f64::NAN)?;
        times.metrics.push((name, column));
    }
    Ok(())
}

fn join_column(
    column: &mut Option<Column<i64>>,
    before: u64,
    part: Option<Column<i64>>,
    events: u64,
    unknown: i64,
    filled: &mut Filled,
) -> Result<()> {
    if column.is_none() && part.is_none() {
        return Ok(());
    }
    if column.is_none() {
        filled.append(column.get_or_insert_default(), None, before, unknown)?;
    }
    filled.append(column.get_or_insert_default(), part, events, unknown)
}

/// Values that may be filled up in an archive: they cost time and memory that the file
/// did not have to spend on them.
const MOST_UNKNOWN: u64 = 1 << 26;

/// Counts the values that were filled up.
#[derive(Default)]
struct Filled(u64);

impl Filled {
    /// Appends a part, or as many unknown values as there are events.
    fn append<T: Cell>(
        &mut self,
        column: &mut Column<T>,
        part: Option<Column<T>>,
        events: u64,
        unknown: T,
    ) -> Result<()> {
        let Some(part) = part else {
            self.0 = self.0.saturating_add(events);
            if self.0 > MOST_UNKNOWN {
                let reason = "a stream has times for some of its segments, and too many events without";
                return Err(Error::limit(reason));
            }
            column.append_repeated(unknown, events);
            return Ok(());
        };
        column.append(&part)
    }
}
