//! CPU time, which other work on the machine disturbs less than the time of day.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The CPU time that this process has used on all its threads.
pub(crate) fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// What a piece of work gives, and the CPU time that it takes.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = cpu_time();
    let value = work();
    (value, cpu_time() - before)
}

/// What a piece of work gives, and the least CPU time of several attempts: as many as
/// fit a fifth of a second, and at least one.
pub(crate) fn best<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let (mut value, mut least) = timed(&mut work);
    let mut spent = least;
    let mut attempts = 1;
    while spent < Duration::from_millis(200) && attempts < 50 {
        let (again, time) = timed(&mut work);
        (value, least) = (again, least.min(time));
        spent += time;
        attempts += 1;
    }
    (value, least)
}
