//! Finds a path in a stream of symbols by an automaton with a stack: one state for each open
//! frame. A block changes the innermost state, a call pushes one and a return pops it.
//!
//! Symbols are sorted into few *classes*, by a look into a table: those that do nothing, which
//! are most, enter, leave, and one class for all blocks that stand for the same places of the
//! path. Sixteen symbols that do nothing are skipped together, and so are 64 where the symbols
//! that matter are few and lie together: about half a nanosecond each. As long as the function
//! has not called itself, the others go through the automaton without a branch, in one to two
//! nanoseconds; what nests takes a stack, and branches for returns. Memory: 64 KiB for the
//! table and a machine word for each open frame; for paths of more than 62 blocks 256 KiB and a
//! set for each.

mod found;
mod long;
mod short;
mod source;

pub(super) use self::found::ScanFound;
use self::long::{LongFrames, LongPath};
use self::short::{ShortFrames, ShortPath};
pub use self::source::{ScanConfig, TraceChunks};
use super::PathQuery;
use super::brackets::NestingLevels;
use super::functions::Step;
use super::summary::gaps::GapState;
use crate::Symbol;
use crate::questions::find::bits::Wide;

/// The class of a symbol for the path.
const NOTHING: u8 = 0;
const LEAVE: u8 = 1;
const ENTER: u8 = 2;
const ENTER_OTHER: u8 = 3;
/// The first class of blocks: those that the path does not have.
const BLOCK: u8 = 4;

/// The fewest symbols that a table has classes for.
const TABLE: usize = 1 << 16;

/// Symbols that are examined together.
const GROUP: usize = 16;

/// A search for a path in the symbols of one stream.
///
/// ```
/// use loopfold::questions::path::{Functions, PathQuery, PathScan};
/// use loopfold::trace::{Alphabet, Event, Field, Role, Value};
///
/// let mut alphabet = Alphabet::default();
/// let f = [Field { key: "function", value: Value::Text(b"f") }];
/// let enter = alphabet.intern(&Event { role: Role::Enter, ..Event::named("f") }, None)?;
/// let block = alphabet.intern(&Event { role: Role::Block, fields: &f, ..Event::named("B1") }, None)?;
/// let functions = Functions::of(&alphabet)?;
/// let query = PathQuery::new(&functions, functions.named(b"f").unwrap(), vec![vec![block], vec![block]])?;
/// let mut scan = PathScan::new(&query);
/// scan.feed(&[block, enter, block, block]);
/// scan.feed(&[block]);
/// assert_eq!((scan.count(), scan.first()), (2, Some(3)));
/// assert_eq!(scan.states(), [Some(2)]);
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PathScan {
    automaton: Automaton,
    /// True if exits state their function, so that other functions do not matter.
    qualified: bool,
    position: u64,
    count: u64,
    first: Option<u64>,
}

/// The classes of symbols: as many as a power of two, and all past them do nothing.
#[derive(Clone, Debug)]
struct Classes<C> {
    table: Box<[C]>,
}

impl<C: Copy + Default + From<u8>> Classes<C> {
    /// The classes of all symbols; a block may get a better one.
    fn new(query: &PathQuery) -> Self {
        let most = query.symbols().map(|symbol| symbol.index() + 1).max().unwrap_or(0);
        let table = vec![C::from(NOTHING); most.next_power_of_two().max(TABLE)].into_boxed_slice();
        let mut classes = Self { table };
        for &(symbol, step) in query.steps() {
            let class = match step {
                Step::Enter => ENTER,
                Step::EnterOther => ENTER_OTHER,
                Step::Leave => LEAVE,
                Step::Block | Step::BlockThenEnter | Step::BlockThenEnterOther => BLOCK,
            };
            classes.set(symbol, class.into());
        }
        classes
    }

    fn set(&mut self, symbol: Symbol, class: C) {
        if let Some(known) = self.table.get_mut(symbol.index()) {
            *known = class;
        }
    }

    fn of(&self, symbol: Symbol) -> C {
        self.table.get(symbol.index()).copied().unwrap_or_default()
    }
}

/// The same for each kind of path.
macro_rules! with_path {
    ($automaton:expr, $path:ident => $value:expr) => {
        match $automaton {
            Automaton::Narrow($path) => $value,
            Automaton::Wide($path) => $value,
            Automaton::Gapped($path) => $value,
        }
    };
}

/// Where a search is, to continue from there another time.
#[derive(Clone, Debug)]
pub(super) struct ScanState {
    automaton: Frames,
    position: u64,
}

impl ScanState {
    /// Machine words of memory that it takes.
    pub(super) fn words(&self) -> usize {
        self.automaton.words()
    }
}

impl PathScan {
    /// A search from the beginning of a stream.
    pub fn new(query: &PathQuery) -> Self {
        let automaton = match ShortPath::new(query) {
            Some(path) => Automaton::Narrow(path),
            None if query.has_gaps() => Automaton::Gapped(LongPath::new(query)),
            None => Automaton::Wide(LongPath::new(query)),
        };
        Self { automaton, qualified: query.is_qualified(), position: 0, count: 0, first: None }
    }

    /// Continues through the next symbols of the stream.
    pub fn feed(&mut self, symbols: &[Symbol]) {
        self.feed_groups(symbols, |_, _, _| true);
    }

    /// As [`feed`](Self::feed); `found` gets the position of the last block of each
    /// occurrence and how many frames of the function are open there.
    pub fn feed_each(&mut self, symbols: &[Symbol], mut found: impl FnMut(u64, u64)) {
        self.feed_while(symbols, |position, depth| {
            found(position, depth);
            true
        });
    }

    /// As [`feed_each`](Self::feed_each), until `found` is false. Then the search cannot
    /// continue.
    pub(super) fn feed_while(&mut self, symbols: &[Symbol], mut found: impl FnMut(u64, u64) -> bool) -> bool {
        self.feed_groups(symbols, |position, hits, depths| {
            let mut ends = depths.iter().enumerate().filter(|(place, _)| hits >> place & 1 == 1);
            ends.all(|(place, &depth)| found(position + place as u64, depth))
        })
    }

    /// Continues while `found` is true, which gets the groups with occurrences: the position of
    /// the group, the places where paths end, and for these how many frames are open.
    #[inline]
    fn feed_groups(
        &mut self,
        symbols: &[Symbol],
        mut found: impl FnMut(u64, u32, &[u64; GROUP]) -> bool,
    ) -> bool {
        let Self { automaton, position, count, first, .. } = self;
        let mut report = |offset: usize, hits: u32, depths: &[u64; GROUP]| {
            if hits == 0 {
                return true;
            }
            let group = *position + offset as u64;
            first.get_or_insert(group + u64::from(hits.trailing_zeros()));
            *count += u64::from(hits.count_ones());
            found(group, hits, depths)
        };
        let goes_on = with_path!(automaton, path => path.feed(symbols, &mut report));
        *position += symbols.len() as u64;
        goes_on
    }

    /// Skips this many events, which hold nothing of the function: no entry, no exit and no
    /// block. Where exits do not state their function, calls that are left there are closed,
    /// and those that are entered there are open.
    pub fn pass_over(&mut self, events: u64, calls: &NestingLevels) {
        self.position += events;
        if !self.qualified {
            with_path!(&mut self.automaton, path => path.pass_over(calls));
        }
    }

    /// Goes to a position before which nothing happens to the function.
    pub(super) fn go_to(&mut self, position: u64) {
        self.position = position;
    }

    /// How many occurrences have ended so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The position of the last block of the first occurrence so far.
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// The state of the search: for each open frame, from the outermost, how many blocks of the
    /// path have been matched there, `None` if it is of another function. In a trace whose
    /// exits state their function, frames of other functions do not appear.
    pub fn states(&self) -> Vec<Option<usize>> {
        with_path!(&self.automaton, path => path.states())
    }

    /// How many frames are open.
    pub fn open_frames(&self) -> usize {
        with_path!(&self.automaton, path => path.open_frames())
    }

    /// Starts again with another stream.
    pub(super) fn restart(&mut self) {
        with_path!(&mut self.automaton, path => path.restart());
        (self.position, self.count, self.first) = (0, 0, None);
    }

    /// Where the search is.
    pub(super) fn state(&self) -> ScanState {
        let automaton = match &self.automaton {
            Automaton::Narrow(path) => Frames::Narrow(path.frames()),
            Automaton::Wide(path) => Frames::Wide(path.frames.clone()),
            Automaton::Gapped(path) => Frames::Gapped(path.frames.clone()),
        };
        ScanState { automaton, position: self.position }
    }

    /// Continues from where a search for the same path was.
    pub(super) fn go_back(&mut self, state: &ScanState) {
        match (&mut self.automaton, &state.automaton) {
            (Automaton::Narrow(path), Frames::Narrow(frames)) => path.set_frames(frames),
            (Automaton::Wide(path), Frames::Wide(frames)) => path.frames.clone_from(frames),
            (Automaton::Gapped(path), Frames::Gapped(frames)) => path.frames.clone_from(frames),
            _ => {}
        }
        self.position = state.position;
    }
}

#[derive(Clone, Debug)]
enum Automaton {
    Narrow(ShortPath),
    Wide(LongPath<Wide>),
    Gapped(LongPath<GapState>),
}

/// The frames that are open in a search.
#[derive(Clone, Debug)]
enum Frames {
    Narrow(ShortFrames),
    Wide(LongFrames<Wide>),
    Gapped(LongFrames<GapState>),
}

impl Frames {
    fn words(&self) -> usize {
        match self {
            Self::Narrow(frames) => frames.below.len() + 3,
            Self::Wide(frames) => frames.words(),
            Self::Gapped(frames) => frames.words(),
        }
    }
}

/// A visitor of groups: the position among the symbols, the places where paths end, and for
/// these how many frames of the function are open.
type Report<'t> = dyn FnMut(usize, u32, &[u64; GROUP]) -> bool + 't;
