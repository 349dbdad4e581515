//! Types, values, blocks, and what can be asked of instructions.

use super::{Module, c_string, text_of};
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMTailCallKind, LLVMUnnamedAddr};
pub(crate) use llvm_sys::{LLVMLinkage as Linkage, LLVMOpcode as Opcode};
use std::ffi::CStr;
use std::marker::PhantomData;

/// A type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type<'m>(LLVMTypeRef, PhantomData<&'m Module<'m>>);

impl<'m> Type<'m> {
    pub(super) fn of(raw: LLVMTypeRef) -> Self {
        Self(raw, PhantomData)
    }

    pub(super) fn raw(self) -> LLVMTypeRef {
        self.0
    }

    /// The type of functions that take these and return this type.
    pub(crate) fn function(self, parameters: &[Type<'m>]) -> Self {
        let mut raw: Vec<LLVMTypeRef> = parameters.iter().map(|of_type| of_type.0).collect();
        // SAFETY: the types are alive.
        Self::of(unsafe { LLVMFunctionType(self.0, raw.as_mut_ptr(), raw.len() as u32, 0) })
    }

    /// The type of arrays of this type.
    pub(crate) fn array(self, length: u64) -> Self {
        // SAFETY: the type is alive.
        Self::of(unsafe { LLVMArrayType2(self.0, length) })
    }

    /// A constant of this type, which has integers.
    pub(crate) fn number(self, number: u64) -> Value<'m> {
        // SAFETY: the type is alive.
        Value::of(unsafe { LLVMConstInt(self.0, number, 0) })
    }

    /// The constant of this type that has only zeros.
    pub(crate) fn zero(self) -> Value<'m> {
        // SAFETY: the type is alive.
        Value::of(unsafe { LLVMConstNull(self.0) })
    }
}

/// A basic block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block<'m>(LLVMBasicBlockRef, PhantomData<&'m Module<'m>>);

impl<'m> Block<'m> {
    pub(super) fn of(raw: LLVMBasicBlockRef) -> Self {
        Self(raw, PhantomData)
    }

    pub(super) fn raw(self) -> LLVMBasicBlockRef {
        self.0
    }

    pub(crate) fn instructions(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the block is alive and not changed between two steps, except behind them.
        let first = Value::checked(unsafe { LLVMGetFirstInstruction(self.0) });
        std::iter::successors(first, |value| Value::checked(unsafe { LLVMGetNextInstruction(value.0) }))
    }

    /// The last instruction. LLVM verifies that there is one before a module reaches us.
    pub(crate) fn terminator(self) -> Option<Value<'m>> {
        // SAFETY: the block is alive.
        Value::checked(unsafe { LLVMGetBasicBlockTerminator(self.0) })
    }

    /// The blocks to which it leads, one for each case.
    pub(crate) fn successors(self) -> Vec<Block<'m>> {
        let Some(last) = self.terminator() else { return Vec::new() };
        // SAFETY: the numbers are below that of the successors.
        unsafe {
            let count = LLVMGetNumSuccessors(last.0);
            (0..count).map(|at| Block::of(LLVMGetSuccessor(last.0, at))).collect()
        }
    }

    /// Lets all edges to one block lead to another.
    pub(crate) fn redirect(self, from: Block<'m>, to: Block<'m>) {
        let Some(last) = self.terminator() else { return };
        for (at, _) in self.successors().iter().enumerate().filter(|(_, successor)| **successor == from) {
            // SAFETY: the number is below that of the successors.
            unsafe { LLVMSetSuccessor(last.0, at as u32, to.0) }
        }
    }

    /// Adds a block in front of this one.
    pub(crate) fn insert_before(self, module: &Module<'_>) -> Block<'m> {
        // SAFETY: the block is alive and in a function of the module.
        Block::of(unsafe { LLVMInsertBasicBlockInContext(module.context(), self.0, c"".as_ptr()) })
    }
}

/// What a call calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// Assembler in the source.
    Assembler,
    /// What LLVM itself gives a meaning, by name.
    Intrinsic(String),
    /// A function, by name.
    Function(String),
    /// Whatever a pointer points to.
    Pointer,
}

/// Whether a call may or must reuse the frame of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TailCall {
    /// The compiler may choose.
    May,
    /// It must.
    Must,
}

/// A function, a variable, a constant, an instruction or a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Value<'m>(LLVMValueRef, PhantomData<&'m Module<'m>>);

impl<'m> Value<'m> {
    pub(super) fn of(raw: LLVMValueRef) -> Self {
        Self(raw, PhantomData)
    }

    pub(super) fn checked(raw: LLVMValueRef) -> Option<Self> {
        (!raw.is_null()).then_some(Self(raw, PhantomData))
    }

    pub(super) fn raw(self) -> LLVMValueRef {
        self.0
    }

    pub(crate) fn name(self) -> String {
        let mut length = 0;
        // SAFETY: the value is alive and keeps its name.
        unsafe {
            let text = LLVMGetValueName2(self.0, &mut length);
            text_of(text, length)
        }
    }

    pub(crate) fn rename(self, name: &str) {
        // SAFETY: the name is copied.
        unsafe { LLVMSetValueName2(self.0, name.as_ptr().cast(), name.len()) }
    }

    // Functions.

    pub(crate) fn is_declaration(self) -> bool {
        // SAFETY: a global value, as for all methods of functions.
        unsafe { LLVMIsDeclaration(self.0) != 0 }
    }

    pub(crate) fn linkage(self) -> Linkage {
        unsafe { LLVMGetLinkage(self.0) }
    }

    pub(crate) fn set_linkage(self, linkage: Linkage) {
        unsafe { LLVMSetLinkage(self.0, linkage) }
    }

    pub(crate) fn has_section(self) -> bool {
        unsafe {
            let section = LLVMGetSection(self.0);
            !section.is_null() && !CStr::from_ptr(section).is_empty()
        }
    }

    pub(crate) fn set_section(self, name: &str) {
        unsafe { LLVMSetSection(self.0, c_string(name).as_ptr()) }
    }

    pub(crate) fn set_calling_convention(self, convention: u32) {
        unsafe { LLVMSetFunctionCallConv(self.0, convention) }
    }

    pub(crate) fn blocks(self) -> Vec<Block<'m>> {
        // SAFETY: nothing is changed during the iteration.
        let checked = |raw: LLVMBasicBlockRef| (!raw.is_null()).then_some(Block::of(raw));
        let first = checked(unsafe { LLVMGetFirstBasicBlock(self.0) });
        std::iter::successors(first, |block| checked(unsafe { LLVMGetNextBasicBlock(block.raw()) })).collect()
    }

    pub(crate) fn append_block(self, module: &Module<'_>) -> Block<'m> {
        Block::of(unsafe { LLVMAppendBasicBlockInContext(module.context(), self.0, c"".as_ptr()) })
    }

    pub(crate) fn parameter(self, at: u32) -> Value<'m> {
        Value::of(unsafe { LLVMGetParam(self.0, at) })
    }

    pub(crate) fn has_attribute(self, name: &str) -> bool {
        let kind = attribute(name);
        unsafe { !LLVMGetEnumAttributeAtIndex(self.0, LLVMAttributeFunctionIndex, kind).is_null() }
    }

    pub(crate) fn add_attribute(self, module: &Module<'_>, name: &str) {
        // SAFETY: the attribute is one of the same context.
        unsafe {
            let attribute = LLVMCreateEnumAttribute(module.context(), attribute(name), 0);
            LLVMAddAttributeAtIndex(self.0, LLVMAttributeFunctionIndex, attribute);
        }
    }

    pub(crate) fn remove_attribute(self, name: &str) {
        unsafe { LLVMRemoveEnumAttributeAtIndex(self.0, LLVMAttributeFunctionIndex, attribute(name)) }
    }

    /// The operands of metadata of a function; none if it has no metadata of this kind.
    pub(crate) fn metadata(self, module: &Module<'_>, kind: &str) -> Vec<Value<'m>> {
        let kind = metadata_kind(module, kind);
        // SAFETY: the entries are a copy, which is freed; numbers are below their count. A node has
        // as many operands as it says, all of them constants here.
        unsafe {
            let mut count = 0;
            let entries = LLVMGlobalCopyAllMetadata(self.0, &mut count);
            let found = (0..count as u32).find(|&at| LLVMValueMetadataEntriesGetKind(entries, at) == kind);
            let node = found.map(|at| LLVMValueMetadataEntriesGetMetadata(entries, at));
            LLVMDisposeValueMetadataEntries(entries);
            let Some(node) = node else { return Vec::new() };
            let node = LLVMMetadataAsValue(module.context(), node);
            let mut operands = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
            LLVMGetMDNodeOperands(node, operands.as_mut_ptr());
            operands.into_iter().filter_map(Value::checked).collect()
        }
    }

    pub(crate) fn erase_metadata(self, module: &Module<'_>, kind: &str) {
        unsafe { LLVMGlobalEraseMetadata(self.0, metadata_kind(module, kind)) }
    }

    /// Puts constants at the start of the code of a function.
    pub(crate) fn set_prologue(self, module: &Module<'_>, constants: &[Value<'_>]) {
        let mut constants: Vec<LLVMValueRef> = constants.iter().map(|value| value.0).collect();
        // SAFETY: constants of the same context; 1 is for no padding.
        unsafe {
            let count = constants.len() as u32;
            let all = LLVMConstStructInContext(module.context(), constants.as_mut_ptr(), count, 1);
            LLVMSetPrologueData(self.0, all);
        }
    }

    /// Whether a value is a function or a variable.
    pub(crate) fn is_global(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { !LLVMIsAGlobalValue(self.0).is_null() }
    }

    /// Lets the address of a global value matter: it stays a value of its own.
    pub(crate) fn keep_address(self) {
        // SAFETY: a global value.
        unsafe { LLVMSetUnnamedAddress(self.0, LLVMUnnamedAddr::LLVMNoUnnamedAddr) }
    }

    /// The distance of a global value from another one as a constant of 32 bits.
    pub(crate) fn distance_from(self, module: &'m Module<'_>, other: Value<'m>) -> Value<'m> {
        let (wide, narrow) = (module.int(64).raw(), module.int(32).raw());
        // SAFETY: addresses are constants of 64 bits on the machines that are known.
        Value::of(unsafe {
            let [to, from] = [self, other].map(|value| LLVMConstPtrToInt(value.0, wide));
            LLVMConstTrunc(LLVMConstSub(to, from), narrow)
        })
    }

    /// The file and the line of a function, if the module has them.
    pub(crate) fn source(self) -> Option<(String, u32)> {
        // SAFETY: a function that is alive; texts of metadata live as long as the module.
        unsafe {
            let program = LLVMGetSubprogram(self.0);
            if program.is_null() {
                return None;
            }
            let line = LLVMDISubprogramGetLine(program);
            let file = LLVMDIScopeGetFile(program);
            if file.is_null() {
                return Some((String::new(), line));
            }
            let mut length = 0;
            let text = LLVMDIFileGetDirectory(file, &mut length);
            let folder = text_of(text, length as usize);
            let text = LLVMDIFileGetFilename(file, &mut length);
            let file = text_of(text, length as usize);
            let whole =
                if file.starts_with('/') || folder.is_empty() { file } else { format!("{folder}/{file}") };
            Some((whole, line))
        }
    }

    // Instructions.

    pub(crate) fn opcode(self) -> Opcode {
        // SAFETY: an instruction, as for all methods of instructions.
        unsafe { LLVMGetInstructionOpcode(self.0) }
    }

    pub(crate) fn next(self) -> Option<Value<'m>> {
        Value::checked(unsafe { LLVMGetNextInstruction(self.0) })
    }

    pub(crate) fn previous(self) -> Option<Value<'m>> {
        Value::checked(unsafe { LLVMGetPreviousInstruction(self.0) })
    }

    /// The line of an instruction in the function that it is in, or 0: where it was inlined, if it was.
    pub(crate) fn line(self) -> u32 {
        // SAFETY: metadata of the instruction, or null.
        unsafe {
            let mut location = LLVMInstructionGetDebugLoc(self.0);
            while !location.is_null() {
                let outer = LLVMDILocationGetInlinedAt(location);
                if outer.is_null() {
                    return LLVMDILocationGetLine(location);
                }
                location = outer;
            }
            0
        }
    }

    /// Whether an instruction reserves a fixed number of bytes of the frame.
    pub(crate) fn is_static_alloca(self) -> bool {
        self.opcode() == Opcode::LLVMAlloca && unsafe { LLVMIsConstant(LLVMGetOperand(self.0, 0)) != 0 }
    }

    /// What a call, invoke or callbr calls. Returns `None` for other instructions.
    pub(crate) fn call(self) -> Option<Call> {
        if !matches!(self.opcode(), Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr) {
            return None;
        }
        // SAFETY: an instruction that calls.
        let callee = Value::of(unsafe { LLVMGetCalledValue(self.0) });
        let kind = unsafe {
            if !LLVMIsAInlineAsm(callee.0).is_null() {
                Call::Assembler
            } else if LLVMIsAFunction(callee.0).is_null() {
                Call::Pointer
            } else if LLVMGetIntrinsicID(callee.0) != 0 {
                Call::Intrinsic(callee.name())
            } else {
                Call::Function(callee.name())
            }
        };
        Some(kind)
    }

    /// Whether a call or the function that it calls has an attribute.
    pub(crate) fn call_has_attribute(self, name: &str) -> bool {
        let kind = attribute(name);
        // SAFETY: an instruction that calls.
        unsafe {
            let at_call = LLVMGetCallSiteEnumAttribute(self.0, LLVMAttributeFunctionIndex, kind);
            let callee = LLVMGetCalledValue(self.0);
            let is_function = !LLVMIsAFunction(callee).is_null();
            !at_call.is_null() || (is_function && Value::of(callee).has_attribute(name))
        }
    }

    pub(crate) fn remove_call_attribute(self, name: &str) {
        // SAFETY: an instruction that calls.
        unsafe { LLVMRemoveCallSiteEnumAttribute(self.0, LLVMAttributeFunctionIndex, attribute(name)) }
    }

    pub(crate) fn set_call_convention(self, convention: u32) {
        // SAFETY: an instruction that calls.
        unsafe { LLVMSetInstructionCallConv(self.0, convention) }
    }

    pub(crate) fn tail_call(self) -> TailCall {
        // SAFETY: only plain calls have a kind.
        let must = self.opcode() == Opcode::LLVMCall
            && unsafe { LLVMGetTailCallKind(self.0) } == LLVMTailCallKind::LLVMTailCallKindMustTail;
        if must { TailCall::Must } else { TailCall::May }
    }

    pub(crate) fn set_volatile(self) {
        // SAFETY: a load or a store.
        unsafe { LLVMSetVolatile(self.0, 1) }
    }

    /// Takes an instruction out of its block and puts it where a builder stands.
    pub(crate) fn move_to(self, builder: &super::Builder<'m>) {
        // SAFETY: the instruction is in a block.
        unsafe {
            LLVMInstructionRemoveFromParent(self.0);
            LLVMInsertIntoBuilder(builder.raw(), self.0);
        }
    }

    // PHI nodes.

    /// The blocks and the values of a PHI node.
    pub(crate) fn incoming(self) -> Vec<(Block<'m>, Value<'m>)> {
        // SAFETY: a PHI node; the numbers are below that of its inputs.
        unsafe {
            let count = LLVMCountIncoming(self.0);
            let input = |at| {
                (Block::of(LLVMGetIncomingBlock(self.0, at)), Value::of(LLVMGetIncomingValue(self.0, at)))
            };
            (0..count).map(input).collect()
        }
    }

    /// Puts a PHI node with other inputs in place of one. The C interface cannot change its inputs.
    pub(crate) fn replace_phi(self, builder: &super::Builder<'m>, incoming: &[(Block<'m>, Value<'m>)]) {
        builder.before(self);
        // SAFETY: a PHI node, which is erased when nothing uses it any more.
        unsafe {
            let new = LLVMBuildPhi(builder.raw(), LLVMTypeOf(self.0), c"".as_ptr());
            if LLVMCanValueUseFastMathFlags(self.0) != 0 {
                LLVMSetFastMathFlags(new, LLVMGetFastMathFlags(self.0));
            }
            for (block, value) in incoming {
                let mut value = if *value == self { new } else { value.0 };
                LLVMAddIncoming(new, &mut value, &mut block.raw(), 1);
            }
            LLVMReplaceAllUsesWith(self.0, new);
            LLVMInstructionEraseFromParent(self.0);
        }
    }

    /// Marks a branch as one whose first way is hardly ever taken.
    pub(crate) fn set_unlikely(self, module: &Module<'_>) {
        // SAFETY: a conditional branch; the metadata is of the same context.
        unsafe {
            let context = module.context();
            let kind = LLVMGetMDKindIDInContext(context, c"prof".as_ptr(), 4);
            let number = |number| LLVMValueAsMetadata(module.number(number).raw());
            let name = LLVMMDStringInContext2(context, c"branch_weights".as_ptr(), 14);
            let mut parts = [name, number(1), number((1 << 20) - 1)];
            let node = LLVMMDNodeInContext2(context, parts.as_mut_ptr(), parts.len());
            LLVMSetMetadata(self.0, kind, LLVMMetadataAsValue(context, node));
        }
    }
}

/// The number of a kind of metadata.
fn metadata_kind(module: &Module<'_>, name: &str) -> u32 {
    // SAFETY: the name is alive.
    unsafe { LLVMGetMDKindIDInContext(module.context(), name.as_ptr().cast(), name.len() as u32) }
}

/// The number of an attribute.
fn attribute(name: &str) -> u32 {
    // SAFETY: the name is alive.
    unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) }
}
