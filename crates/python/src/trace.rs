//! Traces: files, and tables that come in by the Arrow PyCapsule interface.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringViewBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use freewheel::experiments::TraceWorkload;
use freewheel::traces::{Character, ConvertOptions, Format, Layer, OpenOptions, TraceRow};
use freewheel::{TraceInfo, TraceReader, convert_trace};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use serde::Serialize;
use tempfile::TempPath;

use crate::fault::Fault;
use crate::frame::{schema, stream, tables};
use crate::job::{self, Watch};
use crate::table::op_name;
use crate::table_in;
use crate::values::{parsed, path_text, word};

/// Where a trace is read from.
pub struct Source {
    pub path: PathBuf,
    /// What results call it.
    pub name: PathBuf,
    open: OpenOptions,
    /// Removes the file of a table in the end.
    _temporary: Option<TempPath>,
}

impl Source {
    pub fn reader(&self) -> Result<TraceReader, Fault> {
        Ok(TraceReader::open(&self.path, &self.open)?)
    }

    /// How it is read.
    pub fn open_options(&self) -> OpenOptions {
        self.open
    }

    /// Its replay, with defaults for how.
    pub fn workload(&self) -> TraceWorkload {
        let OpenOptions { format, lenient, time_unit, clock, numbers, layer, .. } = self.open;
        TraceWorkload {
            file: self.path.clone(),
            format: format.map(|format| format.name().to_owned()),
            lenient,
            time_unit,
            clock,
            numbers,
            layer,
            // The temporary file of a table has another name each time, and results are the same each time.
            shown_as: Some(self.name.clone()),
            ..TraceWorkload::default()
        }
    }
}

/// A trace of block I/O: a file of any format, or a table.
#[pyclass(frozen, module = "freewheel")]
pub struct Trace {
    source: Arc<Source>,
}

/// A trace out of what functions take: a `Trace`, a path, or a table.
pub fn source(trace: &Bound<'_, PyAny>) -> PyResult<Arc<Source>> {
    if let Ok(trace) = trace.cast::<Trace>() {
        return Ok(Arc::clone(&trace.get().source));
    }
    if trace.hasattr("__arrow_c_stream__")? {
        return of_table(trace, "table");
    }
    of_path(trace, OpenOptions::default())
}

fn of_path(path: &Bound<'_, PyAny>, open: OpenOptions) -> PyResult<Arc<Source>> {
    let help = "give the path of a file, a table with the columns of a trace, or a Trace";
    let path = PathBuf::from(path_text(path, "a trace", help)?);
    let source = Source { name: path.clone(), path, open, _temporary: None };
    // What is wrong with the file is known at once.
    source.reader().map(drop).map_err(|fault| fault.raise_here())?;
    Ok(Arc::new(source))
}

fn of_table(table: &Bound<'_, PyAny>, name: &str) -> PyResult<Arc<Source>> {
    let py = table.py();
    let reader = table_in::reader(table)?;
    let temporary = job::run(py, None, move |watch| table_in::written(reader, watch))?;
    let path = temporary.to_path_buf();
    let open = OpenOptions { format: Some(Format::Parquet), ..OpenOptions::default() };
    let source = Source { path, name: name.into(), open, _temporary: Some(temporary) };
    Ok(Arc::new(source))
}

/// Reads a trace through and shows how far it is.
fn read<T>(
    source: &Source,
    watch: &Watch,
    through: impl FnOnce(&mut TraceReader, &mut dyn FnMut(&TraceReader)) -> Result<T, freewheel::Error>,
) -> Result<T, Fault> {
    let mut reader = source.reader()?;
    Ok(through(&mut reader, &mut |reader| report(reader, watch))?)
}

/// Shows how far a reader is in its file.
pub fn report(reader: &TraceReader, watch: &Watch) {
    watch.report(reader.compressed_bytes_read(), reader.compressed_bytes_total());
}

/// A document of the command line as a dict.
fn document<'py>(py: Python<'py>, body: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = freewheel_cli::json_document(body);
    let text = text.map_err(|error| Fault::json(error).raise(py))?;
    py.import("json")?.call_method1("loads", (text,))
}

#[pymethods]
impl Trace {
    /// Opens a trace.
    ///
    /// `name` is what results call a table; the other keywords are those of the command line.
    #[staticmethod]
    #[pyo3(signature = (source, *, format=None, lenient=false, time_unit=None, clock=None, numbers=None, layer="auto", name="table"))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn open(
        source: &Bound<'_, PyAny>,
        format: Option<&str>,
        lenient: bool,
        time_unit: Option<&str>,
        clock: Option<&str>,
        numbers: Option<&str>,
        layer: &str,
        name: &str,
    ) -> PyResult<Self> {
        if source.hasattr("__arrow_c_stream__")? {
            return Ok(Self { source: of_table(source, name)? });
        }
        let format = format.map(|format| format.parse::<Format>());
        let format = format.transpose().map_err(|error| Fault::from(error).raise_here())?;
        let open = OpenOptions {
            format,
            lenient,
            time_unit: time_unit.map(|unit| parsed("time_unit", unit)).transpose()?,
            clock: clock.map(|clock| word("clock", clock)).transpose()?,
            numbers: numbers.map(|numbers| word("numbers", numbers)).transpose()?,
            layer: word::<Layer>("layer", layer)?,
            ..OpenOptions::default()
        };
        Ok(Self { source: of_path(source, open)? })
    }

    /// Counts, span, bytes, footprint and devices: the document of `freewheel trace info --json`.
    #[pyo3(signature = (*, progress=None))]
    fn info<'py>(
        &self,
        py: Python<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = Arc::clone(&self.source);
        let info = job::run(py, progress, move |watch| {
            read(&source, watch, |reader, report| Ok(TraceInfo::scan_watched(reader, report)?))
        })?;
        document(py, &info)
    }

    /// How the load behaves: the document of `freewheel trace characterize --json`.
    #[pyo3(signature = (*, progress=None))]
    fn characterize<'py>(
        &self,
        py: Python<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = Arc::clone(&self.source);
        let character = job::run(py, progress, move |watch| {
            read(&source, watch, |reader, report| Ok(Character::scan(reader, report)?))
        })?;
        document(py, &character)
    }

    /// Writes a trace to a file whose name ends in `.parquet`, `.csv`, `.csv.zst` or `.csv.gz`.
    #[pyo3(signature = (output, *, device=None, progress=None))]
    fn convert<'py>(
        &self,
        py: Python<'py>,
        output: PathBuf,
        device: Option<u32>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = Arc::clone(&self.source);
        let converted = job::run(py, progress, move |watch| {
            let options = ConvertOptions { open: source.open, device };
            Ok(convert_trace(&source.path, &output, &options, |reader| report(reader, watch))?)
        })?;
        document(py, &converted)
    }

    /// Exports the requests, batch by batch; another schema that is asked for is left to whom asks.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let source = Arc::clone(&self.source);
        let reader = source.reader().map_err(|fault| fault.raise(py))?;
        let schema = requests_schema();
        stream(py, Box::new(Batches { reader, schema, _source: source }))
    }

    /// Exports the names and types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &requests_schema())
    }

    /// The requests as a DataFrame of polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_polars")
    }

    /// The requests as a DataFrame of pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_pandas")
    }

    /// The requests as a Table of pyarrow.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_pyarrow")
    }

    /// The format that it is read as.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        let reader = self.source.reader().map_err(|fault| fault.raise(py))?;
        Ok(reader.format().name())
    }

    /// What results call it: its path, or the name of its table.
    #[getter]
    fn name(&self) -> &Path {
        &self.source.name
    }

    fn __repr__(&self) -> String {
        format!("Trace({:?})", self.source.name.display().to_string())
    }
}

/// The formats of traces that are read: name and description.
#[pyfunction]
pub fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for format in Format::ALL {
        all.set_item(format.name(), format.description())?;
    }
    Ok(all)
}

/// The columns of our Parquet.
fn requests_schema() -> SchemaRef {
    let [arrival, op, device, start, blocks, completion, fua] = TraceRow::COLUMNS;
    Arc::new(Schema::new(vec![
        field(arrival, DataType::Int64, false),
        field(op, DataType::Utf8View, false),
        field(device, DataType::UInt32, false),
        field(start, DataType::Int64, false),
        field(blocks, DataType::Int64, false),
        field(completion, DataType::Int64, true),
        field(fua, DataType::Boolean, false),
    ]))
}

fn field(name: &str, of: DataType, is_optional: bool) -> Field {
    Field::new(name, of, is_optional)
}

/// Requests of a batch.
const BATCH_ROWS: usize = 1 << 16;

/// The requests of a trace as tables, one after the other.
struct Batches {
    reader: TraceReader,
    schema: SchemaRef,
    /// Keeps the file of a table.
    _source: Arc<Source>,
}

/// The columns of a batch.
#[derive(Default)]
struct Rows {
    arrivals: Int64Builder,
    ops: StringViewBuilder,
    devices: UInt32Builder,
    starts: Int64Builder,
    blocks: Int64Builder,
    completions: Int64Builder,
    fua: BooleanBuilder,
}

impl Rows {
    fn push(&mut self, row: &TraceRow) -> Result<(), ArrowError> {
        self.arrivals.append_value(whole(row.arrival_ns)?);
        self.ops.append_value(op_name(row.op));
        self.devices.append_value(row.device);
        self.starts.append_value(whole(row.start_block)?);
        self.blocks.append_value(whole(row.blocks)?);
        self.completions.append_option(row.completion_ns.map(whole).transpose()?);
        self.fua.append_value(row.fua);
        Ok(())
    }

    fn finish(mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.arrivals.finish()),
            Arc::new(self.ops.finish()),
            Arc::new(self.devices.finish()),
            Arc::new(self.starts.finish()),
            Arc::new(self.blocks.finish()),
            Arc::new(self.completions.finish()),
            Arc::new(self.fua.finish()),
        ];
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}

fn whole(value: u64) -> Result<i64, ArrowError> {
    i64::try_from(value).map_err(|_| {
        let says = format!("{value} does not fit in int64");
        ArrowError::ExternalError(says.into())
    })
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut rows, mut count) = (Rows::default(), 0);
        for record in self.reader.by_ref().take(BATCH_ROWS) {
            let pushed = record
                .map_err(|error| ArrowError::ExternalError(Box::new(error)))
                .and_then(|record| rows.push(&TraceRow::from(&record)));
            if let Err(error) = pushed {
                return Some(Err(error));
            }
            count += 1;
        }
        (count > 0).then(|| rows.finish(&self.schema))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
