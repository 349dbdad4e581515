//! The query: a path of a function, parsed from text.
//!
//! [`functions`] says which symbols enter a function, leave it and are its blocks; [`syntax`]
//! reads `F: B1 * .. B2`, where names may be patterns.

pub(super) mod functions;
mod syntax;

use super::summary::gaps::Automaton;
use crate::emit::Terminal;
use crate::questions::query::Query;
use crate::{Error, Result, Symbol};
use functions::{Function, Functions, Step};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
pub use syntax::{PathReader, is_path};

/// A path of a function to look for. A clone costs nothing, since answers keep one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathQuery(Arc<Path>);

#[derive(Clone, Debug, PartialEq)]
struct Path {
    function: Vec<u8>,
    /// The effect of symbols on frames of the function; the others have none.
    steps: Vec<(Symbol, Step)>,
    pattern: Query,
    /// True if exits and blocks state their function.
    qualified: bool,
    /// Which of all functions it is.
    number: usize,
    /// The places of the path before which any blocks may come, and the automaton of that.
    gaps: Option<(Vec<usize>, Arc<Automaton>)>,
}

impl PathQuery {
    /// A path of a function: for each block the symbols that it may be. Any block of the
    /// function is [`Functions::blocks_of`] it.
    pub fn new(functions: &Functions, function: &Function, blocks: Vec<Vec<Symbol>>) -> Result<Self> {
        let known = functions.blocks_of(function);
        if blocks.iter().flatten().any(|block| known.binary_search(block).is_err()) {
            return Err(Error::invalid(format_args!(
                "a block of the path is none of {}",
                Terminal::of(function.name())
            )));
        }
        let (steps, pattern) = (functions.steps_of(function), Query::new(blocks)?);
        let number = functions.index_of(function.name()).unwrap_or(usize::MAX);
        let (function, qualified) = (function.name().to_vec(), functions.is_qualified());
        Ok(Self(Arc::new(Path { function, steps, pattern, qualified, number, gaps: None })))
    }

    /// The same path with gaps before some of its blocks, where any blocks of the function
    /// may come, or none. `before` are their places in the path, from 1, in order.
    ///
    /// Then distinct ends count: the last blocks with which the path can end.
    pub fn with_gaps(self, before: &[usize]) -> Result<Self> {
        let fit = before.iter().all(|&place| 0 < place && place < self.len());
        if !fit || !before.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid("a gap is between two blocks of a path"));
        }
        let gaps = match before {
            [] => None,
            before => Some((before.to_vec(), Arc::new(Automaton::new(self.pattern(), before)?))),
        };
        Ok(Self(Arc::new(Path { gaps, ..Path::clone(&self.0) })))
    }

    /// The places of the path before which any blocks may come, in order.
    pub fn gaps(&self) -> &[usize] {
        self.0.gaps.as_ref().map_or(&[], |(before, _)| before)
    }

    /// True if blocks of the path may have others between them.
    pub fn has_gaps(&self) -> bool {
        self.0.gaps.is_some()
    }

    /// How many blocks of a frame are examined for the beginning of a path with gaps.
    pub const FURTHEST: u64 = 1 << 16;

    /// The name of the function.
    pub fn function(&self) -> &[u8] {
        &self.0.function
    }

    /// For each block the symbols it may be, in order.
    pub fn blocks(&self) -> &[Vec<Symbol>] {
        self.0.pattern.events()
    }

    /// How many blocks are searched for.
    #[allow(clippy::len_without_is_empty, reason = "a path is never empty")]
    pub fn len(&self) -> usize {
        self.0.pattern.len()
    }

    /// The symbols that matter for the path: what holds none of them can be skipped.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> {
        self.0.steps.iter().map(|&(symbol, _)| symbol)
    }

    /// True if exits and blocks state their function, so that other functions do not matter.
    pub(super) fn is_qualified(&self) -> bool {
        self.0.qualified
    }

    /// Which of all functions it is a path of.
    pub(super) fn function_number(&self) -> usize {
        self.0.number
    }

    /// The automaton of a path with gaps; without any it has nothing to find.
    pub(super) fn automaton(&self) -> Arc<Automaton> {
        self.0.gaps.as_ref().map_or_else(Arc::default, |(_, automaton)| Arc::clone(automaton))
    }

    pub(super) fn pattern(&self) -> &Query {
        &self.0.pattern
    }

    pub(super) fn steps(&self) -> &[(Symbol, Step)] {
        &self.0.steps
    }
}

impl Eq for Path {}

/// By what was requested; the rest follows from it.
impl Hash for PathQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.function(), self.blocks(), self.gaps()).hash(state);
    }
}
