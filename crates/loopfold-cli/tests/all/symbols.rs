//! Names for addresses: `--symbols`.

use crate::support::{Folder, run};
use loopfold_testing::elf::program;

const FUNCTIONS: [(&str, u64, u64); 3] =
    [("main", 0x1000, 0x40), ("_ZN3net6acceptEi", 0x1048, 0x20), ("f", 0x10b0, 0x10)];

#[test]
fn addresses_have_the_names_of_functions() {
    let folder = Folder::new();
    let binary = folder.file("server", program(0x1000, 0x200, &FUNCTIONS));
    // Loaded elsewhere than it was linked for.
    let at = |address: u64| 0x5555_5555_4000 + address;
    let call = |address: u64| format!("E{:#x}\nX{:#x}\n", at(address), at(address));
    let log = format!("E{:#x}\n{}X{:#x}\n", at(0x1000), (call(0x1048) + &call(0x10b0)).repeat(5), at(0x1000));
    let trace = folder.file("calls.log", log);
    let archive = folder.at("t.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    for input in [&trace, &archive] {
        let count =
            run(&["find", input, "main: net::accept* f", "--count", "--symbols", &binary]).ok().text();
        assert_eq!(count, "5\n");
        let text =
            run(&["cat", input, "--symbols", &binary, "--only", "*net::accept*", "--to", "1"]).ok().text();
        // In the form of the log.
        assert_eq!(text, "Enet::accept(int)\n");
    }
    let named = folder.at("named.fold");
    run(&["fold", &trace, "--symbols", &binary, "-o", &named]).ok();
    assert_eq!(run(&["find", &named, "main: f", "--count"]).ok().text(), "5\n");
}

#[test]
fn instructions_keep_their_offsets() {
    let folder = Folder::new();
    let binary = folder.file("program", program(0x1000, 0x200, &FUNCTIONS));
    let blocks =
        "==1== Lackey, an example Valgrind tool\nSB 00001000\nSB 00001048\nSB 0000104c\nSB 00001090\n";
    let trace = folder.file("lackey.txt", blocks);
    let text = run(&["cat", &trace, "--format", "lackey", "--symbols", &binary]).ok().text();
    assert_eq!(text, "main\nnet::accept(int)\nnet::accept(int)+0x4\n4240\n");
}

#[test]
fn a_program_that_does_not_fit_is_an_error() {
    let folder = Folder::new();
    let trace = folder.file("calls.log", "E0x1003\nE0x1051\nX0x1051\nX0x1003\n");
    let other = folder.file("other", program(0x1000, 0x200, &FUNCTIONS));
    run(&["loops", &trace, "--symbols", &other]).fails_with(&[
        "--symbols",
        "other",
        "it is of another build",
    ]);
    let far = folder.file("far", program(0x90_0000, 0x20, &[("g", 0x90_0001, 4)]));
    run(&["loops", &trace, "--symbols", &far]).fails_with(&["no address of the trace lies in it"]);
    let text = folder.file("text", "hello");
    run(&["loops", &trace, "--symbols", &text]).fails_with(&["text", "no program"]);
    let empty = folder.file("empty", program(0x1000, 0x20, &[]));
    run(&["loops", &trace, "--symbols", &empty]).fails_with(&["no symbols and no debug information"]);
    run(&["loops", &trace, "--symbols", &folder.at("absent")]).fails_with(&["absent"]);
    let lines = folder.file("lines.txt", "a\nb\n");
    run(&["loops", &lines, "--symbols", &other]).fails_with(&["--symbols is for traces of addresses"]);
}
