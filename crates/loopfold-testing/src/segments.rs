//! Segments and samples by their definitions: every iteration of every loop is walked.

use crate::nest::Node;

/// Events, the position of the first occurrence, the loops around that, and the occurrences.
pub type Segment = (Vec<u32>, u64, u32, u64);

/// The distinct maximal sequences of events without a loop, in the order of their first occurrences.
pub fn segments(nest: &[Node]) -> Vec<Segment> {
    let mut occurrences: Vec<(Vec<u32>, u64, u32)> = Vec::new();
    let mut position = 0;
    walk(nest, 0, &mut position, &mut occurrences);
    let mut found: Vec<Segment> = Vec::new();
    for (events, start, depth) in occurrences {
        match found.iter_mut().find(|(known, ..)| *known == events) {
            Some((.., times)) => *times += 1,
            None => found.push((events, start, depth, 1)),
        }
    }
    found
}

fn walk(nodes: &[Node], depth: u32, position: &mut u64, occurrences: &mut Vec<(Vec<u32>, u64, u32)>) {
    let mut is_inside = false;
    for node in nodes {
        match node {
            Node::Event(event) => {
                if !is_inside {
                    occurrences.push((Vec::new(), *position, depth));
                }
                is_inside = true;
                *position += 1;
                if let Some((events, ..)) = occurrences.last_mut() {
                    events.push(*event);
                }
            }
            Node::Loop(body, times) => {
                is_inside = false;
                (0..*times).for_each(|_| walk(body, depth + 1, position, occurrences));
            }
        }
    }
}

/// The weight of every event of the stream: 0 if it is not in the sample. Of a loop, the first `kept`
/// iterations are, and the last of them has the weight of the rest.
pub fn sample_weights(nest: &[Node], kept: u64) -> Vec<u64> {
    let mut weights = Vec::new();
    weigh(nest, kept, 1, &mut weights);
    weights
}

fn weigh(nodes: &[Node], kept: u64, weight: u64, weights: &mut Vec<u64>) {
    for node in nodes {
        match node {
            Node::Event(_) => weights.push(weight),
            Node::Loop(body, times) => {
                for iteration in 0..*times {
                    let left_out = times.saturating_sub(kept);
                    let own = match iteration + 1 {
                        number if number > kept => 0,
                        number if number == kept => 1 + left_out,
                        _ => 1,
                    };
                    weigh(body, kept, weight * own, weights);
                }
            }
        }
    }
}
