//! Reading what version 1 of the format does differently: the rules. Nothing writes this
//! any more. `docs/archive-1.md` describes it.

mod coder;
mod models;
mod rules;

pub(super) use rules::read as read_rules;
