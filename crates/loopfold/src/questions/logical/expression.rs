//! Values that depend on the process: expressions of its rank, of its place in a grid, or cases.

use super::guard::{Guard, Term, coordinate_name};
use super::place::At;
use std::fmt;

/// The value of an expression for one process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// A number.
    Number(i64),
    /// Text, such as `none` and `any` in place of a rank.
    Word(Box<[u8]>),
}

impl Token {
    /// No process.
    pub const NONE: &'static [u8] = b"none";

    /// A word.
    pub fn word(word: &[u8]) -> Self {
        Token::Word(word.into())
    }

    /// Whether it says that there is no process.
    pub fn is_none(&self) -> bool {
        self.is_word(Token::NONE)
    }

    /// Whether it is this word.
    pub fn is_word(&self, expected: &[u8]) -> bool {
        matches!(self, Token::Word(word) if **word == *expected)
    }
}

/// A value that may depend on the process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// The same for all.
    Same(Token),
    /// The rank in the communicator, plus a distance.
    Offset(i64),
    /// The same modulo the size of the communicator.
    Ring(i64),
    /// The same, and `none` where that is no rank.
    Line(i64),
    /// The rank some steps away in the grid of the communicator, and `none` outside of it.
    Step(Vec<i64>),
    /// The rank in the communicator with some bits reversed.
    Xor(i64),
    /// The rank with row and column exchanged, in a square of ranks.
    Transposed,
    /// A term of the process among all, times a factor, plus a number.
    Linear {
        /// The term.
        term: Term,
        /// Its factor.
        factor: i64,
        /// What is added.
        offset: i64,
    },
    /// The rank among all divided by a number, rounded down.
    Quotient(i64),
    /// The value of the first guard that holds, or else the last one.
    Cases(Vec<(Guard, Expression)>, Box<Expression>),
}

impl Expression {
    /// The same number for all.
    pub fn number(number: i64) -> Self {
        Expression::Same(Token::Number(number))
    }

    /// An expression that gives every one of these processes its number.
    pub fn of_numbers(at: &[At<'_>], numbers: impl IntoIterator<Item = i64>) -> Self {
        super::fit::fit_numbers(at, numbers)
    }

    /// Its value for a process.
    pub fn value(&self, at: At<'_>) -> Token {
        let rank = at.comm.rank;
        let or_none = |rank: Option<i64>| rank.map_or_else(|| Token::word(Token::NONE), Token::Number);
        match self {
            Expression::Same(token) => token.clone(),
            Expression::Offset(distance) => Token::Number(rank.saturating_add(*distance)),
            Expression::Ring(distance) => {
                Token::Number(rank.saturating_add(*distance).rem_euclid(at.comm.size.max(1)))
            }
            Expression::Line(distance) => {
                let peer = rank.saturating_add(*distance);
                or_none(Some(peer).filter(|peer| (0..at.comm.size).contains(peer)))
            }
            Expression::Step(steps) => or_none(at.comm.step(steps)),
            Expression::Xor(bits) => Token::Number(rank ^ bits),
            Expression::Transposed => Token::Number(transposed(rank, at.comm.size).unwrap_or(rank)),
            Expression::Linear { term, factor, offset } => {
                Token::Number(term.value(at.world).saturating_mul(*factor).saturating_add(*offset))
            }
            Expression::Quotient(divisor) => Token::Number(at.world.rank / divisor),
            Expression::Cases(cases, otherwise) => {
                let case = cases.iter().find(|(guard, _)| guard.holds(at.world));
                case.map_or(&**otherwise, |(_, case)| case).value(at)
            }
        }
    }

    /// Its value, if that is a number.
    pub fn integer(&self, at: At<'_>) -> Option<i64> {
        match self.value(at) {
            Token::Number(number) => Some(number),
            Token::Word(_) => None,
        }
    }

    /// The value, if it is the same for all.
    pub fn same(&self) -> Option<&Token> {
        match self {
            Expression::Same(token) => Some(token),
            _ => None,
        }
    }

    /// How many parts it is written with.
    pub fn len(&self) -> usize {
        match self {
            Expression::Cases(cases, otherwise) => {
                let case = |(guard, value): &(Guard, Expression)| guard.len() + value.len();
                cases.iter().map(case).sum::<usize>() + otherwise.len()
            }
            _ => 1,
        }
    }

    /// Always false: it has a value.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether some of it lists values by rank.
    pub fn has_exceptions(&self) -> bool {
        match self {
            Expression::Cases(cases, otherwise) => {
                let case =
                    |(guard, value): &(Guard, Expression)| guard.is_exception() || value.has_exceptions();
                cases.iter().any(case) || otherwise.has_exceptions()
            }
            _ => false,
        }
    }
}

/// The rank with row and column exchanged. Returns `None` if the ranks are no square.
pub(super) fn transposed(rank: i64, size: i64) -> Option<i64> {
    let side = (size.max(0) as u64).isqrt() as i64;
    (side > 0 && side * side == size).then(|| rank % side * side + rank / side)
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(f, "{number}"),
            Token::Word(word) => write!(f, "{}", word.escape_ascii()),
        }
    }
}

/// A number that is added, with its sign.
fn added(number: i64) -> String {
    match number {
        0 => String::new(),
        1.. => format!(" + {number}"),
        _ => format!(" - {}", number.unsigned_abs()),
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Same(token) => write!(f, "{token}"),
            Expression::Offset(distance) => write!(f, "rank{}", added(*distance)),
            Expression::Ring(distance) => write!(f, "(rank{}) % size", added(*distance)),
            Expression::Line(distance) => write!(f, "rank{} or none", added(*distance)),
            Expression::Step(steps) => {
                let coordinate = |(dimension, step): (usize, &i64)| {
                    format!("{}{}", coordinate_name(dimension), added(*step))
                };
                let all: Vec<String> = steps.iter().enumerate().map(coordinate).collect();
                write!(f, "[{}]", all.join(", "))
            }
            Expression::Xor(bits) => write!(f, "rank ^ {bits}"),
            Expression::Transposed => f.write_str("[column, row]"),
            Expression::Linear { term, factor, offset } => {
                let term = match term {
                    Term::Remainder(_) if *factor != 1 || *offset != 0 => format!("({term})"),
                    _ => term.to_string(),
                };
                match factor {
                    1 => write!(f, "{term}{}", added(*offset)),
                    _ => write!(f, "{factor} * {term}{}", added(*offset)),
                }
            }
            Expression::Quotient(divisor) => write!(f, "rank / {divisor}"),
            Expression::Cases(cases, otherwise) => {
                f.write_str("{")?;
                for (guard, value) in cases {
                    write!(f, "{guard}: {value}; ")?;
                }
                write!(f, "else {otherwise}}}")
            }
        }
    }
}
