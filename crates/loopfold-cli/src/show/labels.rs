//! The labels of events on a terminal.

use super::names::shorten_names;
use loopfold::emit::Terminal;
use loopfold::trace::Alphabet;
use loopfold::{Fold, Symbol};
use std::collections::HashMap;

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

/// The names of the events of an output, shortened together.
pub(crate) struct Names(HashMap<Symbol, String>);

impl Names {
    /// Of at most `room` characters; whole if there is no limit.
    pub(crate) fn of(mut events: Vec<Symbol>, labels: &Labels<'_>, room: Option<usize>) -> Self {
        events.sort_unstable();
        events.dedup();
        let whole: Vec<String> = events.iter().map(|&event| labels.of(event)).collect();
        let names = match room {
            Some(room) => shorten_names(&whole, room),
            None => whole,
        };
        Self(events.into_iter().zip(names).collect())
    }

    /// The name of an event.
    pub(crate) fn of_event(&self, event: Symbol) -> &str {
        self.0.get(&event).map_or("", String::as_str)
    }
}

/// The form of text for a terminal, to be shortened and aligned. Messages, too, may quote what an input says.
pub(crate) fn plain(text: impl AsRef<[u8]>) -> String {
    Terminal::of(&text).to_string()
}

/// At most `width` characters, what is in the middle replaced by `…`: long names often have the same beginning,
/// and differ at the end.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let width = width.max(8);
    let length = text.chars().count();
    if length <= width {
        return text.to_string();
    }
    let last = (width - 1) * 2 / 5;
    let first = text.chars().take(width - 1 - last);
    first.chain(std::iter::once('…')).chain(text.chars().skip(length - last)).collect()
}

/// Parts of a remark, as many on a line of `room` characters as fit.
pub(crate) fn wrapped(parts: &[String], room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + part.chars().count() <= room => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => lines.push(shorten(part, room)),
        }
    }
    lines
}

/// A sentence on lines of at most `room` characters, broken after commas and colons.
pub(crate) fn filled(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive([',', ':']) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.chars().count() <= room => line.push_str(part),
            Some(_) => lines.push(format!("  {}", part.trim_start())),
            None => lines.push(part.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_names_look_different() {
        assert_eq!(shorten("short", 8), "short");
        assert_eq!(shorten("kernel<float, 128, 64>", 12), "kernel<… 64>");
        assert_eq!(shorten("kernel<float, 128, 32>", 12), "kernel<… 32>");
        assert_eq!(shorten("ééééééééééééééé", 8).chars().count(), 8);
    }

    #[test]
    fn remarks_are_wrapped() {
        let parts = ["median 1 ms", "0.5 to 2", "slowest #3"].map(str::to_string);
        assert_eq!(wrapped(&parts, 25), ["median 1 ms · 0.5 to 2", "slowest #3"]);
    }
}
