//! The control flow of random programs, with calls: what benchmarks use when there is no
//! recorded trace at hand.
//!
//! A program has functions of blocks, branches, loops and calls. A function has a
//! few behaviours; each determines its branches, its loops and the behaviour of its callees. Now
//! and then, a callee behaves otherwise. So long stretches occur repeatedly, as they do in real
//! programs, but rarely many times in a row. The program does its work in phases:
//! some functions are needed all the time, some in one phase only, some once.

use crate::Rng;

/// One event of a program's control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// A function is entered.
    Call(u16),
    /// The innermost function is left.
    Return,
    /// A block of the innermost function.
    Block(u16),
}

/// What kind of program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Loops over data: few functions, shallow calls, no recursion.
    Loops,
    /// An interpreter: its evaluation calls itself, a hundred calls deep and more.
    Recursion,
}

/// The control flow of a program of this kind, of about `length` events. The same seed is
/// the same program, which is executed longer for more events. It ends inside of calls.
pub fn control_flow(kind: Kind, length: usize, seed: u64) -> Vec<Token> {
    let program = Program::new(kind, seed);
    let noise = Rng::new(seed ^ 1);
    let mut run =
        Run { program: &program, kind, noise, tokens: Vec::with_capacity(length), length, depth: 0 };
    run.main();
    run.tokens
}

const FUNCTIONS: usize = 60;
/// The functions that each phase begins with.
const PHASES: usize = 5;
/// How many behaviours a function has.
const BEHAVIOURS: u64 = 12;
/// The functions of an interpreter that call each other.
const EVALUATORS: std::ops::Range<usize> = PHASES..PHASES + 3;
/// One in this many evaluations is the innermost.
const EVALUATIONS: usize = 60;
/// No program calls deeper.
const DEEPEST: usize = 400;

impl Kind {
    /// One in this many branches and calls does not go as expected: data decides.
    fn seldom(self) -> usize {
        match self {
            Kind::Loops => 30,
            Kind::Recursion => 200,
        }
    }
}

struct Program {
    functions: Vec<Vec<Statement>>,
}

enum Statement {
    Block(u16),
    Branch(Vec<Statement>, Vec<Statement>),
    /// At most this many times.
    Loop(usize, Vec<Statement>),
    Call(u16),
}

impl Program {
    fn new(kind: Kind, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let functions = (0..FUNCTIONS).map(|function| {
            let mut body = Vec::new();
            let mut blocks = 0;
            statements(&mut rng, &mut body, &mut blocks, callees(kind, function), 3);
            if kind == Kind::Recursion && (1..EVALUATORS.end).contains(&function) {
                let evaluator = rng.between(EVALUATORS.start, EVALUATORS.end - 1);
                body.insert(rng.below(body.len()), Statement::Call(evaluator as u16));
            }
            body
        });
        Self { functions: functions.collect() }
    }
}

/// The functions that one may call. The last third are leaves.
fn callees(kind: Kind, function: usize) -> Option<(usize, usize)> {
    let leaves = FUNCTIONS - FUNCTIONS / 3;
    let first = match kind {
        Kind::Loops => function.max(PHASES - 1) + 1,
        // All but the deep calls is shallow, or those would be rare.
        Kind::Recursion => function.max(leaves - 4) + 1,
    };
    (function < leaves).then_some((first, (first + 12).min(FUNCTIONS - 1)))
}

fn statements(
    rng: &mut Rng,
    out: &mut Vec<Statement>,
    blocks: &mut u16,
    callees: Option<(usize, usize)>,
    depth: usize,
) {
    for _ in 0..rng.between(2, 4) {
        out.push(Statement::Block(*blocks));
        *blocks += 1;
        let mut inner = |rng: &mut Rng| {
            let mut body = Vec::new();
            statements(rng, &mut body, blocks, callees, depth - 1);
            body
        };
        match rng.below(6) {
            0 | 1 if depth > 0 => out.push(Statement::Branch(inner(rng), inner(rng))),
            2 if depth > 0 => out.push(Statement::Loop(rng.between(2, 9), inner(rng))),
            3 => {
                if let Some((first, last)) = callees {
                    out.push(Statement::Call(rng.between(first, last) as u16));
                }
            }
            _ => {}
        }
    }
}

/// A program at work.
struct Run<'a> {
    program: &'a Program,
    kind: Kind,
    /// What makes it behave otherwise.
    noise: Rng,
    tokens: Vec<Token>,
    length: usize,
    depth: usize,
}

impl Run<'_> {
    /// The first function calls those of the phases: one to begin with, then the others
    /// each for a share of the time.
    fn main(&mut self) {
        self.tokens.extend([Token::Call(0), Token::Block(0)]);
        self.call(1, 0);
        for phase in 2..PHASES {
            let until = self.length * (phase - 1) / (PHASES - 2);
            while self.tokens.len() < until {
                self.tokens.push(Token::Block(phase as u16));
                let behaviour = self.noise.below(BEHAVIOURS as usize) as u64;
                self.call(phase as u16, behaviour);
            }
        }
    }

    fn call(&mut self, function: u16, behaviour: u64) {
        self.tokens.push(Token::Call(function));
        if self.depth < DEEPEST {
            self.depth += 1;
            let program = self.program;
            let mut decisions = Rng::new(u64::from(function) << 32 | behaviour);
            self.run(&program.functions[function as usize], &mut decisions);
            self.depth -= 1;
        }
        if self.tokens.len() < self.length {
            self.tokens.push(Token::Return);
        }
    }

    fn is_otherwise(&mut self) -> bool {
        self.noise.one_in(self.kind.seldom())
    }

    fn run(&mut self, body: &[Statement], decisions: &mut Rng) {
        for statement in body {
            if self.tokens.len() >= self.length {
                return;
            }
            match statement {
                Statement::Block(block) => self.tokens.push(Token::Block(*block)),
                Statement::Branch(one, other) => {
                    let expected = decisions.one_in(3);
                    let branch = if expected != self.is_otherwise() { other } else { one };
                    self.run(branch, decisions);
                }
                Statement::Loop(most, body) => {
                    for _ in 0..decisions.between(1, *most) {
                        self.run(body, decisions);
                    }
                }
                Statement::Call(function) => {
                    let expected = decisions.next_u64() % BEHAVIOURS;
                    let behaviour =
                        if self.is_otherwise() { self.noise.next_u64() % BEHAVIOURS } else { expected };
                    let is_last =
                        EVALUATORS.contains(&(*function as usize)) && self.noise.one_in(EVALUATIONS);
                    if !is_last {
                        self.call(*function, behaviour);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deepest(tokens: &[Token]) -> i64 {
        let mut depth = 0;
        let depths = tokens.iter().map(|token| {
            depth += match token {
                Token::Call(_) => 1,
                Token::Return => -1,
                Token::Block(_) => 0,
            };
            depth
        });
        depths.max().unwrap_or(0)
    }

    #[test]
    fn programs_have_their_length_and_only_interpreters_nest_deep() {
        let loops = control_flow(Kind::Loops, 200_000, 1);
        let recursion = control_flow(Kind::Recursion, 200_000, 1);
        assert!((200_000..200_100).contains(&loops.len()), "{}", loops.len());
        assert!((200_000..200_500).contains(&recursion.len()), "{}", recursion.len());
        assert!(
            deepest(&loops) < 20 && deepest(&recursion) > 30,
            "{} {}",
            deepest(&loops),
            deepest(&recursion)
        );
        assert_eq!(loops[..50_000], control_flow(Kind::Loops, 200_000, 1)[..50_000]);
    }
}
