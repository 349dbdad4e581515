//! Online grammars: SEQUITUR (Nevill-Manning and Witten) as Larus' *Whole Program Paths*
//! describes it, and his variant with one symbol of look-ahead.
//!
//! Each symbol is appended to the start rule. Then two properties are restored: no digram
//! (two neighbours) occurs twice, or it becomes a rule; and no rule is used once, or its
//! only use becomes its body. Digrams that overlap, as in `aaa`, count once.
//!
//! `sequitur1` looks at the next symbol before it introduces a rule for the last digram `xy` of
//! the start rule: if that symbol and `y` are the body of a rule already, it waits and uses
//! that one, so that equal stretches are more often folded equally.
//!
//! Every item of such a fold has the count 1: equal neighbours form digrams like any others, so
//! a loop of n iterations takes about log n rules. Folders with counted items need one.
//!
//! Cost: amortised constant, 100 to 400 ns an event, most of it waiting for memory; about
//! 30 bytes an item and a rule, whatever the number of events.

mod grammar;

use super::{Folder, Online};
use crate::fold::FoldBuilder;
use crate::{Result, RuleId, Symbol};
use grammar::{Grammar, LookAhead};

/// Keeps digrams unique and rules useful, symbol by symbol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequitur;

impl Folder for Sequitur {
    fn name(&self) -> &'static str {
        "sequitur"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        let mut growing = Growing::default();
        growing.extend(stream)?;
        growing.rules(builder)
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(Box::new(Growing::default()))
    }
}

/// As [`Sequitur`], with one symbol of look-ahead before a new rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequitur1;

impl Folder for Sequitur1 {
    fn name(&self) -> &'static str {
        "sequitur1"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        let mut growing = Looking::default();
        growing.extend(stream)?;
        growing.grammar.settle(LookAhead::Nothing)?;
        growing.grammar.rules(builder)
    }

    fn online(&self) -> Option<Box<dyn Online>> {
        Some(Box::new(Looking::default()))
    }
}

/// A grammar of all symbols so far.
#[derive(Default)]
struct Growing {
    grammar: Grammar,
    events: u64,
}

impl Online for Growing {
    fn push(&mut self, symbol: Symbol) -> Result<()> {
        self.grammar.append(symbol)?;
        self.grammar.settle(LookAhead::Nothing)?;
        self.events += 1;
        Ok(())
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> usize {
        self.grammar.bytes()
    }

    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId> {
        self.grammar.rules(builder)
    }
}

/// A grammar of all symbols so far, in which the last digram of the start rule may occur
/// elsewhere until the next symbol is known.
#[derive(Default)]
struct Looking {
    grammar: Grammar,
    events: u64,
}

impl Online for Looking {
    fn push(&mut self, symbol: Symbol) -> Result<()> {
        self.grammar.settle(LookAhead::Symbol(symbol))?;
        self.grammar.append(symbol)?;
        self.grammar.settle(LookAhead::Unknown)?;
        self.events += 1;
        Ok(())
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> usize {
        self.grammar.bytes()
    }

    /// As if the stream ended here; what was put off is done in a copy.
    fn rules(&self, builder: &mut FoldBuilder) -> Result<RuleId> {
        if !self.grammar.is_waiting() {
            return self.grammar.rules(builder);
        }
        let mut ended = self.grammar.clone();
        ended.settle(LookAhead::Nothing)?;
        ended.rules(builder)
    }
}
