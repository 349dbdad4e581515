//! Where a process is, so that others can judge whether it is gone.
//!
//! The number of a process means something only to those that see the same processes, and a lock of the
//! system only where both ask the same kernel: on some file systems of a network it is local to the
//! machine, and everybody gets it. So names of temporaries and the content of locks have the host,
//! the start of the kernel and the view of the processes, each as a hash that stays the same in all
//! versions.
//!
//! - The same kernel, by whatever name of the host, as in containers: locks work.
//! - The same host, started again since: whatever it was is gone.
//! - Another machine: locks are believed only on file systems that no other machine writes to.

use crate::temporary::Hold;
use rustix::io::Errno;
use std::fmt;
use std::sync::OnceLock;

/// A machine since it was started, and the processes that are seen there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    host: u32,
    boot: u32,
    view: u32,
}

/// A process, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) process: u32,
    pub(crate) place: Place,
}

impl Place {
    /// That of this process.
    pub(crate) fn here() -> Self {
        static HERE: OnceLock<Place> = OnceLock::new();
        *HERE.get_or_init(|| {
            let read = |path: &str| std::fs::read(path).unwrap_or_default();
            let name = rustix::system::uname().nodename().to_bytes().to_vec();
            // Machines of one image share this number, those of one administrator the name.
            let host = [name, read("/etc/machine-id")].concat();
            let boot = read("/proc/sys/kernel/random/boot_id");
            let view = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
            Self {
                host: hash(&host),
                // Without the number, the host stands for its kernel.
                boot: hash(if boot.is_empty() { &host } else { &boot }),
                view: hash(view.as_os_str().as_encoded_bytes()),
            }
        })
    }

    /// Reads what is displayed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_form = text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let part = |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok();
        if is_form { Some(Self { host: part(0)?, boot: part(8)?, view: part(16)? }) } else { None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}{:08x}{:08x}", self.host, self.boot, self.view)
    }
}

impl Owner {
    /// This process.
    pub(crate) fn this() -> Self {
        Self { process: std::process::id(), place: Place::here() }
    }

    /// True if the kernel that it was started by is running.
    fn is_on_this_kernel(&self) -> bool {
        self.place.boot == Place::here().boot
    }

    /// True if it was on this machine before that was started again.
    fn is_before_boot(&self) -> bool {
        self.place.host == Place::here().host && !self.is_on_this_kernel()
    }

    /// True if its number says that it is gone.
    fn is_gone(&self) -> bool {
        self.place == Place::here() && is_gone(self.process)
    }
}

/// Whether the process that made a file is gone, which it would hold the lock of: by what came of taking
/// that lock, by what the file says of the process, and by whether no other machine writes there.
pub(crate) fn is_left(hold: Hold, owner: Option<Owner>, is_local: bool) -> bool {
    match hold {
        Hold::Taken => false,
        _ if owner.is_some_and(|owner| owner.is_before_boot()) => true,
        Hold::Held => is_local || owner.is_some_and(|owner| owner.is_on_this_kernel()),
        Hold::Unsupported => owner.is_some_and(|owner| owner.is_gone()),
    }
}

/// True if a process of this machine is gone for certain.
fn is_gone(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| rustix::process::test_kill_process(process) == Err(Errno::SRCH))
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// This machine before it was started again, another machine, and a container on this one.
    pub(crate) fn places() -> [Place; 3] {
        let here = Place::here();
        [
            Place { boot: !here.boot, ..here },
            Place { host: !here.host, boot: !here.boot, ..here },
            Place { host: !here.host, view: !here.view, ..here },
        ]
    }

    #[test]
    fn what_was_displayed_is_read() {
        let here = Place::here();
        assert_eq!(Place::parse(&here.to_string()), Some(here));
        assert_eq!(Place::parse("0123456789abcdef"), None);
        assert_eq!(Place::parse("+123456789abcdef01234567"), None);
    }

    #[test]
    fn a_lock_counts_where_the_kernel_is_the_same() {
        let [before, elsewhere, container] = places().map(|place| Some(Owner { process: 1, place }));
        let judged = |owner| {
            [(Hold::Held, false), (Hold::Held, true), (Hold::Unsupported, false), (Hold::Taken, true)]
                .map(|(hold, is_local)| is_left(hold, owner, is_local))
        };
        assert_eq!(judged(before), [true, true, true, false]);
        assert_eq!(judged(elsewhere), [false, true, false, false]);
        assert_eq!(judged(container), [true, true, false, false]);
        // Process 1 lives.
        assert_eq!(judged(Some(Owner { process: 1, place: Place::here() })), [true, true, false, false]);
        assert_eq!(judged(None), [false, true, false, false]);
    }
}
