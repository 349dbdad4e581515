//! What is left of a recording whose recorder is killed: a copy of all that was folded so far, beside
//! the archive, as `x.partial.fold`.
//!
//! A copy is made after two seconds, and then so seldom that it takes a fiftieth of the time: while
//! it is made nothing is folded, and the program goes on as far as its rings have room. When the
//! archive is there, the copy is removed.

use super::folding::{Folding, Recorded};
use super::session::{Session, Target};
use crate::{Error, Result};
use loopfold::questions::path::PathIndex;
use loopfold::{archive, sections};
use loopfold_output::{Output, Target as Place, partial_names};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The shortest time between two copies.
const PAUSE: Duration = Duration::from_secs(2);
/// The time between two copies in those that making one takes.
const SHARE: u32 = 50;

/// Makes copies until it is dropped.
pub(super) struct Snapshots {
    end: Option<Sender<()>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Partial>>>,
}

/// A copy of a recording, up to some time before its end.
#[derive(Debug)]
pub struct Partial {
    output: Output,
}

impl Partial {
    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.output.target().path()
    }

    /// Removes it, as the archive is there.
    pub fn remove(self) {
        if let Place::File { folder, name } = self.output.target() {
            let _ = folder.remove(name);
        }
    }
}

impl Snapshots {
    /// Begins, for what is folded beside this output.
    pub(super) fn begin(session: &Arc<Session>, output: &Output) -> Self {
        let place = output.target().clone();
        let session = Arc::clone(session);
        let (end, ended) = channel();
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || match &session.target {
            Target::Fold(folding) => copy_until(&ended, &over, folding, &place),
            Target::Spool(_) => None,
        });
        Self { end: Some(end), is_over, thread: Some(thread) }
    }

    /// The last copy, if there was time for one. One that is being written is given up.
    pub(super) fn end(mut self) -> Option<Partial> {
        self.is_over.store(true, Ordering::Relaxed);
        drop(self.end.take());
        self.thread.take()?.join().ok()?
    }
}

fn copy_until(
    ended: &Receiver<()>,
    is_over: &AtomicBool,
    folding: &Folding,
    place: &Place,
) -> Option<Partial> {
    let (mut partial, mut pause) = (None, PAUSE);
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let started = Instant::now();
        // Where it cannot be written there is none: the archive is what counts.
        if let Ok(recorded) = folding.so_far() {
            partial = partial.or_else(|| claim(place));
            let _ = write(&recorded, partial.as_ref()?, is_over);
        }
        pause = PAUSE.max(started.elapsed() * SHARE);
    }
    partial
}

/// The first name that nothing has.
fn claim(place: &Place) -> Option<Partial> {
    let Place::File { folder, .. } = place else { return None };
    let name = partial_names(place).find(|name| !folder.has(name))?;
    let output = Output::claim_in(folder, &name).ok()?;
    // Nothing has come meanwhile.
    output.target().existing().is_none().then_some(Partial { output })
}

fn write(recorded: &Recorded, partial: &Partial, is_over: &AtomicBool) -> Result<()> {
    partial.output.write(|out| recorded.write(&mut Abandonable { out, is_over })).map(|_| ())
}

/// Fails as soon as nobody wants what is written.
struct Abandonable<'a> {
    out: &'a mut dyn Write,
    is_over: &'a AtomicBool,
}

impl Write for Abandonable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.is_over.load(Ordering::Relaxed) {
            true => Err(io::Error::other("nobody wants this copy any more")),
            false => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Recorded {
    /// Writes it as an archive, with the index of functions and the blocks of paths.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        let config =
            sections::with_blocks(sections::write_config(Some(PathIndex::RANGES), None), &self.blocks);
        archive::write_with(&self.fold, out, &config).map_err(Error::from)?;
        Ok(())
    }
}
