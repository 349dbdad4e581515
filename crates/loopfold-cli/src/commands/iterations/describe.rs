//! A loop of a nest in a line.

use crate::show::{self, Labels};
use loopfold::questions::iterations::LoopPlace;
use loopfold::questions::nest::{Nest, Node};

/// Such as `200 × (20 events)  load, embed, attn …`, of at most `room` characters.
pub(super) fn describe(nest: &Nest, labels: &Labels<'_>, chosen: &LoopPlace, room: usize) -> String {
    let heading = match nest.nodes[chosen.node] {
        Node::Loop { times, length, .. } => {
            format!("{} × ({})", show::count(times), show::plural(length, "event"))
        }
        Node::Near { near, .. } => show::near_heading(&nest.near[near]),
        Node::Event(_) | Node::LeftOut(_) => return String::new(),
    };
    let events = nest.nodes[nest.body(chosen.node)].iter().filter_map(|node| match node {
        Node::Event(symbol) => Some(labels.of(*symbol)),
        _ => None,
    });
    let mut text = heading;
    for (index, label) in events.take(3).enumerate() {
        let separator = if index == 0 { "  " } else { ", " };
        // A mark that there are more follows.
        let left = room.saturating_sub(text.chars().count() + separator.len() + 2);
        if left < 8 {
            break;
        }
        text.push_str(separator);
        text.push_str(&show::shorten_name(&label, left.min(24)));
    }
    if text.chars().count() + 2 <= room { text + " …" } else { show::shorten(&text, room) }
}
