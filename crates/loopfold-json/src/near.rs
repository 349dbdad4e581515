//! Loops with exceptions: one object for each loop of a nest whose iterations are not all equal.

use crate::nest::{part, time};
use crate::{JsonWriter, Labels, NestTimes};
use loopfold::Symbol;
use loopfold::questions::near::{Change, Edit, Kind, NearNode};
use loopfold::questions::nest::{Nest, Node};
use std::io::{Result, Write};

/// Writes the loops with exceptions of a nest, in the order of their places.
pub(crate) fn near_loops<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    nest: &Nest,
    times: Option<NestTimes<'_>>,
) -> Result<()> {
    let mut nodes = vec![0; nest.near.len()];
    for (at, node) in nest.nodes.iter().enumerate().rev() {
        if let Node::Near { near, .. } = node {
            nodes[*near] = at;
        }
    }
    for (near, at) in nest.near.iter().zip(nodes) {
        out.begin_object()?;
        numbers(out, near)?;
        out.key("kinds")?;
        out.begin_array()?;
        for its_kind in &near.kinds {
            kind(out, labels, its_kind)?;
        }
        out.end()?;
        if let Some(runs) = near.runs() {
            out.key("runs")?;
            out.array(runs)?;
        }
        if let Some(order) = near.order() {
            out.key("order")?;
            out.array(order)?;
        }
        out.key("body")?;
        part(out, labels, nest, nest.body(at), times)?;
        time(out, at, times)?;
        out.end()?;
    }
    Ok(())
}

fn numbers<W: Write>(out: &mut JsonWriter<W>, near: &NearNode) -> Result<()> {
    out.field("iterations", near.all_iterations)?;
    out.field("equal", near.equal)?;
    out.field("followed", near.followed())?;
    out.field("length", near.lengths.0)?;
    out.field("longest", near.lengths.1)?;
    out.field("start", near.start)?;
    out.field("end", near.end)?;
    out.field("events", near.events)?;
    out.field("occurrences", near.occurrences)?;
    out.field("least_iterations", near.iterations.0)?;
    out.field("most_iterations", near.iterations.1)
}

fn kind<W: Write>(out: &mut JsonWriter<W>, labels: &mut Labels<'_>, kind: &Kind) -> Result<()> {
    out.begin_object()?;
    out.field("count", kind.count)?;
    out.field("first", kind.first)?;
    out.field("iterations", kind.iterations)?;
    match &kind.change {
        Change::Events(events) => symbols(out, labels, "events", events)?,
        Change::Edits(edits) => {
            out.key("edits")?;
            out.begin_array()?;
            for Edit { at, removed, inserted } in edits {
                out.begin_object()?;
                out.field("at", *at)?;
                symbols(out, labels, "removed", removed)?;
                symbols(out, labels, "inserted", inserted)?;
                out.end()?;
            }
            out.end()?;
        }
    }
    out.end()
}

fn symbols<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    key: &str,
    symbols: &[Symbol],
) -> Result<()> {
    out.key(key)?;
    out.begin_array()?;
    for &symbol in symbols {
        labels.event(out, symbol)?;
    }
    out.end()
}
