//! Paths, decoded, are the blocks that were executed: those of clang's sanitizer coverage in another
//! build of the same source without optimisation, and those of plain calls in the same optimised code.

use crate::support::{Recorded, Workshop, assert_bijective, clangs, program, run};
use loopfold_paths::Kind;
use std::path::{Path, PathBuf};
use std::process::Command;

const COVERAGE: &str = "-fsanitize-coverage=bb,trace-pc-guard,no-prune";

/// A source, and how it becomes bitcode or an object.
enum Source {
    Clang(String, &'static str),
    Rust(&'static str),
}

impl Source {
    fn bitcode(&self, workshop: &Workshop, level: &str) -> (PathBuf, Vec<PathBuf>) {
        let bitcode = workshop.path("program.bc");
        match self {
            Self::Clang(clang, name) => {
                run(clang_command(clang, name, level).arg("-emit-llvm").arg("-o").arg(&bitcode));
                (bitcode, Vec::new())
            }
            Self::Rust(name) => {
                let library = workshop.path("program.a");
                let emit = format!("llvm-bc={},link={}", bitcode.display(), library.display());
                run(rustc_command(name, level).arg("--emit").arg(emit));
                (bitcode, vec![library])
            }
        }
    }

    /// An object that calls a function for each block, as the compiler inserts it.
    fn covered(&self, workshop: &Workshop) -> PathBuf {
        let object = workshop.path("covered.o");
        match self {
            Self::Clang(clang, name) => {
                run(clang_command(clang, name, "0").arg(COVERAGE).arg("-o").arg(&object));
                object
            }
            Self::Rust(name) => {
                let library = workshop.path("covered.a");
                let mut command = rustc_command(name, "0");
                command.arg("-Cpasses=sancov-module").arg("-Cllvm-args=-sanitizer-coverage-level=2");
                command.arg("-Cllvm-args=-sanitizer-coverage-trace-pc-guard");
                command.arg("-Cllvm-args=-sanitizer-coverage-prune-blocks=0");
                run(command.arg("--emit").arg(format!("link={}", library.display())));
                library
            }
        }
    }
}

fn clang_command(clang: &str, name: &str, level: &str) -> Command {
    let mut command = Command::new(clang);
    command.args(["-c", &format!("-O{level}"), "-gline-tables-only"]).arg(program(name));
    command
}

fn rustc_command(name: &str, level: &str) -> Command {
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "--crate-type", "staticlib", "-Ccodegen-units=1", "-Cdebuginfo=1"]);
    command.arg(format!("-Copt-level={level}")).arg(program(name));
    command
}

/// Each thread has left all functions that it entered, but those that ended the program.
fn assert_balanced(recorded: &Recorded, open_at_exit: usize, what: &str) {
    for (thread, (_, open)) in recorded.decoded() {
        let expected = if thread == 1 { open_at_exit } else { 0 };
        assert_eq!(open, expected, "{what}, thread {thread}");
    }
}

fn check(source: &Source, open_at_exit: usize, what: &str) {
    let workshop = Workshop::new();
    let covered = workshop.execute(&[&source.covered(&workshop)]);
    for level in ["0", "2"] {
        let what = format!("{what} -O{level}");
        let (bitcode, libraries) = source.bitcode(&workshop, level);
        let execute = |options: &[&str]| {
            let object = workshop.instrument(&bitcode, &[&["-O", level], options].concat());
            let inputs: Vec<&Path> =
                [object.as_path()].into_iter().chain(libraries.iter().map(PathBuf::as_path)).collect();
            let recorded = workshop.execute(&inputs);
            assert_eq!(recorded.printed, covered.printed, "{what}");
            assert_balanced(&recorded, open_at_exit, &what);
            recorded
        };
        let checked = execute(&["--check-blocks"]);
        assert_bijective(&checked.decoded(), &checked.blocks, &what);
        let plain = execute(&[]);
        assert_eq!(plain.tokens, checked.tokens, "{what}");
        if level == "0" {
            assert_bijective(&plain.decoded(), &covered.blocks, &what);
        }
        let blocks = execute(&["--blocks"]);
        assert!(blocks.kinds().iter().all(|&kind| kind == Kind::Blocks));
        assert_bijective(&blocks.decoded(), &checked.blocks, &what);
    }
}

/// A program that ends by `exit` leaves `main` open.
#[test]
fn flow_of_c() {
    for clang in clangs() {
        check(&Source::Clang(clang.clone(), "flow.c"), 1, &clang);
    }
}

#[test]
fn threads() {
    let clang = clangs().remove(0);
    check(&Source::Clang(clang, "threads.c"), 0, "threads");
}

#[test]
fn exceptions_of_cpp() {
    for clang in clangs() {
        check(&Source::Clang(clang.clone(), "exceptions.cpp"), 0, &clang);
    }
}

#[test]
fn panics_of_rust() {
    check(&Source::Rust("panics.rs"), 0, "rustc");
}

#[test]
fn descriptions_have_lines_and_instructions() {
    let workshop = Workshop::new();
    let clang = clangs().remove(0);
    let source = Source::Clang(clang, "flow.c");
    let (bitcode, _) = source.bitcode(&workshop, "0");
    let recorded = workshop.execute(&[&workshop.instrument(&bitcode, &["-O", "0"])]);
    let text = std::fs::read_to_string(program("flow.c")).unwrap();
    let line_of =
        |text_of_line: &str| text.lines().position(|line| line.contains(text_of_line)).unwrap() as u32 + 1;
    let function = recorded.functions().find(|function| function.name() == "irreducible").unwrap();
    assert!(function.file().ends_with("programs/flow.c"));
    assert_eq!(function.line(), line_of("int irreducible("));
    let blocks: Vec<_> = function.numbering().graph().blocks().map(|id| function.block(id)).collect();
    assert!(blocks.iter().all(|block| block.instructions > 0));
    assert!(blocks.iter().any(|block| block.first_line == line_of("k += n;")));
    let ladder = recorded.functions().find(|function| function.name() == "ladder").unwrap();
    assert!(ladder.paths() > 1 << 19 && ladder.paths() < 1 << 22, "{}", ladder.paths());
    assert!(ladder.instructions(0).unwrap() > 24 && ladder.instructions(ladder.paths()).is_none());
}
