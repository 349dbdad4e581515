//! `loopfold fold`: traces into an archive.

use crate::args::{FoldArgs, FolderArgs, FolderName, OutputPath, TimesName};
use crate::input::Loaded;
use crate::{Outcome, input, save, show};
use anyhow::{Result, anyhow, bail};
use loopfold::Fold;
use loopfold::questions::path::PathIndex;
use loopfold::questions::rule_sums::summarize;
use loopfold::sections;
use loopfold::trace::TimesKept;
use loopfold_json::archives;

pub(super) fn run(arguments: &FoldArgs) -> Result<Outcome> {
    let times = match arguments.times {
        TimesName::All | TimesName::Summary => TimesKept::All,
        TimesName::None => TimesKept::None,
    };
    let folder = folder(arguments);
    if let Some(part) = arguments.part {
        return run_part(arguments, times, &folder, part);
    }
    let mut loaded = input::load_what_comes(&arguments.read, times, &folder)?;
    let cut = loaded.cut.take();
    let chunks_left_out = arguments.chunks.is_none() && loaded.chunk_bytes > 0;
    let index = arguments.index.or((!arguments.no_index && loaded.is_indexed()).then_some(PathIndex::RANGES));
    let blocks = loaded.blocks()?;
    let (mut fold, mut notes) = fold(loaded, arguments)?;
    if times == TimesKept::All && fold.rule_sums().is_some_and(|sums| !sums.wider.is_empty()) {
        notes.push(
            "the times of loops that other streams have too are not kept: sums do not distinguish streams"
                .to_string(),
        );
    }
    if arguments.times == TimesName::Summary {
        fold = summarize(fold)?;
    }
    if let Some(error) = cut {
        return Err(save_partial(&fold, &arguments.output, &error));
    }
    if arguments.index.is_some() && !PathIndex::is_possible(&fold)? {
        notes.push("there is no index: blocks and exits do not name their function".to_string());
    }
    let config = sections::with_blocks(sections::write_config(index, arguments.chunks), &blocks);
    let bytes = save::save_fold(&fold, &arguments.output, &config)?;
    notes.extend(chunks_left_out.then(|| input::CHUNKS_LEFT_OUT.to_string()));
    show::notes(&notes);
    report(&fold, arguments, bytes)?;
    Ok(Outcome::Done)
}

/// Folds a part of the streams.
fn run_part(
    arguments: &FoldArgs,
    times: TimesKept,
    folder: &FolderArgs,
    part: (usize, usize),
) -> Result<Outcome> {
    if arguments.times == TimesName::Summary {
        bail!("--times summary sums over all streams: use it when the parts are merged, by `fold`");
    }
    let (fold, notes) = input::fold_part(&arguments.read, times, folder, part)?;
    let bytes = save::save(&fold, &arguments.output)?;
    show::notes(&notes);
    report(&fold, arguments, bytes)?;
    Ok(Outcome::Done)
}

fn folder(arguments: &FoldArgs) -> FolderArgs {
    arguments.folder.or(if arguments.smallest { FolderName::Smallest } else { FolderName::Auto })
}

/// Archives stay as they are stored unless a folder is named or events are dropped.
fn fold(loaded: Loaded, arguments: &FoldArgs) -> Result<(Fold, Vec<String>)> {
    let folder = folder(arguments);
    // What dropped events have hidden is found by folding again.
    if arguments.folder.folder.is_some() || arguments.smallest || loaded.is_filtered() {
        loaded.fold(&folder)
    } else {
        loaded.fold_as_stored(&folder)
    }
}

/// Reading ended early: saves what came before beside the archive that was asked for,
/// and returns the error to print.
fn save_partial(fold: &Fold, output: &OutputPath, error: &anyhow::Error) -> anyhow::Error {
    let kept = show::events(fold.events());
    let Some(saved) = save::save_partial(fold, output) else {
        return anyhow!("{error:#}; the {kept} before that are lost");
    };
    match saved {
        Ok((partial, bytes)) => {
            let (partial, bytes) = (partial.display(), show::bytes(bytes));
            anyhow!("{error:#}; the {kept} before that are in {partial} ({bytes})")
        }
        Err(failure) => anyhow!("{error:#}; the {kept} before that are lost: {failure:#}"),
    }
}

fn report(fold: &Fold, arguments: &FoldArgs, bytes: u64) -> Result<()> {
    let events = fold.events();
    if arguments.json.on {
        let (name, folder) = (arguments.output.path().to_string_lossy(), super::stats::folder_names(fold));
        show::print_json_line(|out| Ok(archives::folded(out, fold, &name, &folder, bytes)?))?;
    } else {
        show::remark(&format!(
            "{}: {} of {} in {}",
            show::plain(arguments.output.path().as_os_str().as_encoded_bytes()),
            show::events(events),
            show::plural(fold.streams().len() as u64, "stream"),
            show::bytes(bytes)
        ));
    }
    Ok(())
}
