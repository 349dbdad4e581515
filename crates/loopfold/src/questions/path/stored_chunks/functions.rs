//! Finds which functions each chunk contains: an entry, a block or an exit of it. One table
//! look-up for every symbol.

use crate::fold::Fold;
use crate::questions::path::{Functions, Levels, NestingLevels};
use crate::trace::Role;
use crate::{Error, Result, Symbol};
use roaring::RoaringBitmap;

/// The most open calls that are kept while it is found whose blocks are.
const MOST_OPEN: usize = 1 << 27;

/// Finds out, chunk by chunk, which functions each contains.
pub(super) struct IndexBuilder {
    levels: Levels,
    owners: Owners,
    /// For each function the chunks that contain it.
    found: Vec<RoaringBitmap>,
    /// For each function whether it was seen in this chunk.
    seen: Vec<bool>,
    chunks: u32,
}

/// The function of a symbol that has none.
const NO_FUNCTION: u32 = u32::MAX;

/// The functions of the symbols.
enum Owners {
    /// For each symbol its function, and the one that it is a call of.
    Known(Vec<Owner>),
    /// For each symbol what it does; the others belong to the innermost open call.
    ByOrder { roles: Vec<(Role, Owner)>, open: Vec<u32> },
}

/// The function of a symbol.
#[derive(Clone, Copy)]
struct Owner {
    function: u32,
    /// The function that makes the call, if the symbol is a call and says so: to that it is
    /// a block.
    caller: u32,
}

impl IndexBuilder {
    pub(super) fn new(fold: &Fold, functions: &Functions) -> Self {
        let alphabet = fold.alphabet();
        let mut owners = vec![Owner { function: NO_FUNCTION, caller: NO_FUNCTION }; alphabet.len()];
        for (number, function) in functions.all().iter().enumerate() {
            for symbol in [function.enters(), function.leaves()].concat() {
                owners[symbol.index()].function = number as u32;
            }
            for &symbol in function.blocks() {
                let owner = &mut owners[symbol.index()];
                match alphabet.meaning(symbol).role {
                    Role::Enter => owner.caller = number as u32,
                    _ => owner.function = number as u32,
                }
            }
        }
        let owners = if functions.is_qualified() {
            Owners::Known(owners)
        } else {
            let roles =
                alphabet.symbols().map(|symbol| (alphabet.meaning(symbol).role, owners[symbol.index()]));
            Owners::ByOrder { roles: roles.collect(), open: Vec::new() }
        };
        let count = functions.all().len();
        Self {
            levels: Levels::new(alphabet),
            owners,
            found: vec![RoaringBitmap::new(); count],
            seen: vec![false; count],
            chunks: 0,
        }
    }

    pub(super) fn begin_stream(&mut self) {
        if let Owners::ByOrder { open, .. } = &mut self.owners {
            open.clear();
        }
    }

    pub(super) fn add(&mut self, symbols: &[Symbol]) -> Result<NestingLevels> {
        let seen = &mut self.seen;
        let mut see = |function: u32| {
            if let Some(seen) = seen.get_mut(function as usize) {
                *seen = true;
            }
        };
        match &mut self.owners {
            Owners::Known(owners) => symbols.iter().for_each(|symbol| {
                let Owner { function, caller } = owners[symbol.index()];
                see(function);
                see(caller);
            }),
            Owners::ByOrder { roles, open } => {
                for symbol in symbols {
                    let (role, Owner { function, caller }) = roles[symbol.index()];
                    see(caller);
                    match role {
                        Role::Enter => open.push(function),
                        // A block that states its function.
                        Role::Block if function != NO_FUNCTION => see(function),
                        Role::Leave | Role::Block => {}
                        _ => continue,
                    }
                    see(open.last().copied().unwrap_or(NO_FUNCTION));
                    if role == Role::Leave {
                        open.pop();
                    }
                }
                if open.len() > MOST_OPEN {
                    return Err(Error::limit("calls are nested too deep for chunks"));
                }
            }
        }
        for (seen, found) in self.seen.iter_mut().zip(&mut self.found) {
            if std::mem::take(seen) {
                found.insert(self.chunks);
            }
        }
        self.chunks += 1;
        Ok(self.levels.of_symbols(symbols))
    }

    pub(super) fn finish(mut self) -> Vec<RoaringBitmap> {
        self.found.iter_mut().for_each(|chunks| {
            chunks.optimize();
        });
        self.found
    }
}
