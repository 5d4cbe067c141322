//! The Parquet file of a sweep: a row a configuration, in order.
//!
//! | column | type | content |
//! |---|---|---|
//! | `configuration` | int64 | its number, from 0 |
//! | each swept key | int64, double or string | its value; a string where one of them is no number |
//! | `seed` | int64 | of every random stream; missing where the seed is swept |
//! | [`WHOLE_COLUMNS`] | int64 | sums and times |
//! | [`REAL_COLUMNS`] | double | means, rates and shares |
//! | `result_hash` | string | hash over every completion |
//!
//! Key-value metadata: `freewheel.sweep.schema_version`, `freewheel.version`, `freewheel.sweep.over`, and
//! `freewheel.sweep.first_config`, the first configuration as TOML.

use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use freewheel_trace::PendingFile;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::error::SweepError;
use super::journal::file_error;
use super::keys::SweptKey;
use super::rows::{REAL_COLUMNS, SweepRow, WHOLE_COLUMNS};

/// Values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Other numbers.
    Real(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

/// The columns of a sweep with their names, in order.
pub(super) fn columns(
    keys: &[SweptKey],
    values: &[Vec<usize>],
    seeds: &[u64],
    rows: &[SweepRow],
) -> Vec<(String, Column)> {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let numbers = rows.iter().map(|row| row.configuration as i64).collect();
    let mut all = vec![("configuration".to_owned(), Column::Whole(numbers))];
    for (at, key) in keys.iter().enumerate() {
        let texts = values.iter().map(|of_keys| key.values[of_keys[at]].as_str());
        all.push((key.key.clone(), of_texts(&texts.collect::<Vec<_>>())));
    }
    if keys.iter().all(|key| key.key != "seed") {
        let seeds = seeds.iter().map(|seed| whole(*seed)).collect();
        all.push(("seed".to_owned(), Column::Whole(seeds)));
    }
    for (at, name) in WHOLE_COLUMNS.iter().enumerate() {
        let values = rows.iter().map(|row| whole(row.whole[at])).collect();
        all.push(((*name).to_owned(), Column::Whole(values)));
    }
    for (at, name) in REAL_COLUMNS.iter().enumerate() {
        let values = rows.iter().map(|row| row.real[at]).collect();
        all.push(((*name).to_owned(), Column::Real(values)));
    }
    let hashes = rows.iter().map(|row| row.result_hash.clone()).collect();
    all.push(("result_hash".to_owned(), Column::Text(hashes)));
    all
}

/// Texts as numbers where all of them are some.
fn of_texts(texts: &[&str]) -> Column {
    let plain = |text: &&str| text.replace('_', "");
    let whole: Result<Vec<i64>, _> = texts.iter().map(|text| plain(text).parse()).collect();
    if let Ok(whole) = whole {
        return Column::Whole(whole);
    }
    let real: Result<Vec<f64>, _> = texts.iter().map(|text| plain(text).parse()).collect();
    match real {
        Ok(real) => Column::Real(real),
        Err(_) => {
            let unquoted = |text: &&str| text.trim_matches(['"', '\'']).to_owned();
            Column::Text(texts.iter().map(unquoted).collect())
        }
    }
}

/// Writes the columns to `output`, where the file appears when it is whole.
pub(super) fn write(
    output: &Path,
    columns: &[(String, Column)],
    metadata: Vec<(&str, String)>,
) -> Result<(), SweepError> {
    let pending = PendingFile::create(output).map_err(|error| file_error(output, &error))?;
    let written = write_columns(pending, columns, metadata).map_err(|error| SweepError::File {
        file: output.display().to_string(),
        reason: match error {
            ParquetError::External(error) => error.to_string(),
            error => error.to_string(),
        },
    })?;
    written.keep().map_err(|error| file_error(output, &error))
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
            Column::Whole(values) => write_column::<Int64Type>(&mut group, values)?,
            Column::Real(values) => write_column::<DoubleType>(&mut group, values)?,
            Column::Text(values) => {
                let texts: Vec<ByteArray> =
                    values.iter().map(|text| text.as_str().into()).collect();
                write_column::<ByteArrayType>(&mut group, &texts)?;
            }
        }
    }
    group.close()?;
    let buffer = file.into_inner()?;
    buffer.into_inner().map_err(|error| ParquetError::External(Box::new(error.into_error())))
}

fn schema(columns: &[(String, Column)]) -> ParquetResult<TypePtr> {
    let field = |(name, column): &(String, Column)| {
        let (of, is_text) = match column {
            Column::Whole(_) => (PhysicalType::INT64, false),
            Column::Real(_) => (PhysicalType::DOUBLE, false),
            Column::Text(_) => (PhysicalType::BYTE_ARRAY, true),
        };
        let field = Type::primitive_type_builder(name, of)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(is_text.then_some(LogicalType::String));
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<ParquetResult<Vec<_>>>()?;
    Type::group_type_builder("sweep").with_fields(fields).build().map(Arc::new)
}

type GroupWriter<'a> = SerializedRowGroupWriter<'a, BufWriter<PendingFile>>;

fn write_column<T: DataType>(group: &mut GroupWriter<'_>, values: &[T::T]) -> ParquetResult<()> {
    let missing = || ParquetError::General("the schema has fewer columns than rows".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
