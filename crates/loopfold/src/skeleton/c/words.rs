//! The words of a recording for which the C program has a constant. What has another one in place of a
//! number is not replayed as something else: there is no skeleton of it.

use super::super::farm::{ANY, ANYONE, SENDER};
use super::super::program::{Node, Program};
use crate::emit::Terminal;
use crate::questions::logical::{Expression, LogicalEvent, Token};
use crate::trace::Role;
use crate::{Error, Result};

/// Operations of reductions, as recorded, and their constants. What the program defined is a sum.
const OPERATIONS: [(&str, &str); 15] = [
    ("user", "MPI_SUM"),
    ("SUM", "MPI_SUM"),
    ("MAX", "MPI_MAX"),
    ("MIN", "MPI_MIN"),
    ("PROD", "MPI_PROD"),
    ("LAND", "MPI_LAND"),
    ("BAND", "MPI_BAND"),
    ("LOR", "MPI_LOR"),
    ("BOR", "MPI_BOR"),
    ("LXOR", "MPI_LXOR"),
    ("BXOR", "MPI_BXOR"),
    ("MINLOC", "MPI_MINLOC"),
    ("MAXLOC", "MPI_MAXLOC"),
    ("REPLACE", "MPI_REPLACE"),
    ("NO_OP", "MPI_NO_OP"),
];

/// Operations that no reduction has, but only what is put into the memory of others.
const ONE_SIDED: [&str; 2] = ["REPLACE", "NO_OP"];

/// Fields whose values are numbers, or one of the words that [`is_known`] has for them.
const NUMBERS: [&str; 12] =
    ["dest", "src", "from", "root", "tag", "recvtag", "bytes", "recvbytes", "n", "done", "color", "key"];

/// What is wrong with a word.
pub(super) const UNKNOWN: &str = "which MPI does not have";

/// Characters of a word that an error shows.
const MOST_SHOWN: usize = 60;

/// The constant of an operation.
pub(super) fn operation(word: &str) -> Option<&'static str> {
    OPERATIONS.iter().find(|(known, _)| *known == word).map(|(_, constant)| *constant)
}

/// The numbers of `4x4x2`.
pub(super) fn numbers(text: &str) -> Option<Vec<i32>> {
    text.split('x').map(|number| number.parse().ok().filter(|&number| number >= 0)).collect()
}

/// The values of a field as `4x4x2`, whichever way they are listed.
pub(super) fn list(values: &[Expression]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// The error for a call that is not replayed, with what it has and why that is wrong.
pub(super) fn refused(name: &str, what: &str, why: &str) -> Error {
    let shown = |text: &str| text.chars().take(MOST_SHOWN).collect::<String>();
    let (name, what) = (shown(name), shown(what));
    Error::invalid(format_args!("{} has {}, {why}", Terminal::of(&name), Terminal::of(&what)))
}

/// Fails if a call has a word in place of a number, or an operation, that is not known.
pub(super) fn check(program: &Program) -> Result<()> {
    let calls = program.nodes.iter().filter_map(|node| match node {
        Node::Call(event) => Some(event),
        _ => None,
    });
    calls.filter(|event| event.text().is_some_and(|name| name.starts_with("MPI_"))).try_for_each(check_call)
}

fn check_call(event: &LogicalEvent) -> Result<()> {
    for field in &event.fields {
        let is_wrong = |token: &Token| !is_known(event, &field.key, token);
        let unknown = field.values.iter().find_map(|value| first_token(value, &is_wrong));
        if let Some(token) = unknown {
            let what = format!("{}={token}", field.key);
            return Err(refused(event.text().unwrap_or_default(), &what, UNKNOWN));
        }
    }
    Ok(())
}

/// Whether a field of a call may have this value, as far as words go.
pub(super) fn is_known(event: &LogicalEvent, key: &str, token: &Token) -> bool {
    match (key, token) {
        ("op", token) => {
            let word = token.to_string();
            let is_reduced = event.role == Role::Collective && ONE_SIDED.contains(&word.as_str());
            operation(&word).is_some() && !is_reduced
        }
        ("dims" | "periods", token) => numbers(&token.to_string()).is_some(),
        (key, Token::Word(word)) if NUMBERS.contains(&key) => words_of(event, key).contains(&&**word),
        _ => true,
    }
}

/// The words that stand for a number of this field.
fn words_of(event: &LogicalEvent, key: &str) -> &'static [&'static [u8]] {
    // The tag of a call that sends is what it sends.
    let name = event.text().unwrap_or_default();
    let is_sent = key == "tag" && (event.field("dest").is_some() || name.contains("end_init"));
    match key {
        "dest" => &[Token::NONE, SENDER],
        "src" | "from" => &[Token::NONE, ANY, ANYONE, SENDER],
        // Of operations between groups, which are not replayed.
        "root" => &[Token::NONE, b"self", b"group"],
        "tag" | "recvtag" if !is_sent => &[ANY, SENDER],
        "done" => &[Token::NONE],
        _ => &[],
    }
}

/// Whether a value is a word for some process.
pub(super) fn has_word(expression: &Expression) -> bool {
    first_token(expression, &|token| matches!(token, Token::Word(_))).is_some()
}

/// The first of the numbers and words of an expression for which this holds.
fn first_token<'a>(expression: &'a Expression, holds: &dyn Fn(&Token) -> bool) -> Option<&'a Token> {
    match expression {
        Expression::Same(token) => Some(token).filter(|token| holds(token)),
        Expression::Cases(cases, otherwise) => {
            let mut all = cases.iter().map(|(_, value)| value).chain([&**otherwise]);
            all.find_map(|value| first_token(value, holds))
        }
        _ => None,
    }
}
