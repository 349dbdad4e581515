//! Programs that send each other messages, as the calls of each of their processes.

use crate::Rng;

/// A call of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// A message to a process, with a tag and bytes.
    Send(u32, u32, u32),
    /// A message from a process.
    Receive(u32, u32, u32),
    /// Any other call that says nothing of partners.
    Wait,
    /// A collective operation of all, with a root or not.
    Collective(&'static str, Option<u32>),
    /// A message on a communicator that is sent, received, or both at once.
    Message(Message),
    /// A collective operation of the members of a communicator.
    CollectiveOn(u32, &'static str),
    /// A function is entered.
    Enter(&'static str),
    /// A function is left.
    Leave(&'static str),
}

/// What a call sends and receives on a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// The communicator; 0 is that of all processes.
    pub comm: u32,
    /// Where a message goes to.
    pub to: Option<Envelope>,
    /// Where one comes from.
    pub from: Option<Envelope>,
}

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Envelope {
    /// The rank in the communicator, [`ANY`] or [`NOBODY`].
    pub peer: i32,
    /// The tag, or [`ANY`].
    pub tag: i32,
}

/// Whoever sends, or whatever the tag is.
pub const ANY: i32 = -1;
/// No process at all, as `MPI_PROC_NULL`.
pub const NOBODY: i32 = -2;

impl Message {
    /// How such a call is named.
    pub fn name(&self) -> &'static str {
        match (self.to, self.from) {
            (Some(_), Some(_)) => "MPI_Sendrecv",
            (Some(_), None) => "MPI_Isend",
            _ => "MPI_Irecv",
        }
    }

    /// Its fields.
    pub fn fields(&self) -> Vec<(&'static str, i32)> {
        let mut fields = Vec::new();
        if let Some(Envelope { peer, tag }) = self.to {
            fields.extend([("dest", peer), ("tag", tag)]);
        }
        if let Some(Envelope { peer, tag }) = self.from {
            let key = if self.to.is_some() { "recvtag" } else { "tag" };
            fields.extend([("src", peer), (key, tag)]);
        }
        fields.push(("comm", self.comm as i32));
        fields
    }
}

impl Call {
    /// The call as a line of text.
    pub fn text(&self) -> String {
        match *self {
            Call::Send(to, tag, bytes) => format!("MPI_Isend dest={to} tag={tag} bytes={bytes} comm=0"),
            Call::Receive(from, tag, bytes) => format!("MPI_Irecv src={from} tag={tag} bytes={bytes} comm=0"),
            Call::Wait => "MPI_Waitall n=2".to_string(),
            Call::Collective(name, Some(root)) => format!("{name} root={root} bytes=8 comm=0"),
            Call::Collective(name, None) => format!("{name} bytes=8 comm=0"),
            Call::Message(message) => {
                let fields = message.fields().into_iter().map(|(key, value)| format!(" {key}={value}"));
                format!("{}{}", message.name(), fields.collect::<String>())
            }
            Call::CollectiveOn(comm, name) => format!("{name} bytes=8 comm={comm}"),
            Call::Enter(name) => format!("enter {name}"),
            Call::Leave(name) => format!("leave {name}"),
        }
    }
}

/// What each process does.
pub type Program = Vec<Vec<Call>>;

/// Appends `times` copies of what one iteration does.
pub fn repeat(program: &mut Program, round: &Program, times: usize) {
    for (calls, round) in program.iter_mut().zip(round) {
        (0..times).for_each(|_| calls.extend_from_slice(round));
    }
}

/// A program of random loops over random rounds, in which all that is sent is received.
pub fn random(rng: &mut Rng, processes: usize) -> Program {
    let mut program = vec![Vec::new(); processes];
    for _ in 0..rng.between(1, 4) {
        let mut body = vec![Vec::new(); processes];
        for _ in 0..rng.between(1, 3) {
            let round = random_round(rng, processes);
            let times = if rng.one_in(2) { rng.between(2, 6) } else { 1 };
            repeat(&mut body, &round, times);
        }
        repeat(&mut program, &body, rng.between(1, 5));
    }
    program
}

fn random_round(rng: &mut Rng, processes: usize) -> Program {
    let mut round = vec![Vec::new(); processes];
    if rng.one_in(4) {
        let root = rng.one_in(2).then(|| rng.below(processes) as u32);
        let name = if root.is_some() { "MPI_Bcast" } else { "MPI_Barrier" };
        round.iter_mut().for_each(|calls| calls.push(Call::Collective(name, root)));
    }
    for _ in 0..rng.between(1, 4) {
        let (from, to) = (rng.below(processes), rng.below(processes));
        if from == to {
            continue;
        }
        let (tag, bytes) = (rng.below(2) as u32, 8 << rng.below(2));
        round[from].push(Call::Send(to as u32, tag, bytes));
        if rng.one_in(2) {
            round[to].push(Call::Receive(from as u32, tag, bytes));
        } else {
            round[to].insert(0, Call::Receive(from as u32, tag, bytes));
        }
        if rng.one_in(3) {
            round[to].push(Call::Wait);
        }
    }
    round
}

/// A call: a process, and a position among its calls.
pub type Place = (usize, usize);

/// The sends and receives of a program, one by one: who has received what; then the sends and
/// the receives that are left over.
pub fn partners(program: &Program) -> (Vec<[Place; 2]>, Vec<Place>, Vec<Place>) {
    let (mut pairs, mut unreceived) = (Vec::new(), Vec::new());
    let mut is_taken: Vec<Vec<bool>> = program.iter().map(|calls| vec![false; calls.len()]).collect();
    for (from, calls) in program.iter().enumerate() {
        for (at, call) in calls.iter().enumerate() {
            let Call::Send(to, tag, _) = *call else { continue };
            let to = to as usize;
            let fits = |call: &Call| matches!(*call, Call::Receive(source, t, _) if (source as usize, t) == (from, tag));
            // A process that is not there receives nothing.
            let calls = program.get(to).map_or(0, Vec::len);
            let found = (0..calls).find(|&other| !is_taken[to][other] && fits(&program[to][other]));
            match found {
                Some(other) => {
                    is_taken[to][other] = true;
                    pairs.push([(from, at), (to, other)]);
                }
                None => unreceived.push((from, at)),
            }
        }
    }
    let mut unsent = Vec::new();
    for (process, calls) in program.iter().enumerate() {
        for (at, call) in calls.iter().enumerate() {
            if matches!(call, Call::Receive(..)) && !is_taken[process][at] {
                unsent.push((process, at));
            }
        }
    }
    (pairs, unreceived, unsent)
}

/// As SP of the NAS benchmarks does with four processes: 24 messages for each process once,
/// then repeatedly after a barrier, and half of them at the end.
pub fn sp(times: usize) -> Program {
    let mut faces = vec![Vec::new(); 4];
    let mut sweeps = vec![Vec::new(); 4];
    for (process, (faces, sweeps)) in faces.iter_mut().zip(&mut sweeps).enumerate() {
        let others = [process ^ 1, process ^ 2, process ^ 3].map(|other| other as u32);
        for (axis, other) in (1u32..).zip(others) {
            faces.extend(
                [2 * axis + 1, 2 * axis]
                    .map(|tag| Call::Receive(other, 1000 * (tag ^ (process as u32 & 1)), 81920)),
            );
        }
        for (axis, other) in (1u32..).zip(others) {
            let own = process as u32 & 1;
            faces.extend([2 * axis, 2 * axis + 1].map(|tag| Call::Send(other, 1000 * (tag ^ own), 81920)));
        }
        faces.push(Call::Wait);
        for other in others {
            for bytes in [169_136, 76_880] {
                sweeps.extend([Call::Send(other, 0, bytes), Call::Receive(other, 0, bytes), Call::Wait]);
            }
        }
    }
    let mut program = vec![vec![Call::Collective("MPI_Bcast", Some(0)); 4]; 4];
    let mut round = faces.clone();
    repeat(&mut round, &sweeps, 1);
    repeat(&mut program, &round, 1);
    repeat(&mut program, &vec![vec![Call::Collective("MPI_Barrier", None)]; 4], 1);
    repeat(&mut program, &round, times);
    repeat(&mut program, &faces, 1);
    repeat(&mut program, &vec![vec![Call::Collective("MPI_Allreduce", None)]; 4], 1);
    program
}

/// As LU of the NAS benchmarks does on a grid: in every iteration two sweeps over the
/// planes, from the first corner to the last one and back, and an exchange with all neighbours.
pub fn lu(rows: usize, columns: usize, planes: usize, times: usize) -> Program {
    let size = rows * columns;
    let (mut down, mut up, mut exchange) =
        (vec![Vec::new(); size], vec![Vec::new(); size], vec![Vec::new(); size]);
    for process in 0..size {
        let (row, column) = (process / columns, process % columns);
        let north = (row > 0).then(|| (process - columns) as u32);
        let south = (row + 1 < rows).then(|| (process + columns) as u32);
        let west = (column > 0).then(|| (process - 1) as u32);
        let east = (column + 1 < columns).then(|| (process + 1) as u32);
        let messages = |peers: [(Option<u32>, u32); 2], call: fn(u32, u32, u32) -> Call, bytes| {
            peers.into_iter().filter_map(move |(peer, tag)| peer.map(|peer| call(peer, tag, bytes)))
        };
        down[process].extend(messages([(north, 2), (west, 4)], Call::Receive, 320));
        down[process].extend(messages([(south, 2), (east, 4)], Call::Send, 320));
        up[process].extend(messages([(south, 1), (east, 3)], Call::Receive, 320));
        up[process].extend(messages([(north, 1), (west, 3)], Call::Send, 320));
        for (from, to, tag) in [(north, south, 2), (south, north, 1), (west, east, 4), (east, west, 3)] {
            exchange[process].extend(from.map(|from| Call::Receive(from, tag, 21_120)));
            exchange[process].extend(to.map(|to| Call::Send(to, tag, 21_120)));
            exchange[process].extend(from.map(|_| Call::Wait));
        }
    }
    let mut round = vec![Vec::new(); size];
    repeat(&mut round, &down, planes);
    repeat(&mut round, &up, planes);
    repeat(&mut round, &exchange, 1);
    let mut program = vec![vec![Call::Collective("MPI_Bcast", Some(0))]; size];
    repeat(&mut program, &exchange, 1);
    repeat(&mut program, &round, times);
    repeat(&mut program, &vec![vec![Call::Collective("MPI_Allreduce", None)]; size], 1);
    program
}

/// As the paper's weather model does on a grid: an exchange with all neighbours, in two
/// functions, and two patterns of collective operations, the one 60 times and the other,
/// which begins as the first does, 116 times.
pub fn weather(rows: usize, columns: usize, exchanges: usize) -> Program {
    let size = rows * columns;
    let all = |calls: &[Call]| vec![calls.to_vec(); size];
    let mut exchange = vec![Vec::new(); size];
    for (process, calls) in exchange.iter_mut().enumerate() {
        let (row, column) = (process / columns, process % columns);
        let mut neighbours = Vec::new();
        if row > 0 {
            neighbours.push((process - columns) as u32);
        }
        if row + 1 < rows {
            neighbours.push((process + columns) as u32);
        }
        if column > 0 {
            neighbours.push((process - 1) as u32);
        }
        if column + 1 < columns {
            neighbours.push((process + 1) as u32);
        }
        calls.extend(neighbours.iter().map(|&from| Call::Receive(from, 1, 4096)));
        calls.extend(neighbours.iter().map(|&to| Call::Send(to, 1, 4096)));
        calls.push(Call::Wait);
    }
    let short = ["MPI_Bcast", "MPI_Gather", "MPI_Gatherv"].map(|name| Call::Collective(name, Some(1)));
    let long = ["MPI_Gather", "MPI_Scatterv"].map(|name| Call::Collective(name, Some(1)));
    let long = [&short[..], &long[..]].concat();
    let (barrier, sum) = (Call::Collective("MPI_Barrier", None), Call::Collective("MPI_Allreduce", None));
    let mut program = all(&[Call::Enter("START_DOMAIN_EM")]);
    let (first, steps) = (exchanges / 351, 100);
    repeat(&mut program, &exchange, first);
    repeat(&mut program, &all(&[Call::Leave("START_DOMAIN_EM")]), 1);
    repeat(&mut program, &all(&long), 20);
    repeat(&mut program, &all(&[barrier]), 1);
    repeat(&mut program, &all(&short), 50);
    repeat(&mut program, &all(&[sum]), 1);
    let in_steps = exchanges - first;
    for step in 0..steps {
        repeat(&mut program, &all(&[Call::Enter("SOLVE_EM")]), 1);
        repeat(&mut program, &exchange, in_steps * (step + 1) / steps - in_steps * step / steps);
        repeat(&mut program, &all(&[Call::Leave("SOLVE_EM")]), 1);
    }
    repeat(&mut program, &all(&long), 40);
    repeat(&mut program, &all(&[sum]), 1);
    repeat(&mut program, &all(&short), 66);
    repeat(&mut program, &all(&[barrier]), 1);
    program
}

/// As the paper's adaptive mesh does: rounds in phases of bounded length, each phase one
/// of many patterns, and each pattern messages between random pairs of neighbours.
pub fn adaptive(processes: usize, patterns: usize, rounds: usize, phase: usize, seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let kinds: Vec<Program> = (0..patterns).map(|_| random_exchange(&mut rng, processes)).collect();
    let mut program = vec![Vec::new(); processes];
    let mut left = rounds;
    while left > 0 {
        let times = rng.between(1, phase).min(left);
        repeat(&mut program, favourite(&mut rng, &kinds), times);
        left -= times;
    }
    program
}

/// The same patterns in an order without any.
pub fn shuffled(processes: usize, patterns: usize, rounds: usize, seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let kinds: Vec<Program> = (0..patterns).map(|_| random_exchange(&mut rng, processes)).collect();
    let mut program = vec![Vec::new(); processes];
    (0..rounds).for_each(|_| repeat(&mut program, favourite(&mut rng, &kinds), 1));
    program
}

/// Some are far more frequent than others.
fn favourite<'a>(rng: &mut Rng, kinds: &'a [Program]) -> &'a Program {
    &kinds[rng.below(kinds.len()).min(rng.below(kinds.len()))]
}

fn random_exchange(rng: &mut Rng, processes: usize) -> Program {
    let mut round = vec![Vec::new(); processes];
    for process in 0..processes {
        for _ in 0..rng.between(1, 3) {
            let other = (process + rng.between(1, 5)) % processes;
            if other != process {
                round[process].push(Call::Send(other as u32, 7, 24));
                round[other].push(Call::Receive(process as u32, 7, 24));
            }
        }
    }
    round
}
