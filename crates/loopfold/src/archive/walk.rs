//! The walk over the rules that numbers them: the streams' roots in order, and the body of a
//! rule where the rule is first used. It is iterative, with a stack of its own.

use super::items::Place;
use crate::fold::{Canonical, Item, Target};
use crate::interrupt::Pace;
use crate::{Result, RuleId};

/// The steps of the walk, in order.
pub(super) enum Event<'a> {
    /// The root of the next stream, which is known.
    KnownRoot(RuleId),
    /// The root of the next stream, whose body follows.
    NewRoot(&'a [Item]),
    /// An item that stands for something known or a new symbol.
    Item(Place, Item),
    /// An item that stands for a new rule, whose body follows.
    NewRule(Place, Target, &'a [Item]),
    /// The end of a new rule. Unless it is a root, the item it belongs to is given.
    End(&'a [Item], Option<Item>),
}

/// Walks over the rules of a fold.
pub(super) fn walk<'a>(fold: &'a Canonical, mut visit: impl FnMut(Event<'a>) -> Result<()>) -> Result<()> {
    // Rules are numbered in the order in which the walk ends them.
    let mut known = 0;
    for &root in &fold.roots {
        if root.index() < known {
            visit(Event::KnownRoot(root))?;
        } else {
            visit(Event::NewRoot(fold.body(root)))?;
            walk_root(fold, root, &mut known, &mut visit)?;
        }
    }
    Ok(())
}

fn walk_root<'a>(
    fold: &'a Canonical,
    root: RuleId,
    known: &mut usize,
    visit: &mut impl FnMut(Event<'a>) -> Result<()>,
) -> Result<()> {
    let mut open: Vec<(&[Item], usize)> = vec![(fold.body(root), 0)];
    let mut pace = Pace::default();
    while let Some((body, next)) = open.last_mut() {
        pace.step();
        let body: &'a [Item] = body;
        let index = *next;
        *next += 1;
        let Some(&item) = body.get(index) else {
            open.pop();
            *known += 1;
            let outer = open.last().map(|&(outer, next)| outer[next - 1]);
            visit(Event::End(body, outer))?;
            continue;
        };
        let place = match (open.len(), index) {
            (1, _) => Place::Root,
            (_, 0) => Place::FirstOfRule,
            _ => Place::LaterInRule,
        };
        match item.target() {
            Target::Rule(rule) if rule.index() >= *known => {
                let inner = fold.body(rule);
                visit(Event::NewRule(place, item.target(), inner))?;
                open.push((inner, 0));
            }
            _ => visit(Event::Item(place, item))?,
        }
    }
    Ok(())
}
