//! What events are called on a terminal.

use loopfold::trace::Alphabet;
use loopfold::{Fold, Symbol};

/// The labels of the events of a fold.
pub(crate) struct Labels<'a> {
    alphabet: &'a Alphabet,
    hex: bool,
}

impl<'a> Labels<'a> {
    /// Integers in hexadecimal if `hex`.
    pub(crate) fn new(fold: &'a Fold, hex: bool) -> Self {
        Self { alphabet: fold.alphabet(), hex }
    }

    /// The label of an event; control characters and bytes that are not text are escaped.
    pub(crate) fn of(&self, symbol: Symbol) -> String {
        let meaning = self.alphabet.meaning(symbol);
        let label = if self.hex { format!("{meaning:#}") } else { meaning.to_string() };
        match label.trim() {
            "" => "␤".to_string(),
            _ => label,
        }
    }
}

/// Text that cannot drive a terminal: messages may quote what an input says.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |character: char| !character.is_control() || character == '\n';
    text.chars()
        .map(
            |character| {
                if harmless(character) {
                    character.to_string()
                } else {
                    character.escape_default().to_string()
                }
            },
        )
        .collect()
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
