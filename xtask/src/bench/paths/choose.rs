//! Chooses the paths to search for: of functions of low, middle and high coverage, as in the
//! paper, and of the hottest recursive one.
//!
//! The coverage of a function is the share of chunks of a million symbols that contain
//! its symbols. Low is the least coverage, middle the one nearest to a half, high the
//! greatest; among functions of the same coverage the one with most events is taken. The
//! path is the first [`LONGEST`] blocks of the first invocation that has as many, or else of
//! the longest one that has at least two.

use anyhow::{Context as _, Result};
use loopfold::questions::path::{Function, Functions, PathQuery};
use loopfold::trace::Role;
use loopfold::{Fold, Symbol};
use std::collections::HashMap;

/// Symbols of a chunk: 4 MB.
pub(super) const CHUNK: usize = 1 << 20;
const LONGEST: usize = 4;

/// A path to search for.
pub(super) struct Chosen {
    pub(super) kind: &'static str,
    pub(super) function: String,
    pub(super) query: PathQuery,
    pub(super) recurses: bool,
    /// Chunks that contain events of the function.
    pub(super) chunks: usize,
    /// The share of all events that are the function's own.
    pub(super) share: f64,
}

/// What is known of a function.
#[derive(Clone, Default)]
struct Seen {
    events: u64,
    chunks: usize,
    last_chunk: Option<usize>,
    open: u64,
    recurses: bool,
    blocks: Vec<Symbol>,
}

/// Chooses the paths.
pub(super) fn choose(fold: &Fold, functions: &Functions, symbols: &[Symbol]) -> Result<Vec<Chosen>> {
    let seen = look(fold, functions, symbols);
    let chunks = symbols.len().div_ceil(CHUNK);
    let usable = || (0..seen.len()).filter(|&index| seen[index].blocks.len() > 1);
    let events = |index: usize| std::cmp::Reverse(seen[index].events);
    let low = usable().min_by_key(|&index| (seen[index].chunks, events(index)));
    let middle = usable().min_by_key(|&index| ((2 * seen[index].chunks).abs_diff(chunks), events(index)));
    let high = usable().min_by_key(|&index| (std::cmp::Reverse(seen[index].chunks), events(index)));
    let recursive = usable().filter(|&index| seen[index].recurses).min_by_key(|&index| events(index));
    let kinds = [("low", low), ("middle", middle), ("high", high), ("recursive", recursive)];
    let chosen = |(kind, index): (&'static str, Option<usize>)| {
        let index = index?;
        let (function, seen) = (&functions.all()[index], &seen[index]);
        let blocks = seen.blocks.iter().map(|&block| vec![block]).collect();
        let query = PathQuery::new(functions, function, blocks);
        Some(query.map(|query| Chosen {
            kind,
            function: String::from_utf8_lossy(function.name()).into_owned(),
            query,
            recurses: seen.recurses,
            chunks: seen.chunks,
            share: seen.events as f64 / symbols.len() as f64,
        }))
    };
    let chosen: Result<Vec<Chosen>, _> = kinds.into_iter().filter_map(chosen).collect();
    chosen.context("a path of a function")
}

/// Different paths of four blocks, up to as many as are wanted, for batches.
pub(super) fn windows(fold: &Fold, functions: &Functions, symbols: &[Symbol], most: usize) -> Vec<PathQuery> {
    let owner = owners(functions);
    let mut open: Vec<(usize, Vec<Symbol>)> = Vec::new();
    let mut known = HashMap::new();
    for &symbol in symbols {
        match fold.alphabet().meaning(symbol).role {
            Role::Enter => open.push((owner[&symbol], Vec::new())),
            Role::Leave => drop(open.pop()),
            Role::Block => {
                let Some((function, blocks)) = open.last_mut() else { continue };
                blocks.push(symbol);
                if blocks.len() == LONGEST {
                    known.entry(std::mem::take(blocks)).or_insert(*function);
                }
            }
            _ => {}
        }
        if known.len() == most {
            break;
        }
    }
    let mut paths: Vec<(Vec<Symbol>, usize)> = known.into_iter().collect();
    paths.sort_unstable();
    let query = |(blocks, function): (Vec<Symbol>, usize)| {
        let blocks = blocks.into_iter().map(|block| vec![block]).collect();
        PathQuery::new(functions, &functions.all()[function], blocks).ok()
    };
    paths.into_iter().filter_map(query).collect()
}

fn owners(functions: &Functions) -> HashMap<Symbol, usize> {
    let mut owner = HashMap::new();
    for (index, function) in functions.all().iter().enumerate() {
        let symbols = |of: fn(&Function) -> &[Symbol]| of(function).iter();
        symbols(Function::enters).chain(symbols(Function::leaves)).chain(symbols(Function::blocks)).for_each(
            |&symbol| {
                owner.insert(symbol, index);
            },
        );
    }
    owner
}

/// One pass over all events.
fn look(fold: &Fold, functions: &Functions, symbols: &[Symbol]) -> Vec<Seen> {
    let owner = owners(functions);
    let mut seen = vec![Seen::default(); functions.all().len()];
    let mut open: Vec<(usize, Vec<Symbol>)> = Vec::new();
    let ended = |seen: &mut [Seen], (function, blocks): (usize, Vec<Symbol>)| {
        let seen = &mut seen[function];
        seen.open -= 1;
        if blocks.len() > seen.blocks.len() {
            seen.blocks = blocks;
        }
    };
    for (position, &symbol) in symbols.iter().enumerate() {
        let Some(&function) = owner.get(&symbol) else { continue };
        let of = &mut seen[function];
        of.events += 1;
        let chunk = position / CHUNK;
        if of.last_chunk != Some(chunk) {
            of.last_chunk = Some(chunk);
            of.chunks += 1;
        }
        match fold.alphabet().meaning(symbol).role {
            Role::Enter => {
                of.recurses |= of.open > 0;
                of.open += 1;
                open.push((function, Vec::new()));
            }
            Role::Leave => {
                if let Some(invocation) = open.pop() {
                    ended(&mut seen, invocation);
                }
            }
            Role::Block => {
                if let Some((innermost, blocks)) = open.last_mut()
                    && *innermost == function
                    && blocks.len() < LONGEST
                {
                    blocks.push(symbol);
                }
            }
            _ => {}
        }
    }
    while let Some(invocation) = open.pop() {
        ended(&mut seen, invocation);
    }
    seen
}
