//! Progress on a terminal, once half a second has passed: a bar while inputs are read, and the time
//! that has passed while they are folded, which does not say how far it is.

use crate::call::{self, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Short inputs need no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A reader that shows its progress.
pub(crate) struct Watched<R> {
    inner: R,
    read: u64,
    length: Option<u64>,
    started: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
    /// Of the call of a library, which draws nothing.
    reported: Option<Arc<Progress>>,
}

impl<R> Watched<R> {
    pub(crate) fn new(inner: R, length: Option<u64>) -> Self {
        let reported = call::with(|call| Arc::clone(&call.progress));
        reported.iter().for_each(|progress| progress.begin("reading", length));
        let wanted = reported.is_none() && std::io::stderr().is_terminal();
        Self { inner, read: 0, length, started: Instant::now(), bar: None, wanted, reported }
    }

    fn show(&mut self) {
        let length = self.length;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
            let template = match length {
                Some(_) => "reading {bar:30} {bytes}/{total_bytes} {eta}",
                None => "{spinner} reading {bytes} {bytes_per_sec}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        bar.set_position(self.read);
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        if let Some(progress) = &self.reported {
            progress.advance_to(self.read);
        }
        if self.wanted && self.started.elapsed() > PATIENCE {
            self.show();
        }
        Ok(count)
    }
}

impl<R> Drop for Watched<R> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows what is being done until it is dropped.
pub(crate) struct Phase {
    ends: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Phase {
    pub(crate) fn new(name: &'static str) -> Self {
        let is_reported = call::with(|call| call.progress.begin(name, None)).is_some();
        if is_reported || !std::io::stderr().is_terminal() {
            return Self { ends: None };
        }
        let (sender, receiver) = channel::<()>();
        let shown = std::thread::spawn(move || {
            let is_over = |wait| receiver.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
            if is_over(PATIENCE) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(name);
            while !is_over(Duration::from_millis(100)) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self { ends: Some((sender, shown)) }
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        if let Some((sender, shown)) = self.ends.take() {
            drop(sender);
            let _ = shown.join();
        }
    }
}
