//! `loopfold skeleton`: a short C program that communicates as the recorded one does. `check` runs
//! both.

mod check;

use crate::args::SkeletonArgs;
use crate::{Outcome, folding, input, save, show};
use anyhow::{Context as _, Result, bail};
use loopfold::Fold;
use loopfold::mpi::Calls;
use loopfold::skeleton::{Config, Skeleton};
use loopfold::trace::TimesKept;

pub(super) fn run(arguments: &SkeletonArgs) -> Result<Outcome> {
    let (fold, notes) = read(arguments)?;
    show::notes(&notes);
    let skeleton = skeleton(arguments, &fold)?;
    show::notes(&skeleton.notes);
    if arguments.check {
        return check::run(arguments, &fold, &skeleton);
    }
    if arguments.json.on && arguments.output.is_none() {
        bail!(
            "--json describes the skeleton on standard output, so --output has to name a file for the program"
        );
    }
    save::save_with(arguments.output.as_ref(), |out| Ok(out.write_all(skeleton.text.as_bytes())?))?;
    if arguments.json.on {
        show::print_json_line(|out| -> Result<()> {
            Ok(loopfold_json::skeleton::skeleton(out, &skeleton, arguments.scale)?)
        })?;
    }
    Ok(Outcome::Done)
}

/// The recording, each communicator with a name of its own.
fn read(arguments: &SkeletonArgs) -> Result<(Fold, Vec<String>)> {
    let read_in = input::fold(&arguments.read, TimesKept::All, &arguments.folder)?;
    let (fold, notes) = input::with_unique_communicators(read_in, &arguments.folder)?;
    if Calls::of(fold.alphabet()).is_empty() {
        bail!(
            "there are no sends, receives or collectives; `loopfold record --mpi` records those of a program"
        );
    }
    Ok((fold, notes))
}

fn skeleton(arguments: &SkeletonArgs, fold: &Fold) -> Result<Skeleton> {
    let title = arguments.read.inputs.first().map(|input| input.display().to_string());
    let config = Config::new()
        .scale(arguments.scale)
        .noise(arguments.noise)
        .touched(arguments.touch_memory.unwrap_or(0))
        .wildcards(arguments.wildcards.map(Into::into))
        .ranks(arguments.ranks.map(|ranks| ranks as usize))
        .title(title.unwrap_or_default())
        .call_names(loopfold_sources::mpi_call_name);
    Skeleton::of(fold, &folding::outermost, &config).context("no skeleton")
}
