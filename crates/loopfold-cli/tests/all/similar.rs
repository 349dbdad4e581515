//! The command `similar`: patterns in the command, in files and by name, on one stream and on
//! many processes, and what it makes of bad ones.

use crate::support::{Folder, run};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::trace::{Alphabet, Event};
use loopfold_testing::Rng;
use serde_json::{Value, json};

/// One event a line.
fn lines(text: &str) -> String {
    text.chars().map(|letter| format!("{letter}\n")).collect()
}

/// Figure 6 of the paper, whose distances are partly misprinted: window 8 is one edit away.
#[test]
fn figure_6() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", lines("abcdmhkobcdefyeabhdefrsabcdef"));
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    let pattern = folder.file("pattern.txt", format!("# figure 6\n\n{}", lines("abcdef")));
    let place = |window: u64, distance: u64| json!({"stream": "t.txt", "start": window - 1, "end": window + 4, "length": 6, "distance": distance, "within": null});
    for input in [&trace, &archive] {
        for asked in [&["a b c d e f"][..], &["--pattern", &pattern]] {
            let json = run(&[&["similar", "--json", input], asked].concat()).ok().json();
            assert_eq!(json["matches"], json!([place(8, 1), place(16, 1), place(24, 0)]));
            assert_eq!(
                (&json["count"], &json["exact"], &json["left_out"]),
                (&json!(3), &json!(1), &json!(0))
            );
            assert_eq!(json["windows"], 29);
            assert!(json["verified"].as_u64().unwrap() < 12, "{json}");
        }
        let json = run(&["similar", "--json", input, "a b c d e f", "--edits", "0"]).ok().json();
        assert_eq!(json["matches"], json!([place(24, 0)]));
    }
    let text = run(&["similar", &trace, "a b c d e f"]).ok().text();
    assert!(text.contains("windows   3, 1 equal"), "{text}");
    assert!(text.contains("t.txt, events 7 to 12: 1 edit\n"), "{text}");
    let all = run(&["similar", &trace, "a b c d e f", "--all"]).ok().text();
    assert_eq!(all, "t.txt\t7\t12\t6\t1\nt.txt\t15\t20\t6\t1\nt.txt\t23\t28\t6\t0\n");
    let some = run(&["similar", &trace, "a b c d e f", "--top", "1"]).ok().text();
    assert_eq!(some.lines().filter(|line| line.contains(", events ")).count(), 1, "{some}");
    assert!(some.contains("more (--top 0 shows all)"), "{some}");
    let some = run(&["similar", &trace, "a b c d e f", "--json", "--top", "2"]).ok().json();
    assert_eq!((some["matches"].as_array().unwrap().len(), &some["left_out"]), (2, &json!(1)));
}

#[test]
fn without_similar_windows_nothing_is_found() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", lines("abxyab"));
    let none = run(&["similar", &trace, "b a x x b y a b", "--json"]);
    assert_eq!((none.code, &none.json()["matches"]), (Some(1), &json!([])));
    // Longer than the stream, by more than there may be edits.
    let long = run(&["similar", &trace, "a b x y a b a b"]);
    assert_eq!(long.code, Some(1), "{}", long.err);
    let fits = run(&["similar", &trace, "a b x y a b a", "--json"]).ok().json();
    assert_eq!(fits["matches"][0]["length"], 6);
    assert_eq!(run(&["similar", &trace, "a b x y a b a", "--all", "--edits", "0"]).code, Some(1));
}

#[test]
fn bad_questions_are_explained() {
    let folder = Folder::new();
    let trace = folder.file("t.txt", lines("abcabc"));
    run(&["similar", &trace, "a b", "--edits", "2"]).fails_with(&["everything is like a pattern of 2"]);
    run(&["similar", &trace, "a b", "--edits", "5"]).fails_with(&["everything is like"]);
    run(&["similar", &trace, "a b", "--edits", "-1"]).fails_with(&["-1"]);
    run(&["similar", &trace, "a b", "--ngram", "0"]).fails_with(&["at least 1"]);
    // Windows with another event in its place are similar; with no event of it, none are.
    let other = run(&["similar", &trace, "a z"]).ok();
    assert!(other.err.contains("no event is called z"), "{}", other.err);
    run(&["similar", &trace, "y z"]).nothing_with(&["no event is called y", "no event is called z"]);
    run(&["similar", &trace, ""]).fails_with(&["empty"]);
    run(&["similar", &trace]).fails_with(&["events to find"]);
    run(&["similar", &trace, "a b", "--max-error", "x"]).fails_with(&["--max-error x"]);
    run(&["similar", &trace, "a b", "--max-error", "nan"]).fails_with(&["share"]);
    run(&["similar", &trace, "--like", "butterfly:8"]).fails_with(&["no sends and receives"]);
    run(&["similar", &trace, "--like", "knot:8"]).fails_with(&["knot", "butterfly"]);
    run(&["similar", &trace, "--like", "ring:8", "--pattern", "x"]).fails_with(&["--pattern"]);
    run(&["similar", &trace, "--pattern", &folder.at("absent")]).fails_with(&["absent"]);
    let bad = folder.file("bad.txt", "a\nrank 0:\nb\nrank x:\n");
    run(&["similar", &trace, "--pattern", &bad]).fails_with(&["bad.txt", "line 1", "line 4"]);
    let other = folder.file("other.txt", "nothing\nlike that\n");
    run(&["similar", &trace, "--pattern", &other]).fails_with(&[
        "no event of the pattern",
        "line 1",
        "nothing",
    ]);
    let binary = folder.file("binary.txt", b"a\n\xff\xfe\n");
    run(&["similar", &trace, "--pattern", &binary]).fails_with(&["line 2", "UTF-8"]);
    let partly = folder.file("partly.txt", "a\nx\nc\n");
    let found = run(&["similar", &trace, "--pattern", &partly, "--json"]).ok();
    assert!(found.err.contains("line 2"), "{}", found.err);
    assert_eq!(found.json()["count"], 2);
}

#[test]
fn hostile_names_drive_no_terminal() {
    let folder = Folder::new();
    let trace = folder.file("t\u{1b}[2J.txt", "\u{1b}[31m\nb c\n\u{202e}x\n\u{1b}[31m\nb c\n\u{202e}x\n");
    let pattern = folder.file("p.txt", "\\u{1b}[31m\nb c\n\u{202e}x\n");
    for more in [&[][..], &["--all"], &["--json"]] {
        let found =
            run(&[&["similar", "--format", "lines", &trace, "--pattern", &pattern], more].concat()).ok();
        assert!(!found.text().contains(['\u{1b}', '\u{202e}']), "{}", found.text());
        assert!(!found.err.contains(['\u{1b}', '\u{202e}']), "{}", found.err);
    }
    let unknown = folder.file("u.txt", "b c\n\u{1b}[3J\n\u{202e}x\n");
    let found = run(&["similar", "--format", "lines", &trace, "--pattern", &unknown]).ok();
    assert!(found.err.contains("line 2") && !found.err.contains("\u{1b}[3J"), "{:?}", found.err);
}

#[test]
fn of_messages_only_communication_counts_and_no_envelope() {
    let folder = Folder::new();
    let step = |bytes: usize| {
        format!(
            "MPI_Irecv src=1 tag=2 bytes={bytes} comm=0\nMPI_Isend dest=1 tag=2 bytes={bytes} comm=0\nMPI_Waitall n=2\n\
             MPI_Irecv src=3 tag=2 bytes={bytes} comm=0\nMPI_Wtime\nMPI_Isend dest=3 tag=2 bytes={bytes} comm=0\nMPI_Waitall n=2\n"
        )
    };
    let trace = folder.file("rank-0.txt", format!("MPI_Init\n{}{}MPI_Barrier comm=0\n", step(8), step(9)));
    let asked =
        "'MPI_Irecv src=1 comm=0' 'MPI_Isend dest=1 comm=0' 'MPI_Irecv src=3 tag=2 bytes=8 comm=0' MPI_Isend";
    let json = run(&["similar", &trace, asked, "--json"]).ok().json();
    let place = |start: u64, end: u64| json!({"stream": "rank 0", "start": start, "end": end, "length": 4, "distance": 0, "within": null});
    assert_eq!(json["matches"], json!([place(1, 6), place(8, 13)]));
    // With the envelope only the first one is the same.
    let whole =
        "'MPI_Irecv src=1 tag=2 bytes=8 comm=0' MPI_Isend 'MPI_Irecv src=3 tag=2 bytes=8 comm=0' MPI_Isend";
    let json = run(&["similar", &trace, whole, "--json", "--envelope", "--edits", "0"]).ok().json();
    assert_eq!(json["matches"], json!([place(1, 6)]));
    run(&["similar", &trace, "MPI_Isend MPI_Waitall"]).fails_with(&["MPI_Waitall", "--all-events"]);
    let json = run(&["similar", &trace, "MPI_Isend MPI_Waitall", "--json", "--all-events", "--edits", "0"])
        .ok()
        .json();
    assert_eq!(json["count"], 4);
}

/// The text of each rank: a round of a butterfly, `rounds` times, with `between` in between.
fn butterfly(processes: usize, rounds: usize) -> Vec<Vec<String>> {
    let round = |process: usize| {
        let mut lines = Vec::new();
        for bit in 0..processes.trailing_zeros() {
            let peer = process ^ 1 << bit;
            lines.push(format!("MPI_Send dest={peer} tag=1 bytes=8 comm=0"));
            lines.push(format!("MPI_Recv src={peer} tag=1 bytes=8 comm=0"));
        }
        lines.push("MPI_Wtime".to_string());
        lines.push("MPI_Allreduce comm=0 bytes=8 op=SUM".to_string());
        lines
    };
    (0..processes).map(|process| vec![round(process); rounds].concat()).collect()
}

fn files(folder: &Folder, ranks: &[Vec<String>]) -> Vec<String> {
    let name = |rank: usize| format!("rank-{rank}.txt");
    (0..ranks.len()).map(|rank| folder.file(&name(rank), ranks[rank].join("\n") + "\n")).collect()
}

fn similar(files: &[String], more: &[&str]) -> crate::support::Run {
    let mut arguments = vec!["similar"];
    arguments.extend(files.iter().map(String::as_str));
    run(&[&arguments, more].concat())
}

#[test]
fn a_butterfly_is_found_by_its_name() {
    for processes in [4, 8, 16, 32, 64] {
        let folder = Folder::new();
        let ranks = butterfly(processes, 5);
        let trace = files(&folder, &ranks);
        let name = format!("butterfly:{processes}");
        let json = similar(&trace, &["--like", &name, "--json"]).ok().json();
        let events = processes * 2 * processes.trailing_zeros() as usize;
        assert_eq!(json["order"], "send first");
        assert_eq!(json["pattern_events"], events);
        assert_eq!((&json["occurrence_count"], &json["count"]), (&json!(5), &json!(5 * processes)));
        for (round, occurrence) in json["occurrences"].as_array().unwrap().iter().enumerate() {
            assert_eq!((&occurrence["distance"], &occurrence["error"]), (&json!(0), &json!(0.0)));
            assert_eq!(occurrence["events"], events);
            let windows = occurrence["processes"].as_array().unwrap();
            assert_eq!(windows.len(), processes);
            let length = events / processes;
            assert!(windows.iter().all(|window| window["start"] == round * (length + 2)), "{occurrence}");
            assert_eq!(windows[1]["stream"], "rank 1");
        }
    }
}

#[test]
fn a_mutated_butterfly_is_found_with_its_distance_and_chance_is_not() {
    let folder = Folder::new();
    let mut ranks = butterfly(8, 3);
    // In the second round rank 3 has a barrier more, and rank 6 sends nothing in the last stage.
    let second = ranks[0].len() / 3;
    ranks[3].insert(second + 2, "MPI_Barrier comm=0".to_string());
    ranks[6].remove(second + 4);
    let trace = files(&folder, &ranks);
    let json = similar(&trace, &["--like", "butterfly:8", "--json"]).ok().json();
    let distances: Vec<&Value> =
        json["occurrences"].as_array().unwrap().iter().map(|occurrence| &occurrence["distance"]).collect();
    assert_eq!(distances, [&json!(0), &json!(2), &json!(0)]);
    assert_eq!(json["occurrences"][1]["error"], 0.041667);
    let json = similar(&trace, &["--like", "butterfly:8", "--json", "--max-error", "4%"]).ok().json();
    assert_eq!(json["occurrence_count"], 2);
    let text = similar(&trace, &["--like", "butterfly:8"]).ok().text();
    assert!(text.contains("together  3 occurrences, 2 equal"), "{text}");
    assert!(text.contains("8 processes, rank 0 at 8: 2 edits, 4.2 %"), "{text}");

    let mut rng = Rng::new(4);
    let random = |rank: usize, rng: &mut Rng| -> Vec<String> {
        let event = |rng: &mut Rng| match rng.below(2) {
            0 => format!("MPI_Send dest={} tag=1 bytes=8 comm=0", rng.below(8)),
            _ => format!("MPI_Recv src={} tag=1 bytes=8 comm=0", (rank + 1 + rng.below(7)) % 8),
        };
        (0..200).map(|_| event(rng)).collect()
    };
    let ranks: Vec<Vec<String>> = (0..8).map(|rank| random(rank, &mut rng)).collect();
    let trace = files(&folder, &ranks);
    let none = similar(&trace, &["--like", "butterfly:8", "--json"]);
    assert_eq!((none.code, &none.json()["occurrences"]), (Some(1), &json!([])));
}

#[test]
fn orders_and_absent_processes_are_reported() {
    let folder = Folder::new();
    // Everyone receives first, and half of them sent first: two variants, and one is nearer.
    let mut ranks = butterfly(8, 2);
    for rank in &mut ranks {
        for pair in rank.chunks_mut(2).filter(|pair| pair[0].contains("dest")) {
            pair.swap(0, 1);
        }
    }
    let trace = files(&folder, &ranks);
    let json = similar(&trace, &["--like", "butterfly:8", "--json"]).ok().json();
    assert_eq!((&json["order"], &json["occurrence_count"]), (&json!("receive first"), &json!(2)));
    let part = similar(&trace[..7], &["--like", "butterfly:8", "--json", "--max-error", "0.2"]).ok();
    assert!(part.err.contains("1 process of the pattern"), "{}", part.err);
    assert_eq!(part.json()["occurrences"][0]["distance"], 6);
    assert_eq!(similar(&trace[..7], &["--like", "butterfly:8"]).code, Some(1));
}

#[test]
fn a_file_may_have_a_sequence_for_each_process() {
    let folder = Folder::new();
    let ranks = butterfly(4, 3);
    let trace = files(&folder, &ranks);
    let mut pattern = String::new();
    for (rank, lines) in ranks.iter().enumerate().take(2) {
        pattern += &format!("rank {rank}:\n{}\n", lines[..2].join("\n"));
    }
    let pattern = folder.file("pattern.txt", pattern);
    let json = similar(&trace, &["--pattern", &pattern, "--json", "--edits", "0"]).ok().json();
    assert_eq!((&json["occurrence_count"], &json["pattern_events"]), (&json!(3), &json!(4)));
    let first = &json["occurrences"][0]["processes"];
    let window = |stream: &str| json!({"stream": stream, "start": 0, "end": 1, "length": 2, "distance": 0});
    assert_eq!(first, &json!([window("rank 0"), window("rank 1")]));
    assert_eq!(json["order"], Value::Null);
}

#[test]
fn an_archive_that_claims_too_much_is_not_walked_through() {
    let mut alphabet = Alphabet::default();
    let symbol = alphabet.intern(&Event::named("a"), None).unwrap();
    let mut builder = FoldBuilder::new(alphabet);
    let root = builder.rule(&[Item::new(Target::Symbol(symbol), 1 << 60)]).unwrap();
    builder.stream(FoldedStream::new("main", "outermost", root));
    let folder = Folder::new();
    let path = folder.at("huge.fold");
    let file = std::fs::File::create(&path).unwrap();
    archive::write(&builder.finish(), file).unwrap();
    run(&["similar", &path, "a a a"]).fails_with(&["too long"]);
}
