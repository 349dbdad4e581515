//! Loops with exceptions: a body that repeats, but for an odd iteration now and then.
//!
//! Exact folding writes such a loop as many pieces, in different rotations. Here it is one loop
//! again. **Definition**, for a stream of *n* events and its exact nest:
//!
//! - *Candidates* are the primitive words W of at most n/3 events such that the loops of the nest
//!   whose body is a power of a rotation of W cover at least 2 % of the stream, all together, and
//!   such that the shortest of these bodies, as folded, would be worth it with one exception of one
//!   event (see below), in place of the whole nest.
//! - *Stretches* of W: consecutive windows of p = |W| events that are rotations of W. Such
//!   windows overlap, and so a stretch has the period p.
//! - *Copies*: of all rotations of W take the one of which most copies fit into the stretches; of
//!   several, the one that occurs first. Place its copies in each stretch from the left, without
//!   overlap.
//! - *Groups*: split the copies at gaps of more than 3p events. Then look at each of these gaps of
//!   at most 16p, the shortest first, of equal ones the first: if both groups beside it span at
//!   least 16 times as much, they are one group again. A group with gaps, with at least
//!   two copies more than twice its gaps, which cover at least three quarters of its span, is a
//!   loop with exceptions.
//! - *Exceptions* are its gaps. A gap of less than p/2 events is something added to the iteration
//!   before it; a longer one is round(gap / p) odd iterations, as a shortest sequence of
//!   insertions and deletions that converts so many copies of W to it. If that takes more than
//!   [`MOST_EDITS`] of them, or more than the gap has events, the gap is written out. Equal gaps
//!   are of one *kind*.
//! - *Worth it*: let `exact` be the events written for those parts of the outermost level of the
//!   nest that lie in the span, even partly, each loop body once. Let `written` be the events
//!   written for the body, folded as it is rotated, those of each kind, one for each exception, and
//!   what is left over of the exact loops in which the span begins and ends: its events, or twice
//!   the body of that loop, if that is less. A loop with exceptions is reported if `written`
//!   is at most 0.8 × `exact`, at least 8 less, and if it is not what a random stream shows
//!   (`significance`). Of those that overlap, the one that saves most is taken, then the longest,
//!   then the first.
//!
//! The last rule is why a random stream, whose densest parts look like a loop of one or two events
//! with exceptions, hardly ever shows one.
//!
//! [`near_nest`] applies this to all levels: inside bodies, and to the streams in which loops
//! with exceptions and loops whose number of iterations varies are single events.
//!
//! Cost: streams are unfolded, if [not too long](is_searched); O(n) for each candidate, of which there are
//! at most 50 for each depth of the nest and mostly less than five; none where the nest is so
//! short already that nothing can be worth it. Memory: 4 bytes an event, 16 for each loop of the
//! outermost level, and what is found.

mod candidates;
mod copies;
mod edits;
mod groups;
mod levels;
mod significance;
mod tree;
mod written;

pub(super) use candidates::{canonical, least_rotation};
pub use edits::{Edit, MOST_EDITS};
pub use levels::Part;
pub use tree::{NearNode, near_nest};

use crate::fold::reach::UsesBelow;
use crate::fold::{Fold, FoldBuilder, NestLength, Target, measure_rules};
use crate::questions::patterns::FoldStream;
use crate::{Result, RuleId, Symbol};
use candidates::{Candidate, candidates};
use copies::Copies;
use groups::Searched;
use hashbrown::HashSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use written::Written;

/// The longest stream that is searched: its events take 4 bytes each while they are.
const MOST_EVENTS: u64 = 1 << 28;
/// The longest one of which so little is written that opening its archive takes no time: less
/// than one event in [`LITTLE`].
const MOST_FOLDED_EVENTS: u64 = 1 << 26;
const LITTLE: u64 = 256;

/// Whether a stream of so many events, of which so many are written, is searched for loops with
/// exceptions: it may have 2^28 events, but no more than 2^26 if less than one in 256 is written.
/// Nothing can be found if only a few are written, whatever the length.
pub fn is_searched(events: u64, written: u64) -> bool {
    let most = if written < events / LITTLE { MOST_FOLDED_EVENTS } else { MOST_EVENTS };
    events <= most || !candidates::any_can_pay(written)
}

/// How many events fewer have to be written.
const LEAST_SAVED: u64 = 8;

/// A loop some of whose iterations differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearLoop {
    /// Where its first copy begins.
    pub start: u64,
    /// Where its last copy ends.
    pub end: u64,
    /// The body of the iterations that are equal.
    pub body: Vec<Symbol>,
    /// How many iterations are equal to the body.
    pub equal: u64,
    /// The kinds of exceptions, in the order of their first occurrence.
    pub kinds: Vec<Kind>,
    /// All exceptions, in order.
    pub exceptions: Vec<Exception>,
    /// How many events are written for it: the body as folded, its kinds, one an exception, and what
    /// is left over of exact loops.
    pub written: u64,
    /// How many events the exact nest writes there.
    pub exact: u64,
}

impl NearLoop {
    /// How many iterations differ from the body in more than what follows them.
    pub fn odd(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count * kind.iterations).sum()
    }

    /// All iterations.
    pub fn iterations(&self) -> u64 {
        self.equal + self.odd()
    }

    /// How many iterations are equal to the body but followed by something more.
    pub fn followed(&self) -> u64 {
        self.kinds.iter().filter(|kind| kind.iterations == 0).map(|kind| kind.count).sum()
    }

    /// How many fewer events are written than in the exact nest.
    pub fn saved(&self) -> u64 {
        self.exact.saturating_sub(self.written)
    }
}

/// Exceptions with the same events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// How many exceptions are of this kind.
    pub count: u64,
    /// Where the first one begins.
    pub first: u64,
    /// How many iterations one of them is; 0 if it only adds something to the one before.
    pub iterations: u64,
    /// What it is.
    pub change: Change,
}

/// What an exception is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These events, after an iteration or instead of one.
    Events(Vec<Symbol>),
    /// Iterations with these edits.
    Edits(Vec<Edit>),
}

impl Change {
    /// How many events are written for it.
    pub fn written(&self) -> u64 {
        match self {
            Self::Events(events) => events.len() as u64,
            Self::Edits(edits) => edits.iter().map(Edit::written).sum(),
        }
    }
}

/// A gap between two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Its place among the kinds.
    pub kind: usize,
}

/// Whether so many written events are clearly fewer than those of the exact nest.
fn is_worth(written: u64, exact: u64) -> bool {
    u128::from(written) * 5 <= u128::from(exact) * 4 && exact - written >= LEAST_SAVED
}

/// Which rotations of a body an iteration may begin with; all may if none does.
pub type Beginnings<'a> = &'a dyn Fn(&[Symbol]) -> Vec<bool>;

/// How nests with exceptions are made.
#[derive(Clone, Copy)]
pub struct Config<'a> {
    /// How bodies and levels are folded.
    fold_stream: FoldStream<'a>,
    beginnings: Option<Beginnings<'a>>,
}

impl std::fmt::Debug for Config<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").finish_non_exhaustive()
    }
}

impl<'a> Config<'a> {
    /// Bodies and streams in which loops are single symbols are folded by `fold_stream`.
    pub fn new(fold_stream: FoldStream<'a>) -> Self {
        Self { fold_stream, beginnings: None }
    }

    /// With bodies that begin in one of some rotations, where there are any.
    pub fn beginnings(self, beginnings: Beginnings<'a>) -> Self {
        Self { beginnings: Some(beginnings), ..self }
    }

    /// A body as rules, and the one that unfolds to it.
    fn folded(self, body: &[Symbol]) -> Result<(Fold, RuleId)> {
        let mut builder = FoldBuilder::default();
        let root = (self.fold_stream)(body, &mut builder)?;
        Ok((builder.finish(), root))
    }

    /// How many events are written for a body.
    fn written_for(self, body: &[Symbol]) -> Result<u64> {
        let (fold, root) = self.folded(body)?;
        fold.measure(&NestLength, root)
    }
}

/// Searches rules of a fold for loops with exceptions.
pub struct NearSearch<'a> {
    fold: &'a Fold,
    /// How many events are written for each rule.
    folded: Vec<u64>,
    uses: UsesBelow<'a>,
    config: Config<'a>,
}

impl std::fmt::Debug for NearSearch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NearSearch").finish_non_exhaustive()
    }
}

impl<'a> NearSearch<'a> {
    /// One pass over the rules.
    pub fn new(fold: &'a Fold, config: Config<'a>) -> Result<Self> {
        Ok(Self { fold, folded: measure_rules(fold, &NestLength)?, uses: UsesBelow::new(fold), config })
    }

    /// The loops with exceptions of what a rule unfolds to, in order; they do not overlap.
    /// None are found in what is [too long](is_searched).
    pub fn loops(&mut self, rule: RuleId) -> Result<Vec<NearLoop>> {
        Ok(self.analysis(rule)?.loops)
    }

    /// The bodies of loops below a rule for which so much is written that less may do.
    fn long_bodies(&mut self, rule: RuleId) -> Result<Vec<RuleId>> {
        self.uses.count(rule)?;
        let items = self.uses.reached().iter().flat_map(|&rule| self.fold.body(rule));
        let bodies = items.filter_map(|item| match item.target() {
            Target::Rule(body) if item.times() > 1 => Some(body),
            _ => None,
        });
        let mut bodies: Vec<RuleId> =
            bodies.filter(|body| candidates::any_can_pay(self.folded[body.index()])).collect();
        bodies.sort_unstable();
        bodies.dedup();
        Ok(bodies)
    }

    fn analysis(&mut self, rule: RuleId) -> Result<Analysis> {
        let mut analysis = Analysis { written: self.folded[rule.index()], ..Analysis::default() };
        let is_searched = is_searched(self.fold.length(rule), analysis.written);
        if !is_searched || !candidates::any_can_pay(analysis.written) {
            return Ok(analysis);
        }
        let candidates = candidates(self.fold, &self.folded, &mut self.uses, rule)?;
        if candidates.is_empty() {
            return Ok(analysis);
        }
        analysis.text = unfolded(self.fold, rule)?;
        analysis.symbols = distinct(self.fold, self.uses.reached());
        let text = &analysis.text;
        analysis.words = self.words(&copies::Text::new(text), candidates);
        let can_be_loops = |word: &&Word| groups::can_be_loops(word, text.len(), analysis.symbols);
        let words: Vec<&Word> = analysis.words.iter().filter(can_be_loops).collect();
        if words.is_empty() {
            return Ok(analysis);
        }
        let written = Written::new(self.fold, &self.folded, rule)?;
        let written_for = |body: &[Symbol]| self.config.written_for(body);
        let searched =
            Searched { text, symbols: analysis.symbols, written: &written, written_for: &written_for };
        let mut loops = Vec::new();
        for word in words {
            loops.extend(groups::loops(searched, word)?);
        }
        analysis.loops = apart(loops);
        analysis.written -= analysis.loops.iter().map(NearLoop::saved).sum::<u64>().min(analysis.written);
        Ok(analysis)
    }

    /// The candidates, which are sorted by length, with their copies.
    fn words(&self, text: &copies::Text<'_>, candidates: Vec<Candidate>) -> Vec<Word> {
        let mut words = Vec::with_capacity(candidates.len());
        for candidates in candidates.chunk_by(|one, other| one.word.len() == other.word.len()) {
            let allowed = |candidate: &Candidate| {
                self.config.beginnings.map_or(Vec::new(), |beginnings| beginnings(&candidate.word))
            };
            let allowed: Vec<Vec<bool>> = candidates.iter().map(allowed).collect();
            let searched = candidates.iter().zip(&allowed);
            let searched: Vec<copies::Searched<'_>> = searched
                .map(|(candidate, allowed)| copies::Searched { word: &candidate.word, allowed })
                .collect();
            let found = copies::copies(text, &searched);
            words.extend(candidates.iter().zip(found).map(|(candidate, (rotation, copies))| {
                let mut body = candidate.word.clone();
                body.rotate_left(rotation);
                Word { body, folded: candidate.folded, copies }
            }));
        }
        words
    }
}

/// What is found in a stream.
#[derive(Debug, Default)]
struct Analysis {
    /// The symbols of the stream, if there are candidates.
    text: Vec<Symbol>,
    /// How many of them are distinct.
    symbols: usize,
    words: Vec<Word>,
    loops: Vec<NearLoop>,
    /// How many events are written for all of it.
    written: u64,
}

/// A candidate, rotated, and where it occurs.
#[derive(Debug)]
struct Word {
    body: Vec<Symbol>,
    /// How many events are written for it.
    folded: u64,
    copies: Vec<Copies>,
}

/// The events of a rule. Copying what a rule unfolded to before takes a table of all rules, so it
/// is for those that unfold to more than that.
fn unfolded(fold: &Fold, rule: RuleId) -> Result<Vec<Symbol>> {
    let length = fold.length(rule) as usize;
    let mut unfold = fold.unfold(rule);
    if length < fold.rules().len() {
        return Ok(unfold.collect());
    }
    let mut text = vec![Symbol::new(0)?; length];
    unfold.fill(&mut text);
    Ok(text)
}

/// How many distinct symbols some rules have.
fn distinct(fold: &Fold, rules: &[RuleId]) -> usize {
    let items = rules.iter().flat_map(|&rule| fold.body(rule));
    let symbols = items.filter_map(|item| match item.target() {
        Target::Symbol(symbol) => Some(symbol),
        Target::Rule(_) => None,
    });
    symbols.collect::<HashSet<Symbol, foldhash::fast::FixedState>>().len()
}

/// Those that do not overlap a better one, in order.
fn apart(mut found: Vec<NearLoop>) -> Vec<NearLoop> {
    found.sort_by_key(|near| {
        (Reverse(near.saved()), Reverse(near.end - near.start), near.start, near.body.len())
    });
    let mut chosen: BTreeMap<u64, NearLoop> = BTreeMap::new();
    for near in found {
        let before = chosen.range(..near.end).next_back();
        if before.is_none_or(|(_, before)| before.end <= near.start) {
            chosen.insert(near.start, near);
        }
    }
    chosen.into_values().collect()
}
