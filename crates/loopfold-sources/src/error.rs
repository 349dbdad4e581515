//! The one error type of the crate.

use loopfold::ErrorKind;
use std::fmt;

/// What every fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something in an input that could not be read, with its place.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Reason);

#[derive(Debug, thiserror::Error)]
enum Reason {
    /// The input is not what its format promises.
    #[error("{place}: {reason}")]
    Damaged { place: String, reason: String },
    /// An option does not fit the format or the input.
    #[error("{0}")]
    Option(String),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Trace(#[from] loopfold::Error),
}

impl Error {
    /// The input is not what its format promises. `place` is a line, byte or stream.
    pub fn damaged(place: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Reason::Damaged { place: place.to_string(), reason: reason.to_string() }.into()
    }

    /// An option does not fit the format or the input.
    pub fn option(message: impl fmt::Display) -> Self {
        Reason::Option(message.to_string()).into()
    }

    /// What kind of error it is. Where the input is damaged, reading leniently would help.
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Reason::Damaged { .. } => ErrorKind::Damaged,
            Reason::Option(_) => ErrorKind::Invalid,
            Reason::Io(_) => ErrorKind::Io,
            Reason::Trace(error) => error.kind(),
        }
    }

    /// The input or output error underneath, if that is what happened.
    pub fn io(&self) -> Option<&std::io::Error> {
        match &self.0 {
            Reason::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        // A damaged input comes through `Read`, which knows only I/O errors.
        error.downcast::<Error>().unwrap_or_else(|error| Reason::Io(error).into())
    }
}

impl From<loopfold::Error> for Error {
    fn from(error: loopfold::Error) -> Self {
        Reason::Trace(error).into()
    }
}
