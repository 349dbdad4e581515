//! Translates what older versions of clang write into bitcode and our LLVM reads differently.
//!
//! `-fsanitize=function`, a part of `-fsanitize=undefined` in C++, describes the type of a function
//! by two values (`!func_sanitize`), and code that calls a pointer looks at them. Since clang 17 both
//! are numbers, and lie in front of the function. Up to clang 16 the second is a pointer to type
//! information, and the code expects both behind the address of the function, the pointer as the
//! distance from there. Our LLVM would write the pointer itself into the code, in front of the
//! function: an address that only the dynamic linker knows (`DT_TEXTREL`), and that nobody reads. So
//! the values become prologue data, which is where that code looks. Takes O(functions).

use crate::llvm::Module;

const FUNCTION_TYPE: &str = "func_sanitize";

/// Translates a module.
pub(crate) fn translate(module: &Module<'_>) {
    for function in module.functions() {
        if let [signature, type_information] = function.metadata(module, FUNCTION_TYPE)[..]
            && type_information.is_global()
        {
            // LLVM follows the uses of pointers whose own address does not matter, to find entries of the
            // global offset table. This one is used by a function, and that by the distance: a circle.
            type_information.keep_address();
            let distance = type_information.distance_from(module, function);
            function.set_prologue(module, &[signature, distance]);
            function.erase_metadata(module, FUNCTION_TYPE);
        }
    }
}
