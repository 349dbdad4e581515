//! All tests of the library: one program, so that it is linked once.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on should say where")]

mod abstracted;
mod archive;
mod communication;
mod corpus;
mod divided_times;
mod divided_waits;
mod export;
mod find;
mod fold;
mod folders;
mod grammars;
mod hot;
mod iterations;
mod joint_loops;
mod kept_archives;
mod known_patterns;
mod largest;
mod logical;
mod loop_collapsed;
mod names;
mod near;
mod partners;
mod parts;
mod path_chunks;
mod path_index;
mod paths;
mod patterns;
mod peers;
mod process_patterns;
mod regression;
mod relative_peers;
mod reused_communicators;
mod segments;
mod selection;
mod similar;
mod skeleton;
mod skeleton_farm;
mod statistics;
mod sums;
mod support;
mod topology;
mod trace_patterns;
mod traversals;
mod waits;
