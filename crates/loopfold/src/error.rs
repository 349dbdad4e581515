//! The error type of the crate: opaque, with a kind that a caller can match on, and the reason
//! as text.

use std::fmt;
use std::sync::Arc;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A size or a count exceeds what this crate can hold.
    Limit,
    /// A setting or a request makes no sense.
    Invalid,
    /// Something that was named is not there.
    NotFound,
    /// Stored data contradicts itself or its checksum.
    Damaged,
    /// Stored data is of a version of its format that this crate does not read.
    Version,
    /// Reading or writing failed; [`Error::io`] has the error underneath.
    Io,
    /// Somebody [asked](crate::interrupt::Interrupt::request) for an end.
    Interrupted,
}

/// An error, with the reason as text.
///
/// ```
/// use loopfold::{ErrorKind, archive::Archive};
///
/// let error = Archive::open(std::io::Cursor::new(b"no archive")).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Damaged);
/// assert_eq!(error.to_string(), "head: this is not a fold archive");
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Reason);

#[derive(Clone, Debug, thiserror::Error)]
enum Reason {
    #[error("{0}")]
    Limit(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotFound(String),
    #[error("{place}: {reason}")]
    Damaged { place: String, reason: String },
    #[error("{}", version_message(*.found, *.known))]
    Version { found: u32, known: u32 },
    #[error(transparent)]
    Io(Arc<std::io::Error>),
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A size or a count exceeds what this crate can hold.
    pub fn limit(message: impl fmt::Display) -> Self {
        Reason::Limit(message.to_string()).into()
    }

    /// A setting or a request makes no sense.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Reason::Invalid(message.to_string()).into()
    }

    /// Something that was named is not there.
    pub fn not_found(message: impl fmt::Display) -> Self {
        Reason::NotFound(message.to_string()).into()
    }

    /// Stored data contradicts itself or its checksum. `place` says where.
    pub fn damaged(place: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Reason::Damaged { place: place.to_string(), reason: reason.to_string() }.into()
    }

    pub(crate) fn version(found: u32, known: u32) -> Self {
        Reason::Version { found, known }.into()
    }

    pub(crate) fn interrupted() -> Self {
        Reason::Interrupted.into()
    }

    /// The same error, with `outer` put in front of its place in the stored data. Errors of
    /// input and output and of the version stay unchanged.
    pub(crate) fn within(self, outer: impl fmt::Display) -> Self {
        match self.0 {
            Reason::Damaged { place, reason } => Self::damaged(format_args!("{outer}, {place}"), reason),
            Reason::Limit(reason) | Reason::Invalid(reason) => Self::damaged(outer, reason),
            reason => reason.into(),
        }
    }

    /// Where stored data is damaged, and how. Other errors have no place.
    pub(crate) fn place_and_reason(&self) -> (String, String) {
        match &self.0 {
            Reason::Damaged { place, reason } => (place.clone(), reason.clone()),
            other => ("archive".to_string(), other.to_string()),
        }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Reason::Limit(_) => ErrorKind::Limit,
            Reason::Invalid(_) => ErrorKind::Invalid,
            Reason::NotFound(_) => ErrorKind::NotFound,
            Reason::Damaged { .. } => ErrorKind::Damaged,
            Reason::Version { .. } => ErrorKind::Version,
            Reason::Io(_) => ErrorKind::Io,
            Reason::Interrupted => ErrorKind::Interrupted,
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

fn version_message(found: u32, known: u32) -> String {
    match found < known {
        true => format!(
            "this archive is of format version {found}, which was never released and is no longer read; this program \
             reads version {known}: fold the trace again"
        ),
        false => format!(
            "this archive is of format version {found}; this program reads version {known}: use a newer one"
        ),
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Reason::Io(Arc::new(error)).into()
    }
}
