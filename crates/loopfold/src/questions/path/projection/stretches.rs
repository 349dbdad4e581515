//! Walks through the streams of a projection, from one item that holds something to the
//! next: a search for its place in a list for each rule that is gone into.

use super::{Held, Part, Projection};
use crate::RuleId;
use crate::fold::{Fold, Target};
use std::ops::Range;

/// Some iterations of an item, on a walk.
#[derive(Clone, Copy, Debug)]
pub(in crate::questions::path) struct Stretch {
    target: Target,
    pub(in crate::questions::path) part: Part,
    pub(in crate::questions::path) times: u64,
    /// How many events one iteration is.
    pub(in crate::questions::path) length: u64,
    /// Where it begins in the stream.
    pub(in crate::questions::path) position: u64,
}

impl Stretch {
    /// The iterations from this one on; nothing if there are none.
    fn after(self, iterations: u64) -> Option<Self> {
        let times = self.times.checked_sub(iterations).filter(|&times| times > 0)?;
        Some(Self { times, position: self.position + iterations * self.length, ..self })
    }

    /// The iterations before this one; nothing if there are none.
    fn before(self, iterations: u64) -> Option<Self> {
        (iterations > 0).then_some(Self { times: iterations, ..self })
    }
}

/// What a walk has before it: a few iterations, or items of a rule that begins at a
/// position.
enum Ahead {
    Stretch(Stretch),
    Items(Range<usize>, u64),
}

/// A walk through a stream of a projection, item by item, towards the end or towards the
/// beginning. Those that hold nothing of the function are not met.
pub(in crate::questions::path) struct Stretches<'a> {
    fold: &'a Fold,
    projection: &'a Projection,
    /// The nearest last.
    ahead: Vec<Ahead>,
}

impl<'a> Stretches<'a> {
    /// All of a rule that is a whole stream, from the beginning.
    pub(in crate::questions::path) fn of(fold: &'a Fold, projection: &'a Projection, rule: RuleId) -> Self {
        let whole = Stretch {
            target: Target::Rule(rule),
            part: projection.part(rule),
            times: 1,
            length: fold.length(rule),
            position: 0,
        };
        let ahead = if whole.part == Part::NONE { Vec::new() } else { vec![Ahead::Stretch(whole)] };
        Self { fold, projection, ahead }
    }

    /// All that lies before a position of a rule that is a whole stream, to be walked
    /// towards the beginning.
    pub(in crate::questions::path) fn before(
        fold: &'a Fold,
        projection: &'a Projection,
        mut rule: RuleId,
        position: u64,
    ) -> Self {
        let mut walk = Self { fold, projection, ahead: Vec::new() };
        let mut base = 0;
        while let Ok(index) = projection.rules.binary_search(&rule) {
            let (held, ends) = (projection.range(index), fold.item_ends(rule));
            let rest = position.saturating_sub(base);
            let place = fold.item_range(rule).start + ends.partition_point(|&end| end <= rest);
            let before = projection.items[held.clone()].partition_point(|held| (held.place as usize) < place);
            let middle = held.start + before;
            walk.ahead.push(Ahead::Items(held.start..middle, base));
            let Some(item) = projection.items[middle..held.end].first() else { break };
            if item.place as usize != place {
                break;
            }
            let stretch = walk.stretch(*item, base);
            let iterations = position.saturating_sub(stretch.position).checked_div(stretch.length);
            let iterations = iterations.unwrap_or(0).min(stretch.times);
            walk.ahead.extend(stretch.before(iterations).map(Ahead::Stretch));
            match (stretch.target, stretch.after(iterations)) {
                (Target::Rule(inner), Some(next)) => (rule, base) = (inner, next.position),
                _ => break,
            }
        }
        walk
    }

    fn stretch(&self, held: Held, base: u64) -> Stretch {
        let item = self.fold.all_items()[held.place as usize];
        let length = self.fold.target_length(item.target());
        let end = self.fold.item_end(held.place as usize);
        Stretch {
            target: item.target(),
            part: held.part(),
            times: item.times(),
            length,
            position: base + (end - item.times() * length),
        }
    }

    fn next_from(&mut self, take: fn(&mut Range<usize>) -> Option<usize>) -> Option<Stretch> {
        loop {
            match self.ahead.last_mut()? {
                Ahead::Items(items, base) => {
                    let base = *base;
                    if let Some(index) = take(items) {
                        return Some(self.stretch(self.projection.items[index], base));
                    }
                }
                Ahead::Stretch(stretch) => {
                    let stretch = *stretch;
                    self.ahead.pop();
                    return Some(stretch);
                }
            }
            self.ahead.pop();
        }
    }

    /// The next iterations towards the end.
    pub(in crate::questions::path) fn next(&mut self) -> Option<Stretch> {
        self.next_from(Range::next)
    }

    /// The next iterations towards the beginning.
    pub(in crate::questions::path) fn next_back(&mut self) -> Option<Stretch> {
        self.next_from(Range::next_back)
    }

    /// Passes over the last iterations of a stretch; the others stay ahead.
    pub(in crate::questions::path) fn pass_back(&mut self, stretch: Stretch, iterations: u64) {
        let rest = stretch.times.saturating_sub(iterations);
        self.ahead.extend(stretch.before(rest).map(Ahead::Stretch));
    }

    /// Goes into an iteration of a stretch; those after it stay ahead. Returns its position
    /// if it is a single event.
    pub(in crate::questions::path) fn enter(&mut self, stretch: Stretch, iteration: u64) -> Option<u64> {
        self.ahead.extend(stretch.after(iteration + 1).map(Ahead::Stretch));
        self.go_into(stretch, iteration)
    }

    /// Goes into the last iteration of a stretch; those before it stay ahead. Returns its
    /// position if it is a single event.
    pub(in crate::questions::path) fn enter_back(&mut self, stretch: Stretch) -> Option<u64> {
        let last = stretch.times.saturating_sub(1);
        self.ahead.extend(stretch.before(last).map(Ahead::Stretch));
        self.go_into(stretch, last)
    }

    fn go_into(&mut self, stretch: Stretch, iteration: u64) -> Option<u64> {
        let position = stretch.position + iteration * stretch.length;
        let Target::Rule(rule) = stretch.target else { return Some(position) };
        if let Ok(index) = self.projection.rules.binary_search(&rule) {
            self.ahead.push(Ahead::Items(self.projection.range(index), position));
        }
        None
    }
}
