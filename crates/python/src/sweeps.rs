//! Many configurations of one experiment.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use freewheel::sweeps::{
    self, Column, Sweep, SweepChunk, SweepDone, SweepLoads, SweepRows, SweptKey,
};
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

/// Runs an experiment with all combinations of some values of its keys, on all cores or where `executor` runs
/// them, into one table.
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
    overrides: Option<&Bound<'_, PyDict>>,
    seed: Option<u64>,
    jobs: Option<usize>,
    executor: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<SweepReport>> {
    if jobs == Some(0) {
        return Err(argument("jobs=0: one is the least".into(), "leave it out").raise(py));
    }
    let overrides = (override_texts(overrides)?, seed);
    let plan = SweepPlan::of(py, config, over, output, overrides, progress)?;
    if let Some(executor) = executor {
        let plan = Py::new(py, plan)?;
        let module = py.import("freewheel._distribute")?;
        let filled = module.call_method1("fill", (plan.clone_ref(py), executor, jobs, progress));
        // What is raised refers to the plan, and its journal is to be free for the next call.
        filled.inspect_err(|_| plan.get().close())?;
        return plan.get().finish(py);
    }
    let SweepPlan { sweep, output, .. } = plan;
    let done = job::run(py, progress, move |watch| {
        let done = sweeps::sweep(&sweep, output.as_deref(), jobs, &|done, total| {
            watch.report(done, total)
        });
        Ok((done.map_err(Fault::experiment)?, output))
    })?;
    report(py, done)
}

fn report(py: Python<'_>, (done, file): (SweepDone, Option<PathBuf>)) -> PyResult<Py<SweepReport>> {
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
    Py::new(py, class.add_subclass(SweepReport { document }))
}

/// A sweep whose configurations are run in other processes.
#[pyclass(frozen, module = "freewheel._freewheel")]
pub struct SweepPlan {
    sweep: Arc<Sweep>,
    output: Option<PathBuf>,
    rows: Mutex<Option<SweepRows>>,
}

impl SweepPlan {
    /// A sweep, checked; all configurations have the overrides and the seed.
    fn of(
        py: Python<'_>,
        config: &Bound<'_, PyAny>,
        over: &Bound<'_, PyAny>,
        output: Option<PathBuf>,
        (mut of_all, seed): (Vec<String>, Option<u64>),
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (source, keys) = (ConfigSource::of(config)?, keys(over)?);
        of_all.extend(seed.map(|seed| format!("seed={seed}")));
        let sweep = job::run(py, progress, move |watch| {
            Sweep::new(keys, |own| {
                watch.report(0, 1);
                source.config(&[&of_all, own].concat())
            })
            .map_err(Fault::experiment)
        })?;
        Ok(Self { sweep: Arc::new(sweep), output, rows: Mutex::new(None) })
    }

    /// The rows, with the journal opened when they are first asked for.
    fn with_rows<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Option<SweepRows>) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            if rows.is_none() {
                *rows = Some(self.sweep.open(self.output.as_deref()).map_err(Fault::experiment)?);
            }
            work(&mut rows)
        });
        done.map_err(|fault| fault.raise(py))
    }

    /// Leaves the journal to others.
    fn close(&self) {
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Writes the table and gives the result.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<SweepReport>> {
        let done = self.with_rows(py, |rows| {
            let done = rows.take().map(|rows| self.sweep.finish(rows)).transpose();
            done.map_err(Fault::experiment)
        })?;
        let done = done.ok_or_else(|| Fault::Other("this sweep has ended".into()).raise(py))?;
        report(py, (done, self.output.clone()))
    }
}

#[pymethods]
impl SweepPlan {
    /// A sweep in the words of the command line.
    #[new]
    fn new(
        py: Python<'_>,
        config: &Bound<'_, PyAny>,
        over: &Bound<'_, PyAny>,
        overrides: Vec<String>,
        seed: Option<u64>,
        output: PathBuf,
    ) -> PyResult<Self> {
        Self::of(py, config, over, Some(output), (overrides, seed), None)
    }

    /// Name of the function that runs a chunk.
    #[getter]
    fn worker(&self) -> &'static str {
        "run_sweep_chunk"
    }

    /// The number of configurations.
    fn __len__(&self) -> usize {
        self.sweep.len()
    }

    /// Numbers of the configurations that have not been run.
    fn pending(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        let total = self.sweep.len();
        self.with_rows(py, |rows| Ok(rows.as_ref().map_or(Vec::new(), |rows| rows.pending(total))))
    }

    /// The configurations with these numbers, for `run_sweep_chunk` in another process.
    fn chunk(&self, py: Python<'_>, numbers: Vec<usize>) -> PyResult<String> {
        let text = py.detach(|| {
            let folder = std::env::current_dir().map_err(|error| Fault::File(error.to_string()))?;
            let chunk = self.sweep.chunk(&numbers, &folder).map_err(Fault::experiment)?;
            serde_json::to_string(&chunk).map_err(Fault::json)
        });
        text.map_err(|fault| fault.raise(py))
    }

    /// Keeps the rows that `run_sweep_chunk` gave.
    fn keep(&self, py: Python<'_>, lines: &str) -> PyResult<()> {
        self.with_rows(py, |rows| {
            if let Some(rows) = rows.as_mut() {
                rows.keep(lines)?;
            }
            Ok(())
        })
    }
}

/// Traces and files that this process knows from earlier chunks.
static LOADS: LazyLock<SweepLoads> = LazyLock::new(SweepLoads::default);

/// Runs a chunk of `SweepPlan` on this thread, and gives its rows.
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

    /// Those that an earlier call had run.
    #[getter]
    fn resumed(&self) -> usize {
        self.document.resumed
    }
}
