//! Calls the compiler pass, and which functions it shall instrument.

use super::Tools;
use super::tools::status;
use crate::{Error, Result};
use std::path::Path;
use std::process::Command;

/// How an object is made of bitcode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    /// From 0 to 3.
    pub(super) level: u8,
    pub(super) function_sections: bool,
}

/// What is instrumented: paths or blocks, of which functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Options of the pass.
    pub(super) options: Vec<String>,
}

impl Selection {
    /// Takes our own options from the front of the arguments, and returns the rest.
    pub(super) fn take(arguments: &[String]) -> Result<(Self, &[String])> {
        let (mut options, mut rest) = (Vec::new(), arguments);
        while let Some((first, behind)) = rest.split_first() {
            let (name, value) = match first.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (first.as_str(), None),
            };
            rest = match (name, value) {
                ("--blocks", None) => behind,
                ("--only" | "--drop", Some(_)) => behind,
                ("--only" | "--drop", None) => behind.get(1..).unwrap_or_default(),
                _ => break,
            };
            options.push(name.to_string());
            if name != "--blocks" {
                let value = value.or(behind.first().map(String::as_str));
                let value =
                    value.ok_or_else(|| Error::new(format_args!("{name} needs a pattern of functions")))?;
                options.push(value.to_string());
            }
        }
        Ok((Self { options }, rest))
    }

    /// Makes an instrumented object of bitcode. Returns the exit status of the pass, which says
    /// what is wrong itself.
    pub(super) fn instrument(&self, tools: &Tools, code: Code, bitcode: &Path, object: &Path) -> Result<u8> {
        let mut command = Command::new(&tools.pass);
        command.arg(bitcode).arg("-o").arg(object).arg("-O").arg(code.level.to_string()).args(&self.options);
        if code.function_sections {
            command.arg("--function-sections");
        }
        status(&mut command)
    }
}

/// Whether bytes are LLVM bitcode.
pub(super) fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde")
}
