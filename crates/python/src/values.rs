//! Values of Python as those of the library, with errors that say how to write them.

use std::path::{Path, PathBuf};

use freewheel::measures::{Bytes, SimDuration};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::Fault;

/// The text of a path, which goes into results. `wanted` are the words for it, `help` the way out.
pub fn path_text(path: &Bound<'_, PyAny>, wanted: &str, help: &'static str) -> PyResult<String> {
    let path: PathBuf = path.extract().map_err(|_| not_a(path, wanted, help))?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| {
        let says =
            format!("{}: the path is not UTF-8, and results could not name it", path.display());
        argument(says, "rename the file").raise_here()
    })
}

/// Err for a file that cannot be written, before any work is done for it.
pub fn check_output(path: &Path) -> Result<(), Fault> {
    if path.is_dir() {
        let says =
            format!("{}: is a folder, not a file: give the name of a file in it", path.display());
        return Err(Fault::File(says));
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => Err(Fault::File(
            format!("{}: there is no folder `{}`: make it first", path.display(), folder.display()),
        )),
        _ => Ok(()),
    }
}

pub fn argument(says: String, help: &'static str) -> Fault {
    Fault::Argument(says, help)
}

impl Fault {
    /// As an exception, for callers that hold the interpreter's lock without saying so.
    pub fn raise_here(self) -> PyErr {
        Python::attach(|py| self.raise(py))
    }
}

/// A word of those that a type knows, as `replay="auto"`.
pub fn word<T: DeserializeOwned>(name: &str, word: &str) -> PyResult<T> {
    serde_json::from_value(Value::String(word.to_owned())).map_err(|error| {
        let says = format!("{name}={word:?}: {error}");
        argument(says, "write one of these words").raise_here()
    })
}

/// The value of one of these words.
pub fn choice<T: Copy>(name: &str, word: &str, all: &[(&str, T)]) -> PyResult<T> {
    let found = all.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|(known, _)| format!("{known:?}")).collect();
        let says = format!("{name}={word:?}: expected one of {}", words.join(", "));
        argument(says, "write one of these words").raise_here()
    })
}

/// A value of the library that is written as a text, as `"64MiB"`.
pub fn parsed<T: std::str::FromStr>(name: &str, text: &str) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| {
        argument(format!("{name}={text:?}: {error}"), "write it as the documentation shows")
            .raise_here()
    })
}

/// A size: a whole number of bytes, or a text as `"64MiB"`.
pub enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    pub fn get(&self, name: &str) -> PyResult<Bytes> {
        match self {
            Self::Bytes(bytes) => Ok(Bytes::new(*bytes)),
            Self::Text(text) => parsed(name, text),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Size {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.extract() {
            return Ok(Self::Text(text));
        }
        let wrong =
            |_| not_a(&given, "a size", "write a whole number of bytes, or a text as \"64MiB\"");
        given.extract().map(Self::Bytes).map_err(wrong)
    }
}

/// A time: seconds, or a text as `"30d"`.
pub enum Time {
    Seconds(f64),
    Text(String),
}

impl Time {
    pub fn get(&self, name: &str) -> PyResult<SimDuration> {
        match self {
            Self::Seconds(seconds) => parsed(name, &format!("{seconds}s")),
            Self::Text(text) => parsed(name, text),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Time {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.extract() {
            return Ok(Self::Text(text));
        }
        let wrong = |_| not_a(&given, "a time", "write seconds, or a text as \"30d\"");
        given.extract().map(Self::Seconds).map_err(wrong)
    }
}

/// A value of another type than is wanted. The name of the argument comes as a note of the exception.
pub fn not_a(given: &Bound<'_, PyAny>, wanted: &str, help: &'static str) -> PyErr {
    let shown = given.repr().map_or_else(|_| "the value".to_owned(), |text| text.to_string());
    argument(format!("{shown}: {wanted} is wanted"), help).raise(given.py())
}

/// One thing or several of them.
pub enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more,
        }
    }
}

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for OneOrMore<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_list = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
        let one = match given.extract() {
            Ok(one) if !is_list => return Ok(Self::One(one)),
            one => one.map(drop).map_err(Into::into),
        };
        match given.try_iter().ok().filter(|_| !given.is_instance_of::<PyDict>()) {
            Some(all) => {
                let all = all.map(|value| value?.extract::<T>().map_err(Into::into));
                all.collect::<PyResult<_>>().map(Self::More)
            }
            None => Err(one.err().unwrap_or_else(|| not_a(&given, "a list", "write [a, b]"))),
        }
    }
}
