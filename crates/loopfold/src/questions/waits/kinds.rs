//! Classifies the events of an alphabet: what each says of functions, requests and collective
//! operations, beside its messages. Computed once for every symbol.

use super::Class;
use crate::mpi::{Call, Calls};
use crate::trace::{Alphabet, Meaning, Name, Role, Value};
use hashbrown::HashMap;

/// What the symbols of an alphabet do.
pub(super) struct Symbols {
    pub(super) kinds: Vec<Kind>,
    /// The names of functions.
    pub(super) functions: Vec<String>,
}

/// What a symbol does.
pub(super) enum Kind {
    /// Nothing that counts here.
    Other,
    Enter(u32),
    Leave,
    Communicates(Communication),
    /// Requests are freed: nothing completes them.
    Frees(Completes),
}

/// A call that communicates or completes requests.
pub(super) struct Communication {
    /// Whether its messages are completed by another call.
    pub(super) is_nonblocking: bool,
    /// Whether its sends never wait.
    pub(super) is_buffered: bool,
    /// Requests that it posts and that are of no message.
    pub(super) empty_requests: u64,
    pub(super) shape: Shape,
    pub(super) completes: Option<Completes>,
}

/// The requests that a call completes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completes {
    /// So many of the oldest.
    Oldest(u64),
    All,
    /// Those with these indexes, sorted.
    Listed(Vec<u64>),
}

/// Who waits for whom in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All for all.
    All(Class),
    OneToAll,
    AllToOne,
    Scan,
    /// Not known.
    Other,
}

impl Symbols {
    pub(super) fn of(alphabet: &Alphabet, calls: &Calls) -> Self {
        let mut functions = Functions::default();
        let kind = |symbol| {
            let meaning = alphabet.meaning(symbol);
            let name = operation(&meaning);
            let completes = completes(&meaning, &name);
            let call = calls.get(symbol);
            if call.is_some() || completes.is_some() {
                return Kind::Communicates(communication(&meaning, &name, call, completes));
            }
            if let Some(freed) = frees(&meaning, &name) {
                return Kind::Frees(freed);
            }
            match meaning.role {
                Role::Enter => Kind::Enter(functions.number(&meaning)),
                Role::Leave => Kind::Leave,
                _ => Kind::Other,
            }
        };
        let kinds = alphabet.symbols().map(kind).collect();
        Self { kinds, functions: functions.names }
    }
}

#[derive(Default)]
struct Functions {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Functions {
    fn number(&mut self, meaning: &Meaning<'_>) -> u32 {
        let name = match meaning.name {
            Name::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Name::Integer(number) => number.to_string(),
        };
        let next = self.names.len() as u32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }
}

/// The name of an MPI operation without prefix, in lower case; empty for other events.
fn operation(meaning: &Meaning<'_>) -> Vec<u8> {
    let Name::Text(name) = meaning.name else { return Vec::new() };
    let lower = name.to_ascii_lowercase();
    let Some(call) = lower.strip_prefix(b"p").unwrap_or(&lower).strip_prefix(b"mpi_") else {
        return Vec::new();
    };
    let end = call.iter().rposition(|&byte| byte != b'_').map_or(0, |last| last + 1);
    call[..end].to_vec()
}

fn communication(
    meaning: &Meaning<'_>,
    name: &[u8],
    call: Option<&Call>,
    completes: Option<Completes>,
) -> Communication {
    let is_nonblocking = name.starts_with(b"i") || name.starts_with(b"start");
    let blocking = name.strip_prefix(b"i").unwrap_or(name);
    let is_empty = call.is_none_or(|call| call.sends.is_empty() && call.receives.is_empty());
    let names_peer = meaning.field("dest").is_some() || meaning.field("src").is_some();
    let to_nobody = match nobodies(meaning) {
        0 => u64::from(is_empty && names_peer && meaning.role != Role::Collective),
        several => several,
    };
    let cancelled = number(meaning, "cancelled").unwrap_or(0);
    Communication {
        is_nonblocking,
        is_buffered: blocking == b"bsend",
        empty_requests: if is_nonblocking { to_nobody.saturating_add(cancelled) } else { 0 },
        shape: if meaning.role == Role::Collective { shape(blocking) } else { Shape::Other },
        completes,
    }
}

/// How many of the peers in lists are nobody: each has a request of its own.
fn nobodies(meaning: &Meaning<'_>) -> u64 {
    let in_list = |key| match meaning.field(key) {
        Some(Value::Text(list)) if list.contains(&b',') => {
            list.split(|&byte| byte == b',').filter(|&word| word == b"none").count() as u64
        }
        _ => 0,
    };
    if meaning.role == Role::Collective { 0 } else { in_list("dest") + in_list("src") }
}

fn shape(name: &[u8]) -> Shape {
    match name {
        b"barrier" => Shape::All(Class::Barrier),
        b"allreduce"
        | b"allgather"
        | b"allgatherv"
        | b"alltoall"
        | b"alltoallv"
        | b"alltoallw"
        | b"reduce_scatter"
        | b"reduce_scatter_block" => Shape::All(Class::AllToAll),
        b"bcast" | b"scatter" | b"scatterv" => Shape::OneToAll,
        b"reduce" | b"gather" | b"gatherv" => Shape::AllToOne,
        b"scan" | b"exscan" => Shape::Scan,
        _ => Shape::Other,
    }
}

fn completes(meaning: &Meaning<'_>, name: &[u8]) -> Option<Completes> {
    let is_all = name == b"waitall";
    let others: [&[u8]; 7] = [b"wait", b"waitany", b"waitsome", b"test", b"testall", b"testany", b"testsome"];
    if !is_all && !others.contains(&name) {
        return None;
    }
    Some(stated(meaning).unwrap_or(if is_all { Completes::All } else { Completes::Oldest(1) }))
}

/// The requests that a call frees, of those that are pending: other traces than recordings do not
/// state them.
fn frees(meaning: &Meaning<'_>, name: &[u8]) -> Option<Completes> {
    if name == b"request_free" { stated(meaning) } else { None }
}

/// The requests that the fields of a call state.
fn stated(meaning: &Meaning<'_>) -> Option<Completes> {
    match meaning.field("done") {
        Some(done) => Some(Completes::Listed(indexes(done))),
        None => number(meaning, "n").map(Completes::Oldest),
    }
}

fn indexes(value: Value<'_>) -> Vec<u64> {
    let mut indexes: Vec<u64> = match value {
        Value::Integer(index) => u64::try_from(index).into_iter().collect(),
        Value::Text(text) => {
            let text = String::from_utf8_lossy(text);
            text.split(',').filter_map(|word| word.trim().parse().ok()).collect()
        }
    };
    indexes.sort_unstable();
    indexes.dedup();
    indexes
}

/// A field that is a number, or a negative one as 0.
fn number(meaning: &Meaning<'_>, key: &str) -> Option<u64> {
    match meaning.field(key) {
        Some(Value::Integer(number)) => Some(u64::try_from(number).unwrap_or(0)),
        _ => None,
    }
}
