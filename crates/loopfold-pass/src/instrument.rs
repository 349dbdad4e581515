//! Instruments a module: chooses functions, inserts code, describes and registers them.

use crate::added::is_added;
use crate::error::Result;
use crate::insert::Inserter;
use crate::llvm::{Call, Linkage, Module, Value};
use crate::older_clang;
use crate::options::Options;
use crate::runtime::{Runtime, replace_references};
use crate::shape::Shape;
use loopfold_paths::{Cuts, Function, Kind, Numbering, PATHS_PER_START};

/// What instrumented code contradicts: it writes memory, wherever the function did not.
const CONTRADICTED: &[&str] = &["memory", "speculatable", "nosync"];

/// Instruments a module and returns its description.
pub(crate) fn instrument(module: &Module<'_>, options: &Options) -> Result<loopfold_paths::Module> {
    let loading = run_while_loading(module);
    let chosen = module.functions().into_iter().filter(|function| {
        can_be_instrumented(*function) && !loading.contains(function) && options.selects(&function.name())
    });
    let chosen = chosen.filter_map(|function| Some((function, Shape::read(function)?)));
    let chosen: Vec<(Value<'_>, Shape<'_>)> = chosen.collect();
    replace_references(module);
    older_clang::translate(module);
    forget_contradicted(module);
    let mut functions = Vec::new();
    if !chosen.is_empty() {
        let runtime = Runtime::new(module, chosen.len() as u32);
        for (number, (function, shape)) in chosen.iter().enumerate() {
            let described = describe(*function, shape, options)?;
            let inserter = Inserter::new(module, &runtime, shape, described.numbering());
            inserter.insert(number as u32, options);
            functions.push(described);
        }
        let description = loopfold_paths::Module::new(module.source(), functions);
        runtime.register(&description.encode());
        return Ok(description);
    }
    Ok(loopfold_paths::Module::new(module.source(), functions))
}

/// The functions that choose implementations while the program is loaded, and those of the module that
/// they call: in a program that is linked statically there are no thread-local variables yet.
fn run_while_loading<'m>(module: &'m Module<'_>) -> Vec<Value<'m>> {
    let mut all = module.resolvers();
    let mut next = 0;
    while let Some(&function) = all.get(next) {
        next += 1;
        let blocks = function.blocks().into_iter();
        for call in blocks.flat_map(|block| block.instructions()).filter_map(|one| one.call()) {
            if let Call::Function(name) = call
                && let Some(callee) = module.function(&name)
                && !all.contains(&callee)
            {
                all.push(callee);
            }
        }
    }
    all
}

/// Whether a function has code of its own that may be changed.
fn can_be_instrumented(function: Value<'_>) -> bool {
    let name = function.name();
    !function.is_declaration()
        && function.linkage() != Linkage::LLVMAvailableExternallyLinkage
        && !name.starts_with("loopfold_rt")
        && !name.starts_with("llvm.")
        && !is_added(&name)
        && !is_allocator_shim(&name)
        && !["naked", "noprofile", "presplitcoroutine"].iter().any(|name| function.has_attribute(name))
}

/// Whether a function only passes calls of Rust's allocator on.
fn is_allocator_shim(name: &str) -> bool {
    name.starts_with("_RNv") && name.contains("7___rustc")
}

fn describe(function: Value<'_>, shape: &Shape<'_>, options: &Options) -> Result<Function> {
    let graph = shape.graph()?;
    let (kind, cuts) = match options.blocks {
        true => (Kind::Blocks, Cuts::everywhere(&graph)),
        false => (Kind::Paths, Cuts::choose(&graph, &shape.endings, PATHS_PER_START)),
    };
    let numbering = Numbering::new(graph, cuts)?;
    let (file, line) = function.source().unwrap_or_default();
    let blocks = shape.bodies.iter().map(|body| body.about).collect();
    Ok(Function::new(function.name(), file.into(), line, kind, blocks, numbering)?)
}

/// Removes attributes by which a later pass could move or remove calls of instrumented functions.
fn forget_contradicted(module: &Module<'_>) {
    for function in module.functions() {
        if function.name().starts_with("llvm.") {
            continue;
        }
        CONTRADICTED.iter().for_each(|attribute| function.remove_attribute(attribute));
        let blocks = function.blocks();
        let instructions = blocks.iter().flat_map(|block| block.instructions());
        let calls = instructions
            .filter(|instruction| matches!(instruction.call(), Some(Call::Function(_) | Call::Pointer)));
        for call in calls {
            CONTRADICTED.iter().for_each(|attribute| call.remove_call_attribute(attribute));
        }
    }
}
