//! Measures how fast OTF2 archives are read, beside `otf2-print`, which uses the same library: in
//! elapsed time, because they are read on all cores.
//!
//! The archive is that of 16 ranks that send, receive and wait, written by the script of the
//! tests of `loopfold-otf2`, which needs python3-otf2.

use super::{Settings, progress};
use crate::table::{Column, Table, grouped, short};
use anyhow::{Result, ensure};
use loopfold::trace::{Collector, Projection, Sink as _, TimesKept};
use loopfold_otf2::Otf2;
use loopfold_sources::{Context, Options, Source as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const ATTEMPTS: usize = 3;
/// How much faster than otf2-print it should be.
const TARGET: f64 = 5.0;

/// Measures and prints the table; prints the reason if something is missing.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    if let Err(reason) = loopfold_otf2::is_available() {
        println!("Reading OTF2 is not measured: {reason}\n");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("archive");
    let calls = if settings.quick { "3000" } else { "20000" };
    progress(format_args!("writing an OTF2 archive of 16 ranks with {calls} calls each"));
    let script = crate::root().join("crates/loopfold-otf2/tests/archive.py");
    let written = Command::new("/usr/bin/python3").arg(script).arg("large").arg(&archive).arg(calls).output();
    if !written.is_ok_and(|output| output.status.success()) {
        println!("Reading OTF2 is not measured: it needs python3-otf2\n");
        return Ok(());
    }
    let anchor = archive.join("traces.otf2");
    progress(format_args!("reading the OTF2 archive"));
    let columns = [
        Column::Text("how"),
        Column::Number("events"),
        Column::Number("seconds"),
        Column::Number("times faster"),
    ];
    let mut table = Table::new("Reading OTF2, 16 ranks, on all cores (time of day)", &columns);
    let printed = best(|| print(&anchor))?.1;
    table.row(["otf2-print > /dev/null".to_string(), String::new(), short(printed), String::new()]);
    for (how, times) in
        [("--mpi-only, without times", TimesKept::None), ("--mpi-only, with times", TimesKept::All)]
    {
        let (events, seconds) = best(|| read(&anchor, times))?;
        table.row([how.to_string(), grouped(events), short(seconds), short(printed / seconds)]);
    }
    println!("{table}");
    println!("target: at least {TARGET} times as fast as otf2-print\n");
    Ok(())
}

fn best<T>(mut work: impl FnMut() -> Result<T>) -> Result<(T, f64)> {
    let mut attempt = || {
        let started = Instant::now();
        work().map(|value| (value, started.elapsed().as_secs_f64()))
    };
    let mut fastest = attempt()?;
    for _ in 1..ATTEMPTS {
        let next = attempt()?;
        if next.1 < fastest.1 {
            fastest = next;
        }
    }
    Ok(fastest)
}

fn print(anchor: &Path) -> Result<()> {
    let status = Command::new("otf2-print").arg(anchor).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "otf2-print failed");
    Ok(())
}

fn read(anchor: &Path, times: TimesKept) -> Result<u64> {
    let options = Options { mpi_only: true, ..Options::default() };
    let mut collector = Collector::new(Projection::default(), times);
    let mut context = Context::new(&options, &mut collector, "archive", false).at(Some(anchor), || Ok(()));
    Otf2.read(&mut &b""[..], &mut context)?;
    Ok(collector.events())
}
