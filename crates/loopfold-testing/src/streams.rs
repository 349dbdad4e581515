//! Generated streams: the families that benchmarks grow, and small ones of all kinds
//! for comparing an algorithm with its oracle.

use crate::Rng;

/// A family of streams that can be made at any length.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// What tables call it.
    pub name: &'static str,
    /// Whether nearly all of it is loops.
    pub loops: bool,
    make: fn(usize) -> Vec<u32>,
}

impl Family {
    /// A stream of about `length` symbols.
    pub fn make(&self, length: usize) -> Vec<u32> {
        (self.make)(length)
    }

    /// The family of this name.
    pub fn named(name: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.name == name)
    }
}

/// The families of the benchmarks.
pub static FAMILIES: &[Family] = &[
    Family { name: "lu", loops: true, make: |n| lu(160, (n.saturating_sub(1340) / 1292).max(1)) },
    Family { name: "nests", loops: true, make: |n| nests(n, 7) },
    Family { name: "period 1000", loops: true, make: |n| periodic(n, 1000, 64, 3) },
    Family { name: "random 256", loops: false, make: |n| random(n, 256, 1) },
    Family { name: "random 4", loops: false, make: |n| random(n, 4, 1) },
    Family { name: "de bruijn", loops: false, make: de_bruijn },
    Family { name: "fibonacci", loops: false, make: fibonacci },
    Family { name: "one symbol", loops: true, make: |n| vec![5; n] },
];

/// The trace of the NAS benchmark LU as the paper's table I prints it, one letter an
/// event: `inner` iterations of the two sweeps, `outer` time steps. Class C is (160, 249).
pub fn lu(inner: usize, outer: usize) -> Vec<u32> {
    let step = "QJYQHYQEYQCY";
    let sweeps = format!("{}{}", "NKID".repeat(inner), "MLGB".repeat(inner));
    let text = format!(
        "VVVWWXWWW{step}{step}RU{}{sweeps}R{step}RSRPYAOYFTTT",
        format!("{sweeps}{step}").repeat(outer)
    );
    letters(&text)
}

/// The characters of a text as symbols.
pub fn letters(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// `length` random symbols of an alphabet of `alphabet`.
pub fn random(length: usize, alphabet: usize, seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    (0..length).map(|_| rng.below(alphabet) as u32).collect()
}

/// A random block of `period` symbols, repeated.
pub fn periodic(length: usize, period: usize, alphabet: usize, seed: u64) -> Vec<u32> {
    let block = random(period, alphabet, seed);
    (0..length).map(|index| block[index % period]).collect()
}

/// The Fibonacci word: the most runs that a stream of its kind can have.
pub fn fibonacci(length: usize) -> Vec<u32> {
    let (mut shorter, mut longer) = (vec![0], vec![0, 1]);
    while longer.len() < length {
        let mut next = longer.clone();
        next.extend_from_slice(&shorter);
        shorter = std::mem::replace(&mut longer, next);
    }
    longer.truncate(length);
    longer
}

/// The Thue-Morse word: squares, but no cubes.
pub fn thue_morse(length: usize) -> Vec<u32> {
    (0..length).map(|index| index.count_ones() & 1).collect()
}

/// A de Bruijn sequence of two symbols: every short word occurs once.
pub fn de_bruijn(length: usize) -> Vec<u32> {
    let order = (usize::BITS - (length.max(2) - 1).leading_zeros()) as usize;
    let mut out = Vec::with_capacity(length + order);
    // The Lyndon words whose length divides the order, in lexicographic order.
    let mut word = vec![0u32];
    while out.len() < length && !word.is_empty() {
        if order.is_multiple_of(word.len()) {
            out.extend_from_slice(&word);
        }
        let period = word.len();
        while word.len() < order {
            word.push(word[word.len() - period]);
        }
        while word.last() == Some(&1) {
            word.pop();
        }
        if let Some(last) = word.last_mut() {
            *last = 1;
        }
    }
    out.truncate(length);
    out
}

/// Random loop nests, several levels deep, of random bodies and counts.
pub fn nests(length: usize, seed: u64) -> Vec<u32> {
    fn body(rng: &mut Rng, out: &mut Vec<u32>, depth: usize, length: usize) {
        for _ in 0..rng.between(1, 4) {
            if out.len() >= length {
                return;
            }
            if depth == 0 || rng.one_in(3) {
                for _ in 0..rng.between(1, 8) {
                    out.push(rng.below(64) as u32);
                }
                continue;
            }
            let start = out.len();
            body(rng, out, depth - 1, length);
            let end = out.len();
            let most = if rng.one_in(4) { 201 } else { 13 };
            for _ in 1..rng.between(2, most) {
                if out.len() >= length {
                    return;
                }
                out.extend_from_within(start..end);
            }
        }
    }
    let mut rng = Rng::new(seed);
    let mut out = Vec::with_capacity(length + 16);
    while out.len() < length {
        let depth = rng.between(2, 7);
        body(&mut rng, &mut out, depth, length);
    }
    out.truncate(length);
    out
}

/// The executed blocks of a random program: functions that call each other, loops of
/// fixed and of varying counts, branches that are nearly always the same and a few that are
/// not. Long stretches repeat, but rarely many times in a row, as in the control flow of real
/// programs.
pub fn control_flow(length: usize, seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    let mut blocks = 0;
    // A function calls only those after it.
    let functions: Vec<Vec<Statement>> = (0..FUNCTIONS)
        .map(|function| {
            let mut body = Vec::new();
            statements(&mut rng, &mut body, &mut blocks, function, 3);
            body
        })
        .collect();
    let mut out = Vec::with_capacity(length);
    while out.len() < length {
        let function = rng.below(8);
        run(&functions, &functions[function], &mut rng, &mut out, length);
    }
    out
}

const FUNCTIONS: usize = 40;

enum Statement {
    Block(u32),
    /// Takes the first branch, except once in this many times.
    Branch(usize, Vec<Statement>, Vec<Statement>),
    /// At least and at most this many times.
    Loop(usize, usize, Vec<Statement>),
    Call(usize),
}

fn statements(rng: &mut Rng, out: &mut Vec<Statement>, blocks: &mut u32, function: usize, depth: usize) {
    for _ in 0..rng.between(2, 5) {
        *blocks += 1;
        out.push(Statement::Block(*blocks - 1));
        let mut inner = |rng: &mut Rng| {
            let mut body = Vec::new();
            statements(rng, &mut body, blocks, function, depth - 1);
            body
        };
        match rng.below(6) {
            0 if depth > 0 => {
                let seldom = [2, 10, 100, 1_000][rng.below(4)];
                let (then, otherwise) = (inner(rng), inner(rng));
                out.push(Statement::Branch(seldom, then, otherwise));
            }
            1 if depth > 0 => {
                let least = rng.between(2, 8);
                let most = if rng.one_in(3) { least + rng.below(12) } else { least };
                let body = inner(rng);
                out.push(Statement::Loop(least, most, body));
            }
            2 | 3 if function + 1 < FUNCTIONS => {
                out.push(Statement::Call(rng.between(function + 1, (function + 8).min(FUNCTIONS - 1))));
            }
            _ => {}
        }
    }
}

fn run(functions: &[Vec<Statement>], body: &[Statement], rng: &mut Rng, out: &mut Vec<u32>, length: usize) {
    for statement in body {
        if out.len() >= length {
            return;
        }
        match statement {
            Statement::Block(block) => out.push(*block),
            Statement::Branch(seldom, then, otherwise) => {
                let branch = if rng.one_in(*seldom) { otherwise } else { then };
                run(functions, branch, rng, out, length);
            }
            Statement::Loop(least, most, body) => {
                for _ in 0..rng.between(*least, *most) {
                    run(functions, body, rng, out, length);
                }
            }
            Statement::Call(function) => run(functions, &functions[*function], rng, out, length),
        }
    }
}

/// The blocks of a stencil that iterates to convergence: sweeps over the rows of a grid
/// with an unrolled inner loop and its remainder, a norm every tenth sweep whose square
/// root takes a varying number of steps, and now and then a line of output.
pub fn stencil(length: usize, seed: u64) -> Vec<u32> {
    const ROWS: usize = 62;
    const UNROLLED: usize = 15;
    let mut rng = Rng::new(seed);
    let mut out = vec![0, 1, 2, 3];
    let mut sweep = 0;
    while out.len() < length {
        for _ in 0..ROWS {
            out.extend([10, 11]);
            (0..UNROLLED).for_each(|_| out.extend([12, 13]));
            out.extend([14, 15, 15, 16]);
        }
        out.extend([20; ROWS]);
        sweep += 1;
        if sweep % 10 == 0 {
            (0..ROWS).for_each(|_| out.extend([30, 31, 31, 32]));
            out.push(33);
            (0..rng.between(3, 7)).for_each(|_| out.extend([34, 35]));
            out.push(36);
        }
        if sweep % 100 == 0 {
            // A number as text: a block per digit, and one per digit value.
            out.push(40);
            (0..rng.between(4, 9)).for_each(|_| out.extend([41, 50 + rng.below(10) as u32]));
            out.push(42);
        }
        out.push(5);
    }
    out.truncate(length);
    out
}

/// Streams that are hard for one step or another of finding runs.
pub fn adversarial(kind: usize, length: usize) -> Vec<u32> {
    let mut out = Vec::with_capacity(length);
    match kind % 6 {
        // ab aab aaab …: each block is compared with longer ones.
        0 => {
            let mut count = 1;
            while out.len() < length {
                out.resize(out.len() + count, 0);
                out.push(1);
                count += 1;
            }
        }
        // The same from the right.
        1 => {
            out = adversarial(0, length);
            out.reverse();
        }
        2 => out.extend((1..=length).map(|index| index.trailing_zeros())),
        3 => out.extend((1..=length).map(|index| 32 - index.trailing_zeros())),
        // Copies of one block with differing separators.
        4 => {
            let block = random((length / 12).max(1), 3, 5);
            let mut separator = 100;
            while out.len() < length {
                out.extend_from_slice(&block);
                out.push(separator);
                separator += 1;
            }
        }
        // Prefixes of one block.
        _ => {
            let block = random((length / 4).max(1), 2, 5);
            let mut rng = Rng::new(9);
            while out.len() < length {
                out.extend_from_slice(&block[..rng.between(1, block.len())]);
            }
        }
    }
    out.truncate(length);
    out
}

/// A small stream of a random kind: random, periodic with defects, nested, Fibonacci,
/// Thue-Morse, runs of one symbol, squares of earlier parts, adversarial.
pub fn small(rng: &mut Rng, longest: usize) -> Vec<u32> {
    let length = rng.between(0, longest);
    let alphabet = rng.between(1, 4);
    match rng.below(9) {
        0 => random(length, alphabet, rng.next_u64()),
        1 => {
            let mut stream = periodic(length, rng.between(1, 9), alphabet, rng.next_u64());
            for _ in 0..rng.below(3) {
                if let Some(last) = stream.len().checked_sub(1) {
                    stream[rng.between(0, last)] = rng.below(alphabet) as u32;
                }
            }
            stream
        }
        2 => nested(rng, length, alphabet),
        3 => window(rng, &fibonacci(3 * length + 1), length),
        4 => window(rng, &thue_morse(3 * length + 1), length),
        5 => {
            let mut stream = Vec::new();
            while stream.len() < length {
                let symbol = rng.below(alphabet) as u32;
                let count = rng.between(1, 6);
                stream.resize(stream.len() + count, symbol);
            }
            stream.truncate(length);
            stream
        }
        6 => squares(rng, length, alphabet),
        7 => adversarial(rng.below(6), length),
        _ => {
            // Two kinds glued together, so that repeats meet in the middle.
            let mut stream = nested(rng, length / 2, alphabet);
            stream.extend(squares(rng, length - length / 2, alphabet));
            stream
        }
    }
}

fn nested(rng: &mut Rng, length: usize, alphabet: usize) -> Vec<u32> {
    let mut stream: Vec<u32> = nests(length, rng.next_u64());
    stream.iter_mut().for_each(|symbol| *symbol %= alphabet as u32);
    stream
}

fn squares(rng: &mut Rng, length: usize, alphabet: usize) -> Vec<u32> {
    let mut stream: Vec<u32> = Vec::new();
    while stream.len() < length {
        if stream.is_empty() || !rng.one_in(3) {
            stream.push(rng.below(alphabet) as u32);
        } else {
            let start = stream.len() - rng.between(1, stream.len().min(12));
            let end = stream.len();
            (0..rng.between(1, 4)).for_each(|_| stream.extend_from_within(start..end));
        }
    }
    stream.truncate(length);
    stream
}

fn window(rng: &mut Rng, stream: &[u32], length: usize) -> Vec<u32> {
    let start = rng.below(stream.len() - length);
    stream[start..start + length].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_table_one_has_its_length() {
        assert_eq!(lu(160, 249).len(), 323_048);
    }

    #[test]
    fn control_flow_has_the_length_asked_for_and_many_blocks() {
        let stream = control_flow(100_000, 1);
        assert_eq!(stream.len(), 100_000);
        let mut blocks = stream.clone();
        blocks.sort_unstable();
        blocks.dedup();
        assert!((100..2_000).contains(&blocks.len()), "{}", blocks.len());
    }

    #[test]
    fn families_have_the_length_asked_for() {
        for family in FAMILIES {
            let length = family.make(10_000).len();
            assert!((8_000..=10_000).contains(&length), "{}: {length}", family.name);
        }
    }
}
