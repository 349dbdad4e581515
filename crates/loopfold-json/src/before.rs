//! Whether and when one sequence occurs before another.

use crate::JsonWriter;
use crate::find::{Places, SCHEME};
use loopfold::questions::before::{Order, OrderTotal};
use loopfold::{Fold, Result};
use std::io::Write;

/// Writes whether `query` comes before `other`, and where; for each stream too, if `per_stream`.
pub fn before<W: Write>(
    out: &mut JsonWriter<W>,
    fold: &Fold,
    (query, other): (&str, &str),
    orders: &[Order],
    total: &OrderTotal,
    per_stream: bool,
) -> Result<()> {
    let mut places = Places::new(fold);
    out.begin_object()?;
    out.field("query", query)?;
    out.field("before", other)?;
    out.field("count", total.count)?;
    out.field("others", total.others)?;
    out.field("before_count", total.before)?;
    first(out, &mut places, total.first.as_ref())?;
    out.key("earlier")?;
    places.place(out, total.earlier.and_then(|order| order.earlier))?;
    out.field("scheme", SCHEME)?;
    if per_stream {
        out.key("streams")?;
        out.begin_array()?;
        for order in orders {
            out.begin_object()?;
            out.field("stream", fold.stream(order.stream).name())?;
            out.field("count", order.count)?;
            out.field("others", order.others)?;
            out.field("before_count", order.before)?;
            first(out, &mut places, Some(order))?;
            out.key("earlier")?;
            places.place(out, order.earlier)?;
            out.end()?;
        }
        out.end()?;
    }
    Ok(out.end()?)
}

fn first<W: Write>(out: &mut JsonWriter<W>, places: &mut Places<'_>, order: Option<&Order>) -> Result<()> {
    out.key("first")?;
    let Some((first, next)) = order.and_then(|order| order.first) else { return places.place(out, None) };
    places.begin(out, first)?;
    out.key("next")?;
    places.place(out, Some(next))?;
    Ok(out.end()?)
}
