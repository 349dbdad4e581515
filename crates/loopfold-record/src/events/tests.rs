//! Records of several threads, of requests that are freed or given up, and of numbers of
//! communicators that are used again.
#![allow(clippy::unwrap_used)]

use super::requests::MOST_PENDING;
use super::*;

/// A decoder, and the time of its next record.
struct Process {
    decoder: Decoder,
    time: i64,
    events: HashMap<usize, Vec<String>>,
}

impl Process {
    fn new() -> Self {
        let mut process = Self { decoder: Decoder::new(Arc::default()), time: 0, events: HashMap::new() };
        process.communicator(0, &[0, 1, 4, 0]);
        process
    }

    fn write(&mut self, lane: usize, call: u64, payload: &[i64]) {
        self.time += 10;
        let mut words = vec![(call | (3 + payload.len() as u64) << 16) as i64, self.time, 5];
        words.extend_from_slice(payload);
        self.decoder.read(lane, &words).unwrap();
    }

    fn call(&mut self, lane: usize, name: &str, payload: &[i64]) {
        let call = mpi_calls().iter().position(|call| call.name == name).unwrap();
        self.write(lane, call as u64, payload);
    }

    fn communicator(&mut self, lane: usize, payload: &[i64]) {
        self.write(lane, COMMUNICATOR, payload);
    }

    /// What was emitted so far.
    fn emitted(&mut self, lane: usize) -> &[String] {
        self.decoder.release_ready().unwrap();
        for lane in 0..self.decoder.lanes() {
            let ready = std::mem::take(self.decoder.ready(lane));
            let text = |event: &Timed| {
                self.decoder.kinds.shared.symbols().alphabet.meaning(event.symbol).to_string()
            };
            self.events.entry(lane).or_default().extend(ready.iter().map(text));
        }
        &self.events[&lane]
    }

    fn end(&mut self, lane: usize) -> &[String] {
        self.decoder.finish().unwrap();
        self.emitted(lane)
    }
}

/// What a status says.
fn status(src: i64, tag: i64) -> i64 {
    src * (1 << 32) + tag
}

#[test]
fn another_thread_completes_a_receive() {
    let mut process = Process::new();
    process.call(0, "MPI_Irecv", &[ANY, 7, 4, 0, 100]);
    process.call(0, "MPI_Barrier", &[0]);
    assert!(process.emitted(0).is_empty());
    process.call(1, "MPI_Wait", &[100, status(3, 7)]);
    // Rank 3 of 4 is two before rank 1, or two behind.
    assert_eq!(process.emitted(0), ["MPI_Irecv src=2 tag=7 bytes=4 comm=0 any=src", "MPI_Barrier comm=0"]);
    assert_eq!(process.emitted(1), ["MPI_Wait n=0 done=none"]);
}

#[test]
fn freed_requests_are_not_pending() {
    let mut process = Process::new();
    for handle in [1, 2, 3] {
        process.call(0, "MPI_Isend", &[2, 7, 4, 0, handle]);
    }
    process.call(0, "MPI_Request_free", &[2]);
    process.call(0, "MPI_Request_free", &[1]);
    process.call(0, "MPI_Wait", &[3, 0]);
    process.call(0, "MPI_Irecv", &[ANY, 7, 4, 0, 4]);
    process.call(0, "MPI_Request_free", &[4]);
    process.call(0, "MPI_Request_free", &[9]);
    let events = &process.emitted(0)[3..];
    let freed = ["MPI_Request_free n=1 done=1", "MPI_Request_free n=1", "MPI_Wait n=1"];
    assert_eq!(events[..3], freed);
    let any = ["MPI_Irecv src=any tag=7 bytes=4 comm=0", "MPI_Request_free n=1", "MPI_Request_free"];
    assert_eq!(events[3..], any);
}

#[test]
fn requests_that_were_given_up() {
    let mut process = Process::new();
    process.call(0, "MPI_Irecv", &[2, 7, 4, 0, 1]);
    process.call(0, "MPI_Irecv", &[ANY, ANY, 4, 0, 2]);
    process.call(0, "MPI_Waitall", &[1, CANCELLED, 2, CANCELLED]);
    process.call(0, "MPI_Irecv", &[2, 7, 4, 0, 1]);
    process.call(0, "MPI_Wait", &[1, status(2, 7)]);
    let receive = "MPI_Irecv src=1 tag=7 bytes=4 comm=0";
    let given_up = ["MPI_Irecv bytes=4 comm=0 cancelled=1", "MPI_Waitall n=2 cancelled=1"];
    assert_eq!(process.emitted(0), [receive, given_up[0], given_up[1], receive, "MPI_Wait n=1"]);
}

#[test]
fn too_many_requests_are_counted_until_they_complete() {
    let mut process = Process::new();
    let count = MOST_PENDING as i64 + 10;
    for handle in 0..count {
        process.call(0, "MPI_Isend", &[2, 7, 4, 0, handle]);
    }
    process.call(0, "MPI_Wait", &[40, 0]);
    let rest: Vec<i64> = (0..count).filter(|&handle| handle != 40).flat_map(|handle| [handle, 0]).collect();
    // As long records are, in pieces.
    for piece in rest[..rest.len() - 2].chunks(4_096) {
        process.write(0, CONTINUED, piece);
    }
    process.call(0, "MPI_Waitall", &rest[rest.len() - 2..]);
    process.call(0, "MPI_Irecv", &[ANY, 7, 4, 0, 1]);
    process.call(0, "MPI_Isend", &[2, 7, 4, 0, 2]);
    process.call(0, "MPI_Wait", &[2, 0]);
    process.call(0, "MPI_Wait", &[1, status(0, 7)]);
    let all = format!("MPI_Waitall n={}", count - 1);
    let send = "MPI_Isend dest=1 tag=7 bytes=4 comm=0";
    let receive = "MPI_Irecv src=3 tag=7 bytes=4 comm=0 any=src";
    let last = &process.emitted(0)[count as usize..];
    assert_eq!(last, ["MPI_Wait n=1", &all, receive, send, "MPI_Wait n=1 done=1", "MPI_Wait n=1"]);
}

#[test]
fn a_receive_that_stays_open_holds_events_from_one_segment_to_the_next() {
    let mut process = Process::new();
    process.call(0, "MPI_Irecv", &[ANY, 7, 4, 0, 1]);
    process.call(0, "MPI_Barrier", &[0]);
    process.decoder.release_old().unwrap();
    assert!(process.emitted(0).is_empty() && process.decoder.has_held());
    process.call(0, "MPI_Irecv", &[ANY, 8, 4, 0, 2]);
    process.decoder.release_old().unwrap();
    let open = ["MPI_Irecv src=any tag=7 bytes=4 comm=0", "MPI_Barrier comm=0"];
    assert_eq!(process.emitted(0), open);
    // The younger one is still resolved; of the older one it is too late.
    process.call(0, "MPI_Waitall", &[1, status(2, 7), 2, status(2, 8)]);
    let later = ["MPI_Irecv src=1 tag=8 bytes=4 comm=0 any=src", "MPI_Waitall n=2"];
    assert_eq!(process.end(0)[2..], later);
}

#[test]
fn a_number_that_is_used_again_has_the_new_members() {
    let mut process = Process::new();
    let mut send = |members: &[i64]| {
        let size = members.len() as i64;
        process.communicator(0, &[&[2, 0, size, size], members].concat());
        process.call(0, "MPI_Send", &[size - 1, 7, 4, 2]);
        process.call(0, "MPI_Comm_free", &[2]);
    };
    send(&[1, 2]);
    send(&[1, 2, 3]);
    send(&[1, 2]);
    let first = ["MPI_Send dest=1 tag=7 bytes=4 comm=2", "MPI_Comm_free comm=2"];
    let second = ["MPI_Send dest=2 tag=7 bytes=4 comm=2.2", "MPI_Comm_free comm=2.2"];
    assert_eq!(process.emitted(0), [first, second, first].concat());
    assert_eq!(process.decoder.communicators[&2].members, [1, 2]);
    assert_eq!(process.decoder.communicators[&(2 | 1 << 32)].members, [1, 2, 3]);
}

#[test]
fn what_is_between_calls_belongs_to_the_next_event_of_the_thread() {
    let mut process = Process::new();
    process.write(0, OFF_CPU, &[70_000]);
    process.write(0, RECORDING, &[120]);
    process.communicator(0, &[3, 1, 4, 0]);
    process.call(1, "MPI_Barrier", &[0]);
    process.call(0, "MPI_Barrier", &[0]);
    process.call(0, "MPI_Barrier", &[0]);
    process.decoder.release_ready().unwrap();
    let mut between =
        |lane| process.decoder.ready(lane).iter().map(|event| event.between).collect::<Vec<_>>();
    let none = Between::default();
    assert_eq!(between(0), [Between { off_cpu: 70_000, recording: Some(120) }, none]);
    assert_eq!(between(1), [none]);
}
