//! Rotates loop bodies so that an iteration begins where a reader expects it: at a given event,
//! at balanced calls, or after the longest pause.
//!
//! `(uv)^n` is the same as `u (vu)^(n-1) v`, and `(uv)^n u` is the same as `u (vu)^n`. So
//! nothing is lost. A loop of two iterations that is not followed by `u` would no longer be a
//! loop, and is not rotated. Loops that become equal to what stands before or after them are
//! joined: `(vu)^3 vu (vu)^2` is `(vu)^6`. Cost: linear in the output, which is at most a few times the nest;
//! for pauses, linear in the events.

use super::nest::{Nest, Node, Visit};
use crate::trace::{Alphabet, Role, Times};
use crate::{Result, Symbol};
use std::ops::Range;

/// Where an iteration should begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Align {
    /// At the first of these events, which are in order.
    Event(Vec<Symbol>),
    /// Where as many functions are left as were entered since the iteration began.
    Calls,
    /// After the longest pause, over all iterations.
    Gap,
}

/// The nest with its loops rotated. `times` are those of one of its streams.
pub fn align(nest: &Nest, how: &Align, alphabet: &Alphabet, times: &Times) -> Result<Nest> {
    let pauses = match how {
        Align::Gap => pauses_before(nest, times)?,
        _ => Vec::new(),
    };
    let depths = match how {
        Align::Calls => depths_of(nest, alphabet),
        _ => Vec::new(),
    };
    let largest = LARGEST + 4 * nest.nodes.len();
    let aligner = Aligner { nest, how, pauses: &pauses, depths: &depths, largest };
    let mut out = Nest { near: nest.near.clone(), ..Nest::default() };
    aligner.copy(0..nest.nodes.len(), &mut out);
    // The output was cut, so the unrotated nest is returned whole.
    Ok(if out.nodes.len() > largest { nest.clone() } else { joined(&out) })
}

/// For each rotation of a body whether an iteration may begin there; all may after the longest
/// pause, which belongs to places rather than to events.
pub fn beginnings(body: &[Symbol], how: &Align, alphabet: &Alphabet) -> Vec<bool> {
    let known = |symbol: &&Symbol| symbol.index() < alphabet.len();
    match how {
        Align::Event(events) => body.iter().map(|symbol| events.binary_search(symbol).is_ok()).collect(),
        Align::Calls => {
            let step = |symbol: &Symbol| match Some(symbol)
                .filter(known)
                .map(|&symbol| alphabet.meaning(symbol).role)
            {
                Some(Role::Enter) => 1i64,
                Some(Role::Leave) => -1,
                _ => 0,
            };
            let mut depth = 0;
            let depths: Vec<i64> = body
                .iter()
                .map(|symbol| {
                    let before = depth;
                    depth += step(symbol);
                    before
                })
                .collect();
            let lowest = depths.iter().min().copied().filter(|_| depth == 0);
            depths.iter().map(|&depth| Some(depth) == lowest).collect()
        }
        Align::Gap => vec![true; body.len()],
    }
}

/// A rotated loop is written up to twice, at every depth. A nest that would become larger than
/// this and than four times its size is not rotated.
const LARGEST: usize = 1 << 16;

struct Aligner<'a> {
    nest: &'a Nest,
    how: &'a Align,
    pauses: &'a [i128],
    depths: &'a [i128],
    largest: usize,
}

impl Aligner<'_> {
    /// Writes the nodes of a range with its loops rotated.
    fn copy(&self, range: Range<usize>, out: &mut Nest) {
        let mut at = range.start;
        while at < range.end && out.nodes.len() <= self.largest {
            let times = match self.nest.nodes[at] {
                Node::Loop { times, .. } => times,
                // It begins where most of its iterations are equal.
                Node::Near { near, .. } => {
                    self.copy_near(near, self.nest.body(at), out);
                    at = self.nest.after(at);
                    continue;
                }
                node => {
                    out.nodes.push(node);
                    at += 1;
                    continue;
                }
            };
            let body = self.nest.body(at);
            let after = body.end;
            let begin = self.beginning(body.clone()).unwrap_or(body.start);
            let head = body.start..begin;
            let complete = self.follows(&head, after, range.end);
            let falls_apart = times == 2 && !complete;
            if head.is_empty() || falls_apart {
                self.copy_loop(times, body, None, out);
                at = after;
                continue;
            }
            self.copy(head.clone(), out);
            if complete {
                self.copy_loop(times, begin..body.end, Some(head.clone()), out);
                at = after + head.len();
            } else {
                self.copy_loop(times - 1, begin..body.end, Some(head.clone()), out);
                self.copy(begin..body.end, out);
                at = after;
            }
        }
    }

    /// Writes a loop whose body is one or two ranges.
    fn copy_loop(&self, times: u64, first: Range<usize>, then: Option<Range<usize>>, out: &mut Nest) {
        let opened = out.nodes.len();
        out.nodes.push(Node::LeftOut(0));
        self.copy(first, out);
        if let Some(then) = then {
            self.copy(then, out);
        }
        let end = out.nodes.len();
        let length = out.length(opened + 1..end);
        out.nodes[opened] = Node::Loop { times, length, end };
    }

    fn copy_near(&self, near: usize, body: Range<usize>, out: &mut Nest) {
        let opened = out.nodes.len();
        out.nodes.push(Node::LeftOut(0));
        self.copy(body, out);
        out.nodes[opened] = Node::Near { near, end: out.nodes.len() };
    }

    /// Whether the nodes of `head` stand at `at` again.
    fn follows(&self, head: &Range<usize>, at: usize, end: usize) -> bool {
        at + head.len() <= end && is_same(self.nest, head, at)
    }

    /// The node of a body where an iteration should begin.
    fn beginning(&self, body: Range<usize>) -> Option<usize> {
        let mut children = self.nest.children(body.clone());
        match self.how {
            Align::Event(events) => children.find(|&at| match self.nest.nodes[at] {
                Node::Event(symbol) => events.binary_search(&symbol).is_ok(),
                _ => false,
            }),
            Align::Gap => children.max_by_key(|&at| (self.pauses[at], std::cmp::Reverse(at))),
            Align::Calls => {
                let mut depth = 0i128;
                let mut lowest = (0, body.start);
                for at in children {
                    if depth < lowest.0 {
                        lowest = (depth, at);
                    }
                    depth = depth.saturating_add(self.depths[at]);
                }
                (depth == 0).then_some(lowest.1)
            }
        }
    }
}

/// Whether the nodes of a range stand at another place, too.
fn is_same(nest: &Nest, range: &Range<usize>, at: usize) -> bool {
    let shifted = |node: &Node, by: usize| match *node {
        Node::Loop { times, length, end } => Node::Loop { times, length, end: end - by },
        Node::Near { near, end } => Node::Near { near, end: end - by },
        other => other,
    };
    range.clone().zip(at..).all(|(left, right)| {
        !matches!(nest.nodes[left], Node::LeftOut(_))
            && shifted(&nest.nodes[left], range.start) == shifted(&nest.nodes[right], at)
    })
}

/// The nest with loops joined to equal loops and iterations before and after them.
fn joined(nest: &Nest) -> Nest {
    let mut out = Nest { near: nest.near.clone(), ..Nest::default() };
    join(nest, 0..nest.nodes.len(), &mut out);
    out
}

fn join(nest: &Nest, range: Range<usize>, out: &mut Nest) {
    // Where the children begin in the output, and the loops that may go on behind them: of two
    // that are apart by less than their bodies, one is much longer, so there are O(log) of these.
    let (mut starts, mut going_on): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for at in nest.children(range) {
        let opened = out.nodes.len();
        starts.push(opened);
        out.nodes.push(nest.nodes[at]);
        if let Node::Near { near, .. } = nest.nodes[at] {
            join(nest, nest.body(at), out);
            out.nodes[opened] = Node::Near { near, end: out.nodes.len() };
        }
        if let Node::Loop { times, .. } = nest.nodes[at] {
            join(nest, nest.body(at), out);
            let end = out.nodes.len();
            out.nodes[opened] = Node::Loop { times, length: out.length(opened + 1..end), end };
            let found = join_before(out, &mut starts);
            going_on.retain(|&before| before < found);
            going_on.push(found);
        }
        while join_behind(out, &mut starts, &mut going_on) {}
    }
}

/// Joins the loop that was written last to what stands before it, and returns where it is then.
fn join_before(out: &mut Nest, starts: &mut Vec<usize>) -> usize {
    let mut opened = starts.last().copied().unwrap_or(0);
    let length = out.body(opened).len();
    while let Some(begin) = opened.checked_sub(length)
        && starts.binary_search(&begin).is_ok()
        && is_same(out, &out.body(opened), begin)
    {
        remove(out, begin..opened);
        starts.truncate(starts.partition_point(|&start| start <= begin));
        opened = begin;
        add_iterations(out, opened, 1);
    }
    let before = starts.len().checked_sub(2).map(|at| starts[at]);
    let before = before.filter(|&before| out.body(before).len() == length && length > 0);
    match (before, out.nodes[opened]) {
        (Some(before), Node::Loop { times, .. }) if is_same(out, &out.body(before), opened + 1) => {
            out.nodes.truncate(opened);
            starts.pop();
            add_iterations(out, before, times);
            before
        }
        _ => opened,
    }
}

/// Joins what was written last to a loop before it, if it is one more iteration.
fn join_behind(out: &mut Nest, starts: &mut Vec<usize>, going_on: &mut Vec<usize>) -> bool {
    let behind = |out: &Nest, found: usize| out.after(found) + out.body(found).len();
    going_on.retain(|&found| out.nodes.len() <= behind(out, found));
    let is_complete = |&found: &usize| {
        out.nodes.len() == behind(out, found) && is_same(out, &out.body(found), out.after(found))
    };
    let Some(found) = going_on.iter().copied().find(is_complete) else { return false };
    out.nodes.truncate(out.after(found));
    starts.truncate(starts.partition_point(|&start| start <= found));
    going_on.retain(|&other| other <= found);
    add_iterations(out, found, 1);
    true
}

fn add_iterations(nest: &mut Nest, at: usize, more: u64) {
    if let Node::Loop { times, .. } = &mut nest.nodes[at] {
        *times += more;
    }
}

/// Removes nodes before the last ones.
fn remove(nest: &mut Nest, range: Range<usize>) {
    for node in &mut nest.nodes[range.end..] {
        if let Node::Loop { end, .. } | Node::Near { end, .. } = node {
            *end -= range.len();
        }
    }
    nest.nodes.drain(range);
}

/// For each node how many more functions it enters than it leaves.
fn depths_of(nest: &Nest, alphabet: &Alphabet) -> Vec<i128> {
    let mut depths = vec![0i128; nest.nodes.len()];
    for at in (0..nest.nodes.len()).rev() {
        depths[at] = match nest.nodes[at] {
            Node::Event(symbol) => match alphabet.meaning(symbol).role {
                Role::Enter => 1,
                Role::Leave => -1,
                _ => 0,
            },
            Node::Loop { times, .. } => {
                let body =
                    nest.children(nest.body(at)).fold(0i128, |sum, child| sum.saturating_add(depths[child]));
                body.saturating_mul(times.into())
            }
            Node::Near { near, .. } => {
                let body = nest.children(nest.body(at));
                let body = body.fold(0i128, |sum, child| sum.saturating_add(depths[child]));
                body.saturating_mul(nest.near[near].iterations.0.into())
            }
            Node::LeftOut(_) => 0,
        };
    }
    depths
}

/// For each node the pauses before it, over all its occurrences: from the end of the
/// event before it to its start.
fn pauses_before(nest: &Nest, times: &Times) -> Result<Vec<i128>> {
    let mut pauses = vec![0i128; nest.nodes.len()];
    let Some(starts) = &times.starts else { return Ok(pauses) };
    let events = starts.len() as u64;
    let mut starts = starts.reader();
    let mut durations = times.durations.as_ref().map(|durations| durations.reader());
    let mut pause_at = |position: u64| -> Result<i128> {
        if position == 0 || position >= events {
            return Ok(0);
        }
        let (now, before) = (starts.get(position as usize)?, starts.get(position as usize - 1)?);
        if now == Times::UNKNOWN_START || before == Times::UNKNOWN_START {
            return Ok(0);
        }
        let duration = match &mut durations {
            Some(durations) => durations.get(position as usize - 1)?.max(0),
            None => 0,
        };
        Ok((i128::from(now) - i128::from(before) - i128::from(duration)).max(0))
    };
    nest.walk(|visit| {
        if let Visit::Node { at, position } = visit {
            pauses[at] += pause_at(position)?;
        }
        Ok(())
    })?;
    Ok(pauses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fold;
    use crate::fold::{FoldBuilder, FoldedStream, Item, Target};
    use crate::folders::{Outermost, fold_trace};
    use crate::trace::{Collector, Event, Sink, Timing};

    fn fold_of<'a>(events: impl IntoIterator<Item = Event<'a>>) -> Fold {
        timed_fold_of(events.into_iter().map(|event| (event, Timing::UNKNOWN)))
    }

    fn timed_fold_of<'a>(events: impl IntoIterator<Item = (Event<'a>, Timing<'a>)>) -> Fold {
        let mut collector = Collector::default();
        let stream = collector.stream("s").unwrap();
        for (event, timing) in events {
            let symbol = collector.intern(&event).unwrap();
            collector.push(stream, symbol, timing).unwrap();
        }
        fold_trace(collector.finish().unwrap(), &Outermost::default(), 1).unwrap()
    }

    fn text(nest: &Nest, alphabet: &Alphabet) -> String {
        fn write(nest: &Nest, range: Range<usize>, alphabet: &Alphabet, out: &mut String) {
            for at in nest.children(range) {
                match nest.nodes[at] {
                    Node::Event(symbol) => out.push_str(&alphabet.label(symbol)),
                    Node::LeftOut(events) => out.push_str(&format!("…{events}")),
                    Node::Near { .. } => panic!("an exact nest"),
                    Node::Loop { times, .. } => {
                        out.push('(');
                        write(nest, nest.body(at), alphabet, out);
                        out.push_str(&format!(")^{times}"));
                    }
                }
            }
        }
        let mut out = String::new();
        write(nest, 0..nest.nodes.len(), alphabet, &mut out);
        out
    }

    fn check(fold: &Fold, how: Align, expected: &str) {
        let stream = &fold.streams()[0];
        let nest = fold.nest(stream.root(), 1000);
        let aligned = align(&nest, &how, fold.alphabet(), stream.times()).unwrap();
        assert_eq!(text(&aligned, fold.alphabet()), expected);
        assert_eq!(aligned.length(0..aligned.nodes.len()), nest.length(0..nest.nodes.len()));
    }

    fn symbol(index: usize) -> Symbol {
        Symbol::new(index).unwrap()
    }

    fn letters(text: &str) -> Fold {
        let names: Vec<String> = text.chars().map(String::from).collect();
        fold_of(names.iter().map(Event::named))
    }

    #[test]
    fn a_loop_begins_at_the_event_asked_for() {
        check(&letters("xabcabcabcy"), Align::Event(vec![symbol(2)]), "xa(bca)^2bcy");
        check(&letters("xabcabcabcay"), Align::Event(vec![symbol(2)]), "xa(bca)^3y");
        check(&letters("abcabc"), Align::Event(vec![symbol(1)]), "(abc)^2");
        check(&letters("abcabcabc"), Align::Event(vec![symbol(0)]), "(abc)^3");
        check(&letters("aabaabaab"), Align::Event(vec![symbol(1)]), "(a)^2(b(a)^2)^2b");
    }

    #[test]
    fn a_loop_begins_where_calls_are_balanced() {
        let call = |role, name: &'static str| Event { role, ..Event::named(name) };
        let (f, g) = (call(Role::Enter, "f"), call(Role::Enter, "g"));
        let (f_end, g_end) = (call(Role::Leave, "f"), call(Role::Leave, "g"));
        // The recording begins inside two calls.
        let events = [g_end, f_end, f, g].into_iter().cycle().take(14);
        let fold = fold_of(events);
        check(&fold, Align::Calls, "leave gleave f(enter fenter gleave gleave f)^3");
    }

    #[test]
    fn a_loop_begins_after_the_longest_pause() {
        let mut start = 0;
        let mut events = Vec::new();
        for _ in 0..4 {
            for (name, pause) in [("a", 1), ("b", 50), ("c", 1)] {
                start += pause;
                let timing = Timing { start: Some(start), duration: Some(2), ..Timing::UNKNOWN };
                events.push((Event::named(name), timing));
                start += 2;
            }
        }
        check(&timed_fold_of(events.clone()), Align::Gap, "a(bca)^3bc");
        // A start that is not known is no pause.
        events[5].1.start = None;
        check(&timed_fold_of(events), Align::Gap, "a(bca)^3bc");
    }

    #[test]
    fn what_becomes_equal_is_one_loop() {
        // One loop whose copies stand in different rotations.
        check(&letters("abcabcabcxbcabcabcay"), Align::Event(vec![symbol(1)]), "a(bca)^2bcx(bca)^3y");
        assert_eq!(text_joined("(ab)3ab(ab)2"), "(ab)^6");
        assert_eq!(text_joined("ababx(ab)2ab"), "ababx(ab)^3");
        assert_eq!(text_joined("cabab(ab)2(ab)4c"), "c(ab)^8c");
        assert_eq!(text_joined("(x(ab)2ab)2x(ab)3(x(ab)3)5"), "(x(ab)^3)^8");
        assert_eq!(text_joined("(abc)2ab(bc)2"), "(abc)^2ab(bc)^2");
    }

    #[test]
    fn joining_keeps_all_events() {
        let mut rng = loopfold_testing::Rng::new(5);
        let mut any = 0;
        for _ in 0..5000 {
            let length = rng.between(2, 60);
            let letters: Vec<u32> = (0..length).map(|_| rng.below(2) as u32).collect();
            let nest = random_nest(&mut rng, &letters);
            let joined = joined(&nest);
            assert_eq!(joined.events(u64::MAX), nest.events(u64::MAX));
            assert_eq!(super::joined(&joined), joined);
            any += usize::from(joined.nodes.len() < nest.nodes.len());
        }
        assert!(any > 500, "{any}");
    }

    /// A nest of nodes that are drawn, and of loops around some of them.
    fn random_nest(rng: &mut loopfold_testing::Rng, letters: &[u32]) -> Nest {
        let mut nest = Nest::default();
        for chunk in letters.chunks(rng.between(1, 4)) {
            let opened = nest.nodes.len();
            let times = rng.between(1, 3) as u64;
            if times > 1 {
                nest.nodes.push(Node::LeftOut(0));
            }
            nest.nodes.extend(chunk.iter().map(|&letter| Node::Event(Symbol::new(letter as usize).unwrap())));
            if times > 1 {
                let end = nest.nodes.len();
                nest.nodes[opened] = Node::Loop { times, length: chunk.len() as u64, end };
            }
        }
        nest
    }

    /// A nest as text, such as `x(ab)2`, joined.
    fn text_joined(written: &str) -> String {
        let mut alphabet = Alphabet::default();
        let (mut nest, mut open) = (Nest::default(), Vec::new());
        for letter in written.chars() {
            match letter {
                '(' => {
                    open.push(nest.nodes.len());
                    nest.nodes.push(Node::LeftOut(0));
                }
                ')' => {}
                '0'..='9' => {
                    let (opened, end) = (open.pop().unwrap(), nest.nodes.len());
                    let (times, length) =
                        (u64::from(letter as u32 - '0' as u32), nest.length(opened + 1..end));
                    nest.nodes[opened] = Node::Loop { times, length, end };
                }
                letter => {
                    let event = letter.to_string();
                    nest.nodes
                        .push(Node::Event(alphabet.intern(&Event::named(event.as_str()), None).unwrap()));
                }
            }
        }
        text(&joined(&nest), &alphabet)
    }

    #[test]
    fn a_nest_that_would_grow_too_large_stays_as_it_is() {
        // (a (a (… 50,000 events …)^3 b)^3 b)^3, twenty deep: rotated, each depth would double it.
        let mut alphabet = Alphabet::default();
        let [a, b, c] =
            ["a", "b", "c"].map(|name| Item::once(alphabet.intern(&Event::named(name), None).unwrap()));
        let mut builder = FoldBuilder::new(alphabet);
        let mut rule = builder.rule(&[a, c].repeat(25_000)).unwrap();
        for _ in 0..20 {
            rule = builder.rule(&[a, Item::new(Target::Rule(rule), 3), b]).unwrap();
        }
        let root = builder.rule(&[Item::new(Target::Rule(rule), 3)]).unwrap();
        builder.stream(FoldedStream::new("s", "x", root));
        let fold = builder.finish();
        let nest = fold.nest(fold.streams()[0].root(), 1 << 22);
        let rotated =
            align(&nest, &Align::Event(vec![symbol(1)]), fold.alphabet(), &Times::default()).unwrap();
        assert_eq!(rotated, nest);
    }
}
