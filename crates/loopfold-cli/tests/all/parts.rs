//! `fold --part` and `merge`: the parts of a trace become its archive, byte for byte.

use crate::mpi::otf2_archive;
use crate::support::{Folder, Run, run};
use loopfold::archive::{self, ReadConfig};
use loopfold::fold::FoldedStream;
use std::path::Path;
use std::process::Command;

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

/// The archives of all parts of the inputs, called `NAME` and the number of the part.
/// A pipe is read once: what it is was found out from its beginning, which a part then lacked.
#[test]
#[cfg(unix)]
fn a_part_of_a_pipe_is_refused() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    run(&["fold", &pipe, "--part", "1/1", "-o", &folder.at("p.fold")]).fails_with(&["pipe", "name a file"]);
}

fn parts_of(folder: &Folder, name: &str, inputs: &[String], count: usize, more: &[&str]) -> Vec<String> {
    let part = |number: usize| {
        let archive = folder.at(&format!("{name}{number}.fold"));
        fold(inputs, &archive, &[more, &["--part", &format!("{number}/{count}")]].concat());
        archive
    };
    (1..=count).map(part).collect()
}

fn merge(parts: &[&String], output: &str) -> Run {
    let mut arguments = vec!["merge", "-o", output];
    arguments.extend(parts.iter().map(|part| part.as_str()));
    run(&arguments)
}

/// The same files under the same names in another folder.
fn copied(inputs: &[String], to: &str) -> Vec<String> {
    std::fs::create_dir(to).unwrap();
    let copy = |input: &String| {
        let copy = format!("{to}/{}", Path::new(input).file_name().unwrap().to_str().unwrap());
        std::fs::copy(input, &copy).unwrap();
        copy
    };
    inputs.iter().map(copy).collect()
}

#[test]
fn a_part_of_another_trace_is_refused_by_its_name() {
    let folder = Folder::new();
    let inputs = files(&folder);
    let others = copied(&inputs, &folder.at("other"));
    // Of the same lengths.
    std::fs::write(&others[3], std::fs::read_to_string(&inputs[3]).unwrap().replace("bytes=8", "bytes=9"))
        .unwrap();
    let p = parts_of(&folder, "p", &inputs, 3, &[]);
    let q = parts_of(&folder, "q", &others, 3, &[]);
    let out = folder.at("out.fold");
    for (given, odd, why) in [
        ([&p[0], &q[1], &p[2]], &q[1], "part 2 of 3 of another trace than"),
        ([&q[0], &p[1], &p[2]], &q[0], "part 1 of 3 of another trace than"),
        ([&q[0], &q[1], &p[2]], &p[2], "part 3 of 3 of another trace than"),
        ([&p[0], &p[1], &q[1]], &q[1], "part 2 of 3 of another trace than"),
    ] {
        merge(&given, &out).fails_with(&[&format!("{odd} is {why}")]);
        assert!(!Path::new(&out).exists());
    }
    merge(&[&p[0], &q[1]], &out)
        .fails_with(&[&format!("{} is part 2 of 3 of another trace than {}", q[1], p[0])]);
    let r = parts_of(&folder, "r", &inputs, 2, &[]);
    merge(&[&p[0], &r[1], &p[2]], &out).fails_with(&[&format!("{} is part 2 of 2, but", r[1])]);
    merge(&[&p[0], &p[1], &p[1]], &out).fails_with(&["part 2 is there twice", &p[1]]);
}

#[test]
fn parts_of_one_trace_may_see_it_in_different_places() {
    let folder = Folder::new();
    let inputs = files(&folder);
    let elsewhere = copied(&inputs, &folder.at("elsewhere"));
    let (whole, out) = (folder.at("whole.fold"), folder.at("out.fold"));
    fold(&inputs, &whole, &[]);
    let p = parts_of(&folder, "p", &inputs, 3, &[]);
    let q = parts_of(&folder, "q", &elsewhere, 3, &[]);
    merge(&[&p[0], &q[1], &p[2]], &out).ok();
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap());
}

#[test]
fn parts_folded_with_other_options_are_refused() {
    let folder = Folder::new();
    let inputs = files(&folder);
    let map = folder.file("map", "MPI_Send\tsend\n");
    let p = parts_of(&folder, "p", &inputs, 2, &[]);
    let out = folder.at("out.fold");
    for more in [
        &["--ignore", "bytes"][..],
        &["--key", "name"],
        &["--map", &map],
        &["--times", "none"],
        &["--format", "lines"],
    ] {
        let q = parts_of(&folder, "q", &inputs, 2, more);
        merge(&[&p[0], &q[1]], &out).fails_with(&[&q[1], "with other options than"]);
        merge(&[&q[0], &q[1]], &out).ok();
    }
    let q = parts_of(&folder, "q", &inputs, 2, &["--folder", "outermost"]);
    merge(&[&p[0], &q[1]], &out).fails_with(&[&q[1], "was folded by outermost", "by auto"]);
    // What changes nothing.
    let q = parts_of(&folder, "q", &inputs, 2, &["--lenient", "--format", "mpi-text"]);
    merge(&[&p[0], &q[1]], &out).ok();
    // The same options in another order.
    let a = parts_of(&folder, "a", &inputs, 2, &["--ignore", "bytes,tag"]);
    let b = parts_of(&folder, "b", &inputs, 2, &["--ignore", "tag,bytes"]);
    merge(&[&a[0], &b[1]], &out).ok();
}

/// The part as an earlier version wrote it.
fn as_earlier(part: &str) {
    let file = std::fs::File::open(part).unwrap();
    let (fold, _) = archive::read(std::io::BufReader::new(file), &ReadConfig::new()).unwrap();
    let is_empty =
        |stream: &FoldedStream| stream.note("part").is_some_and(|note| note.raw().contains(" - - "));
    let kept = fold.with_streams(|stream| !is_empty(fold.stream(stream))).without_notes("part-of");
    archive::write(&kept, std::fs::File::create(part).unwrap()).unwrap();
}

#[test]
fn parts_of_earlier_versions_are_merged_with_each_other_only() {
    let folder = Folder::new();
    let inputs = files(&folder);
    let (whole, out) = (folder.at("whole.fold"), folder.at("out.fold"));
    fold(&inputs, &whole, &[]);
    // There is nothing to read in some of them.
    let p = parts_of(&folder, "p", &inputs, 7, &[]);
    let old = parts_of(&folder, "old", &inputs, 7, &[]);
    old.iter().for_each(|part| as_earlier(part));
    merge(&old.iter().collect::<Vec<_>>(), &out).ok();
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap());
    let streams = |part: &String| run(&["stats", "--json", part]).ok().json()["streams"].as_u64().unwrap();
    let filled = old.iter().position(|part| streams(part) > 0).unwrap();
    let mixed: Vec<&String> = (0..7).map(|part| if part == filled { &old[part] } else { &p[part] }).collect();
    merge(&mixed, &out).fails_with(&[&old[filled], "has no fingerprint", "fold that part again"]);
    let empty = old.iter().position(|part| streams(part) == 0).unwrap();
    let mixed: Vec<&String> = (0..7).map(|part| if part == empty { &old[part] } else { &p[part] }).collect();
    merge(&mixed, &out).fails_with(&["only some inputs are parts", &old[empty]]);
}

#[test]
fn a_part_with_nothing_to_read_is_still_a_part() {
    let folder = Folder::new();
    let inputs = files(&folder)[..1].to_vec();
    let (whole, out) = (folder.at("whole.fold"), folder.at("out.fold"));
    fold(&inputs, &whole, &[]);
    let p = parts_of(&folder, "p", &inputs, 3, &[]);
    merge(&[&p[2], &p[1], &p[0]], &out).ok();
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap());
    // Without the only one that has events, and one of another trace.
    merge(&[&p[0], &p[0], &p[2]], &out).fails_with(&["part 1 is there twice"]);
    let other = [folder.file("other.txt", "MPI_Init\n")];
    let q = parts_of(&folder, "q", &other, 3, &[]);
    merge(&[&p[0], &p[1], &q[2]], &out).fails_with(&[&q[2], "of another trace"]);
    // Nothing to read at all.
    let nothing = [folder.file("empty.txt", "")];
    fold(&nothing, &whole, &["--format", "mpi-text"]);
    let n = parts_of(&folder, "n", &nothing, 2, &["--format", "mpi-text"]);
    merge(&[&n[0], &n[1]], &out).ok();
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap());
}

#[test]
fn any_number_of_parts_takes_no_memory() {
    let folder = Folder::new();
    let inputs = files(&folder);
    let out = folder.at("out.fold");
    for part in ["1/99999999999", "99999999999/99999999999", "1/18446744073709551615"] {
        let mut arguments = vec!["fold", "-o", &out, "--part", part];
        arguments.extend(inputs.iter().map(String::as_str));
        let folded = run(&arguments).ok();
        assert!(folded.err.contains("there is nothing to read in this part"), "{}", folded.err);
    }
    let mut arguments = vec!["fold", "-o", &out, "--part", "1/18446744073709551616"];
    arguments.extend(inputs.iter().map(String::as_str));
    run(&arguments).fails_with(&["a part is written as 2/8"]);
    merge(&[&out], &out).fails_with(&["was folded in 18446744073709551615 parts"]);
}

#[test]
fn parts_of_a_compressed_trace_have_its_fingerprint() {
    let folder = Folder::new();
    let plain = files(&folder);
    let pack = |input: &String| {
        let packed = zstd::encode_all(&*std::fs::read(input).unwrap(), 3).unwrap();
        let name = Path::new(input).file_name().unwrap().to_str().unwrap().to_string();
        folder.file(&format!("{name}.zst"), packed)
    };
    let packed: Vec<String> = plain.iter().map(pack).collect();
    let elsewhere = copied(&packed, &folder.at("elsewhere"));
    let (whole, out) = (folder.at("whole.fold"), folder.at("out.fold"));
    fold(&packed, &whole, &[]);
    let p = parts_of(&folder, "p", &packed, 2, &[]);
    let q = parts_of(&folder, "q", &elsewhere, 2, &[]);
    merge(&[&p[0], &q[1]], &out).ok();
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap());
    // Other files, which may be divided in another way.
    let r = parts_of(&folder, "r", &plain, 2, &[]);
    merge(&[&p[0], &r[1]], &out).fails_with(&[&r[1], "of another trace"]);
}

#[test]
fn parts_of_many_large_inputs_are_compared_by_samples() {
    let folder = Folder::new();
    let line = |step: usize| format!("event {}\n", step % 7);
    let text: String = (0..200_000).map(line).collect();
    let mut inputs: Vec<String> =
        (0..70).map(|rank| folder.file(&format!("{rank}.log"), line(rank))).collect();
    inputs.push(folder.file("long.log", &text));
    let p = parts_of(&folder, "p", &inputs, 2, &[]);
    let out = folder.at("out.fold");
    merge(&[&p[0], &p[1]], &out).ok();
    // Of the same length, at the end of the last file.
    std::fs::write(&inputs[70], text[..text.len() - 2].to_string() + "x\n").unwrap();
    let q = parts_of(&folder, "q", &inputs, 2, &[]);
    merge(&[&p[0], &q[1]], &out).fails_with(&[&q[1], "of another trace"]);
    // A file less, and the files in another order.
    for other in [&inputs[1..], &[&inputs[1..], &inputs[..1]].concat()] {
        let r = parts_of(&folder, "r", other, 2, &[]);
        merge(&[&q[0], &r[1]], &out).fails_with(&[&r[1], "of another trace"]);
    }
}

#[test]
fn parts_of_an_otf2_archive_have_its_fingerprint() {
    let folder = Folder::new();
    let Some(first) = otf2_archive(&folder, "write") else { return };
    let (whole, out, elsewhere) = (folder.at("whole.fold"), folder.at("out.fold"), folder.at("elsewhere"));
    let copy = Command::new("cp").args(["-r", &first, &elsewhere]).status();
    assert!(copy.unwrap().success());
    let (inputs, others) = ([first], [format!("{elsewhere}/traces.otf2")]);
    fold(&inputs, &whole, &[]);
    // The archive by its folder and by its anchor.
    let p = parts_of(&folder, "p", &inputs, 3, &[]);
    let q = parts_of(&folder, "q", &others, 3, &[]);
    merge(&[&p[0], &q[1], &p[2]], &out).ok();
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap());
    let r = parts_of(&folder, "r", &inputs, 3, &["--mpi-only"]);
    merge(&[&p[0], &r[1], &p[2]], &out).fails_with(&[&r[1], "with other options"]);
    let events = format!("{elsewhere}/traces/2.evt");
    let bytes = std::fs::read(&events).unwrap();
    std::fs::write(&events, &bytes[..bytes.len() - 1]).unwrap();
    let cut = parts_of(&folder, "cut", &others, 3, &["--lenient"]);
    merge(&[&p[0], &cut[1], &p[2]], &out).fails_with(&[&cut[1], "of another trace"]);
}
