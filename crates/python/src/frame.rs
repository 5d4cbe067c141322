//! Tables that polars, pyarrow, DuckDB and pandas take without a copy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::fault::Fault;

/// A table by the Arrow PyCapsule interface. Columns are named with their units.
#[pyclass(frozen, module = "freewheel")]
pub struct Frame {
    schema: SchemaRef,
    batches: Arc<[RecordBatch]>,
}

/// A reader of batches as what `__arrow_c_stream__` gives.
pub fn stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// A schema as what `__arrow_c_schema__` gives.
pub fn schema<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = FFI_ArrowSchema::try_from(schema.as_ref());
    let exported = exported.map_err(|error| Fault::Other(error.to_string()).raise(py))?;
    PyCapsule::new_with_value(py, exported, c"arrow_schema")
}

/// What a function of `freewheel._tables` makes of a frame.
pub fn tables<'py>(frame: &Bound<'py, PyAny>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    frame.py().import("freewheel._tables")?.call_method1(function, (frame,))
}

impl Frame {
    /// These batches, which all have this schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches: batches.into() }
    }

    /// Another one of the same table.
    pub fn share(&self) -> Self {
        Self { schema: Arc::clone(&self.schema), batches: Arc::clone(&self.batches) }
    }

    /// The table as a stream.
    pub fn export<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        stream(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))))
    }
}

#[pymethods]
impl Frame {
    /// Exports the table without a copy; another schema that is asked for is left to whom asks.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        self.export(py)
    }

    /// Exports the names and types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.schema)
    }

    /// Names of the columns, with their units.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Bytes of the table in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// The columns as lists, for programs without such a library.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (number, name) in self.columns().into_iter().enumerate() {
            let list = PyList::empty(py);
            for batch in self.batches.iter() {
                append(&list, batch.column(number))?;
            }
            columns.set_item(name, list)?;
        }
        Ok(columns)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        format!("Frame({} rows: {})", self.__len__(), self.columns().join(", "))
    }

    /// As a DataFrame of polars, without a copy.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_polars")
    }

    /// As a DataFrame of pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_pandas")
    }

    /// As a Table of pyarrow, without a copy.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_pyarrow")
    }
}

/// Adds the values of a column to a list. Frames have no other types.
fn append(list: &Bound<'_, PyList>, column: &dyn Array) -> PyResult<()> {
    match column.data_type() {
        DataType::Int64 => extend(list, column.as_primitive::<Int64Type>().iter()),
        DataType::Float64 => extend(list, column.as_primitive::<Float64Type>().iter()),
        DataType::Boolean => extend(list, column.as_boolean().iter()),
        _ => extend(list, column.as_string_view().iter()),
    }
}

fn extend<'py, T: IntoPyObject<'py>>(
    list: &Bound<'py, PyList>,
    values: impl Iterator<Item = Option<T>>,
) -> PyResult<()> {
    for value in values {
        list.append(value)?;
    }
    Ok(())
}
