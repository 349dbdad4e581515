//! Loops with exceptions in words: their numbers, and their exceptions by kind.

use super::{Labels, count, plural, shorten};
use loopfold::Symbol;
use loopfold::questions::near::{Change, Edit, Kind, NearNode};

/// Kinds of exceptions that are listed, and edits of one.
const MOST_KINDS: usize = 6;
const MOST_EDITS: usize = 4;
/// The longest label of an event of an exception.
const LABEL: usize = 40;

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
            let line = exception(kind, labels, near.lengths.0, full);
            if full { line } else { shorten(&line, room) }
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

fn exception(kind: &Kind, labels: &Labels<'_>, length: u64, full: bool) -> String {
    format!("{} ×, first at {}: {}", count(kind.count), count(kind.first), change(kind, labels, length, full))
}

/// What an exception is, such as `an iteration with ‘gc’ for ‘opt’`.
pub(crate) fn change(kind: &Kind, labels: &Labels<'_>, length: u64, full: bool) -> String {
    let instead = match kind.iterations {
        0 => "then".to_string(),
        1 => "an iteration".to_string(),
        iterations => plural(iterations, "iteration"),
    };
    match &kind.change {
        Change::Events(events) if kind.iterations == 0 => {
            format!("{instead} {}", listed(events, labels, full))
        }
        Change::Events(events) => format!("{instead} as {}", listed(events, labels, full)),
        Change::Edits(edits) => {
            let shown = if full { edits.len() } else { edits.len().min(MOST_EDITS) };
            let mut words: Vec<String> =
                edits[..shown].iter().map(|edit| changed(edit, labels, length, full)).collect();
            if shown < edits.len() {
                words.push(format!("{} more", plural((edits.len() - shown) as u64, "place")));
            }
            format!("{instead} {}", words.join("; "))
        }
    }
}

fn changed(edit: &Edit, labels: &Labels<'_>, length: u64, full: bool) -> String {
    let (removed, inserted) = (listed(&edit.removed, labels, full), listed(&edit.inserted, labels, full));
    match (edit.removed.is_empty(), edit.inserted.is_empty()) {
        (true, _) if (edit.at as u64).is_multiple_of(length.max(1)) => format!("with {inserted} first"),
        (true, _) => format!("with {inserted} after event {}", count(edit.at as u64)),
        (_, true) => format!("without {removed}"),
        _ => format!("with {inserted} for {removed}"),
    }
}

/// Some events, the first of many.
fn listed(events: &[Symbol], labels: &Labels<'_>, full: bool) -> String {
    const SHOWN: usize = 5;
    let shown = if full || events.len() <= SHOWN + 1 { events.len() } else { SHOWN };
    let label = |&symbol: &Symbol| {
        let label = labels.of(symbol);
        let label = if full { label } else { shorten(&label, LABEL) };
        format!("‘{label}’")
    };
    let mut words: Vec<String> = events[..shown].iter().map(label).collect();
    if shown < events.len() {
        words.push(format!("… {} in all", plural(events.len() as u64, "event")));
    }
    words.join(" ")
}
