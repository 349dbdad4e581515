//! The loops that cover most events of a stream, wherever they are.
//!
//! In a trace of control flow, the outermost level of the nest is long and mostly no loop, and the
//! loops in it are many, short, and recur. **Definition**: take the loops of the nest that lie in
//! no other loop. Those whose bodies are rotations of powers of one word are one entry, with all
//! iterations counted in copies of that word. It covers the events of all of them; entries do not
//! overlap, so that their shares add up to that of all loops.
//!
//! Cost: one pass over the rules, and O(length) for each distinct body of up to [`LONGEST_COMPARED`]
//! events; longer ones are equal only if they are the same rule.

use super::near::canonical;
use crate::fold::reach::top_down;
use crate::fold::{Fold, Grammar as _, Target};
use crate::{Result, RuleId, Symbol};
use hashbrown::HashMap;

/// Longer bodies are not compared with rotations of others.
pub const LONGEST_COMPARED: u64 = 4096;

/// All loops with one body that lie in no other loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargestLoop {
    /// The body of the first one.
    pub body: Target,
    /// The events of the word that its body is a power of.
    pub length: u64,
    /// How many events all of them cover.
    pub covered: u64,
    /// How many there are.
    pub executions: u64,
    /// The fewest iterations of one of them, and the most.
    pub iterations: (u64, u64),
    /// Where the first one begins.
    pub first: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// How often a rule occurs outside of loops.
    uses: u64,
    /// Where it does first.
    first: u64,
}

/// What entries are distinguished by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Body {
    Word(Vec<Symbol>),
    Long(Target),
}

/// The loops below a rule, those that cover most first, then the first.
pub fn largest_loops(fold: &Fold, root: RuleId) -> Result<Vec<LargestLoop>> {
    let mut entries: HashMap<Body, LargestLoop> = HashMap::new();
    let mut bodies: HashMap<Target, Body> = HashMap::new();
    let mut reached = vec![Reached::default(); fold.node_count()];
    reached[fold.symbol_count() + root.index()].uses = 1;
    top_down(fold, &mut reached, |_, body, &own, before| {
        let mut at = own.first;
        for &item in body {
            let node = fold.item_node(item).index();
            if own.uses > 0 && item.times() == 1 {
                let inner = &mut before[node];
                inner.first = if inner.uses == 0 { at } else { inner.first.min(at) };
                inner.uses = inner.uses.saturating_add(own.uses);
            } else if own.uses > 0 {
                let body = bodies.entry(item.target()).or_insert_with(|| word_of(fold, item.target()));
                let length = match body {
                    Body::Word(word) => word.len() as u64,
                    Body::Long(target) => fold.target_length(*target),
                };
                let covered = fold.item_length(item);
                let found = LargestLoop {
                    body: item.target(),
                    length,
                    covered: covered.saturating_mul(own.uses),
                    executions: own.uses,
                    iterations: (covered / length, covered / length),
                    first: at,
                };
                match entries.get_mut(&*body) {
                    Some(entry) => entry.add(found),
                    None => drop(entries.insert(body.clone(), found)),
                }
            }
            at = at.saturating_add(fold.item_length(item));
        }
        Ok(())
    })?;
    let mut loops: Vec<LargestLoop> = entries.into_values().collect();
    loops.sort_unstable_by_key(|entry| (std::cmp::Reverse(entry.covered), entry.first));
    Ok(loops)
}

impl LargestLoop {
    fn add(&mut self, other: Self) {
        if other.first < self.first {
            (self.first, self.body) = (other.first, other.body);
        }
        self.covered = self.covered.saturating_add(other.covered);
        self.executions = self.executions.saturating_add(other.executions);
        let (least, most) = self.iterations;
        self.iterations = (least.min(other.iterations.0), most.max(other.iterations.1));
    }
}

fn word_of(fold: &Fold, target: Target) -> Body {
    match fold.target_length(target) {
        0..=LONGEST_COMPARED => Body::Word(canonical(fold, target)),
        _ => Body::Long(target),
    }
}
