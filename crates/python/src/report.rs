//! What all results have in common: a document, a page, a text, a table.

use std::path::{Path, PathBuf};

use freewheel::files::PendingFile;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::fault::Fault;
use crate::frame::{Frame, tables};

/// A text that is made when it is asked for.
pub type Made = Box<dyn Fn() -> Result<String, Fault> + Send + Sync>;

/// Parts of a result.
pub struct Parts {
    /// The document of `--json`.
    pub json: Made,
    /// The page; None where there is none.
    pub html: Option<Made>,
    pub text: Made,
    pub frame: Option<Frame>,
}

/// A result: a document, a page, a text, and where there is one a table.
#[pyclass(frozen, subclass, module = "freewheel")]
pub struct Report {
    parts: Parts,
}

const TABLE_HELP: &str = "to_dict() has all of it; of an experiment, simulate(..., completions=True) keeps the completions";

impl Report {
    /// A result of these parts.
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    fn table(&self, py: Python<'_>) -> PyResult<&Frame> {
        self.parts.frame.as_ref().ok_or_else(|| {
            let says = "this result has no table".to_owned();
            Fault::Argument(says, TABLE_HELP).raise(py)
        })
    }

    fn page(&self, py: Python<'_>) -> PyResult<String> {
        match &self.parts.html {
            Some(html) => html().map_err(|fault| fault.raise(py)),
            None => {
                let says = "this result has no page".to_owned();
                Err(Fault::Argument(says, "to_dict() and text() have all of it").raise(py))
            }
        }
    }
}

#[pymethods]
impl Report {
    /// The document that the command line prints with `--json`, byte by byte.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        (self.parts.json)().map_err(|fault| fault.raise(py))
    }

    /// The same document as a dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.to_json(py)?,))
    }

    /// The page: one HTML file without references to anything outside it.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        self.page(py)
    }

    /// Text of the result for a terminal.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        (self.parts.text)().map_err(|fault| fault.raise(py))
    }

    /// Writes the page, or the document if the name ends in .json. The file appears when it is complete.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let text = if is_json { self.to_json(py)? } else { self.page(py)? };
        write(&path, &text).map_err(|error| {
            let says = format!("{}: {error}", path.display());
            Fault::File(says).raise(py)
        })
    }

    /// The table of the result.
    #[getter]
    fn frame(&self, py: Python<'_>) -> PyResult<Frame> {
        Ok(self.table(py)?.share())
    }

    /// Exports the table without a copy; another schema that is asked for is left to whom asks.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        self.table(py)?.export(py)
    }

    /// The table as a DataFrame of polars, without a copy.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_polars")
    }

    /// The table as a DataFrame of pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_pandas")
    }

    /// The table as a Table of pyarrow, without a copy.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        tables(slf.as_any(), "to_pyarrow")
    }

    /// Draws the result with matplotlib, into `ax` if it is given, and returns the axes.
    #[pyo3(signature = (ax=None))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        ax: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("freewheel._plot")?.call_method1("plot", (slf, ax))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<Option<String>> {
        let py = slf.py();
        match &slf.get().parts.html {
            Some(_) => {
                let page = slf.get().page(py)?;
                py.import("freewheel._tables")?.call_method1("iframe", (page,))?.extract()
            }
            None => match &slf.get().parts.frame {
                Some(frame) => tables(Bound::new(py, frame.share())?.as_any(), "grid")?.extract(),
                None => Ok(None),
            },
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let text = slf.get().text(slf.py())?;
        Ok(format!("<{} {}>", slf.get_type().name()?, text.lines().next().unwrap_or_default()))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py)
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = PendingFile::create(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.keep()
}
