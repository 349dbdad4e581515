//! The program `loopfold-mpi`: the commands of `loopfold` in many processes, started by `mpirun` or
//! `srun`.
//!
//! All that is done here is to exchange messages by MPI and to stop the other processes after an
//! error; `loopfold-cli` has the rest. Waiting is done by asking now and then, as the wait of MPI
//! would keep a core busy that another process could use.

mod exchange;

use exchange::World;
use loopfold_cli::nodes::{self, Ended};
use mpi::Threading;
use mpi::topology::Communicator as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Nobody can be notified if that fails.
fn complain(why: &str) {
    let _ = writeln!(std::io::stderr(), "error: {why}");
}

fn main() -> ExitCode {
    // Times of other processes may be read by any thread, one at a time.
    let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized) else {
        complain("MPI is initialised already");
        return ExitCode::from(2);
    };
    let world = universe.world();
    if threading < Threading::Serialized {
        complain("this MPI cannot be called from several threads");
        world.abort(2);
    }
    let ended = nodes::run(Box::new(World::of(&world)));
    match ended {
        Ended::Status(status) => ExitCode::from(status),
        Ended::Failed => world.abort(2),
    }
}
