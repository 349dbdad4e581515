//! The command `patterns`.

use crate::support::{Folder, run, run_with_input};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::trace::{Alphabet, Event};
use serde_json::json;

/// A step of a program as its ranks 0 and 1 have it: the envelope differs, and a wait is between.
fn step(peer: usize, size: usize) -> String {
    let receive = |tag: usize| format!("MPI_Irecv src={peer} tag={tag} bytes={size} comm=0\n");
    let send = format!("MPI_Isend dest={peer} tag=0 bytes={size} comm=0\n");
    format!("{}{}{send}MPI_Waitall n=3\n", receive(1), receive(2))
}

fn program(folder: &Folder) -> [String; 2] {
    [0, 1].map(|rank| {
        let step = |size| step(1 - rank, size);
        let text = format!("MPI_Init\n{}MPI_Barrier comm=0\n{}MPI_Finalize\n", step(7), step(8).repeat(400));
        folder.file(&format!("rank-{rank}.txt"), text)
    })
}

#[test]
fn the_table_on_a_terminal() {
    let folder = Folder::new();
    let [zero, one] = program(&folder);
    let text = run(&["patterns", &zero, &one]).ok().text();
    let expected = "\
2 patterns of sends, receives and collectives
in 2,408 events of 2 streams

#  count  places  events  share  streams  pattern
1    401       2       3   50 %   rank 0  MPI_Irecv src=1 comm=0^2
                                          MPI_Isend dest=1 comm=0
2    401       2       3   50 %   rank 1  MPI_Irecv src=0 comm=0^2
                                          MPI_Isend dest=0 comm=0
";
    // Nobody sends with the tags that are received.
    let (table, rest) = text.split_at(expected.len().min(text.len()));
    assert_eq!(table, expected);
    assert!(rest.starts_with("\n2,406 messages unmatched\n    401 receives are never sent to:"), "{rest}");
}

#[test]
fn the_table_as_json() {
    let folder = Folder::new();
    let [zero, one] = program(&folder);
    let archive = folder.at("both.fold");
    run(&["fold", &zero, &one, "-o", &archive]).ok();
    for inputs in [vec![zero.as_str(), one.as_str()], vec![archive.as_str()]] {
        for method in ["ngrams", "exact"] {
            let arguments = [&["patterns", "--json", "--method", method][..], &inputs].concat();
            let json = run(&arguments).ok().json();
            assert_eq!((&json["method"], &json["found"]), (&json!(method), &json!(2)));
            assert_eq!((&json["streams"], &json["events"]), (&json!(2), &json!(2408)));
            let first = &json["patterns"][0];
            assert_eq!(
                (&first["id"], &first["kind"], &first["topology"]),
                (&json!(1), &json!("process"), &json!(null))
            );
            let receive = "MPI_Irecv src=1 comm=0";
            assert_eq!(first["events"], json!([receive, receive, "MPI_Isend dest=1 comm=0"]));
            assert_eq!(first["nest"], json!([{"times": 2, "body": [receive]}, "MPI_Isend dest=1 comm=0"]));
            assert_eq!(
                (&first["count"], &first["places"], &first["length"]),
                (&json!(401), &json!(2), &json!(3))
            );
            assert_eq!((&first["inside"], &first["processes"]), (&json!(0), &json!(["rank 0"])));
            let position = |start, times| json!({"stream": "rank 0", "start": start, "times": times});
            assert_eq!(first["positions"], json!([position(1, 1), position(6, 400)]));
            assert_eq!(
                first.get("supermaximal"),
                (method == "exact").then(|| &json!(true)).cloned().as_ref()
            );
        }
    }
}

#[test]
fn the_user_says_which_events_count() {
    let folder = Folder::new();
    let [zero, _] = program(&folder);
    let events = |more: &[&str]| {
        let json = run(&[&["patterns", "--json", &zero][..], more].concat()).ok().json();
        json["patterns"][0]["events"].clone()
    };
    let all = events(&["--all-events"]);
    assert_eq!(all[3], json!("MPI_Waitall"));
    // Sizes differ between the two places, so that nothing repeats any more.
    for more in [&["--envelope"][..], &["--key", "name,dest,src,bytes"], &["--key", "all"]] {
        let none = run(&[&["patterns", &zero][..], more].concat());
        assert_eq!(none.code, Some(1), "{more:?} {}", none.text());
        assert!(none.text().starts_with("no patterns in 1,204 events of 1 stream\n"), "{}", none.text());
    }
    assert_eq!(events(&["--key", "name,tag"]).as_array().unwrap().len(), 3);
    assert_eq!(events(&["--ignore", "src,dest"])[2], json!("MPI_Isend comm=0"));
}

#[test]
fn any_trace_has_patterns() {
    let text = "open\nread\nread\nclose\nseek\nopen\nread\nclose\nwrite\nopen\nread\nread\nread\nclose\nx\ny\nx\nz\nx\ny\n";
    let table = run_with_input(&["patterns", "-"], text.as_bytes()).ok().text();
    assert!(table.starts_with("2 patterns of events\nin 20 events of 1 stream\n\n"), "{table}");
    assert!(table.contains("1      3       3  3 to 5"), "{table}");
    assert!(table.contains("open read^2 close\n"), "{table}");
    let top =
        run_with_input(&["patterns", "-", "--top", "1", "--rank-by", "length"], text.as_bytes()).ok().text();
    assert!(top.ends_with("… and 1 more (--top 0 shows all)\n"), "{top}");
    let frequent =
        run_with_input(&["patterns", "-", "--min-count", "3", "--json"], text.as_bytes()).ok().json();
    assert_eq!(frequent["found"], 1);
    let empty = run_with_input(&["patterns", "-"], b"");
    assert_eq!(empty.code, Some(1), "{}", empty.err);
}

#[test]
fn hostile_names_and_claims_do_no_harm() {
    let names =
        run_with_input(&["patterns", "-", "--format", "lines"], b"\x1b[2J\na\n1\n\x1b[2J\na\n2\n").ok();
    assert!(!names.out.contains(&0x1b) && names.text().contains("\\u{1b}[2J"), "{}", names.text());
    // 2^60 events: a step that occurs once, and then repeatedly.
    let mut alphabet = Alphabet::default();
    let symbols = ["a", "b", "c"].map(|name| alphabet.intern(&Event::named(name), None).unwrap());
    let [a, b, c] = symbols.map(Item::once);
    let mut builder = FoldBuilder::new(alphabet);
    let inner = builder.repeat(&[a, b], 1 << 29).unwrap();
    let step = builder.rule(&[inner, b]).unwrap();
    let many = Item::new(Target::Rule(step), 1 << 29);
    let root = builder.rule(&[inner, b, c, many]).unwrap();
    builder.stream(FoldedStream::new("huge", "repair", root));
    let folder = Folder::new();
    let archive = folder.at("huge.fold");
    archive::write(&builder.finish(), &mut std::fs::File::create(&archive).unwrap()).unwrap();
    let found = run(&["patterns", "--json", &archive]).ok();
    assert!(found.err.contains("1 stream would unfold to more than fits in memory"), "{}", found.err);
    assert!(found.err.contains("repair"), "{}", found.err);
    let first = &found.json()["patterns"][0];
    assert_eq!((&first["count"], &first["length"]), (&json!((1u64 << 29) + 1), &json!((1u64 << 30) + 1)));
    assert_eq!(first["events"], json!(["a", "b", "b"]));
}
