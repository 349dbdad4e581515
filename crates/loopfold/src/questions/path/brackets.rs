//! How calls nest in a stretch, as the monoid of brackets. The entry, exit and return levels,
//! the path summaries and the reverse scan are based on it.
//!
//! A stretch leaves some frames that it did not enter, and enters some that it does not
//! leave. Side by side, the frames that the second stretch leaves are first those that the
//! first one entered. What else is asked about levels (the lowest return, the deepest level,
//! whether the lowest frame has a block) is a [`LevelFact`], counted from the lowest level that
//! the stretch reaches; joining and repeating stretches only raises facts and merges them.
//!
//! A join and a repeat cost a few instructions. For functions that are not recursive,
//! [`FrameBoundary`] is all of it in three bits.

use super::functions::Step;
use crate::fold::Measure;
use crate::trace::{Alphabet, Role};
use crate::{Result, Symbol};

/// How calls nest in a stretch.
///
/// The lowest level that a stretch returns to is level 1; others count from there, so levels
/// of two stretches can be compared only after joining them.
///
/// ```
/// use loopfold::fold::Measure;
/// use loopfold::questions::path::Levels;
/// use loopfold::trace::{Alphabet, Event, Role};
///
/// let mut alphabet = Alphabet::default();
/// let enter = alphabet.intern(&Event { role: Role::Enter, ..Event::named("F") }, None)?;
/// let leave = alphabet.intern(&Event { role: Role::Leave, ..Event::named("E") }, None)?;
/// let block = alphabet.intern(&Event { role: Role::Block, ..Event::named("b") }, None)?;
/// let levels = Levels::new(&alphabet);
/// let mut whole = levels.empty();
/// for symbol in [block, leave, block, leave, block, enter, block, enter, block, enter, block] {
///     whole = levels.join(&whole, &levels.symbol(symbol))?;
/// }
/// assert_eq!((whole.entry(), whole.exit(), whole.lowest_return()), (3, 4, Some(2)));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brackets<F = ()> {
    /// Calls that are left but not entered.
    pub leaves: u64,
    /// Calls that are entered but not left.
    pub enters: u64,
    /// Another fact about levels.
    pub(super) fact: F,
}

/// Something known of the levels of a stretch, counted from the lowest one that it reaches.
///
/// `merged` must be associative and commutative, the default its neutral element, and
/// merging a fact with itself raised any number of times in between must be the same as
/// merging the first with the last.
pub trait LevelFact: Copy + Default + PartialEq + std::fmt::Debug {
    /// The fact of one event that does this to the innermost frame.
    fn of(role: Role) -> Self;

    /// The same, counted from so many levels below.
    fn raised(self, by: u64) -> Self;

    /// The fact of two stretches, both counted from the same level.
    fn merged(self, other: Self) -> Self;
}

/// Nothing besides frames left and entered.
impl LevelFact for () {
    fn of(_: Role) {}

    fn raised(self, _: u64) {}

    fn merged(self, _: Self) {}
}

/// The lowest level that is left, if any is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowestReturn(Option<u64>);

impl LevelFact for LowestReturn {
    fn of(role: Role) -> Self {
        Self((role == Role::Leave).then_some(1))
    }

    fn raised(self, by: u64) -> Self {
        Self(self.0.map(|level| level.saturating_add(by)))
    }

    fn merged(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(two)) => Self(Some(one.min(two))),
            (one, two) => Self(one.or(two)),
        }
    }
}

/// The highest level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeepestLevel(u64);

impl LevelFact for DeepestLevel {
    fn of(role: Role) -> Self {
        Self(matches!(role, Role::Enter | Role::Leave).into())
    }

    fn raised(self, by: u64) -> Self {
        Self(self.0.saturating_add(by))
    }

    fn merged(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

/// Whether there is a block in the lowest frame, after all that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HasBlock(pub(super) bool);

impl LevelFact for HasBlock {
    fn of(role: Role) -> Self {
        Self(role == Role::Block)
    }

    fn raised(self, by: u64) -> Self {
        Self(self.0 && by == 0)
    }

    fn merged(self, other: Self) -> Self {
        Self(self.0 || other.0)
    }
}

/// How calls nest, with the level of the lowest return.
pub type NestingLevels = Brackets<LowestReturn>;

impl<F: LevelFact> Brackets<F> {
    pub(super) fn new(leaves: u64, enters: u64, fact: F) -> Self {
        Self { leaves, enters, fact }
    }

    /// The brackets of one event with this effect on the innermost frame.
    fn of(role: Role) -> Self {
        Self::new((role == Role::Leave).into(), (role == Role::Enter).into(), F::of(role))
    }

    /// The level of the first event, or of what an enter is called from.
    pub fn entry(&self) -> u64 {
        self.leaves.saturating_add(1)
    }

    /// The level behind the last event.
    pub fn exit(&self) -> u64 {
        self.enters.saturating_add(1)
    }

    /// The brackets of two stretches, one after the other.
    #[inline]
    pub fn then(self, next: Self) -> Self {
        // By how much the lowest level of each lies above that of both.
        let raised = next.leaves.saturating_sub(self.enters);
        let next_raised = self.enters.saturating_sub(next.leaves);
        Self {
            leaves: self.leaves.saturating_add(raised),
            enters: next.enters.saturating_add(next_raised),
            fact: self.fact.raised(raised).merged(next.fact.raised(next_raised)),
        }
    }

    /// The brackets of a repeated stretch. One that leaves more than it enters is lowest in its
    /// last iteration, one that enters more in its first.
    #[inline]
    pub fn repeated(self, times: u64) -> Self {
        let Some(more) = times.checked_sub(1) else { return Self::default() };
        let deeper = |by: u64| by.saturating_mul(more);
        Self {
            leaves: self.leaves.saturating_add(deeper(self.leaves.saturating_sub(self.enters))),
            enters: self.enters.saturating_add(deeper(self.enters.saturating_sub(self.leaves))),
            fact: self.fact.merged(self.fact.raised(deeper(self.enters.abs_diff(self.leaves)))),
        }
    }
}

impl Brackets {
    /// Leaves the innermost frames.
    #[inline]
    pub(super) fn leave(&mut self, frames: u64) {
        *self = self.then(Self::new(frames, 0, ()));
    }

    /// Enters frames.
    #[inline]
    pub(super) fn enter(&mut self, frames: u64) {
        *self = self.then(Self::new(0, frames, ()));
    }
}

impl NestingLevels {
    /// The levels of a stretch that leaves and enters so many calls; `returns` is how far
    /// above the lowest level the lowest exit is. `None` if that cannot be.
    pub(crate) fn stored(leaves: u64, enters: u64, returns: Option<u64>) -> Option<Self> {
        let fits = match returns {
            None => leaves == 0,
            Some(level) => level >= 1 && (leaves == 0 || level == 1),
        };
        fits.then_some(Self::new(leaves, enters, LowestReturn(returns)))
    }

    /// How far above the lowest level the lowest exit is, if there is one.
    pub(crate) fn returns(&self) -> Option<u64> {
        self.fact.0
    }

    /// The level of the lowest call that is left, if any is.
    pub fn lowest_return(&self) -> Option<u64> {
        Some(self.returns()?.saturating_add(1))
    }
}

impl Brackets<DeepestLevel> {
    /// The most calls that are open at a time, with those that are only seen to be left.
    pub fn deepest(&self) -> u64 {
        self.fact.0
    }
}

/// The measure of how calls nest.
#[derive(Clone, Debug)]
pub struct Nesting<F> {
    /// For each symbol up to the last one that does something.
    symbols: Vec<Brackets<F>>,
}

/// The measure of [`NestingLevels`].
pub type Levels = Nesting<LowestReturn>;

/// The measure of how many calls are open at a time, at most: [`deepest`](Brackets::deepest).
///
/// ```
/// use loopfold::fold::Measure;
/// use loopfold::questions::path::Deepest;
/// use loopfold::trace::{Alphabet, Event, Role};
///
/// let mut alphabet = Alphabet::default();
/// let enter = alphabet.intern(&Event { role: Role::Enter, ..Event::named("F") }, None)?;
/// let leave = alphabet.intern(&Event { role: Role::Leave, ..Event::named("E") }, None)?;
/// let measure = Deepest::new(&alphabet);
/// let once = measure.join(&measure.symbol(enter), &measure.symbol(leave))?;
/// assert_eq!(measure.repeat(&once, 1_000)?.deepest(), 1);
/// assert_eq!(measure.repeat(&measure.symbol(enter), 1_000)?.deepest(), 1_000);
/// # Ok::<(), loopfold::Error>(())
/// ```
pub type Deepest = Nesting<DeepestLevel>;

impl<F: LevelFact> Nesting<F> {
    /// For calls of all functions.
    pub fn new(alphabet: &Alphabet) -> Self {
        let of = |symbol| Brackets::of(alphabet.meaning(symbol).role);
        Self { symbols: alphabet.symbols().map(of).collect() }
    }

    /// For symbols, one after the other.
    pub(crate) fn of_symbols(&self, symbols: &[Symbol]) -> Brackets<F> {
        let mut all = Brackets::default();
        for &symbol in symbols {
            let one = self.symbol(symbol);
            if one != Brackets::default() {
                all = all.then(one);
            }
        }
        all
    }
}

impl Nesting<HasBlock> {
    /// For the frames that matter for one function.
    pub(super) fn of_steps(steps: &[(Symbol, Step)]) -> Self {
        let used = steps.iter().map(|(symbol, _)| symbol.index() + 1).max().unwrap_or(0);
        let mut symbols = vec![Brackets::default(); used];
        for &(symbol, step) in steps {
            symbols[symbol.index()] = Brackets::of_step(step);
        }
        Self { symbols }
    }
}

impl Brackets<HasBlock> {
    /// For a symbol with this effect on frames of a function.
    pub(super) fn of_step(step: Step) -> Self {
        Self::new((step == Step::Leave).into(), step.is_enter().into(), HasBlock(step.is_block()))
    }

    /// True if there is a block in the lowest frame, after all that is left.
    pub(super) fn has_block(&self) -> bool {
        self.fact.0
    }
}

impl<F: LevelFact> Measure for Nesting<F> {
    type Value = Brackets<F>;

    fn empty(&self) -> Brackets<F> {
        Brackets::default()
    }

    fn symbol(&self, symbol: Symbol) -> Brackets<F> {
        self.symbols.get(symbol.index()).copied().unwrap_or_default()
    }

    fn join(&self, left: &Brackets<F>, right: &Brackets<F>) -> Result<Brackets<F>> {
        Ok(left.then(*right))
    }

    fn repeat(&self, value: &Brackets<F>, times: u64) -> Result<Brackets<F>> {
        Ok(value.repeated(times))
    }
}

/// Whether a stretch begins and ends inside of a frame of a function: all there is to know of
/// its brackets as long as the function is not recursive.
///
/// A function is *not recursive* in a fold if every stream enters it only while it is not
/// open, and has its blocks and exits only while it is. Then a path is a plain sequence of the
/// function's own symbols. The first of them says where a stretch can begin, the last one
/// where it ends, and neighbours must agree. So a body is checked pair by pair, and no pair
/// waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameBoundary(u8);

const BEGINS_INSIDE: u8 = 1;
const ENDS_INSIDE: u8 = 2;
/// The function is recursive, or frames of other functions matter as well.
const RECURSIVE: u8 = 4;

impl FrameBoundary {
    pub(super) fn of(step: Step) -> Self {
        Self(match step {
            Step::Enter => ENDS_INSIDE,
            Step::Leave => BEGINS_INSIDE,
            Step::Block => BEGINS_INSIDE | ENDS_INSIDE,
            Step::EnterOther | Step::BlockThenEnter | Step::BlockThenEnterOther => RECURSIVE,
        })
    }

    /// True if it can be that of a whole stream.
    pub(super) fn begins_outside(self) -> bool {
        self.0 & (BEGINS_INSIDE | RECURSIVE) == 0
    }

    /// The boundary of several stretches one after the other, each of them once or repeated.
    /// Returns `None` if they do not agree.
    #[inline]
    pub(super) fn joined(mut boundaries: impl Iterator<Item = (Self, bool)>) -> Option<Self> {
        let (first, repeats) = boundaries.next()?;
        let mut wrong = if repeats { first.disagrees(first) } else { first.0 & RECURSIVE };
        let mut last = first;
        for (next, repeats) in boundaries {
            wrong |= last.disagrees(next) | if repeats { next.disagrees(next) } else { 0 };
            last = next;
        }
        (wrong == 0).then_some(Self(first.0 & BEGINS_INSIDE | last.0 & ENDS_INSIDE))
    }

    /// Not 0 if the other cannot come next.
    #[inline]
    fn disagrees(self, next: Self) -> u8 {
        (self.0 >> 1 ^ next.0) & BEGINS_INSIDE | (self.0 | next.0) & RECURSIVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::Rng;

    fn stretch(rng: &mut Rng) -> Vec<Role> {
        const ROLES: [Role; 4] = [Role::Enter, Role::Leave, Role::Block, Role::Plain];
        (0..rng.below(8)).map(|_| ROLES[rng.below(4)]).collect()
    }

    fn of<F: LevelFact>(stretch: &[Role]) -> Brackets<F> {
        stretch.iter().fold(Brackets::default(), |all, &role| all.then(Brackets::of(role)))
    }

    fn check<F: LevelFact>(rng: &mut Rng) {
        let [u, v, w] = std::array::from_fn(|_| stretch(rng));
        let [a, b, c]: [Brackets<F>; 3] = [&u, &v, &w].map(|stretch| of(stretch));
        assert_eq!(a.then(b).then(c), a.then(b.then(c)), "{u:?} {v:?} {w:?}");
        assert_eq!((Brackets::default().then(a), a.then(Brackets::default())), (a, a));
        let times = rng.below(6);
        assert_eq!(a.repeated(times as u64), of(&u.repeat(times)), "{u:?} {times} times");
    }

    #[test]
    fn brackets_are_the_same_however_they_are_joined() {
        let mut rng = Rng::new(90);
        for _ in 0..20_000 {
            check::<()>(&mut rng);
            check::<LowestReturn>(&mut rng);
            check::<DeepestLevel>(&mut rng);
            check::<HasBlock>(&mut rng);
        }
    }

    #[test]
    fn the_lowest_frame_has_a_block_if_one_comes_after_all_that_is_left() {
        let [enter, leave, block] = [Role::Enter, Role::Leave, Role::Block];
        let has_block = |roles: &[Role]| of::<HasBlock>(roles).fact.0;
        assert!(
            has_block(&[block]) && has_block(&[leave, block, enter]) && has_block(&[enter, leave, block])
        );
        assert!(!has_block(&[block, leave]) && !has_block(&[enter, block]) && !has_block(&[enter, leave]));
    }
}
