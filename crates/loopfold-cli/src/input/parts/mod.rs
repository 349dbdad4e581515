//! Parts of a trace, each folded by an execution of its own, and the whole from their archives: what
//! `loopfold-mpi` does in one go, for sites without MPI.
//!
//! A part is an archive whose streams have a `note` of their place in the whole, with a `fingerprint` of
//! the input. `merge` compares fingerprints (`check`), puts streams in order and ends the folding, so that
//! the archive is the one that `fold` would have written.

mod check;
mod fingerprint;
mod note;

use super::shared::{Part, Way, read_part};
use super::{Intake, Loaded, files, projection, taken_in, times_needed};
use crate::args::{FolderArgs, ReadArgs};
use crate::folding::folder;
use crate::nodes::Plan;
use anyhow::{Result, bail};
use check::{Named, check};
use fingerprint::Fingerprint;
use loopfold::Fold;
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::{self, Folder as _};
use loopfold::trace::TimesKept;
use note::{PartNote, empty_part, with_notes, without_empty};

/// Reads and folds a part of the inputs, by its number from 0 and how many there are, with notes.
pub(crate) fn fold_part(
    arguments: &ReadArgs,
    times: TimesKept,
    chosen: &FolderArgs,
    (number, count): (usize, usize),
) -> Result<(Fold, Vec<String>)> {
    let times = times_needed(arguments, times)?;
    let projection = projection(arguments)?;
    let intake = Intake::by(chosen, taken_in(arguments, &projection), times)?;
    let part = Part::of(&intake, chosen);
    if part.way == Way::Together {
        bail!(
            "this folder needs the events of all streams; parts can be folded by auto, outermost and others"
        );
    }
    files::check_inputs(&arguments.inputs)?;
    let plan = Plan::of((number, count), arguments)?;
    if !arguments.select.is_empty() || !arguments.stream.is_empty() {
        bail!("streams and events are selected when all parts are merged, not in a part");
    }
    if plan.has_folded() {
        bail!("an archive is folded already; parts are of traces");
    }
    let fingerprint = Fingerprint::of(arguments, plan.kinds(), times)?;
    let (reader, own) = read_part(&part, plan, arguments, times, intake, projection)?;
    if reader.loaded.is_rewritten() {
        bail!("--peers and --symbols need all streams; use them on the merged archive");
    }
    let by = folder(chosen)?.describe();
    let streams = own.fold.with_streams(|stream| own.inputs.get(stream.index()).is_some_and(Option::is_some));
    let mut places = own.inputs.iter().enumerate().filter_map(|(place, input)| Some((place, (*input)?)));
    let mut notes: Vec<String> = own.remarks.notes.into_iter().map(|(_, note)| note).collect();
    let fingerprint = Some(fingerprint);
    let note = PartNote { part: number + 1, count, place: None, folder: &by, fingerprint };
    if streams.streams().is_empty() {
        notes.push("there is nothing to read in this part: there are more parts than streams".to_string());
        return Ok((empty_part(&note)?, notes));
    }
    let noted = with_notes(streams, |_| {
        let (place, input) = places.next().unwrap_or_default();
        Some(PartNote { place: Some((input as u64, place as u64)), ..note })
    })?;
    Ok((noted, notes))
}

impl Loaded {
    /// Makes archives that are the parts of one trace its whole fold.
    pub(crate) fn join_parts(&mut self) -> Result<()> {
        let names = self.fold_names.iter().map(String::as_str).chain(std::iter::repeat("an archive"));
        let archives: Vec<Named<'_>> =
            self.folds.iter().zip(names).map(|(fold, name)| Named { name, fold }).collect();
        let Some(part) = check(&archives)? else { return Ok(()) };
        let mut builder = FoldBuilder::default();
        for fold in &self.folds {
            builder.join(&without_empty(fold))?;
        }
        let key = |stream: &FoldedStream| PartNote::of(stream).and_then(|note| note.place);
        let ordered = folders::with_streams_by(builder.finish(), key)?;
        let whole = with_notes(ordered, |_| None)?;
        let is_auto = part.folder == folders::Auto.name();
        let whole =
            if is_auto { folders::finish_parts(whole, &folders::Auto)? } else { whole.into_canonical() };
        self.folds = vec![whole];
        Ok(())
    }
}
