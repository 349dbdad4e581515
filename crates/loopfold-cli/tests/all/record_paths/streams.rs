//! Which streams there are, and what is in them: threads, processes, libraries, the spool, cycles.

use super::{
    Recording, check_nesting, emitters, enter, leave, path, programs, record, record_command, record_with,
    work,
};
use loopfold_testing::Rng;
use std::process::Command;

#[test]
fn threads_come_and_go() {
    for options in [&[][..], &["--spool"]] {
        // More threads than lanes, one after the other.
        let recorded = record_with(options, &["threads", "75", "20"]);
        assert!(recorded.output.status.success(), "{}", recorded.errors());
        let mut streams = recorded.streams();
        let main = streams.remove("main").unwrap();
        assert_eq!(main.len(), 77);
        assert_eq!(streams.len(), 1500);
        // Each thread works, and once more when it ends: in the same stream.
        let mut found: Vec<Vec<String>> = streams.into_values().collect();
        found.sort_by_key(Vec::len);
        for (place, events) in (1..).zip(found) {
            assert!(events == [work(place), work(place)].concat(), "{place}: {} events", events.len());
        }
    }
}

#[test]
fn children_begin_with_the_frames_of_their_parents() {
    for options in [&[][..], &["--spool"], &["--cycles"]] {
        let recorded = record_with(options, &["processes"]);
        let streams = recorded.streams();
        let main = ["main", "process 2 main", "process 3 main", "process 4 main", "process 5 main"];
        assert_eq!(streams.keys().map(String::as_str).collect::<Vec<_>>(), main, "{}", recorded.errors());
        let begin = [enter("main"), enter("deep")];
        let inner = |number| path(3, "deep", number);
        let first = [&begin[..], &work(4), &[leave("deep"), path(0, "main", 1), leave("main")]].concat();
        assert_eq!(streams["process 2 main"], first);
        assert_eq!(streams["process 3 main"], [&begin[..], &[inner(2)]].concat());
        assert_eq!(streams["process 4 main"], [&begin[..], &[inner(0)]].concat());
        // The third child becomes the program again.
        assert_eq!(streams["process 5 main"], work(2));
        let whole =
            [enter("main"), path(0, "main", 0), enter("deep"), inner(1), leave("deep"), leave("main")];
        assert_eq!(streams["main"], whole);
    }
}

#[test]
fn many_processes_are_followed_at_once() {
    // A thread for each of them and each of their lanes did not get to the end.
    let recorded = record(&["storm", "1600"]);
    assert!(recorded.output.status.success(), "{}", recorded.errors());
    let mut streams = recorded.streams();
    assert_eq!(streams.remove("main").unwrap(), [enter("main"), leave("main")]);
    assert_eq!(streams.len(), 1600);
    let child = [&[enter("main")][..], &work(2)].concat();
    assert!(streams.values().all(|events| *events == child));
}

#[test]
fn a_process_that_outlives_the_program_is_waited_for() {
    let recorded = record(&["left behind"]);
    assert_eq!(recorded.streams()["process 2 main"], work(7));
}

#[test]
fn libraries_that_are_loaded_later_are_recorded() {
    let plugin = programs().join("plugin.so");
    let streams = record(&["load", plugin.to_str().unwrap()]).streams();
    let handler = "n::handler(int)";
    let expected = [
        enter("main"),
        path(0, "main", 0),
        enter(handler),
        path(2, handler, 3),
        leave(handler),
        path(0, "main", 1),
        leave("main"),
    ];
    assert_eq!(streams["main"], expected);
}

#[test]
fn a_static_program_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let output = record_command(&folder, &[], &programs().join("static"), &["processes"]).output().unwrap();
    let recorded = Recording { folder, output };
    assert_eq!(recorded.streams().len(), 5);
    assert_eq!(recorded.streams()["process 5 main"], work(2));
}

#[test]
fn programs_do_not_notice() {
    // errno, the lowest free file, and cancelled threads.
    for (arguments, code) in [(&["errno"][..], 0), (&["first file"], 3), (&["cancelled"], 0)] {
        let mut alone = emitters(arguments);
        alone.stdin(std::process::Stdio::null());
        assert_eq!(alone.output().unwrap().status.code(), Some(code), "{arguments:?}");
        let folder = tempfile::tempdir().unwrap();
        let mut command = record_command(&folder, &[], &programs().join("emitters"), arguments);
        command.stdin(std::process::Stdio::null());
        assert_eq!(command.output().unwrap().status.code(), Some(code), "{arguments:?}");
    }
}

/// What `wander` in the source emits: the same tree of calls.
fn wander(mut seed: u32, steps: u64) -> Vec<String> {
    let functions = ["main", "work", "n::handler(int)", "deep"];
    let (mut open, mut events) = (vec![0], vec![enter("main")]);
    for _ in 0..steps {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let choice = seed >> 24;
        let inner = open[open.len() - 1];
        if choice < 20 && open.len() < 50 {
            open.push(choice as usize % 4);
            events.push(enter(functions[choice as usize % 4]));
        } else if choice < 40 && open.len() > 1 {
            open.pop();
            events.push(leave(functions[inner]));
        } else {
            events.push(path(inner as u32, functions[inner], choice % 5));
        }
    }
    events.extend(open.iter().rev().map(|&function| leave(functions[function])));
    events
}

#[test]
fn every_token_is_an_event_however_it_is_recorded() {
    // More than a lane holds.
    let expected = [("main".to_string(), wander(3, 400_000)), ("thread 1".to_string(), wander(7, 400_000))];
    for options in [&[][..], &["--spool"], &["--cycles"], &["--spool", "--cycles"]] {
        let recorded = record_with(options, &["wander", "5", "400000"]);
        assert_eq!(recorded.output.status.code(), Some(5), "{}", recorded.errors());
        assert!(recorded.streams().into_iter().eq(expected.iter().cloned()), "{options:?}");
        check_nesting("main", &recorded.streams()["main"], false);
        assert!(!recorded.folder.path().join("run.fold.spool").exists());
        let verified =
            Command::new(super::loopfold()).arg("verify").arg(recorded.archive()).output().unwrap();
        assert!(verified.status.success());
    }
}

#[test]
fn sums_are_exact() {
    let recorded = record_with(&["--cycles"], &["wander"]);
    let fold = recorded.fold();
    let sums = fold.event_sums().unwrap();
    let (instructions, cycles) = (sums.metric("instructions").unwrap(), sums.metric("cycles").unwrap());
    let counts = loopfold::fold::symbol_counts(&fold).unwrap();
    for symbol in fold.alphabet().symbols() {
        let (label, index) = (fold.alphabet().label(symbol), symbol.index());
        assert_eq!(cycles[index].known, counts[index], "{label}");
        // Blocks 0 to 4 have 1 to 5 instructions.
        let mean = match label.split_once('#').and_then(|(_, rest)| rest.split(' ').next()) {
            None => Some(0.0),
            Some("0") => Some(1.0 + 2.0 + 3.0 + 4.0),
            Some("1") => Some(1.0 + 2.0 + 3.0 + 4.0 + 5.0),
            Some("2") => Some(1.0 + 2.0 + 4.0),
            Some("3") => Some(1.0 + 2.0 + 4.0 + 5.0),
            Some("4") => Some(2.0 + 3.0 + 4.0),
            Some(other) => panic!("path {other}"),
        };
        assert_eq!(instructions[index].mean(), mean, "{label}");
        assert_eq!(instructions[index].known, counts[index]);
    }
    assert!(fold.rule_sums().unwrap().metric("cycles").is_some());
}

#[test]
fn counters_of_the_kernel_are_summed() {
    let recorded = record_with(&["--counter", "page-faults"], &["pages", "1000"]);
    let fold = recorded.fold();
    assert_eq!(recorded.streams()["main"].len(), 5, "{}", recorded.errors());
    let sums = fold.event_sums().unwrap();
    let Some(faults) = sums.metric("page-faults") else {
        // Where the kernel gives no access.
        assert!(
            recorded.errors().contains("the counter page-faults is not recorded"),
            "{}",
            recorded.errors()
        );
        return;
    };
    for symbol in fold.alphabet().symbols() {
        let (label, total) = (fold.alphabet().label(symbol), faults[symbol.index()].total);
        let expected = if label.contains("#1") { 1000.0..=1010.0 } else { 0.0..=20.0 };
        assert!(expected.contains(&total), "{label}: {total}");
    }
    assert!(fold.rule_sums().unwrap().metric("page-faults").is_some());
}

#[test]
fn a_counter_that_is_not_there_is_one_line() {
    let recorded = record_with(&["--counter", "instructions"], &["wander"]);
    let has_counter = recorded.fold().event_sums().unwrap().metric("instructions:u").is_some();
    let said = recorded.errors();
    let line = "the counter instructions is not recorded: this machine";
    assert!(has_counter && said.is_empty() || said.contains(line) && said.lines().count() == 1, "{said}");
    assert_eq!(recorded.streams(), record(&["wander"]).streams());
    let recorded = record_with(&["--counter", "sheep"], &["wander"]);
    assert!(recorded.errors().contains("there is no counter sheep; there are cpu-cycles"));
    assert_eq!(recorded.output.status.code(), Some(2));
}

#[test]
fn paths_are_shown_as_blocks_also_of_merged_archives_and_of_parts() {
    let recorded = record(&["processes"]);
    let archive = recorded.archive();
    let both = recorded.folder.path().join("both.fold");
    let run = |arguments: &[&str]| {
        let output = Command::new(super::loopfold()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (archive, both) = (archive.to_str().unwrap(), both.to_str().unwrap());
    run(&["merge", archive, archive, "-o", both]);
    let blocks: Vec<String> = ["20.0", "21.1", "22.2", "23.3"]
        .iter()
        .map(|block| format!("by_hand.c:{block} function=work\n"))
        .collect();
    let expected = format!("enter work\n{}", blocks.concat());
    for input in [archive, both] {
        let shown = run(&["cat", "--blocks", input, "--stream", "process 5 main", "--to", "2"]);
        assert!(shown.starts_with(&expected), "{shown}");
    }
}

#[test]
fn a_spool_of_any_length_is_read() {
    // As a recorder that is killed leaves it: cut anywhere.
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("run.fold");
    let spool = archive.with_extension("fold.spool");
    let mut command = record_command(&folder, &["--spool"], &programs().join("emitters"), &["wander"]);
    // The archive cannot be written, so the spool stays.
    std::fs::create_dir(folder.path().join("kept")).unwrap();
    let limited = format!(
        "trap '' XFSZ; ulimit -f 100000; \"$@\" & program=$!; while ! cp {0} {1} 2>/dev/null || ! [ -s {1} ]; do :; done; wait $program; true",
        spool.display(),
        folder.path().join("kept/early").display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &limited, "sh"]).arg(command.get_program()).args(command.get_args());
    assert!(shell.output().unwrap().status.success());
    command.output().unwrap();
    let whole = super::streams_of(&{
        let file = std::fs::File::open(&archive).unwrap();
        loopfold::archive::read(std::io::BufReader::new(file), &Default::default()).unwrap().0
    });
    let mut rng = Rng::new(9);
    let early = std::fs::read(folder.path().join("kept/early")).unwrap();
    for _ in 0..20 {
        let cut = folder.path().join("cut.spool");
        let length = rng.below(early.len() + 1);
        std::fs::write(&cut, &early[..length.max(8)]).unwrap();
        let read = loopfold_record::read_spool(&cut).unwrap();
        for (name, events) in super::streams_of(&read.recorded.fold) {
            assert!(whole[&name].starts_with(&events), "{name}");
        }
    }
}
