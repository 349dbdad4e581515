//! The error of this crate: a sentence for the user, and what kind of failure it is.

use std::fmt;
use std::io;
use std::path::Path;

/// The result of writing.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<io::Error>,
}

/// What callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Somebody else is writing it, or it holds data that would be lost.
    Taken,
    /// Anything else.
    Other,
}

impl Error {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Other, message: message.to_string(), source: None }
    }

    pub(crate) fn taken(message: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Taken, ..Self::new(message) }
    }

    /// What went wrong with a file.
    pub(crate) fn at(path: &Path, error: impl Into<io::Error>) -> Self {
        let source = error.into();
        Self { source: Some(source), ..Self::new(path.display()) }.with_cause()
    }

    /// Why no file can be created in a directory, and what would help.
    pub(crate) fn not_created(directory: &Path, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => missing(directory),
            io::ErrorKind::PermissionDenied => None,
            _ => return Self::at(directory, error).with_start("no file can be created in "),
        }
        .unwrap_or_else(|| {
            Self::new(format_args!(
                "no permission to create a file in the directory {}; name another one",
                directory.display()
            ))
        })
    }

    fn with_cause(mut self) -> Self {
        if let Some(source) = &self.source {
            self.message = format!("{}: {source}", self.message);
        }
        self
    }

    /// The same, which begins with the file that was to be written.
    pub(crate) fn of(self, path: &Path) -> Self {
        self.with_start(&format!("{}: ", path.display()))
    }

    fn with_start(mut self, start: &str) -> Self {
        self.message.insert_str(0, start);
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The failure of the system, if it is one.
    pub fn io(&self) -> Option<&io::Error> {
        self.source.as_ref()
    }
}

/// The first part of a path that is not there, or is no directory.
fn missing(directory: &Path) -> Option<Error> {
    let parts = directory.ancestors().filter(|part| !part.as_os_str().is_empty());
    parts.collect::<Vec<_>>().into_iter().rev().find_map(|part| {
        let name = part.display();
        match std::fs::metadata(part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Error::new(format_args!(
                "the directory {name} does not exist; create it, or name another one"
            ))),
            Ok(about) if !about.is_dir() => {
                Some(Error::new(format_args!("{name} is not a directory; name another one")))
            }
            _ => None,
        }
    })
}
