//! What a compiler is asked to do: reads the arguments of gcc and clang.
//!
//! Only what decides how objects are made is looked at: inputs with their languages, outputs, the
//! stage at which to stop, dependency files, optimisation, line information. Everything else is
//! passed on as it is. An option that takes its value from the next argument must be known, or the
//! value would be an input.

/// Options whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "-I",
    "-D",
    "-U",
    "-include",
    "-include-pch",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-iwithsysroot",
    "-cxx-isystem",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-L",
    "-l",
    "-T",
    "-u",
    "-z",
    "-e",
    "-h",
    "-R",
    "-rpath",
    "-Xlinker",
    "-Xclang",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xanalyzer",
    "-Xarch_host",
    "-mllvm",
    "-arch",
    "-target",
    "--target",
    "-framework",
    "--param",
    "-aux-info",
    "-B",
    "-A",
    "-G",
    "-b",
    "-V",
    "--sysroot",
    "-gcc-toolchain",
    "--serialize-diagnostics",
    "-serialize-diagnostics",
    "-dumpbase",
    "-dumpdir",
    "-soname",
    "-main-file-name",
    "--config",
    "-working-directory",
];

/// Options that ask something instead of compiling.
const QUERIES: &[&str] = &[
    "--version",
    "--help",
    "-###",
    "-dumpversion",
    "-dumpmachine",
    "-dumpfullversion",
    "-dumpspecs",
    "-qversion",
    "-V",
    "-fsyntax-only",
    "--analyze",
    "-Xclang=-analyze",
    "--precompile",
    "-cc1",
    "-cc1as",
];

/// Options that would make something else than we expect of the compiler.
const REMOVED: &[&str] =
    &["-flto", "-ffat-lto-objects", "-fuse-linker-plugin", "-fembed-bitcode", "-gsplit-dwarf"];

/// Where to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Something that makes no object: left to clang.
    Other,
    /// `-c`.
    Objects,
    /// A program or library.
    Link,
}

/// An input of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) path: String,
    /// The language of `-x`.
    pub(super) language: Option<String>,
}

/// An argument, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Input(Input),
    /// An option, with its value if that is an argument of its own.
    Option(Vec<String>),
}

/// The arguments, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) stage: Stage,
    pub(super) output: Option<String>,
    /// Inputs and options without stage, output and language.
    pub(super) arguments: Vec<Argument>,
}

/// What kind of file an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A source that becomes bitcode.
    Source,
    /// A source of the assembler.
    Assembler,
    /// A header.
    Header,
    /// Something for the linker.
    Linked,
}

impl Input {
    pub(super) fn kind(&self) -> Kind {
        if let Some(language) = self.language.as_deref() {
            return match language {
                "assembler" | "assembler-with-cpp" => Kind::Assembler,
                header if header.ends_with("-header") => Kind::Header,
                _ => Kind::Source,
            };
        }
        let extension = self.path.rsplit('/').next().and_then(|name| Some(name.rsplit_once('.')?.1));
        match extension.unwrap_or_default() {
            "c" | "cc" | "cp" | "cpp" | "CPP" | "cxx" | "c++" | "C" | "i" | "ii" | "m" | "mm" | "ll"
            | "bc" => Kind::Source,
            "s" | "S" | "sx" | "asm" => Kind::Assembler,
            "h" | "hh" | "H" | "hp" | "hpp" | "hxx" | "h++" | "tcc" => Kind::Header,
            _ => Kind::Linked,
        }
    }

    /// The arguments that name this input alone.
    pub(super) fn arguments(&self) -> Vec<String> {
        let language = self.language.as_ref().map(|language| ["-x".to_string(), language.clone()]);
        language.into_iter().flatten().chain([self.path.clone()]).collect()
    }
}

impl CommandLine {
    pub(super) fn parse(arguments: &[String]) -> Self {
        let mut line = Self { stage: Stage::Link, output: None, arguments: Vec::new() };
        let mut language = None;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "-c" if line.stage == Stage::Link => line.stage = Stage::Objects,
                "-c" => {}
                "-o" | "--output" => line.output = rest.next().cloned(),
                "-x" => language = rest.next().cloned().filter(|language| language != "none"),
                "-E" | "-S" | "-M" | "-MM" => line.stage = Stage::Other,
                query if is_query(query) => line.stage = Stage::Other,
                removed if is_removed(removed) => {}
                option if WITH_VALUE.contains(&option) => {
                    let option = [argument.clone()].into_iter().chain(rest.next().cloned());
                    line.arguments.push(Argument::Option(option.collect()));
                }
                option if option.len() > 1 && option.starts_with('-') => {
                    line.attached(option, &mut language);
                }
                _ => line
                    .arguments
                    .push(Argument::Input(Input { path: argument.clone(), language: language.clone() })),
            }
        }
        let headers = line.inputs().any(|input| input.kind() == Kind::Header);
        if headers || line.inputs().next().is_none() {
            line.stage = Stage::Other;
        }
        line
    }

    /// An option with its value attached, or with none.
    fn attached(&mut self, option: &str, language: &mut Option<String>) {
        if let Some(name) = option.strip_prefix("-x") {
            *language = Some(name.to_string()).filter(|name| name != "none");
        } else if let Some(output) = option.strip_prefix("-o").filter(|_| !is_long_with_o(option)) {
            self.output = Some(output.to_string());
        } else {
            self.arguments.push(Argument::Option(vec![option.to_string()]));
        }
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Input(input) => Some(input),
            Argument::Option(_) => None,
        })
    }

    /// All options, with their values.
    pub(super) fn options(&self) -> impl Iterator<Item = &str> {
        let options = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Input(_) => None,
            Argument::Option(parts) => Some(parts),
        });
        options.flatten().map(String::as_str)
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.options().any(|other| other == option)
    }

    /// The level of optimisation for generating code.
    pub(super) fn level(&self) -> u8 {
        match self.options().filter(|option| option.starts_with("-O")).last() {
            None | Some("-O0") => 0,
            Some("-O" | "-O1" | "-Og") => 1,
            Some("-O3" | "-O4" | "-Ofast") => 3,
            Some(_) => 2,
        }
    }

    /// Whether each function gets a section.
    pub(super) fn function_sections(&self) -> bool {
        let last = self.options().filter(|option| option.ends_with("function-sections")).last();
        last == Some("-ffunction-sections")
    }

    /// Whether the arguments say what debug information there shall be.
    pub(super) fn says_debug(&self) -> bool {
        let others = ["-gcc-toolchain", "-gz", "-gdwarf", "-gcolumn", "-gno-", "-grecord", "-gstrict"];
        let debug = self.options().filter(|option| option.starts_with("-g"));
        debug.into_iter().any(|option| !others.iter().any(|other| option.starts_with(other)))
    }

    /// Whether programs count their blocks for gcov.
    pub(super) fn has_coverage(&self) -> bool {
        ["--coverage", "-coverage", "-fprofile-arcs", "-ftest-coverage"].iter().any(|option| self.has(option))
    }

    /// The folder under which these counts are written, with their whole paths.
    pub(super) fn profile_folder(&self) -> &str {
        self.options().filter_map(|option| option.strip_prefix("-fprofile-dir=")).last().unwrap_or_default()
    }

    /// Whether a dependency file is written beside the object, without a name of its own.
    pub(super) fn dependencies(&self) -> Dependencies {
        let writes = |option: &str| matches!(option, "-MD" | "-MMD") || option.starts_with("-Wp,-M");
        let named = |option: &str| option.starts_with("-MF") || option.starts_with("-Wp,-M");
        let targets = |option: &str| {
            option.starts_with("-MT")
                || option.starts_with("-MQ")
                || option.contains(",-MT")
                || option.contains(",-MQ")
        };
        Dependencies {
            needs_target: self.options().any(writes) && !self.options().any(targets),
            needs_file: self.options().any(writes) && !self.options().any(named),
        }
    }
}

/// What clang would derive from the name of an output that is not the real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dependencies {
    pub(super) needs_target: bool,
    pub(super) needs_file: bool,
}

fn is_query(option: &str) -> bool {
    QUERIES.contains(&option)
        || option.starts_with("-print-")
        || option.starts_with("--print-")
        || option.starts_with("--help")
}

fn is_removed(option: &str) -> bool {
    REMOVED.iter().any(|removed| {
        option.strip_prefix(removed).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// Whether an option begins with `-o` by chance.
fn is_long_with_o(option: &str) -> bool {
    option.starts_with("-objc") || option.starts_with("-object")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> CommandLine {
        CommandLine::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    fn kinds(line: &str) -> Vec<(String, Kind)> {
        parse(line).inputs().map(|input| (input.path.clone(), input.kind())).collect()
    }

    #[test]
    fn stages() {
        for (line, stage) in [
            ("-c a.c", Stage::Objects),
            ("a.c -o a", Stage::Link),
            ("a.o b.a -lm", Stage::Link),
            ("-E a.c", Stage::Other),
            ("-c -E a.c", Stage::Other),
            ("-M a.c", Stage::Other),
            ("-MD -c a.c", Stage::Objects),
            ("-S a.c", Stage::Other),
            ("--version", Stage::Other),
            ("-v", Stage::Other),
            ("-print-prog-name=ld a.c", Stage::Other),
            ("-c a.h", Stage::Other),
            ("-x c-header -c a", Stage::Other),
            ("-fsyntax-only a.c", Stage::Other),
        ] {
            assert_eq!(parse(line).stage, stage, "{line}");
        }
    }

    #[test]
    fn inputs_and_languages() {
        let of = |path: &str, kind| (path.to_string(), kind);
        assert_eq!(kinds("-I c.c -D x.c a.c -o b.c -include d.c"), [of("a.c", Kind::Source)]);
        assert_eq!(
            kinds("-x c - -x none a.o -xassembler b"),
            [of("-", Kind::Source), of("a.o", Kind::Linked), of("b", Kind::Assembler)]
        );
        assert_eq!(
            kinds("dir.c/x a.S libz.so.1"),
            [of("dir.c/x", Kind::Linked), of("a.S", Kind::Assembler), of("libz.so.1", Kind::Linked)]
        );
    }

    #[test]
    fn outputs_levels_and_debug_information() {
        assert_eq!(parse("a.c -oprog").output.as_deref(), Some("prog"));
        assert_eq!(parse("a.c -o prog").output.as_deref(), Some("prog"));
        for (line, level) in [("a.c", 0), ("-O2 -O0 a.c", 0), ("-O a.c", 1), ("-Os a.c", 2), ("-O3 a.c", 3)] {
            assert_eq!(parse(line).level(), level, "{line}");
        }
        assert!(
            parse("-g a.c").says_debug() && parse("-g0 a.c").says_debug() && parse("-ggdb3 a.c").says_debug()
        );
        assert!(!parse("-O2 -gz a.c").says_debug());
        assert!(parse("-ffunction-sections a.c").function_sections());
        assert!(!parse("-ffunction-sections -fno-function-sections a.c").function_sections());
        assert!(parse("-flto=thin -flto -c a.c").options().next().is_none());
    }

    #[test]
    fn dependency_files() {
        let of = |line| {
            let Dependencies { needs_target, needs_file } = parse(line).dependencies();
            (needs_target, needs_file)
        };
        assert_eq!(of("-c a.c"), (false, false));
        assert_eq!(of("-MD -c a.c"), (true, true));
        assert_eq!(of("-MMD -MF x.d -c a.c"), (true, false));
        assert_eq!(of("-MD -MT x.o -c a.c"), (false, true));
        assert_eq!(of("-Wp,-MD,x.d -c a.c"), (true, false));
    }
}
