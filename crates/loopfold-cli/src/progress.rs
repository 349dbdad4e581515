//! A progress bar on a terminal, once half a second has passed.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Read};
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
}

impl<R> Watched<R> {
    pub(crate) fn new(inner: R, length: Option<u64>) -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { inner, read: 0, length, started: Instant::now(), bar: None, wanted }
    }

    fn show(&mut self) {
        let length = self.length;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
            let template = match length {
                Some(_) => "{bar:30} {bytes}/{total_bytes} {eta}",
                None => "{spinner} {bytes} {bytes_per_sec}",
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
