//! Merges the records of the threads of a process into an order in which each comes after those
//! that it depends on.
//!
//! A thread may use a request, a communicator or a message that another one made. Its record is
//! in another lane, and nothing orders lanes but time. So records are taken in the order of their
//! ends, and only as far as no earlier one can be missing:
//!
//! 1. The heads of all lanes are read (H1), then all of them again (H2).
//! 2. Taken are all records in H1, and those in H2 that end no later than the last one in H1.
//!    What is left waits here for the next time.
//!
//! **Why this is right.** If B depends on A, A was published before the call of B began, since the
//! program itself passed the handle from one thread to the other. So A ends before B does, and
//! comes first in the order of ends. It is also there: if B is in H1, A was published before the
//! first reading was over, so A is in H2, and it ends before B, so it is taken. If B is only in H2
//! but ends no later than some C in H1, then A was published before B began, which is before C was
//! published, so again before the first reading was over. By the same argument, what A depends on
//! is taken, too.
//!
//! **Ends.** The end of a record is its start and duration, or the end of the one before it in its
//! lane if that is later: both were published before anything that depends on the record began.
//! Records without a time (pieces of a longer one; communicators; time off the CPU) belong to the one behind them.
//!
//! One comparison of O(log lanes) a record. Memory is what was published between two readings.
//! A process with a single thread has nothing to merge, and does not come here.

use crate::Result;
use crate::layout::{COMMUNICATOR, CONTINUED, OFF_CPU, RECORDING, length_of};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The records of all threads that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    words: Vec<i64>,
    /// Up to here words were taken, and up to here they are units.
    taken: usize,
    known: usize,
    units: VecDeque<Unit>,
    /// The end of the last unit.
    latest: i64,
}

/// A record and those before it that belong to it.
#[derive(Clone, Copy, Debug)]
struct Unit {
    end: i64,
    start: i64,
    words: usize,
}

impl Lane {
    /// Finds the units in words that were added.
    fn find_units(&mut self) {
        let mut from = self.known;
        while let Some(record) = record_at(&self.words[from..]) {
            from += record.len();
            let call = record[0] as u64 & 0xffff;
            let (start, duration) = (record[1], record[2]);
            if matches!(call, CONTINUED | OFF_CPU | RECORDING) || call == COMMUNICATOR && start == 0 {
                continue;
            }
            self.latest = self.latest.max(start.saturating_add(duration.max(0)));
            self.units.push_back(Unit { end: self.latest, start, words: from - self.known });
            self.known = from;
        }
    }

    /// The words of the next unit.
    fn pop(&mut self) -> Option<&[i64]> {
        let unit = self.units.pop_front()?;
        let from = self.taken;
        self.taken += unit.words;
        Some(&self.words[from..self.taken])
    }

    /// Drops what was taken.
    fn trim(&mut self) {
        self.words.drain(..self.taken);
        self.known -= self.taken;
        self.taken = 0;
    }
}

/// The first record in words, if all of it is there.
fn record_at(words: &[i64]) -> Option<&[i64]> {
    let length = length_of(*words.first()?);
    words.get(..length).filter(|_| length >= 3)
}

impl Lanes {
    /// Adds words of a lane by what appends them.
    pub(crate) fn add<E>(
        &mut self,
        lane: usize,
        take: impl FnOnce(&mut Vec<i64>) -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        if take(&mut self.lanes[lane].words)? {
            self.lanes[lane].find_units();
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.units.is_empty())
    }

    /// The end of the last record that was added.
    pub(crate) fn latest(&self) -> i64 {
        self.lanes.iter().map(|lane| lane.latest).max().unwrap_or(0)
    }

    /// Gives the records that end no later than this, in order.
    pub(crate) fn merge(
        &mut self,
        until: i64,
        mut each: impl FnMut(usize, &[i64]) -> Result<()>,
    ) -> Result<()> {
        let next = |lanes: &[Lane], lane: usize| {
            lanes[lane].units.front().map(|unit| Reverse((unit.end, unit.start, lane)))
        };
        let mut order: BinaryHeap<_> =
            (0..self.lanes.len()).filter_map(|lane| next(&self.lanes, lane)).collect();
        while let Some(Reverse((end, _, lane))) = order.pop() {
            if end > until {
                break;
            }
            if let Some(words) = self.lanes[lane].pop() {
                each(lane, words)?;
            }
            order.extend(next(&self.lanes, lane));
        }
        self.lanes.iter_mut().for_each(Lane::trim);
        Ok(())
    }

    /// Gives everything that is left: nothing comes any more.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(usize, &[i64]) -> Result<()>) -> Result<()> {
        self.merge(i64::MAX, &mut each)?;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            each(number, &lane.words)?;
            lane.words.clear();
            (lane.taken, lane.known) = (0, 0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A few numbers without a pattern.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    /// A call as it happens: its record has a number, and that of one it depends on.
    struct Happened {
        lane: usize,
        published: u64,
        depends_on: Option<usize>,
        words: Vec<i64>,
    }

    fn record(call: u64, start: u64, duration: u64, payload: &[i64]) -> Vec<i64> {
        let length = 3 + payload.len() as u64;
        let mut words = vec![(call | length << 16) as i64, start as i64, duration as i64];
        words.extend_from_slice(payload);
        words
    }

    /// Threads that call one after the other, each maybe with what another one has made.
    fn happen(random: &mut Random) -> Vec<Happened> {
        let mut free = vec![1; 1 + random.below(5) as usize];
        let mut all: Vec<Happened> = Vec::new();
        for number in 0..20 + random.below(60) as usize {
            let lane = (0..free.len()).min_by_key(|&lane| free[lane]).unwrap();
            let start = free[lane] + random.below(6);
            let end = start + random.below(20);
            let published = end + random.below(12);
            let seen: Vec<usize> = (0..number).filter(|&other| all[other].published < start).collect();
            let depends_on = (!seen.is_empty())
                .then(|| seen[seen.len() - 1 - random.below(seen.len().min(4) as u64) as usize]);
            // Some have records before them without a time.
            let mut words = match random.below(4) {
                0 => record(CONTINUED, 0, 0, &[1, 2]),
                1 => record(COMMUNICATOR, 0, 0, &[]),
                _ => Vec::new(),
            };
            words.extend(record(1, start, end - start, &[number as i64]));
            all.push(Happened { lane, published, depends_on, words });
            free[lane] = published + 1;
        }
        all
    }

    /// How many words of each lane are there, read one after the other while time passes.
    fn heads(all: &[Happened], clock: &mut u64, random: &mut Random) -> Vec<usize> {
        let lanes = all.iter().map(|one| one.lane).max().map_or(0, |last| last + 1);
        let mut head = |lane| {
            *clock += random.below(15);
            let there = all.iter().filter(|one| one.lane == lane && one.published <= *clock);
            there.map(|one| one.words.len()).sum()
        };
        (0..lanes).map(&mut head).collect()
    }

    #[test]
    fn every_record_follows_what_it_depends_on() {
        for seed in 0..3_000 {
            let mut random = Random(seed);
            let all = happen(&mut random);
            let of_lane = |lane| -> Vec<i64> {
                all.iter().filter(|one| one.lane == lane).flat_map(|one| one.words.clone()).collect()
            };
            let (mut lanes, mut clock, mut order) = (Lanes::default(), 0, Vec::new());
            let mut taken = [0; 6];
            let mut take = |lanes: &mut Lanes, lane: usize, head: usize| {
                let from = std::mem::replace(&mut taken[lane], head);
                let add = |words: &mut Vec<i64>| {
                    words.extend_from_slice(&of_lane(lane)[from..head]);
                    std::result::Result::<bool, ()>::Ok(head > from)
                };
                lanes.add(lane, add).unwrap();
            };
            let mut each = |_: usize, words: &[i64]| {
                order.extend(words.last().map(|&number| number as usize));
                Ok(())
            };
            let last = all.iter().map(|one| one.published).max().unwrap();
            while clock <= last {
                let first = heads(&all, &mut clock, &mut random);
                let second = heads(&all, &mut clock, &mut random);
                first.iter().enumerate().for_each(|(lane, &head)| take(&mut lanes, lane, head));
                let latest = lanes.latest();
                second.iter().enumerate().for_each(|(lane, &head)| take(&mut lanes, lane, head));
                lanes.merge(latest, &mut each).unwrap();
                clock += random.below(60);
            }
            let all_heads = heads(&all, &mut clock, &mut random);
            all_heads.iter().enumerate().for_each(|(lane, &head)| take(&mut lanes, lane, head));
            lanes.finish(&mut each).unwrap();
            let mut place = vec![None; all.len()];
            order.iter().enumerate().for_each(|(at, &number)| place[number] = Some(at));
            assert_eq!(order.len(), all.len(), "seed {seed}");
            for (number, one) in all.iter().enumerate() {
                let own = place[number].unwrap();
                let before = (0..number).rev().find(|&other| all[other].lane == one.lane);
                for earlier in before.into_iter().chain(one.depends_on) {
                    assert!(place[earlier].unwrap() < own, "seed {seed}: {earlier} before {number}");
                }
            }
        }
    }
}
