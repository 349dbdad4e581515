//! Generated traces of calls, and the slow, obvious search for a path of a function in
//! them: every invocation's blocks as a list of its own.

use crate::Rng;

/// One event of a trace of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A function is entered.
    Call(u8),
    /// The innermost function is left.
    Return,
    /// A block of the innermost function.
    Block(u8),
}

/// A trace of up to `longest` events of functions 0, 1 and 2 with blocks 0 to 3.
pub fn small(rng: &mut Rng, longest: usize) -> Vec<Step> {
    let length = rng.between(0, longest);
    let mut trace = match rng.below(6) {
        0 => any(rng, length),
        1 => deep(rng, length),
        2 => mutual(rng, length),
        3 => looped(rng, length),
        _ => program(rng, length),
    };
    // Sometimes only a part of a trace, so that calls are open at both ends.
    if rng.one_in(3) && !trace.is_empty() {
        let start = rng.below(trace.len());
        let end = rng.between(start, trace.len());
        trace = trace[start..end].to_vec();
    }
    trace
}

/// Events without any order: exits without entries, entries without exits.
fn any(rng: &mut Rng, length: usize) -> Vec<Step> {
    (0..length)
        .map(|_| match rng.below(4) {
            0 => Step::Call(rng.below(2) as u8),
            1 => Step::Return,
            _ => Step::Block(rng.below(3) as u8),
        })
        .collect()
}

/// A function that calls itself about as deep as there is room, with the same blocks
/// before and after, mostly.
fn deep(rng: &mut Rng, length: usize) -> Vec<Step> {
    let part =
        |rng: &mut Rng| -> Vec<Step> { (0..rng.below(3)).map(|_| Step::Block(rng.below(2) as u8)).collect() };
    let (before, after) = (part(rng), part(rng));
    let depth = length / (before.len() + after.len() + 2);
    let mut trace = Vec::new();
    let other = |rng: &mut Rng| rng.one_in(20).then(|| Step::Block(rng.below(3) as u8));
    for _ in 0..depth {
        trace.push(Step::Call(0));
        trace.extend(before.iter().copied().chain(other(rng)));
    }
    for _ in 0..depth {
        trace.extend(after.iter().copied().chain(other(rng)));
        trace.push(Step::Return);
    }
    trace
}

/// Two functions that call each other.
fn mutual(rng: &mut Rng, length: usize) -> Vec<Step> {
    let mut trace = Vec::new();
    while trace.len() < length {
        let depth = rng.between(1, 8);
        for level in 0..depth {
            trace.extend([Step::Call((level % 2) as u8), Step::Block(0), Step::Block(1)]);
        }
        for _ in 0..depth {
            trace.extend([Step::Block(if rng.one_in(5) { 2 } else { 1 }), Step::Return]);
        }
    }
    trace.truncate(length);
    trace
}

/// A part of a trace many times over, whether or not it leaves as often as it enters.
fn looped(rng: &mut Rng, length: usize) -> Vec<Step> {
    let longest = rng.between(1, 8);
    let body = any(rng, longest);
    let before = any(rng, 3);
    let mut trace = before;
    while trace.len() < length {
        trace.extend(&body);
    }
    trace.extend(any(rng, 6));
    trace
}

/// Functions that each execute a few paths of blocks, and call each other.
fn program(rng: &mut Rng, length: usize) -> Vec<Step> {
    let mut trace = vec![Step::Call(2)];
    let mut depth = 1;
    while trace.len() < length {
        match rng.below(8) {
            0 if depth < 12 => {
                trace.push(Step::Call(rng.below(3) as u8));
                depth += 1;
            }
            1 if depth > 1 => {
                trace.push(Step::Return);
                depth -= 1;
            }
            2 => trace.extend([0, 1, 0, 1, 2].map(Step::Block)),
            3 => trace.extend([0, 1, 2].map(Step::Block)),
            4 => trace.extend([0, 0, 0].map(Step::Block)),
            _ => trace.push(Step::Block(rng.below(4) as u8)),
        }
    }
    trace
}

/// Where a path occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The position of the last block.
    pub end: usize,
    /// The position of the first block.
    pub start: usize,
    /// How many invocations of the function are open there.
    pub depth: usize,
}

/// A path to search for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// For each block those that it may be.
    pub blocks: Vec<Vec<u8>>,
    /// The places before which any blocks may come.
    pub gaps: Vec<usize>,
}

/// What the call of a function is as a block of its caller.
pub fn call_block(function: u8) -> u8 {
    128 + function
}

/// All occurrences of a path of a function, in the order of their last blocks. With gaps
/// each last block counts once, and the path begins as late as it can. With `calls` the
/// calls that a function makes are blocks of it, too.
pub fn paths(trace: &[Step], function: u8, path: &Path, calls: bool) -> Vec<Found> {
    struct Invocation {
        function: u8,
        /// Each with its position and the invocations of the function that are open.
        blocks: Vec<(u8, usize, usize)>,
    }
    let mut invocations: Vec<Invocation> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (position, step) in trace.iter().enumerate() {
        match *step {
            Step::Call(called) => {
                if let Some(&innermost) = open.last()
                    && calls
                {
                    let depth = open.iter().filter(|&&index| invocations[index].function == function).count();
                    invocations[innermost].blocks.push((call_block(called), position, depth));
                }
                open.push(invocations.len());
                invocations.push(Invocation { function: called, blocks: Vec::new() });
            }
            Step::Return => {
                open.pop();
            }
            Step::Block(block) => {
                let depth = open.iter().filter(|&&index| invocations[index].function == function).count();
                if let Some(&innermost) = open.last() {
                    invocations[innermost].blocks.push((block, position, depth));
                }
            }
        }
    }
    let mut found = Vec::new();
    for invocation in invocations.iter().filter(|invocation| invocation.function == function) {
        let blocks: Vec<u8> = invocation.blocks.iter().map(|&(block, _, _)| block).collect();
        for (&(_, end, depth), start) in invocation.blocks.iter().zip(latest_starts(&blocks, path)) {
            if let Some(start) = start {
                found.push(Found { end, start: invocation.blocks[start].1, depth });
            }
        }
    }
    found.sort();
    found
}

/// For each block where the path begins that ends with it, as late as it can.
fn latest_starts(blocks: &[u8], path: &Path) -> Vec<Option<usize>> {
    // The same for the path up to the block before.
    let mut before: Vec<Option<usize>> = Vec::new();
    for (place, any) in path.blocks.iter().enumerate() {
        let start = |at: usize| -> Option<usize> {
            if !any.contains(&blocks[at]) {
                None
            } else if place == 0 {
                Some(at)
            } else if path.gaps.contains(&place) {
                before[..at].iter().copied().flatten().max()
            } else {
                before[at.checked_sub(1)?]
            }
        };
        before = (0..blocks.len()).map(start).collect();
    }
    before
}

/// As [`paths`], without gaps, and calls are no blocks.
pub fn plain_paths(trace: &[Step], function: u8, blocks: &[Vec<u8>]) -> Vec<Found> {
    paths(trace, function, &Path { blocks: blocks.to_vec(), gaps: Vec::new() }, false)
}

/// The functions that are open at a position, the innermost first.
pub fn stack(trace: &[Step], position: usize) -> Vec<u8> {
    let mut stack = Vec::new();
    for step in &trace[..position] {
        match *step {
            Step::Call(function) => stack.push(function),
            Step::Return => {
                stack.pop();
            }
            Step::Block(_) => {}
        }
    }
    stack.reverse();
    stack
}
