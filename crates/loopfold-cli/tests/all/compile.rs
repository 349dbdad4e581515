//! `cc`, `c++` and `cargo` in place of compilers and cargo.

use crate::support::binary;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The compiler pass, which `cargo test` of this crate does not build.
pub(crate) fn pass() -> &'static Path {
    static PASS: OnceLock<PathBuf> = OnceLock::new();
    PASS.get_or_init(|| {
        let target = Path::new(binary()).parent().unwrap().parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "loopfold-pass", "--target-dir"]).arg(target);
        let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target.join("debug/loopfold-pass")
    })
}

/// A folder with sources.
struct Workshop(tempfile::TempDir);

impl Workshop {
    fn new(files: &[(&str, &str)]) -> Self {
        let workshop = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = workshop.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).env("LOOPFOLD_PASS", pass()).env_remove("LOOPFOLD_CLANG");
        command
    }

    fn output(&self, line: &str) -> Output {
        let mut words = line.split_whitespace().map(|word| if word == "loopfold" { binary() } else { word });
        let program = match words.next().unwrap() {
            own if own.starts_with("./") => self.path(own),
            other => other.into(),
        };
        self.command(program).args(words).output().unwrap()
    }

    /// Runs a command that succeeds, and returns what it printed.
    #[track_caller]
    fn run(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether functions of an object or a program are instrumented.
    #[track_caller]
    fn is_instrumented(&self, name: &str) -> bool {
        self.run(&format!("nm {name}")).contains("loopfold_rt_slow")
    }
}

const MAIN: &str = "#include <stdio.h>\n#include \"half.h\"\n\
    int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += i & 1 ? half(i) : i; printf(\"%d\\n\", s); return 0; }\n";
const HALF: &str = "#include \"half.h\"\nint half(int x) { return x > 4 ? x / 2 : 1; }\n";
const FILES: &[(&str, &str)] = &[("main.c", MAIN), ("half.c", HALF), ("half.h", "int half(int);\n")];
const PRINTED: &str = "27\n";

#[test]
fn programs_are_compiled_and_linked() {
    let workshop = Workshop::new(FILES);
    workshop.run("loopfold cc -O2 main.c half.c -o program");
    assert_eq!(workshop.run("./program"), PRINTED);
    workshop.run("loopfold cc -c main.c half.c");
    assert!(workshop.is_instrumented("main.o") && workshop.is_instrumented("half.o"));
    workshop.run("loopfold cc main.o half.o");
    assert_eq!(workshop.run("./a.out"), PRINTED);
    workshop.run("loopfold cc -flto -O3 -static main.c half.o -o static");
    assert_eq!(workshop.run("./static"), PRINTED);
    workshop.run("loopfold record --output run.fold ./program");
    assert!(workshop.run("loopfold cat run.fold").contains("enter half"));
}

#[test]
fn functions_are_chosen() {
    let workshop = Workshop::new(FILES);
    for (options, instrumented) in
        [("--drop half", false), ("--only=h*", true), ("--only main --blocks", false)]
    {
        workshop.run(&format!("loopfold cc {options} -c half.c"));
        assert_eq!(workshop.is_instrumented("half.o"), instrumented, "{options}");
    }
}

#[test]
fn libraries_and_cpp() {
    let source = "#include <stdexcept>\n#include <iostream>\nextern \"C\" int half(int);\n\
        int main() { try { if (half(9) == 4) throw std::runtime_error(\"four\"); } \
        catch (std::exception &e) { std::cout << e.what() << std::endl; } }\n";
    let workshop = Workshop::new(&[FILES, &[("main.cpp", source)]].concat());
    workshop.run("loopfold cc -O1 -fPIC -shared half.c -o libhalf.so");
    workshop.run("loopfold c++ main.cpp -L. -lhalf -Wl,-rpath,. -o program");
    assert_eq!(workshop.run("./program"), "four\n");
    // The library uses the run-time library of the program.
    assert!(workshop.run("nm -D program").contains("T loopfold_rt_register"));
}

#[test]
fn functions_that_run_while_the_program_is_loaded_are_left_out() {
    let source = "#include <stdio.h>\nstatic int one(void) { return 1; }\n\
        static int deep(int x) { return x * 2; }\n\
        static int (*choose(void))(void) { volatile int x = 3; return deep(x) > 5 ? one : 0; }\n\
        int chosen(void) __attribute__((ifunc(\"choose\")));\n\
        int main(void) { printf(\"%d\\n\", chosen()); return 0; }\n";
    let workshop = Workshop::new(&[("main.c", source)]);
    for options in ["-O0", "-O2", "-O0 -static", "-O0 -no-pie -Wl,-z,now"] {
        workshop.run(&format!("loopfold cc {options} main.c -o program"));
        assert_eq!(workshop.run("./program"), "1\n", "{options}");
        assert_eq!(workshop.run("loopfold record --output run.fold ./program"), "1\n", "{options}");
        let events = workshop.run("loopfold cat run.fold");
        assert!(events.contains("enter one") && !events.contains("choose") && !events.contains("deep"));
    }
}

#[test]
fn dependency_files_name_the_object() {
    let workshop = Workshop::new(FILES);
    std::fs::create_dir(workshop.path("out")).unwrap();
    workshop.run("loopfold cc -MMD -c main.c -o out/main.o");
    assert!(workshop.text("out/main.d").starts_with("out/main.o: main.c half.h"));
    workshop.run("loopfold cc -MD -MP -MF x.d -MT x -c main.c");
    assert!(workshop.text("x.d").starts_with("x: main.c"));
    workshop.run("loopfold cc -Wp,-MMD,y.d -c half.c -o y.o");
    assert!(workshop.text("y.d").starts_with("y.o: half.c"));
}

#[test]
fn inputs_of_all_kinds() {
    let assembler = ".globl half\nhalf: mov $1, %eax\nret\n.section .note.GNU-stack,\"\",@progbits\n";
    let files = [("half.s", assembler), ("half.txt", HALF), ("words", "-O1 'main.c' -o\n\"program\"")];
    let workshop = Workshop::new(&[FILES, &files].concat());
    if cfg!(target_arch = "x86_64") {
        workshop.run("loopfold cc @words half.s");
        assert_eq!(workshop.run("./program"), "24\n");
    }
    workshop.run("loopfold cc @words -x c half.txt");
    assert_eq!(workshop.run("./program"), PRINTED);
    let input = std::process::Stdio::from(std::fs::File::open(workshop.path("half.c")).unwrap());
    let mut command = workshop.command(binary());
    assert!(command.args(["cc", "-xc", "-", "-c", "-o", "in.o"]).stdin(input).status().unwrap().success());
    assert!(workshop.is_instrumented("in.o"));
}

#[test]
fn what_makes_no_object_is_left_to_clang() {
    let workshop = Workshop::new(FILES);
    let preprocessed = workshop.run("loopfold cc -E main.c");
    assert!(preprocessed.contains("int half(int);"));
    assert!(workshop.run("loopfold cc -M main.c").contains("main.o: main.c"));
    workshop.run("loopfold cc -S half.c");
    assert!(!workshop.text("half.s").contains("loopfold"));
    assert!(workshop.run("loopfold cc --version").contains("clang"));
    assert!(workshop.run("loopfold c++ -dumpmachine").contains('-'));
    workshop.run("loopfold cc -fsyntax-only half.c");
    workshop.run("loopfold cc -c half.h -o half.pch");
    let missing = workshop.output("loopfold cc missing.c");
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("missing.c"));
    let wrong =
        Workshop::new(&[("wrong.c", "int f(void) { return; }")]).output("loopfold cc -Werror -c wrong.c");
    assert!(!wrong.status.success());
}

#[test]
fn make_and_other_names() {
    let rules = "program: main.o half.o\n\t$(CC) $^ -o $@\n%.o: %.c\n\t$(CC) $(CFLAGS) -c $< -o $@\n";
    let workshop = Workshop::new(&[FILES, &[("Makefile", rules)]].concat());
    let link = workshop.path("loopfold-cc");
    std::os::unix::fs::symlink(binary(), &link).unwrap();
    for compiler in [format!("{} cc", binary()), link.display().to_string()] {
        let mut make = workshop.command("make");
        let output = make.args(["-B", &format!("CC={compiler}"), "CFLAGS=-O2"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(workshop.run("./program"), PRINTED);
        assert!(workshop.is_instrumented("half.o"));
    }
}

#[test]
fn what_is_missing_is_named_in_a_line() {
    let workshop = Workshop::new(FILES);
    let error = |name: &str, value: &Path| {
        let output =
            workshop.command(binary()).args(["cc", "-c", "half.c"]).env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        message
    };
    let nowhere = workshop.path("nowhere");
    assert!(error("PATH", &nowhere).contains("install the package clang-16"));
    assert!(error("LOOPFOLD_CLANG", &nowhere).contains("LOOPFOLD_CLANG"));
    assert!(error("LOOPFOLD_PASS", &nowhere).contains("LOOPFOLD_PASS"));
    // A copy has no pass beside it.
    let copy = workshop.path("copy");
    std::fs::copy(binary(), &copy).unwrap();
    let output =
        workshop.command(copy).args(["cc", "-c", "half.c"]).env_remove("LOOPFOLD_PASS").output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("`cargo xtask build`"));
}

#[test]
fn cargo_builds_rust_programs() {
    let manifest = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                    [dependencies]\npart = { path = \"part\" }\n[workspace]\nmembers = [\"part\"]\n";
    let main = "fn main() {\n    let sum: u32 = (0..9).map(part::half).sum();\n    \
                let caught = std::panic::catch_unwind(|| part::half(100));\n    \
                println!(\"{sum} {}\", caught.is_err());\n}\n";
    let part = "#[inline(never)]\npub fn half(x: u32) -> u32 {\n    if x > 99 { std::panic::resume_unwind(Box::new(1)) }\n    \
                if x > 4 { x / 2 } else { 1 }\n}\n";
    let workshop = Workshop::new(&[
        ("Cargo.toml", manifest),
        ("src/main.rs", main),
        ("build.rs", "fn main() { println!(\"cargo::rustc-env=BUILT=1\"); }\n"),
        ("part/Cargo.toml", "[package]\nname = \"part\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("part/src/lib.rs", part),
    ]);
    workshop.run("loopfold cargo build --release --offline --target-dir out");
    let program = std::fs::read_dir(workshop.path("out")).unwrap().find_map(|entry| {
        let program = entry.unwrap().path().join("release/app");
        (program.is_file() && !program.starts_with(workshop.path("out/release"))).then_some(program)
    });
    let program = program.unwrap().display().to_string();
    assert_eq!(workshop.run(&program), "17 true\n");
    workshop.run(&format!("loopfold record --output run.fold {program}"));
    let events = workshop.run("loopfold cat run.fold");
    assert!(events.contains("enter part::half") && events.contains("lib.rs:3#"), "{events}");
    workshop.run("loopfold cargo --only part::* build --release --offline --target-dir out");
    workshop.run(&format!("loopfold record --output only.fold {program}"));
    let events = workshop.run("loopfold cat only.fold");
    assert!(events.contains("enter part::half") && !events.contains("enter app::main"), "{events}");
}
