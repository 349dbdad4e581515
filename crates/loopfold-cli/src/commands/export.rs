//! `loopfold export`: the rules in another form. A form is a file in the library's
//! `export`, a name in the arguments, and a line here.

use super::weights;
use crate::args::{ExportArgs, ExportName, FolderName, ReadArgs, TableFormat};
use crate::{Outcome, input, save, show, tables};
use anyhow::{Result, anyhow};
use loopfold::Fold;
use loopfold::export::{dot, grammar};
use loopfold::trace::TimesKept;

pub(super) fn run(arguments: &ExportArgs) -> Result<Outcome> {
    let output = arguments.output.as_ref();
    let (form, read) = arguments.split_form()?;
    if let Some(what) = form.binary() {
        tables::check_terminal(what, output)?;
    }
    match form {
        ExportName::Dot => {
            let graph = draw(&stored(arguments, &read)?, arguments.limit)?;
            save::save_with(output, |out| Ok(out.write_all(&graph)?))?
        }
        ExportName::Grammar => {
            let fold = stored(arguments, &read)?;
            save::save_with(output, |out| Ok(grammar::write(&fold, out)?))?
        }
        ExportName::Weights => {
            let fold = shown(arguments, &read)?;
            save::save_with(output, |out| {
                weights::write_table(&fold, TableFormat::Csv, arguments.spreadsheet, out)
            })?
        }
        #[cfg(feature = "arrow")]
        ExportName::Parquet => {
            let fold = shown(arguments, &read)?;
            save::save_with(output, |out| weights::write_table(&fold, TableFormat::Parquet, false, out))?
        }
        ExportName::Safetensors => {
            let fold = shown(arguments, &read)?;
            save::save_with(output, |out| weights::write_tensors(&fold, out))?
        }
    };
    Ok(Outcome::Done)
}

/// The rules that `fold` would store.
fn stored(arguments: &ExportArgs, read: &ReadArgs) -> Result<Fold> {
    let (fold, notes) = input::fold(read, TimesKept::None, &arguments.folder.or(FolderName::Auto))?;
    show::notes(&notes);
    Ok(fold)
}

/// The nests that `loops` shows.
fn shown(arguments: &ExportArgs, read: &ReadArgs) -> Result<Fold> {
    let (fold, notes) = input::load(read, TimesKept::None, &arguments.folder)?.fold(&arguments.folder)?;
    show::notes(&notes);
    Ok(fold)
}

/// The graph as a whole, which its limit keeps small.
fn draw(fold: &Fold, limit: usize) -> Result<Vec<u8>> {
    let mut graph = Vec::new();
    match dot::write(fold, limit, &mut graph) {
        Ok(()) => Ok(graph),
        Err(error) if error.kind() == loopfold::ErrorKind::Limit => {
            Err(anyhow!("{error}; --limit N draws more, --stream NAME selects streams"))
        }
        Err(error) => Err(error.into()),
    }
}
