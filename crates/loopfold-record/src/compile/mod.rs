//! Compiles programs so that their paths can be recorded: `loopfold-cc`, `loopfold-c++` and
//! `loopfold cargo`.
//!
//! clang compiles a source to LLVM bitcode (`driver`), the program `loopfold-pass` instruments that
//! and generates the object, and clang links objects with the run-time library. Rust is compiled to
//! bitcode by an option of the stable compiler, and the command takes the place of the linker
//! (`linker`), where it replaces bitcode in objects and archives. What a compiler is asked to do is
//! read from its arguments (`command_line`); whatever makes no object is left to clang.
//!
//! A source takes two more processes and some milliseconds than with clang alone, plus about what
//! generating its code takes.

mod cargo;
mod command_line;
mod driver;
mod instrument;
mod linker;
mod response;
mod tools;

use crate::Result;
use instrument::Selection;
use std::path::Path;
use tools::Tools;

/// What takes the place of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerKind {
    /// The C compiler.
    C,
    /// The C++ compiler.
    Cxx,
    /// cargo.
    Cargo,
    /// The linker of rustc.
    Linker,
}

impl CompilerKind {
    /// What the name under which the command was started and its arguments ask for, and the
    /// arguments of that. Returns `None` if that is something else than to compile.
    pub fn of_process(arguments: &[String]) -> Option<(Self, &[String])> {
        let (name, rest) = arguments.split_first()?;
        let name = Path::new(name).file_name()?.to_str()?;
        let first = rest.first().map(String::as_str);
        match (name, first) {
            ("loopfold-cc", _) => Some((Self::C, rest)),
            ("loopfold-c++", _) => Some((Self::Cxx, rest)),
            ("cargo-loopfold", Some("loopfold")) => Some((Self::Cargo, &rest[1..])),
            ("cargo-loopfold", _) => Some((Self::Cargo, rest)),
            _ if linker::is_link(rest) => Some((Self::Linker, rest)),
            (_, Some("cc")) => Some((Self::C, &rest[1..])),
            (_, Some("c++")) => Some((Self::Cxx, &rest[1..])),
            (_, Some("cargo")) => Some((Self::Cargo, &rest[1..])),
            _ => None,
        }
    }

    /// Does it, and returns the exit status: that of the program that it took the place of.
    pub fn run(self, arguments: &[String]) -> Result<u8> {
        let arguments = if self == Self::Cargo { arguments.to_vec() } else { response::expand(arguments)? };
        match self {
            Self::C | Self::Cxx => {
                let (selection, arguments) = Selection::take(&arguments)?;
                driver::run(self == Self::Cxx, &selection, arguments)
            }
            Self::Cargo => {
                let (selection, arguments) = Selection::take(&arguments)?;
                cargo::run(&selection, arguments)
            }
            Self::Linker => linker::run(&arguments),
        }
    }
}
