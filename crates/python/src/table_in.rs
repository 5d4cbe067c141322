//! Tables that come in by the Arrow PyCapsule interface, as traces.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, RecordBatch, RecordBatchReader, downcast_dictionary_array, downcast_integer_array,
};
use arrow_schema::DataType;
use freewheel::measures::Op;
use freewheel::traces::{TraceRow, write_trace};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tempfile::TempPath;

use crate::fault::Fault;
use crate::job::Watch;

/// A reader of the table's batches.
pub fn reader(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    let stream = stream.as_ptr().cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a valid stream, by the Arrow PyCapsule interface. It is moved out,
    // and the capsule finds it released.
    #[expect(unsafe_code, reason = "the interface is one of C")]
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream) };
    reader.map_err(|error| Fault::Table(format!("the table: {error}")).raise(table.py()))
}

/// The table as a trace in a temporary file.
pub fn written(reader: RecordBatchStreamReader, watch: &Watch) -> Result<TempPath, Fault> {
    let file = tempfile::Builder::new().prefix("freewheel-").suffix(".parquet").tempfile();
    let file = file.map_err(|error| Fault::File(format!("a temporary file: {error}")))?;
    let path = file.into_temp_path();
    let mut first = 0;
    let untyped = untyped(&reader);
    let rows = reader.flat_map(|batch| {
        let batch = batch.map_err(|error| match &untyped {
            Some(name) => {
                Fault::Table(format!("`{name}` is a column without a type: it has no values"))
            }
            None => Fault::Table(format!("the table: {error}")),
        });
        let rows = batch.and_then(|batch| rows(&batch, first));
        first += rows.as_ref().map_or(0, |rows| rows.len() as u64);
        watch.report(first, first + 1);
        match rows {
            Ok(rows) => rows.into_iter().map(Ok).collect(),
            Err(fault) => vec![Err(fault)],
        }
    });
    write_trace(&path, rows)?;
    Ok(path)
}

/// Name of a column of nulls alone, which not every library exports as others import it.
fn untyped(reader: &RecordBatchStreamReader) -> Option<String> {
    let schema = reader.schema();
    let mut fields = schema.fields().iter();
    let found = fields.find(|field| *field.data_type() == DataType::Null);
    found.map(|field| field.name().clone())
}

/// The rows of a batch; `first` is the number of the first one, from 0.
fn rows(batch: &RecordBatch, first: u64) -> Result<Vec<TraceRow>, Fault> {
    let [arrivals, ops, devices, starts, blocks, completions, fua] = TraceRow::COLUMNS;
    let needed = |name: &str| {
        numbers(batch, name, first)?
            .ok_or_else(|| Fault::Table(format!("the table has no column `{name}`")))
    };
    let (arrival, start, count) = (needed(arrivals)?, needed(starts)?, needed(blocks)?);
    let op = self::ops(batch, ops, first)?;
    let (device, completion, fua) = (
        numbers(batch, devices, first)?,
        numbers(batch, completions, first)?,
        numbers(batch, fua, first)?,
    );
    let all = (0..batch.num_rows()).map(|row| {
        let device = or_none(&device, row).unwrap_or(0);
        Ok(TraceRow {
            arrival_ns: value(&arrival, arrivals, row, first)?,
            op: op[row],
            device: u32::try_from(device).map_err(|_| {
                Fault::Table(format!("row {}: `device` is {device}", first + row as u64))
            })?,
            start_block: value(&start, starts, row, first)?,
            blocks: value(&count, blocks, row, first)?,
            completion_ns: or_none(&completion, row),
            fua: or_none(&fua, row) == Some(1),
        })
    });
    all.collect()
}

fn value(column: &[Option<u64>], name: &str, row: usize, first: u64) -> Result<u64, Fault> {
    column[row].ok_or_else(|| Fault::Table(format!("row {}: `{name}` is null", first + row as u64)))
}

fn or_none(column: &Option<Vec<Option<u64>>>, row: usize) -> Option<u64> {
    column.as_ref().and_then(|c| c[row])
}

/// A column of whole numbers of any width, of numbers without a fraction, or of yes and no. None where the table
/// has no such column.
fn numbers(batch: &RecordBatch, name: &str, first: u64) -> Result<Option<Vec<Option<u64>>>, Fault> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let column: &dyn Array = column;
    let values: Result<Vec<Option<u64>>, Fault> = downcast_integer_array!(
        column => {
            let values = column.iter().enumerate().map(|(row, value)| {
                let whole = value.map(i128::from);
                whole.map(|value| u64::try_from(value).map_err(|_| wrong(row, &value, name, first))).transpose()
            });
            values.collect()
        }
        DataType::Boolean => {
            Ok(column.as_boolean().iter().map(|value| value.map(u64::from)).collect())
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().iter().enumerate();
            // Where pandas has no value, it has a number that is none.
            let values = values.map(|(row, value)| match value.filter(|value| !value.is_nan()) {
                Some(value) if value < 0.0 || value.fract() != 0.0 => Err(wrong(row, &value, name, first)),
                value => Ok(value.map(|value| value as u64)),
            });
            values.collect()
        }
        DataType::Null => Ok(vec![None; column.len()]),
        other => Err(Fault::Table(format!("`{name}` is a column of {other}, and no numbers"))),
    );
    values.map(Some)
}

fn wrong(row: usize, value: &dyn std::fmt::Display, name: &str, first: u64) -> Fault {
    Fault::Table(format!("row {}: `{name}` is {value}", first + row as u64))
}

/// A column of texts or whole numbers as texts. None where the table has no such column.
pub fn words(batch: &RecordBatch, name: &str) -> Result<Option<Vec<Option<String>>>, Fault> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    if column.data_type().is_numeric() {
        let numbers = numbers(batch, name, 0)?.into_iter().flatten();
        return Ok(Some(numbers.map(|number| number.map(|number| number.to_string())).collect()));
    }
    texts(column, name, |(_, text)| Ok(text.map(str::to_owned))).map(Some)
}

/// The column of operations.
fn ops(batch: &RecordBatch, name: &str, first: u64) -> Result<Vec<Op>, Fault> {
    let column = batch.column_by_name(name);
    let column = column.ok_or_else(|| Fault::Table(format!("the table has no column `{name}`")))?;
    texts(column, name, |(row, text)| match text {
        Some("read" | "R") => Ok(Op::Read),
        Some("write" | "W") => Ok(Op::Write),
        Some("flush" | "F") => Ok(Op::Flush),
        Some("trim" | "T") => Ok(Op::Trim),
        other => {
            let (row, other) = (first + row as u64, other.unwrap_or("null"));
            Err(Fault::Table(format!("row {row}: `{name}` is {other}")))
        }
    })
}

/// Rows of a column of texts, as `each` makes them.
fn texts<T>(
    column: &dyn Array,
    name: &str,
    each: impl Fn((usize, Option<&str>)) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().enumerate().map(each).collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().enumerate().map(each).collect(),
        DataType::Utf8View => column.as_string_view().iter().enumerate().map(each).collect(),
        DataType::Dictionary(_, _) => of_dictionary(column, name, each),
        DataType::Null => (0..column.len()).map(|row| each((row, None))).collect(),
        other => Err(Fault::Table(format!("`{name}` is a column of {other}, and no texts"))),
    }
}

/// Rows of a dictionary, likewise, as polars and pandas have categories.
fn of_dictionary<T>(
    column: &dyn Array,
    name: &str,
    each: impl Fn((usize, Option<&str>)) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let (keys, values) = downcast_dictionary_array!(
        column => {
            let keys: Vec<Option<usize>> = (0..column.len()).map(|row| column.key(row)).collect();
            (keys, std::sync::Arc::clone(column.values()))
        }
        _ => return Err(no_texts(name)),
    );
    let keys = keys.into_iter().enumerate();
    keys.map(|(row, key)| {
        each((
            row,
            key.map(|key| match values.data_type() {
                DataType::Utf8 => Ok(values.as_string::<i32>().value(key)),
                DataType::LargeUtf8 => Ok(values.as_string::<i64>().value(key)),
                DataType::Utf8View => Ok(values.as_string_view().value(key)),
                _ => Err(no_texts(name)),
            })
            .transpose()?,
        ))
    })
    .collect()
}

fn no_texts(name: &str) -> Fault {
    Fault::Table(format!("`{name}` has categories that are no texts"))
}
