//! The interface to the run-time library: what instrumented code calls and which variables it uses.
//!
//! A token is appended to a buffer of the thread, by code that is inlined: two loads, a comparison
//! and two stores. When the buffer is full, a function of the library makes room. It is called
//! through a function of the module that keeps all general registers, so that the code around a
//! token needs no more registers saved than without it. The last path of a function and its exit
//! are appended together, with one comparison.

use crate::llvm::{Builder, Linkage, Module, Type, Value};

/// The token of an entry is this and the id of the function.
const ENTER: u32 = 0x8000_0000;
/// The token of an exit.
const LEAVE: u32 = 0xffff_ffff;
/// Number of the calling convention that keeps the general registers.
const PRESERVE_MOST: u32 = 14;
/// Before the constructors of sanitizers, whose priorities are 0 to 2, of the implementation, which
/// has those up to 100, and of programs.
const PRIORITY: u32 = 0;

/// Functions whose references are replaced, so that handlers of signals get a stream of their own.
const REPLACED: &[(&str, &str)] = &[("sigaction", "loopfold_rt_sigaction"), ("signal", "loopfold_rt_signal")];

/// The symbols of the library in a module.
#[derive(Debug)]
pub(crate) struct Runtime<'m> {
    module: &'m Module<'m>,
    token: Type<'m>,
    /// void (u32)
    takes_token: Type<'m>,
    depth: Value<'m>,
    emit: Value<'m>,
    emit_pair: Value<'m>,
    unwind: Value<'m>,
    ids: Value<'m>,
    functions: u32,
}

impl<'m> Runtime<'m> {
    /// Declares what a module with this number of instrumented functions needs.
    pub(crate) fn new(module: &'m Module<'m>, functions: u32) -> Self {
        let token = module.int(32);
        let takes_token = module.void().function(&[token]);
        let ids = token.array(functions.into()).zero();
        let buffer = Buffer::new(module);
        let emit = buffer.emit_function();
        Self {
            module,
            token,
            takes_token,
            depth: module.thread_local("loopfold_rt_depth", token),
            emit,
            emit_pair: buffer.emit_pair_function(emit),
            unwind: module.declare("loopfold_rt_unwind", takes_token),
            ids: module.private("loopfold_rt.ids", ids, false, 4),
            functions,
        }
    }

    pub(crate) fn token_type(&self) -> Type<'m> {
        self.token
    }

    pub(crate) fn number(&self, number: u32) -> Value<'m> {
        self.token.number(number.into())
    }

    /// Appends a token.
    pub(crate) fn emit(&self, builder: &Builder<'m>, token: Value<'m>) {
        builder.call(self.takes_token, self.emit, &[token]);
    }

    /// Enters a function, given its number in the module.
    pub(crate) fn enter(&self, builder: &Builder<'m>, function: u32) {
        self.add_to_depth(builder, 1);
        let id = builder.element(self.token, self.ids, self.number(function));
        let id = builder.load(self.token, id);
        self.emit(builder, builder.or(id, self.number(ENTER)));
    }

    /// The depth of calls. It is that of all libraries of the program once a token was appended:
    /// before, another library may have gone on counting.
    pub(crate) fn depth(&self, builder: &Builder<'m>) -> Value<'m> {
        builder.load(self.token, self.depth)
    }

    /// Leaves a function, at the end of a path if one is given.
    pub(crate) fn leave(&self, builder: &Builder<'m>, path: Option<Value<'m>>) {
        self.add_to_depth(builder, u32::MAX);
        let leave = self.number(LEAVE);
        match path {
            Some(path) => {
                let of_type = self.module.void().function(&[self.token; 2]);
                builder.call(of_type, self.emit_pair, &[path, leave]);
            }
            None => self.emit(builder, leave),
        }
    }

    /// Leaves all functions that are deeper than `depth`.
    pub(crate) fn unwind(&self, builder: &Builder<'m>, depth: Value<'m>) {
        builder.call(self.takes_token, self.unwind, &[depth]);
    }

    fn add_to_depth(&self, builder: &Builder<'m>, difference: u32) {
        let depth = builder.load(self.token, self.depth);
        let depth = builder.add(depth, self.number(difference));
        builder.store(depth, self.depth);
    }

    /// Calls a function for a block, for tests.
    pub(crate) fn check_block(&self, builder: &Builder<'m>, function: u32, block: usize) {
        let of_type = self.module.void().function(&[self.token, self.token]);
        let check = self.module.declare("loopfold_rt_check", of_type);
        builder.call(of_type, check, &[self.number(function), self.number(block as u32)]);
    }

    /// Registers the module when it is loaded, with its description.
    pub(crate) fn register(&self, description: &[u8]) {
        let module = self.module;
        let constant = module.bytes(description);
        let constant = module.private("loopfold_rt.description", constant, true, 1);
        let wide = module.int(64);
        let pointer = module.pointer();
        let of_type = module.void().function(&[pointer, self.token, pointer, wide]);
        let register = module.declare("loopfold_rt_register", of_type);
        let constructor = module.add_function("loopfold_rt.constructor", module.void().function(&[]));
        constructor.set_linkage(Linkage::LLVMInternalLinkage);
        constructor.add_attribute(module, "nounwind");
        let builder = Builder::new(module);
        builder.at_end(constructor.append_block(module));
        let bytes = wide.number(description.len() as u64);
        builder.call(of_type, register, &[self.ids, self.number(self.functions), constant, bytes]);
        builder.return_void();
        module.add_constructor(PRIORITY, constructor);
    }
}

/// Lets the library install handlers of signals.
pub(crate) fn replace_references(module: &Module<'_>) {
    for (name, replacement) in REPLACED {
        if let Some(function) = module.function(name).filter(|function| function.is_declaration()) {
            function.rename(replacement);
        }
    }
}

/// The buffer of a thread, and functions that append to it.
struct Buffer<'m> {
    module: &'m Module<'m>,
    token: Type<'m>,
    pointer: Type<'m>,
    /// Where the next token goes, and where the buffer ends.
    cursor: Value<'m>,
    limit: Value<'m>,
}

impl<'m> Buffer<'m> {
    fn new(module: &'m Module<'m>) -> Self {
        let (pointer, token) = (module.pointer(), module.int(32));
        let cursor = module.thread_local("loopfold_rt_cursor", pointer);
        let limit = module.thread_local("loopfold_rt_limit", pointer);
        Self { module, token, pointer, cursor, limit }
    }

    /// Appends a token. It is inlined everywhere.
    fn emit_function(&self) -> Value<'m> {
        let takes_token = self.module.void().function(&[self.token]);
        let library = self.module.declare("loopfold_rt_slow", takes_token);
        library.add_attribute(self.module, "nounwind");
        library.add_attribute(self.module, "cold");
        let slow = self.slow_function("loopfold_rt.slow", 1, |builder, tokens| {
            builder.call(takes_token, library, tokens);
        });
        self.inlined("loopfold_rt.emit", 1, slow, |builder, place| {
            let limit = builder.load(self.pointer, self.limit);
            builder.equal(place, limit)
        })
    }

    /// Appends two tokens. It is inlined everywhere.
    fn emit_pair_function(&self, emit: Value<'m>) -> Value<'m> {
        let takes_token = self.module.void().function(&[self.token]);
        let slow = self.slow_function("loopfold_rt.slow_pair", 2, |builder, tokens| {
            for &token in tokens {
                builder.call(takes_token, emit, &[token]);
            }
        });
        self.inlined("loopfold_rt.emit_pair", 2, slow, |builder, place| {
            let wide = self.module.int(64);
            let limit = builder.load(self.pointer, self.limit);
            let room = builder.subtract(builder.address(limit, wide), builder.address(place, wide));
            builder.less(room, wide.number(8))
        })
    }

    /// A function that appends tokens, or calls `slow` where there is too little room.
    fn inlined(
        &self,
        name: &str,
        tokens: u32,
        slow: Value<'m>,
        is_full: impl Fn(&Builder<'m>, Value<'m>) -> Value<'m>,
    ) -> Value<'m> {
        let of_type = self.module.void().function(&vec![self.token; tokens as usize]);
        let emit = self.module.add_function(name, of_type);
        emit.set_linkage(Linkage::LLVMInternalLinkage);
        emit.add_attribute(self.module, "alwaysinline");
        emit.add_attribute(self.module, "nounwind");
        let parameters: Vec<Value<'m>> = (0..tokens).map(|at| emit.parameter(at)).collect();
        let [start, full, room] = [(); 3].map(|()| emit.append_block(self.module));
        let builder = Builder::new(self.module);
        builder.at_end(start);
        let place = builder.load(self.pointer, self.cursor);
        let is_full = is_full(&builder, place);
        builder.branch_if(is_full, full, room).set_unlikely(self.module);
        builder.at_end(full);
        builder.call(of_type, slow, &parameters).set_call_convention(PRESERVE_MOST);
        builder.return_void();
        builder.at_end(room);
        let at = |number: u32| builder.element(self.token, place, self.token.number(number.into()));
        for (number, &parameter) in (0..).zip(&parameters) {
            builder.store(parameter, at(number));
        }
        builder.store(at(tokens), self.cursor);
        builder.return_void();
        emit
    }

    /// A function for tokens that have no room, which keeps the general registers of its caller.
    fn slow_function(&self, name: &str, tokens: u32, body: impl Fn(&Builder<'m>, &[Value<'m>])) -> Value<'m> {
        let of_type = self.module.void().function(&vec![self.token; tokens as usize]);
        let slow = self.module.add_function(name, of_type);
        slow.set_linkage(Linkage::LLVMInternalLinkage);
        slow.set_calling_convention(PRESERVE_MOST);
        for attribute in ["cold", "noinline", "nounwind"] {
            slow.add_attribute(self.module, attribute);
        }
        let builder = Builder::new(self.module);
        builder.at_end(slow.append_block(self.module));
        body(&builder, &(0..tokens).map(|at| slow.parameter(at)).collect::<Vec<_>>());
        builder.return_void();
        slow
    }
}
