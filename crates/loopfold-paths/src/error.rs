//! The error of this crate.

use std::fmt;

/// Why a graph cannot be numbered, or a description not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    reason: &'static str,
}

/// The result of numbering or decoding.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(reason: &'static str) -> Self {
        Self { reason }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "description of paths: {}", self.reason)
    }
}

impl std::error::Error for Error {}
