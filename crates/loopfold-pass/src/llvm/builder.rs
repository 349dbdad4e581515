//! Inserts instructions.

use super::value::{Block, Type, Value};
use super::{Module, c_string};
use llvm_sys::LLVMIntPredicate;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::marker::PhantomData;

const UNNAMED: *const std::ffi::c_char = c"".as_ptr();

/// A place in a function, and what can be inserted there. Instructions get the source line of the
/// one that they are put in front of.
#[derive(Debug)]
pub(crate) struct Builder<'m>(LLVMBuilderRef, PhantomData<&'m Module<'m>>);

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { LLVMDisposeBuilder(self.0) }
    }
}

impl<'m> Builder<'m> {
    pub(crate) fn new(module: &'m Module<'_>) -> Self {
        // SAFETY: the context is alive.
        Self(unsafe { LLVMCreateBuilderInContext(module.context()) }, PhantomData)
    }

    pub(super) fn raw(&self) -> LLVMBuilderRef {
        self.0
    }

    /// Goes in front of an instruction.
    pub(crate) fn before(&self, instruction: Value<'m>) {
        // SAFETY: an instruction in a block, as everything that is used below is alive.
        unsafe { LLVMPositionBuilderBefore(self.0, instruction.raw()) }
    }

    /// Goes to the end of a block.
    pub(crate) fn at_end(&self, block: Block<'m>) {
        unsafe { LLVMPositionBuilderAtEnd(self.0, block.raw()) }
    }

    pub(crate) fn alloca(&self, of_type: Type<'m>, name: &str) -> Value<'m> {
        Value::of(unsafe { LLVMBuildAlloca(self.0, of_type.raw(), c_string(name).as_ptr()) })
    }

    pub(crate) fn load(&self, of_type: Type<'m>, from: Value<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildLoad2(self.0, of_type.raw(), from.raw(), UNNAMED) })
    }

    pub(crate) fn store(&self, value: Value<'m>, to: Value<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildStore(self.0, value.raw(), to.raw()) })
    }

    pub(crate) fn add(&self, one: Value<'m>, other: Value<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildAdd(self.0, one.raw(), other.raw(), UNNAMED) })
    }

    pub(crate) fn or(&self, one: Value<'m>, other: Value<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildOr(self.0, one.raw(), other.raw(), UNNAMED) })
    }

    /// The address of an element.
    pub(crate) fn element(&self, of_type: Type<'m>, base: Value<'m>, index: Value<'m>) -> Value<'m> {
        let mut index = index.raw();
        Value::of(unsafe { LLVMBuildInBoundsGEP2(self.0, of_type.raw(), base.raw(), &mut index, 1, UNNAMED) })
    }

    pub(crate) fn equal(&self, one: Value<'m>, other: Value<'m>) -> Value<'m> {
        let predicate = LLVMIntPredicate::LLVMIntEQ;
        Value::of(unsafe { LLVMBuildICmp(self.0, predicate, one.raw(), other.raw(), UNNAMED) })
    }

    /// Whether one number is less than another, without signs.
    pub(crate) fn less(&self, one: Value<'m>, other: Value<'m>) -> Value<'m> {
        let predicate = LLVMIntPredicate::LLVMIntULT;
        Value::of(unsafe { LLVMBuildICmp(self.0, predicate, one.raw(), other.raw(), UNNAMED) })
    }

    pub(crate) fn subtract(&self, one: Value<'m>, other: Value<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildSub(self.0, one.raw(), other.raw(), UNNAMED) })
    }

    /// A pointer as a number.
    pub(crate) fn address(&self, pointer: Value<'m>, number: Type<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildPtrToInt(self.0, pointer.raw(), number.raw(), UNNAMED) })
    }

    pub(crate) fn branch(&self, to: Block<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildBr(self.0, to.raw()) })
    }

    pub(crate) fn branch_if(&self, condition: Value<'m>, then: Block<'m>, other: Block<'m>) -> Value<'m> {
        Value::of(unsafe { LLVMBuildCondBr(self.0, condition.raw(), then.raw(), other.raw()) })
    }

    pub(crate) fn return_void(&self) {
        unsafe { LLVMBuildRetVoid(self.0) };
    }

    pub(crate) fn call(&self, of_type: Type<'m>, function: Value<'m>, arguments: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<LLVMValueRef> = arguments.iter().map(|argument| argument.raw()).collect();
        let count = raw.len() as u32;
        let call = unsafe {
            LLVMBuildCall2(self.0, of_type.raw(), function.raw(), raw.as_mut_ptr(), count, UNNAMED)
        };
        Value::of(call)
    }
}
