//! The threads that read lanes: as many as there are cores, however many lanes there are.
//!
//! They yield to the program, which waits for them only if a ring is full.

use super::lane::LaneReader;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How much they yield.
const NICENESS: i32 = 5;

/// The threads, which end with this.
pub(super) struct Workers {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lanes: VecDeque<Arc<LaneReader>>,
    is_over: bool,
}

impl Workers {
    pub(super) fn start() -> Self {
        let queue = Arc::<Queue>::default();
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let start = |_| {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || queue.work())
        };
        let threads = (0..count).map(start).collect();
        Self { queue, threads }
    }

    /// A lane has something to read.
    pub(super) fn give(&self, lane: Arc<LaneReader>) {
        self.queue.push(lane);
    }

    /// Nobody waits for what they do.
    pub(super) fn abandon(&mut self) {
        self.threads.clear();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.state().is_over = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, lane: Arc<LaneReader>) {
        self.state().lanes.push_back(lane);
        self.changed.notify_one();
    }

    /// The next lane; `None` at the end.
    fn next(&self) -> Option<Arc<LaneReader>> {
        let mut state = self.state();
        loop {
            if let Some(lane) = state.lanes.pop_front() {
                return Some(lane);
            }
            if state.is_over {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self) {
        let _ = rustix::process::setpriority_process(None, NICENESS);
        let mut tokens = Vec::new();
        while let Some(lane) = self.next() {
            // A mistake in folding must not leave a lane that everybody waits for.
            match catch_unwind(AssertUnwindSafe(|| lane.run(&mut tokens))) {
                Ok(true) => self.push(lane),
                Ok(false) => {}
                Err(_) => lane.abandon(),
            }
        }
    }
}
