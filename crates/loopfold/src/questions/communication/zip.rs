//! Pairs the events of two loop nests by position: the n-th event of one with the n-th of the
//! other. It matches messages, and the calls of a collective operation.
//!
//! Loops iterate in lockstep: where one has `a` events an iteration and the other `b`, a
//! stretch of lcm(a, b) events is compared once and stands for all of its repetitions. So the
//! cost is O(written events), independent of the repetitions. Where the lengths of loops do not
//! fit each other, it is O(events of the shorter one) in the worst case, so the number of steps
//! is limited.

/// An event, or a loop of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// An event, by its index among those that are written.
    Event(u32),
    /// A loop; boxed, as most nodes are events.
    Loop(Box<Loop>),
}

/// What is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// How often.
    pub(super) times: u64,
    /// How many events an iteration is.
    pub(super) each: u64,
    /// An iteration.
    pub(super) body: Vec<Node>,
}

impl Node {
    /// How many events this is.
    pub(super) fn events(&self) -> u64 {
        match self {
            Node::Event(_) => 1,
            // Streams have at most 2^64 events, and this is a part of one.
            Node::Loop(found) => found.times.saturating_mul(found.each),
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

/// The next node.
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
                Node::Loop(found) => Head::Loop { times: found.times, each: found.each },
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
            Node::Loop(found) => &found.body,
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
        if let Node::Loop(found) = &frame.nodes[frame.next] {
            frame.next += 1;
            let (nodes, again, each) = (&found.body[..], found.times - 1, found.each);
            self.frames.push(Frame { nodes, next: 0, again, each, is_entered: true });
        }
    }

    /// Skips this many iterations of the loop ahead, or the event.
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
        if let Node::Loop(found) = node
            && found.times > iterations
        {
            let (nodes, again, each) = (&found.body[..], found.times - iterations - 1, found.each);
            self.frames.push(Frame { nodes, next: 0, again, each, is_entered: false });
        }
    }
}

/// Events that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) left: u32,
    pub(super) right: u32,
    /// How often.
    pub(super) times: u64,
    /// How many come before it, the first time.
    pub(super) nth: u64,
}

/// Receives the pairs of events that belong together.
pub(super) trait PairSink {
    /// A pair.
    fn pair(&mut self, pair: Pair);

    /// The pairs up to the end are repeated this often.
    fn begin(&mut self, _times: u64) {}

    /// The end of what is repeated.
    fn end(&mut self) {}
}

impl<F: FnMut(Pair)> PairSink for F {
    fn pair(&mut self, pair: Pair) {
        self(pair);
    }
}

/// Emits the pairs of events, in the order of their first occurrences, until the steps are used
/// up. The rest of the longer sequence has no partners.
pub(super) fn zip(left: &[Node], right: &[Node], steps: &mut u64, sink: &mut impl PairSink) {
    let (a, b) = (Cursor::new(left, 1, events(left)), Cursor::new(right, 1, events(right)));
    zip_at(a, b, (0, 1), steps, sink);
}

/// Stops when one of the two is empty. Each level of the recursion is at most half as long as
/// the one above it, so there are at most 64.
fn zip_at(
    mut a: Cursor<'_>,
    mut b: Cursor<'_>,
    (mut nth, times): (u64, u64),
    steps: &mut u64,
    sink: &mut impl PairSink,
) {
    while let (Some(left), Some(right)) = (a.head(), b.head()) {
        let Some(left_over) = steps.checked_sub(1) else { return };
        *steps = left_over;
        match (left, right) {
            (Head::Event(left), Head::Event(right)) => {
                sink.pair(Pair { left, right, times, nth });
                nth = nth.saturating_add(1);
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
                        sink.begin(stretches);
                        zip_at(once_left, once_right, (nth, times.saturating_mul(stretches)), steps, sink);
                        sink.end();
                        // An event can be many messages, which can then be more than 2^64.
                        nth = nth.saturating_add(stretch * stretches);
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
            let node = Loop { times, each: events(&body), body };
            self.last().push(Node::Loop(Box::new(node)));
        }
    }
}

/// Two forms of the same sequence in one: its events are pairs of theirs, its loops are those
/// that both have.
#[derive(Debug, Default)]
pub(super) struct Joint {
    pub(super) pairs: Vec<(u32, u32)>,
    sequence: Sequence,
}

impl Joint {
    pub(super) fn of(left: &[Node], right: &[Node]) -> (Vec<(u32, u32)>, Vec<Node>) {
        let mut joint = Self::default();
        // Both have the events of a stream that was held in memory, so the number of steps is
        // bounded.
        let mut steps = u64::MAX;
        zip(left, right, &mut steps, &mut joint);
        (joint.pairs, joint.sequence.finish())
    }
}

impl PairSink for Joint {
    fn pair(&mut self, pair: Pair) {
        let number = self.pairs.len() as u32;
        self.pairs.push((pair.left, pair.right));
        self.sequence.last().push(Node::Event(number));
    }

    fn begin(&mut self, times: u64) {
        self.sequence.open.push((0, times, Vec::new()));
    }

    fn end(&mut self) {
        self.sequence.close(self.sequence.open.len() - 1);
    }
}

/// Calls `then` with each event and the loops around it, outermost first, each with a number
/// of its own from `next_loop` on. Loops are no deeper than 64: each doubles what it holds.
pub(super) fn each_with_loops(
    nodes: &[Node],
    around: &mut Vec<(u32, u64)>,
    next_loop: &mut u32,
    then: &mut impl FnMut(u32, &[(u32, u64)]),
) {
    for node in nodes {
        match node {
            Node::Event(index) => then(*index, around),
            Node::Loop(found) => {
                around.push((*next_loop, found.times));
                *next_loop = next_loop.wrapping_add(1);
                each_with_loops(&found.body, around, next_loop, then);
                around.pop();
            }
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
                Node::Loop(found) => (0..found.times).for_each(|_| written_out(&found.body, out)),
            }
        }
    }

    fn many(times: u64, body: Vec<Node>) -> Node {
        Node::Loop(Box::new(Loop { times, each: events(&body), body }))
    }

    fn random_nodes(rng: &mut Rng, depth: usize, next: &mut u32) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..1 + rng.below(3) {
            if depth > 0 && rng.below(2) == 0 {
                let body = random_nodes(rng, depth - 1, next);
                nodes.push(many(2 + rng.below(7) as u64, body));
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
            for (nth, pair) in a.iter().copied().zip(b.iter().copied()).enumerate() {
                let times = expected.entry(pair).or_default();
                *times += 1;
                if *times == 1 {
                    first.push((pair, nth as u64));
                }
            }
            let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            let mut order = Vec::new();
            let mut steps = 1 << 20;
            zip(&left, &right, &mut steps, &mut |pair: Pair| {
                let sum = counts.entry((pair.left, pair.right)).or_default();
                if *sum == 0 {
                    order.push(((pair.left, pair.right), pair.nth));
                }
                *sum += pair.times;
            });
            let (pairs, joint) = Joint::of(&left, &right);
            let mut both = Vec::new();
            written_out(&joint, &mut both);
            let both: Vec<(u32, u32)> = both.into_iter().map(|pair| pairs[pair as usize]).collect();
            assert_eq!(both, a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>());
            assert_eq!(counts, expected, "{left:?}\n{right:?}");
            assert_eq!(order, first, "{left:?}\n{right:?}");
        }
    }

    #[test]
    fn repetitions_cost_nothing() {
        let body = |first| vec![Node::Event(first), Node::Event(first + 1)];
        // Loops of four events beside loops of two, and a nest beside a plain loop.
        let left = [many(1 << 40, vec![many(2, body(0))]), many(1 << 50, body(2))];
        let right = [many(1 << 41, body(5)), many(1 << 51, vec![Node::Event(9)])];
        let mut pairs = Vec::new();
        let mut steps = 100;
        zip(&left, &right, &mut steps, &mut |pair: Pair| pairs.push((pair.left, pair.right, pair.times)));
        assert_eq!(pairs, [(0, 5, 1 << 41), (1, 6, 1 << 41), (2, 9, 1 << 50), (3, 9, 1 << 50)]);
    }

    #[test]
    fn the_steps_end_where_loops_are_not_in_lockstep() {
        // 2^60 events each, in iterations of which only one in 2^30 begins with another.
        let body = |events: u64| vec![many(events, vec![Node::Event(0)]), Node::Event(1)];
        let (left, right) = ([many(1 << 30, body(1 << 30))], [many(1 << 30, body((1 << 30) - 2))]);
        let (mut steps, mut pairs) = (10_000, 0);
        zip(&left, &right, &mut steps, &mut |_: Pair| pairs += 1);
        assert_eq!(steps, 0);
        assert!(pairs > 1000, "{pairs}");
    }

    #[test]
    fn more_than_can_be_counted_is_no_harm() {
        let many_messages = |first| many(1 << 60, (first..first + 64).map(Node::Event).collect());
        let (left, right) = ([many_messages(0), Node::Event(70)], [many_messages(100), Node::Event(170)]);
        let mut pairs = Vec::new();
        zip(&left, &right, &mut 100_000, &mut |pair: Pair| pairs.push((pair.left, pair.right)));
        pairs.sort_unstable();
        pairs.dedup();
        let expected = (0..64).map(|index| (index, 100 + index)).chain([(70, 170)]);
        assert!(pairs.into_iter().eq(expected));
    }

    #[test]
    fn a_sequence_is_built_from_events_and_their_loops() {
        let mut sequence = Sequence::default();
        sequence.push(0, &[]);
        sequence.push(1, &[(7, 3), (8, 2)]);
        sequence.push(2, &[(7, 3)]);
        sequence.push(3, &[(9, 5)]);
        let inner = many(2, vec![Node::Event(1)]);
        let outer = many(3, vec![inner, Node::Event(2)]);
        let last = many(5, vec![Node::Event(3)]);
        assert_eq!(sequence.finish(), [Node::Event(0), outer, last]);
    }
}
