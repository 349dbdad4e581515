//! Folding while the symbols arrive.

use crate::fold::FoldBuilder;
use crate::{Result, RuleId, Symbol};

/// A stream that is being folded one symbol at a time. It holds a grammar of what came
/// so far, so its memory goes with the rules, not with the events.
pub trait Online: Send {
    /// Appends a symbol.
    fn push(&mut self, symbol: Symbol) -> Result<()>;

    /// Appends many symbols.
    fn extend(&mut self, symbols: &[Symbol]) -> Result<()> {
        symbols.iter().try_for_each(|&symbol| self.push(symbol))
    }

    /// How many symbols came so far.
    fn events(&self) -> u64;

    /// How much memory it takes, in bytes.
    fn bytes(&self) -> usize;

    /// Adds the rules of what came so far to the builder and returns the one that
    /// unfolds to it. Pushing can go on afterwards.
    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId>;

    /// Adds the rules of the whole stream, which ends here.
    fn finish(self: Box<Self>, builder: &mut FoldBuilder) -> Result<RuleId> {
        self.rules(builder)
    }
}
