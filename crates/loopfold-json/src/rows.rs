//! Takes the rows of a table out of an answer while it is written.
//!
//! A table names the place of its rows in an answer, such as `loops.iterations`, and the place of each
//! column: keys separated by points, with arrays passed through. These places are a tree. The values of
//! an answer arrive in the order of its text, and [`Rows`] keeps for every open object and array the
//! node of the tree that it is, or none; so what is no column costs a comparison. An object at the
//! place of rows is a row, which goes to a [`RowFormat`] when it ends.
//!
//! Columns of objects around the rows must be written before the rows are. A column that is absent is
//! null. Memory: one row, and a word for each object and array that is open.

use crate::tables::{Kind, Table};
use crate::writer::Value;
use std::io::{Error, Result, Write};

/// A value of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Not known, or not there.
    #[default]
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer that is not negative.
    Unsigned(u64),
    /// An integer.
    Signed(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// Several integers.
    Numbers(Vec<u64>),
}

/// A format of tables.
pub trait RowFormat {
    /// Writes what comes before the rows.
    fn begin(&mut self, out: &mut dyn Write) -> Result<()>;

    /// Writes or keeps a row; it has a cell for each column.
    fn row(&mut self, out: &mut dyn Write, cells: &[Cell]) -> Result<()>;

    /// Writes rows that were kept, and what comes after them.
    fn end(&mut self, out: &mut dyn Write) -> Result<()>;
}

/// What is at a place of the answer.
#[derive(Debug, Default)]
struct Node {
    children: Vec<(&'static str, usize)>,
    column: Option<usize>,
    /// The columns of it and below it, which are null when it begins.
    below: Vec<usize>,
}

/// Takes the rows of a table.
pub struct Rows {
    nodes: Vec<Node>,
    row: usize,
    left_out: Option<usize>,
    columns: Vec<(&'static str, Kind)>,
    cells: Vec<Cell>,
    /// For each open object or array whether it is an object, and its node.
    open: Vec<(bool, Option<usize>)>,
    /// The node of the value that follows a key.
    next: Option<usize>,
    rows_left_out: u64,
    format: Box<dyn RowFormat>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Rows {
    /// Rows of a table, in a format.
    pub fn new(table: &Table, format: Box<dyn RowFormat>) -> Self {
        let mut rows = Self {
            nodes: vec![Node::default()],
            row: 0,
            left_out: None,
            columns: table.columns.iter().map(|column| (column.name, column.kind)).collect(),
            cells: vec![Cell::Null; table.columns.len()],
            open: Vec::new(),
            next: Some(0),
            rows_left_out: 0,
            format,
        };
        rows.row = rows.node(table.rows.split('.'), None);
        if table.is_limited {
            rows.left_out = Some(rows.node(["left_out"], None));
        }
        for (index, column) in table.columns.iter().enumerate() {
            let node = rows.node(column.keys(table), Some(index));
            rows.nodes[node].column = Some(index);
        }
        rows
    }

    /// The node at a place, which is created if there is none; `column` lies at it or below.
    fn node(&mut self, keys: impl IntoIterator<Item = &'static str>, column: Option<usize>) -> usize {
        let mut node = 0;
        for key in keys {
            self.nodes[node].below.extend(column);
            node = self.child(node, key).unwrap_or_else(|| {
                self.nodes.push(Node::default());
                let child = self.nodes.len() - 1;
                self.nodes[node].children.push((key, child));
                child
            });
        }
        self.nodes[node].below.extend(column);
        node
    }

    fn child(&self, node: usize, key: &str) -> Option<usize> {
        self.nodes[node].children.iter().find(|(its_key, _)| *its_key == key).map(|&(_, child)| child)
    }

    pub(crate) fn begin_table(&mut self, out: &mut dyn Write) -> Result<()> {
        self.format.begin(out)
    }

    pub(crate) fn end_table(&mut self, out: &mut dyn Write) -> Result<u64> {
        self.format.end(out)?;
        Ok(self.rows_left_out)
    }

    /// The node of the next value.
    fn place(&self) -> Option<usize> {
        match self.open.last() {
            Some(&(false, node)) => node,
            _ => self.next,
        }
    }

    #[inline]
    pub(crate) fn begin(&mut self, is_object: bool) {
        let mut place = self.place();
        if let Some(node) = place {
            let Node { below, column, .. } = &self.nodes[node];
            if is_object {
                below.iter().for_each(|&column| self.cells[column] = Cell::Null);
                // An object is no value of a column.
                place = place.filter(|_| column.is_none());
            } else if let Some(column) = *column {
                self.cells[column] = match self.columns[column].1 {
                    Kind::Texts => Cell::Texts(Vec::new()),
                    Kind::Numbers => Cell::Numbers(Vec::new()),
                    _ => Cell::Null,
                };
            }
        }
        self.open.push((is_object, place));
        self.next = None;
    }

    #[inline]
    pub(crate) fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        match self.open.pop() {
            Some((true, Some(node))) if node == self.row => self.format.row(out, &self.cells),
            _ => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn key(&mut self, key: &str) {
        let open = self.open.last().and_then(|&(_, node)| node);
        self.next = open.and_then(|node| self.child(node, key));
    }

    #[inline]
    pub(crate) fn value(&mut self, value: Value<'_>) -> Result<()> {
        match self.place() {
            Some(node) => self.take(node, value),
            None => Ok(()),
        }
    }

    /// A value that is formatted already.
    pub(crate) fn formatted(&mut self, out: &mut dyn Write, json: &[u8]) -> Result<()> {
        if self.place().is_none() {
            return Ok(());
        }
        self.parsed(out, &serde_json::from_slice(json)?)
    }

    /// A value that was parsed. Those that other writers format are not deep.
    fn parsed(&mut self, out: &mut dyn Write, value: &serde_json::Value) -> Result<()> {
        use serde_json::Value as Parsed;
        match value {
            Parsed::Null => self.value(Value::Null),
            Parsed::Bool(value) => self.value(Value::Bool(*value)),
            Parsed::String(text) => self.value(Value::Text(text)),
            Parsed::Number(number) => self.value(match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Value::Unsigned(number),
                (_, Some(number)) => Value::Signed(number),
                _ => number.as_f64().map_or(Value::Null, Value::Float),
            }),
            Parsed::Array(values) => {
                self.begin(false);
                values.iter().try_for_each(|value| self.parsed(out, value))?;
                self.end(out)
            }
            Parsed::Object(fields) => {
                self.begin(true);
                for (key, value) in fields {
                    self.key(key);
                    self.parsed(out, value)?;
                }
                self.end(out)
            }
        }
    }

    fn take(&mut self, node: usize, value: Value<'_>) -> Result<()> {
        if self.left_out == Some(node)
            && let Value::Unsigned(count) = value
        {
            self.rows_left_out = count;
        }
        let Some(column) = self.nodes[node].column else { return Ok(()) };
        let (name, kind) = self.columns[column];
        if set(&mut self.cells[column], kind, value) {
            Ok(())
        } else {
            Err(Error::other(format!("the column {name} cannot have the value {value:?}")))
        }
    }
}

/// Sets a value, or appends it to those of a list. Returns whether it is of that kind.
fn set(cell: &mut Cell, kind: Kind, value: Value<'_>) -> bool {
    let one = match (kind, value) {
        (Kind::Texts, Value::Text(text)) => {
            let Cell::Texts(texts) = cell else { return false };
            texts.push(text.to_string());
            return true;
        }
        (Kind::Numbers, Value::Unsigned(number)) => {
            let Cell::Numbers(numbers) = cell else { return false };
            numbers.push(number);
            return true;
        }
        (Kind::Text, Value::Text(text)) => Cell::Text(text.to_string()),
        (_, Value::Null) => Cell::Null,
        (Kind::Bool, Value::Bool(value)) => Cell::Bool(value),
        (Kind::Unsigned, Value::Unsigned(number)) => Cell::Unsigned(number),
        (Kind::Signed, Value::Signed(number)) => Cell::Signed(number),
        (Kind::Signed, Value::Unsigned(number)) => match i64::try_from(number) {
            Ok(number) => Cell::Signed(number),
            Err(_) => return false,
        },
        (Kind::Float, Value::Float(number)) => Cell::Float(number),
        (Kind::Float, Value::Unsigned(number)) => Cell::Float(number as f64),
        (Kind::Float, Value::Signed(number)) => Cell::Float(number as f64),
        _ => return false,
    };
    *cell = one;
    true
}
