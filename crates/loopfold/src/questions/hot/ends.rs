//! Where the occurrences of a subpath end, and how they continue.
//!
//! An occurrence of a subpath of two events or more belongs to exactly one rule: the lowest one
//! in which it lies in more than one item, or in more than one repetition of an item. So the
//! occurrences are known by where they *end*: at which [`Place`]s, and how far inside the node
//! there. To add an event, an occurrence inside a node takes the node's next event; one at the
//! end of a node continues to the next repetition or the next item; and one at the end of a
//! rule continues wherever that rule is used.
//!
//! Three things keep this cheap:
//! * the repetitions of an item are one place, not one each;
//! * all places of one node are one *ending*: they continue together until the node ends;
//! * endings equally far inside nodes whose next events are the same are one *bundle*. For as
//!   many events as are known to be the same, a step costs the same for a bundle of any size;
//!   then it is rebuilt.
//!
//! What lies after a node is known class by class, so that all continuations are counted before
//! any place is examined.
//!
//! The ends of a subpath stay in memory while subpaths that continue from it are examined; like
//! those, they are a stack.

use super::chunks::WindowEnd;
use super::prefixes::{Known, PrefixCache};
use super::successors::{Next, Place, SuccessorIndex};
use super::upper_bound::UpperBound;
use crate::fold::{Grammar, Node};
use crate::{Error, Result};
use std::ops::Range;

/// A range of a list.
pub(super) type Span = (u32, u32);

/// Events that are compared when endings are bundled.
const WINDOW: u32 = 8;

/// Occurrences that end in the same node.
#[derive(Clone, Copy, Debug)]
struct Ending {
    node: Node,
    /// The items that repeat the node.
    places: Span,
    count: u64,
    /// A bound on what comes after; see [`UpperBound`].
    ahead: f64,
}

/// Endings that continue with the same events.
#[derive(Clone, Copy, Debug)]
struct Bundle {
    endings: Span,
    /// The events of each node that belong to the subpath.
    inside: u32,
    /// How many of their next events are known to be the same.
    common: u32,
    /// The unfolded ones of the next events of the first node.
    next: Known,
    count: u64,
    ahead: f64,
}

impl Bundle {
    /// The same, `events` further.
    fn advanced(self, events: u32) -> Self {
        let (inside, common) = (self.inside + events, self.common - events);
        Self { inside, common, next: self.next.from(events), ..self }
    }
}

/// How some occurrences of a subpath continue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The next event.
    pub(super) symbol: u32,
    /// How many occurrences continue this way.
    pub(super) count: u64,
    /// A bound on what comes with and after that event.
    pub(super) ahead: f64,
    continuation: Continuation,
}

#[derive(Clone, Copy, Debug)]
enum Continuation {
    /// A bundle continues as it is.
    Together(u32),
    /// An ending leaves its bundle; this many events of its node belong to the subpath.
    Alone { ending: u32, inside: u32 },
    /// Into the node at this place.
    Into(Place, Node),
    /// Into what follows a node: the places of a class.
    Successors(u32),
}

/// An ending that is not in a bundle yet.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    ending: Ending,
    inside: u32,
    common: u32,
    next: Known,
    /// Equal for equal next events.
    key: u64,
}

/// The ends of a subpath and of those it continues from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    bundles: usize,
    endings: usize,
    places: usize,
}

/// Where subpaths end.
pub(super) struct Ends<'a> {
    successors: &'a SuccessorIndex<'a>,
    pub(super) prefixes: PrefixCache<'a>,
    bound: Option<&'a UpperBound<'a>>,
    bundles: Vec<Bundle>,
    endings: Vec<Ending>,
    places: Vec<Place>,
    steps: Vec<Step>,
    /// Nodes at whose end the subpath ends, wherever they are used.
    ended: Vec<Node>,
    fresh: Vec<Fresh>,
    /// For each node its place among the fresh endings.
    fresh_of: Vec<u32>,
    /// The one event of a symbol, or one that could not be kept.
    single: [u32; 1],
}

const NONE: u32 = u32::MAX;

impl<'a> Ends<'a> {
    /// For subpaths of at most `longest` events.
    pub(super) fn new(successors: &'a SuccessorIndex<'a>, longest: usize) -> Self {
        Self {
            successors,
            prefixes: PrefixCache::new(successors.fold, u32::try_from(longest).unwrap_or(u32::MAX)),
            bound: None,
            bundles: Vec::new(),
            endings: Vec::new(),
            places: Vec::new(),
            steps: Vec::new(),
            ended: Vec::new(),
            fresh: Vec::new(),
            fresh_of: vec![NONE; successors.fold.node_count()],
            single: [0],
        }
    }

    /// From now on, steps have a bound on what is ahead, if one is given.
    pub(super) fn set_bound(&mut self, bound: Option<&'a UpperBound<'a>>) {
        self.bound = bound;
    }

    /// The bound on what is ahead, if there is one.
    pub(super) fn bound(&self) -> Option<&'a UpperBound<'a>> {
        self.bound
    }

    /// Where the ends made so far end.
    pub(super) fn mark(&self) -> Mark {
        Mark { bundles: self.bundles.len(), endings: self.endings.len(), places: self.places.len() }
    }

    /// Forgets the ends that were made after a mark.
    pub(super) fn forget(&mut self, mark: Mark) {
        self.bundles.truncate(mark.bundles);
        self.endings.truncate(mark.endings);
        self.places.truncate(mark.places);
    }

    /// The continuations that were gathered last.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Keeps some of them.
    pub(super) fn keep_steps(&mut self, mut kept: impl FnMut(u32) -> bool) {
        self.steps.retain(|step| kept(step.symbol));
    }

    /// Sorts them by their events.
    pub(super) fn sort_steps(&mut self) {
        self.steps.sort_unstable_by_key(|step| step.symbol);
    }

    /// Forgets everything and gathers the continuations of a subpath of one event.
    pub(super) fn begin(&mut self, symbol: u32) {
        self.forget(Mark { bundles: 0, endings: 0, places: 0 });
        self.steps.clear();
        self.ended.push(Node::new(symbol));
        self.leave_ended();
    }

    /// Forgets everything and begins with a window whose occurrences end here. Returns its ends,
    /// and what is ahead of them.
    pub(super) fn begin_at(&mut self, ends: &mut [WindowEnd]) -> Result<(Span, f64)> {
        ends.sort_unstable_by_key(|end| (end.node, end.inside));
        self.forget(Mark { bundles: 0, endings: 0, places: 0 });
        self.fresh.clear();
        for together in ends.chunk_by(|one, other| (one.node, one.inside) == (other.node, other.inside)) {
            let WindowEnd { node, inside, .. } = together[0];
            let start = index(self.places.len())?;
            let (mut count, mut ahead) = (0, 0.0);
            for end in together {
                let of_place = self.successors.count(end.place);
                count += of_place;
                ahead += self.ahead_of(end.place, node, of_place);
                self.places.push(end.place);
            }
            let places = (start, index(self.places.len())?);
            self.fresh.push(Fresh::new(Ending { node, places, count, ahead }, inside));
        }
        let ahead = self.fresh.iter().map(|fresh| fresh.ending.ahead).sum();
        self.bundle_up()?;
        Ok(((0, index(self.bundles.len())?), ahead))
    }

    /// Gathers the continuations of a subpath with these bundles.
    pub(super) fn gather(&mut self, bundles: Span) {
        self.steps.clear();
        for at in bundles.0..bundles.1 {
            let mut bundle = self.bundles[at as usize];
            if bundle.common > 0 {
                let symbol = self.next_event(&mut bundle);
                self.bundles[at as usize] = bundle;
                let Bundle { count, ahead, .. } = bundle;
                self.steps.push(Step { symbol, count, ahead, continuation: Continuation::Together(at) });
                continue;
            }
            for ending in bundle.endings.0..bundle.endings.1 {
                self.leave_bundle(ending, bundle.inside);
            }
        }
        self.leave_ended();
    }

    /// The next event of a bundle that has one.
    fn next_event(&mut self, bundle: &mut Bundle) -> u32 {
        if bundle.next.is_empty()
            && let Some(rule) = self.successors.rule(self.endings[bundle.endings.0 as usize].node)
        {
            match self.prefixes.from(rule, bundle.inside, 1) {
                Some(known) => bundle.next = known,
                None => return self.prefixes.look_up(rule, bundle.inside),
            }
        }
        self.prefixes.first(bundle.next)
    }

    /// An ending whose bundle is at its end continues alone, or its node is at its end too.
    fn leave_bundle(&mut self, at: u32, inside: u32) {
        let Ending { node, places, count, ahead } = self.endings[at as usize];
        match self.successors.rule(node) {
            Some(rule) if inside < self.successors.length(node) => {
                let symbol = match self.prefixes.from(rule, inside, 1) {
                    Some(known) => self.prefixes.first(known),
                    None => self.prefixes.look_up(rule, inside),
                };
                self.steps.push(Step {
                    symbol,
                    count,
                    ahead,
                    continuation: Continuation::Alone { ending: at, inside },
                });
            }
            _ => (places.0..places.1).for_each(|place| self.leave_node(self.places[place as usize])),
        }
    }

    fn leave_node(&mut self, place: Place) {
        let (again, on) = self.successors.after(place);
        for next in [again, on].into_iter().flatten() {
            match next {
                Next::After(node) => self.ended.push(node),
                Next::Place { place, node, symbol, count } => {
                    let ahead = self.ahead_of(place, node, count);
                    self.steps.push(Step {
                        symbol,
                        count,
                        ahead,
                        continuation: Continuation::Into(place, node),
                    });
                }
            }
        }
    }

    fn leave_ended(&mut self) {
        while let Some(node) = self.ended.pop() {
            for class in self.successors.classes(node) {
                let (symbol, count, only) = self.successors.class(class);
                let ahead = self.bound.map_or(0.0, |bound| bound.of_class(class));
                let continuation = only
                    .map_or(Continuation::Successors(class), |(place, node)| Continuation::Into(place, node));
                self.steps.push(Step { symbol, count, ahead, continuation });
            }
            self.ended.extend(self.successors.ended_by(node));
        }
    }

    /// What is ahead of occurrences that have come to the first event of a node.
    fn ahead_of(&self, place: Place, node: Node, count: u64) -> f64 {
        self.bound.map_or(0.0, |bound| bound.of_place(place, node, count))
    }

    /// The ends of a subpath after some of the steps, all with the same event.
    pub(super) fn take(&mut self, steps: Range<usize>) -> Result<Span> {
        let (start, successors) = (self.bundles.len(), self.successors);
        self.fresh.clear();
        for at in steps.clone() {
            let Step { count, ahead, continuation, .. } = self.steps[at];
            match continuation {
                Continuation::Together(bundle) => {
                    self.bundles.push(self.bundles[bundle as usize].advanced(1))
                }
                Continuation::Alone { ending, inside } => {
                    self.fresh.push(Fresh::new(self.endings[ending as usize], inside + 1));
                }
                Continuation::Into(_, node) => self.count_place(node, count, ahead),
                Continuation::Successors(class) => {
                    for (place, node, count) in successors.places(class) {
                        self.count_place(node, count, self.ahead_of(place, node, count));
                    }
                }
            }
        }
        self.put_places(steps)?;
        self.bundle_up()?;
        Ok((index(start)?, index(self.bundles.len())?))
    }

    /// Counts a place into the ending of its node, in which the subpath has come to the
    /// first event.
    fn count_place(&mut self, node: Node, count: u64, ahead: f64) {
        let at = &mut self.fresh_of[node.index()];
        if *at == NONE {
            *at = self.fresh.len() as u32;
            self.fresh.push(Fresh::new(Ending { node, places: (0, 0), count: 0, ahead: 0.0 }, 1));
        }
        let ending = &mut self.fresh[*at as usize].ending;
        ending.places.1 += 1;
        ending.count += count;
        ending.ahead += ahead;
    }

    /// Puts the places that were counted where they belong.
    fn put_places(&mut self, steps: Range<usize>) -> Result<()> {
        let mut end = index(self.places.len())?;
        for fresh in self.fresh.iter_mut().filter(|fresh| fresh.inside == 1) {
            let start = end;
            end = end.checked_add(fresh.ending.places.1).ok_or_else(too_many)?;
            fresh.ending.places = (start, start);
        }
        if end as usize == self.places.len() {
            return Ok(());
        }
        self.places.resize(end as usize, Place::default());
        let successors = self.successors;
        for at in steps {
            match self.steps[at].continuation {
                Continuation::Together(_) | Continuation::Alone { .. } => {}
                Continuation::Into(place, node) => self.put_place(place, node),
                Continuation::Successors(class) => {
                    successors.places(class).for_each(|(place, node, _)| self.put_place(place, node));
                }
            }
        }
        for fresh in &self.fresh {
            self.fresh_of[fresh.ending.node.index()] = NONE;
        }
        Ok(())
    }

    fn put_place(&mut self, place: Place, node: Node) {
        let ending = &mut self.fresh[self.fresh_of[node.index()] as usize].ending;
        self.places[ending.places.1 as usize] = place;
        ending.places.1 += 1;
    }

    /// Makes bundles of the fresh endings.
    fn bundle_up(&mut self) -> Result<()> {
        if self.fresh.len() > 1 {
            for at in 0..self.fresh.len() {
                self.look_on(at);
            }
            self.fresh.sort_unstable_by_key(|fresh| (fresh.inside, fresh.key));
        }
        let mut start = 0;
        while let Some(&first) = self.fresh.get(start) {
            let same =
                self.fresh[start..].iter().take_while(|other| self.go_on_equally(&first, other)).count();
            let equal = &self.fresh[start..start + same.max(1)];
            let endings = (index(self.endings.len())?, index(self.endings.len() + equal.len())?);
            let common = match equal {
                [_] => self.successors.length(first.ending.node) - first.inside,
                _ => first.common,
            };
            self.endings.extend(equal.iter().map(|fresh| fresh.ending));
            self.bundles.push(Bundle {
                endings,
                inside: first.inside,
                common,
                next: first.next,
                count: equal.iter().map(|fresh| fresh.ending.count).sum(),
                ahead: equal.iter().map(|fresh| fresh.ending.ahead).sum(),
            });
            start += equal.len();
        }
        Ok(())
    }

    /// Looks at the next events of a fresh ending.
    fn look_on(&mut self, at: usize) {
        let fresh = &mut self.fresh[at];
        let length = self.successors.length(fresh.ending.node).min(self.prefixes.most());
        let common = length.saturating_sub(fresh.inside).min(WINDOW);
        let Some(rule) = self.successors.rule(fresh.ending.node).filter(|_| common > 0) else { return };
        if let Some(known) = self.prefixes.from(rule, fresh.inside, common) {
            (fresh.common, fresh.next) = (common, known);
            fresh.key = key_of(&self.prefixes.all(known)[..common as usize]);
        } else {
            // It is not unfolded, so it cannot be compared.
            fresh.key = u64::MAX;
        }
    }

    fn go_on_equally(&self, one: &Fresh, other: &Fresh) -> bool {
        let next = |fresh: &Fresh| &self.prefixes.all(fresh.next)[..fresh.common as usize];
        one.inside == other.inside && one.key == other.key && one.key != u64::MAX && next(one) == next(other)
    }

    /// A walk along the events that follow a subpath in any case, if all its occurrences
    /// are in one bundle.
    pub(super) fn walk(&self, bundles: Span) -> Option<Walk> {
        if bundles.1 - bundles.0 != 1 {
            return None;
        }
        let bundle = self.bundles[bundles.0 as usize];
        let Ending { node, places, .. } = self.endings[bundle.endings.0 as usize];
        let alone = bundle.endings.1 - bundle.endings.0 == 1 && places.1 - places.0 == 1;
        Some(Walk { bundle, node, place: alone.then(|| self.places[places.0 as usize]), moved: false })
    }

    /// The next events of a walk, as many as are unfolded; none when not all occurrences have
    /// the same continuation.
    pub(super) fn events_of(&mut self, walk: &mut Walk) -> &[u32] {
        let bundle = &mut walk.bundle;
        if bundle.common == 0 {
            // One place has one continuation, except for repetitions of which one is the last.
            let Some((Some(next), None) | (None, Some(next))) =
                walk.place.map(|place| self.successors.after(place))
            else {
                return &[];
            };
            let Next::Place { place, node, .. } = next else { return &[] };
            (walk.place, walk.node, walk.moved) = (Some(place), node, true);
            (bundle.inside, bundle.common, bundle.next) =
                (0, self.successors.length(walk.node), Known::default());
        }
        let Some(rule) = self.successors.rule(walk.node) else {
            self.single = [walk.node.raw()];
            return &self.single;
        };
        if bundle.next.is_empty() {
            match self.prefixes.from(rule, bundle.inside, 1) {
                Some(known) => bundle.next = known,
                None => {
                    self.single = [self.prefixes.look_up(rule, bundle.inside)];
                    return &self.single;
                }
            }
        }
        let events = self.prefixes.all(bundle.next);
        &events[..events.len().min(bundle.common as usize)]
    }

    /// Makes the end of a walk the end of the subpath that had these bundles.
    pub(super) fn end_walk(&mut self, walk: Walk, bundles: Span) -> Result<()> {
        let mut bundle = walk.bundle;
        if walk.moved
            && let Some(place) = walk.place
        {
            let ahead = self.ahead_of(place, walk.node, bundle.count);
            let places = (index(self.places.len())?, index(self.places.len() + 1)?);
            bundle.endings = (index(self.endings.len())?, index(self.endings.len() + 1)?);
            bundle.ahead = ahead;
            self.places.push(place);
            self.endings.push(Ending { node: walk.node, places, count: bundle.count, ahead });
        }
        self.bundles[bundles.0 as usize] = bundle;
        Ok(())
    }

    /// How many occurrences these bundles have.
    pub(super) fn count(&self, bundles: Span) -> u64 {
        self.bundles[bundles.0 as usize..bundles.1 as usize].iter().map(|bundle| bundle.count).sum()
    }

    /// The places in these bundles.
    pub(super) fn places(&self, bundles: Span) -> impl Iterator<Item = Place> {
        let bundles = &self.bundles[bundles.0 as usize..bundles.1 as usize];
        let endings = bundles.iter().flat_map(|bundle| bundle.endings.0..bundle.endings.1);
        let places = endings.map(|ending| self.endings[ending as usize].places);
        places.flat_map(|places| places.0..places.1).map(|place| self.places[place as usize])
    }
}

/// A bundle during a walk.
pub(super) struct Walk {
    bundle: Bundle,
    node: Node,
    /// The place, where there is only one.
    place: Option<Place>,
    /// It is no longer in the node where it began.
    moved: bool,
}

impl Walk {
    /// How many occurrences walk.
    pub(super) fn count(&self) -> u64 {
        self.bundle.count
    }

    /// Takes so many of the events ahead.
    pub(super) fn advance(&mut self, events: usize) {
        self.bundle = self.bundle.advanced(events as u32);
    }
}

impl Fresh {
    fn new(ending: Ending, inside: u32) -> Self {
        Self { ending, inside, common: 0, next: Known::default(), key: 0 }
    }
}

/// A number that is the same for the same events, and hardly ever for others.
fn key_of(events: &[u32]) -> u64 {
    let mix =
        |key: u64, &event: &u32| (key.rotate_left(5) ^ u64::from(event)).wrapping_mul(0x517c_c1b7_2722_0a95);
    events.iter().fold(events.len() as u64, mix) >> 1
}

fn index(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| too_many())
}

fn too_many() -> Error {
    Error::limit("the subpaths occur at too many places; ask for a higher cost or fewer events")
}
