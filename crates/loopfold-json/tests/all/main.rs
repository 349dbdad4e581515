//! The writer and the labels; the shapes of answers are tested with the command.

mod labels;
mod writer;
