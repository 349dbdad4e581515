//! The arguments of `cc`, `c++` and `cargo`.
//!
//! They are those of a compiler or of cargo, with options such as `--version` and `--help`, so the
//! command never parses them; this is what help, completions and manual pages show.

use clap::Args;
use std::ffi::OsString;

#[derive(Args, Debug)]
#[command(after_help = "In place of the C or C++ compiler:\n  \
                  make CC=loopfold-cc CXX=loopfold-c++\n  \
                  CC=loopfold-cc CXX=loopfold-c++ ./configure\n  \
                  CC=loopfold-cc CXX=loopfold-c++ cmake -B build\n  \
                  CC=loopfold-cc CXX=loopfold-c++ meson setup build\n\n\
                  loopfold-cc and loopfold-c++ are links to loopfold: the same as `loopfold cc` and `loopfold c++`, \
                  but one word each, as many builds need. `cargo xtask build` puts them beside loopfold.\n\n\
                  Sources are compiled by clang (LOOPFOLD_CLANG, or clang, clang-19 to clang-14) and instrumented by \
                  loopfold-pass, which is beside loopfold (or LOOPFOLD_PASS). Assembler sources, -E, -S and questions to \
                  the compiler go to clang as they are. In an optimised program paths are those of optimised code.")]
pub(crate) struct CompileArgs {
    /// Record basic blocks instead of paths
    #[arg(long)]
    pub(crate) blocks: bool,
    /// Instrument only functions with such a name, linkage name or name of the source; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// Do not instrument functions with such a name; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) drop: Vec<String>,
    /// The arguments of the compiler
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_help = "Build and record a Rust program:\n  \
                  loopfold cargo build --release\n  \
                  loopfold record -o run.fold target/x86_64-unknown-linux-gnu/release/app\n\n\
                  The program and its dependencies are instrumented, but not the standard library, build scripts and \
                  procedural macros. `cargo loopfold build` is the same if a link to loopfold is called cargo-loopfold.")]
pub(crate) struct CargoArgs {
    /// Record basic blocks instead of paths
    #[arg(long)]
    pub(crate) blocks: bool,
    /// Instrument only functions with such a name, as `app::parse::*`; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// Do not instrument functions with such a name; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) drop: Vec<String>,
    /// The arguments of cargo
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}
