//! Writes a file so that the old one is untouched until the new one is complete.
//!
//! The new file is written beside the old one and renamed. Whether that is possible is known
//! before anything is read: folding may take hours.

use crate::args::ReadArgs;
use crate::nodes;
use anyhow::{Context as _, Result, anyhow, bail};
use loopfold::Fold;
use loopfold::archive::WriteConfig;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Refuses to write over a trace that is an input, since the archive would replace it, and where
/// nothing can be written.
pub(crate) fn check_output(output: &Path, inputs: &ReadArgs) -> Result<()> {
    check_directory(output).with_context(|| output.display().to_string())?;
    let Ok(target) = output.canonicalize() else { return Ok(()) };
    let is_archive = |path: &Path| {
        let mut head = [0; 64];
        let read = File::open(path).and_then(|mut file| io::Read::read(&mut file, &mut head));
        read.is_ok_and(|length| loopfold::archive::looks_like(&head[..length]))
    };
    if is_input(&target, inputs) && !is_archive(&target) {
        bail!("{}: is one of the inputs, which the archive would replace", output.display());
    }
    Ok(())
}

/// Refuses to write over any input, since an export is not an archive, and where nothing can be
/// written.
pub(crate) fn check_export(output: &Path, inputs: &ReadArgs) -> Result<()> {
    check_directory(output).with_context(|| output.display().to_string())?;
    if output.canonicalize().is_ok_and(|target| is_input(&target, inputs)) {
        bail!("{}: is one of the inputs, which the export would replace", output.display());
    }
    Ok(())
}

/// Refuses an output where nothing can be written.
pub(crate) fn check_file(output: &Path) -> Result<()> {
    check_directory(output).with_context(|| output.display().to_string())
}

/// Fails if no file can be created beside the output.
fn check_directory(output: &Path) -> Result<()> {
    match std::fs::metadata(output) {
        Ok(about) if about.is_dir() => bail!("is a directory; name the file to write in it"),
        // A pipe or a device is written to as it is.
        Ok(about) if !about.is_file() => Ok(()),
        _ if output.as_os_str() == "-" => Ok(()),
        _ => create_beside(&followed(output), None).map(drop),
    }
}

/// What a link points at, or the path itself.
fn followed(output: &Path) -> PathBuf {
    output.canonicalize().unwrap_or_else(|_| output.to_path_buf())
}

fn is_input(target: &Path, inputs: &ReadArgs) -> bool {
    let is_target = |input: &PathBuf| input.canonicalize().is_ok_and(|input| input == target);
    target.is_file() && inputs.inputs.iter().any(is_target)
}

/// Writes an archive and returns how many bytes it has; `-` is standard output.
pub(crate) fn save(fold: &Fold, output: &Path) -> Result<u64> {
    save_with(output, |out| Ok(loopfold::archive::write(fold, out)?))
}

/// The same, with what else the archive is to hold.
pub(crate) fn save_fold(fold: &Fold, output: &Path, options: &WriteConfig<'_>) -> Result<u64> {
    save_with(output, |out| Ok(loopfold::archive::write_with(fold, out, options)?))
}

/// How many bytes the archive of a fold would have.
pub(crate) fn archive_bytes(fold: &Fold, options: &WriteConfig<'_>) -> Result<u64> {
    let count = || counted(io::sink(), |out| Ok(loopfold::archive::write_with(fold, out, options)?));
    nodes::with_lengths_only(count)
}

/// Writes what `write` writes and returns how many bytes that is; `-` is standard output.
pub(crate) fn save_with(output: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let name = || output.display().to_string();
    if output.as_os_str() == "-" {
        return counted(crate::show::raw_stdout(), write).context("standard output");
    }
    let target = followed(output);
    match std::fs::metadata(&target) {
        // A pipe or a device cannot be replaced, only written to.
        Ok(about) if !about.is_file() => {
            let file = File::options().write(true).open(&target).with_context(name)?;
            counted(file, write).with_context(name)
        }
        about => replace(write, &target, about.ok().map(|about| about.permissions())).with_context(name),
    }
}

/// Writes beside the file and renames. Whatever goes wrong before the end, a full disk
/// or a kill, leaves what was there.
fn replace(
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
    target: &Path,
    permissions: Option<Permissions>,
) -> Result<u64> {
    let mut file = create_beside(target, permissions.clone())?;
    let bytes = counted(file.as_file_mut(), write)?;
    file.as_file().sync_all()?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(target).map_err(|error| error.error)?;
    Ok(bytes)
}

/// A new file in the directory of `target`, which goes away unless it is renamed.
fn create_beside(target: &Path, permissions: Option<Permissions>) -> Result<NamedTempFile> {
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".loopfold-").suffix(".tmp");
    #[cfg(unix)]
    {
        // As the file that it replaces, or as any new file: the user's mask decides.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(permissions.unwrap_or_else(|| Permissions::from_mode(0o666)));
    }
    builder.tempfile_in(directory).map_err(|error| not_created(directory, error))
}

/// Why no file can be created in a directory, and what would help.
fn not_created(directory: &Path, error: io::Error) -> anyhow::Error {
    for part in directory.ancestors().collect::<Vec<_>>().into_iter().rev() {
        let name = part.display();
        match std::fs::metadata(part) {
            Err(error) if error.kind() == ErrorKind::NotFound && !part.as_os_str().is_empty() => {
                return anyhow!("the directory {name} does not exist; create it, or name another one");
            }
            Ok(about) if !about.is_dir() => return anyhow!("{name} is not a directory; name another one"),
            _ => {}
        }
    }
    let name = directory.display();
    match error.kind() {
        ErrorKind::PermissionDenied => {
            anyhow!("no permission to create a file in the directory {name}; name another one")
        }
        _ => anyhow::Error::new(without_path(error)).context(format!("no file can be created in {name}")),
    }
}

fn counted(output: impl Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let mut output = Counted { inner: BufWriter::new(output), bytes: 0 };
    write(&mut output)?;
    output.flush()?;
    Ok(output.bytes)
}

/// The error without the name of the temporary file, which means nothing to users.
fn without_path(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|inner| inner.source()).and_then(|source| source.downcast_ref());
    let code = cause.and_then(io::Error::raw_os_error).or(error.raw_os_error());
    code.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
