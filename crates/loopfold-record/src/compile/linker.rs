//! Takes the place of the linker of rustc: instruments bitcode in objects and archives, then links.
//!
//! rustc leaves optimising across crates to the linker (`-C linker-plugin-lto`), and so hands over
//! bitcode; the standard library comes as machine code and stays as it is. Archives are written
//! again with instrumented objects. Objects are independent, so all cores work on them.

use super::Tools;
use super::driver::link_options;
use super::instrument::{Code, Selection, is_bitcode};
use super::tools::status;
use crate::{Error, Result};
use object::read::archive::ArchiveFile;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The argument that says that this is a call of the linker.
pub(super) const LINK: &str = "--loopfold-link";
/// Begins an option of the pass.
pub(super) const SELECTION: &str = "--loopfold-pass=";
/// Options of the plugin of the linker, which has nothing to do.
const PLUGIN: &str = "-Wl,-plugin-opt=";

/// Whether arguments are those of a linker that rustc calls.
pub(super) fn is_link(arguments: &[String]) -> bool {
    let file = arguments.first().and_then(|first| first.strip_prefix('@'));
    let in_file = file.and_then(|file| std::fs::read_to_string(file).ok());
    in_file.is_some_and(|text| text.contains(LINK)) || arguments.iter().any(|argument| argument == LINK)
}

pub(super) fn run(arguments: &[String]) -> Result<u8> {
    let tools = Tools::find()?;
    let options = arguments.iter().filter_map(|argument| argument.strip_prefix(SELECTION));
    let selection = Selection { options: options.map(String::from).collect() };
    let level =
        arguments.iter().filter_map(|argument| argument.strip_prefix(PLUGIN)?.strip_prefix('O')).next_back();
    let level = level.and_then(|level| level.parse().ok()).unwrap_or(2);
    let mut work = Work { tools: &tools, objects: Vec::new(), archives: Vec::new() };
    let ours =
        |argument: &str| argument == LINK || argument.starts_with(SELECTION) || argument.starts_with(PLUGIN);
    let mut command = Command::new("cc");
    for argument in arguments.iter().filter(|argument| !ours(argument)) {
        command.arg(work.replacement(argument)?);
    }
    let code = Code { level, function_sections: true };
    let failed = work.instrument(&selection, code)?;
    if failed != 0 {
        return Ok(failed);
    }
    work.write_archives()?;
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    status(command.args(link_options(&tools, &has)?))
}

/// What is to be instrumented, and archives to be written from it.
struct Work<'a> {
    tools: &'a Tools,
    /// Bitcode and the objects to make of it.
    objects: Vec<(PathBuf, PathBuf)>,
    /// Archives and their members.
    archives: Vec<(PathBuf, Vec<PathBuf>)>,
}

impl Work<'_> {
    /// What stands in for an argument: itself, unless it is a file with bitcode.
    fn replacement(&mut self, argument: &str) -> Result<PathBuf> {
        let path = Path::new(argument);
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let replaced = match extension {
            "o" if !argument.starts_with('-') => self.replace_object(path)?,
            "rlib" | "a" if !argument.starts_with('-') => self.replace_archive(path)?,
            _ => None,
        };
        Ok(replaced.unwrap_or_else(|| path.to_path_buf()))
    }

    fn replace_object(&mut self, path: &Path) -> Result<Option<PathBuf>> {
        let bytes = std::fs::read(path).map_err(|error| Error::at(path, error))?;
        if !is_bitcode(&bytes) {
            return Ok(None);
        }
        let object = self.tools.temporary(&format!("{}.o", self.objects.len()));
        self.objects.push((path.to_path_buf(), object.clone()));
        Ok(Some(object))
    }

    fn replace_archive(&mut self, path: &Path) -> Result<Option<PathBuf>> {
        let failed = |error: object::read::Error| Error::at(path, error);
        let bytes = std::fs::read(path).map_err(|error| Error::at(path, error))?;
        let archive = ArchiveFile::parse(&*bytes).map_err(failed)?;
        let (mut members, mut any) = (Vec::new(), false);
        for member in archive.members() {
            let member = member.map_err(failed)?;
            let data = member.data(&*bytes).map_err(failed)?;
            let name = String::from_utf8_lossy(member.name()).into_owned();
            // Metadata of rustc is not for the linker.
            if name.ends_with(".rmeta") {
                continue;
            }
            let number = self.archives.len();
            let file = format!("{number}-{}-{}", members.len(), safe(&name));
            let file = self.tools.folder.write(file, data)?;
            if is_bitcode(data) {
                any = true;
                let object = file.with_extension("loopfold.o");
                self.objects.push((file, object.clone()));
                members.push(object);
            } else {
                members.push(file);
            }
        }
        if !any {
            return Ok(None);
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let new = self.tools.temporary(&format!("{}-{}.a", self.archives.len(), safe(&stem)));
        self.archives.push((new.clone(), members));
        Ok(Some(new))
    }

    /// Instruments all objects, on all cores. Returns the first exit status that is not 0.
    fn instrument(&self, selection: &Selection, code: Code) -> Result<u8> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<u8> {
            while let Some((bitcode, object)) = self.objects.get(next.fetch_add(1, Ordering::Relaxed)) {
                let failed = selection.instrument(self.tools, code, bitcode, object)?;
                if failed != 0 {
                    return Ok(failed);
                }
            }
            Ok(0)
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let outcomes: Vec<Result<u8>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, Result<u8>>| {
                worker.join().unwrap_or_else(|_| Err(Error::new("instrumenting failed")))
            };
            workers.into_iter().map(join).collect()
        });
        let outcomes: Result<Vec<u8>> = outcomes.into_iter().collect();
        Ok(outcomes?.into_iter().find(|&status| status != 0).unwrap_or(0))
    }

    fn write_archives(&self) -> Result<()> {
        for (archive, members) in &self.archives {
            let failed = status(Command::new("ar").arg("rcs").arg(archive).args(members))?;
            if failed != 0 {
                return Err(Error::at(archive, "ar cannot write it"));
            }
        }
        Ok(())
    }
}

/// A name of a member as that of a file.
fn safe(name: &str) -> String {
    name.chars().map(|character| if character == '/' { '_' } else { character }).collect()
}
