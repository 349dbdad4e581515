//! The command `patterns` on programs whose communication is known.

#[path = "../../../loopfold/tests/all/support/programs.rs"]
mod programs;

use crate::support::{Folder, Run, run};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::folders::{self, SequiturRuns};
use loopfold::mpi::KnownPattern;
use loopfold::trace::{
    Alphabet, Collector, Event, Field, Projection, Role, Sink, TimesKept, Value as FieldValue,
};
use loopfold_testing::Rng;
use loopfold_testing::mpi::{self, Call, Program, repeat};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A file of text for each process. It has no functions.
fn files(folder: &Folder, program: &Program) -> Vec<String> {
    let text = |calls: &Vec<Call>| -> String {
        let has_text = |call: &&Call| !matches!(call, Call::Enter(_) | Call::Leave(_));
        calls.iter().filter(has_text).map(|call| call.text() + "\n").collect()
    };
    texts(folder, &program.iter().map(text).collect::<Vec<_>>())
}

fn texts<S: AsRef<str>>(folder: &Folder, texts: &[S]) -> Vec<String> {
    let file = |(rank, text): (usize, &S)| folder.file(&format!("rank-{rank}.txt"), text.as_ref());
    texts.iter().enumerate().map(file).collect()
}

fn patterns(inputs: &[String], more: &[&str]) -> Run {
    let mut arguments = vec!["patterns"];
    arguments.extend(inputs.iter().map(String::as_str));
    arguments.extend(more);
    run(&arguments)
}

fn json_of(inputs: &[String], more: &[&str]) -> Value {
    patterns(inputs, &[&["--json"], more].concat()).ok().json()
}

fn of_kind<'a>(json: &'a Value, kind: &str) -> Vec<&'a Value> {
    json["patterns"].as_array().unwrap().iter().filter(|pattern| pattern["kind"] == kind).collect()
}

/// The name, shape, directions and departures of each topology, and how often it occurs.
fn topologies(json: &Value) -> Vec<(String, Value, Value, [u64; 2], u64)> {
    let found = |pattern: &&Value| {
        let topology = Some(&pattern["topology"]).filter(|topology| !topology.is_null())?;
        let name = topology["name"].as_str()?.to_string();
        let deviation = [topology["missing"].as_u64()?, topology["extra"].as_u64()?];
        let (shape, directions) = (topology["shape"].clone(), topology["directions"].clone());
        Some((name, shape, directions, deviation, pattern["count"].as_u64()?))
    };
    of_kind(json, "communication").iter().filter_map(found).collect()
}

/// The file of an archive that is made by the library.
fn archive_of(folder: &Folder, fold: &loopfold::Fold) -> [String; 1] {
    let path = folder.at("made.fold");
    archive::write(fold, &mut std::fs::File::create(&path).unwrap()).unwrap();
    [path]
}

#[test]
fn sp_exchanges_with_all_others() {
    let folder = Folder::new();
    let inputs = files(&folder, &mpi::sp(400));
    let json = json_of(&inputs, &[]);
    assert_eq!((&json["unmatched"], &json["disagreements"]), (&json!([]), &json!([])));
    let first = &json["patterns"][0];
    assert_eq!((&first["kind"], &first["id"]), (&json!("communication"), &json!(1)));
    assert_eq!(
        (&first["count"], &first["places"], &first["length"]),
        (&json!(401), &json!(2), &json!(96)),
        "{first}"
    );
    assert_eq!(first["processes"], json!(["rank 0", "rank 1", "rank 2", "rank 3"]));
    let positions = &first["positions"];
    assert_eq!((&positions[0]["times"], &positions[1]["times"]), (&json!(1), &json!(400)));
    assert_eq!(positions[0]["starts"], json!({"rank 0": 4, "rank 1": 4, "rank 2": 4, "rank 3": 4}));
    for rank in 0..4 {
        assert_eq!(first["events"][format!("rank {rank}")].as_array().unwrap().len(), 24);
    }
    let topology = &first["topology"];
    assert_eq!((&topology["name"], &topology["shape"]), (&json!("all-to-all"), &json!([4])));
    assert_eq!(first["channels"].as_array().unwrap().len(), 12);
    let single = of_kind(&json, "process");
    let whole = single.iter().filter(|pattern| pattern["count"] == 401 && pattern["length"] == 24);
    assert_eq!(whole.count(), 4);
    let text = patterns(&inputs, &[]).ok().text();
    assert!(text.contains("#1  all-to-all"), "{text}");
    assert!(text.contains("401 times in 2 places · 96 events of 4 processes each"), "{text}");
    assert!(!text.contains("unmatched"), "{text}");
}

/// Runs `loops --patterns`.
fn abstracted(inputs: &[String], more: &[&str]) -> Run {
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    run(&[&["loops", "--patterns"], &inputs[..], more].concat())
}

#[test]
fn loops_show_patterns_as_single_events() {
    let folder = Folder::new();
    let inputs = files(&folder, &mpi::weather(4, 4, 120));
    let text = abstracted(&inputs, &[]).ok().text();
    assert!(
        text.starts_with("3 communication patterns for ")
            && text
                .contains(" events in 16 streams\n\n16 ranks, all with the same events · 120 × (1 event), "),
        "{text}"
    );
    assert!(text.contains("300 events written as"), "{text}");
    assert!(text.contains("  (#1 2-D mesh of 4 by 4)^120 "), "{text}");
    let json = abstracted(&inputs, &["--json"]).ok().json();
    let patterns = json_of(&inputs, &[]);
    let named = json["abstracted"]["patterns"].as_array().unwrap();
    assert_eq!(named.len(), 3);
    assert_eq!(named[0], json!({"id": 1, "name": "2-D mesh of 4 by 4"}));
    assert_eq!(json["abstracted"]["events"], patterns["events"]);
    let left =
        json["abstracted"]["events"].as_u64().unwrap() - json["abstracted"]["replaced"].as_u64().unwrap();
    assert_eq!(left, 4 * 16);
    let nest = &json["classes"][0]["nest"];
    assert!(nest.as_array().unwrap().contains(&json!({"times": 120, "body": ["#1 2-D mesh of 4 by 4"]})));
    // One stream is shown with the patterns of all.
    let one = abstracted(&inputs, &["--json", "--stream", "rank 3"]).ok().json();
    assert_eq!((&one["classes"][0]["nest"], &one["streams"]), (nest, &json!(1)));
}

#[test]
fn patterns_as_single_events_need_communication_and_ranks() {
    let folder = Folder::new();
    let lines = folder.file("lines.txt", "a\nb\na\nb\n");
    abstracted(&[lines], &[]).fails_with(&["--patterns", "no sends, receives or collectives"]);
    let inputs = files(&folder, &mpi::sp(3));
    abstracted(&inputs, &["--peers", "relative"]).fails_with(&["--patterns", "--peers"]);
}

#[test]
fn a_number_of_a_communicator_may_be_used_again() {
    let folder = Folder::new();
    // Pairs of neighbours, then pairs at distance 2, both as communicator 1.
    let text = |rank: usize| {
        let exchange = |peer: usize| {
            let calls = format!("MPI_Send dest={peer} tag=0 comm=1\nMPI_Recv src={peer} tag=0 comm=1\n");
            calls.repeat(10) + "MPI_Comm_free comm=1\n"
        };
        let split = |color: usize| format!("MPI_Comm_split comm=0 color={color} key=0 newcomm=1\n");
        split(rank / 2) + &exchange(1 - rank % 2) + &split(rank % 2) + &exchange(1 - rank / 2)
    };
    let inputs = texts(&folder, &[text(0), text(1), text(2), text(3)]);
    let given = patterns(&inputs, &["--json"]).ok();
    assert!(given.err.contains("communicator 1: its number is used again for other processes"));
    let json = given.json();
    assert_eq!(json["unmatched"], json!([]));
    let found: Vec<[&Value; 2]> =
        of_kind(&json, "communication").iter().map(|one| [&one["groups"], &one["count"]]).collect();
    let pairs = [json!([[0, 1], [2, 3]]), json!([[0, 2], [1, 3]])];
    assert_eq!(found, [[&pairs[0], &json!(10)], [&pairs[1], &json!(10)]]);
}

#[test]
fn a_ring_may_be_of_calls_that_send_and_receive() {
    let folder = Folder::new();
    let text = |rank: usize| {
        let (next, previous) = ((rank + 1) % 4, (rank + 3) % 4);
        format!("MPI_Sendrecv dest={next} sendtag=0 src={previous} recvtag=0 comm=0\n").repeat(30)
    };
    let json = json_of(&texts(&folder, &[text(0), text(1), text(2), text(3)]), &[]);
    let found = topologies(&json);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0.as_str(), found[0].4), ("ring", 30));
}

#[test]
fn lu_is_two_wavefronts_in_a_mesh() {
    let folder = Folder::new();
    let json = json_of(&files(&folder, &mpi::lu(4, 4, 31, 20)), &[]);
    let found = topologies(&json);
    let mesh = found.iter().find(|found| found.0 == "mesh").unwrap();
    assert_eq!((&mesh.1, mesh.3), (&json!([4, 4]), [0, 0]));
    let mut waves: Vec<_> = found.iter().filter(|found| found.0 == "wavefront").collect();
    waves.sort_by_key(|wave| wave.2[0] == "down");
    assert_eq!(waves.len(), 2, "{found:?}");
    for (wave, direction) in waves.iter().zip(["up", "down"]) {
        assert_eq!((&wave.1, &wave.2), (&json!([4, 4]), &json!([direction, direction])));
        assert_eq!((wave.3, wave.4), ([0, 0], 20 * 31));
    }
    assert_eq!(json["unmatched"], json!([]));
}

#[test]
fn a_weather_model_has_collective_patterns_and_functions() {
    let program = mpi::weather(4, 4, 3510);
    let folder = Folder::new();
    let inputs = files(&folder, &program);
    let collective = |json: &Value| -> Vec<(u64, usize, usize)> {
        let communication = of_kind(json, "communication");
        let all = communication.iter().filter(|pattern| pattern["collective"] == true);
        let found = |pattern: &&&Value| {
            let events = pattern["events"]["rank 0"].as_array().unwrap().len();
            (pattern["count"].as_u64().unwrap(), events, pattern["processes"].as_array().unwrap().len())
        };
        let mut found: Vec<_> = all.map(|pattern| found(&pattern)).collect();
        found.sort_unstable();
        found
    };
    // Figure 8: the shorter one is how the longer one begins, and occurs elsewhere.
    let figure = [(60, 5, 16), (116, 3, 16)];
    let json = json_of(&inputs, &[]);
    assert_eq!(collective(&json), figure);
    assert_eq!(topologies(&json)[0].0, "mesh");
    let only = json_of(&inputs, &["--kind", "collectives"]);
    let found = collective(&only);
    assert!(figure.iter().all(|pattern| found.contains(pattern)), "{found:?}");
    assert_eq!(only["matrix"], json!([]));
    let messages = json_of(&inputs, &["--kind", "messages"]);
    assert_eq!(collective(&messages), []);
    assert_eq!(topologies(&messages)[0].4, 3510);
    // With functions, as an archive has them.
    let archive = archive_of(&folder, &programs::fold(&program, &SequiturRuns));
    let json = json_of(&archive, &[]);
    let contexts = json!([
        {"function": "SOLVE_EM", "count": 3500, "calls": 100},
        {"function": "START_DOMAIN_EM", "count": 10, "calls": 1},
    ]);
    let exchange = of_kind(&json, "communication").into_iter().find(|pattern| pattern["count"] == 3510);
    assert_eq!(exchange.unwrap()["contexts"], contexts);
    assert_eq!(collective(&json), figure);
    let text = patterns(&archive, &[]).ok().text();
    assert!(text.contains("in SOLVE_EM: 3,500 times, in 100 calls"), "{text}");
}

#[test]
fn the_matrix_has_all_that_was_sent() {
    let folder = Folder::new();
    for program in [mpi::sp(20), mpi::lu(3, 5, 7, 4), mpi::adaptive(9, 12, 80, 40, 5)] {
        let mut expected: BTreeMap<(usize, u32), (u64, u64)> = BTreeMap::new();
        for (from, calls) in program.iter().enumerate() {
            for call in calls {
                if let Call::Send(to, _, bytes) = *call {
                    let cell = expected.entry((from, to)).or_default();
                    *cell = (cell.0 + 1, cell.1 + u64::from(bytes));
                }
            }
        }
        let rows: String = expected
            .iter()
            .map(|((from, to), (messages, bytes))| format!("{from},{to},{messages},{bytes}\n"))
            .collect();
        let inputs = files(&folder, &program);
        let matrix = patterns(&inputs, &["--matrix"]).ok().text();
        assert_eq!(matrix, format!("from,to,messages,bytes\n{rows}"));
        let cell = |((from, to), (messages, bytes)): (&(usize, u32), &(u64, u64))| json!({"from": from, "to": to, "messages": messages, "bytes": bytes});
        let expected: Value = expected.iter().map(cell).collect();
        assert_eq!(json_of(&inputs, &[])["matrix"], expected);
    }
    // What is sent once is no pattern, but it is sent.
    let once =
        texts(&folder, &["MPI_Send dest=1 tag=0 bytes=7 comm=0\n", "MPI_Recv src=0 tag=0 bytes=7 comm=0\n"]);
    assert_eq!(patterns(&once, &["--matrix"]).ok().text(), "from,to,messages,bytes\n0,1,1,7\n");
    assert_eq!(patterns(&once, &[]).code, Some(1));
    let nothing = texts(&folder, &["MPI_Init\n", "MPI_Barrier comm=0\n"]);
    let none = patterns(&nothing, &["--matrix"]);
    assert_eq!((none.code, none.text().as_str()), (Some(1), "from,to,messages,bytes\n"));
}

#[test]
fn unmatched_messages_are_found() {
    let folder = Folder::new();
    let program = mpi::sp(30);
    let lost_receive = {
        let mut program = program.clone();
        let mut receives =
            program[2].iter().enumerate().filter(|(_, call)| matches!(call, Call::Receive(..)));
        let (at, _) = receives.nth(100).unwrap();
        program[2].remove(at);
        program
    };
    let ended_early = {
        let mut program = program.clone();
        let behind = program[3].len() * 2 / 3;
        program[3].truncate(behind);
        program
    };
    for program in [lost_receive, ended_early] {
        let (_, unreceived, unsent) = mpi::partners(&program);
        // For each kind of message how many there are, and the first.
        let mut expected: BTreeMap<(&str, u32, u32, u32), (u64, usize)> = BTreeMap::new();
        for (kind, places) in [("send", &unreceived), ("receive", &unsent)] {
            for &(rank, at) in places {
                let channel = match program[rank][at] {
                    Call::Send(to, tag, _) => (kind, rank as u32, to, tag),
                    Call::Receive(from, tag, _) => (kind, from, rank as u32, tag),
                    ref call => panic!("{call:?}"),
                };
                let found = expected.entry(channel).or_insert((0, at));
                *found = (found.0 + 1, found.1.min(at));
            }
        }
        assert!(!expected.is_empty());
        let inputs = files(&folder, &program);
        let json = json_of(&inputs, &[]);
        let text = patterns(&inputs, &["--full"]).ok().text();
        let unmatched = json["unmatched"].as_array().unwrap();
        assert_eq!(unmatched.len(), expected.len(), "{unmatched:?}");
        for ((kind, from, to, tag), (count, first)) in expected {
            let own = if kind == "send" { from } else { to };
            let expected = json!({
                "kind": kind, "from": from, "to": to, "comm": "0", "tag": tag, "count": count,
                "first": {"stream": format!("rank {own}"), "start": first},
            });
            assert!(unmatched.contains(&expected), "{expected} in {unmatched:?}");
            let line = format!(
                ": from process {from} to process {to}, communicator 0, tag {tag}; the first is event {first} of rank {own}\n"
            );
            // A long line is broken there.
            let broken = line.replace(": ", ":\n      ").replace("; ", ";\n      ");
            assert!(text.contains(&line) || text.contains(&broken), "{line} in {text}");
        }
    }
    let inputs = files(&folder, &program);
    let one = folder
        .file("rank-0.txt", std::fs::read_to_string(&inputs[0]).unwrap() + "MPI_Send dest=1 tag=9 comm=0\n");
    let text = patterns(&[&[one], &inputs[1..]].concat(), &[]).ok().text();
    assert!(text.contains("\n1 message unmatched\n    1 send is never received:"), "{text}");
    let two = folder.file("rank-0.txt", "MPI_Send dest=1 tag=9 comm=0\nMPI_Send dest=1 tag=9 comm=0\n");
    let text = patterns(&[&[two], &inputs[1..]].concat(), &[]).ok().text();
    assert!(text.contains(" messages unmatched\n"), "{text}");
}

#[test]
fn members_that_disagree_on_a_collective_are_found() {
    let folder = Folder::new();
    let seen = |program: &[Vec<&str>]| -> (Value, String) {
        let lines: Vec<String> = program.iter().map(|lines| lines.join("\n") + "\n").collect();
        let inputs = texts(&folder, &lines);
        let json = patterns(&inputs, &["--json"]).json();
        (json["disagreements"].clone(), patterns(&inputs, &[]).text())
    };
    let (barrier, sum) = ("MPI_Barrier comm=0", "MPI_Allreduce op=SUM bytes=8 comm=0");
    let (zero, one) = ("MPI_Bcast root=0 bytes=8 comm=0", "MPI_Bcast root=1 bytes=8 comm=0");
    let all = [["MPI_Init"].to_vec(), [barrier, "MPI_Wait", sum, zero].repeat(10)].concat();
    assert_eq!(seen(&[all.clone(), all.clone(), all.clone()]).0, json!([]));
    // One lacks the last broadcast but one.
    let mut lacks = all.clone();
    lacks.remove(4 * 9);
    let (json, text) = seen(&[all.clone(), all.clone(), lacks.clone()]);
    let expected = json!([{"comm": "0", "nth": 26, "seen": [
        {"stream": "rank 0", "start": 36, "event": zero}, {"stream": "rank 2", "start": 36, "event": barrier}]}]);
    assert_eq!(json, expected);
    let line = "    number 27 on communicator 0:\n      rank 0 has MPI_Bcast root=0 bytes=8 comm=0 (event 36);\n      rank 2 has MPI_Barrier comm=0 (event 36)\n";
    assert!(text.contains(line), "{text}");
    // Another root.
    let mut root = all.clone();
    root[8] = one;
    let (json, _) = seen(&[all.clone(), root, all.clone()]);
    assert_eq!(
        (&json[0]["nth"], &json[0]["seen"][1]["event"], json.as_array().unwrap().len()),
        (&json!(5), &json!(one), 1)
    );
    // One that ended early, and one that did nothing at all.
    let (json, text) = seen(&[all.clone(), all[..2].to_vec(), all[..1].to_vec()]);
    let end = json!({"stream": "rank 2", "start": null, "event": null});
    assert_eq!((&json[0]["nth"], &json[1]["nth"], &json[1]["seen"][1]), (&json!(1), &json!(0), &end));
    assert!(text.contains("(event 1);\n      rank 2 has none\n"), "{text}");
    let (json, _) = seen(&[all[..1].to_vec(), all.clone(), all.clone()]);
    assert_eq!(
        (json[0]["seen"][1]["stream"].clone(), json.as_array().unwrap().len()),
        (json!("rank 0"), 1),
        "{json}"
    );
}

#[test]
fn receives_from_anyone_are_matched_where_one_alone_can_have_sent() {
    let folder = Folder::new();
    for any in ["-1", "any", "MPI_ANY_SOURCE"] {
        // A ring in which nobody says from whom.
        let ring = |rank: usize| {
            format!("MPI_Isend dest={} tag=1 comm=0\nMPI_Recv src={any} tag=1 comm=0\n", (rank + 1) % 6)
                .repeat(50)
                + "MPI_Barrier comm=0\n"
        };
        let json = json_of(&texts(&folder, &(0..6).map(ring).collect::<Vec<_>>()), &[]);
        assert_eq!(topologies(&json), [("ring".to_string(), json!([6]), json!(["up"]), [0, 0], 50)], "{any}");
        assert_eq!((&json["unmatched"], &json["unresolved"]), (&json!([]), &json!(0)));
        // The same in one call: what comes from one side does not come from the other as well.
        let ring = |rank: usize| {
            let shift = format!("MPI_Sendrecv dest={} src={any} tag=1 comm=0\n", (rank + 1) % 6);
            format!("{shift}MPI_Barrier comm=0\n").repeat(50)
        };
        let json = json_of(&texts(&folder, &(0..6).map(ring).collect::<Vec<_>>()), &[]);
        assert_eq!(topologies(&json), [("ring".to_string(), json!([6]), json!(["up"]), [0, 0], 50)], "{any}");
        // A master does not know whose answer comes first.
        let master = format!("MPI_Recv src={any} tag=1 comm=0\n").repeat(30);
        let worker = "MPI_Send dest=0 tag=1 comm=0\n".repeat(10);
        let found = patterns(&texts(&folder, &[&master, &worker, &worker, &worker]), &["--json"]);
        let json = found.json();
        assert_eq!((&json["unmatched"], &json["unresolved"]), (&json!([]), &json!(30)));
        assert!(found.err.contains("30 receives from anyone"), "{}", found.err);
        // One receive too many, and one too few.
        let more = master.clone() + &format!("MPI_Recv src={any} tag=1 comm=0\n").repeat(2);
        let json = patterns(&texts(&folder, &[&more, &worker, &worker, &worker]), &["--json"]).json();
        let expected = json!([{"kind": "receive", "from": null, "to": 0, "comm": "0", "tag": 1, "count": 2,
            "first": {"stream": "rank 0", "start": 30}}]);
        assert_eq!(json["unmatched"], expected);
        let json =
            patterns(&texts(&folder, &[&master[..master.len() / 2], &worker, &worker, &worker]), &["--json"])
                .json();
        assert_eq!(
            (&json["unmatched"][0]["kind"], &json["unmatched"][0]["count"]),
            (&json!("send"), &json!(15))
        );
        // Who waits for another tag waits for ever.
        let other = format!("MPI_Recv src={any} tag=2 comm=0\n").repeat(10);
        let json = patterns(&texts(&folder, &[&other, &worker]), &["--json"]).json();
        let kinds: Vec<(&Value, &Value)> =
            json["unmatched"].as_array().unwrap().iter().map(|one| (&one["kind"], &one["tag"])).collect();
        assert_eq!(kinds, [(&json!("receive"), &json!(2)), (&json!("send"), &json!(1))]);
    }
}

#[test]
fn any_tag_takes_what_one_process_sends_in_its_order() {
    let folder = Folder::new();
    // Two tags in turn, received with any tag, around a ring.
    let ring = |rank: usize| {
        let (next, before) = ((rank + 1) % 5, (rank + 4) % 5);
        let send = |tag: usize| format!("MPI_Isend dest={next} tag={tag} comm=0\n");
        let receive = format!("MPI_Recv src={before} tag=-1 comm=0\n");
        format!("{}{}{receive}{receive}", send(1), send(2)).repeat(40) + "MPI_Barrier comm=0\n"
    };
    let mut lines: Vec<String> = (0..5).map(ring).collect();
    let json = json_of(&texts(&folder, &lines), &[]);
    assert_eq!(topologies(&json), [("ring".to_string(), json!([5]), json!(["up"]), [0, 0], 40)], "{json}");
    assert_eq!((&json["unmatched"], &json["unresolved"]), (&json!([]), &json!(0)));
    lines[3].push_str("MPI_Recv src=2 tag=-1 comm=0\n");
    let json = json_of(&texts(&folder, &lines), &[]);
    let expected = json!([{"kind": "receive", "from": 2, "to": 3, "comm": "0", "tag": null, "count": 1,
        "first": {"stream": "rank 3", "start": 161}}]);
    assert_eq!(json["unmatched"], expected);
}

#[test]
fn to_and_fro_in_one_call_is_a_ring() {
    let folder = Folder::new();
    for size in [4, 9, 32] {
        let ring = |rank: usize| {
            let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
            let shift = format!("MPI_Sendrecv dest={next} src={before} tag=5 bytes=64 comm=0\n");
            format!("MPI_Allreduce comm=0\n{shift}MPI_Wait\n{shift}").repeat(12)
        };
        let json = json_of(&texts(&folder, &(0..size).map(ring).collect::<Vec<_>>()), &[]);
        let found = topologies(&json);
        assert_eq!(found[0].0, "ring", "{found:?}");
        assert_eq!((&found[0].1, &found[0].2, found[0].3), (&json!([size]), &json!(["up"]), [0, 0]));
        assert_eq!(json["matrix"].as_array().unwrap().len(), size);
        assert_eq!(
            (&json["matrix"][0]["messages"], &json["matrix"][0]["bytes"]),
            (&json!(24), &json!(24 * 64))
        );
    }
}

#[test]
fn messages_in_divided_communicators_have_ranks_of_the_world() {
    let folder = Folder::new();
    // Columns of a grid of 3 by 4, in which ranks count from the last row on; rank 11 is in none
    // of the communicators that were made before.
    let (rows, columns) = (3, 4);
    let lines = |rank: usize| {
        let (row, column) = (rank / columns, rank % columns);
        let first = match rank {
            11 => "MPI_Comm_split comm=0 color=-32766 key=0\n".to_string(),
            _ => format!("MPI_Comm_split comm=0 color=0 key={} newcomm=7\n", 20 - rank),
        };
        let made = format!("MPI_Comm_split comm=0 color={column} key={} newcomm=1\n", rows - row);
        // Around the column, towards the larger rows.
        let own = rows - 1 - row;
        let (next, before) = ((own + rows - 1) % rows, (own + 1) % rows);
        let shift = format!("MPI_Sendrecv dest={next} src={before} tag=1 bytes=8 comm=1\n");
        first + &made + &format!("{shift}MPI_Barrier comm=1\n").repeat(9)
    };
    let inputs = texts(&folder, &(0..rows * columns).map(lines).collect::<Vec<_>>());
    let json = json_of(&inputs, &[]);
    assert_eq!((&json["unmatched"], &json["disagreements"]), (&json!([]), &json!([])));
    let mut expected: Vec<[usize; 2]> =
        (0..rows * columns).map(|rank| [rank, (rank + columns) % (rows * columns)]).collect();
    expected.sort_unstable();
    let matrix: Vec<Value> = expected
        .iter()
        .map(|[from, to]| json!({"from": from, "to": to, "messages": 9, "bytes": 72}))
        .collect();
    assert_eq!(json["matrix"], json!(matrix));
    let communication = of_kind(&json, "communication");
    // All columns do the same.
    let groups: Vec<Vec<usize>> =
        (0..columns).map(|column| (column..rows * columns).step_by(columns).collect()).collect();
    assert_eq!((communication.len(), &communication[0]["groups"]), (1, &json!(groups)));
    let in_first: Vec<[usize; 2]> =
        expected.iter().filter(|[from, _]| from % columns == 0).copied().collect();
    assert_eq!(communication[0]["channels"], json!(in_first));
    let text = patterns(&inputs, &[]).ok().text();
    assert!(text.contains(&format!(", in each of {columns} columns")), "{text}");
    let in_grid = patterns(&inputs, &["--grid", &format!("{rows}x{columns}")]).ok().text();
    assert!(in_grid.contains("ring of 3, upwards"), "{in_grid}");
    patterns(&inputs, &["--grid", "5x5"]).fails_with(&["is not a grid of 12 streams"]);
    patterns(&inputs, &["--grid", "x"]).fails_with(&["is no shape such as 4x4"]);
    assert!(
        topologies(&json)
            .iter()
            .all(|found| (found.0.as_str(), &found.1, found.4) == ("ring", &json!([3]), 9))
    );
    let text = patterns(&inputs, &[]).ok().text();
    assert!(text.contains("rank 0  S4R8 Barrier"), "{text}");
}

#[test]
fn processes_without_a_file_are_no_error() {
    let folder = Folder::new();
    let program = mpi::lu(2, 3, 5, 6);
    let inputs = files(&folder, &program);
    let found = patterns(&inputs[..5], &["--json"]).ok();
    let json = found.json();
    let lost = program[5].iter().filter(|call| matches!(call, Call::Send(..) | Call::Receive(..))).count();
    assert_eq!((&json["unmatched"], &json["absent"]), (&json!([]), &json!(lost)));
    assert!(
        found.err.contains(&format!("{lost} messages to or from processes that are not in the trace")),
        "{}",
        found.err
    );
    let one = patterns(&inputs[2..3], &["--json"]).ok().json();
    assert_eq!((of_kind(&one, "communication").len(), &one["unmatched"]), (0, &json!([])));
    assert!(!of_kind(&one, "process").is_empty());
    patterns(&inputs[2..3], &[]).ok();
    // To itself.
    let own = texts(
        &folder,
        &[
            "MPI_Isend dest=0 tag=1 comm=0\nMPI_Recv src=0 tag=1 comm=0\nMPI_Barrier comm=0\nMPI_Isend dest=0 tag=1 comm=0\nMPI_Recv src=0 tag=1 comm=0\n",
        ],
    );
    let json = json_of(&own, &[]);
    assert_eq!((&json["unmatched"], &json["matrix"][0]["messages"]), (&json!([]), &json!(2)));
}

#[test]
fn ranks_may_come_in_any_order() {
    let folder = Folder::new();
    let mut inputs = files(&folder, &mpi::lu(3, 4, 5, 6));
    let in_order = json_of(&inputs, &[]);
    Rng::new(4).shuffle_files(&mut inputs);
    let shuffled = json_of(&inputs, &[]);
    for key in ["matrix", "unmatched", "disagreements", "found"] {
        assert_eq!(in_order[key], shuffled[key], "{key}");
    }
    assert_eq!(topologies(&in_order), topologies(&shuffled));
    for pattern in of_kind(&shuffled, "communication") {
        let same = |other: &&Value| {
            (&other["count"], &other["length"], &other["topology"], &other["events"])
                == (&pattern["count"], &pattern["length"], &pattern["topology"], &pattern["events"])
        };
        assert!(of_kind(&in_order, "communication").into_iter().any(|other| same(&other)), "{pattern}");
    }
}

trait ShuffleFiles {
    fn shuffle_files(&mut self, files: &mut [String]);
}

impl ShuffleFiles for Rng {
    fn shuffle_files(&mut self, files: &mut [String]) {
        for at in (1..files.len()).rev() {
            files.swap(at, self.below(at + 1));
        }
    }
}

#[test]
fn archives_and_folders_give_the_same() {
    let folder = Folder::new();
    for program in [mpi::sp(30), mpi::lu(3, 3, 6, 10), mpi::adaptive(6, 8, 60, 40, 3)] {
        let inputs = files(&folder, &program);
        let expected = json_of(&inputs, &[]);
        for name in ["auto", "sequitur-runs", "outermost", "repair"] {
            assert_eq!(json_of(&inputs, &["--folder", name]), expected, "{name}");
            let archive = [folder.at(&format!("{name}.fold"))];
            let mut arguments = vec!["fold", "--folder", name, "-o", &archive[0]];
            arguments.extend(inputs.iter().map(String::as_str));
            run(&arguments).ok();
            assert_eq!(json_of(&archive, &[]), expected, "{name}");
        }
    }
}

#[test]
fn the_user_says_which_patterns_come_first() {
    let folder = Folder::new();
    let inputs = files(&folder, &mpi::lu(3, 3, 6, 10));
    let key = |order: &str| match order {
        "count" => |pattern: &Value| pattern["count"].as_u64().unwrap(),
        "length" => |pattern: &Value| pattern["length"].as_u64().unwrap(),
        _ => |pattern: &Value| pattern["processes"].as_array().unwrap().len() as u64,
    };
    for order in ["count", "length", "processes"] {
        let json = json_of(&inputs, &["--rank-by", order]);
        let keys: Vec<u64> = of_kind(&json, "communication").into_iter().map(key(order)).collect();
        assert!(keys.len() >= 3 && keys.is_sorted_by(|one, next| one >= next), "{order} {keys:?}");
    }
    let all = json_of(&inputs, &[]);
    let top = json_of(&inputs, &["--top", "1"]);
    assert_eq!(of_kind(&top, "communication"), of_kind(&all, "communication")[..1]);
    assert_eq!(top["left_out"].as_u64().unwrap() + 2, top["found"].as_u64().unwrap());
    let text = patterns(&inputs, &["--top", "1"]).ok().text();
    assert!(
        text.contains("#1  ") && !text.contains("#2  ") && text.contains("more (--top 0 shows all)"),
        "{text}"
    );
    let frequent = json_of(&inputs, &["--min-count", "60"]);
    let counts: Vec<&Value> =
        of_kind(&frequent, "communication").into_iter().map(|pattern| &pattern["count"]).collect();
    assert_eq!(counts, [&json!(60), &json!(60)]);
    let none = patterns(&inputs, &["--min-count", "1000000"]);
    assert_eq!(none.code, Some(1), "{}", none.text());
}

#[test]
fn hostile_names_do_no_harm() {
    let folder = Folder::new();
    // Text has no such fields, but archives can.
    let evil = FieldValue::Text(b"\x1b[2J");
    let mut collector = Collector::new(Projection::default(), TimesKept::None);
    for rank in 0..2 {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        let mut push = |name: &str, role, key: &str, value| {
            let fields = [Field { key, value }, Field { key: "comm", value: evil }];
            collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(name) }).unwrap();
        };
        let other = FieldValue::Integer(1 - rank);
        for round in 0..4 {
            push("MPI_Isend", Role::Send, "dest", other);
            push("MPI_Recv", Role::Receive, "src", other);
            if round < 3 {
                push("MPI_Bcast\u{1b}[2J", Role::Collective, "root", evil);
                push("MPI_Send\u{1b}[2J", Role::Send, "dest", evil);
                push("MPI_Bcast", Role::Collective, "root", FieldValue::Integer(rank));
            }
        }
        push("MPI_Send", Role::Send, "dest", other);
    }
    let fold = folders::fold_trace(collector.finish().unwrap(), &SequiturRuns, 1).unwrap();
    let inputs = archive_of(&folder, &fold);
    for more in [&[][..], &["--json"], &["--full", "--processes"], &["--matrix"]] {
        let found = patterns(&inputs, more).ok();
        assert!(!found.out.contains(&0x1b) && !found.err.contains('\u{1b}'), "{more:?} {}", found.text());
    }
    let text = patterns(&inputs, &[]).ok().text();
    assert!(text.contains("communicator \\u{1b}[2J"), "{text}");
    assert!(text.contains("collective operations that processes disagree on"), "{text}");
    // A function with such a name.
    let odd = "\u{1b}[2Jsolve";
    let mut program = vec![Vec::new(); 2];
    let round = vec![
        vec![Call::Enter(odd), Call::Send(1, 1, 1), Call::Receive(1, 1, 1), Call::Leave(odd)],
        vec![Call::Enter(odd), Call::Send(0, 1, 1), Call::Receive(0, 1, 1), Call::Leave(odd)],
    ];
    repeat(&mut program, &round, 9);
    let archive = archive_of(&folder, &programs::fold(&program, &SequiturRuns));
    let text = patterns(&archive, &[]).ok();
    assert!(
        !text.out.contains(&0x1b) && text.text().contains("in \\u{1b}[2Jsolve: 9 times"),
        "{}",
        text.text()
    );
    assert!(!patterns(&archive, &["--json"]).ok().out.contains(&0x1b));
}

/// An archive of two streams that declares many events.
fn huge_archive(folder: &Folder, rounds: u64, list: usize) -> [String; 1] {
    let mut alphabet = Alphabet::default();
    let mut event = |role, key: &str, peer: usize| {
        let peers = vec![peer.to_string(); list].join(",");
        let value =
            if list == 1 { FieldValue::Integer(peer as i64) } else { FieldValue::Text(peers.as_bytes()) };
        let fields = [Field { key, value }];
        Item::once(alphabet.intern(&Event { role, fields: &fields, ..Event::named("x") }, None).unwrap())
    };
    let send = event(Role::Send, "dest", 1);
    let receive = event(Role::Receive, "src", 0);
    let barrier = Event { role: Role::Collective, ..Event::named("MPI_Barrier") };
    let barrier = Item::once(alphabet.intern(&barrier, None).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    for (rank, one) in [send, receive].into_iter().enumerate() {
        // Iterations of almost the same length, so that all begin differently.
        let many = builder.repeat(&[one], rounds - 2 * rank as u64).unwrap();
        let step = builder.rule(&[many, one, barrier]).unwrap();
        let root = builder.rule(&[Item::new(Target::Rule(step), rounds), barrier]).unwrap();
        builder.stream(FoldedStream::new(format!("rank {rank}"), "repair", root));
    }
    archive_of(folder, &builder.finish())
}

#[test]
fn whatever_an_archive_claims_there_is_an_end() {
    let folder = Folder::new();
    // Some million events; 2^60; and each of these 1000 messages.
    for (rounds, list) in [(1u64 << 11, 1), (1 << 11, 1000), (1 << 30, 1), (1 << 30, 1000)] {
        let archive = huge_archive(&folder, rounds, list);
        // Nothing repeats with both ends of its messages.
        let found = patterns(&archive, &["--json"]);
        assert_eq!(found.code, Some(1), "{}", found.text());
        let json = found.json();
        let times = |messages: u64| messages.saturating_mul(list as u64);
        assert_eq!(json["matrix"][0]["messages"], json!(times(rounds * (rounds + 1))));
        assert_eq!(json["disagreements"], json!([]));
        if times(rounds * rounds) < u64::MAX {
            assert_eq!(json["unmatched"][0]["count"], json!(times(2 * rounds)));
        }
        assert_eq!(patterns(&archive, &[]).code, Some(1));
    }
}

/// The calls of a pattern that is known by name: rounds of it, and something between.
fn known(name: &str, order: &str, change: impl Fn(&mut Program)) -> Program {
    let pattern = KnownPattern::parse(name).unwrap();
    let variant = pattern.variants().into_iter().find(|variant| variant.order.contains(order));
    let variant = variant.unwrap_or_else(|| panic!("{name} {order}"));
    let call = |&(role, peer): &(Role, usize)| match role {
        Role::Send => Call::Send(peer as u32, 1, 8),
        _ => Call::Receive(peer as u32, 1, 8),
    };
    let mut round: Program = variant.events.iter().map(|events| events.iter().map(call).collect()).collect();
    change(&mut round);
    rounds(&round)
}

fn rounds(round: &Program) -> Program {
    let size = round.len();
    let mut program = vec![vec![Call::Collective("MPI_Bcast", Some(0))]; size];
    let all = |name: &'static str| vec![vec![Call::Collective(name, None)]; size];
    repeat(&mut program, round, 3);
    repeat(&mut program, &all("MPI_Barrier"), 1);
    repeat(&mut program, round, 5);
    repeat(&mut program, &all("MPI_Allreduce"), 1);
    program
}

#[test]
fn known_topologies_are_called_by_their_names() {
    let folder = Folder::new();
    let names = [
        ("line:4", ""),
        ("line:16", "all receives first"),
        ("line:256", ""),
        ("ring:4", ""),
        ("ring:7", "downwards"),
        ("ring:64", "receive first"),
        ("ring:256", ""),
        ("mesh:3x3", ""),
        ("mesh:4x4", "all receives first"),
        ("mesh:16x16", ""),
        ("mesh:4x8x8", "by shifts"),
        ("torus:4x4", ""),
        ("torus:3x5", "all sends first"),
        ("torus:16x16", "by shifts"),
        ("torus:4x4x4", ""),
        ("wavefront:4x4", "+ +"),
        ("wavefront:4x4", "- -"),
        ("wavefront:16x16", "+ -"),
        ("wavefront:4x4x4", "+ - +"),
        ("star:5", ""),
        ("star:64", "from the centre"),
        ("star:256", "to the centre"),
        ("binary-tree:15", "down"),
        ("binary-tree:255", "up"),
        ("binomial-tree:16", "tree down"),
        ("binomial-tree:64", "doubling steps up"),
        ("binomial-tree:256", "tree up"),
        ("hypercube:8", "all receives first"),
        ("hypercube:64", "all sends first"),
        ("hypercube:256", "all receives first"),
        ("butterfly:8", ""),
        ("butterfly:32", "receive first"),
        ("butterfly:256", "highest bit first, send first"),
        ("all-to-all:4", ""),
        ("all-to-all:16", "all receives first"),
        ("all-to-all:48", ""),
    ];
    for (name, order) in names {
        let inputs = files(&folder, &known(name, order, |_| {}));
        let json = json_of(&inputs, &[]);
        let (layout, size) = name.split_once(':').unwrap();
        let mut shape: Vec<u32> = size.split('x').map(|side| side.parse().unwrap()).collect();
        if ["hypercube", "butterfly"].contains(&layout) {
            shape = vec![2; shape[0].ilog2() as usize];
        }
        let found = topologies(&json);
        assert!(!found.is_empty(), "{name} {order}: {}", json["patterns"][0]["channels"]);
        assert_eq!(
            (found[0].0.replace(' ', "-").as_str(), &found[0].1, found[0].3, found[0].4),
            (layout, &json!(shape), [0, 0], 8),
            "{name} {order}"
        );
        assert_eq!((&json["unmatched"], &json["disagreements"]), (&json!([]), &json!([])), "{name}");
        for input in inputs {
            std::fs::remove_file(input).unwrap();
        }
    }
}

#[test]
fn a_channel_more_or_less_is_a_departure() {
    let folder = Folder::new();
    for (name, order) in [
        ("mesh:4x4", "all receives first"),
        ("torus:4x4", ""),
        ("torus:8x8", "by shifts"),
        ("hypercube:16", "all receives first"),
        ("all-to-all:6", ""),
    ] {
        let lost = known(name, order, |round| {
            round[1].retain(|call| !matches!(call, Call::Send(0, ..)));
            round[0].retain(|call| !matches!(call, Call::Receive(1, ..)));
        });
        let found = topologies(&json_of(&files(&folder, &lost), &[]));
        let (layout, _) = name.split_once(':').unwrap();
        assert_eq!((found[0].0.as_str(), found[0].3, found[0].4), (layout, [1, 0], 8), "{name}");
        if layout == "all-to-all" {
            continue;
        }
        let added = known(name, order, |round| {
            let far = round.len() / 2 + 1;
            round[0].push(Call::Send(far as u32, 2, 8));
            round[far].push(Call::Receive(0, 2, 8));
        });
        let found = topologies(&json_of(&files(&folder, &added), &[]));
        assert_eq!((found[0].0.as_str(), found[0].3, found[0].4), (layout, [0, 1], 8), "{name}");
    }
}

#[test]
fn random_pairs_have_no_name() {
    let folder = Folder::new();
    let mut rng = Rng::new(12);
    for size in [9, 16, 30] {
        let mut round = vec![Vec::new(); size];
        for from in 0..size {
            for _ in 0..3 {
                let to = (from + rng.between(1, size - 1)) % size;
                round[from].push(Call::Send(to as u32, 1, 8));
                round[to].push(Call::Receive(from as u32, 1, 8));
            }
        }
        let json = json_of(&files(&folder, &rounds(&round)), &[]);
        let first = &json["patterns"][0];
        assert_eq!((&first["kind"], &first["topology"]), (&json!("communication"), &json!(null)), "{size}");
        assert_eq!((&first["count"], first["processes"].as_array().unwrap().len()), (&json!(8), size));
        let text = patterns(&files(&folder, &rounds(&round)), &[]).ok().text();
        assert!(text.contains(" channels of no known topology"), "{text}");
    }
}
