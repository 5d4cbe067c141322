//! Values of Python as TOML, of which experiments are made.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use crate::drive::{self, Drive};
use crate::values::argument;

/// A value of TOML out of one of Python; None for None.
pub fn toml_value(value: &Bound<'_, PyAny>) -> PyResult<Option<toml::Value>> {
    let py = value.py();
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(toml::Value::String(text.to_str()?.to_owned())));
    }
    // Before numbers: a bool is one in Python.
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(Some(toml::Value::Boolean(yes.is_true())));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        return toml_table(table).map(|table| Some(toml::Value::Table(table)));
    }
    if value.hasattr("__fspath__")? || value.cast::<Drive>().is_ok() {
        return Ok(Some(toml::Value::String(drive::reference(value)?)));
    }
    // A number of numpy has __index__ or __float__, too.
    if value.hasattr("__index__")? {
        let number = value.extract::<i64>();
        let wrong = |_| argument(format!("{value}: a whole number up to 2^63 - 1 is wanted"), "");
        return number
            .map(|number| Some(toml::Value::Integer(number)))
            .map_err(|e| wrong(e).raise(py));
    }
    if value.hasattr("__float__")? {
        return Ok(Some(toml::Value::Float(value.extract()?)));
    }
    let items = value.try_iter().map_err(|_| {
        let says =
            format!("a value of the type {} is none that an experiment has", value.get_type());
        argument(says, "write a text, a number, a bool, a list, a dict or a path").raise(py)
    })?;
    let items = items.map(|item| toml_value(&item?)).collect::<PyResult<Vec<_>>>()?;
    Ok(Some(toml::Value::Array(items.into_iter().flatten().collect())))
}

/// A table of TOML; keys whose value is None are left out.
pub fn toml_table(table: &Bound<'_, PyDict>) -> PyResult<toml::Table> {
    let mut into = toml::Table::new();
    for (key, value) in table {
        let key: String = key.extract()?;
        if let Some(value) = toml_value(&value)? {
            into.insert(key, value);
        }
    }
    Ok(into)
}
