//! Which loop of a nest is meant: by number, by an event, or the one that covers most.

use crate::show::{self, Labels};
use loopfold::questions::nest::{Nest, Node};
use loopfold::trace::{Alphabet, Name};

/// A loop of a nest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    /// Its node.
    pub(super) node: usize,
    /// Its number, from 1, in the order of the nest.
    pub(super) number: usize,
    /// How many loops are around it.
    pub(super) depth: usize,
}

/// All loops of a nest.
pub(super) fn all(nest: &Nest) -> Vec<Chosen> {
    let mut open: Vec<usize> = Vec::new();
    let mut found: Vec<Chosen> = Vec::new();
    for (node, kind) in nest.nodes.iter().enumerate() {
        while open.pop_if(|end| *end <= node).is_some() {}
        if let Node::Loop { end, .. } | Node::Near { end, .. } = *kind {
            found.push(Chosen { node, number: found.len() + 1, depth: open.len() });
            open.push(end);
        }
    }
    found
}

/// The loop that is meant.
pub(super) fn choose(nest: &Nest, alphabet: &Alphabet, wanted: Option<&str>) -> Option<Chosen> {
    let all = all(nest);
    let Some(wanted) = wanted else {
        // Of several that cover as much, the outermost one comes first.
        let outermost = all.iter().filter(|chosen| chosen.depth == 0).rev();
        return outermost.max_by_key(|chosen| nest.node_length(chosen.node)).copied();
    };
    if let Ok(number) = wanted.parse::<usize>() {
        return all.get(number.checked_sub(1)?).copied();
    }
    let is_wanted = |node: &Node| match node {
        Node::Event(symbol) => {
            let meaning = alphabet.meaning(*symbol);
            meaning.name == Name::Text(wanted.as_bytes()) || meaning.to_string() == wanted
        }
        _ => false,
    };
    let event_in = |chosen: &Chosen| nest.nodes[nest.body(chosen.node)].iter().position(is_wanted);
    let within = all.iter().filter_map(|chosen| Some((chosen.node + 1 + event_in(chosen)?, *chosen)));
    let first = within.clone().map(|(event, _)| event).min()?;
    within.filter(|(event, _)| *event == first).map(|(_, chosen)| chosen).next_back()
}

/// Such as `200 × (20 events)  load, embed, attn …`, of at most `room` characters.
pub(super) fn describe(nest: &Nest, labels: &Labels<'_>, chosen: &Chosen, room: usize) -> String {
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
        text.push_str(&show::shorten(&label, left.min(24)));
    }
    if text.chars().count() + 2 <= room { text + " …" } else { show::shorten(&text, room) }
}
