//! The size of archives without times: it should hardly depend on processes and iterations.

use super::{Programs, progress};
use crate::table::{Column, Table, grouped};
use anyhow::Result;

/// A program, its numbers of processes, and the most bytes that an archive should take.
const CASES: [(&str, &[usize], u64); 2] = [("ring", &[2, 4], 300), ("stencil", &[4, 16, 64], 1500)];

const ITERATIONS: [u64; 2] = [1_000, 100_000];

pub(super) fn print(programs: &Programs, quick: bool) -> Result<()> {
    let columns = [
        Column::Text("program"),
        Column::Number("processes"),
        Column::Number("iterations"),
        Column::Number("bytes"),
        Column::Number("target"),
        Column::Number("growth (target 16)"),
    ];
    let mut table = Table::new("Size of an archive without times", &columns);
    for (name, processes, most) in CASES {
        let program = programs.compile(&format!("examples/mpi/{name}.c"))?;
        for &processes in processes {
            let mut first = None;
            // Many processes on two cores take minutes for that many.
            let is_affordable = |iterations: &u64| !quick || processes < 16 || *iterations == ITERATIONS[0];
            for iterations in ITERATIONS.into_iter().filter(is_affordable) {
                progress(format_args!("{name} on {processes} processes, {iterations} iterations"));
                let steps = iterations.to_string();
                // The side of a stencil, which the size does not depend on; bytes of a message of a ring.
                let arguments = [steps.as_str(), if name == "stencil" { "4" } else { "1024" }];
                programs.run(processes, &program, &arguments, Some(&["--times", "none"]))?;
                let bytes = programs.archive().metadata()?.len();
                let smallest = *first.get_or_insert(bytes);
                let growth = bytes as i64 - smallest as i64;
                table.row([
                    name.to_string(),
                    processes.to_string(),
                    grouped(iterations),
                    bytes.to_string(),
                    most.to_string(),
                    if iterations == ITERATIONS[0] { String::new() } else { growth.to_string() },
                ]);
            }
        }
    }
    println!("{table}");
    Ok(())
}
