//! Hot subpaths.

use crate::{JsonWriter, Labels};
use loopfold::Fold;
use loopfold::questions::hot::{self, HotSubpath, HotSubpaths, Selection};
use std::io::{Result, Write};

/// Writes hot subpaths; `cost_of` is what an event costs.
pub fn hot<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    hot: &HotSubpaths,
    config: &hot::Config,
    cost_of: &str,
) -> Result<()> {
    let mut labels = Labels::new(fold.alphabet());
    out.begin_object()?;
    out.field("selection", selection_name(config.selection))?;
    out.field("min_length", config.min_length)?;
    out.field("max_length", config.max_length)?;
    out.field("cost_of", cost_of)?;
    cost(out, "total", hot.total)?;
    cost(out, "limit", hot.limit)?;
    out.field("found", hot.found)?;
    out.field("left_out", hot.found - hot.subpaths.len() as u64)?;
    out.key("subpaths")?;
    out.begin_array()?;
    for HotSubpath { events, count, cost: its_cost, share, streams, .. } in &hot.subpaths {
        out.begin_object()?;
        out.key("events")?;
        labels.events(out, events.iter().copied())?;
        out.field("count", *count)?;
        cost(out, "cost", *its_cost)?;
        out.field("share", *share)?;
        out.key("streams")?;
        out.array(streams.iter().map(|&(stream, _)| fold.stream(stream).title()))?;
        out.key("stream_counts")?;
        out.array(streams.iter().map(|&(_, count)| count))?;
        out.end()?;
    }
    out.end()?;
    labels.cut_field(out)?;
    out.end()
}

fn selection_name(selection: Selection) -> &'static str {
    match selection {
        Selection::Minimal => "minimal",
        Selection::All => "all",
        Selection::Paper => "paper",
    }
}

/// A whole number without a point, where it is exactly that.
fn cost<W: Write>(out: &mut JsonWriter<W>, key: &str, cost: f64) -> Result<()> {
    let whole = cost as u64;
    if cost < (1u64 << 53) as f64 && whole as f64 == cost {
        out.field(key, whole)
    } else {
        out.field(key, cost)
    }
}
