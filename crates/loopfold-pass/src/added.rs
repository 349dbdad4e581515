//! Which functions are not those of the program: what sanitizers, coverage and profiling add.
//!
//! clang adds them before the pass sees a module, and only their names say where they come from:
//!
//! - constructors and destructors that register the module with the library of a sanitizer. Their
//!   names have a dot, as no name in C or C++ can: `asan.module_ctor`,
//!   `sancov.module_ctor_trace_pc_guard`;
//! - functions that write counts, such as `__llvm_gcov_writeout` and `__llvm_profile_init`, and
//!   checks, such as `__cfi_check_fail`. Names with two underscores are reserved for compilers.
//!
//! Functions by which a program configures a sanitizer (`__asan_default_options`) or is called by it
//! (`__sanitizer_cov_trace_pc_guard`) have reserved names, too. They are left out as well: the library
//! calls them before any constructor, or at each edge of the program.

/// Passes of clang that add constructors and destructors of modules.
const PASSES: &[&str] =
    &["asan", "dfsan", "hwasan", "memprof", "msan", "nsan", "rtsan", "sancov", "tsan", "tysan"];

/// What is added to the name of the pass; a number or the kind of coverage may follow.
const STRUCTORS: &[&str] = &[".module_ctor", ".module_dtor"];

/// What other added functions begin with, and what a sanitizer calls.
const RESERVED: &[&str] = &[
    "__asan_",
    "__cfi_check",
    "__dfsan_",
    "__hwasan_",
    "__llvm_gcov_",
    "__llvm_profile_",
    "__lsan_",
    "__memprof_",
    "__msan_",
    "__nsan_",
    "__rtsan_",
    "__sancov_",
    "__sanitizer_",
    "__tsan_",
    "__tysan_",
    "__ubsan_",
];

/// Whether a function was added.
pub(crate) fn is_added(name: &str) -> bool {
    let is_structor = PASSES
        .iter()
        .filter_map(|pass| name.strip_prefix(pass))
        .any(|rest| STRUCTORS.iter().any(|structor| rest.starts_with(structor)));
    is_structor || RESERVED.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_added;

    #[test]
    fn names() {
        for added in [
            "asan.module_ctor",
            "asan.module_dtor",
            "tsan.module_ctor",
            "sancov.module_ctor_trace_pc_guard",
            "asan.module_ctor.1",
            "__llvm_gcov_writeout",
            "__llvm_profile_register_functions",
            "__cfi_check_fail",
            "__ubsan_default_options",
        ] {
            assert!(is_added(added), "{added}");
        }
        // Clones of functions of the program have a dot, too.
        for own in [
            "main",
            "asan",
            "asan.specialized.1",
            "asan_module_ctor",
            "xasan.module_ctor",
            "_asan_",
            "__init",
        ] {
            assert!(!is_added(own), "{own}");
        }
    }
}
