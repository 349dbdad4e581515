//! Reads the inputs with other processes: each reads and folds its part, and process 0 gets the fold
//! of the whole, as if it had read everything itself.

use super::{ARCHIVE, GRAMMAR, Intake, Loaded, Reader, input_names, reader};
use crate::args::{FolderArgs, FolderName, ReadArgs};
use crate::folding::{self, folder, threads};
use crate::formats;
use crate::nodes::{self, Nodes, OwnStreams, OwnTimes, Plan, Refolded, Remarks, Share};
use anyhow::Result;
use loopfold::folders::{self, Folder};
use loopfold::trace::{Projection, Stream, TimesKept};
use loopfold::{Fold, Trace};

/// Reads the part of this process. Returns at process 0, with the whole; the others answer it until
/// it has ended.
pub(super) fn read(
    nodes: &'static Nodes,
    plan: Plan,
    arguments: &ReadArgs,
    times: TimesKept,
    intake: Intake,
    projection: Projection,
    chosen: &FolderArgs,
) -> Result<Loaded> {
    let part = Part::of(&intake, chosen);
    let (mut reader, own) = read_part(&part, plan, arguments, times, intake, projection)?;
    let (share, own) = Share::of(own.fold, &own.inputs, nodes.rank(), own.remarks);
    let Some(whole) = share.gather(nodes)? else {
        return Err(nodes::serve(nodes, &own, &Refolded { folds: &[], chosen }));
    };
    let (fold, remarks, mut times) = whole.into_fold(nodes, own, |fold| part.finish(fold))?;
    let events = fold.events();
    match part.way {
        Way::Together => reader.loaded.trace = unfolded(fold),
        _ => reader.loaded.folded = Some(fold),
    }
    add_remarks(&mut reader, remarks, events.unwrap_or(u64::MAX))?;
    let mut loaded = reader.loaded;
    let is_selected = !arguments.select.is_empty() || !arguments.stream.is_empty();
    times.is_as_read = !is_selected && !loaded.is_rewritten();
    // If events are dropped when everything is read, times are no longer those of the streams.
    let has_all_events = !loaded.is_rewritten() || !loaded.is_filtered();
    loaded.shared_times = (loaded.folds.is_empty() && has_all_events).then_some(times);
    loaded.is_folded_before = part.way == Way::Whole && loaded.is_rewritten();
    loaded.rewrite()?;
    loaded.check_filter()?;
    loaded.note_what_is_missing();
    Ok(loaded)
}

/// What one process has read.
pub(super) struct Own {
    pub(super) fold: Fold,
    /// For each stream its input if it is ours.
    pub(super) inputs: Vec<Option<usize>>,
    pub(super) remarks: Remarks,
}

/// Reads and folds what a plan gives to this process.
pub(super) fn read_part<'a>(
    part: &Part<'_>,
    plan: Plan,
    arguments: &'a ReadArgs,
    times: TimesKept,
    intake: Intake,
    projection: Projection,
) -> Result<(Reader<'a>, Own)> {
    let reads: Vec<bool> = (0..arguments.inputs.len()).map(|input| plan.reads(input)).collect();
    let own = Intake::Own(Box::new(OwnStreams::new(intake, plan)));
    let mut reader = reader(arguments, times, own, projection)?;
    reader.reads_all = false;
    let remarks = read_own(&mut reader, &reads)?;
    let (fold, inputs) = part.fold(&mut reader)?;
    Ok((reader, Own { fold, inputs, remarks }))
}

/// Answers process 0, which reads everything itself: there is one trace, or there are only archives,
/// whose streams can be folded again here.
pub(super) fn serve_alone(
    nodes: &Nodes,
    plan: &Plan,
    arguments: &ReadArgs,
    intake: Intake,
    projection: Projection,
    chosen: &FolderArgs,
) -> anyhow::Error {
    let read_folds = || -> Result<Vec<Fold>> {
        let mut reader = reader(arguments, TimesKept::None, intake, projection)?;
        let reads = vec![plan.is_folded(); arguments.inputs.len()];
        read_own(&mut reader, &reads)?;
        reader.loaded.rewrite()?;
        Ok(reader.loaded.folds)
    };
    match read_folds() {
        Ok(folds) => nodes::serve(nodes, &OwnTimes::nothing(), &Refolded { folds: &folds, chosen }),
        Err(error) => error,
    }
}

/// Folds the streams of an archive again, by its number among the archives. Returns `None` if they do
/// not fit in memory.
pub(super) fn refold(
    number: usize,
    fold: &Fold,
    folder: &dyn Folder,
    chosen: &FolderArgs,
    others_have_it: bool,
) -> Result<Option<Fold>> {
    let has_sums = fold.streams().iter().any(|stream| stream.sums().is_some());
    let nodes = nodes::current().filter(|_| others_have_it && !has_sums);
    let again = match nodes {
        Some(nodes) if folding::fits(fold, threads(chosen)) => {
            Some(nodes::refold(nodes, number, fold, folder, chosen)?)
        }
        Some(_) => None,
        None => folding::refold(fold, folder, threads(chosen))?,
    };
    Ok(again.map(Fold::into_canonical))
}

/// How a part is folded, and the whole of it.
pub(super) struct Part<'a> {
    pub(super) way: Way,
    chosen: &'a FolderArgs,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// While it is read; all parts together are refined in the end.
    Online,
    /// Stream by stream, by the folder that the user chose.
    Whole,
    /// By a folder that must see the events of all streams: those are unfolded again.
    Together,
}

impl<'a> Part<'a> {
    pub(super) fn of(intake: &Intake, chosen: &'a FolderArgs) -> Self {
        let way = match (intake, chosen.folder.unwrap_or_default()) {
            (Intake::Fold(_), _) | (_, FolderName::Auto | FolderName::AutoOnline) => Way::Online,
            (_, FolderName::Repair | FolderName::Smallest) => Way::Together,
            _ => Way::Whole,
        };
        Self { way, chosen }
    }

    /// The folder of each stream by itself.
    fn own_folder(&self) -> Result<Box<dyn Folder>> {
        match self.way {
            Way::Whole => folder(self.chosen),
            Way::Online | Way::Together => Ok(Box::new(folders::AutoOnline)),
        }
    }

    /// Folds what was read; for each stream its input if it is ours.
    fn fold(&self, reader: &mut Reader<'_>) -> Result<(Fold, Vec<Option<usize>>)> {
        let nothing = Intake::Trace(loopfold::trace::Collector::default());
        let Intake::Own(own) = std::mem::replace(&mut reader.intake, nothing) else {
            return Ok((Fold::default(), Vec::new()));
        };
        let (inner, inputs) = own.into_parts();
        let fold = match inner {
            Intake::Trace(collector) => {
                folders::fold_trace(collector.finish()?, &*self.own_folder()?, threads(self.chosen))?
            }
            Intake::Fold(folding) => folding.finish_part()?,
            Intake::Shared(_) | Intake::Own(_) => Fold::default(),
        };
        Ok((fold, inputs))
    }

    /// Ends the fold of the whole.
    fn finish(&self, fold: Fold) -> Result<Fold> {
        match self.way {
            Way::Online => Ok(folders::finish_parts(fold, &*folder(self.chosen)?)?),
            Way::Whole | Way::Together => Ok(fold.into_canonical()),
        }
    }
}

/// Reads some inputs, and keeps what is found by input.
fn read_own(reader: &mut Reader<'_>, reads: &[bool]) -> Result<Remarks> {
    let inputs = &reader.arguments.inputs;
    let mut remarks = Remarks::default();
    let names = input_names(inputs).into_iter().zip(formats::ranks(inputs));
    for (input, (path, (name, rank))) in inputs.iter().zip(names).enumerate() {
        if !reads[input] {
            continue;
        }
        reader.options.rank = Some(rank);
        if let Intake::Own(streams) = &mut reader.intake {
            streams.begin(input);
        }
        reader.read(path, &name)?;
        let number = input as u64;
        remarks.notes.extend(reader.loaded.notes.drain(..).map(|note| (number, note)));
        let formats = reader.input_formats.drain(..).map(|format| (number, format.to_string()));
        remarks.formats.extend(formats);
    }
    remarks.unseen = reader.intake.sink_ref().unseen_fields().to_vec();
    let unfitted = reader.loaded.projection.filter.unfitted();
    remarks.unfitted = unfitted.map(|words| words.into_iter().map(String::from).collect());
    Ok(remarks)
}

/// Keeps what all processes have found, as if it had been found here.
fn add_remarks(reader: &mut Reader<'_>, mut remarks: Remarks, events: u64) -> Result<()> {
    // Every process reports what is wrong with the whole of an input.
    for found in [&mut remarks.formats, &mut remarks.notes] {
        found.sort();
        found.dedup();
    }
    let known = remarks.formats.iter().filter_map(|(_, name)| match name.as_str() {
        ARCHIVE => Some(ARCHIVE),
        GRAMMAR => Some(GRAMMAR),
        name => formats::by_name(name).map(|source| source.name()),
    });
    reader.input_formats = known.collect();
    reader.arguments.formats.check(&reader.input_formats)?;
    let is_trace = |format: &&str| ![ARCHIVE, GRAMMAR].contains(format);
    reader.loaded.formats = reader.input_formats.iter().copied().filter(is_trace).collect();
    reader.loaded.archive_bytes = None;
    reader.loaded.notes.extend(remarks.notes.into_iter().map(|(_, note)| note));
    reader.loaded.unfitted = Some(remarks.unfitted);
    reader.check_fields(&remarks.unseen, events)
}

fn unfolded(mut fold: Fold) -> Trace {
    let streams = fold.stream_ids().map(|id| {
        let times = fold.take_times(id);
        let stream = fold.stream(id);
        let is_kept = |note: &&(String, String)| note.0 != "why";
        Stream {
            name: stream.name().raw().to_string(),
            notes: stream.notes().iter().filter(is_kept).cloned().collect(),
            symbols: fold.unfold(stream.root()).collect(),
            times,
        }
    });
    let streams = streams.collect();
    Trace { alphabet: fold.alphabet().clone(), streams }
}
