//! The rules as text, which people can read and edit and which can be read back.
//!
//! ```text
//! loopfold grammar 1
//! E3 = send 'MPI_Send' peer=3
//! R1 -> 'compute' E3
//! R2 -> 'init' R1^249
//! stream 'rank 0' -> R2
//!     folder 'outermost'
//!     note 'format' 'lines'
//! end
//! ```
//!
//! The text holds all of a fold except the times of events. Reading it gives the same fold in
//! [canonical form](crate::Fold::canonical). `docs/grammar.md` specifies the format.
//!
//! Writing and reading are one pass over the text: 50 to 100 ns an item each, and memory for
//! the rules, one line, and 60 bytes for the name of each rule. A file is not trusted: memory
//! grows with its content and not with the sizes it claims, a rule refers only to rules above
//! it, so there are no cycles, and lengths are checked in 64 bits.

mod quote;
mod read;
mod tokens;
mod write;

pub use read::{read, read_leniently};
pub use write::write;

/// How the first line begins, before the version.
const MAGIC: &str = "loopfold grammar ";
/// The version that this program writes, and the only one that it reads.
const VERSION: &str = "1";
/// The last line, without which a file was cut.
const END: &str = "end";

/// Roles and the words for them; [`Role::Plain`](crate::trace::Role::Plain) has none.
const ROLES: [(crate::trace::Role, &str); 6] = {
    use crate::trace::Role;
    [
        (Role::Enter, "enter"),
        (Role::Leave, "leave"),
        (Role::Block, "block"),
        (Role::Send, "send"),
        (Role::Receive, "receive"),
        (Role::Collective, "collective"),
    ]
};

/// True when a text that begins like this is a grammar, of whatever version. Its first
/// 17 bytes are enough.
pub fn looks_like(head: &[u8]) -> bool {
    head.starts_with(MAGIC.as_bytes())
}

/// Whether a text can stand without quotes where a name is expected: a letter or `_`,
/// then letters, digits and `_`.
fn is_word(text: &[u8]) -> bool {
    text.first().is_some_and(|&first| begins_word(first)) && text.iter().all(|&byte| continues_word(byte))
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
