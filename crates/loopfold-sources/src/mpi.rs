//! The calls of MPI: what each does, and the role of each of its arguments. All sources of MPI
//! traces and the recorder use this one table, so that their events are the same.
//!
//! The table is the text `mpi_calls.txt`, parsed once, in some tens of microseconds; of the calls in
//! `mpi_other_calls.txt` only the names are known. Names are
//! looked up as C, Fortran and the profiling interface have them, in one hash each.

use loopfold::trace::Role;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// A call of MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MpiCall {
    /// Its name in C, such as `MPI_Isend`.
    pub name: String,
    /// What kind of event it is.
    pub role: Role,
    /// The roles of its arguments, in the order of the C binding. Empty if the recorder has code
    /// of its own for it.
    pub arguments: Vec<MpiArgument>,
    /// Whether the recorder has code of its own for it.
    pub is_special: bool,
}

impl MpiCall {
    /// True if one of its arguments has this role.
    pub fn has(&self, role: MpiArgument) -> bool {
        self.arguments.contains(&role)
    }
}

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// The role of an argument of an MPI call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum MpiArgument {
            $($(#[$doc])* $name,)+
        }

        impl MpiArgument {
            /// All roles.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, $text),)+];
        }
    };
}

arguments! {
    /// Not recorded.
    Other = "_",
    /// How many elements are sent, or received by a call that only receives.
    Count = "n",
    /// Their type.
    Type = "t",
    /// How many, for each process.
    Counts = "ns",
    /// Their types, for each process.
    Types = "ts",
    /// How many, for each neighbour.
    NeighborCounts = "nns",
    /// How many parts a partitioned message has.
    Parts = "pn",
    /// A part of a partitioned message.
    Part = "part",
    /// A buffer that may be `MPI_IN_PLACE`.
    InPlace = "in",
    /// How many elements are received.
    ReceiveCount = "rn",
    /// Their type.
    ReceiveType = "rt",
    /// How many are received, from each process.
    ReceiveCounts = "rns",
    /// Their types, for each process.
    ReceiveTypes = "rts",
    /// A number of bytes.
    Size = "size",
    /// The receiver.
    Destination = "dest",
    /// The sender.
    Source = "src",
    /// The sender of a message that is probed.
    From = "from",
    /// The other process of one-sided communication.
    Target = "target",
    /// The tag.
    Tag = "tag",
    /// The tag of what is received.
    ReceiveTag = "rtag",
    /// The communicator.
    Communicator = "comm",
    /// The root of a collective operation.
    Root = "root",
    /// The operation of a reduction.
    Operation = "op",
    /// A new request.
    Request = "req",
    /// A new persistent request.
    PersistentRequest = "preq",
    /// What was received.
    Status = "status",
    /// Whether it happened.
    Flag = "flag",
    /// A matched message.
    Message = "message",
    /// A matched message that is received.
    ReceivedMessage = "rmessage",
    /// A new communicator whose members follow from the other arguments.
    NewCommunicator = "newcomm",
    /// A new communicator with the members of the old one, which may not be ready yet.
    DuplicateCommunicator = "dupcomm",
    /// A new communicator whose members do not follow from the other arguments.
    Members = "members",
    /// The color of a split.
    Color = "color",
    /// The key of a split.
    Key = "key",
    /// The number of dimensions of a grid.
    Dimensions = "nd",
    /// The sides of a grid.
    Sides = "dims",
    /// Which dimensions of a grid are periodic.
    Periods = "periods",
}

/// The calls that are known, and which is which in lower case without prefix.
struct Table {
    calls: Vec<MpiCall>,
    by_name: HashMap<String, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let calls: Vec<MpiCall> = include_str!("mpi_calls.txt").lines().flat_map(calls_of_line).collect();
    let key = |call: &MpiCall| call.name.to_ascii_lowercase()["mpi_".len()..].to_string();
    let by_name = calls.iter().enumerate().map(|(index, call)| (key(call), index)).collect();
    Table { calls, by_name }
});

/// All calls of the table.
///
/// ```
/// use loopfold_sources::{MpiArgument, mpi_calls};
/// let call = mpi_calls().iter().find(|call| call.name == "MPI_Ibcast").unwrap();
/// assert_eq!(call.arguments.last(), Some(&MpiArgument::Request));
/// ```
pub fn mpi_calls() -> &'static [MpiCall] {
    &TABLE.calls
}

/// The calls of a line of the table: one, and its other forms.
fn calls_of_line(line: &str) -> Vec<MpiCall> {
    let (line, forms) = line.split_once('|').unwrap_or((line, ""));
    let mut words = line.split_whitespace();
    let (Some(class), Some(name)) = (words.next().filter(|class| !class.starts_with('#')), words.next())
    else {
        return Vec::new();
    };
    let role = match class {
        "send" => Role::Send,
        "receive" => Role::Receive,
        "collective" => Role::Collective,
        _ => Role::Plain,
    };
    let argument = |word: &str| {
        let known = MpiArgument::ALL.iter().find(|(_, text)| *text == word);
        known.map_or(MpiArgument::Other, |&(argument, _)| argument)
    };
    let arguments: Vec<MpiArgument> = words.map(argument).collect();
    let blocking = MpiCall { name: name.to_string(), role, arguments, is_special: class == "hand" };
    let mut calls = vec![blocking.clone()];
    for form in forms.split_whitespace() {
        let (name, role, more) = match form {
            "i" => (nonblocking(name), role, &[MpiArgument::Request][..]),
            _ => {
                let more = &[MpiArgument::Other, MpiArgument::PersistentRequest][..];
                (format!("{name}_init"), Role::Plain, more)
            }
        };
        calls.push(MpiCall {
            name,
            role,
            arguments: [&blocking.arguments, more].concat(),
            is_special: false,
        });
    }
    calls
}

/// `MPI_Ibcast` for `MPI_Bcast`.
fn nonblocking(name: &str) -> String {
    format!("MPI_I{}", name["MPI_".len()..].to_ascii_lowercase())
}

/// The names of calls that are not in the table.
static OTHERS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("mpi_other_calls.txt").lines();
    lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect()
});

/// The name of a call of MPI, as C has it, whether or not it is recorded.
///
/// ```
/// use loopfold_sources::mpi_call_name;
/// assert_eq!(mpi_call_name("MPI_Send"), Some("MPI_Send"));
/// assert_eq!(mpi_call_name("MPI_Wtime"), Some("MPI_Wtime"));
/// assert_eq!(mpi_call_name("MPI_Send*/"), None);
/// ```
pub fn mpi_call_name(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let recorded =
        TABLE.by_name.get(lower.strip_prefix("mpi_")?).map(|&index| TABLE.calls[index].name.as_str());
    recorded.filter(|known| *known == name).or_else(|| OTHERS.get(name).copied())
}

/// What kind of event an MPI call is: a send, a receive, a collective operation on data,
/// or something else. Names as C, Fortran and the profiling interface have them.
///
/// ```
/// use loopfold::trace::Role;
/// use loopfold_sources::mpi_role;
/// assert_eq!(mpi_role(b"MPI_Isend"), Role::Send);
/// assert_eq!(mpi_role(b"mpi_recv_"), Role::Receive);
/// assert_eq!(mpi_role(b"MPI_Iallreduce"), Role::Collective);
/// assert_eq!(mpi_role(b"MPI_Waitall"), Role::Plain);
/// ```
pub fn mpi_role(name: &[u8]) -> Role {
    let lower = name.to_ascii_lowercase();
    let Some(call) = lower.strip_prefix(b"p").unwrap_or(&lower).strip_prefix(b"mpi_") else {
        return Role::Plain;
    };
    let call = call.trim_ascii_end();
    let end = call.iter().rposition(|&byte| byte != b'_').map_or(0, |last| last + 1);
    let known = std::str::from_utf8(&call[..end]).ok().and_then(|call| TABLE.by_name.get(call));
    known.map_or(Role::Plain, |&index| TABLE.calls[index].role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        for line in include_str!("mpi_calls.txt").lines().filter(|line| !line.starts_with('#')) {
            let words = line.split('|').next().unwrap_or("").split_whitespace().skip(2);
            for word in words {
                assert!(MpiArgument::ALL.iter().any(|(_, text)| *text == word), "{word} in: {line}");
            }
        }
        let names: std::collections::HashSet<_> = mpi_calls().iter().map(|call| &call.name).collect();
        assert_eq!(names.len(), mpi_calls().len());
        assert!(mpi_calls().len() > 200, "{}", mpi_calls().len());
    }

    #[test]
    fn forms_have_their_own_names_and_roles() {
        let find = |name: &str| mpi_calls().iter().find(|call| call.name == name).cloned();
        let reduce = find("MPI_Ireduce_scatter_block").expect("it is a form");
        assert_eq!((reduce.role, reduce.has(MpiArgument::Request)), (Role::Collective, true));
        let persistent = find("MPI_Neighbor_alltoall_init").expect("it is a form");
        assert_eq!(persistent.role, Role::Plain);
        assert!(persistent.has(MpiArgument::PersistentRequest));
        assert_eq!(mpi_role(b"MPI_Bcast_init"), Role::Plain);
        assert_eq!(mpi_role(b"MPI_Neighbor_allgather"), Role::Collective);
    }
}
