//! Programs that do what few do: nothing of them is lost without a word.

use super::{Recording, Streams, enter, leave, loopfold, path, programs, record_command, work};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn record_with(options: &[&str], arguments: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let output = record_command(&folder, options, &programs().join("odd"), arguments).output().unwrap();
    Recording { folder, output }
}

fn record(arguments: &[&str]) -> Recording {
    record_with(&[], arguments)
}

/// The recorder and its program under limits that a shell sets.
fn record_under(limits: &str, arguments: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let command = record_command(&folder, &[], &programs().join("odd"), arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits}; exec \"$@\""), "sh"]);
    let output = shell.arg(command.get_program()).args(command.get_args()).output().unwrap();
    Recording { folder, output }
}

/// All streams of a recording from which nothing is missing.
fn whole(recorded: &Recording) -> Streams {
    assert!(recorded.output.status.success(), "{}", recorded.errors());
    assert_eq!(recorded.errors(), "");
    recorded.streams()
}

/// Something is missing, and that is said.
fn check_loss(recorded: &Recording, said: &str) {
    let errors = recorded.errors();
    assert_eq!(recorded.output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("are missing") && errors.contains(said), "{errors}");
}

#[test]
fn a_library_of_the_first_version_does_not_end_its_process() {
    let started = Instant::now();
    let recorded = record(&["introduced", "1"]);
    check_loss(&recorded, "another version of loopfold");
    assert_eq!(recorded.streams()["main"], vec![work(1); 150_001].concat());
    // The program did not wait for room that nobody makes.
    assert!(started.elapsed() < Duration::from_secs(40));
}

#[test]
fn an_introduction_without_memory_is_a_loss() {
    let recorded = record(&["introduced", "0"]);
    check_loss(&recorded, "a process is not recorded");
    assert_eq!(recorded.streams()["main"], vec![work(1); 150_001].concat());
}

#[test]
fn processes_for_which_there_are_no_files_are_followed() {
    let mut streams = whole(&record_under("ulimit -n 64", &["together", "40"]));
    assert_eq!(streams.remove("main").unwrap(), [enter("main"), leave("main")]);
    let child = [&[enter("main")][..], &work(2), &work(3)].concat();
    assert_eq!(streams.into_values().collect::<Vec<_>>(), vec![child; 40]);
}

#[test]
fn more_processes_than_files_are_recorded_or_missing() {
    // Most of them wait until others have ended, which these do without them.
    let recorded = record_under("ulimit -n 24", &["one by one", "60"]);
    let streams = whole(&recorded);
    assert_eq!(streams.len(), 61);
}

#[test]
fn a_copy_that_begins_late_is_waited_for() {
    let streams = whole(&record(&["late"]));
    assert_eq!(streams["process 2 main"], work(2));
}

#[test]
fn processes_with_numbers_of_their_own_are_followed() {
    let unshare = ["unshare", "-Urpf"];
    let is_possible = Command::new(unshare[0]).args([unshare[1], "true"]).status();
    if !is_possible.is_ok_and(|status| status.success()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = programs().join("emitters");
    let arguments = [unshare[1], program.to_str().unwrap(), "processes"];
    let output = record_command(&folder, &[], unshare[0].as_ref(), &arguments).output().unwrap();
    let recorded = Recording { folder, output };
    assert_eq!(whole(&recorded), super::record(&["processes"]).streams());
}

#[test]
fn handlers_of_forks_that_are_there_before_are_recorded() {
    // The first of them runs while the run-time library is about to fork, in a thread without a lane.
    let streams = whole(&record(&["handlers"]));
    assert_eq!(streams["thread 1"], work(1));
    assert_eq!(streams["process 2 main"], [work(2), work(3)].concat());
}

#[test]
fn a_thread_that_begins_in_a_vfork_is_not_the_first() {
    let streams = whole(&record(&["vfork"]));
    assert_eq!(streams.keys().collect::<Vec<_>>(), ["main", "thread 1"]);
    assert_eq!(streams["thread 1"], [work(1), work(2)].concat());
}

#[test]
fn a_copy_that_is_not_announced_has_a_stream_if_every_token_is_timed() {
    let streams = whole(&record_with(&["--cycles"], &["copied", "2"]));
    assert_eq!(streams["main"], [work(4), work(4)].concat());
    assert_eq!(streams["process 2 main"], work(2));
}

#[test]
fn a_copy_that_is_not_announced_is_a_loss_when_it_is_noticed() {
    check_loss(&record(&["copied", "40000"]), "copied without the C library");
}

#[test]
fn every_event_of_a_thread_that_has_ended_is_counted() {
    let recorded = record(&["ending", "7"]);
    check_loss(&recorded, "thread 1: at least 9 events are missing");
    assert_eq!(recorded.streams()["thread 1"], [work(1), work(7), work(7), work(7)].concat());
}

#[test]
fn whoever_waits_for_a_lane_seldom_asks_for_the_recorder() {
    // A recorder that takes connections and reads nothing.
    let name = format!("loopfold-test-{}", std::process::id());
    let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let is_over = Arc::<AtomicBool>::default();
    let until = Arc::clone(&is_over);
    let counted = std::thread::spawn(move || {
        // They are kept open: a process that cannot introduce itself is not recorded.
        let connections = socket.incoming().take_while(|_| !until.load(Ordering::SeqCst));
        connections.collect::<Vec<_>>().len()
    });
    let mut program = Command::new(programs().join("impatient_odd"));
    program.args(["many threads", "1100"]).env("LOOPFOLD_PATHS", format!("@{name}"));
    assert!(program.status().unwrap().success());
    is_over.store(true, Ordering::SeqCst);
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let count = counted.join().unwrap();
    assert!((3..40).contains(&count), "{count} connections");
}

#[test]
fn a_signal_ends_a_recorder_whose_program_has_ended() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["wander", "0", "30000000"];
    let mut command = record_command(&folder, &["--spool"], &programs().join("emitters"), &arguments);
    let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let printed = BufReader::new(recorder.stdout.take().unwrap());
    assert!(printed.lines().map_while(Result::ok).any(|line| line == "the end"));
    // It folds the spool soon.
    std::thread::sleep(Duration::from_millis(500));
    let started = Instant::now();
    kill_process(Pid::from_child(&recorder), Signal::TERM).unwrap();
    let status = recorder.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{status}");
    assert!(started.elapsed() < Duration::from_secs(20));
    let spool = folder.path().join("run.fold.spool");
    let read = Command::new(loopfold()).args(["stats", "--streams"]).arg(spool).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn what_a_process_without_memory_does_is_a_loss() {
    let recorded = record_under("ulimit -f 100", &["once"]);
    check_loss(&recorded, "shared memory");
    // It is said once: a child has reported that it cannot be recorded.
    let recorded = record(&["limited child"]);
    check_loss(&recorded, "shared memory");
    assert!(!recorded.errors().contains("did not report"), "{}", recorded.errors());
}

#[test]
fn static_programs_see_the_forks_that_their_libraries_do_not() {
    for options in [&[][..], &["--cycles"], &["--spool"]] {
        let folder = tempfile::tempdir().unwrap();
        let libraries = ["hidden.so", "plugin2.so"].map(|name| programs().join(name));
        let arguments = libraries.each_ref().map(|library| library.to_str().unwrap());
        let output =
            record_command(&folder, options, &programs().join("static_host"), &arguments).output().unwrap();
        let streams = whole(&Recording { folder, output });
        assert_eq!(streams.len(), 3);
        assert!(streams.into_values().all(|events| events == [work(1), work(1)].concat()));
    }
}

#[test]
fn a_refused_library_is_a_loss_however_little_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let other = programs().join("other.so");
    let arguments = ["rounds", other.to_str().unwrap(), "100"];
    let output = record_command(&folder, &[], &programs().join("libraries"), &arguments).output().unwrap();
    let recorded = Recording { folder, output };
    check_loss(&recorded, "another version of loopfold");
    let round = [path(0, "main", 0), enter("deep"), path(3, "deep", 1), leave("deep"), path(0, "main", 2)];
    let main = [&[enter("main")][..], &vec![round; 100].concat(), &[leave("main")]].concat();
    assert_eq!(recorded.streams()["main"], main);
}

/// Compiles what these tests record.
pub(super) fn compile_all(runtime: &str, export: &str, compile: impl Fn(&str, &str, &[&str])) {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = source.join("../loopfold-record/src/paths/runtime/runtime.c");
    compile("odd.c", "odd", &[export, runtime]);
    compile("odd.c", "impatient_odd", &["-DLF_MOST_SECONDS=1", source.to_str().unwrap()]);
    compile("host.c", "static_host", &["-static"]);
}
