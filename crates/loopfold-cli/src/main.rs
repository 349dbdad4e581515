//! The command `loopfold`; see the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    loopfold_cli::run()
}
