//! Handles Ctrl-C and similar signals.
//!
//! While a trace is read into an archive, the first signal makes reading fail, even while it waits for a
//! pipe, so that the command can save what it has. The second, and any signal at other times, ends the
//! program, which removes its temporary files first. Signals that were ignored when the program was
//! started stay ignored.

use std::io::{self, Read};

#[cfg(unix)]
pub(crate) use signals::{Interruptible, catch, check, let_go, stdin, watch};

#[cfg(unix)]
mod signals {
    use super::{Read, io};
    use crate::call;
    use loopfold_output::signals::{self, Response};
    use rustix::event::{PollFd, PollFlags, poll};
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Caught {
        /// Becomes readable when a signal was caught.
        wake: UnixStream,
        signalled: UnixStream,
        /// Whether the next signal ends the program.
        ends: AtomicBool,
    }

    static CAUGHT: OnceLock<Caught> = OnceLock::new();

    /// From now on, signals that end the program leave no temporary files.
    pub(crate) fn watch() -> io::Result<()> {
        // Signals belong to the program that calls a library.
        if call::is_one() {
            return Ok(());
        }
        signals::watch(|_| match CAUGHT.get() {
            Some(caught) if !caught.ends.swap(true, Ordering::SeqCst) => {
                // Readable from now on; it can only fail if it is already.
                let _ = (&caught.signalled).write(b"s");
                Response::Continue
            }
            _ => Response::End,
        })
    }

    /// Catches the first of the signals that ask a program to end.
    pub(crate) fn catch() -> io::Result<()> {
        if call::is_one() {
            return Ok(());
        }
        let (wake, signalled) = UnixStream::pair()?;
        CAUGHT.get_or_init(|| Caught { wake, signalled, ends: AtomicBool::new(false) });
        watch()
    }

    /// Reading is over: from here on the first signal ends the program.
    pub(crate) fn let_go() {
        if let Some(caught) = CAUGHT.get() {
            caught.ends.store(true, Ordering::SeqCst);
        }
    }

    /// Standard input, without the buffer that the standard library puts before it: what
    /// lay there would not be seen by waiting for the pipe.
    pub(crate) fn stdin() -> io::Result<Interruptible> {
        Ok(Interruptible(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
    }

    /// A file or pipe; a signal that was caught ends reading, and waiting for it.
    pub(crate) struct Interruptible(pub(crate) File);

    impl Read for Interruptible {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            wait_for(&self.0)?;
            self.0.read(buffer)
        }
    }

    /// Not of the kind `Interrupted`, after which readers try again.
    fn interrupted() -> io::Error {
        io::Error::other("interrupted")
    }

    /// Fails if a signal was caught, from then on always.
    pub(crate) fn check() -> io::Result<()> {
        if loopfold::interrupt::is_requested() {
            return Err(interrupted());
        }
        let Some(caught) = CAUGHT.get() else { return Ok(()) };
        let mut watched = [PollFd::new(&caught.wake, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut watched, Some(&now)) {
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) if !watched[0].revents().is_empty() => Err(interrupted()),
            Ok(_) => Ok(()),
        }
    }

    /// The same in a call, whose interrupt does not wake anybody.
    fn wait_in_call(input: &File) -> io::Result<()> {
        let a_while = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        loop {
            let mut watched = [PollFd::new(input, PollFlags::IN)];
            match poll(&mut watched, Some(&a_while)) {
                Err(rustix::io::Errno::INTR) | Ok(0) => check()?,
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Returns when there is something to read, or its end.
    fn wait_for(input: &File) -> io::Result<()> {
        check()?;
        if call::is_one() {
            return wait_in_call(input);
        }
        let Some(caught) = CAUGHT.get() else { return Ok(()) };
        loop {
            let mut watched = [PollFd::new(&caught.wake, PollFlags::IN), PollFd::new(input, PollFlags::IN)];
            match poll(&mut watched, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if !watched[0].revents().is_empty() => return Err(interrupted()),
                Ok(_) => return Ok(()),
            }
        }
    }
}

#[cfg(not(unix))]
pub(crate) use elsewhere::{Interruptible, catch, check, let_go, stdin, watch};

/// Where there are no such signals, nothing is caught.
#[cfg(not(unix))]
mod elsewhere {
    use super::{Read, io};
    use std::fs::File;

    pub(crate) fn catch() -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn watch() -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn check() -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn let_go() {}

    pub(crate) fn stdin() -> io::Result<io::Stdin> {
        Ok(io::stdin())
    }

    pub(crate) struct Interruptible(pub(crate) File);

    impl Read for Interruptible {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }
}
