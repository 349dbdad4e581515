//! Two sequences in nested loops, event by event: the n-th of one belongs to the n-th of the
//! other. This is how messages find each other, and calls of a collective operation.
//!
//! Loops that go together are passed over together: where one has `a` events an iteration and
//! the other `b`, a stretch of lcm(a, b) events is compared once and stands for all of its
//! repetitions. So the cost goes with what is written, not with how often it is repeated; where
//! loops do not go together it goes with the events of the shorter one, at worst.

/// An event, or a loop of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// An event, by its index among those that are written.
    Event(u32),
    /// What is repeated.
    Loop {
        /// How often.
        times: u64,
        /// How many events an iteration is.
        each: u64,
        /// An iteration.
        body: Vec<Node>,
    },
}

impl Node {
    /// How many events this is.
    pub(super) fn events(&self) -> u64 {
        match self {
            Node::Event(_) => 1,
            // Streams have at most 2^64 events, and this is a part of one.
            Node::Loop { times, each, .. } => times.saturating_mul(*each),
        }
    }
}

/// How many events a sequence is.
pub(super) fn events(nodes: &[Node]) -> u64 {
    nodes.iter().fold(0, |sum, node| sum.saturating_add(node.events()))
}

/// A place in a sequence.
struct Cursor<'a> {
    frames: Vec<Frame<'a>>,
}

struct Frame<'a> {
    nodes: &'a [Node],
    next: usize,
    /// How often this is repeated after this time.
    again: u64,
    each: u64,
    /// Whether this iteration has begun, so that it is no longer part of a loop ahead.
    is_entered: bool,
}

/// What is ahead.
#[derive(Clone, Copy)]
enum Head {
    Event(u32),
    Loop { times: u64, each: u64 },
}

impl Head {
    fn events(self) -> u64 {
        match self {
            Head::Event(_) => 1,
            Head::Loop { times, each } => times.saturating_mul(each),
        }
    }
}

impl<'a> Cursor<'a> {
    fn new(nodes: &'a [Node], times: u64, each: u64) -> Self {
        let again = times.saturating_sub(1);
        Self { frames: vec![Frame { nodes, next: 0, again, each, is_entered: false }] }
    }

    fn head(&mut self) -> Option<Head> {
        loop {
            let frame = self.frames.last_mut()?;
            if frame.next == frame.nodes.len() {
                if frame.again == 0 || frame.nodes.is_empty() {
                    self.frames.pop();
                    continue;
                }
                (frame.next, frame.again, frame.is_entered) = (0, frame.again - 1, false);
            }
            if frame.next == 0 && frame.again > 0 && !frame.is_entered {
                return Some(Head::Loop { times: frame.again + 1, each: frame.each });
            }
            return Some(match &frame.nodes[frame.next] {
                Node::Event(index) => Head::Event(*index),
                Node::Loop { times, each, .. } => Head::Loop { times: *times, each: *each },
            });
        }
    }

    /// True if the loop ahead is the frame itself.
    fn is_at_frame(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.next == 0 && frame.again > 0 && !frame.is_entered)
    }

    /// What is repeated in the loop ahead.
    fn body(&self) -> &'a [Node] {
        let Some(frame) = self.frames.last() else { return &[] };
        match &frame.nodes[frame.next] {
            _ if self.is_at_frame() => frame.nodes,
            Node::Loop { body, .. } => body,
            Node::Event(_) => &[],
        }
    }

    /// Begins the loop ahead.
    fn enter(&mut self) {
        let is_at_frame = self.is_at_frame();
        let Some(frame) = self.frames.last_mut() else { return };
        if is_at_frame {
            frame.is_entered = true;
            return;
        }
        if let Node::Loop { times, each, body } = &frame.nodes[frame.next] {
            frame.next += 1;
            let again = times - 1;
            self.frames.push(Frame { nodes: body, next: 0, again, each: *each, is_entered: true });
        }
    }

    /// Passes over so many iterations of the loop ahead, or over the event.
    fn skip(&mut self, iterations: u64) {
        let is_at_frame = self.is_at_frame();
        let Some(frame) = self.frames.last_mut() else { return };
        if is_at_frame {
            match (frame.again + 1).checked_sub(iterations) {
                Some(0) | None => {
                    self.frames.pop();
                }
                Some(left) => frame.again = left - 1,
            }
            return;
        }
        let node = &frame.nodes[frame.next];
        frame.next += 1;
        if let Node::Loop { times, each, body } = node
            && *times > iterations
        {
            let again = times - iterations - 1;
            self.frames.push(Frame { nodes: body, next: 0, again, each: *each, is_entered: false });
        }
    }
}

/// Tells which events belong together, and how often: `tell(a, b, times)`. What one sequence
/// has more than the other belongs to nothing. First occurrences are told in order.
pub(super) fn zip(left: &[Node], right: &[Node], tell: &mut impl FnMut(u32, u32, u64)) {
    let (a, b) = (Cursor::new(left, 1, events(left)), Cursor::new(right, 1, events(right)));
    zip_at(a, b, 1, tell);
}

/// Goes to where both are empty or one is. Each level of the recursion is half as long as the
/// one above it, at most, so there are no more than 64.
fn zip_at(mut a: Cursor<'_>, mut b: Cursor<'_>, times: u64, tell: &mut impl FnMut(u32, u32, u64)) {
    while let (Some(left), Some(right)) = (a.head(), b.head()) {
        match (left, right) {
            (Head::Event(left), Head::Event(right)) => {
                tell(left, right, times);
                a.skip(1);
                b.skip(1);
            }
            (Head::Loop { .. }, Head::Event(_)) => a.enter(),
            (Head::Event(_), Head::Loop { .. }) => b.enter(),
            (Head::Loop { each: in_left, .. }, Head::Loop { each: in_right, .. }) => {
                let stretch = least_common_multiple(in_left, in_right);
                let stretches = stretch.map_or(0, |events| left.events().min(right.events()) / events);
                match stretch {
                    Some(stretch) if stretches >= 2 => {
                        let (left_times, right_times) = (stretch / in_left, stretch / in_right);
                        let once_left = Cursor::new(a.body(), left_times, in_left);
                        let once_right = Cursor::new(b.body(), right_times, in_right);
                        zip_at(once_left, once_right, times.saturating_mul(stretches), tell);
                        a.skip(left_times * stretches);
                        b.skip(right_times * stretches);
                    }
                    _ if in_left >= in_right => a.enter(),
                    _ => b.enter(),
                }
            }
        }
    }
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut greater, mut less) = (a.max(b), a.min(b));
    while less > 0 {
        (greater, less) = (less, greater % less);
    }
    (a / greater.max(1)).checked_mul(b).filter(|&multiple| multiple > 0)
}

/// Builds a sequence from events that come in order, each with the loops around it.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    done: Vec<Node>,
    /// The loops that are open: which one, how often it repeats, and what it holds so far.
    open: Vec<(u32, u64, Vec<Node>)>,
}

impl Sequence {
    /// Adds an event; `around` are the loops that hold it, outermost first, each by a number
    /// of its own and how often it repeats.
    pub(super) fn push(&mut self, index: u32, around: &[(u32, u64)]) {
        let same = self.open.iter().zip(around).take_while(|(open, around)| open.0 == around.0).count();
        self.close(same);
        self.open.extend(around[same..].iter().map(|&(number, times)| (number, times, Vec::new())));
        self.last().push(Node::Event(index));
    }

    /// The sequence.
    pub(super) fn finish(mut self) -> Vec<Node> {
        self.close(0);
        self.done
    }

    fn last(&mut self) -> &mut Vec<Node> {
        self.open.last_mut().map_or(&mut self.done, |(_, _, body)| body)
    }

    /// Closes loops until so many are open.
    fn close(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some((_, times, body)) = self.open.pop() else { return };
            let node = Node::Loop { times, each: events(&body), body };
            self.last().push(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::Rng;
    use std::collections::BTreeMap;

    fn written_out(nodes: &[Node], out: &mut Vec<u32>) {
        for node in nodes {
            match node {
                Node::Event(index) => out.push(*index),
                Node::Loop { times, body, .. } => (0..*times).for_each(|_| written_out(body, out)),
            }
        }
    }

    fn random_nodes(rng: &mut Rng, depth: usize, next: &mut u32) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..1 + rng.below(3) {
            if depth > 0 && rng.below(2) == 0 {
                let body = random_nodes(rng, depth - 1, next);
                nodes.push(Node::Loop { times: 2 + rng.below(7) as u64, each: events(&body), body });
            } else {
                nodes.push(Node::Event(*next));
                *next += 1;
            }
        }
        nodes
    }

    #[test]
    fn it_is_the_same_as_writing_both_out() {
        let mut rng = Rng::new(3);
        for _ in 0..20_000 {
            let depth = rng.below(4);
            let left = random_nodes(&mut rng, depth, &mut 0);
            let right = if rng.below(3) == 0 { left.clone() } else { random_nodes(&mut rng, depth, &mut 0) };
            let (mut a, mut b) = (Vec::new(), Vec::new());
            written_out(&left, &mut a);
            written_out(&right, &mut b);
            assert_eq!((events(&left), events(&right)), (a.len() as u64, b.len() as u64));
            let mut expected: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            let mut first = Vec::new();
            for pair in a.iter().copied().zip(b.iter().copied()) {
                let times = expected.entry(pair).or_default();
                *times += 1;
                if *times == 1 {
                    first.push(pair);
                }
            }
            let mut told: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            let mut order = Vec::new();
            zip(&left, &right, &mut |a, b, times| {
                let sum = told.entry((a, b)).or_default();
                if *sum == 0 {
                    order.push((a, b));
                }
                *sum += times;
            });
            assert_eq!(told, expected, "{left:?}\n{right:?}");
            assert_eq!(order, first, "{left:?}\n{right:?}");
        }
    }

    #[test]
    fn repetitions_cost_nothing() {
        let body = |first| vec![Node::Event(first), Node::Event(first + 1)];
        let many = |times, body: Vec<Node>| Node::Loop { times, each: events(&body), body };
        // Loops of four events beside loops of two, and a nest beside a plain loop.
        let left = [many(1 << 40, vec![many(2, body(0))]), many(1 << 50, body(2))];
        let right = [many(1 << 41, body(5)), many(1 << 51, vec![Node::Event(9)])];
        let mut told = Vec::new();
        zip(&left, &right, &mut |a, b, times| told.push((a, b, times)));
        assert_eq!(told, [(0, 5, 1 << 41), (1, 6, 1 << 41), (2, 9, 1 << 50), (3, 9, 1 << 50)]);
    }

    #[test]
    fn a_sequence_is_built_from_events_and_their_loops() {
        let mut sequence = Sequence::default();
        sequence.push(0, &[]);
        sequence.push(1, &[(7, 3), (8, 2)]);
        sequence.push(2, &[(7, 3)]);
        sequence.push(3, &[(9, 5)]);
        let inner = Node::Loop { times: 2, each: 1, body: vec![Node::Event(1)] };
        let outer = Node::Loop { times: 3, each: 3, body: vec![inner, Node::Event(2)] };
        let last = Node::Loop { times: 5, each: 1, body: vec![Node::Event(3)] };
        assert_eq!(sequence.finish(), [Node::Event(0), outer, last]);
    }
}
