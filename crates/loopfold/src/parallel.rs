//! Parallel maps: apply a function to every item, on several threads.
//!
//! In [`parallel_map`], threads take the next item from one shared counter, so items of unequal size balance.
//! Results come in the order of the items, so they are the same on one thread or many. Cost:
//! one spawn for each thread but the first, and one uncontended lock per item. An interrupt of
//! the caller ends all threads. [`side_by_side`] is for few items of about equal size, a thread each.

use crate::interrupt;
use crate::{Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maps all items, on up to `threads` threads; the results are in the order of the items.
pub(crate) fn parallel_map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    map: impl Fn(&T) -> Result<R> + Sync,
) -> Vec<Result<R>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<R>>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            interrupt::poll();
            let result = map(item);
            *results[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result);
        }
    };
    let interrupt = interrupt::current();
    std::thread::scope(|scope| {
        let spawn = |_| scope.spawn(|| interrupt.enter(work));
        let others: Vec<_> = (1..threads.min(items.len())).map(spawn).collect();
        work();
        others.into_iter().for_each(|other| interrupt::joined(other.join()));
    });
    let result = |slot: Mutex<Option<Result<R>>>| {
        let result = slot.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        result.unwrap_or_else(|| Err(Error::invalid("a stream was not processed")))
    };
    results.into_iter().map(result).collect()
}

/// Maps all items, each on a thread of its own, the first one on this.
pub(crate) fn side_by_side<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    map: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let mut items = items.into_iter();
    let Some(first) = items.next() else { return Vec::new() };
    let (interrupt, map) = (&interrupt::current(), &map);
    std::thread::scope(|scope| {
        let spawn = |item| scope.spawn(move || interrupt.enter(|| map(item)));
        let others: Vec<_> = items.map(spawn).collect();
        let mut results = vec![map(first)];
        results.extend(others.into_iter().map(|other| interrupt::joined(other.join())));
        results
    })
}
