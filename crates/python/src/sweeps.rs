//! Many configurations of one experiment.

use std::path::PathBuf;
use std::sync::Arc;

use freewheel::sweeps::{self, Column, Sweep, SweptKey};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Serialize;

use crate::config::{ConfigSource, override_texts, override_value};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job;
use crate::report::{Parts, Report};
use crate::table::Columns;
use crate::values::argument;

/// The configurations of a sweep and what came out of each.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct SweepReport {
    document: Arc<Document>,
}

/// What `freewheel sweep --json` prints.
#[derive(Serialize)]
struct Document {
    file: Option<PathBuf>,
    configurations: usize,
    resumed: usize,
}

/// Runs an experiment with all combinations of some values of its keys, on all cores, into one table.
#[pyfunction]
#[pyo3(signature = (config, *, over, output=None, overrides=None, seed=None, jobs=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn sweep(
    py: Python<'_>,
    config: &Bound<'_, PyAny>,
    over: &Bound<'_, PyDict>,
    output: Option<PathBuf>,
    overrides: Option<&Bound<'_, PyDict>>,
    seed: Option<u64>,
    jobs: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<SweepReport>> {
    let (source, keys) = (ConfigSource::of(config)?, keys(over)?);
    let mut of_all = override_texts(overrides)?;
    of_all.extend(seed.map(|seed| format!("seed={seed}")));
    if jobs == Some(0) {
        return Err(argument("jobs=0: one thread is the least".into(), "leave it out").raise(py));
    }
    let (document, frame) = job::run(py, progress, move |watch| {
        let config = |own: &[String]| {
            watch.report(0, 1);
            source.config(&[&of_all, own].concat())
        };
        let all = Sweep::new(keys, config).map_err(Fault::experiment)?;
        let show = |done, total| watch.report(done, total);
        let done = sweeps::sweep(&all, output.as_deref(), jobs, &show);
        let done = done.map_err(Fault::experiment)?;
        let (configurations, resumed) = (done.rows.len(), done.resumed);
        Ok((Document { file: output, configurations, resumed }, frame(done.columns)?))
    })?;
    let document = Arc::new(document);
    let [of_json, of_text] = [(), ()].map(|()| Arc::clone(&document));
    let parts = Parts {
        json: Box::new(move || freewheel_cli::json_document(&*of_json).map_err(Fault::json)),
        html: None,
        text: Box::new(move || {
            let Document { configurations, resumed, .. } = *of_text;
            Ok(format!("{configurations} configurations, {resumed} of them run before"))
        }),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(SweepReport { document }))
}

/// Keys with their values, of a dict of lists.
fn keys(over: &Bound<'_, PyDict>) -> PyResult<Vec<SweptKey>> {
    let mut keys = Vec::new();
    for (key, values) in over {
        let key: String = key.extract()?;
        let wrong = || {
            let says = format!("over={{{key:?}: {values}}}: a list of values is wanted");
            argument(says, "write over={\"workload.outstanding\": [1, 4, 16]}").raise(over.py())
        };
        if values.is_instance_of::<PyString>() || values.is_instance_of::<PyDict>() {
            return Err(wrong());
        }
        let texts = values.try_iter().map_err(|_| wrong())?;
        let texts = texts.map(|value| override_value(&value?)).collect::<PyResult<Vec<_>>>()?;
        if texts.is_empty() || texts.iter().any(String::is_empty) {
            return Err(wrong());
        }
        keys.push(SweptKey { key, values: texts });
    }
    Ok(keys)
}

/// A row a configuration.
fn frame(columns: Vec<(String, Column)>) -> Result<Frame, Fault> {
    let all = columns.iter().fold(Columns::default(), |all, (name, column)| match column {
        Column::Whole(values) => {
            all.whole(name, values.iter().map(|value| u64::try_from(*value).ok()))
        }
        Column::Real(values) => all.numbers(name, values.iter().map(|value| Some(*value))),
        Column::Text(values) => all.texts(name, values.iter().map(String::as_str)),
    });
    all.frame()
}

#[pymethods]
impl SweepReport {
    /// The number of configurations.
    #[getter]
    fn configurations(&self) -> usize {
        self.document.configurations
    }

    /// Those that an earlier call had run.
    #[getter]
    fn resumed(&self) -> usize {
        self.document.resumed
    }
}
