//! Typed identifiers, so that a rule cannot be confused with a symbol. All are 32 bits wide;
//! constructors are fallible and replace `as`.

use crate::{Error, Result};
use std::fmt;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $what:literal, $limit:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::TransparentWrapper)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// How many different identifiers there can be.
            pub const LIMIT: u32 = $limit;

            /// The identifier with this index.
            pub fn new(index: usize) -> Result<Self> {
                match u32::try_from(index) {
                    Ok(index) if index < Self::LIMIT => Ok(Self(index)),
                    _ => Err(Error::limit(format_args!(
                        "more than {} {} are not supported", Self::LIMIT, $what
                    ))),
                }
            }

            #[allow(dead_code, reason = "not every identifier is ever stored as a bare number")]
            /// Wraps a raw number that is known to lie below [`Self::LIMIT`].
            pub(crate) const fn from_raw(raw: u32) -> Self {
                debug_assert!(raw < Self::LIMIT);
                Self(raw)
            }

            /// The identifier as an index into a table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The identifier as the number it is stored as.
            pub const fn raw(self) -> u32 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", stringify!($name), self.0)
            }
        }
    };
}

identifier!(
    /// Stands for all events that count as the same; the alphabet says what it means.
    Symbol, "distinct events", 1 << 31
);
identifier!(
    /// A rule of a fold.
    RuleId, "rules", 1 << 31
);
identifier!(
    /// A stream of a trace or a fold.
    StreamId, "streams", u32::MAX
);
