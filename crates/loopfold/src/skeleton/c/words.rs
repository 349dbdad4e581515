//! The words of a recording for which the C program has a constant. What has another one in place of a
//! number is not replayed as something else: there is no skeleton of it.

use super::super::farm::{ANY, ANYONE, SENDER};
use super::super::program::{Node, Program};
use crate::emit::Terminal;
use crate::questions::logical::{Expression, LogicalEvent, Token};
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

/// Fields whose values are numbers, or one of these words.
const NUMBERS: [&str; 12] =
    ["dest", "src", "from", "root", "tag", "recvtag", "bytes", "recvbytes", "n", "done", "color", "key"];
/// In place of a rank or a tag; the last two are roots of operations between groups.
const WORDS: [&[u8]; 6] = [Token::NONE, ANY, ANYONE, SENDER, b"self", b"group"];

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
        let is_known = |token: &Token| match (field.key.as_str(), token) {
            ("op", token) => operation(&token.to_string()).is_some(),
            ("dims" | "periods", token) => numbers(&token.to_string()).is_some(),
            (key, Token::Word(word)) if NUMBERS.contains(&key) => WORDS.contains(&&**word),
            _ => true,
        };
        let unknown = field.values.iter().find_map(|value| first_token(value, &|token| !is_known(token)));
        if let Some(token) = unknown {
            let shown: String = format!("{}={token}", field.key).chars().take(MOST_SHOWN).collect();
            let name = event.text().unwrap_or_default();
            let name: String = name.chars().take(MOST_SHOWN).collect();
            return Err(Error::invalid(format_args!(
                "{} has {}, which MPI does not have",
                Terminal::of(&name),
                Terminal::of(&shown)
            )));
        }
    }
    Ok(())
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
