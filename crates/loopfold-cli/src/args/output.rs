//! `--output`: a file that a command writes.
//!
//! Every option of this type is claimed before its command begins, whichever command that is, so there
//! is no list of commands to keep. From then on whatever would read the file is an error
//! (`input::files`).

use crate::args::TableFormat;
use crate::{nodes, save, tables};
use anyhow::{Context as _, Result};
use clap::{ArgMatches, CommandFactory as _};
use loopfold_output::{Output, Target};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file to write, or `-` for standard output. Clones share the claim.
#[derive(Clone, Debug)]
pub(crate) struct OutputPath {
    path: PathBuf,
    claimed: Arc<OnceLock<Output>>,
}

impl From<OsString> for OutputPath {
    fn from(path: OsString) -> Self {
        Self { path: path.into(), claimed: Arc::default() }
    }
}

impl OutputPath {
    /// The path as the user wrote it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What was claimed before the command began.
    pub(crate) fn claimed(&self) -> Result<&Output> {
        self.claimed.get().with_context(|| format!("{}: is not claimed", self.path.display()))
    }

    /// Whether it is standard output, under whatever name.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
            || self.claimed.get().is_some_and(|output| matches!(output.target(), Target::Stdout))
    }

    /// Whether it is a terminal that is not standard output.
    pub(crate) fn is_terminal(&self) -> bool {
        let target = self.claimed.get().map(Output::target);
        matches!(target, Some(Target::Special(special)) if special.is_terminal())
    }

    /// `replaces_archives` if an archive may take the place of an archive that it was made from.
    fn claim(&self, replaces_archives: bool) -> Result<()> {
        let mut output = Output::claim(&self.path)?;
        // A pipe would wait for somebody who writes to it.
        let is_file = matches!(output.target(), Target::File { .. });
        if replaces_archives && is_file && save::is_archive(&output.target().path()) {
            output.may_be_read();
        }
        let _ = self.claimed.set(output);
        Ok(())
    }
}

/// The outputs of a command.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    outputs: Vec<OutputPath>,
    replaces_archives: bool,
    binary_table: Option<TableFormat>,
}

impl Outputs {
    /// Those of the arguments of a command.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let mut found = Self::default();
        let Some((command, matches)) = matches.subcommand() else { return found };
        found.replaces_archives = ["fold", "merge"].contains(&command);
        let whole = super::Arguments::command();
        for argument in whole.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments) {
            let outputs = matches.try_get_many::<OutputPath>(argument.get_id().as_str());
            found.outputs.extend(outputs.into_iter().flatten().flatten().cloned());
        }
        let table = matches.try_get_one::<TableFormat>("table").ok().flatten().copied();
        found.binary_table = table.filter(|table| !table.is_text());
        found
    }

    /// Claims them. Fails if one cannot be written. Of several processes that answer
    /// together, the first one writes.
    pub(crate) fn claim(&self) -> Result<()> {
        if nodes::current().is_some_and(|nodes| nodes.rank() > 0) {
            return Ok(());
        }
        for output in &self.outputs {
            output.claim(self.replaces_archives)?;
            if self.replaces_archives {
                tables::check_terminal("an archive", Some(output))?;
            }
        }
        if let Some(table) = self.binary_table {
            tables::check_terminal(&format!("--table {}", table.name()), self.outputs.first())?;
        }
        Ok(())
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }
}
