//! Programs with several run-time libraries: those that hide theirs, that are opened later, or are
//! of another version.

use super::{Recording, check_nesting, enter, leave, path, programs, record_command, work};
use std::path::Path;

/// Records a program with a library.
fn record(options: &[&str], program: &str, arguments: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let output = record_command(&folder, options, &programs().join(program), arguments).output().unwrap();
    Recording { folder, output }
}

fn hidden() -> String {
    programs().join("hidden.so").to_str().unwrap().to_string()
}

const HANDLER: &str = "n::handler(int)";

/// What a round of `rounds` emits.
fn round() -> Vec<String> {
    let deep = [&[enter("deep"), path(3, "deep", 1)][..], &work(1), &[leave("deep")]].concat();
    [
        &work(1)[..],
        &[path(0, "main", 0), enter(HANDLER), path(2, HANDLER, 3)],
        &deep,
        &[path(2, HANDLER, 4), leave(HANDLER)],
        &[enter("work"), path(1, "work", 1), leave("work"), path(0, "main", 2)],
    ]
    .concat()
}

#[test]
fn a_library_that_hides_its_symbols_appends_to_the_lane_of_its_caller() {
    // More than a ring holds: each library for itself would wait for ever.
    for (options, count) in [(&[][..], 100_000), (&["--cycles"], 1000), (&["--spool"], 1000)] {
        let recorded = record(options, "libraries", &["rounds", &hidden(), &count.to_string()]);
        assert!(recorded.output.status.success(), "{}", recorded.errors());
        let streams = recorded.streams();
        assert_eq!(streams.keys().collect::<Vec<_>>(), ["main"]);
        let main = &streams["main"];
        assert_eq!((&main[0], &main[main.len() - 1]), (&enter("main"), &leave("main")));
        let round = round();
        assert_eq!(main.len(), round.len() * count + 2);
        assert!(main[1..main.len() - 1].chunks(round.len()).all(|events| events == round));
    }
}

#[test]
fn jumps_across_libraries_leave_the_frames_of_both() {
    let recorded = record(&[], "libraries", &["jumps", &hidden(), "1000"]);
    assert!(recorded.output.status.success(), "{}", recorded.errors());
    let left = [leave("deep"), leave(HANDLER), path(0, "main", 1)];
    let round = [&[enter(HANDLER), path(2, HANDLER, 3), enter("deep")][..], &left].concat();
    let main = [&[enter("main"), path(0, "main", 0)][..], &vec![round; 1000].concat(), &[leave("main")]];
    assert_eq!(recorded.streams()["main"], main.concat());
}

#[test]
fn handlers_may_interrupt_calls_from_one_library_to_another() {
    let recorded = record(&[], "libraries", &["signals", &hidden(), "300"]);
    assert!(recorded.output.status.success(), "{}", recorded.errors());
    let handled: usize = String::from_utf8_lossy(&recorded.output.stdout).trim().parse().unwrap();
    let mut streams = recorded.streams();
    let called = [&work(1)[..], &[enter(HANDLER), path(2, HANDLER, 0)], &work(1), &[leave(HANDLER)]].concat();
    assert_eq!(streams.remove("main signals").unwrap(), vec![called; handled].concat());
    let main = streams.remove("main").unwrap();
    assert!(streams.is_empty());
    check_nesting("main", &main, false);
    let rounds = [&[enter("main")][..], &vec![round(); 100].concat(), &[leave("main")]].concat();
    assert!(main.chunks(rounds.len()).all(|events| events == rounds));
}

#[test]
fn copies_of_a_process_with_several_libraries_are_recorded_whole() {
    // A static program has another C library than what it opens.
    for program in ["libraries", "static_libraries"] {
        let recorded = record(&[], program, &["forks", &hidden()]);
        assert!(recorded.output.status.success(), "{program}: {}", recorded.errors());
        let mut streams = recorded.streams();
        let begin = [enter("main"), path(0, "main", 0)];
        let main = [&begin[..], &work(1), &[leave("main")]].concat();
        assert_eq!(streams.remove("main").unwrap(), main, "{program}");
        let child = [&begin[..1], &work(1), &[path(0, "main", 1), leave("main")]].concat();
        assert_eq!(streams.into_values().collect::<Vec<_>>(), vec![child; 3], "{program}");
    }
}

#[test]
fn libraries_of_a_program_that_is_not_instrumented_share_a_lane() {
    let recorded = record(&[], "host", &[&hidden(), programs().join("plugin2.so").to_str().unwrap()]);
    assert!(recorded.output.status.success(), "{}", recorded.errors());
    let streams = recorded.streams();
    assert_eq!(streams["main"], [work(1), work(1)].concat());
    assert_eq!(streams["process 2 main"], [work(1), work(1)].concat());
    assert_eq!(streams["process 3 main"], [work(1), work(1)].concat());
    assert_eq!(streams.len(), 3);
}

#[test]
fn a_library_of_another_version_is_refused_and_what_it_throws_away_is_counted() {
    let recorded =
        record(&[], "libraries", &["rounds", programs().join("other.so").to_str().unwrap(), "100000"]);
    assert_eq!(recorded.output.status.code(), Some(2), "{}", recorded.errors());
    assert!(recorded.errors().contains("another version of loopfold"), "{}", recorded.errors());
    assert!(recorded.errors().contains("process 2 main: at least"), "{}", recorded.errors());
    // What the program does itself is there.
    let streams = recorded.streams();
    assert_eq!(streams.keys().collect::<Vec<_>>(), ["main", "process 2 main"]);
    check_nesting("main", &streams["main"], false);
    assert_eq!((streams["main"].len(), streams["process 2 main"].len()), (2 + 100_000 * 5, 0));
}

#[test]
fn what_runs_before_a_module_is_registered_is_kept() {
    let recorded = record(&[], "early", &[]);
    assert!(recorded.output.status.success(), "{}", recorded.errors());
    let early: Vec<String> = ["enter ?", "?#0 function=?", "leave ?"].map(String::from).to_vec();
    assert_eq!(recorded.streams()["main"], [vec![early; 2000].concat(), work(2)].concat());
}

/// Compiles what these tests record.
pub(super) fn compile_all(folder: &Path, compile: impl Fn(&str, &str, &[&str])) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/record_paths");
    let script = format!("-Wl,--version-script={}", sources.join("hidden.map").display());
    let runtime = folder.join("runtime.o");
    let runtime = runtime.to_str().unwrap();
    let library = ["-shared", "-fPIC", &script];
    compile("hidden.c", "hidden.so", &[&library[..], &[runtime]].concat());
    compile("libraries.c", "libraries", &["-ldl", runtime]);
    compile("libraries.c", "static_libraries", &["-static", runtime]);
    compile("host.c", "host", &["-ldl"]);
    compile("hidden.c", "plugin2.so", &[&library[..], &[runtime]].concat());
    compile("early.c", "early", &[runtime]);
    let source = sources.join("../../../../loopfold-record/src/paths/runtime/runtime.c");
    let other = [&library[..], &["-DLF_VERSION=99", source.to_str().unwrap()]].concat();
    compile("hidden.c", "other.so", &other);
}
