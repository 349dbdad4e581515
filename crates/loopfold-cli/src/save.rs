//! Writes the answers of commands: archives, tables and exports, to the output that was claimed, or
//! to standard output.

use crate::args::OutputPath;
use crate::{is_closed_pipe, nodes, show};
use anyhow::{Context as _, Result, anyhow};
use loopfold::Fold;
use loopfold::archive::WriteConfig;
use loopfold_output::Output;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

/// True if a file is an archive.
pub(crate) fn is_archive(path: &Path) -> bool {
    let mut head = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut head));
    read.is_ok_and(|length| loopfold::archive::looks_like(&head[..length]))
}

/// Writes an archive and returns how many bytes it has.
pub(crate) fn save(fold: &Fold, output: &OutputPath) -> Result<u64> {
    save_with(Some(output), |out| Ok(loopfold::archive::write(fold, out)?))
}

/// The same, with what else the archive is to hold.
pub(crate) fn save_fold(fold: &Fold, output: &OutputPath, options: &WriteConfig<'_>) -> Result<u64> {
    save_with(Some(output), |out| Ok(loopfold::archive::write_with(fold, out, options)?))
}

/// How many bytes the archive of a fold would have.
pub(crate) fn archive_bytes(fold: &Fold, options: &WriteConfig<'_>) -> Result<u64> {
    let mut count = Count(0);
    nodes::with_lengths_only(|| loopfold::archive::write_with(fold, &mut count, options))?;
    Ok(count.0)
}

/// Writes what `write` writes and returns how many bytes that is; without an output, to standard
/// output.
pub(crate) fn save_with(
    output: Option<&OutputPath>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<u64> {
    match output.filter(|output| !output.is_stdout()) {
        Some(output) => {
            let is_terminal = output.is_terminal();
            write_to(output.claimed()?, output.path(), |out| {
                let mut out = show::for_file(is_terminal, out);
                write(&mut out)?;
                Ok(out.flush()?)
            })
        }
        None => print(write).context("standard output"),
    }
}

/// Writes a fold as an archive for a library, which claims it only now.
pub(crate) fn save_at(fold: &Fold, path: &Path) -> Result<u64> {
    let output = Output::claim(path).with_context(|| path.display().to_string())?;
    write_to(&output, path, |out| Ok(loopfold::archive::write(fold, out)?))
}

fn write_to(output: &Output, path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let written = output.write(write).with_context(|| path.display().to_string());
    // Whoever reads standard output may stop, but what goes to a pipe by its name is lost then.
    written.map_err(|error| match is_closed_pipe(&error) {
        true => anyhow!("{}: nobody reads the pipe any more", path.display()),
        false => error,
    })
}

/// Standard output is that of the call, if this is one.
fn print(write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let mut out = Counted { inner: io::BufWriter::new(show::raw_stdout()), count: Count(0) };
    write(&mut out)?;
    out.flush()?;
    Ok(out.count.0)
}

/// Writes what came before reading ended early, beside the archive that was asked for: `x.partial.fold`
/// for `x.fold`, or `x.2.partial.fold` if that is there. Returns where that is, and how many bytes.
/// `None` for what is no file.
pub(crate) fn save_partial(fold: &Fold, output: &OutputPath) -> Option<Result<(PathBuf, u64)>> {
    let claimed = match output.claimed() {
        Ok(claimed) => claimed,
        Err(error) => return Some(Err(error)),
    };
    let mut names = loopfold_output::partial_names(claimed.target()).peekable();
    names.peek()?;
    Some(claimed.write_beside(names, |out| -> Result<()> { Ok(loopfold::archive::write(fold, out)?) }))
}

/// Counts bytes, and keeps none.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0 += buffer.len() as u64;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Counted<W> {
    inner: W,
    count: Count,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.count.write(&buffer[..written])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
