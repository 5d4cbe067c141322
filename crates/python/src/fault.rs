//! Errors of the library as exceptions.
//!
//! The classes are those of `freewheel._errors`. A message says file, key and value; the way out follows, in
//! words of Python.

use std::io;

use freewheel::files::FileKind;
use freewheel::{Error, ErrorKind, Surface};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Why a call failed.
#[derive(Debug)]
pub enum Fault {
    /// The library says so.
    Library(Error),
    /// The same of an experiment: the message gets the key that it is about.
    Experiment(Error),
    /// An argument is wrong; with the way out.
    Argument(String, &'static str),
    /// A table is no trace, or cannot be read.
    Table(String),
    /// A file cannot be read or written.
    File(String),
    /// A file is not there.
    Missing(String),
    /// Something that should not happen.
    Other(String),
    /// Python itself says so.
    Python(PyErr),
}

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Library(error.into())
    }
}

impl Fault {
    /// What an experiment is wrong by.
    pub fn experiment(error: impl Into<Error>) -> Self {
        Self::Experiment(error.into())
    }

    /// As JSON that could not be written.
    pub fn json(error: serde_json::Error) -> Self {
        Self::Other(format!("JSON: {error}"))
    }

    /// As TOML that could not be written.
    pub fn toml(error: toml::ser::Error) -> Self {
        Self::Other(format!("TOML: {error}"))
    }

    pub fn raise(self, py: Python<'_>) -> PyErr {
        let raised = match self {
            Self::Library(error) => raise(py, &error, &of_options(&error.to_string())),
            Self::Experiment(error) => {
                let key = error.key().unwrap_or_default();
                raise(py, &error, &format!("{key}{}", of_keys(&error.to_string())))
            }
            Self::Argument(says, help) => new(py, "UsageError", &says, "Argument", Some(help)),
            Self::Table(says) => new(py, "TraceError", &says, "Table", Some(TABLE_HELP)),
            Self::File(says) => new(py, "FileError", &says, "Write", None),
            Self::Missing(says) => {
                new(py, "MissingFileError", &says, "Unreadable", Some(MISSING_HELP))
            }
            Self::Other(says) => new(py, "Error", &says, "Other", None),
            Self::Python(error) => return error,
        };
        raised.unwrap_or_else(|error| error)
    }
}

/// What messages call keys of Python.
pub const KEYS: &str = "the keys";

/// A message about an experiment in words of Python: overrides are no options here, and keys have no lines.
fn of_keys(says: &str) -> String {
    let says = says.replace("--set ", "override ");
    let line = says.strip_prefix(&format!("{KEYS}: line ")).and_then(|rest| rest.split_once(": "));
    line.map_or(says.clone(), |(_, fault)| format!("{KEYS}: {fault}"))
}

/// Options of the command in messages of plans, with what is given for them here.
const OPTIONS: [(&str, &str); 4] = [
    ("--replace ", "replace="),
    ("--add-disk ", "add_disk="),
    ("--disks", "disks="),
    ("--drive", "drive="),
];

fn of_options(says: &str) -> String {
    OPTIONS.iter().fold(says.to_owned(), |says, (option, keyword)| says.replace(option, keyword))
}

const MISSING_HELP: &str = "give the path of a file, from the folder you are in";

const TABLE_HELP: &str = "a trace has the columns arrival_ns, op (read, write, flush or trim), start_block and blocks \
     (of 512 bytes), and may have device, completion_ns and fua";

fn raise(py: Python<'_>, error: &Error, says: &str) -> PyResult<PyErr> {
    let kind = error.kind();
    let name = format!("{kind:?}");
    let name = name.split([' ', '{', '(']).next().unwrap_or_default();
    new(py, class(kind), says, name, error.help(Surface::Python).as_deref())
}

fn new(py: Python<'_>, class: &str, says: &str, kind: &str, help: Option<&str>) -> PyResult<PyErr> {
    let class = py.import("freewheel._errors")?.getattr(class)?.cast_into::<PyType>()?;
    Ok(PyErr::from_value(class.call1((says, kind, help))?))
}

/// The class of `freewheel._errors` that a kind belongs to.
fn class(kind: &ErrorKind) -> &'static str {
    use ErrorKind as E;
    match kind {
        E::UnknownDrive | E::UnknownPolicy | E::UnknownFormat | E::UnknownEnding => "UsageError",
        E::UnknownClaim | E::ScaleFactor { .. } | E::ScrubEffort | E::CacheSize => "UsageError",
        E::Unreadable { reason: io::ErrorKind::NotFound, .. } => "MissingFileError",
        E::Unreadable { .. } | E::TemporaryFile | E::Device { .. } => "FileError",
        E::ExperimentValue | E::ExperimentOverride | E::Unordered => "ConfigError",
        E::NotOfKind { wanted: FileKind::Trace, .. } => "TraceError",
        E::NotOfKind { .. } | E::DiskSim { .. } => "ConfigError",
        E::MalformedHeader | E::DamagedHeader | E::MalformedRecord { .. } => "TraceError",
        E::OtherFormat { .. } | E::NoTrace { .. } | E::UncertainFormat { .. } => "TraceError",
        E::UncertainTimeUnit { .. } | E::FixedTimeUnit | E::FixedNumbers => "TraceError",
        E::FixedLayer | E::NothingRecorded { .. } | E::CacheHitsOnly => "TraceError",
        E::ObjectsOnly | E::DamagedTrace { .. } | E::EmptyTrace | E::NothingRead => "TraceError",
        E::SeveralDevices | E::NoDevice | E::TraceTooLarge | E::NoTiming => "TraceError",
        E::NoRequests | E::TooFewResponses | E::NoCountedReads => "TraceError",
        _ => "Error",
    }
}
