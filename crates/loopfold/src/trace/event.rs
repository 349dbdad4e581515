//! Events as sources emit them: what happened ([`Event`]), which determines the symbol, and
//! when ([`Timing`]), which differs between occurrences and never does.

/// What happened. Events that are equal have the same symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// What happened.
    pub name: Name<'a>,
    /// Its role.
    pub role: Role,
    /// More about it. Well-known keys are listed at [`Field`].
    pub fields: &'a [Field<'a>],
}

impl<'a> Event<'a> {
    /// An event that has a name and nothing else.
    pub fn named(name: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { name: Name::Text(name.as_ref()), ..Self::default() }
    }

    /// An event that is just a number: an address, a symbol of another tool.
    pub fn integer(number: u64) -> Self {
        Self { name: Name::Integer(number), ..Self::default() }
    }
}

/// When an event happened, and what else was measured of this occurrence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing<'a> {
    /// When it began, in nanoseconds from an origin of the source's choice.
    pub start: Option<i64>,
    /// How long it took, in nanoseconds; unknown if negative.
    pub duration: Option<i64>,
    /// Further measurements, by name.
    pub metrics: &'a [(&'a str, f64)],
}

impl Timing<'_> {
    /// Nothing was measured.
    pub const UNKNOWN: Self = Self { start: None, duration: None, metrics: &[] };
}

/// A metric: nanoseconds before the event, since the one before it ended, in which the thread did not
/// run because others had its core.
pub const OFF_CPU: &str = "off-cpu";

/// A metric: nanoseconds before the event, since the one before it ended, in which the recorder wrote
/// that one. Recorders measure it for some events only: for the others it is not a number.
pub const RECORDING: &str = "recording";

/// The name of an event. Text is any bytes; traces do not promise UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name<'a> {
    /// Bytes as the source has them.
    Text(&'a [u8]),
    /// A number, shown in decimal or hexadecimal.
    Integer(u64),
}

impl<'a> From<&'a str> for Event<'a> {
    fn from(name: &'a str) -> Self {
        Self::named(name)
    }
}

impl From<u64> for Event<'_> {
    fn from(number: u64) -> Self {
        Self::integer(number)
    }
}

impl Default for Name<'_> {
    fn default() -> Self {
        Name::Text(b"")
    }
}

/// The role of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing more is known than the name.
    #[default]
    Plain,
    /// The function or region that the name says is entered. A field `caller` says that
    /// this also is a block of the caller, called by the same name.
    Enter,
    /// The function or region that the name says is left; sources of control flow repeat
    /// it in the field `function`.
    Leave,
    /// A basic block or path of the function in the field `function`, which is `?` where
    /// the trace does not show its entry.
    Block,
    /// A message is sent: fields `dest`, `tag`, `bytes`, `comm`.
    Send,
    /// A message is received, or requested: fields `src`, `tag`, `bytes`, `comm`.
    Receive,
    /// A collective operation: fields `root`, `bytes`, `comm`.
    Collective,
}

impl Role {
    const ALL: [Role; 7] =
        [Role::Plain, Role::Enter, Role::Leave, Role::Block, Role::Send, Role::Receive, Role::Collective];

    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// A named value of an event.
///
/// Keys that questions know: `function` (of a block or an exit), `caller` (of an entry), `dest` or `src`,
/// `tag`, `bytes`, `comm` (of a message; ranks are those of the communicator), `root` (of a collective).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: Value<'a>,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A whole number.
    Integer(i64),
    /// Text as the source has it.
    Text(&'a [u8]),
}
