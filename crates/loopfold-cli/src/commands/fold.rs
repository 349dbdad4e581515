//! `loopfold fold`: traces into an archive.

use crate::args::{FoldArgs, TimesName};
use crate::{Outcome, input, save, show};
use anyhow::Result;
use loopfold::questions::summarize;
use loopfold::trace::TimesKept;
use serde_json::json;

pub(super) fn run(arguments: &FoldArgs) -> Result<Outcome> {
    save::check_output(&arguments.output, &arguments.read)?;
    let times = match arguments.times {
        TimesName::All | TimesName::Summary => TimesKept::All,
        TimesName::None => TimesKept::None,
    };
    let (mut fold, notes) = input::load(&arguments.read, times)?.fold(&arguments.folder)?;
    if arguments.times == TimesName::Summary {
        fold = summarize(fold)?;
    }
    let bytes = save::save(&fold, &arguments.output)?;
    show::notes(&notes);
    let events = fold.events();
    if arguments.json {
        show::print_json(&json!({
            "archive": arguments.output.to_string_lossy(),
            "streams": fold.streams().len(),
            "events": events,
            "rules": fold.rules().len(),
            "items": fold.items(),
            "folder": super::stats::folder_names(&fold),
            "bytes": bytes,
        }))?;
    } else {
        anstream::eprintln!(
            "{}: {} of {} in {}",
            arguments.output.display(),
            show::events(events),
            show::plural(fold.streams().len() as u64, "stream"),
            show::bytes(bytes)
        );
    }
    Ok(Outcome::Done)
}
