//! Figure 1 of Knödtel's paper: the floating-point instructions of a stencil code.
//!
//! The figure prints the decomposition, not the trace, and with misprints (`l^12 l` are
//! thirteen loads). So the printed form is unfolded and folded again. The paper's trace of
//! 10⁶ instructions went on with further sweeps over the grid; here the printed sweep is
//! repeated, with one load between sweeps.

use super::notation::parse;
use super::{events_of, fold, loops_in, nest_of, symbols};
use crate::clock;
use crate::table::{Column, Table, grouped};
use anyhow::Result;
use loopfold::folders::{Folder, Halving, Innermost, Outermost};
use loopfold_testing::Nest;

const START: &str = "(cs)^1024l";
const ROWS: &str = "(l^7(l^7a^7)^2l^2a^7m^7l^2s^7l^19a^12l^2a^8m^8(ls^2)^2s^4l^15a^12l^2a^8m^8(ls^3)^2s^2\
                    l^12la^7l^2(l^2a^7)^2m^7s^7)^256";

/// The decomposition as printed.
fn figure() -> Nest {
    parse(&format!("{START}{ROWS}"))
}

/// The first `length` instructions of a program that goes on with such sweeps.
fn many_sweeps(length: usize) -> Vec<u32> {
    let sweep = parse(&format!("{ROWS}l")).unfold();
    let mut stream = parse(START).unfold();
    while stream.len() < length {
        stream.extend_from_slice(&sweep);
    }
    stream.truncate(length);
    stream
}

/// Prints what is found in both.
pub(super) fn print() -> Result<()> {
    let columns = [
        Column::Text("stream"),
        Column::Number("events"),
        Column::Text("order"),
        Column::Number("folded"),
        Column::Number("% of events"),
        Column::Number("longest body"),
        Column::Number("most iterations"),
        Column::Number("ms"),
    ];
    let published = figure();
    let title = format!(
        "Knödtel, figure 1(b): as printed it has {} instructions for {}, loops of 228 × 256 and 2 × 1024.\n\
         Published for the first 10^6 instructions: fewer than 500, 0.05 %; 13.6 s on a server of 192 cores",
        published.folded(),
        grouped(events_of(&published.0)),
    );
    let mut table = Table::new(title, &columns);
    let folders: [&dyn Folder; 3] = [&Halving::default(), &Outermost::default(), &Innermost::default()];
    for (name, stream) in [("figure 1(b)", published.unfold()), ("sweeps", many_sweeps(1_000_000))] {
        for folder in folders {
            let nest = nest_of(&stream, folder)?;
            let symbols = symbols(&stream)?;
            let (folded, time) = clock::best(|| fold(&symbols, folder));
            folded?;
            let loops = loops_in(&nest.0);
            let longest = loops.iter().map(|(body, _)| events_of(body)).max().unwrap_or(0);
            let most = loops.iter().map(|&(_, times)| times).max().unwrap_or(0);
            table.row([
                name.to_string(),
                grouped(stream.len() as u128),
                folder.name().to_string(),
                nest.folded().to_string(),
                format!("{:.3}", 100.0 * nest.folded() as f64 / stream.len() as f64),
                grouped(longest),
                grouped(most),
                format!("{:.2}", 1e3 * time.as_secs_f64()),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_decomposition_is_found_again() {
        let printed = figure();
        for folder in [&Halving::default() as &dyn Folder, &Outermost::default()] {
            let nest = nest_of(&printed.unfold(), folder).unwrap();
            assert_eq!(nest.unfold(), printed.unfold());
            assert!(nest.folded() <= printed.folded(), "{}", nest.folded());
            let loops: Vec<(u64, u64)> =
                loops_in(&nest.0).iter().map(|&(body, times)| (events_of(body), times)).collect();
            assert!(loops.contains(&(2, 1024)) && loops.contains(&(228, 256)), "{loops:?}");
        }
    }

    #[test]
    fn a_million_instructions_fold_to_fewer_than_five_hundred() {
        let stream = many_sweeps(1_000_000);
        for folder in [&Halving::default() as &dyn Folder, &Outermost::default()] {
            assert!(nest_of(&stream, folder).unwrap().folded() < 500);
        }
    }
}
