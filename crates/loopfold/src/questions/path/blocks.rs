//! The basic blocks that recorded paths consist of, with their source lines: what turns a path of an
//! archive back into blocks.
//!
//! A path is known by its function and its name, not by its symbol, so that symbols may be numbered
//! again and archives joined. Blocks are kept once for each function; a path is a list of them. Of
//! two archives whose functions have other blocks under the same name, each keeps its own, and a
//! path that both have is that of the first.
//!
//! Memory is O(blocks and paths that occur); finding a path is a look-up in ordered maps.

#[cfg(feature = "archive")]
use crate::Error;
#[cfg(feature = "archive")]
use crate::bytes::{Bytes, put_number, put_text};
use crate::fold::{FoldBuilder, FoldedStream, Item, Target};
use crate::trace::{Event, Field, Meaning, Name, Role, Value};
use crate::{Fold, Result, RuleId, Symbol};
use std::collections::BTreeMap;

/// A basic block of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockLines {
    /// Its number in the function.
    pub block: u32,
    /// The first line of its source, or 0.
    pub first_line: u32,
    /// The last line of its source, or 0.
    pub last_line: u32,
    /// How many instructions it has.
    pub instructions: u32,
}

/// The blocks of the paths of an archive.
///
/// ```
/// use loopfold::questions::path::{BlockLines, PathBlocks};
///
/// let mut blocks = PathBlocks::default();
/// let [first, second] = [10, 12].map(|line| BlockLines { block: line, first_line: line, last_line: line, instructions: 3 });
/// blocks.insert("f", "src/f.c", "f.c:10#0", vec![first, second]);
/// let path = blocks.get("f", "f.c:10#0").expect("it was inserted");
/// assert_eq!((path.file, path.blocks().count()), ("src/f.c", 2));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathBlocks {
    /// By the name of the function; several where files, or compilations of it, differ.
    functions: BTreeMap<String, Vec<FunctionBlocks>>,
}

/// The blocks of a function, by their numbers, and its paths as lists of numbers, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FunctionBlocks {
    file: String,
    blocks: BTreeMap<u32, BlockLines>,
    paths: BTreeMap<String, Vec<u32>>,
}

/// The blocks of a path.
#[derive(Clone, Copy, Debug)]
pub struct BlocksOfPath<'a> {
    /// The source file of the function, or an empty text.
    pub file: &'a str,
    function: &'a FunctionBlocks,
    path: &'a [u32],
}

impl<'a> BlocksOfPath<'a> {
    /// The blocks, in the order of execution.
    pub fn blocks(&self) -> impl Iterator<Item = BlockLines> + use<'a> {
        let function = self.function;
        self.path.iter().map(|block| function.blocks.get(block).copied().unwrap_or_default())
    }
}

impl FunctionBlocks {
    /// True if none of these blocks differs from one that is known.
    fn fits<'a>(&self, file: &str, mut blocks: impl Iterator<Item = &'a BlockLines>) -> bool {
        let fits = |block: &BlockLines| self.blocks.get(&block.block).is_none_or(|known| known == block);
        self.file == file && blocks.all(fits)
    }
}

impl PathBlocks {
    /// True if no path is known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// How many paths are known.
    pub fn len(&self) -> usize {
        self.functions.values().flatten().map(|function| function.paths.len()).sum()
    }

    /// Adds the blocks of a path; one that is known stays as it is.
    pub fn insert(&mut self, function: &str, file: &str, path: &str, blocks: Vec<BlockLines>) {
        if self.get(function, path).is_some() {
            return;
        }
        let known = self.group(function, file, &blocks);
        known.paths.insert(path.to_string(), blocks.iter().map(|block| block.block).collect());
        known.blocks.extend(blocks.into_iter().map(|block| (block.block, block)));
    }

    /// The compilation of a function that has these blocks, or has no others under their numbers.
    fn group(&mut self, function: &str, file: &str, blocks: &[BlockLines]) -> &mut FunctionBlocks {
        let known = self.functions.entry(function.to_string()).or_default();
        let place = known.iter().position(|known| known.fits(file, blocks.iter()));
        let place = place.unwrap_or_else(|| {
            known.push(FunctionBlocks { file: file.to_string(), ..FunctionBlocks::default() });
            known.len() - 1
        });
        &mut known[place]
    }

    /// The blocks of a path. Returns `None` if they are not known.
    pub fn get(&self, function: &str, path: &str) -> Option<BlocksOfPath<'_>> {
        let known = self.functions.get(function)?;
        let find = |function: &'_ FunctionBlocks| function.paths.contains_key(path);
        let function = known.iter().find(|known| find(known))?;
        let path = function.paths.get(path)?;
        Some(BlocksOfPath { file: &function.file, function, path })
    }

    /// Adds those of another archive.
    pub fn join(&mut self, other: &Self) {
        for (name, compilations) in &other.functions {
            for function in compilations {
                for (path, blocks) in &function.paths {
                    let of = BlocksOfPath { file: &function.file, function, path: blocks };
                    self.insert(name, &function.file, path, of.blocks().collect());
                }
            }
        }
    }
}

impl PathBlocks {
    /// The same trace with the blocks of its paths in their place, as far as they are known: events
    /// with the names that blocks have where they are recorded. Times and sums are not kept, as
    /// there is none for a block.
    ///
    /// O(items of the fold and blocks of the paths that occur).
    pub fn decode_paths(&self, fold: &Fold) -> Result<Fold> {
        let mut alphabet = crate::trace::Alphabet::default();
        let mut bodies: Vec<Vec<Symbol>> = Vec::with_capacity(fold.alphabet().len());
        for symbol in fold.alphabet().symbols() {
            let meaning = fold.alphabet().meaning(symbol);
            let blocks = self.of_event(&meaning)?;
            let mut body = Vec::new();
            for (name, fields) in
                blocks.iter().flat_map(|(names, fields)| names.iter().map(move |name| (name, fields)))
            {
                let event = Event { name: Name::Text(name.as_bytes()), role: Role::Block, fields };
                body.push(alphabet.intern(&event, None)?);
            }
            if blocks.is_none() {
                body.push(alphabet.intern(&meaning.event(), None)?);
            }
            bodies.push(body);
        }
        replaced(fold, FoldBuilder::new(alphabet), &bodies)
    }

    /// The names of the blocks of an event that is a path, and its fields. Returns `None` for
    /// other events, and paths whose blocks are not known.
    fn of_event<'a>(&self, meaning: &'a Meaning<'a>) -> Result<Option<(Vec<String>, &'a [Field<'a>])>> {
        let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).ok();
        let function = meaning.fields.iter().find_map(|field| match (field.key, field.value) {
            ("function", Value::Text(function)) => text(function),
            _ => None,
        });
        let name = match (meaning.role, meaning.name) {
            (Role::Block, Name::Text(name)) => text(name),
            _ => None,
        };
        let (Some(function), Some(name)) = (function, name) else { return Ok(None) };
        let Some((_, number)) = name.rsplit_once('#') else { return Ok(None) };
        let Some(path) = self.get(function, name) else { return Ok(None) };
        let variant = number.find('/').map_or("", |at| &number[at..]);
        let file = path.file.rsplit('/').next().unwrap_or_default();
        let named = |block: BlockLines| match block.first_line {
            line if line > 0 && !file.is_empty() => format!("{file}:{line}.{}{variant}", block.block),
            _ => format!("{function}.{}{variant}", block.block),
        };
        Ok(Some((path.blocks().map(named).collect(), &meaning.fields)))
    }
}

/// The fold with every symbol replaced by some.
fn replaced(fold: &Fold, mut builder: FoldBuilder, bodies: &[Vec<Symbol>]) -> Result<Fold> {
    let mut rules: Vec<RuleId> = Vec::with_capacity(fold.rules().len());
    for rule in fold.rules() {
        let mut body = Vec::new();
        for item in fold.body(rule) {
            match item.target() {
                Target::Rule(inner) => body.push(Item::new(Target::Rule(rules[inner.index()]), item.times())),
                Target::Symbol(symbol) => {
                    let blocks: Vec<Item> = bodies[symbol.index()].iter().copied().map(Item::once).collect();
                    match blocks.is_empty() {
                        true => {}
                        false if item.times() == 1 => body.extend(blocks),
                        false => body.push(builder.repeat(&blocks, item.times())?),
                    }
                }
            }
        }
        rules.push(builder.rule(&body)?);
    }
    for stream in fold.streams() {
        let root = rules[stream.root().index()];
        let replaced = FoldedStream::new(stream.name().raw(), stream.folder().raw(), root);
        builder.stream(replaced.with_notes(stream.notes().to_vec()));
    }
    Ok(builder.finish().without_producer_counts())
}

/// The name of the section, for errors.
#[cfg(feature = "archive")]
const PLACE: &str = "paths";

/// How much longer than the section its text may be.
#[cfg(feature = "archive")]
const EXPANSION: usize = 1024;

#[cfg(feature = "archive")]
impl PathBlocks {
    /// The bytes of the section; `docs/archive.md` describes them.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        put_number(&mut text, self.functions.values().map(|known| known.len() as u64).sum());
        for (name, function) in
            self.functions.iter().flat_map(|(name, all)| all.iter().map(move |f| (name, f)))
        {
            put_text(&mut text, name.as_bytes());
            put_text(&mut text, function.file.as_bytes());
            function.encode(&mut text);
        }
        crate::packed::pack(&text, EXPANSION)
    }

    /// The reverse.
    pub(crate) fn decode(section: &[u8]) -> Result<Self> {
        let text = crate::packed::unpack(section, PLACE, EXPANSION)?;
        let mut bytes = Bytes::new(&text, PLACE);
        let mut all = Self::default();
        for _ in 0..bytes.number()? {
            let name = bytes.string()?;
            let file = bytes.string()?;
            let function = FunctionBlocks::decode(file, &mut bytes)?;
            all.functions.entry(name).or_default().push(function);
        }
        bytes.finish()?;
        Ok(all)
    }
}

#[cfg(feature = "archive")]
impl FunctionBlocks {
    fn encode(&self, text: &mut Vec<u8>) {
        put_number(text, self.blocks.len() as u64);
        let (mut next, mut line) = (0, 0);
        for block in self.blocks.values() {
            put_number(text, u64::from(block.block - next));
            put_signed(text, block.first_line, line);
            put_signed(text, block.last_line, block.first_line);
            put_number(text, block.instructions.into());
            (next, line) = (block.block, block.first_line);
        }
        put_number(text, self.paths.len() as u64);
        for (name, path) in &self.paths {
            put_text(text, name.as_bytes());
            put_number(text, path.len() as u64);
            let mut before = 0;
            for &block in path {
                put_signed(text, block, before);
                before = block;
            }
        }
    }

    fn decode(file: String, bytes: &mut Bytes<'_>) -> Result<Self> {
        let mut function = Self { file, ..Self::default() };
        let (mut number, mut line) = (0u32, 0);
        for _ in 0..bytes.number()? {
            let skipped = small(bytes)?;
            number = number.checked_add(skipped).ok_or_else(too_large)?;
            let first_line = signed(bytes, line)?;
            let last_line = signed(bytes, first_line)?;
            let block = BlockLines { block: number, first_line, last_line, instructions: small(bytes)? };
            function.blocks.insert(number, block);
            line = first_line;
        }
        for _ in 0..bytes.number()? {
            let name = bytes.string()?;
            let (mut path, mut before) = (Vec::new(), 0);
            for _ in 0..bytes.number()? {
                before = signed(bytes, before)?;
                if !function.blocks.contains_key(&before) {
                    return Err(bytes.damaged("a path has a block that is not there"));
                }
                path.push(before);
            }
            function.paths.insert(name, path);
        }
        Ok(function)
    }
}

/// A number as its difference to another one.
#[cfg(feature = "archive")]
fn put_signed(text: &mut Vec<u8>, number: u32, before: u32) {
    let difference = i64::from(number) - i64::from(before);
    put_number(text, ((difference << 1) ^ (difference >> 63)) as u64);
}

#[cfg(feature = "archive")]
fn signed(bytes: &mut Bytes<'_>, before: u32) -> Result<u32> {
    let coded = bytes.number()?;
    let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
    let number = i64::from(before).checked_add(difference);
    number.and_then(|number| u32::try_from(number).ok()).ok_or_else(too_large)
}

#[cfg(feature = "archive")]
fn small(bytes: &mut Bytes<'_>) -> Result<u32> {
    u32::try_from(bytes.number()?).map_err(|_| too_large())
}

#[cfg(feature = "archive")]
fn too_large() -> Error {
    Error::damaged(PLACE, "a number is out of range")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use loopfold_testing::Rng;

    fn some(rng: &mut Rng) -> PathBlocks {
        let mut blocks = PathBlocks::default();
        for _ in 0..rng.below(30) {
            let path = (0..rng.below(6))
                .map(|_| {
                    let block = rng.below(8) as u32;
                    let first_line = rng.below(2) as u32 * 100 + block;
                    BlockLines { block, first_line, last_line: first_line / 2, instructions: 7 }
                })
                .collect();
            let (function, file) = (format!("f{}", rng.below(3)), format!("{}.c", rng.below(2)));
            blocks.insert(&function, &file, &format!("p{}", rng.below(20)), path);
        }
        blocks
    }

    #[test]
    fn paths_come_back_from_bytes_and_from_joined_archives() {
        let mut rng = Rng::new(17);
        for _ in 0..300 {
            let (one, other) = (some(&mut rng), some(&mut rng));
            let bytes = one.encode().unwrap();
            assert_eq!(PathBlocks::decode(&bytes).unwrap(), one);
            let mut joined = one.clone();
            joined.join(&other);
            for (first, all) in [(&one, true), (&other, false)] {
                for (name, path) in first
                    .functions
                    .iter()
                    .flat_map(|(n, all)| all.iter().flat_map(move |f| f.paths.keys().map(move |p| (n, p))))
                {
                    let found: Vec<_> = joined.get(name, path).unwrap().blocks().collect();
                    let is_first = all || one.get(name, path).is_none();
                    let expected: Vec<_> = first.get(name, path).unwrap().blocks().collect();
                    assert!(!is_first || found == expected);
                }
            }
        }
    }

    #[test]
    fn damaged_bytes_are_errors_or_other_paths() {
        let mut rng = Rng::new(18);
        for _ in 0..300 {
            let mut bytes = some(&mut rng).encode().unwrap();
            let place = rng.below(bytes.len());
            bytes[place] ^= 1 << rng.below(8);
            let _ = PathBlocks::decode(&bytes);
            bytes.truncate(place);
            let _ = PathBlocks::decode(&bytes);
        }
    }
}
