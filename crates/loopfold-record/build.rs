//! Compiles the run-time library of instrumented programs to one object, which the crate embeds.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=src/paths/runtime");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let object = folder.join("runtime.o");
    // Elsewhere no program can be recorded.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        compile(&object);
    } else {
        std::fs::write(&object, []).expect("the output folder takes a file");
    }
}

fn compile(object: &Path) {
    let objects = cc::Build::new()
        .file("src/paths/runtime/runtime.c")
        .std("gnu11")
        .opt_level(2)
        .debug(false)
        .pic(true)
        .flag("-fvisibility=hidden")
        // A loop must not become a call of the program's memset.
        .flag("-fno-builtin")
        .flag_if_supported("-fno-tree-loop-distribute-patterns")
        .flag("-fno-stack-protector")
        .extra_warnings(true)
        .warnings_into_errors(false)
        .compile_intermediates();
    let [compiled] = &objects[..] else { panic!("one source is one object") };
    std::fs::copy(compiled, object).expect("the object can be copied");
}
