//! Files that are replaced, through links and beside what others have left.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use loopfold_output::{Cache, DataFolder, Error, ErrorKind, Job, Output, PrivateFolder, Target};
use std::ffi::OsString;
use std::fs::{Permissions, create_dir, read, read_dir, read_to_string, write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn put(output: &Output, text: &str) -> Result<u64, Error> {
    output.write(|out| out.write_all(text.as_bytes()).map_err(|error| panic!("{error}")))
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

fn place() -> (TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    (folder, move |name| path.join(name))
}

/// Runs one of these tests as another user, with a variable set, and returns what it prints. Only root can.
fn as_another(test: &str, variable: &str, value: &Path) -> Option<String> {
    use std::os::unix::process::CommandExt as _;
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(variable, value).uid(65534).gid(65534);
    let output = command.output().ok()?;
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    Some(printed)
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let (folder, at) = place();
    write(at("x"), "old").unwrap();
    std::fs::set_permissions(at("x"), Permissions::from_mode(0o640)).unwrap();
    let output = Output::claim(&at("x")).unwrap();
    let failed = output.write(|out| {
        out.write_all(b"half").unwrap();
        Err::<(), Error>(Output::claim(&at("no/where")).unwrap_err())
    });
    assert!(failed.unwrap_err().to_string().contains("does not exist; create it"));
    assert_eq!(read_to_string(at("x")).unwrap(), "old");
    assert_eq!(put(&output, "new").unwrap(), 3);
    assert_eq!(read_to_string(at("x")).unwrap(), "new");
    assert_eq!(at("x").metadata().unwrap().mode() & 0o777, 0o640);
    drop(output);
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn permissions_are_those_of_the_file_that_is_replaced() {
    let (_folder, at) = place();
    let set = |name, mode| std::fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    let mode = |name| at(name).metadata().unwrap().mode() & 0o7777;
    write(at("usual"), "").unwrap();
    write(at("x"), "old").unwrap();
    set("x", 0o600);
    let output = Output::claim(&at("x")).unwrap();
    output.write_beside([OsString::from("partial")], |_| Ok::<(), Error>(())).unwrap();
    assert_eq!(mode("partial"), 0o600);
    // Not those of a link that comes later, and nothing that would run as the user.
    symlink("nowhere", at("link")).unwrap();
    std::fs::rename(at("link"), at("x")).unwrap();
    put(&output, "new").unwrap();
    assert_eq!(mode("x"), mode("usual"));
    set("x", 0o4755);
    put(&output, "new").unwrap();
    assert_eq!(mode("x"), 0o755);
    // A file of somebody else gives nobody permission to write.
    set("x", 0o646);
    if std::os::unix::fs::chown(at("x"), Some(65534), None).is_ok() {
        put(&output, "new").unwrap();
        assert_eq!(mode("x"), 0o646 & mode("usual"));
    }
}

#[test]
fn links_are_followed_once() {
    let (folder, at) = place();
    create_dir(at("inner")).unwrap();
    write(at("inner/x"), "old").unwrap();
    symlink("inner/x", at("link")).unwrap();
    symlink("link", at("further")).unwrap();
    put(&Output::claim(&at("further")).unwrap(), "new").unwrap();
    assert_eq!(read_to_string(at("inner/x")).unwrap(), "new");
    assert!(at("link").is_symlink() && at("further").is_symlink());
    // A link that leads nowhere yet.
    symlink("inner/later", at("dangling")).unwrap();
    put(&Output::claim(&at("dangling")).unwrap(), "there").unwrap();
    assert!(at("dangling").is_symlink());
    assert_eq!(read_to_string(at("inner/later")).unwrap(), "there");
    assert_eq!(names(folder.path()), ["dangling", "further", "inner", "link"]);
    symlink("circle", at("circle")).unwrap();
    assert!(Output::claim(&at("circle")).unwrap_err().to_string().contains("too many links"));
}

#[test]
fn a_link_that_comes_later_is_not_followed() {
    let (_folder, at) = place();
    write(at("victim"), "mine").unwrap();
    let output = Output::claim(&at("x")).unwrap();
    symlink("victim", at("x")).unwrap();
    put(&output, "new").unwrap();
    assert_eq!(
        (read_to_string(at("victim")).unwrap(), read_to_string(at("x")).unwrap()),
        ("mine".into(), "new".into())
    );
}

#[test]
fn devices_and_pipes_stay() {
    let (folder, at) = place();
    let null = Path::new("/dev/null");
    let outputs = [(); 2].map(|()| Output::claim(null).unwrap());
    outputs.iter().for_each(|output| _ = put(output, "gone").unwrap());
    assert!(!null.metadata().unwrap().is_file());
    let pipe = at("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || read(pipe).unwrap()
    });
    put(&Output::claim(&pipe).unwrap(), "through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    assert_eq!(names(folder.path()), ["pipe"]);
    assert!(matches!(Target::named(Path::new("-")).unwrap(), Target::Stdout));
    if cfg!(target_os = "linux") {
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert!(matches!(Target::named(Path::new(name)).unwrap(), Target::Stdout), "{name}");
        }
    }
    assert!(Output::claim(folder.path()).unwrap_err().to_string().contains("is a directory"));
}

#[test]
fn one_claim_at_a_time() {
    let (_folder, at) = place();
    symlink("x", at("link")).unwrap();
    let first = Output::claim(&at("x")).unwrap();
    for name in ["x", "link"] {
        let second = Output::claim(&at(name)).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::Taken);
        assert!(second.to_string().contains("is being written by process"), "{second}");
    }
    assert!(Output::check_recording(&at("x")).is_err());
    drop(first);
    Output::check_recording(&at("x")).unwrap();
    Output::claim(&at("x")).unwrap();
}

/// Starts this test program once more with a file as descriptor 5, opened by a shell, and writes to it.
#[test]
fn an_open_file_is_written_as_a_shell_does() {
    const PATH: &str = "LOOPFOLD_OUTPUT_TEST_OPEN";
    if let Some(path) = std::env::var_os(PATH) {
        match Output::claim(Path::new(&path)) {
            Ok(output) => {
                assert!(output.target().existing().is_some());
                put(&output, "new").unwrap();
            }
            Err(error) => println!("error {error}"),
        }
        return;
    }
    if !cfg!(target_os = "linux") {
        return;
    }
    let (_folder, at) = place();
    let written = |redirection: &str, path: &str| {
        write(at("file"), "0123456789").unwrap();
        let script =
            format!("exec {redirection}; \"$0\" --exact an_open_file_is_written_as_a_shell_does --nocapture");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).arg(std::env::current_exe().unwrap());
        let printed = shell.env(PATH, path).env("FILE", at("file")).output().unwrap().stdout;
        (read_to_string(at("file")).unwrap(), String::from_utf8(printed).unwrap())
    };
    for path in ["/dev/fd/5", "/proc/self/fd/5"] {
        assert_eq!(written("5>>\"$FILE\"", path).0, "0123456789new");
        assert_eq!(written("5<>\"$FILE\"; dd bs=3 count=1 <&5 2>&1", path).0, "012new6789");
        assert_eq!(written("5>\"$FILE\"; printf abc >&5", path).0, "abcnew");
    }
    let (content, printed) = written("5<\"$FILE\"", "/dev/fd/5");
    assert!(content == "0123456789" && printed.contains("is open only for reading"), "{printed}");
    let (_, printed) = written("4<&0", "/dev/fd/77");
    assert!(printed.contains("error /dev/fd/77"), "{printed}");
    // A file that another process has open would be overwritten from its beginning.
    let file = std::fs::File::options().append(true).create(true).open(at("file")).unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&file));
    let (content, printed) = written("4<&0", &path);
    assert!(content == "0123456789" && printed.contains("cannot be written from here"), "{printed}");
}

/// As the system has it for links that it resolves itself: only those of the user, or of the owner of the
/// directory, are followed where everybody can create one.
#[test]
fn what_others_planted_where_everybody_may_is_not_followed() {
    let (folder, at) = place();
    let set = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    create_dir(at("inner")).unwrap();
    write(at("inner/victim"), "mine").unwrap();
    symlink("inner/victim", at("link")).unwrap();
    symlink(at("link"), at("inner/further")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    set(0o1777);
    for name in ["link", "inner/further", "pipe"] {
        Output::claim(&at(name)).unwrap();
    }
    // Only root can give files away.
    let planted = ["link", "pipe"].map(|name| std::os::unix::fs::lchown(at(name), Some(65534), None));
    if planted.iter().any(std::io::Result::is_err) {
        return;
    }
    for name in ["link", "inner/further", "pipe"] {
        let error = Output::claim(&at(name)).unwrap_err().to_string();
        assert!(error.contains("of another user"), "{error}");
    }
    set(0o755);
    for name in ["link", "inner/further", "pipe"] {
        Output::claim(&at(name)).unwrap();
    }
    set(0o1777);
    std::os::unix::fs::chown(folder.path(), Some(65534), None).unwrap();
    Output::claim(&at("link")).unwrap();
}

#[test]
fn a_link_below_an_open_directory_is_not_followed() {
    let (folder, at) = place();
    write(at("victim"), "mine").unwrap();
    symlink("victim", at("x")).unwrap();
    let open = loopfold_output::Folder::open(folder.path()).unwrap();
    let output = Output::claim_in(&open, "x".as_ref()).unwrap();
    assert_eq!(Output::claim_in(&open, "x".as_ref()).unwrap_err().kind(), ErrorKind::Taken);
    put(&output, "new").unwrap();
    assert!(!at("x").is_symlink());
    let read = |name| read_to_string(at(name)).unwrap();
    assert_eq!((read("victim"), read("x")), ("mine".into(), "new".into()));
    create_dir(at("inner")).unwrap();
    for name in ["inner", "..", "inner/x", ""] {
        Output::claim_in(&open, name.as_ref()).unwrap_err();
    }
}

/// A directory that may be written and not read.
#[test]
fn a_drop_box_is_written_to() {
    const NAME: &str = "a_drop_box_is_written_to";
    const PLACE: &str = "LOOPFOLD_OUTPUT_TEST_DROP";
    if let Some(place) = std::env::var_os(PLACE) {
        put(&Output::claim(&PathBuf::from(place).join("x")).unwrap(), "new").unwrap();
        return;
    }
    if !cfg!(target_os = "linux") {
        return;
    }
    let (folder, at) = place();
    let set = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    set(0o333);
    if as_another(NAME, PLACE, folder.path()).is_none() {
        put(&Output::claim(&at("x")).unwrap(), "new").unwrap();
    }
    set(0o700);
    assert_eq!(names(folder.path()), ["x"]);
    assert_eq!(read_to_string(at("x")).unwrap(), "new");
}

/// In a directory that several users share, the lock of one who is gone is in nobody's way.
#[test]
fn the_lock_of_another_user_is_judged() {
    const NAME: &str = "the_lock_of_another_user_is_judged";
    const PLACE: &str = "LOOPFOLD_OUTPUT_TEST_SHARED";
    if let Some(place) = std::env::var_os(PLACE) {
        match Output::claim(&PathBuf::from(place).join("x")).and_then(|output| put(&output, "new")) {
            Ok(_) => println!("written"),
            Err(error) => println!("error {error}"),
        }
        return;
    }
    let (folder, at) = place();
    let set = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    let output = Output::claim(&at("x")).unwrap();
    let lock = names(folder.path()).remove(0);
    assert_eq!(at(&lock).metadata().unwrap().mode() & 0o777, 0o644);
    let text = read_to_string(at(&lock)).unwrap();
    set(0o777);
    let Some(printed) = as_another(NAME, PLACE, folder.path()) else { return };
    assert!(printed.contains("is being written by process"), "{printed}");
    drop(output);
    for (mode, expected) in [(0o1777, "has left a lock of it"), (0o777, "written")] {
        set(mode);
        write(at(&lock), &text).unwrap();
        let printed = as_another(NAME, PLACE, folder.path()).unwrap();
        assert!(printed.contains(expected), "{printed}");
    }
    assert_eq!(names(folder.path()), ["x"]);
}

/// Starts this test program once more, to be killed while it has temporaries.
#[test]
fn what_a_killed_process_has_left_is_removed() {
    const PLACE: &str = "LOOPFOLD_OUTPUT_TEST_PLACE";
    if let Some(place) = std::env::var_os(PLACE) {
        let place = PathBuf::from(place);
        let output = Output::claim(&place.join("x")).unwrap();
        let private = PrivateFolder::new_in(&loopfold_output::Folder::open(&place).unwrap()).unwrap();
        private.write("inside", b"x").unwrap();
        let _ = output.write(|out| -> Result<(), Error> {
            out.write_all(&[0; 1 << 16]).unwrap();
            write(place.join("ready"), "").unwrap();
            std::thread::sleep(std::time::Duration::from_secs(600));
            Ok(())
        });
        return;
    }
    let (folder, at) = place();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_a_killed_process_has_left_is_removed"])
        .env(PLACE, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !at("ready").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // What a living process has stays.
    drop(Output::claim(&at("y")).unwrap());
    assert_eq!(names(folder.path()).len(), 4, "{:?}", names(folder.path()));
    child.kill().unwrap();
    child.wait().unwrap();
    // What only looks like it is somebody else's.
    write(at(".loopfold-notes.tmp"), "").unwrap();
    put(&Output::claim(&at("x")).unwrap(), "new").unwrap();
    assert_eq!(names(folder.path()), [".loopfold-notes.tmp", "ready", "x"]);
}

/// In a directory where others may rename, any folder of the user can come to have such a name.
#[test]
fn a_folder_with_the_name_of_a_temporary_stays() {
    let (folder, at) = place();
    let name = |number| format!(".loopfold-0123456789abcdef-{number}-0123456789abcdef01234567.tmp");
    let [full, marked] = [1, 2].map(name);
    for name in [&full, &marked] {
        create_dir(at(name)).unwrap();
        write(at(name).join("thesis"), "mine").unwrap();
    }
    // The marker of another folder.
    let private = PrivateFolder::new_in(&loopfold_output::Folder::open(folder.path()).unwrap()).unwrap();
    let marker = private.path().join(".loopfold-folder");
    std::fs::hard_link(marker, at(&marked).join(".loopfold-folder")).unwrap();
    // Who was killed before it could leave one.
    create_dir(at(&name(3))).unwrap();
    drop(private);
    put(&Output::claim(&at("x")).unwrap(), "new").unwrap();
    assert_eq!(names(folder.path()), [full.clone(), marked.clone(), "x".to_string()]);
    for name in [full, marked] {
        assert_eq!(read_to_string(at(&name).join("thesis")).unwrap(), "mine");
    }
}

/// What comes in the place of a temporary folder while it is used is not removed with it.
#[test]
fn a_folder_that_takes_the_place_of_a_temporary_stays() {
    let (folder, at) = place();
    create_dir(at("own")).unwrap();
    write(at("own/thesis"), "mine").unwrap();
    let private = PrivateFolder::new_in(&loopfold_output::Folder::open(folder.path()).unwrap()).unwrap();
    private.write("inside", b"x").unwrap();
    let name = private.path().to_path_buf();
    std::fs::rename(&name, at("aside")).unwrap();
    std::fs::rename(at("own"), &name).unwrap();
    drop(private);
    assert_eq!(read_to_string(name.join("thesis")).unwrap(), "mine");
    assert_eq!(names(&at("aside")), Vec::<String>::new());
}

#[test]
fn data_beside_an_output_are_never_replaced() {
    let (folder, at) = place();
    for (name, data) in [
        ("x", "x.parts"),
        ("x", "x.spool"),
        ("x", "x.partial.fold"),
        ("x.fold", "x.partial.fold"),
        ("x.partial.fold", "x.partial.fold"),
    ] {
        write(at(data), "data").unwrap();
        let error = Output::claim_for_recording(&at(name)).unwrap_err();
        assert!(error.to_string().contains("is what an earlier recording has left"), "{error}");
        assert!(Output::check_recording(&at(name)).is_err());
        std::fs::remove_file(at(data)).unwrap();
    }
    let output = Output::claim(&at("x")).unwrap();
    let names_of = || ["x.partial.fold", "x.2.partial.fold"].map(OsString::from);
    for expected in ["x.partial.fold", "x.2.partial.fold"] {
        let (path, _) = output.write_beside(names_of(), |_| Ok::<(), Error>(())).unwrap();
        assert_eq!(path, at(expected));
    }
    output.write_beside(names_of(), |_| Ok::<(), Error>(())).unwrap_err();
    drop(output);
    assert_eq!(names(folder.path()), ["x.2.partial.fold", "x.partial.fold"]);
}

#[test]
fn the_parts_belong_to_one_job() {
    let (folder, at) = place();
    let target = Target::named(&at("x")).unwrap();
    let join = |job| DataFolder::join(&target, Job(job));
    let first = join(1).unwrap();
    let part = first.folder().create("rank-0.fold".as_ref());
    part.unwrap();
    join(1).unwrap();
    assert_eq!(join(2).unwrap_err().kind(), ErrorKind::Taken);
    first.remove_if_empty();
    assert_eq!(names(&at("x.parts")), ["job", "rank-0.fold"]);
    first.folder().remove("rank-0.fold".as_ref()).unwrap();
    first.remove_if_empty();
    assert_eq!(names(folder.path()), Vec::<String>::new());
    // What fails otherwise is not what a recording has left.
    let long = Target::named(&at(&"x".repeat(252))).unwrap();
    let error = DataFolder::join(&long, Job(1)).unwrap_err();
    assert!(error.kind() == ErrorKind::Other && error.to_string().contains("too long"), "{error}");
    // A planted link leads nowhere.
    create_dir(at("elsewhere")).unwrap();
    write(at("elsewhere/job"), format!("{:016x}\n", 3)).unwrap();
    symlink("elsewhere", at("x.parts")).unwrap();
    assert_eq!(join(3).unwrap_err().kind(), ErrorKind::Taken);
    assert_eq!(names(&at("elsewhere")), ["job"]);
}

#[test]
fn of_many_that_join_one_job_wins() {
    for _ in 0..20 {
        let (_folder, at) = place();
        let target = Target::named(&at("x")).unwrap();
        let start = std::sync::Barrier::new(8);
        let joined: Vec<(u64, bool)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8u64)
                .map(|thread| {
                    let (target, start) = (&target, &start);
                    scope.spawn(move || {
                        start.wait();
                        (thread % 2, DataFolder::join(target, Job(thread % 2)).is_ok())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winner = joined.iter().find(|(_, won)| *won).unwrap().0;
        assert!(joined.iter().all(|&(job, won)| won == (job == winner)), "{joined:?}");
    }
}

#[test]
fn beside_a_device_parts_are_among_temporary_files() {
    let target = Target::named(Path::new("/dev/null")).unwrap();
    let parts = DataFolder::join(&target, Job(0x7e57)).unwrap();
    assert!(parts.folder().path().starts_with(std::env::temp_dir()));
    assert_eq!(parts.folder().path().metadata().unwrap().mode() & 0o777, 0o700);
    parts.remove_if_empty();
    assert!(!parts.folder().path().exists());
}

#[test]
fn what_others_write_is_there_as_a_whole() {
    let (folder, at) = place();
    let output = Output::claim(&at("archive")).unwrap();
    let write_half = |path: &Path| {
        create_dir(path).unwrap();
        write(path.join("half"), "half").unwrap();
        Ok::<(), Error>(())
    };
    let failed = output.write_new_by(|path| {
        write_half(path)?;
        Err(Output::claim(&at("no/where")).unwrap_err())
    });
    failed.unwrap_err();
    output.write_new_by(write_half).unwrap();
    let again = output.write_new_by(write_half);
    assert!(again.unwrap_err().to_string().contains("exists already"));
    // Not even an empty folder that comes meanwhile is replaced.
    let late = Output::claim(&at("late")).unwrap();
    let error = late.write_new_by(|path| {
        create_dir(at("late")).unwrap();
        write_half(path)
    });
    assert!(error.unwrap_err().to_string().contains("exists already"));
    std::fs::remove_dir(at("late")).unwrap();
    // What takes the place of the folder meanwhile is not written to.
    create_dir(at("victim")).unwrap();
    late.write_new_by(|path| {
        let temporary = names(folder.path()).into_iter().find(|name| name.ends_with(".tmp")).unwrap();
        std::fs::rename(at(&temporary), at("aside")).unwrap();
        symlink("victim", at(&temporary)).unwrap();
        write_half(path).unwrap();
        std::fs::remove_file(at(&temporary)).unwrap();
        std::fs::rename(at("aside"), at(&temporary)).unwrap();
        Ok::<(), Error>(())
    })
    .unwrap();
    assert_eq!(names(&at("victim")), Vec::<String>::new());
    drop(late);
    std::fs::remove_dir(at("victim")).unwrap();
    std::fs::remove_dir_all(at("late")).unwrap();
    drop(output);
    assert_eq!(names(folder.path()), ["archive"]);
}

/// Environment variables are those of the process: this runs in one of its own.
#[test]
fn a_cache_is_nobody_elses() {
    const CASE: &str = "LOOPFOLD_OUTPUT_TEST_CASE";
    if std::env::var_os(CASE).is_some() {
        match Cache::open("mpi") {
            Ok(cache) => println!("cache {}", cache.path().display()),
            Err(error) => println!("error {error}"),
        }
        return;
    }
    let asked = |set: &[(&str, &Path)]| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_cache_is_nobody_elses", "--nocapture"]).env(CASE, "1");
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME").envs(set.iter().copied());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let (_folder, at) = place();
    let own = asked(&[("XDG_CACHE_HOME", &at("cache"))]);
    assert!(own.contains(&format!("cache {}", at("cache/loopfold/mpi").display())), "{own}");
    assert_eq!(at("cache/loopfold/mpi").metadata().unwrap().mode() & 0o777, 0o700);
    for (path, mode) in [("cache/loopfold/mpi", 0o777), ("cache/loopfold", 0o770)] {
        std::fs::set_permissions(at(path), Permissions::from_mode(mode)).unwrap();
        let refused = asked(&[("XDG_CACHE_HOME", &at("cache"))]);
        assert!(refused.contains("error") && refused.contains("others can write there"), "{refused}");
        std::fs::set_permissions(at(path), Permissions::from_mode(0o700)).unwrap();
    }
    std::fs::set_permissions(at(""), Permissions::from_mode(0o777)).unwrap();
    let open = asked(&[("XDG_CACHE_HOME", &at("cache"))]);
    assert!(open.contains("others can write there"), "{open}");
    // The group of another user, which only root can give it.
    if std::os::unix::fs::chown(at(""), None, Some(65534)).is_ok() {
        std::fs::set_permissions(at(""), Permissions::from_mode(0o770)).unwrap();
        let shared = asked(&[("XDG_CACHE_HOME", &at("cache"))]);
        assert!(shared.contains("others can write there"), "{shared}");
    }
    // A planted link instead of the folder.
    std::fs::set_permissions(at(""), Permissions::from_mode(0o700)).unwrap();
    create_dir(at("planted")).unwrap();
    create_dir(at("other")).unwrap();
    symlink(at("planted"), at("other/loopfold")).unwrap();
    let linked = asked(&[("XDG_CACHE_HOME", &at("other"))]);
    assert!(linked.contains("error"), "{linked}");
}
