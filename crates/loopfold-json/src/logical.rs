//! The logical trace: one nest for all processes.

use crate::JsonWriter;
use loopfold::Fold;
use loopfold::questions::logical::{LogicalNode, LogicalTrace};
use std::io::{Result, Write};

/// Writes a logical trace that was found to be true.
pub fn logical<W: Write>(out: &mut JsonWriter<W>, fold: &Fold, logical: &LogicalTrace) -> Result<()> {
    let size = logical.size();
    out.begin_object()?;
    out.field("streams", fold.streams().len())?;
    out.field("events", fold.events())?;
    out.field("written", size.events)?;
    out.field("loops", size.loops)?;
    out.field("branches", size.branches)?;
    out.field("terms", size.terms)?;
    out.field("exceptions", size.exceptions)?;
    out.key("parts")?;
    out.begin_array()?;
    for part in &logical.parts {
        out.begin_object()?;
        out.field("name", part.name.as_str())?;
        out.key("streams")?;
        out.array(part.streams.iter().map(|&id| fold.stream(id).title()))?;
        out.key("nest")?;
        nodes(out, &part.nodes)?;
        out.end()?;
    }
    out.end()?;
    out.end()
}

fn nodes<W: Write>(out: &mut JsonWriter<W>, body: &[LogicalNode]) -> Result<()> {
    out.begin_array()?;
    for node in body {
        match node {
            LogicalNode::Event(event) => out.value(event.to_string().as_str())?,
            LogicalNode::Loop { times, body } => {
                out.begin_object()?;
                out.field("times", times.to_string().as_str())?;
                out.key("body")?;
                nodes(out, body)?;
                out.end()?;
            }
            LogicalNode::Branch { guard, body } => {
                out.begin_object()?;
                out.field("if", guard.to_string().as_str())?;
                out.key("body")?;
                nodes(out, body)?;
                out.end()?;
            }
        }
    }
    out.end()
}
