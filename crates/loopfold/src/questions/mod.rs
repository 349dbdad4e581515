//! What can be asked of a fold.
