//! Columns as an Arrow table, which pandas, polars, pyarrow and DuckDB take without a copy.

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch, new_empty_array};
use arrow_schema::{Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3_arrow::PyTable;
use std::sync::Arc;

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
    match of {
        "int64" => built!(Int64Builder, i64),
        "uint64" => built!(UInt64Builder, u64),
        "float64" => built!(Float64Builder, f64),
        "bool" => built!(BooleanBuilder, bool),
        "string" => built!(StringBuilder, String),
        "list" => {
            let mut builder = ListBuilder::new(StringBuilder::new());
            for value in values.iter() {
                match value.extract::<Option<Vec<String>>>()? {
                    None => builder.append(false),
                    Some(texts) => {
                        texts.iter().for_each(|text| builder.values().append_value(text));
                        builder.append(true);
                    }
                }
            }
            Ok(Arc::new(builder.finish()))
        }
        "null" => Ok(new_empty_array(&arrow_schema::DataType::Null)),
        other => Err(PyValueError::new_err(format!("no type is called {other}"))),
    }
}
