//! Self times: what events took without the events inside them.
//!
//! Durations of events that nest, such as the slices of a profiler, count the same time several
//! times. Here every moment belongs to one event: of those that are open, to the one that
//! began last, and if several began then, to the last of them in the stream. The self time of an
//! event is the measure of its moments. If slices nest, that is its duration less what the events
//! directly inside it cover; if they overlap without nesting, the one that began later has what both
//! cover. So self times are never negative, and those of a stream add up to its *busy* time:
//! the union of all intervals. Events without a start or a duration have no self time.
//!
//! The sweep keeps the open events in a stack. An event that ends no later than one that begins
//! after it never gets a moment again, so it is taken off at once: ends decrease towards the top,
//! and the top is the event that time belongs to.
//!
//! Cost: O(events), some 30 nanoseconds each, and memory for the open events; where a clock goes
//! back, O(events log events) and 32 bytes an event, for sorting.

use super::clock::{Interval, Starts};
use super::sums::{Table, check_lengths};
use crate::fold::{Additive, DurationSum, Fold, FoldedStream, StreamSums};
use crate::trace::Times;
use crate::{Result, Symbol};

/// The self times of every event over all streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelfSums {
    /// The self times of all events that count as the same, by symbol.
    pub events: Vec<DurationSum>,
    /// Whether events nest or overlap in a stream, so that durations count some time twice.
    pub nests: bool,
}

impl SelfSums {
    /// How many events have a self time.
    pub fn known(&self) -> u64 {
        self.events.iter().fold(0, |known: u64, sum| known.saturating_add(sum.known))
    }

    /// The time in which some event was open, summed over the streams: all self times together.
    pub fn busy(&self) -> i128 {
        self.events.iter().fold(0, |busy: i128, sum| busy.saturating_add(sum.total))
    }

    fn add(&mut self, events: &[(Symbol, DurationSum)]) -> Result<()> {
        events.iter().try_for_each(|(symbol, sum)| self.events[symbol.index()].add(sum))
    }
}

impl Fold {
    /// The self times of every event over all streams. Returns `None` where no stream has starts
    /// and durations of its events.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::trace::{Collector, Event, Sink, Timing};
    ///
    /// let mut collector = Collector::default();
    /// let stream = collector.stream("main")?;
    /// for (name, start, duration) in [("step", 0, 10), ("load", 2, 3), ("store", 6, 1)] {
    ///     let symbol = collector.intern(&Event::named(name))?;
    ///     let timing = Timing { start: Some(start), duration: Some(duration), ..Timing::UNKNOWN };
    ///     collector.push(stream, symbol, timing)?;
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let sums = fold.self_sums()?.unwrap_or_default();
    /// let own: Vec<i128> = sums.events.iter().map(|sum| sum.total).collect();
    /// assert_eq!((own, sums.busy(), sums.nests), (vec![6, 3, 1], 10, true));
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn self_sums(&self) -> Result<Option<SelfSums>> {
        let symbols = self.alphabet().len();
        let new = || SelfSums { events: vec![DurationSum::default(); symbols], nests: false };
        let mut all: Option<SelfSums> = None;
        let mut self_times = SelfTimes::new(symbols);
        for stream in self.streams() {
            if let Some(sums) = stream.sums()
                && let Some(events) = &sums.self_times
            {
                let all = all.get_or_insert_with(new);
                all.add(events)?;
                all.nests |= stored_events_nest(sums, events);
            }
            if let Some(own) = self_times.stream(self, stream)? {
                let all = all.get_or_insert_with(new);
                all.add(&own.events)?;
                all.nests |= own.nests;
            }
        }
        Ok(all)
    }
}

/// Whether self times are less than the durations of the same events.
fn stored_events_nest(sums: &StreamSums, self_times: &[(Symbol, DurationSum)]) -> bool {
    let durations = sums.durations.as_deref().unwrap_or_default();
    self_times.iter().any(|(symbol, own)| {
        let index = durations.binary_search_by_key(symbol, |(symbol, _)| *symbol);
        index.is_ok_and(|index| {
            let (_, all) = durations[index];
            all.known == own.known && own.total < all.total
        })
    })
}

/// The self time of each event of a stream, [`Times::UNKNOWN_DURATION`] where it is not known.
/// Returns `None` if no starts or no durations are known.
pub fn self_times(times: &Times) -> Result<Option<Vec<i64>>> {
    let Some(mut starts) = starts_of(times) else { return Ok(None) };
    let mut values = vec![Times::UNKNOWN_DURATION; starts.events() as usize];
    let mut sweep = Sweep::new(|position: u64, own| values[position as usize] = own);
    if starts.is_sorted()? {
        starts.each_interval(|interval| sweep.begin(interval, interval.position))?;
    } else {
        starts.sorted_intervals()?.iter().for_each(|&interval| sweep.begin(interval, interval.position));
    }
    sweep.finish();
    Ok(Some(values))
}

fn starts_of(times: &Times) -> Option<Starts<'_>> {
    times.durations.as_ref()?;
    Starts::of(times)
}

/// Sums the self times of streams one after the other; the table by symbol is made once for all.
pub(super) struct SelfTimes {
    table: Table<DurationSum>,
}

/// The self times of a stream.
pub(super) struct StreamSelfTimes {
    /// By symbol, in ascending order.
    pub(super) events: Vec<(Symbol, DurationSum)>,
    nests: bool,
}

impl SelfTimes {
    pub(super) fn new(symbols: usize) -> Self {
        Self { table: Table::new(symbols) }
    }

    /// Returns `None` if the stream has no starts or no durations.
    pub(super) fn stream(&mut self, fold: &Fold, stream: &FoldedStream) -> Result<Option<StreamSelfTimes>> {
        let Some(mut starts) = starts_of(stream.times()) else { return Ok(None) };
        check_lengths(fold, stream)?;
        // Fewer than 2^64 values of less than 2^63 fit 128 bits.
        let (mut durations, mut busy) = (0i128, 0i128);
        let mut sweep = Sweep::new(|symbol: Symbol, own: i64| {
            busy += i128::from(own);
            self.table.add_value(symbol, own);
        });
        let mut begin = |interval: Interval, symbol: Option<Symbol>| {
            let Some(symbol) = symbol else { return };
            durations += interval.end - i128::from(interval.start);
            sweep.begin(interval, symbol);
        };
        let mut symbols = fold.unfold(stream.root());
        if starts.is_sorted()? {
            let mut next = 0;
            starts.each_interval(|interval| {
                let symbol = symbols.nth((interval.position - next) as usize);
                next = interval.position + 1;
                begin(interval, symbol);
            })?;
        } else {
            let symbols: Vec<Symbol> = symbols.collect();
            for interval in starts.sorted_intervals()? {
                begin(interval, symbols.get(interval.position as usize).copied());
            }
        }
        sweep.finish();
        Ok(Some(StreamSelfTimes { events: self.table.take(), nests: busy < durations }))
    }
}

/// Gives every moment to one event. Events begin in order; `done` is called with each one and its
/// self time when that is known.
struct Sweep<E, F> {
    now: i128,
    /// The events that may still get a moment: each ends before the one below it.
    open: Vec<Open<E>>,
    done: F,
}

struct Open<E> {
    event: E,
    end: i128,
    own: i128,
}

impl<E, F: FnMut(E, i64)> Sweep<E, F> {
    fn new(done: F) -> Self {
        Self { now: i128::MIN, open: Vec::new(), done }
    }

    fn begin(&mut self, Interval { start, end, .. }: Interval, event: E) {
        self.pass(start.into());
        while let Some(open) = self.open.pop_if(|open| open.end <= end) {
            self.close(open);
        }
        self.open.push(Open { event, end, own: 0 });
    }

    /// Time passes, and belongs to the event on top.
    fn pass(&mut self, to: i128) {
        while let Some(top) = self.open.last_mut() {
            let until = top.end.min(to);
            top.own += until - self.now;
            self.now = until;
            match self.open.pop_if(|open| open.end <= to) {
                Some(open) => self.close(open),
                None => break,
            }
        }
        self.now = to;
    }

    /// A self time is at most a duration, and fits as many bits.
    fn close(&mut self, Open { event, own, .. }: Open<E>) {
        (self.done)(event, own.try_into().unwrap_or(i64::MAX));
    }

    fn finish(mut self) {
        self.pass(i128::MAX);
    }
}
