//! The labels of events on a terminal.

use loopfold::trace::{Alphabet, is_harmless};
use loopfold::{Fold, Symbol};

/// The labels of the events of a fold.
pub(crate) struct Labels<'a> {
    alphabet: &'a Alphabet,
    hex: bool,
}

impl<'a> Labels<'a> {
    /// Integers in hexadecimal if `hex`.
    pub(crate) fn new(fold: &'a Fold, hex: bool) -> Self {
        Self::of_alphabet(fold.alphabet(), hex)
    }

    /// The same for another alphabet than that of a fold.
    pub(crate) fn of_alphabet(alphabet: &'a Alphabet, hex: bool) -> Self {
        Self { alphabet, hex }
    }

    /// The label of an event; control characters and bytes that are not text are escaped.
    pub(crate) fn of(&self, symbol: Symbol) -> String {
        let meaning = self.alphabet.meaning(symbol);
        let label = if self.hex { format!("{meaning:#}") } else { meaning.to_string() };
        // Lines that end as on Windows: an escape at the end of each would only be clutter.
        let label = label.strip_suffix("\\r").unwrap_or(&label);
        if label.trim().is_empty() { "␤".to_string() } else { label.to_string() }
    }
}

/// Text that cannot drive a terminal: messages and titles may quote what an input says.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmless(character) {
            plain.push(character);
        } else {
            plain.extend(character.escape_default());
        }
    }
    plain
}

/// At most `width` characters, the rest replaced by `…`.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let width = width.max(8);
    if text.chars().count() <= width {
        return text.to_string();
    }
    let mut short: String = text.chars().take(width - 1).collect();
    short.push('…');
    short
}
