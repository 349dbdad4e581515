//! The papers' own procedures beside ours, at lengths that theirs can do.

use super::{Settings, progress};
use crate::clock;
use crate::table::{Column, Table, grouped, short};
use anyhow::Result;
use loopfold::Symbol;
use loopfold::fold::FoldBuilder;
use loopfold::folders::{Folder, Halving, Innermost, Outermost};
use loopfold_testing::oracles;
use std::time::Duration;

const LENGTHS: [usize; 4] = [2_000, 5_000, 10_000, 20_000];

/// A procedure that is expected to take longer than this is not executed.
const PATIENCE: Duration = Duration::from_secs(4);

/// A paper's procedure, and the folder that gives the same.
struct Procedure {
    name: &'static str,
    literal: fn(&[u32]) -> usize,
    folder: fn() -> Box<dyn Folder>,
}

static PROCEDURES: &[Procedure] = &[
    Procedure {
        name: "outermost (Xu, section IV)",
        literal: |stream| oracles::outermost_by_levels(stream).len(),
        folder: || Box::new(Outermost::default()),
    },
    Procedure {
        name: "innermost (Xu, figure 1)",
        literal: oracles::innermost_by_levels,
        folder: || Box::new(Innermost::default()),
    },
    Procedure {
        name: "halving (Knödtel)",
        literal: oracles::halving_by_hashes,
        folder: || Box::new(Halving::default()),
    },
];

/// Measures every procedure on every family and prints the table.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let columns = [
        Column::Text("procedure"),
        Column::Text("family"),
        Column::Number("symbols"),
        Column::Number("the paper's ms"),
        Column::Number("ours ms"),
        Column::Number("faster"),
    ];
    let mut table = Table::new("The papers' procedures word for word, and ours (CPU time)", &columns);
    for procedure in PROCEDURES {
        for family in settings.families() {
            progress(format_args!("{} on {}", procedure.name, family.name));
            for (length, theirs, ours) in compare(procedure, |length| family.make(length))? {
                table.row([
                    procedure.name.to_string(),
                    family.name.to_string(),
                    grouped(length as u128),
                    short(1e3 * theirs.as_secs_f64()),
                    short(1e3 * ours.as_secs_f64()),
                    format!("{}x", short(theirs.as_secs_f64() / ours.as_secs_f64())),
                ]);
            }
        }
    }
    println!("{table}");
    Ok(())
}

/// Lengths, the literal procedure's times and ours, up to the time limit.
fn compare(
    procedure: &Procedure,
    make: impl Fn(usize) -> Vec<u32>,
) -> Result<Vec<(usize, Duration, Duration)>> {
    let mut times: Vec<(usize, Duration, Duration)> = Vec::new();
    for length in LENGTHS {
        if let Some(&(before, theirs, _)) = times.last() {
            let longer = length as f64 / before as f64;
            if theirs.mul_f64(longer * longer) > PATIENCE {
                break;
            }
        }
        let stream = make(length);
        let (_, theirs) = clock::timed(|| (procedure.literal)(&stream));
        let symbols: Vec<Symbol> =
            stream.iter().map(|&raw| Symbol::new(raw as usize)).collect::<loopfold::Result<_>>()?;
        let folder = (procedure.folder)();
        let (folded, ours) = clock::best(|| folder.fold(&symbols, &mut FoldBuilder::default()));
        folded?;
        times.push((stream.len(), theirs, ours));
    }
    Ok(times)
}
