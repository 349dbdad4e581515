//! The events before and after a query: trees of neighbours.
//!
//! Trees are traversed with a stack of the open lists. Memory: O(depth); for rows, also of the events of
//! one row.

use crate::{JsonWriter, Labels};
use loopfold::questions::context::{Context, ContextNode, ContextTree, Neighbour};
use loopfold::{Fold, Symbol};
use std::io::{Result, Write};

/// What is shown of a list of neighbours.
#[derive(Debug)]
pub struct Shown<'a> {
    /// Those that are shown.
    pub nodes: &'a [ContextNode],
    /// How many others there are.
    pub others: usize,
    /// How many occurrences of the query have one of those.
    pub others_count: u64,
}

/// Writes what comes after and before `query`; `shown` says what is shown of each list.
pub fn context<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    query: &str,
    depth: usize,
    context: &Context,
    shown: impl Fn(&[ContextNode]) -> Shown<'_>,
) -> Result<()> {
    let mut labels = Labels::new(fold.alphabet());
    out.begin_object()?;
    out.field("query", query)?;
    out.field("count", context.count)?;
    out.field("depth", depth)?;
    for (key, side) in [("after", &context.after), ("before", &context.before)] {
        out.key(key)?;
        tree(out, &mut labels, side, &shown)?;
    }
    labels.cut_field(out)?;
    out.end()
}

fn tree<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    tree: &ContextTree,
    shown: impl Fn(&[ContextNode]) -> Shown<'_>,
) -> Result<()> {
    out.begin_array()?;
    let mut open = vec![shown(tree.nearest())];
    while let Some(innermost) = open.last_mut() {
        if let Some((node, rest)) = innermost.nodes.split_first() {
            innermost.nodes = rest;
            out.begin_object()?;
            out.key("event")?;
            match node.neighbour {
                Neighbour::Event(symbol) => labels.event(out, symbol)?,
                Neighbour::Edge => out.value(None::<u64>)?,
            }
            out.field("count", node.count)?;
            let beyond = tree.beyond(node);
            if beyond.is_empty() {
                out.end()?;
            } else {
                out.key("next")?;
                out.begin_array()?;
                open.push(shown(beyond));
            }
            continue;
        }
        if innermost.others > 0 {
            out.begin_object()?;
            out.field("others", innermost.others)?;
            out.field("count", innermost.others_count)?;
            out.end()?;
        }
        out.end()?;
        open.pop();
        // The node that the list belongs to; the outermost belongs to none.
        if !open.is_empty() {
            out.end()?;
        }
    }
    Ok(())
}

/// Writes every neighbour that is shown as an object, for a table.
pub fn neighbours<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    context: &Context,
    shown: impl Fn(&[ContextNode]) -> Shown<'_>,
) -> Result<()> {
    let mut labels = Labels::new(fold.alphabet());
    let sides = [("after", &context.after), ("before", &context.before)];
    out.begin_object()?;
    out.field("left_out", sides.iter().map(|(_, tree)| left_out(tree, &shown)).sum::<u64>())?;
    out.key("neighbours")?;
    out.begin_array()?;
    for (side, tree) in sides {
        let mut open = vec![shown(tree.nearest()).nodes];
        let mut events: Vec<Symbol> = Vec::new();
        while let Some(innermost) = open.last_mut() {
            let Some((node, rest)) = innermost.split_first() else {
                open.pop();
                events.pop();
                continue;
            };
            *innermost = rest;
            out.begin_object()?;
            out.field("side", side)?;
            out.field("distance", open.len())?;
            out.key("event")?;
            match node.neighbour {
                Neighbour::Event(symbol) => {
                    labels.event(out, symbol)?;
                    events.push(symbol);
                }
                Neighbour::Edge => out.value(None::<u64>)?,
            }
            out.key("events")?;
            labels.events(out, events.iter().copied())?;
            out.field("count", node.count)?;
            out.end()?;
            match node.neighbour {
                // An edge has nothing beyond it.
                Neighbour::Event(_) => open.push(shown(tree.beyond(node)).nodes),
                Neighbour::Edge => {}
            }
        }
    }
    out.end()?;
    out.end()
}

/// How many neighbours of a tree are not shown, those beyond others that are not among them.
fn left_out(tree: &ContextTree, shown: impl Fn(&[ContextNode]) -> Shown<'_>) -> u64 {
    let (mut all, mut written) = (0, 0);
    let mut open = vec![(tree.nearest(), true)];
    while let Some((nodes, is_shown)) = open.pop() {
        let here = if is_shown { shown(nodes).nodes.len() } else { 0 };
        (all, written) = (all + nodes.len() as u64, written + here as u64);
        open.extend(nodes.iter().enumerate().map(|(index, node)| (tree.beyond(node), index < here)));
    }
    all - written
}
