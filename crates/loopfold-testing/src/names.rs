//! Which printed events a word stands for, by looking at the text alone, as `grep` does.
//!
//! Each procedure tries every way to match, recursively. Names here have no blanks, fields no
//! blanks in their values, so that a printed event divides at blanks.

/// Whether a glob fits a whole text.
pub fn glob_fits(glob: &[char], text: &[char]) -> bool {
    match (glob, text) {
        ([], text) => text.is_empty(),
        (['*', rest @ ..], text) => (0..=text.len()).any(|taken| glob_fits(rest, &text[taken..])),
        (['?', rest @ ..], [_, text @ ..]) => glob_fits(rest, text),
        (['[', rest @ ..], [first, text @ ..]) => {
            let (outside, inner) = match rest {
                ['!', inner @ ..] => (true, inner),
                inner => (false, inner),
            };
            // A bracket that comes first is one of the letters.
            let end = inner.iter().skip(1).position(|&c| c == ']').map(|at| at + 1);
            match end {
                Some(end) => is_in(&inner[..end], *first) != outside && glob_fits(&inner[end + 1..], text),
                None => *first == '[' && glob_fits(rest, text),
            }
        }
        ([one, rest @ ..], [first, text @ ..]) => one == first && glob_fits(rest, text),
        (_, []) => false,
    }
}

/// Whether a letter is one of a bracket, where `a-z` is a range.
fn is_in(set: &[char], letter: char) -> bool {
    match set {
        [] => false,
        [first, '-', last, rest @ ..] => (*first <= letter && letter <= *last) || is_in(rest, letter),
        [first, rest @ ..] => *first == letter || is_in(rest, letter),
    }
}

/// Whether a regular expression of letters, `.`, `*` behind one of them, `|`, `^` and `$` matches
/// somewhere in a text.
pub fn expression_matches(expression: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    expression.split('|').any(|part| {
        let part: Vec<char> = part.chars().collect();
        (0..=text.len()).any(|start| matches_at(&part, &text, start))
    })
}

fn matches_at(expression: &[char], text: &[char], at: usize) -> bool {
    let is = |wanted: char, letter: char| wanted == '.' || wanted == letter;
    match expression {
        [] => true,
        ['^', rest @ ..] => at == 0 && matches_at(rest, text, at),
        ['$', rest @ ..] => at == text.len() && matches_at(rest, text, at),
        [wanted, '*', rest @ ..] => {
            let most = text[at..].iter().take_while(|&&letter| is(*wanted, letter)).count();
            (0..=most).any(|taken| matches_at(rest, text, at + taken))
        }
        [wanted, rest @ ..] => {
            text.get(at).is_some_and(|&letter| is(*wanted, letter)) && matches_at(rest, text, at + 1)
        }
    }
}

/// Whether a word stands for an event that is printed so. `all` are all events there are: if one
/// of them is called as the word is written, the word is no pattern.
pub fn stands_for(word: &str, label: &str, all: &[String]) -> bool {
    let is_called = |label: &str| label == word || name_of(label) == word;
    if all.iter().any(|label| is_called(label)) {
        return is_called(label);
    }
    if let Some(expression) = word.strip_prefix('/').and_then(|word| word.strip_suffix('/')) {
        return expression_matches(expression, label);
    }
    let fits = |glob: &str, text: &str| {
        let characters = |text: &str| text.chars().collect::<Vec<char>>();
        glob == text || glob_fits(&characters(glob), &characters(text))
    };
    let has_glob = word.contains(['*', '?', '[']);
    if has_glob && (fits(word, label) || fits(word, name_of(label))) {
        return true;
    }
    let is_field = |part: &&str| part.find('=').is_some_and(|at| at > 0);
    let (fields, names): (Vec<&str>, Vec<&str>) = word.split(' ').partition(is_field);
    let has = |field: &&str| {
        let (key, value) = field.split_once('=').unwrap_or_default();
        label
            .split(' ')
            .skip(1)
            .filter_map(|part| part.split_once('='))
            .any(|(other, found)| other == key && fits(value, found))
    };
    !fields.is_empty() && fields.iter().all(has) && names.iter().all(|name| fits(name, name_of(label)))
}

/// An event without its fields.
fn name_of(label: &str) -> &str {
    label.split(' ').next().unwrap_or_default()
}
