//! The Python package: folding and unfolding an array beside the same in Rust and `ndarray.copy`, and
//! the cost of tracing Python code beside cProfile and viztracer.

use super::{Settings, progress};
use crate::python::{Environment, output_of};
use crate::table::{Column, Table, grouped, short};
use anyhow::{Context as _, Result};
use loopfold::Trace;
use loopfold::folders::{Auto, Folder, Outermost, fold_trace};
use std::time::{Duration, Instant};

pub(super) fn run(settings: &Settings) -> Result<()> {
    let environment = Environment::new(&crate::root())?;
    let packages = ["install", "--quiet", "--requirement", "bench/requirements.txt"];
    output_of(environment.command("pip").args(packages))?;
    println!("{}", arrays(settings, &environment)?);
    println!("{}", tracing(&environment)?);
    Ok(())
}

fn arrays(settings: &Settings, environment: &Environment) -> Result<Table> {
    let columns = [
        Column::Text("family"),
        Column::Number("symbols"),
        Column::Number("outermost, Rust ms"),
        Column::Number("Python ms"),
        Column::Number("times"),
        Column::Number("auto, Rust ms"),
        Column::Number("Python ms"),
        Column::Number("times"),
        Column::Number("expand ms"),
        Column::Number("copy ms"),
        Column::Number("times"),
    ];
    let title = "Arrays of uint32, elapsed time on one thread (expand: on all), the fastest of some; Rust folds\n\
                 symbols that are there already. Aims: 1.1 times for folding, 2 times for expand where there are loops";
    let mut table = Table::new(title, &columns);
    let length = if settings.quick { 1_000_000 } else { 10_000_000 };
    for family in settings.families() {
        progress(format_args!("{} in Python", family.name));
        let stream = family.make(length);
        let trace = Trace::of_integers("generated", stream.iter().copied())?;
        let (outermost, auto) = (fastest(&trace, &Outermost::default())?, fastest(&trace, &Auto)?);
        drop(trace);
        let file = tempfile::NamedTempFile::new()?;
        let bytes: Vec<u8> = stream.iter().flat_map(|symbol| symbol.to_le_bytes()).collect();
        std::fs::write(file.path(), bytes)?;
        let answer = output_of(environment.command("python").arg("bench/arrays.py").arg(file.path()))?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let seconds = |name: &str| answer[name].as_f64().context("the script has measured nothing");
        let mut cells = vec![family.name.to_string(), grouped(stream.len() as u128)];
        let pairs = [
            (outermost.as_secs_f64(), seconds("outermost")?),
            (auto.as_secs_f64(), seconds("auto")?),
            (seconds("copy")?, seconds("expand")?),
        ];
        for (index, (base, own)) in pairs.into_iter().enumerate() {
            let shown = if index == 2 { [own, base] } else { [base, own] };
            cells.extend(shown.map(|seconds| short(seconds * 1e3)));
            cells.push(format!("{:.2}", own / base));
        }
        table.row(cells);
    }
    Ok(table)
}

/// The symbols are there already: what Python must do to get them counts.
fn fastest(trace: &Trace, folder: &dyn Folder) -> Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let again = trace.clone();
        let started = Instant::now();
        fold_trace(again, folder, 1)?;
        least = least.min(started.elapsed());
    }
    Ok(least)
}

fn tracing(environment: &Environment) -> Result<Table> {
    progress("tracing of Python code");
    let columns = [
        Column::Text("program"),
        Column::Text("traced by"),
        Column::Number("ms"),
        Column::Number("times"),
        Column::Number("bytes"),
    ];
    let title = "Tracing the functions of Python programs, writing included, the fastest of three; `times` of the\n\
                 program alone; cProfile keeps sums only";
    let mut table = Table::new(title, &columns);
    let answer = output_of(environment.command("python").arg("bench/tracing.py"))?;
    let answer: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&answer)?;
    for (program, ways) in &answer {
        let plain = ways["plain"]["seconds"].as_f64().unwrap_or(1.0);
        for (way, figures) in ways.as_object().into_iter().flatten() {
            let seconds = figures["seconds"].as_f64().unwrap_or(0.0);
            table.row([
                program.clone(),
                way.clone(),
                short(seconds * 1e3),
                format!("{:.1}", seconds / plain),
                grouped(figures["bytes"].as_u64().map_or(0, u128::from)),
            ]);
        }
    }
    Ok(table)
}
