//! How long an execution took.
//!
//! Reads every start and duration once: a few nanoseconds an event that has times.

use crate::trace::{Column, Times};
use crate::{Fold, Result};

impl Fold {
    /// How long the recorded execution took, in nanoseconds: from the first start to the last
    /// end of all events, if the streams share a clock. A stream with durations but no starts
    /// took their sum, one with sums only as long as its sums say. Returns `None` if no times
    /// are known, or the time exceeds 64 bits.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::trace::{Collector, Event, Sink, Timing};
    ///
    /// let mut collector = Collector::default();
    /// let (main, other) = (collector.stream("main")?, collector.stream("other")?);
    /// let step = collector.intern(&Event::named("step"))?;
    /// // All of main lies within its first event.
    /// collector.push(main, step, Timing { start: Some(100), duration: Some(50), ..Timing::UNKNOWN })?;
    /// collector.push(main, step, Timing { start: Some(110), duration: Some(5), ..Timing::UNKNOWN })?;
    /// collector.push(other, step, Timing { start: Some(90), ..Timing::UNKNOWN })?;
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// assert_eq!(fold.run_time()?, Some(60));
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn run_time(&self) -> Result<Option<u64>> {
        let mut range: Option<(i128, i128)> = None;
        let mut longest: Option<i128> = None;
        for stream in self.streams() {
            match (&stream.times().starts, &stream.times().durations) {
                (Some(starts), durations) => widen(&mut range, starts, durations.as_ref())?,
                (None, Some(durations)) => {
                    let sum = durations.reader().sum_before(durations.len())?.whole;
                    longest = longest.max(Some(sum));
                }
                (None, None) => {
                    let span = stream.sums().and_then(|sums| sums.span());
                    longest = longest.max(span.map(i128::from));
                }
            }
        }
        let time = range.map(|(first, last)| last - first).max(longest);
        Ok(time.and_then(|time| u64::try_from(time).ok()))
    }
}

/// Lets the range reach from the earliest start to the latest end.
fn widen(
    range: &mut Option<(i128, i128)>,
    starts: &Column<i64>,
    durations: Option<&Column<i64>>,
) -> Result<()> {
    let mut starts_reader = starts.reader();
    // In a column that is too short the other values are unknown.
    let mut durations = durations.map(|durations| (durations.reader(), durations.len()));
    for position in 0..starts.len() {
        let start = starts_reader.get(position)?;
        if start == Times::UNKNOWN_START {
            continue;
        }
        let duration = match &mut durations {
            Some((reader, length)) if position < *length => reader.get(position)?.max(0),
            _ => 0,
        };
        let (start, end) = (i128::from(start), i128::from(start) + i128::from(duration));
        let (first, last) = range.unwrap_or((start, end));
        *range = Some((first.min(start), last.max(end)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::folders::{Outermost, fold_trace};
    use crate::trace::{Collector, Event, Sink as _, Timing};

    /// The run time of streams of (start, duration).
    fn time(streams: &[&[(Option<i64>, Option<i64>)]]) -> Option<u64> {
        let mut collector = Collector::default();
        let event = collector.intern(&Event::named("x")).unwrap();
        for (index, events) in streams.iter().enumerate() {
            let stream = collector.stream(&index.to_string()).unwrap();
            for &(start, duration) in *events {
                collector.push(stream, event, Timing { start, duration, ..Timing::UNKNOWN }).unwrap();
            }
        }
        fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap().run_time().unwrap()
    }

    #[test]
    fn from_the_first_start_to_the_last_end() {
        assert_eq!(time(&[]), None);
        assert_eq!(time(&[&[], &[(None, None)]]), None);
        assert_eq!(time(&[&[(Some(7), None)]]), Some(0));
        assert_eq!(time(&[&[(Some(7), None), (None, Some(90)), (Some(9), None)]]), Some(2));
        assert_eq!(time(&[&[(Some(-5), Some(3)), (Some(4), None)], &[(Some(1), Some(20))]]), Some(26));
        assert_eq!(time(&[&[(None, Some(3)), (None, Some(4))], &[(None, Some(5))]]), Some(7));
        assert_eq!(time(&[&[(None, Some(3)), (None, Some(4))], &[(Some(1), Some(5))]]), Some(7));
        assert_eq!(time(&[&[(Some(i64::MIN + 1), None), (Some(i64::MAX), None)]]), Some(u64::MAX - 1));
        assert_eq!(time(&[&[(Some(i64::MIN + 1), None), (Some(i64::MAX), Some(i64::MAX))]]), None);
    }
}
