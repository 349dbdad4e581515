//! Rewrites the peers in the rules of a fold: each stream gets a copy of the rules that contain
//! a message; the others are shared.

use super::Places;
use super::survey::Reach;
use super::symbols::Symbols;
use crate::fold::{FoldBuilder, FoldedStream, Item, Target};
use crate::trace::Alphabet;
use crate::{Error, Fold, Result, RuleId, Symbol};

/// Rewrites the peers in a fold, whose streams have the numbers from `first` on; also returns
/// the communicators that streams use and are not in.
pub(super) fn relate(fold: &Fold, places: &Places, first: usize) -> Result<(Fold, Vec<String>)> {
    let symbols = Symbols::new(fold.alphabet());
    let (fold, relating) = rewrite(fold, first, Relating { symbols, places })?;
    Ok((fold, relating.symbols.finish().1))
}

/// Gives every stream the symbols that a renaming has for it.
pub(in super::super) fn rewrite<R: Renaming>(fold: &Fold, first: usize, renaming: R) -> Result<(Fold, R)> {
    let mut copies = Copies::new(fold, renaming);
    copies.copy_rules_without_messages()?;
    for (index, stream) in fold.streams().iter().enumerate() {
        copies.copy_stream(stream, first + index)?;
    }
    copies.finish()
}

/// The symbols of a stream instead of those of the fold. Events that are not about messages have
/// the same symbol in every stream.
pub(in super::super) trait Renaming {
    /// The symbol that an event has in a stream.
    fn renamed(&mut self, symbol: Symbol, stream: usize) -> Result<Symbol>;

    /// Changes the notes of a stream that is rewritten.
    fn note(&self, notes: &mut Vec<(String, String)>);

    /// Takes the alphabet of the new symbols.
    fn take_alphabet(&mut self) -> Alphabet;
}

struct Relating<'a> {
    symbols: Symbols<'a>,
    places: &'a Places,
}

impl Renaming for Relating<'_> {
    fn renamed(&mut self, symbol: Symbol, stream: usize) -> Result<Symbol> {
        self.symbols.renamed(symbol, stream, self.places)
    }

    fn note(&self, notes: &mut Vec<(String, String)>) {
        self.places.peers.note(notes);
    }

    fn take_alphabet(&mut self) -> Alphabet {
        self.symbols.take_alphabet()
    }
}

struct Copies<'a, R> {
    fold: &'a Fold,
    renaming: R,
    reach: Reach<'a>,
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

impl<'a, R: Renaming> Copies<'a, R> {
    fn new(fold: &'a Fold, renaming: R) -> Self {
        Self {
            fold,
            renaming,
            reach: Reach::new(fold),
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
        let renaming = &mut self.renaming;
        let renamed =
            |sums: &crate::fold::StreamSums| sums.renamed(|symbol| renaming.renamed(symbol, number).ok());
        let sums = stream.sums().map(renamed).transpose()?;
        let mut related = FoldedStream { root, sums, ..stream.clone() };
        self.renaming.note(&mut related.notes);
        self.builder.known_stream(related);
        Ok(())
    }

    fn copy(&mut self, rule: RuleId, stream: usize) -> Result<()> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        for item in self.fold.body(rule) {
            let target = match item.target() {
                Target::Symbol(old) => Target::Symbol(self.renaming.renamed(old, stream)?),
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

    fn finish(self) -> Result<(Fold, R)> {
        let Self { fold, mut renaming, mut builder, names, divided, .. } = self;
        *builder.alphabet_mut() = renaming.take_alphabet();
        builder.join_sums_of_rules(fold, |rule| match names.get(rule.index()) {
            Some(Names::One(name)) => Some(*name),
            _ => None,
        })?;
        if let Some(sums) = builder.rule_sums_mut() {
            divided.into_iter().for_each(|copy| sums.forget(copy));
        }
        Ok((builder.finish(), renaming))
    }
}

fn missing() -> Error {
    Error::damaged("rules", "a rule refers to one that is not there")
}
