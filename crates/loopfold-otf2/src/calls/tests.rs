#![allow(clippy::unwrap_used)]

use super::*;
use crate::kinds::Kind;
use loopfold::Symbol;
use loopfold::trace::Collector;
use loopfold_sources::{Context, Options};

const MAIN: u32 = 0;
const SOLVE: u32 = 1;
const IRECV: u32 = 2;
const WAIT: u32 = 3;
const SEND: u32 = 4;
const START: u32 = 5;
const IBCAST: u32 = 6;

fn definitions() -> Definitions {
    let names = ["main", "solve", "MPI_Irecv", "MPI_Waitall", "MPI_Send", "MPI_Startall", "MPI_Ibcast"];
    let mut definitions = Definitions::default();
    definitions.clock(1_000_000_000, 0);
    for (id, name) in (0..).zip(names) {
        definitions.string(id, name.as_bytes());
        definitions.region(id, id, if name.starts_with("MPI_") { 4 } else { 1 });
    }
    definitions
}

fn message(peer: u32) -> Message {
    Message { peer, comm: 0, tag: 7, bytes: 8 }
}

fn inside(region: u32, records: &[Record]) -> Vec<Record> {
    [&[Record::Enter(region)], records, &[Record::Leave(region)]].concat()
}

/// What each kind is called.
fn labels(kinds: &[Kind]) -> Vec<String> {
    let (mut collector, options) = (Collector::default(), Options::default());
    let mut context = Context::new(&options, &mut collector, "test", false);
    let symbols: Vec<Symbol> = kinds.iter().map(|kind| kind.intern(&mut context).unwrap()).collect();
    let alphabet = collector.finish().unwrap().alphabet;
    symbols.into_iter().map(|symbol| alphabet.label(symbol)).collect()
}

/// The events of records, one tick apart, as text, and what was odd.
fn emitted(records: &[Record], wanted: &Wanted) -> (Vec<String>, Vec<EncodedEvent>, Oddities) {
    let definitions = definitions();
    let kinds = Rc::default();
    let mut calls = Calls::new(&definitions, wanted, Rc::clone(&kinds));
    for (time, &record) in (0..).zip(records) {
        calls.record(time, record);
    }
    let odd = calls.finish();
    let events = calls.take_events();
    let labels = labels(&kinds.borrow_mut().take_new(&definitions));
    let names = events.iter().map(|event| labels[event.kind as usize].clone()).collect();
    (names, events, odd)
}

#[track_caller]
fn check(records: &[Vec<Record>], expected: &[&str]) -> Oddities {
    let (names, _, odd) = emitted(&records.concat(), &Wanted::default());
    assert_eq!(names, expected);
    odd
}

#[test]
fn a_receive_has_the_fields_of_its_completion() {
    let odd = check(
        &[
            inside(MAIN, &[]),
            inside(IRECV, &[Record::Request(1)]),
            inside(IRECV, &[Record::Request(2)]),
            inside(SEND, &[Record::Send(message(5))]),
            inside(WAIT, &[Record::Irecv(message(4), 2), Record::IsendComplete(90)]),
            inside(WAIT, &[Record::Irecv(message(3), 1)]),
        ],
        &[
            "enter main",
            "leave main",
            "MPI_Irecv src=3 tag=7 bytes=8 comm=0",
            "MPI_Irecv src=4 tag=7 bytes=8 comm=0",
            "MPI_Send dest=5 tag=7 bytes=8 comm=0",
            "MPI_Waitall n=2 done=1",
            "MPI_Waitall n=1",
        ],
    );
    assert_eq!((odd.mpi_calls, odd.unfinished_requests, odd.open_calls), (5, 0, 0));
}

#[test]
fn times_are_those_of_the_call() {
    let records =
        [inside(IRECV, &[Record::Request(1)]), inside(WAIT, &[Record::Irecv(message(4), 1)])].concat();
    let (_, events, _) = emitted(&records, &Wanted::default());
    let times: Vec<(i64, i64)> = events.iter().map(|event| (event.start, event.duration)).collect();
    assert_eq!(times, [(0, 2), (3, 2)]);
}

#[test]
fn what_takes_too_long_belongs_to_the_call_that_completes_it() {
    let mut records = inside(IRECV, &[Record::Request(1)]);
    for _ in 0..MOST_HELD {
        records.extend(inside(SEND, &[Record::Send(message(5))]));
    }
    records.extend(inside(WAIT, &[Record::Irecv(message(3), 1)]));
    let (names, _, odd) = emitted(&records, &Wanted::default());
    assert_eq!(names.len(), MOST_HELD + 2);
    assert_eq!(names[0], "MPI_Irecv");
    assert_eq!(names.last().unwrap(), "MPI_Waitall src=3 tag=7 bytes=8 comm=0 n=1");
    assert_eq!(odd.unfinished_requests, 0);
}

#[test]
fn several_messages_of_a_call_are_lists() {
    check(
        &[
            inside(
                START,
                &[
                    Record::Isend(message(1), 10 + 1),
                    Record::Request(1),
                    Record::Request(2),
                    Record::Isend(message(2), 10 + 2),
                ],
            ),
            inside(WAIT, &[Record::Irecv(message(8), 2), Record::Irecv(message(9), 1)]),
        ],
        &[
            "MPI_Startall dest=1,2 tag=7 bytes=8 src=9,8 recvtag=7 recvbytes=8 comm=0 n=2",
            "MPI_Waitall n=2 done=2,3",
        ],
    );
}

#[test]
fn nonblocking_collectives_wait_as_well() {
    let bcast = Collective { operation: 1, comm: 3, root: 2, sent: 0, received: 40 };
    check(
        &[
            inside(IBCAST, &[Record::Request(5)]),
            inside(WAIT, &[Record::CollectiveComplete(bcast, 5)]),
            vec![Record::Collective(bcast)],
        ],
        &["MPI_Ibcast root=2 bytes=40 comm=3", "MPI_Waitall n=1", "MPI_Bcast root=2 bytes=40 comm=3"],
    );
}

#[test]
fn records_outside_of_calls_are_events() {
    check(
        &[
            vec![Record::Send(message(1)), Record::Receive(message(2)), Record::Isend(message(3), 10 + 3)],
            vec![Record::Request(1), Record::IsendComplete(90), Record::Irecv(message(4), 1)],
            vec![Record::Irecv(message(5), 99), Record::Test, Record::Nothing],
        ],
        &[
            "MPI_Send dest=1 tag=7 bytes=8 comm=0",
            "MPI_Recv src=2 tag=7 bytes=8 comm=0",
            "MPI_Isend dest=3 tag=7 bytes=8 comm=0",
            "MPI_Irecv src=4 tag=7 bytes=8 comm=0",
            "MPI_Irecv src=5 tag=7 bytes=8 comm=0",
        ],
    );
}

#[test]
fn a_location_may_begin_and_end_anywhere() {
    let odd = check(
        &[
            vec![Record::Leave(SOLVE), Record::Leave(SEND), Record::Enter(MAIN), Record::Enter(SOLVE)],
            vec![Record::Enter(SOLVE), Record::Leave(MAIN), Record::Enter(MAIN), Record::Enter(SEND)],
            vec![Record::Send(message(1)), Record::Unknown],
        ],
        &[
            "leave solve",
            "enter main",
            "enter solve caller=main",
            "enter solve caller=solve",
            "leave solve",
            "leave solve",
            "leave main",
            "enter main",
            "MPI_Send dest=1 tag=7 bytes=8 comm=0",
        ],
    );
    assert_eq!(
        (odd.unmatched_returns, odd.abandoned_calls, odd.open_calls, odd.unknown_records),
        (2, 2, 2, 1)
    );
}

#[test]
fn regions_are_chosen_by_name() {
    let records = [
        vec![Record::Enter(MAIN), Record::Enter(SOLVE)],
        inside(IRECV, &[Record::Request(1)]),
        inside(WAIT, &[Record::Irecv(message(2), 1)]),
        inside(SEND, &[Record::Send(message(5))]),
        vec![Record::Leave(SOLVE), Record::Leave(MAIN)],
    ]
    .concat();
    let with = |mpi_only, regions: &[&str], caller| {
        let regions: Vec<String> = regions.iter().map(ToString::to_string).collect();
        emitted(&records, &Wanted { mpi_only, regions: Globs::new(&regions), caller, sizes: false }).0
    };
    let receive = "MPI_Irecv src=2 tag=7 bytes=8 comm=0";
    let send = "MPI_Send dest=5 tag=7 bytes=8 comm=0";
    assert_eq!(with(true, &[], false), [receive, "MPI_Waitall n=1", send]);
    assert_eq!(with(true, &["MPI_*send", "*Send"], false), [send]);
    // A completion that nobody asked for belongs to no call that is wanted.
    assert_eq!(
        with(false, &["so?ve", "MPI_Wait*"], false),
        ["enter solve", "MPI_Waitall n=1", "leave solve"]
    );
    assert_eq!(with(true, &["MPI_Send"], true), [format!("{send} caller=solve")]);
}

#[test]
fn buffers_of_collectives_are_those_of_one_process() {
    let of = |operation, ranks| {
        buffer_of(&Collective { operation, comm: 0, root: 0, sent: 160, received: 40 }, ranks)
    };
    assert_eq!(of(0, Some(4)), None);
    assert_eq!(of(1, Some(4)), Some(40));
    assert_eq!(of(11, Some(4)), Some(40));
    assert_eq!(of(11, Some(7)), Some(160));
    assert_eq!(of(11, None), Some(160));
    assert_eq!(of(12, Some(4)), Some(160));
    assert_eq!(of(200, Some(4)), Some(160));
}

#[test]
fn requests_that_are_not_the_oldest_are_listed() {
    let isend = |request| inside(SEND, &[Record::Isend(message(5), request)]);
    check(
        &[
            inside(IRECV, &[Record::Request(1)]),
            isend(2),
            inside(IRECV, &[Record::Request(3)]),
            inside(IRECV, &[Record::Request(4)]),
            // The oldest two in another order, then the newest, then what is left.
            inside(WAIT, &[Record::IsendComplete(2), Record::Irecv(message(7), 1)]),
            inside(WAIT, &[Record::Irecv(message(9), 4)]),
            inside(WAIT, &[Record::Irecv(message(8), 3)]),
            isend(5),
            isend(6),
            isend(7),
            isend(8),
            inside(WAIT, &[Record::IsendComplete(7), Record::IsendComplete(5)]),
            // One that nobody has posted.
            inside(WAIT, &[Record::IsendComplete(99)]),
            inside(WAIT, &[Record::IsendComplete(6), Record::IsendComplete(8)]),
            inside(WAIT, &[Record::IsendComplete(98)]),
        ],
        &[
            "MPI_Irecv src=7 tag=7 bytes=8 comm=0",
            "MPI_Send dest=5 tag=7 bytes=8 comm=0",
            "MPI_Irecv src=8 tag=7 bytes=8 comm=0",
            "MPI_Irecv src=9 tag=7 bytes=8 comm=0",
            "MPI_Waitall n=2",
            "MPI_Waitall n=1 done=1",
            "MPI_Waitall n=1",
            "MPI_Send dest=5 tag=7 bytes=8 comm=0",
            "MPI_Send dest=5 tag=7 bytes=8 comm=0",
            "MPI_Send dest=5 tag=7 bytes=8 comm=0",
            "MPI_Send dest=5 tag=7 bytes=8 comm=0",
            "MPI_Waitall n=2 done=0,2",
            "MPI_Waitall n=1 done=none",
            "MPI_Waitall n=2",
            "MPI_Waitall n=1",
        ],
    );
}
