//! The description of an instrumented module: what the numbers in its tokens mean.
//!
//! The pass puts it into the object as a constant; the run-time library hands it to the recorder
//! as it is. It has the functions in the order of their ids, and for each the blocks with source
//! lines and numbers of instructions, the graph, and where paths end. A block costs some six bytes.
//! Decoding checks everything, and memory is O(bytes): nothing is allocated for a claimed number.

use crate::bytes::{Bytes, put_number, put_signed, put_text};
use crate::cuts::Cuts;
use crate::graph::{BlockId, Graph};
use crate::numbering::{Numbering, Path};
use crate::{Error, Result};
use std::sync::Arc;

/// The first bytes of a description: a name and a version.
const MAGIC: &[u8] = b"LFPATHS\x01";

/// What the numbers in the tokens of a function are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers of paths.
    Paths,
    /// Numbers of blocks, each of which is a path.
    Blocks,
}

/// What is known of a basic block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Block {
    /// The smallest line of its instructions in the file of the function, or 0.
    pub first_line: u32,
    /// The largest line of its instructions in the file of the function, or 0.
    pub last_line: u32,
    /// The number of its instructions, as the compiler counts them, without our own.
    pub instructions: u32,
}

/// An instrumented function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    name: String,
    /// Shared by the functions of a file, so that memory is O(bytes).
    file: Arc<str>,
    line: u32,
    kind: Kind,
    blocks: Vec<Block>,
    numbering: Numbering,
}

impl Function {
    /// A function with its linkage name, the file and line of its source (empty and 0 if they are
    /// not known), its blocks and their numbering. Fails if the numbering has other blocks.
    pub fn new(
        name: String,
        file: Arc<str>,
        line: u32,
        kind: Kind,
        blocks: Vec<Block>,
        numbering: Numbering,
    ) -> Result<Self> {
        if blocks.len() != numbering.graph().len() {
            return Err(Error::new("a function has other blocks than its graph"));
        }
        Ok(Self { name, file, line, kind, blocks, numbering })
    }

    /// The linkage name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The source file, or an empty text.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line at which the function begins, or 0.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// What the numbers in tokens are.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number of paths (or blocks); they are numbered from 0.
    pub fn paths(&self) -> u64 {
        self.numbering.paths().into()
    }

    /// The blocks of a path, in the order of execution. Returns `None` if there is no such path.
    pub fn blocks(&self, number: u64) -> Option<Path<'_>> {
        self.numbering.path(u32::try_from(number).ok()?)
    }

    /// What is known of a block of this function.
    pub fn block(&self, id: BlockId) -> Block {
        self.blocks.get(id.index()).copied().unwrap_or_default()
    }

    /// The number of instructions along a path: its cost, as Larus counts. Returns `None` if there
    /// is no such path.
    pub fn instructions(&self, number: u64) -> Option<u64> {
        Some(self.blocks(number)?.map(|block| u64::from(self.block(block).instructions)).sum())
    }

    /// The graph, where its paths end, and their numbers.
    pub fn numbering(&self) -> &Numbering {
        &self.numbering
    }
}

/// A module: what was compiled from one source, with its functions in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    source: String,
    functions: Vec<Function>,
}

impl Module {
    /// A module that was compiled from this source.
    pub fn new(source: String, functions: Vec<Function>) -> Self {
        Self { source, functions }
    }

    /// The name of the source, as the compiler gave it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The instrumented functions.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The description as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_text(&mut out, &self.source);
        put_number(&mut out, self.functions.len() as u64);
        let mut last_file = "";
        for function in &self.functions {
            // Most functions are in the file of the one before.
            let same_file = &*function.file == last_file;
            let kind = (function.kind == Kind::Blocks) as u8;
            out.push(kind | (same_file as u8) << 1);
            put_text(&mut out, &function.name);
            if !same_file {
                put_text(&mut out, &function.file);
            }
            last_file = &function.file;
            put_number(&mut out, function.line.into());
            encode_blocks(&mut out, function);
        }
        out
    }

    /// Decodes a description. Fails if it is damaged or of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut bytes = Bytes(bytes);
        if bytes.take(MAGIC.len())? != MAGIC {
            return Err(Error::new("it is of another version of loopfold"));
        }
        let source = bytes.text()?.to_string();
        let count = bytes.count()?;
        let (mut functions, mut file) = (Vec::new(), Arc::from(""));
        for _ in 0..count {
            functions.push(decode_function(&mut bytes, &mut file)?);
        }
        match bytes.0 {
            [] => Ok(Self { source, functions }),
            _ => Err(Error::new("there is more than belongs in it")),
        }
    }
}

/// Writes the blocks of a function. The lowest bit of a block's number of edges, and of each of
/// their targets, is whether paths end there. Lines are relative to that of the function.
fn encode_blocks(out: &mut Vec<u8>, function: &Function) {
    let numbering = &function.numbering;
    let (graph, cuts) = (numbering.graph(), numbering.cuts());
    put_number(out, graph.len() as u64);
    for (id, block) in graph.blocks().zip(&function.blocks) {
        put_signed(out, i64::from(block.first_line) - i64::from(function.line));
        put_signed(out, i64::from(block.last_line) - i64::from(block.first_line));
        put_number(out, block.instructions.into());
        let edges = graph.edges_of(id);
        put_number(out, (edges.count() as u64) << 1 | u64::from(cuts.ends_in(id)));
        for edge in graph.edges_of(id) {
            put_number(out, (edge.to.index() as u64) << 1 | u64::from(cuts.ends_on(edge.index)));
        }
    }
}

fn decode_function(bytes: &mut Bytes<'_>, file: &mut Arc<str>) -> Result<Function> {
    let flags = bytes.byte()?;
    let kind = match flags & 1 {
        0 => Kind::Paths,
        _ => Kind::Blocks,
    };
    if flags > 3 {
        return Err(Error::new("a function is of an unknown kind"));
    }
    let name = bytes.text()?.to_string();
    if flags & 2 == 0 {
        *file = Arc::from(bytes.text()?);
    }
    let line = bytes.number_u32()?;
    let count = bytes.count()?;
    let (mut blocks, mut successors) = (Vec::new(), Vec::new());
    let mut cuts = Cuts { blocks: Vec::new(), edges: Vec::new() };
    for _ in 0..count {
        blocks.push(decode_block(bytes, line)?);
        successors.push(decode_edges(bytes, &mut cuts)?);
    }
    let numbering = Numbering::new(Graph::new(&successors)?, cuts)?;
    Function::new(name, file.clone(), line, kind, blocks, numbering)
}

fn decode_block(bytes: &mut Bytes<'_>, line: u32) -> Result<Block> {
    let first_line = relative(line, bytes.signed()?)?;
    let last_line = relative(first_line, bytes.signed()?)?;
    Ok(Block { first_line, last_line, instructions: bytes.number_u32()? })
}

fn decode_edges(bytes: &mut Bytes<'_>, cuts: &mut Cuts) -> Result<Vec<usize>> {
    let number = bytes.number()?;
    cuts.blocks.push(number & 1 != 0);
    let mut targets = Vec::new();
    for _ in 0..number >> 1 {
        let target = bytes.number()?;
        cuts.edges.push(target & 1 != 0);
        let target = usize::try_from(target >> 1).map_err(|_| Error::new("a successor does not exist"))?;
        targets.push(target);
    }
    Ok(targets)
}

fn relative(line: u32, difference: i64) -> Result<u32> {
    let line = i64::from(line).checked_add(difference).and_then(|line| u32::try_from(line).ok());
    line.ok_or(Error::new("a line is too large"))
}
