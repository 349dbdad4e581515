//! What answers as JSON have in common; the fields of each are tested with its command.

use crate::support::{Folder, run, shell};
use serde_json::json;

/// The most bytes of a label.
const LONGEST: usize = 4096;

#[test]
fn long_labels_are_cut_and_counted_in_every_answer() {
    let folder = Folder::new();
    let (long, longer) = ("ü".repeat(100_000), "x".repeat(LONGEST + 1));
    let text = format!("loopfold grammar 1\nR -> '{long}' 'b' '{longer}'\nS -> R^3\nstream 's' -> S\nend\n");
    let grammar = folder.file("long.grammar", text);
    let (long, longer) = ("ü".repeat(LONGEST / 2) + "…", "x".repeat(LONGEST) + "…");
    let body = json!([long, "b", longer]);

    let loops = run(&["loops", "--json", &grammar]).ok().json();
    assert_eq!(loops["classes"][0]["nest"], json!([{"times": 3, "body": body}]));
    assert_eq!(loops["labels_cut"], 2);
    let cat = run(&["cat", "--json", "--from", "3", "--to", "6", &grammar]).ok().json();
    assert_eq!(cat["streams"][0]["events"], body);
    assert_eq!(cat["labels_cut"], 2);
    let one = run(&["cat", "--json", "--to", "2", &grammar]).ok().json();
    assert_eq!(one["labels_cut"], 1);
    let context = run(&["context", "--json", "--depth", "1", &grammar, "b"]).ok().json();
    assert_eq!(context["after"], json!([{"event": longer, "count": 3}]));
    assert_eq!(context["labels_cut"], 2);
    let hot = run(&["hot", "--json", &grammar, "--min-length", "2", "--max-length", "2"]).ok().json();
    assert_eq!(hot["labels_cut"], 2);
    let stats = run(&["stats", "--json", &grammar]).ok().json();
    assert_eq!(stats["labels_cut"], 2);
    let patterns = run(&["patterns", "--json", &grammar]).json();
    assert!(patterns["found"] == 0 || patterns["labels_cut"] == 2, "{}", patterns["labels_cut"]);
}

#[test]
fn nothing_is_said_of_labels_that_are_whole() {
    let folder = Folder::new();
    let longest = "x".repeat(LONGEST);
    let trace = folder.file("x.txt", format!("a\n{longest}\n").repeat(3));
    let loops = run(&["loops", "--json", &trace]).ok().json();
    assert_eq!(loops["classes"][0]["nest"], json!([{"times": 3, "body": ["a", longest]}]));
    assert_eq!(loops.get("labels_cut"), None);
}

#[test]
fn function_names_are_cut_and_counted() {
    let folder = Folder::new();
    let function = "f".repeat(LONGEST + 1);
    let lines = format!("call main\ncall {function}\nB1\nB2\nreturn\nreturn\n");
    let trace = folder.file("t.calls", lines);
    let found = run(&["find", "--json", "--format", "calls", &trace, "f*: B1 B2"]).ok().json();
    let cut = "f".repeat(LONGEST) + "…";
    assert_eq!(found["count"], 1);
    assert_eq!(found["function"], cut);
    assert_eq!(found["first"]["stack"], json!(["main", cut]));
    assert_eq!(found["labels_cut"], 1);
}

/// The nest of a class used to be copied once for each level of it.
#[test]
#[cfg(target_os = "linux")]
fn a_nest_of_a_million_parts_takes_little_memory() {
    let folder = Folder::new();
    let mut state = 1u64;
    let mut bytes = Vec::new();
    for _ in 0..1_000_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        bytes.push((state >> 56) as u8);
    }
    folder.file("x.u8", bytes);
    let script = "ulimit -v 250000; \"$loopfold\" loops --json --threads 1 x.u8 | wc -c";
    let printed: usize = shell(script, folder.path()).ok().text().trim().parse().unwrap();
    assert!(printed > 4_000_000, "{printed}");
}
