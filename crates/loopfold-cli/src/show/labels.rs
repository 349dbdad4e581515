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

/// At most `width` characters, the rest replaced by `…`. Names of C++ and Rust with parameters keep
/// the name of the function and both ends of the parameters, so that different ones look different.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let width = width.max(8);
    if text.chars().count() <= width {
        return text.to_string();
    }
    shorten_qualified(text, width).unwrap_or_else(|| {
        let mut short: String = text.chars().take(width - 1).collect();
        short.push('…');
        short
    })
}

/// The fewest characters of parameters that are worth showing.
const FEWEST_OF_PARAMETERS: usize = 7;

/// Returns `None` if it is no name with a namespace and parameters.
fn shorten_qualified(text: &str, width: usize) -> Option<String> {
    let (path, parameters) = text.split_at(text.find(['<', '('])?);
    let name = path.rsplit([':', ' ']).next().filter(|name| !name.is_empty() && path.contains("::"))?;
    let length = |text: &str| text.chars().count();
    let head =
        if length(path) + FEWEST_OF_PARAMETERS <= width { path.to_string() } else { format!("…{name}") };
    match width.checked_sub(length(&head)).filter(|&room| room >= FEWEST_OF_PARAMETERS) {
        Some(room) => Some(head + &shorten_in_the_middle(parameters, room)),
        None => Some(shorten_in_the_middle(&format!("…{name}{parameters}"), width)),
    }
}

fn shorten_in_the_middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_string();
    }
    let tail = (width - 1) / 2;
    let head = text.chars().take(width - 1 - tail).chain(['…']);
    head.chain(text.chars().skip(length - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn names_that_differ_look_different() {
        for (text, width, expected) in [
            ("short", 10, "short"),
            ("a line that is too long", 10, "a line th…"),
            ("sm80_xmma_fprop_implicit_gemm", 20, "sm80_xmma_fprop_imp…"),
            ("void cudnn::detail::nchwToNhwc<float, int>(float*, int)", 30, "…nchwToNhwc<float, i…at*, int)"),
            ("void cudnn::detail::nhwcToNchw<float, int>(float*, int)", 30, "…nhwcToNchw<float, i…at*, int)"),
            ("std::fill<double>(double*, double)", 30, "std::fill<double>(d…*, double)"),
            ("a::very_long_name_of_a_function<int, int>(int)", 20, "…very_long…int>(int)"),
            ("(anonymous namespace)::f(int, int, int)", 20, "(anonymous namespac…"),
        ] {
            let short = shorten(text, width);
            assert!(short.chars().count() <= width, "{short}");
            assert_eq!(short, expected, "{text}");
        }
    }
}
