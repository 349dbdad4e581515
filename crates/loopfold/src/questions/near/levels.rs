//! Streams in which loops are single symbols, *tokens*: the levels above the events.
//!
//! Two kinds of loops hide the loop around them from exact folding: those with exceptions, and
//! those whose number of iterations varies, as in `x x x b x x x x x b x x b`. With each of them
//! as one token, whatever its exceptions and its number of iterations, the loop around them is
//! exact, or one with exceptions itself. A level is taken if it writes at most 0.8 of what is
//! written without it, and 8 events less.
//!
//! What lies between two executions of an inner loop may be so short that all of them are one loop
//! with exceptions, most of which are of one kind. So a level is also tried in which loops with
//! exceptions are split at their most frequent kind, and at those that contain its events.
//!
//! Varying loops are those words of the [candidates](super) whose copies form at least three runs,
//! not all of the same length; the shortest words first. In random streams they always vary, and in
//! the body of an exact loop they vary in the same way each time. So a level must also save bits,
//! as in [`significance`](super::significance): a number of iterations *c* takes 2 log c + 1 bits,
//! each event written log(s + 1) + 2 log n. Without the level, the stream takes these bits for each
//! event that is written, or log s for each event, whichever is less.
//!
//! Cost: O(n) for each candidate, and that of folding each level, which is shorter than the one
//! below it. A long level is folded only if samples of it promise something.

use super::copies::Copies;
use super::significance::LEAST_BITS;
use super::{Analysis, Config, Kind, NearLoop, NearSearch, Word, is_worth};
use crate::fold::{Fold, Grammar as _};
use crate::{Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::ops::Range;

/// A loop is split at exceptions that occur at least so often.
const LEAST_SPLIT: u64 = 3;

/// Levels above the events, at most.
const MOST_LEVELS: usize = 6;

/// A stream in which some loops are tokens.
#[derive(Debug)]
pub(super) struct Level<'f> {
    pub(super) fold: Cow<'f, Fold>,
    pub(super) root: RuleId,
    /// Its loops with exceptions.
    pub(super) near: Vec<NearLoop>,
    /// What it has of the level below.
    pub(super) tokens: Tokens,
}

/// The tokens of a level.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// The symbol of the first one, by its index.
    first: usize,
    kinds: Vec<Token>,
    /// Where each symbol of the level begins on the level below, and where the last one ends.
    below: Vec<u32>,
    /// For each symbol that is a token, where its parts begin and end.
    parts_of: Vec<(u32, u32)>,
    parts: Vec<Part>,
}

/// What stands for a loop.
#[derive(Debug)]
pub(super) struct Token {
    /// The body, in symbols of the level below.
    pub(super) body: Vec<Symbol>,
    /// The exceptions of all its occurrences.
    pub(super) kinds: Vec<Kind>,
    /// How many events are written for the body.
    folded: u64,
}

/// A part of a loop with exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// So many iterations that are equal to the body.
    Equal(u64),
    /// An exception of so many symbols, and its place among the kinds.
    Exception(u64, usize),
}

impl Tokens {
    /// The token that a symbol is.
    pub(super) fn token(&self, symbol: Symbol) -> Option<&Token> {
        self.kinds.get(symbol.index().checked_sub(self.first)?)
    }

    /// Where a position of the level lies on the level below, and the parts of the token there.
    pub(super) fn occurrence(&self, at: u64) -> (u64, &[Part]) {
        let (first, end) = self.parts_of.get(at as usize).copied().unwrap_or_default();
        (self.below(at), &self.parts[first as usize..end as usize])
    }

    /// Where a position of the level lies on the level below. Levels of events have none.
    pub(super) fn below(&self, at: u64) -> u64 {
        self.below.get(at as usize).map_or(at, |&below| below.into())
    }

    /// How many events are written for the tokens.
    fn written(&self) -> u64 {
        let kind = |kind: &Kind| kind.change.written() + kind.count;
        let token = |token: &Token| token.folded + 1 + token.kinds.iter().map(kind).sum::<u64>();
        self.kinds.iter().map(token).sum()
    }

    /// How many bits the numbers of iterations take.
    fn bits(&self) -> f64 {
        let bits = |part: &Part| match part {
            Part::Equal(times) => 2.0 * (*times as f64).log2().floor() + 1.0,
            Part::Exception(..) => 0.0,
        };
        self.parts.iter().map(bits).sum()
    }
}

/// The parts of a loop with exceptions.
pub(super) fn parts(near: &NearLoop) -> impl Iterator<Item = Part> + '_ {
    let period = near.body.len() as u64;
    let mut at = near.start;
    let exceptions = near.exceptions.iter().flat_map(move |exception| {
        let equal = (exception.start - at) / period;
        at = exception.end;
        [Part::Equal(equal), Part::Exception(exception.end - exception.start, exception.kind)]
    });
    let last = near.exceptions.last().map_or(near.start, |last| last.end);
    exceptions.chain([Part::Equal((near.end - last) / period)])
}

/// A loop that becomes a token. There may be many, so places take 32 bits.
struct Collapsed {
    start: u32,
    end: u32,
    token: u32,
    /// Where its parts begin and end.
    parts: (u32, u32),
}

impl Collapsed {
    fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Makes a level from the text of the one below.
struct Collapsing {
    tokens: Tokens,
    by_body: HashMap<Vec<Symbol>, usize>,
    loops: Vec<Collapsed>,
}

impl Collapsing {
    /// For a level of so many symbols.
    fn new(symbols: usize) -> Self {
        let tokens = Tokens { first: symbols, ..Tokens::default() };
        Self { tokens, by_body: HashMap::new(), loops: Vec::new() }
    }

    fn token(&mut self, body: &[Symbol], folded: u64) -> usize {
        let next = self.tokens.kinds.len();
        let token = *self.by_body.entry_ref(body).or_insert(next);
        if token == next {
            self.tokens.kinds.push(Token { body: body.to_vec(), kinds: Vec::new(), folded });
        }
        token
    }

    fn add(&mut self, span: Range<usize>, token: usize, parts: impl Iterator<Item = Part>) {
        let first = self.tokens.parts.len() as u32;
        self.tokens.parts.extend(parts);
        let parts = (first, self.tokens.parts.len() as u32);
        let (start, end) = (span.start as u32, span.end as u32);
        self.loops.push(Collapsed { start, end, token: token as u32, parts });
    }

    /// A loop with exceptions, split at those of some kinds; equal exceptions of its token are one
    /// kind.
    fn add_near(&mut self, near: &NearLoop, folded: u64, is_split: &[bool]) {
        let token = self.token(&near.body, folded);
        let kinds = &mut self.tokens.kinds[token].kinds;
        let place = |(index, kind): (usize, &Kind)| {
            if is_split[index] {
                return usize::MAX;
            }
            let known = kinds.iter().position(|known| known.change == kind.change);
            let place = known.unwrap_or(kinds.len());
            match known {
                Some(known) => kinds[known].count += kind.count,
                None => kinds.push(kind.clone()),
            }
            place
        };
        let places: Vec<usize> = near.kinds.iter().enumerate().map(place).collect();
        let period = near.body.len();
        let (mut start, mut at, mut its) = (near.start as usize, near.start as usize, Vec::new());
        for part in parts(near) {
            match part {
                Part::Equal(times) => {
                    at += times as usize * period;
                    its.push(part);
                }
                Part::Exception(length, kind) if is_split[kind] => {
                    self.add(start..at, token, its.drain(..));
                    at += length as usize;
                    start = at;
                }
                Part::Exception(length, kind) => {
                    at += length as usize;
                    its.push(Part::Exception(length, places[kind]));
                }
            }
        }
        self.add(start..at, token, its.into_iter());
    }

    /// Whether at least a tenth of the symbols is replaced: a level that is hardly shorter shows
    /// hardly more.
    fn is_shorter(&self, symbols: usize) -> bool {
        let replaced: usize = self.loops.iter().map(|collapsed| collapsed.span().len() - 1).sum();
        10 * replaced >= symbols
    }

    /// The level, folded.
    fn finish(mut self, text: &[Symbol], config: Config<'_>) -> Result<Level<'static>> {
        self.loops.sort_unstable_by_key(|collapsed| collapsed.start);
        let (mut level, mut next) = (Vec::new(), 0);
        for collapsed in self.loops {
            let span = collapsed.span();
            level.extend_from_slice(&text[next..span.start]);
            self.tokens.below.extend(next as u32..collapsed.start);
            self.tokens.parts_of.resize(level.len(), (0, 0));
            self.tokens.parts_of.push(collapsed.parts);
            level.push(Symbol::new(self.tokens.first + collapsed.token as usize)?);
            self.tokens.below.push(collapsed.start);
            next = span.end;
        }
        level.extend_from_slice(&text[next..]);
        self.tokens.below.extend(next as u32..=text.len() as u32);
        let (fold, root) = config.folded(&level)?;
        Ok(Level { fold: Cow::Owned(fold), root, near: Vec::new(), tokens: self.tokens })
    }

    /// A range of the text with those loops as tokens that lie in it.
    fn sample(&self, text: &[Symbol], range: Range<usize>) -> Result<Vec<Symbol>> {
        let lies_within = |collapsed: &&Collapsed| {
            range.start <= collapsed.span().start && collapsed.span().end <= range.end
        };
        let mut loops: Vec<&Collapsed> = self.loops.iter().filter(lies_within).collect();
        loops.sort_unstable_by_key(|collapsed| collapsed.start);
        let (mut level, mut next) = (Vec::with_capacity(range.len()), range.start);
        for collapsed in loops {
            level.extend_from_slice(&text[next..collapsed.span().start]);
            level.push(Symbol::new(self.tokens.first + collapsed.token as usize)?);
            next = collapsed.span().end;
        }
        level.extend_from_slice(&text[next..range.end]);
        Ok(level)
    }
}

/// Whether less is written for two samples of a level, of a 32nd of it together, than for the same
/// parts of the text; also if these hold little but loops, as what varies from one to the next is
/// then not in the samples, and folding takes little time. Short texts are not sampled.
fn is_worth_sampled(
    text: &[Symbol],
    config: Config<'_>,
    sample: impl Fn(Range<usize>) -> Result<Vec<Symbol>>,
) -> Result<bool> {
    if text.len() < LEAST_SAMPLED {
        return Ok(true);
    }
    let length = (text.len() / 64).max(LEAST_SAMPLED / 16);
    let (mut written, mut exact) = (0, 0);
    for start in [text.len() / 3, 2 * text.len() / 3] {
        written += config.written_for(&sample(start..start + length)?)?;
        exact += config.written_for(&text[start..start + length])?;
    }
    Ok(5 * written <= 4 * exact || 16 * exact < 2 * length as u64)
}

/// Levels of texts from this length on are sampled before they are made.
const LEAST_SAMPLED: usize = 1 << 15;

/// The levels of what a rule unfolds to, the events first.
pub(super) fn levels<'f>(fold: &'f Fold, rule: RuleId, config: Config<'_>) -> Result<Vec<Level<'f>>> {
    let first = Level { fold: Cow::Borrowed(fold), root: rule, near: Vec::new(), tokens: Tokens::default() };
    let mut analysis = first.analysis(config)?;
    let mut levels = vec![first];
    while levels.len() < MOST_LEVELS {
        let Some(level) = levels.last() else { break };
        let mut next = above(level, &analysis, varying(level, &analysis, config)?, config)?;
        for split in [false, true] {
            if next.is_none() {
                next = above(level, &analysis, near(level, &analysis, split, config)?, config)?;
            }
        }
        let Some((above, found)) = next else { break };
        levels.push(above);
        analysis = found;
    }
    if let Some(level) = levels.last_mut() {
        level.near = analysis.loops;
    }
    Ok(levels)
}

impl Level<'_> {
    fn analysis(&self, config: Config<'_>) -> Result<Analysis> {
        NearSearch::new(&self.fold, config)?.analysis(self.root)
    }
}

/// The level above another one, and what is found there, if it is worth it.
fn above(
    level: &Level<'_>,
    analysis: &Analysis,
    collapsing: Option<Collapsing>,
    config: Config<'_>,
) -> Result<Option<(Level<'static>, Analysis)>> {
    let Some(collapsing) = collapsing else { return Ok(None) };
    let above = collapsing.finish(&analysis.text, config)?;
    let found = above.analysis(config)?;
    let written = found.written + above.tokens.written();
    let worth = is_worth(written, analysis.written) && saves_bits(level, analysis, &above, found.written);
    Ok(worth.then_some((above, found)))
}

/// Whether a level saves bits, both beside the level below it as it is written and as it is.
fn saves_bits(level: &Level<'_>, analysis: &Analysis, above: &Level<'_>, written: u64) -> bool {
    let events = analysis.text.len() as f64;
    let symbols = (level.fold.symbol_count() + above.tokens.kinds.len()) as f64;
    let an_event = (symbols + 1.0).log2() + 2.0 * events.log2();
    let bits = written as f64 * an_event + above.tokens.bits();
    let without = (events * (analysis.symbols as f64).log2()).min(analysis.written as f64 * an_event);
    without - bits >= LEAST_BITS
}

/// Loops with exceptions as tokens, whole or split.
fn near(
    level: &Level<'_>,
    analysis: &Analysis,
    split: bool,
    config: Config<'_>,
) -> Result<Option<Collapsing>> {
    let kinds = |near: &NearLoop| match split {
        true => split_kinds(near, &analysis.text),
        false => vec![false; near.kinds.len()],
    };
    let is_split: Vec<Vec<bool>> = analysis.loops.iter().map(kinds).collect();
    if is_split.is_empty() || split && !is_split.iter().any(|kinds| kinds.contains(&true)) {
        return Ok(None);
    }
    let mut collapsing = Collapsing::new(level.fold.symbol_count());
    for (near, is_split) in analysis.loops.iter().zip(&is_split) {
        collapsing.add_near(near, config.written_for(&near.body)?, is_split);
    }
    let text = &analysis.text;
    let is_worth = collapsing.is_shorter(text.len())
        && is_worth_sampled(text, config, |range| collapsing.sample(text, range))?;
    Ok(is_worth.then_some(collapsing))
}

/// The kinds at which a loop is split: the most frequent one, and those that contain its events.
fn split_kinds(near: &NearLoop, text: &[Symbol]) -> Vec<bool> {
    let events = |kind: usize| {
        let first = near.exceptions.iter().find(|exception| exception.kind == kind);
        first.map_or(&[][..], |first| &text[first.start as usize..first.end as usize])
    };
    let kinds = near.kinds.iter().enumerate().rev();
    let most = kinds.max_by_key(|(_, kind)| kind.count).filter(|(_, kind)| kind.count >= LEAST_SPLIT);
    let separator = most.map_or(&[][..], |(index, _)| events(index));
    let contains =
        |kind| !separator.is_empty() && events(kind).windows(separator.len()).any(|part| part == separator);
    (0..near.kinds.len()).map(contains).collect()
}

/// Loops whose number of iterations varies as tokens. There are about as many as events in a
/// random stream of few symbols, so they are sampled before all are listed.
fn varying(level: &Level<'_>, analysis: &Analysis, config: Config<'_>) -> Result<Option<Collapsing>> {
    let mut words: Vec<&Word> = analysis.words.iter().filter(|word| is_varying(&word.copies)).collect();
    if words.is_empty() {
        return Ok(None);
    }
    words.sort_by_key(|word| word.body.len());
    let text = &analysis.text;
    let symbols = level.fold.symbol_count();
    let is_worth = is_worth_sampled(text, config, |range| {
        varying_within(&words, symbols, range.clone()).sample(text, range)
    })?;
    if !is_worth {
        return Ok(None);
    }
    let collapsing = varying_within(&words, symbols, 0..text.len());
    Ok(collapsing.is_shorter(text.len()).then_some(collapsing))
}

/// The copies of words in a range of the text, those of the shortest words first, as far as they do
/// not overlap those before them.
fn varying_within(words: &[&Word], symbols: usize, range: Range<usize>) -> Collapsing {
    let mut collapsing = Collapsing::new(symbols);
    let mut is_taken = vec![false; range.len()];
    for word in words {
        let token = collapsing.token(&word.body, word.folded);
        let first = word.copies.partition_point(|copies| copies.start() < range.start);
        for copies in &word.copies[first..] {
            let span = copies.start()..copies.end(word.body.len());
            if span.end > range.end {
                break;
            }
            let its = &mut is_taken[span.start - range.start..span.end - range.start];
            if !its.contains(&true) {
                its.fill(true);
                collapsing.add(span, token, std::iter::once(Part::Equal(copies.count() as u64)));
            }
        }
    }
    collapsing
}

fn is_varying(copies: &[Copies]) -> bool {
    let first = copies.first().map_or(0, |copies| copies.count());
    copies.len() >= 3 && copies.iter().any(|copies| copies.count() != first)
}
