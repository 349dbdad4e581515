//! Compiles programs in several ways, runs them, and decodes what they recorded.

use loopfold_paths::{Kind, Module};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const PASS: &str = env!("CARGO_BIN_EXE_loopfold-pass");

/// A program of the folder `programs`.
pub(crate) fn program(name: &str) -> PathBuf {
    tests().join("programs").join(name)
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all")
}

/// All versions of clang that are installed.
pub(crate) fn clangs() -> Vec<String> {
    let names = (14..=19).map(|version| format!("clang-{version}")).chain(["clang".to_string()]);
    let path = std::env::var_os("PATH").unwrap();
    let exists = |name: &String| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let found: Vec<String> = names.filter(exists).collect();
    assert!(!found.is_empty(), "install clang-16");
    found
}

/// Runs a command that must succeed, and returns what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The pass.
pub(crate) fn pass() -> Command {
    Command::new(PASS)
}

/// What a program recorded: for each thread, in order.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) tokens: BTreeMap<u32, Vec<u32>>,
    /// Names of blocks that were recorded without the pass, or by its check.
    pub(crate) blocks: BTreeMap<u32, Vec<String>>,
    modules: Vec<(u32, Module)>,
    pub(crate) printed: String,
}

/// A folder in which a program is compiled and executed.
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Instruments bitcode.
    pub(crate) fn instrument(&self, bitcode: &Path, options: &[&str]) -> PathBuf {
        let object = self.path("instrumented.o");
        run(pass().arg(bitcode).arg("-o").arg(&object).args(options));
        object
    }

    /// Links with the run-time library for tests, and executes.
    pub(crate) fn execute(&self, inputs: &[&Path]) -> Recorded {
        let runtime = self.path("runtime.o");
        if !runtime.exists() {
            let source = tests().join("runtime.c");
            run(Command::new("cc").args(["-c", "-O1"]).arg(source).arg("-o").arg(&runtime));
        }
        let program = self.path("program");
        let mut link = Command::new("c++");
        run(link.arg("-o").arg(&program).args(inputs).arg(&runtime).args(["-pthread", "-ldl", "-lm"]));
        let out = self.path("out");
        let printed = run(Command::new(&program).env("LOOPFOLD_TEST_OUT", &out));
        let recorded = self.read(&out, printed);
        std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("out"))
            .for_each(|path| std::fs::remove_file(path).unwrap());
        recorded
    }

    fn read(&self, out: &Path, printed: String) -> Recorded {
        let mut recorded = Recorded { printed, ..Recorded::default() };
        for line in std::fs::read_to_string(out).unwrap().lines() {
            let [kind, thread, what] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let thread = thread.parse().unwrap();
            match kind {
                "T" => recorded.tokens.entry(thread).or_default().push(what.parse().unwrap()),
                _ => recorded.blocks.entry(thread).or_default().push(what.to_string()),
            }
        }
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let first = path.file_name().unwrap().to_str().unwrap().strip_prefix("out.");
            if let Some(first) = first {
                let module = Module::decode(&std::fs::read(&path).unwrap()).unwrap();
                recorded.modules.push((first.parse().unwrap(), module));
            }
        }
        recorded
    }
}

impl Recorded {
    /// The blocks of each thread, as the paths have them: the id of the function and the number of
    /// the block. Checks that numbers exist and that exits have an entry; returns also how many
    /// functions are open at the end.
    pub(crate) fn decoded(&self) -> BTreeMap<u32, (Vec<String>, usize)> {
        self.tokens.iter().map(|(&thread, tokens)| (thread, self.decode(tokens))).collect()
    }

    fn decode(&self, tokens: &[u32]) -> (Vec<String>, usize) {
        let (mut open, mut blocks) = (Vec::new(), Vec::new());
        for &token in tokens {
            match token {
                0xffff_ffff => drop(open.pop().expect("an exit without an entry")),
                0x8000_0000.. => open.push(token - 0x8000_0000),
                0 => panic!("tokens are not 0"),
                _ => {
                    let id = *open.last().expect("a path outside of functions");
                    let path = self.function(id).blocks(u64::from(token) - 1).expect("no such path");
                    blocks.extend(path.map(|block| format!("{id}.{}", block.index())));
                }
            }
        }
        (blocks, open.len())
    }

    fn function(&self, id: u32) -> &loopfold_paths::Function {
        let found = self
            .modules
            .iter()
            .find_map(|(first, module)| module.functions().get(id.checked_sub(*first)? as usize));
        found.expect("an unknown function")
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = &loopfold_paths::Function> {
        self.modules.iter().flat_map(|(_, module)| module.functions())
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.functions().map(|function| function.kind()).collect()
    }
}

/// Fails unless two sequences are the same but for the names of their elements, in all threads.
pub(crate) fn assert_bijective(
    ours: &BTreeMap<u32, (Vec<String>, usize)>,
    other: &BTreeMap<u32, Vec<String>>,
    what: &str,
) {
    let threads: Vec<&u32> = other.keys().collect();
    assert_eq!(ours.keys().collect::<Vec<_>>(), threads, "{what}");
    let (mut forth, mut back) = (BTreeMap::new(), BTreeMap::new());
    for (thread, (blocks, _)) in ours {
        let others = &other[thread];
        for (at, (one, two)) in blocks.iter().zip(others).enumerate() {
            let same = forth.entry(one).or_insert(two) == &two && back.entry(two).or_insert(one) == &one;
            assert!(same, "{what}, thread {thread}: block {at} is {one} and {two}");
        }
        assert_eq!(blocks.len(), others.len(), "{what}, thread {thread}");
    }
}
