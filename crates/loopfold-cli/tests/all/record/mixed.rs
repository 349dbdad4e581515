//! Paths and calls of MPI together: `mixed.c`, compiled with `loopfold-cc` behind the wrapper of the
//! MPI. The calls are those of a recording without paths, the paths those of a recording without
//! calls, and both together are in the order that the program notes itself.

use super::fragile::{Kind, kill, parts, processes_of, wait_for_helpers};
use super::lost::verified;
use super::{Mpi, Recording, events, loopfold, record, record_command};
use crate::compile::pass;
use loopfold_testing::Rng;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const RANKS: usize = 2;

/// A program whose paths are recorded, compiled once.
fn instrumented(mpi: Mpi, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("record-programs");
    std::fs::create_dir_all(&folder).unwrap();
    let variable = if mpi == Mpi::OpenMpi { "OMPI_CC" } else { "MPICH_CC" };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/record").join(name);
    // Several tests may do so at once.
    let built = tempfile::Builder::new().tempfile_in(&folder).unwrap().into_temp_path();
    let mut command = Command::new(format!("mpicc.{}", mpi.name()));
    command.env(variable, format!("{} cc", loopfold())).env("LOOPFOLD_PASS", pass());
    command.args(["-O1", "-g", "-w", "-o"]).arg(&built).arg(source).args(["-lm", "-pthread"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = folder.join(format!("{name}-{}-paths", mpi.name()));
    built.persist(&path).unwrap();
    path
}

type Streams = BTreeMap<String, Vec<String>>;

/// The events of each stream for which this holds; streams without any are left out.
fn only(streams: &HashMap<String, Vec<String>>, is_wanted: impl Fn(&str) -> bool) -> Streams {
    let wanted = |events: &Vec<String>| -> Vec<String> {
        events.iter().filter(|event| is_wanted(event)).cloned().collect()
    };
    let all = streams.iter().map(|(name, events)| (name.clone(), wanted(events)));
    all.filter(|(_, events)| !events.is_empty()).collect()
}

fn is_call(event: &str) -> bool {
    event.starts_with("MPI_")
}

/// Records it with paths alone: an archive for each rank.
fn paths_alone(mpi: Mpi, program: &Path) -> Streams {
    let folder = tempfile::tempdir().unwrap();
    let script = "exec \"$1\" record -o \"$2/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}.fold\" env \"$3\"";
    let mut command = mpi.mpirun(RANKS);
    command.args(["sh", "-c", script, "sh", loopfold()]).arg(folder.path()).arg(program);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut all = Streams::new();
    for rank in 0..RANKS {
        for (name, paths) in events(&folder.path().join(format!("{rank}.fold"))) {
            all.insert(format!("rank {rank} {name}").replace(" main", ""), paths);
        }
    }
    all
}

/// What the program notes, by stream.
fn noted(folder: &Path) -> Streams {
    let mut all = Streams::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let (rank, thread) = name.split_once('-').unwrap();
        let name = match thread {
            "0" => format!("rank {rank}"),
            _ => format!("rank {rank} thread {thread}"),
        };
        let text = std::fs::read_to_string(entry.path()).unwrap();
        all.insert(name, text.lines().map(str::to_string).collect());
    }
    all
}

fn record_noting(mpi: Mpi, program: &Path) -> (Recording, Streams) {
    let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = record_command(mpi, RANKS, &[], &folder.path().join("run.fold"), &[]);
    let output = command.arg(program).env("MIXED_LOG", log.path()).output().unwrap();
    (Recording { folder, output }.ended_well(), noted(log.path()))
}

fn check(mpi: Mpi) {
    let program = instrumented(mpi, "mixed.c");
    let (recording, noted) = record_noting(mpi, &program);
    let both = events(&recording.archive());
    let count = both.values().map(|events| events.len() as u64).sum();
    assert_eq!(verified(&recording.archive()), (count, count, 0));

    let plain = record(mpi, RANKS, &[], &super::program(mpi, "mixed.c", &[]), &[]).ended_well();
    assert_eq!(only(&both, is_call), only(&events(&plain.archive()), |_| true));

    // Behind MPI_Finalize nothing is recorded.
    let alone = paths_alone(mpi, &program);
    let paths = only(&both, |event| !is_call(event));
    assert_eq!(paths.keys().collect::<Vec<_>>(), alone.keys().collect::<Vec<_>>());
    for (name, paths) in &paths {
        assert!(alone[name].starts_with(paths), "{name}");
        assert!(alone[name].len() == paths.len() || !name.contains("thread"), "{name}");
    }

    let is_noted = |event: &str| event.starts_with("enter ") || event.starts_with("leave ") || is_call(event);
    let mut order = only(&both, is_noted);
    let short = |event: &mut String| {
        if is_call(event) {
            event.truncate(event.find(' ').unwrap_or(event.len()));
        }
    };
    order.values_mut().flatten().for_each(short);
    assert_eq!(order, noted);

    // Paths are between the calls of the function that they are of.
    let main = &both["rank 0"];
    let begins = |text: &str| main.iter().position(|event| event.starts_with(text)).unwrap();
    assert!(begins("enter main") < begins("mixed.c:") && begins("mixed.c:") < begins("MPI_Init_thread"));
    assert_eq!(main.last().unwrap(), "MPI_Finalize");
    check_commands(&recording);
}

/// Commands work on such an archive; those on communication see only the calls.
fn check_commands(recording: &Recording) {
    let answer = |arguments: &[&str]| {
        let mut command = Command::new(loopfold());
        command.arg(arguments[0]).arg(recording.archive()).args(&arguments[1..]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(answer(&["loops"]).contains("mixed.c:"));
    assert!(answer(&["hot", "--cost", "instructions"]).contains("function=collatz"));
    assert!(answer(&["find", "enter collatz", "--count"]).trim().parse::<u64>().unwrap() > 0);
    assert!(answer(&["patterns"]).contains("communication pattern"));
    assert!(answer(&["waits"]).contains("messages"));
    let blocks = answer(&["cat", "--blocks"]);
    assert!(blocks.lines().any(|line| line.contains("mixed.c:") && line.contains('.')));
    assert!(!blocks.contains('#') && blocks.contains("MPI_Irecv src=1"));
    answer(&["verify"]);
}

#[test]
fn calls_are_between_paths_with_open_mpi() {
    check(Mpi::OpenMpi);
}

#[test]
fn calls_are_between_paths_with_mpich() {
    check(Mpi::Mpich);
}

#[test]
fn other_forms_have_no_paths_or_no_times() {
    let program = instrumented(Mpi::OpenMpi, "mixed.c");
    let timed = record(Mpi::OpenMpi, RANKS, &[], &program, &["5"]).ended_well();
    for times in ["none", "summary"] {
        let other = record(Mpi::OpenMpi, RANKS, &["--times", times], &program, &["5"]).ended_well();
        assert_eq!(events(&other.archive()), events(&timed.archive()), "{times}");
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("run.otf2");
    let mut command = record_command(Mpi::OpenMpi, RANKS, &[], &archive, &["--to", "otf2"]);
    let output = command.arg(&program).arg("5").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(only(&events(&archive), |event| event.contains("collatz")).is_empty());
}

/// Kills processes of an execution after some time, and returns what is there.
fn killed(mpi: Mpi, program: &Path, rng: &mut Rng, time: Duration) -> HashMap<String, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("run.fold");
    let mut command = record_command(mpi, RANKS, &[], &archive, &["--segment-seconds", "0.05"]);
    command.arg(program).arg("600").stdout(Stdio::null()).stderr(Stdio::null());
    let mut mpirun = command.spawn().unwrap();
    while !parts(folder.path()).is_dir() && mpirun.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(time * rng.below(100) as u32 / 100);
    let of_kind = |kind| -> Vec<_> {
        let all = processes_of(&archive).into_iter();
        all.filter(|(_, known)| *known == kind).map(|(pid, _)| pid).collect()
    };
    if rng.one_in(3) {
        kill(&of_kind(Kind::Helper));
        kill(&of_kind(Kind::Program));
    } else {
        let programs = of_kind(Kind::Program);
        if !programs.is_empty() {
            kill(&[programs[rng.below(programs.len())]]);
        }
    }
    mpirun.wait().unwrap();
    kill(&of_kind(Kind::Program));
    wait_for_helpers(&archive);
    let place = if archive.is_file() { archive } else { parts(folder.path()) };
    // Where all were killed at once, nothing may be written yet.
    let is_empty = |rank| {
        let part = place.join(format!("rank-{rank}.fold"));
        part.metadata().map_or(0, |about| about.len()) == 0
    };
    if !place.is_file() && (0..RANKS).all(is_empty) {
        return HashMap::new();
    }
    events(&place)
}

/// A receive that never completes, or not before two segments are written, keeps its wildcard.
fn without_senders(mut streams: HashMap<String, Vec<String>>) -> HashMap<String, Vec<String>> {
    for event in streams.values_mut().flatten().filter(|event| event.starts_with("MPI_Irecv")) {
        event.truncate("MPI_Irecv".len());
    }
    streams
}

#[test]
fn what_killed_ranks_leave_is_a_prefix() {
    let mpi = Mpi::OpenMpi;
    let program = instrumented(mpi, "mixed.c");
    let started = std::time::Instant::now();
    let whole = record(mpi, RANKS, &[], &program, &["600"]).ended_well();
    let time = started.elapsed();
    let whole = without_senders(events(&whole.archive()));
    let (mut rng, mut cut, mut some) = (Rng::new(17), 0, 0);
    for _ in 0..10 {
        let found = without_senders(killed(mpi, &program, &mut rng, time));
        for (name, events) in &found {
            let differing = events.iter().zip(&whole[name]).position(|(event, other)| event != other);
            assert_eq!(differing, None, "{name}: {events:?}");
            assert!(events.len() <= whole[name].len(), "{name}");
            cut += usize::from(events.len() < whole[name].len());
            some += usize::from(events.len() > 1000);
        }
    }
    assert!(cut > 5 && some > 5, "{cut} streams were cut, {some} have many events");
}
