//! The command `loopfold`: arguments, progress and printing; no algorithm.
//!
//! It is a library so that others can ask what the command answers, with the same arguments,
//! defaults and texts: [`Asker`] runs a command and returns what it would print. The program itself is
//! [`main`]; `loopfold-mpi` runs the same commands in many processes ([`nodes`]).

mod args;
mod ask;
mod call;
mod commands;
mod folding;
mod formats;
mod input;
mod interrupt;
mod names;
pub mod nodes;
mod progress;
mod save;
mod selection;
mod show;
mod streams;
mod tables;

pub use ask::{Answer, Asker, Error, ErrorKind, save_archive};
pub use call::Progress;
pub use folding::folder_called;

use std::process::ExitCode;

/// How a command ended: 0 found or done, 1 nothing found or a check failed, 2 an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Nothing,
    /// Parts failed, and their errors are printed; the others are done.
    Failed,
    /// As a program did that was recorded.
    Status(u8),
}

impl Outcome {
    fn status(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Nothing => 1,
            Outcome::Failed => 2,
            Outcome::Status(status) => status,
        }
    }
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    let parsed = || args::parse("loopfold", std::env::args_os()).unwrap_or_else(|error| error.exit());
    let outcome = commands::compile().unwrap_or_else(|| commands::run(parsed()));
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.status()),
        // The reader of our output closed the pipe.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::from(2)
        }
    }
}

fn print_error(error: &anyhow::Error) {
    show::error(error);
    if is_damage(error) && !format!("{error:#}").contains("--lenient") {
        show::remark("       --lenient reads what can be read");
    }
}

fn is_damage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let library = cause.downcast_ref::<loopfold::Error>().map(loopfold::Error::kind);
        let source = cause.downcast_ref::<loopfold_sources::Error>().map(loopfold_sources::Error::kind);
        source.or(library) == Some(loopfold::ErrorKind::Damaged)
    })
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let library = cause.downcast_ref::<loopfold::Error>().and_then(loopfold::Error::io);
        let io = cause.downcast_ref::<std::io::Error>().or(library);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.map(std::io::Error::kind).or(json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}
