//! Generated programs as folds.

use loopfold::trace::{Collector, Event, Field, Projection, Role, Sink, TimesKept, Value};
use loopfold::{Fold, folders};
use loopfold_testing::mpi::{Call, Program};
use loopfold_testing::mpi_loops::OwnComms;

fn push(collector: &mut Collector, stream: loopfold::StreamId, call: &Call) {
    let field = |key, value: u32| Field { key, value: Value::Integer(value.into()) };
    let (name, role, fields) = match *call {
        Call::Send(to, tag, bytes) => {
            ("MPI_Isend", Role::Send, vec![field("dest", to), field("tag", tag), field("bytes", bytes)])
        }
        Call::Receive(from, tag, bytes) => {
            ("MPI_Irecv", Role::Receive, vec![field("src", from), field("tag", tag), field("bytes", bytes)])
        }
        Call::Wait => ("MPI_Waitall", Role::Plain, vec![]),
        Call::Collective(name, root) => {
            (name, Role::Collective, root.map(|root| field("root", root)).into_iter().collect())
        }
        Call::Message(message) => {
            let role = match (message.to, message.from) {
                (Some(_), Some(_)) => Role::Plain,
                (Some(_), None) => Role::Send,
                _ => Role::Receive,
            };
            let fields = message.fields().into_iter();
            let fields = fields.map(|(key, value)| Field { key, value: Value::Integer(value.into()) });
            (message.name(), role, fields.collect())
        }
        Call::CollectiveOn(comm, name) => (name, Role::Collective, vec![field("comm", comm)]),
        Call::Enter(name) => (name, Role::Enter, vec![]),
        Call::Leave(name) => (name, Role::Leave, vec![]),
    };
    collector.push_event(stream, &Event { role, fields: &fields, ..Event::named(name) }).unwrap();
}

/// The calls of each process as a stream.
pub(crate) fn fold(program: &Program, folder: &dyn folders::Folder) -> Fold {
    fold_with(program, &vec![Vec::new(); program.len()], folder)
}

/// The same with communicators: for each process their numbers and members.
pub(crate) fn fold_with(program: &Program, comms: &[OwnComms], folder: &dyn folders::Folder) -> Fold {
    let mut collector = Collector::new(Projection::default(), TimesKept::None);
    for (rank, (calls, comms)) in program.iter().zip(comms).enumerate() {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        for (comm, members) in comms {
            let members: Vec<String> = members.iter().map(usize::to_string).collect();
            collector.describe(stream, &format!("comm {comm}"), &members.join(",")).unwrap();
        }
        calls.iter().for_each(|call| push(&mut collector, stream, call));
    }
    folders::fold_trace(collector.finish().unwrap(), folder, 1).unwrap()
}
