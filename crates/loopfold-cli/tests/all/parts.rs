//! `fold --part` and `merge`: the parts of a trace become its archive, byte for byte.

use crate::support::{Folder, run};

/// A file for each of five ranks, of different lengths.
fn files(folder: &Folder) -> Vec<String> {
    let file = |rank: usize| {
        let step = format!("MPI_Send dest={} tag=1 bytes=8 comm=0\nMPI_Barrier comm=0\n", (rank + 1) % 5);
        folder.file(&format!("rank-{rank}.txt"), "MPI_Init\n".to_string() + &step.repeat(10 + 7 * rank))
    };
    (0..5).map(file).collect()
}

fn fold(inputs: &[String], output: &str, more: &[&str]) {
    let mut arguments = vec!["fold", "-o", output];
    arguments.extend(inputs.iter().map(String::as_str));
    arguments.extend(more);
    run(&arguments).ok();
}

#[test]
fn merged_parts_are_the_archive_of_the_whole() {
    let folder = Folder::new();
    let inputs = files(&folder);
    for more in [&[][..], &["--folder", "outermost"], &["--folder", "sequitur-runs"]] {
        let whole = folder.file("whole.fold", "");
        fold(&inputs, &whole, more);
        for count in [1, 3, 7] {
            let parts: Vec<String> =
                (1..=count).map(|part| folder.file(&format!("{part}.fold"), "")).collect();
            for (number, part) in parts.iter().enumerate() {
                let which = format!("{}/{count}", number + 1);
                fold(&inputs, part, &[more, &["--part", &which]].concat());
            }
            let merged = folder.file("merged.fold", "");
            let mut arguments = vec!["merge", "-o", &merged];
            // In any order.
            arguments.extend(parts.iter().rev().map(String::as_str));
            run(&arguments).ok();
            assert!(std::fs::read(&merged).unwrap() == std::fs::read(&whole).unwrap(), "{more:?} {count}");
        }
    }
}

#[test]
fn parts_that_do_not_fit_are_errors() {
    let folder = Folder::new();
    let inputs = files(&folder);
    let [one, two, whole] = ["1.fold", "2.fold", "whole.fold"].map(|name| folder.file(name, ""));
    fold(&inputs, &one, &["--part", "1/2"]);
    fold(&inputs, &two, &["--part", "2/2"]);
    fold(&inputs, &whole, &[]);
    let out = folder.file("out.fold", "");
    for (given, why) in [
        (&[&one][..], "there is 1 archive, but the trace was folded in 2 parts"),
        (&[&one, &one], "part 1 is there twice"),
        (&[&one, &two, &whole], "only some inputs are parts"),
    ] {
        let mut arguments = vec!["merge", "-o", &out];
        arguments.extend(given.iter().map(|name| name.as_str()));
        let failed = run(&arguments);
        assert!(failed.err.contains(why), "{}", failed.err);
    }
    for (options, why) in [
        (&["--part", "3/2"][..], "a part is written as 2/8"),
        (&["--part", "1/2", "--folder", "repair"], "needs the events of all streams"),
        (&["--part", "1/2", "--stream", "0"], "when all parts are merged"),
        (&["--part", "1/2", "--peers", "relative"], "need all streams"),
        (&["--part", "1/2", "--times", "summary"], "sums over all streams"),
    ] {
        let mut arguments = vec!["fold", "-o", &out];
        arguments.extend(inputs.iter().map(String::as_str));
        arguments.extend(options);
        let failed = run(&arguments);
        assert!(failed.err.contains(why), "{options:?}: {}", failed.err);
    }
    let failed = run(&["fold", "-o", &out, "--part", "1/2", &whole]);
    assert!(failed.err.contains("is folded already"), "{}", failed.err);
}
