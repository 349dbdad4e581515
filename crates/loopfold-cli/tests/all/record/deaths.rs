//! Deaths at random moments. Whatever happens, what lies there opens and verifies, and each rank has
//! a prefix of the events of a complete recording, which is complete up to the last segment:
//!
//! * A segment that lay there at the moment of the death still does.
//! * Segments are complete: while the program runs, the test notes how many calls of a rank have
//!   returned, and then how many segments its file has. A helper takes all records before it writes
//!   a segment. So if two more segments were written later, the second of them or one before it
//!   has those calls: the first may have been taken before the test looked, the second not.
//! * Unless the helpers were killed, too, or cannot write, nothing is missing: as many events are
//!   there as calls have returned, and at most the one that was returning.

use super::Mpi;
use super::fragile::{Execution, Kind, Order, check_archive, kill};
use loopfold_testing::Rng;
use rustix::process::{Resource, Rlimit, prlimit};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// One process of the program is killed.
    OneKilled,
    /// All processes are killed, those that fold too, as when a node is lost.
    AllKilled,
    /// A process calls `MPI_Abort`.
    Aborted,
    /// A process makes a segmentation fault.
    Faulted,
    /// `mpirun` is asked to end, as a batch system does.
    Terminated,
    /// Files cannot grow any more, and the program ends regularly some time later.
    DiskFull,
}

const DEATHS: [Death; 6] =
    [Death::OneKilled, Death::AllKilled, Death::Aborted, Death::Faulted, Death::Terminated, Death::DiskFull];

/// A look at a rank while it runs: calls that had returned, and then the length of its file.
struct Sample {
    rank: usize,
    returned: u64,
    length: u64,
}

struct Watched {
    execution: Execution,
    samples: Vec<Sample>,
}

impl Watched {
    fn look(&mut self) {
        for rank in 0..self.execution.ranks {
            let returned = self.execution.returned(rank);
            let length = self.execution.part(rank).metadata().map_or(0, |about| about.len());
            self.samples.push(Sample { rank, returned, length });
        }
    }

    fn run_for(&mut self, time: Duration) {
        let started = Instant::now();
        while started.elapsed() < time {
            self.look();
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Lets the program end regularly; true if it was asked to.
    fn stop_before(&mut self, death: Death, rng: &mut Rng) -> bool {
        // Deaths from outside may also come while the ranks are merged.
        let is_from_outside = matches!(death, Death::OneKilled | Death::AllKilled | Death::Terminated);
        let is_stopped = is_from_outside && rng.one_in(3);
        if is_stopped {
            self.execution.order(0, Order::Stop);
            std::thread::sleep(Duration::from_millis(rng.below(60) as u64));
        }
        is_stopped
    }

    fn die(&mut self, death: Death, rng: &mut Rng) {
        let execution = &self.execution;
        let victim = rng.below(execution.ranks);
        match death {
            Death::OneKilled => {
                let own = execution.processes(Kind::Program);
                // It may have ended.
                if !own.is_empty() {
                    kill(&[own[rng.below(own.len())]]);
                }
            }
            Death::AllKilled => {
                kill(&execution.processes(Kind::Helper));
                kill(&execution.processes(Kind::Program));
            }
            Death::Aborted => execution.order(victim, Order::Abort),
            Death::Faulted => execution.order(victim, Order::Fault),
            Death::Terminated => execution.terminate(),
            Death::DiskFull => {
                let longest = self.samples.iter().map(|sample| sample.length).max().unwrap_or(0);
                let most = longest + rng.below(3000) as u64;
                for helper in execution.processes(Kind::Helper) {
                    let limit = Rlimit { current: Some(most), maximum: Some(most) };
                    prlimit(Some(helper), Resource::Fsize, limit).unwrap();
                }
                self.run_for(Duration::from_millis(rng.below(300) as u64));
                self.execution.order(0, Order::Stop);
            }
        }
    }
}

/// Where the complete segments of an archive end.
fn segment_ends(bytes: &[u8]) -> Vec<usize> {
    fn number(bytes: &[u8], at: &mut usize) -> Option<usize> {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = *bytes.get(*at)?;
            *at += 1;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
    fn end_of_segment(bytes: &[u8], mut at: usize) -> Option<usize> {
        at += 1;
        let end_of_rows = number(bytes, &mut at)? + at;
        let mut end = end_of_rows + 4;
        while at < end_of_rows {
            at += 1;
            end += number(bytes, &mut at)?;
            at += 4;
        }
        (end <= bytes.len()).then_some(end)
    }
    let next = |&end: &usize| (bytes.get(end) == Some(&b'S')).then(|| end_of_segment(bytes, end)).flatten();
    std::iter::successors(next(&8), next).collect()
}

/// Events that are there, those that must be, and calls that have returned, of all ranks.
#[derive(Default)]
struct Counts {
    events: u64,
    least: u64,
    returned: u64,
    /// What was left.
    place: &'static str,
}

/// One death.
fn die_once(mpi: Mpi, death: Death, rng: &mut Rng) -> Counts {
    let ranks = if mpi == Mpi::Mpich { 2 } else { 3 };
    // Now and then as many events as possible, but such executions take longer to check.
    let pause = Duration::from_micros(if rng.one_in(5) { 0 } else { 200 });
    let mut watched = Watched { execution: Execution::start(mpi, ranks, pause), samples: Vec::new() };
    watched.execution.wait_for_parts();
    // Where segments are all that is left, there should be some.
    let most = if matches!(death, Death::AllKilled | Death::DiskFull) { 1000 } else { 400 };
    watched.run_for(Duration::from_millis(rng.below(most) as u64));
    let read = |execution: &Execution, rank| std::fs::read(execution.part(rank)).unwrap_or_default();
    let before: Vec<Vec<u8>> = (0..ranks).map(|rank| read(&watched.execution, rank)).collect();
    let is_stopped = watched.stop_before(death, rng) || death == Death::DiskFull;
    watched.die(death, rng);
    watched.execution.end();

    let Watched { execution, samples } = watched;
    let has_archive = execution.archive().is_file();
    assert!(!has_archive || is_stopped);
    let place = if has_archive { execution.archive() } else { execution.parts() };
    let counts = check_archive(mpi, ranks, &place);
    let place = if has_archive { "merged" } else { "in parts" };
    let mut all = Counts { place, ..Counts::default() };
    for rank in 0..ranks {
        let (events, returned) = (counts[rank], execution.returned(rank));
        let mut least = returned;
        match death {
            // The end of the program is recorded, too.
            _ if has_archive => least += 1,
            Death::AllKilled | Death::DiskFull => {
                let after = read(&execution, rank);
                let written = segment_ends(&before[rank]).last().copied().unwrap_or(0);
                assert_eq!(after[..written], before[rank][..written], "segments of rank {rank}");
                least = events_in_segments(samples.iter().filter(|sample| sample.rank == rank), &after);
            }
            _ => {}
        }
        // A call may have returned that the program did not note any more, then `MPI_Abort`.
        let range = least..=returned + 2;
        assert!(range.contains(&events), "rank {rank} has {events} events, expected {range:?}");
        all = Counts {
            events: all.events + events,
            least: all.least + least,
            returned: all.returned + returned,
            place,
        };
    }
    all
}

/// How many events the segments of a file have at least.
fn events_in_segments<'a>(samples: impl Iterator<Item = &'a Sample>, file: &[u8]) -> u64 {
    let ends = segment_ends(file);
    let has_two_more = |sample: &&Sample| {
        let written = ends.iter().filter(|&&end| end as u64 <= sample.length).count();
        ends.len() >= written + 2
    };
    samples.filter(has_two_more).map(|sample| sample.returned).max().unwrap_or(0)
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn nothing_is_lost_by_deaths_at_random_moments() {
    let times = number("LOOPFOLD_TEST_DEATHS").unwrap_or(100);
    let seed = number("LOOPFOLD_TEST_SEED").unwrap_or(1);
    let next = AtomicUsize::new(0);
    let (incomplete, bounded) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= times {
                return;
            }
            let death = DEATHS[nth % DEATHS.len()];
            let mpi = if nth / DEATHS.len() % 4 == 3 { Mpi::Mpich } else { Mpi::OpenMpi };
            println!("death {nth}: {death:?} under {mpi:?}");
            let all = die_once(mpi, death, &mut Rng::new((seed * 1000 + nth) as u64));
            let Counts { events, least, returned, .. } = all;
            println!("death {nth}: {events} events of {returned} calls, at least {least}, {}", all.place);
            let is_incomplete = all.events < all.returned;
            incomplete.fetch_add(usize::from(is_incomplete), Ordering::Relaxed);
            bounded.fetch_add(usize::from(is_incomplete && all.least > 0), Ordering::Relaxed);
        }
    };
    // Most of the time is spent waiting.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(work);
        }
    });
    // Otherwise helpers that die, and disks that are full, were not, or nothing was expected of them.
    if times >= 100 {
        let (incomplete, bounded) = (incomplete.into_inner(), bounded.into_inner());
        assert!(incomplete >= 15 && bounded >= 5, "{incomplete} incomplete, {bounded} with segments");
    }
}
