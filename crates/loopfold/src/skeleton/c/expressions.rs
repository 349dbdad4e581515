//! Expressions and guards as C.

use super::super::farm::{ANY, ANYONE, SENDER};
use crate::emit::c::{Code, Identifier};
use crate::emit::code;
use crate::questions::logical::{Bound, Condition, Expression, Guard, Relation, Term, Token};

/// What the C program calls a communicator.
pub(super) fn comm_name(comm: &str) -> Code {
    match comm {
        "0" => code!("world"),
        "1" => code!("self"),
        _ => code!("{}", Identifier::new("comm", comm)),
    }
}

/// The status of the last message from anyone, in the C program.
pub(super) const LAST: &str = "last";

/// A number as C. Of what no `int` holds, such as the bytes of a message of 3 GiB, the nearest is written.
fn number(number: i64) -> i64 {
    number.clamp(i32::MIN.into(), i32::MAX.into())
}

/// What is written for a word in place of a rank or a tag; `Words` has checked that it is one of these.
fn word(token: &Token, is_tag: bool) -> Code {
    match token {
        Token::Number(value) => code!("{}", number(*value)),
        word if word.is_word(ANY) && is_tag => code!("MPI_ANY_TAG"),
        word if word.is_word(ANY) || word.is_word(ANYONE) => code!("MPI_ANY_SOURCE"),
        word if word.is_word(SENDER) => code!("{}.{}", LAST, if is_tag { "MPI_TAG" } else { "MPI_SOURCE" }),
        Token::Word(_) => code!("MPI_PROC_NULL"),
    }
}

/// An expression as C, in a program for so many processes; ranks are those of a communicator.
pub(super) fn expression(expression: &Expression, comm: &str, ranks: usize) -> Code {
    Writer { comm: comm_name(comm), ranks, is_tag: false }.write(expression)
}

/// The same for tags.
pub(super) fn tag(expression: &Expression, comm: &str, ranks: usize) -> Code {
    Writer { comm: comm_name(comm), ranks, is_tag: true }.write(expression)
}

fn added(number: i64) -> Code {
    match number {
        0 => Code::new(),
        1.. => code!(" + {}", number),
        _ => code!(" - {}", number.unsigned_abs()),
    }
}

/// Writes expressions of one communicator.
struct Writer {
    comm: Code,
    ranks: usize,
    is_tag: bool,
}

impl Writer {
    fn write(&self, expression: &Expression) -> Code {
        let comm = &self.comm;
        match expression {
            Expression::Same(token) => word(token, self.is_tag),
            Expression::Offset(distance) => code!("{}.rank{}", comm, added(*distance)),
            Expression::Ring(distance) => code!("ring(&{}, {})", comm, number(*distance)),
            Expression::Line(distance) => code!("line(&{}, {})", comm, number(*distance)),
            Expression::Step(steps) => {
                let steps = Code::joined(steps.iter().map(|&step| number(step)), ", ");
                code!("step(&{}, (const int[]){{{}}})", comm, steps)
            }
            Expression::Xor(bits) => code!("({}.rank ^ {})", comm, bits),
            Expression::Transposed => code!("transposed(&{})", comm),
            Expression::Linear { term, factor, offset } => self.linear(*term, *factor, *offset),
            Expression::Quotient(divisor) => code!("rank / {}", divisor),
            Expression::Cases(cases, otherwise) => {
                let case = |(guard, value): &(Guard, Expression)| {
                    code!("{} ? {} : ", in_brackets(self::guard(guard)), self.write(value))
                };
                let cases = Code::joined(cases.iter().map(case), "");
                code!("({}{})", cases, self.write(otherwise))
            }
        }
    }

    /// A term, which is less than there are processes, times a factor, plus a number. What is between
    /// may be more than an `int` holds where the value is not.
    fn linear(&self, term: Term, factor: i64, offset: i64) -> Code {
        let ranks = u64::try_from(self.ranks).unwrap_or(u64::MAX);
        let most = factor.unsigned_abs().saturating_mul(ranks).saturating_add(offset.unsigned_abs());
        let long = if most > i32::MAX.unsigned_abs().into() { "L" } else { "" };
        match factor {
            1 => code!("{}{}", self::term(term), added(offset)),
            -1 => code!("{} - {}", offset, self::term(term)),
            _ => code!("{}{} * {}{}", factor, long, self::term(term), added(offset)),
        }
    }
}

fn in_brackets(code: Code) -> Code {
    let has_operators = code.as_str().contains("||") || code.as_str().contains("&&");
    if has_operators { code!("({})", code) } else { code }
}

fn term(term: Term) -> Code {
    match term {
        Term::Rank => code!("rank"),
        Term::Coordinate(dimension) => code!("coordinate(&world, {})", dimension),
        Term::Remainder(divisor) => code!("(rank % {})", divisor),
    }
}

fn extent(term: Term) -> Code {
    match term {
        Term::Rank => code!("size"),
        Term::Coordinate(dimension) => code!("world.sides[{}]", dimension),
        Term::Remainder(divisor) => code!("{}", divisor),
    }
}

fn condition(Condition { term: of, relation, bound }: &Condition) -> Code {
    let bound = match bound {
        Bound::Start(number) => code!("{}", number),
        Bound::End(0) => extent(*of),
        Bound::End(back) => code!("{} - {}", extent(*of), back),
    };
    let term = self::term(*of);
    match relation {
        Relation::Equal => code!("{} == {}", term, bound),
        Relation::Different => code!("{} != {}", term, bound),
        Relation::Less => code!("{} < {}", term, bound),
        Relation::AtLeast => code!("{} >= {}", term, bound),
        Relation::Edge => code!("({} == 0 || {} == {} - 1)", term, term, extent(*of)),
        Relation::Inner => code!("({} > 0 && {} < {} - 1)", term, term, extent(*of)),
    }
}

/// A guard as C.
pub(super) fn guard(guard: &Guard) -> Code {
    let all = |conditions: &[Condition]| Code::joined(conditions.iter().map(condition), " && ");
    match guard {
        Guard::All(conditions) if conditions.is_empty() => code!("1"),
        Guard::All(conditions) => all(conditions),
        Guard::NotAll(conditions) => code!("!({})", all(conditions)),
        Guard::Ranks(ranges) => {
            let range = |&(first, last): &(i64, i64)| match last - first {
                0 => code!("rank == {}", first),
                _ => code!("(rank >= {} && rank <= {})", first, last),
            };
            Code::joined(ranges.iter().map(range), " || ")
        }
    }
}
