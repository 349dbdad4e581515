//! Converts loops over positions to rules.

use crate::fold::{FoldBuilder, Item, Target};
use crate::{Result, RuleId, Symbol};

/// `times` copies of `stream[start..start + body]`, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) start: u32,
    pub(super) body: u32,
    pub(super) times: u32,
}

/// Adds the rules of a stream whose loops are `loops`: nested or apart, the inner ones
/// only in the first copy of the outer body.
pub(super) fn rules_of(stream: &[Symbol], mut loops: Vec<Loop>, builder: &mut FoldBuilder) -> Result<RuleId> {
    struct Open {
        /// Where the first copy of the body ends, and where the last one does.
        body_end: usize,
        end: usize,
        times: u32,
        /// The items before those of the body.
        mark: usize,
    }
    loops.sort_unstable_by_key(|found| (found.start, u32::MAX - found.body));
    // The items of a stream without loops take most of the memory of its fold: they are never copied.
    let mut items: Vec<Item> = Vec::with_capacity(outer_items(stream.len(), &loops));
    let mut loops = loops.into_iter().peekable();
    let mut open: Vec<Open> = Vec::new();
    let mut position = 0;
    loop {
        while let Some(innermost) = open.last().filter(|open| open.body_end == position) {
            let item = builder.repeat(&items[innermost.mark..], innermost.times.into())?;
            items.truncate(innermost.mark);
            items.push(item);
            position = innermost.end;
            open.pop();
        }
        if position == stream.len() {
            return builder.root_rule(items);
        }
        match loops.next_if(|found| found.start as usize == position) {
            Some(Loop { body: 1, times, .. }) => {
                items.push(Item::new(Target::Symbol(stream[position]), times.into()));
                position += times as usize;
            }
            Some(Loop { body, times, .. }) => open.push(Open {
                body_end: position + body as usize,
                end: position + body as usize * times as usize,
                times,
                mark: items.len(),
            }),
            None => {
                let next_loop = loops.peek().map_or(stream.len(), |found| found.start as usize);
                let end = open.last().map_or(next_loop, |open| open.body_end.min(next_loop));
                items.extend(stream[position..end].iter().map(|&symbol| Item::once(symbol)));
                position = end;
            }
        }
    }
}

/// How many items there are outside of all loops, these included; `loops` are in order.
fn outer_items(length: usize, loops: &[Loop]) -> usize {
    let (mut items, mut covered) = (length, 0);
    for found in loops {
        if found.start as usize >= covered {
            let spanned = found.body as usize * found.times as usize;
            covered = found.start as usize + spanned;
            items -= spanned - 1;
        }
    }
    items
}
