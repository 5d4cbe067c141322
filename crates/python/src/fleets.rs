//! Fleets of drives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use freewheel::fleets::{
    self, Fleet, FleetChunk, FleetOptions, FleetOutput, FleetRows, Places, REPORTS,
};
use pyo3::prelude::*;

use crate::drive;
use crate::fault::Fault;
use crate::job;
use crate::parts::{Job, JobPlan, Journaled};
use crate::places;
use crate::report::{Parts, Report};
use crate::studies::Replay;
use crate::sweeps::frame;
use crate::trace::{self, Source};
use crate::values::{argument, word};

/// The studies of a fleet with what follows from them.
///
/// Its table has a row a drive, and its page is `fleet.html`.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct FleetReport {
    report: Arc<fleets::FleetReport>,
}

/// Studies many drives, each with its own trace, into one table and one page.
#[pyfunction]
#[pyo3(signature = (
    traces, *, drive=None, places=None, output=None, gaps=false, changes=true, checks=false, goal="mean",
    hot=None, reports=None, replay="auto", fit="as-is", coarse_times="spread", seed=1, jobs=None,
    executor=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn fleet(
    py: Python<'_>,
    traces: &Bound<'_, PyAny>,
    drive: Option<&Bound<'_, PyAny>>,
    places: Option<&Bound<'_, PyAny>>,
    output: Option<PathBuf>,
    gaps: bool,
    changes: bool,
    checks: bool,
    goal: &str,
    hot: Option<f64>,
    reports: Option<usize>,
    replay: &str,
    fit: &str,
    coarse_times: &str,
    seed: u64,
    jobs: Option<usize>,
    executor: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<FleetReport>> {
    let folder = match output {
        Some(folder) => folder,
        None => scratch(py, "fleet")?,
    };
    let usual = FleetOutput::new(&folder);
    let output = FleetOutput {
        hot_share: hot.unwrap_or(usual.hot_share),
        reports: reports.unwrap_or(usual.reports),
        threads: jobs.unwrap_or(usual.threads),
        ..usual
    };
    check(&output)?;
    let replay = Replay { mode: replay, fit, coarse_times, device: None };
    let options = FleetOptions {
        replay: Default::default(),
        gaps,
        changes,
        checks,
        goal: word("goal", goal)?,
        seed,
    };
    let of = Traces::of(traces, &replay)?;
    let drive = drive.map_or(Ok(freewheel::drives::DEFAULT_DRIVE.to_owned()), drive::reference)?;
    let places = places.map(places::places).transpose()?;
    let fleet = Arc::new(members(py, &of, drive, places, options, &folder, progress)?);
    let mut resumed = None;
    if let Some(executor) = executor {
        std::fs::create_dir_all(&folder)?;
        let job = Arc::new(FleetJob::new(Arc::clone(&fleet), output.table()));
        resumed = Some(JobPlan::fill(py, Arc::clone(&job) as _, executor, jobs, progress)?);
        job.close();
    }
    let report = result(py, fleet, output, resumed, progress);
    drop(of);
    report
}

/// A path in the folder of this process.
fn scratch(py: Python<'_>, name: &str) -> PyResult<PathBuf> {
    let path = py.import("freewheel._scratch")?.call_method1("file", (name,))?;
    path.extract()
}

/// Err for a share or a number of threads that is none.
fn check(output: &FleetOutput) -> PyResult<()> {
    let FleetOutput { hot_share, threads, .. } = *output;
    if !(0.0..=1.0).contains(&hot_share) {
        let says = format!("hot={hot_share}: 0 to 1 are allowed");
        return Err(argument(says, "write hot=0.5").raise_here());
    }
    if threads == 0 {
        return Err(argument("jobs=0: one is the least".into(), "leave it out").raise_here());
    }
    Ok(())
}

/// The drives, and how each is studied.
fn members(
    py: Python<'_>,
    of: &Traces,
    drive: String,
    places: Option<Places>,
    options: FleetOptions,
    folder: &Path,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Fleet> {
    let (path, open, folder) = (of.path.clone(), of.open, folder.to_owned());
    let options = FleetOptions { replay: of.replay.clone(), ..options };
    job::run(py, progress, move |watch| {
        let mut members = fleets::fleet_members(&path, &open, &drive, &folder, |reader| {
            trace::report(reader, watch)
        })?;
        if let Some(places) = places {
            places.apply(&mut members)?;
        }
        Ok(Fleet::new(&path, members, options))
    })
}

/// Where the traces of a fleet are.
struct Traces {
    path: PathBuf,
    open: freewheel::traces::OpenOptions,
    replay: freewheel::experiments::TraceWorkload,
    /// Keeps the file of a table.
    _source: Option<Arc<Source>>,
}

impl Traces {
    /// A folder, or one trace with several devices: whatever a function takes as a trace.
    fn of(traces: &Bound<'_, PyAny>, replay: &Replay<'_>) -> PyResult<Self> {
        let folder = traces.extract::<PathBuf>().ok().filter(|path| path.is_dir());
        if let Some(path) = folder {
            return Ok(Self {
                path,
                open: Default::default(),
                replay: replay.of_any()?,
                _source: None,
            });
        }
        let source = trace::source(traces)?;
        let replay = replay.of(&source)?;
        let replay = freewheel::experiments::TraceWorkload { file: PathBuf::new(), ..replay };
        let (path, open) = (source.path.clone(), source.open_options());
        Ok(Self { path, open, replay, _source: Some(source) })
    }
}

/// The result, in its folder. `resumed` are the drives that were known before another process studied some.
fn result(
    py: Python<'_>,
    fleet: Arc<Fleet>,
    output: FleetOutput,
    resumed: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<FleetReport>> {
    let (report, frame) = job::run(py, progress, move |watch| {
        let mut report =
            fleets::fleet(&fleet, &output, &|_, done, total| watch.report(done, total))?;
        report.resumed = resumed.unwrap_or(report.resumed);
        let frame = frame(report.columns())?;
        Ok((report, frame))
    })?;
    let report = Arc::new(report);
    let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&report));
    let parts = Parts {
        json: Box::new(move || Ok(of_json.json())),
        html: Some(Box::new(move || Ok(of_html.html()))),
        text: Box::new(move || Ok(of_text.text())),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(FleetReport { report }))
}

#[pymethods]
impl FleetReport {
    /// The number of drives.
    #[getter]
    fn drives(&self) -> usize {
        self.report.rows.len()
    }

    /// Those that an earlier call had studied.
    #[getter]
    fn resumed(&self) -> usize {
        self.report.resumed
    }

    /// Names of the drives that are worth a look, the first of them most; 10 at most unless said otherwise.
    #[pyo3(signature = (most=None))]
    fn worth_a_look(&self, most: Option<usize>) -> Vec<String> {
        let found = self.report.worth_a_look(most.unwrap_or(REPORTS)).into_iter();
        found.map(|at| self.report.rows[at].member.name.clone()).collect()
    }
}

/// A fleet with the table that its rows are for.
struct FleetJob {
    fleet: Arc<Fleet>,
    table: PathBuf,
    rows: Journaled<FleetRows>,
}

impl FleetJob {
    fn new(fleet: Arc<Fleet>, table: PathBuf) -> Self {
        Self { fleet, table, rows: Journaled::default() }
    }

    fn open(&self) -> Result<FleetRows, Fault> {
        Ok(self.fleet.open(Some(&self.table))?)
    }
}

impl Job for FleetJob {
    fn worker(&self) -> &'static str {
        "run_fleet_chunk"
    }

    fn len(&self) -> usize {
        self.fleet.members.len()
    }

    fn pending(&self) -> Result<Vec<usize>, Fault> {
        self.rows.with(|| self.open(), |rows| Ok(rows.pending(self.fleet.members.len())))
    }

    fn chunk(&self, numbers: &[usize], folder: &Path) -> Result<String, Fault> {
        serde_json::to_string(&self.fleet.chunk(numbers, folder)).map_err(Fault::json)
    }

    fn keep(&self, lines: &str) -> Result<(), Fault> {
        self.rows.with(|| self.open(), |rows| Ok(rows.keep(lines)?))
    }

    fn close(&self) {
        drop(self.rows.take());
    }
}

/// Plans a fleet out of the document that the command line writes, for workers in other processes.
#[pyfunction]
pub fn fleet_plan(py: Python<'_>, fleet: &str, table: PathBuf) -> PyResult<JobPlan> {
    let fleet = serde_json::from_str(fleet).map_err(|error| Fault::json(error).raise(py))?;
    Ok(JobPlan::new(Arc::new(FleetJob::new(Arc::new(fleet), table))))
}

/// Studies the drives of a chunk of `fleet_plan` on this thread, and gives their rows.
#[pyfunction]
pub fn run_fleet_chunk(py: Python<'_>, chunk: &str) -> PyResult<String> {
    let chunk: FleetChunk =
        serde_json::from_str(chunk).map_err(|error| Fault::json(error).raise(py))?;
    job::run(py, None, move |watch| Ok(chunk.run(&|done, total| watch.report(done, total))?))
}
