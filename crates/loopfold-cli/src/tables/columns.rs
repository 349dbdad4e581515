//! Tables by column: the stream format of Arrow, and Parquet.
//!
//! Rows are collected in batches of [`BATCH`] rows or [`BATCH_BYTES`] of text, whichever comes first. A
//! batch of Arrow is written at once; Parquet keeps encoded columns until a row group has
//! [`GROUP_BYTES`]. So memory is bounded, but for a single row that is larger, which is an error from
//! [`LONGEST_ROW`] on, as offsets of Arrow have 32 bits.

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use loopfold_json::tables::{Kind, Table};
use loopfold_json::{Cell, RowFormat};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io::{Error, Result, Write};
use std::sync::Arc;

const BATCH: usize = 1 << 14;
const BATCH_BYTES: usize = 1 << 23;
const GROUP_BYTES: usize = 1 << 26;
const LONGEST_ROW: usize = 1 << 30;

/// A column of the rows that are not in a batch yet.
enum Builder {
    Text(StringBuilder),
    Unsigned(UInt64Builder),
    Signed(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Texts(ListBuilder<StringBuilder>),
    Numbers(ListBuilder<UInt64Builder>),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Unsigned => Self::Unsigned(UInt64Builder::new()),
            Kind::Signed => Self::Signed(Int64Builder::new()),
            Kind::Float => Self::Float(Float64Builder::new()),
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Texts => Self::Texts(ListBuilder::new(StringBuilder::new())),
            Kind::Numbers => Self::Numbers(ListBuilder::new(UInt64Builder::new())),
        }
    }

    /// Appends a value; one of another kind is null, but no row has one.
    fn append(&mut self, cell: &Cell) {
        match (self, cell) {
            (Self::Text(builder), Cell::Text(text)) => builder.append_value(text),
            (Self::Text(builder), _) => builder.append_null(),
            (Self::Unsigned(builder), Cell::Unsigned(number)) => builder.append_value(*number),
            (Self::Unsigned(builder), _) => builder.append_null(),
            (Self::Signed(builder), Cell::Signed(number)) => builder.append_value(*number),
            (Self::Signed(builder), _) => builder.append_null(),
            (Self::Float(builder), Cell::Float(number)) => builder.append_value(*number),
            (Self::Float(builder), _) => builder.append_null(),
            (Self::Bool(builder), Cell::Bool(value)) => builder.append_value(*value),
            (Self::Bool(builder), _) => builder.append_null(),
            (Self::Texts(builder), Cell::Texts(texts)) => {
                texts.iter().for_each(|text| builder.values().append_value(text));
                builder.append(true);
            }
            (Self::Texts(builder), _) => builder.append(false),
            (Self::Numbers(builder), Cell::Numbers(numbers)) => {
                builder.values().append_slice(numbers);
                builder.append(true);
            }
            (Self::Numbers(builder), _) => builder.append(false),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Unsigned(builder) => Arc::new(builder.finish()),
            Self::Signed(builder) => Arc::new(builder.finish()),
            Self::Float(builder) => Arc::new(builder.finish()),
            Self::Bool(builder) => Arc::new(builder.finish()),
            Self::Texts(builder) => Arc::new(builder.finish()),
            Self::Numbers(builder) => Arc::new(builder.finish()),
        }
    }
}

/// The type of a column of this kind.
fn data_type(kind: Kind) -> DataType {
    let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    match kind {
        Kind::Text => DataType::Utf8,
        Kind::Unsigned => DataType::UInt64,
        Kind::Signed => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Texts => list(DataType::Utf8),
        Kind::Numbers => list(DataType::UInt64),
    }
}

fn schema(table: &Table) -> SchemaRef {
    let field =
        |column: &loopfold_json::tables::Column| Field::new(column.name, data_type(column.kind), true);
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// The bytes that a value takes in a batch, about.
fn bytes_of(cell: &Cell) -> usize {
    match cell {
        Cell::Text(text) => text.len() + 8,
        Cell::Texts(texts) => texts.iter().map(|text| text.len() + 8).sum(),
        Cell::Numbers(numbers) => 8 * numbers.len(),
        _ => 8,
    }
}

/// Rows that become a batch.
struct Batch {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    bytes: usize,
}

impl Batch {
    fn new(table: &Table) -> Self {
        let builders = table.columns.iter().map(|column| Builder::new(column.kind)).collect();
        Self { schema: schema(table), builders, rows: 0, bytes: 0 }
    }

    /// Appends a row. Returns the rows before it if they are as many as a batch has.
    fn push(&mut self, cells: &[Cell]) -> Result<Option<RecordBatch>> {
        let bytes: usize = cells.iter().map(bytes_of).sum();
        if bytes > LONGEST_ROW {
            return Err(Error::other("a row has more than 1 GiB, which Arrow and Parquet cannot have here"));
        }
        let is_full = self.rows == BATCH || self.bytes + bytes > BATCH_BYTES;
        let before = if is_full { self.take()? } else { None };
        self.builders.iter_mut().zip(cells).for_each(|(builder, cell)| builder.append(cell));
        self.rows += 1;
        self.bytes += bytes;
        Ok(before)
    }

    /// The rows so far, if there are any.
    fn take(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows == 0 {
            return Ok(None);
        }
        (self.rows, self.bytes) = (0, 0);
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map(Some).map_err(Error::other)
    }
}

/// Encodes batches into memory, from which they are taken to be written.
pub(super) trait Encoder {
    fn encode(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Encodes what comes after all batches.
    fn finish(&mut self) -> Result<()>;

    /// What is encoded and was not taken yet.
    fn encoded(&mut self) -> &mut Vec<u8>;
}

/// Tables in a format of batches.
pub(super) struct Columns<E> {
    batch: Batch,
    encoder: E,
}

impl Columns<ArrowStream> {
    pub(super) fn arrow(table: &Table) -> Result<Self> {
        let batch = Batch::new(table);
        let encoder = StreamWriter::try_new(Vec::new(), &batch.schema).map_err(Error::other)?;
        Ok(Self { batch, encoder })
    }
}

impl Columns<Parquet> {
    pub(super) fn parquet(table: &Table) -> Result<Self> {
        let batch = Batch::new(table);
        // Every reader has Snappy.
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("loopfold version ", env!("CARGO_PKG_VERSION")).to_string())
            .build();
        let schema = Arc::clone(&batch.schema);
        let encoder = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map_err(Error::other)?;
        Ok(Self { batch, encoder })
    }
}

impl<E: Encoder> Columns<E> {
    fn write(&mut self, out: &mut dyn Write, batch: Option<RecordBatch>) -> Result<()> {
        batch.map_or(Ok(()), |batch| self.encoder.encode(&batch))?;
        out.write_all(&std::mem::take(self.encoder.encoded()))
    }
}

impl<E: Encoder> RowFormat for Columns<E> {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        self.write(out, None)
    }

    fn row(&mut self, out: &mut dyn Write, cells: &[Cell]) -> Result<()> {
        match self.batch.push(cells)? {
            None => Ok(()),
            full => self.write(out, full),
        }
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        let rest = self.batch.take()?;
        self.write(out, rest)?;
        self.encoder.finish()?;
        self.write(out, None)
    }
}

/// The stream format of Arrow.
type ArrowStream = StreamWriter<Vec<u8>>;

impl Encoder for ArrowStream {
    fn encode(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write(batch).map_err(Error::other)
    }

    fn finish(&mut self) -> Result<()> {
        Self::finish(self).map_err(Error::other)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }
}

/// A file of Parquet.
type Parquet = ArrowWriter<Vec<u8>>;

impl Encoder for Parquet {
    fn encode(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write(batch).map_err(Error::other)?;
        if self.memory_size() > GROUP_BYTES {
            self.flush().map_err(Error::other)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Self::finish(self).map_err(Error::other)?;
        // Its own buffer is behind the memory.
        self.sync()
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        self.inner_mut()
    }
}
