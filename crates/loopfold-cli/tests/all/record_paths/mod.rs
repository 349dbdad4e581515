//! Recording paths: the run-time library and the recorder, with programs that emit tokens by hand,
//! so that every event is known.

mod counted;
mod deaths;
mod failures;
mod libraries;
mod odd;
mod signals;
mod streams;

use loopfold::Fold;
use loopfold::archive::{self, ReadConfig};
use loopfold_paths::{Block, Cuts, Ending, Function, Graph, Kind, Module, Numbering};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

pub(crate) fn loopfold() -> &'static str {
    env!("CARGO_BIN_EXE_loopfold")
}

/// The functions of the programs, in the order of their numbers there; each has the same eight paths.
const NAMES: [&str; 4] = ["main", "work", "_ZN1n7handlerEi", "deep"];

/// A description of these functions: an `if` in a loop, whose paths are known.
fn description() -> Vec<u8> {
    let functions = NAMES.iter().enumerate().map(|(place, name)| {
        let graph = Graph::new(&[vec![1], vec![2, 3], vec![3], vec![1, 4], vec![]]).unwrap();
        let cuts = Cuts::choose(&graph, &[Ending::Open; 5], 1 << 20);
        let numbering = Numbering::new(graph, cuts).unwrap();
        let line = 10 * (place as u32 + 1);
        let block =
            |index: u32| Block { first_line: line + index, last_line: line + index, instructions: index + 1 };
        let blocks = (0..5).map(block).collect();
        Function::new(name.to_string(), "src/by_hand.c".into(), line, Kind::Paths, blocks, numbering).unwrap()
    });
    Module::new("by_hand.c".to_string(), functions.collect()).encode()
}

/// The folder with the programs, compiled once.
fn programs() -> &'static Path {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<String> = description().iter().map(u8::to_string).collect();
        let header = format!(
            "enum {{ FUNCTIONS = {} }};\nstatic const uint8_t description[] = {{{}}};\n",
            NAMES.len(),
            bytes.join(",")
        );
        std::fs::write(folder.path().join("description.h"), header).unwrap();
        std::fs::write(folder.path().join("runtime.o"), loopfold_record::runtime_object()).unwrap();
        let export = "-Wl,--export-dynamic-symbol=loopfold_rt_*";
        let runtime = folder.path().join("runtime.o");
        let runtime = runtime.to_str().unwrap();
        compile(folder.path(), "emitters.c", "emitters", &["-ldl", export, runtime]);
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = source.join("../loopfold-record/src/paths/runtime/runtime.c");
        let impatient = ["-ldl", "-DLF_MOST_SECONDS=1", source.to_str().unwrap()];
        compile(folder.path(), "emitters.c", "impatient", &impatient);
        compile(folder.path(), "emitters.c", "static", &["-static", runtime]);
        compile(folder.path(), "plugin.c", "plugin.so", &["-shared", "-fPIC", runtime]);
        libraries::compile_all(folder.path(), |source, program, options| {
            compile(folder.path(), source, program, options);
        });
        odd::compile_all(runtime, export, |source, program, options| {
            compile(folder.path(), source, program, options);
        });
        folder
    });
    folder.path()
}

fn compile(folder: &Path, source: &str, program: &str, options: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/record_paths");
    let mut command = Command::new("cc");
    command.args(["-O2", "-w", "-pthread", "-I"]).arg(folder).arg(sources.join(source));
    command.arg("-o").arg(folder.join(program)).args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A program with its arguments.
fn emitters(arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("emitters"));
    command.args(arguments);
    command
}

/// The events of each stream as text.
type Streams = BTreeMap<String, Vec<String>>;

/// A recording in a folder of its own.
struct Recording {
    folder: TempDir,
    output: Output,
}

impl Recording {
    fn archive(&self) -> PathBuf {
        self.folder.path().join("run.fold")
    }

    fn fold(&self) -> Fold {
        let file = std::fs::File::open(self.archive())
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.output.stderr)));
        archive::read(std::io::BufReader::new(file), &ReadConfig::new()).unwrap().0
    }

    fn streams(&self) -> Streams {
        streams_of(&self.fold())
    }

    fn errors(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

fn streams_of(fold: &Fold) -> Streams {
    let labels: Vec<String> = fold.alphabet().symbols().map(|symbol| fold.alphabet().label(symbol)).collect();
    let events =
        |root: loopfold::RuleId| fold.unfold(root).map(|symbol| labels[symbol.index()].clone()).collect();
    fold.streams().iter().map(|stream| (stream.name().raw().to_string(), events(stream.root()))).collect()
}

/// The command that records a program with these options.
fn record_command(folder: &TempDir, options: &[&str], program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(loopfold());
    command.arg("record").args(options).arg("-o").arg(folder.path().join("run.fold"));
    command.arg(program).args(arguments).env_remove("COLUMNS");
    command
}

fn record_with(options: &[&str], arguments: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let output = record_command(&folder, options, &programs().join("emitters"), arguments).output().unwrap();
    Recording { folder, output }
}

fn record(arguments: &[&str]) -> Recording {
    record_with(&[], arguments)
}

/// How the events of a function are shown.
fn enter(function: &str) -> String {
    format!("enter {function}")
}

fn leave(function: &str) -> String {
    format!("leave {function}")
}

/// A path, by the place of its function and its number.
fn path(place: u32, function: &str, number: u32) -> String {
    // Paths 0 to 3 begin in the first block, the others in the second.
    let line = 10 * (place + 1) + u32::from(number > 3);
    format!("by_hand.c:{line}#{number} function={function}")
}

/// What `work` in the source emits.
fn work(count: u32) -> Vec<String> {
    let paths = (0..count).map(|number| path(1, "work", number % 3));
    [enter("work")].into_iter().chain(paths).chain([leave("work")]).collect()
}

/// Fails unless calls are balanced and every path is of the innermost open function. Calls that are
/// still open are allowed at the end if `is_cut`.
fn check_nesting(stream: &str, events: &[String], is_cut: bool) {
    let mut open: Vec<&str> = Vec::new();
    for (position, event) in events.iter().enumerate() {
        if let Some(function) = event.strip_prefix("enter ") {
            open.push(function);
        } else if let Some(function) = event.strip_prefix("leave ") {
            assert_eq!(open.pop(), Some(function), "{stream}: event {position}");
        } else {
            let (_, function) = event.split_once("function=").expect("a path names its function");
            assert_eq!(open.last(), Some(&function), "{stream}: event {position}");
        }
    }
    assert!(is_cut || open.is_empty(), "{stream}: {open:?} are open");
}
