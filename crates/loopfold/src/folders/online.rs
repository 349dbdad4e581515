//! Online folding: symbol by symbol.

use super::Folder;
use crate::fold::{Fold, FoldBuilder, FoldedStream};
use crate::interrupt::blocks;
use crate::{Result, RuleId, Symbol};

/// A stream that is being folded one symbol at a time. It holds a grammar of what came so far,
/// so its memory is O(rules), independent of the number of events.
pub trait Online: Send {
    /// Appends a symbol.
    fn push(&mut self, symbol: Symbol) -> Result<()>;

    /// Appends many symbols.
    fn extend(&mut self, symbols: &[Symbol]) -> Result<()> {
        blocks(symbols).flatten().try_for_each(|&symbol| self.push(symbol))
    }

    /// How many symbols came so far.
    fn events(&self) -> u64;

    /// How much memory it takes, in bytes.
    fn bytes(&self) -> usize;

    /// Adds the rules of what came so far to the builder and returns the one that unfolds to
    /// it. Pushing can continue afterwards.
    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId>;

    /// The rules of what came so far as a fold of their own, without alphabet and streams.
    fn so_far(&self) -> Result<(Fold, FoldedRoot)> {
        let mut builder = FoldBuilder::default();
        let root = self.rules(&mut builder)?;
        Ok((builder.finish(), root.into()))
    }

    /// The rules of the whole stream, which ends here. They are not added to a builder of the
    /// caller: a folder that chooses has built its candidates already, and adding rules to
    /// another builder hashes all their items again.
    fn finish(self: Box<Self>) -> Result<(Fold, FoldedRoot)> {
        self.so_far()
    }
}

/// The result of folding a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedRoot {
    /// The rule that unfolds to the stream.
    pub root: RuleId,
    /// The choice of a folder that chooses among others.
    pub choice: Option<Choice>,
}

/// Which folder made the rules of a stream, and why that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub folder: &'static str,
    /// The reason, for users.
    pub why: &'static str,
}

impl From<RuleId> for FoldedRoot {
    fn from(root: RuleId) -> Self {
        Self { root, choice: None }
    }
}

/// The note of a stream that says why its folder was chosen.
const WHY: &str = "why";

impl FoldedRoot {
    /// That of a stream of a fold.
    pub(super) fn of_stream(stream: &FoldedStream) -> Self {
        let choice =
            stream.note(WHY).and_then(|why| super::auto::choice_of(stream.folder().raw(), why.raw()));
        Self { root: stream.root(), choice }
    }

    /// The same in a fold in which rules have these identifiers.
    pub(super) fn renamed(self, rules: &[RuleId]) -> Self {
        Self { root: rules[self.root.index()], ..self }
    }

    /// The stream that was folded; its times come beside it.
    pub(super) fn stream(&self, name: &str, folder: &dyn Folder, notes: &[(String, String)]) -> FoldedStream {
        let mut notes: Vec<_> = notes.iter().filter(|(key, _)| key != WHY).cloned().collect();
        let folder = match &self.choice {
            None => folder.describe(),
            Some(choice) => {
                notes.push((WHY.to_string(), choice.why.to_string()));
                choice.folder.to_string()
            }
        };
        FoldedStream::new(name, folder, self.root).with_notes(notes)
    }
}
