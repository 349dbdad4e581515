//! Calls as C: what replays each event.

use super::super::Wildcards;
use super::super::program::{NodeId, Program};
use super::expressions::{LAST, comm_name, expression, tag};
use super::persistent::Persistent;
use crate::mpi::WORLD;
use crate::questions::logical::{Expression, LogicalEvent, Token};
use crate::trace::Role;
use hashbrown::{HashMap, HashSet};

/// How an event is replayed.
pub(super) enum Replay {
    /// By this statement.
    Call(String),
    /// By another call than the recorded one, with the reason.
    Instead(String, &'static str),
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
    /// Communicators that the program creates.
    pub(super) created: HashSet<String>,
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
        let is_known = comm == WORLD || comm == "1" || self.created.contains(comm);
        if event.field("comm").is_some() && !is_known {
            return Replay::LeftOut("its communicator is not known");
        }
        if event.role == Role::Collective {
            return call.collective();
        }
        call.other()
    }
}

fn region(function: &str, name: &str) -> Replay {
    let escaped: String = name
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", byte as char),
            b' '..=b'~' if byte != b'?' => (byte as char).to_string(),
            other => format!("\\{other:03o}"),
        })
        .collect();
    Replay::Call(format!("{function}(\"{escaped}\");"))
}

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

    /// The communicator as an argument.
    fn handle(&self) -> String {
        format!("{}.comm", comm_name(self.comm()))
    }

    fn values(&self, key: &str) -> Vec<Expression> {
        self.event.field(key).map_or_else(Vec::new, |field| field.values.clone())
    }

    fn value(&self, key: &str) -> Option<String> {
        self.values(key).first().map(|value| expression(value, self.comm()))
    }

    fn text_of(&self, key: &str) -> Option<String> {
        self.values(key).first().map(ToString::to_string)
    }

    fn bytes(&self) -> String {
        self.value("bytes").unwrap_or_else(|| "0".to_string())
    }

    /// Whether a wildcard was used, and is to be used again.
    fn is_open(&self, what: &str) -> bool {
        let any = self.event.field("any");
        let is = any.is_some_and(|field| field.values.iter().any(|value| value.to_string() == what));
        is && self.calls.wildcards == Wildcards::Open
    }

    fn source(&self, key: &str) -> String {
        let source = self.value(key).unwrap_or_else(|| "MPI_PROC_NULL".to_string());
        if self.is_open("src") { "MPI_ANY_SOURCE".to_string() } else { source }
    }

    fn tag(&self, key: &str) -> String {
        let value = self.values(key);
        let value = value.first().map_or_else(|| "0".to_string(), |value| tag(value, self.comm()));
        if self.is_open("tag") && (key == "recvtag" || self.event.field("dest").is_none()) {
            return "MPI_ANY_TAG".to_string();
        }
        value
    }

    /// The tag of what is received in a call that sends, too.
    fn receive_tag(&self) -> String {
        self.tag(if self.event.field("recvtag").is_some() { "recvtag" } else { "tag" })
    }

    fn receive_bytes(&self) -> String {
        self.value("recvbytes").unwrap_or_else(|| self.bytes())
    }

    fn dest(&self) -> String {
        self.value("dest").unwrap_or_else(|| "MPI_PROC_NULL".to_string())
    }

    fn send(&self, name: &str, more: &str) -> String {
        let (bytes, dest, tag) = (self.bytes(), self.dest(), self.tag("tag"));
        format!("{name}(out, {bytes}, MPI_BYTE, {dest}, {tag}, {}{more});", self.handle())
    }

    fn receive(&self, name: &str, more: &str) -> String {
        let (bytes, source, tag) = (self.room(), self.source("src"), self.tag("tag"));
        format!("{name}(in, {bytes}, MPI_BYTE, {source}, {tag}, {}{more});", self.handle())
    }

    /// The most bytes that a receive can have. Which message comes is open where wildcards are.
    fn room(&self) -> String {
        match self.calls.wildcards {
            Wildcards::Recorded => self.bytes(),
            Wildcards::Open => LARGEST.to_string(),
        }
    }

    /// The status, which is kept for those that reply to the sender.
    fn status(&self, key: &str) -> String {
        let is_from_anyone = self.value(key).is_some_and(|source| source.contains("MPI_ANY_SOURCE"));
        if is_from_anyone { format!("&{LAST}") } else { "MPI_STATUS_IGNORE".to_string() }
    }

    fn other(&self) -> Replay {
        let name = self.name;
        let handle = self.handle();
        const REQUEST: &str = ", request()";
        match name {
            "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize" => Replay::Nothing,
            "MPI_Send" | "MPI_Bsend" | "MPI_Ssend" => Replay::Call(self.send(name, "")),
            "MPI_Rsend" => Replay::Instead(self.send("MPI_Send", ""), "its receive may be late"),
            "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" => Replay::Call(self.send(name, REQUEST)),
            "MPI_Irsend" => Replay::Instead(self.send("MPI_Isend", REQUEST), "its receive may be late"),
            "MPI_Recv" => Replay::Call(self.receive(name, &format!(", {}", self.status("src")))),
            "MPI_Irecv" => Replay::Call(self.receive(name, REQUEST)),
            "MPI_Mrecv" => {
                let call = self.receive("MPI_Recv", ", MPI_STATUS_IGNORE");
                Replay::Instead(call, "the matched message is not known")
            }
            "MPI_Imrecv" => {
                Replay::Instead(self.receive("MPI_Irecv", REQUEST), "the matched message is not known")
            }
            "MPI_Sendrecv" => Replay::Call(format!(
                "MPI_Sendrecv(out, {}, MPI_BYTE, {}, {}, in, {}, MPI_BYTE, {}, {}, {handle}, MPI_STATUS_IGNORE);",
                self.bytes(),
                self.dest(),
                self.tag("tag"),
                self.receive_bytes(),
                self.source("src"),
                self.receive_tag()
            )),
            "MPI_Sendrecv_replace" => Replay::Call(format!(
                "MPI_Sendrecv_replace(in, {}, MPI_BYTE, {}, {}, {}, {}, {handle}, MPI_STATUS_IGNORE);",
                self.bytes(),
                self.dest(),
                self.tag("tag"),
                self.source("src"),
                self.receive_tag()
            )),
            "MPI_Probe" | "MPI_Mprobe" => self.probe(),
            "MPI_Iprobe" | "MPI_Improbe" => match self.text_of("flag").as_deref() {
                Some("0") => Replay::LeftOut("it found nothing"),
                _ => self.probe(),
            },
            "MPI_Start" | "MPI_Startall" => self.start(),
            "MPI_Request_free" => match self.calls.persistent.len() {
                0 => Replay::LeftOut("which request is freed is not known"),
                _ => Replay::Call("free_persistent();".to_string()),
            },
            _ if name.ends_with("_init") => self.init(),
            _ if self.event.field("n").is_some() || name.starts_with("MPI_Wait") => self.wait(),
            _ => self.local(),
        }
    }

    fn probe(&self) -> Replay {
        let (source, tag) = (self.source("from"), self.tag("tag"));
        let call = format!("MPI_Probe({source}, {tag}, {}, {});", self.handle(), self.status("from"));
        match self.name {
            "MPI_Probe" => Replay::Call(call),
            _ => Replay::Instead(call, "so that its message is there"),
        }
    }

    /// Calls that complete requests.
    fn wait(&self) -> Replay {
        let all_or_one = if self.name == "MPI_Wait" { "1" } else { "MOST_PENDING" };
        let count = self.value("n").unwrap_or_else(|| all_or_one.to_string());
        let is_none = self.text_of("n").as_deref() == Some("0");
        let places = self.values("done");
        let first = match &places[..] {
            [] => format!("oldest({count})"),
            [Expression::Same(none)] if none.is_none() => {
                return Replay::LeftOut("another thread has the request");
            }
            _ => {
                let places: Vec<String> = places.iter().map(|place| expression(place, WORLD)).collect();
                format!("chosen({}, (const int[]){{{}}})", places.len(), places.join(", "))
            }
        };
        let all = |call: &str| format!("{{\n\tconst int count = {first};\n\t{call}\n\tcompleted(count);\n}}");
        match self.name {
            "MPI_Waitall" => Replay::Call(all("MPI_Waitall(count, pending, MPI_STATUSES_IGNORE);")),
            "MPI_Wait" if is_none => Replay::Call(
                "{\n\tMPI_Request none = MPI_REQUEST_NULL;\n\tMPI_Wait(&none, MPI_STATUS_IGNORE);\n}"
                    .to_string(),
            ),
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
        let peer = if key == "src" && self.is_open("src") { "MPI_ANY_SOURCE".to_string() } else { peer };
        if !matches!(
            self.name,
            "MPI_Recv_init" | "MPI_Send_init" | "MPI_Ssend_init" | "MPI_Bsend_init" | "MPI_Rsend_init"
        ) {
            return Replay::LeftOut("persistent collective and partitioned operations are not replayed");
        }
        Replay::Call(format!(
            "{}({buffer}, {}, MPI_BYTE, {peer}, {}, {}, &persistent[{place}]);",
            self.name,
            self.bytes(),
            self.tag("tag"),
            self.handle()
        ))
    }

    fn start(&self) -> Replay {
        let Some(places) = self.calls.persistent.start(self.id) else {
            return Replay::LeftOut("its requests are not known");
        };
        let mut text = String::from("{\n\tMPI_Request *const first = &pending[pending_count];\n");
        for place in places {
            text.push_str(&format!("\t*request() = persistent[{place}];\n"));
        }
        text.push_str(&match self.name {
            "MPI_Start" => "\tMPI_Start(first);\n}".to_string(),
            _ => format!("\tMPI_Startall({}, first);\n}}", places.len()),
        });
        Replay::Call(text)
    }

    /// Calls that are not about messages.
    fn local(&self) -> Replay {
        let (handle, place) = (self.handle(), comm_name(self.comm()));
        let call = |text: String| Replay::Call(text);
        match self.name {
            "MPI_Comm_rank" => call(format!("{{\n\tint value;\n\tMPI_Comm_rank({handle}, &value);\n}}")),
            "MPI_Comm_size" => call(format!("{{\n\tint value;\n\tMPI_Comm_size({handle}, &value);\n}}")),
            "MPI_Dims_create" => {
                call("{\n\tint sides[2] = {0, 0};\n\tMPI_Dims_create(size, 2, sides);\n}".to_string())
            }
            "MPI_Cart_shift" => call(format!(
                "{{\n\tint source, dest;\n\tMPI_Cart_shift({handle}, 0, 1, &source, &dest);\n}}"
            )),
            "MPI_Cart_coords" => call(format!(
                "{{\n\tint places[8];\n\tMPI_Cart_coords({handle}, {place}.rank, 8, places);\n}}"
            )),
            "MPI_Cart_rank" => call(format!(
                "{{\n\tint places[8] = {{0}}, value;\n\tMPI_Cart_rank({handle}, places, &value);\n}}"
            )),
            "MPI_Cart_get" => call(format!(
                "{{\n\tint sides[8], periods[8], places[8];\n\tMPI_Cart_get({handle}, 8, sides, periods, places);\n}}"
            )),
            "MPI_Comm_free" => call(format!("MPI_Comm_free(&{handle});")),
            _ => self.creation(),
        }
    }

    fn creation(&self) -> Replay {
        let handle = self.handle();
        let made = self.text_of("newcomm");
        let place = made.as_deref().map_or_else(|| "nothing".to_string(), comm_name);
        let enter =
            format!("enter(&{place});{}", made.as_deref().map_or_else(String::new, |made| self.grids(made)));
        match self.name {
            "MPI_Comm_split" => {
                let color = self.value("color").unwrap_or_else(|| "0".to_string());
                let key = self.value("key").unwrap_or_else(|| "0".to_string());
                match made {
                    Some(_) => Replay::Call(format!(
                        "MPI_Comm_split({handle}, {color}, {key}, &{place}.comm);\n{enter}"
                    )),
                    None => Replay::Call(format!(
                        "{{\n\tMPI_Comm none;\n\tMPI_Comm_split({handle}, MPI_UNDEFINED, 0, &none);\n}}"
                    )),
                }
            }
            "MPI_Comm_dup" | "MPI_Comm_dup_with_info" if made.is_some() => {
                Replay::Call(format!("MPI_Comm_dup({handle}, &{place}.comm);\n{enter}"))
            }
            "MPI_Cart_create" if made.is_some() => {
                let numbers = |key: &str| {
                    self.text_of(key).map_or_else(Vec::new, |text| {
                        text.split('x').map(ToString::to_string).collect::<Vec<String>>()
                    })
                };
                let (sides, periods) = (numbers("dims"), numbers("periods"));
                let (dims, sides, periods) = (sides.len(), sides.join(", "), periods.join(", "));
                Replay::Call(format!(
                    "MPI_Cart_create({handle}, {dims}, (const int[]){{{sides}}}, (const int[]){{{periods}}}, 0, &{place}.comm);\n\
                     {enter}\ngrid(&{place}, {dims}, (const int[]){{{sides}}}, (const int[]){{{periods}}});"
                ))
            }
            name if super::super::operations::creates(name) => self.split_as_recorded(&place, &enter),
            _ => Replay::LeftOut("it is not replayed"),
        }
    }

    /// The grids of communicators that were not created as such: those that messages show.
    fn grids(&self, made: &str) -> String {
        if self.name == "MPI_Cart_create" {
            return String::new();
        }
        let program = self.calls.program;
        let mut known: Vec<(i64, std::sync::Arc<crate::mpi::Grid>)> = Vec::new();
        for process in 0..program.processes {
            let place = program.places.at(process, Some(made)).comm;
            if let Some(grid) =
                place.grid.clone().filter(|_| known.iter().all(|(size, _)| *size != place.size))
            {
                known.push((place.size, grid));
            }
        }
        let place = comm_name(made);
        let mut text = String::new();
        for (size, grid) in known {
            let sides: Vec<String> = grid.sides.iter().map(ToString::to_string).collect();
            let periods: Vec<String> = grid.periodic.iter().map(|&is| u8::from(is).to_string()).collect();
            let (dims, sides, periods) = (sides.len(), sides.join(", "), periods.join(", "));
            text.push_str(&format!(
                "\nif ({place}.size == {size})\n\tgrid(&{place}, {dims}, (const int[]){{{sides}}}, (const int[]){{{periods}}});"
            ));
        }
        text
    }

    /// A split that gives the members that another call gave.
    fn split_as_recorded(&self, place: &str, enter: &str) -> Replay {
        let handle = self.handle();
        let Some(known) = self.text_of("newcomm").and_then(|made| self.calls.split_as.get(&made)) else {
            return Replay::Instead(
                format!("{{\n\tMPI_Comm none;\n\tMPI_Comm_split({handle}, MPI_UNDEFINED, 0, &none);\n}}"),
                "this process gets no communicator",
            );
        };
        let list = |values: &mut dyn Iterator<Item = i64>| {
            values.map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
        };
        let colors = list(&mut known.iter().map(|&(color, _)| color));
        let keys = list(&mut known.iter().map(|&(_, key)| key));
        Replay::Instead(
            format!(
                "{{\n\tstatic const int colors[] = {{{colors}}}, keys[] = {{{keys}}};\n\
                 \tMPI_Comm_split({handle}, colors[rank], keys[rank], &{place}.comm);\n}}\n{enter}"
            ),
            "with the members that were recorded",
        )
    }

    fn collective(&self) -> Replay {
        let name = self.event.field("of").and_then(|_| self.text_of("of"));
        let (base, is_posting) = match &name {
            // A persistent operation that is started.
            Some(of) => (of.trim_start_matches("MPI_").to_string(), true),
            None => match self.name.strip_prefix("MPI_I") {
                Some(rest) => (capital(rest), true),
                None => (self.name.trim_start_matches("MPI_").to_string(), false),
            },
        };
        let handle = self.handle();
        let comm = comm_name(self.comm());
        let bytes = self.bytes();
        let root = match self.values("root").first() {
            Some(Expression::Same(Token::Word(_))) => {
                return Replay::LeftOut("intercommunicators are not replayed");
            }
            Some(root) => expression(root, self.comm()),
            None => "0".to_string(),
        };
        let (count, kind) = self.elements();
        let op = self.operation();
        let mut before = String::new();
        let same = i32::from(self.is_same_for_all(&base));
        let arguments = match base.as_str() {
            "Barrier" => String::new(),
            "Bcast" => format!("out, {bytes}, MPI_BYTE, {root}, "),
            "Gather" => format!("out, {bytes}, MPI_BYTE, in, {bytes}, MPI_BYTE, {root}, "),
            "Scatter" => format!("out, {bytes}, MPI_BYTE, in, {bytes}, MPI_BYTE, {root}, "),
            "Allgather" | "Alltoall" | "Neighbor_allgather" | "Neighbor_alltoall" => {
                format!("out, {bytes}, MPI_BYTE, in, {bytes}, MPI_BYTE, ")
            }
            "Gatherv" | "Allgatherv" => {
                before = format!("counts({bytes}, &{comm}, {same});\n");
                let root = if base == "Gatherv" { format!("{root}, ") } else { String::new() };
                format!("out, {bytes}, MPI_BYTE, in, receive_counts, receive_places, MPI_BYTE, {root}")
            }
            "Scatterv" => {
                before = format!("counts({bytes}, &{comm}, {same});\n");
                format!("out, receive_counts, receive_places, MPI_BYTE, in, {bytes}, MPI_BYTE, {root}, ")
            }
            "Alltoallv" | "Alltoallw" => {
                before = format!("shares({bytes}, &{comm}, {same});\n");
                "out, send_counts, send_places, MPI_BYTE, in, receive_counts, receive_places, MPI_BYTE, "
                    .to_string()
            }
            "Reduce" => format!("out, in, {count}, {kind}, {op}, {root}, "),
            "Allreduce" | "Scan" | "Exscan" | "Reduce_scatter_block" => {
                format!("out, in, {count}, {kind}, {op}, ")
            }
            "Reduce_scatter" => {
                before = format!("shares({count}, &{comm}, 1);\n");
                format!("out, in, send_counts, {kind}, {op}, ")
            }
            _ => return Replay::LeftOut("it is not replayed"),
        };
        let base = if base == "Alltoallw" { "Alltoallv".to_string() } else { base };
        let call = match is_posting {
            true => format!("{before}MPI_I{}({arguments}{handle}, request());", base.to_lowercase()),
            false => format!("{before}MPI_{base}({arguments}{handle});"),
        };
        match name {
            Some(_) => Replay::Instead(call, "persistent operations are started as nonblocking ones"),
            None => Replay::Call(call),
        }
    }

    /// Whether all processes of a call have the same bytes.
    fn is_same_for_all(&self, base: &str) -> bool {
        let key = (base.to_string(), self.comm().to_string());
        self.calls.same_bytes.get(&key).is_some_and(Option::is_some)
    }

    /// How many elements of which type a reduction has.
    fn elements(&self) -> (String, &'static str) {
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

    fn operation(&self) -> String {
        match self.text_of("op").as_deref() {
            None | Some("user") => "MPI_SUM".to_string(),
            Some(op) => format!("MPI_{op}"),
        }
    }
}

fn divided(bytes: &str, size: i64) -> String {
    match bytes.parse::<i64>() {
        Ok(bytes) => (bytes / size).to_string(),
        Err(_) => format!("({bytes}) / {size}"),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
