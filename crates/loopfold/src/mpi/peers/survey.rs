//! Collects the calls that create communicators, and the messages that each process sends and
//! receives in them, from traces and folds.
//!
//! Folds are not unfolded: the walk enters only rules that contain such events, and it is
//! bounded, whatever a fold claims.

use super::super::Creation;
use super::super::call::text_of;
use super::symbols::{comm_of, has_peers};
use crate::fold::cursor::Cursor;
use crate::fold::measure::holding;
use crate::fold::reach::below_marked;
use crate::fold::{FoldedStream, Target};
use crate::trace::{Alphabet, Trace};
use crate::{Error, Fold, Result, RuleId, Symbol};
use std::collections::BTreeSet;

/// The calls of a stream that are examined.
const MOST_CREATIONS: usize = 1 << 12;
/// The calls of all streams of a fold together.
const MOST_IN_ALL: usize = 1 << 22;
/// Items of folds that are examined for them.
const MOST_STEPS: usize = 1 << 28;

/// Calls that make communicators.
#[derive(Default)]
pub(in super::super) struct Creations {
    /// For each stream, in order.
    pub(in super::super) by_stream: Vec<Vec<Creation>>,
    /// Those that are created by a call that does not state the members.
    pub(super) unclear: BTreeSet<String>,
}

/// The calls that make communicators, in all parts.
pub(in super::super) fn creations(trace: &Trace, folds: &[Fold]) -> Creations {
    let mut creations = Creations::default();
    let by_symbol = creations.ask(&trace.alphabet);
    for stream in &trace.streams {
        let made = stream.symbols.iter().filter_map(|symbol| by_symbol[symbol.index()].clone());
        creations.by_stream.push(made.take(MOST_CREATIONS).collect());
    }
    let mut steps = MOST_STEPS;
    for fold in folds {
        let by_symbol = creations.ask(fold.alphabet());
        creations.by_stream.extend(creations_of(fold, &by_symbol, &mut steps));
    }
    creations
}

/// The calls of all streams of a fold that make communicators, by what each symbol makes.
fn creations_of(fold: &Fold, by_symbol: &[Option<Creation>], steps: &mut usize) -> Vec<Vec<Creation>> {
    let holds = holding(fold, |node| by_symbol.get(node.index()).is_some_and(Option::is_some));
    let most = (MOST_IN_ALL / fold.streams().len().max(1)).min(MOST_CREATIONS);
    let of_stream = |stream: &FoldedStream| {
        let mut made = Vec::new();
        in_order(fold, &holds, stream.root(), steps, |symbol, times| {
            let room = most - made.len();
            let times = usize::try_from(times).unwrap_or(room).min(room);
            let creation = by_symbol[symbol.index()].iter();
            made.extend(creation.flat_map(|creation| std::iter::repeat_n(creation.clone(), times)));
            made.len() < most
        });
        made
    };
    fold.streams().iter().map(of_stream).collect()
}

impl Creations {
    /// What each symbol makes.
    fn ask(&mut self, alphabet: &Alphabet) -> Vec<Option<Creation>> {
        let ask = |symbol| {
            let meaning = alphabet.meaning(symbol);
            let creation = Creation::of(&meaning);
            if let (None, Some(made)) = (&creation, meaning.field("newcomm")) {
                self.unclear.insert(text_of(made));
            }
            creation
        };
        alphabet.symbols().map(ask).collect()
    }
}

/// The communicators in which there are messages.
pub(super) fn used_comms(trace: &Trace, folds: &[Fold]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for alphabet in std::iter::once(&trace.alphabet).chain(folds.iter().map(Fold::alphabet)) {
        let meanings = alphabet.symbols().map(|symbol| alphabet.meaning(symbol));
        used.extend(meanings.filter(has_peers).map(|meaning| comm_of(&meaning)));
    }
    used
}

/// Calls `then` with the symbols outside of rules that do not hold what is wanted, and how
/// often each repeats, in their order, until it returns false or the steps are used up.
fn in_order(
    fold: &Fold,
    holds: &[bool],
    root: RuleId,
    steps: &mut usize,
    mut then: impl FnMut(Symbol, u64) -> bool,
) {
    let mut cursor = Cursor::new(fold, root);
    while let Some(stretch) = cursor.peek()
        && let Some(left) = steps.checked_sub(1)
    {
        *steps = left;
        match stretch.target {
            Target::Symbol(symbol) if !then(symbol, stretch.times) => return,
            Target::Rule(_) if holds[fold.node(stretch.target).index()] => {
                cursor.enter();
            }
            _ => cursor.skip(stretch.times),
        }
    }
}

/// Items that are examined for all streams together.
const MOST_ITEMS: usize = 1 << 28;

/// Which rules with messages each stream reaches.
pub(super) struct Reach<'a> {
    fold: &'a Fold,
    holds: Vec<bool>,
    /// The stream that reached a rule last.
    by: Vec<usize>,
    room: usize,
}

/// In place of a stream.
const NOBODY: usize = usize::MAX;

impl<'a> Reach<'a> {
    pub(super) fn new(fold: &'a Fold) -> Self {
        let alphabet = fold.alphabet();
        let wanted: Vec<bool> =
            alphabet.symbols().map(|symbol| has_peers(&alphabet.meaning(symbol))).collect();
        let holds = holding(fold, |node| wanted.get(node.index()) == Some(&true));
        Self { fold, holds, by: vec![NOBODY; fold.rules().len()], room: MOST_ITEMS }
    }

    /// True if a rule holds a message.
    pub(super) fn holds(&self, rule: RuleId) -> bool {
        self.holds[self.fold.rule_node(rule).index()]
    }

    /// The rules with messages that a stream reaches and no stream of the same number has
    /// reached before, each after those it is made of.
    pub(super) fn rules(&mut self, stream: usize, root: RuleId) -> Result<Vec<RuleId>> {
        let Self { fold, holds, by, room } = self;
        below_marked(fold, vec![root], |rule| {
            if !holds[fold.rule_node(rule).index()] || by[rule.index()] == stream {
                return Ok(false);
            }
            by[rule.index()] = stream;
            *room = room.checked_sub(fold.body(rule).len()).ok_or_else(|| {
                Error::limit(
                    "the streams share so many rules that peers cannot be rewritten for each of them",
                )
            })?;
            Ok(true)
        })
    }
}
