//! Writes folds in other formats, one exporter per file.
//!
//! An exporter only writes a fold; it computes nothing. [`grammar`] can also be read back.
//!
//! All exporters write the [canonical form](crate::Fold::canonical), so that a rule has
//! the same number in each of them: `R7` of a picture is `R7` of the text.

pub mod dot;
pub mod grammar;

use crate::{RuleId, Symbol};

/// The name of a rule in every format: counted from 1, each after the rules it is made of.
fn rule_name(rule: RuleId) -> String {
    format!("R{}", rule.index() + 1)
}

/// The short name of an event where its own name cannot be used, counted from 1.
fn event_name(symbol: Symbol) -> String {
    format!("E{}", symbol.index() + 1)
}
