//! Calls as C: what replays each event.

use super::super::Wildcards;
use super::super::program::{NodeId, Program};
use super::expressions::{LAST, comm_name, expression, tag};
use super::persistent::Persistent;
use super::words;
use crate::emit::c::{Code, CodePart, Literal};
use crate::emit::code;
use crate::mpi::{Grid, WORLD};
use crate::questions::logical::{Expression, LogicalEvent};
use crate::trace::Role;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How an event is replayed.
pub(super) enum Replay {
    /// By this statement.
    Call(Code),
    /// By another call than the recorded one, with the reason.
    Instead(Code, &'static str),
    /// Not at all, with the reason.
    LeftOut(&'static str),
    /// Not at all: it says nothing that matters.
    Nothing,
}

/// The size of the buffers, in the C program.
pub(super) const LARGEST: &str = "LARGEST";

/// What is needed to write calls.
pub(super) struct Calls<'a> {
    pub(super) program: &'a Program,
    pub(super) wildcards: Wildcards,
    pub(super) persistent: Persistent,
    /// Communicators that the program creates, and the calls that do.
    pub(super) created: BTreeMap<String, Vec<NodeId>>,
    /// Those of them that are grids in the C program.
    pub(super) grids: HashSet<String>,
    /// For each call with counts for every process, and its communicator: the bytes of all
    /// processes, if they are the same.
    pub(super) same_bytes: HashMap<(String, String), Option<i64>>,
    /// The members of communicators that are created by calls which do not say them: for each
    /// process the rank of the first member, and its own place.
    pub(super) split_as: HashMap<String, Vec<(i64, i64)>>,
}

impl Calls<'_> {
    /// How an event is replayed.
    pub(super) fn replay(&self, id: NodeId, event: &LogicalEvent) -> Replay {
        let Some(name) = event.text() else { return Replay::LeftOut("it is no call of MPI") };
        match event.role {
            Role::Enter => return region("enter_region", name),
            Role::Leave => return region("leave_region", name),
            _ if !name.starts_with("MPI_") => return region("mark_place", name),
            _ => {}
        }
        let call = Call { calls: self, event, name, id };
        let comm = event.comm.as_deref().unwrap_or(WORLD);
        let is_known = comm == WORLD || comm == "1" || self.created.contains_key(comm);
        if event.field("comm").is_some() && !is_known {
            return Replay::LeftOut("its communicator is not known");
        }
        if event.role == Role::Collective {
            return call.collective();
        }
        call.other()
    }
}

fn region(function: &'static str, name: &str) -> Replay {
    Replay::Call(code!("{}({});", function, Literal(name.as_bytes())))
}

/// The name among these that is equal.
fn one_of(names: &[&'static str], name: &str) -> Option<&'static str> {
    names.iter().copied().find(|known| *known == name)
}

/// Why calls that need a topology are left out.
const NO_GRID: &str = "its communicator is no grid here";

const SENDS: [&str; 3] = ["MPI_Send", "MPI_Bsend", "MPI_Ssend"];
const POSTED_SENDS: [&str; 3] = ["MPI_Isend", "MPI_Ibsend", "MPI_Issend"];
const INITS: [&str; 5] =
    ["MPI_Recv_init", "MPI_Send_init", "MPI_Ssend_init", "MPI_Bsend_init", "MPI_Rsend_init"];

struct Call<'a> {
    calls: &'a Calls<'a>,
    event: &'a LogicalEvent,
    name: &'a str,
    id: NodeId,
}

impl Call<'_> {
    fn comm(&self) -> &str {
        self.event.comm.as_deref().unwrap_or(WORLD)
    }

    fn ranks(&self) -> usize {
        self.calls.program.processes
    }

    /// The communicator as an argument.
    fn handle(&self) -> Code {
        code!("{}.comm", comm_name(self.comm()))
    }

    fn values(&self, key: &str) -> Vec<Expression> {
        self.event.field(key).map_or_else(Vec::new, |field| field.values.clone())
    }

    fn value(&self, key: &str) -> Option<Code> {
        self.values(key).first().map(|value| expression(value, self.comm(), self.ranks()))
    }

    /// The first value as it was recorded, to be compared and looked up.
    fn text_of(&self, key: &str) -> Option<String> {
        self.values(key).first().map(ToString::to_string)
    }

    fn bytes(&self) -> Code {
        self.value("bytes").unwrap_or_else(|| code!("0"))
    }

    /// Whether a wildcard was used, and is to be used again.
    fn is_open(&self, what: &str) -> bool {
        let any = self.event.field("any");
        let is = any.is_some_and(|field| field.values.iter().any(|value| value.to_string() == what));
        is && self.calls.wildcards == Wildcards::Open
    }

    fn source(&self, key: &str) -> Code {
        let source = self.value(key).unwrap_or_else(|| code!("MPI_PROC_NULL"));
        if self.is_open("src") { code!("MPI_ANY_SOURCE") } else { source }
    }

    fn tag(&self, key: &str) -> Code {
        let value = self.values(key);
        let value = value.first().map_or_else(|| code!("0"), |value| tag(value, self.comm(), self.ranks()));
        if self.is_open("tag") && (key == "recvtag" || self.event.field("dest").is_none()) {
            return code!("MPI_ANY_TAG");
        }
        value
    }

    /// The tag of what is received in a call that sends, too.
    fn receive_tag(&self) -> Code {
        self.tag(if self.event.field("recvtag").is_some() { "recvtag" } else { "tag" })
    }

    fn receive_bytes(&self) -> Code {
        self.value("recvbytes").unwrap_or_else(|| self.bytes())
    }

    fn dest(&self) -> Code {
        self.value("dest").unwrap_or_else(|| code!("MPI_PROC_NULL"))
    }

    fn send(&self, name: &'static str, more: &'static str) -> Code {
        let (bytes, dest, tag) = (self.bytes(), self.dest(), self.tag("tag"));
        code!("{}(out, {}, MPI_BYTE, {}, {}, {}{});", name, bytes, dest, tag, self.handle(), more)
    }

    fn receive(&self, name: &'static str, more: impl CodePart) -> Code {
        let (bytes, source, tag) = (self.room(), self.source("src"), self.tag("tag"));
        code!("{}(in, {}, MPI_BYTE, {}, {}, {}{});", name, bytes, source, tag, self.handle(), more)
    }

    /// The most bytes that a receive can have. Which message comes is open where wildcards are.
    fn room(&self) -> Code {
        match self.calls.wildcards {
            Wildcards::Recorded => self.bytes(),
            Wildcards::Open => code!("{}", LARGEST),
        }
    }

    /// The status, which is kept for those that reply to the sender.
    fn status(&self, key: &str) -> Code {
        let is_from_anyone = self.value(key).is_some_and(|source| source.as_str().contains("MPI_ANY_SOURCE"));
        if is_from_anyone { code!("&{}", LAST) } else { code!("MPI_STATUS_IGNORE") }
    }

    fn other(&self) -> Replay {
        const REQUEST: &str = ", request()";
        let handle = self.handle();
        if let Some(name) = one_of(&SENDS, self.name) {
            return Replay::Call(self.send(name, ""));
        }
        if let Some(name) = one_of(&POSTED_SENDS, self.name) {
            return Replay::Call(self.send(name, REQUEST));
        }
        match self.name {
            "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize" => Replay::Nothing,
            "MPI_Rsend" => Replay::Instead(self.send("MPI_Send", ""), "its receive may be late"),
            "MPI_Irsend" => Replay::Instead(self.send("MPI_Isend", REQUEST), "its receive may be late"),
            "MPI_Recv" => Replay::Call(self.receive("MPI_Recv", code!(", {}", self.status("src")))),
            "MPI_Irecv" => Replay::Call(self.receive("MPI_Irecv", REQUEST)),
            "MPI_Mrecv" => {
                let call = self.receive("MPI_Recv", ", MPI_STATUS_IGNORE");
                Replay::Instead(call, "the matched message is not known")
            }
            "MPI_Imrecv" => {
                Replay::Instead(self.receive("MPI_Irecv", REQUEST), "the matched message is not known")
            }
            "MPI_Sendrecv" => Replay::Call(code!(
                "MPI_Sendrecv(out, {}, MPI_BYTE, {}, {}, in, {}, MPI_BYTE, {}, {}, {}, MPI_STATUS_IGNORE);",
                self.bytes(),
                self.dest(),
                self.tag("tag"),
                self.receive_bytes(),
                self.source("src"),
                self.receive_tag(),
                handle
            )),
            "MPI_Sendrecv_replace" => Replay::Call(code!(
                "MPI_Sendrecv_replace(in, {}, MPI_BYTE, {}, {}, {}, {}, {}, MPI_STATUS_IGNORE);",
                self.bytes(),
                self.dest(),
                self.tag("tag"),
                self.source("src"),
                self.receive_tag(),
                handle
            )),
            "MPI_Probe" | "MPI_Mprobe" => self.probe(),
            "MPI_Iprobe" | "MPI_Improbe" => match self.text_of("flag").as_deref() {
                Some("0") => Replay::LeftOut("it found nothing"),
                _ => self.probe(),
            },
            "MPI_Start" | "MPI_Startall" => self.start(),
            "MPI_Request_free" => match self.calls.persistent.len() {
                0 => Replay::LeftOut("which request is freed is not known"),
                _ => Replay::Call(code!("free_persistent();")),
            },
            name if name.ends_with("_init") => self.init(),
            name if self.event.field("n").is_some() || name.starts_with("MPI_Wait") => self.wait(),
            _ => self.local(),
        }
    }

    fn probe(&self) -> Replay {
        let (source, tag) = (self.source("from"), self.tag("tag"));
        let call = code!("MPI_Probe({}, {}, {}, {});", source, tag, self.handle(), self.status("from"));
        match self.name {
            "MPI_Probe" => Replay::Call(call),
            _ => Replay::Instead(call, "so that its message is there"),
        }
    }

    /// Calls that complete requests.
    fn wait(&self) -> Replay {
        let all_or_one = if self.name == "MPI_Wait" { "1" } else { "MOST_PENDING" };
        let count = self.value("n").unwrap_or_else(|| code!("{}", all_or_one));
        let is_none = self.text_of("n").as_deref() == Some("0");
        let places = self.values("done");
        let first = match &places[..] {
            [] => code!("oldest({})", count),
            [Expression::Same(none)] if none.is_none() => {
                return Replay::LeftOut("another thread has the request");
            }
            _ => {
                let all =
                    Code::joined(places.iter().map(|place| expression(place, WORLD, self.ranks())), ", ");
                code!("chosen({}, (const int[]){{{}}})", places.len(), all)
            }
        };
        let all = |call: &'static str| {
            code!("{{\n\tconst int count = {};\n\t{}\n\tcompleted(count);\n}}", first, call)
        };
        match self.name {
            "MPI_Waitall" => Replay::Call(all("MPI_Waitall(count, pending, MPI_STATUSES_IGNORE);")),
            "MPI_Wait" if is_none => Replay::Call(code!(
                "{{\n\tMPI_Request none = MPI_REQUEST_NULL;\n\tMPI_Wait(&none, MPI_STATUS_IGNORE);\n}}"
            )),
            "MPI_Wait" => Replay::Call(all("if (count > 0)\n\t\tMPI_Wait(pending, MPI_STATUS_IGNORE);")),
            "MPI_Waitany" => {
                let call = "int which;\n\tMPI_Waitany(count, pending, &which, MPI_STATUS_IGNORE);";
                Replay::Call(all(call))
            }
            _ if is_none => Replay::LeftOut("it completed nothing"),
            _ => Replay::Instead(
                all("MPI_Waitall(count, pending, MPI_STATUSES_IGNORE);"),
                "so that the same requests are complete",
            ),
        }
    }

    fn init(&self) -> Replay {
        let Some((place, peer)) = self.calls.persistent.init(self.id) else {
            return Replay::LeftOut("it is never started");
        };
        let (buffer, key) = if self.name == "MPI_Recv_init" { ("in", "src") } else { ("out", "dest") };
        let peer = if key == "src" && self.is_open("src") { code!("MPI_ANY_SOURCE") } else { peer };
        let Some(name) = one_of(&INITS, self.name) else {
            return Replay::LeftOut("persistent collective and partitioned operations are not replayed");
        };
        Replay::Call(code!(
            "{}({}, {}, MPI_BYTE, {}, {}, {}, &persistent[{}]);",
            name,
            buffer,
            self.bytes(),
            peer,
            self.tag("tag"),
            self.handle(),
            place
        ))
    }

    fn start(&self) -> Replay {
        let Some(places) = self.calls.persistent.start(self.id) else {
            return Replay::LeftOut("its requests are not known");
        };
        let mut all = code!("{{\n\tMPI_Request *const first = &pending[pending_count];\n");
        for &place in places {
            all.push(code!("\t*request() = persistent[{}];\n", place));
        }
        all.push(match self.name {
            "MPI_Start" => code!("\tMPI_Start(first);\n}}"),
            _ => code!("\tMPI_Startall({}, first);\n}}", places.len()),
        });
        Replay::Call(all)
    }

    /// Calls that are not about messages.
    fn local(&self) -> Replay {
        const OF_GRIDS: [&str; 4] = ["MPI_Cart_shift", "MPI_Cart_coords", "MPI_Cart_rank", "MPI_Cart_get"];
        if OF_GRIDS.contains(&self.name) && !self.calls.grids.contains(self.comm()) {
            return Replay::LeftOut(NO_GRID);
        }
        let (handle, place) = (self.handle(), comm_name(self.comm()));
        Replay::Call(match self.name {
            "MPI_Comm_rank" => code!("{{\n\tint value;\n\tMPI_Comm_rank({}, &value);\n}}", handle),
            "MPI_Comm_size" => code!("{{\n\tint value;\n\tMPI_Comm_size({}, &value);\n}}", handle),
            "MPI_Dims_create" => {
                code!("{{\n\tint sides[2] = {{0, 0}};\n\tMPI_Dims_create(size, 2, sides);\n}}")
            }
            "MPI_Cart_shift" => {
                code!("{{\n\tint source, dest;\n\tMPI_Cart_shift({}, 0, 1, &source, &dest);\n}}", handle)
            }
            "MPI_Cart_coords" => {
                code!("{{\n\tint places[8];\n\tMPI_Cart_coords({}, {}.rank, 8, places);\n}}", handle, place)
            }
            "MPI_Cart_rank" => {
                code!("{{\n\tint places[8] = {{0}}, value;\n\tMPI_Cart_rank({}, places, &value);\n}}", handle)
            }
            "MPI_Cart_get" => code!(
                "{{\n\tint sides[8], periods[8], places[8];\n\tMPI_Cart_get({}, 8, sides, periods, places);\n}}",
                handle
            ),
            "MPI_Comm_free" => code!("MPI_Comm_free(&{});", handle),
            _ => return self.creation(),
        })
    }

    fn creation(&self) -> Replay {
        let handle = self.handle();
        let made = self.text_of("newcomm");
        let place = made.as_deref().map_or_else(|| code!("nothing"), comm_name);
        let grids = made.as_deref().map_or_else(Code::new, |made| self.grids(made));
        let enter = code!("enter(&{});{}", place, grids);
        match self.name {
            "MPI_Comm_split" => {
                let color = self.value("color").unwrap_or_else(|| code!("0"));
                let key = self.value("key").unwrap_or_else(|| code!("0"));
                Replay::Call(match made {
                    Some(_) => {
                        code!("MPI_Comm_split({}, {}, {}, &{}.comm);\n{}", handle, color, key, place, enter)
                    }
                    None => split_into_nothing(&handle),
                })
            }
            "MPI_Comm_dup" | "MPI_Comm_dup_with_info" if made.is_some() => {
                Replay::Call(code!("MPI_Comm_dup({}, &{}.comm);\n{}", handle, place, enter))
            }
            "MPI_Cart_create" if made.is_some() || self.event.field("dims").is_some() => {
                let numbers = |key: &str| words::numbers(&words::list(&self.values(key))).unwrap_or_default();
                let (sides, periods) = (numbers("dims"), numbers("periods"));
                let grid = grid_arguments(sides.iter(), periods.iter());
                Replay::Call(match made {
                    Some(_) => code!(
                        "MPI_Cart_create({}, {}, 0, &{}.comm);\n{}\ngrid(&{}, {});",
                        handle,
                        grid,
                        place,
                        enter,
                        place,
                        grid
                    ),
                    // Processes that are left over call it, too.
                    None => {
                        code!("{{\n\tMPI_Comm none;\n\tMPI_Cart_create({}, {}, 0, &none);\n}}", handle, grid)
                    }
                })
            }
            name if super::super::operations::creates(name) => self.split_as_recorded(&place, &enter),
            _ => Replay::LeftOut("it is not replayed"),
        }
    }

    /// The grids of communicators that were not created as such: those that messages show.
    fn grids(&self, made: &str) -> Code {
        let mut all = Code::new();
        if self.name == "MPI_Cart_create" {
            return all;
        }
        let program = self.calls.program;
        let mut known: Vec<(i64, Arc<Grid>)> = Vec::new();
        for process in 0..program.processes {
            let place = program.places.at(process, Some(made)).comm;
            if let Some(grid) =
                place.grid.clone().filter(|_| known.iter().all(|(size, _)| *size != place.size))
            {
                known.push((place.size, grid));
            }
        }
        let place = comm_name(made);
        for (size, grid) in known {
            all.push(code!(
                "\nif ({}.size == {})\n\tgrid(&{}, {});",
                place,
                size,
                place,
                arguments_of(&grid)
            ));
        }
        all
    }

    /// A split that gives the members that another call gave.
    fn split_as_recorded(&self, place: &Code, enter: &Code) -> Replay {
        let handle = self.handle();
        let Some(known) = self.text_of("newcomm").and_then(|made| self.calls.split_as.get(&made)) else {
            return Replay::Instead(split_into_nothing(&handle), "this process gets no communicator");
        };
        let colors = Code::joined(known.iter().map(|&(color, _)| color), ", ");
        let keys = Code::joined(known.iter().map(|&(_, key)| key), ", ");
        Replay::Instead(
            code!(
                "{{\n\tstatic const int colors[] = {{{}}}, keys[] = {{{}}};\n\
                 \tMPI_Comm_split({}, colors[rank], keys[rank], &{}.comm);\n}}\n{}",
                colors,
                keys,
                handle,
                place,
                enter
            ),
            "with the members that were recorded",
        )
    }

    fn collective(&self) -> Replay {
        let (name, is_posting) = collective_name(self.event);
        let Some(collective) = Collective::ALL.iter().find(|known| known.name == name) else {
            return Replay::LeftOut("it is not replayed");
        };
        if self.values("root").iter().any(words::has_word) {
            return Replay::LeftOut("intercommunicators are not replayed");
        }
        if collective.name.starts_with("Neighbor") && !self.calls.grids.contains(self.comm()) {
            return Replay::LeftOut(NO_GRID);
        }
        let root = self.value("root").unwrap_or_else(|| code!("0"));
        let (before, arguments) = self.arguments(collective.name, &root);
        let handle = self.handle();
        let call = match is_posting {
            true => code!("{}{}({}{}, request());", before, collective.posting, arguments, handle),
            false => code!("{}{}({}{});", before, collective.blocking, arguments, handle),
        };
        match self.text_of("of") {
            Some(_) => Replay::Instead(call, "persistent operations are started as nonblocking ones"),
            None => Replay::Call(call),
        }
    }

    /// What is called before a collective operation, and its arguments before the communicator.
    fn arguments(&self, base: &'static str, root: &Code) -> (Code, Code) {
        let (bytes, comm) = (self.bytes(), comm_name(self.comm()));
        let (count, kind) = self.elements();
        let op = self.operation();
        let same = i32::from(self.is_same_for_all(base));
        let counts = || code!("counts({}, &{}, {});\n", bytes, comm, same);
        let own_and_all = || code!("out, {}, MPI_BYTE, in, {}, MPI_BYTE, ", bytes, bytes);
        let in_parts = || code!("out, {}, MPI_BYTE, in, receive_counts, receive_places, MPI_BYTE, ", bytes);
        let reduced = || code!("out, in, {}, {}, {}, ", count, kind, op);
        match base {
            "Barrier" => (Code::new(), Code::new()),
            "Bcast" => (Code::new(), code!("out, {}, MPI_BYTE, {}, ", bytes, root)),
            "Gather" | "Scatter" => (Code::new(), code!("{}{}, ", own_and_all(), root)),
            "Gatherv" => (counts(), code!("{}{}, ", in_parts(), root)),
            "Allgatherv" => (counts(), in_parts()),
            "Scatterv" => (
                counts(),
                code!("out, receive_counts, receive_places, MPI_BYTE, in, {}, MPI_BYTE, {}, ", bytes, root),
            ),
            "Alltoallv" | "Alltoallw" => (
                code!("shares({}, &{}, {});\n", bytes, comm, same),
                code!(
                    "out, send_counts, send_places, MPI_BYTE, in, receive_counts, receive_places, MPI_BYTE, "
                ),
            ),
            "Reduce" => (Code::new(), code!("{}{}, ", reduced(), root)),
            "Reduce_scatter" => (
                code!("shares({}, &{}, 1);\n", count, comm),
                code!("out, in, send_counts, {}, {}, ", kind, op),
            ),
            "Allreduce" | "Scan" | "Exscan" | "Reduce_scatter_block" => (Code::new(), reduced()),
            _ => (Code::new(), own_and_all()),
        }
    }

    /// Whether all processes of a call have the same bytes.
    fn is_same_for_all(&self, base: &str) -> bool {
        let key = (base.to_string(), self.comm().to_string());
        self.calls.same_bytes.get(&key).is_some_and(Option::is_some)
    }

    /// How many elements of which type a reduction has.
    fn elements(&self) -> (Code, &'static str) {
        let values = self.values("bytes");
        let places = &self.calls.program.places;
        let comm = self.event.comm.as_deref();
        let divides = |size: i64| {
            values.iter().all(|value| {
                (0..self.calls.program.processes).all(|process| {
                    value.integer(places.at(process, comm)).is_none_or(|bytes| bytes % size == 0)
                })
            })
        };
        let is = |ops: &[&str]| self.text_of("op").is_some_and(|op| ops.contains(&op.as_str()));
        let bytes = self.bytes();
        if is(&["BAND", "BOR", "BXOR"]) {
            return (bytes, "MPI_BYTE");
        }
        if is(&["MINLOC", "MAXLOC"]) {
            return if divides(8) {
                (divided(&bytes, 8), "MPI_2INT")
            } else {
                (divided(&bytes, 12), "MPI_DOUBLE_INT")
            };
        }
        let is_logical = is(&["LAND", "LOR", "LXOR"]);
        if divides(8) && !is_logical {
            (divided(&bytes, 8), "MPI_DOUBLE")
        } else if divides(4) {
            (divided(&bytes, 4), "MPI_INT")
        } else {
            (bytes, "MPI_SIGNED_CHAR")
        }
    }

    fn operation(&self) -> &'static str {
        self.text_of("op").and_then(|op| words::operation(&op)).unwrap_or("MPI_SUM")
    }
}

/// What a collective operation is called in the standard, without the prefix, and whether it is posted. A
/// persistent operation that is started names the call that made it.
pub(super) fn collective_name(event: &LogicalEvent) -> (String, bool) {
    let name = event.text().unwrap_or_default();
    match event.field("of").and_then(|field| field.values.first()).map(ToString::to_string) {
        Some(of) => (of.trim_start_matches("MPI_").to_string(), true),
        None => match name.strip_prefix("MPI_I") {
            Some(rest) => (capital(rest), true),
            None => (name.trim_start_matches("MPI_").to_string(), false),
        },
    }
}

/// The communicator that a call creates, if it is replayed as one that does.
pub(super) fn created_by(event: &LogicalEvent) -> Option<String> {
    let is_replayed = !matches!(event.role, Role::Enter | Role::Leave | Role::Collective)
        && event.text().is_some_and(super::super::operations::creates)
        && event.field("n").is_none();
    let made = event.field("newcomm").filter(|_| is_replayed)?;
    made.values.first().map(ToString::to_string)
}

/// A collective operation: its name in the standard without the prefix, and the calls that replay it.
#[derive(Clone, Copy)]
struct Collective {
    name: &'static str,
    blocking: &'static str,
    posting: &'static str,
}

macro_rules! collectives {
    ($($name:literal $blocking:literal $posting:literal,)+) => {
        &[$(Collective { name: $name, blocking: $blocking, posting: $posting },)+]
    };
}

impl Collective {
    const ALL: &[Self] = collectives! {
        "Barrier" "MPI_Barrier" "MPI_Ibarrier",
        "Bcast" "MPI_Bcast" "MPI_Ibcast",
        "Gather" "MPI_Gather" "MPI_Igather",
        "Gatherv" "MPI_Gatherv" "MPI_Igatherv",
        "Scatter" "MPI_Scatter" "MPI_Iscatter",
        "Scatterv" "MPI_Scatterv" "MPI_Iscatterv",
        "Allgather" "MPI_Allgather" "MPI_Iallgather",
        "Allgatherv" "MPI_Allgatherv" "MPI_Iallgatherv",
        "Alltoall" "MPI_Alltoall" "MPI_Ialltoall",
        "Alltoallv" "MPI_Alltoallv" "MPI_Ialltoallv",
        // The types of each are not known.
        "Alltoallw" "MPI_Alltoallv" "MPI_Ialltoallv",
        "Neighbor_allgather" "MPI_Neighbor_allgather" "MPI_Ineighbor_allgather",
        "Neighbor_alltoall" "MPI_Neighbor_alltoall" "MPI_Ineighbor_alltoall",
        "Reduce" "MPI_Reduce" "MPI_Ireduce",
        "Allreduce" "MPI_Allreduce" "MPI_Iallreduce",
        "Scan" "MPI_Scan" "MPI_Iscan",
        "Exscan" "MPI_Exscan" "MPI_Iexscan",
        "Reduce_scatter" "MPI_Reduce_scatter" "MPI_Ireduce_scatter",
        "Reduce_scatter_block" "MPI_Reduce_scatter_block" "MPI_Ireduce_scatter_block",
    };
}

/// A split after which the process is in no new communicator.
fn split_into_nothing(handle: &Code) -> Code {
    code!("{{\n\tMPI_Comm none;\n\tMPI_Comm_split({}, MPI_UNDEFINED, 0, &none);\n}}", handle)
}

/// A grid as arguments: how many dimensions, their lengths, and which of them are periodic.
fn grid_arguments(
    sides: impl ExactSizeIterator<Item: CodePart>,
    periods: impl Iterator<Item: CodePart>,
) -> Code {
    let dims = sides.len();
    let (sides, periods) = (Code::joined(sides, ", "), Code::joined(periods, ", "));
    code!("{}, (const int[]){{{}}}, (const int[]){{{}}}", dims, sides, periods)
}

/// The same of a grid that is known.
pub(super) fn arguments_of(grid: &Grid) -> Code {
    grid_arguments(grid.sides.iter(), grid.periodic.iter().map(|&is| u8::from(is)))
}

fn divided(bytes: &Code, size: i64) -> Code {
    match bytes.as_str().parse::<i64>() {
        Ok(bytes) => code!("{}", bytes / size),
        Err(_) => code!("({}) / {}", bytes, size),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
