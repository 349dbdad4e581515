//! `loopfold-cc` and `loopfold-c++`: compile and link as clang would, with instrumented objects.

use super::Tools;
use super::command_line::{Argument, CommandLine, Input, Kind, Stage};
use super::instrument::{Code, Selection};
use super::tools::{find_clang, status};
use crate::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options for the linker are of no use when a source is compiled, and the other way round.
const QUIET: &str = "-Wno-unused-command-line-argument";

/// Compiles and returns the exit status.
pub(super) fn run(is_cxx: bool, selection: &Selection, arguments: &[String]) -> Result<u8> {
    let line = CommandLine::parse(arguments);
    let clang = Clang { program: find_clang()?, is_cxx };
    let sources = line.inputs().filter(|input| input.kind() == Kind::Source).count();
    // What cannot work is left to clang, which says so.
    let impossible = line.stage == Stage::Objects && line.output.is_some() && line.inputs().count() > 1;
    let nothing_to_do = line.stage == Stage::Objects && sources == 0;
    if line.stage == Stage::Other || impossible || nothing_to_do {
        return status(clang.command().args(arguments));
    }
    let job = Job { clang, selection, line: &line, tools: Tools::find()? };
    match line.stage {
        Stage::Objects => job.make_objects(),
        _ => job.link(),
    }
}

struct Clang {
    program: PathBuf,
    is_cxx: bool,
}

impl Clang {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if self.is_cxx {
            command.arg("--driver-mode=g++");
        }
        command
    }
}

struct Job<'a> {
    clang: Clang,
    selection: &'a Selection,
    line: &'a CommandLine,
    tools: Tools,
}

impl Job<'_> {
    /// `-c`: an object for each source.
    fn make_objects(&self) -> Result<u8> {
        for (number, input) in
            self.line.inputs().enumerate().filter(|(_, input)| input.kind() != Kind::Linked)
        {
            let object = self.line.output.clone().unwrap_or_else(|| object_name(&input.path));
            let failed = self.make_object(number, input, Path::new(&object), &object)?;
            if failed != 0 {
                return Ok(failed);
            }
        }
        Ok(0)
    }

    /// Compiles one source. `target` is the object in dependency files.
    fn make_object(&self, number: usize, input: &Input, object: &Path, target: &str) -> Result<u8> {
        let mut command = self.clang.command();
        command.args(self.line.options()).arg(QUIET).arg("-c");
        if input.kind() == Kind::Assembler {
            return status(command.args(input.arguments()).arg("-o").arg(object));
        }
        let dependencies = self.line.dependencies();
        if dependencies.needs_target {
            command.arg("-MT").arg(target);
        }
        if dependencies.needs_file {
            command.arg("-MF").arg(Path::new(target).with_extension("d"));
        }
        if !self.line.says_debug() {
            command.arg("-gline-tables-only");
        }
        if self.line.has_coverage() {
            command.args(self.coverage_options(input, target)?);
        }
        let bitcode = self.tools.temporary(&format!("{number}.bc"));
        let failed = status(command.arg("-emit-llvm").args(input.arguments()).arg("-o").arg(&bitcode))?;
        if failed != 0 {
            return Ok(failed);
        }
        let code = Code { level: self.line.level(), function_sections: self.line.function_sections() };
        self.selection.instrument(&self.tools, code, &bitcode, object)
    }

    /// Where coverage is written, which clang would derive from the name of the temporary bitcode: beside
    /// the object, or in the current folder if that is temporary, too.
    fn coverage_options(&self, input: &Input, target: &str) -> Result<Vec<OsString>> {
        let name = match self.line.stage {
            Stage::Objects => target.to_string(),
            _ => object_name(&input.path),
        };
        let notes = std::path::absolute(name)?.with_extension("gcno");
        let data = notes.with_extension("gcda");
        let mut options: Vec<OsString> = Vec::new();
        for (option, folder, path) in
            [("-coverage-notes-file=", "", notes), ("-coverage-data-file=", self.line.profile_folder(), data)]
        {
            let mut option = OsString::from(format!("{option}{folder}"));
            option.push(path);
            options.extend(["-Xclang".into(), option]);
        }
        Ok(options)
    }

    /// Compiles all sources, and links them with the other inputs and the run-time library.
    fn link(&self) -> Result<u8> {
        let mut command = self.clang.command();
        command.arg(QUIET);
        for (number, argument) in self.line.arguments.iter().enumerate() {
            match argument {
                Argument::Option(parts) => {
                    command.args(parts.iter().filter(|part| !is_dependency_option(part)));
                }
                Argument::Input(input) if input.kind() == Kind::Linked => {
                    command.arg(&input.path);
                }
                Argument::Input(input) => {
                    let object = self.tools.temporary(&format!("{number}.o"));
                    let target = self.line.output.clone().unwrap_or_else(|| object_name(&input.path));
                    let failed = self.make_object(number, input, &object, &target)?;
                    if failed != 0 {
                        return Ok(failed);
                    }
                    command.arg(object);
                }
            }
        }
        if let Some(output) = &self.line.output {
            command.arg("-o").arg(output);
        }
        command.args(link_options(&self.tools, &|option| self.line.has(option))?);
        status(&mut command)
    }
}

/// Options that write dependency files; linking has none to write.
fn is_dependency_option(option: &str) -> bool {
    matches!(option, "-MD" | "-MMD" | "-MP" | "-MG")
}

/// The name of an object if none is given.
fn object_name(source: &str) -> String {
    let stem = Path::new(source).file_stem().unwrap_or_default();
    format!("{}.o", stem.to_string_lossy())
}

/// What a program or library needs to be linked with, if it has these options.
pub(super) fn link_options(tools: &Tools, has: &dyn Fn(&str) -> bool) -> Result<Vec<OsString>> {
    if has("-r") {
        return Ok(Vec::new());
    }
    let mut options = vec![tools.runtime()?.into_os_string(), "-pthread".into()];
    // Libraries find the instance of the program; a library stays when it is closed, as its
    // description may still be sent.
    let more = match has("-shared") || has("--shared") {
        true => &["-Wl,-z,nodelete"][..],
        false if has("-static") => &[],
        false => &["-Wl,--export-dynamic-symbol=loopfold_rt_*"][..],
    };
    options.extend(more.iter().map(OsString::from));
    Ok(options)
}
