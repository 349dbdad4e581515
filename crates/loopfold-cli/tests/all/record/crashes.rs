//! Nothing is lost when a program dies: what lies there opens, and holds a prefix of each rank's
//! events that is complete up to the last segment.

use super::{Mpi, Recording, ask, events, loopfold, program, record};
use loopfold_testing::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn parts(folder: &Path) -> PathBuf {
    folder.join("run.fold.parts")
}

/// Fails unless the events are the first ones of `fragile.c`, and returns how many there are.
fn check_prefix(events: &[String]) -> usize {
    let mut step = 0;
    for (place, event) in events.iter().enumerate() {
        let wanted = match place {
            0 => "MPI_Init",
            1 => "MPI_Comm_rank",
            2 => "MPI_Comm_size",
            _ if event.starts_with("MPI_Abort") || event.starts_with("MPI_Barrier") => {
                assert_eq!(place, events.len() - 1);
                return events.len();
            }
            _ => {
                step += 1;
                if step % 11 == 0 { "MPI_Allreduce" } else { "MPI_Sendrecv" }
            }
        };
        assert!(event.starts_with(wanted), "event {place} is {event}, not {wanted}");
    }
    events.len()
}

/// The helpers write what is left when the program is gone; a moment later.
fn wait_for_helpers(folder: &Path) {
    let started = Instant::now();
    let name = folder.join("run.fold").to_string_lossy().into_owned();
    while started.elapsed() < Duration::from_secs(20) && !helpers(&name).is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes that record to this archive: helpers, or all that have it in their environment.
fn processes_of(output: &str) -> Vec<(Pid, bool)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let wanted = format!("LOOPFOLD_RECORD={output}");
        if environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_helper = String::from_utf8_lossy(&command).contains("record-helper");
            found.extend(Pid::from_raw(pid).map(|pid| (pid, is_helper)));
        }
    }
    found
}

fn helpers(output: &str) -> Vec<Pid> {
    processes_of(output).into_iter().filter(|(_, is_helper)| *is_helper).map(|(pid, _)| pid).collect()
}

fn programs(output: &str) -> Vec<Pid> {
    processes_of(output).into_iter().filter(|(_, is_helper)| !is_helper).map(|(pid, _)| pid).collect()
}

/// Kills processes that may have ended already.
fn kill(processes: &[Pid]) {
    for &process in processes {
        let _ = kill_process(process, Signal::KILL);
    }
}

fn start(mpi: Mpi, folder: &Path, processes: usize, options: &[&str], arguments: &[&str]) -> Child {
    let mut command = mpi.mpirun(processes);
    command
        .args([loopfold(), "record", "--mpi", "--segment-seconds", "0.05", "-o"])
        .arg(folder.join("run.fold"));
    command.args(options).arg(program(mpi, "fragile.c", &[])).args(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What lies there opens and is merged; returns the events of all ranks.
fn check(folder: &Path, processes: usize) -> usize {
    let place = if parts(folder).is_dir() { parts(folder) } else { folder.join("run.fold") };
    let found = events(&place);
    assert!(found.len() <= processes);
    let count = found.values().map(|events| check_prefix(events)).sum();
    let merged = folder.join("merged.fold");
    let output = Command::new(loopfold()).arg("merge").arg(&place).arg("-o").arg(&merged).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verified = Command::new(loopfold()).arg("verify").arg(&merged).output().unwrap();
    assert!(verified.status.success());
    assert_eq!(events(&merged), found);
    count
}

/// Ways to die from outside, at a random moment.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// One process of the program is killed.
    One,
    /// All processes are killed, those that fold too.
    All,
    /// `mpirun` is asked to end, as a batch system does.
    Terminated,
}

#[test]
fn killed_at_random_moments() {
    let times: usize =
        std::env::var("LOOPFOLD_TEST_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(9);
    let mut rng =
        Rng::new(std::env::var("LOOPFOLD_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1));
    let mut survived = 0;
    for nth in 0..times {
        let death = [Death::One, Death::All, Death::Terminated][nth % 3];
        let mpi = if nth % 4 == 3 { Mpi::Mpich } else { Mpi::OpenMpi };
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("run.fold").to_string_lossy().into_owned();
        let mut mpirun = start(mpi, folder.path(), 3, &[], &["", "100000000"]);
        let first = Instant::now();
        while !parts(folder.path()).is_dir() && first.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(rng.below(600) as u64));
        let own = programs(&name);
        match death {
            Death::One => kill(&own[own.len().saturating_sub(1)..]),
            Death::All => kill(&processes_of(&name).into_iter().map(|(pid, _)| pid).collect::<Vec<_>>()),
            Death::Terminated => {
                let pid = Pid::from_raw(mpirun.id() as i32).unwrap();
                kill_process(pid, Signal::TERM).unwrap();
            }
        }
        mpirun.wait().unwrap();
        // MPICH's mpirun may leave the others behind.
        kill(&programs(&name));
        wait_for_helpers(folder.path());
        let count = check(folder.path(), 3);
        survived += usize::from(count > 0);
        println!("{death:?} under {mpi:?}: {count} events");
    }
    assert!(survived > times / 2, "{survived} of {times} have events");
}

fn said(recording: &Recording) -> String {
    String::from_utf8_lossy(&recording.output.stderr).into_owned()
}

#[test]
fn aborted_faulted_and_left_without_finalize() {
    for (how, mpi) in [
        ("abort", Mpi::OpenMpi),
        ("fault", Mpi::OpenMpi),
        ("exit", Mpi::OpenMpi),
        ("abort", Mpi::Mpich),
        ("fault", Mpi::Mpich),
    ] {
        let recording = record(mpi, 3, &[], &program(mpi, "fragile.c", &[]), &[how, "500"]);
        assert!(how == "exit" || !recording.output.status.success());
        wait_for_helpers(recording.folder.path());
        let found = events(&parts(recording.folder.path()));
        let last = &found["rank 1"];
        check_prefix(last);
        // Every event up to the end is there: the process that folds survives.
        assert_eq!(
            last.iter().filter(|event| event.starts_with("MPI_Sendrecv")).count(),
            500,
            "{how} {}",
            said(&recording)
        );
        assert_eq!(last.iter().any(|event| event.starts_with("MPI_Abort")), how == "abort");
        check(recording.folder.path(), 3);
    }
}

#[test]
fn a_recording_can_be_asked_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut mpirun = start(Mpi::OpenMpi, folder.path(), 3, &[], &["", "100000000"]);
    let started = Instant::now();
    let mut counts: Vec<u64> = Vec::new();
    while started.elapsed() < Duration::from_secs(30) && counts.len() < 3 {
        std::thread::sleep(Duration::from_millis(150));
        if parts(folder.path()).is_dir() {
            let count = ask(&parts(folder.path()), "stats", &[])["events"].as_u64().unwrap();
            if count > counts.last().copied().unwrap_or(0) {
                counts.push(count);
            }
        }
    }
    let loops = ask(&parts(folder.path()), "loops", &[]);
    assert!(loops["streams"].as_u64().unwrap() >= 1, "{loops}");
    ask(&parts(folder.path()), "patterns", &[]);
    ask(&parts(folder.path()), "waits", &[]);
    kill_process(Pid::from_raw(mpirun.id() as i32).unwrap(), Signal::TERM).unwrap();
    mpirun.wait().unwrap();
    wait_for_helpers(folder.path());
    assert_eq!(counts.len(), 3, "{counts:?}");
}

#[test]
fn a_full_disk() {
    // Only the superuser can make a file system that is full.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| Command::new("mount").args(arguments).arg(folder.path()).output();
    if !mount(&["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).is_ok_and(|output| output.status.success()) {
        return;
    }
    let mut mpirun = start(Mpi::OpenMpi, folder.path(), 2, &[], &["", "10000"]);
    let status = mpirun.wait().unwrap();
    wait_for_helpers(folder.path());
    let found = if parts(folder.path()).is_dir() { Some(events(&parts(folder.path()))) } else { None };
    let unmounted = Command::new("umount").arg("-l").arg(folder.path()).output().unwrap();
    assert!(unmounted.status.success());
    assert!(status.success(), "the program does not notice");
    for events in found.unwrap().values() {
        check_prefix(events);
    }
}
