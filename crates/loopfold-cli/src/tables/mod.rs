//! `--table`: the rows of an answer in a format that data tools read.
//!
//! Which rows there are, and their columns, is defined in `loopfold_json::tables`; a command writes its
//! answer as it does for `--json`, and the rows are taken out of that. `text` has CSV and JSON, `columns`
//! has Arrow and Parquet. Rows are written in batches: memory does not depend on how many there are.

#[cfg(feature = "arrow")]
mod columns;
mod text;

use crate::args::{Form, OutputPath, TableFormat};
use crate::save;
use crate::show::{self, JsonOut};
use anyhow::{Context as _, Result, bail};
use loopfold_json::tables::{self, Table};
use loopfold_json::{JsonWriter, RowFormat, Rows};
use std::io::{BufWriter, Write};

/// Prints an answer: the rows of a table if `form` asks for them, of the one that is called `default`
/// unless it names another; else one line of JSON.
pub(crate) fn print_answer(
    form: &Form,
    command: &str,
    default: &str,
    write: impl FnOnce(&mut JsonOut<'_>) -> Result<()>,
) -> Result<()> {
    let Some(format) = form.table_format() else { return show::print_json_line(write) };
    let name = form.rows().unwrap_or(default);
    let table = tables::table(command, Some(name));
    let table = table.with_context(|| format!("--rows {name}: there are no such rows"))?;
    let mut left_out = 0;
    save::save_with(form.output(), |out| {
        left_out = write_rows(out, &table, of_format(&table, format, form.is_for_spreadsheet())?, write)?;
        Ok(())
    })?;
    if left_out > 0 {
        show::notes(&[format!("{} left out", show::plural(left_out, "row"))]);
    }
    Ok(())
}

/// Writes the rows of a table. Returns how many the answer leaves out.
pub(crate) fn write_table(
    out: &mut dyn Write,
    table: &Table,
    format: TableFormat,
    is_for_spreadsheet: bool,
    write: impl FnOnce(&mut JsonOut<'_>) -> Result<()>,
) -> Result<u64> {
    write_rows(out, table, of_format(table, format, is_for_spreadsheet)?, write)
}

fn write_rows(
    out: &mut dyn Write,
    table: &Table,
    format: Box<dyn RowFormat>,
    write: impl FnOnce(&mut JsonOut<'_>) -> Result<()>,
) -> Result<u64> {
    let rows = Rows::new(table, format);
    let out: Box<dyn Write + '_> = Box::new(out);
    let mut out = JsonWriter::of_rows(BufWriter::new(out), rows)?;
    write(&mut out)?;
    let left_out = out.end_rows()?;
    out.into_inner().flush()?;
    Ok(left_out)
}

fn of_format(table: &Table, format: TableFormat, is_for_spreadsheet: bool) -> Result<Box<dyn RowFormat>> {
    Ok(match format {
        TableFormat::Csv => Box::new(text::Csv::new(table, is_for_spreadsheet)),
        _ if is_for_spreadsheet => bail!("--spreadsheet is for --table csv"),
        TableFormat::Json => Box::new(text::JsonLines::new(table)),
        #[cfg(feature = "arrow")]
        TableFormat::Arrow => Box::new(columns::Columns::arrow(table)?),
        #[cfg(feature = "arrow")]
        TableFormat::Parquet => Box::new(columns::Columns::parquet(table)?),
    })
}

/// Refuses to print bytes that are no text on a terminal.
pub(crate) fn check_terminal(what: &str, output: Option<&OutputPath>) -> Result<()> {
    let is_shown = output.is_none_or(OutputPath::is_stdout) && show::is_on_terminal();
    if is_shown || output.is_some_and(OutputPath::is_terminal) {
        bail!("{what} is not text: write it to a file with --output, or into a pipe");
    }
    Ok(())
}
