//! Values of Python as those of the library, with errors that say how to write them.

use std::path::PathBuf;

use freewheel::measures::{Bytes, SimDuration};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::Fault;

/// The text of a path, which goes into results.
pub fn path_text(path: &Bound<'_, PyAny>) -> PyResult<String> {
    let path: PathBuf = path.extract()?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| {
        let says =
            format!("{}: the path is not UTF-8, and results could not name it", path.display());
        argument(says, "rename the file").raise_here()
    })
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
#[derive(FromPyObject)]
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

/// A time: seconds, or a text as `"30d"`.
#[derive(FromPyObject)]
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

/// One thing or several of them.
#[derive(FromPyObject)]
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
