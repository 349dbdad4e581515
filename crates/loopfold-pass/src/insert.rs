//! Inserts the code that records the paths of one function.
//!
//! A register of the function has the number of the path so far, plus one: the token. It is set
//! where a path begins, values of edges are added to it, and it is emitted where the path ends. It
//! is a variable in the frame, which a pass of LLVM replaces by registers afterwards; then most of
//! its values are constants.
//!
//! The code for an edge goes to the end of the block that it leaves if it is the only edge there,
//! to the start of the block to which it leads if it is the only one that arrives, and to a new
//! block on the edge otherwise. New blocks are the inputs of PHI nodes instead of the old ones.
//!
//! Whatever goes in front of one instruction is in the order in which it is inserted. So the steps
//! of [`Inserter::insert`] are in the order in which their code is executed within a block.

use crate::llvm::{Block, Builder, Module, Opcode, Value};
use crate::options::Options;
use crate::runtime::Runtime;
use crate::shape::{Body, Exit, Shape};
use loopfold_paths::{BlockId, Edge, Numbering};
use std::collections::HashMap;

/// What happens on an edge, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct EdgeCode {
    /// The path ends here.
    emit: bool,
    /// Another one begins, with this token if it takes no edge of a value.
    set: Option<u32>,
    /// The path goes on, with its number increased.
    add: u32,
}

#[derive(Debug)]
pub(crate) struct Inserter<'m, 'f> {
    module: &'m Module<'m>,
    runtime: &'f Runtime<'m>,
    shape: &'f Shape<'m>,
    numbering: &'f Numbering,
    builder: Builder<'m>,
    /// In each block the instruction that was the first one to execute.
    firsts: Vec<Value<'m>>,
    /// The number of edges that lead to each block.
    arriving: Vec<u32>,
    /// The first token of each block at which paths begin.
    starts: HashMap<BlockId, u32>,
}

impl<'m, 'f> Inserter<'m, 'f> {
    pub(crate) fn new(
        module: &'m Module<'m>,
        runtime: &'f Runtime<'m>,
        shape: &'f Shape<'m>,
        numbering: &'f Numbering,
    ) -> Self {
        let mut arriving = vec![0; shape.bodies.len()];
        shape.successors.iter().flatten().for_each(|&to| arriving[to] += 1);
        let starts = numbering.starts().iter().map(|&(block, first)| (block, first + 1)).collect();
        let builder = Builder::new(module);
        let mut firsts: Vec<Value<'m>> = shape.bodies.iter().map(|body| body.first).collect();
        firsts[0] = gather_allocas(&builder, &shape.bodies[0]);
        Self { module, runtime, shape, numbering, builder, firsts, arriving, starts }
    }

    /// Inserts everything. `number` is that of the function in its module.
    pub(crate) fn insert(&self, number: u32, options: &Options) {
        let register = (!options.blocks).then(|| self.variable("loopfold.path"));
        let saved = self.shape.resumes().then(|| self.variable("loopfold.depth"));
        self.insert_entry(number, saved);
        if let Some(saved) = saved {
            self.insert_resumptions(saved);
        }
        if let Some(register) = register {
            self.insert_edges(register);
        }
        for (block, body) in self.shape.bodies.iter().enumerate() {
            self.builder.before(self.firsts[block]);
            if options.blocks {
                self.runtime.emit(&self.builder, self.runtime.number(block as u32 + 1));
            }
            if options.check_blocks {
                self.runtime.check_block(&self.builder, number, body.position);
            }
        }
        for block in self.numbering.graph().blocks() {
            self.insert_end(block, register);
        }
    }

    fn variable(&self, name: &str) -> Value<'m> {
        let entry = &self.shape.bodies[0];
        self.builder.before(entry.block.instructions().next().unwrap_or(entry.terminator));
        self.builder.alloca(self.runtime.token_type(), name)
    }

    fn insert_entry(&self, number: u32, saved: Option<Value<'m>>) {
        self.builder.before(self.firsts[0]);
        self.runtime.enter(&self.builder, number);
        if let Some(saved) = saved {
            let depth = self.runtime.depth(&self.builder);
            self.builder.store(depth, saved).set_volatile();
        }
    }

    /// Supplies the missing exits wherever control arrives from a deeper frame.
    fn insert_resumptions(&self, saved: Value<'m>) {
        let pads = self.shape.bodies.iter().filter(|body| body.is_landing_pad).map(|body| body.first);
        let returns = self.shape.returns_twice.iter().filter_map(|call| match call.opcode() {
            Opcode::LLVMInvoke => self.behind_invoke(*call),
            _ => call.next(),
        });
        for at in pads.chain(returns) {
            self.builder.before(at);
            let depth = self.builder.load(self.runtime.token_type(), saved);
            depth.set_volatile();
            self.runtime.unwind(&self.builder, depth);
        }
    }

    /// The first instruction behind the normal return of an invoke.
    fn behind_invoke(&self, invoke: Value<'m>) -> Option<Value<'m>> {
        let body = self.shape.bodies.iter().find(|body| body.terminator == invoke)?;
        let normal = body.block.successors().first().copied()?;
        self.shape.bodies.iter().find(|body| body.block == normal).map(|body| body.first)
    }

    /// Sets, increases and emits the register between blocks.
    fn insert_edges(&self, register: Value<'m>) {
        let graph = self.numbering.graph();
        let fresh: Vec<bool> = self.always_fresh();
        for &(block, first) in self.numbering.starts() {
            if block == BlockId::ENTRY || fresh[block.index()] {
                self.builder.before(self.firsts[block.index()]);
                self.builder.store(self.runtime.number(first + 1), register);
            }
        }
        let mut splits: HashMap<BlockId, Vec<Edge>> = HashMap::new();
        for edge in graph.edges() {
            let code = self.edge_code(&edge, fresh[edge.to.index()]);
            if code == EdgeCode::default() {
                continue;
            }
            match self.place_of(&edge) {
                Some(place) => self.insert_edge_code(place, code, register),
                None => splits.entry(edge.to).or_default().push(edge),
            }
        }
        for block in graph.blocks() {
            if let Some(edges) = splits.get(&block) {
                let code = |edge: &Edge| self.edge_code(edge, fresh[block.index()]);
                self.split(edges, |place, edge| self.insert_edge_code(place, code(edge), register));
            }
        }
    }

    /// For each block, whether a path begins there along whichever edge control arrives.
    fn always_fresh(&self) -> Vec<bool> {
        let mut fresh = vec![true; self.shape.bodies.len()];
        fresh[0] = false;
        for edge in self.numbering.graph().edges().filter(|edge| self.numbering.continues_on(edge)) {
            fresh[edge.to.index()] = false;
        }
        fresh
    }

    fn edge_code(&self, edge: &Edge, target_is_fresh: bool) -> EdgeCode {
        if self.numbering.continues_on(edge) {
            return EdgeCode { add: self.numbering.value(edge), ..EdgeCode::default() };
        }
        let emit = !self.numbering.cuts().ends_in(edge.from);
        let set = self.starts.get(&edge.to).copied().filter(|_| !target_is_fresh);
        EdgeCode { emit, set, add: 0 }
    }

    /// The instruction in front of which code for an edge can be, unless the edge must be split.
    fn place_of(&self, edge: &Edge) -> Option<Value<'m>> {
        let (from, to) = (edge.from.index(), edge.to.index());
        let source = &self.shape.bodies[from];
        if self.shape.successors[from].len() == 1 && source.terminator.opcode() != Opcode::LLVMInvoke {
            Some(source.terminator)
        } else if self.arriving[to] == 1 && to != 0 {
            Some(self.firsts[to])
        } else {
            None
        }
    }

    fn insert_edge_code(&self, place: Value<'m>, code: EdgeCode, register: Value<'m>) {
        self.builder.before(place);
        let token = self.runtime.token_type();
        if code.emit {
            let value = self.builder.load(token, register);
            self.runtime.emit(&self.builder, value);
        }
        if let Some(first) = code.set {
            self.builder.store(self.runtime.number(first), register);
        }
        if code.add > 0 {
            let value = self.builder.load(token, register);
            let value = self.builder.add(value, self.runtime.number(code.add));
            self.builder.store(value, register);
        }
    }

    /// Puts a block on each of these edges, which lead to one block, with code for the edge.
    fn split(&self, edges: &[Edge], insert: impl Fn(Value<'m>, &Edge)) {
        let Some(target) = edges.first().map(|edge| self.shape.bodies[edge.to.index()].block) else { return };
        let mut replaced: HashMap<Block<'m>, Block<'m>> = HashMap::new();
        for edge in edges {
            let source = self.shape.bodies[edge.from.index()].block;
            let middle = target.insert_before(self.module);
            self.builder.at_end(middle);
            let branch = self.builder.branch(target);
            source.redirect(target, middle);
            replaced.insert(source, middle);
            insert(branch, edge);
        }
        let phis: Vec<Value<'m>> =
            target.instructions().take_while(|instruction| instruction.opcode() == Opcode::LLVMPHI).collect();
        for phi in phis {
            let mut done = Vec::new();
            let mut incoming = phi.incoming();
            incoming.retain_mut(|(block, _)| {
                let Some(&middle) = replaced.get(block) else { return true };
                *block = middle;
                // Several edges of a switch are one now.
                let first = !done.contains(&middle);
                done.push(middle);
                first
            });
            phi.replace_phi(&self.builder, &incoming);
        }
    }

    /// Emits the register in a block in which paths end, and leaves the function where it does.
    fn insert_end(&self, block: BlockId, register: Option<Value<'m>>) {
        let body = &self.shape.bodies[block.index()];
        let path = |place| {
            self.builder.before(place);
            register.map(|register| self.builder.load(self.runtime.token_type(), register))
        };
        let emit = |place| {
            if let Some(path) = path(place) {
                self.runtime.emit(&self.builder, path);
            }
        };
        if self.numbering.cuts().ends_in(block) {
            emit(body.first_call.unwrap_or(body.terminator));
        }
        match body.exit {
            Exit::Leave(at) if self.numbering.cuts().ends_in(block) => {
                self.builder.before(at);
                self.runtime.leave(&self.builder, None);
            }
            Exit::Leave(at) => self.runtime.leave(&self.builder, path(at)),
            // Whatever keeps the end from being reached is behind it.
            Exit::Unreachable if !self.numbering.cuts().ends_in(block) => emit(self.firsts[block.index()]),
            Exit::Unreachable | Exit::None => {}
        }
    }
}

/// Moves what reserves space in the frame to the front of the entry, as inlining splits it, and
/// returns the instruction behind.
fn gather_allocas<'m>(builder: &Builder<'m>, entry: &Body<'m>) -> Value<'m> {
    let all: Vec<Value<'m>> = entry.block.instructions().collect();
    let behind = all.iter().copied().find(|instruction| !instruction.is_static_alloca());
    let behind = behind.unwrap_or(entry.terminator);
    let late = all.into_iter().skip_while(|&instruction| instruction != behind);
    for alloca in late.filter(|instruction| instruction.is_static_alloca()) {
        builder.before(behind);
        alloca.move_to(builder);
    }
    behind
}
