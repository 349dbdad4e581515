//! Columns as an Arrow table, which pandas, polars, pyarrow and DuckDB take without a copy; which
//! columns the rows of an answer have is what the command's `--table` has, too.

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch, new_empty_array};
use arrow_schema::{Field, Schema};
use loopfold_json::tables::{self, From};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3_arrow::PyTable;
use std::collections::HashMap;
use std::sync::Arc;

/// A table: its name, where its rows lie in an answer, and its columns, each with its name, its type,
/// whether it lies around the rows, and its place.
type Definition = (&'static str, &'static str, Vec<(&'static str, &'static str, bool, &'static str)>);

/// The tables of each command.
#[pyfunction(name = "tables")]
pub(crate) fn definitions() -> HashMap<&'static str, Vec<Definition>> {
    let definition = |table: tables::Table| {
        let columns = table.columns.iter().map(|column| {
            let (is_around, keys) = match column.from {
                From::Row(keys) => (false, keys),
                From::Around(keys) => (true, keys),
            };
            (column.name, column.kind.name(), is_around, keys)
        });
        (table.name, table.rows, columns.collect())
    };
    let of_command = |command| tables::tables(command).into_iter().map(definition).collect();
    tables::COMMANDS.into_iter().map(|command| (command, of_command(command))).collect()
}

/// A table of columns, each with its name, its type and its values; `None` is a value that is not
/// known.
#[pyfunction]
pub(crate) fn table(columns: Vec<(String, String, Bound<'_, PyList>)>) -> PyResult<PyTable> {
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut fields: Vec<Field> = Vec::new();
    for (name, of, values) in &columns {
        let array = column(of, values)?;
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = match arrays.is_empty() {
        true => RecordBatch::new_empty(Arc::clone(&schema)),
        false => RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(wrong)?,
    };
    PyTable::try_new(vec![batch], schema)
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn column(of: &str, values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    macro_rules! built {
        ($builder:ty, $type:ty) => {{
            let mut builder = <$builder>::new();
            for value in values.iter() {
                builder.append_option(value.extract::<Option<$type>>()?);
            }
            Ok(Arc::new(builder.finish()) as ArrayRef)
        }};
    }
    macro_rules! built_list {
        ($builder:ty, $type:ty) => {{
            let mut builder = ListBuilder::new(<$builder>::new());
            for value in values.iter() {
                let items = value.extract::<Option<Vec<$type>>>()?;
                builder.append_option(items.map(|items| items.into_iter().map(Some)));
            }
            Ok(Arc::new(builder.finish()) as ArrayRef)
        }};
    }
    match of {
        "int64" => built!(Int64Builder, i64),
        "uint64" => built!(UInt64Builder, u64),
        "float64" => built!(Float64Builder, f64),
        "bool" => built!(BooleanBuilder, bool),
        "string" => built!(StringBuilder, String),
        "list<string>" => built_list!(StringBuilder, String),
        "list<uint64>" => built_list!(UInt64Builder, u64),
        "null" => Ok(new_empty_array(&arrow_schema::DataType::Null)),
        other => Err(PyValueError::new_err(format!("no type is called {other}"))),
    }
}
