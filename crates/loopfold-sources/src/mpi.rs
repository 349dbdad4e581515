//! Classifies MPI calls by their names. All sources of MPI traces use it, so that their events
//! are the same.

use loopfold::trace::Role;

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
    let call = &call[..end];
    let blocking = call.strip_prefix(b"i").unwrap_or(call);
    match blocking {
        b"send" | b"bsend" | b"ssend" | b"rsend" => Role::Send,
        b"recv" | b"mrecv" => Role::Receive,
        _ if COLLECTIVES.iter().any(|collective| collective.as_bytes() == blocking) => Role::Collective,
        _ => Role::Plain,
    }
}

const COLLECTIVES: [&str; 22] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
];
