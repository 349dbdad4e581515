//! The one error type of the crate: opaque, with accessors for what a caller
//! may want to decide on.

use std::fmt;
use std::sync::Arc;

/// What every fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something that could not be done, with the reason in words.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

#[derive(Clone, Debug, thiserror::Error)]
enum Kind {
    #[error("{0}")]
    Limit(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{place}: {reason}")]
    Damaged { place: String, reason: String },
    #[error("{}", version_message(*.found, *.known))]
    Version { found: u32, known: u32 },
    #[error(transparent)]
    Io(Arc<std::io::Error>),
}

impl Error {
    /// A size or a count went past what this crate can hold.
    pub fn limit(message: impl fmt::Display) -> Self {
        Kind::Limit(message.to_string()).into()
    }

    /// A setting or a request makes no sense.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Kind::Invalid(message.to_string()).into()
    }

    /// Stored data contradicts itself or its checksum. `place` says where.
    pub fn damaged(place: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Kind::Damaged { place: place.to_string(), reason: reason.to_string() }.into()
    }

    pub(crate) fn version(found: u32, known: u32) -> Self {
        Kind::Version { found, known }.into()
    }

    /// The same error as one of the stored data in which it came up: `outer` is put in
    /// front of its place. Errors of input and output and of the version stay as they are.
    pub(crate) fn within(self, outer: impl fmt::Display) -> Self {
        match self.0 {
            Kind::Damaged { place, reason } => Self::damaged(format_args!("{outer}, {place}"), reason),
            Kind::Limit(reason) | Kind::Invalid(reason) => Self::damaged(outer, reason),
            kind => kind.into(),
        }
    }

    /// Where stored data is damaged, and how; for other errors the place is not known.
    pub(crate) fn place_and_reason(&self) -> (String, String) {
        match &self.0 {
            Kind::Damaged { place, reason } => (place.clone(), reason.clone()),
            other => ("archive".to_string(), other.to_string()),
        }
    }

    /// True when a limit of size or count was reached.
    pub fn is_limit(&self) -> bool {
        matches!(self.0, Kind::Limit(_))
    }

    /// True when stored data is damaged or of an unknown version.
    pub fn is_damaged(&self) -> bool {
        matches!(self.0, Kind::Damaged { .. } | Kind::Version { .. })
    }

    /// The input or output error underneath, if that is what happened.
    pub fn io(&self) -> Option<&std::io::Error> {
        match &self.0 {
            Kind::Io(error) => Some(error),
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
        Kind::Io(Arc::new(error)).into()
    }
}
