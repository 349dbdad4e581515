//! The error of this program: a line for the user.

use std::fmt;

/// Why a module cannot be instrumented.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Error {
    message: String,
}

/// The result of instrumenting.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string() }
    }
}

impl From<loopfold_paths::Error> for Error {
    fn from(error: loopfold_paths::Error) -> Self {
        Self::new(error)
    }
}
