//! Wrong use, other machines, and the choice of functions.

use crate::support::{Workshop, clangs, pass, run};
use std::path::PathBuf;
use std::process::Command;

fn compile(workshop: &Workshop, source: &str, options: &[&str]) -> PathBuf {
    let (path, bitcode) = (workshop.path("source.c"), workshop.path("source.bc"));
    std::fs::write(&path, source).unwrap();
    let mut command = Command::new(clangs().remove(0));
    run(command.args(["-c", "-emit-llvm", "-O1"]).args(options).arg(path).arg("-o").arg(&bitcode));
    bitcode
}

fn described(bitcode: &PathBuf, options: &[&str]) -> Vec<String> {
    let text = run(pass().arg(bitcode).arg("--describe").args(options));
    let functions = text.lines().filter(|line| !line.starts_with(' '));
    functions.map(|line| line.split(' ').next().unwrap().to_string()).collect()
}

#[test]
fn damaged_bitcode_is_an_error_in_a_line() {
    let workshop = Workshop::new();
    let bitcode = compile(&workshop, "int f(int x) { return x ? 1 : 2; }", &[]);
    let bytes = std::fs::read(&bitcode).unwrap();
    let damaged = workshop.path("damaged.bc");
    for content in [&bytes[..bytes.len() / 8 * 4], &b"not bitcode"[..], &[]] {
        std::fs::write(&damaged, content).unwrap();
        let output = pass().arg(&damaged).arg("-o").arg(workshop.path("x.o")).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.starts_with("loopfold-pass: ") && message.trim_end().lines().count() == 1,
            "{message}"
        );
        assert!(message.contains("damaged.bc"), "{message}");
    }
}

#[test]
fn missing_arguments_are_errors() {
    for arguments in [&[][..], &["x.bc"], &["-o", "x"], &["x.bc", "-o", "y", "--unknown"], &["x.bc", "-O"]] {
        assert_eq!(pass().args(arguments).output().unwrap().status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn functions_are_chosen_by_globs() {
    let workshop = Workshop::new();
    let source = "int aa(void){return 1;} int ab(void){return 2;} int bb(void){return 3;} \
                  __attribute__((no_profile_instrument_function)) int never(void){return 4;}";
    let bitcode = compile(&workshop, source, &[]);
    assert_eq!(described(&bitcode, &[]), ["aa", "ab", "bb"]);
    assert_eq!(described(&bitcode, &["--only", "a*"]), ["aa", "ab"]);
    assert_eq!(described(&bitcode, &["--drop", "?b"]), ["aa"]);
    assert_eq!(described(&bitcode, &["--only", "a*", "--only", "bb", "--drop", "aa"]), ["ab", "bb"]);
    let object = workshop.instrument(&bitcode, &["--drop", "*"]);
    let symbols = run(Command::new("nm").arg(object));
    assert!(symbols.contains("aa") && !symbols.contains("loopfold_rt"), "{symbols}");
}

#[test]
fn resolvers_are_not_instrumented() {
    let workshop = Workshop::new();
    let source = "static int one(void){return 1;} static void *choose(void){return one;} \
                  int f(void) __attribute__((ifunc(\"choose\")));";
    assert_eq!(described(&compile(&workshop, source, &[]), &[]), ["one"]);
    // Nor is what they call.
    let source = "static int one(void){return 1;} int deeper(int n){return n > 3 ? n : 3;} \
                  int deep(int n){return deeper(n);} static void *choose(void){return deep(7) > 5 ? one : 0;} \
                  int f(void) __attribute__((ifunc(\"choose\"))); int g(void){return f();}";
    assert_eq!(described(&compile(&workshop, source, &["-O0"]), &[]), ["g", "one"]);
}

#[test]
fn code_for_another_machine() {
    let workshop = Workshop::new();
    let source = "int g(int); int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += g(i); return s; }";
    let bitcode = compile(&workshop, source, &["--target=aarch64-linux-gnu", "-ffreestanding"]);
    let object = workshop.instrument(&bitcode, &[]);
    // The number of the machine in the header of an object: AArch64.
    assert_eq!(std::fs::read(object).unwrap()[18], 183);
    let bitcode = compile(&workshop, source, &["--target=riscv64-linux-gnu", "-ffreestanding"]);
    let output = pass().arg(bitcode).arg("-o").arg(workshop.path("x.o")).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("riscv64 is not supported"));
}

#[test]
fn sections_and_bitcode() {
    let workshop = Workshop::new();
    let bitcode = compile(&workshop, "int first(void){return 1;} int second(void){return 2;}", &[]);
    let object = workshop.instrument(&bitcode, &["--function-sections"]);
    let sections = run(Command::new("objdump").arg("-h").arg(object));
    assert!(sections.contains(".text.first") && sections.contains(".text.second"), "{sections}");
    assert!(sections.contains(".init_array.0"), "{sections}");
    let again = workshop.instrument(&bitcode, &["--emit-bitcode"]);
    assert!(std::fs::read(again).unwrap().starts_with(b"BC"));
}

#[test]
fn code_is_as_position_independent_as_its_module() {
    let workshop = Workshop::new();
    let source = "int x; int f(int n) { return n ? x++ : x; }";
    for (option, expected) in [("-fPIC", true), ("-fno-pic", false)] {
        let object = workshop.instrument(&compile(&workshop, source, &[option]), &[]);
        let relocations = run(Command::new("objdump").arg("-r").arg(object));
        assert_eq!(relocations.contains("GOTPCREL") && relocations.contains(" x"), expected, "{relocations}");
    }
}

#[test]
fn functions_that_clang_adds_are_left_out() {
    let workshop = Workshop::new();
    let source = "int own(int x) { return x + 1; } int other(int x) { return own(x) * 2; } \
                  const char *__asan_default_options(void) { return \"\"; }";
    for option in [
        "-fsanitize=address",
        "-fsanitize=thread",
        "-fsanitize=memory",
        "-fsanitize=hwaddress",
        "-fsanitize=undefined",
        "-fmemory-profile",
        "--coverage",
        "-fprofile-instr-generate",
        "-fsanitize-coverage=trace-pc-guard",
        "-fsanitize-coverage=inline-8bit-counters,pc-table",
    ] {
        let bitcode = compile(&workshop, source, &[option]);
        assert_eq!(described(&bitcode, &[]), ["own", "other"], "{option}");
    }
}

#[test]
fn types_of_functions_are_no_addresses_in_the_code() {
    let workshop = Workshop::new();
    let source = "int one(int x) { return x; } int (*volatile called)(int) = one; \
                  int two(int x) { return called(x); }";
    for level in ["-O0", "-O2"] {
        let bitcode = compile(&workshop, source, &["-xc++", "-fPIC", "-fsanitize=undefined", level]);
        let object = workshop.instrument(&bitcode, &[]);
        let relocations = run(Command::new("objdump").args(["--reloc", "--section=.text"]).arg(object));
        assert!(relocations.contains("loopfold_rt_cursor"), "{relocations}");
        assert!(!relocations.contains("_64 ") && !relocations.contains("_ABS64"), "{relocations}");
    }
}
