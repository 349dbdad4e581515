//! Answers as JSON on standard output.

use anyhow::Result;
use loopfold_json::JsonWriter;
use std::io::{BufWriter, Write};

/// A writer of an answer, to standard output or as a table.
pub(crate) type JsonOut<'a> = JsonWriter<BufWriter<Box<dyn Write + 'a>>>;

/// Bytes that are kept before they are written: answers that are not longer are printed only if
/// nothing failed.
const BUFFER: usize = 1 << 18;

/// Prints what is written.
pub(crate) fn print_json(write: impl FnOnce(&mut JsonOut<'_>) -> Result<()>) -> Result<()> {
    let mut out = JsonWriter::new(BufWriter::with_capacity(BUFFER, super::raw_stdout()));
    let written = write(&mut out);
    let mut out = out.into_inner();
    if written.is_err() {
        // Not flushed, as dropping the buffer would do.
        let _ = out.into_parts();
        return written;
    }
    Ok(out.flush()?)
}

/// Prints one value on a line.
pub(crate) fn print_json_line(write: impl FnOnce(&mut JsonOut<'_>) -> Result<()>) -> Result<()> {
    print_json(|out| {
        write(out)?;
        Ok(out.end_line()?)
    })
}
