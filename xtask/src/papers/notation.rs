//! Nests as the papers write them: in letters, such as `(ab^3)^2c`, and in lengths, such
//! as `(552)^75 = (5 + (21)^26 + 1)^75`.

use super::events_of;
use loopfold_testing::Nest;
use loopfold_testing::nest::Node;
use std::iter::Peekable;
use std::str::Chars;

/// The nest that a text in letters describes. A letter is an event.
pub(super) fn parse(text: &str) -> Nest {
    Nest(sequence(&mut text.chars().peekable()))
}

fn sequence(rest: &mut Peekable<Chars<'_>>) -> Vec<Node> {
    let mut nodes = Vec::new();
    while let Some(letter) = rest.next_if(|&letter| letter != ')') {
        let once = match letter {
            '(' => {
                let body = sequence(rest);
                rest.next_if_eq(&')');
                body
            }
            letter => vec![Node::Event(u32::from(letter))],
        };
        match times(rest) {
            1 => nodes.extend(once),
            times => nodes.push(Node::Loop(once, times)),
        }
    }
    nodes
}

fn times(rest: &mut Peekable<Chars<'_>>) -> u64 {
    if rest.next_if_eq(&'^').is_none() {
        return 1;
    }
    let mut times = 0;
    while let Some(digit) = rest.peek().and_then(|letter| letter.to_digit(10)) {
        times = 10 * times + u64::from(digit);
        rest.next();
    }
    times
}

/// A nest in letters, loops always in parentheses: `(a(b)^3)^2c`.
pub(super) fn letters(nodes: &[Node]) -> String {
    let text = |node: &Node| match node {
        Node::Event(event) => char::from_u32(*event).unwrap_or('?').to_string(),
        Node::Loop(body, times) => format!("({})^{times}", letters(body)),
    };
    nodes.iter().map(text).collect()
}

/// The loop that spans most, in lengths. As in the paper's tables, a repeat of only two
/// inside it is not distinguished from the events around it.
pub(super) fn main_loop(nest: &Nest) -> Option<String> {
    let spans = nest.0.iter().filter(|node| matches!(node, Node::Loop(..)));
    let Node::Loop(body, times) = spans.max_by_key(|node| events_of(std::slice::from_ref(node)))? else {
        return None;
    };
    let whole = format!("({})^{times}", events_of(body));
    let parts = parts(body);
    Some(if parts.len() == 1 { whole } else { format!("{whole} = ({})^{times}", shortened(&parts)) })
}

fn parts(body: &[Node]) -> Vec<String> {
    let mut parts = Vec::new();
    let mut plain = 0;
    for node in body {
        match node {
            Node::Loop(body, times) if *times > 2 => {
                parts.extend((plain > 0).then(|| plain.to_string()));
                parts.push(format!("({})^{times}", events_of(body)));
                plain = 0;
            }
            other => plain += events_of(std::slice::from_ref(other)),
        }
    }
    parts.extend((plain > 0).then(|| plain.to_string()));
    parts
}

/// The sum of the parts; of three or more equal ones in a row only the first and the last.
fn shortened(parts: &[String]) -> String {
    let groups = parts.chunk_by(|left, right| left == right);
    let shown: Vec<String> = groups
        .map(|group| match group.len() {
            0..=2 => group.join(" + "),
            _ => format!("{0} + … + {0}", group[0]),
        })
        .collect();
    shown.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nest_in_letters_is_read_and_written() {
        let nest = parse("x(ab^3)^2(c)^4");
        assert_eq!(nest.unfold(), parse("xabbbabbbcccc").unfold());
        assert_eq!(letters(&nest.0), "x(a(b)^3)^2(c)^4");
    }

    #[test]
    fn a_nest_in_lengths_is_a_sum() {
        let body = |text: &str| main_loop(&parse(text)).unwrap_or_default();
        assert_eq!(body("x(abc)^7y"), "(3)^7");
        assert_eq!(body("x(a(bc)^3d(e)^2)^7y"), "(10)^7 = (1 + (2)^3 + 3)^7");
        assert_eq!(body("((bc)^3(de)^3(fg)^3a)^7y"), "(19)^7 = ((2)^3 + … + (2)^3 + 1)^7");
    }
}
