//! What tests and benchmarks of loopfold share: generated streams, the corpus of
//! small cases, and slow, obvious procedures ("oracles") that the fast algorithms must agree with.
//!
//! Nothing here depends on the library, so that it cannot share a mistake with it.

pub mod calls;
pub mod corpus;
pub mod elf;
pub mod grammars;
pub mod graphs;
pub mod hostile;
pub mod mpi;
pub mod mpi_loops;
pub mod names;
pub mod near;
pub mod nest;
pub mod oracles;
pub mod patterns;
pub mod phases;
pub mod programs;
pub mod rng;
pub mod segments;
pub mod spmd;
pub mod streams;
pub mod subpaths;
pub mod times;
pub mod waits;

pub use nest::Nest;
pub use rng::Rng;
