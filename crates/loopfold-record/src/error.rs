//! The error of this crate: a line for the user.

use std::fmt;
use std::path::Path;

/// Why something cannot be recorded, or a recording not be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
}

/// The result of recording.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string() }
    }

    /// What went wrong with a file.
    pub(crate) fn at(path: &Path, error: impl fmt::Display) -> Self {
        Self::new(format_args!("{}: {error}", path.display()))
    }
}

impl From<loopfold::Error> for Error {
    fn from(error: loopfold::Error) -> Self {
        Self::new(error)
    }
}

impl From<loopfold_output::Error> for Error {
    fn from(error: loopfold_output::Error) -> Self {
        Self::new(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(error)
    }
}
