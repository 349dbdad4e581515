//! Asks what the command answers: with its arguments, and the answer is what it would print.
//!
//! So whatever the command can be asked, a library in another language can ask, with the same
//! defaults, checks and messages, and there is no second list of options. An answer in JSON is
//! parsed again by the caller; that costs less than the question wherever an answer is not long.
//!
//! An [`Asker`] has the inputs. It keeps what was read of traces, so that the next question does
//! not read them again, in O(trace) memory for each way of reading that the questions need (with
//! or without times; folded while reading, or as symbols). Archives are read for each question.

use crate::args::{self, Command, Parsed};
use crate::call::{self, Call, Progress};
use crate::input::Kept;
use crate::{Outcome, commands, is_damage, save};
use loopfold::Fold;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What a question came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// What the command would print.
    pub output: Vec<u8>,
    /// What it would print as notes, on standard error.
    pub notes: Vec<String>,
    /// Whether something was found, or a check passed: the exit status would be 0, not 1.
    pub found: bool,
}

/// Why a question was not answered.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The kinds of errors that callers handle differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments are wrong.
    Arguments,
    /// The input is damaged; reading it leniently may help.
    Damaged,
    /// [`Progress::interrupt`] was called.
    Interrupted,
    /// Anything else.
    Other,
}

impl Error {
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn of_arguments(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        // Without the usage of the command.
        let message = text.split("\n\nUsage:").next().unwrap_or(text).split("\n\nFor more").next();
        Self { kind: ErrorKind::Arguments, message: message.unwrap_or(text).trim().to_string() }
    }

    fn of_command(error: &anyhow::Error, progress: &Progress) -> Self {
        let kind = match () {
            () if progress.is_interrupted() => ErrorKind::Interrupted,
            () if is_damage(error) => ErrorKind::Damaged,
            () => ErrorKind::Other,
        };
        Self { kind, message: format!("{error:#}") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Asks commands about inputs; threads may share it.
#[derive(Debug, Clone, Default)]
pub struct Asker {
    kept: Arc<Kept>,
    fold: Option<Arc<Fold>>,
}

impl Asker {
    /// Asks about the inputs that the arguments name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks about a fold, as if it were an archive: it takes the place of whatever input the
    /// arguments name.
    pub fn of_fold(fold: Arc<Fold>) -> Self {
        Self { kept: Arc::default(), fold: Some(fold) }
    }

    /// The fold that `cat` would print or `loops` would show, with the same arguments.
    pub fn fold(&self, arguments: &[OsString], progress: &Arc<Progress>) -> Result<Fold, Error> {
        let parsed = parsed(arguments)?;
        let (fold, _) = call::within(self.call(0, progress), || match parsed.command {
            Command::Cat(arguments) => commands::folded_to_print(&arguments),
            Command::Loops(arguments) => commands::folded_to_show(&arguments),
            _ => anyhow::bail!("only `cat` and `loops` give a fold"),
        });
        fold.map_err(|error| Error::of_command(&error, progress))
    }

    /// Runs a command with its arguments (`["hot", "x.fold", "--json"]`) in this thread. Text has
    /// lines of `width` characters, and no colours.
    pub fn ask(
        &self,
        arguments: &[OsString],
        width: usize,
        progress: &Arc<Progress>,
    ) -> Result<Answer, Error> {
        let parsed = parsed(arguments)?;
        let (outcome, call) = call::within(self.call(width, progress), || commands::run(parsed));
        let outcome = outcome.map_err(|error| Error::of_command(&error, progress))?;
        let found = outcome == Outcome::Done;
        Ok(Answer { output: call.output, notes: call.notes, found })
    }

    fn call(&self, width: usize, progress: &Arc<Progress>) -> Call {
        Call {
            progress: Arc::clone(progress),
            kept: Some(Arc::clone(&self.kept)),
            fold: self.fold.clone(),
            width,
            output: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Writes a fold as an archive; what is at `output` is replaced when the archive is complete. Returns
/// how many bytes it has.
pub fn save_archive(fold: &Fold, output: &Path) -> Result<u64, Error> {
    save::save_at(fold, output).map_err(|error| Error::of_command(&error, &Progress::default()))
}

fn parsed(arguments: &[OsString]) -> Result<Parsed, Error> {
    let program = std::iter::once(OsString::from("loopfold"));
    let arguments = program.chain(arguments.iter().cloned());
    let parsed = args::parse("loopfold", arguments).map_err(|error| Error::of_arguments(&error))?;
    check_answerable(&parsed.command)?;
    Ok(parsed)
}

/// Refuses commands that run other programs or print help.
fn check_answerable(command: &Command) -> Result<(), Error> {
    let is_question = !matches!(
        command,
        Command::Record(_)
            | Command::RecordHelper { .. }
            | Command::Cc(_)
            | Command::Cxx(_)
            | Command::Cargo(_)
            | Command::Help { .. }
            | Command::Completions { .. }
            | Command::Man { .. }
    );
    let message = "this command runs other programs or prints help; use it in a shell".to_string();
    if is_question { Ok(()) } else { Err(Error { kind: ErrorKind::Arguments, message }) }
}
