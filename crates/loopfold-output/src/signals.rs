//! Signals that end the process, without leaving temporaries.
//!
//! A thread waits for them, as hardly anything may be done in a handler. Signals that were ignored when
//! the process was started, as under `nohup` or in the background of a script, stay ignored.

use crate::temporary::remove_all;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::OnceLock;

/// Those that ask a process to end.
pub const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// What to do about a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// End, as the signal does by default.
    End,
    /// Go on.
    Continue,
}

/// True if a signal was ignored when this was first asked. Where the system does not say so, no signal is.
pub fn is_ignored(signal: i32) -> bool {
    static IGNORED: OnceLock<u64> = OnceLock::new();
    let mask = *IGNORED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    });
    signal > 0 && mask >> (signal - 1) & 1 == 1
}

/// Those of some signals that are not ignored.
pub fn not_ignored(signals: &[i32]) -> Vec<i32> {
    signals.iter().copied().filter(|&signal| !is_ignored(signal)).collect()
}

/// From now on, a signal that ends the process first removes its temporaries, unless `respond` wants
/// to go on. Has an effect once.
pub fn watch(respond: impl Fn(i32) -> Response + Send + 'static) -> io::Result<()> {
    static WATCHED: OnceLock<()> = OnceLock::new();
    let mut first = false;
    WATCHED.get_or_init(|| first = true);
    if !first {
        return Ok(());
    }
    let mut signals = Signals::new(not_ignored(&ENDING))?;
    std::thread::Builder::new().name("signals".to_string()).spawn(move || {
        for signal in &mut signals {
            if respond(signal) == Response::End {
                end(signal);
            }
        }
    })?;
    Ok(())
}

/// Ends the process by a signal, without leaving temporaries.
fn end(signal: i32) {
    remove_all();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
