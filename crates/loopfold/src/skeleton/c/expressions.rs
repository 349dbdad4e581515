//! Expressions and guards as C.

use super::super::farm::{ANY, ANYONE, SENDER};
use crate::questions::logical::{Bound, Condition, Expression, Guard, Relation, Term, Token};

/// What the C program calls a communicator.
pub(super) fn comm_name(comm: &str) -> String {
    match comm {
        "0" => "world".to_string(),
        "1" => "self".to_string(),
        _ => {
            let letters =
                comm.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
            format!("comm_{}", letters.collect::<String>())
        }
    }
}

/// The status of the last message from anyone, in the C program.
pub(super) const LAST: &str = "last";

/// What is written for a word in place of a rank or a tag.
fn word(token: &Token, is_tag: bool) -> String {
    match token {
        Token::Number(number) => number.to_string(),
        word if word.is_word(ANY) && is_tag => "MPI_ANY_TAG".to_string(),
        word if word.is_word(ANY) || word.is_word(ANYONE) => "MPI_ANY_SOURCE".to_string(),
        word if word.is_word(SENDER) => {
            format!("{LAST}.{}", if is_tag { "MPI_TAG" } else { "MPI_SOURCE" })
        }
        Token::Word(_) => "MPI_PROC_NULL".to_string(),
    }
}

/// An expression as C; ranks are those of a communicator.
pub(super) fn expression(expression: &Expression, comm: &str) -> String {
    written(expression, &comm_name(comm), false)
}

/// The same for tags.
pub(super) fn tag(expression: &Expression, comm: &str) -> String {
    written(expression, &comm_name(comm), true)
}

fn added(number: i64) -> String {
    match number {
        0 => String::new(),
        1.. => format!(" + {number}"),
        _ => format!(" - {}", number.unsigned_abs()),
    }
}

fn written(expression: &Expression, comm: &str, is_tag: bool) -> String {
    match expression {
        Expression::Same(token) => word(token, is_tag),
        Expression::Offset(distance) => format!("{comm}.rank{}", added(*distance)),
        Expression::Ring(distance) => format!("ring(&{comm}, {distance})"),
        Expression::Line(distance) => format!("line(&{comm}, {distance})"),
        Expression::Step(steps) => {
            let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
            format!("step(&{comm}, (const int[]){{{}}})", steps.join(", "))
        }
        Expression::Xor(bits) => format!("({comm}.rank ^ {bits})"),
        Expression::Transposed => format!("transposed(&{comm})"),
        Expression::Linear { term, factor, offset } => match factor {
            1 => format!("{}{}", self::term(*term), added(*offset)),
            -1 => format!("{offset} - {}", self::term(*term)),
            _ => format!("{factor} * {}{}", self::term(*term), added(*offset)),
        },
        Expression::Quotient(divisor) => format!("rank / {divisor}"),
        Expression::Cases(cases, otherwise) => {
            let case = |(guard, value): &(Guard, Expression)| {
                format!("{} ? {} : ", in_brackets(&self::guard(guard)), written(value, comm, is_tag))
            };
            let cases: String = cases.iter().map(case).collect();
            format!("({cases}{})", written(otherwise, comm, is_tag))
        }
    }
}

fn in_brackets(text: &str) -> String {
    if text.contains("||") || text.contains("&&") { format!("({text})") } else { text.to_string() }
}

fn term(term: Term) -> String {
    match term {
        Term::Rank => "rank".to_string(),
        Term::Coordinate(dimension) => format!("coordinate(&world, {dimension})"),
        Term::Remainder(divisor) => format!("(rank % {divisor})"),
    }
}

fn extent(term: Term) -> String {
    match term {
        Term::Rank => "size".to_string(),
        Term::Coordinate(dimension) => format!("world.sides[{dimension}]"),
        Term::Remainder(divisor) => divisor.to_string(),
    }
}

fn condition(Condition { term: of, relation, bound }: &Condition) -> String {
    let bound = match bound {
        Bound::Start(number) => number.to_string(),
        Bound::End(0) => extent(*of),
        Bound::End(back) => format!("{} - {back}", extent(*of)),
    };
    let term = self::term(*of);
    match relation {
        Relation::Equal => format!("{term} == {bound}"),
        Relation::Different => format!("{term} != {bound}"),
        Relation::Less => format!("{term} < {bound}"),
        Relation::AtLeast => format!("{term} >= {bound}"),
        Relation::Edge => format!("({term} == 0 || {term} == {} - 1)", extent(*of)),
        Relation::Inner => format!("({term} > 0 && {term} < {} - 1)", extent(*of)),
    }
}

/// A guard as C.
pub(super) fn guard(guard: &Guard) -> String {
    let all = |conditions: &[Condition]| conditions.iter().map(condition).collect::<Vec<_>>().join(" && ");
    match guard {
        Guard::All(conditions) if conditions.is_empty() => "1".to_string(),
        Guard::All(conditions) => all(conditions),
        Guard::NotAll(conditions) => format!("!({})", all(conditions)),
        Guard::Ranks(ranges) => {
            let range = |&(first, last): &(i64, i64)| match last - first {
                0 => format!("rank == {first}"),
                _ => format!("(rank >= {first} && rank <= {last})"),
            };
            ranges.iter().map(range).collect::<Vec<_>>().join(" || ")
        }
    }
}
