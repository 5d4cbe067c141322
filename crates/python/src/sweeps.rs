//! Many configurations of one experiment.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use freewheel::sweeps::{
    self, Column, Sweep, SweepChunk, SweepDone, SweepLoads, SweepRows, SweptKey,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Serialize;

use crate::config::{ConfigSource, Overrides, override_value};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job;
use crate::parts::{Job, JobPlan, Journaled};
use crate::report::{Parts, Report};
use crate::table::Columns;
use crate::values::{argument, check_output};

/// The result of a sweep.
///
/// Its table has a row a configuration, in order.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct SweepReport {
    document: Arc<Document>,
    keys: Vec<String>,
}

/// What `freewheel sweep --json` prints.
#[derive(Serialize)]
struct Document {
    file: Option<PathBuf>,
    configurations: usize,
    resumed: usize,
}

/// Runs an experiment with all combinations of some values of its keys, into one table.
#[pyfunction]
#[pyo3(signature = (
    config, *, over, output=None, overrides=None, seed=None, jobs=None, executor=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn sweep(
    py: Python<'_>,
    config: &Bound<'_, PyAny>,
    over: &Bound<'_, PyAny>,
    output: Option<PathBuf>,
    overrides: Option<Overrides>,
    seed: Option<u64>,
    jobs: Option<usize>,
    executor: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<SweepReport>> {
    if let Some(output) = &output {
        check_output(output).map_err(|fault| fault.raise(py))?;
    }
    if jobs == Some(0) {
        return Err(argument("jobs=0: one is the least".into(), "leave it out").raise(py));
    }
    let of_all = all_overrides(overrides.unwrap_or_default().0, seed);
    let job = SweepJob::new(py, config, over, output, of_all, progress)?;
    if let Some(executor) = executor {
        let job = Arc::new(job);
        JobPlan::fill(py, Arc::clone(&job) as _, executor, jobs, progress)?;
        return job.finish(py);
    }
    let SweepJob { sweep, keys, output, .. } = job;
    let done = job::run(py, progress, move |watch| {
        let done = sweeps::sweep(&sweep, output.as_deref(), jobs, &|done, total| {
            watch.report(done, total)
        });
        Ok((done.map_err(Fault::experiment)?, output))
    })?;
    report(py, done, keys)
}

/// Overrides that all configurations have.
fn all_overrides(mut overrides: Vec<String>, seed: Option<u64>) -> Vec<String> {
    overrides.extend(seed.map(|seed| format!("seed={seed}")));
    overrides
}

fn report(
    py: Python<'_>,
    (done, file): (SweepDone, Option<PathBuf>),
    keys: Vec<String>,
) -> PyResult<Py<SweepReport>> {
    let (configurations, resumed) = (done.rows.len(), done.resumed);
    let frame = frame(done.columns).map_err(|fault| fault.raise(py))?;
    let document = Arc::new(Document { file, configurations, resumed });
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
    Py::new(py, class.add_subclass(SweepReport { document, keys }))
}

/// A sweep, checked.
struct SweepJob {
    sweep: Sweep,
    keys: Vec<String>,
    output: Option<PathBuf>,
    rows: Journaled<SweepRows>,
}

impl SweepJob {
    fn new(
        py: Python<'_>,
        config: &Bound<'_, PyAny>,
        over: &Bound<'_, PyAny>,
        output: Option<PathBuf>,
        of_all: Vec<String>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (source, keys) = (ConfigSource::of(config)?, keys(over)?);
        let names = keys.iter().map(|key| key.key.clone()).collect();
        let sweep = job::run(py, progress, move |watch| {
            Sweep::new(keys, |own| {
                watch.report(0, 1);
                source.config(&[&of_all, own].concat())
            })
            .map_err(Fault::experiment)
        })?;
        Ok(Self { sweep, keys: names, output, rows: Journaled::default() })
    }

    fn open(&self) -> Result<SweepRows, Fault> {
        self.sweep.open(self.output.as_deref()).map_err(Fault::experiment)
    }

    /// Writes the table and gives the result.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<SweepReport>> {
        let done = py.detach(|| {
            let rows = self.rows.take().map_or_else(|| self.open(), Ok)?;
            self.sweep.finish(rows).map_err(Fault::experiment)
        });
        let done = done.map_err(|fault| fault.raise(py))?;
        report(py, (done, self.output.clone()), self.keys.clone())
    }
}

impl Job for SweepJob {
    fn worker(&self) -> &'static str {
        "run_sweep_chunk"
    }

    fn len(&self) -> usize {
        self.sweep.len()
    }

    fn pending(&self) -> Result<Vec<usize>, Fault> {
        self.rows.with(|| self.open(), |rows| Ok(rows.pending(self.sweep.len())))
    }

    fn chunk(&self, numbers: &[usize], folder: &Path) -> Result<String, Fault> {
        let chunk = self.sweep.chunk(numbers, folder).map_err(Fault::experiment)?;
        serde_json::to_string(&chunk).map_err(Fault::json)
    }

    fn keep(&self, lines: &str) -> Result<(), Fault> {
        self.rows.with(|| self.open(), |rows| Ok(rows.keep(lines)?))
    }

    fn close(&self) {
        drop(self.rows.take());
    }
}

/// Plans a sweep in the words of the command line, for workers in other processes.
#[pyfunction]
pub fn sweep_plan(
    py: Python<'_>,
    config: &Bound<'_, PyAny>,
    over: &Bound<'_, PyAny>,
    overrides: Vec<String>,
    seed: Option<u64>,
    output: PathBuf,
) -> PyResult<JobPlan> {
    let of_all = all_overrides(overrides, seed);
    let job = SweepJob::new(py, config, over, Some(output), of_all, None)?;
    Ok(JobPlan::new(Arc::new(job)))
}

/// Traces and files that this process knows from earlier chunks.
static LOADS: LazyLock<SweepLoads> = LazyLock::new(SweepLoads::default);

/// Runs a chunk of `sweep_plan` on this thread, and gives its rows.
#[pyfunction]
pub fn run_sweep_chunk(py: Python<'_>, chunk: &str) -> PyResult<String> {
    let chunk: SweepChunk =
        serde_json::from_str(chunk).map_err(|error| Fault::json(error).raise(py))?;
    job::run(py, None, move |watch| {
        let rows = chunk.run(&LOADS, &|done, total| watch.report(done, total));
        Ok(rows?)
    })
}

/// Keys with their values: of a dict of lists, or of texts as after `--over`.
fn keys(over: &Bound<'_, PyAny>) -> PyResult<Vec<SweptKey>> {
    let Ok(over) = over.cast::<PyDict>() else {
        let texts: Vec<String> = over.extract().map_err(|_| wrong_keys(over))?;
        let keys = texts.iter().map(|text| text.parse::<SweptKey>());
        return keys.collect::<Result<_, _>>().map_err(|error| Fault::from(error).raise_here());
    };
    let mut keys = Vec::new();
    for (key, values) in over {
        let key: String = key.extract()?;
        let wrong = || {
            let says = format!("over={{{key:?}: {values}}}: a list of values is wanted");
            argument(says, OVER_HELP).raise(over.py())
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
    if keys.is_empty() {
        return Err(wrong_keys(over.as_any()));
    }
    Ok(keys)
}

const OVER_HELP: &str = "write over={\"workload.outstanding\": [1, 4, 16]}";

fn wrong_keys(over: &Bound<'_, PyAny>) -> PyErr {
    argument(format!("over={over}: a dict of lists is wanted"), OVER_HELP).raise(over.py())
}

/// A table out of its columns.
pub fn frame(columns: Vec<(String, Column)>) -> Result<Frame, Fault> {
    let all = columns.iter().fold(Columns::default(), |all, (name, column)| match column {
        Column::Whole(values) => {
            all.whole(name, values.iter().map(|value| u64::try_from(*value).ok()))
        }
        Column::Real(values) => all.numbers(name, values.iter().map(|value| Some(*value))),
        Column::Text(values) => all.texts(name, values.iter().map(String::as_str)),
        Column::OptionalWhole(values) => {
            let values = values.iter().map(|value| value.and_then(|value| value.try_into().ok()));
            all.whole(name, values)
        }
        Column::OptionalReal(values) => all.numbers(name, values.iter().copied()),
        Column::OptionalFlag(values) => all.optional_flags(name, values.iter().copied()),
        Column::OptionalText(values) => {
            all.optional_texts(name, values.iter().map(Option::as_deref))
        }
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

    /// The keys that were swept, in order.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    /// Those that an earlier call had run.
    #[getter]
    fn resumed(&self) -> usize {
        self.document.resumed
    }
}
