//! Generates code, and says what was instrumented.

use crate::error::{Error, Result};
use crate::llvm::{self, CodeModel, Machine, Module, Relocation};
use crate::options::Options;
use std::fmt;

/// Passes behind the insertion: tokens are appended inline, and the number of the path is in
/// registers; what is constant of it then needs no code.
const PASSES: &str = "always-inline,function(mem2reg,early-cse,simplifycfg)";
const PASSES_UNOPTIMISED: &str = "always-inline";

/// Writes an object, or bitcode.
pub(crate) fn write(module: &Module<'_>, options: &Options) -> Result<()> {
    module.run_passes(if options.level == 0 { PASSES_UNOPTIMISED } else { PASSES })?;
    if options.emit_bitcode {
        return module.write_bitcode(&options.output);
    }
    module.lower_structors();
    if options.function_sections {
        let functions = module.functions().into_iter();
        for function in functions.filter(|function| !function.is_declaration() && !function.has_section()) {
            function.set_section(&format!(".text.{}", function.name()));
        }
    }
    let relocation = match module.flag("PIC Level") {
        None | Some(0) => Relocation::LLVMRelocStatic,
        Some(_) => Relocation::LLVMRelocPIC,
    };
    let model = match module.flag("Code Model") {
        None => CodeModel::LLVMCodeModelDefault,
        Some(0) => CodeModel::LLVMCodeModelTiny,
        Some(1) => CodeModel::LLVMCodeModelSmall,
        Some(2) => CodeModel::LLVMCodeModelKernel,
        Some(3) => CodeModel::LLVMCodeModelMedium,
        Some(_) => CodeModel::LLVMCodeModelLarge,
    };
    let machine = Machine::new(&module.triple(), options.level, relocation, model)?;
    machine.write_object(module, &options.output)
}

/// Why bitcode cannot be read, in a line.
pub(crate) fn explain(name: &impl fmt::Display, error: &Error) -> Error {
    let reason = error.to_string();
    let producer = reason.split("Producer: 'LLVM").nth(1).and_then(|rest| rest.split('\'').next());
    let major = producer.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let ours = llvm::version();
    match major {
        Some(major) if major > llvm::MAJOR => Error::new(format_args!(
            "{name}: bitcode of LLVM {major}, but this pass reads only up to LLVM {ours}; \
             use an older clang (LOOPFOLD_CLANG=clang-19), or a loopfold built with a newer Rust"
        )),
        _ => Error::new(format_args!("{name}: {reason} (LLVM {ours})")),
    }
}

/// Prints the functions with their paths.
pub(crate) fn print(module: &loopfold_paths::Module) {
    for function in module.functions() {
        println!("{} {}:{} {} paths", function.name(), function.file(), function.line(), function.paths());
        let graph = function.numbering().graph();
        for id in graph.blocks() {
            let block = function.block(id);
            let edges: Vec<String> = graph
                .edges_of(id)
                .map(|edge| {
                    let value = function.numbering().value(&edge);
                    let goes_on = function.numbering().continues_on(&edge);
                    if goes_on {
                        format!("{}+{value}", edge.to.index())
                    } else {
                        format!("|{}", edge.to.index())
                    }
                })
                .collect();
            let lines = format!("{}-{}", block.first_line, block.last_line);
            println!(
                "  {} lines {lines} {} instructions → {}",
                id.index(),
                block.instructions,
                edges.join(" ")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::explain;
    use crate::error::Error;

    #[test]
    fn bitcode_of_a_newer_version_is_named() {
        let reason = "Unknown attribute kind (105) (Producer: 'LLVM99.1.0' Reader: 'LLVM 22.1.2')";
        let message = explain(&"a.bc", &Error::new(reason)).to_string();
        assert!(
            message.starts_with("a.bc: bitcode of LLVM 99, but") && message.contains("LOOPFOLD_CLANG"),
            "{message}"
        );
        let reason = "Invalid record (Producer: 'LLVM19.1.7' Reader: 'LLVM 22.1.2')";
        assert!(explain(&"a.bc", &Error::new(reason)).to_string().contains(reason));
    }
}
