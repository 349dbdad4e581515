//! Rewrites the peers in the rules of a fold: each stream gets a copy of the rules that contain
//! a message; the others are shared.

use super::Places;
use super::survey::Reach;
use super::symbols::Symbols;
use crate::fold::{FoldBuilder, FoldedStream, Item, Target};
use crate::{Error, Fold, Result, RuleId};

/// Rewrites the peers in a fold, whose streams have the numbers from `first` on; also returns
/// the communicators that streams use and are not in.
pub(super) fn relate(fold: &Fold, places: &Places, first: usize) -> Result<(Fold, Vec<String>)> {
    let mut copies = Copies::new(fold, places);
    copies.copy_rules_without_messages()?;
    for (index, stream) in fold.streams().iter().enumerate() {
        copies.copy_stream(stream, first + index)?;
    }
    copies.finish()
}

struct Copies<'a> {
    fold: &'a Fold,
    places: &'a Places,
    reach: Reach<'a>,
    symbols: Symbols<'a>,
    builder: FoldBuilder,
    /// The new identifier of each rule in the current stream. `None` for rules that it did not
    /// reach.
    made: Vec<Option<RuleId>>,
    /// The new identifier of each rule in all streams, for the sums of rules.
    names: Vec<Names>,
    /// Copies of rules that have several.
    divided: Vec<RuleId>,
    body: Vec<Item>,
}

/// The new identifier of a rule in all streams.
#[derive(Clone, Copy)]
enum Names {
    None,
    One(RuleId),
    /// The sums cannot be divided among the copies.
    Several,
}

impl<'a> Copies<'a> {
    fn new(fold: &'a Fold, places: &'a Places) -> Self {
        Self {
            fold,
            places,
            reach: Reach::new(fold),
            symbols: Symbols::new(fold.alphabet()),
            builder: FoldBuilder::default(),
            made: vec![None; fold.rules().len()],
            names: vec![Names::None; fold.rules().len()],
            divided: Vec::new(),
            body: Vec::new(),
        }
    }

    fn copy_rules_without_messages(&mut self) -> Result<()> {
        for rule in self.fold.rules() {
            if !self.reach.holds(rule) {
                // Without a message it is the same for any stream.
                self.copy(rule, 0)?;
            }
        }
        Ok(())
    }

    fn copy_stream(&mut self, stream: &FoldedStream, number: usize) -> Result<()> {
        for rule in self.reach.rules(number, stream.root())? {
            self.copy(rule, number)?;
        }
        let root = self.made[stream.root().index()].ok_or_else(missing)?;
        let Self { symbols, places, .. } = self;
        let renamed = |sums: &crate::fold::StreamSums| {
            sums.renamed(|symbol| symbols.renamed(symbol, number, places).ok())
        };
        let sums = stream.sums().map(renamed).transpose()?;
        let mut related = FoldedStream { root, sums, ..stream.clone() };
        self.places.peers.note(&mut related.notes);
        self.builder.known_stream(related);
        Ok(())
    }

    fn copy(&mut self, rule: RuleId, stream: usize) -> Result<()> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        for item in self.fold.body(rule) {
            let target = match item.target() {
                Target::Symbol(old) => Target::Symbol(self.symbols.renamed(old, stream, self.places)?),
                Target::Rule(old) => Target::Rule(self.made[old.index()].ok_or_else(missing)?),
            };
            body.push(Item::new(target, item.times()));
        }
        let copy = self.builder.rule(&body)?;
        self.body = body;
        self.made[rule.index()] = Some(copy);
        self.note_name(rule, copy);
        Ok(())
    }

    fn note_name(&mut self, rule: RuleId, copy: RuleId) {
        let name = &mut self.names[rule.index()];
        match *name {
            Names::None => *name = Names::One(copy),
            Names::One(known) if known == copy => {}
            Names::One(known) => {
                *name = Names::Several;
                self.divided.extend([known, copy]);
            }
            Names::Several => self.divided.push(copy),
        }
    }

    fn finish(self) -> Result<(Fold, Vec<String>)> {
        let Self { fold, symbols, mut builder, names, divided, .. } = self;
        let (alphabet, unplaced) = symbols.finish();
        *builder.alphabet_mut() = alphabet;
        builder.join_sums_of_rules(fold, |rule| match names.get(rule.index()) {
            Some(Names::One(name)) => Some(*name),
            _ => None,
        })?;
        if let Some(sums) = builder.rule_sums_mut() {
            divided.into_iter().for_each(|copy| sums.forget(copy));
        }
        Ok((builder.finish(), unplaced))
    }
}

fn missing() -> Error {
    Error::damaged("rules", "a rule refers to one that is not there")
}
