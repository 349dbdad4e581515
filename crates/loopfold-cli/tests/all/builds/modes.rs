//! What programs do besides calling functions, as compilers and linkers make them: sanitizers, optimised
//! code, programs without shared libraries; threads, copies, signals, jumps, libraries that are opened.

use super::{Calls, Project};

const SOURCES: &[(&str, &str)] =
    &[("modes.c", include_str!("modes.c")), ("opened.c", include_str!("opened.c"))];

/// Without shared libraries nothing is opened.
const MODES: [&str; 6] = ["once", "threads", "forks 20", "becomes", "signals", "jumps"];

/// Builds the program with these options, and compares what is recorded with what it counts.
#[track_caller]
fn check(project: &Project, options: &str) {
    project.run(&format!("loopfold-cc -w {options} modes.c shapes.c -o modes -pthread -ldl"));
    for mode in MODES {
        let calls = project.check(&format!("./modes {mode}"));
        check_calls(&calls, mode, options);
    }
}

/// Some of the counts by the source, as both ends could have the same error.
#[track_caller]
fn check_calls(calls: &Calls, mode: &str, options: &str) {
    let expected: &[(&str, u64)] = match mode {
        "once" => &[("main", 1), ("work", 1)],
        "threads" => &[("main", 1), ("thread", 8), ("work", 8)],
        "forks 20" => &[("main", 21), ("forks", 21), ("work", 20)],
        "becomes" => &[("main", 4), ("becomes", 1), ("work", 3)],
        "jumps" => &[("main", 1), ("jumps", 1)],
        _ => &[("main", 1), ("signals", 1)],
    };
    for &(function, count) in expected {
        assert_eq!(calls[function], count, "{function}: {mode}: {options}");
    }
    assert!(mode != "jumps" || calls["dive"] > 200);
    assert!(mode != "signals" || calls["handler"] >= 140);
}

#[test]
fn optimised_programs_are_recorded_whole() {
    let project = Project::new(SOURCES);
    ["-O0", "-O3", "-O2 -flto", "-O3 -flto -static"].into_iter().for_each(|options| check(&project, options));
}

#[test]
fn programs_with_sanitizers_of_memory_and_leaks_are_recorded_whole() {
    let project = Project::new(SOURCES);
    for options in ["-fsanitize=memory", "-O2 -fsanitize=memory", "-fsanitize=leak"] {
        check(&project, options);
    }
}

#[test]
fn libraries_that_are_opened_are_recorded_whole() {
    let project = Project::new(SOURCES);
    for options in ["-O0", "-O3 -flto", "-fsanitize=memory"] {
        project.run(&format!("loopfold-cc -w {options} modes.c shapes.c -o modes -pthread -ldl"));
        project.run(&format!("loopfold-cc -w {options} -shared -fPIC opened.c -o opened.so"));
        let calls = project.check("./modes opens ./opened.so");
        assert_eq!((calls["measure"], calls["third"], calls["opens"]), (100, 75, 1), "{options}");
    }
}

#[test]
fn many_copies_are_recorded_whole() {
    let project = Project::new(SOURCES);
    project.run("loopfold-cc -O1 modes.c shapes.c -o modes -pthread -ldl");
    let calls = project.check("./modes forks 300");
    assert_eq!((calls["main"], calls["work"]), (301, 300));
    assert!(project.run("loopfold verify run.fold").contains(" of "));
}
