//! Rows that are taken while an answer is written.

use loopfold_json::tables::{Column, From, Kind, Table};
use loopfold_json::{Cell, JsonWriter, RowFormat, Rows};
use std::io::{Result, Write};

/// Writes the cells of each row on a line.
struct Lines;

impl RowFormat for Lines {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "begin")
    }

    fn row(&mut self, out: &mut dyn Write, cells: &[Cell]) -> Result<()> {
        writeln!(out, "{cells:?}")
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "end")
    }
}

fn column(name: &'static str, kind: Kind, from: From) -> Column {
    Column { name, kind, from, meaning: "" }
}

fn table() -> Table {
    let columns = vec![
        column("group", Kind::Text, From::Around("groups.name")),
        column("count", Kind::Unsigned, From::Row("count")),
        column("first", Kind::Signed, From::Row("worst.first")),
        column("words", Kind::Texts, From::Row("words")),
    ];
    Table { name: "rows", about: "", rows: "groups.rows", is_limited: true, columns }
}

fn rows(write: impl FnOnce(&mut JsonWriter<Vec<u8>>) -> Result<()>) -> Result<(Vec<String>, u64)> {
    let mut out = JsonWriter::of_rows(Vec::new(), Rows::new(&table(), Box::new(Lines)))?;
    write(&mut out)?;
    let left_out = out.end_rows()?;
    let text = String::from_utf8(out.into_inner()).expect("text");
    Ok((text.lines().map(String::from).collect(), left_out))
}

/// A row, with what is not a column around its values.
fn row(out: &mut JsonWriter<Vec<u8>>, count: u64, words: Option<&[&str]>) -> Result<()> {
    out.begin_object()?;
    out.key("nest")?;
    out.begin_array()?;
    out.begin_object()?;
    out.field("count", 99u64)?;
    out.end()?;
    out.end()?;
    out.field("count", count)?;
    if let Some(words) = words {
        out.key("worst")?;
        out.begin_object()?;
        out.field("count", 98u64)?;
        out.field("first", -1i64)?;
        out.end()?;
        out.key("words")?;
        out.array(words)?;
    }
    out.end()
}

#[test]
fn columns_are_taken_from_their_places() {
    let (lines, left_out) = rows(|out| {
        out.begin_object()?;
        out.field("count", 97u64)?;
        out.field("left_out", 5u64)?;
        out.key("groups")?;
        out.begin_array()?;
        for name in ["a", "b"] {
            out.begin_object()?;
            out.field("name", name)?;
            out.key("rows")?;
            out.begin_array()?;
            row(out, 1, Some(&["x", "y z"]))?;
            row(out, 2, None)?;
            out.end()?;
            out.end()?;
        }
        out.end()?;
        out.end()?;
        out.end_line()
    })
    .expect("rows");
    let rows = |name: &str| {
        [
            format!("[Text({name:?}), Unsigned(1), Signed(-1), Texts([\"x\", \"y z\"])]"),
            format!("[Text({name:?}), Unsigned(2), Null, Null]"),
        ]
    };
    let expected =
        [vec!["begin".to_string()], rows("a").to_vec(), rows("b").to_vec(), vec!["end".to_string()]];
    assert_eq!((lines, left_out), (expected.concat(), 5));
}

#[test]
fn a_value_of_another_kind_is_an_error() {
    let failed = rows(|out| {
        out.begin_object()?;
        out.key("groups")?;
        out.begin_object()?;
        out.field("name", 7u64)?;
        out.end()?;
        out.end()
    });
    let message = failed.expect_err("a number is no name").to_string();
    assert!(message.contains("the column group cannot have the value Unsigned(7)"), "{message}");
}
