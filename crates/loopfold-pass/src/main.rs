//! The compiler pass: reads LLVM bitcode, inserts code that records the paths of its functions
//! (Ball and Larus), and writes an object.
//!
//! A program of its own, since it is the only part that needs LLVM: that inside the Rust compiler,
//! so no development package is necessary. `loopfold-cc` calls it for each object. The algorithm is
//! in `instrument` and `insert`; numbers are computed by the crate `loopfold-paths`.
//!
//! Reads the bitcode of this and of earlier versions of LLVM. A module takes about as long as
//! compiling it without optimisation.
#![deny(unsafe_code)]

mod added;
mod error;
mod insert;
mod instrument;
mod llvm;
mod older_clang;
mod options;
mod output;
mod runtime;
mod shape;

use error::{Error, Result};
use llvm::{Context, Module};
use options::{Options, USAGE};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--version") {
        println!("loopfold-pass {} (LLVM {})", env!("CARGO_PKG_VERSION"), llvm::version());
        return ExitCode::SUCCESS;
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loopfold-pass: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Vec<String>) -> Result<()> {
    let options = Options::parse(arguments.into_iter())?;
    let name = options.input.display();
    let bitcode =
        std::fs::read(&options.input).map_err(|error| Error::new(format_args!("{name}: {error}")))?;
    let context = Context::new();
    let module = Module::parse(&context, &bitcode).map_err(|error| output::explain(&name, &error))?;
    let description = instrument::instrument(&module, &options)?;
    if options.describe {
        output::print(&description);
    }
    if options.output.as_os_str().is_empty() {
        return Ok(());
    }
    module.verify().map_err(|error| Error::new(format_args!("{name}: {error}")))?;
    output::write(&module, &options)
}
