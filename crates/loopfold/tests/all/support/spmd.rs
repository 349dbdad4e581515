//! Generated programs of one text for all processes, as folds.

use loopfold::folders::{Folder, fold_trace};
use loopfold::questions::logical::{LogicalCursor, LogicalTrace};
use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
use loopfold::{Fold, Symbol};
use loopfold_testing::spmd::{NOBODY, SpmdCall};

/// The calls of each process as a stream.
pub fn fold(programs: &[Vec<SpmdCall>], folder: &dyn Folder) -> Fold {
    let mut collector = Collector::default();
    for (rank, calls) in programs.iter().enumerate() {
        let stream = collector.stream(&format!("rank {rank}")).unwrap();
        for call in calls {
            let field = |&(key, value): &(&'static str, i64)| match (key, value) {
                ("dest" | "src", NOBODY) => Field { key, value: Value::Text(b"none") },
                _ => Field { key, value: Value::Integer(value) },
            };
            let fields: Vec<Field<'_>> = call.fields.iter().map(field).collect();
            let role = match call.name {
                "MPI_Send" | "MPI_Isend" => Role::Send,
                "MPI_Recv" | "MPI_Irecv" => Role::Receive,
                "MPI_Allreduce" | "MPI_Bcast" | "MPI_Barrier" => Role::Collective,
                _ => Role::Plain,
            };
            collector
                .push_event(stream, &Event { role, fields: &fields, ..Event::named(call.name) })
                .unwrap();
        }
    }
    fold_trace(collector.finish().unwrap(), folder, 1).unwrap()
}

/// The stream of every process that a logical trace stands for, by its definition.
pub fn unfolded(logical: &LogicalTrace, fold: &Fold) -> Vec<Vec<Symbol>> {
    let mut streams = vec![Vec::new(); fold.streams().len()];
    for part in &logical.parts {
        for id in &part.streams {
            let events = LogicalCursor::new(&part.nodes, &logical.places, id.index());
            let symbol = |event: &loopfold::questions::logical::LogicalEvent| {
                event.symbol(fold.alphabet(), &logical.places, id.index()).expect("an event of the fold")
            };
            streams[id.index()] = events.map(symbol).collect();
        }
    }
    streams
}

/// Fails unless a logical trace unfolds to every stream of the fold.
pub fn check(logical: &LogicalTrace, fold: &Fold) {
    logical.verify(fold).unwrap();
    for (symbols, stream) in unfolded(logical, fold).iter().zip(fold.streams()) {
        assert!(
            fold.unfold(stream.root()).eq(symbols.iter().copied()),
            "{}\n{logical}",
            stream.name().terminal()
        );
    }
}
