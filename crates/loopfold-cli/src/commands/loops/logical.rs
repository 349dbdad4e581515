//! `loops --logical`: one nest for all processes, checked before it is shown.

use crate::args::LoopsArgs;
use crate::{Outcome, folding, input, show};
use anyhow::Result;
use loopfold::questions::logical::{LogicalNode, LogicalSize, LogicalTrace};
use loopfold::trace::TimesKept;
use std::io::Write;

pub(super) fn run(arguments: &LoopsArgs) -> Result<Outcome> {
    let (fold, notes) = input::fold(&arguments.read, TimesKept::None, &arguments.folder)?;
    show::notes(&notes);
    let logical = LogicalTrace::of(&fold, &folding::outermost)?;
    // It is shown only if it is true.
    logical.verify(&fold)?;
    if arguments.form.is_data() {
        show::print_json_line(|out| -> Result<()> {
            Ok(loopfold_json::logical::logical(out, &fold, &logical)?)
        })?;
        return Ok(Outcome::Done);
    }
    let mut out = show::stdout();
    writeln!(out, "{}", heading(&logical, fold.events()))?;
    let depth = arguments.depth.unwrap_or(usize::MAX);
    for part in &logical.parts {
        if !part.name.is_empty() {
            writeln!(out, "\n{}", show::plain(&part.name))?;
        }
        print(&mut out, &part.nodes, 2, depth)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// What was merged, and how much is left.
fn heading(logical: &LogicalTrace, events: Option<u64>) -> String {
    let LogicalSize { events: written, branches, exceptions, .. } = logical.size();
    let streams: usize = logical.parts.iter().map(|part| part.streams.len()).sum();
    let branches = match branches {
        0 => "no branches".to_string(),
        1 => "1 branch".to_string(),
        _ => format!("{} branches", show::count(branches as u64)),
    };
    let exceptions = match exceptions {
        0 => String::new(),
        _ => format!(" · {} listed by rank", show::plural(exceptions as u64, "exception")),
    };
    format!(
        "{} of {} written as {} · {branches}{exceptions}",
        show::events(events),
        show::plural(streams as u64, "process"),
        show::count(written as u64),
    )
}

fn print(out: &mut impl Write, nodes: &[LogicalNode], indent: usize, depth: usize) -> Result<()> {
    for node in nodes {
        match node {
            LogicalNode::Event(event) => writeln!(out, "{:indent$}{}", "", show::plain(event.to_string()))?,
            LogicalNode::Loop { times, body } => {
                let times = show::plain(times.to_string());
                match &body[..] {
                    [LogicalNode::Event(event)] => {
                        writeln!(out, "{:indent$}{times} × {}", "", show::plain(event.to_string()))?;
                    }
                    _ if depth == 0 => writeln!(out, "{:indent$}{times} × …", "")?,
                    _ => {
                        writeln!(out, "{:indent$}{times} ×", "")?;
                        print(out, body, indent + 2, depth - 1)?;
                    }
                }
            }
            LogicalNode::Branch { guard, body } => {
                writeln!(out, "{:indent$}if {guard}", "")?;
                print(out, body, indent + 2, depth)?;
            }
        }
    }
    Ok(())
}
