//! Loops with exceptions in words: their numbers, and their exceptions by kind.

use super::{Labels, count, plural, shorten, shorten_name};
use loopfold::Symbol;
use loopfold::questions::near::{Change, Edit, Kind, NearNode};

/// Kinds of exceptions that are listed.
const MOST_KINDS: usize = 6;

/// How much is said of an exception.
#[derive(Clone, Copy)]
struct Detail {
    /// The characters of the name of an event.
    label: usize,
    edits: usize,
    /// Events that are listed one after the other.
    events: usize,
}

const EVERYTHING: Detail = Detail { label: usize::MAX, edits: usize::MAX, events: usize::MAX };

/// From much to little: the first that fits on a line is taken, so that names are never cut
/// without their quotes.
const DETAILS: [Detail; 7] = [
    Detail { label: 40, edits: 4, events: 6 },
    Detail { label: 24, edits: 4, events: 6 },
    Detail { label: 24, edits: 2, events: 3 },
    Detail { label: 16, edits: 2, events: 2 },
    Detail { label: 16, edits: 1, events: 1 },
    Detail { label: 10, edits: 1, events: 1 },
    Detail { label: 8, edits: 0, events: 0 },
];

/// How many iterations: a number, or the fewest and the most.
pub(crate) fn times(near: &NearNode) -> String {
    match near.iterations {
        (least, most) if least == most => count(least),
        (least, most) => format!("{{{}..{}}}", count(least), count(most)),
    }
}

/// Such as `≈ 200 × (20 events; 183 equal, 17 differ)`, without the sign if there are no exceptions.
pub(crate) fn heading(near: &NearNode) -> String {
    let about = if near.kinds.is_empty() { "" } else { "≈ " };
    format!("{about}{} × ({})", times(near), summary(near))
}

/// Such as `20 events; 183 equal, 17 differ`.
fn summary(near: &NearNode) -> String {
    let events = match near.lengths {
        (shortest, longest) if shortest == longest => plural(shortest, "event"),
        (shortest, longest) => format!("{} to {}", count(shortest), plural(longest, "event")),
    };
    let mut numbers = Vec::new();
    if near.odd() > 0 {
        numbers.push(format!("{} equal", count(near.equal)));
        numbers.push(format!("{} differ", count(near.odd())));
    }
    if near.followed() > 0 {
        numbers.push(format!("{} followed by more", count(near.followed())));
    }
    let mut text = if numbers.is_empty() { events } else { format!("{events}; {}", numbers.join(", ")) };
    if near.occurrences > 1 {
        text.push_str(&format!("; {} times, {} in all", count(near.occurrences), count(near.all_iterations)));
    }
    text
}

/// A line for each kind of exception, the most frequent first.
pub(super) fn exceptions(near: &NearNode, labels: &Labels<'_>, room: usize, full: bool) -> Vec<String> {
    let mut kinds: Vec<&Kind> = near.kinds.iter().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    let shown = if full { kinds.len() } else { kinds.len().min(MOST_KINDS) };
    let mut lines: Vec<String> = kinds[..shown]
        .iter()
        .map(|kind| {
            let room = if full { usize::MAX } else { room };
            exception(kind, labels, near.lengths.0, room)
        })
        .collect();
    let rest = &kinds[shown..];
    if !rest.is_empty() {
        let exceptions: u64 = rest.iter().map(|kind| kind.count).sum();
        let kinds = plural(rest.len() as u64, "kind");
        lines.push(format!("… {} of {kinds} more", plural(exceptions, "exception")));
    }
    lines.extend(runs(near, room));
    if let Some(order) = near.order() {
        let order: Vec<String> =
            order.iter().map(|&kind| format!("at {}", count(near.kinds[kind].first))).collect();
        lines.push(format!("in turn, each named by its first: {}", order.join(", ")));
    }
    lines
}

/// How many equal iterations lie before, between and behind the exceptions: as many as fit.
fn runs(near: &NearNode, room: usize) -> Option<String> {
    let runs = near.runs()?;
    let mut text = "equal iterations between them:".to_string();
    let rest = format!(", … {} in all", plural(runs.len() as u64, "run"));
    for (index, &run) in runs.iter().enumerate() {
        let word = format!("{} {}", if index > 0 { "," } else { "" }, count(run));
        let behind = if index + 1 < runs.len() { rest.chars().count() } else { 0 };
        if text.chars().count() + word.len() + behind > room && index > 0 {
            return Some(text + &rest);
        }
        text += &word;
    }
    Some(text)
}

fn exception(kind: &Kind, labels: &Labels<'_>, length: u64, room: usize) -> String {
    let head = format!("{} ×, first at {}: ", count(kind.count), count(kind.first));
    let left = room.saturating_sub(head.chars().count());
    head + &change(kind, labels, length, left)
}

/// What an exception is, such as `an iteration with ‘gc’ for ‘opt’`, in as much detail as there is
/// room for.
pub(crate) fn change(kind: &Kind, labels: &Labels<'_>, length: u64, room: usize) -> String {
    if room == usize::MAX {
        return changed_kind(kind, labels, length, EVERYTHING);
    }
    let texts = DETAILS.iter().map(|&detail| changed_kind(kind, labels, length, detail));
    let mut shortest = String::new();
    for text in texts {
        if text.chars().count() <= room {
            return text;
        }
        shortest = text;
    }
    shorten(&shortest, room)
}

fn changed_kind(kind: &Kind, labels: &Labels<'_>, length: u64, detail: Detail) -> String {
    let instead = match kind.iterations {
        0 => "then".to_string(),
        1 => "an iteration".to_string(),
        iterations => plural(iterations, "iteration"),
    };
    match &kind.change {
        Change::Events(events) if kind.iterations == 0 => {
            format!("{instead} {}", listed(events, labels, detail))
        }
        Change::Events(events) => format!("{instead} as {}", listed(events, labels, detail)),
        Change::Edits(edits) => {
            let shown = edits.len().min(detail.edits);
            let mut words: Vec<String> =
                edits[..shown].iter().map(|edit| changed(edit, labels, length, detail)).collect();
            if shown < edits.len() {
                let places = plural((edits.len() - shown) as u64, "place");
                words.push(if shown == 0 {
                    format!("that differs in {places}")
                } else {
                    format!("{places} more")
                });
            }
            format!("{instead} {}", words.join("; "))
        }
    }
}

fn changed(edit: &Edit, labels: &Labels<'_>, length: u64, detail: Detail) -> String {
    let (removed, inserted) = (listed(&edit.removed, labels, detail), listed(&edit.inserted, labels, detail));
    match (edit.removed.is_empty(), edit.inserted.is_empty()) {
        (true, _) if (edit.at as u64).is_multiple_of(length.max(1)) => format!("with {inserted} first"),
        (true, _) => format!("with {inserted} after event {}", count(edit.at as u64)),
        (_, true) => format!("without {removed}"),
        _ => format!("with {inserted} for {removed}"),
    }
}

/// Some events, the first of many.
fn listed(events: &[Symbol], labels: &Labels<'_>, detail: Detail) -> String {
    let shown = match events.len() > detail.events {
        // A mark that there are more takes as much room as one of them.
        true => detail.events.saturating_sub(1).max(detail.events.min(1)),
        false => events.len(),
    };
    let label = |&symbol: &Symbol| {
        let label = labels.of(symbol);
        let label = if detail.label == usize::MAX { label } else { shorten_name(&label, detail.label) };
        format!("‘{label}’")
    };
    let mut words: Vec<String> = events[..shown].iter().map(label).collect();
    if shown < events.len() {
        let all = plural(events.len() as u64, "event");
        words.push(if shown == 0 { all } else { format!("… {all} in all") });
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold::trace::{Collector, Event, Sink};

    /// Whatever the room, quotes are closed.
    #[test]
    fn names_of_exceptions_are_quoted_as_a_whole() {
        let mut collector = Collector::default();
        collector.stream("main").unwrap();
        let names = ["cudaStreamIsCapturing", "cudaGetErrorString", "void at::kernel<float>(int, int)"];
        let symbols: Vec<Symbol> =
            names.iter().map(|name| collector.intern(&Event::named(name)).unwrap()).collect();
        let trace = collector.finish().unwrap();
        let labels = Labels::of_alphabet(&trace.alphabet, false);
        let edit = |at| Edit { at, removed: symbols.clone(), inserted: symbols[..2].to_vec() };
        let changes = [Change::Edits((0..6).map(edit).collect()), Change::Events(symbols.repeat(9))];
        for (change_of, iterations) in changes.into_iter().zip([1, 0]) {
            let kind = Kind { change: change_of, count: 60, first: 276, iterations };
            for room in 30..200 {
                let line = change(&kind, &labels, 300, room);
                assert!(line.chars().count() <= room, "{line}");
                assert_eq!(line.matches('‘').count(), line.matches('’').count(), "{line}");
                assert!(!line.contains("‘…"), "{line}");
            }
        }
    }
}
