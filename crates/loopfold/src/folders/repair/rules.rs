//! From pairs to the rules of a fold: rules that save nothing are written in place.

use super::kinds::{Kinds, Repeated};
use super::sequence::{END, Sequence};
use crate::fold::{FoldBuilder, Item, Target};
use crate::{Result, RuleId};

/// Adds the rules of all streams and returns their roots.
pub(super) fn add(
    mut sequence: Sequence,
    kinds: &Kinds,
    builder: &mut FoldBuilder,
) -> Result<Vec<RuleId>> {
    sequence.close_holes();
    let inlined = inlined(&sequence, kinds);
    let mut writer = Writer { kinds, inlined, meanings: Vec::new(), open: Vec::new() };
    for rule in 0..kinds.rules().len() {
        let mut body = Vec::new();
        if !writer.inlined[rule] {
            writer.write(&kinds.rules()[rule], &mut body);
        }
        writer.define(&body, builder)?;
    }
    let mut roots = Vec::new();
    for stream in sequence.cells()[1..].split_inclusive(|&kind| kind == END) {
        let mut body = Vec::with_capacity(stream.len());
        writer.write(&stream[..stream.len() - 1], &mut body);
        roots.push(builder.root_rule(body)?);
    }
    Ok(roots)
}

/// Which rules are written in place: those that one item uses, once.
fn inlined(sequence: &Sequence, kinds: &Kinds) -> Vec<bool> {
    let mut uses = vec![0u32; kinds.rules().len()];
    let in_rules = kinds.rules().iter().flatten();
    let in_streams = sequence.cells().iter().filter(|&&kind| kind != END);
    for &kind in in_rules.chain(in_streams) {
        if let (Repeated::Rule(rule), times) = kinds.meaning(kind) {
            uses[rule] = uses[rule].saturating_add(times.min(2));
        }
    }
    uses.iter().map(|&uses| uses < 2).collect()
}

struct Writer<'a> {
    kinds: &'a Kinds,
    inlined: Vec<bool>,
    /// What each rule is in the fold; of rules that are written in place nothing.
    meanings: Vec<Option<Item>>,
    /// The kinds that are still to be written, last first.
    open: Vec<u32>,
}

impl Writer<'_> {
    /// Appends the items of some kinds to a body.
    fn write(&mut self, kinds: &[u32], body: &mut Vec<Item>) {
        for &kind in kinds {
            self.open.push(kind);
            while let Some(kind) = self.open.pop() {
                let (item, times) = match self.kinds.meaning(kind) {
                    (Repeated::Symbol(symbol), times) => (Item::once(symbol), times),
                    (Repeated::Rule(rule), times) => match self.meanings[rule] {
                        Some(item) => (item, times),
                        None => {
                            let [left, right] = self.kinds.rules()[rule];
                            self.open.extend([right, left]);
                            continue;
                        }
                    },
                };
                append(body, item.target(), item.times() * u64::from(times));
            }
        }
    }

    /// The next rule has this body, or none if it is written in place.
    fn define(&mut self, body: &[Item], builder: &mut FoldBuilder) -> Result<()> {
        let meaning = if body.is_empty() { None } else { Some(builder.repeat(body, 1)?) };
        self.meanings.push(meaning);
        Ok(())
    }
}

/// Appends an item, or adds to the last one: rules that were made of different pairs can
/// turn out to be equal.
fn append(body: &mut Vec<Item>, target: Target, times: u64) {
    let last = body.pop();
    let same = last.filter(|last| last.target() == target).map_or(0, Item::times);
    if same == 0 {
        body.extend(last);
    }
    body.push(Item::new(target, same + times));
}
