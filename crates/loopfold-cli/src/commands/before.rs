//! `loopfold find A --before B`: whether and when A happens before B.

use super::find::{limit, note_more, outcome};
use crate::args::FindArgs;
use crate::show::{self, Clock};
use crate::{Outcome, tables};
use anyhow::{Result, bail};
use loopfold::Fold;
use loopfold::questions::before::{Order, OrderTotal};
use loopfold::questions::query::Query;
use std::io::{BufWriter, Write};

pub(super) fn run(
    arguments: &FindArgs,
    fold: &Fold,
    text: &str,
    query: &Query,
    other: &Query,
) -> Result<Outcome> {
    if arguments.shown.all || arguments.shown.nth.is_some() {
        bail!("--before finds what happens first; it cannot be used with --all or --nth");
    }
    let orders = fold.order(query, other)?;
    let total = OrderTotal::of(&orders)?;
    if arguments.form.is_data() {
        let queries = (text, arguments.before.as_deref().unwrap_or_default());
        let per_stream = arguments.shown.per_stream || arguments.form.table_format().is_some();
        tables::print_answer(&arguments.form, "before", "streams", |out| {
            Ok(loopfold_json::before::before(out, fold, queries, &orders, &total, per_stream)?)
        })?;
        return Ok(outcome(total.first.is_some()));
    }
    let mut clock = Clock::new(fold);
    let mut out = BufWriter::new(show::raw_stdout());
    if arguments.shown.count {
        writeln!(out, "{}", total.before)?;
    } else if arguments.shown.per_stream {
        print_streams(&mut out, arguments, &orders, &mut clock)?;
    } else {
        print(&mut out, arguments, &orders, &total, &mut clock)?;
    }
    out.flush()?;
    Ok(outcome(total.first.is_some()))
}

fn print(
    out: &mut impl Write,
    arguments: &FindArgs,
    orders: &[Order],
    total: &OrderTotal,
    clock: &mut Clock<'_>,
) -> Result<()> {
    if arguments.shown.first {
        if let Some((first, next)) = total.first.and_then(|order| order.first) {
            writeln!(out, "{}", clock.line(first)?)?;
            writeln!(out, "{}", clock.line(next)?)?;
        }
        return Ok(());
    }
    let (before, count) = (show::count(total.before), show::plural(total.count, "occurrence"));
    writeln!(out, "before    {before} of {count}")?;
    if orders.len() > 1 {
        let streams = orders.iter().filter(|order| order.first.is_some()).count();
        writeln!(out, "streams   {} of {}", show::count(streams as u64), show::count(orders.len() as u64))?;
    }
    if let Some((first, next)) = total.first.and_then(|order| order.first) {
        writeln!(out, "first     {}", clock.place(first)?)?;
        writeln!(out, "next      {}", clock.place(next)?)?;
    }
    if let Some(earlier) = total.earlier.and_then(|order| order.earlier) {
        writeln!(out, "earlier   {}", clock.place(earlier)?)?;
    }
    Ok(())
}

fn print_streams(
    out: &mut impl Write,
    arguments: &FindArgs,
    orders: &[Order],
    clock: &mut Clock<'_>,
) -> Result<()> {
    let found: Vec<&Order> = orders.iter().filter(|order| order.first.is_some()).collect();
    let shown = limit(arguments.top, found.len() as u64);
    for order in &found[..shown as usize] {
        let Some((first, next)) = order.first else { continue };
        let of = format!("{} of {}", show::count(order.before), show::count(order.count));
        let (first, next) = (clock.place(first)?, clock.place(next)?);
        let earlier = match order.earlier {
            Some(earlier) => format!("; earlier: {}", clock.place(earlier)?),
            None => String::new(),
        };
        writeln!(out, "{of:>21}  first: {first}; next: {next}{earlier}")?;
    }
    note_more(out, found.len() as u64 - shown)
}
