//! What commands print to be read, as a whole: kept in `tests/texts`, a file for each.
//!
//! `LOOPFOLD_UPDATE_TEXTS=1 cargo test -p loopfold-cli --test all texts` writes them again; look at
//! the difference before it is committed.

use crate::support::corpus::trace_of;
use crate::support::{Folder, run};
use loopfold::archive;
use loopfold::folders::{Auto, fold_trace};
use loopfold_testing::corpus;
use std::path::Path;

/// Compares the text of a command with the one that is kept.
fn check(name: &str, arguments: &[&str]) {
    let text = run(arguments).ok().text();
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{name} is wider than 80 columns");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts").join(format!("{name}.txt"));
    if std::env::var_os("LOOPFOLD_UPDATE_TEXTS").is_some() {
        std::fs::write(&kept, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&kept).unwrap_or_default();
    assert_eq!(text, expected, "{name}");
}

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A case of the corpus as an archive.
fn archive_of(folder: &Folder, name: &str) -> String {
    let case = corpus::all().into_iter().find(|case| case.name == name).unwrap();
    let mut file = Vec::new();
    archive::write(&fold_trace(trace_of(&case), &Auto, 1).unwrap(), &mut file).unwrap();
    folder.file(&format!("{name}.fold"), file)
}

/// Steps of a training program as a profiler records them: one slow load, and a checkpoint after
/// every tenth step.
fn steps() -> String {
    let (mut at, mut slices) = (0, Vec::new());
    let mut slice = |name: &str, start: u64, duration: u64| {
        slices.push(format!(r#"{{"ph":"X","name":"{name}","ts":{start},"dur":{duration},"pid":1,"tid":1}}"#));
    };
    for step in 0..40 {
        let load = if step == 27 { 90 } else { 20 };
        slice("step", at, load + 100);
        slice("load", at + 1, load);
        for layer in 0..3 {
            slice(
                "void kernels::multiply<float, 128, 64, tiled_layout>(float const*, float*)",
                at + load + 5 + 20 * layer,
                15,
            );
        }
        at += load + 110;
        if step % 10 == 9 {
            slice("checkpoint", at, 500);
            at += 510;
        }
    }
    format!("[{}]", slices.join(","))
}

#[test]
fn loops() {
    let folder = Folder::new();
    let steps = folder.file("steps.json", steps());
    check("loops-lu", &["loops", &example("lu.txt.zst")]);
    check("loops-ranks", &["loops", &example("lu-4x4.fold"), "--top", "2"]);
    check("loops-steps", &["loops", &steps]);
    check("loops-hardly-any", &["loops", &archive_of(&folder, "all-different")]);
    let mixed: String = (0..400u32)
        .map(|round| {
            let odd = round.wrapping_mul(2_654_435_761) >> 20;
            format!("parse {odd}\n{}emit {}\n", "next\n".repeat(1 + round as usize % 3), odd / 7)
        })
        .collect();
    check("loops-largest", &["loops", &folder.file("lexer.txt", mixed), "--exact"]);
}

#[test]
fn stats() {
    let folder = Folder::new();
    check("stats-steps", &["stats", &folder.file("steps.json", steps())]);
    check("stats-calls", &["stats", &archive_of(&folder, "calls-with-blocks")]);
}

#[test]
fn hot() {
    let folder = Folder::new();
    check("hot-lu", &["hot", &example("lu.txt.zst"), "--min-length", "4", "--min-cost", "20%"]);
    let steps = folder.file("steps.json", steps());
    check("hot-steps", &["hot", &steps, "--cost", "self", "--top", "3"]);
}

#[test]
fn iterations() {
    let folder = Folder::new();
    let steps = folder.file("steps.json", steps());
    check("iterations", &["iterations", &steps, "--top", "12"]);
    check("iterations-list", &["iterations", &steps, "--list"]);
    check("iterations-slow", &["iterations", &steps, "--slow", "1"]);
}

#[test]
fn communication() {
    let folder = Folder::new();
    check("patterns", &["patterns", &example("lu-4x4.fold"), "--top", "2"]);
    check("similar", &["similar", &example("lu-4x4.fold"), "--number", "2"]);
    check("waits", &["waits", &archive_of(&folder, "waits")]);
    check("context", &["context", &example("lu.txt.zst"), "Y"]);
}
