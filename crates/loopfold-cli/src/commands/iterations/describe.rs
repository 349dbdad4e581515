//! A loop of a nest in a line.

use crate::show::{self, Labels};
use loopfold::questions::iterations::LoopPlace;
use loopfold::questions::nest::{Nest, Node};

/// Such as `200 × (20 events: load embed …)`.
pub(super) fn describe(nest: &Nest, labels: &Labels<'_>, chosen: &LoopPlace) -> String {
    let (times, length) = match nest.nodes[chosen.node] {
        Node::Loop { times, length, .. } => (show::count(times), show::plural(length, "event")),
        Node::Near { near, .. } => {
            let near = &nest.near[near];
            (
                format!("{}{}", if near.kinds.is_empty() { "" } else { "≈ " }, show::near_times(near)),
                show::near_summary(near),
            )
        }
        Node::Event(_) | Node::LeftOut(_) => return String::new(),
    };
    let events = nest.nodes[nest.body(chosen.node)].iter().filter_map(|node| match node {
        Node::Event(symbol) => Some(labels.of(*symbol)),
        _ => None,
    });
    let first: Vec<String> = events.take(3).map(|label| show::shorten(&label, 30)).collect();
    format!("{times} × ({length})  {} …", first.join(", "))
}
