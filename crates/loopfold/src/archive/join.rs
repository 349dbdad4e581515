//! Joins segments to one fold: equal symbols and equal rules become one, and a stream continues
//! that of the segment before.
//!
//! A stream that is in several segments gets a new root: the roots it had, one after
//! the other. Joining costs a hash of every rule and entry; full chunks of times are
//! taken over as they are if the segment before ended at the end of a chunk, and
//! compressed again if not.

use crate::fold::{FoldBuilder, FoldedStream, Item, StreamSums, Target};
use crate::trace::{Cell, Column, Times};
use crate::{Error, Fold, Result, RuleId};
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;

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
    metrics_of_rules: MetricsOfRules,
}

/// A stream that may continue.
struct Joined {
    stream: FoldedStream,
    /// Where the notes with each key are.
    notes: HashMap<String, usize>,
    /// The roots of its parts.
    roots: Vec<RuleId>,
    events: u64,
    times: Times,
    sums: Option<StreamSums>,
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
            let root = root_of(&mut self.builder, &joined.roots, joined.sums.as_ref())?;
            self.builder.known_stream(FoldedStream { root, sums: joined.sums, ..joined.stream });
            all_times.push(joined.times);
        }
        let mut fold = self.builder.finish().canonical();
        for (stream, times) in fold.streams_mut().iter_mut().zip(all_times) {
            stream.times = times;
        }
        let has_both = |stream: &FoldedStream| stream.sums.is_some() && !stream.times.is_empty();
        let sums_of_parts = fold.streams().iter().any(has_both);
        Ok(if sums_of_parts { fold.with_rule_sums(None) } else { fold })
    }

    fn join(&mut self, mut fold: Fold) -> Result<()> {
        let renamed = self.builder.join_rules(&fold)?;
        let mut namesakes: HashMap<String, usize> = HashMap::new();
        for stream in fold.streams_mut() {
            let times = std::mem::take(&mut stream.times);
            let sums = stream.sums.take().map(|sums| sums.renamed(|old| renamed.symbol(old))).transpose()?;
            let root = renamed.rules[stream.root.index()];
            let namesake = namesakes.entry(stream.name.clone()).or_default();
            let index = self.stream(stream, *namesake);
            *namesake += 1;
            let part = Part { stream, root, events: self.builder.length(root), times, sums };
            self.streams[index].extend(part, &mut self.filled)?;
        }
        self.metrics_of_rules.add(&fold, &renamed.rules, self.streams.len())?;
        self.builder.join_rule_sums(&fold, &renamed.rules)
    }

    fn stream(&mut self, stream: &FoldedStream, namesake: usize) -> usize {
        *self.by_name.entry((stream.name.clone(), namesake)).or_insert_with(|| {
            self.streams.push(Joined::new(stream));
            self.streams.len() - 1
        })
    }
}

/// How a stream continues in the next segment.
struct Part<'a> {
    stream: &'a FoldedStream,
    root: RuleId,
    events: u64,
    times: Times,
    sums: Option<StreamSums>,
}

impl Joined {
    /// A stream without parts so far.
    fn new(stream: &FoldedStream) -> Self {
        let stream = FoldedStream::new(stream.name.as_str(), stream.folder.as_str(), stream.root);
        Self {
            stream,
            notes: HashMap::new(),
            roots: Vec::new(),
            events: 0,
            times: Times::default(),
            sums: None,
        }
    }

    /// Sets a note, in the place of one with the same key.
    fn set_note(&mut self, key: &str, value: &str) {
        let notes = &mut self.stream.notes;
        match self.notes.get(key) {
            Some(&index) => notes[index].1 = value.to_string(),
            None => {
                self.notes.insert(key.to_string(), notes.len());
                notes.push((key.to_string(), value.to_string()));
            }
        }
    }

    fn extend(&mut self, part: Part<'_>, filled: &mut Filled) -> Result<()> {
        part.stream.notes.iter().for_each(|(key, value)| self.set_note(key, value));
        join_times(&mut self.times, self.events, part.times, part.events, filled)?;
        self.join_sums(part.sums, part.events)?;
        let too_long = || Error::limit("a stream of more than 2^64 events");
        self.events = self.events.checked_add(part.events).ok_or_else(too_long)?;
        self.roots.push(part.root);
        Ok(())
    }

    /// Adds the sums of a part of `events` events.
    fn join_sums(&mut self, part: Option<StreamSums>, events: u64) -> Result<()> {
        if events == 0 || part.is_none() && self.sums.is_none() {
            return Ok(());
        }
        let (part, sums) = (part.unwrap_or_default(), self.sums.get_or_insert_default());
        sums.join(&part, &mut Some)
    }
}

/// A rule that unfolds to these rules, one after the other, and to a stream of these sums.
fn root_of(builder: &mut FoldBuilder, parts: &[RuleId], sums: Option<&StreamSums>) -> Result<RuleId> {
    if let [only] = parts {
        return Ok(*only);
    }
    let mut body = Vec::new();
    for &part in parts {
        // Such a rule does not become a part of the new one, so it occurs once less.
        if builder.body(part).len() < 2
            && let Some(sums) = builder.rule_sums_mut()
        {
            sums.forget(part);
        }
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
    let root = builder.rule(&body)?;
    if let (Some(rule_sums), Some(sums)) = (builder.rule_sums_mut(), sums) {
        rule_sums.add_root(root, sums)?;
    }
    Ok(root)
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

/// Appends the times of the `events` events that follow the `before` events so far. Times that
/// one of the two lacks are filled up as unknown.
fn join_times(times: &mut Times, before: u64, part: Times, events: u64, filled: &mut Filled) -> Result<()> {
    join_column(&mut times.starts, before, part.starts, events, Times::UNKNOWN_START, filled)?;
    join_column(&mut times.durations, before, part.durations, events, Times::UNKNOWN_DURATION, filled)?;
    join_metrics(&mut times.metrics, before, part.metrics, events, filled)
}

/// The same for metrics. If several have one name, the first continues in the first. An archive
/// may have any number of them, so they are not searched one by one.
fn join_metrics(
    metrics: &mut Vec<(String, Column<f64>)>,
    before: u64,
    parts: Vec<(String, Column<f64>)>,
    events: u64,
    filled: &mut Filled,
) -> Result<()> {
    // Without events there is nothing to append.
    if parts.is_empty() && events == 0 {
        return Ok(());
    }
    let mut by_name: HashMap<String, VecDeque<(usize, Column<f64>)>> = HashMap::new();
    for (place, (name, part)) in parts.into_iter().enumerate() {
        by_name.entry(name).or_default().push_back((place, part));
    }
    for (name, column) in metrics.iter_mut() {
        let found = by_name.get_mut(name).and_then(VecDeque::pop_front);
        filled.append(column, found.map(|(_, part)| part), events, f64::NAN)?;
    }
    let mut new: Vec<(usize, String, Column<f64>)> = Vec::new();
    for (name, parts) in by_name {
        new.extend(parts.into_iter().map(|(place, part)| (place, name.clone(), part)));
    }
    new.sort_unstable_by_key(|&(place, ..)| place);
    for (_, name, part) in new {
        let mut column = Column::default();
        filled.append(&mut column, None, before, f64::NAN)?;
        filled.append(&mut column, Some(part), events, f64::NAN)?;
        metrics.push((name, column));
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
            return column.append_repeated(unknown, events);
        };
        column.append(&part)
    }
}

/// Sums of metrics by rule that may be filled up in an archive: those of a metric are a
/// list with a place for every rule, whatever the segment it came from had.
const MOST_UNKNOWN_SUMS: usize = 1 << 24;

/// Counts the sums of metrics by rule.
#[derive(Default)]
struct MetricsOfRules {
    names: HashSet<String>,
    rules: usize,
    /// How many sums there really were.
    known: usize,
}

impl MetricsOfRules {
    /// Adds those of a fold whose rules are now `rules`, with this many streams, each of which
    /// may get a new root. Fails if too many are filled up.
    fn add(&mut self, fold: &Fold, rules: &[RuleId], streams: usize) -> Result<()> {
        let highest = rules.iter().map(|rule| rule.index() + 1).max().unwrap_or(0);
        self.rules = self.rules.max(highest);
        for (name, sums) in fold.rule_sums().iter().flat_map(|sums| &sums.metrics) {
            if !self.names.contains(name) {
                self.names.insert(name.clone());
            }
            self.known = self.known.saturating_add(sums.len());
        }
        let all = self.rules.saturating_add(streams).saturating_mul(self.names.len());
        if all.saturating_sub(self.known) > MOST_UNKNOWN_SUMS {
            return Err(Error::limit(
                "some segments have sums of many metrics, and others many rules without",
            ));
        }
        Ok(())
    }
}
