//! Tables as text: comma-separated values, and a JSON object for each row.

use loopfold_json::tables::Table;
use loopfold_json::{Cell, JsonWriter, RowFormat, Value};
use std::borrow::Cow;
use std::io::{Error, Result, Write};

/// Rows that are formatted before they are written.
const BATCH: usize = 1 << 10;

/// What spreadsheets execute begins with one of these; some of them know the wide forms, too.
const FORMULAS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// White space before a formula may be dropped, and what begins with some of it is one cell for some
/// programs and the end of one for others.
fn may_be_formula(text: &str) -> bool {
    text.trim_start().starts_with(FORMULAS) || text.starts_with(['\t', '\r', '\n'])
}

/// Comma-separated values under a line with the names of the columns. A list is separated by blanks, and
/// those of its texts that contain one are quoted, as queries of `find` are; null is empty. Texts are
/// exact, unless they are for a spreadsheet, which takes some of them for formulas.
pub(super) struct Csv {
    names: Vec<&'static str>,
    is_for_spreadsheet: bool,
    /// What is not written yet.
    lines: csv::Writer<Vec<u8>>,
    rows: usize,
}

impl Csv {
    pub(super) fn new(table: &Table, is_for_spreadsheet: bool) -> Self {
        let names = table.columns.iter().map(|column| column.name).collect();
        Self { names, is_for_spreadsheet, lines: csv::Writer::from_writer(Vec::new()), rows: 0 }
    }

    fn write_lines(&mut self, out: &mut dyn Write) -> Result<()> {
        let lines = std::mem::replace(&mut self.lines, csv::Writer::from_writer(Vec::new()));
        self.rows = 0;
        out.write_all(&lines.into_inner().map_err(|error| Error::other(error.to_string()))?)
    }
}

impl RowFormat for Csv {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        self.lines.write_record(&self.names)?;
        self.write_lines(out)
    }

    fn row(&mut self, out: &mut dyn Write, cells: &[Cell]) -> Result<()> {
        for cell in cells {
            let text = match cell {
                Cell::Text(text) => Cow::Borrowed(text.as_str()),
                cell => Cow::Owned(text_of(cell)),
            };
            let is_text = matches!(cell, Cell::Text(_) | Cell::Texts(_));
            if self.is_for_spreadsheet && is_text && may_be_formula(&text) {
                self.lines.write_field(format!("'{text}"))?;
            } else {
                self.lines.write_field(&*text)?;
            }
        }
        self.lines.write_record(None::<&[u8]>)?;
        self.rows += 1;
        if self.rows == BATCH { self.write_lines(out) } else { Ok(()) }
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        self.write_lines(out)
    }
}

fn text_of(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(value) => value.to_string(),
        Cell::Unsigned(number) => number.to_string(),
        Cell::Signed(number) => number.to_string(),
        // With a point, as in JSON.
        Cell::Float(number) => format!("{number:?}"),
        Cell::Text(text) => text.clone(),
        Cell::Texts(texts) => texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(" "),
        Cell::Numbers(numbers) => numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
    }
}

fn quoted(label: &str) -> String {
    let needs_quotes = label.is_empty() || label.contains([' ', '"']);
    if needs_quotes { format!("\"{}\"", label.replace('"', "\"\"")) } else { label.to_string() }
}

/// A JSON object on a line for each row, with all columns in their order.
pub(super) struct JsonLines {
    names: Vec<&'static str>,
    /// What is not written yet.
    lines: JsonWriter<Vec<u8>>,
    rows: usize,
}

impl JsonLines {
    pub(super) fn new(table: &Table) -> Self {
        let names = table.columns.iter().map(|column| column.name).collect();
        Self { names, lines: JsonWriter::new(Vec::new()), rows: 0 }
    }
}

impl RowFormat for JsonLines {
    fn begin(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, out: &mut dyn Write, cells: &[Cell]) -> Result<()> {
        let lines = &mut self.lines;
        lines.begin_object()?;
        for (name, cell) in self.names.iter().zip(cells) {
            lines.key(name)?;
            match cell {
                Cell::Texts(texts) => lines.array(texts)?,
                Cell::Numbers(numbers) => lines.array(numbers.iter().copied())?,
                cell => lines.value(scalar(cell))?,
            }
        }
        lines.end()?;
        lines.end_line()?;
        self.rows += 1;
        if self.rows == BATCH { self.end(out) } else { Ok(()) }
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        self.rows = 0;
        let lines = std::mem::replace(&mut self.lines, JsonWriter::new(Vec::new()));
        out.write_all(&lines.into_inner())
    }
}

fn scalar(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Bool(value) => Value::Bool(*value),
        Cell::Unsigned(number) => Value::Unsigned(*number),
        Cell::Signed(number) => Value::Signed(*number),
        Cell::Float(number) => Value::Float(*number),
        Cell::Text(text) => Value::Text(text),
        Cell::Null | Cell::Texts(_) | Cell::Numbers(_) => Value::Null,
    }
}
