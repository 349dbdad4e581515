//! `loopfold export --to weights`, `parquet` and `safetensors`: every distinct segment of the nests, with
//! the number of events it stands for, as a training set.

use crate::args::TableFormat;
use crate::tables;
use anyhow::{Context as _, Result};
use loopfold::Fold;
use loopfold::questions::segments::Segment;
use loopfold_json::tables::table;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Writes a table with a row for each segment; its texts are exact, unless they are for a spreadsheet.
pub(super) fn write_table(
    fold: &Fold,
    format: TableFormat,
    is_for_spreadsheet: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let table = table("segments", None).context("segments have no table")?;
    let segments = fold.segments()?;
    tables::write_table(out, &table, format, is_for_spreadsheet, |out| {
        Ok(loopfold_json::segments::segments(out, fold, &segments)?)
    })?;
    Ok(())
}

/// A column of integers: its name, its type, its length, and its bytes.
type Tensor = (&'static str, &'static str, usize, Vec<u8>);

/// Writes the columns as tensors, with the symbols of all segments one after the other and the offset
/// at which each begins; the metadata has the labels of symbols and the names of streams, as JSON.
pub(super) fn write_tensors(fold: &Fold, out: &mut dyn Write) -> Result<()> {
    let segments = fold.segments()?;
    let tensors = tensors(&segments);
    let labels: Vec<String> = fold.alphabet().symbols().map(|symbol| fold.alphabet().label(symbol)).collect();
    let streams: Vec<&str> = fold.streams().iter().map(|stream| stream.name().raw()).collect();
    let mut header = Map::new();
    let metadata = json!({"labels": json!(labels).to_string(), "streams": json!(streams).to_string()});
    header.insert("__metadata__".to_string(), metadata);
    let mut offset = 0;
    for (name, dtype, length, bytes) in &tensors {
        let end = offset + bytes.len();
        let about = json!({"dtype": dtype, "shape": [length], "data_offsets": [offset, end]});
        header.insert((*name).to_string(), about);
        offset = end;
    }
    let mut header = Value::Object(header).to_string();
    // The data that follow are aligned.
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    for (.., bytes) in &tensors {
        out.write_all(bytes)?;
    }
    Ok(())
}

fn tensors(segments: &[Segment]) -> Vec<Tensor> {
    let column = |name, of: fn(&Segment) -> u64| -> Tensor {
        let bytes: Vec<u8> = segments.iter().flat_map(|segment| of(segment).to_le_bytes()).collect();
        (name, "U64", segments.len(), bytes)
    };
    let mut offsets = vec![0u64];
    for segment in segments {
        offsets.push(offsets[offsets.len() - 1] + segment.events.len() as u64);
    }
    let symbols = segments.iter().flat_map(|segment| &segment.events);
    let symbols: Vec<u8> = symbols.flat_map(|symbol| symbol.raw().to_le_bytes()).collect();
    let offset_bytes = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    vec![
        column("stream", |segment| segment.stream.index() as u64),
        column("start", |segment| segment.start),
        column("depth", |segment| segment.depth.into()),
        column("times", |segment| segment.times),
        column("weight", Segment::weight),
        ("offsets", "U64", offsets.len(), offset_bytes),
        ("symbols", "U32", symbols.len() / 4, symbols),
    ]
}
