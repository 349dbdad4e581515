//! Ends long work soon after somebody asks for it, in whichever function and thread it is.
//!
//! An [`Interrupt`] is shared by the thread that works and the one that may ask. Work
//! [polls](poll) it, and is unwound when it was requested, up to [`Interrupt::catch`], which
//! returns an error of the kind [`Interrupted`](crate::ErrorKind::Interrupted). Unwinding, as
//! the queries of a compiler are cancelled, and not a parameter and a result in some hundred
//! functions: most traversals cannot fail otherwise, and are called where there is no way to
//! return an error, such as iterators. It prints nothing, and everything is dropped on the
//! way, files that are not complete among it.
//!
//! The interrupt belongs to the thread, so that what has none pays nothing but the look at it.
//! A thread that starts others passes it on: [`current`] and [`Interrupt::enter`].
//!
//! Invariants: nothing polls while it holds a lock or has a shared value in pieces; a
//! destructor does not poll; and whoever starts a thread joins it, also when it is unwound.
//!
//! Cost: a poll reads two words, in about a nanosecond, and loops over events poll once in a
//! few thousand of them (`Pace`, `blocks`). Work that is compiled to abort at a panic
//! cannot be interrupted: the process would end.

use crate::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the work of a thread and of those that it starts.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::interrupt::Interrupt;
/// use loopfold::{ErrorKind, Trace};
///
/// let interrupt = Interrupt::default();
/// assert!(interrupt.catch(|| fold_trace(Trace::default(), &Outermost::default(), 1)).is_ok());
/// // Mostly by another thread, which has a clone.
/// interrupt.clone().request();
/// let ended = interrupt.catch(|| fold_trace(Trace::default(), &Outermost::default(), 1));
/// assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// What is thrown. Its type is private, so nobody else catches it by mistake.
struct Thrown;

impl Interrupt {
    /// Asks for an end of the work. It stays requested.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked for it.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does some work in this thread; fails soon after the interrupt was requested, without
    /// beginning if it was before. Other panics pass.
    pub fn catch<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let polled = || {
            poll();
            work()
        };
        // Whatever is in pieces when work is unwound is dropped with it; see the invariants.
        match catch_unwind(AssertUnwindSafe(|| self.enter(polled))) {
            Ok(result) => result,
            Err(thrown) if thrown.is::<Thrown>() => Err(Error::interrupted()),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Does a part of work that another thread has begun: it is unwound as that is, which joins
    /// this thread and [passes it on](joined).
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let _reset = Reset(CURRENT.replace(Some(self.clone())));
        work()
    }
}

/// Restores the interrupt that a thread had before.
struct Reset(Option<Interrupt>);

impl Drop for Reset {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// The interrupt of this thread, to be passed on to others; one that nobody requests if it has
/// none.
pub fn current() -> Interrupt {
    CURRENT.with_borrow(|current| current.clone().unwrap_or_default())
}

/// Whether the work of this thread is to end.
pub fn is_requested() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(Interrupt::is_requested))
}

/// Ends the work of this thread if that was requested: unwinds to [`Interrupt::catch`].
#[inline]
pub fn poll() {
    #[cfg(test)]
    counted::note();
    if is_requested() {
        throw();
    }
}

#[cold]
#[inline(never)]
fn throw() {
    // A destructor that polls: it is on the way out already.
    if !std::thread::panicking() {
        resume_unwind(Box::new(Thrown));
    }
}

/// The result of a thread that was joined; if it was unwound, this one is, too.
pub fn joined<T>(result: std::thread::Result<T>) -> T {
    result.unwrap_or_else(|panic: Box<dyn Any + Send>| resume_unwind(panic))
}

/// Steps of a loop between two polls.
const STEPS: u32 = 1 << 12;

/// Polls once in some thousand steps of a loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace(u32);

impl Pace {
    #[inline(always)]
    pub(crate) fn step(&mut self) {
        self.steps(1);
    }

    /// As many steps at once.
    #[inline(always)]
    pub(crate) fn steps(&mut self, steps: usize) {
        self.0 = self.0.saturating_add(steps as u32);
        if self.0 >= STEPS {
            self.0 = 0;
            poll();
        }
    }
}

/// The blocks of a slice, with a poll before each: for loops whose steps take so little that
/// even counting them would show.
pub(crate) fn blocks<T>(slice: &[T]) -> impl Iterator<Item = &[T]> {
    slice.chunks(1 << 14).inspect(|_| poll())
}

/// The same without the first poll, for slices that are mostly short.
pub(crate) fn later_blocks<T>(slice: &[T]) -> impl Iterator<Item = &[T]> {
    let mut is_first = true;
    slice.chunks(1 << 14).inspect(move |_| {
        if !std::mem::take(&mut is_first) {
            poll();
        }
    })
}

/// Counts the polls of a thread, and requests its interrupt at one of them.
#[cfg(test)]
pub(crate) mod counted {
    use super::{CURRENT, Interrupt};
    use std::cell::Cell;

    thread_local! {
        static POLLS: Cell<u64> = const { Cell::new(0) };
        static AT: Cell<u64> = const { Cell::new(u64::MAX) };
    }

    pub(super) fn note() {
        let polls = POLLS.get() + 1;
        POLLS.set(polls);
        if polls == AT.get() {
            CURRENT.with_borrow(|current| current.as_ref().map(Interrupt::request));
        }
    }

    /// How often work polls, and its result; it is interrupted at a poll, if that is given.
    pub(crate) fn polls<T>(
        at: Option<u64>,
        work: impl FnOnce() -> crate::Result<T>,
    ) -> (u64, crate::Result<T>) {
        POLLS.set(0);
        AT.set(at.unwrap_or(u64::MAX));
        let result = Interrupt::default().catch(work);
        AT.set(u64::MAX);
        (POLLS.get(), result)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ErrorKind;
    use std::cell::Cell;

    #[test]
    fn work_ends_only_where_it_was_requested() {
        let (one, other) = (Interrupt::default(), Interrupt::default());
        one.request();
        assert_eq!(one.catch(|| Ok(())).unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(other.catch(|| Ok(7)).unwrap(), 7);
        poll();
        let inside = other.catch(|| {
            let inner: Result<()> = one.catch(|| unreachable!());
            poll();
            inner
        });
        assert_eq!(inside.unwrap_err().to_string(), "interrupted");
    }

    #[test]
    fn other_panics_pass() {
        let interrupt = Interrupt::default();
        let caught =
            catch_unwind(AssertUnwindSafe(|| interrupt.catch::<()>(|| resume_unwind(Box::new("other")))));
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "other");
        assert!(!is_requested());
    }

    #[test]
    fn a_destructor_that_polls_does_not_end_the_process() {
        struct Polls;
        impl Drop for Polls {
            fn drop(&mut self) {
                poll();
            }
        }
        let interrupt = Interrupt::default();
        let ended: Result<()> = interrupt.catch(|| {
            let _polls = Polls;
            interrupt.request();
            poll();
            unreachable!()
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn a_loop_polls_once_in_a_while() {
        let interrupt = Interrupt::default();
        let steps = Cell::new(0);
        let ended: Result<()> = interrupt.catch(|| {
            let mut pace = Pace::default();
            interrupt.request();
            loop {
                pace.step();
                steps.set(steps.get() + 1);
            }
        });
        assert!(ended.is_err());
        assert_eq!(steps.get(), STEPS - 1);
        let mut pace = Pace::default();
        pace.steps(usize::MAX);
        pace.step();
    }
}
