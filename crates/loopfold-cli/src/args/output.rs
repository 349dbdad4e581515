//! `--output`: a file that a command writes, and the check that it is none that it reads.
//!
//! Every option of this type is claimed before its command begins, whichever command that is. What
//! the command reads is whatever else the user wrote: a word that names the file to be replaced is
//! an input, as far as anybody can know. So there is no list of commands to keep.

use crate::args::TableFormat;
use crate::{nodes, save, tables};
use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory as _};
use loopfold_output::{FileId, Output, Target};
use std::any::TypeId;
use std::ffi::{OsStr, OsString};
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

    fn claim(&self, inputs: &[OsString], may_replace_archive: bool) -> Result<()> {
        let output = Output::claim(&self.path)?;
        let target = output.target();
        let is_input = target.existing().is_some_and(|file| inputs.iter().any(|it| reads(it, file, target)));
        if is_input && !(may_replace_archive && save::is_archive(&target.path())) {
            bail!(
                "{}: is one of the inputs, which would be replaced; name another file",
                self.path.display()
            );
        }
        let _ = self.claimed.set(output);
        Ok(())
    }
}

/// The outputs of a command, and all other words of its arguments.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    outputs: Vec<OutputPath>,
    words: Vec<OsString>,
    /// An archive may take the place of an archive that it was made from.
    may_replace_archive: bool,
    binary_table: Option<TableFormat>,
}

impl Outputs {
    /// Those of the arguments of a command.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let mut found = Self::default();
        let Some((command, matches)) = matches.subcommand() else { return found };
        found.may_replace_archive = ["fold", "merge"].contains(&command);
        let whole = super::Arguments::command();
        for argument in whole.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments) {
            let id = argument.get_id().as_str();
            match matches.try_get_many::<OutputPath>(id) {
                Ok(outputs) => found.outputs.extend(outputs.into_iter().flatten().cloned()),
                Err(_) if may_name_file(argument, matches) => {
                    let words = matches.try_get_raw(id).ok().flatten();
                    found.words.extend(words.into_iter().flatten().map(OsStr::to_os_string));
                }
                Err(_) => {}
            }
        }
        let table = matches.try_get_one::<TableFormat>("table").ok().flatten().copied();
        found.binary_table = table.filter(|table| !table.is_text());
        found
    }

    /// Claims them. Fails if one cannot be written, or is an input. Of several processes that answer
    /// together, the first one writes.
    pub(crate) fn claim(&self) -> Result<()> {
        if nodes::current().is_some_and(|nodes| nodes.rank() > 0) {
            return Ok(());
        }
        for output in &self.outputs {
            output.claim(&self.words, self.may_replace_archive)?;
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

/// Whether the user wrote this argument, and it takes more than numbers and known words.
fn may_name_file(argument: &Arg, matches: &ArgMatches) -> bool {
    let is_written = matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
    let kind = argument.get_value_parser().type_id();
    let numbers = [
        TypeId::of::<u64>(),
        TypeId::of::<u32>(),
        TypeId::of::<usize>(),
        TypeId::of::<i64>(),
        TypeId::of::<f64>(),
    ];
    is_written && argument.get_possible_values().is_empty() && !numbers.iter().any(|number| kind == *number)
}

/// True if a word names a file that is read: itself, or one in its folder. Those that are read beside
/// it without being named are checked where that is done.
fn reads(word: &OsStr, file: FileId, target: &Target) -> bool {
    if word == "-" {
        return FileId::of_open(std::io::stdin()) == Some(file);
    }
    let path = Path::new(word);
    FileId::of(path) == Some(file)
        || folder_of(path).is_some_and(|folder| is_read_from(folder, &target.path()))
}

/// What the archives of OTF2 and recordings consist of.
const IN_FOLDERS: [&str; 7] = ["otf2", "def", "evt", "snap", "marker", "thumb", "fold"];

/// The folder of an input, if it is one: itself, or around the anchor of an archive of OTF2.
fn folder_of(path: &Path) -> Option<&Path> {
    match path.extension() {
        Some(extension) if extension == "otf2" && !path.is_dir() => {
            path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
        }
        _ => Some(path).filter(|path| path.is_dir()),
    }
}

fn is_read_from(folder: &Path, target: &Path) -> bool {
    let extension = target.extension().and_then(OsStr::to_str).unwrap_or_default();
    let (Ok(folder), Ok(target)) = (folder.canonicalize(), target.canonicalize()) else { return false };
    IN_FOLDERS.contains(&extension) && target.starts_with(folder)
}
