//! The events before and after a query: trees of neighbours.
//!
//! Trees are traversed with a stack of the open lists. Memory: O(depth).

use crate::{JsonWriter, Labels};
use loopfold::Fold;
use loopfold::questions::context::{Context, ContextNode, ContextTree, Neighbour};
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
