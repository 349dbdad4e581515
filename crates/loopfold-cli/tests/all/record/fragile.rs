//! `fragile.c` while it is recorded: what it does, how far it is, and which processes there are.

use super::{Mpi, loopfold, program, record, record_command};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a rank can be asked to do, as in the source.
#[derive(Clone, Copy)]
pub(super) enum Order {
    Abort = 1,
    Fault = 2,
    Stop = 3,
}

/// An execution of the program.
pub(super) struct Execution {
    pub(super) ranks: usize,
    pub(super) mpirun: Child,
    folder: TempDir,
}

impl Execution {
    /// Starts the program, with hardly a time between segments. A file that cannot grow is an error
    /// of the call that writes, as on a full disk, and not a signal that kills.
    pub(super) fn start(mpi: Mpi, ranks: usize, pause: Duration) -> Self {
        Self::start_with(mpi, ranks, pause, "0.05")
    }

    /// The same with these seconds between segments.
    pub(super) fn start_with(mpi: Mpi, ranks: usize, pause: Duration, seconds: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for rank in 0..ranks {
            std::fs::write(folder.path().join(format!("control-{rank}")), [0; 16]).unwrap();
        }
        let ignoring = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
        let archive = folder.path().join("run.fold");
        let mut command = record_command(mpi, ranks, &ignoring, &archive, &["--segment-seconds", seconds]);
        command.env("FRAGILE_FOLDER", folder.path()).arg(program(mpi, "fragile.c", &[]));
        command.args(["", "1000000000", &pause.as_micros().to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mpirun = command.spawn().unwrap();
        Self { ranks, mpirun, folder }
    }

    pub(super) fn archive(&self) -> PathBuf {
        self.folder.path().join("run.fold")
    }

    pub(super) fn parts(&self) -> PathBuf {
        parts(self.folder.path())
    }

    pub(super) fn part(&self, rank: usize) -> PathBuf {
        self.parts().join(format!("rank-{rank}.fold"))
    }

    fn control(&self, rank: usize) -> PathBuf {
        self.folder.path().join(format!("control-{rank}"))
    }

    /// Waits until something is recorded.
    pub(super) fn wait_for_parts(&self) {
        let started = Instant::now();
        while !self.parts().is_dir() {
            assert!(started.elapsed() < Duration::from_secs(60), "the program does not start");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// How many calls of a rank have returned, at least.
    pub(super) fn returned(&self, rank: usize) -> u64 {
        let file = std::fs::File::open(self.control(rank)).unwrap();
        let read = || {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, 0).unwrap();
            u64::from_ne_bytes(bytes)
        };
        // The program may be writing it: half of a number is hardly read twice.
        loop {
            let value = read();
            if value == read() {
                return value;
            }
        }
    }

    pub(super) fn order(&self, rank: usize, order: Order) {
        let file = std::fs::File::options().write(true).open(self.control(rank)).unwrap();
        file.write_all_at(&(order as u64).to_ne_bytes(), 8).unwrap();
    }

    /// The processes of the program, or those that fold.
    pub(super) fn processes(&self, wanted: Kind) -> Vec<Pid> {
        let all = processes_of(&self.archive());
        all.into_iter().filter(|(_, kind)| *kind == wanted).map(|(pid, _)| pid).collect()
    }

    pub(super) fn terminate(&self) {
        kill_process(Pid::from_raw(self.mpirun.id() as i32).unwrap(), Signal::TERM).unwrap();
    }

    /// Waits until the program is gone and what it left is written; true if it ended well.
    pub(super) fn end(&mut self) -> bool {
        let status = self.mpirun.wait().unwrap();
        // MPICH's mpirun may leave the others behind.
        kill(&self.processes(Kind::Program));
        wait_for_helpers(&self.archive());
        status.success()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Program,
    Helper,
}

pub(super) fn parts(folder: &Path) -> PathBuf {
    folder.join("run.fold.parts")
}

/// The processes that have this archive in their environment.
pub(super) fn processes_of(archive: &Path) -> Vec<(Pid, Kind)> {
    let wanted = format!("LOOPFOLD_RECORD={}", archive.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_helper = String::from_utf8_lossy(&command).contains("record-helper");
            let kind = if is_helper { Kind::Helper } else { Kind::Program };
            found.extend(Pid::from_raw(pid).map(|pid| (pid, kind)));
        }
    }
    found
}

/// The helpers write what is left when the program is gone; a moment later.
pub(super) fn wait_for_helpers(archive: &Path) {
    let started = Instant::now();
    while processes_of(archive).iter().any(|(_, kind)| *kind == Kind::Helper) {
        assert!(started.elapsed() < Duration::from_secs(60), "what folds does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills processes that may have ended already.
pub(super) fn kill(processes: &[Pid]) {
    for &process in processes {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// The events of a rank in an execution without an end, from a complete recording.
pub(super) struct Endless {
    first: Vec<String>,
    repeated: Vec<String>,
}

/// Events of a program that ends regularly, or aborts.
const LAST: [&str; 3] = ["MPI_Barrier", "MPI_Abort", "MPI_Finalize"];

impl Endless {
    /// By rank. Three calls, ten exchanges and a sum, ten exchanges and a sum, barrier, end.
    fn recorded(mpi: Mpi, ranks: usize) -> Vec<Self> {
        let recording = record(mpi, ranks, &[], &program(mpi, "fragile.c", &[]), &["", "20"]).ended_well();
        let mut all = super::events(&recording.archive());
        let of_rank = |rank: usize| {
            let events = all.remove(&format!("rank {rank}")).unwrap();
            assert_eq!(events.len(), 3 + 2 * 11 + 2);
            assert_eq!(events[3..14], events[14..25]);
            Self { first: events[..3].to_vec(), repeated: events[3..14].to_vec() }
        };
        (0..ranks).map(of_rank).collect()
    }

    /// Fails unless these are the first events of the rank, and maybe those of an end.
    pub(super) fn check_prefix(&self, events: &[String]) {
        let is_last = |event: &&String| LAST.iter().any(|last| event.starts_with(last));
        let tail = events.iter().rev().take(2).take_while(is_last).count();
        let wanted = self.first.iter().chain(self.repeated.iter().cycle());
        for (place, (event, wanted)) in events[..events.len() - tail].iter().zip(wanted).enumerate() {
            assert_eq!(event, wanted, "event {place}");
        }
    }
}

/// What an execution records, made once for each MPI and number of ranks.
pub(super) fn check_prefixes(mpi: Mpi, ranks: usize, found: &HashMap<String, Vec<String>>) {
    type Known = HashMap<(Mpi, usize), Vec<Endless>>;
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap();
    let expected = known.entry((mpi, ranks)).or_insert_with(|| Endless::recorded(mpi, ranks));
    for (name, events) in found {
        let rank: usize = name.strip_prefix("rank ").unwrap().parse().unwrap();
        expected[rank].check_prefix(events);
    }
}

/// What lies there opens, is merged, and the archive verified; returns the events of each rank.
pub(super) fn check_archive(mpi: Mpi, ranks: usize, place: &Path) -> Vec<u64> {
    let found = super::events(place);
    check_prefixes(mpi, ranks, &found);
    let folder = tempfile::tempdir().unwrap();
    let merged = folder.path().join("merged.fold");
    let command = |arguments: &[&str], more: &[&Path]| {
        let output = Command::new(loopfold()).args(arguments).args(more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    command(&["merge", "-o"], &[&merged, place]);
    command(&["verify"], &[&merged]);
    assert_eq!(super::events(&merged), found);
    let count = |rank| found.get(&format!("rank {rank}")).map_or(0, |events| events.len() as u64);
    (0..ranks).map(count).collect()
}
