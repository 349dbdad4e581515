//! Fits an expression to the values that processes have: the first in an order of likely ones
//! that gives each of them its value, else cases.
//!
//! Cases are found greedily: of all simple expressions through one value, the one that most
//! values fit, then the same for the rest; what is left after a few is listed by rank. Each
//! attempt is O(values), and there is a fixed number of attempts.

use super::expression::{Expression, Token, transposed};
use super::guard::{Guard, Term};
use super::place::{At, Place};
use hashbrown::HashMap;

/// What a value means, which says the expressions that are likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// A rank of the communicator.
    Peer,
    /// Any number or word.
    Quantity,
}

/// A value, and the process that has it.
#[derive(Clone, Debug)]
pub(super) struct Known<'a> {
    pub(super) at: At<'a>,
    pub(super) token: Token,
}

/// An expression that gives every process its value.
pub(super) fn fit(known: &[Known<'_>], meant: Meant) -> Expression {
    let Some(first) = known.first() else { return Expression::number(0) };
    if known.iter().all(|one| one.token == first.token) {
        return Expression::Same(first.token.clone());
    }
    let found = likely(known, meant).into_iter().find(|expression| fits(expression, known));
    found.unwrap_or_else(|| cases(known, meant))
}

/// An expression that gives every process its number.
pub(super) fn fit_numbers(at: &[At<'_>], numbers: impl IntoIterator<Item = i64>) -> Expression {
    let known: Vec<Known<'_>> =
        at.iter().zip(numbers).map(|(at, number)| Known { at: *at, token: Token::Number(number) }).collect();
    fit(&known, Meant::Quantity)
}

fn fits(expression: &Expression, known: &[Known<'_>]) -> bool {
    known.iter().all(|one| expression.value(one.at) == one.token)
}

/// The expressions of likely kinds that the first values allow, the likeliest first.
fn likely(known: &[Known<'_>], meant: Meant) -> Vec<Expression> {
    let number = known.iter().find_map(|one| match one.token {
        Token::Number(number) => Some((number, one.at)),
        Token::Word(_) => None,
    });
    let Some((value, at)) = number else { return Vec::new() };
    match meant {
        Meant::Peer => likely_peers(value, at),
        Meant::Quantity => {
            let mut all = likely_quantities(known, value, at);
            all.retain(|expression| expression.value(at) == Token::Number(value));
            all
        }
    }
}

fn likely_peers(value: i64, at: At<'_>) -> Vec<Expression> {
    let place = at.comm;
    // No rank is as far away as this.
    let Some(distance) = value.checked_sub(place.rank) else { return Vec::new() };
    let ring = |distance: i64| {
        let up = distance.rem_euclid(place.size.max(1));
        if 2 * up <= place.size { up } else { up - place.size }
    };
    let step = step_to(place, value).map(Expression::Step);
    let is_plane = place.dimensions() > 1;
    let mut all: Vec<Expression> = step.clone().filter(|_| is_plane).into_iter().collect();
    all.extend([
        Expression::Offset(distance),
        Expression::Line(distance),
        Expression::Ring(ring(distance)),
        Expression::Xor(value ^ place.rank),
    ]);
    all.extend(transposed(place.rank, place.size).map(|_| Expression::Transposed));
    all.extend(step);
    all
}

/// The steps to a rank in the grid.
fn step_to(place: &Place, rank: i64) -> Option<Vec<i64>> {
    let grid = place.grid.as_ref()?;
    let (own, rank) = (u32::try_from(place.rank).ok()?, u32::try_from(rank).ok()?);
    let size = grid.size()?;
    (own < size && rank < size).then(|| grid.way(own, rank))
}

fn likely_quantities(known: &[Known<'_>], value: i64, at: At<'_>) -> Vec<Expression> {
    let size = at.world.size;
    let mut terms = vec![Term::Rank];
    terms.extend((0..at.world.dimensions()).map(Term::Coordinate));
    let sides = (0..at.world.dimensions()).map(|dimension| at.world.side(dimension));
    let mut divisors: Vec<i64> = sides.chain(2..=8).chain([16, 32, 64, 128, 256]).collect();
    divisors.push((size.max(0) as u64).isqrt() as i64);
    divisors.retain(|divisor| (2..size).contains(divisor));
    divisors.dedup();
    terms.extend(divisors.iter().map(|&divisor| Term::Remainder(divisor)));
    let linear = |&term: &Term| line_through(known, term, value, at);
    let mut all: Vec<Expression> = terms.iter().filter_map(linear).collect();
    all.extend(divisors.into_iter().map(Expression::Quotient));
    all
}

/// The line through the first value and another one at which the term differs.
fn line_through(known: &[Known<'_>], term: Term, value: i64, at: At<'_>) -> Option<Expression> {
    let own = term.value(at.world);
    let other = known.iter().find(|one| term.value(one.at.world) != own)?;
    let Token::Number(there) = other.token else { return None };
    let (rise, run) = (there.checked_sub(value)?, term.value(other.at.world) - own);
    let factor = (rise.checked_rem(run)? == 0 && rise != 0).then(|| rise / run)?;
    let offset = value.checked_sub(factor.checked_mul(own)?)?;
    Some(Expression::Linear { term, factor, offset })
}

/// Cases at most, before what is left is listed by rank.
const MOST_CASES: usize = 6;

fn cases(known: &[Known<'_>], meant: Meant) -> Expression {
    let mut left: Vec<&Known<'_>> = known.iter().collect();
    let mut cases: Vec<(Guard, Expression)> = Vec::new();
    // The value of most comes last, so that the guards are those of the others.
    let otherwise = commonest(&left, meant);
    left.retain(|one| otherwise.value(one.at) != one.token);
    while !left.is_empty() && cases.len() < MOST_CASES {
        let expression = commonest(&left, meant);
        let (fitting, rest): (Vec<&Known<'_>>, Vec<&Known<'_>>) =
            left.into_iter().partition(|one| expression.value(one.at) == one.token);
        cases.push((guard_of(known, &fitting), expression));
        left = rest;
    }
    let mut listed: Vec<(Token, Vec<&Known<'_>>)> = Vec::new();
    let mut places: HashMap<Token, usize> = HashMap::new();
    for one in left {
        let place = *places.entry(one.token.clone()).or_insert_with(|| {
            listed.push((one.token.clone(), Vec::new()));
            listed.len() - 1
        });
        listed[place].1.push(one);
    }
    for (token, those) in listed {
        let mut ranks: Vec<i64> = those.iter().map(|one| one.at.world.rank).collect();
        ranks.sort_unstable();
        cases.push((Guard::Ranks(super::guard::ranges(&ranks)), Expression::Same(token)));
    }
    Expression::Cases(cases, Box::new(otherwise))
}

/// The guard of some of all.
fn guard_of(known: &[Known<'_>], fitting: &[&Known<'_>]) -> Guard {
    let places: Vec<&Place> = known.iter().map(|one| one.at.world).collect();
    let ranks: std::collections::BTreeSet<i64> = fitting.iter().map(|one| one.at.world.rank).collect();
    let chosen: Vec<bool> = places.iter().map(|place| ranks.contains(&place.rank)).collect();
    Guard::fit(&places, &chosen)
}

/// The simple expression through one of the values, or of numbers through two neighbours, that
/// most of them fit.
fn commonest(known: &[&Known<'_>], meant: Meant) -> Expression {
    let mut lines: HashMap<Expression, usize> = HashMap::new();
    for two in known.windows(2).filter(|_| meant == Meant::Quantity) {
        if let Some(line) = line_of(two[0], two[1]) {
            *lines.entry(line).or_insert(0) += 1;
        }
    }
    let same = commonest_through_one(known, meant);
    let fitting =
        |expression: &Expression| known.iter().filter(|one| expression.value(one.at) == one.token).count();
    let line = lines
        .into_iter()
        .filter(|&(_, count)| count > 1)
        .max_by_key(|(line, count)| (*count, std::cmp::Reverse(line.to_string())));
    match line {
        Some((line, _)) if fitting(&line) > fitting(&same) => line,
        _ => same,
    }
}

/// The line through two numbers, by rank.
fn line_of(one: &Known<'_>, other: &Known<'_>) -> Option<Expression> {
    let (Token::Number(here), Token::Number(there)) = (&one.token, &other.token) else { return None };
    let (rise, run) = (there.checked_sub(*here)?, other.at.world.rank - one.at.world.rank);
    let factor = (rise != 0 && rise.checked_rem(run)? == 0).then(|| rise / run)?;
    let offset = here.checked_sub(factor.checked_mul(one.at.world.rank)?)?;
    Some(Expression::Linear { term: Term::Rank, factor, offset })
}

fn commonest_through_one(known: &[&Known<'_>], meant: Meant) -> Expression {
    let mut counts: HashMap<Expression, usize> = HashMap::new();
    let mut best: Option<(usize, usize, Expression)> = None;
    for one in known {
        for (preference, expression) in through(one, meant).into_iter().enumerate() {
            let count = counts.entry(expression.clone()).or_insert(0);
            *count += 1;
            let is_better = best
                .as_ref()
                .is_none_or(|(most, liked, _)| *count > *most || *count == *most && preference < *liked);
            if is_better {
                best = Some((*count, preference, expression));
            }
        }
    }
    best.map_or_else(|| Expression::number(0), |(_, _, expression)| expression)
}

/// The simple expressions through a value, the preferred first.
fn through(one: &Known<'_>, meant: Meant) -> Vec<Expression> {
    let same = Expression::Same(one.token.clone());
    let Token::Number(value) = one.token else { return vec![same] };
    if meant == Meant::Quantity {
        return vec![same];
    }
    let place = one.at.comm;
    let Some(distance) = value.checked_sub(place.rank) else { return vec![same] };
    let mut all = vec![same, Expression::Offset(distance)];
    all.extend(step_to(place, value).filter(|steps| steps.len() > 1).map(Expression::Step));
    let up = distance.rem_euclid(place.size.max(1));
    all.push(Expression::Ring(if 2 * up <= place.size { up } else { up - place.size }));
    all.push(Expression::Xor(value ^ place.rank));
    all
}
