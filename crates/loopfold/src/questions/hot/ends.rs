//! Where the occurrences of a subpath end, and how they go on.
//!
//! An occurrence of a subpath of two events or more belongs to exactly one rule: the
//! lowest one in which it lies in more than one item, or in more than one repetition of
//! an item. So the occurrences are known by where they *end*: at which [`Place`]s, and
//! how far inside the part there. To add an event, an occurrence inside a part takes the
//! part's next event; one at the end of a part goes on to the next repetition or the
//! next item; and one at the end of a rule goes on wherever that rule is used.
//!
//! Three things keep this cheap:
//! * the repetitions of an item are one place, not one each;
//! * all places of one part are one *ending*: they go on together until the part ends;
//! * endings equally far inside parts whose next events are the same are one *bundle*.
//!   For as many events as are known to be the same, going on costs the same for a
//!   bundle of any size; then it is made up anew.
//!
//! What lies after a part is known class by class, so that all continuations are
//! counted before any place is looked at.
//!
//! The ends of a subpath stay in memory while subpaths that go on from it are looked at;
//! like those, they are a stack.

use super::ahead::Ahead;
use super::followers::{Followers, Next, Part, Place};
use super::heads::{Heads, Known};
use crate::{Error, Result};
use std::ops::Range;

/// A range of a list.
pub(super) type Span = (u32, u32);

/// Events that are compared when endings are bundled.
const WINDOW: u32 = 8;

/// Occurrences that end in the same part.
#[derive(Clone, Copy, Debug)]
struct Ending {
    part: Part,
    /// The items that repeat the part.
    places: Span,
    count: u64,
    /// A bound on what comes after; see [`Ahead`].
    ahead: f64,
}

/// Endings that go on with the same events.
#[derive(Clone, Copy, Debug)]
struct Bundle {
    endings: Span,
    /// The events of each part that belong to the subpath.
    inside: u32,
    /// How many of their next events are known to be the same.
    common: u32,
    /// The next events of the first part, as far as they are unfolded.
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

/// How some occurrences of a subpath go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The next event.
    pub(super) symbol: u32,
    /// How many occurrences go on so.
    pub(super) count: u64,
    /// A bound on what comes with and after that event.
    pub(super) ahead: f64,
    way: Way,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// A bundle goes on as it is.
    Together(u32),
    /// An ending leaves its bundle; so many events of its part belong to the subpath.
    Alone { ending: u32, inside: u32 },
    /// Into the part at this place.
    Into(Place, Part),
    /// Into what follows a part: the places of a class.
    Followers(u32),
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

/// The ends of a subpath and of those it goes on from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    bundles: usize,
    endings: usize,
    places: usize,
}

/// Where subpaths end.
pub(super) struct Ends<'a> {
    followers: &'a Followers<'a>,
    pub(super) heads: Heads<'a>,
    ahead: Option<Ahead<'a>>,
    bundles: Vec<Bundle>,
    endings: Vec<Ending>,
    places: Vec<Place>,
    steps: Vec<Step>,
    /// Parts at whose end the subpath ends, wherever they are used.
    ended: Vec<Part>,
    fresh: Vec<Fresh>,
    /// For each part its place among the fresh endings.
    fresh_of: Vec<u32>,
    /// The one event of a symbol, or one that could not be kept.
    single: [u32; 1],
}

const NONE: u32 = u32::MAX;

impl<'a> Ends<'a> {
    /// For subpaths of at most `longest` events.
    pub(super) fn new(followers: &'a Followers<'a>, longest: usize) -> Self {
        Self {
            followers,
            heads: Heads::new(followers.fold, u32::try_from(longest).unwrap_or(u32::MAX)),
            ahead: None,
            bundles: Vec::new(),
            endings: Vec::new(),
            places: Vec::new(),
            steps: Vec::new(),
            ended: Vec::new(),
            fresh: Vec::new(),
            fresh_of: vec![NONE; followers.parts()],
            single: [0],
        }
    }

    /// From now on, also says what is ahead.
    pub(super) fn look_ahead(&mut self, ahead: Option<Ahead<'a>>) {
        self.ahead = ahead;
    }

    /// What is ahead, where that is known.
    pub(super) fn ahead(&self) -> Option<&Ahead<'a>> {
        self.ahead.as_ref()
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

    /// The ways on that were gathered last.
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

    /// Forgets everything and gathers the ways on from a subpath of one event.
    pub(super) fn begin(&mut self, symbol: u32) {
        self.forget(Mark { bundles: 0, endings: 0, places: 0 });
        self.steps.clear();
        self.ended.push(symbol);
        self.leave_ended();
    }

    /// Gathers the ways on from a subpath with these bundles.
    pub(super) fn gather(&mut self, bundles: Span) {
        self.steps.clear();
        for at in bundles.0..bundles.1 {
            let mut bundle = self.bundles[at as usize];
            if bundle.common > 0 {
                let symbol = self.next_event(&mut bundle);
                self.bundles[at as usize] = bundle;
                let Bundle { count, ahead, .. } = bundle;
                self.steps.push(Step { symbol, count, ahead, way: Way::Together(at) });
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
            && let Some(rule) = self.followers.rule(self.endings[bundle.endings.0 as usize].part)
        {
            match self.heads.from(rule, bundle.inside, 1) {
                Some(known) => bundle.next = known,
                None => return self.heads.look_up(rule, bundle.inside),
            }
        }
        self.heads.first(bundle.next)
    }

    /// An ending whose bundle is at its end goes on alone, or its part is at its end too.
    fn leave_bundle(&mut self, at: u32, inside: u32) {
        let Ending { part, places, count, ahead } = self.endings[at as usize];
        match self.followers.rule(part) {
            Some(rule) if inside < self.followers.length(part) => {
                let symbol = match self.heads.from(rule, inside, 1) {
                    Some(known) => self.heads.first(known),
                    None => self.heads.look_up(rule, inside),
                };
                self.steps.push(Step { symbol, count, ahead, way: Way::Alone { ending: at, inside } });
            }
            _ => (places.0..places.1).for_each(|place| self.leave_part(self.places[place as usize])),
        }
    }

    fn leave_part(&mut self, place: Place) {
        let (again, on) = self.followers.after(place);
        for next in [again, on].into_iter().flatten() {
            match next {
                Next::After(part) => self.ended.push(part),
                Next::Place { place, part, symbol, count } => {
                    let ahead = self.ahead_of(place, part, count);
                    self.steps.push(Step { symbol, count, ahead, way: Way::Into(place, part) });
                }
            }
        }
    }

    fn leave_ended(&mut self) {
        while let Some(part) = self.ended.pop() {
            for class in self.followers.classes(part) {
                let (symbol, count, only) = self.followers.class(class);
                let ahead = self.ahead.as_ref().map_or(0.0, |ahead| ahead.of_class(class));
                let way = only.map_or(Way::Followers(class), |(place, part)| Way::Into(place, part));
                self.steps.push(Step { symbol, count, ahead, way });
            }
            self.ended.extend(self.followers.ended_by(part));
        }
    }

    /// What is ahead of occurrences that have come to the first event of a part.
    fn ahead_of(&self, place: Place, part: Part, count: u64) -> f64 {
        self.ahead.as_ref().map_or(0.0, |ahead| ahead.of_place(place, part, count))
    }

    /// The ends of a subpath after some of the steps, all with the same event.
    pub(super) fn take(&mut self, steps: Range<usize>) -> Result<Span> {
        let (start, followers) = (self.bundles.len(), self.followers);
        self.fresh.clear();
        for at in steps.clone() {
            let Step { count, ahead, way, .. } = self.steps[at];
            match way {
                Way::Together(bundle) => self.bundles.push(self.bundles[bundle as usize].advanced(1)),
                Way::Alone { ending, inside } => {
                    self.fresh.push(Fresh::new(self.endings[ending as usize], inside + 1));
                }
                Way::Into(_, part) => self.count_place(part, count, ahead),
                Way::Followers(class) => {
                    for (place, part, count) in followers.places(class) {
                        self.count_place(part, count, self.ahead_of(place, part, count));
                    }
                }
            }
        }
        self.put_places(steps)?;
        self.bundle_up()?;
        Ok((index(start)?, index(self.bundles.len())?))
    }

    /// Counts a place into the ending of its part, in which the subpath has come to the
    /// first event.
    fn count_place(&mut self, part: Part, count: u64, ahead: f64) {
        let at = &mut self.fresh_of[part as usize];
        if *at == NONE {
            *at = self.fresh.len() as u32;
            self.fresh.push(Fresh::new(Ending { part, places: (0, 0), count: 0, ahead: 0.0 }, 1));
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
        let followers = self.followers;
        for at in steps {
            match self.steps[at].way {
                Way::Together(_) | Way::Alone { .. } => {}
                Way::Into(place, part) => self.put_place(place, part),
                Way::Followers(class) => {
                    followers.places(class).for_each(|(place, part, _)| self.put_place(place, part));
                }
            }
        }
        for fresh in &self.fresh {
            self.fresh_of[fresh.ending.part as usize] = NONE;
        }
        Ok(())
    }

    fn put_place(&mut self, place: Place, part: Part) {
        let ending = &mut self.fresh[self.fresh_of[part as usize] as usize].ending;
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
            let same = self.fresh[start..].iter().take_while(|other| self.go_on_alike(&first, other)).count();
            let alike = &self.fresh[start..start + same.max(1)];
            let endings = (index(self.endings.len())?, index(self.endings.len() + alike.len())?);
            let common = match alike {
                [_] => self.followers.length(first.ending.part) - first.inside,
                _ => first.common,
            };
            self.endings.extend(alike.iter().map(|fresh| fresh.ending));
            self.bundles.push(Bundle {
                endings,
                inside: first.inside,
                common,
                next: first.next,
                count: alike.iter().map(|fresh| fresh.ending.count).sum(),
                ahead: alike.iter().map(|fresh| fresh.ending.ahead).sum(),
            });
            start += alike.len();
        }
        Ok(())
    }

    /// Looks at the next events of a fresh ending.
    fn look_on(&mut self, at: usize) {
        let fresh = &mut self.fresh[at];
        let length = self.followers.length(fresh.ending.part).min(self.heads.most());
        let common = length.saturating_sub(fresh.inside).min(WINDOW);
        let Some(rule) = self.followers.rule(fresh.ending.part).filter(|_| common > 0) else { return };
        if let Some(known) = self.heads.from(rule, fresh.inside, common) {
            (fresh.common, fresh.next) = (common, known);
            fresh.key = key_of(&self.heads.all(known)[..common as usize]);
        } else {
            // Unfolded by nobody, it can be compared with none.
            fresh.key = u64::MAX;
        }
    }

    fn go_on_alike(&self, one: &Fresh, other: &Fresh) -> bool {
        let next = |fresh: &Fresh| &self.heads.all(fresh.next)[..fresh.common as usize];
        one.inside == other.inside && one.key == other.key && one.key != u64::MAX && next(one) == next(other)
    }

    /// A walk along the events that follow a subpath in any case, if all its occurrences
    /// are in one bundle.
    pub(super) fn walk(&self, bundles: Span) -> Option<Walk> {
        if bundles.1 - bundles.0 != 1 {
            return None;
        }
        let bundle = self.bundles[bundles.0 as usize];
        let Ending { part, places, .. } = self.endings[bundle.endings.0 as usize];
        let alone = bundle.endings.1 - bundle.endings.0 == 1 && places.1 - places.0 == 1;
        Some(Walk { bundle, part, place: alone.then(|| self.places[places.0 as usize]), moved: false })
    }

    /// The next events of a walk, as many as are at hand; none when not all occurrences
    /// go on alike.
    pub(super) fn events_of(&mut self, walk: &mut Walk) -> &[u32] {
        let bundle = &mut walk.bundle;
        if bundle.common == 0 {
            // One place has one way on, but for repetitions of which one is the last.
            let Some((Some(next), None) | (None, Some(next))) =
                walk.place.map(|place| self.followers.after(place))
            else {
                return &[];
            };
            let Next::Place { place, part, .. } = next else { return &[] };
            (walk.place, walk.part, walk.moved) = (Some(place), part, true);
            (bundle.inside, bundle.common, bundle.next) =
                (0, self.followers.length(walk.part), Known::default());
        }
        let Some(rule) = self.followers.rule(walk.part) else {
            self.single = [walk.part];
            return &self.single;
        };
        if bundle.next.is_empty() {
            match self.heads.from(rule, bundle.inside, 1) {
                Some(known) => bundle.next = known,
                None => {
                    self.single = [self.heads.look_up(rule, bundle.inside)];
                    return &self.single;
                }
            }
        }
        let events = self.heads.all(bundle.next);
        &events[..events.len().min(bundle.common as usize)]
    }

    /// Makes the end of a walk the end of the subpath that had these bundles.
    pub(super) fn end_walk(&mut self, walk: Walk, bundles: Span) -> Result<()> {
        let mut bundle = walk.bundle;
        if walk.moved
            && let Some(place) = walk.place
        {
            let ahead = self.ahead_of(place, walk.part, bundle.count);
            let places = (index(self.places.len())?, index(self.places.len() + 1)?);
            bundle.endings = (index(self.endings.len())?, index(self.endings.len() + 1)?);
            bundle.ahead = ahead;
            self.places.push(place);
            self.endings.push(Ending { part: walk.part, places, count: bundle.count, ahead });
        }
        self.bundles[bundles.0 as usize] = bundle;
        Ok(())
    }

    /// The places in these bundles.
    pub(super) fn places(&self, bundles: Span) -> impl Iterator<Item = Place> {
        let bundles = &self.bundles[bundles.0 as usize..bundles.1 as usize];
        let endings = bundles.iter().flat_map(|bundle| bundle.endings.0..bundle.endings.1);
        let places = endings.map(|ending| self.endings[ending as usize].places);
        places.flat_map(|places| places.0..places.1).map(|place| self.places[place as usize])
    }
}

/// A bundle on its way.
pub(super) struct Walk {
    bundle: Bundle,
    part: Part,
    /// The place, where there is only one.
    place: Option<Place>,
    /// It is no longer in the part where it began.
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
