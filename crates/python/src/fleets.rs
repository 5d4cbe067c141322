//! Fleets of drives.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use freewheel::files::PendingFile;
use freewheel::fleets::{
    self, Fleet, FleetChunk, FleetDone, FleetOptions, FleetRows, HOT_SHARE, Place, Places, REPORTS,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::drive;
use crate::fault::Fault;
use crate::job;
use crate::report::{Parts, Report};
use crate::studies::{self, Replay};
use crate::sweeps::frame;
use crate::trace::{self, Source};
use crate::values::{argument, path_text, word};

/// Many drives, each studied with its own trace.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct FleetReport {
    report: Arc<fleets::FleetReport>,
}

/// What the result of a fleet needs besides its rows.
struct Wanted {
    folder: Option<PathBuf>,
    hot: f64,
    reports: usize,
}

/// Studies many drives, each with its own trace, on all cores or where `executor` runs them.
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
    let (hot, reports) = (hot.unwrap_or(HOT_SHARE), reports.unwrap_or(REPORTS));
    if !(0.0..=1.0).contains(&hot) {
        return Err(argument(format!("hot={hot}: 0 to 1 are allowed"), "write hot=0.5").raise(py));
    }
    let replay = Replay { mode: replay, fit, coarse_times, device: None };
    let goal = word("goal", goal)?;
    let of = Traces::of(traces, &replay)?;
    let drive = drive.map_or(Ok(freewheel::drives::DEFAULT_DRIVE.to_owned()), drive::reference)?;
    let places = places.map(self::places).transpose()?;
    let spool = match &output {
        Some(folder) => folder.join("devices"),
        None => PathBuf::from(path_text(
            &py.import("freewheel._scratch")?.call_method1("file", ("devices",))?,
        )?),
    };
    let source = of.source.clone();
    let all = job::run(py, progress, move |watch| {
        let options = FleetOptions { replay: of.replay, gaps, changes, checks, goal, seed };
        let report = |reader: &freewheel::TraceReader| trace::report(reader, watch);
        let mut members = fleets::fleet_members(&of.path, &of.open, &drive, &spool, report)?;
        if let Some(places) = places {
            places.apply(&mut members)?;
        }
        Ok(Fleet::new(&of.path, members, options))
    })?;
    let folder = output.as_ref();
    folder.map_or(Ok(()), std::fs::create_dir_all)?;
    let plan = FleetPlan {
        fleet: Arc::new(all),
        table: folder.map(|folder| folder.join("fleet.parquet")),
        rows: Mutex::new(None),
    };
    let fleet = Arc::clone(&plan.fleet);
    let done = match executor {
        Some(executor) => {
            let plan = Py::new(py, plan)?;
            let module = py.import("freewheel._distribute")?;
            module.call_method1("fill", (plan.clone_ref(py), executor, jobs, progress))?;
            plan.get().done(py)?
        }
        None => job::run(py, progress, move |watch| {
            let cores = || thread::available_parallelism().map_or(1, NonZero::get);
            let show = |done, total| watch.report(done, total);
            let FleetPlan { fleet, table, .. } = plan;
            Ok(fleets::fleet(&fleet, table.as_deref(), jobs.unwrap_or_else(cores), &show)?)
        })?,
    };
    let wanted = Wanted { folder: output, hot, reports };
    let report = result(py, fleet, done, wanted, progress);
    drop(source);
    report
}

/// Where the traces of a fleet are.
struct Traces {
    path: PathBuf,
    open: freewheel::traces::OpenOptions,
    replay: freewheel::experiments::TraceWorkload,
    /// Keeps the file of a table.
    source: Option<Arc<Source>>,
}

impl Traces {
    /// A folder, or one trace with several devices: whatever a function takes as a trace.
    fn of(traces: &Bound<'_, PyAny>, replay: &Replay<'_>) -> PyResult<Self> {
        let folder = path_text(traces).ok().map(PathBuf::from).filter(|path| path.is_dir());
        if let Some(path) = folder {
            return Ok(Self {
                path,
                open: Default::default(),
                replay: replay.of_any()?,
                source: None,
            });
        }
        let source = trace::source(traces)?;
        let replay = replay.of(&source)?;
        let replay = freewheel::experiments::TraceWorkload { file: PathBuf::new(), ..replay };
        let (path, open) = (source.path.clone(), source.open_options());
        Ok(Self { path, open, replay, source: Some(source) })
    }
}

/// Drives and places by the names of traces: a CSV, or a dict of dicts.
fn places(given: &Bound<'_, PyAny>) -> PyResult<Places> {
    let Ok(by_name) = given.cast::<PyDict>() else {
        let path = PathBuf::from(path_text(given)?);
        return Places::read(&path).map_err(|error| Fault::from(error).raise_here());
    };
    let mut found = BTreeMap::new();
    for (name, place) in by_name {
        let place = place.cast_into::<PyDict>()?;
        let text = |key: &str| -> PyResult<Option<String>> {
            place.get_item(key)?.map(|value| value.str()?.extract()).transpose()
        };
        let drive = place.get_item("drive")?.map(|drive| drive::reference(&drive)).transpose()?;
        found.insert(name.extract()?, Place { drive, server: text("server")?, bay: text("bay")? });
    }
    Ok(Places { origin: "places".to_owned(), by_name: found })
}

/// The result, with reports of single drives in its folder.
fn result(
    py: Python<'_>,
    fleet: Arc<Fleet>,
    done: FleetDone,
    wanted: Wanted,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<FleetReport>> {
    let (report, frame) = job::run(py, progress, move |watch| {
        let Wanted { folder, hot, reports } = wanted;
        let mut report = fleets::FleetReport::new(done, fleet.options.clone(), hot);
        if let Some(folder) = folder {
            let show = |done, total| watch.report(done, total);
            fleets::write_reports(&mut report, &fleet, &folder, reports, &show)?;
            let json = studies::json(&report.json())?;
            for (name, text) in [("fleet.html", report.html()), ("fleet.json", json)] {
                write(&folder.join(name), &text)?;
            }
        }
        let frame = frame(report.columns())?;
        Ok((report, frame))
    })?;
    let report = Arc::new(report);
    let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&report));
    let parts = Parts {
        json: Box::new(move || studies::json(&of_json.json())),
        html: Some(Box::new(move || Ok(of_html.html()))),
        text: Box::new(move || Ok(of_text.text())),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(FleetReport { report }))
}

fn write(path: &std::path::Path, text: &str) -> Result<(), Fault> {
    let write = || -> std::io::Result<()> {
        let mut file = PendingFile::create(path)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.keep()
    };
    write().map_err(|error| Fault::File(format!("{}: {error}", path.display())))
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

    /// Names of the drives that are worth a look, the first of them most.
    #[pyo3(signature = (most=None))]
    fn worth_a_look(&self, most: Option<usize>) -> Vec<String> {
        let found = self.report.worth_a_look(most.unwrap_or(REPORTS)).into_iter();
        found.map(|at| self.report.rows[at].member.name.clone()).collect()
    }
}

/// A fleet whose drives are studied in other processes.
#[pyclass(frozen, module = "freewheel._freewheel")]
pub struct FleetPlan {
    fleet: Arc<Fleet>,
    table: Option<PathBuf>,
    rows: Mutex<Option<FleetRows>>,
}

impl FleetPlan {
    /// The rows, with the journal opened when they are first asked for.
    fn with_rows<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Option<FleetRows>) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            if rows.is_none() {
                *rows = Some(self.fleet.open(self.table.as_deref())?);
            }
            work(&mut rows)
        });
        done.map_err(|fault| fault.raise(py))
    }

    fn done(&self, py: Python<'_>) -> PyResult<FleetDone> {
        let done = self.with_rows(py, |rows| {
            Ok(rows.take().map(|rows| self.fleet.finish(rows)).transpose()?)
        })?;
        done.ok_or_else(|| Fault::Other("this fleet has ended".into()).raise(py))
    }
}

#[pymethods]
impl FleetPlan {
    /// A fleet out of the document that the command line writes.
    #[new]
    fn new(py: Python<'_>, fleet: &str, table: PathBuf) -> PyResult<Self> {
        let fleet = serde_json::from_str(fleet).map_err(|error| Fault::json(error).raise(py))?;
        Ok(Self { fleet: Arc::new(fleet), table: Some(table), rows: Mutex::new(None) })
    }

    /// Name of the function that runs a chunk.
    #[getter]
    fn worker(&self) -> &'static str {
        "run_fleet_chunk"
    }

    /// The number of drives.
    fn __len__(&self) -> usize {
        self.fleet.members.len()
    }

    /// Numbers of the drives that have not been studied.
    fn pending(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        let total = self.fleet.members.len();
        self.with_rows(py, |rows| Ok(rows.as_ref().map_or(Vec::new(), |rows| rows.pending(total))))
    }

    /// The drives with these numbers, for `run_fleet_chunk` in another process.
    fn chunk(&self, py: Python<'_>, numbers: Vec<usize>) -> PyResult<String> {
        let folder = std::env::current_dir()?;
        let chunk = serde_json::to_string(&self.fleet.chunk(&numbers, &folder));
        chunk.map_err(|error| Fault::json(error).raise(py))
    }

    /// Keeps the rows that `run_fleet_chunk` gave.
    fn keep(&self, py: Python<'_>, lines: &str) -> PyResult<()> {
        self.with_rows(py, |rows| Ok(rows.as_mut().map_or(Ok(()), |rows| rows.keep(lines))?))
    }
}

/// Studies the drives of a chunk of `FleetPlan` on this thread, and gives their rows.
#[pyfunction]
pub fn run_fleet_chunk(py: Python<'_>, chunk: &str) -> PyResult<String> {
    let chunk: FleetChunk =
        serde_json::from_str(chunk).map_err(|error| Fault::json(error).raise(py))?;
    job::run(py, None, move |watch| Ok(chunk.run(&|done, total| watch.report(done, total))?))
}
