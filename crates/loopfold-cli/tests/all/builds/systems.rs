//! make.

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
