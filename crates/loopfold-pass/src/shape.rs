//! What of a function matters to its paths: blocks that can be reached, where they call, how they
//! end, and where control arrives from elsewhere.
//!
//! A block calls if a call may enter another instrumented function, or not return. Intrinsics and
//! assembler do neither, except those that jump. A function that uses the exception handling of
//! Windows has no shape, and is not instrumented. Takes O(instructions).

use crate::error::Result;
use crate::llvm::{Block, Call, Opcode, TailCall, Value};
use loopfold_paths as paths;
use loopfold_paths::Ending;
use std::collections::HashMap;

/// How control leaves a function at the end of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Exit<'m> {
    /// It does not.
    None,
    /// By a return, an exception that goes on, or a call that takes over the frame: the instruction
    /// before which everything must be recorded.
    Leave(Value<'m>),
    /// The end is not reached.
    Unreachable,
}

/// A block that can be reached.
#[derive(Debug)]
pub(crate) struct Body<'m> {
    pub(crate) block: Block<'m>,
    /// The first instruction that belongs to the block alone: behind PHI nodes and a landing pad.
    pub(crate) first: Value<'m>,
    pub(crate) terminator: Value<'m>,
    pub(crate) first_call: Option<Value<'m>>,
    pub(crate) exit: Exit<'m>,
    pub(crate) is_landing_pad: bool,
    /// The number of the block among all blocks of the function.
    pub(crate) position: usize,
    pub(crate) about: paths::Block,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Shape<'m> {
    /// The blocks that can be reached, in the order of the function; the entry is the first.
    pub(crate) bodies: Vec<Body<'m>>,
    pub(crate) successors: Vec<Vec<usize>>,
    pub(crate) endings: Vec<Ending>,
    /// Calls that return more than once.
    pub(crate) returns_twice: Vec<Value<'m>>,
}

impl<'m> Shape<'m> {
    /// Reads a function. Returns `None` if it cannot be instrumented.
    pub(crate) fn read(function: Value<'m>) -> Option<Self> {
        let all = function.blocks();
        let reached = reachable(&all);
        let mut shape = Self {
            bodies: Vec::new(),
            successors: Vec::new(),
            endings: Vec::new(),
            returns_twice: Vec::new(),
        };
        for (position, &block) in all.iter().enumerate().filter(|(position, _)| reached[*position]) {
            let body = shape.read_block(block, position)?;
            shape.bodies.push(body);
        }
        let numbers: HashMap<Block<'m>, usize> =
            shape.bodies.iter().enumerate().map(|(number, body)| (body.block, number)).collect();
        for body in &shape.bodies {
            let mut targets: Vec<usize> = Vec::new();
            let mut seen = std::collections::HashSet::new();
            for successor in body.block.successors() {
                // Several cases of a switch may lead to one block.
                if seen.insert(successor) {
                    targets.push(*numbers.get(&successor)?);
                }
            }
            shape.successors.push(targets);
            shape.endings.push(ending(body));
        }
        Some(shape)
    }

    /// The graph of the blocks.
    pub(crate) fn graph(&self) -> Result<paths::Graph> {
        Ok(paths::Graph::new(&self.successors)?)
    }

    /// Whether control may arrive in the function from a deeper frame.
    pub(crate) fn resumes(&self) -> bool {
        !self.returns_twice.is_empty() || self.bodies.iter().any(|body| body.is_landing_pad)
    }

    fn read_block(&mut self, block: Block<'m>, position: usize) -> Option<Body<'m>> {
        let terminator = block.terminator()?;
        let (mut first, mut first_call, mut is_landing_pad) = (None, None, false);
        let mut about = paths::Block::default();
        for instruction in block.instructions() {
            match instruction.opcode() {
                Opcode::LLVMPHI => continue,
                Opcode::LLVMLandingPad => is_landing_pad = true,
                Opcode::LLVMCatchPad
                | Opcode::LLVMCleanupPad
                | Opcode::LLVMCatchSwitch
                | Opcode::LLVMCatchRet
                | Opcode::LLVMCleanupRet => return None,
                _ => first = first.or(Some(instruction)),
            }
            describe(&mut about, instruction);
            let Some(call) = instruction.call() else { continue };
            if returns_twice(instruction, &call) {
                self.returns_twice.push(instruction);
            }
            if first_call.is_none() && may_leave(instruction, &call) {
                first_call = Some(instruction);
            }
        }
        let exit = exit(terminator);
        Some(Body { block, first: first?, terminator, first_call, exit, is_landing_pad, position, about })
    }
}

/// Whether each block can be reached from the first.
fn reachable(all: &[Block<'_>]) -> Vec<bool> {
    let numbers: HashMap<Block<'_>, usize> = all.iter().copied().zip(0..).collect();
    let mut reached = vec![false; all.len()];
    let mut open = vec![0];
    while let Some(number) = open.pop() {
        if number < all.len() && !std::mem::replace(&mut reached[number], true) {
            let successors = all[number].successors();
            open.extend(successors.iter().filter_map(|block| numbers.get(block)));
        }
    }
    reached
}

fn ending(body: &Body<'_>) -> Ending {
    match body.terminator.opcode() {
        Opcode::LLVMIndirectBr | Opcode::LLVMCallBr => Ending::Fixed,
        Opcode::LLVMInvoke => Ending::Call,
        _ if body.first_call.is_some() => Ending::Call,
        _ => Ending::Open,
    }
}

fn exit(terminator: Value<'_>) -> Exit<'_> {
    match terminator.opcode() {
        Opcode::LLVMResume => Exit::Leave(terminator),
        Opcode::LLVMUnreachable => Exit::Unreachable,
        Opcode::LLVMRet => {
            // A call that must be a tail call is in front of the return, or of a conversion.
            let before = std::iter::successors(terminator.previous(), |value| value.previous()).take(2);
            let tail_call = before.into_iter().find(|value| value.tail_call() == TailCall::Must);
            Exit::Leave(tail_call.unwrap_or(terminator))
        }
        _ => Exit::None,
    }
}

/// Whether a call may enter an instrumented function or not return.
fn may_leave(instruction: Value<'_>, call: &Call) -> bool {
    match call {
        Call::Assembler => false,
        Call::Intrinsic(name) => {
            name.starts_with("llvm.eh.sjlj") || instruction.opcode() == Opcode::LLVMInvoke
        }
        Call::Function(_) | Call::Pointer => true,
    }
}

/// Whether control may return from a call more than once, as from setjmp.
fn returns_twice(instruction: Value<'_>, call: &Call) -> bool {
    let known = match call {
        Call::Function(name) => {
            let name = name.trim_start_matches('_');
            matches!(name, "setjmp" | "sigsetjmp" | "getcontext" | "swapcontext" | "vfork")
        }
        Call::Intrinsic(name) => name == "llvm.eh.sjlj.setjmp",
        Call::Assembler | Call::Pointer => false,
    };
    known || instruction.call_has_attribute("returns_twice")
}

/// Counts an instruction and its line, if it becomes code.
fn describe(about: &mut paths::Block, instruction: Value<'_>) {
    const NO_CODE: &[&str] =
        &["llvm.dbg.", "llvm.lifetime.", "llvm.assume", "llvm.pseudoprobe", "llvm.donothing"];
    if let Some(Call::Intrinsic(name)) = instruction.call()
        && NO_CODE.iter().any(|prefix| name.starts_with(prefix))
    {
        return;
    }
    if instruction.opcode() != Opcode::LLVMUnreachable {
        about.instructions += 1;
    }
    let line = instruction.line();
    if line > 0 {
        about.first_line = if about.first_line == 0 { line } else { about.first_line.min(line) };
        about.last_line = about.last_line.max(line);
    }
}
