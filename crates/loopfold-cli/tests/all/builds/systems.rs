//! make, autoconf with automake and libtool, CMake, meson and cargo.

use super::{Project, calls_of_app};

#[test]
fn make_with_the_compiler_in_a_string() {
    // Many programs can print how they were built. A compiler of two words ends there.
    let makefile = "CFLAGS = -O2 -DCONFIG_CC=\\\"$(CC)\\\"\n\
        app: app.o version.o libshapes.a\n\t$(CC) $(CFLAGS) -o $@ app.o version.o -L. -lshapes\n\
        libshapes.a: shapes.o\n\tar rcs $@ $^\n";
    let version = "#include <stdio.h>\n\
        __attribute__((constructor, no_profile_instrument_function)) static void version(void)\n\
        { puts(\"built with \" CONFIG_CC); }\n";
    let project = Project::new(&[("Makefile", makefile), ("version.c", version)]);
    project.run("make CC=loopfold-cc");
    assert!(project.run("./app").contains("built with loopfold-cc\n"));
    assert_eq!(project.check("./app"), calls_of_app());
    let two_words = project.output("make --always-make CC='loopfold cc'");
    assert!(!two_words.status.success());
}

#[test]
fn autoconf_automake_and_libtool_with_an_export_list() {
    let configure = "AC_INIT([shapes], [1.0])\nAC_CONFIG_AUX_DIR([tools])\n\
        AM_INIT_AUTOMAKE([foreign no-dist])\nAC_PROG_CC\nAM_PROG_AR\n\
        LT_INIT\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n";
    let makefile = "AM_CFLAGS = -O2\nlib_LTLIBRARIES = libshapes.la\nlibshapes_la_SOURCES = shapes.c\n\
        libshapes_la_LDFLAGS = -export-symbols $(srcdir)/shapes.sym -version-info 2:1:0\n\
        bin_PROGRAMS = app whole\napp_SOURCES = app.c\napp_LDADD = libshapes.la\n\
        whole_SOURCES = app.c\nwhole_LDADD = libshapes.la\nwhole_LDFLAGS = -static\n";
    let files = [("configure.ac", configure), ("Makefile.am", makefile), ("shapes.sym", "area\nedges\n")];
    let project = Project::new(&files);
    project.run("autoreconf --install");
    project.run("mkdir out && cd out && CC=loopfold-cc ../configure --prefix=$PWD/installed && make install");
    assert_eq!(project.check("out/whole"), calls_of_app());
    // The script of libtool that starts the program, and the program itself.
    for program in ["out/app", "out/installed/bin/app"] {
        // The library has a run-time library of its own, as its list hides the symbols of that; both
        // append to one lane.
        assert_eq!(project.check(program), calls_of_app());
    }
    let exported = project.run("nm --dynamic --defined-only --format=just-symbols out/.libs/libshapes.so");
    let names: Vec<&str> = exported.lines().filter(|name| !name.starts_with("loopfold_rt")).collect();
    assert_eq!(names, ["area", "edges"]);
}

#[test]
fn cmake_with_c_and_cpp() {
    let lists = "cmake_minimum_required(VERSION 3.13)\nproject(shapes C CXX)\n\
        add_library(shapes SHARED shapes.c)\n\
        add_executable(app app.c)\ntarget_link_libraries(app shapes)\n\
        add_executable(plane app.cpp)\ntarget_link_libraries(plane shapes)\n";
    let project = Project::new(&[("CMakeLists.txt", lists)]);
    project
        .run("CC=loopfold-cc CXX=loopfold-c++ cmake -B out -DCMAKE_BUILD_TYPE=Release && cmake --build out");
    assert_eq!(project.check("out/app"), calls_of_app());
    let calls = project.check("out/plane");
    assert_eq!((calls["plane::Shape::measure()"], calls["edges"]), (300, 150));
}

#[test]
fn meson_and_ninja() {
    let build = "project('shapes', 'c', default_options: ['buildtype=debugoptimized'])\n\
        shapes = static_library('shapes', 'shapes.c')\n\
        app = executable('app', 'app.c', link_with: shapes)\ntest('app', app)\n";
    let project = Project::new(&[("meson.build", build)]);
    project.run("CC=loopfold-cc meson setup out && ninja -C out && meson test -C out");
    assert_eq!(project.check("out/app"), calls_of_app());
}

#[test]
fn cargo() {
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
    };
    let shapes = "use std::sync::atomic::{AtomicU64, Ordering::Relaxed};\n\
        pub static CALLS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];\n\
        #[inline(never)]\npub fn half(number: u32) -> u32 { CALLS[0].fetch_add(1, Relaxed); number / 2 }\n\
        #[inline(never)]\npub fn area(size: u32) -> u32 {\n    CALLS[1].fetch_add(1, Relaxed);\n    \
        if size % 3 == 0 { size } else { half(size * size) }\n}\n";
    let app = "fn main() {\n    let sum: u32 = (0..500).map(shapes::area).sum();\n    assert!(sum > 0);\n    \
        for (name, calls) in [\"half\", \"area\"].iter().zip(&shapes::CALLS) {\n        \
        println!(\"{} shapes::{name}\", calls.load(std::sync::atomic::Ordering::Relaxed));\n    }\n}\n";
    let project = Project::new(&[
        ("Cargo.toml", &manifest("app", "[dependencies]\nshapes = { path = \"shapes\" }\n[workspace]\n")),
        ("src/main.rs", app),
        ("shapes/Cargo.toml", &manifest("shapes", "")),
        ("shapes/src/lib.rs", shapes),
    ]);
    project.run("loopfold cargo build --release --offline --target-dir out");
    let (printed, mut recorded) = project.record("out/*/release/app");
    // The generic functions of the standard library are instrumented, too.
    recorded.retain(|name, _| name.starts_with("shapes::"));
    assert_eq!(recorded, printed);
    assert_eq!((recorded["shapes::area"], recorded["shapes::half"]), (500, 333));
}
