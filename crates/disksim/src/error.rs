//! Where a text is wrong, and how.

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

/// Why the texts are not a drive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{} {message}", if *line == 0 { String::new() } else { format!("{line}:") })]
pub struct ImportError {
    /// Name of the text.
    pub file: String,
    /// Line in it, counted from 1; 0 where the text as a whole is meant.
    pub line: u32,
    /// What is wrong and what was expected.
    pub message: String,
}

/// An error at a place.
pub(crate) fn wrong(at: &Place, message: impl Into<String>) -> ImportError {
    ImportError { file: at.file.to_string(), line: at.line, message: message.into() }
}
