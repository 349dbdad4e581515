//! The library that is preloaded: generated C, compiled with the site's `mpicc` on first use and
//! kept in the user's cache, one for each MPI.
//!
//! C, because the handles and constants of MPI differ between implementations and are known to
//! `mpi.h` alone; small, because folding is left to another process. The name of the library in
//! the cache has a hash of the source and of path, size and time of the compiler wrapper, so that
//! another MPI or another version of this program has another one. If the MPI has changed and its
//! wrapper has not, the library notices when it is loaded, removes itself from the cache, and
//! starts the program without it. Some ranks may want it at once: a lock makes one of them compile.
//!
//! | file | is about |
//! | --- | --- |
//! | `runtime.c` | records, lanes, arguments |
//! | `comms.c` | numbers of communicators |
//! | `lost.c` | what both ends have counted, and what is said if it differs |
//! | `helper.c` | memory and the process that folds |
//! | `start.c` | clocks, start, end, regions |
//! | `special.c`, `fortran.c` | calls with code of their own |
//! | `generate.rs` | all other calls |

mod generate;

use crate::{Error, Result};
use loopfold_output::{Cache, PrivateFolder};
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// An MPI of the site, by its compiler wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpi {
    mpicc: PathBuf,
}

/// What programs are linked with, and what the wrappers and packages of that MPI are called.
#[derive(Debug)]
struct Flavour {
    is_library: fn(&str) -> bool,
    /// Whether the macros of its `mpi.h` are these.
    has_header: fn(&str) -> bool,
    variables: &'static [&'static str],
    wrappers: &'static [&'static str],
    packages: &'static str,
}

static FLAVOURS: [Flavour; 2] = [
    Flavour {
        is_library: |name| name.starts_with("libmpi.so") && !is_mpich(name),
        has_header: |macros| macros.contains("#define OPEN_MPI "),
        variables: &["OMPI_COMM_WORLD_SIZE"],
        wrappers: &["mpicc.openmpi", "mpicc"],
        packages: "libopenmpi-dev openmpi-bin",
    },
    Flavour {
        is_library: is_mpich,
        has_header: |macros| !macros.contains("#define OPEN_MPI "),
        variables: &["PMI_SIZE", "MPIR_CVAR_CH4_NUM_VCIS"],
        wrappers: &["mpicc.mpich", "mpicc"],
        packages: "libmpich-dev mpich",
    },
];

/// MPICH and those with its binary interface are version 12 of a library that may have the same
/// name as Open MPI's.
fn is_mpich(library: &str) -> bool {
    library.starts_with("libmpich.so") || library == "libmpi.so.12" || library.starts_with("libmpi.so.12.")
}

/// Whether a library has been found to be of another MPI some time ago. Not at once: all processes of
/// one execution must load the same library, or those that have none keep the others waiting.
fn is_old(mark: &Path) -> bool {
    let age = mark.metadata().and_then(|about| about.modified()).ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age >= Duration::from_secs(60))
}

/// What a program is linked with, by the libraries that it needs.
fn flavour_of(needed: &[String]) -> Option<&'static Flavour> {
    FLAVOURS.iter().find(|flavour| needed.iter().any(|name| (flavour.is_library)(name)))
}

impl Mpi {
    /// The MPI that a program is linked with, by the libraries that it needs; else the one that has
    /// started this process; else the first that is installed. Fails if there is none.
    pub fn of_program(needed: &[String]) -> Result<Self> {
        let by_library = flavour_of(needed);
        let is_set =
            |flavour: &&Flavour| flavour.variables.iter().any(|name| std::env::var_os(name).is_some());
        let known = by_library.or_else(|| FLAVOURS.iter().find(is_set));
        let wrappers = match known {
            Some(flavour) => flavour.wrappers.to_vec(),
            None => vec!["mpicc", "mpicc.openmpi", "mpicc.mpich"],
        };
        for wrapper in wrappers {
            if let Some(mpicc) = on_path(wrapper)
                && by_library.is_none_or(|flavour| is_of(&mpicc, flavour))
            {
                return Ok(Self { mpicc });
            }
        }
        let packages = known.map_or_else(
            || FLAVOURS.each_ref().map(|flavour| flavour.packages).join(", or "),
            |flavour| flavour.packages.to_string(),
        );
        Err(Error::new(format_args!(
            "there is no mpicc of this MPI, which compiles the recorder; install the packages {packages}, or name it with --mpicc"
        )))
    }

    /// The MPI of this compiler wrapper. Fails if a program that needs these libraries has another.
    pub fn of_compiler(mpicc: &Path, needed: &[String]) -> Result<Self> {
        let found = if mpicc.components().count() > 1 { Some(mpicc.to_path_buf()) } else { on_path(mpicc) };
        let mpicc = found.filter(|path| path.is_file());
        let mpicc = mpicc.ok_or_else(|| Error::new("--mpicc: there is no such program"))?;
        if let Some(flavour) = flavour_of(needed)
            && !is_of(&mpicc, flavour)
        {
            let library = needed.iter().find(|name| (flavour.is_library)(name)).map_or("", String::as_str);
            return Err(Error::new(format_args!(
                "--mpicc: {} is of another MPI than the program, which is linked with {library}",
                mpicc.display()
            )));
        }
        Ok(Self { mpicc })
    }

    /// The library, from the cache or compiled.
    pub fn library(&self) -> Result<PathBuf> {
        let folder = Cache::open("mpi")?;
        let cache = folder.path();
        // The variable that names what is preloaded separates by these.
        if cache.to_string_lossy().contains([' ', ':']) {
            return Err(Error::at(
                cache,
                "a library in a folder with a space or a colon in its name cannot be preloaded; set XDG_CACHE_HOME to another folder",
            ));
        }
        let quick = cache.join(format!("mpi-{:016x}.so", self.fingerprint()));
        let mark = quick.with_extension("stale");
        let is_good = || quick.is_file() && !is_old(&mark);
        if is_good() {
            return Ok(quick);
        }
        let _lock = folder.lock()?;
        if !is_good() {
            folder.build(&quick, |place| self.compile(place))?;
            folder.remove(&mark)?;
        }
        Ok(quick)
    }

    /// A hash of all that the library depends on, found without starting a program.
    fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        generate::parts().for_each(|part| part.hash(&mut hasher));
        for call in loopfold_sources::mpi_calls() {
            (&call.name, format!("{:?}", call.arguments)).hash(&mut hasher);
        }
        // The wrapper is often one program for all languages, under a link of its own name.
        let real = self.mpicc.canonicalize().unwrap_or_else(|_| self.mpicc.clone());
        for path in [&self.mpicc, &real] {
            let about = path.metadata().ok();
            let changed =
                about.as_ref().and_then(|about| about.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            (path, about.map(|about| about.len()), changed).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Compiles the library in a folder and returns its path.
    fn compile(&self, place: &PrivateFolder) -> Result<PathBuf> {
        let head = place.write("head.c", b"#include <mpi.h>\n")?;
        let header = self.run(&["-E".as_ref(), head.as_os_str()])?;
        let source = place.write("recorder.c", generate::source(&header).as_bytes())?;
        let built = place.path().join("recorder.so");
        let options =
            ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-w", "-o"];
        let mut arguments: Vec<&std::ffi::OsStr> = options.iter().map(std::ffi::OsStr::new).collect();
        arguments.extend([built.as_os_str(), source.as_os_str()]);
        self.run(&arguments)?;
        Ok(built)
    }

    /// Runs the wrapper and returns what it prints.
    fn run(&self, arguments: &[&std::ffi::OsStr]) -> Result<String> {
        let mut command = Command::new(&self.mpicc);
        let output = command.args(arguments).env_remove("LD_PRELOAD").output();
        let output = output.map_err(|error| Error::at(&self.mpicc, error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let line =
            said.lines().find(|line| line.contains("error")).or(said.lines().next()).unwrap_or("it fails");
        Err(Error::new(format_args!(
            "{} cannot compile the recorder: {}; is the package with mpi.h installed ({})?",
            self.mpicc.display(),
            line.trim(),
            FLAVOURS.each_ref().map(|flavour| flavour.packages).join(", or ")
        )))
    }
}

/// True if a wrapper is of this flavour: by its name, as far as that says it, or by its header.
fn is_of(mpicc: &Path, flavour: &Flavour) -> bool {
    let name = mpicc.file_name().unwrap_or_default();
    if let Some(named) = FLAVOURS.iter().find(|flavour| name == flavour.wrappers[0]) {
        return std::ptr::eq(named, flavour);
    }
    let mut command = Command::new(mpicc);
    command.args(["-dM", "-E", "-x", "c", "-include", "mpi.h", "/dev/null"]).env_remove("LD_PRELOAD");
    let macros = command.output().ok().filter(|macros| macros.status.success());
    macros.is_some_and(|macros| (flavour.has_header)(&String::from_utf8_lossy(&macros.stdout)))
}

fn on_path(program: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program.as_ref())).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_names_the_mpi() {
        let wrapper = |library: &str| {
            flavour_of(&["libm.so.6".to_string(), library.to_string()]).map(|flavour| flavour.wrappers[0])
        };
        assert_eq!(wrapper("libmpi.so.40"), Some("mpicc.openmpi"));
        for library in ["libmpich.so.12", "libmpi.so.12", "libmpi.so.12.3.1"] {
            assert_eq!(wrapper(library), Some("mpicc.mpich"));
        }
        assert_eq!(wrapper("libc.so.6"), None);
    }
}
