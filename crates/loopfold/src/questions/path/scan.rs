//! Finding a path in symbols as they come: one state for each open frame, the innermost
//! changes with each block, a call puts one on top and a return takes it off.
//!
//! Symbols are sorted into few *classes*, by a look into a table: those that do nothing,
//! which are most, enter, leave, and one class for all blocks that stand for the same
//! places of the path. Sixteen symbols that do nothing are passed over together, and so
//! are 64 where the symbols that matter are few and lie together: about half a nanosecond
//! each. As long as the function has not called itself, the others go through the automaton
//! without a branch, in one to two nanoseconds; what nests takes a stack, and branches for
//! returns. Memory: 64 KiB for the table and a machine word for each open frame; for paths
//! of more than 62 blocks 256 KiB and a set for each.

use super::PathQuery;
use super::frame::{FrameState, FrameWord as _, FrameWords, Word, Words};
use super::functions::Step;
use super::gaps::GapState;
use super::levels::NestingLevels;
use crate::Symbol;
use crate::questions::find::bits::Wide;
use hashbrown::HashMap;

/// What a symbol is to the path.
const NOTHING: u8 = 0;
const LEAVE: u8 = 1;
const ENTER: u8 = 2;
const ENTER_OTHER: u8 = 3;
/// The first class of blocks: those that the path does not have.
const BLOCK: u8 = 4;

/// The fewest symbols that a table has classes for.
const TABLE: usize = 1 << 16;

/// Symbols that are looked at together.
const GROUP: usize = 16;

/// Symbols that are passed over together if none is near those that matter.
const PART: usize = 64;

/// How far apart symbols may be for that.
const NEAR: u32 = 64;

/// A search for a path in the symbols of one stream.
///
/// ```
/// use loopfold::questions::{Functions, PathQuery, PathScan};
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
    /// True if exits say whose they are, so that other functions do not matter.
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

/// Where a search is, to go on from there another time.
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

    /// Goes on through the next symbols of the stream.
    pub fn feed(&mut self, symbols: &[Symbol]) {
        self.feed_groups(symbols, |_, _, _| true);
    }

    /// As [`feed`](Self::feed); `found` is told the position of the last block of each
    /// occurrence and how many frames of the function are open there.
    pub fn feed_each(&mut self, symbols: &[Symbol], mut found: impl FnMut(u64, u64)) {
        self.feed_while(symbols, |position, depth| {
            found(position, depth);
            true
        });
    }

    /// As [`feed_each`](Self::feed_each), until `found` is false. Then the search cannot
    /// go on.
    pub(super) fn feed_while(&mut self, symbols: &[Symbol], mut found: impl FnMut(u64, u64) -> bool) -> bool {
        self.feed_groups(symbols, |position, hits, depths| {
            let mut ends = depths.iter().enumerate().filter(|(place, _)| hits >> place & 1 == 1);
            ends.all(|(place, &depth)| found(position + place as u64, depth))
        })
    }

    /// Goes on while `found` is true, which is told of groups with occurrences: the position
    /// of the group, the places where paths end, and for these how many frames are open.
    #[inline]
    fn feed_groups(
        &mut self,
        symbols: &[Symbol],
        mut found: impl FnMut(u64, u32, &[u64; GROUP]) -> bool,
    ) -> bool {
        let Self { automaton, position, count, first, .. } = self;
        let mut tell = |offset: usize, hits: u32, depths: &[u64; GROUP]| {
            if hits == 0 {
                return true;
            }
            let group = *position + offset as u64;
            first.get_or_insert(group + u64::from(hits.trailing_zeros()));
            *count += u64::from(hits.count_ones());
            found(group, hits, depths)
        };
        let goes_on = match automaton {
            Automaton::Narrow(path) => path.feed(symbols, &mut tell),
            Automaton::Wide(path) => path.feed(symbols, &mut tell),
            Automaton::Gapped(path) => path.feed(symbols, &mut tell),
        };
        *position += symbols.len() as u64;
        goes_on
    }

    /// Passes over so many events, which hold nothing of the function: no entry, no exit
    /// and no block. Where exits do not say whose they are, calls that are left there are
    /// closed, and those that are entered there are open.
    pub fn pass_over(&mut self, events: u64, calls: &NestingLevels) {
        self.position += events;
        if !self.qualified {
            match &mut self.automaton {
                Automaton::Narrow(path) => path.pass_over(calls),
                Automaton::Wide(path) => path.pass_over(calls),
                Automaton::Gapped(path) => path.pass_over(calls),
            }
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

    /// The state of the search: for each open frame, from the outermost, how many blocks
    /// of the path have been matched there, or nothing if it is of another function. In a
    /// trace whose exits say whose they are, frames of other functions do not appear.
    pub fn states(&self) -> Vec<Option<usize>> {
        match &self.automaton {
            Automaton::Narrow(path) => path.states(),
            Automaton::Wide(path) => path.states(),
            Automaton::Gapped(path) => path.states(),
        }
    }

    /// How many frames are open.
    pub fn open_frames(&self) -> usize {
        match &self.automaton {
            Automaton::Narrow(path) => path.open,
            Automaton::Wide(path) => path.frames.below.len(),
            Automaton::Gapped(path) => path.frames.below.len(),
        }
    }

    /// Begins anew with another stream.
    pub(super) fn restart(&mut self) {
        match &mut self.automaton {
            Automaton::Narrow(path) => path.restart(),
            Automaton::Wide(path) => path.restart(),
            Automaton::Gapped(path) => path.restart(),
        }
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

    /// Goes on from where a search for the same path was.
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

/// What is told of a group: where it is among the symbols, the places where paths end, and
/// for these how many frames of the function are open.
type Tell<'t> = dyn FnMut(usize, u32, &[u64; GROUP]) -> bool + 't;

/// The longest path whose state is a machine word.
const LONGEST: usize = 62;

/// A path of up to 62 blocks.
///
/// A state has its highest bit set if the last blocks of the frame are the whole path, and
/// the bit k below if they are all but the last k of it. So there is a bit for having
/// matched nothing, which is set in all frames of the function and in no other. The bit
/// below that, [`ShortPath::outside`], is always set: a call moves it up, as a block does
/// with others, and no case needs a branch.
#[derive(Clone, Debug)]
struct ShortPath {
    classes: Classes<u8>,
    /// The first symbol that matters, and how far from it the last one is.
    near: (u32, u32),
    /// What each class does.
    effects: Box<[Effect; 256]>,
    /// The state where no frame of the function is the innermost.
    outside: u64,
    qualified: bool,
    state: u64,
    /// The states of the frames below, the first that of being in none; as many as are
    /// `open`, what follows means nothing.
    below: Vec<u64>,
    open: usize,
    depth: u64,
}

/// What a class does to the state; a return, if there is nothing below the frame that it
/// leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Effect {
    /// The bits that move up.
    moves: u64,
    /// The bits that stay.
    keeps: u64,
}

#[derive(Clone, Debug)]
struct ShortFrames {
    state: u64,
    below: Vec<u64>,
    depth: u64,
}

impl ShortPath {
    /// Nothing if the path is too long or has gaps, if blocks are of too many classes, or
    /// calls are blocks.
    fn new(query: &PathQuery) -> Option<Self> {
        let call_is_block = |(_, step): &(Symbol, Step)| step.is_block() && step.is_enter();
        if query.len() > LONGEST || query.has_gaps() || query.steps().iter().any(call_is_block) {
            return None;
        }
        let outside = 1 << (LONGEST - query.len());
        let entered = outside << 1;
        let mut of_symbol: HashMap<Symbol, u64> = HashMap::new();
        for (place, block) in query.blocks().iter().enumerate() {
            block.iter().for_each(|&symbol| *of_symbol.entry(symbol).or_default() |= entered << place);
        }
        let mut effects = Box::new([Effect::default(); 256]);
        effects[usize::from(NOTHING)].keeps = u64::MAX;
        effects[usize::from(LEAVE)].keeps = outside;
        effects[usize::from(ENTER)] = Effect { moves: outside, keeps: outside };
        effects[usize::from(ENTER_OTHER)].keeps = outside;
        effects[usize::from(BLOCK)].keeps = outside | entered;
        let mut classes = Classes::new(query);
        let mut known: HashMap<u64, u8> = HashMap::new();
        for (symbol, moves) in of_symbol {
            let next = u8::try_from(usize::from(BLOCK) + 1 + known.len()).ok()?;
            let class = *known.entry(moves).or_insert(next);
            effects[usize::from(class)] = Effect { moves, keeps: outside | entered };
            classes.set(symbol, class);
        }
        let numbers = || query.symbols().map(Symbol::raw);
        let first = numbers().min().unwrap_or(0);
        Some(Self {
            classes,
            near: (first, numbers().max().unwrap_or(0) - first),
            effects,
            outside,
            qualified: query.is_qualified(),
            state: outside,
            below: vec![outside],
            open: 0,
            depth: 0,
        })
    }

    #[inline]
    fn feed(&mut self, symbols: &[Symbol], tell: &mut impl FnMut(usize, u32, &[u64; GROUP]) -> bool) -> bool {
        let (parts, rest) = symbols.as_chunks::<PART>();
        for (index, part) in parts.iter().enumerate() {
            if self.near.1 < NEAR && !self.is_near(part) {
                continue;
            }
            for (place, group) in part.as_chunks::<GROUP>().0.iter().enumerate() {
                if !self.feed_group(group, index * PART + place * GROUP, tell) {
                    return false;
                }
            }
        }
        let mut rest = rest.chunks(GROUP).zip((parts.len() * PART..).step_by(GROUP));
        rest.all(|(group, offset)| self.nest(group, offset, tell))
    }

    /// True if a symbol is among those between the first and the last that matter.
    #[inline]
    fn is_near(&self, part: &[Symbol; PART]) -> bool {
        let (first, span) = self.near;
        // No early end, so that many are compared at once.
        part.iter().fold(false, |any, symbol| any | (symbol.raw().wrapping_sub(first) <= span))
    }

    #[inline]
    fn feed_group(
        &mut self,
        group: &[Symbol; GROUP],
        offset: usize,
        tell: &mut impl FnMut(usize, u32, &[u64; GROUP]) -> bool,
    ) -> bool {
        let table = &self.classes.table[..];
        let last = table.len().saturating_sub(1);
        let (mut any, mut all) = (NOTHING, 0);
        for symbol in group {
            any |= table[symbol.index() & last];
            all |= symbol.index();
        }
        if any == NOTHING {
            return true;
        }
        if !self.qualified || self.open > 1 || all > last {
            return self.nest(group, offset, tell);
        }
        // In the function or not, no more: then a return needs no stack.
        let (mut state, mut hits, mut nested) = (self.state, 0, 0);
        for (place, symbol) in group.iter().enumerate() {
            let effect = &self.effects[usize::from(table[symbol.index() & last])];
            let moved = state & effect.moves;
            hits |= ((moved >> LONGEST) as u32) << place;
            nested |= moved & state >> 1;
            state = moved << 1 | state & effect.keeps;
        }
        if nested & self.outside != 0 {
            return self.nest(group, offset, tell);
        }
        self.state = state;
        self.depth = u64::from(self.is_inside());
        self.open = self.depth as usize;
        self.below[0] = self.outside;
        tell(offset, hits, &[1; GROUP])
    }

    /// Goes on through up to a group of symbols, whatever they are.
    ///
    /// Whether a call comes next is hard to predict, so calls take the same way as blocks:
    /// the state is always put on the stack, and stays there if it is a call.
    #[inline(never)]
    fn nest(&mut self, group: &[Symbol], offset: usize, tell: &mut Tell<'_>) -> bool {
        if self.below.len() <= self.open + GROUP {
            self.below.resize(2 * (self.open + GROUP), self.outside);
        }
        let (mut hits, mut depths) = (0, [0; GROUP]);
        for (place, &symbol) in group.iter().enumerate().take(GROUP) {
            let class = self.classes.of(symbol);
            if class == LEAVE {
                self.leave();
                continue;
            }
            let effect = &self.effects[usize::from(class)];
            self.below[self.open] = self.state;
            self.open += usize::from(class == ENTER || class == ENTER_OTHER);
            self.depth += u64::from(class == ENTER);
            let moved = self.state & effect.moves;
            hits |= ((moved >> LONGEST) as u32) << place;
            self.state = moved << 1 | self.state & effect.keeps;
            depths[place] = self.depth;
        }
        tell(offset, hits, &depths)
    }

    /// True if the innermost frame is one of the function.
    fn is_inside(&self) -> bool {
        self.state & self.outside << 1 != 0
    }

    fn leave(&mut self) {
        self.depth -= u64::from(self.is_inside());
        (self.state, self.open) = match self.open.checked_sub(1) {
            Some(open) => (self.below[open], open),
            None => (self.outside, 0),
        };
    }

    fn restart(&mut self) {
        (self.state, self.open, self.depth) = (self.outside, 0, 0);
    }

    fn pass_over(&mut self, calls: &NestingLevels) {
        (0..calls.leaves.min(self.open as u64 + 1)).for_each(|_| self.leave());
        for _ in 0..calls.enters {
            self.below.truncate(self.open);
            self.below.push(self.state);
            self.open += 1;
            self.state = self.outside;
        }
    }

    fn frames(&self) -> ShortFrames {
        ShortFrames { state: self.state, below: self.below[..self.open].to_vec(), depth: self.depth }
    }

    fn set_frames(&mut self, frames: &ShortFrames) {
        self.below.clone_from(&frames.below);
        self.below.push(self.outside);
        (self.state, self.open, self.depth) = (frames.state, frames.below.len(), frames.depth);
    }

    fn states(&self) -> Vec<Option<usize>> {
        // The lowest is that of being in no frame.
        let states = self.below[..self.open].iter().chain([&self.state]).skip(1);
        let matched = |state: &u64| (state.ilog2() - self.outside.ilog2()).checked_sub(1);
        states.map(|state| matched(state).map(|blocks| blocks as usize)).collect()
    }
}

/// Any other path: of more blocks, with gaps, or of calls.
#[derive(Clone, Debug)]
struct LongPath<S: FrameState> {
    classes: Classes<u32>,
    words: Words<S>,
    /// What a block of each class does, from the first class of blocks on.
    blocks: Vec<Word<S>>,
    length: usize,
    frames: LongFrames<S>,
    /// True if the last block was the last of an occurrence.
    matched: bool,
}

#[derive(Clone, Debug)]
struct LongFrames<S> {
    /// Nothing in a frame of another function, and in none.
    state: Option<S>,
    below: Vec<Option<S>>,
    depth: u64,
}

impl<S> Default for LongFrames<S> {
    fn default() -> Self {
        Self { state: None, below: Vec::new(), depth: 0 }
    }
}

impl<S: FrameState> LongFrames<S> {
    fn words(&self) -> usize {
        let states = self.below.iter().chain([&self.state]).flatten();
        states.map(S::words).sum::<usize>() + 4 * self.below.len() + 4
    }
}

/// Added to the class of a block that then enters the function. No path has so many classes
/// that this could be one of them.
const THEN_ENTER: u32 = 1 << 31;
/// Added to the class of a block that then enters another function.
const THEN_ENTER_OTHER: u32 = 1 << 30;

impl<S: FrameState> LongPath<S> {
    fn new(query: &PathQuery) -> Self {
        let mut classes = Classes::<u32>::new(query);
        let words = Words::<S>::new(query);
        let mut in_path: Vec<Symbol> = query.blocks().iter().flatten().copied().collect();
        in_path.sort_unstable();
        in_path.dedup();
        let is_other = |symbol: &Symbol| in_path.binary_search(symbol).is_err();
        let block = |&(symbol, step): &(Symbol, Step)| step.is_block().then_some(symbol);
        // All blocks that the path does not have do the same.
        let other = query.steps().iter().filter_map(block).find(is_other);
        let mut blocks = vec![other.map_or_else(|| words.empty(), |symbol| words.symbol(symbol))];
        for &symbol in &in_path {
            classes.set(symbol, u32::from(BLOCK) + blocks.len() as u32);
            blocks.push(words.symbol(symbol));
        }
        for &(symbol, step) in query.steps() {
            let then = match step {
                Step::BlockThenEnter => THEN_ENTER,
                Step::BlockThenEnterOther => THEN_ENTER_OTHER,
                _ => continue,
            };
            classes.set(symbol, classes.of(symbol) | then);
        }
        Self { classes, words, blocks, length: query.len(), frames: LongFrames::default(), matched: false }
    }

    fn restart(&mut self) {
        (self.frames, self.matched) = (LongFrames::default(), false);
    }

    fn feed(&mut self, symbols: &[Symbol], tell: &mut Tell<'_>) -> bool {
        let mut groups = symbols.chunks(GROUP).zip((0..).step_by(GROUP));
        groups.all(|(group, offset)| {
            let (mut hits, mut depths) = (0, [0; GROUP]);
            for (place, &symbol) in group.iter().enumerate() {
                let class = self.classes.of(symbol);
                if class != u32::from(NOTHING) {
                    // A block that also enters is not yet in its own call.
                    depths[place] = self.frames.depth;
                    self.step(class);
                    hits |= u32::from(self.matched) << place;
                }
            }
            tell(offset, hits, &depths)
        })
    }

    fn step(&mut self, class: u32) {
        self.matched = false;
        match u8::try_from(class) {
            Ok(ENTER) => return self.enter(Some(S::default())),
            Ok(ENTER_OTHER) => return self.enter(None),
            Ok(LEAVE) => return self.leave(),
            _ => {}
        }
        let block = (class & !(THEN_ENTER | THEN_ENTER_OTHER)).checked_sub(BLOCK.into());
        let word = block.and_then(|block| self.blocks.get(block as usize));
        if let (Some(word), Some(state)) = (word, &mut self.frames.state) {
            self.matched = word.count_after(state) > 0;
            self.words.follow(state, word);
        }
        match class & (THEN_ENTER | THEN_ENTER_OTHER) {
            0 => {}
            THEN_ENTER => self.enter(Some(S::default())),
            _ => self.enter(None),
        }
    }

    fn enter(&mut self, state: Option<S>) {
        let frames = &mut self.frames;
        frames.depth += u64::from(state.is_some());
        frames.below.push(std::mem::replace(&mut frames.state, state));
    }

    fn leave(&mut self) {
        let frames = &mut self.frames;
        frames.depth -= u64::from(frames.state.is_some());
        frames.state = frames.below.pop().flatten();
    }

    fn pass_over(&mut self, calls: &NestingLevels) {
        (0..calls.leaves.min(self.frames.below.len() as u64 + 1)).for_each(|_| self.leave());
        (0..calls.enters).for_each(|_| self.enter(None));
        self.matched = false;
    }

    fn states(&self) -> Vec<Option<usize>> {
        let longest = |state: &Option<S>| state.as_ref().map(|state| self.words.matched(state));
        let mut states: Vec<_> =
            self.frames.below.iter().chain([&self.frames.state]).skip(1).map(longest).collect();
        if let Some(innermost) = states.last_mut()
            && self.matched
        {
            *innermost = Some(self.length);
        }
        states
    }
}
