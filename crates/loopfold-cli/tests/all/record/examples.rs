//! Every example shows what its source says: the loop nest of each rank, event for event, and the
//! communication patterns with their topologies and how often they occur.

use super::expected::{
    Nest, begin, check_nests, communication_patterns, events, irecv, isend, make_grid, neighbours, patterns,
    rank_or_none, sendrecv, side_of, summary, times, waits,
};
use super::{Mpi, Recording, header, program, record};
use serde_json::{Value, json};

/// Where each example runs.
const PLACES: [(Mpi, usize); 3] = [(Mpi::OpenMpi, 4), (Mpi::OpenMpi, 16), (Mpi::Mpich, 4)];

fn each(name: &str, arguments: &[&str], check: impl Fn(&Recording, usize)) {
    // Only one marks regions.
    let header = (name == "weather.c").then(header);
    let options: Vec<&str> = header.as_deref().into_iter().chain(["-ldl"]).collect();
    for (mpi, processes) in PLACES {
        println!("{name} on {processes} under {mpi:?}");
        let recording = record(mpi, processes, &[], &program(mpi, name, &options), arguments).ended_well();
        check(&recording, processes);
    }
}

#[test]
fn a_ring() {
    each("ring.c", &["120"], |recording, processes| {
        check_nests(recording, processes, |rank| {
            let (next, previous) = ((rank + 1) % processes, (rank + processes - 1) % processes);
            let exchange = sendrecv(&next.to_string(), &previous.to_string(), 0, 1024);
            [begin(), vec![times(120, vec![exchange])], events(["MPI_Finalize"])].concat()
        });
        assert_eq!(patterns(recording), [format!("ring {processes} · 120")]);
        assert_eq!(waits(recording), (120 * processes, 0));
    });
}

#[test]
fn a_stencil() {
    each("stencil.c", &["50"], |recording, processes| {
        let side = side_of(processes);
        check_nests(recording, processes, |rank| {
            let peers = neighbours(rank, side).map(rank_or_none);
            let receives = (0..4).map(|direction| irecv(&peers[direction], direction ^ 1, 128, 2));
            let sends = (0..4).map(|direction| isend(&peers[direction], direction, 128, 2));
            let step = receives.chain(sends).chain(events(["MPI_Waitall n=8"])).collect();
            let sum = events(["MPI_Allreduce op=SUM bytes=8 comm=2"]);
            [
                make_grid(side),
                events(["MPI_Comm_rank comm=2"]),
                vec![times(2, events(["MPI_Cart_shift comm=2"]))],
                vec![times(5, [vec![times(10, step)], sum].concat())],
                events(["MPI_Comm_free comm=2", "MPI_Finalize"]),
            ]
            .concat()
        });
        let mesh = |count| format!("mesh {side}x{side} · {count}");
        assert_eq!(patterns(recording), [mesh(5), mesh(50)], "ten steps and a sum, steps");
        assert_eq!(waits(recording), (50 * 4 * side * (side - 1), 5));
    });
}

#[test]
fn a_wavefront_in_fortran() {
    each("wavefront.f90", &["12", "7"], |recording, processes| {
        let side = side_of(processes);
        check_nests(recording, processes, |rank| {
            let [north, south, west, east] = neighbours(rank, side);
            // Where there is nobody, nothing is sent or received.
            let plane = |from: [(Option<usize>, usize); 2], to: [(Option<usize>, usize); 2]| -> Nest {
                let receive = |(peer, tag): (Option<usize>, usize)| {
                    Some(json!(format!("MPI_Recv src={} tag={tag} bytes=512 comm=2", peer?)))
                };
                let send = |(peer, tag): (Option<usize>, usize)| {
                    Some(json!(format!("MPI_Send dest={} tag={tag} bytes=512 comm=2", peer?)))
                };
                from.into_iter().filter_map(receive).chain(to.into_iter().filter_map(send)).collect()
            };
            let there = times(7, plane([(north, 1), (west, 2)], [(south, 1), (east, 2)]));
            let back = times(7, plane([(south, 3), (east, 4)], [(north, 3), (west, 4)]));
            [
                make_grid(side),
                events(["MPI_Comm_rank comm=2"]),
                vec![times(2, events(["MPI_Cart_shift comm=2"]))],
                vec![times(12, vec![there, back, json!("MPI_Allreduce op=SUM bytes=8 comm=2")])],
                events(["MPI_Finalize"]),
            ]
            .concat()
        });
        let found = communication_patterns(recording, &[]);
        let wavefront = format!("wavefront {side}x{side} · {}", 12 * 7);
        let wanted = [format!("mesh {side}x{side} · 12"), wavefront.clone(), wavefront];
        assert_eq!(found.iter().map(summary).collect::<Vec<_>>(), wanted, "a step, there, back");
        assert_eq!(found[1]["topology"]["directions"], json!(["up", "up"]));
        assert_eq!(found[2]["topology"]["directions"], json!(["down", "down"]));
        assert_eq!(waits(recording), (12 * 2 * 7 * 2 * side * (side - 1), 12));
    });
}

#[test]
fn a_butterfly() {
    each("butterfly.c", &["40"], |recording, processes| {
        let rounds = processes.ilog2() as usize;
        check_nests(recording, processes, |rank| {
            let round = |round: usize| {
                let peer = rank ^ 1 << round;
                vec![irecv(peer, round, 8, 0), isend(peer, round, 8, 0), json!("MPI_Waitall n=2")]
            };
            let iteration = (0..rounds).flat_map(round).collect();
            [begin(), vec![times(40, iteration)], events(["MPI_Finalize"])].concat()
        });
        // A butterfly of four processes is a square: an exchange with the neighbour in the row, then
        // with the one in the column. Nothing distinguishes the two.
        let wanted = if processes == 4 { "mesh 2x2 · 40" } else { "butterfly 2x2x2x2 · 40" };
        assert_eq!(patterns(recording), [wanted]);
        assert_eq!(waits(recording), (40 * rounds * processes, 0));
    });
}

#[test]
fn multigrid_with_idle_ranks() {
    each("multigrid.c", &["30"], |recording, processes| {
        let peer = |rank: usize, distance: usize| {
            let left = rank_or_none(rank.checked_sub(distance));
            let right = rank_or_none(Some(rank + distance).filter(|&right| right < processes));
            (left, right)
        };
        let distances = || (1..processes.ilog2()).map(|level| 1 << level);
        check_nests(recording, processes, |rank| {
            let (left, right) = peer(rank, 1);
            let exchange = |(distance, bytes): (usize, usize)| {
                let (left, right) = peer(rank, distance);
                [sendrecv(&right, &left, 1, bytes), sendrecv(&left, &right, 2, bytes)]
            };
            let is_active = |&(distance, _): &(usize, usize)| rank % distance == 0;
            // 64 cells of eight bytes on the finest level, half as many on each further one.
            let down = distances().map(|distance| (distance, 8 * 64 / distance));
            let up = distances().map(|distance| (distance, 8));
            let mut cycle = vec![
                json!(format!(
                    "MPI_Startall dest={right},{left} src={left},{right} tag=5,6 recvtag=5,6 bytes=8 recvbytes=8 comm=0"
                )),
                json!("MPI_Waitall n=4"),
            ];
            cycle.extend(down.chain(up).filter(is_active).flat_map(exchange));
            cycle.push(json!("MPI_Reduce root=0 op=MAX bytes=8 comm=0"));
            let init = |call: &str, tag: usize| json!(format!("MPI_{call}_init tag={tag} bytes=8 comm=0"));
            [
                begin(),
                vec![init("Recv", 5), init("Recv", 6), init("Send", 5), init("Send", 6)],
                vec![times(30, cycle), times(4, events(["MPI_Request_free"]))],
                events(["MPI_Finalize"]),
            ]
            .concat()
        });
        // A cycle has lines of several distances. Down and up are the same but for sizes, so each
        // cycle has them twice; on four processes they are the exchange of two.
        let levels = if processes == 4 { "line 2 · 60" } else { "unknown · 60" };
        assert_eq!(patterns(recording), ["unknown · 30", levels]);
        let channels: usize = distances().map(|distance| 2 * (processes / distance - 1)).sum();
        assert_eq!(waits(recording), (30 * (2 * (processes - 1) + 2 * channels), 30));
    });
}

#[test]
fn a_master_and_workers() {
    each("workers.c", &["60"], |recording, processes| {
        let all = super::events(&recording.archive());
        let around = |calls: Vec<String>| -> Vec<String> {
            let ends = |part: Nest| part.into_iter().map(|event| event.as_str().unwrap().to_string());
            ends(begin()).chain(calls).chain(ends(events(["MPI_Finalize"]))).collect()
        };
        // Which worker gets which task is up to the execution: the master's own list says it. All
        // tasks are given, and at the end each worker is stopped.
        let master = &all["rank 0"];
        let sources: Vec<usize> = master.iter().filter_map(|event| source(event)).collect();
        assert_eq!(sources.len(), 60 + processes - 1);
        let answered = sources.iter().enumerate().flat_map(|(nth, worker)| {
            let tag = if nth < 60 { 2 } else { 3 };
            [
                format!("MPI_Recv src={worker} tag=1 bytes=4 comm=0 any=src,tag"),
                format!("MPI_Send dest={worker} tag={tag} bytes=4 comm=0"),
            ]
        });
        assert_eq!(*master, around(answered.collect()));
        for worker in 1..processes {
            let tasks = sources[..60].iter().filter(|&&source| source == worker).count();
            assert_eq!(sources[60..].iter().filter(|&&source| source == worker).count(), 1);
            let asked = (0..=tasks).flat_map(|task| {
                let tag = if task < tasks { 2 } else { 3 };
                [
                    "MPI_Send dest=0 tag=1 bytes=4 comm=0".to_string(),
                    format!("MPI_Recv src=0 tag={tag} bytes=4 comm=0 any=tag"),
                ]
            });
            assert_eq!(all[&format!("rank {worker}")], around(asked.collect()));
        }
        // Which patterns there are is up to the execution, too, but all messages are the master's, and
        // exchanges with three workers or more are a star. With two they may be called a line.
        for pattern in communication_patterns(recording, &[]) {
            let channels = pattern["channels"].as_array().unwrap();
            assert!(channels.iter().all(|ends| ends[0] == 0 || ends[1] == 0), "{pattern}");
            let workers = pattern["processes"].as_array().unwrap().len() - 1;
            if workers > 2 && channels.len() == 2 * workers {
                assert_eq!(summary(&pattern).split(' ').next(), Some("star"), "{pattern}");
                assert_eq!(pattern["topology"]["root"], 0);
            }
        }
        assert_eq!(waits(recording), (2 * (60 + processes - 1), 0));
    });
}

fn source(event: &str) -> Option<usize> {
    event.strip_prefix("MPI_Recv src=")?.split(' ').next()?.parse().ok()
}

#[test]
fn a_conjugate_gradient_nest_in_fortran() {
    each("conjugate.f90", &["6", "11"], |recording, processes| {
        let side = side_of(processes);
        check_nests(recording, processes, |rank| {
            let (row, column) = (rank / side, rank % side);
            let transposed = column * side + row;
            let exchange = |peer: usize, tag: usize, comm: usize| {
                let send = json!(format!("MPI_Send dest={peer} tag={tag} bytes=1024 comm={comm}"));
                vec![irecv(peer, tag, 1024, comm), send, json!("MPI_Wait n=1")]
            };
            // Recursive doubling in the row, the transposed process, a sum over the row.
            let mut step: Nest = (0..side.ilog2() as usize)
                .flat_map(|round| exchange(column ^ 1 << round, round, 2))
                .collect();
            if transposed != rank {
                step.extend(exchange(transposed, 9, 0));
            }
            step.push(json!("MPI_Allreduce op=SUM bytes=8 comm=2"));
            let split = format!("MPI_Comm_split comm=0 color={row} key={column} newcomm=2");
            [
                begin(),
                events([&split]),
                vec![times(6, vec![times(11, step), json!("MPI_Allreduce op=SUM bytes=8 comm=0")])],
                events(["MPI_Comm_free comm=2", "MPI_Finalize"]),
            ]
            .concat()
        });
        // On four processes: 0 with 1, 2 with 3 in the rows, and 1 with 2, which are transposed.
        let name = if processes == 4 { "line 4" } else { "unknown" };
        assert_eq!(patterns(recording), [format!("{name} · 6"), format!("{name} · 66")]);
        // Sums over each row, and over all.
        let rows = processes * side.ilog2() as usize;
        assert_eq!(waits(recording), (66 * (rows + processes - side), 66 * side + 6));
    });
}

/// Who sends how many numbers to whom in each epoch of `irregular.c`, which draws the same ones in
/// every execution.
fn drawn(processes: usize, epochs: usize) -> Vec<Vec<Vec<usize>>> {
    let mut states: Vec<u32> = (0..processes).map(|rank| 12345 + rank as u32).collect();
    let draw = |state: &mut u32| {
        *state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        *state >> 16
    };
    let mut epoch = || {
        let mut all = vec![vec![0; processes]; processes];
        for rank in 0..processes {
            for peer in (0..processes).filter(|&peer| peer != rank) {
                if draw(&mut states[rank]).is_multiple_of(3) {
                    all[rank][peer] = 1 + draw(&mut states[rank]) as usize % 16;
                }
            }
        }
        all
    };
    (0..epochs).map(|_| epoch()).collect()
}

#[test]
fn an_irregular_program() {
    each("irregular.c", &["4", "9"], |recording, processes| {
        let sent = drawn(processes, 4);
        check_nests(recording, processes, |rank| {
            let epoch = |(epoch, sent): (usize, &Vec<Vec<usize>>)| {
                let peers = |count: &dyn Fn(usize) -> usize| -> Vec<(usize, usize)> {
                    (0..processes)
                        .map(|peer| (peer, 8 * count(peer)))
                        .filter(|&(_, bytes)| bytes > 0)
                        .collect()
                };
                let from = peers(&|peer| sent[peer][rank]);
                let to = peers(&|peer| sent[rank][peer]);
                let wait = json!(format!("MPI_Waitall n={}", from.len() + to.len()));
                let receives = from.iter().map(|&(peer, bytes)| irecv(peer, epoch, bytes, 0));
                let sends = to.iter().map(|&(peer, bytes)| isend(peer, epoch, bytes, 0));
                let step = receives.chain(sends).chain([wait]).collect();
                vec![json!("MPI_Alltoall bytes=4 comm=0"), times(9, step), json!("MPI_Barrier comm=0")]
            };
            [begin(), sent.iter().enumerate().flat_map(epoch).collect(), events(["MPI_Finalize"])].concat()
        });
        // The messages of each epoch are a pattern: in all of them, the processes that exchange
        // anything are connected. Parts of a pattern may occur in other epochs, too.
        let found = communication_patterns(recording, &[]);
        for sent in &sent {
            let channels = channels_of(sent);
            let is_of_epoch = |pattern: &&Value| pattern["channels"] == json!(channels);
            let pattern =
                found.iter().find(is_of_epoch).unwrap_or_else(|| panic!("{channels:?} in {found:#?}"));
            assert_eq!(pattern["count"].as_u64().unwrap() % 9, 0, "{pattern}");
        }
        let messages: usize = sent.iter().map(|sent| channels_of(sent).len()).sum();
        assert_eq!(waits(recording), (9 * messages, 8));
    });
}

/// Who sends to whom.
fn channels_of(sent: &[Vec<usize>]) -> Vec<[usize; 2]> {
    let pairs = |rank: usize| (0..sent.len()).map(move |peer| [rank, peer]);
    (0..sent.len()).flat_map(pairs).filter(|&[from, to]| sent[from][to] > 0).collect()
}

#[test]
fn partners_that_change_when_a_mesh_is_refined() {
    each("adaptive.c", &["6", "30", "5", "20"], |recording, processes| {
        // Which two distances come first to sixth.
        let distances = |refinement: usize| {
            let pairs = (1..processes).flat_map(|one| (1..processes).map(move |other| (one, other)));
            pairs.filter(|(one, other)| one != other).nth(refinement).unwrap()
        };
        let counts = [30, 5, 20, 10, 6, 5];
        check_nests(recording, processes, |rank| {
            let refinement = |(refinement, count): (usize, usize)| {
                let (one, other) = distances(refinement);
                let from = |distance: usize| (rank + processes - distance) % processes;
                let to = |distance: usize| (rank + distance) % processes;
                let step = vec![
                    irecv(from(one), 0, 8, 0),
                    irecv(from(other), 1, 8, 0),
                    isend(to(one), 0, 8, 0),
                    isend(to(other), 1, 8, 0),
                    json!("MPI_Waitall n=4"),
                ];
                [json!("MPI_Allreduce op=SUM bytes=8 comm=0"), times(count, step)]
            };
            let middle = counts.into_iter().enumerate().flat_map(refinement).collect();
            [begin(), middle, events(["MPI_Finalize"])].concat()
        });
        // Two distances are a ring only if they add up to the whole of it.
        let name = |refinement: usize| {
            let (one, other) = distances(refinement);
            if one + other == processes && one.min(other) == 1 {
                format!("ring {processes}")
            } else {
                "unknown".to_string()
            }
        };
        let mut wanted: Vec<String> =
            (0..6).map(|refinement| format!("{} · {}", name(refinement), counts[refinement])).collect();
        let mut found = patterns(recording);
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted, "one for each refinement, and no others");
        assert_eq!(waits(recording), (2 * processes * counts.iter().sum::<usize>(), 6));
    });
}

#[test]
fn exchanges_of_all_pairs() {
    each("allpairs.c", &["8", "1"], |recording, processes| {
        check_nests(recording, processes, |rank| {
            let pair = |distance: usize| {
                let (from, to) = ((rank + processes - distance) % processes, (rank + distance) % processes);
                [irecv(from, 0, 8, 0), isend(to, 0, 8, 0)]
            };
            let mut round: Nest = (1..processes).flat_map(pair).collect();
            round.push(json!(format!("MPI_Waitall n={}", 2 * (processes - 1))));
            round.push(json!("MPI_Allreduce op=SUM bytes=8 comm=0"));
            [begin(), vec![times(8, round)], events(["MPI_Finalize"])].concat()
        });
        assert_eq!(patterns(recording), [format!("all-to-all {processes} · 8")]);
        assert_eq!(waits(recording), (8 * processes * (processes - 1), 8));
    });
}

#[test]
fn a_weather_model_with_functions() {
    each("weather.c", &["10", "7", "4", "3"], |recording, processes| {
        let side = side_of(processes);
        check_nests(recording, processes, |rank| {
            let peers = neighbours(rank, side).into_iter().enumerate();
            let peers: Vec<_> = peers.filter_map(|(direction, peer)| Some((direction, peer?))).collect();
            let receives = peers.iter().map(|&(direction, peer)| irecv(peer, direction ^ 1, 8, 2));
            let sends = peers.iter().map(|&(direction, peer)| isend(peer, direction, 8, 2));
            let wait = json!(format!("MPI_Waitall n={}", 2 * peers.len()));
            let exchange: Nest = receives.chain(sends).chain([wait]).collect();
            let gather = json!("MPI_Gather root=0 bytes=4 comm=0");
            let output = vec![
                json!("MPI_Bcast root=0 bytes=8 comm=0"),
                gather.clone(),
                json!("MPI_Gatherv root=0 bytes=16 comm=0"),
            ];
            let input = [output.clone(), vec![gather, json!("MPI_Scatterv root=0 bytes=16 comm=0")]].concat();
            let solve =
                |body: Vec<Nest>| [events(["enter solve"]), body.concat(), events(["leave solve"])].concat();
            let with_input = solve(vec![vec![times(6, exchange.clone())], input, exchange.clone()]);
            let plain = [solve(vec![vec![times(7, exchange.clone())]]), output.clone()].concat();
            [
                make_grid(side),
                vec![times(2, events(["MPI_Cart_shift comm=2"]))],
                events(["enter start_domain"]),
                vec![times(4, exchange), times(3, output)],
                events(["leave start_domain"]),
                vec![times(2, vec![times(3, with_input), times(2, plain)])],
                events(["MPI_Comm_free comm=2", "MPI_Finalize"]),
            ]
            .concat()
        });
        let exchanges = 4 + 10 * 7;
        let found = communication_patterns(recording, &["--kind", "messages"]);
        assert_eq!(
            found.iter().map(summary).collect::<Vec<_>>(),
            [format!("mesh {side}x{side} · {exchanges}")]
        );
        let contexts = json!([
            { "function": "solve", "count": 70, "calls": 10 },
            { "function": "start_domain", "count": 4, "calls": 1 },
        ]);
        assert_eq!(found[0]["contexts"], contexts);
        assert_eq!(waits(recording).0, exchanges * 4 * side * (side - 1));
    });
}

#[test]
fn a_nest_from_the_command_line() {
    each("nest.c", &["2 ((3)^4 (1)^5 2)^6 #1"], |recording, processes| {
        check_nests(recording, processes, |rank| {
            let (next, previous) = ((rank + 1) % processes, (rank + processes - 1) % processes);
            let call = |tag: usize| sendrecv(&next.to_string(), &previous.to_string(), tag, 1);
            let calls = |tags: std::ops::Range<usize>| tags.map(call).collect::<Nest>();
            let body = [vec![times(4, calls(2..5)), times(5, calls(5..6))], calls(6..8)].concat();
            [begin(), calls(0..2), vec![times(6, body), call(1)], events(["MPI_Finalize"])].concat()
        });
        // Tags do not distinguish messages of a pattern.
        let count = 2 + 6 * (4 * 3 + 5 + 2) + 1;
        assert_eq!(patterns(recording), [format!("ring {processes} · {count}")]);
        assert_eq!(waits(recording), (count * processes, 0));
    });
}
