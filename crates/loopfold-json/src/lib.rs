//! Answers of the library as JSON. `docs/json.md` describes the shapes; this crate is where they
//! are written, for the command and for everything else that shows answers.
//!
//! There is one module for each question. Each takes the library's own answer types and writes
//! them to a [`JsonWriter`] while it walks over them, because a tree of JSON values would be many
//! times larger than the answer. What an answer has any number of (classes, places, windows)
//! comes as an iterator and is written as it is computed. What depends on how the caller was
//! invoked (names of files, how many are wanted) is passed in, and nothing is computed here.
//!
//! A table of [`tables`] is a part of an answer: [`JsonWriter::of_rows`] takes its columns from what is
//! written, and passes rows to a format.
//!
//! Memory beyond the answer: O(depth of the nest), and a cache of labels of at most 16 MB, which is
//! far smaller unless labels are thousands of bytes long.
//!
//! ```
//! use loopfold_json::JsonWriter;
//!
//! let mut out = JsonWriter::new(Vec::new());
//! out.begin_object()?;
//! out.field("events", 3u64)?;
//! out.key("names")?;
//! out.array(["read", "write"])?;
//! out.end()?;
//! assert_eq!(out.into_inner(), br#"{"events":3,"names":["read","write"]}"#);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod archives;
pub mod before;
pub mod cat;
pub mod context;
pub mod find;
pub mod hot;
pub mod iterations;
pub mod logical;
pub mod loops;
pub mod patterns;
pub mod segments;
pub mod similar;
pub mod skeleton;
pub mod stats;
pub mod tables;
pub mod waits;

mod keys;
mod labels;
mod near;
mod nest;
mod numbers;
mod rows;
mod writer;

pub use labels::{LONGEST_LABEL, Labels};
pub use nest::{NestTimes, nest};
pub use numbers::{nanoseconds, rounded};
pub use rows::{Cell, RowFormat, Rows};
pub use writer::{JsonWriter, Scalar, Value};
