//! Archives that the OTF2 library itself wrote, read and compared with what the other tools
//! of OTF2 say of them; and damaged ones.
//!
//! They need the packages libopen-trace-format2-10, otf2-tools and python3-otf2, and say so when
//! these are missing.
#![allow(clippy::unwrap_used)]

use loopfold::Trace;
use loopfold::trace::{Collector, Column, Meaning, Projection, Role, TimesKept, Value};
use loopfold_otf2::Otf2;
use loopfold_sources::{Context, Options, Source as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The Python of the system: that of a virtual environment has not the system's packages.
fn script(arguments: &[&str]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archive.py");
    run(Command::new("/usr/bin/python3").arg(script).args(arguments), "python3-otf2")
}

/// The output of a program. Returns `None` if it is not installed, which is an error where tests
/// must run.
fn run(command: &mut Command, package: &str) -> Option<String> {
    let output = command.output().ok().filter(|output| {
        output.status.success() || !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError")
    });
    let Some(output) = output else {
        assert!(std::env::var_os("CI").is_none(), "{package} is missing");
        eprintln!("skipped: install {package} to run this test");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A fresh archive.
struct Archive {
    folder: TempDir,
}

impl Archive {
    fn new(kind: &str) -> Option<Self> {
        if let Err(reason) = loopfold_otf2::is_available() {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            eprintln!("skipped: {reason}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        script(&[kind, folder.path().join("run").to_str().unwrap()])?;
        Some(Self { folder })
    }

    fn anchor(&self) -> PathBuf {
        self.file("traces.otf2")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("run").join(name)
    }

    fn cut(&self, name: &str, length: usize) {
        let bytes = std::fs::read(self.file(name)).unwrap();
        std::fs::write(self.file(name), &bytes[..length.min(bytes.len())]).unwrap();
    }
}

fn mpi_only() -> Options {
    Options { mpi_only: true, ..Options::default() }
}

fn lenient(options: Options) -> Options {
    Options { lenient: true, ..options }
}

/// What was read and what was wrong, or the error.
fn read_by(anchor: &Path, options: &Options, key: Option<&[&str]>) -> Result<(Trace, Vec<String>), String> {
    let key = key.map(|key| key.iter().map(ToString::to_string).collect());
    let mut collector = Collector::new(Projection { key, ..Projection::default() }, TimesKept::All);
    let mut context = Context::new(options, &mut collector, "traces.otf2", false).at(Some(anchor), || Ok(()));
    Otf2.read(&mut &b""[..], &mut context).map_err(|error| error.to_string())?;
    let damage = context.into_damage().first;
    Ok((collector.finish().unwrap(), damage))
}

fn read(anchor: &Path, options: &Options) -> Result<(Trace, Vec<String>), String> {
    read_by(anchor, options, None)
}

/// An event of a stream: start, duration, what.
type Line = (i64, i64, String);

fn lines_of(trace: &Trace) -> BTreeMap<String, Vec<Line>> {
    let values = |column: &Option<Column<i64>>| column.as_ref().map(|column| column.values().unwrap());
    let stream_lines = |stream: &loopfold::trace::Stream| {
        let starts = values(&stream.times.starts).unwrap_or_default();
        let durations = values(&stream.times.durations).unwrap_or_else(|| vec![-1; starts.len()]);
        let label =
            |(index, &symbol): (usize, &_)| (starts[index], durations[index], trace.alphabet.label(symbol));
        (stream.name.clone(), stream.symbols.iter().enumerate().map(label).collect())
    };
    trace.streams.iter().map(stream_lines).collect()
}

fn labels_of(trace: &Trace, stream: &str) -> Vec<String> {
    lines_of(trace).remove(stream).unwrap().into_iter().map(|(_, _, label)| label).collect()
}

#[test]
fn every_call_is_what_the_python_package_says() {
    let Some(archive) = Archive::new("write") else { return };
    let Some(expected) = script(&["calls", archive.anchor().to_str().unwrap()]) else { return };
    let mut calls: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for line in expected.lines() {
        let [rank, start, duration, call] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let rank = rank.replace("MPI Rank", "rank");
        let duration = if duration == "-" { -1 } else { duration.parse().unwrap() };
        calls.entry(rank).or_default().push((start.parse().unwrap(), duration, call.to_string()));
    }
    let (trace, damage) = read(&archive.anchor(), &mpi_only()).unwrap();
    assert!(damage.is_empty());
    let mut ours = lines_of(&trace);
    assert_eq!(ours.remove("rank 0 thread 1"), Some(Vec::new()));
    assert!(ours.len() == 3 && ours.values().all(|calls| calls.len() > 80));
    assert_eq!(ours, calls);
}

/// The records of all locations as otf2-print shows them: kind, location, time, the rest.
fn printed(anchor: &Path) -> Option<Vec<(String, u64, u64, String)>> {
    let text = run(Command::new("otf2-print").arg(anchor), "otf2-tools")?;
    let record = |line: &str| {
        let mut words = line.split_whitespace();
        let (kind, location, time) =
            (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((kind.to_string(), location, time, words.collect::<Vec<_>>().join(" ")))
    };
    Some(text.lines().filter_map(record).collect())
}

/// The values of a field: a list if it has several.
fn numbers(meaning: &Meaning<'_>, key: &str) -> Vec<String> {
    match meaning.field(key) {
        None => Vec::new(),
        Some(Value::Integer(number)) => vec![number.to_string()],
        Some(Value::Text(text)) => String::from_utf8_lossy(text).split(',').map(String::from).collect(),
    }
}

#[test]
fn regions_and_messages_are_what_otf2_print_shows() {
    let Some(archive) = Archive::new("write") else { return };
    let Some(records) = printed(&archive.anchor()) else { return };
    let (trace, _) = read(&archive.anchor(), &Options::default()).unwrap();
    let first = records.iter().map(|record| record.2).min().unwrap();
    let streams = [(0, "rank 0"), (1, "rank 0 thread 1"), (2, "rank 1"), (3, "rank 2")];
    for (location, name) in streams {
        let own = records.iter().filter(|record| record.1 == location);
        let mut regions = Vec::new();
        let mut messages = Vec::new();
        for (kind, _, time, rest) in own {
            let at = ((time - first) * 1_000_000_000 / 4_000_000_000) as i64;
            match kind.as_str() {
                "ENTER" | "LEAVE" => {
                    regions.push((at, kind.clone(), rest.split('"').nth(1).unwrap().to_string()))
                }
                "MPI_SEND" | "MPI_ISEND" | "MPI_RECV" | "MPI_IRECV" => {
                    // Sender: 1 ("Master thread" <1>), Communicator: "even" <1>, Tag: 5, Length: 8
                    let after = |key: &str| rest.split(key).nth(1).unwrap().to_string();
                    let number =
                        |text: String| text.chars().take_while(char::is_ascii_digit).collect::<String>();
                    let peer = number(rest.split(": ").nth(1).unwrap().to_string());
                    let comm = number(after("Communicator: ").split('<').nth(1).unwrap().to_string());
                    messages.push([peer, comm, number(after("Tag: ")), number(after("Length: "))].join(" "));
                }
                _ => {}
            }
        }
        let stream = trace.streams.iter().find(|stream| stream.name == name).unwrap();
        let mut our_regions = Vec::new();
        let mut our_messages = Vec::new();
        for (&symbol, (start, duration, _)) in stream.symbols.iter().zip(&lines_of(&trace)[name]) {
            let meaning = trace.alphabet.meaning(symbol);
            let loopfold::trace::Name::Text(text) = meaning.name else { panic!("a number") };
            let region = String::from_utf8_lossy(text).into_owned();
            match meaning.role {
                Role::Leave => our_regions.push((*start, "LEAVE".to_string(), region.clone())),
                // The message outside of any call has no region.
                _ if meaning.field("tag") == Some(Value::Integer(9)) => {}
                _ => our_regions.push((*start, "ENTER".to_string(), region.clone())),
            }
            if *duration >= 0 {
                our_regions.push((start + duration, "LEAVE".to_string(), region));
            }
            for (peer, tag, bytes) in [("dest", "tag", "bytes"), ("src", "tag", "bytes")] {
                let second = meaning.field("dest").is_some() && peer == "src";
                let (tag, bytes) = if second { ("recvtag", "recvbytes") } else { (tag, bytes) };
                let nth = |key, index: usize| {
                    let all = numbers(&meaning, key);
                    all.get(index).or(all.first()).unwrap().clone()
                };
                for (index, peer) in numbers(&meaning, peer).into_iter().enumerate() {
                    our_messages
                        .push([peer, nth("comm", index), nth(tag, index), nth(bytes, index)].join(" "));
                }
            }
        }
        assert_eq!(our_regions, regions, "{name}");
        // A receive is emitted where it was posted, not where it completed.
        our_messages.sort();
        messages.sort();
        assert_eq!(our_messages, messages, "{name}");
        assert!(location == 1 || messages.len() > 50);
    }
}

#[test]
fn fields_come_when_they_are_wanted() {
    let Some(archive) = Archive::new("write") else { return };
    let by =
        |key: &[&str]| labels_of(&read_by(&archive.anchor(), &mpi_only(), Some(key)).unwrap().0, "rank 0");
    assert_eq!(by(&["name", "caller"])[1], "MPI_Irecv caller=exchange");
    assert_eq!(by(&["name", "sent", "received"])[8], "MPI_Allreduce sent=24 received=24");
    assert_eq!(by(&["name", "dest"])[3], "MPI_Isend dest=1");
    let regions = Options { regions: vec!["ex*".into(), "MPI_A*".into()], ..Options::default() };
    let (trace, _) = read(&archive.anchor(), &regions).unwrap();
    let expected = ["enter exchange", "leave exchange", "MPI_Allreduce bytes=8 comm=0"];
    assert_eq!(labels_of(&trace, "rank 0")[..3], expected);
}

#[test]
fn streams_know_their_communicators() {
    let Some(archive) = Archive::new("write") else { return };
    let (trace, _) = read(&archive.anchor(), &Options::default()).unwrap();
    let note = |stream: &str, key: &str| {
        let stream = trace.streams.iter().find(|candidate| candidate.name == stream).unwrap();
        stream.notes.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    };
    assert_eq!(note("rank 2", "comm 1").as_deref(), Some("0,2"));
    assert_eq!(note("rank 1", "comm 1"), None);
    assert_eq!(note("rank 0", "comm 1 name").as_deref(), Some("even"));
    assert_eq!(note("rank 0", "comm 0 shape").as_deref(), Some("3px1"));
    assert_eq!(note("rank 0 thread 1", "location").as_deref(), Some("MPI Rank 0 OMP thread 1"));
    assert_eq!(note("rank 2", "open-calls").as_deref(), Some("2"));
    assert_eq!(note("rank 2", "unfinished-requests").as_deref(), Some("1"));
}

#[test]
fn an_archive_without_mpi_has_its_threads() {
    let Some(archive) = Archive::new("users") else { return };
    let (trace, _) = read(&archive.anchor(), &Options::default()).unwrap();
    let names: Vec<&str> = trace.streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(labels_of(&trace, "second"), ["enter main", "leave main"]);
    let error = read(&archive.anchor(), &mpi_only()).unwrap_err();
    assert!(error.contains("no MPI calls") && error.contains("--mpi-only"), "{error}");
    let (_, damage) = read(&archive.anchor(), &lenient(mpi_only())).unwrap();
    assert_eq!(damage.len(), 1);
}

#[test]
fn a_missing_location_is_an_error_or_the_rest_is_read() {
    let Some(archive) = Archive::new("write") else { return };
    let (whole, _) = read(&archive.anchor(), &mpi_only()).unwrap();
    std::fs::remove_file(archive.file("traces/2.evt")).unwrap();
    let error = read(&archive.anchor(), &mpi_only()).unwrap_err();
    assert!(error.starts_with("rank 1: "), "{error}");
    let (rest, damage) = read(&archive.anchor(), &lenient(mpi_only())).unwrap();
    assert!(damage.len() == 1 && damage[0].starts_with("rank 1: "), "{damage:?}");
    assert_eq!(labels_of(&rest, "rank 1"), Vec::<String>::new());
    assert_eq!(labels_of(&rest, "rank 2"), labels_of(&whole, "rank 2"));
}

#[test]
fn missing_definitions_of_a_location_are_damage() {
    let Some(archive) = Archive::new("write") else { return };
    std::fs::remove_file(archive.file("traces/3.def")).unwrap();
    let error = read(&archive.anchor(), &mpi_only()).unwrap_err();
    assert!(error.starts_with("rank 2: ") && error.contains("3.def"), "{error}");
    let (trace, damage) = read(&archive.anchor(), &lenient(mpi_only())).unwrap();
    assert!(damage.len() == 1 && labels_of(&trace, "rank 2").len() > 80);
    // Other tools write archives in which no location has any.
    for name in ["traces/0.def", "traces/1.def", "traces/2.def"] {
        std::fs::remove_file(archive.file(name)).unwrap();
    }
    let (trace, damage) = read(&archive.anchor(), &mpi_only()).unwrap();
    assert!(damage.is_empty() && labels_of(&trace, "rank 2").len() > 80);
}

#[test]
fn cut_definitions_of_a_location_are_damage() {
    let Some(archive) = Archive::new("write") else { return };
    for cut in [25, 3, 0] {
        archive.cut("traces/3.def", cut);
        let error = read(&archive.anchor(), &mpi_only()).unwrap_err();
        assert!(error.starts_with("rank 2: its definitions: "), "{error}");
        let (trace, damage) = read(&archive.anchor(), &lenient(mpi_only())).unwrap();
        assert!(damage.len() == 1 && labels_of(&trace, "rank 2").len() > 80);
    }
}

#[test]
fn a_cut_location_is_an_error_or_its_beginning_is_read() {
    let Some(archive) = Archive::new("write") else { return };
    let (whole, _) = read(&archive.anchor(), &mpi_only()).unwrap();
    let length = std::fs::read(archive.file("traces/2.evt")).unwrap().len();
    let mut some = 0;
    // The last bytes only say that this is the end.
    for cut in [length - 20, length / 2, length / 3, 30, 11, 1, 0] {
        archive.cut("traces/2.evt", cut);
        let error = read(&archive.anchor(), &mpi_only()).unwrap_err();
        assert!(error.starts_with("rank 1: "), "{cut}: {error}");
        let (rest, damage) = read(&archive.anchor(), &lenient(mpi_only())).unwrap();
        assert!(!damage.is_empty());
        assert_eq!(labels_of(&rest, "rank 2"), labels_of(&whole, "rank 2"));
        // Receives may lack what came after the cut, and nothing is made up.
        let (rest, whole) = (&lines_of(&rest)["rank 1"], &lines_of(&whole)["rank 1"]);
        assert!(rest.len() <= whole.len());
        for (part, known) in rest.iter().zip(whole) {
            let name = |line: &Line| line.2.split(' ').next().unwrap().to_string();
            assert_eq!((part.0, name(part)), (known.0, name(known)));
        }
        some += rest.len();
    }
    assert!(some > 0, "what can be read is read");
}

#[test]
fn a_group_that_names_an_absent_rank_is_damage() {
    let Some(archive) = Archive::new("absent") else { return };
    let error = read(&archive.anchor(), &Options::default()).unwrap_err();
    assert!(error.contains("names rank 7, but there are 3 ranks"), "{error}");
    let (trace, damage) = read(&archive.anchor(), &lenient(Options::default())).unwrap();
    assert_eq!((damage.len(), labels_of(&trace, "rank 0")), (1, vec!["MPI_Init".to_string()]));
}

#[test]
fn what_is_no_archive_is_an_error() {
    let Some(archive) = Archive::new("write") else { return };
    let anchor = std::fs::read(archive.anchor()).unwrap();
    for content in [&b""[..], b"MPI_Send\n", &anchor[..anchor.len() / 2], b"\x03BOTF2\0"] {
        std::fs::write(archive.anchor(), content).unwrap();
        let error = read(&archive.anchor(), &lenient(Options::default())).unwrap_err();
        assert!(error.contains("not the anchor file of an OTF2 archive"), "{error}");
    }
    std::fs::write(archive.anchor(), &anchor).unwrap();
    archive.cut("traces.def", 40);
    assert!(read(&archive.anchor(), &Options::default()).is_err());
    std::fs::remove_file(archive.file("traces.def")).unwrap();
    assert!(read(&archive.anchor(), &lenient(Options::default())).is_err());
}

/// Gives records of one kind a number that no version of OTF2 has; returns how many.
fn make_unknown(file: &Path, kind: u8) -> usize {
    let mut bytes = std::fs::read(file).unwrap();
    let (mut at, mut changed) = (18, 0);
    // A time is its mark and 8 bytes, a record its kind, its length, and that many bytes.
    while let [mark, length] = bytes[at..at + 2] {
        at += match mark {
            1 | 2 => break,
            5 => 9,
            _ => 2 + usize::from(length),
        };
        if mark == kind {
            bytes[at - 2 - usize::from(length)] = 200;
            changed += 1;
        }
    }
    std::fs::write(file, bytes).unwrap();
    changed
}

#[test]
fn unknown_records_are_counted_and_passed_over() {
    let Some(archive) = Archive::new("write") else { return };
    let (whole, _) = read(&archive.anchor(), &mpi_only()).unwrap();
    const COLLECTIVE_BEGIN: u8 = 22;
    const SEND: u8 = 14;
    let begins = make_unknown(&archive.file("traces/2.evt"), COLLECTIVE_BEGIN);
    let sends = make_unknown(&archive.file("traces/3.evt"), SEND);
    assert_eq!((begins, sends), (11, 11));
    let (trace, damage) = read(&archive.anchor(), &mpi_only()).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let unknown = |name: &str| {
        let stream = trace.streams.iter().find(|stream| stream.name == name).unwrap();
        stream.notes.iter().find(|(key, _)| key == "unknown-records").map(|(_, count)| count.clone())
    };
    let unknown: Vec<Option<String>> = ["rank 0", "rank 1", "rank 2"].map(unknown).into();
    assert_eq!(unknown, [None, Some("11".to_string()), Some("11".to_string())]);
    // What begins a collective says nothing that its end does not say.
    assert_eq!(lines_of(&trace)["rank 1"], lines_of(&whole)["rank 1"]);
    // Of a call that sends and receives, what it sends is lost; the call is not.
    let call =
        |trace: &Trace| labels_of(trace, "rank 2").into_iter().find(|label| label.contains("Sendrecv"));
    assert_eq!(
        call(&whole).as_deref(),
        Some("MPI_Sendrecv dest=2 tag=1 bytes=4 src=2 recvtag=1 recvbytes=4 comm=1")
    );
    assert_eq!(call(&trace).as_deref(), Some("MPI_Sendrecv src=2 tag=1 bytes=4 comm=1"));
}
