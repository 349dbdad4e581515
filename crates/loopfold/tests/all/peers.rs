//! Peers rewritten relative to the own rank and in grids, against what the generator of the
//! communication knows of every event; the same for traces, for folds and for both at once.

use crate::support::folders;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::folders::{Outermost, SequiturRuns, fold_trace};
use loopfold::mpi::{Grid, Peers};
use loopfold::questions::rule_sums::summarize;
use loopfold::trace::{Alphabet, Collector, Event, Field, Role, Sink, Timing, Value};
use loopfold::{Fold, Trace};
use loopfold_testing::{Rng, streams};
use std::collections::BTreeMap;

/// An event as text, and what it has to become.
#[derive(Clone)]
struct Line {
    text: String,
    rewritten: Option<String>,
}

fn same(text: impl Into<String>) -> Line {
    let text = text.into();
    Line { rewritten: Some(text.clone()), text }
}

/// Calls `then` with the event that a text such as `MPI_Send dest=1 comm=0` stands for.
fn with_event<T>(text: &str, then: impl FnOnce(&Event<'_>) -> T) -> T {
    let mut words = text.split(' ');
    let name = words.next().unwrap();
    let role = match name {
        "MPI_Send" => Role::Send,
        "MPI_Recv" => Role::Receive,
        "MPI_Bcast" => Role::Collective,
        _ => Role::Plain,
    };
    let field = |word: &'_ str| -> (String, String) {
        let (key, value) = word.split_once('=').unwrap();
        (key.to_string(), value.to_string())
    };
    let pairs: Vec<(String, String)> = words.map(field).collect();
    let value = |text: &'_ String| text.parse().ok();
    let fields: Vec<Field<'_>> = pairs
        .iter()
        .map(|(key, text)| Field {
            key,
            value: value(text).map_or(Value::Text(text.as_bytes()), Value::Integer),
        })
        .collect();
    then(&Event { role, fields: &fields, ..Event::named(name) })
}

type Notes = Vec<(String, String)>;

/// Streams by name, with notes.
struct Run {
    streams: Vec<(String, Notes, Vec<Line>)>,
}

impl Run {
    fn new(ranks: usize, lines: impl Fn(usize) -> Vec<String>) -> Self {
        let stream = |rank| (format!("rank {rank}"), Vec::new(), lines(rank).into_iter().map(same).collect());
        Self { streams: (0..ranks).map(stream).collect() }
    }

    fn trace_of(&self, chosen: impl Fn(usize) -> bool, rng: &mut Rng) -> Trace {
        let mut collector = Collector::default();
        for (index, (name, notes, lines)) in
            self.streams.iter().enumerate().filter(|&(index, _)| chosen(index))
        {
            let stream = collector.stream(name).unwrap();
            for (key, value) in notes {
                collector.describe(stream, key, value).unwrap();
            }
            let has_times = index % 3 != 0;
            for line in lines {
                let duration = has_times.then(|| rng.below(50) as i64);
                let symbol = with_event(&line.text, |event| collector.intern(event)).unwrap();
                collector.push(stream, symbol, Timing { duration, ..Timing::UNKNOWN }).unwrap();
            }
        }
        collector.finish().unwrap()
    }

    fn trace(&self) -> Trace {
        self.trace_of(|_| true, &mut Rng::new(1))
    }
}

type Labels = BTreeMap<String, Vec<String>>;

fn labels_of(trace: &Trace, folds: &[Fold]) -> Labels {
    let label = |alphabet: &Alphabet, symbol| alphabet.label(symbol);
    let in_trace = trace.streams.iter().map(|stream| {
        let labels = stream.symbols.iter().map(|&symbol| label(&trace.alphabet, symbol));
        (stream.name.clone(), labels.collect())
    });
    let in_folds = folds.iter().flat_map(|fold| fold.streams().iter().map(move |stream| (fold, stream)));
    let in_folds = in_folds.map(|(fold, stream)| {
        let labels = fold.unfold(stream.root()).map(|symbol| label(fold.alphabet(), symbol));
        (stream.name().raw().to_string(), labels.collect())
    });
    in_trace.chain(in_folds).collect()
}

/// A communicator that all ranks call by one name, though not all are in the same one.
#[derive(Clone)]
struct Comm {
    /// For each rank, who is with it, in order.
    members: Vec<Vec<usize>>,
    shape: Option<Vec<usize>>,
}

/// Ranks that make communicators and send messages in a pattern that all have in common.
fn random_run(rng: &mut Rng, peers: Peers) -> Run {
    let ranks = rng.between(2, 9);
    let mut lines: Vec<Vec<Line>> = vec![vec![same("MPI_Init")]; ranks];
    let world = Comm { members: vec![(0..ranks).collect(); ranks], shape: None };
    let mut comms = vec![world];
    for made in 1..=rng.below(4) {
        let parent = rng.below(comms.len());
        let is_copy = rng.one_in(3);
        let say: Vec<(i64, i64)> =
            (0..ranks).map(|_| (rng.below(3) as i64, rng.below(5) as i64 - 2)).collect();
        let of_rank = |rank: usize| {
            let everyone = &comms[parent].members[rank];
            let mut with = everyone.clone();
            if !is_copy {
                with.retain(|&other| say[other].0 == say[rank].0);
                with.sort_by_key(|&other| (say[other].1, everyone.iter().position(|&known| known == other)));
            }
            with
        };
        for (rank, lines) in lines.iter_mut().enumerate() {
            let (color, key) = say[rank];
            lines.push(same(match is_copy {
                true => format!("MPI_Comm_dup comm={parent} newcomm={made}"),
                false => format!("MPI_Comm_split comm={parent} color={color} key={key} newcomm={made}"),
            }));
        }
        comms.push(Comm { members: (0..ranks).map(of_rank).collect(), shape: None });
    }
    let mut notes = Vec::new();
    for (number, comm) in comms.iter_mut().enumerate() {
        let size = comm.members[0].len();
        if comm.members.iter().all(|members| members.len() == size) && !rng.one_in(3) {
            let rows = (1..=size).filter(|rows| size.is_multiple_of(*rows)).nth(rng.below(2)).unwrap_or(1);
            comm.shape = Some(vec![rows, size / rows]);
            // A periodic dimension has a test of its own.
            notes.push((format!("comm {number} shape"), format!("{rows}x{}", size / rows)));
        }
    }
    let templates: Vec<Template> = (0..4).map(|_| Template::random(rng, comms.len())).collect();
    for symbol in streams::small(rng, 40) {
        let template = &templates[symbol as usize % templates.len()];
        for (rank, lines) in lines.iter_mut().enumerate() {
            lines.push(template.line(rank, &comms, peers));
        }
    }
    let streams = lines.into_iter().enumerate();
    let mut streams: Vec<_> =
        streams.map(|(rank, lines)| (format!("rank {rank}"), Vec::new(), lines)).collect();
    streams[0].1 = notes;
    Run { streams }
}

/// What all ranks do at one place of the program.
struct Template {
    kind: usize,
    comm: usize,
    distance: usize,
    tag: usize,
}

impl Template {
    fn random(rng: &mut Rng, comms: usize) -> Self {
        Self { kind: rng.below(8), comm: rng.below(comms), distance: rng.below(4), tag: rng.below(2) }
    }

    fn line(&self, rank: usize, comms: &[Comm], peers: Peers) -> Line {
        let comm = &comms[self.comm];
        let members = &comm.members[rank];
        let own = members.iter().position(|&member| member == rank).unwrap();
        let peer = (own + self.distance) % members.len();
        let other = self.tag % members.len();
        let known = peers == Peers::Relative || comm.shape.is_some();
        let way = |to: usize| match (&comm.shape, peers) {
            (Some(shape), Peers::Cartesian) => {
                let (rows, columns) = (to / shape[1], to % shape[1]);
                let step = |to: usize, from: usize| match to as i64 - from as i64 {
                    0 => "0".to_string(),
                    step => format!("{step:+}"),
                };
                format!("({},{})", step(rows, own / shape[1]), step(columns, own % shape[1]))
            }
            _ => format!("{:+}", to as i64 - own as i64),
        };
        let envelope = format!("tag={} comm={}", self.tag, self.comm);
        let line = |text: String, rewritten: String| Line {
            text: format!("{text} {envelope}"),
            rewritten: known.then(|| format!("{rewritten} {envelope}")),
        };
        match self.kind {
            0 | 1 => line(format!("MPI_Send dest={peer}"), format!("MPI_Send dest={}", way(peer))),
            2 => line(format!("MPI_Recv src={peer}"), format!("MPI_Recv src={}", way(peer))),
            3 => line("MPI_Recv src=-1".into(), "MPI_Recv src=any".into()),
            4 => line("MPI_Send dest=-2".into(), "MPI_Send dest=none".into()),
            5 => line(
                format!("MPI_Sendrecv dest={peer} src={other}"),
                format!("MPI_Sendrecv dest={} src={}", way(peer), way(other)),
            ),
            6 => line(
                format!("MPI_Startall dest={peer},{other},MPI_PROC_NULL"),
                format!("MPI_Startall dest={},{},MPI_PROC_NULL", way(peer), way(other)),
            ),
            _ => same(format!("MPI_Bcast root={peer} {envelope}")),
        }
    }
}

#[track_caller]
fn check(run: &Run, labels: &Labels, context: &str) {
    for (name, _, lines) in &run.streams {
        assert_eq!(labels[name].len(), lines.len(), "{context}");
        for (line, label) in lines.iter().zip(&labels[name]) {
            // In a communicator that is not said to be a grid, messages may show one.
            if let Some(rewritten) = &line.rewritten {
                assert_eq!(label, rewritten, "{context}: {name}: {}", line.text);
            }
        }
    }
}

#[test]
fn every_peer_is_told_as_the_generator_knows_it() {
    let folders = folders();
    let (mut rewrite, mut inside) = (0, 0);
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let peers = if seed % 2 == 0 { Peers::Relative } else { Peers::Cartesian };
        let run = random_run(&mut rng, peers);
        let mut trace = run.trace();
        let Ok(report) = peers.apply(&mut trace, &mut []) else {
            assert_eq!(peers, Peers::Cartesian);
            continue;
        };
        rewrite += 1;
        inside += report.grids.iter().filter(|grid| !grid.is_inferred).count();
        assert_eq!((report.unplaced.len(), report.unclear.len()), (0, 0));
        check(&run, &labels_of(&trace, &[]), &format!("seed {seed}"));
        let folder = &*folders[seed as usize % folders.len()];
        let mut fold = [fold_trace(run.trace(), folder, 1).unwrap()];
        let again = peers.apply(&mut Trace::default(), &mut fold).unwrap();
        assert_eq!(again, report);
        let context = format!("seed {seed}, {}", folder.name());
        check(&run, &labels_of(&Trace::default(), &fold), &context);
        // Some of it in a trace, the rest in two folds: together they know who is who.
        let part = |which: usize| run.trace_of(|index| index % 3 == which, &mut Rng::new(1));
        let mut trace = part(0);
        let mut folds = [fold_trace(part(1), folder, 1).unwrap(), fold_trace(part(2), folder, 1).unwrap()];
        assert_eq!(peers.apply(&mut trace, &mut folds).unwrap(), report);
        check(&run, &labels_of(&trace, &folds), &context);
    }
    assert!(rewrite > 1000 && inside > 300, "{rewrite} {inside}");
}

#[test]
fn sums_are_those_of_the_fold_that_it_becomes() {
    let (mut kept, mut forgotten) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let run = random_run(&mut rng, Peers::Relative);
        let fold = fold_trace(run.trace(), &SequiturRuns, 1).unwrap();
        let mut related = [fold.clone()];
        Peers::Relative.apply(&mut Trace::default(), &mut related).unwrap();
        let expected = summarize(related[0].clone()).unwrap();
        let mut summed = [summarize(fold).unwrap()];
        Peers::Relative.apply(&mut Trace::default(), &mut summed).unwrap();
        let [summed] = summed;
        assert_eq!(summed.streams(), expected.streams(), "seed {seed}");
        let (Some(sums), Some(expected)) = (summed.rule_sums(), expected.rule_sums()) else {
            assert_eq!(summed.rule_sums().is_some(), expected.rule_sums().is_some());
            continue;
        };
        let durations = |sums: &loopfold::fold::RuleSums| sums.durations.clone().unwrap_or_default();
        for (ours, theirs) in durations(sums).iter().zip(durations(expected)) {
            kept += usize::from(ours.count > 0);
            forgotten += usize::from(ours.count == 0 && theirs.count > 0);
            assert!(ours.count == 0 || *ours == theirs, "seed {seed}: {ours:?} {theirs:?}");
        }
        for (place, spread) in &sums.loops {
            assert_eq!(expected.loops.get(place), Some(spread), "seed {seed}");
        }
    }
    // Rules that several ranks had in common cannot know whose sums were whose.
    assert!(kept > 1000 && forgotten > 0, "{kept} {forgotten}");
}

/// The lower and the upper sweep of LU over a grid of processes.
fn lu(rows: usize, columns: usize) -> Run {
    Run::new(rows * columns, |rank| {
        let (row, column) = (rank / columns, rank % columns);
        let neighbour = |up: usize, down: usize, left: usize, right: usize| {
            let (row, column) = ((row + up).checked_sub(down)?, (column + left).checked_sub(right)?);
            (row < rows && column < columns).then_some(row * columns + column)
        };
        let [north, south] = [neighbour(0, 1, 0, 0), neighbour(1, 0, 0, 0)];
        let [west, east] = [neighbour(0, 0, 0, 1), neighbour(0, 0, 1, 0)];
        let mut lines = vec!["MPI_Bcast root=0 comm=0".to_string()];
        for _ in 0..5 {
            for (from, to) in [([north, west], [south, east]), ([south, east], [north, west])] {
                for _ in 0..4 {
                    lines.extend(from.iter().flatten().map(|src| format!("MPI_Recv src={src} comm=0")));
                    lines.extend(to.iter().flatten().map(|dest| format!("MPI_Send dest={dest} comm=0")));
                }
            }
        }
        lines
    })
}

fn classes_of(run: &Run, peers: Peers) -> Vec<Vec<usize>> {
    let mut trace = run.trace();
    let streams = |fold: &Fold| -> Vec<Vec<usize>> {
        fold.classes()
            .unwrap()
            .into_iter()
            .map(|class| class.streams.iter().map(|stream| stream.index()).collect())
            .collect()
    };
    let mut fold = [fold_trace(trace.clone(), &SequiturRuns, 1).unwrap()];
    peers.apply(&mut trace, &mut []).unwrap();
    let found = streams(&fold_trace(trace, &Outermost::default(), 1).unwrap());
    peers.apply(&mut Trace::default(), &mut fold).unwrap();
    assert_eq!(streams(&fold[0]), found);
    found
}

#[test]
fn ranks_of_a_sweep_are_alike_by_their_place() {
    let run = lu(4, 4);
    assert_eq!(classes_of(&run, Peers::Absolute).len(), 16);
    let by_place: [&[usize]; 9] =
        [&[0], &[1, 2], &[3], &[4, 8], &[5, 6, 9, 10], &[7, 11], &[12], &[13, 14], &[15]];
    for peers in [Peers::Relative, Peers::Cartesian] {
        assert_eq!(classes_of(&run, peers), by_place);
    }
    let mut trace = lu(3, 5).trace();
    let rewrite = Peers::Cartesian.apply(&mut trace, &mut []).unwrap();
    let grid = &rewrite.grids[0];
    assert_eq!((grid.grid.to_string().as_str(), grid.is_inferred, rewrite.grids.len()), ("3x5", true, 1));
    let labels = labels_of(&trace, &[]);
    assert_eq!(labels["rank 6"][1..3], ["MPI_Recv src=(-1,0) comm=0", "MPI_Recv src=(0,-1) comm=0"]);
}

#[test]
fn a_ring_is_one_class_in_its_grid() {
    for ranks in [3, 4, 7, 16] {
        let ring = Run::new(ranks, |rank| {
            let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            vec![format!("MPI_Send dest={next} tag=1"), format!("MPI_Recv src={last} tag=1")]
        });
        assert_eq!(classes_of(&ring, Peers::Cartesian).len(), 1, "{ranks}");
        assert_eq!(classes_of(&ring, Peers::Relative).len(), 3, "{ranks}");
    }
    // A torus with a side of two, and a hypercube.
    let torus = Run::new(8, |rank| {
        let around = rank / 4 * 4 + (rank + 1) % 4;
        vec![format!("MPI_Send dest={around}"), format!("MPI_Send dest={}", rank ^ 4)]
    });
    assert_eq!(classes_of(&torus, Peers::Cartesian).len(), 1);
    let cube = Run::new(16, |rank| (0..4).map(|bit| format!("MPI_Send dest={}", rank ^ 1 << bit)).collect());
    assert_eq!(classes_of(&cube, Peers::Cartesian).len(), 1);
}

#[test]
fn rows_have_ranks_of_their_own() {
    // Each row of 4 is a ring of its own, reversed by its key.
    let run = Run::new(12, |rank| {
        let (row, own) = (rank / 4, 3 - rank % 4);
        vec![
            format!("MPI_Comm_split comm=0 color={row} key={} newcomm=1", -(rank as i64)),
            "MPI_Comm_dup comm=1 newcomm=2".to_string(),
            format!("MPI_Send dest={} comm=2", (own + 1) % 4),
        ]
    });
    let mut trace = run.trace();
    let rewrite = Peers::Cartesian.apply(&mut trace, &mut []).unwrap();
    assert_eq!((rewrite.grids.len(), rewrite.grids[0].grid.to_string().as_str()), (1, "4p"));
    let labels = labels_of(&trace, &[]);
    assert!(labels.values().all(|labels| labels[2] == "MPI_Send dest=(+1) comm=2"), "{labels:?}");
    let mut fold = [fold_trace(run.trace(), &SequiturRuns, 1).unwrap()];
    Peers::Relative.apply(&mut Trace::default(), &mut fold).unwrap();
    let labels = labels_of(&Trace::default(), &fold);
    let last = |rank: usize| labels[&format!("rank {rank}")][2].as_str();
    assert_eq!((last(0), last(3), last(4)), ("MPI_Send dest=-3 comm=2", "MPI_Send dest=+1 comm=2", last(0)));
}

#[test]
fn a_grid_may_be_made_by_a_call_or_be_noted() {
    let made = Run::new(6, |rank| {
        vec![
            "MPI_Cart_create comm=0 dims=2x3 periods=1x1 newcomm=1".to_string(),
            format!("MPI_Send dest={} comm=1", (rank + 3) % 6),
            format!("MPI_Send dest={} comm=0", (rank + 3) % 6),
            format!("MPI_Send dest={} comm=1", rank / 3 * 3 + (rank + 2) % 3),
        ]
    });
    let mut trace = made.trace();
    let rewrite = Peers::Cartesian.apply(&mut trace, &mut []).unwrap();
    assert_eq!(rewrite.without_grid, ["0"]);
    let grid = Grid::parse("2px3p").unwrap();
    assert_eq!((&rewrite.grids[0].grid, rewrite.grids[0].is_inferred), (&grid, false));
    let labels = labels_of(&trace, &[]);
    assert_eq!(labels["rank 4"][1..3], ["MPI_Send dest=(+1,0) comm=1", "MPI_Send dest=-3 comm=0"]);
    assert_eq!(labels["rank 3"][3], "MPI_Send dest=(0,-1) comm=1");
}

#[test]
fn without_a_grid_the_error_says_what_to_do() {
    let star = Run::new(9, |rank| vec![format!("MPI_Send dest={}", if rank == 0 { 5 } else { 0 })]);
    let mut trace = star.trace();
    let error = Peers::Cartesian.apply(&mut trace, &mut []).unwrap_err().to_string();
    assert!(error.contains("grid") && error.contains("relative"), "{error}");
    assert_eq!(trace, star.trace());
    let none = Run::new(2, |_| vec!["MPI_Bcast root=1".to_string()]);
    let mut trace = none.trace();
    assert!(!Peers::Cartesian.apply(&mut trace, &mut []).unwrap().has_messages);
    assert_eq!(labels_of(&trace, &[])["rank 0"], ["MPI_Bcast root=1"]);
}

#[test]
fn what_is_relative_already_stays() {
    let mut trace = lu(2, 3).trace();
    Peers::Relative.apply(&mut trace, &mut []).unwrap();
    assert_eq!(Peers::noted(&trace.streams[0].notes), Peers::Relative);
    let mut fold = [fold_trace(trace.clone(), &SequiturRuns, 1).unwrap()];
    let once = (trace.clone(), fold[0].canonical());
    Peers::Relative.apply(&mut trace, &mut fold).unwrap();
    assert_eq!((trace, fold[0].canonical()), once);
    let error = Peers::Cartesian.apply(&mut Trace::default(), &mut fold).unwrap_err().to_string();
    assert!(error.contains("rank 0") && error.contains("relative already"), "{error}");
}

#[test]
fn who_is_not_known_is_told() {
    let run = Run::new(3, |rank| {
        let mut lines =
            vec!["MPI_Comm_create comm=0 newcomm=7".to_string(), "MPI_Send dest=2 comm=7".to_string()];
        lines.extend((rank == 1).then(|| "MPI_Send dest=0 comm=8".to_string()));
        lines
    });
    let mut run = run;
    run.streams[1].1.push(("comm 8".into(), "0,2".into()));
    let mut trace = run.trace();
    let rewrite = Peers::Relative.apply(&mut trace, &mut []).unwrap();
    assert_eq!((rewrite.unclear, rewrite.unplaced), (vec!["7".to_string()], vec!["8".to_string()]));
    let labels = labels_of(&trace, &[]);
    assert_eq!(labels["rank 1"][1..], ["MPI_Send dest=+1 comm=7", "MPI_Send dest=0 comm=8"]);
}

#[test]
fn whatever_an_archive_claims_there_is_an_end() {
    let mut alphabet = Alphabet::default();
    let mut symbol = |text: &str| with_event(text, |event| alphabet.intern(event, None)).unwrap();
    let [split, send] =
        [symbol("MPI_Comm_split color=1 newcomm=0 comm=0"), symbol("MPI_Send dest=4000000000 comm=0")];
    let mut builder = FoldBuilder::new(alphabet);
    let inner = builder.rule(&[Item::new(Target::Symbol(split), 1 << 20), Item::once(send)]).unwrap();
    let root = builder.rule(&[Item::new(Target::Rule(inner), 1 << 40), Item::once(send)]).unwrap();
    let sends = builder.rule(&[Item::once(split), Item::new(Target::Symbol(send), 1 << 58)]).unwrap();
    builder.stream(FoldedStream::new("rank 3", "x", sends));
    for name in ["rank 4294967295", "rank 4000000", "rank 7", "rank 7 thread 1", "GPU"] {
        let mut notes = vec![("comm 0 shape".to_string(), "65535x65537".to_string())];
        let many = |number| (format!("comm {number}"), format!("{number}-4000000"));
        notes.extend((1..1000).map(many));
        builder.stream(FoldedStream::new(name, "x", root).with_notes(notes));
    }
    let fold = builder.finish();
    for peers in [Peers::Relative, Peers::Cartesian] {
        let mut folds = [fold.clone()];
        let rewrite = peers.apply(&mut Trace::default(), &mut folds);
        assert_eq!(folds[0].events(), fold.events());
        assert_eq!(rewrite.is_ok(), peers == Peers::Relative);
    }
}
