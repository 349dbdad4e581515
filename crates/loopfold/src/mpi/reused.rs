//! Gives communicators a name of their own where the number of a communicator is used again.
//!
//! An MPI library hands out the number of a freed communicator again. Where the next one has
//! other members, its number does not say which of the two an event is about. So a stream is
//! followed from one call that creates such a communicator to the next, and what lies between
//! is rewritten: the n-th list of members that a number stands for becomes `1.2`, `1.3` and so
//! on. The first keeps the number, and members that come back have their earlier name, so that
//! what repeats is still equal.
//!
//! Rules between the calls are copied once for every combination of names in force. Time and
//! memory are O(items of the fold × combinations + items beside the calls). Without numbers
//! that are used again, the cost is that of finding the calls.

use super::call::text_of;
use super::communicators::Communicators;
use super::creation::{Creation, Labels};
use super::peers::survey;
use crate::fold::cursor::Cursor;
use crate::fold::measure::holding;
use crate::fold::reach::below;
use crate::fold::{FoldBuilder, FoldedStream, Item, Target};
use crate::trace::{Event, Field, Meaning, Trace, Value};
use crate::{Error, Fold, Result, RuleId, Symbol};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A fold in which each communicator has a name of its own, and the numbers that are used for
/// communicators with different members, in order; without such numbers, it is the same fold.
/// Positions and times stay what they are; loops around calls that create communicators are
/// written out. The questions on communication need such a fold.
pub fn with_unique_communicators(fold: Fold) -> Result<(Fold, Vec<String>)> {
    let streams = fold.streams().iter().map(|stream| (stream.name().raw(), stream.notes()));
    let mut communicators = Communicators::new(streams);
    let creations = survey::creations(&Trace::default(), std::slice::from_ref(&fold));
    let labels = communicators.learn(&creations.by_stream);
    if labels.reused.is_empty() {
        return Ok((fold, Vec::new()));
    }
    let mut renaming = Renaming::new(&fold, &labels);
    for (number, stream) in fold.streams().iter().enumerate() {
        renaming.stream(number, stream)?;
    }
    let renamed = renaming.builder.finish();
    let mut reused: Vec<String> = labels.reused.into_iter().collect();
    reused.sort();
    Ok((renamed, reused))
}

/// Items that are written out beside calls, in all streams together.
const MOST_ITEMS: usize = 1 << 24;

/// The names in force: what a number stands for, where that is not itself.
type Names = BTreeMap<String, Arc<str>>;

struct Renaming<'a> {
    fold: &'a Fold,
    labels: &'a Labels,
    builder: FoldBuilder,
    /// For each symbol what it creates.
    creations: Vec<Option<Creation>>,
    /// Nodes that create, and nodes with events on a number that is used again.
    creates: Vec<bool>,
    concerned: Vec<bool>,
    /// All combinations of names.
    combinations: HashMap<Names, usize>,
    rules: HashMap<(RuleId, usize), RuleId>,
    symbols: HashMap<(Symbol, usize), Symbol>,
    room: usize,
}

/// What is not concerned by any names.
const ANY: usize = 0;

impl<'a> Renaming<'a> {
    fn new(fold: &'a Fold, labels: &'a Labels) -> Self {
        let alphabet = fold.alphabet();
        let meanings: Vec<Meaning<'_>> = alphabet.symbols().map(|symbol| alphabet.meaning(symbol)).collect();
        let creations: Vec<Option<Creation>> = meanings.iter().map(Creation::of).collect();
        let concerns: Vec<bool> = meanings.iter().map(|meaning| is_about(meaning, &labels.reused)).collect();
        let is = |marks: &[bool], at: usize| marks.get(at).copied().unwrap_or(false);
        let creates = holding(fold, |node| creations.get(node.index()).is_some_and(Option::is_some));
        let concerned = holding(fold, |node| is(&concerns, node.index()));
        Self {
            fold,
            labels,
            builder: FoldBuilder::default(),
            creations,
            creates,
            concerned,
            combinations: HashMap::from([(Names::new(), ANY)]),
            rules: HashMap::new(),
            symbols: HashMap::new(),
            room: MOST_ITEMS,
        }
    }

    fn stream(&mut self, number: usize, stream: &FoldedStream) -> Result<()> {
        let (mut names, mut body) = (Names::new(), Vec::new());
        let mut calls = self.labels.of_stream(number).iter();
        let mut cursor = Cursor::new(self.fold, stream.root());
        while let Some(stretch) = cursor.peek() {
            let creates =
                self.creates[self.fold.node(stretch.target).index()] && !calls.as_slice().is_empty();
            let (target, times) = match stretch.target {
                Target::Rule(_) if creates => {
                    cursor.enter();
                    continue;
                }
                Target::Symbol(symbol) if creates => {
                    let label = calls.next().and_then(Option::as_ref);
                    (Target::Symbol(self.creating(symbol, label, &mut names)?), 1)
                }
                target => (self.target(target, &names)?, stretch.times),
            };
            body.push(Item::new(target, times));
            cursor.skip(times);
            self.room = self.room.checked_sub(1).ok_or_else(|| {
                Error::limit("numbers of communicators are used again too often to distinguish them")
            })?;
        }
        let root = self.builder.root_rule(body)?;
        // Sums of times cannot be divided among what an event becomes.
        self.builder.stream(FoldedStream { root, sums: None, ..stream.clone() });
        Ok(())
    }

    /// A call that creates a communicator, which has this label, if it is not its number.
    fn creating(&mut self, symbol: Symbol, label: Option<&Arc<str>>, names: &mut Names) -> Result<Symbol> {
        let before = names.clone();
        if let Some(made) = self.creations[symbol.index()].as_ref().and_then(|creation| creation.made.clone())
        {
            match label {
                Some(label) => names.insert(made, Arc::clone(label)),
                None => names.remove(&made),
            };
        }
        let meaning = self.fold.alphabet().meaning(symbol);
        self.renamed(&meaning, |key| match key {
            "comm" => Some(&before),
            "newcomm" => Some(names),
            _ => None,
        })
    }

    fn target(&mut self, target: Target, names: &Names) -> Result<Target> {
        let combination = self.combination(names);
        Ok(match target {
            Target::Symbol(symbol) => Target::Symbol(self.symbol(symbol, combination, names)?),
            Target::Rule(rule) => Target::Rule(self.rule(rule, combination, names)?),
        })
    }

    fn combination(&mut self, names: &Names) -> usize {
        let next = self.combinations.len();
        *self.combinations.entry_ref(names).or_insert(next)
    }

    /// The copy of a rule that creates nothing.
    fn rule(&mut self, rule: RuleId, combination: usize, names: &Names) -> Result<RuleId> {
        let known = self.of_rule(rule, combination);
        if let Some(&copy) = self.rules.get(&known) {
            return Ok(copy);
        }
        let rules =
            below(self.fold, rule, |inner| Ok(!self.rules.contains_key(&self.of_rule(inner, combination))))?;
        for inner in rules {
            let mut body = Vec::with_capacity(self.fold.body(inner).len());
            for item in self.fold.body(inner) {
                let target = match item.target() {
                    Target::Symbol(symbol) => Target::Symbol(self.symbol(symbol, combination, names)?),
                    Target::Rule(rule) => Target::Rule(self.rules[&self.of_rule(rule, combination)]),
                };
                body.push(Item::new(target, item.times()));
            }
            let copy = self.builder.rule(&body)?;
            self.rules.insert(self.of_rule(inner, combination), copy);
        }
        Ok(self.rules[&known])
    }

    /// A rule with the names that concern it.
    fn of_rule(&self, rule: RuleId, combination: usize) -> (RuleId, usize) {
        let is_concerned = self.concerned[self.fold.rule_node(rule).index()];
        (rule, if is_concerned { combination } else { ANY })
    }

    fn symbol(&mut self, symbol: Symbol, combination: usize, names: &Names) -> Result<Symbol> {
        let is_concerned = self.concerned[self.fold.node(Target::Symbol(symbol)).index()];
        let known = (symbol, if is_concerned { combination } else { ANY });
        if let Some(&renamed) = self.symbols.get(&known) {
            return Ok(renamed);
        }
        let meaning = self.fold.alphabet().meaning(symbol);
        let renamed = self.renamed(&meaning, |key| (key == "comm").then_some(names))?;
        self.symbols.insert(known, renamed);
        Ok(renamed)
    }

    /// An event with the names that are in force for each of its fields.
    fn renamed<'n>(
        &mut self,
        meaning: &Meaning<'_>,
        names: impl Fn(&str) -> Option<&'n Names>,
    ) -> Result<Symbol> {
        let label = |field: &Field<'_>| names(field.key)?.get(&text_of(field.value));
        let labels: Vec<Option<&Arc<str>>> = meaning.fields.iter().map(label).collect();
        let mut fields: Vec<Field<'_>> = meaning.fields.clone();
        for (field, label) in fields.iter_mut().zip(labels) {
            if let Some(label) = label {
                field.value = Value::Text(label.as_bytes());
            }
        }
        self.builder.alphabet_mut().intern(&Event { fields: &fields, ..meaning.event() }, None)
    }
}

/// Whether an event is about one of these communicators.
fn is_about(meaning: &Meaning<'_>, numbers: &HashSet<String>) -> bool {
    meaning.field("comm").is_some_and(|comm| numbers.contains(&text_of(comm)))
}
