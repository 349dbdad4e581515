//! Skeletons of recorded examples and of generated programs: they compile without warnings, run to
//! their end, and what they call is what was recorded, with fewer iterations.

use super::{Mpi, Recording, ask, cache, header, loopfold, program, record};
use loopfold_testing::Rng;
use loopfold_testing::spmd::{self, SpmdCall};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The examples, with few iterations, and on how many processes.
const EXAMPLES: [(&str, &[&str], usize); 12] = [
    ("ring.c", &["120"], 4),
    ("stencil.c", &["100"], 4),
    ("wavefront.f90", &["20", "12"], 4),
    ("butterfly.c", &["100"], 4),
    ("multigrid.c", &["60"], 4),
    ("workers.c", &["400"], 4),
    ("conjugate.f90", &["20", "5"], 4),
    ("irregular.c", &["3", "30"], 4),
    ("adaptive.c", &["4"], 4),
    ("weather.c", &["20", "6"], 4),
    ("allpairs.c", &["50", "2"], 4),
    ("nest.c", &["((4)^10 (4)^10 12)^24"], 4),
];

/// Writes the skeleton of an input and compiles it; every warning is an error.
fn compiled(mpi: Mpi, inputs: &[PathBuf], folder: &Path, options: &[&str]) -> (PathBuf, Value) {
    let (source, output) = (folder.join("skeleton.c"), folder.join("skeleton"));
    let written = Command::new(loopfold())
        .arg("skeleton")
        .args(inputs)
        .args(["--json", "-o"])
        .arg(&source)
        .args(options)
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let mut compiler = Command::new(format!("mpicc.{}", mpi.name()));
    compiler.args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&output).arg(&source).arg("-ldl");
    let done = compiler.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    (output, serde_json::from_slice(&written.stdout).unwrap())
}

/// Runs a skeleton, recorded; fails if it does not end in time.
fn recorded(mpi: Mpi, processes: usize, skeleton: &Path) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    let mpirun = mpi.mpirun(processes);
    command.arg("100").arg(mpirun.get_program()).args(mpirun.get_args());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("XDG_CACHE_HOME", cache());
    command.arg(loopfold()).args(["record", "--mpi", "-o"]).arg(folder.path().join("run.fold")).arg(skeleton);
    let output = command.output().unwrap();
    Recording { folder, output }.ended_well()
}

/// The logical nest of an archive; wildcards were replayed as they were matched.
fn nest(archive: &Path) -> String {
    let answer = ask(archive, "loops", &["--logical"]);
    let text = answer["parts"].to_string();
    [" any=src,tag", " any=src", " any=tag"].iter().fold(text, |text, any| text.replace(any, ""))
}

#[test]
fn of_every_example() {
    for (name, arguments, processes) in EXAMPLES {
        println!("{name}");
        let header = (name == "weather.c").then(header);
        let options: Vec<&str> = header.as_deref().into_iter().chain(["-ldl"]).collect();
        let mpi = Mpi::OpenMpi;
        let original = record(mpi, processes, &[], &program(mpi, name, &options), arguments).ended_well();
        let folder = tempfile::tempdir().unwrap();
        for scale in ["1", "1/10", "1/50"] {
            let options = ["--scale", scale];
            let (skeleton, about) = compiled(mpi, &[original.archive()], folder.path(), &options);
            let replayed = recorded(mpi, processes, &skeleton);
            let (calls, events) = (about["calls"].as_u64(), replayed.ask("stats", &[])["events"].as_u64());
            if scale != "1" {
                assert!(
                    about["calls"].as_u64() < about["recorded_calls"].as_u64(),
                    "{name} {scale}: {about}"
                );
            }
            assert_eq!(calls, events, "{name} {scale}");
            if scale == "1" {
                assert_eq!(nest(&replayed.archive()), nest(&original.archive()), "{name}");
            }
        }
    }
}

#[test]
fn counts_are_scaled() {
    let ring = record(Mpi::Mpich, 4, &[], &program(Mpi::Mpich, "ring.c", &[]), &["500"]).ended_well();
    let folder = tempfile::tempdir().unwrap();
    for (scale, left) in [("1/10", 50), ("1/50", 10), ("1/1000", 1)] {
        let (skeleton, about) = compiled(Mpi::Mpich, &[ring.archive()], folder.path(), &["--scale", scale]);
        assert_eq!(about["loops"][0]["left"], left, "{about}");
        let wanted = nest(&ring.archive());
        let wanted = match left {
            1 => wanted,
            _ => wanted.replace("\"times\":\"500\"", &format!("\"times\":\"{left}\"")),
        };
        let replayed = nest(&recorded(Mpi::Mpich, 4, &skeleton).archive());
        match left {
            1 => assert!(replayed.contains("MPI_Sendrecv") && !replayed.contains("times"), "{replayed}"),
            _ => assert_eq!(replayed, wanted),
        }
    }
    for options in [&["--noise"][..], &["--touch-memory", "1M"], &["--ranks", "7"], &["--wildcards", "open"]]
    {
        let (skeleton, about) = compiled(Mpi::Mpich, &[ring.archive()], folder.path(), options);
        let ranks = about["ranks"].as_u64().unwrap() as usize;
        assert_eq!(ranks, if options[0] == "--ranks" { 7 } else { 4 });
        recorded(Mpi::Mpich, ranks, &skeleton);
    }
}

#[test]
fn of_generated_programs() {
    let (mut done, mut seed) = (0, 0);
    while done < 5 {
        seed += 1;
        let mut rng = Rng::new(seed);
        let size = rng.between(3, 6) as i64;
        let phases = spmd::random(&mut rng, size);
        let calls: Vec<Vec<SpmdCall>> = (0..size).map(|rank| spmd::calls(&phases, rank, size)).collect();
        let longest = calls.iter().map(Vec::len).max().unwrap_or(0);
        if !(20..5_000).contains(&longest) {
            continue;
        }
        done += 1;
        let folder = tempfile::tempdir().unwrap();
        let file = |(rank, calls): (usize, &Vec<SpmdCall>)| {
            let path = folder.path().join(format!("rank-{rank}.txt"));
            let lines: Vec<String> = calls.iter().map(SpmdCall::text).collect();
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            path
        };
        let inputs: Vec<PathBuf> = calls.iter().enumerate().map(file).collect();
        for scale in ["1", "1/4", "1/20"] {
            println!("{seed} at {scale}");
            let (skeleton, about) = compiled(Mpi::OpenMpi, &inputs, folder.path(), &["--scale", scale]);
            let replayed = recorded(Mpi::OpenMpi, size as usize, &skeleton);
            assert_eq!(replayed.ask("stats", &[])["events"], about["calls"], "{seed} at {scale}");
        }
    }
}

#[test]
fn a_check_prints_the_fastest_of_both() {
    let (mpi, ring) = (Mpi::OpenMpi, program(Mpi::OpenMpi, "ring.c", &[]));
    let recording = record(mpi, 2, &[], &ring, &["2000"]).ended_well();
    let mut command = Command::new(loopfold());
    command
        .arg("skeleton")
        .arg(recording.archive())
        .args(["--scale", "1/10", "--check", "--repeat", "3", "--json"]);
    command.args([
        "--launcher",
        "mpirun.openmpi --oversubscribe -n 2",
        "--compiler",
        "mpicc.openmpi -O2",
        "--",
    ]);
    command.arg(&ring).arg("2000").env("XDG_CACHE_HOME", cache());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |key: &str| answer["check"][key].as_f64().unwrap();
    for (one, all) in [("program", "programs"), ("skeleton", "skeletons")] {
        let all: Vec<f64> =
            answer["check"][all].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        assert_eq!(all.len(), 3, "{answer}");
        assert!(of(one) > 0.0 && all.iter().all(|&time| of(one) <= time), "{answer}");
    }
    assert!((of("predicted") / of("skeleton") - 10.0).abs() < 1e-6, "{answer}");
}
