//! Sums the durations and metrics of each rule over all its occurrences, and the times of the
//! iterations of each loop.
//!
//! A rule is measured wherever it occurs, in whatever it lies; a loop is an item that repeats,
//! in all occurrences of its rule. An iteration lasts as in [`loop_times`], which has the times
//! for each place in a nest and each stream; here they are summed for the rule, over all places
//! and streams.
//!
//! Cost: one [cursor](crate::fold::cursor) through each stream for its durations, its loops and
//! each of its metrics: O(events), 20 to 50 nanoseconds each for durations and loops, a third
//! of it decompression. Memory: for a chunk of a column, the depth of the rules, about 100
//! bytes for each rule and loop, and 4 for each item.
//!
//! [`loop_times`]: super::iterations::loop_times

use super::iterations::{Lap, Stopwatch};
use super::sums::{check_lengths, check_tables, stream_sums_of};
use crate::fold::cursor::{Cursor, Move, Stretch, Visitor};
use crate::fold::{
    Additive, Fold, FoldedStream, Item, IterationSpread, MetricSpread, RuleSums, Spread, Target,
};
use crate::trace::{CHUNK, Cell, ColumnReader, Times};
use crate::{Error, Result, RuleId};

/// The sums of all rules and loops, from the columns of times and from what is summed already.
/// Returns `None` when there are no times, or when the sums are not of the rules as they are
/// now.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::rule_sums::rule_sums;
/// use loopfold::trace::{Collector, Event, Sink, Timing};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// let (read, write) = (collector.intern(&Event::named("read"))?, collector.intern(&Event::named("write"))?);
/// for duration in [1, 5, 1, 7, 1, 6] {
///     let symbol = if duration == 1 { read } else { write };
///     collector.push(stream, symbol, Timing { duration: Some(duration), ..Timing::UNKNOWN })?;
/// }
/// // (read write)^3
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let sums = rule_sums(&fold)?.unwrap_or_default();
/// let body = sums.durations.unwrap_or_default()[0];
/// assert_eq!((body.count, body.total, body.minimum, body.maximum), (3, 21, 6, 8));
/// assert_eq!(sums.loops[&(fold.streams()[0].root(), 0)].summary()?.mean(), Some(7.0));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn rule_sums(fold: &Fold) -> Result<Option<RuleSums>> {
    let has_times = |stream: &FoldedStream| !stream.times().is_empty();
    let mut sums = match fold.rule_sums() {
        Some(sums) => sums.without_wider().into_owned(),
        None if fold.streams().iter().any(|stream| stream.sums().is_some()) => return Ok(None),
        None if !fold.streams().iter().any(has_times) => return Ok(None),
        None => RuleSums::default(),
    };
    let loops = Loops::of(fold);
    let mut laps = vec![IterationSpread::default(); loops.count];
    for stream in fold.streams().iter().filter(|stream| has_times(stream)) {
        check_lengths(fold, stream)?;
        add_stream(fold, &loops, stream, &mut sums, &mut laps)?;
    }
    for (place, laps) in loop_places(fold).zip(laps) {
        if laps != IterationSpread::default() {
            sums.loops.entry(place).or_default().add(&laps)?;
        }
    }
    sums.resize(fold.rules().len());
    Ok(Some(sums))
}

/// The same fold with sums instead of a time for every event: of every event in each
/// stream, of the rules, and of the loops.
pub fn summarize(mut fold: Fold) -> Result<Fold> {
    let rules = rule_sums(&fold)?;
    let streams = stream_sums_of(&fold)?;
    for (stream, sums) in fold.streams_mut().iter_mut().zip(streams) {
        stream.times = Times::default();
        stream.sums = sums;
    }
    Ok(fold.with_rule_sums(rules))
}

/// Adds the columns of a stream.
fn add_stream(
    fold: &Fold,
    loops: &Loops,
    stream: &FoldedStream,
    sums: &mut RuleSums,
    laps: &mut [IterationSpread],
) -> Result<()> {
    let (times, root, rules) = (stream.times(), stream.root(), fold.rules().len());
    if let Some(column) = &times.durations {
        let spreads = sums.durations.get_or_insert_default();
        spreads.resize(rules, Spread::default());
        let mut summing = Durations { column: column.reader(), before: 0, began: Vec::new(), spreads };
        sum(fold, loops, root, &mut summing)?;
    }
    for (name, column) in &times.metrics {
        check_tables(sums.metrics.len() + 1, rules)?;
        let spreads = sums.metric_mut(name);
        spreads.resize(rules, MetricSpread::default());
        let mut summing = Metric { column: column.reader(), open: Vec::new(), spreads };
        sum(fold, loops, root, &mut summing)?;
    }
    if let Some(stopwatch) = Stopwatch::new(times) {
        sum(fold, loops, root, &mut Laps { stopwatch, laps })?;
    }
    Ok(())
}

/// A loop of a fold: the items that repeat are numbered, rule by rule.
type LoopNumber = usize;

/// The number of each loop.
struct Loops {
    /// For each item how many loops come before it.
    before: Vec<u32>,
    count: usize,
}

impl Loops {
    fn of(fold: &Fold) -> Self {
        let mut count = 0;
        let number = |item: &Item| {
            let before = count;
            count += u32::from(item.times() > 1);
            before
        };
        let before = fold.all_items().iter().map(number).collect();
        Self { before, count: count as usize }
    }

    /// The number of the loop that is an item of a rule.
    fn number(&self, fold: &Fold, (rule, index): (RuleId, usize)) -> LoopNumber {
        self.before[fold.item_range(rule).start + index] as usize
    }
}

/// All loops in the order of their numbers: the rule and the index in its body.
fn loop_places(fold: &Fold) -> impl Iterator<Item = (RuleId, usize)> {
    fold.rules().flat_map(|rule| {
        let items = fold.body(rule).iter().enumerate();
        items.filter(|(_, item)| item.times() > 1).map(move |(index, _)| (rule, index))
    })
}

/// What the occurrences of rules are summed by. `looped` is the loop whose iteration something
/// is.
trait Summing {
    /// A rule begins, for the first time of `looped`.
    fn enter(&mut self, looped: Option<LoopNumber>, position: u64) -> Result<()>;

    /// Events that are the same, each an iteration of `looped`.
    fn events(&mut self, count: u64, looped: Option<LoopNumber>, position: u64) -> Result<()>;

    /// A rule ends. Unless that was the last iteration of `looped`, it begins again.
    fn leave(&mut self, rule: RuleId, looped: Option<LoopNumber>, last: bool, position: u64) -> Result<()>;
}

/// Visits every occurrence of every rule that a rule unfolds to, in order.
fn sum(fold: &Fold, loops: &Loops, root: RuleId, summing: &mut impl Summing) -> Result<()> {
    summing.enter(None, 0)?;
    Cursor::new(fold, root).visit(&mut Occurrences { fold, loops, open: vec![None], summing })
}

struct Occurrences<'a, S> {
    fold: &'a Fold,
    loops: &'a Loops,
    /// The loops that the open rules are iterations of.
    open: Vec<Option<LoopNumber>>,
    summing: &'a mut S,
}

impl<S: Summing> Visitor<Item> for Occurrences<'_, S> {
    type Error = Error;

    #[inline]
    fn stretch(&mut self, stretch: Stretch<Item>, place: (RuleId, usize)) -> Result<Move> {
        let looped = (stretch.times > 1).then(|| self.loops.number(self.fold, place));
        if let Target::Symbol(_) = stretch.target {
            self.summing.events(stretch.times, looped, stretch.position)?;
            return Ok(Move::Skip);
        }
        self.summing.enter(looped, stretch.position)?;
        self.open.push(looped);
        Ok(Move::Enter)
    }

    #[inline]
    fn end(&mut self, rule: RuleId, again: u64, position: u64) -> Result<Move> {
        let looped = self.open.last().copied().flatten();
        self.summing.leave(rule, looped, again == 0, position)?;
        if again == 0 {
            self.open.pop();
        }
        Ok(Move::Enter)
    }
}

/// Sums durations: those of a rule are the sum up to its end less that up to its beginning.
struct Durations<'a> {
    column: ColumnReader<'a, i64>,
    /// All durations so far.
    before: i128,
    /// The same where each open rule began, outermost first.
    began: Vec<i128>,
    spreads: &'a mut [Spread],
}

impl Summing for Durations<'_> {
    fn enter(&mut self, _: Option<LoopNumber>, _: u64) -> Result<()> {
        self.began.push(self.before);
        Ok(())
    }

    #[inline]
    fn events(&mut self, count: u64, _: Option<LoopNumber>, position: u64) -> Result<()> {
        let before = &mut self.before;
        each(&mut self.column, position, count, |value| *before += i128::from(value.max(0)))
    }

    fn leave(&mut self, rule: RuleId, _: Option<LoopNumber>, last: bool, _: u64) -> Result<()> {
        if let Some(began) = self.began.pop() {
            self.spreads[rule.index()].add(self.before - began)?;
        }
        if !last {
            self.began.push(self.before);
        }
        Ok(())
    }
}

/// Sums a metric. Not by differences as durations: they would cancel digits.
struct Metric<'a> {
    column: ColumnReader<'a, f64>,
    /// What each open rule has so far, without the rules in it that are open.
    open: Vec<f64>,
    spreads: &'a mut [MetricSpread],
}

impl Summing for Metric<'_> {
    fn enter(&mut self, _: Option<LoopNumber>, _: u64) -> Result<()> {
        self.open.push(0.0);
        Ok(())
    }

    #[inline]
    fn events(&mut self, count: u64, _: Option<LoopNumber>, position: u64) -> Result<()> {
        let Some(sum) = self.open.last_mut() else { return Ok(()) };
        each(&mut self.column, position, count, |value| *sum += if value.is_nan() { 0.0 } else { value })
    }

    fn leave(&mut self, rule: RuleId, _: Option<LoopNumber>, last: bool, _: u64) -> Result<()> {
        let Some(sum) = self.open.pop() else { return Ok(()) };
        self.spreads[rule.index()].join(&MetricSpread::of(sum))?;
        if let Some(outer) = self.open.last_mut() {
            *outer += sum;
        }
        if !last {
            self.open.push(0.0);
        }
        Ok(())
    }
}

/// Times the iterations of loops.
struct Laps<'a> {
    stopwatch: Stopwatch<'a>,
    laps: &'a mut [IterationSpread],
}

impl Laps<'_> {
    fn lap(&mut self, number: LoopNumber, last: bool, position: u64) -> Result<()> {
        match self.stopwatch.lap(position, last)? {
            Lap { time: Some(time), is_full, .. } => self.laps[number].record(time, !is_full),
            Lap { time: None, .. } => Ok(()),
        }
    }
}

impl Summing for Laps<'_> {
    fn enter(&mut self, looped: Option<LoopNumber>, position: u64) -> Result<()> {
        if looped.is_some() {
            self.stopwatch.begin(position)?;
        }
        Ok(())
    }

    #[inline]
    fn events(&mut self, count: u64, looped: Option<LoopNumber>, position: u64) -> Result<()> {
        let Some(number) = looped else { return Ok(()) };
        self.stopwatch.begin(position)?;
        (1..=count).try_for_each(|event| self.lap(number, event == count, position + event))
    }

    fn leave(&mut self, _: RuleId, looped: Option<LoopNumber>, last: bool, position: u64) -> Result<()> {
        looped.map_or(Ok(()), |number| self.lap(number, last, position))
    }
}

/// Takes the values at `count` positions, one after the other.
fn each<T: Cell>(
    column: &mut ColumnReader<'_, T>,
    position: u64,
    count: u64,
    mut take: impl FnMut(T),
) -> Result<()> {
    if count == 1 {
        take(column.get(position as usize)?);
        return Ok(());
    }
    let (mut from, end) = (position as usize, (position + count) as usize);
    while from < end {
        let (chunk, within) = (from / CHUNK, from % CHUNK);
        let now = (end - from).min(CHUNK - within);
        column.chunk(chunk)?[within..within + now].iter().for_each(|&value| take(value));
        from += now;
    }
    Ok(())
}
