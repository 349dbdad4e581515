//! The words of a record: what the preloaded library writes for a call of the table, and the
//! helper reads. One list, so that the two cannot disagree.

use loopfold_sources::{MpiArgument, MpiCall};

/// A word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Destination,
    Source,
    From,
    Target,
    Root,
    Operation,
    Tag,
    ReceiveTag,
    Bytes,
    ReceiveBytes,
    Communicator,
    Color,
    Key,
    NewCommunicator,
    Part,
    Flag,
    /// Sender and tag of what was received, or probed.
    Received,
    Request,
    Message,
    ReceivedMessage,
    /// The sides of a grid and which of them are periodic, behind their number.
    Grid,
}

/// Records of something else than a call of the table.
pub(crate) const CONTINUED: u64 = 0xffff;
pub(crate) const COMMUNICATOR: u64 = 0xfffe;
pub(crate) const ENTER: u64 = 0xfffd;
pub(crate) const LEAVE: u64 = 0xfffc;
pub(crate) const MARK: u64 = 0xfffb;
pub(crate) const OFF_CPU: u64 = 0xfffa;
pub(crate) const RECORDING: u64 = 0xfff9;

/// A peer or tag that is a wildcard, a peer that is nobody, and the root between groups.
pub(crate) const ANY: i64 = -1;
pub(crate) const NOBODY: i64 = -2;
pub(crate) const ROOT: i64 = -3;

/// In place of what was received: the request was given up.
pub(crate) const CANCELLED: i64 = i64::MIN;

/// How many words a record has, by its first.
pub(crate) fn length_of(head: i64) -> usize {
    (head as u64 >> 16) as usize & 0xffff
}

/// What reductions are called, by the number that the library gives them.
pub(crate) const OPERATIONS: [&str; 15] = [
    "user", "SUM", "MAX", "MIN", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MINLOC", "MAXLOC",
    "REPLACE", "NO_OP",
];

/// The words of the records of a call, in order.
pub(crate) fn words_of(call: &MpiCall) -> Vec<Word> {
    use MpiArgument as A;
    let has = |role| call.has(role);
    let has_bytes = has(A::Type) || has(A::Types) || has(A::Size);
    let words = [
        (has(A::Destination), Word::Destination),
        (has(A::Source), Word::Source),
        (has(A::From), Word::From),
        (has(A::Target), Word::Target),
        (has(A::Root), Word::Root),
        (has(A::Operation), Word::Operation),
        (has(A::Tag), Word::Tag),
        (has(A::ReceiveTag), Word::ReceiveTag),
        (has_bytes, Word::Bytes),
        // In place of what is sent it is not recorded.
        (has(A::ReceiveCount) && !has(A::InPlace), Word::ReceiveBytes),
        (has(A::Communicator), Word::Communicator),
        (has(A::Color), Word::Color),
        (has(A::Key), Word::Key),
        (has(A::NewCommunicator) || has(A::DuplicateCommunicator) || has(A::Members), Word::NewCommunicator),
        (has(A::Part), Word::Part),
        (has(A::Flag), Word::Flag),
        (has(A::Status), Word::Received),
        (has(A::Request) || has(A::PersistentRequest), Word::Request),
        (has(A::Message), Word::Message),
        (has(A::ReceivedMessage), Word::ReceivedMessage),
        (has(A::Sides), Word::Grid),
    ];
    words.into_iter().filter(|(is_there, _)| *is_there).map(|(_, word)| word).collect()
}
