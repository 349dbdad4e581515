//! Prints a sequence of events on a terminal: each loop in it is written once, and lines are
//! no wider than the terminal.

use super::{Labels, plural, shorten};
use loopfold::fold::{FoldBuilder, Target};
use loopfold::folders::{Folder as _, Outermost};
use loopfold::questions::nest::{Nest, Node};
use loopfold::{Fold, Symbol};

/// The lines of a sequence, each at most `width` wide. Of lines far beyond `most`, only the
/// number of events is shown.
pub(crate) fn subpath_lines(
    labels: &Labels<'_>,
    events: &[Symbol],
    width: usize,
    most: usize,
) -> Vec<String> {
    nest_lines(labels, &nest_of(events), width, most)
}

/// The same for a nest.
pub(crate) fn nest_lines(labels: &Labels<'_>, nest: &Nest, width: usize, most: usize) -> Vec<String> {
    let words = words(labels, nest, width);
    let separator = if words.iter().any(|word| word.text.contains(' ')) { ", " } else { " " };
    let mut lines: Vec<(String, u64)> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some((line, events))
                if line.chars().count() + separator.len() + word.text.chars().count() <= width =>
            {
                line.push_str(separator);
                line.push_str(&word.text);
                *events = events.saturating_add(word.events);
            }
            _ => lines.push((word.text, word.events)),
        }
    }
    let mut shown: Vec<String> = Vec::new();
    // A line or two are no longer than the number of their events.
    let left_out = if lines.len() > most.saturating_add(2) { lines.split_off(most) } else { Vec::new() };
    shown.extend(lines.into_iter().map(|(line, _)| line));
    if !left_out.is_empty() {
        shown.push(format!(
            "… {}",
            plural(left_out.iter().fold(0, |sum: u64, (_, events)| sum.saturating_add(*events)), "event")
        ));
    }
    shown
}

/// The body of a loop on one line: as many events as fit, and how many there are.
pub(crate) fn body_line(fold: &Fold, body: Target, labels: &Labels<'_>, width: usize) -> String {
    /// More nodes than fit on any line.
    const NODES: usize = 64;
    let rule = match body {
        Target::Rule(rule) => rule,
        Target::Symbol(symbol) => return shorten(&labels.of(symbol), width),
    };
    let lines = nest_lines(labels, &fold.nest(rule, NODES), width, 1);
    if let [line] = &lines[..] {
        return line.clone();
    }
    let rest = format!(" … {}", plural(fold.length(rule), "event"));
    let first = lines.first().map_or("", String::as_str);
    shorten(first, width.saturating_sub(rest.chars().count())) + &rest
}

/// An event with the parentheses of the loops that start or end at it.
struct Word {
    text: String,
    /// How many events of the sequence it stands for.
    events: u64,
}

fn words(labels: &Labels<'_>, nest: &Nest, width: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    // The loops that are open: where each began and ends, and how often it repeats.
    let mut open: Vec<(usize, usize, u64)> = Vec::new();
    let mut before = String::new();
    for (at, node) in nest.nodes.iter().enumerate() {
        match *node {
            Node::Loop { times, end, .. } => {
                open.push((at, end, times));
                // A loop of one event needs no parentheses.
                before.push_str(if end - at > 2 { "(" } else { "" });
            }
            Node::Event(symbol) => {
                // With room for parentheses and a number of iterations.
                let text =
                    std::mem::take(&mut before) + &shorten(&labels.of(symbol), width.saturating_sub(8));
                words.push(Word {
                    text,
                    events: open.iter().fold(1, |events: u64, (.., times)| events.saturating_mul(*times)),
                });
            }
            // Those of subpaths are exact.
            Node::Near { .. } => {}
            Node::LeftOut(events) => {
                words.push(Word { text: format!("… {}", plural(events, "event")), events })
            }
        }
        while let Some((start, end, times)) = open.pop_if(|(_, end, _)| *end == at + 1) {
            if let Some(last) = words.last_mut() {
                let close = if end - start > 2 { ")" } else { "" };
                last.text.push_str(&format!("{close}^{times}"));
            }
        }
    }
    words
}

/// The loops in a sequence, or the sequence as it is.
fn nest_of(events: &[Symbol]) -> Nest {
    let mut builder = FoldBuilder::default();
    match Outermost::default().fold(events, &mut builder) {
        Ok(root) => builder.finish().nest(root, 2 * events.len() + 1),
        Err(_) => {
            Nest { nodes: events.iter().map(|&symbol| Node::Event(symbol)).collect(), near: Vec::new() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold::trace::{Alphabet, Event};

    fn lines(text: &str, width: usize, most: usize) -> Vec<String> {
        let mut alphabet = Alphabet::default();
        let mut intern = |name: &str| alphabet.intern(&Event::named(name), None).unwrap();
        let events: Vec<Symbol> = text.split(' ').map(|name| intern(&name.replace('_', " "))).collect();
        let fold = FoldBuilder::new(alphabet).finish();
        subpath_lines(&Labels::new(&fold, false), &events, width, most)
    }

    #[test]
    fn repeats_are_written_once() {
        assert_eq!(lines("a b", 80, 5), ["a b"]);
        assert_eq!(lines("a a a b", 80, 5), ["a^3 b"]);
        assert_eq!(lines("x a b b a b b a b b", 80, 5), ["x (a b^2)^3"]);
        assert_eq!(lines("read_a read_a b", 80, 5), ["read a^2, b"]);
    }

    #[test]
    fn long_ones_are_wrapped_and_cut() {
        let text = "one two three four five six seven eight";
        assert_eq!(lines(text, 13, 9), ["one two three", "four five six", "seven eight"]);
        assert_eq!(lines(text, 8, 1), ["one two", "… 6 events"]);
        assert_eq!(lines(text, 13, 1).len(), 3);
        assert_eq!(lines("quarter one one one quarter two two x", 8, 1), ["quarter", "… 7 events"]);
    }
}
