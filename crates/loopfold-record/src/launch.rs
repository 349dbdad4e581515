//! Starts a program with the recorder: `loopfold record --mpi` looks at the program, gets the
//! library to preload, sets the environment and becomes the program.
//!
//! It becomes the program, rather than waiting for it, so that process number, signals, exit
//! status and standard streams are those that the program would have without it.

use crate::paths::{CYCLES, SOCKET};
use crate::shim::Mpi;
use crate::{Error, Result, folder_of, variables};
use loopfold_output::{FileId, Output, Target};
use object::elf;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How to record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// The archive to write.
    pub output: PathBuf,
    /// Which times are kept: `all`, `summary` or `none`.
    pub times: String,
    /// Record where calls come from.
    pub with_sites: bool,
    /// The seconds between segments.
    pub segment_seconds: Option<f64>,
    /// The compiler wrapper, if it is not found by itself.
    pub mpicc: Option<PathBuf>,
    /// The format of the output.
    pub to: String,
}

impl Launch {
    /// Records to this archive, with all times.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self {
            output: output.into(),
            times: "all".to_string(),
            with_sites: false,
            segment_seconds: None,
            mpicc: None,
            to: "fold".to_string(),
        }
    }

    /// Becomes the program; returns only if that fails.
    pub fn exec(&self, program: &[OsString]) -> Result<std::convert::Infallible> {
        let [name, arguments @ ..] = program else { return Err(Error::new("there is no program to record")) };
        let path = find(Path::new(name))?;
        check_program(&path, &Target::named(&self.output)?)?;
        let about = Program::read(&path)?;
        if about.is_static {
            return Err(Error::at(
                &path,
                "it is linked statically, so no recorder can be preloaded; link it without -static",
            ));
        }
        let mut command = Command::new(name);
        command.args(arguments);
        for (name, value) in self.environment(&about.needed)? {
            command.env(name, value);
        }
        // The recorder of a program that has started this one is not that of the paths.
        command.env_remove(SOCKET).env_remove(CYCLES);
        command.env(variables::PID, std::process::id().to_string());
        let error = command.exec();
        Err(Error::at(&path, error))
    }

    /// The variables that make any MPI program record, for those who start it otherwise.
    pub fn environment(&self, needed: &[String]) -> Result<Vec<(&'static str, OsString)>> {
        let mpi = match &self.mpicc {
            Some(mpicc) => Mpi::of_compiler(mpicc, needed)?,
            None => Mpi::of_program(needed)?,
        };
        let output = self.resolved()?;
        let library = mpi.library()?;
        let mut preload = library.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let mut variables = vec![
            ("LD_PRELOAD", preload),
            (variables::OUTPUT, output.into_os_string()),
            (variables::HELPER, std::env::current_exe()?.into_os_string()),
            (variables::TIMES, self.times.clone().into()),
            (variables::TO, self.to.clone().into()),
            (variables::SHIM, library.into_os_string()),
        ];
        variables.extend(self.with_sites.then(|| (variables::SITES, "1".into())));
        variables
            .extend(self.segment_seconds.map(|seconds| (variables::SEGMENT, seconds.to_string().into())));
        Ok(variables)
    }

    /// What the output leads to, as every process finds it.
    fn resolved(&self) -> Result<PathBuf> {
        check_output(&self.output)?;
        if self.to != "fold" && self.output.exists() {
            return Err(Error::at(&self.output, "it exists already; name a folder that does not"));
        }
        let path = check_target(Output::check_recording(&self.output)?)?.path();
        std::path::absolute(&path).map_err(|error| Error::at(&path, error))
    }

    /// Where the parts of the recording are until it ends.
    pub fn parts(&self) -> PathBuf {
        folder_of(&self.output)
    }
}

/// The recorder is given the path as a line of text.
fn check_output(path: &Path) -> Result<()> {
    if path.as_os_str().as_bytes().contains(&b'\n') {
        return Err(Error::at(path, "a recording cannot be written to a path with a line break"));
    }
    Ok(())
}

/// Standard output is that of the program.
pub(crate) fn check_target(target: Target) -> Result<Target> {
    match target {
        Target::Stdout => {
            Err(Error::new("standard output is that of the program; name a file with --output"))
        }
        target => Ok(target),
    }
}

/// Fails if the archive would replace the program.
pub(crate) fn check_program(program: &Path, target: &Target) -> Result<()> {
    if target.existing().is_some_and(|file| FileId::of(program) == Some(file)) {
        return Err(Error::at(program, "is the program, which would be replaced; name another file"));
    }
    Ok(())
}

/// True if a program is linked with MPI, as far as its own file says.
pub fn is_mpi_program(program: &Path) -> bool {
    let needs_mpi = |name: &String| name.starts_with("libmpi") || name.starts_with("libmpich");
    find(program).and_then(|path| Program::read(&path)).is_ok_and(|about| about.needed.iter().any(needs_mpi))
}

/// The file of a program, as a shell finds it.
pub(crate) fn find(program: &Path) -> Result<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() || program.starts_with(".") {
        let is_file = program.is_file();
        return is_file
            .then(|| program.to_path_buf())
            .ok_or_else(|| Error::at(program, "there is no such program"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found =
        std::env::split_paths(&path).map(|folder| folder.join(program)).filter(|file| file.is_file());
    found.next().ok_or_else(|| Error::at(program, "there is no such program on the path"))
}

/// What the file of a program says about it.
#[derive(Debug, Default)]
struct Program {
    is_static: bool,
    /// The libraries that it needs itself.
    needed: Vec<String>,
}

impl Program {
    /// Scripts and what is not understood count as dynamic and need nothing.
    fn read(path: &Path) -> Result<Self> {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let mut file = File::open(path).map_err(|error| Error::at(path, error))?;
        let mut head = [0; 4];
        if file.read_exact(&mut head).is_err() || head != elf::ELFMAG {
            return Ok(Self::default());
        }
        bytes.extend_from_slice(&head);
        file.read_to_end(&mut bytes).map_err(|error| Error::at(path, error))?;
        Ok(Self::of_elf(&bytes).unwrap_or_default())
    }

    fn of_elf(bytes: &[u8]) -> Option<Self> {
        let header = elf::FileHeader64::<object::Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, bytes).ok()?;
        let has_loader = segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP);
        let mut needed = Vec::new();
        let sections = header.sections(endian, bytes).ok()?;
        if let Ok(Some((entries, link))) = sections.dynamic(endian, bytes) {
            let strings = sections.strings(endian, bytes, link).ok()?;
            for entry in entries.iter().filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED) {
                let name = entry.string(endian, strings).ok()?;
                needed.push(std::ffi::OsStr::from_bytes(name).to_string_lossy().into_owned());
            }
        }
        Some(Self { is_static: !has_loader, needed })
    }
}
