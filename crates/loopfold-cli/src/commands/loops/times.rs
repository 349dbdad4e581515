//! The times of the nests that are shown. If other processes have them, those compute them, several nests at
//! once, so that all processes have something to do.

use super::Shown;
use crate::nodes::SharedTimes;
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::iterations::{ClassTimes, loop_times, summed_times};

/// Classes whose nests are kept until other processes have timed them.
const AT_ONCE: usize = 64;

/// Times the loops of nests.
#[derive(Clone, Copy)]
pub(super) struct Timer<'a> {
    pub(super) fold: &'a Fold,
    shared_times: Option<&'a SharedTimes>,
    /// How many classes should be timed at once.
    pub(super) at_once: usize,
}

impl<'a> Timer<'a> {
    pub(super) fn new(fold: &'a Fold, shared_times: Option<&'a SharedTimes>) -> Self {
        Self { fold, shared_times, at_once: if shared_times.is_some() { AT_ONCE } else { 1 } }
    }

    /// The times of classes and their loops, where they are known.
    pub(super) fn times_of(self, shown: &[&Shown]) -> Result<Vec<Option<ClassTimes>>> {
        let times = match self.shared_times {
            Some(shared) => {
                let nests: Vec<_> =
                    shown.iter().map(|shown| (&shown.nest, &shown.class.streams[..])).collect();
                shared.loop_times(self.fold, &nests)?
            }
            None => shown.iter().map(|shown| self.own_times(shown)).collect::<Result<_>>()?,
        };
        times.into_iter().zip(shown).map(|(times, shown)| self.or_summed(times, shown)).collect()
    }

    fn own_times(self, shown: &Shown) -> Result<Option<ClassTimes>> {
        let streams = shown.class.streams.iter().map(|&index| (index, self.fold.stream(index).times()));
        Ok(loop_times(&shown.nest, streams)?)
    }

    /// Where there are no times, there may be sums.
    fn or_summed(self, times: Option<ClassTimes>, shown: &Shown) -> Result<Option<ClassTimes>> {
        if times.is_some() {
            return Ok(times);
        }
        let mut summed = summed_times(self.fold, &shown.class, shown.largest)?;
        // The sums are for the iterations of the loops before rotation.
        if let Some(summed) = summed.as_mut().filter(|_| shown.is_rotated) {
            summed.loops.clear();
        }
        Ok(summed)
    }
}
