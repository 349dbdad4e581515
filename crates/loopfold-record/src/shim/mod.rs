//! The library that is preloaded: generated C, compiled with the site's `mpicc` on first use and
//! kept in the user's cache, one for each MPI.
//!
//! C, because the handles and constants of MPI differ between implementations and are known to
//! `mpi.h` alone; small, because folding is left to another process. The name of the library in
//! the cache has a hash of the source, of the compiler wrapper and of what it links, so that
//! another MPI, another version of it or another version of this program has another one. Some
//! ranks may want it at once: a lock makes one of them compile.

mod generate;

use crate::{Error, Result};
use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// An MPI of the site, by its compiler wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpi {
    mpicc: PathBuf,
}

/// What programs are linked with, and what the wrappers and packages of that MPI are called.
struct Flavour {
    library: &'static str,
    variables: &'static [&'static str],
    wrappers: &'static [&'static str],
    packages: &'static str,
}

const FLAVOURS: [Flavour; 2] = [
    Flavour {
        library: "libmpi.so",
        variables: &["OMPI_COMM_WORLD_SIZE"],
        wrappers: &["mpicc.openmpi", "mpicc"],
        packages: "libopenmpi-dev openmpi-bin",
    },
    Flavour {
        library: "libmpich.so",
        variables: &["PMI_SIZE", "MPIR_CVAR_CH4_NUM_VCIS"],
        wrappers: &["mpicc.mpich", "mpicc"],
        packages: "libmpich-dev mpich",
    },
];

impl Mpi {
    /// The MPI that a program is linked with, by the libraries that it needs; else the one that has
    /// started this process; else the first that is installed. Fails if there is none.
    pub fn of_program(needed: &[String]) -> Result<Self> {
        let by_library =
            FLAVOURS.iter().find(|flavour| needed.iter().any(|name| name.starts_with(flavour.library)));
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
            || FLAVOURS.map(|flavour| flavour.packages).join(", or "),
            |flavour| flavour.packages.to_string(),
        );
        Err(Error::new(format_args!(
            "there is no mpicc of this MPI, which compiles the recorder; install the packages {packages}, or name it with --mpicc"
        )))
    }

    /// The MPI of this compiler wrapper.
    pub fn of_compiler(mpicc: &Path) -> Result<Self> {
        let found = if mpicc.components().count() > 1 { Some(mpicc.to_path_buf()) } else { on_path(mpicc) };
        let mpicc = found.filter(|path| path.is_file());
        mpicc.map(|mpicc| Self { mpicc }).ok_or_else(|| Error::new("--mpicc: there is no such program"))
    }

    /// The library, from the cache or compiled.
    pub fn library(&self) -> Result<PathBuf> {
        let cache = cache_folder()?;
        let quick = cache.join(format!("mpi-{:016x}.so", self.fingerprint()));
        if quick.is_file() {
            return Ok(quick);
        }
        std::fs::create_dir_all(&cache).map_err(|error| Error::at(&cache, error))?;
        let lock = File::create(cache.join("lock")).map_err(|error| Error::at(&cache, error))?;
        // Where locks do not work, several compile the same.
        let _ = lock.lock();
        if !quick.is_file() {
            self.compile(&cache, &quick)?;
        }
        Ok(quick)
    }

    /// A hash of all that the library depends on, found without starting a program.
    fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        let sources = [include_str!("runtime.c"), include_str!("special.c"), include_str!("fortran.c")];
        (env!("CARGO_PKG_VERSION"), sources, include_str!("generate.rs"), include_str!("../layout.rs"))
            .hash(&mut hasher);
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

    fn compile(&self, cache: &Path, library: &Path) -> Result<()> {
        let folder = tempfile::Builder::new()
            .prefix("build-")
            .tempdir_in(cache)
            .map_err(|error| Error::at(cache, error))?;
        let [head, source, built] =
            ["head.c", "recorder.c", "recorder.so"].map(|name| folder.path().join(name));
        let write =
            |path: &Path, text: &str| std::fs::write(path, text).map_err(|error| Error::at(path, error));
        write(&head, "#include <mpi.h>\n")?;
        let header = self.run(&["-E".as_ref(), head.as_os_str()])?;
        write(&source, &generate::source(&header))?;
        let options =
            ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-w", "-o"];
        let mut arguments: Vec<&std::ffi::OsStr> = options.iter().map(std::ffi::OsStr::new).collect();
        arguments.extend([built.as_os_str(), source.as_os_str()]);
        self.run(&arguments)?;
        std::fs::rename(&built, library).map_err(|error| Error::at(library, error))
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
            FLAVOURS.map(|flavour| flavour.packages).join(", or ")
        )))
    }
}

/// True if a wrapper links the library of this flavour.
fn is_of(mpicc: &Path, flavour: &Flavour) -> bool {
    if mpicc.file_name().is_some_and(|name| name != "mpicc") {
        return true;
    }
    let shown = Command::new(mpicc).arg("-show").env_remove("LD_PRELOAD").output();
    let link = flavour.library.trim_start_matches("lib").trim_end_matches(".so");
    let option = format!("-l{link}");
    shown.is_ok_and(|shown| {
        String::from_utf8_lossy(&shown.stdout).split_whitespace().any(|word| word == option)
    })
}

fn on_path(program: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program.as_ref())).find(|file| file.is_file())
}

/// The user's cache.
fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let base = base.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("cache-{}", rustix::process::getuid().as_raw()))
    });
    Ok(base.join("loopfold"))
}
