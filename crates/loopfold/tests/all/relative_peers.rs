//! Peers that are stored relative to the rank: reading gives the ranks back, on generated programs.

use loopfold::archive::{self, Archive, ReadConfig, SegmentWriter, WriteConfig};
use loopfold::fold::FoldBuilder;
use loopfold::folders::{Outermost, fold_trace};
use loopfold::mpi::RelativePeers;
use loopfold::trace::{Collector, Event, Field, Role, Sink, Timing, Value};
use loopfold::{Fold, Trace};
use loopfold_testing::Rng;
use std::io::Cursor;

/// A program of processes in some communicators: for each event the peer as it is, and as it is
/// stored.
struct Program {
    streams: Vec<Vec<Message>>,
    /// For each communicator, for each stream its rank and the size.
    comms: Vec<Vec<Option<(u32, u32)>>>,
}

#[derive(Clone)]
struct Message {
    comm: usize,
    ranks: Vec<i64>,
    is_send: bool,
}

fn program(rng: &mut Rng) -> Program {
    let size = 1 + rng.below(9);
    let mut comms = vec![(0..size).map(|rank| Some((rank as u32, size as u32))).collect::<Vec<_>>()];
    for _ in 0..rng.below(3) {
        // A split by a random color: ranks count within each color.
        let colors: Vec<usize> = (0..size).map(|_| rng.below(3)).collect();
        let place = |rank: usize| {
            let own = colors[..rank].iter().filter(|&&color| color == colors[rank]).count() as u32;
            let all = colors.iter().filter(|&&color| color == colors[rank]).count() as u32;
            (colors[rank] > 0).then_some((own, all))
        };
        comms.push((0..size).map(place).collect());
    }
    let step = 1 + rng.below(3) as i64;
    let streams = (0..size)
        .map(|stream| {
            let body: Vec<Message> = (0..1 + rng.below(4))
                .filter_map(|_| {
                    let comm = rng.below(comms.len());
                    let (own, size) = comms[comm][stream]?;
                    let rank = match rng.below(6) {
                        0 => -2,
                        // A number that was used again may have more members.
                        1 => i64::from(size) + 3,
                        _ => (i64::from(own) + step) % i64::from(size),
                    };
                    let ranks = if rng.below(4) == 0 { vec![rank, 0] } else { vec![rank] };
                    Some(Message { comm, ranks, is_send: rng.below(2) == 0 })
                })
                .collect();
            vec![body; 1 + rng.below(5)].concat()
        })
        .collect();
    Program { streams, comms }
}

impl Program {
    /// The trace, with peers as they are or as they are stored.
    fn trace(&self, is_stored: bool) -> Trace {
        let mut collector = Collector::default();
        for (rank, stream) in self.streams.iter().enumerate() {
            let id = collector.stream(&format!("rank {rank}")).unwrap();
            for (start, message) in stream.iter().enumerate() {
                let place = self.comms[message.comm][rank];
                let peer = |&peer: &i64| match (u32::try_from(peer), place) {
                    (Err(_), _) => "none".to_string(),
                    (Ok(peer), Some((own, size))) if is_stored && peer < size => {
                        RelativePeers::stored(own, size, peer).to_string()
                    }
                    (Ok(peer), _) => peer.to_string(),
                };
                let text = message.ranks.iter().map(peer).collect::<Vec<_>>().join(",");
                let value = text.parse().map_or(Value::Text(text.as_bytes()), Value::Integer);
                let comm = Value::Integer(message.comm as i64);
                let (role, key) = if message.is_send { (Role::Send, "dest") } else { (Role::Receive, "src") };
                let fields = [Field { key, value }, Field { key: "comm", value: comm }];
                let symbol = collector.intern(&Event { role, fields: &fields, ..Event::named("m") }).unwrap();
                let timing = Timing { start: Some(start as i64), ..Timing::UNKNOWN };
                collector.push(id, symbol, timing).unwrap();
            }
        }
        collector.finish().unwrap()
    }

    fn peers(&self, streams: std::ops::Range<usize>) -> RelativePeers {
        let mut peers = RelativePeers::default();
        for (comm, places) in self.comms.iter().enumerate() {
            for (index, stream) in streams.clone().enumerate() {
                if let Some((own, size)) = places[stream] {
                    peers.push(&comm.to_string(), index, own, size);
                }
            }
        }
        peers
    }
}

fn fold(trace: Trace) -> Fold {
    fold_trace(trace, &Outermost::default(), 1).unwrap()
}

/// The events of all streams, as text.
fn unfolded(fold: &Fold) -> Vec<(String, Vec<String>)> {
    let labels = |root| fold.unfold(root).map(|symbol| fold.alphabet().label(symbol)).collect();
    fold.streams().iter().map(|stream| (stream.name().raw().to_string(), labels(stream.root()))).collect()
}

#[test]
fn reading_gives_ranks_back() {
    let mut rng = Rng::new(16);
    for _ in 0..3000 {
        let program = program(&mut rng);
        let stored = fold(program.trace(true));
        let all = program.peers(0..program.streams.len());
        let mut file = Vec::new();
        archive::write_relative(&stored, &all, &mut file, &WriteConfig::new()).unwrap();
        let (read, _) = archive::read(Cursor::new(&file), &ReadConfig::new()).unwrap();
        let expected = fold(program.trace(false));
        assert_eq!(unfolded(&read), unfolded(&expected));
        for (one, other) in read.streams().iter().zip(expected.streams()) {
            assert_eq!(one.times(), other.times());
        }
        assert_eq!(read, read.canonical());
        // As it is stored, it is read as it was.
        let (again, peers) = archive::read_relative(Archive::open(Cursor::new(&file)).unwrap()).unwrap();
        assert_eq!((again.canonical(), &peers), (stored.canonical(), &all));
        for (comm, places) in program.comms.iter().enumerate() {
            for (stream, &place) in places.iter().enumerate() {
                assert_eq!(peers.place(&comm.to_string(), stream), place);
            }
        }
    }
}

#[test]
fn merging_equals_recording_together() {
    let mut rng = Rng::new(17);
    for _ in 0..500 {
        let program = program(&mut rng);
        let stored = fold(program.trace(true));
        let (mut builder, mut peers) = (FoldBuilder::default(), RelativePeers::default());
        for stream in 0..program.streams.len() {
            let one = stored.with_streams(|id| id.index() == stream);
            builder.join(&one).unwrap();
            peers.append(&program.peers(stream..stream + 1), stream, 1);
        }
        let restored = peers.absolute(&builder.finish()).unwrap();
        assert_eq!(unfolded(&restored), unfolded(&fold(program.trace(false))));
    }
}

#[test]
fn segments_with_relative_peers_are_joined() {
    let mut rng = Rng::new(18);
    for _ in 0..300 {
        let (program, more) = (program(&mut rng), rng.below(3));
        let mut writer = SegmentWriter::new(Vec::new()).unwrap();
        let peers = program.peers(0..program.streams.len());
        for _ in 0..=more {
            writer.relative_segment(&fold(program.trace(true)), &peers, &WriteConfig::new()).unwrap();
        }
        let file = writer.finish().unwrap();
        let (read, _) = archive::read(Cursor::new(file), &ReadConfig::new()).unwrap();
        for (one, (name, events)) in unfolded(&read).into_iter().zip(unfolded(&fold(program.trace(false)))) {
            assert_eq!(one, (name, vec![events; more + 1].concat()));
        }
    }
}

#[test]
fn damage_is_an_error() {
    let mut rng = Rng::new(19);
    for _ in 0..40 {
        let program = program(&mut rng);
        let mut file = Vec::new();
        let peers = program.peers(0..program.streams.len());
        archive::write_relative(&fold(program.trace(true)), &peers, &mut file, &WriteConfig::new()).unwrap();
        for place in 8..file.len() {
            for bit in [0, 3, 7] {
                let mut damaged = file.clone();
                damaged[place] ^= 1 << bit;
                // With checksums that fit, whatever it says is read or refused.
                archive::reseal(&mut damaged);
                let _ = archive::read(Cursor::new(damaged), &ReadConfig::new());
            }
        }
    }
}

#[test]
fn a_ring_of_many_ranks_is_one_rule() {
    let sizes: Vec<usize> = [4u32, 64, 1024]
        .into_iter()
        .map(|size| {
            let ranks = |rank: u32| vec![i64::from((rank + 1) % size)];
            let streams =
                (0..size).map(|rank| vec![Message { comm: 0, ranks: ranks(rank), is_send: true }; 50]);
            let comms = vec![(0..size).map(|rank| Some((rank, size))).collect()];
            let program = Program { streams: streams.collect(), comms };
            let mut stored = program.trace(true);
            stored.streams.iter_mut().for_each(|stream| stream.times = Default::default());
            let stored = fold(stored);
            assert_eq!(stored.rules().len(), 1);
            let mut file = Vec::new();
            archive::write_relative(
                &stored,
                &program.peers(0..size as usize),
                &mut file,
                &WriteConfig::new(),
            )
            .unwrap();
            file.len()
        })
        .collect();
    // What grows is the names of the streams: about a byte each.
    assert!(sizes[1] < sizes[0] + 100 && sizes[2] < sizes[0] + 1024, "{sizes:?}");
}
