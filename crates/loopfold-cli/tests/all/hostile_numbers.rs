//! Hostile numbers through `skeleton`: each program compiles with all warnings as errors, optimized, since
//! only then a compiler looks at the bounds of arrays, or is refused by the names of the call and the field.
#![cfg(target_os = "linux")]

use crate::support::{Folder, Run, run};
use loopfold_testing::Rng;
use std::path::Path;
use std::process::Command;

/// The trace of the calls of each process, the same where there is only one list.
fn trace(processes: usize, calls: &[&[String]]) -> String {
    let mut text = String::from("loopfold grammar 1\nI = 'MPI_Init'\nF = 'MPI_Finalize'\n");
    text += "Y = collective 'MPI_Barrier' comm='0'\n";
    let mut streams = String::new();
    for rank in 0..processes {
        let own = calls[rank % calls.len()];
        for (nth, call) in own.iter().enumerate() {
            text += &format!("C{rank}x{nth} = {call}\n");
        }
        let names: Vec<String> = (0..own.len()).map(|nth| format!("C{rank}x{nth}")).collect();
        text += &format!("R{rank} -> I {} Y F\n", names.join(" "));
        streams += &format!("stream 'rank {rank}' -> R{rank}\n");
    }
    text + &streams + "end\n"
}

fn skeleton(folder: &Folder, trace: &str, source: &str) -> Run {
    let trace = folder.file("calls.grammar", trace);
    run(&["skeleton", &trace, "-o", source])
}

/// Fails if a program has something to warn of.
fn compile(folder: &Path, sources: &[String]) {
    for some in sources.chunks(50) {
        let mut command = Command::new("mpicc");
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-c"]).args(some).current_dir(folder);
        let done = command.output().expect("mpicc is installed");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

/// Calls of two processes with a number that MPI does not take, or that is no place in the program, and what
/// the error names.
fn refused() -> Vec<(String, &'static str)> {
    let mut calls = Vec::new();
    let cart = |dims: &str, periods: &str| {
        format!("'MPI_Cart_create' comm='0' newcomm='2' dims={dims} periods={periods}")
    };
    for sides in [9, 40, 60, 90] {
        let (dims, periods) = (vec!["1"; sides].join("x"), vec!["0"; sides].join("x"));
        calls.push((cart(&format!("'{dims}'"), &format!("'{periods}'")), "dims="));
    }
    calls.extend([
        (cart("'1x1x1'", "0"), "periods"),
        (cart("0", "0"), "dims=0"),
        (cart("'2x0'", "'0x0'"), "dims=2x0"),
        (cart("'65536x65536'", "'0x0'"), "dims="),
        (cart("2147483647", "0"), "dims="),
        (cart("3", "1"), "dims=3"),
        (cart("1", "1"), "dims=1"),
        ("'MPI_Cart_create' comm='0' newcomm='2'".to_string(), "no dims"),
        ("'MPI_Comm_dup' comm='0' newcomm='0'".to_string(), "newcomm=0"),
        ("'MPI_Comm_free' comm='0'".to_string(), "MPI_Comm_free"),
        ("collective 'MPI_Allreduce' op='REPLACE' bytes=8 comm='0'".to_string(), "op=REPLACE"),
    ]);
    for number in ["-9223372036854775808", "-2147483648", "-1", "2147483648", "9223372036854775807"] {
        for call in [
            "'MPI_Waitall' n=@",
            "'MPI_Wait' n=1 done=@",
            "'MPI_Testsome' n=@",
            "collective 'MPI_Bcast' root=@ bytes=8 comm='0'",
            "collective 'MPI_Ireduce' op='SUM' root=@ bytes=8 comm='0'",
            "'MPI_Comm_split' comm='0' newcomm='2' color=@ key=0",
            "'MPI_Sendrecv' dest=0 src=0 tag=@ recvtag=@ bytes=8 recvbytes=8 comm='1'",
        ] {
            calls.push((call.replace('@', number), "has "));
        }
    }
    for (field, call) in [
        ("bytes=-", "collective 'MPI_Allgather' bytes=-1 comm='0'"),
        ("bytes=", "collective 'MPI_Allgatherv' bytes=2147483647 comm='0'"),
        ("key=", "'MPI_Comm_split' comm='0' newcomm='2' color=0 key=2147483648"),
        ("dest=", "'MPI_Sendrecv' dest=1 src=0 tag=0 recvtag=0 bytes=8 recvbytes=8 comm='1'"),
        ("root=2", "collective 'MPI_Bcast' root=2 bytes=8 comm='0'"),
    ] {
        calls.push((call.to_string(), field));
    }
    calls
}

#[test]
fn numbers_that_mpi_does_not_take_are_refused() {
    let folder = Folder::new();
    let source = folder.at("skeleton.c");
    let all = refused();
    for (call, named) in &all {
        let run = skeleton(&folder, &trace(2, &[std::slice::from_ref(call)]), &source);
        assert_eq!(run.code, Some(2), "{call}: {}", run.err);
        assert!(run.err.contains(named) || run.err.contains("has no rank"), "{call}: {}", run.err);
        assert!(!Path::new(&source).exists(), "{call}");
    }
    println!("{} calls are refused", all.len());
    assert!(all.len() > 50, "{}", all.len());
}

/// A communicator that only one process has created, or that is used before.
#[test]
fn communicators_are_created_before_they_are_used() {
    let folder = Folder::new();
    let source = folder.at("skeleton.c");
    let create = "'MPI_Comm_split' comm='0' newcomm='2' color=0 key=0".to_string();
    let create_none = "'MPI_Comm_split' comm='0' color=-1 key=0".to_string();
    let barrier = "collective 'MPI_Barrier' comm='2'".to_string();
    let [both, early] = [[create.clone(), barrier.clone()], [barrier.clone(), create]];
    skeleton(&folder, &trace(2, &[&both]), &source).ok();
    compile(folder.path(), std::slice::from_ref(&source));
    let one = skeleton(&folder, &trace(2, &[&both, &[create_none, barrier]]), &source);
    for run in [one, skeleton(&folder, &trace(2, &[&early]), &source)] {
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains("comm=2") || run.err.contains("wait for ever"), "{}", run.err);
    }
}

/// What is large, but can be done: messages of more bytes than an `int` counts, and buffers for all parts.
#[test]
fn buffers_have_room_for_every_call() {
    let folder = Folder::new();
    let source = folder.at("skeleton.c");
    let allocated = |processes: usize, calls: &[String]| -> u64 {
        skeleton(&folder, &trace(processes, &[calls]), &source).ok();
        compile(folder.path(), std::slice::from_ref(&source));
        let text = std::fs::read_to_string(&source).unwrap();
        let (_, rest) = text.split_once("malloc(").unwrap();
        rest.split_once(')').unwrap().0.parse().unwrap()
    };
    let gather = |bytes: u64| format!("collective 'MPI_Allgather' bytes={bytes} comm='0'");
    assert_eq!(allocated(4, &[gather(100)]), 400);
    assert_eq!(allocated(4, &[gather(1 << 30)]), 4 << 30);
    // An `int` counts nearly 2 GiB of the 3 that were recorded.
    assert_eq!(allocated(4, &[gather(3 << 30)]), 4 * ((1 << 31) - 16));
    // A process may be each of its neighbours; a double and an int have gaps between them.
    let grid = "'MPI_Cart_create' comm='0' newcomm='2' dims='1x1' periods='1x1'".to_string();
    let neighbours = "collective 'MPI_Neighbor_allgather' bytes=100 comm='2'".to_string();
    assert!(allocated(1, &[grid, neighbours]) >= 400);
    let reduced = "collective 'MPI_Allreduce' op='MAXLOC' bytes=36 comm='0'".to_string();
    assert!(allocated(1, &[reduced]) >= 48);
}

/// Numbers at the ends of their types and next to what has a meaning.
const NUMBERS: [i64; 30] = [
    i64::MIN,
    i64::MIN + 1,
    i32::MIN as i64 - 1,
    i32::MIN as i64,
    -32766,
    -3,
    -2,
    -1,
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    12,
    64,
    255,
    32767,
    65536,
    1 << 20,
    1 << 30,
    i32::MAX as i64 - 1,
    i32::MAX as i64,
    i32::MAX as i64 + 1,
    u32::MAX as i64,
    3 << 30,
    1 << 40,
    i64::MAX,
];

/// Calls for both processes; `{valid}` is a number that is right there, and may become any other.
const CALLS: [[&str; 2]; 30] = [
    [
        "send 'MPI_Send' dest={1} tag={0} bytes={8} comm='0'",
        "receive 'MPI_Recv' src={0} tag={0} bytes={8} comm='0'",
    ],
    [
        "send 'MPI_Isend' dest={1} tag={5} bytes={100} comm='0'",
        "receive 'MPI_Irecv' src={0} tag={5} bytes={100} comm='0'",
    ],
    ["'MPI_Waitall' n={1}", "'MPI_Waitall' n={1}"],
    ["'MPI_Wait' n={1} done={0}", "'MPI_Wait' n={1} done={0}"],
    ["'MPI_Waitsome' n={2} done='{0},{1}'", "'MPI_Testany' n={1}"],
    ["'MPI_Waitany' n={1}", "'MPI_Wait' n={0}"],
    [
        "'MPI_Sendrecv' dest={1} src={1} tag={0} recvtag={0} bytes={8} recvbytes={8} comm='0'",
        "'MPI_Sendrecv' dest={0} src={0} tag={0} recvtag={0} bytes={8} recvbytes={8} comm='0'",
    ],
    [
        "'MPI_Sendrecv_replace' dest={0} src={0} tag={1} recvtag={1} bytes={8} comm='1'",
        "'MPI_Sendrecv_replace' dest={0} src={0} tag={1} recvtag={1} bytes={8} comm='1'",
    ],
    [
        "collective 'MPI_Bcast' root={0} bytes={8} comm='0'",
        "collective 'MPI_Bcast' root={0} bytes={8} comm='0'",
    ],
    [
        "collective 'MPI_Ibcast' root={1} bytes={8} comm='0'",
        "collective 'MPI_Ibcast' root={1} bytes={8} comm='0'",
    ],
    [
        "collective 'MPI_Gatherv' root={0} bytes={8} comm='0'",
        "collective 'MPI_Gatherv' root={0} bytes={9} comm='0'",
    ],
    [
        "collective 'MPI_Scatterv' root={1} bytes={8} comm='0'",
        "collective 'MPI_Scatterv' root={1} bytes={9} comm='0'",
    ],
    ["collective 'MPI_Alltoallv' bytes={64} comm='0'", "collective 'MPI_Alltoallv' bytes={12} comm='0'"],
    ["collective 'MPI_Allgather' bytes={64} comm='0'", "collective 'MPI_Allgather' bytes={64} comm='0'"],
    [
        "collective 'MPI_Allreduce' op='SUM' bytes={8} comm='0'",
        "collective 'MPI_Allreduce' op='SUM' bytes={8} comm='0'",
    ],
    [
        "collective 'MPI_Reduce_scatter' op='MAXLOC' bytes={12} comm='0'",
        "collective 'MPI_Reduce_scatter' op='MAXLOC' bytes={24} comm='0'",
    ],
    [
        "collective 'MPI_Reduce' op='BOR' root={0} bytes={7} comm='0'",
        "collective 'MPI_Reduce' op='BOR' root={0} bytes={7} comm='0'",
    ],
    [
        "'MPI_Comm_split' comm='0' newcomm='2' color={0} key={1}",
        "'MPI_Comm_split' comm='0' newcomm='2' color={0} key={0}",
    ],
    ["collective 'MPI_Barrier' comm='2'", "collective 'MPI_Barrier' comm='2'"],
    [
        "'MPI_Cart_create' comm='0' newcomm='3' dims='{1}x{2}' periods='{0}x{1}'",
        "'MPI_Cart_create' comm='0' newcomm='3' dims='{1}x{2}' periods='{0}x{1}'",
    ],
    [
        "'MPI_Cart_create' comm='0' newcomm='4' dims={2} periods={1}",
        "'MPI_Cart_create' comm='0' newcomm='4' dims={2} periods={1}",
    ],
    [
        "'MPI_Sendrecv' dest={1} src={1} tag={3} recvtag={3} bytes={8} recvbytes={8} comm='3'",
        "'MPI_Sendrecv' dest={0} src={0} tag={3} recvtag={3} bytes={8} recvbytes={8} comm='3'",
    ],
    [
        "collective 'MPI_Neighbor_alltoall' bytes={8} comm='3'",
        "collective 'MPI_Neighbor_alltoall' bytes={8} comm='3'",
    ],
    ["'MPI_Cart_coords' comm='3'", "'MPI_Cart_rank' comm='4'"],
    ["'MPI_Send_init' tag={4} bytes={8} comm='0'", "'MPI_Recv_init' tag={4} bytes={8} comm='0'"],
    ["'MPI_Start' dest={1} tag={4} bytes={8} comm='0'", "'MPI_Start' src={0} tag={4} bytes={8} comm='0'"],
    ["'MPI_Request_free'", "'MPI_Request_free'"],
    ["'MPI_Comm_free' comm='3'", "'MPI_Comm_free' comm='3'"],
    ["'MPI_Comm_dup' comm='3' newcomm='{5}'", "'MPI_Comm_dup' comm='3' newcomm='{5}'"],
    ["'MPI_Intercomm_create' newcomm='{6}' comm='0'", "'MPI_Comm_idup' newcomm='{7}' comm='0'"],
];

/// A call with its numbers: mostly those that are right, but of every `odd` one any other.
fn with_numbers(call: &str, odd: usize, rng: &mut Rng) -> String {
    let mut text = String::new();
    let mut rest = call;
    while let Some((before, (valid, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        text += before;
        match rng.one_in(odd) {
            true => text += &NUMBERS[rng.below(NUMBERS.len())].to_string(),
            false => text += valid,
        }
        rest = after;
    }
    text + rest
}

/// A program of both processes, of some calls in the order of the list, so that what they need is there.
fn random(rng: &mut Rng) -> String {
    let odd = [12, 40, 1_000][rng.below(3)];
    let share = rng.between(2, 6);
    let mut calls = [Vec::new(), Vec::new()];
    for both in CALLS {
        if rng.one_in(share) {
            for (call, own) in both.iter().zip(&mut calls) {
                own.push(with_numbers(call, odd, rng));
            }
        }
    }
    trace(2, &[&calls[0], &calls[1]])
}

#[test]
fn whatever_the_numbers_are_a_skeleton_compiles_or_is_refused() {
    const PROGRAMS: usize = 600;
    let folder = Folder::new();
    let (mut sources, mut rng) = (Vec::new(), Rng::new(29));
    for nth in 0..PROGRAMS {
        let text = random(&mut rng);
        let source = folder.at(&format!("skeleton-{nth}.c"));
        let run = skeleton(&folder, &text, &source);
        match run.code {
            Some(0) => sources.push(source),
            code => assert_eq!(code, Some(2), "{}\n{text}", run.err),
        }
    }
    println!("{PROGRAMS} programs: {} compiled, {} refused", sources.len(), PROGRAMS - sources.len());
    assert!((100..PROGRAMS - 100).contains(&sources.len()), "{} are written", sources.len());
    compile(folder.path(), &sources);
}
