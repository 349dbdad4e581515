//! The command `loopfold`.

fn main() {}
