//! Place and kind of a fault in a text.

use std::fmt;
use std::rc::Rc;

use thiserror::Error;

/// A line of one of the texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub file: Rc<str>,
    pub line: u32,
}

impl Place {
    pub fn new(file: &str, line: u32) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// Kind of mistake that keeps the texts from being a drive: help depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportCause {
    /// No text describes a drive.
    NoDrive,
    /// Files that texts name are not there.
    Missing {
        /// Their names as the texts have them, each once.
        names: Vec<String>,
    },
    /// A text breaks the grammar, or a value is none that its key takes.
    Malformed,
    /// Heads have different blocks per track.
    UnevenHeads,
    /// Another layout than a drive file can say.
    Unrepresentable,
}

/// Reason why the texts are not a drive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{} {message}", if *line == 0 { String::new() } else { format!("{line}:") })]
pub struct ImportError {
    /// Name of the text.
    pub file: String,
    /// Line in it, counted from 1; 0 where the text as a whole is meant.
    pub line: u32,
    /// Fault, and the expected value.
    pub message: String,
    /// Kind of mistake.
    pub cause: ImportCause,
}

impl ImportError {
    pub(crate) fn of(self, cause: ImportCause) -> Self {
        Self { cause, ..self }
    }
}

/// An error at a place: it is malformed.
pub(crate) fn wrong(at: &Place, message: impl Into<String>) -> ImportError {
    ImportError {
        file: at.file.to_string(),
        line: at.line,
        message: message.into(),
        cause: ImportCause::Malformed,
    }
}

/// An error at a place whose layout a drive file cannot say.
pub(crate) fn unrepresentable(at: &Place, message: impl Into<String>) -> ImportError {
    wrong(at, message).of(ImportCause::Unrepresentable)
}

/// A file that is named at a place and is not there.
pub(crate) fn missing(at: &Place, name: &str) -> ImportError {
    let rule =
        format!("`{name}` is needed and neither among the given files nor found beside them");
    wrong(at, rule).of(ImportCause::Missing { names: vec![name.into()] })
}
