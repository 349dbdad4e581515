//! Numbers of communicators that are used again: messages find the partners that the program
//! that made them knows of.

use crate::support::{id, outermost};
use loopfold::folders::{self, Folder};
use loopfold::mpi::with_unique_communicators;
use loopfold::questions::communication::{Partners, Processes};
use loopfold::questions::patterns::{EventChoice, MemoryBudget};
use loopfold::trace::{Collector, Event, Field, Role, Sink as _, Value};
use loopfold::{Fold, StreamId};
use loopfold_testing::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Split { comm: usize, color: i64, key: i64, made: Option<usize> },
    Free(usize),
    Send { comm: usize, to: usize },
    Receive { comm: usize, from: usize },
}

/// A communicator: its number and its members, in their order.
#[derive(Clone, Debug)]
struct Comm {
    number: usize,
    members: Vec<usize>,
}

/// A program that splits and frees communicators. A call gives the smallest number that none of
/// its processes uses, as MPI libraries do.
#[derive(Debug, Default)]
struct Program {
    steps: Vec<Vec<Step>>,
    /// Positions of the ends of messages among all messages of a process.
    partners: BTreeSet<[(usize, u64); 2]>,
    live: Vec<Comm>,
}

impl Program {
    fn random(rng: &mut Rng) -> Self {
        let size = rng.between(2, 6);
        let world = Comm { number: 0, members: (0..size).collect() };
        let mut program = Self { steps: vec![Vec::new(); size], live: vec![world], ..Self::default() };
        for _ in 0..rng.between(6, 30) {
            let at = rng.below(program.live.len());
            match rng.below(4) {
                0 | 1 => program.split(at, rng),
                2 if at > 0 => program.free(at),
                _ => program.exchange(at, rng),
            }
        }
        if rng.one_in(2) {
            // A loop whose iterations all begin with the world alone.
            while program.live.len() > 1 {
                program.free(program.live.len() - 1);
            }
            program.repeat(rng.between(2, 4));
        }
        program
    }

    fn split(&mut self, at: usize, rng: &mut Rng) {
        let parent = self.live[at].clone();
        let is_concerned = |comm: &&Comm| comm.members.iter().any(|member| parent.members.contains(member));
        let taken: BTreeSet<usize> = self.live.iter().filter(is_concerned).map(|comm| comm.number).collect();
        let number = (1..).find(|number| !taken.contains(number)).unwrap();
        let mut groups: BTreeMap<i64, Vec<(i64, usize, usize)>> = BTreeMap::new();
        for (order, &rank) in parent.members.iter().enumerate() {
            let (color, key) = (rng.below(3) as i64 - 1, rng.below(3) as i64);
            let made = (color >= 0).then_some(number);
            self.steps[rank].push(Step::Split { comm: parent.number, color, key, made });
            groups.entry(color).or_default().push((key, order, rank));
        }
        groups.remove(&-1);
        for (_, mut group) in groups {
            group.sort_unstable();
            let members = group.into_iter().map(|(_, _, rank)| rank).collect();
            self.live.push(Comm { number, members });
        }
    }

    fn free(&mut self, at: usize) {
        let comm = self.live.remove(at);
        comm.members.iter().for_each(|&rank| self.steps[rank].push(Step::Free(comm.number)));
    }

    /// Messages between members, which are all sent before they are received.
    fn exchange(&mut self, at: usize, rng: &mut Rng) {
        let comm = self.live[at].clone();
        let size = comm.members.len();
        let mut received: Vec<VecDeque<(usize, usize, u64)>> = vec![VecDeque::new(); size];
        for _ in 0..rng.between(1, 6) {
            let (from, to) = (rng.below(size), rng.below(size));
            let sent = self.messages(comm.members[from]);
            self.steps[comm.members[from]].push(Step::Send { comm: comm.number, to });
            received[to].push_back((from, comm.members[from], sent));
        }
        for (to, received) in received.into_iter().enumerate() {
            let rank = comm.members[to];
            for (from, sender, sent) in received {
                let position = self.messages(rank);
                self.steps[rank].push(Step::Receive { comm: comm.number, from });
                self.partners.insert([(sender, sent), (rank, position)]);
            }
        }
    }

    /// How many messages a process has sent and received so far.
    fn messages(&self, rank: usize) -> u64 {
        let is_message = |step: &&Step| matches!(step, Step::Send { .. } | Step::Receive { .. });
        self.steps[rank].iter().filter(is_message).count() as u64
    }

    fn repeat(&mut self, times: usize) {
        let once: Vec<u64> = (0..self.steps.len()).map(|rank| self.messages(rank)).collect();
        let partners = std::mem::take(&mut self.partners);
        for time in 0..times as u64 {
            let later = |(rank, position): (usize, u64)| (rank, position + time * once[rank]);
            self.partners.extend(partners.iter().map(|pair| pair.map(later)));
        }
        self.steps.iter_mut().for_each(|steps| *steps = steps.repeat(times));
    }

    fn fold(&self, folder: &dyn Folder) -> Fold {
        let mut collector = Collector::default();
        for (rank, steps) in self.steps.iter().enumerate() {
            let stream = collector.stream(&format!("rank {rank}")).unwrap();
            steps.iter().for_each(|step| push(&mut collector, stream, *step));
        }
        folders::fold_trace(collector.finish().unwrap(), folder, 1).unwrap()
    }
}

fn push(collector: &mut Collector, stream: StreamId, step: Step) {
    let number = |key, number: usize| Field { key, value: Value::Integer(number as i64) };
    let (name, role, fields) = match step {
        Step::Split { comm, color, key, made } => {
            let key = Field { key: "key", value: Value::Integer(key) };
            let color = Field { key: "color", value: Value::Integer(color) };
            let made = made.map(|made| number("newcomm", made));
            let fields = [number("comm", comm), color, key].into_iter().chain(made).collect();
            ("MPI_Comm_split", Role::default(), fields)
        }
        Step::Free(comm) => ("MPI_Comm_free", Role::default(), vec![number("comm", comm)]),
        Step::Send { comm, to } => ("MPI_Send", Role::Send, vec![number("dest", to), number("comm", comm)]),
        Step::Receive { comm, from } => {
            ("MPI_Recv", Role::Receive, vec![number("src", from), number("comm", comm)])
        }
    };
    collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(name) }).unwrap();
}

/// The partners that are found.
fn found(program: &Program, fold: &Fold) -> BTreeSet<[(usize, u64); 2]> {
    let budget = MemoryBudget::default();
    let processes = Processes::of(fold, &EventChoice::default(), budget, &outermost).unwrap();
    let partners = Partners::of(&processes).unwrap();
    let mut found = BTreeSet::new();
    for (rank, steps) in program.steps.iter().enumerate() {
        let messages = steps.iter().filter(|step| matches!(step, Step::Send { .. } | Step::Receive { .. }));
        for (position, step) in (0..).zip(messages) {
            let others = partners.of_event(&processes, id(rank), position);
            let others = others.into_iter().map(|(stream, at)| (stream.index(), at));
            found.extend(others.map(|other| match step {
                Step::Send { .. } => [(rank, position), other],
                _ => [other, (rank, position)],
            }));
        }
    }
    found
}

#[test]
fn messages_find_their_partners_in_thousands_of_programs() {
    let mut rng = Rng::new(71);
    let folders = crate::support::folders();
    let (mut with_reuse, mut wrong_otherwise) = (0, 0);
    for round in 0..3000 {
        let program = Program::random(&mut rng);
        let fold = program.fold(&*folders[round % folders.len()]);
        let lengths = |fold: &Fold| -> Vec<u64> {
            fold.streams().iter().map(|stream| fold.length(stream.root())).collect()
        };
        let before = (lengths(&fold), found(&program, &fold));
        let (fold, reused) = with_unique_communicators(fold).unwrap();
        assert_eq!(lengths(&fold), before.0);
        assert_eq!(found(&program, &fold), program.partners, "{program:?}");
        with_reuse += usize::from(!reused.is_empty());
        wrong_otherwise += usize::from(before.1 != program.partners);
        // What is unique stays.
        let (_, again) = with_unique_communicators(fold).unwrap();
        assert!(again.is_empty(), "{program:?}");
    }
    assert!(with_reuse > 500 && wrong_otherwise > 200, "{with_reuse} {wrong_otherwise}");
}

/// Splits of four processes into rows, then into columns, of the same number; some processes
/// end before the second.
fn rows_and_columns(ended: &[usize]) -> Program {
    let mut program = Program { steps: vec![Vec::new(); 4], ..Program::default() };
    for rank in 0..4 {
        for color in [rank / 2, rank % 2] {
            if color == rank % 2 && ended.contains(&rank) && !program.steps[rank].is_empty() {
                continue;
            }
            let other = if program.steps[rank].is_empty() { 1 - rank % 2 } else { 1 - rank / 2 };
            let color = color as i64;
            program.steps[rank].push(Step::Split { comm: 0, color, key: 0, made: Some(1) });
            program.steps[rank].push(Step::Send { comm: 1, to: other });
            program.steps[rank].push(Step::Receive { comm: 1, from: other });
            program.steps[rank].push(Step::Free(1));
        }
    }
    program
}

#[test]
fn the_later_communicator_has_another_name() {
    let program = rows_and_columns(&[]);
    let (fold, reused) = with_unique_communicators(program.fold(&folders::SequiturRuns)).unwrap();
    assert_eq!(reused, ["1"]);
    let labels: Vec<String> =
        fold.unfold(fold.streams()[1].root()).map(|symbol| fold.alphabet().label(symbol)).collect();
    assert_eq!(
        labels,
        [
            "MPI_Comm_split comm=0 color=0 key=0 newcomm=1",
            "MPI_Send dest=0 comm=1",
            "MPI_Recv src=0 comm=1",
            "MPI_Comm_free comm=1",
            "MPI_Comm_split comm=0 color=1 key=0 newcomm=1.3",
            "MPI_Send dest=1 comm=1.3",
            "MPI_Recv src=1 comm=1.3",
            "MPI_Comm_free comm=1.3",
        ]
    );
}

#[test]
fn a_process_that_ends_early_is_not_waited_for() {
    let program = rows_and_columns(&[3]);
    let (fold, reused) = with_unique_communicators(program.fold(&folders::SequiturRuns)).unwrap();
    assert_eq!(reused, ["1"]);
    // Rows are whole, and the columns of those that are still there.
    let pairs = |first: usize, second: usize, position: u64| {
        [[(first, position), (second, position + 1)], [(second, position), (first, position + 1)]]
    };
    let expected: BTreeSet<_> =
        [pairs(0, 1, 0), pairs(2, 3, 0), pairs(0, 2, 2)].into_iter().flatten().collect();
    assert_eq!(found(&program, &fold), expected);
}
