//! Chunks of events in archives, from the outside.

use crate::support::{Folder, run};
use loopfold::archive::{Archive, SectionKind};
use serde_json::json;
use std::io::Cursor;

fn trace() -> String {
    let part = "call main\n1\n2\ncall f\n1\n2\nreturn\n3\nreturn\n";
    part.repeat(40)
}

#[test]
fn fold_stats_and_verify_know_chunks() {
    let folder = Folder::new();
    let trace = folder.file("x.calls", trace());
    let (plain, chunked) = (folder.at("plain.fold"), folder.at("chunked.fold"));
    run(&["fold", &trace, "-o", &plain]).ok();
    run(&["fold", &trace, "-o", &chunked, "--chunks=64"]).ok();
    let [plain_stats, stats] =
        [&plain, &chunked].map(|archive| run(&["stats", archive, "--json"]).ok().json());
    assert_eq!(plain_stats["chunk_bytes"], 0);
    let bytes = stats["chunk_bytes"].as_u64().unwrap();
    let all = |stats: &serde_json::Value| stats["bytes"].as_u64().unwrap();
    // The rest is the same but for a row of the table.
    assert!(bytes > 0 && (1..10).contains(&(all(&stats) - all(&plain_stats) - bytes)));
    assert!(run(&["stats", &chunked]).ok().text().contains("\nchunks    "));
    assert!(!run(&["stats", &plain]).ok().text().contains("\nchunks    "));
    let verified = run(&["verify", &chunked, "--json"]).ok().json();
    // 360 events, 16 a chunk.
    assert_eq!(verified["archives"][0]["chunks"], json!(23));
    assert_eq!(run(&["cat", &chunked]).ok().text(), run(&["cat", &plain]).ok().text());
    // Other archives are written without, with a note.
    let merged = folder.at("merged.fold");
    assert!(run(&["merge", &chunked, &plain, "-o", &merged]).ok().err.contains("chunks"));
    assert!(run(&["fold", &chunked, "-o", &merged]).ok().err.contains("chunks"));
    assert_eq!(std::fs::read(&merged).unwrap(), std::fs::read(&plain).unwrap());
    assert!(!run(&["fold", &chunked, "-o", &merged, "--chunks=64"]).ok().err.contains("left out"));
    assert_eq!(std::fs::read(&merged).unwrap(), std::fs::read(&chunked).unwrap());
    // Without a size they are of 4 MiB.
    run(&["fold", &trace, "--chunks", "-o", &merged]).ok();
    assert_eq!(run(&["verify", &merged, "--json"]).ok().json()["archives"][0]["chunks"], json!(1));
}

#[test]
fn a_damaged_chunk_is_named() {
    let folder = Folder::new();
    let trace = folder.file("x.calls", trace());
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive, "--chunks=1k"]).ok();
    let mut file = std::fs::read(&archive).unwrap();
    let opened = Archive::open(Cursor::new(&file)).unwrap();
    let section =
        *opened.segments()[0].sections().iter().find(|of| of.kind() == SectionKind::Chunks).unwrap();
    let last = (section.offset() + section.length() - 1) as usize;
    file[last] ^= 1;
    std::fs::write(&archive, file).unwrap();
    let verified = run(&["verify", &archive]);
    assert_eq!(verified.code, Some(1));
    assert!(verified.text().contains("chunk 2 of 2 (stream 1, events 256 to 359)"), "{}", verified.text());
    // The fold itself is as it was.
    assert_eq!(run(&["cat", &archive]).ok().text(), run(&["cat", &trace]).ok().text());
}

#[test]
fn sizes_that_make_no_sense() {
    let folder = Folder::new();
    let (trace, archive) = (folder.file("x.calls", "call f\n1\n"), folder.at("x.fold"));
    for size in ["0", "3", "x", "1T", "-1", "1g", "257M", "99999999999999999999", "18446744073709551615k", ""]
    {
        let chunks = format!("--chunks={size}");
        run(&["fold", &trace, "-o", &archive, &chunks]).fails_with(&["--chunks"]);
    }
    for size in ["4", "64k", "1M", "256M"] {
        run(&["fold", &trace, "-o", &archive, &format!("--chunks={size}")]).ok();
    }
}
