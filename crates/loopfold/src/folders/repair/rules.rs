//! Converts pairs to the rules of a fold, and inlines some of them.
//!
//! Time and memory are O(items of the fold), independent of the depth of the pairs.

use super::kinds::{Kinds, Repeated};
use super::savings::written_in_place;
use super::sequence::Sequence;
use crate::fold::{FoldBuilder, Item, Target};
use crate::{Result, RuleId};

/// Adds the rules of all streams and returns their roots.
pub(super) fn add(mut sequence: Sequence, kinds: &Kinds, builder: &mut FoldBuilder) -> Result<Vec<RuleId>> {
    sequence.close_holes();
    let in_place = written_in_place(&sequence, kinds);
    let mut writer = Writer { kinds, added: Vec::with_capacity(in_place.len()), open: Vec::new() };
    let mut body = Vec::new();
    for (rule, in_place) in kinds.rules().iter().zip(in_place) {
        let added = if in_place {
            None
        } else {
            body.clear();
            writer.write(rule, &mut body);
            Some(builder.rule(&body)?)
        };
        writer.added.push(added);
    }
    let mut roots = Vec::new();
    for stream in sequence.streams() {
        let mut body = Vec::with_capacity(stream.len());
        writer.write(stream, &mut body);
        roots.push(builder.root_rule(body)?);
    }
    Ok(roots)
}

struct Writer<'a> {
    kinds: &'a Kinds,
    /// The rules so far as rules of the fold. `None` where they are inlined.
    added: Vec<Option<RuleId>>,
    /// Kinds that are still to be written, the next one last.
    open: Vec<u32>,
}

impl Writer<'_> {
    /// Appends items of these kinds to a body.
    fn write(&mut self, kinds: &[u32], body: &mut Vec<Item>) {
        for &kind in kinds {
            self.open.push(kind);
            while let Some(kind) = self.open.pop() {
                let (repeated, times) = self.kinds.meaning(kind);
                let target = match repeated {
                    Repeated::Symbol(symbol) => Target::Symbol(symbol),
                    Repeated::Rule(rule) => match self.added[rule] {
                        Some(added) => Target::Rule(added),
                        None => {
                            self.open.extend(self.kinds.rules()[rule].iter().rev());
                            continue;
                        }
                    },
                };
                body.push(Item::new(target, times.into()));
            }
        }
    }
}
