//! Finding a path in symbols as they come: one state for each open frame, the innermost
//! changes with each block, a call puts one on top and a return takes it off.
//!
//! Symbols are sorted into few *classes* first: those that do nothing, which are most and
//! are dropped 64 at a time by a look into a table; enter; leave; and one class for all
//! blocks that stand for the same places of the path. A symbol that does nothing costs
//! less than half a nanosecond, any other about two. Memory: 256 KiB for the table and a
//! machine word for each open frame; for paths of more than 64 blocks a set for each.

use super::PathQuery;
use super::functions::Step;
use super::gaps::{self, GapState};
use crate::Symbol;
use crate::questions::find::bits::{Bits, Wide};
use crate::questions::find::word::{Word, Words};
use hashbrown::HashMap;
use std::sync::Arc;

/// What a symbol is to the path.
type Class = u32;

const NOTHING: Class = 0;
const ENTER: Class = 1;
const ENTER_OTHER: Class = 2;
const LEAVE: Class = 3;
/// The first class of blocks.
const BLOCK: Class = 4;
/// Added to the class of a block that then enters the function. No path has so many classes
/// that this could be one of them.
const THEN_ENTER: Class = 1 << 31;
/// Added to the class of a block that then enters another function.
const THEN_ENTER_OTHER: Class = 1 << 30;
const CALLS: Class = THEN_ENTER | THEN_ENTER_OTHER;

/// A block that is also a call, as the class of the block and that of the call.
fn block_and_call(class: Class) -> Option<(Class, Class)> {
    match class & CALLS {
        0 => None,
        THEN_ENTER => Some((class & !CALLS, ENTER)),
        _ => Some((class & !CALLS, ENTER_OTHER)),
    }
}

/// Symbols whose class is looked up without asking whether the table has it.
const TABLE: usize = 1 << 16;

/// Symbols sorted at a time.
const GROUP: usize = 64;

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
#[derive(Debug)]
pub struct PathScan {
    classes: Classes,
    automaton: Automaton,
    position: u64,
    first: Option<u64>,
}

/// The classes of symbols.
#[derive(Debug)]
struct Classes {
    table: Box<[Class; TABLE]>,
    /// The classes of symbols past the table.
    rest: Vec<Class>,
}

impl Classes {
    #[inline]
    fn of(&self, symbol: Symbol) -> Class {
        match symbol.index().checked_sub(TABLE) {
            None => self.table[symbol.index() % TABLE],
            Some(past) => self.rest.get(past).copied().unwrap_or(NOTHING),
        }
    }

    fn set(&mut self, symbol: Symbol, class: Class) {
        match symbol.index().checked_sub(TABLE) {
            None => self.table[symbol.index() % TABLE] = class,
            Some(past) => {
                if past >= self.rest.len() {
                    self.rest.resize(past + 1, NOTHING);
                }
                self.rest[past] = class;
            }
        }
    }

    /// Sets which block it is, of one that was known to be any.
    fn set_block(&mut self, symbol: Symbol, class: Class) {
        self.set(symbol, class | self.of(symbol) & CALLS);
    }

    /// The classes of up to 64 symbols, without those that do nothing.
    #[inline]
    fn sorted<'b>(&self, symbols: &[Symbol], sorted: &'b mut [Class; GROUP]) -> &'b [Class] {
        let mut count = 0;
        if self.rest.is_empty() {
            // No symbol past the table does anything, and no branch is needed.
            for symbol in symbols {
                let class = if symbol.index() < TABLE { self.table[symbol.index() % TABLE] } else { NOTHING };
                sorted[count % GROUP] = class;
                count += usize::from(class != NOTHING);
            }
        } else {
            for &symbol in symbols {
                let class = self.of(symbol);
                sorted[count % GROUP] = class;
                count += usize::from(class != NOTHING);
            }
        }
        &sorted[..count]
    }
}

impl PathScan {
    /// A search from the beginning of a stream.
    pub fn new(query: &PathQuery) -> Self {
        let table = vec![NOTHING; TABLE].into_boxed_slice().try_into();
        let table = table.unwrap_or_else(|_| Box::new([NOTHING; TABLE]));
        let mut classes = Classes { table, rest: Vec::new() };
        for &(symbol, step) in query.steps() {
            match step {
                Step::Enter => classes.set(symbol, ENTER),
                Step::EnterOther => classes.set(symbol, ENTER_OTHER),
                Step::Leave => classes.set(symbol, LEAVE),
                Step::Block => classes.set(symbol, BLOCK),
                Step::BlockThenEnter => classes.set(symbol, BLOCK | THEN_ENTER),
                Step::BlockThenEnterOther => classes.set(symbol, BLOCK | THEN_ENTER_OTHER),
            }
        }
        let automaton = if query.has_gaps() {
            Automaton::Gapped(GappedPath::new(query, &mut classes))
        } else if query.len() <= 64 {
            Automaton::Narrow(ShortPath::new(query, &mut classes))
        } else {
            Automaton::Wide(LongPath::new(query, &mut classes))
        };
        Self { classes, automaton, position: 0, first: None }
    }

    /// Goes on through the next symbols of the stream.
    pub fn feed(&mut self, symbols: &[Symbol]) {
        let searched = match self.first {
            Some(_) => 0,
            None => self.search(symbols, |_, _| false),
        };
        let mut sorted = [NOTHING; GROUP];
        for group in symbols[searched..].chunks(GROUP) {
            let classes = self.classes.sorted(group, &mut sorted);
            self.automaton.pass(classes);
        }
        self.position += (symbols.len() - searched) as u64;
    }

    /// As [`feed`](Self::feed); `found` is told the position of the last block of each
    /// occurrence and how many frames of the function are open there.
    pub fn feed_each(&mut self, symbols: &[Symbol], mut found: impl FnMut(u64, u64)) {
        self.search(symbols, |position, depth| {
            found(position, depth);
            true
        });
    }

    /// Goes on until `go_on` is false after an occurrence, and returns how many symbols
    /// that were.
    fn search(&mut self, symbols: &[Symbol], mut go_on: impl FnMut(u64, u64) -> bool) -> usize {
        let mut sorted = [NOTHING; GROUP];
        for (index, group) in symbols.chunks(GROUP).enumerate() {
            let classes = self.classes.sorted(group, &mut sorted);
            let mut passed = 0;
            while let Some(hit) = self.automaton.pass_to_hit(&classes[passed..]) {
                let mut that_matter =
                    (0..group.len()).filter(|&place| self.classes.of(group[place]) != NOTHING);
                let place = that_matter.nth(passed + hit).unwrap_or(0);
                let position = self.position + place as u64;
                self.first.get_or_insert(position);
                // A block that also enters is not yet in its own call.
                let entered = classes[passed + hit] & CALLS == THEN_ENTER;
                if !go_on(position, self.automaton.depth() - u64::from(entered)) {
                    self.position = position + 1;
                    return index * GROUP + place + 1;
                }
                passed += hit + 1;
            }
            self.position += group.len() as u64;
        }
        symbols.len()
    }

    /// How many occurrences have ended so far.
    pub fn count(&self) -> u64 {
        match &self.automaton {
            Automaton::Narrow(path) => path.count,
            Automaton::Wide(path) => path.count,
            Automaton::Gapped(path) => path.count,
        }
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
}

#[derive(Debug)]
enum Automaton {
    Narrow(ShortPath),
    Wide(LongPath),
    Gapped(GappedPath),
}

impl Automaton {
    fn pass(&mut self, classes: &[Class]) {
        match self {
            Self::Narrow(path) => classes.iter().for_each(|&class| path.step(class)),
            Self::Wide(path) => classes.iter().for_each(|&class| path.step(class)),
            Self::Gapped(path) => classes.iter().for_each(|&class| path.step(class)),
        }
    }

    /// Goes on behind the next occurrence and returns where that ends.
    fn pass_to_hit(&mut self, classes: &[Class]) -> Option<usize> {
        match self {
            Self::Narrow(path) => {
                let before = path.count;
                classes.iter().position(|&class| {
                    path.step(class);
                    path.count > before
                })
            }
            Self::Wide(path) => {
                let before = path.count;
                classes.iter().position(|&class| {
                    path.step(class);
                    path.count > before
                })
            }
            Self::Gapped(path) => {
                let before = path.count;
                classes.iter().position(|&class| {
                    path.step(class);
                    path.count > before
                })
            }
        }
    }

    fn depth(&self) -> u64 {
        match self {
            Self::Narrow(path) => path.depth,
            Self::Wide(path) => path.depth,
            Self::Gapped(path) => path.depth,
        }
    }
}

/// A path of up to 64 blocks. Bit k of a state: the last k blocks are the path's first k;
/// bit 0 is set in all frames of the function and in no other.
#[derive(Debug)]
struct ShortPath {
    /// For each class of blocks the places of the path that it stands for.
    places: Vec<u64>,
    last: u32,
    state: u64,
    /// The states of the frames below, and that of being in none.
    below: Vec<u64>,
    depth: u64,
    count: u64,
}

impl ShortPath {
    fn new(query: &PathQuery, classes: &mut Classes) -> Self {
        let mut of_symbol: HashMap<Symbol, u64> = HashMap::new();
        for (place, block) in query.blocks().iter().enumerate() {
            block.iter().for_each(|&symbol| *of_symbol.entry(symbol).or_default() |= 1 << place);
        }
        // The first class is that of all other blocks.
        let mut places = vec![0];
        let mut known: HashMap<u64, Class> = HashMap::new();
        for (symbol, bits) in of_symbol {
            let class = *known.entry(bits).or_insert_with(|| {
                places.push(bits);
                BLOCK + (places.len() - 1) as Class
            });
            classes.set_block(symbol, class);
        }
        Self { places, last: query.len() as u32 - 1, state: 0, below: Vec::new(), depth: 0, count: 0 }
    }

    #[inline]
    fn step(&mut self, class: Class) {
        if let Some(block) = class.checked_sub(BLOCK) {
            let Some(&places) = self.places.get(block as usize) else { return self.step_call(class) };
            let matched = self.state & places;
            self.count += matched >> self.last & 1;
            self.state = matched << 1 | self.state & 1;
            return;
        }
        match class {
            ENTER | ENTER_OTHER => {
                self.below.push(self.state);
                self.state = u64::from(class == ENTER);
                self.depth += self.state;
            }
            LEAVE => {
                self.depth -= self.state & 1;
                self.state = self.below.pop().unwrap_or(0);
            }
            _ => {}
        }
    }

    /// A block that is also a call.
    #[cold]
    #[inline(never)]
    fn step_call(&mut self, class: Class) {
        if let Some((block, call)) = block_and_call(class) {
            self.step(block);
            self.step(call);
        }
    }

    fn states(&self) -> Vec<Option<usize>> {
        // The lowest is that of being in no frame.
        self.below
            .iter()
            .chain([&self.state])
            .skip(1)
            .map(|state| state.last().filter(|_| state & 1 == 1))
            .collect()
    }
}

/// A path of more blocks. A state is the endings of what happened in the frame.
#[derive(Debug)]
struct LongPath {
    words: Words<Wide>,
    blocks: Vec<Word<Wide>>,
    length: usize,
    /// Nothing in a frame of another function, and in none.
    state: Option<Wide>,
    below: Vec<Option<Wide>>,
    /// True if the last block was the last of an occurrence.
    matched: bool,
    depth: u64,
    count: u64,
}

impl LongPath {
    fn new(query: &PathQuery, classes: &mut Classes) -> Self {
        let words: Words<Wide> = Words::new(query.pattern());
        let mut blocks = vec![words.foreign().clone()];
        for (symbol, word) in words.symbols() {
            classes.set_block(symbol, BLOCK + blocks.len() as Class);
            blocks.push(word.clone());
        }
        Self {
            words,
            blocks,
            length: query.len(),
            state: None,
            below: Vec::new(),
            matched: false,
            depth: 0,
            count: 0,
        }
    }

    fn step(&mut self, class: Class) {
        if let Some((block, call)) = block_and_call(class) {
            self.step(block);
            return self.step(call);
        }
        self.matched = false;
        match class {
            ENTER | ENTER_OTHER => {
                let entered = (class == ENTER).then(Wide::default);
                self.depth += u64::from(entered.is_some());
                self.below.push(std::mem::replace(&mut self.state, entered));
            }
            LEAVE => {
                self.depth -= u64::from(self.state.is_some());
                self.state = self.below.pop().flatten();
            }
            _ => {
                let word = class.checked_sub(BLOCK).and_then(|block| self.blocks.get(block as usize));
                if let (Some(word), Some(state)) = (word, &mut self.state) {
                    self.matched = word.count_after(state) > 0;
                    self.count += u64::from(self.matched);
                    self.words.follow(state, word);
                }
            }
        }
    }

    fn states(&self) -> Vec<Option<usize>> {
        let longest = |state: &Option<Wide>| state.as_ref().map(|state| state.last().unwrap_or(0));
        let mut states: Vec<_> = self.below.iter().chain([&self.state]).skip(1).map(longest).collect();
        if let Some(innermost) = states.last_mut()
            && self.matched
        {
            *innermost = Some(self.length);
        }
        states
    }
}

/// A path with gaps.
#[derive(Debug)]
struct GappedPath {
    automaton: Arc<gaps::Automaton>,
    /// Nothing in a frame of another function, and in none.
    state: Option<GapState>,
    below: Vec<Option<GapState>>,
    depth: u64,
    count: u64,
}

impl GappedPath {
    fn new(query: &PathQuery, classes: &mut Classes) -> Self {
        let automaton = query.automaton();
        for (symbol, class) in automaton.symbols() {
            classes.set_block(symbol, BLOCK + class);
        }
        Self { automaton, state: None, below: Vec::new(), depth: 0, count: 0 }
    }

    fn step(&mut self, class: Class) {
        if let Some((block, call)) = block_and_call(class) {
            self.step(block);
            return self.step(call);
        }
        match class {
            ENTER | ENTER_OTHER => {
                let entered = (class == ENTER).then(GapState::default);
                self.depth += u64::from(entered.is_some());
                self.below.push(std::mem::replace(&mut self.state, entered));
            }
            LEAVE => {
                self.depth -= u64::from(self.state.is_some());
                self.state = self.below.pop().flatten();
            }
            _ => {
                if let (Some(block), Some(state)) = (class.checked_sub(BLOCK), &mut self.state) {
                    let step = self.automaton.step(*state, block);
                    *state = step.state;
                    self.count += step.ends;
                }
            }
        }
    }

    fn states(&self) -> Vec<Option<usize>> {
        let matched = |state: &Option<GapState>| state.map(|state| self.automaton.matched(state));
        self.below.iter().chain([&self.state]).skip(1).map(matched).collect()
    }
}
