//! Skeletons of task farms: shortened as the scale says, and whoever is fast, they end.

use crate::support::outermost;
use loopfold::Fold;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::questions::logical::Token;
use loopfold::skeleton::{Config, Scale, Skeleton, Wildcards, with_open_receives};
use loopfold::trace::{Collector, Event, Field, Role, Sink as _, Value};
use loopfold_testing::Rng;

/// A call of blocking communication. Ranks are those of the world.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Send { to: Peer, tag: i64 },
    Receive { from: Peer, tag: Option<i64> },
    Probe { from: Peer, tag: Option<i64> },
    Barrier,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Peer {
    Rank(usize),
    Anyone,
    /// The sender of the last message from anyone.
    Sender,
}

const RESULT: i64 = 1;
const TASK: i64 = 2;
const STOP: i64 = 3;

/// How a farm works.
#[derive(Clone, Debug)]
struct Farm {
    workers: usize,
    tasks: usize,
    replies: usize,
    is_probed: bool,
    /// Whether the last replies have a tag of their own, and workers receive any.
    has_stop: bool,
    has_barriers: bool,
}

impl Farm {
    fn random(rng: &mut Rng) -> Self {
        let replies = rng.below(3);
        Self {
            workers: rng.between(2, 6),
            tasks: rng.between(60, 300),
            replies,
            is_probed: rng.one_in(2),
            has_stop: replies > 0 && rng.one_in(2),
            has_barriers: rng.one_in(2),
        }
    }

    /// The events of an execution in which the workers ask in an order by chance; the master is
    /// rank 0. Without replies, workers send as many results as they happen to.
    fn execution(&self, rng: &mut Rng) -> Vec<Vec<Recorded>> {
        // Some are faster than others.
        self.execution_by(|working| rng.below(working).min(rng.below(working)))
    }

    /// The same in an order by choice among those that work.
    fn execution_by(&self, mut choose: impl FnMut(usize) -> usize) -> Vec<Vec<Recorded>> {
        let mut streams = vec![Vec::new(); self.workers + 1];
        let mut working: Vec<usize> = (1..=self.workers).collect();
        if self.has_barriers {
            streams.iter_mut().for_each(|stream| stream.push(Recorded::barrier()));
        }
        let mut left = self.tasks;
        while !working.is_empty() {
            let place = choose(working.len());
            let worker = working[place];
            streams[worker].push(Recorded::send(0, RESULT));
            if self.is_probed {
                streams[0].push(Recorded::receive("MPI_Probe", "from", worker, RESULT, Some("src,tag")));
            }
            let any = if self.is_probed { None } else { Some("src,tag") };
            streams[0].push(Recorded::receive("MPI_Recv", "src", worker, RESULT, any));
            let is_last = left == 0;
            for _ in 0..self.replies {
                let tag = if is_last && self.has_stop { STOP } else { TASK };
                streams[0].push(Recorded::send(worker, tag));
                let any = self.has_stop.then_some("tag");
                streams[worker].push(Recorded::receive("MPI_Recv", "src", 0, tag, any));
            }
            left = left.saturating_sub(1);
            if is_last {
                working.remove(place);
            }
        }
        if self.has_barriers {
            streams.iter_mut().for_each(|stream| stream.push(Recorded::barrier()));
        }
        streams
    }
}

/// An event as the recorder writes it.
#[derive(Clone, Debug)]
struct Recorded {
    name: &'static str,
    role: Role,
    peer: Option<(&'static str, usize)>,
    tag: i64,
    any: Option<&'static str>,
}

impl Recorded {
    fn send(to: usize, tag: i64) -> Self {
        Self { name: "MPI_Send", role: Role::Send, peer: Some(("dest", to)), tag, any: None }
    }

    fn receive(
        name: &'static str,
        key: &'static str,
        from: usize,
        tag: i64,
        any: Option<&'static str>,
    ) -> Self {
        let role = if key == "src" { Role::Receive } else { Role::Plain };
        Self { name, role, peer: Some((key, from)), tag, any }
    }

    fn barrier() -> Self {
        Self { name: "MPI_Barrier", role: Role::Collective, peer: None, tag: 0, any: None }
    }
}

fn fold(streams: &[Vec<Recorded>]) -> Fold {
    let mut collector = Collector::default();
    for (rank, events) in streams.iter().enumerate() {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        for event in events {
            let mut fields = Vec::new();
            if let Some((key, peer)) = event.peer {
                fields.push(Field { key, value: Value::Integer(peer as i64) });
                fields.push(Field { key: "tag", value: Value::Integer(event.tag) });
                fields.push(Field { key: "bytes", value: Value::Integer(8) });
            }
            fields.push(Field { key: "comm", value: Value::Integer(0) });
            fields.extend(event.any.map(|any| Field { key: "any", value: Value::Text(any.as_bytes()) }));
            let event = Event { role: event.role, fields: &fields, ..Event::named(event.name) };
            collector.push_event(stream, &event).unwrap();
        }
    }
    fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
}

/// What the processes of a skeleton call.
fn calls(skeleton: &Skeleton) -> Vec<Vec<Call>> {
    let call = |call: loopfold::skeleton::ReplayedCall| {
        let get = |wanted: &str| call.fields.iter().find(|(key, _)| key == wanted).map(|(_, all)| &all[0]);
        let peer = |key: &str| match get(key).unwrap() {
            Token::Number(rank) => Peer::Rank(*rank as usize),
            Token::Word(word) if **word == *b"anyone" => Peer::Anyone,
            Token::Word(word) if **word == *b"sender" => Peer::Sender,
            other => panic!("{other}"),
        };
        let tag = || match get("tag").unwrap() {
            Token::Number(tag) => Some(*tag),
            Token::Word(_) => None,
        };
        match call.name.as_str() {
            "MPI_Send" => Call::Send { to: peer("dest"), tag: tag().unwrap() },
            "MPI_Recv" => Call::Receive { from: peer("src"), tag: tag() },
            "MPI_Probe" => Call::Probe { from: peer("from"), tag: tag() },
            "MPI_Barrier" => Call::Barrier,
            other => panic!("{other}"),
        }
    };
    (0..skeleton.ranks).map(|process| skeleton.calls_of(process).map(call).collect()).collect()
}

/// Executes calls in an order by chance; sends wait for their receives. Returns the number of
/// messages, or who waits for ever.
fn execute(programs: &[Vec<Call>], rng: &mut Rng) -> Result<usize, String> {
    let mut next = vec![0; programs.len()];
    let mut senders = vec![usize::MAX; programs.len()];
    let mut messages = 0;
    loop {
        let current = |process: usize, next: &[usize]| programs[process].get(next[process]).cloned();
        if (0..programs.len()).all(|process| current(process, &next).is_none()) {
            return Ok(messages);
        }
        if (0..programs.len()).all(|process| current(process, &next) == Some(Call::Barrier)) {
            next.iter_mut().for_each(|next| *next += 1);
            continue;
        }
        // Who can receive, and from whom.
        let mut possible = Vec::new();
        for receiver in 0..programs.len() {
            let (from, tag) = match current(receiver, &next) {
                Some(Call::Receive { from, tag } | Call::Probe { from, tag }) => (from, tag),
                _ => continue,
            };
            for sender in 0..programs.len() {
                let Some(Call::Send { to, tag: sent }) = current(sender, &next) else { continue };
                let to = match to {
                    Peer::Rank(rank) => rank,
                    _ => senders[sender],
                };
                let fits = match from {
                    Peer::Rank(rank) => rank == sender,
                    Peer::Anyone => true,
                    Peer::Sender => senders[receiver] == sender,
                };
                if to == receiver && fits && tag.is_none_or(|tag| tag == sent) {
                    possible.push((receiver, sender, from));
                }
            }
        }
        if possible.is_empty() {
            return Err(format!("stuck at {next:?}"));
        }
        let (receiver, sender, from) = possible[rng.below(possible.len())];
        if from == Peer::Anyone {
            senders[receiver] = sender;
        }
        let is_probe = matches!(current(receiver, &next), Some(Call::Probe { .. }));
        next[receiver] += 1;
        if !is_probe {
            next[sender] += 1;
            messages += 1;
        }
    }
}

fn config(below: u64) -> Config {
    Config::new().scale(Scale { above: 1, below })
}

#[test]
fn farms_are_shortened_and_end_in_every_order() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let farm = Farm::random(&mut rng);
        let recorded = fold(&farm.execution(&mut rng));
        for below in [3, 10] {
            let skeleton = Skeleton::of(&recorded, &outermost, &config(below)).unwrap();
            let (whole, here) = skeleton.calls;
            // Each worker keeps at least an iteration, and what is outside of the loops stays.
            let most = whole as f64 / below as f64 + 10.0 * (farm.workers + 1) as f64;
            assert!((here as f64) < most, "{seed}: {here} of {whole} calls, {farm:?}");
            let calls = calls(&skeleton);
            let messages =
                execute(&calls, &mut rng).unwrap_or_else(|stuck| panic!("{seed} {farm:?}: {stuck}"));
            for _ in 0..5 {
                assert_eq!(execute(&calls, &mut rng), Ok(messages), "{seed} {farm:?}");
            }
        }
        // As long as the recording: all that was sent is sent.
        let open = config(1).wildcards(Some(Wildcards::Open));
        let open = Skeleton::of(&recorded, &outermost, &open).unwrap();
        assert_eq!(open.calls.0, open.calls.1);
        assert!(open.text.contains("MPI_ANY_SOURCE"), "{}", open.text);
        assert_eq!(
            open.text.contains("last.MPI_SOURCE"),
            farm.replies > 0 || farm.is_probed,
            "{}",
            open.text
        );
        let sent = open.calls_of(0).chain((1..open.ranks).flat_map(|rank| open.calls_of(rank)));
        let sent = sent.filter(|call| call.name == "MPI_Send").count();
        assert_eq!(execute(&calls(&open), &mut rng), Ok(sent), "{seed} {farm:?}");
    }
}

/// The farm of the tests below: replies of one tag, in an order by chance.
fn usual() -> (Farm, Vec<Vec<Recorded>>) {
    let farm =
        Farm { workers: 3, tasks: 200, replies: 1, is_probed: false, has_stop: false, has_barriers: false };
    let streams = farm.execution(&mut Rng::new(7));
    (farm, streams)
}

#[test]
fn every_worker_keeps_its_share() {
    let (_, streams) = usual();
    let counts: Vec<f64> = streams[1..].iter().map(|stream| stream.len() as f64 / 2.0).collect();
    let skeleton = Skeleton::of(&fold(&streams), &outermost, &config(10)).unwrap();
    for (worker, count) in (1..).zip(counts) {
        let left = skeleton.calls_of(worker).count() as f64 / 2.0;
        assert!((left - count / 10.0).abs() <= 1.5, "worker {worker}: {left} of {count}");
    }
    assert!(skeleton.notes.iter().any(|note| note.contains("from anyone again")), "{:?}", skeleton.notes);
}

/// One worker after the other has a few dozen tasks in a row, as when processes share a core: that
/// is written with few loops, none of which has a counterpart of as many iterations.
#[test]
fn workers_may_take_turns() {
    let (farm, _) = usual();
    let mut rng = Rng::new(3);
    let (mut chosen, mut left) = (0, 0);
    let streams = farm.execution_by(|working| {
        if left == 0 {
            (chosen, left) = (rng.below(working), rng.between(20, 60));
        }
        left -= 1;
        chosen.min(working - 1)
    });
    let skeleton = Skeleton::of(&fold(&streams), &outermost, &config(10)).unwrap();
    let (whole, here) = skeleton.calls;
    assert!(here < whole / 5, "{here} of {whole}");
    let calls = calls(&skeleton);
    for _ in 0..5 {
        execute(&calls, &mut rng).unwrap();
    }
}

/// Whether a skeleton at 1/10 of these streams has most of their calls: in the recorded order,
/// only what repeats by chance is shorter.
fn stays_whole(streams: &[Vec<Recorded>]) -> bool {
    let skeleton = Skeleton::of(&fold(streams), &outermost, &config(10)).unwrap();
    let calls = calls(&skeleton);
    assert!(calls.iter().flatten().all(|call| !matches!(call, Call::Receive { from: Peer::Anyone, .. })));
    execute(&calls, &mut Rng::new(1)).unwrap();
    skeleton.calls.0 < 2 * skeleton.calls.1
}

#[test]
fn what_depends_on_the_order_stays_as_recorded() {
    let (_, streams) = usual();
    // Replies whose tags differ, and are received by their tags.
    let last = streams[0].last().unwrap().peer.unwrap().1;
    let mut by_tag = streams.clone();
    by_tag[0].last_mut().unwrap().tag = STOP;
    by_tag[last].last_mut().unwrap().tag = STOP;
    assert!(stays_whole(&by_tag));
    // Messages without a reply: who does not get one depends on the order.
    let mut without = streams.clone();
    without[0].pop();
    without[last].pop();
    assert!(stays_whole(&without));
    // A receive that is posted, so that it is not known when its message comes.
    let mut posted = streams.clone();
    posted[0][0].name = "MPI_Irecv";
    assert!(with_open_receives(&fold(&streams), &outermost).unwrap().is_some());
    assert!(with_open_receives(&fold(&posted), &outermost).unwrap().is_none());
    // A receive from a certain worker among the others.
    let mut certain = streams;
    let place = certain[0].len() - 2;
    certain[0][place].any = None;
    assert!(stays_whole(&certain));
}
