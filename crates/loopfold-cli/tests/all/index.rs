//! The index of functions from the outside: written where it is of use, shown, checked, and
//! rebuilt by `merge`.

use crate::support::{Folder, run};
use loopfold::archive::{self, SectionKind};
use serde_json::{Value, json};
use std::io::Cursor;

const CALLS: &str = "call main\n1\ncall f\n0\n1\nreturn\n2\ncall f\n0\n2\nreturn\n3\nreturn\n";

fn stats(archive: &str) -> Value {
    run(&["stats", archive, "--json"]).ok().json()
}

fn segments(archive: &str) -> Value {
    run(&["verify", archive, "--json"]).ok().json()["archives"][0]["index_segments"].clone()
}

#[test]
fn traces_of_calls_get_an_index_and_others_do_not() {
    let folder = Folder::new();
    let (calls, lines) = (folder.file("x.calls", CALLS), folder.file("x.txt", "a\nb\na\nb\n"));
    let archive = folder.at("x.fold");
    run(&["fold", &calls, "-o", &archive]).ok();
    assert!(stats(&archive)["index_bytes"].as_u64() > Some(0));
    assert!(run(&["stats", &archive]).ok().text().contains("\nindex     "));
    assert!(segments(&archive).as_u64() > Some(1));
    // Fewer segments, and none.
    run(&["fold", &calls, "-o", &archive, "--index=2"]).ok();
    assert_eq!(segments(&archive), json!(2));
    run(&["fold", &calls, "-o", &archive, "--no-index"]).ok();
    assert_eq!((&stats(&archive)["index_bytes"], segments(&archive)), (&json!(0), json!(0)));
    assert!(!run(&["stats", &archive]).ok().text().contains("\nindex"));
    // Where it cannot be, that is said if it was asked for.
    let quiet = run(&["fold", &lines, "-o", &archive]).ok();
    assert!(!quiet.err.contains("index"), "{}", quiet.err);
    assert_eq!(stats(&archive)["index_bytes"], json!(0));
    let asked = run(&["fold", &lines, "-o", &archive, "--index"]).ok();
    assert!(asked.err.contains("there is no index"), "{}", asked.err);
    run(&["fold", &calls, "-o", &archive, "--index=0"]).fails_with(&["--index"]);
    run(&["fold", &calls, "-o", &archive, "--index", "--no-index"]).fails_with(&["--no-index"]);
}

#[test]
fn merge_makes_the_index_anew_if_all_have_one() {
    let folder = Folder::new();
    let trace = folder.file("x.calls", CALLS);
    let [one, two, none, all] = ["one.fold", "two.fold", "none.fold", "all.fold"].map(|name| folder.at(name));
    run(&["fold", &trace, "-o", &one]).ok();
    run(&["fold", &folder.file("y.calls", "call g\n1\n1\n1\nreturn\n"), "-o", &two]).ok();
    run(&["fold", &trace, "-o", &none, "--no-index"]).ok();
    run(&["merge", &one, &two, "-o", &all]).ok();
    assert!(segments(&all).as_u64() > segments(&one).as_u64());
    run(&["merge", &one, &none, "-o", &all]).ok();
    assert_eq!(segments(&all), json!(0));
    // Folding an archive again keeps it too.
    run(&["fold", &one, "-o", &all, "--folder", "repair"]).ok();
    assert!(segments(&all).as_u64() > Some(1));
}

#[test]
fn verify_finds_an_index_of_another_fold() {
    let folder = Folder::new();
    let [good, other] = ["1\n2\n", "2\n1\n"].map(|part| {
        let trace = folder.file("x.calls", format!("{CALLS}call main\n{part}return\n"));
        let archive = folder.at("x.fold");
        run(&["fold", &trace, "-o", &archive, "--index=2"]).ok();
        std::fs::read(archive).unwrap()
    });
    let index = |file: &[u8]| {
        let archive = archive::Archive::open(Cursor::new(file)).unwrap();
        let sections = archive.segments()[0].sections().to_vec();
        let section = sections.into_iter().find(|section| section.kind() == SectionKind::Index).unwrap();
        section.offset() as usize..(section.offset() + section.length()) as usize
    };
    let mut wrong = good.clone();
    assert_eq!(index(&good).len(), index(&other).len(), "the test needs indexes of the same length");
    wrong[index(&good)].copy_from_slice(&other[index(&other)]);
    archive::reseal(&mut wrong);
    let archive = folder.file("wrong.fold", &wrong);
    let verified = run(&["verify", &archive]);
    assert_eq!(verified.code, Some(1));
    assert!(verified.text().contains("bad: segment 1, index"), "{}", verified.text());
    // All else works.
    let text = run(&["cat", &archive]).ok().text();
    assert_eq!(text, format!("{CALLS}call main\n1\n2\nreturn\n"));
    assert_eq!(stats(&archive)["events"], json!(text.lines().count()));
}
