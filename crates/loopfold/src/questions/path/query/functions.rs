//! The functions of a trace of calls: which symbols enter them, leave them and are their
//! blocks.
//!
//! A source qualifies its symbols: an exit and a block say in their field `function` whose they
//! are. Then every symbol belongs to at most one function, and a search for a path of a
//! function can skip all other symbols. An exit without the field belongs to the function of
//! its name, if there is one, and otherwise to a frame that the trace never saw entered: it
//! closes no frame that is known.
//!
//! Where no exit or no block states its function (one `E` for all, as in the literature), each
//! exit closes the innermost open frame, whatever its function, and blocks without the field
//! belong to that frame. Such traces are *unqualified*: their nesting is that of all functions.
//!
//! Where a trace shows calls and nothing else, an entry names in its field `caller` the
//! function whose block it also is: the calls that a function makes are its blocks, named after
//! the function they enter. Such an entry belongs to two functions, or does two things to one
//! that calls itself.
//!
//! One pass over the alphabet, with memory for each name and each symbol once.

use crate::trace::{Alphabet, Name, Role, Value};
use crate::{Result, Symbol};
use hashbrown::HashMap;
use std::borrow::Cow;

/// One function of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    name: Vec<u8>,
    enters: Vec<Symbol>,
    leaves: Vec<Symbol>,
    blocks: Vec<Symbol>,
}

impl Function {
    /// Its name: text as in the source, numbers in decimal.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The symbols that enter it.
    pub fn enters(&self) -> &[Symbol] {
        &self.enters
    }

    /// The symbols that leave it.
    pub fn leaves(&self) -> &[Symbol] {
        &self.leaves
    }

    /// Its blocks, in the order in which they were first seen.
    pub fn blocks(&self) -> &[Symbol] {
        &self.blocks
    }

    /// True if one of its frames was seen to begin, so that its paths can occur.
    pub fn is_entered(&self) -> bool {
        !self.enters.is_empty()
    }
}

/// All functions of an alphabet.
///
/// ```
/// use loopfold::questions::path::Functions;
/// use loopfold::trace::{Alphabet, Event, Field, Role, Value};
///
/// let mut alphabet = Alphabet::default();
/// let function = [Field { key: "function", value: Value::Text(b"main") }];
/// let enter = alphabet.intern(&Event { role: Role::Enter, ..Event::named("main") }, None)?;
/// let block =
///     alphabet.intern(&Event { role: Role::Block, fields: &function, ..Event::named("B1") }, None)?;
/// let functions = Functions::of(&alphabet)?;
/// let main = functions.named(b"main").unwrap();
/// assert_eq!((main.enters(), main.blocks()), (&[enter][..], &[block][..]));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Functions {
    all: Vec<Function>,
    by_name: HashMap<Vec<u8>, usize>,
    /// Exits that do not state their function.
    plain_leaves: Vec<Symbol>,
    /// Blocks that do not state their function.
    plain_blocks: Vec<Symbol>,
    /// True if any block states its function.
    owned_blocks: bool,
}

impl Functions {
    /// The functions of an alphabet, in the order in which they were first seen.
    pub fn of(alphabet: &Alphabet) -> Result<Self> {
        let mut functions = Self::default();
        let mut leaves_by_name = Vec::new();
        for symbol in alphabet.symbols() {
            let meaning = alphabet.meaning(symbol);
            let owner = meaning.field("function").map(text_of_value);
            match (meaning.role, owner) {
                (Role::Enter, _) => {
                    functions.entry(&text_of_name(meaning.name)).enters.push(symbol);
                    if let Some(caller) = meaning.field("caller").map(text_of_value) {
                        functions.entry(&caller).blocks.push(symbol);
                    }
                }
                (Role::Leave, Some(owner)) => functions.entry(&owner).leaves.push(symbol),
                (Role::Leave, None) => {
                    leaves_by_name.push((text_of_name(meaning.name).into_owned(), symbol));
                }
                (Role::Block, Some(owner)) => {
                    functions.entry(&owner).blocks.push(symbol);
                    functions.owned_blocks = true;
                }
                (Role::Block, None) => functions.plain_blocks.push(symbol),
                _ => {}
            }
        }
        for (name, symbol) in leaves_by_name {
            match functions.by_name.get(&name).map(|&index| &mut functions.all[index]) {
                Some(function) if function.is_entered() => function.leaves.push(symbol),
                _ => functions.plain_leaves.push(symbol),
            }
        }
        Ok(functions)
    }

    fn entry(&mut self, name: &[u8]) -> &mut Function {
        let index = match self.by_name.get(name) {
            Some(&index) => index,
            None => {
                self.all.push(Function { name: name.to_vec(), ..Function::default() });
                self.by_name.insert(name.to_vec(), self.all.len() - 1);
                self.all.len() - 1
            }
        };
        &mut self.all[index]
    }

    /// All functions, in the order in which they were first seen.
    pub fn all(&self) -> &[Function] {
        &self.all
    }

    /// The function of this name.
    pub fn named(&self, name: &[u8]) -> Option<&Function> {
        self.by_name.get(name).map(|&index| &self.all[index])
    }

    /// Where the function of this name is among [`all`](Self::all).
    pub(in crate::questions::path) fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// True if exits and blocks state their function. Otherwise they belong to the innermost
    /// frame.
    pub fn is_qualified(&self) -> bool {
        let owned_leaves = || self.all.iter().any(|function| !function.leaves.is_empty());
        (self.plain_leaves.is_empty() || owned_leaves())
            && (self.plain_blocks.is_empty() || self.owned_blocks)
    }

    /// The symbols that can be blocks of a function: its own, and in an unqualified trace also
    /// those that do not state their function. In order of the symbols.
    pub fn blocks_of(&self, function: &Function) -> Vec<Symbol> {
        let mut blocks = function.blocks.clone();
        if !self.is_qualified() {
            blocks.extend(&self.plain_blocks);
            blocks.sort_unstable();
        }
        blocks
    }

    /// The effect of each symbol on the frames of a function. Symbols without effect are left
    /// out.
    pub(in crate::questions::path) fn steps_of(&self, function: &Function) -> Vec<(Symbol, Step)> {
        let blocks = self.blocks_of(function);
        let is_block = |symbol: &Symbol| blocks.binary_search(symbol).is_ok();
        let mut steps = Vec::new();
        let mut add = |symbols: &[Symbol], step: Step, and_block: Step| {
            let step_of = |symbol: &Symbol| if is_block(symbol) { and_block } else { step };
            steps.extend(symbols.iter().map(|symbol| (*symbol, step_of(symbol))));
        };
        add(&function.enters, Step::Enter, Step::BlockThenEnter);
        if self.is_qualified() {
            add(&function.leaves, Step::Leave, Step::Leave);
        } else {
            add(&self.plain_leaves, Step::Leave, Step::Leave);
            self.all.iter().for_each(|any| add(&any.leaves, Step::Leave, Step::Leave));
            let others = self.all.iter().filter(|other| other.name != function.name);
            others.for_each(|other| add(&other.enters, Step::EnterOther, Step::BlockThenEnterOther));
        }
        let mut entering: Vec<Symbol> = steps.iter().map(|&(symbol, _)| symbol).collect();
        entering.sort_unstable();
        let only_blocks = blocks.iter().filter(|block| entering.binary_search(block).is_err());
        steps.extend(only_blocks.map(|&block| (block, Step::Block)));
        steps
    }
}

/// The effect of a symbol on the frames of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::questions::path) enum Step {
    /// Opens a frame of it.
    Enter,
    /// Opens a frame of another function; only where order alone says whose frames are.
    EnterOther,
    /// Closes the innermost frame.
    Leave,
    /// Happens in the innermost frame.
    Block,
    /// A call that is also a block of its caller: happens in the innermost frame and then
    /// opens one, both of the function.
    BlockThenEnter,
    /// The same with a frame of another function.
    BlockThenEnterOther,
}

impl Step {
    /// True if something happens in the innermost frame.
    pub(in crate::questions::path) fn is_block(self) -> bool {
        matches!(self, Step::Block | Step::BlockThenEnter | Step::BlockThenEnterOther)
    }

    /// True if a frame of the function is opened.
    pub(in crate::questions::path) fn is_own_enter(self) -> bool {
        matches!(self, Step::Enter | Step::BlockThenEnter)
    }

    /// True if any frame is opened.
    pub(in crate::questions::path) fn is_enter(self) -> bool {
        self.is_own_enter() || matches!(self, Step::EnterOther | Step::BlockThenEnterOther)
    }
}

fn text_of_name(name: Name<'_>) -> Cow<'_, [u8]> {
    match name {
        Name::Text(text) => Cow::Borrowed(text),
        Name::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
    }
}

fn text_of_value(value: Value<'_>) -> Cow<'_, [u8]> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
    }
}
