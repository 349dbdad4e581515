//! Writing a file so that the old one is untouched until the new one is complete.

use crate::args::ReadArgs;
use anyhow::{Context as _, Result, bail};
use loopfold::Fold;
use loopfold::archive::WriteOptions;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Refuses to write where a trace is read from: the archive would take its place.
pub(crate) fn check_output(output: &Path, inputs: &ReadArgs) -> Result<()> {
    let Ok(target) = output.canonicalize() else { return Ok(()) };
    let is_archive = |path: &Path| {
        let mut head = [0; 64];
        let read = File::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut head));
        read.is_ok_and(|length| loopfold::archive::looks_like(&head[..length]))
    };
    if is_input(&target, inputs) && !is_archive(&target) {
        bail!("{}: is one of the inputs, which the archive would replace", output.display());
    }
    Ok(())
}

/// Refuses to write where anything is read from, for what is written is no archive.
pub(crate) fn check_export(output: &Path, inputs: &ReadArgs) -> Result<()> {
    if output.canonicalize().is_ok_and(|target| is_input(&target, inputs)) {
        bail!("{}: is one of the inputs, which the export would replace", output.display());
    }
    Ok(())
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
pub(crate) fn save_fold(fold: &Fold, output: &Path, options: &WriteOptions<'_>) -> Result<u64> {
    save_with(output, |out| Ok(loopfold::archive::write_with(fold, out, options)?))
}

/// How many bytes the archive of a fold would have.
pub(crate) fn archive_bytes(fold: &Fold, options: &WriteOptions<'_>) -> Result<u64> {
    counted(std::io::sink(), |out| Ok(loopfold::archive::write_with(fold, out, options)?))
}

/// Writes what `write` writes and returns how many bytes that is; `-` is standard output.
pub(crate) fn save_with(output: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let name = || output.display().to_string();
    if output.as_os_str() == "-" {
        return counted(std::io::stdout().lock(), write).context("standard output");
    }
    // Through a link to what it points at.
    let target = output.canonicalize().unwrap_or_else(|_| output.to_path_buf());
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
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".loopfold-").suffix(".tmp");
    #[cfg(unix)]
    {
        // As the file that it replaces, or as any new file: the user's mask decides.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(permissions.clone().unwrap_or_else(|| Permissions::from_mode(0o666)));
    }
    let mut file = builder.tempfile_in(folder).map_err(without_path)?;
    let bytes = counted(file.as_file_mut(), write)?;
    file.as_file().sync_all()?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(target).map_err(|error| error.error)?;
    Ok(bytes)
}

fn counted(output: impl Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let mut output = Counted { inner: BufWriter::new(output), bytes: 0 };
    write(&mut output)?;
    output.flush()?;
    Ok(output.bytes)
}

/// The error without the name of the temporary file, which means nothing to users.
fn without_path(error: std::io::Error) -> std::io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), std::io::Error::from_raw_os_error)
}

struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
