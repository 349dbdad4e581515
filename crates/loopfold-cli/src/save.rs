//! Writing an archive so that the old one is untouched until the new one is complete.

use crate::args::ReadArgs;
use anyhow::{Context as _, Result, bail};
use loopfold::Fold;
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
    for input in &inputs.inputs {
        if input.canonicalize().is_ok_and(|input| input == target) && target.is_file() && !is_archive(&target)
        {
            bail!("{}: is one of the inputs, which the archive would replace", output.display());
        }
    }
    Ok(())
}

/// Writes an archive and returns how many bytes it has; `-` is standard output.
pub(crate) fn save(fold: &Fold, output: &Path) -> Result<u64> {
    let name = || output.display().to_string();
    if output.as_os_str() == "-" {
        return write(fold, std::io::stdout().lock()).context("standard output");
    }
    // Through a link to what it points at.
    let target = output.canonicalize().unwrap_or_else(|_| output.to_path_buf());
    match std::fs::metadata(&target) {
        // A pipe or a device cannot be replaced, only written to.
        Ok(about) if !about.is_file() => {
            let file = File::options().write(true).open(&target).with_context(name)?;
            write(fold, file).with_context(name)
        }
        about => replace(fold, &target, about.ok().map(|about| about.permissions())).with_context(name),
    }
}

/// Writes beside the file and renames. Whatever goes wrong before the end, a full disk
/// or a kill, leaves what was there.
fn replace(fold: &Fold, target: &Path, permissions: Option<Permissions>) -> Result<u64> {
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
    let bytes = write(fold, file.as_file_mut())?;
    file.as_file().sync_all()?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(target).map_err(|error| error.error)?;
    Ok(bytes)
}

fn write(fold: &Fold, output: impl Write) -> Result<u64> {
    let mut output = Counted { inner: BufWriter::new(output), bytes: 0 };
    loopfold::archive::write(fold, &mut output)?;
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
