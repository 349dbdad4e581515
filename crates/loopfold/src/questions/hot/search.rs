//! All subpaths that are hot, exactly, by growing each from its first event.
//!
//! An occurrence of a subpath of two events or more belongs to exactly one rule: the
//! lowest one in which it lies in more than one item, or in more than one repetition of
//! an item. So the occurrences of a subpath are known by where they *end*: in which
//! items of which rules, how far inside what the item repeats. To add an event, an
//! occurrence inside a part takes the part's next event; one at the end of a part goes
//! on to the next repetition or the next item; and one at the end of a rule goes on
//! wherever that rule is used. Nothing is ever unfolded but the beginnings of parts.
//!
//! * Occurrences that end equally far inside the same part are one *ending*, however
//!   many items repeat that part: they go on together until the part ends.
//! * The repetitions of an item are one place, not one each, so counts cost nothing.
//! * What follows a part is known class by class (see [`Followers`]), so the counts of
//!   all continuations are known before any of them is looked at.
//! * A subpath whose count is too small for any continuation of at most the greatest
//!   length to be hot is left; so is a hot one, unless all are wanted.
//!
//! Each rule is left at its end at most once for each length, and a rule's items are
//! gone over at most once for each length and each event before them, so the cost is
//! bounded by items times length, times the lengths that are really looked at beyond an
//! item's start; with limits such as a thousandth of all events nearly everything is
//! left after a few events. A fold without structure is sorted as a plain stream would
//! be, by one event after another. Memory: that of [`Followers`], and the endings of the
//! subpaths on the way to the present one.

use super::ahead::Ahead;
use super::best::Best;
use super::costs::reaches;
use super::followers::{Followers, Next, Part, Place};
use super::heads::{Heads, Known};
use crate::{Error, Result, RuleId};
use std::ops::Range;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) shortest: usize,
    pub(super) longest: usize,
    /// The least cost that is hot.
    pub(super) limit: u128,
    /// Also those that go on from a hot one.
    pub(super) all: bool,
    /// What the dearest event costs.
    pub(super) dearest: u64,
}

impl Wanted {
    /// Whether a subpath is hot.
    fn is_hot(&self, length: usize, count: u64, cost: u128) -> bool {
        length >= self.shortest && reaches(count, cost, self.limit)
    }

    /// Whether a subpath that goes on from this one may be wanted: it occurs no more
    /// often, and its further events cost no more than the dearest.
    fn goes_on(&self, length: usize, count: u64, cost: u128) -> bool {
        let more = (self.longest - length) as u128 * u128::from(self.dearest);
        length < self.longest && reaches(count, cost.saturating_add(more), self.limit)
    }

    /// Offers a subpath if it is hot; whether those that go on from it are to be looked at.
    fn look_at(&self, events: &[u32], count: u64, cost: u128, best: &mut Best) -> bool {
        let hot = self.is_hot(events.len(), count, cost);
        if hot {
            best.offer(events, count, cost);
        }
        (self.all || !hot) && self.goes_on(events.len(), count, cost)
    }
}

/// Occurrences of a subpath that end equally far inside the same part.
#[derive(Clone, Copy, Debug)]
struct Ending {
    part: Part,
    /// The events of the part that belong to the subpath.
    inside: u32,
    /// The next events of the part, as far as they were looked at.
    next: Known,
    /// The items that repeat the part: from, and to before.
    places: (u32, u32),
    count: u64,
    /// A bound on what comes after; see [`Ahead`].
    ahead: f64,
}

/// How some occurrences of a subpath go on.
#[derive(Clone, Copy, Debug)]
struct Step {
    symbol: u32,
    count: u64,
    ahead: f64,
    way: Way,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// On inside the part of this ending.
    Inside(u32),
    /// Into the part at this place.
    Into(Place),
    /// Into what follows a part: the places of a class.
    Followers(u32),
}

/// How the end of some events was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// They were all taken.
    All,
    /// The subpath became hot.
    Hot,
}

/// A subpath whose continuations are still to be looked at.
#[derive(Clone, Copy, Debug)]
struct Open {
    symbol: u32,
    length: u32,
    /// What its events cost.
    cost: u128,
    endings: (u32, u32),
    /// Where the places of its endings end, at the latest.
    places: u32,
}

/// The search and its memory, which is used again for every subpath.
pub(super) struct Search<'a> {
    followers: &'a Followers<'a>,
    costs: &'a [u64],
    heads: Heads<'a>,
    ahead: Option<Ahead<'a>>,
    /// What every event costs, if all cost the same.
    each: Option<u64>,
    /// The present subpath.
    events: Vec<u32>,
    open: Vec<Open>,
    endings: Vec<Ending>,
    places: Vec<Place>,
    steps: Vec<Step>,
    /// Parts at whose end the present subpath ends, wherever they are used.
    ended: Vec<Part>,
    /// For each symbol how often it follows the present subpath.
    counts: Vec<u64>,
    /// For each symbol what is ahead of these occurrences.
    aheads: Vec<f64>,
    /// The symbols that do.
    following: Vec<u32>,
    /// For each part its ending in the subpath that is being made.
    ending_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<'a> Search<'a> {
    /// A search for subpaths of at most `longest` events; `costs` says what each costs.
    pub(super) fn new(followers: &'a Followers<'a>, costs: &'a [u64], longest: usize) -> Self {
        let longest = u32::try_from(longest).unwrap_or(u32::MAX);
        let each = costs.first().copied().filter(|each| costs.iter().all(|cost| cost == each));
        Self {
            followers,
            costs,
            heads: Heads::new(followers.fold, longest),
            ahead: None,
            each,
            events: Vec::new(),
            open: Vec::new(),
            endings: Vec::new(),
            places: Vec::new(),
            steps: Vec::new(),
            ended: Vec::new(),
            counts: vec![0; followers.symbols()],
            aheads: vec![0.0; followers.symbols()],
            following: Vec::new(),
            ending_of: vec![NONE; followers.parts()],
        }
    }

    /// Offers every subpath that is wanted.
    pub(super) fn run(&mut self, wanted: &Wanted, best: &mut Best) -> Result<()> {
        self.ahead = Ahead::new(self.followers, self.costs, wanted.longest, wanted.limit);
        for (symbol, &count) in (0..).zip(self.followers.symbol_counts()) {
            let cost = u128::from(self.costs[symbol as usize]);
            self.events.clear();
            self.events.push(symbol);
            if count == 0 || !wanted.look_at(&self.events, count, cost, best) {
                continue;
            }
            self.endings.clear();
            self.places.clear();
            self.begin(symbol);
            self.branch(wanted, cost, best)?;
            while let Some(subpath) = self.open.pop() {
                self.resume(&subpath);
                self.continue_from(subpath, wanted, best)?;
            }
        }
        Ok(())
    }

    /// The rules in which a subpath of at least two events lies in more than one item,
    /// and how often it does so each time the rule is unfolded.
    pub(super) fn locate(&mut self, events: &[u32]) -> Result<Vec<(u32, u64)>> {
        let Some((&first, rest)) = events.split_first() else { return Ok(Vec::new()) };
        self.endings.clear();
        self.places.clear();
        self.begin(first);
        let mut last = (0, 0);
        for (index, &symbol) in rest.iter().enumerate() {
            if index > 0 {
                self.gather(last);
            }
            self.steps.retain(|step| step.symbol == symbol);
            last = self.make_endings(0..self.steps.len())?;
        }
        let endings = &self.endings[last.0 as usize..last.1 as usize];
        let places = endings.iter().flat_map(|ending| ending.places.0..ending.places.1);
        Ok(places.map(|place| self.followers.count_in_rule(self.places[place as usize])).collect())
    }

    /// How often a subpath occurs.
    pub(super) fn count(&mut self, events: &[u32]) -> Result<u64> {
        let located = match events {
            [symbol] => self.followers.rules_with(*symbol),
            events => self.locate(events)?,
        };
        Ok(located.iter().map(|&(rule, count)| count * self.followers.uses(RuleId::from_raw(rule))).sum())
    }

    /// Makes the subpath the present one, and forgets what came after it.
    fn resume(&mut self, subpath: &Open) {
        self.events.truncate(subpath.length as usize - 1);
        self.events.push(subpath.symbol);
        self.endings.truncate(subpath.endings.1 as usize);
        self.places.truncate(subpath.places as usize);
    }

    /// Looks at everything that goes on from the present subpath.
    fn continue_from(&mut self, mut subpath: Open, wanted: &Wanted, best: &mut Best) -> Result<()> {
        if subpath.endings.1 - subpath.endings.0 == 1 && !self.run_along(&mut subpath, wanted, best)? {
            return Ok(());
        }
        self.gather(subpath.endings);
        self.branch(wanted, subpath.cost, best)
    }

    /// Where all occurrences end in one part, they go on together to its end, and as
    /// long as there is only one place, to the end of its rule. Whether to go on there.
    fn run_along(&mut self, subpath: &mut Open, wanted: &Wanted, best: &mut Best) -> Result<bool> {
        let at = subpath.endings.0 as usize;
        let mut ending = self.endings[at];
        let (first, last) = ending.places;
        let mut only = (last - first == 1).then(|| self.places[first as usize]);
        // Cheaper than to multiply at every event.
        let hot_cost = wanted.limit.div_ceil(u128::from(ending.count));
        loop {
            if let Some(symbol) = self.next_inside(&mut ending) {
                let taken = self.take(&mut ending, symbol, subpath, hot_cost, wanted);
                if taken == Taken::Hot {
                    best.offer(&self.events, ending.count, subpath.cost);
                }
                if taken == Taken::Hot && !wanted.all || self.events.len() == wanted.longest {
                    return Ok(false);
                }
                continue;
            }
            let Some((Some(next), None) | (None, Some(next))) = only.map(|place| self.followers.after(place))
            else {
                break;
            };
            let Next::Place { place, symbol, .. } = next else { break };
            only = Some(place);
            ending =
                Ending { part: self.followers.part_at(place), inside: 1, next: Known::default(), ..ending };
            self.events.push(symbol);
            subpath.cost += u128::from(self.costs[symbol as usize]);
            if !wanted.look_at(&self.events, ending.count, subpath.cost, best) {
                return Ok(false);
            }
        }
        if let Some(place) = only {
            ending.places = (index(self.places.len())?, index(self.places.len() + 1)?);
            self.places.push(place);
        }
        self.endings[at] = ending;
        Ok(wanted.goes_on(self.events.len(), ending.count, subpath.cost))
    }

    /// Takes known events of the part in which the subpath ends, the first of which is
    /// `symbol`, until it is hot or as long as may be.
    fn take(
        &mut self,
        ending: &mut Ending,
        symbol: u32,
        subpath: &mut Open,
        hot_cost: u128,
        wanted: &Wanted,
    ) -> Taken {
        let one = [symbol];
        let events = if ending.next.is_empty() { &one } else { self.heads.all(ending.next) };
        let events = &events[..events.len().min(wanted.longest - self.events.len())];
        let must = wanted.shortest.saturating_sub(self.events.len()).max(1);
        let mut taken = 0;
        if let Some(each) = self.each {
            let missing = hot_cost.saturating_sub(subpath.cost).div_ceil(u128::from(each.max(1)));
            taken = events.len().min(must.max(usize::try_from(missing).unwrap_or(usize::MAX)));
            subpath.cost += taken as u128 * u128::from(each);
        } else {
            for &event in events {
                subpath.cost += u128::from(self.costs[event as usize]);
                taken += 1;
                if subpath.cost >= hot_cost && taken >= must {
                    break;
                }
            }
        }
        self.events.extend_from_slice(&events[..taken]);
        ending.inside += taken as u32;
        ending.next = ending.next.from(taken as u32);
        if taken >= must && subpath.cost >= hot_cost { Taken::Hot } else { Taken::All }
    }

    /// The next event of the part in which occurrences end, unless they end with it.
    fn next_inside(&mut self, ending: &mut Ending) -> Option<u32> {
        if ending.next.is_empty() {
            let rule = self.followers.rule(ending.part)?;
            if ending.inside == self.followers.length(ending.part) {
                return None;
            }
            match self.heads.from(rule, ending.inside) {
                Some(known) => ending.next = known,
                None => return Some(self.heads.look_up(rule, ending.inside)),
            }
        }
        Some(self.heads.first(ending.next))
    }

    /// The ways on from a subpath of one event.
    fn begin(&mut self, symbol: u32) {
        self.steps.clear();
        self.ended.push(symbol);
        self.leave_ended();
    }

    /// The ways on from a subpath with these endings.
    fn gather(&mut self, endings: (u32, u32)) {
        self.steps.clear();
        for at in endings.0..endings.1 {
            let mut ending = self.endings[at as usize];
            match self.next_inside(&mut ending) {
                Some(symbol) => {
                    self.endings[at as usize].next = ending.next;
                    let Ending { count, ahead, .. } = ending;
                    self.steps.push(Step { symbol, count, ahead, way: Way::Inside(at) });
                }
                None => {
                    for place in ending.places.0..ending.places.1 {
                        self.leave_part(self.places[place as usize]);
                    }
                }
            }
        }
        self.leave_ended();
    }

    fn leave_part(&mut self, place: Place) {
        let (again, on) = self.followers.after(place);
        for next in [again, on].into_iter().flatten() {
            match next {
                Next::After(part) => self.ended.push(part),
                Next::Place { place, symbol, count } => {
                    let ahead = self.ahead_of(place, self.followers.part_at(place), count);
                    self.steps.push(Step { symbol, count, ahead, way: Way::Into(place) });
                }
            }
        }
    }

    /// What is ahead of occurrences that have come to the first event of a part.
    fn ahead_of(&self, place: Place, part: Part, count: u64) -> f64 {
        self.ahead.as_ref().map_or(0.0, |ahead| ahead.of_place(place, part, count))
    }

    fn leave_ended(&mut self) {
        while let Some(part) = self.ended.pop() {
            for class in self.followers.classes(part) {
                let (symbol, count) = self.followers.class(class);
                let ahead = self.ahead.as_ref().map_or(0.0, |ahead| ahead.of_class(class));
                self.steps.push(Step { symbol, count, ahead, way: Way::Followers(class) });
            }
            self.ended.extend(self.followers.ended_by(part));
        }
    }

    /// Looks at the present subpath, whose events cost `cost`, with each event that can
    /// follow, and opens those from which to go on.
    fn branch(&mut self, wanted: &Wanted, cost: u128, best: &mut Best) -> Result<()> {
        for step in &self.steps {
            let count = &mut self.counts[step.symbol as usize];
            if *count == 0 {
                self.following.push(step.symbol);
            }
            *count += step.count;
            self.aheads[step.symbol as usize] += step.ahead;
        }
        let mut left_out = 0;
        for &symbol in &self.following {
            let count = &mut self.counts[symbol as usize];
            let ahead = std::mem::take(&mut self.aheads[symbol as usize]);
            let cost = cost + u128::from(self.costs[symbol as usize]);
            self.events.push(symbol);
            if !wanted.look_at(&self.events, *count, cost, best)
                || self.ahead.as_ref().is_some_and(|all| !all.suffices(*count, cost, ahead))
            {
                *count = 0;
                left_out += 1;
            }
            self.events.pop();
        }
        if left_out > 0 {
            self.steps.retain(|step| self.counts[step.symbol as usize] > 0);
        }
        if self.following.len() - left_out > 1 {
            self.steps.sort_unstable_by_key(|step| step.symbol);
        }
        let mut start = 0;
        while start < self.steps.len() {
            let symbol = self.steps[start].symbol;
            let end = start + self.steps[start..].partition_point(|step| step.symbol == symbol);
            let endings = self.make_endings(start..end)?;
            self.open.push(Open {
                symbol,
                length: index(self.events.len() + 1)?,
                cost: cost + u128::from(self.costs[symbol as usize]),
                endings,
                places: index(self.places.len())?,
            });
            start = end;
        }
        for symbol in self.following.drain(..) {
            self.counts[symbol as usize] = 0;
        }
        Ok(())
    }

    /// The endings of the present subpath after these steps, all with the same event.
    fn make_endings(&mut self, steps: Range<usize>) -> Result<(u32, u32)> {
        let (start, followers) = (self.endings.len(), self.followers);
        for at in steps.clone() {
            let Step { count, ahead, way, .. } = self.steps[at];
            match way {
                Way::Inside(ending) => {
                    let ending = self.endings[ending as usize];
                    let next = if ending.next.is_empty() { ending.next } else { ending.next.rest() };
                    self.endings.push(Ending { inside: ending.inside + 1, next, ..ending });
                }
                Way::Into(place) => self.count_place(followers.part_at(place), count, ahead)?,
                Way::Followers(class) => {
                    for (place, part, count) in followers.places(class) {
                        self.count_place(part, count, self.ahead_of(place, part, count))?;
                    }
                }
            }
        }
        self.reserve_places(start)?;
        for at in steps {
            match self.steps[at].way {
                Way::Inside(_) => {}
                Way::Into(place) => self.put_place(place, followers.part_at(place)),
                Way::Followers(class) => {
                    followers.places(class).for_each(|(place, part, _)| self.put_place(place, part));
                }
            }
        }
        for ending in &self.endings[start..] {
            self.ending_of[ending.part as usize] = NONE;
        }
        Ok((index(start)?, index(self.endings.len())?))
    }

    /// Counts a place into the ending of its part, in which the subpath has come to the
    /// first event.
    fn count_place(&mut self, part: Part, count: u64, ahead: f64) -> Result<()> {
        let known = &mut self.ending_of[part as usize];
        if *known == NONE {
            *known = index(self.endings.len())?;
            self.endings.push(Ending {
                part,
                inside: 1,
                next: Known::default(),
                places: (0, 0),
                count: 0,
                ahead: 0.0,
            });
        }
        let ending = &mut self.endings[*known as usize];
        ending.places.1 += 1;
        ending.count += count;
        ending.ahead += ahead;
        Ok(())
    }

    /// Makes room for the places that were counted.
    fn reserve_places(&mut self, endings: usize) -> Result<()> {
        let mut end = index(self.places.len())?;
        for ending in self.endings[endings..].iter_mut().filter(|ending| ending.inside == 1) {
            let start = end;
            end = end.checked_add(ending.places.1).ok_or_else(too_many)?;
            ending.places = (start, start);
        }
        self.places.resize(end as usize, Place::default());
        Ok(())
    }

    fn put_place(&mut self, place: Place, part: Part) {
        let ending = &mut self.endings[self.ending_of[part as usize] as usize];
        self.places[ending.places.1 as usize] = place;
        ending.places.1 += 1;
    }
}

fn index(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| too_many())
}

fn too_many() -> Error {
    Error::limit("the subpaths occur at too many places; ask for a higher cost or fewer events")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;
    use crate::fold::{Fold, FoldBuilder, FoldedStream};
    use crate::folders::{Folder, SequiturRuns};
    use crate::trace::{Alphabet, Event};
    use loopfold_testing::streams;

    fn fold_of(stream: &[u32], folder: &dyn Folder) -> Fold {
        let mut alphabet = Alphabet::default();
        let intern = |&raw: &u32| alphabet.intern(&Event::integer(raw.into()), None).unwrap();
        let symbols: Vec<Symbol> = stream.iter().map(intern).collect();
        let mut builder = FoldBuilder::new(alphabet);
        let root = folder.fold(&symbols, &mut builder).unwrap();
        builder.stream(FoldedStream::new("s", folder.name(), root));
        builder.finish()
    }

    /// Without room for the first events of rules, each is looked up, with the same result.
    #[test]
    fn little_memory_changes_nothing() {
        let fold = fold_of(&streams::control_flow(20_000, 3), &SequiturRuns);
        let followers = Followers::new(&fold).unwrap();
        let costs: Vec<u64> = (0..fold.alphabet().len() as u64).map(|symbol| 1 + symbol % 5).collect();
        let wanted = Wanted { shortest: 8, longest: 60, limit: 100, all: false, dearest: 5 };
        let found = |room: usize| {
            let mut search = Search::new(&followers, &costs, wanted.longest);
            search.heads = search.heads.with_room(room);
            let mut best = Best::new(usize::MAX);
            search.run(&wanted, &mut best).unwrap();
            best.finish()
        };
        let expected = found(usize::MAX);
        assert!(expected.0 > 20, "{}", expected.0);
        for room in [0, 100] {
            assert_eq!(found(room), expected);
        }
    }
}
