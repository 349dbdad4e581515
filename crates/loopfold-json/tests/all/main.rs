//! The writer, the labels and the tables; the shapes of answers are tested with the command.

mod labels;
mod rows;
mod tables;
mod writer;
