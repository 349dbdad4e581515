//! `--peers`: ranks that do the same become one class, in traces and in archives.

use crate::support::{Folder, Run, run, run_with_input};
use serde_json::{Value, json};

/// Sweeps over a grid of processes to and fro, with sizes that depend on the rank. With
/// `row_comms`, messages in a row are sent in a communicator of the row, in which ranks
/// count backwards.
fn sweep(folder: &Folder, rows: usize, columns: usize, row_comms: bool) -> Vec<String> {
    let lines = |rank: usize| {
        let (row, column) = (rank / columns, rank % columns);
        let mut text = String::from("MPI_Init\n");
        if row_comms {
            text += &format!("MPI_Comm_split comm=0 color={row} key={} newcomm=1\n", columns - column);
        }
        let at = |row: usize, column: usize| match row_comms {
            true => (columns - 1 - column, 1),
            false => (row * columns + column, 0),
        };
        let north = (row > 0).then(|| (rank - columns, 0));
        let south = (row + 1 < rows).then(|| (rank + columns, 0));
        let west = (column > 0).then(|| at(row, column - 1));
        let east = (column + 1 < columns).then(|| at(row, column + 1));
        for _ in 0..20 {
            for (from, to) in [([north, west], [south, east]), ([south, east], [north, west])] {
                for _ in 0..5 {
                    for (src, comm) in from.iter().flatten() {
                        text += &format!("MPI_Recv src={src} tag=1 bytes={} comm={comm}\n", 8 * rank);
                    }
                    for (dest, comm) in to.iter().flatten() {
                        text += &format!("MPI_Send dest={dest} tag=1 bytes={} comm={comm}\n", 8 * rank);
                    }
                }
            }
            text += "MPI_Bcast root=0 bytes=8 comm=0\n";
        }
        text
    };
    let name = |rank| format!("sweep.rank-{rank}.txt");
    (0..rows * columns).map(|rank| folder.file(&name(rank), lines(rank))).collect()
}

fn with(command: &str, inputs: &[String], more: &[&str]) -> Run {
    let mut arguments = vec![command];
    arguments.extend(inputs.iter().map(String::as_str));
    arguments.extend(more);
    run(&arguments)
}

/// The streams of each class.
fn classes(inputs: &[String], more: &[&str]) -> Value {
    let json = with("loops", inputs, &[&["--json"], more].concat()).ok().json();
    let classes = json["classes"].as_array().unwrap();
    classes.iter().map(|class| class["streams"].clone()).collect()
}

/// A ring whose ranks differ only in the other ends of messages.
#[test]
fn a_note_names_peers_where_classes_differ_only_in_them() {
    let folder = Folder::new();
    let lines = |rank: usize| {
        let (left, right) = ((rank + 3) % 4, (rank + 1) % 4);
        format!("MPI_Send dest={right} tag=1 bytes=8\nMPI_Recv src={left} tag=1 bytes=8\n").repeat(30)
    };
    let inputs: Vec<String> =
        (0..4).map(|rank| folder.file(&format!("ring.rank-{rank}.txt"), lines(rank))).collect();
    let all = with("loops", &inputs, &[]).ok();
    let note = "the 4 classes differ only in the other ends of their messages; --peers relative";
    assert!(all.err.contains(note), "{}", all.err);
    assert!(!with("loops", &inputs, &["--peers", "relative"]).ok().err.contains("--peers relative writes"));
    // The first line is about all classes, and headings have the numbers that --class takes.
    let first = all.text().lines().next().unwrap().to_string();
    assert!(first.starts_with("4 ranks, 4 classes · all: 30 × (2 events)"), "{first}");
    let one = with("loops", &inputs, &["--top", "1"]).ok().text();
    assert_eq!(one.lines().next(), Some(first.as_str()), "{one}");
    assert!(one.contains("\nrank 0 · class 1\n") && !one.contains("class 2"), "{one}");
    let second = with("loops", &inputs, &["--class", "2"]).ok().text();
    assert!(all.text().contains("\nrank 1 · class 2\n") && second.starts_with("rank 1 · "), "{second}");
}

fn by_place() -> Value {
    let ranks = |ranks: &[usize]| json!(ranks.iter().map(|rank| format!("rank {rank}")).collect::<Vec<_>>());
    let places: [&[usize]; 9] =
        [&[0], &[1, 2], &[3], &[4, 8], &[5, 6, 9, 10], &[7, 11], &[12], &[13, 14], &[15]];
    places.iter().map(|&place| ranks(place)).collect()
}

#[test]
fn ranks_fall_into_classes_by_their_place() {
    let folder = Folder::new();
    let traces = sweep(&folder, 4, 4, false);
    let archive = [folder.at("t.fold")];
    with("fold", &traces, &["-o", &archive[0]]).ok();
    for inputs in [&traces[..], &archive] {
        assert_eq!(classes(inputs, &["--ignore", "bytes"]).as_array().unwrap().len(), 16);
        for peers in ["relative", "cartesian"] {
            assert_eq!(classes(inputs, &["--peers", peers, "--ignore", "bytes"]), by_place());
            // Ignored fields are still needed, to know the members.
            let more = ["--peers", peers, "--key", "name,dest,src"];
            assert_eq!(classes(inputs, &more), by_place());
        }
    }
    let show = with("loops", &traces, &["--peers", "cartesian", "--key", "name,src,dest"]).ok();
    assert!(show.err.contains("communicator 0: a grid of 4x4, as its messages show"), "{}", show.err);
    assert!(
        show.text().contains("MPI_Recv src=(-1,0), MPI_Recv src=(0,-1), MPI_Send dest=(+1,0)"),
        "{}",
        show.text()
    );
    assert!(show.text().contains("MPI_Bcast\n") && !show.text().contains("comm="), "{}", show.text());
}

#[test]
fn archives_of_single_ranks_know_each_other() {
    let folder = Folder::new();
    let traces = sweep(&folder, 4, 4, true);
    let archives: Vec<String> = (0..16).map(|rank| folder.at(&format!("{rank}.fold"))).collect();
    for (trace, archive) in traces.iter().zip(&archives) {
        run(&["fold", trace, "-o", archive]).ok();
    }
    let mixed: Vec<String> = traces[..7].iter().chain(&archives[7..]).cloned().collect();
    for inputs in [&traces, &archives, &mixed] {
        assert_eq!(classes(inputs, &["--peers", "relative", "--ignore", "bytes,color,key"]), by_place());
        let ignore = ["--peers", "relative", "--ignore", "bytes,color,key,comm,newcomm"];
        assert_eq!(classes(inputs, &ignore), by_place());
        // In a row the ranks count backwards.
        let cat =
            with("cat", inputs, &["--peers", "relative", "--key", "name,dest,src", "--stream", "rank 6"]);
        let text = cat.ok().text();
        assert!(text.contains("MPI_Send dest=+4\nMPI_Send dest=-1\n"), "{text}");
    }
}

#[test]
fn folding_while_reading_gives_the_same() {
    let folder = Folder::new();
    let traces = sweep(&folder, 4, 4, true);
    let expected = with("cat", &traces, &["--peers", "relative", "--ignore", "comm,bytes"]).ok().out;
    for name in ["auto", "sequitur-runs", "outermost", "repair"] {
        let archive = [folder.at(&format!("{name}.fold"))];
        let more = ["--peers", "relative", "--ignore", "comm,bytes", "--folder", name, "-o", &archive[0]];
        with("fold", &traces, &more).ok();
        assert!(with("cat", &archive, &[]).ok().out == expected, "{name}");
        assert_eq!(classes(&archive, &["--ignore", "color,key"]), by_place(), "{name}");
        with("verify", &archive, &[]).ok();
    }
    // Joining rewrites them too, and archives of archives.
    let plain = [folder.at("plain.fold")];
    with("fold", &traces, &["--times", "summary", "-o", &plain[0]]).ok();
    let merged = [folder.at("merged.fold")];
    with("merge", &plain, &["--peers", "relative", "--ignore", "comm,bytes", "-o", &merged[0]]).ok();
    assert!(with("cat", &merged, &[]).ok().out == expected);
}

#[test]
fn an_archive_notes_how_its_peers_are_written() {
    let folder = Folder::new();
    let traces = sweep(&folder, 2, 3, false);
    let archive = [folder.at("t.fold")];
    with("fold", &traces, &["--peers", "relative", "-o", &archive[0]]).ok();
    let stats = with("stats", &archive, &[]).ok().text();
    assert!(stats.contains("peers: relative"), "{stats}");
    let once = with("cat", &archive, &[]).ok().out;
    assert!(with("cat", &archive, &["--peers", "relative"]).ok().out == once);
    with("cat", &archive, &["--peers", "cartesian"]).fails_with(&["rank 0", "relative already"]);
    let find = [archive[0].clone(), "'MPI_Send dest=+3 tag=1 bytes=0 comm=0'".to_string()];
    assert_eq!(with("find", &find, &["--count"]).ok().text(), "100\n");
    let absolute = [traces[0].clone(), "MPI_Send dest=(0,+1)".to_string()];
    with("find", &absolute, &["--peers", "sideways"]).fails_with(&["sideways", "cartesian"]);
}

#[test]
fn without_messages_or_a_grid_the_command_says_so() {
    let folder = Folder::new();
    let plain = folder.file("a.txt", "read\nwrite\n");
    let cat = run(&["cat", &plain, "--peers", "relative"]).ok();
    assert_eq!(cat.text(), "read\nwrite\n");
    assert!(cat.err.contains("--peers changes nothing"), "{}", cat.err);
    let star: String = (1..8).map(|peer| format!("MPI_Send dest={peer} comm=0\nMPI_Init\n")).collect();
    let star = folder.file("rank-0.txt", star);
    run(&["cat", &star, "--peers", "cartesian"]).fails_with(&["grid", "relative peers need none"]);
    // What came through a pipe that broke is not lost for that.
    let archive = folder.at("x.fold");
    run_with_input(
        &["fold", "-", "--format", "mpi-text", "--peers", "cartesian", "-o", &archive],
        b"MPI_Send dest=1\nMPI_Recv src=-1\nMPI_Se",
    )
    .fails_with(&["middle of a line", "grid", "the 2 events before that are in"]);
    let kept = run(&["cat", &folder.at("x.partial.fold")]).ok().text();
    assert_eq!(kept, "MPI_Send dest=1\nMPI_Recv src=-1\n");
}
