//! Numbers the acyclic paths of a function, and describes instrumented modules.
//!
//! Ball and Larus (Efficient path profiling, 1996) give each edge of an acyclic control-flow graph
//! a value such that the sums along its paths are 0, 1, 2 and so on. An execution is a sequence of
//! such paths once the graph is cut where it has cycles. Here it is also cut at calls, so that the
//! path of a caller is complete before its callee begins, at edges that take no instrumentation,
//! and where a function would have too many paths.
//!
//! The compiler pass builds a [`Graph`], chooses [`Cuts`], computes a [`Numbering`] and writes a
//! [`Module`]; the recorder decodes the module, and path numbers into blocks. Both compute the
//! numbering by the same code from the same cuts, so a description has no values of edges.
//!
//! ```
//! use loopfold_paths::{Cuts, Ending, Graph, Numbering};
//!
//! // An `if` without `else` in a loop: 0 → 1 → 2 → 3 → 1, 1 → 3, 3 → 4.
//! let graph = Graph::new(&[vec![1], vec![2, 3], vec![3], vec![1, 4], vec![]])?;
//! let cuts = Cuts::choose(&graph, &[Ending::Open; 5], 1 << 20);
//! let numbering = Numbering::new(graph, cuts)?;
//! assert_eq!(numbering.paths(), 8);
//! let blocks = numbering.path(7).map(|path| path.map(|block| block.index()).collect::<Vec<_>>());
//! assert_eq!(blocks, Some(vec![1, 3, 4]));
//! # Ok::<(), loopfold_paths::Error>(())
//! ```
#![forbid(unsafe_code)]

mod bytes;
mod cuts;
mod description;
mod error;
mod graph;
mod numbering;

pub use cuts::{Cuts, Ending, PATHS_PER_START};
pub use description::{Block, Function, Kind, Module};
pub use error::{Error, Result};
pub use graph::{BlockId, Edge, Graph};
pub use numbering::{MAX_PATHS, Numbering, Path};
