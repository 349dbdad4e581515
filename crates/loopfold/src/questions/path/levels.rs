//! How deep calls are nested in a stretch, whatever their functions: the measure behind
//! levels of entry, exit and return.
//!
//! A few instructions a join and for any repeat.

use crate::fold::Measure;
use crate::trace::{Alphabet, Role};
use crate::{Result, Symbol};

/// The measure of [`NestingLevels`].
#[derive(Clone, Debug)]
pub struct Levels {
    symbols: Vec<NestingLevels>,
}

/// How deep calls are nested in a stretch.
///
/// The deepest level that a stretch returns to is level 1; others count from there, so the
/// first and the last event of two stretches can be compared only after joining them.
///
/// ```
/// use loopfold::fold::Measure;
/// use loopfold::questions::Levels;
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
pub struct NestingLevels {
    /// Calls that are left but not entered.
    pub leaves: u64,
    /// Calls that are entered but not left.
    pub enters: u64,
    /// How far above the lowest level the lowest exit is, if there is one.
    pub(crate) returns: Option<u64>,
}

impl NestingLevels {
    /// The levels of a stretch that leaves and enters so many calls; `returns` is how far
    /// above the lowest level the lowest exit is. Nothing if that cannot be.
    pub(crate) fn stored(leaves: u64, enters: u64, returns: Option<u64>) -> Option<Self> {
        let fits = match returns {
            None => leaves == 0,
            Some(level) => level >= 1 && (leaves == 0 || level == 1),
        };
        fits.then_some(Self { leaves, enters, returns })
    }

    /// How far above the lowest level the lowest exit is, if there is one.
    pub(crate) fn returns(&self) -> Option<u64> {
        self.returns
    }

    /// The level of the first event, or of what an enter is called from.
    pub fn entry(&self) -> u64 {
        self.leaves.saturating_add(1)
    }

    /// The level behind the last event.
    pub fn exit(&self) -> u64 {
        self.enters.saturating_add(1)
    }

    /// By how much the lowest level of this and of the next stretch lie above that of both.
    fn above(self, next: Self) -> (u64, u64) {
        (next.leaves.saturating_sub(self.enters), self.enters.saturating_sub(next.leaves))
    }

    /// The level of the lowest call that is left, if any is.
    pub fn lowest_return(&self) -> Option<u64> {
        Some(self.returns?.saturating_add(1))
    }
}

impl Levels {
    /// The levels of all symbols of an alphabet.
    pub fn new(alphabet: &Alphabet) -> Self {
        let of = |symbol| match alphabet.meaning(symbol).role {
            Role::Enter => NestingLevels { enters: 1, ..NestingLevels::default() },
            Role::Leave => NestingLevels { leaves: 1, enters: 0, returns: Some(1) },
            _ => NestingLevels::default(),
        };
        Self { symbols: alphabet.symbols().map(of).collect() }
    }

    pub(super) fn of_symbol(&self, symbol: Symbol) -> NestingLevels {
        self.symbols.get(symbol.index()).copied().unwrap_or_default()
    }

    /// The levels of symbols, one after the other.
    pub(crate) fn of_symbols(&self, symbols: &[Symbol]) -> NestingLevels {
        let mut all = NestingLevels::default();
        for &symbol in symbols {
            let one = self.of_symbol(symbol);
            if one != NestingLevels::default() {
                all = self.joined(all, one);
            }
        }
        all
    }

    pub(super) fn joined(&self, left: NestingLevels, right: NestingLevels) -> NestingLevels {
        let (left_above, right_above) = left.above(right);
        let lowest = |of: NestingLevels, above: u64| of.returns.map(|level| level.saturating_add(above));
        let returns = match (lowest(left, left_above), lowest(right, right_above)) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        };
        NestingLevels {
            leaves: left.leaves.saturating_add(left_above),
            enters: right.enters.saturating_add(right_above),
            returns,
        }
    }

    /// A stretch that goes down ends lowest in its last iteration, one that goes up begins
    /// lowest in its first.
    pub(super) fn repeated(&self, once: NestingLevels, times: u64) -> NestingLevels {
        let Some(more) = times.checked_sub(1) else { return NestingLevels::default() };
        let deeper = |by: u64, from: u64| from.saturating_add(by.saturating_mul(more));
        NestingLevels {
            leaves: deeper(once.leaves.saturating_sub(once.enters), once.leaves),
            enters: deeper(once.enters.saturating_sub(once.leaves), once.enters),
            returns: once.returns,
        }
    }
}

impl Measure for Levels {
    type Value = NestingLevels;

    fn empty(&self) -> NestingLevels {
        NestingLevels::default()
    }

    fn symbol(&self, symbol: Symbol) -> NestingLevels {
        self.of_symbol(symbol)
    }

    fn join(&self, left: &NestingLevels, right: &NestingLevels) -> Result<NestingLevels> {
        Ok(self.joined(*left, *right))
    }

    fn repeat(&self, value: &NestingLevels, times: u64) -> Result<NestingLevels> {
        Ok(self.repeated(*value, times))
    }
}

/// The measure of how many calls are open at a time, at the most: [`Nesting::deepest`].
///
/// ```
/// use loopfold::fold::Measure;
/// use loopfold::questions::Deepest;
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
#[derive(Clone, Debug)]
pub struct Deepest(Levels);

/// How many calls are open at a time in a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    levels: NestingLevels,
    /// How far above the lowest level the highest is.
    highest: u64,
}

impl Nesting {
    /// The most calls that are open at a time, with those that are only seen to be left.
    pub fn deepest(&self) -> u64 {
        self.highest
    }
}

impl Deepest {
    /// The measure for all symbols of an alphabet.
    pub fn new(alphabet: &Alphabet) -> Self {
        Self(Levels::new(alphabet))
    }
}

impl Measure for Deepest {
    type Value = Nesting;

    fn empty(&self) -> Nesting {
        Nesting::default()
    }

    fn symbol(&self, symbol: Symbol) -> Nesting {
        let levels = self.0.of_symbol(symbol);
        Nesting { levels, highest: levels.leaves.max(levels.enters) }
    }

    fn join(&self, left: &Nesting, right: &Nesting) -> Result<Nesting> {
        let (left_above, right_above) = left.levels.above(right.levels);
        let highest = left.highest.saturating_add(left_above).max(right.highest.saturating_add(right_above));
        Ok(Nesting { levels: self.0.joined(left.levels, right.levels), highest })
    }

    fn repeat(&self, once: &Nesting, times: u64) -> Result<Nesting> {
        let Some(more) = times.checked_sub(1) else { return Ok(Nesting::default()) };
        let deeper = once.levels.enters.abs_diff(once.levels.leaves).saturating_mul(more);
        let levels = self.0.repeated(once.levels, times);
        Ok(Nesting { levels, highest: once.highest.saturating_add(deeper) })
    }
}
