//! Folds as text.

use loopfold::Fold;
use loopfold::emit::is_harmless;
use loopfold::export::{dot, grammar};

/// The graph of a fold.
pub fn graph(fold: &Fold) -> String {
    let mut text = Vec::new();
    dot::write(fold, 1000, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The grammar of a fold.
pub fn text(fold: &Fold) -> String {
    let mut text = Vec::new();
    grammar::write(fold, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Reading back what was written gives the same fold, and writing that the same text.
#[track_caller]
pub fn check_round_trip(fold: &Fold) -> String {
    let text = text(fold);
    let again = grammar::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again, fold.canonical(), "{text}");
    assert_eq!(self::text(&again), text);
    assert!(grammar::looks_like(text.as_bytes()));
    assert!(text.chars().all(|character| is_harmless(character) || character == '\n'), "{text}");
    text
}
