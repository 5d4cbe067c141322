//! Columns of tables out of rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use freewheel::measures::Op;

use crate::fault::Fault;
use crate::frame::Frame;

/// A table in the making.
#[derive(Default)]
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// A column of texts.
    pub fn texts<'a>(self, name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        self.push(name, DataType::Utf8View, Arc::new(StringViewArray::from_iter_values(values)))
    }

    /// A column of texts, some of which may be missing.
    pub fn optional_texts<'a>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        self.push(name, DataType::Utf8View, Arc::new(StringViewArray::from_iter(values)))
    }

    /// A column of whole numbers, some of which may be missing.
    pub fn whole(self, name: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        let values = values.map(|value| value.and_then(|value| i64::try_from(value).ok()));
        self.push(name, DataType::Int64, Arc::new(Int64Array::from_iter(values)))
    }

    /// A column of numbers, some of which may be missing.
    pub fn numbers(self, name: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        self.push(name, DataType::Float64, Arc::new(Float64Array::from_iter(values)))
    }

    /// A column of yes and no.
    pub fn flags(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        self.push(name, DataType::Boolean, Arc::new(values.map(Some).collect::<BooleanArray>()))
    }

    /// A column of yes and no, some of which may be missing.
    pub fn optional_flags(self, name: &str, values: impl Iterator<Item = Option<bool>>) -> Self {
        self.push(name, DataType::Boolean, Arc::new(values.collect::<BooleanArray>()))
    }

    fn push(mut self, name: &str, of: DataType, array: ArrayRef) -> Self {
        self.fields.push(Field::new(name, of, array.null_count() > 0));
        self.arrays.push(array);
        self
    }

    pub fn frame(self) -> Result<Frame, Fault> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.arrays);
        let batch = batch.map_err(|error| Fault::Other(error.to_string()))?;
        Ok(Frame::new(schema, vec![batch]))
    }
}

/// The word for an operation in tables.
pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Trim => "trim",
    }
}
