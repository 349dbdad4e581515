//! What producers of recordings have counted: `verify` compares it with what there is, archives
//! keep it as long as they have the same events, and other commands warn.

use crate::support::{Folder, run};
use serde_json::{Value, json};

/// Two ranks of 12 events, the second of which has lost 3.
const RECORDING: &str = "\
loopfold grammar 1
R1 -> 'a' 'b' 'c'
R2 -> R1^4
stream 'rank 0' -> R2
    note 'title' 'first'
    note 'produced' '12'
stream 'rank 1' -> R2
    note 'produced' '15'
    note 'missing' '3'
end
";

fn verified(archive: &str) -> Value {
    run(&["verify", "--json", archive]).ok().json()["archives"][0]["recorded"].take()
}

#[test]
fn verify_compares_what_was_recorded_with_what_was_produced() {
    let folder = Folder::new();
    let grammar = folder.file("x.grammar", RECORDING);
    let archive = folder.at("x.fold");
    let said = run(&["fold", &grammar, "-o", &archive]).ok().err;
    assert!(said.contains("3 of 27 events of the program are missing"), "{said}");
    for input in [&grammar, &archive] {
        let text = run(&["verify", input]).ok().text();
        let wanted = "  recorded: 24 of 27 events; 3 missing\n    rank 1: 12 of 15 events\n";
        assert!(text.ends_with(wanted), "{text}");
    }
    let incomplete =
        json!([{"stream": "rank 1", "events": 12, "produced": 15, "missing": 3, "unfinished": false}]);
    let all = json!({
        "events": 24, "produced": 27, "missing": 3, "unfinished_streams": 0, "incomplete_streams": incomplete
    });
    assert_eq!(verified(&archive), all);
    // One that is whole, and what is no recording.
    let whole = folder.at("whole.fold");
    run(&["fold", &archive, "--stream", "rank 0", "-o", &whole]).ok();
    assert!(run(&["verify", &whole]).ok().text().ends_with("  recorded: 12 of 12 events\n"));
    let trace = folder.file("x.txt", "a\nb\n");
    let other = folder.at("other.fold");
    run(&["fold", &trace, "-o", &other]).ok();
    assert_eq!(verified(&other), Value::Null);
    assert!(!run(&["verify", &other]).ok().text().contains("recorded"));
}

#[test]
fn a_stream_without_its_end_is_not_whole() {
    let folder = Folder::new();
    let grammar =
        folder.file("x.grammar", RECORDING.replace("'12'\n", "'12'\n    note 'unfinished' 'yes'\n"));
    let archive = folder.at("x.fold");
    let said = run(&["fold", &grammar, "-o", &archive]).ok().err;
    assert!(said.contains("the end of 1 stream was not recorded"), "{said}");
    let text = run(&["verify", &archive]).ok().text();
    let wanted = "  recorded: 24 of at least 27 events; 3 missing; the end of 1 stream was not recorded\n    \
                  rank 1: 12 of 15 events\n";
    assert!(text.ends_with(wanted), "{text}");
    let found = verified(&archive);
    assert_eq!(found["unfinished_streams"], 1);
    let unfinished =
        json!({"stream": "rank 0", "events": 12, "produced": 12, "missing": 0, "unfinished": true});
    assert_eq!(found["incomplete_streams"][0], unfinished);
    assert!(run(&["stats", &archive]).ok().text().contains("unfinished: its end was not recorded"));
    // The beginning of a stream is another one.
    let part = folder.at("part.fold");
    run(&["fold", &archive, "--stream", "rank 0", "--to", "6", "-o", &part]).ok();
    assert_eq!(verified(&part), Value::Null);
}

#[test]
fn counts_stay_with_the_events_that_were_counted() {
    let folder = Folder::new();
    let grammar = folder.file("x.grammar", RECORDING);
    let made = folder.at("made.fold");
    let after = |arguments: &[&str]| {
        run(&[arguments, &["-o", &made]].concat()).ok();
        let found = verified(&made);
        found["produced"].as_u64().map(|produced| (produced, found["missing"].as_u64().unwrap()))
    };
    let all = Some((27, 3));
    assert_eq!(after(&["fold", &grammar]), all);
    assert_eq!(after(&["merge", &grammar]), all);
    assert_eq!(after(&["fold", &grammar, "--folder", "innermost"]), all);
    assert_eq!(after(&["fold", &grammar, "--drop", "d"]), all);
    // What has other events has other counts.
    assert_eq!(after(&["fold", &grammar, "--drop", "b"]), None);
    assert_eq!(after(&["fold", &grammar, "--only", "a"]), None);
    assert_eq!(after(&["fold", &grammar, "--to", "6"]), None);
}
