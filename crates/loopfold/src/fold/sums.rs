//! Sums of times and metrics: what is left when the value of every single event is
//! not needed.

use crate::{Error, Result, Symbol};

/// The durations of all events that count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSum {
    /// How many of the events have a known duration.
    pub known: u64,
    /// Those durations together, in nanoseconds.
    pub total: i128,
}

impl DurationSum {
    /// The mean of the known durations, in nanoseconds; nothing when none is known.
    pub fn mean(&self) -> Option<f64> {
        (self.known > 0).then(|| self.total as f64 / self.known as f64)
    }

    pub(crate) fn add(&mut self, other: Self) -> Result<()> {
        self.known = self.known.checked_add(other.known).ok_or_else(too_large)?;
        self.total = self.total.checked_add(other.total).ok_or_else(too_large)?;
        Ok(())
    }
}

/// The values of one metric of all events that count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricSum {
    /// How many of the events have a known value.
    pub known: u64,
    /// Those values together.
    pub total: f64,
}

impl MetricSum {
    /// The mean of the known values; nothing when none is known.
    pub fn mean(&self) -> Option<f64> {
        (self.known > 0).then(|| self.total / self.known as f64)
    }

    pub(crate) fn add(&mut self, other: Self) -> Result<()> {
        self.known = self.known.checked_add(other.known).ok_or_else(too_large)?;
        self.total += other.total;
        Ok(())
    }
}

fn too_large() -> Error {
    Error::limit("a sum of times is too large")
}

/// The sums of one stream, for those of its events that have any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamSums {
    /// By symbol, in ascending order; nothing when the stream knows no durations.
    pub durations: Option<Vec<(Symbol, DurationSum)>>,
    /// The same for each metric, by its name.
    pub metrics: Vec<(String, Vec<(Symbol, MetricSum)>)>,
}
