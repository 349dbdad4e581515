//! Gives symbols a meaning after folding: for streams of numbers that are folded as they are.
//!
//! The rules stay as they are, and their items are rewritten in place: building them again would hash
//! every body. Cost: O(items), and a look-up for each item that is an event, in a table if symbols are
//! small numbers. Memory: that table, of no more than a few words an item.

use super::cursor::{Cursor, Move, Stretch, Visitor};
use super::{Fold, Item, Target};
use crate::trace::{Alphabet, Event};
use crate::{Error, Result, RuleId, Symbol};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

impl Fold {
    /// The same streams in an alphabet in which each symbol stands for what `event` says; no two for
    /// the same. Symbols get new numbers, in the order in which they first occur in the streams.
    ///
    /// ```
    /// use loopfold::Symbol;
    /// use loopfold::fold::{FoldBuilder, FoldedStream};
    /// use loopfold::folders::{Folder, Outermost};
    /// use loopfold::trace::Event;
    ///
    /// let mut builder = FoldBuilder::default();
    /// let stream = [70, 7, 70, 7].map(|number| Symbol::new(number).unwrap());
    /// let root = Outermost::default().fold(&stream, &mut builder)?;
    /// builder.stream(FoldedStream::new("main", "outermost", root));
    /// let fold = builder.finish().with_meanings(|symbol| Event::integer(symbol.raw().into()))?;
    /// assert_eq!(fold.to_string(), "main: (70 7)^2\n");
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn with_meanings<'e>(mut self, event: impl Fn(Symbol) -> Event<'e>) -> Result<Self> {
        let mut naming = Naming {
            names: Names::new(self.rules.symbols as usize, self.rules.items.len()),
            alphabet: Alphabet::default(),
            is_entered: vec![false; self.rules.len()],
            event,
        };
        for stream in &self.streams {
            Cursor::new(&self, stream.root).visit(&mut naming)?;
        }
        for item in &mut self.rules.items {
            if let Target::Symbol(symbol) = item.target() {
                // Rules that no stream uses may have symbols that were not met.
                *item = Item::new(Target::Symbol(naming.name(symbol)?), item.times());
            }
        }
        let alphabet = naming.alphabet;
        self.rules.symbols = alphabet.len() as u32;
        Ok(Self::from_parts(alphabet, self.rules, self.streams))
    }
}

/// The new numbers of symbols.
enum Names {
    Table(Vec<u32>),
    Map(HashMap<u32, u32, RandomState>),
}

const NONE: u32 = u32::MAX;

impl Names {
    fn new(symbols: usize, items: usize) -> Self {
        match symbols <= 4096 + 4 * items {
            true => Self::Table(vec![NONE; symbols]),
            false => Self::Map(HashMap::default()),
        }
    }

    #[inline]
    fn get(&self, symbol: Symbol) -> Option<u32> {
        match self {
            Self::Table(table) => Some(table[symbol.index()]).filter(|&name| name != NONE),
            Self::Map(map) => map.get(&symbol.raw()).copied(),
        }
    }

    fn set(&mut self, symbol: Symbol, name: u32) {
        match self {
            Self::Table(table) => table[symbol.index()] = name,
            Self::Map(map) => {
                map.insert(symbol.raw(), name);
            }
        }
    }
}

/// Visits each rule where it first occurs.
struct Naming<F> {
    names: Names,
    alphabet: Alphabet,
    is_entered: Vec<bool>,
    event: F,
}

impl<'e, F: Fn(Symbol) -> Event<'e>> Naming<F> {
    /// The new symbol for one.
    #[inline]
    fn name(&mut self, symbol: Symbol) -> Result<Symbol> {
        match self.names.get(symbol) {
            Some(name) => Ok(Symbol::from_raw(name)),
            None => self.new_name(symbol),
        }
    }

    #[cold]
    fn new_name(&mut self, symbol: Symbol) -> Result<Symbol> {
        let before = self.alphabet.len();
        let name = self.alphabet.intern(&(self.event)(symbol), None)?;
        if self.alphabet.len() == before {
            return Err(Error::invalid("two symbols stand for the same event"));
        }
        self.names.set(symbol, name.raw());
        Ok(name)
    }
}

impl<'e, F: Fn(Symbol) -> Event<'e>> Visitor<Item> for Naming<F> {
    type Error = Error;

    #[inline]
    fn stretch(&mut self, stretch: Stretch<Item>, _: (RuleId, usize)) -> Result<Move> {
        match stretch.target {
            Target::Symbol(symbol) => {
                self.name(symbol)?;
            }
            Target::Rule(rule) if !std::mem::replace(&mut self.is_entered[rule.index()], true) => {
                return Ok(Move::Enter);
            }
            _ => {}
        }
        Ok(Move::Skip)
    }

    fn end(&mut self, _: RuleId, _: u64, _: u64) -> Result<Move> {
        Ok(Move::Skip)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::fold::{FoldBuilder, FoldedStream};
    use crate::folders::{Folder as _, Outermost, fold_trace};
    use crate::trace::Event;
    use crate::{Symbol, Trace};
    use loopfold_testing::{Rng, streams};

    /// As if the numbers had been interned before they were folded.
    #[test]
    fn meanings_can_come_after_folding() {
        let mut rng = Rng::new(61);
        for round in 0..2_000 {
            let factor = if round % 2 == 0 { 1 } else { 20_000_000 };
            let stream: Vec<u32> =
                streams::small(&mut rng, 300).into_iter().map(|symbol| symbol % 64 * factor).collect();
            let mut builder = FoldBuilder::default();
            let symbols: Vec<Symbol> = stream.iter().copied().map(Symbol::from_raw).collect();
            let root = Outermost::default().fold(&symbols, &mut builder).unwrap();
            builder.stream(FoldedStream::new("main", "outermost", root));
            let fold = builder.finish().with_meanings(|symbol| Event::integer(symbol.raw().into())).unwrap();
            let trace = Trace::of_integers("main", stream.iter().copied()).unwrap();
            let expected = fold_trace(trace, &Outermost::default(), 1).unwrap();
            assert_eq!(fold.to_string(), expected.to_string(), "{stream:?}");
            assert_eq!(fold.canonical(), expected.canonical(), "{stream:?}");
        }
    }

    #[test]
    fn two_symbols_cannot_be_the_same_event() {
        let mut builder = FoldBuilder::default();
        let symbols = [0, 1].map(Symbol::from_raw);
        let root = Outermost::default().fold(&symbols, &mut builder).unwrap();
        builder.stream(FoldedStream::new("main", "outermost", root));
        assert!(builder.finish().with_meanings(|_| Event::integer(7)).is_err());
    }
}
