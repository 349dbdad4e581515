//! Keeps what was read, so that the next question of the same call does not read it again.

use super::Loaded;
use crate::args::{ReadArgs, SelectArgs};
use crate::call;
use crate::selection::Selection;
use anyhow::Result;
use loopfold::trace::TimesKept;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Ways of reading that are kept.
const MOST: usize = 4;

/// What was read, by the arguments that it was read with.
#[derive(Default)]
pub(crate) struct Kept {
    /// The latest one last.
    entries: Mutex<Vec<(String, Arc<Loaded>)>>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    fn get(&self, key: &str) -> Option<Arc<Loaded>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|(known, _)| known == key).map(|(_, loaded)| Arc::clone(loaded))
    }

    fn put(&self, key: String, loaded: Arc<Loaded>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MOST {
            entries.remove(0);
        }
        entries.push((key, loaded));
    }
}

/// What `read` reads, or what it has read before in the same way; `how` says by which folder events
/// are folded meanwhile.
pub(super) fn kept_or(
    arguments: &ReadArgs,
    times: TimesKept,
    how: &dyn fmt::Debug,
    read: impl FnOnce() -> Result<Loaded>,
) -> Result<Loaded> {
    let Some(kept) = call::with(|call| call.kept.clone().filter(|_| call.fold.is_none())).flatten() else {
        return read();
    };
    let key = key(arguments, times, how);
    let selection = Selection { streams: arguments.stream.clone(), select: arguments.select.clone() };
    if let Some(loaded) = kept.get(&key) {
        super::files::check_inputs(&arguments.inputs)?;
        return Ok(Loaded { selection, ..loaded.copy() });
    }
    let loaded = read()?;
    // An archive is quick to read, and its file has more than the fold.
    // Times that other processes have are read from them anew.
    if loaded.archive.is_some() || loaded.cut.is_some() || loaded.shared_times.is_some() {
        return Ok(loaded);
    }
    let copy = loaded.copy();
    kept.put(key, Arc::new(copy));
    Ok(loaded)
}

/// All that matters to reading: what selects streams and parts is applied later.
fn key(arguments: &ReadArgs, times: TimesKept, how: &dyn fmt::Debug) -> String {
    let mut reading = arguments.clone();
    reading.stream.clear();
    let SelectArgs { only, drop, .. } = reading.select;
    reading.select = SelectArgs { only, drop, ..SelectArgs::default() };
    let stamps: Vec<_> = arguments
        .inputs
        .iter()
        .map(|path| std::fs::metadata(path).ok().map(|about| (about.len(), about.modified().ok())))
        .collect();
    format!("{reading:?} {times:?} {how:?} {stamps:?}")
}

impl Loaded {
    /// A copy, without the file of an archive.
    fn copy(&self) -> Self {
        Self {
            trace: self.trace.clone(),
            folded: self.folded.clone(),
            folds: self.folds.clone(),
            fold_names: self.fold_names.clone(),
            notes: self.notes.clone(),
            formats: self.formats.clone(),
            archive_bytes: self.archive_bytes,
            archive: None,
            chunk_bytes: self.chunk_bytes,
            index_bytes: self.index_bytes,
            block_sections: self.block_sections.clone(),
            spooled_blocks: self.spooled_blocks.clone(),
            is_of_unfinished_recording: self.is_of_unfinished_recording,
            without_index: self.without_index,
            slices_are_calls: self.slices_are_calls,
            cut: None,
            projection: self.projection.clone(),
            peers: self.peers,
            symbols: self.symbols.clone(),
            has_rule_sums: self.has_rule_sums,
            shared_times: None,
            others_have_archives: self.others_have_archives,
            is_folded_before: self.is_folded_before,
            unfitted: self.unfitted.clone(),
            selection: self.selection.clone(),
        }
    }
}
