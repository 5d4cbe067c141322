//! The command line of Freewheel, for the entry point.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line, whose first word is the program's name, and gives the exit code.
///
/// `itself` are the words that start this program again.
#[pyfunction]
pub fn run_command_line(py: Python<'_>, words: Vec<OsString>, itself: Vec<OsString>) -> u8 {
    py.detach(|| {
        freewheel_cli::starts_by(itself);
        freewheel_cli::run(words)
    })
}
