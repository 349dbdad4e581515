//! From tokens to events: keeps the stack of open functions of a lane, and finds the symbol of each
//! path in a dense table of its function.
//!
//! Every event has its function, as in traces of calls: an entry is an enter with the function's
//! name, a path a block with the field `function`, an exit a leave. What is met for the first time
//! is interned in an alphabet that all lanes share, together with its blocks and its number of
//! instructions; after that a token costs one look-up without a lock.
//!
//! A few nanoseconds a token; memory is four bytes for each open function, and eight for each path
//! of the functions that occur, up to [`DENSE`] of a function.

use super::functions::{Known, Names, Variants};
use super::process::Process;
use super::tokens::Token;
use crate::{Error, Result};
use hashbrown::HashMap;
use loopfold::Symbol;
use loopfold::questions::path::{BlockLines, PathBlocks};
use loopfold::trace::{Alphabet, Event, Field, Name, Role, Value};
use loopfold_paths::{Function, Kind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Paths with larger numbers are looked up by a hash.
const DENSE: u32 = 1 << 12;

/// The function of frames whose entry was not recorded.
const UNKNOWN: &str = "?";

/// What all lanes share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    variants: Variants,
    symbols: Mutex<Symbols>,
}

/// The symbols so far, and what is known of paths.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    pub(crate) alphabet: Alphabet,
    /// For each symbol the instructions of its path; 0 for other events, also of those behind the
    /// last path.
    pub(super) instructions: Vec<u64>,
    pub(crate) blocks: PathBlocks,
}

impl Shared {
    pub(crate) fn symbols(&self) -> MutexGuard<'_, Symbols> {
        self.symbols.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a function among those of its name, before others that are met first.
    pub(super) fn see(&self, function: &Function) {
        self.variants.number(function);
    }

    fn intern(&self, role: Role, name: &str, function: Option<&str>) -> Result<Symbol> {
        self.symbols().intern(role, name, function)
    }

    /// The symbol of a path.
    fn path(&self, known: &Known, names: &Names, number: u32) -> Result<Symbol> {
        let function = known.function();
        let ids = function.blocks(number.into()).into_iter().flatten();
        let blocks: Vec<BlockLines> = ids
            .map(|id| {
                let block = function.block(id);
                BlockLines {
                    block: id.index() as u32,
                    first_line: block.first_line,
                    last_line: block.last_line,
                    instructions: block.instructions,
                }
            })
            .collect();
        let line = blocks.iter().map(|block| block.first_line).find(|&line| line > 0);
        let mark = if function.kind() == Kind::Blocks { '.' } else { '#' };
        let name = names.path(line, mark, number);
        let mut symbols = self.symbols();
        let symbol = symbols.intern(Role::Block, &name, Some(&names.function))?;
        symbols.instructions[symbol.index()] = blocks.iter().map(|block| u64::from(block.instructions)).sum();
        symbols.blocks.insert(&names.function, function.file(), &name, blocks);
        Ok(symbol)
    }
}

impl Symbols {
    /// The instructions of each event, for the metric of that name.
    pub(crate) fn costs(&self) -> Vec<Option<f64>> {
        self.instructions.iter().map(|&instructions| Some(instructions as f64)).collect()
    }

    fn intern(&mut self, role: Role, name: &str, function: Option<&str>) -> Result<Symbol> {
        let field =
            function.map(|function| Field { key: "function", value: Value::Text(function.as_bytes()) });
        let event = Event { name: Name::Text(name.as_bytes()), role, fields: field.as_slice() };
        let symbol = self.alphabet.intern(&event, None)?;
        self.instructions.resize(self.alphabet.len(), 0);
        Ok(symbol)
    }
}

/// The symbols of a function that its lane has met.
struct Table {
    known: Option<Known>,
    enter: Symbol,
    leave: Symbol,
    dense: Vec<Option<Symbol>>,
    sparse: HashMap<u32, Symbol, foldhash::fast::RandomState>,
}

/// Decodes the tokens of a lane.
pub(super) struct Decoder {
    process: Arc<Process>,
    shared: Arc<Shared>,
    /// By the number of the function; `None` if it has not occurred. The last one is of functions
    /// that are not known.
    tables: Vec<Option<Box<Table>>>,
    open: Vec<u32>,
    is_timed: bool,
    pub(super) unmatched_returns: u64,
    pub(super) abandoned: u64,
}

/// What is decoded of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) symbols: Vec<Symbol>,
    /// With cycles, those of each event.
    pub(super) cycles: Vec<f64>,
    /// How many symbols are before each event of another recorder.
    pub(crate) marks: Vec<usize>,
}

impl Decoded {
    pub(crate) fn clear(&mut self) {
        self.symbols.clear();
        self.cycles.clear();
        self.marks.clear();
    }
}

impl Decoder {
    pub(super) fn new(process: &Arc<Process>, shared: &Arc<Shared>, is_timed: bool) -> Self {
        Self {
            process: Arc::clone(process),
            shared: Arc::clone(shared),
            tables: Vec::new(),
            open: Vec::new(),
            is_timed,
            unmatched_returns: 0,
            abandoned: 0,
        }
    }

    /// How many functions are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Begins with the functions that were open in the parent when this process began.
    pub(super) fn begin(&mut self, open: &[u32], out: &mut Decoded) -> Result<()> {
        for &function in open {
            self.token(Token::Enter(function), out)?;
            if self.is_timed {
                out.cycles.push(0.0);
            }
        }
        Ok(())
    }

    /// Decodes a chunk up to the first 0. Returns how many tokens it has.
    pub(super) fn chunk(&mut self, tokens: &[u32], out: &mut Decoded) -> Result<u64> {
        if self.is_timed {
            return self.timed_chunk(tokens, out);
        }
        let mut rest = tokens;
        while let [word, behind @ ..] = rest {
            let Some(token) = Token::of(*word) else {
                if *word == 0 {
                    break;
                }
                return Err(Error::new("the program was compiled by another version of loopfold"));
            };
            self.token(token, out)?;
            rest = behind;
        }
        Ok((tokens.len() - rest.len()) as u64)
    }

    fn timed_chunk(&mut self, tokens: &[u32], out: &mut Decoded) -> Result<u64> {
        for (place, &[word, ticks]) in (0..).zip(tokens.as_chunks().0) {
            let Some(token) = Token::of(word) else { return Ok(place) };
            self.token(token, out)?;
            // The time of a jump is that of the first frame that it leaves.
            if out.cycles.len() < out.symbols.len() {
                out.cycles.push(f64::from(ticks));
                out.cycles.resize(out.symbols.len(), 0.0);
            }
        }
        Ok((tokens.len() / 2) as u64)
    }

    #[inline]
    fn token(&mut self, token: Token, out: &mut Decoded) -> Result<()> {
        match token {
            Token::Path(number) => {
                let function = self.open.last().copied().unwrap_or(0);
                let table = self.tables.get(function as usize).and_then(Option::as_deref);
                let known = table.and_then(|table| *table.dense.get(number as usize)?);
                let symbol = match known {
                    Some(symbol) => symbol,
                    None => self.rare_path(function, number)?,
                };
                out.symbols.push(symbol);
            }
            Token::Enter(function) => {
                self.open.push(function);
                let symbol = self.table(function)?.enter;
                out.symbols.push(symbol);
            }
            Token::Leave => self.leave(out)?,
            Token::Unwind(depth) => {
                while self.open.len() > depth as usize {
                    self.abandoned += 1;
                    self.leave(out)?;
                }
            }
            Token::Fork(mark) => self.process.forked(mark, &self.open),
            Token::Event => out.marks.push(out.symbols.len()),
        }
        Ok(())
    }

    #[inline]
    fn leave(&mut self, out: &mut Decoded) -> Result<()> {
        let function = self.open.pop().unwrap_or_else(|| {
            self.unmatched_returns += 1;
            0
        });
        let symbol = self.table(function)?.leave;
        out.symbols.push(symbol);
        Ok(())
    }

    #[inline]
    fn table(&mut self, function: u32) -> Result<&mut Table> {
        let place = function as usize;
        if self.tables.get(place).is_none_or(Option::is_none) {
            let table = self.new_table(function)?;
            if self.tables.len() <= place {
                self.tables.resize_with(place + 1, || None);
            }
            self.tables[place] = Some(table);
        }
        self.tables[place].as_deref_mut().ok_or_else(|| Error::new("a function has no symbols"))
    }

    #[cold]
    fn new_table(&self, function: u32) -> Result<Box<Table>> {
        let known = if function == 0 { None } else { self.process.function(function) };
        let name = known.as_ref().map_or(UNKNOWN, |known| &known.names(&self.shared.variants).function);
        Ok(Box::new(Table {
            enter: self.shared.intern(Role::Enter, name, None)?,
            leave: self.shared.intern(Role::Leave, name, Some(name))?,
            dense: Vec::new(),
            sparse: HashMap::default(),
            known,
        }))
    }

    /// A path that is new in this lane, or has a large number.
    #[cold]
    fn rare_path(&mut self, function: u32, number: u32) -> Result<Symbol> {
        let shared = Arc::clone(&self.shared);
        let table = self.table(function)?;
        if let Some(&known) = table.sparse.get(&number) {
            return Ok(known);
        }
        let symbol = match &table.known {
            Some(known) => shared.path(known, known.names(&shared.variants), number)?,
            None => shared.intern(Role::Block, &format!("{UNKNOWN}#{number}"), Some(UNKNOWN))?,
        };
        if number < DENSE {
            if table.dense.len() <= number as usize {
                table.dense.resize(number as usize + 1, None);
            }
            table.dense[number as usize] = Some(symbol);
        } else {
            table.sparse.insert(number, symbol);
        }
        Ok(symbol)
    }
}
