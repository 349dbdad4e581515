//! Programs in C and C++ that use the library, compiled and executed, also under valgrind and through
//! pkg-config.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Where cargo puts the libraries that it builds for tests: beside them.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.parent().expect("it is in a folder").to_path_buf()
}

fn compile(folder: &Path, source: &str, is_static: bool) -> PathBuf {
    let program = folder.join("program");
    let is_cpp = source.ends_with(".cpp");
    let mut compiler = Command::new(if is_cpp { "g++" } else { "gcc" });
    compiler.args([
        if is_cpp { "-std=c++17" } else { "-std=c11" },
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
    ]);
    compiler.arg(Path::new(ROOT).join(source)).arg("-o").arg(&program);
    compiler.arg("-I").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"));
    let libraries = libraries();
    if is_static {
        compiler.arg(libraries.join("libloopfold_c.a")).args(["-ldl", "-lm"]);
    } else {
        compiler
            .arg("-L")
            .arg(&libraries)
            .arg("-lloopfold_c")
            .arg(format!("-Wl,-rpath,{}", libraries.display()));
    }
    let output = compiler.output().expect("gcc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn printed(output: Output) -> String {
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{error}");
    text.into_owned()
}

fn valgrind() -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    command
}

#[test]
fn the_example_in_c_folds_and_asks() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "examples/c/blocks.c", false);
    let archive = folder.path().join("blocks.fold");
    let text = printed(valgrind().arg(&program).arg(&archive).output().expect("valgrind is installed"));
    let nest = "5200 events\n100 x\n  1\n  50 x\n    2\n  3\n2 3 1 2\n";
    assert!(text.starts_with(nest), "{text}");
    assert!(text.contains("\"count\":99"), "{text}");
}

#[test]
fn the_example_in_cpp_pushes_from_threads() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "examples/c/push.cpp", true);
    let text = printed(Command::new(&program).output().unwrap());
    assert!(text.contains("1,000 ×"), "{text}");
    assert!(text.contains("#600"), "{text}");
}

#[test]
fn a_hundred_threads_read_one_fold_and_bad_arguments_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "crates/loopfold-capi/tests/threads.c", false);
    assert_eq!(printed(Command::new(&program).output().unwrap()), "ok\n");
    assert_eq!(printed(valgrind().arg(&program).output().expect("valgrind is installed")), "ok\n");
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let header = include_str!("../include/libloopfold.h");
    let library = libraries().join("libloopfold_c.so");
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().expect("nm is installed");
    let text = printed(output);
    let exported: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .filter(|name| name.starts_with("loopfold_"))
        .collect();
    assert!(exported.len() > 15, "{exported:?}");
    for name in &exported {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
}

/// The library as `cargo xtask install` lays it out, in a folder whose name needs quotes.
fn installed(prefix: &Path, is_static: bool) {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/libloopfold.h");
    let package = include_str!("../loopfold.pc.in").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(prefix.join("lib/pkgconfig")).expect("the folder can be written");
    std::fs::create_dir_all(prefix.join("include")).expect("the folder can be written");
    std::fs::write(prefix.join("lib/pkgconfig/loopfold.pc"), package).expect("the folder can be written");
    std::fs::copy(header, prefix.join("include/libloopfold.h")).expect("the folder can be written");
    let library = if is_static { "libloopfold_c.a" } else { "libloopfold_c.so" };
    std::os::unix::fs::symlink(libraries().join(library), prefix.join("lib").join(library))
        .expect("the folder can be written");
}

#[test]
fn pkg_config_knows_the_library() {
    for (compiler, source, options, shown) in [
        ("gcc -std=c11", "blocks.c", "", "5200 events"),
        ("gcc -std=c11", "blocks.c", "--static", "5200 events"),
        ("g++ -std=c++17", "push.cpp", "", "1,000 ×"),
        ("g++ -std=c++17", "push.cpp", "--static", "1,000 ×"),
    ] {
        let folder = tempfile::tempdir().expect("the folder can be written");
        let prefix = folder.path().join("installed here");
        installed(&prefix, !options.is_empty());
        let script = format!(
            "eval {compiler} -Wall -Wextra -Werror -pthread '\"$source\"' -o program \
             $(pkg-config --cflags --libs {options} loopfold) && LD_LIBRARY_PATH=\"$prefix/lib\" ./program x.fold"
        );
        let output = Command::new("sh")
            .args(["-ec", &script])
            .current_dir(folder.path())
            .env("prefix", &prefix)
            .env("source", Path::new(ROOT).join("examples/c").join(source))
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
            .output()
            .expect("a shell is installed");
        let text = printed(output);
        assert!(text.contains(shown), "{source} {options}: {text}");
    }
}
