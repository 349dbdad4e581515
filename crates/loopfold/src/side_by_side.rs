//! Work on several things at the same time.

use crate::{Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does the same with each thing, on so many threads; the results are in their order, so that
/// they are the same on one thread or many.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    things: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Vec<Result<R>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<R>>>> = things.iter().map(|_| Mutex::new(None)).collect();
    let take = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(index) else { break };
            let result = work(thing);
            *done[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(things.len()) {
            scope.spawn(take);
        }
        take();
    });
    let result = |slot: Mutex<Option<Result<R>>>| {
        let result = slot.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        result.unwrap_or_else(|| Err(Error::invalid("a stream was not worked on")))
    };
    done.into_iter().map(result).collect()
}
