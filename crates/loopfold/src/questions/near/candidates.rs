//! The words that are tried: bodies of exact loops, up to rotation.
//!
//! Cost: O(items below the rule), and O(events of each distinct body). A body that repeats
//! within another is at most half as long, so all bodies of one depth have at most n/2 events.

use crate::fold::reach::UsesBelow;
use crate::fold::{Fold, Target};
use crate::{Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::hash::BuildHasher as _;

/// A word that may be the body of a loop with exceptions.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The least rotation of the body.
    pub(super) word: Vec<Symbol>,
    /// How many events are written for one of the exact bodies: the fewest.
    pub(super) folded: u64,
    /// How many events the exact loops cover.
    covered: u64,
}

/// The candidates of a rule, the shortest first. `folded` has the events written for each rule.
pub(super) fn candidates(
    fold: &Fold,
    folded: &[u64],
    uses: &mut UsesBelow<'_>,
    rule: RuleId,
) -> Result<Vec<Candidate>> {
    let events = fold.length(rule);
    let mut found: HashMap<[u64; 2], Candidate> = HashMap::new();
    for (target, covered) in loops(fold, uses, rule)? {
        if fold.target_length(target) > events / 3 {
            continue;
        }
        let word = canonical(fold, target);
        let written = match target {
            Target::Symbol(_) => 1,
            Target::Rule(rule) => folded[rule.index()],
        };
        let candidate = found.entry(key(&word)).or_insert(Candidate { word, folded: u64::MAX, covered: 0 });
        candidate.folded = candidate.folded.min(written).min(candidate.word.len() as u64);
        candidate.covered = candidate.covered.saturating_add(covered);
    }
    let all = folded[rule.index()];
    let mut found: Vec<Candidate> = found.into_values().collect();
    found.retain(|candidate| candidate.covered >= events.div_ceil(50) && can_pay(candidate.folded, all));
    found.sort_unstable_by(|a, b| (a.word.len(), &a.word).cmp(&(b.word.len(), &b.word)));
    Ok(found)
}

/// Whether a loop with this body and one exception of one event would be worth it.
fn can_pay(body: u64, exact: u64) -> bool {
    super::is_worth(body.saturating_add(2), exact)
}

/// Whether any body can pay.
pub(super) fn any_can_pay(exact: u64) -> bool {
    can_pay(1, exact)
}

/// What repeats below a rule, and how many events of the rule that covers.
fn loops(fold: &Fold, uses: &mut UsesBelow<'_>, rule: RuleId) -> Result<Vec<(Target, u64)>> {
    uses.count(rule)?;
    let mut covered: HashMap<Target, u64, foldhash::fast::FixedState> = HashMap::default();
    for &rule in uses.reached() {
        for &item in fold.body(rule).iter().filter(|item| item.times() > 1) {
            let covered = covered.entry(item.target()).or_default();
            *covered = covered.saturating_add(uses.uses(rule).saturating_mul(fold.item_length(item)));
        }
    }
    Ok(covered.into_iter().collect())
}

/// The least rotation of the primitive root of a body.
pub(crate) fn canonical(fold: &Fold, target: Target) -> Vec<Symbol> {
    let mut word: Vec<Symbol> = match target {
        Target::Symbol(symbol) => vec![symbol],
        Target::Rule(rule) => fold.unfold(rule).collect(),
    };
    word.truncate(root_length(&word));
    let by = least_rotation(&word);
    word.rotate_left(by);
    word
}

/// The length of the shortest word that this one is a power of.
fn root_length(word: &[Symbol]) -> usize {
    // The longest proper border of each prefix, as Knuth, Morris and Pratt compute it.
    let mut borders = vec![0usize; word.len()];
    for end in 1..word.len() {
        let mut border = borders[end - 1];
        while border > 0 && word[border] != word[end] {
            border = borders[border - 1];
        }
        borders[end] = border + usize::from(word[border] == word[end]);
    }
    let period = word.len() - borders.last().copied().unwrap_or(0);
    if word.len().is_multiple_of(period) { period } else { word.len() }
}

/// Where the least rotation of a word begins. Two starts are compared; when they differ after some
/// events, all starts up to there lose against the other one.
pub(crate) fn least_rotation(word: &[Symbol]) -> usize {
    let length = word.len();
    let at = |index: usize| word[if index < length { index } else { index - length }];
    let (mut one, mut other, mut equal) = (0, 1, 0);
    while one < length && other < length && equal < length {
        let (left, right) = (at(one + equal), at(other + equal));
        if left == right {
            equal += 1;
            continue;
        }
        if left > right {
            one += equal + 1;
        } else {
            other += equal + 1;
        }
        other += usize::from(one == other);
        equal = 0;
    }
    one.min(other)
}

fn key(word: &[Symbol]) -> [u64; 2] {
    [1, 2].map(|seed| foldhash::quality::FixedState::with_seed(seed).hash_one(word))
}
