//! Our Parquet; the columns are described beside its reader, in `format/parquet.rs`.
//!
//! Goals: DuckDB, Polars and pandas read it as it is; memory holds one row group and no more.
//! Non-goals: nested data, partitioned folders.

use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use freewheel_units::{Op, SimTime};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::Target;
use crate::error::TraceError;
use crate::{PendingFile, Record};

/// Rows of a row group. One is held in memory: 38 bytes a row.
const GROUP_ROWS: usize = 1 << 20;
/// Rows handed to the encoder at a time.
const BATCH_ROWS: usize = 8192;
/// Signed, as every reader of Parquet understands.
const INT64_MAX: u64 = i64::MAX as u64;
const SCHEMA: &str = "
    message trace {
        required int64 arrival_ns;
        required binary op (string);
        required int32 device (integer(32, false));
        required int64 start_block;
        required int64 blocks;
        optional int64 completion_ns;
        required boolean fua;
    }";

type FileWriter = SerializedFileWriter<BufWriter<PendingFile>>;

/// Writes a trace as Freewheel Parquet.
pub struct ParquetWriter {
    file: FileWriter,
    rows: Rows,
    target: Target,
}

/// The columns of a row group in the making.
#[derive(Default)]
struct Rows {
    arrival_ns: Vec<i64>,
    op: Vec<Op>,
    device: Vec<i32>,
    start_block: Vec<i64>,
    blocks: Vec<i64>,
    /// Known completion times.
    completion_ns: Vec<i64>,
    /// One a row: 1 when known, else 0.
    completion_known: Vec<i16>,
    fua: Vec<bool>,
}

impl ParquetWriter {
    /// Starts a trace at `path`.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let target = Target::new(path);
        let pending = PendingFile::create(path).map_err(|error| target.io(error))?;
        let file = start(pending).map_err(|error| parquet_error(&target, error))?;
        Ok(Self { file, rows: Rows::default(), target })
    }

    /// Appends one record. A time past 2^63 ns is an error, as is an address past 2^64 bytes.
    pub fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        self.target.check_extent(record)?;
        self.target.check("arrival_ns", record.arrival.ns(), INT64_MAX)?;
        let completion = record.completion.map_or(0, SimTime::ns);
        self.target.check("completion_ns", completion, INT64_MAX)?;
        self.rows.push(record);
        self.target.records += 1;
        if self.rows.op.len() == GROUP_ROWS { self.close_group() } else { Ok(()) }
    }

    /// Completes the file and puts it under its name.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.close_group()?;
        let buffer = self.file.into_inner().map_err(|error| parquet_error(&self.target, error))?;
        let pending = buffer.into_inner().map_err(|error| self.target.io(error.into_error()))?;
        pending.keep().map_err(|error| self.target.io(error))
    }

    fn close_group(&mut self) -> Result<(), TraceError> {
        if self.rows.op.is_empty() {
            return Ok(());
        }
        let written = write_group(&mut self.file, &self.rows);
        self.rows.clear();
        written.map_err(|error| parquet_error(&self.target, error))
    }
}

impl Rows {
    /// Every value was checked to fit.
    fn push(&mut self, record: &Record) {
        self.arrival_ns.push(record.arrival.ns() as i64);
        self.op.push(record.op);
        self.device.push(record.device as i32);
        self.start_block.push(record.start.get() as i64);
        self.blocks.push(record.blocks.get() as i64);
        self.completion_ns.extend(record.completion.map(|time| time.ns() as i64));
        self.completion_known.push(i16::from(record.completion.is_some()));
        self.fua.push(record.fua);
    }

    fn clear(&mut self) {
        self.arrival_ns.clear();
        self.op.clear();
        self.device.clear();
        self.start_block.clear();
        self.blocks.clear();
        self.completion_ns.clear();
        self.completion_known.clear();
        self.fua.clear();
    }
}

fn start(pending: PendingFile) -> ParquetResult<FileWriter> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    SerializedFileWriter::new(BufWriter::new(pending), schema, Arc::new(properties()?))
}

fn properties() -> ParquetResult<WriterProperties> {
    // Raised when a column changes its meaning or goes; a column that is added does not raise it: readers
    // go by the names of columns.
    let version = KeyValue::new("freewheel.trace.schema_version".to_owned(), "1".to_owned());
    let builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(vec![version]));
    // Times climb and addresses cluster: differences are short, and no dictionary pays.
    let deltas = ["arrival_ns", "start_block", "completion_ns"].map(ColumnPath::from);
    let builder = deltas.into_iter().fold(builder, |builder, column| {
        builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    });
    Ok(builder.build())
}

/// The columns in the order of the schema.
fn write_group(file: &mut FileWriter, rows: &Rows) -> ParquetResult<()> {
    let mut group = file.next_row_group()?;
    write_column::<Int64Type>(&mut group, &rows.arrival_ns, None)?;
    write_ops(&mut group, &rows.op)?;
    write_column::<Int32Type>(&mut group, &rows.device, None)?;
    write_column::<Int64Type>(&mut group, &rows.start_block, None)?;
    write_column::<Int64Type>(&mut group, &rows.blocks, None)?;
    write_column::<Int64Type>(&mut group, &rows.completion_ns, Some(&rows.completion_known))?;
    write_column::<BoolType>(&mut group, &rows.fua, None)?;
    group.close().map(drop)
}

type GroupWriter<'a> = SerializedRowGroupWriter<'a, BufWriter<PendingFile>>;

fn write_column<T: DataType>(
    group: &mut GroupWriter,
    values: &[T::T],
    known: Option<&[i16]>,
) -> ParquetResult<()> {
    let Some(mut column) = group.next_column()? else { return Err(missing_column()) };
    column.typed::<T>().write_batch(values, known, None)?;
    column.close()
}

fn write_ops(group: &mut GroupWriter, ops: &[Op]) -> ParquetResult<()> {
    let Some(mut column) = group.next_column()? else { return Err(missing_column()) };
    let mut texts = Vec::with_capacity(BATCH_ROWS);
    let names = OpNames::new();
    for batch in ops.chunks(BATCH_ROWS) {
        texts.clear();
        texts.extend(batch.iter().map(|&op| names.get(op)));
        column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
    }
    column.close()
}

/// The texts of the four operations, made once and shared.
struct OpNames([ByteArray; 4]);

impl OpNames {
    fn new() -> Self {
        Self(
            [Op::Read, Op::Write, Op::Flush, Op::Trim]
                .map(|op| ByteArray::from(op.to_string().into_bytes())),
        )
    }

    fn get(&self, op: Op) -> ByteArray {
        self.0[op as usize].clone()
    }
}

fn missing_column() -> ParquetError {
    ParquetError::General("the schema has fewer columns than are written".to_owned())
}

fn parquet_error(target: &Target, error: ParquetError) -> TraceError {
    match error {
        ParquetError::External(error) => match error.downcast() {
            Ok(error) => target.io(*error),
            Err(error) => target.io(io::Error::other(error)),
        },
        error => target.io(io::Error::other(error.to_string())),
    }
}
