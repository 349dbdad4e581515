//! The program.
use mpi::traits::*;
fn main() {
    let Some((universe, _)) = mpi::initialize_with_threading(mpi::Threading::Serialized) else { return };
    let world = universe.world();
    println!("{} {}", world.rank(), world.size());
}
