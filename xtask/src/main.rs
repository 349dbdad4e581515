//! The chores of the repository: `cargo xtask CHORE`.
//!
//! * `build`, `install`: the command and the compiler pass, side by side.
//! * `test`: everything that must hold before a change is taken.
//! * `bench`: time, memory and sizes, beside other tools and the papers' procedures.
//! * `faults`: what is left of files when commands are killed, or write the same one.
//! * `unchanged`: whether two builds of the command answer the same.
//! * `papers`: reproduces the papers' tables and figures.
//! * `generate`: the files in the repository that are made by a program.

mod arguments;
mod bench;
mod build;
mod clock;
mod faults;
mod generate;
mod layers;
mod papers;
mod python;
mod real_programs;
mod recording;
mod table;
mod test;
mod unchanged;

use anyhow::{Result, bail};
use arguments::Arguments;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask CHORE

  build                     loopfold and loopfold-pass in release mode, side by side, with links
                            loopfold-cc, loopfold-c++ and cargo-loopfold
  install --prefix DIR      the same in DIR/bin, and the library for C in DIR/lib and DIR/include
  test [--quick]            formatting, layers, lints, documents, tests, the README's first command;
                            --quick leaves out the documents
  bench [loops] [--large] [--quick] [--only FAMILY] [--traces DIR]
                            folding, reading and archive sizes; streams of 10^5 to 10^7 symbols,
                            --large adds 10^8, --quick leaves out 10^7
  bench reading [--quick]   only the speed of reading
  bench sizes [--quick] [--traces DIR]
                            only the sizes of archives, also of the traces under DIR
  bench defaults [--quick] [--traces DIR]
                            auto beside --smallest: bytes, time and memory, also of the traces under DIR
  bench online [--quick]    memory while 10^9 events are folded as they arrive; --quick takes 10^8
  bench questions [--quick] [--traces DIR]
                            questions on a fold, beside unfolding it and searching the events, also
                            of the traces and archives under DIR
  bench grammars [--quick]  online and offline grammars of 10^7 symbols (--quick: 10^6), some of
                            them recorded with valgrind
  bench mpi [--quick]       communication patterns, and reading OTF2 beside otf2-print
  bench waits [--quick]     who waits for whom, beside a program that matches message by message
  bench record [--quick]    recording MPI programs: time of a call, wall time, memory, sizes of
                            archives; without --quick the last takes minutes
  bench skeleton [--quick] [--program NAME]
                            what skeletons of the MPI examples predict, on two cores and on one, and
                            the size of logical traces; NAME is the beginning of an example's name,
                            or `logical` for the sizes alone
  bench nodes [--quick]     loopfold-mpi in 1 to 8 processes: time, traffic, memory; 4,096 ranks
  bench near [--quick]      loops with exceptions: speed, known loops, random streams
  bench threads [--large] [--quick] [--only FAMILY]
                            one stream of 10^7 symbols on one thread and on two; --large takes 10^8,
                            --quick 10^6
  faults [--kills N] [--recordings N] [--paths N] [--pairs N]
                            kills commands (1,000 times), recordings of MPI (200) and of paths
                            (400) at random moments, and starts recordings in pairs on one
                            output (20); needs Open MPI and clang
  unchanged --before COMMAND [--after COMMAND] [--traces DIR] [--only NAME] [--limit SECONDS]
                            asks two builds of the command the same questions about the examples and
                            the traces under DIR, and lists the answers that differ
  papers [--traces DIR]     the papers' tables and figures, beside the published values; figure 9 of
                            whole program paths also for the traces under DIR; with --recorded those
                            of MPI traces also from recordings, which needs Open MPI, and with --paths
                            those of whole program paths from bzip2, Lua and our examples, which
                            needs clang and the network
  papers --figures DIR      figures 6(a) and 6(b) of hierarchical decomposition as SVG in DIR, by Python
  generate                  writes the files in the repository that a program makes";

fn main() -> ExitCode {
    match run(Arguments::of_process()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("build") => build::run(arguments),
        Some("install") => build::install(arguments),
        Some("test") => test::run(arguments),
        Some("bench") => bench::run(arguments),
        Some(bench::CHILD) => bench::child(arguments),
        Some(bench::defaults::CHILD) => bench::defaults::child(arguments),
        Some(bench::mpi::CHILD) => bench::mpi::child(arguments),
        Some(bench::waits::CHILD) => bench::waits::child(arguments),
        Some(bench::near::CHILD) => bench::near::child(arguments),
        Some("faults") => faults::run(arguments),
        Some("unchanged") => unchanged::run(arguments),
        Some("papers") => papers::run(arguments),
        Some("generate") => generate::run(arguments),
        Some("help" | "--help" | "-h") | None => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => bail!("there is no chore `{other}`\n{USAGE}"),
    }
}

/// The top of the repository: the directory above this package.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let above = package.and_then(|package| package.parent().map(PathBuf::from));
    above.unwrap_or_else(|| PathBuf::from("."))
}
