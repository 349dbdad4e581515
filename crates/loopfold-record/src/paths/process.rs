//! A recorded process: its functions, and what its children inherit.
//!
//! The listener, lanes, and the lanes of children meet here. The module of a function is sent before
//! the function runs, and the mark of a fork is handed over before the child begins: so both are
//! there when they are needed, or never come.

use super::functions::{Known, Modules};
use hashbrown::HashMap;
use loopfold_paths::Module;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A process, or one of the programs that it was.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// In the order in which they began, from 0.
    pub(super) number: usize,
    /// What it executes, if that is known.
    pub(super) program: String,
    state: Mutex<State>,
    changed: Condvar,
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

    pub(super) fn set_read(&self) {
        // With the lock, so that nobody begins to wait in between.
        let _state = self.state();
        self.is_read.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    pub(super) fn register(&self, first: u32, module: Module) {
        self.state().modules.add(first, module);
    }

    /// The function with this number. Returns `None` if its module is not there.
    pub(super) fn function(&self, number: u32) -> Option<Known> {
        self.state().modules.get(number)
    }

    /// The lane has come to a fork with these functions open.
    pub(super) fn forked(&self, mark: u32, open: &[u32]) {
        self.state().forks.insert(mark, open.to_vec());
        self.changed.notify_all();
    }

    /// The functions that were open at a fork. Returns `None` if its lane may still come there.
    pub(super) fn try_open_at(&self, mark: u32) -> Option<Vec<u32>> {
        let mut state = self.state();
        let open = state.forks.remove(&mark);
        open.or_else(|| self.is_read.load(Ordering::Acquire).then(Vec::new))
    }

    /// The same; waits until the lane comes there.
    pub(super) fn open_at(&self, mark: u32) -> Vec<u32> {
        let mut state = self.state();
        loop {
            if let Some(open) = state.forks.remove(&mark) {
                return open;
            }
            if self.is_read.load(Ordering::Acquire) {
                return Vec::new();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
