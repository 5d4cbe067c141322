//! Jobs whose parts run in other processes: sweeps and fleets on an executor.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::fault::Fault;

/// A job with numbered parts, whose rows from other processes go into its journal.
pub trait Job: Send + Sync {
    /// Name of the function that runs a chunk.
    fn worker(&self) -> &'static str;

    /// The number of parts.
    fn len(&self) -> usize;

    /// Numbers of the parts that are not done.
    fn pending(&self) -> Result<Vec<usize>, Fault>;

    /// Text of these parts for another process. Relative paths count from `folder`.
    fn chunk(&self, numbers: &[usize], folder: &Path) -> Result<String, Fault>;

    /// Keeps the rows that a worker gave.
    fn keep(&self, lines: &str) -> Result<(), Fault>;

    /// Leaves the journal to others.
    fn close(&self);
}

/// The rows of a job, whose journal is opened when they are first asked for.
pub struct Journaled<R>(Mutex<Option<R>>);

impl<R> Default for Journaled<R> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<R> Journaled<R> {
    /// Works with the rows.
    pub fn with<T>(
        &self,
        open: impl FnOnce() -> Result<R, Fault>,
        work: impl FnOnce(&mut R) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = match &mut *rows {
            Some(rows) => rows,
            none => none.insert(open()?),
        };
        work(rows)
    }

    /// Gives the rows away, if they were ever asked for.
    pub fn take(&self) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A job whose parts run in other processes.
#[pyclass(frozen, module = "freewheel._freewheel")]
pub struct JobPlan(Arc<dyn Job>);

impl JobPlan {
    /// The plan of a job.
    pub fn new(job: Arc<dyn Job>) -> Self {
        Self(job)
    }

    /// Runs what is pending on an executor. Gives the number of parts that were done before.
    pub fn fill(
        py: Python<'_>,
        job: Arc<dyn Job>,
        executor: &Bound<'_, PyAny>,
        jobs: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let plan = Py::new(py, Self::new(Arc::clone(&job)))?;
        let before = job.len() - plan.get().pending(py)?.len();
        let module = py.import("freewheel._distribute")?;
        let filled = module.call_method1("fill", (plan, executor, jobs, progress));
        // The exception keeps the plan alive, and the next call needs its journal.
        filled.inspect_err(|_| job.close())?;
        Ok(before)
    }
}

#[pymethods]
impl JobPlan {
    /// Name of the function that runs a chunk.
    #[getter]
    fn worker(&self) -> &'static str {
        self.0.worker()
    }

    /// The number of parts.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Numbers of the parts that are not done.
    fn pending(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        py.detach(|| self.0.pending()).map_err(|fault| fault.raise(py))
    }

    /// These parts, for the function `worker` in another process.
    fn chunk(&self, py: Python<'_>, numbers: Vec<usize>) -> PyResult<String> {
        let folder = std::env::current_dir()?;
        py.detach(|| self.0.chunk(&numbers, &folder)).map_err(|fault| fault.raise(py))
    }

    /// Keeps the rows that a worker gave.
    fn keep(&self, py: Python<'_>, lines: &str) -> PyResult<()> {
        py.detach(|| self.0.keep(lines)).map_err(|fault| fault.raise(py))
    }
}
