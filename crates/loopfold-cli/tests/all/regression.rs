//! Bugs that were found in use, each with a test that is named after it.

use crate::support::{Folder, run};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item};
use loopfold::trace::{Alphabet, Event, Field, Role, Value};

#[cfg(unix)]
mod interrupts {
    use crate::support::{Folder, Run, binary, run};
    use loopfold_testing::streams;
    use std::io::Write as _;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    /// Lines that take 1 MB; compressed some hundred bytes, so that gigabytes of them fit one
    /// read of the compressed input.
    fn frame() -> Vec<u8> {
        zstd::encode_all(&b"an event of some length\n".repeat(50_000)[..], 1).unwrap()
    }

    fn begin(arguments: &[&str]) -> Child {
        let mut command = Command::new(binary());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn interrupt(child: Child) -> Run {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        child.wait_with_output().unwrap().into()
    }

    /// Waits until the command catches signals, which it does before it reads.
    #[cfg(target_os = "linux")]
    fn wait_until_it_catches_signals(child: &Child) {
        const SIGINT: u64 = 1 << (2 - 1);
        let status = format!("/proc/{}/status", child.id());
        let caught = || -> Option<u64> {
            let status = std::fs::read_to_string(&status).unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        };
        while caught().is_none_or(|mask| mask & SIGINT == 0) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The interrupt used to count as damage, behind which a lenient input ends.
    #[test]
    #[cfg(target_os = "linux")]
    fn ctrl_c_during_a_lenient_fold_of_compressed_data_leaves_the_old_archive() {
        let folder = Folder::new();
        let trace = folder.file("big.zst", frame().repeat(2000));
        for options in [&["--lenient"][..], &[], &["--lenient", "--folder", "outermost"]] {
            let archive = folder.file("x.fold", "was here before");
            let child = begin(&[&["fold", &trace, "--format", "lines", "-o", &archive], options].concat());
            wait_until_it_catches_signals(&child);
            interrupt(child).fails_with(&["big.zst", "interrupted"]);
            assert_eq!(std::fs::read_to_string(&archive).unwrap(), "was here before");
        }
    }

    /// It used to be lost, as the error of the source hid that of the signal.
    #[test]
    fn what_was_read_of_a_file_before_ctrl_c_is_kept_as_that_of_a_pipe() {
        let lines =
            streams::random(200_000, 30_000, 11).into_iter().map(|number| format!("event {number}\n"));
        let text: String = lines.collect();
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        // More than a pipe holds, so that some of it has been read when all is written.
        assert!(packed.len() > 300_000, "{} bytes", packed.len());
        for (bytes, options) in
            [(&packed[..], &["--lenient"][..]), (&packed, &[]), (text.as_bytes(), &["--lenient"])]
        {
            let folder = Folder::new();
            let (pipe, archive) = (folder.at("t.log"), folder.file("x.fold", "was here before"));
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let child = begin(&[&["fold", &pipe, "-o", &archive], options].concat());
            let mut writer = std::fs::File::create(&pipe).unwrap();
            writer.write_all(bytes).unwrap();
            interrupt(child).fails_with(&[
                "t.log: interrupted; the ",
                " before that are in ",
                "x.partial.fold",
            ]);
            drop(writer);
            assert_eq!(std::fs::read_to_string(&archive).unwrap(), "was here before");
            let partial = folder.at("x.partial.fold");
            run(&["verify", &partial]).ok();
            let kept = run(&["cat", &partial]).ok().text();
            assert!(kept.len() > 1000 && text.starts_with(&kept), "{} bytes kept", kept.len());
        }
    }
}

/// A rule does not pay in so few events, but most of them are iterations of a loop.
#[test]
fn stats_does_not_say_that_nothing_repeats_in_abababc() {
    let folder = Folder::new();
    for (name, trace) in [("bytes", "abababc"), ("lines", "a\nb\na\nb\na\nb\nc\n")] {
        let trace = folder.file("x", trace);
        let text = run(&["stats", &trace, "--format", name]).ok().text();
        assert!(text.contains("folder: outermost, rules beyond loops would not pay\n"), "{text}");
        assert!(!text.contains("nothing"), "{text}");
        let loops = run(&["loops", &trace, "--format", name, "--folder", "auto"]).ok().text();
        assert!(loops.contains("3 ×") || loops.contains("^3"), "{loops}");
    }
}

#[test]
fn an_archive_in_a_folder_that_does_not_exist_names_the_folder() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\n");
    let missing = folder.at("no");
    for command in ["fold", "merge"] {
        let nowhere = folder.at("no/such/x.fold");
        let expected = [&nowhere, &format!("the directory {missing} does not exist; create it")[..]];
        run(&[command, &trace, "-o", &nowhere]).fails_with(&expected);
    }
    let export = ["export", &trace, "--to", "grammar", "-o", &folder.at("no/x.grammar")];
    run(&export).fails_with(&["no/x.grammar", &format!("the directory {missing} does not exist")]);
    // Before anything is read, which may take hours.
    run(&["fold", &folder.at("absent"), "-o", &folder.at("no/x.fold")])
        .fails_with(&["does not exist; create it"]);
    let inside = folder.at("x.txt/x.fold");
    run(&["fold", &trace, "-o", &inside]).fails_with(&[&inside, &format!("{trace} is not a directory")]);
    let path = folder.path().to_str().unwrap();
    run(&["fold", &trace, "-o", path]).fails_with(&[path, "is a directory; name the file to write in it"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
#[cfg(unix)]
fn an_archive_in_a_folder_without_permission_says_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let (trace, closed) = (folder.file("x.txt", "a\n"), folder.at("closed"));
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    let archive = folder.at("closed/x.fold");
    let arguments = ["fold", &trace, "-o", &archive];
    let run = match std::fs::write(folder.at("closed/probe"), "") {
        Ok(()) => crate::support::run_as_nobody(&folder, &arguments),
        Err(_) => run(&arguments),
    };
    let expected = format!("no permission to create a file in the directory {closed}");
    run.fails_with(&[&archive, &expected]);
}

/// Names of files that are read were escaped, those of files that are written were not.
#[test]
#[cfg(unix)]
fn the_name_of_an_archive_cannot_drive_the_terminal() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\n");
    for command in ["fold", "merge"] {
        let made = run(&[command, &trace, "-o", &folder.at("\u{1b}[2J\u{202e}.fold")]).ok();
        assert!(made.err.contains("\\u{1b}[2J\\u{202e}.fold: 1 "), "{:?}", made.err);
    }
}

#[test]
fn a_window_that_ends_before_it_begins_is_an_error() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\nb\n");
    for form in [&[][..], &["--json"], &["--raw"]] {
        run(&[&["cat", &trace, "--from", "5", "--to", "2"], form].concat())
            .fails_with(&["--from 5 --to 2", "ends before it begins"]);
    }
    assert_eq!(run(&["cat", &trace, "--from", "1", "--to", "1"]).ok().text(), "");
    run(&["cat", &trace, "--from", "5"]).fails_with(&["--from 5: no event is there; positions are 0 to 1"]);
}

/// Once for the fold and again for what it has beside it.
#[test]
#[cfg(target_os = "linux")]
fn find_opened_an_archive_twice() {
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    let folder = Folder::new();
    let trace =
        folder.file("x.calls", "call main\n1\ncall f\n0\n1\nreturn\n2\ncall f\n0\n2\nreturn\n3\nreturn\n");
    let (archive, queries) = (folder.at("x.fold"), folder.file("queries", "f: 0 1\nf: 0 2\n"));
    run(&["fold", &trace, "-o", &archive, "--chunks"]).ok();
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    // Closes too, or several opens in a row would be one event.
    inotify::add_watch(&watch, archive.as_str(), WatchFlags::OPEN | WatchFlags::CLOSE).unwrap();
    let opened = |arguments: &[&str]| {
        run(arguments).ok();
        let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 4096];
        let mut events = inotify::Reader::new(&watch, &mut buffer);
        std::iter::from_fn(|| Some(events.next().ok()?.events()))
            .filter(|event| event.contains(ReadFlags::OPEN))
            .count()
    };
    assert_eq!(opened(&["find", &archive, "f: 0 1"]), 1);
    assert_eq!(opened(&["find", &archive, "f: 0 1", "--method", "chunks"]), 1);
    assert_eq!(opened(&["find", &archive, "f: 0 1", "--method", "indexed", "--json"]), 1);
    assert_eq!(opened(&["find", &archive, "--queries", &queries]), 1);
}

/// After a hit all patterns of the trace were looked for, to say which of them it lies within; if
/// there were too many messages for that, the windows were lost too.
#[test]
fn similar_lost_its_matches_to_a_limit_of_patterns() {
    // Each event of this kind is 60,000 messages of a process to itself.
    let list = "0,".repeat(59_999) + "0";
    let mut alphabet = Alphabet::default();
    let mut send = |name: &str, to: Value<'_>| {
        let fields = [Field { key: "dest", value: to }];
        alphabet.intern(&Event { role: Role::Send, fields: &fields, ..Event::named(name) }, None).unwrap()
    };
    let many = send("many", Value::Text(list.as_bytes()));
    let mut items = Vec::new();
    for to in 1..320 {
        // Nothing repeats, so that every event is looked at.
        items.push(Item::once(many));
        items.push(Item::once(send(&format!("s{to}"), Value::Integer(to))));
    }
    let mut builder = FoldBuilder::new(alphabet);
    let root = builder.rule(&items).unwrap();
    builder.stream(FoldedStream::new("rank 0", "outermost", root));
    let folder = Folder::new();
    let path = folder.at("many.fold");
    archive::write(&builder.finish(), std::fs::File::create(&path).unwrap()).unwrap();
    run(&["patterns", &path]).fails_with(&["lists of so many messages"]);
    let asked = ["similar", &path, "s7 many s8", "--edits", "0"];
    let found = run(&[&asked[..], &["--json"]].concat()).ok();
    assert_eq!(found.json()["matches"][0]["start"], 13);
    assert!(found.json()["matches"][0]["within"].is_null());
    assert!(found.err.contains("are not known: events that are lists of so many messages"), "{}", found.err);
    let text = run(&asked).ok();
    assert!(text.text().contains("rank 0, events 13 to 15: equal\n"), "{}", text.text());
    assert!(text.err.contains("are not known"), "{}", text.err);
    // Where it is not printed, it is not looked for.
    let all = run(&[&asked[..], &["--all"]].concat()).ok();
    assert_eq!((all.text().as_str(), all.err.as_str()), ("rank 0\t13\t15\t3\t0\n", ""));
}

/// One pattern named the streams of the log and selected those of the archive, and none of these has
/// such a name.
#[test]
fn naming_the_streams_of_a_log_leaves_those_of_an_archive() {
    let folder = Folder::new();
    let log = folder.file("a.log", "thread=1 a\nthread=2 b\n".repeat(3));
    let (other, archive) = (folder.file("b.txt", "x\ny\nx\ny\n"), folder.at("b.fold"));
    run(&["fold", &other, "-o", &archive]).ok();
    let json = run(&["loops", &log, &archive, "--stream-by", r"thread=(\d+)", "--json"]).ok().json();
    let names: Vec<&serde_json::Value> = json["classes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|class| class["streams"].as_array().unwrap())
        .collect();
    assert_eq!(names, ["a.log: 1", "a.log: 2", "b.txt"]);
}

/// What `loops` shows with masked lines was that of all streams, whichever were asked for.
#[test]
fn masked_lines_are_of_the_streams_that_are_selected() {
    let folder = Folder::new();
    let log: String = (0..200).map(|n| format!("{} step {n}\n", ["one", "two"][n % 2])).collect();
    let log = folder.file("a.log", log);
    let json = run(&["loops", &log, "--stream-by", r"^\w+", "--stream", "two", "--json"]).ok().json();
    assert_eq!(json["masked"]["streams"], 1);
    assert_eq!(json["masked"]["classes"][0]["streams"], serde_json::json!(["two"]));
}

/// The last iteration of a loop ended with its last event, though that lay within another one, and
/// was taken for the fastest.
#[test]
fn the_last_iteration_of_slices_that_nest_was_too_short() {
    let folder = Folder::new();
    let trace = folder.file(
        "t.json",
        r#"[{"ph":"B","name":"step","ts":10,"pid":1,"tid":1},
            {"ph":"X","name":"inner","ts":12,"dur":3,"pid":1,"tid":1},
            {"ph":"E","ts":20,"pid":1,"tid":1},
            {"ph":"B","name":"step","ts":30,"pid":1,"tid":1},
            {"ph":"X","name":"inner","ts":32,"dur":3,"pid":1,"tid":1},
            {"ph":"E","ts":44,"pid":1,"tid":1},
            {"ph":"i","name":"mark","ts":45,"pid":1,"tid":1,"s":"t"}]"#,
    );
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "--times", "summary", "-o", &archive]).ok();
    let text = run(&["loops", &trace]).ok().text();
    assert!(text.contains("97.1 % of the time\n      median 17.0 µs · 14.0 to 20.0 · slowest #0"), "{text}");
    for input in [&trace, &archive] {
        let json = run(&["loops", "--json", input]).ok().json();
        let class = &json["classes"][0];
        let time = &class["nest"][0]["time"];
        assert_eq!((&time["min_ns"], &time["total_ns"]), (&14_000.into(), &34_000.into()));
        assert_eq!(class["times"][0]["total_ns"], 35_000);
    }
}

/// `loops --json` had the times of the first stream of a class only, and the times of loops were
/// dropped when streams of an archive of sums were chosen.
#[test]
fn loops_had_the_times_of_too_few_streams() {
    let folder = Folder::new();
    let mut table = String::from("name,start,dur,thread\n");
    for (thread, step) in [("x", 10), ("y", 20)] {
        for index in 0..6 {
            let name = if index % 2 == 0 { "a" } else { "b" };
            table.push_str(&format!("{name},{},1,{thread}\n", index * step));
        }
    }
    let trace = folder.file("t.csv", table);
    let columns = ["--event", "name", "--start", "start", "--duration", "dur", "--stream-by", "thread"];
    let archive = folder.at("t.fold");
    let fold = ["fold", &trace, "--times", "summary", "-o", &archive];
    run(&[&fold[..], &columns].concat()).ok();
    let loop_time = |arguments: &[&str]| {
        let json = run(arguments).ok().json();
        json["classes"][0]["nest"][0]["time"].clone()
    };
    let all = loop_time(&[&["loops", "--json", &trace][..], &columns].concat());
    assert_eq!((&all["iterations"], &all["slowest_stream"]), (&6.into(), &"y".into()));
    let chosen = loop_time(&["loops", "--json", &archive, "--stream", "x"]);
    assert_eq!((&chosen["iterations"], &chosen["total_ns"]), (&6.into(), &all["total_ns"]));
    assert_eq!((&chosen["shared"], &chosen["other_streams"]), (&true.into(), &true.into()));
    let text = run(&["loops", &archive, "--stream", "x"]).ok().text();
    assert!(text.contains("in all streams with this loop"), "{text}");
}
