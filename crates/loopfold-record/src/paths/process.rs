//! A recorded process: its functions, and what its children inherit.
//!
//! Lanes, the listener and the lanes of children meet here. Whoever needs what has not come yet
//! waits for it: the module of a function is sent before the function runs, and the mark of a fork
//! is written before the child begins, so both come, or the process is over.

use super::functions::{Known, Modules};
use hashbrown::HashMap;
use loopfold_paths::Module;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long something is waited for before it is looked whether it can still come.
const PATIENCE: Duration = Duration::from_millis(20);

/// A process, or one of the programs that it was.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// In the order in which they began, from 0.
    pub(super) number: usize,
    /// What it executes, if that is known.
    pub(super) program: String,
    state: Mutex<State>,
    changed: Condvar,
    /// No more modules come, and no more tokens than are there.
    is_over: AtomicBool,
    /// All its lanes were read.
    is_read: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    modules: Modules,
    /// The functions that were open at each fork, until the child has them.
    forks: HashMap<u32, Vec<u32>>,
}

impl Process {
    pub(super) fn new(number: usize, program: String) -> Self {
        Self { number, program, ..Self::default() }
    }

    /// A copy of another process; its own functions have numbers from `own` on.
    pub(super) fn forked_from(number: usize, parent: &Process, own: u32) -> Self {
        let modules = parent.state().modules.inherited(own);
        let state = Mutex::new(State { modules, forks: HashMap::new() });
        Self { number, program: parent.program.clone(), state, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn set_over(&self) {
        self.is_over.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    pub(super) fn set_read(&self) {
        self.is_read.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    pub(super) fn register(&self, first: u32, module: Module) {
        self.state().modules.add(first, module);
        self.changed.notify_all();
    }

    /// The function with this number, once its module is there. Returns `None` if it never comes.
    pub(super) fn function(&self, number: u32) -> Option<Known> {
        // Looked at first: what comes before the end is there after it.
        self.wait_for(&self.is_over, |state| state.modules.get(number))
    }

    /// The lane has come to a fork with these functions open.
    pub(super) fn forked(&self, mark: u32, open: &[u32]) {
        self.state().forks.insert(mark, open.to_vec());
        self.changed.notify_all();
    }

    /// The functions that were open at a fork, once its lane has come there.
    pub(super) fn open_at(&self, mark: u32) -> Vec<u32> {
        self.wait_for(&self.is_read, |state| state.forks.remove(&mark)).unwrap_or_default()
    }

    fn wait_for<T>(&self, end: &AtomicBool, mut find: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut state = self.state();
        loop {
            let is_end = end.load(Ordering::Acquire);
            if let Some(found) = find(&mut state) {
                return Some(found);
            }
            if is_end {
                return None;
            }
            let waited = self.changed.wait_timeout(state, PATIENCE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}
