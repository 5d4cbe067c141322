//! A table as a Parquet file, which appears when it is whole.

use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use freewheel_trace::PendingFile;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use thiserror::Error;

/// Reasons why a table, or the journal of one, cannot be written.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum TableError {
    /// The journal is that of another job.
    #[error(
        "{file} belongs to another experiment, other values, another trace or another version of the program"
    )]
    OtherJournal { file: String },
    /// Another process fills the journal.
    #[error("{file}: another call is filling it: wait for its end, or choose another output")]
    Busy { file: String },
    /// A file could not be read or written.
    #[error("{file}: {reason}")]
    File {
        file: String,
        /// Reason that the system or the Parquet library gives.
        reason: String,
    },
    /// A text from elsewhere is no row.
    #[error("a worker gave something that is no row of this table")]
    Row,
    /// Rows are missing.
    #[error("{missing} rows of the table are missing")]
    Missing { missing: usize },
}

impl TableError {
    /// A file that the system does not give or take.
    pub fn of(path: &Path, error: &io::Error) -> Self {
        Self::File { file: path.display().to_string(), reason: error.to_string() }
    }
}

/// Values of one column.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Column {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<String>),
    /// Whole numbers, some of which are missing.
    OptionalWhole(Vec<Option<i64>>),
    /// Other numbers, some of which are missing.
    OptionalReal(Vec<Option<f64>>),
    /// Texts, some of which are missing.
    OptionalText(Vec<Option<String>>),
    /// Yes and no, some of which are missing.
    OptionalFlag(Vec<Option<bool>>),
}

impl Column {
    /// The value of a row as a text; empty where it is missing.
    pub fn text(&self, row: usize) -> String {
        match self {
            Self::Whole(values) => values[row].to_string(),
            Self::Real(values) => values[row].to_string(),
            Self::Text(values) => values[row].clone(),
            Self::OptionalWhole(values) => or_empty(values[row].map(|value| value.to_string())),
            Self::OptionalReal(values) => or_empty(values[row].map(|value| value.to_string())),
            Self::OptionalText(values) => or_empty(values[row].clone()),
            Self::OptionalFlag(values) => or_empty(values[row].map(|value| value.to_string())),
        }
    }
}

fn or_empty(text: Option<String>) -> String {
    text.unwrap_or_default()
}

/// Writes the columns to `output`.
pub(crate) fn write(
    output: &Path,
    columns: &[(String, Column)],
    metadata: Vec<(&str, String)>,
) -> Result<(), TableError> {
    let pending = PendingFile::create(output).map_err(|error| TableError::of(output, &error))?;
    let written = write_columns(pending, columns, metadata).map_err(|error| TableError::File {
        file: output.display().to_string(),
        reason: match error {
            ParquetError::External(error) => error.to_string(),
            error => error.to_string(),
        },
    })?;
    written.keep().map_err(|error| TableError::of(output, &error))
}

fn write_columns(
    pending: PendingFile,
    columns: &[(String, Column)],
    metadata: Vec<(&str, String)>,
) -> ParquetResult<PendingFile> {
    let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(metadata.collect()))
        .build();
    let buffer = BufWriter::new(pending);
    let mut file = SerializedFileWriter::new(buffer, schema(columns)?, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, column) in columns {
        match column {
            Column::Whole(values) => write_column::<Int64Type>(&mut group, values, None)?,
            Column::Real(values) => write_column::<DoubleType>(&mut group, values, None)?,
            Column::Text(values) => {
                let texts: Vec<ByteArray> =
                    values.iter().map(|text| text.as_str().into()).collect();
                write_column::<ByteArrayType>(&mut group, &texts, None)?;
            }
            Column::OptionalWhole(values) => {
                write_optional::<Int64Type>(&mut group, values.iter().copied())?;
            }
            Column::OptionalReal(values) => {
                write_optional::<DoubleType>(&mut group, values.iter().copied())?;
            }
            Column::OptionalFlag(values) => {
                write_optional::<BoolType>(&mut group, values.iter().copied())?;
            }
            Column::OptionalText(values) => {
                let texts = values.iter().map(|text| text.as_deref().map(ByteArray::from));
                write_optional::<ByteArrayType>(&mut group, texts)?;
            }
        }
    }
    group.close()?;
    let buffer = file.into_inner()?;
    buffer.into_inner().map_err(|error| ParquetError::External(Box::new(error.into_error())))
}

fn schema(columns: &[(String, Column)]) -> ParquetResult<TypePtr> {
    let fields = columns
        .iter()
        .map(|(name, column)| {
            let of = match column {
                Column::Whole(_) | Column::OptionalWhole(_) => PhysicalType::INT64,
                Column::Real(_) | Column::OptionalReal(_) => PhysicalType::DOUBLE,
                Column::Text(_) | Column::OptionalText(_) => PhysicalType::BYTE_ARRAY,
                Column::OptionalFlag(_) => PhysicalType::BOOLEAN,
            };
            let repetition = match column {
                Column::Whole(_) | Column::Real(_) | Column::Text(_) => Repetition::REQUIRED,
                _ => Repetition::OPTIONAL,
            };
            let is_text = of == PhysicalType::BYTE_ARRAY;
            let field = Type::primitive_type_builder(name, of)
                .with_repetition(repetition)
                .with_logical_type(is_text.then_some(LogicalType::String));
            field.build().map(Arc::new)
        })
        .collect::<ParquetResult<Vec<_>>>()?;
    Type::group_type_builder("freewheel").with_fields(fields).build().map(Arc::new)
}

type GroupWriter<'a> = SerializedRowGroupWriter<'a, BufWriter<PendingFile>>;

/// Writes the values that are there, and where they are.
fn write_optional<T: DataType>(
    group: &mut GroupWriter<'_>,
    values: impl Iterator<Item = Option<T::T>> + Clone,
) -> ParquetResult<()> {
    let levels: Vec<i16> = values.clone().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = values.flatten().collect();
    write_column::<T>(group, &present, Some(&levels))
}

fn write_column<T: DataType>(
    group: &mut GroupWriter<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> ParquetResult<()> {
    let mut column = group.next_column()?.ok_or_else(|| {
        ParquetError::General("the schema has fewer columns than rows".to_owned())
    })?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
