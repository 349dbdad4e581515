//! Modules: reading and writing bitcode, globals, functions, flags, passes.

use super::value::{Type, Value};
use super::{c_string, message, text_of};
use crate::error::{Error, Result};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::transforms::pass_builder::*;
use llvm_sys::{LLVMLinkage, LLVMThreadLocalMode, analysis, bit_reader, bit_writer, error as llvm_error};
use std::ffi::CStr;
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::null_mut;

/// Owns types, constants and modules.
#[derive(Debug)]
pub(crate) struct Context(LLVMContextRef);

impl Context {
    pub(crate) fn new() -> Self {
        // SAFETY: has no requirements.
        Self(unsafe { LLVMContextCreate() })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: created by `new`, and all modules are gone, since they borrow it.
        unsafe { LLVMContextDispose(self.0) }
    }
}

/// A module.
#[derive(Debug)]
pub(crate) struct Module<'c> {
    pub(super) raw: LLVMModuleRef,
    context: PhantomData<&'c Context>,
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { LLVMDisposeModule(self.raw) }
    }
}

impl<'c> Module<'c> {
    /// Reads bitcode.
    pub(crate) fn parse(context: &'c Context, bitcode: &[u8]) -> Result<Self> {
        let (mut raw, mut reason) = (null_mut(), null_mut());
        // SAFETY: the buffer is a copy, which LLVM needs no longer when the function returns. The
        // variant that gives a message is deprecated, but the other one prints it and exits.
        unsafe {
            let bytes = bitcode.as_ptr().cast();
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, bitcode.len(), c"bitcode".as_ptr());
            #[expect(deprecated, reason = "it returns the message")]
            let failed = bit_reader::LLVMParseBitcodeInContext(context.0, buffer, &mut raw, &mut reason);
            LLVMDisposeMemoryBuffer(buffer);
            if failed != 0 {
                return Err(Error::new(message(reason)));
            }
        }
        Ok(Self { raw, context: PhantomData })
    }

    pub(super) fn context(&self) -> LLVMContextRef {
        // SAFETY: the module is alive.
        unsafe { LLVMGetModuleContext(self.raw) }
    }

    pub(crate) fn write_bitcode(&self, path: &Path) -> Result<()> {
        let name = c_string(&path.to_string_lossy());
        // SAFETY: module and name are alive.
        match unsafe { bit_writer::LLVMWriteBitcodeToFile(self.raw, name.as_ptr()) } {
            0 => Ok(()),
            _ => Err(Error::new(format_args!("{} cannot be written", path.display()))),
        }
    }

    /// Fails if the module is not well formed.
    pub(crate) fn verify(&self) -> Result<()> {
        let mut reason = null_mut();
        let action = analysis::LLVMVerifierFailureAction::LLVMReturnStatusAction;
        // SAFETY: the module is alive; the reason is a message to free.
        let (failed, reason) = unsafe {
            let failed = analysis::LLVMVerifyModule(self.raw, action, &mut reason);
            (failed, message(reason))
        };
        if failed == 0 { Ok(()) } else { Err(Error::new(reason)) }
    }

    /// Runs passes, given as `opt -passes` takes them.
    pub(crate) fn run_passes(&self, passes: &str) -> Result<()> {
        let passes = c_string(passes);
        // SAFETY: the module is alive; options and error are freed here.
        unsafe {
            let options = LLVMCreatePassBuilderOptions();
            let failed = LLVMRunPasses(self.raw, passes.as_ptr(), null_mut(), options);
            LLVMDisposePassBuilderOptions(options);
            if failed.is_null() {
                return Ok(());
            }
            let text = llvm_error::LLVMGetErrorMessage(failed);
            let error = Error::new(CStr::from_ptr(text).to_string_lossy());
            llvm_error::LLVMDisposeErrorMessage(text);
            Err(error)
        }
    }

    /// The name of the source.
    pub(crate) fn source(&self) -> String {
        let mut length = 0;
        // SAFETY: the module keeps the text.
        unsafe {
            let text = LLVMGetSourceFileName(self.raw, &mut length);
            text_of(text, length)
        }
    }

    pub(crate) fn triple(&self) -> String {
        // SAFETY: the module keeps the text.
        unsafe { CStr::from_ptr(LLVMGetTarget(self.raw)).to_string_lossy().into_owned() }
    }

    /// The value of a flag that is a number.
    pub(crate) fn flag(&self, name: &str) -> Option<u64> {
        // SAFETY: the metadata of a flag is a value or null.
        unsafe {
            let flag = LLVMGetModuleFlag(self.raw, name.as_ptr().cast(), name.len());
            if flag.is_null() {
                return None;
            }
            let value = LLVMMetadataAsValue(self.context(), flag);
            // A constant is wrapped twice: in metadata, and that in a value.
            let constant = if LLVMIsAConstantInt(value).is_null() && LLVMGetNumOperands(value) == 1 {
                LLVMGetOperand(value, 0)
            } else {
                value
            };
            (!LLVMIsAConstantInt(constant).is_null()).then(|| LLVMConstIntGetZExtValue(constant))
        }
    }

    pub(crate) fn void(&self) -> Type<'_> {
        // SAFETY: the context is alive, as for all types below.
        Type::of(unsafe { LLVMVoidTypeInContext(self.context()) })
    }

    pub(crate) fn int(&self, bits: u32) -> Type<'_> {
        Type::of(unsafe { LLVMIntTypeInContext(self.context(), bits) })
    }

    pub(crate) fn pointer(&self) -> Type<'_> {
        Type::of(unsafe { LLVMPointerTypeInContext(self.context(), 0) })
    }

    /// The constant of 32 bits.
    pub(crate) fn number(&self, number: u32) -> Value<'_> {
        self.int(32).number(number.into())
    }

    /// All functions, with declarations.
    pub(crate) fn functions(&self) -> Vec<Value<'_>> {
        // SAFETY: the module is alive and not changed during the iteration.
        let next = |function: &Value<'_>| Value::checked(unsafe { LLVMGetNextFunction(function.raw()) });
        std::iter::successors(Value::checked(unsafe { LLVMGetFirstFunction(self.raw) }), next).collect()
    }

    /// The functions that choose an implementation while the program is loaded.
    pub(crate) fn resolvers(&self) -> Vec<Value<'_>> {
        // SAFETY: as for functions.
        let next = |ifunc: &Value<'_>| Value::checked(unsafe { LLVMGetNextGlobalIFunc(ifunc.raw()) });
        let all = std::iter::successors(Value::checked(unsafe { LLVMGetFirstGlobalIFunc(self.raw) }), next);
        all.filter_map(|ifunc| Value::checked(unsafe { LLVMGetGlobalIFuncResolver(ifunc.raw()) })).collect()
    }

    /// The function with this name.
    pub(crate) fn function(&self, name: &str) -> Option<Value<'_>> {
        // SAFETY: module and name are alive.
        Value::checked(unsafe { LLVMGetNamedFunction(self.raw, c_string(name).as_ptr()) })
    }

    /// Declares a function, unless there is one of this name.
    pub(crate) fn declare(&self, name: &str, of_type: Type<'_>) -> Value<'_> {
        self.function(name).unwrap_or_else(|| self.add_function(name, of_type))
    }

    /// Adds a function. If the name is taken it gets another one.
    pub(crate) fn add_function(&self, name: &str, of_type: Type<'_>) -> Value<'_> {
        // SAFETY: module, name and type are alive.
        Value::of(unsafe { LLVMAddFunction(self.raw, c_string(name).as_ptr(), of_type.raw()) })
    }

    /// A variable of another object that each thread has, at a fixed distance from its register.
    pub(crate) fn thread_local(&self, name: &str, of_type: Type<'_>) -> Value<'_> {
        // SAFETY: module, name and type are alive.
        unsafe {
            let found = LLVMGetNamedGlobal(self.raw, c_string(name).as_ptr());
            if let Some(found) = Value::checked(found) {
                return found;
            }
            let global = LLVMAddGlobal(self.raw, of_type.raw(), c_string(name).as_ptr());
            LLVMSetThreadLocalMode(global, LLVMThreadLocalMode::LLVMInitialExecTLSModel);
            Value::of(global)
        }
    }

    /// Adds a variable that only this module sees.
    pub(crate) fn private(&self, name: &str, initial: Value<'_>, constant: bool, align: u32) -> Value<'_> {
        // SAFETY: module, name and value are alive.
        unsafe {
            let global = LLVMAddGlobal(self.raw, LLVMTypeOf(initial.raw()), c_string(name).as_ptr());
            LLVMSetInitializer(global, initial.raw());
            LLVMSetLinkage(global, LLVMLinkage::LLVMPrivateLinkage);
            LLVMSetGlobalConstant(global, constant.into());
            LLVMSetAlignment(global, align);
            Value::of(global)
        }
    }

    /// A constant of these bytes.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Value<'_> {
        let text = bytes.as_ptr().cast();
        // SAFETY: the bytes are copied.
        Value::of(unsafe { LLVMConstStringInContext2(self.context(), text, bytes.len(), 1) })
    }

    /// Calls a function when the program or library is loaded, before those of higher priority, and of
    /// the same priority in the module.
    pub(crate) fn add_constructor(&self, priority: u32, function: Value<'_>) {
        const NAME: &CStr = c"llvm.global_ctors";
        // SAFETY: the list is an array of structures of three; it is replaced by a longer one.
        unsafe {
            let old = LLVMGetNamedGlobal(self.raw, NAME.as_ptr());
            let data = LLVMConstPointerNull(self.pointer().raw());
            let mut entry = [self.number(priority).raw(), function.raw(), data];
            let entry = LLVMConstStructInContext(self.context(), entry.as_mut_ptr(), 3, 0);
            let mut entries: Vec<LLVMValueRef> = vec![entry];
            if !old.is_null() {
                let list = LLVMGetInitializer(old);
                let count = if list.is_null() { 0 } else { LLVMGetNumOperands(list).max(0) as u32 };
                entries.extend((0..count).map(|at| LLVMGetOperand(list, at)));
                LLVMDeleteGlobal(old);
            }
            let list = LLVMConstArray2(LLVMTypeOf(entry), entries.as_mut_ptr(), entries.len() as u64);
            let global = LLVMAddGlobal(self.raw, LLVMTypeOf(list), NAME.as_ptr());
            LLVMSetInitializer(global, list);
            LLVMSetLinkage(global, LLVMLinkage::LLVMAppendingLinkage);
        }
    }

    /// Writes the lists of constructors and destructors as sections of pointers. The interface has
    /// no way to say that code is not for systems of before 2008, which had other sections.
    pub(crate) fn lower_structors(&self) {
        for (list, section) in [(c"llvm.global_ctors", ".init_array"), (c"llvm.global_dtors", ".fini_array")]
        {
            // SAFETY: an array of structures of priority, function, and what it belongs to.
            unsafe {
                let global = LLVMGetNamedGlobal(self.raw, list.as_ptr());
                if global.is_null() {
                    continue;
                }
                let entries = LLVMGetInitializer(global);
                let count = if entries.is_null() { 0 } else { LLVMGetNumOperands(entries).max(0) as u32 };
                for entry in (0..count).map(|at| LLVMGetOperand(entries, at)) {
                    self.lower_structor(entry, section);
                }
                LLVMDeleteGlobal(global);
            }
        }
    }

    /// # Safety
    ///
    /// The entry must be one of a list of constructors.
    unsafe fn lower_structor(&self, entry: LLVMValueRef, section: &str) {
        const DEFAULT_PRIORITY: u64 = 65535;
        // SAFETY: as the caller promises; an entry without function, or of zeros, is left out.
        unsafe {
            if LLVMGetNumOperands(entry) < 2 || LLVMIsNull(LLVMGetOperand(entry, 1)) != 0 {
                return;
            }
            let priority = LLVMConstIntGetZExtValue(LLVMGetOperand(entry, 0));
            let function = Value::of(LLVMGetOperand(entry, 1));
            let pointer = self.private("loopfold_rt.structor", function, false, 8);
            let owner = if LLVMGetNumOperands(entry) > 2 { LLVMGetOperand(entry, 2) } else { null_mut() };
            if !owner.is_null() && !LLVMIsAGlobalObject(owner).is_null() {
                llvm_sys::comdat::LLVMSetComdat(pointer.raw(), llvm_sys::comdat::LLVMGetComdat(owner));
            }
            match priority {
                DEFAULT_PRIORITY => pointer.set_section(section),
                priority => pointer.set_section(&format!("{section}.{priority}")),
            }
        }
    }
}
