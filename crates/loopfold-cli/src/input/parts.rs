//! Parts of a trace, each folded by an execution of its own, and the whole from their archives: what
//! `loopfold-mpi` does in one go, for sites without MPI.
//!
//! A part is an archive whose streams have a note of their place in the whole. `merge` puts streams
//! in order and ends the folding, so that the archive is the one that `fold` would have written.

use super::shared::{Part, Way, read_part};
use super::{Intake, Loaded, projection, taken_in, times_needed};
use crate::args::{FolderArgs, ReadArgs};
use crate::folding::folder;
use crate::nodes::Plan;
use crate::show;
use anyhow::{Result, anyhow, bail};
use loopfold::Fold;
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::{self, Folder as _};
use loopfold::trace::TimesKept;

/// The note of a stream on its part, its place in the whole, and the folder.
const PART_NOTE: &str = "part";

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
    let plan = Plan::of((number, count), arguments)?;
    if !arguments.select.is_empty() || !arguments.stream.is_empty() {
        bail!("streams and events are selected when all parts are merged, not in a part");
    }
    if plan.has_folded() {
        bail!("an archive is folded already; parts are of traces");
    }
    let (reader, own) = read_part(&part, plan, arguments, times, intake, projection)?;
    if reader.loaded.is_rewritten() {
        bail!("--peers and --symbols need all streams; use them on the merged archive");
    }
    let by = folder(chosen)?.describe();
    let streams = own.fold.with_streams(|stream| own.inputs.get(stream.index()).is_some_and(Option::is_some));
    let mut places = own.inputs.iter().enumerate().filter_map(|(place, input)| Some((place, (*input)?)));
    let mut notes: Vec<String> = own.remarks.notes.into_iter().map(|(_, note)| note).collect();
    if streams.streams().is_empty() {
        notes.push("there is nothing to read in this part: there are more parts than streams".to_string());
    }
    let noted = with_notes(streams, |_| {
        let (place, input) = places.next().unwrap_or_default();
        Some(format!("{}/{count} {input} {place} {by}", number + 1))
    })?;
    Ok((noted, notes))
}

/// The same fold with a note on the part of each stream, or none.
fn with_notes(mut fold: Fold, mut note: impl FnMut(&FoldedStream) -> Option<String>) -> Result<Fold> {
    let times: Vec<_> = fold.stream_ids().map(|stream| fold.take_times(stream)).collect();
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let rules = builder.append_rules(&fold, Ok)?;
    for (stream, times) in fold.streams().iter().zip(times) {
        let mut notes: Vec<_> = stream.notes().iter().filter(|(key, _)| key != PART_NOTE).cloned().collect();
        notes.extend(note(stream).map(|text| (PART_NOTE.to_string(), text)));
        let noted = FoldedStream::new(stream.name(), stream.folder(), rules[stream.root().index()]);
        builder.stream(noted.with_notes(notes).with_times(times));
    }
    Ok(builder.finish())
}

/// What is noted of a stream of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    part: usize,
    count: usize,
    input: u64,
    place: u64,
    folder: &'a str,
}

impl<'a> Place<'a> {
    fn of(stream: &'a FoldedStream) -> Option<Self> {
        let mut words = stream.note(PART_NOTE)?.splitn(4, ' ');
        let (part, count) = words.next()?.split_once('/')?;
        let (part, count) = (part.parse().ok()?, count.parse().ok()?);
        let (input, place) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { part, count, input, place, folder: words.next()? })
    }
}

impl Loaded {
    /// Makes archives that are the parts of one trace its whole fold.
    pub(crate) fn join_parts(&mut self) -> Result<()> {
        let streams = || self.folds.iter().flat_map(Fold::streams);
        let Some(places) = streams().map(Place::of).collect::<Option<Vec<_>>>() else {
            return match streams().find_map(Place::of) {
                Some(place) => {
                    Err(anyhow!("only some inputs are parts: merge the {} parts first", place.count))
                }
                None => Ok(()),
            };
        };
        let Some(first) = places.first().copied() else { return Ok(()) };
        self.check_parts(&places)?;
        let mut builder = FoldBuilder::default();
        for fold in &self.folds {
            builder.join(fold)?;
        }
        let folder = first.folder.to_string();
        let key = |stream: &FoldedStream| Place::of(stream).map(|place| (place.input, place.place));
        let ordered = folders::with_streams_by(builder.finish(), key)?;
        let whole = with_notes(ordered, |_| None)?;
        let is_auto = folder == folders::Auto.name();
        let whole =
            if is_auto { folders::finish_parts(whole, &folders::Auto)? } else { whole.into_canonical() };
        self.folds = vec![whole];
        Ok(())
    }

    /// Fails unless the archives are all parts of one trace.
    fn check_parts(&self, places: &[Place<'_>]) -> Result<()> {
        let first = places[0];
        if places.iter().any(|place| (place.count, place.folder) != (first.count, first.folder)) {
            bail!("the parts are not of one trace, or not folded in the same way");
        }
        if self.folds.len() != first.count {
            let count = self.folds.len();
            let archives = show::plural(count as u64, "archive");
            let are = if count == 1 { "is" } else { "are" };
            bail!("there {are} {archives}, but the trace was folded in {} parts", first.count);
        }
        let part_of = |fold: &Fold| fold.streams().first().and_then(Place::of).map(|place| place.part);
        let mut parts: Vec<usize> = self.folds.iter().filter_map(part_of).collect();
        parts.sort_unstable();
        if let Some(twice) = parts.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("part {} is there twice", twice[0]);
        }
        Ok(())
    }
}
