//! Code generation for the machine that a module is for.

use super::{Module, c_string, message};
use crate::error::{Error, Result};
use llvm_sys::target::*;
use llvm_sys::target_machine::*;
pub(crate) use llvm_sys::target_machine::{LLVMCodeModel as CodeModel, LLVMRelocMode as Relocation};
use std::path::Path;
use std::ptr::null_mut;

/// Generates code.
#[derive(Debug)]
pub(crate) struct Machine(LLVMTargetMachineRef);

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { LLVMDisposeTargetMachine(self.0) }
    }
}

impl Machine {
    /// A generator for a target, such as `x86_64-pc-linux-gnu`. Functions name the processor that
    /// they are for themselves.
    pub(crate) fn new(triple: &str, level: u8, relocation: Relocation, model: CodeModel) -> Result<Self> {
        initialize(triple)?;
        let level = match level {
            0 => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            1 => LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
            2 => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
            _ => LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
        };
        let name = c_string(triple);
        let (mut target, mut reason) = (null_mut(), null_mut());
        // SAFETY: the texts are alive, and the target is checked.
        let machine = unsafe {
            if LLVMGetTargetFromTriple(name.as_ptr(), &mut target, &mut reason) != 0 {
                return Err(Error::new(message(reason)));
            }
            let (name, none) = (name.as_ptr(), c"".as_ptr());
            LLVMCreateTargetMachine(target, name, none, none, level, relocation, model)
        };
        match machine.is_null() {
            true => Err(Error::new(format_args!("no code can be generated for {triple}"))),
            false => Ok(Self(machine)),
        }
    }

    /// Writes an object.
    pub(crate) fn write_object(&self, module: &Module<'_>, path: &Path) -> Result<()> {
        let name = c_string(&path.to_string_lossy());
        let mut reason = null_mut();
        let kind = LLVMCodeGenFileType::LLVMObjectFile;
        // SAFETY: machine, module and name are alive; the reason is a message to free.
        unsafe {
            let failed = LLVMTargetMachineEmitToFile(self.0, module.raw, name.as_ptr(), kind, &mut reason);
            if failed != 0 {
                return Err(Error::new(format_args!("{}: {}", path.display(), message(reason))));
            }
        }
        Ok(())
    }
}

/// Makes the generator for a kind of machine known to LLVM.
fn initialize(triple: &str) -> Result<()> {
    // SAFETY: have no requirements.
    match triple.split('-').next().unwrap_or_default() {
        "x86_64" | "i386" | "i586" | "i686" => unsafe {
            LLVMInitializeX86TargetInfo();
            LLVMInitializeX86Target();
            LLVMInitializeX86TargetMC();
            LLVMInitializeX86AsmPrinter();
            LLVMInitializeX86AsmParser();
        },
        "aarch64" | "arm64" => unsafe {
            LLVMInitializeAArch64TargetInfo();
            LLVMInitializeAArch64Target();
            LLVMInitializeAArch64TargetMC();
            LLVMInitializeAArch64AsmPrinter();
            LLVMInitializeAArch64AsmParser();
        },
        other => {
            let text = format_args!("code for {other} is not supported, only for x86-64 and AArch64");
            return Err(Error::new(text));
        }
    }
    Ok(())
}
