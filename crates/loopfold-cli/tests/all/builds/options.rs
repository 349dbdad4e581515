//! Options of compilers that change what is linked, or what else is in a module: position-independent
//! code, sanitizers, coverage, constructors.

use super::{Project, calls_of_app};

/// The linker fails at relocations in code, and at whatever it warns of.
const STRICT: &str = "-Wl,-z,text -Wl,--fatal-warnings";

#[test]
fn code_has_no_relocations_when_the_program_is_loaded() {
    let project = Project::new(&[]);
    for options in ["", "-fPIE -pie", "-fno-pie -no-pie", "-O2 -fsanitize=undefined", "-fsanitize=undefined"]
    {
        project.run(&format!("loopfold-cc {options} {STRICT} app.c shapes.c -o app"));
        assert_eq!(project.check("./app"), calls_of_app(), "{options}");
        project.run(&format!("loopfold-cc -c {options} shapes.c -o shapes.o"));
        project.run(&format!("loopfold-c++ {options} {STRICT} app.cpp shapes.o -o plane"));
        project.check("./plane");
    }
    for options in ["", "-fsanitize=undefined"] {
        project.run(&format!("loopfold-c++ -fPIC -shared {options} {STRICT} app.cpp -o libapp.so"));
    }
}

#[test]
fn types_of_called_functions_are_checked_as_by_clang() {
    let source = "static int one(int number) { return number; }\n\
        int (*volatile right)(int) = one;\nlong (*volatile wrong)(char *) = (long (*)(char *))one;\n\
        int main(int count, char **names) { return count > 1 ? wrong(names[0]) == 0 : right(0); }\n";
    let project = Project::new(&[("types.cpp", source)]);
    for options in ["-O0", "-O1", "-O1 -fPIC -fcf-protection=full"] {
        project.run(&format!("loopfold-c++ {options} -fsanitize=undefined types.cpp -o types"));
        assert!(project.output("./types").stderr.is_empty(), "{options}");
        let errors = String::from_utf8(project.output("./types wrong").stderr).unwrap();
        assert!(errors.contains("incorrect function type 'long (*)(char *)'"), "{options}: {errors}");
    }
}

#[test]
fn only_functions_of_the_program_are_recorded() {
    let project = Project::new(&[]);
    let hook = "const char *__asan_default_options(void) { return \"detect_leaks=0\"; }\n";
    std::fs::write(project.path("hook.c"), hook).unwrap();
    for options in [
        "-fsanitize=address",
        "-O2 -fsanitize=address,undefined -fsanitize-coverage=trace-pc-guard",
        "-fsanitize=thread",
        "--coverage",
        "-fprofile-instr-generate -fcoverage-mapping",
    ] {
        project.run(&format!("loopfold-cc {options} app.c shapes.c hook.c -o app"));
        assert_eq!(project.check("./app"), calls_of_app(), "{options}");
    }
}

#[test]
fn coverage_is_beside_the_objects() {
    let project = Project::new(&[]);
    project.run("mkdir out; loopfold-cc --coverage -c app.c -o out/main.o");
    project.run("loopfold-cc --coverage -fprofile-dir=$PWD/data out/main.o shapes.c -o app; ./app");
    let data = format!("data{}", project.path("shapes.gcda").display());
    for name in ["out/main.gcno", "out/main.gcda", "shapes.gcno", &data] {
        assert!(project.path(name).is_file(), "{name}");
    }
}

#[test]
fn functions_have_names_before_any_constructor() {
    // The constructor is in the first object; what it calls, in the last.
    let first = "int half(int);\n__attribute__((constructor(1))) static void first(void) { half(2); }\n";
    let project = Project::new(&[("first.c", first)]);
    for options in ["-O0", "-O2", "-fsanitize=address"] {
        project.run(&format!("loopfold-cc -w {options} first.c app.c shapes.c -o app"));
        let (_, recorded) = project.record("./app");
        let mut expected = calls_of_app();
        expected.insert("first".to_string(), 1);
        *expected.get_mut("half").unwrap() += 1;
        assert_eq!(recorded, expected, "{options}");
    }
}
