//! Programs and systems that cannot be recorded as they are: a clear line each.

use super::{Mpi, cache, loopfold, program, record, record_command};
use std::path::Path;
use std::process::{Command, Output};

fn record_alone(path: Option<&str>, options: &[&str], program: &Path) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(loopfold());
    command.arg("record").args(options).arg("-o").arg(folder.path().join("run.fold")).arg(program);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.env("XDG_CACHE_HOME", cache()).env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").output().unwrap()
}

fn line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).trim_end().to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn a_missing_mpi_names_the_packages() {
    let empty = tempfile::tempdir().unwrap();
    for (mpi, packages) in [(Mpi::OpenMpi, "libopenmpi-dev openmpi-bin"), (Mpi::Mpich, "libmpich-dev mpich")]
    {
        let output = record_alone(empty.path().to_str(), &["--mpi"], &program(mpi, "ring.c", &[]));
        assert_eq!(output.status.code(), Some(2));
        assert!(line(&output).contains(packages), "{}", line(&output));
    }
}

#[test]
fn a_static_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let built = Command::new("cc").args(["-static", "-o"]).args([&program, &source]).output().unwrap();
    assert!(built.status.success());
    let output = record_alone(None, &["--mpi"], &program);
    assert!(line(&output).contains("it is linked statically"), "{}", line(&output));
}

#[test]
fn other_programs_run_and_nothing_is_recorded() {
    let output = record_alone(None, &["--mpi"], Path::new("true"));
    assert!(output.status.success());
    assert!(line(&output).contains("did not call MPI_Init"), "{}", line(&output));
    let output = record_alone(None, &["--mpi"], Path::new("no-such-program"));
    assert!(line(&output).contains("there is no such program"), "{}", line(&output));
    // The status is that of the program.
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(loopfold());
    command.args(["record", "--mpi", "-o"]).arg(folder.path().join("run.fold"));
    let output = command
        .arg(program(Mpi::OpenMpi, "fragile.c", &[]))
        .arg("never")
        .env("XDG_CACHE_HOME", cache())
        .output();
    assert_eq!(output.unwrap().status.code(), Some(5));
}

#[test]
fn an_mpi_program_without_the_option_is_explained() {
    let output = record_alone(None, &[], &program(Mpi::OpenMpi, "ring.c", &[]));
    assert_eq!(output.status.code(), Some(2));
    assert!(line(&output).contains("add --mpi"), "{}", line(&output));
    assert!(line(&record_alone(None, &[], Path::new("true"))).contains("compiled with `loopfold-cc`"));
}

#[test]
fn initialized_twice() {
    // MPI ends such a program; what came before is there.
    let recording = record(Mpi::OpenMpi, 2, &[], &program(Mpi::OpenMpi, "fragile.c", &[]), &["twice"]);
    let said = recording.messages();
    assert!(!said.contains("Segmentation"), "{said}");
}

#[test]
fn a_recorder_for_another_mpi_is_rebuilt() {
    // Under the name of the right one, in a cache of its own.
    let own = tempfile::tempdir().unwrap();
    let run = |folder: &Path| {
        let mut command = record_command(Mpi::OpenMpi, 2, &[], &folder.join("run.fold"), &[]);
        command.env("XDG_CACHE_HOME", own.path()).arg(program(Mpi::OpenMpi, "ring.c", &[])).output().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path()).status.success());
    let library = || {
        let entries = std::fs::read_dir(own.path().join("loopfold/mpi")).unwrap().flatten();
        entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|it| it == "so"))
    };
    let built = library().unwrap();
    // Its text of the version becomes another one.
    let mut bytes = std::fs::read(&built).unwrap();
    let place = bytes.windows(10).position(|window| window == b"Open MPI v").unwrap();
    bytes[place + 9] = b'w';
    std::fs::write(&built, bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("was built for another MPI"), "{said}");
    assert!(!folder.path().join("run.fold").exists());
    // Other processes of that execution may still have loaded it, so it is rebuilt a minute later.
    let mark = std::fs::File::options().write(true).open(built.with_extension("stale")).unwrap();
    mark.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(120)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path()).status.success());
    assert!(folder.path().join("run.fold").is_file());
}
