//! Studies of a trace.

use std::sync::Arc;

use freewheel::experiments::{StudyProgress, TraceWorkload, fit_drive};
use freewheel::{PolicySpec, StudyOptions};
use pyo3::prelude::*;

use crate::drive::{self, Drive};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job::{self, Watch};
use crate::report::{Parts, Report};
use crate::table::Columns;
use crate::trace::{self, Source};
use crate::values::{OneOrMore, Time, argument, word};

/// The document of a study.
///
/// Its table has a row a policy.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct StudyReport {
    report: Arc<freewheel::StudyReport>,
}

/// How a trace is replayed, in words of Python.
pub struct Replay<'a> {
    /// How arrivals are timed.
    pub mode: &'a str,
    /// What becomes of addresses that do not fit.
    pub fit: &'a str,
    /// What becomes of requests of a coarse clock.
    pub coarse_times: &'a str,
    pub device: Option<u32>,
}

impl Replay<'_> {
    /// The replay of this trace.
    pub fn of(&self, source: &Source) -> PyResult<TraceWorkload> {
        self.with(source.workload())
    }

    /// The replay of traces that are recognised by their contents.
    pub fn of_any(&self) -> PyResult<TraceWorkload> {
        self.with(TraceWorkload::default())
    }

    fn with(&self, read: TraceWorkload) -> PyResult<TraceWorkload> {
        Ok(TraceWorkload {
            replay: word("replay", self.mode)?,
            fit: word("fit", self.fit)?,
            coarse_times: word("coarse_times", self.coarse_times)?,
            device: self.device,
            ..read
        })
    }
}

/// Studies a trace on a drive: each scheduling policy, what would help, and a scrub in the rotational gaps.
#[pyfunction]
#[pyo3(signature = (
    trace, *, drive=None, policies=None, scrub=true, scrub_effort=None, changes=true, goal="mean",
    fit_drive=false, cache_depth=None, electronics=true, replay="auto", fit="as-is", coarse_times="spread",
    device=None, seed=1, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn study(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    drive: Option<&Bound<'_, PyAny>>,
    policies: Option<OneOrMore<String>>,
    scrub: bool,
    scrub_effort: Option<Time>,
    changes: bool,
    goal: &str,
    fit_drive: bool,
    cache_depth: Option<u32>,
    electronics: bool,
    replay: &str,
    fit: &str,
    coarse_times: &str,
    device: Option<u32>,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<StudyReport>> {
    let source = trace::source(trace)?;
    let workload = Replay { mode: replay, fit, coarse_times, device }.of(&source)?;
    let mut drives = drive::references(drive)?.into_iter();
    let first = drives.next();
    let mut options =
        StudyOptions::new(workload, first.as_deref().unwrap_or(freewheel::drives::DEFAULT_DRIVE));
    options.beside = drives.collect();
    if let Some(policies) = policies {
        options.policies = self::policies(policies.into_vec())?;
    }
    if let Some(effort) = scrub_effort {
        options.scrub_effort = effort.get("scrub_effort")?;
    }
    options.goal = word("goal", goal)?;
    options.cache_depth = cache_depth.unwrap_or(options.cache_depth);
    check_cache_depth(options.cache_depth)?;
    let options = StudyOptions { scrub, changes, electronics, seed, ..options };
    if fit_drive {
        options_of_fit(py, options, &source, progress)
    } else {
        run(py, options, source, progress)
    }
}

/// Err for a depth that no storage system has.
pub fn check_cache_depth(depth: u32) -> PyResult<()> {
    let most = freewheel::caches::CACHE_DEPTH;
    if (1..=most).contains(&depth) {
        Ok(())
    } else {
        let says = format!("cache_depth={depth}: 1 to {most} are allowed");
        Err(argument(says, "write a number of these").raise_here())
    }
}

fn policies(names: Vec<String>) -> PyResult<Vec<PolicySpec>> {
    names
        .iter()
        .map(|name| {
            let policy = name.parse::<PolicySpec>();
            policy.map_err(|error| Fault::from(error).raise_here())
        })
        .collect()
}

/// Fits the drive first, and studies the trace on it where the fit is used.
fn options_of_fit(
    py: Python<'_>,
    mut options: StudyOptions,
    source: &Arc<Source>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<StudyReport>> {
    let asked = options.clone();
    let fitted = job::run(py, progress, move |watch| {
        Ok(fit_drive(&asked, &|progress| report(watch, progress))?)
    })?;
    if fitted.is_used() {
        let drive = Drive::of_spec(fitted.spec.clone()).map_err(|fault| fault.raise(py))?;
        options.drive = drive.reference(py)?;
    }
    options.fitted = Some(fitted);
    run(py, options, Arc::clone(source), progress)
}

fn report(watch: &Watch, progress: StudyProgress) {
    match progress {
        StudyProgress::Reading(amount) | StudyProgress::Fitting(amount) => {
            watch.report(amount.done, amount.total);
        }
        StudyProgress::Working(work) => watch.report(work.runs.done, work.runs.total),
    }
}

fn run(
    py: Python<'_>,
    options: StudyOptions,
    source: Arc<Source>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<StudyReport>> {
    let (report, frame) = job::run(py, progress, move |watch| {
        let progress = |progress| self::report(watch, progress);
        let report = freewheel::study(&options, None, &progress)?;
        // A table's file was needed until here.
        drop(source);
        let frame = frame(&report)?;
        Ok((report, frame))
    })?;
    let report = Arc::new(report);
    let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&report));
    let parts = Parts {
        json: Box::new(move || json(&*of_json)),
        html: Some(Box::new(move || Ok(of_html.html()))),
        text: Box::new(move || Ok(of_text.text())),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(StudyReport { report }))
}

/// A document that has its version itself.
pub fn json(body: &impl serde::Serialize) -> Result<String, Fault> {
    Ok(serde_json::to_string_pretty(body).map_err(Fault::json)? + "\n")
}

/// A row a policy.
fn frame(report: &freewheel::StudyReport) -> Result<Frame, Fault> {
    let runs = &report.study.runs;
    let policies: Vec<String> = runs.iter().map(|run| run.policy.to_string()).collect();
    let results = || runs.iter().map(|run| &run.result);
    Columns::default()
        .texts("policy", policies.iter().map(String::as_str))
        .texts("title", runs.iter().map(|run| run.title.as_str()))
        .flags("own_queue", runs.iter().map(|run| run.own_queue))
        .whole("requests", results().map(|result| Some(result.requests)))
        .numbers("utilisation", results().map(|result| Some(result.utilisation)))
        .numbers("response_ns_mean", results().map(|result| Some(result.response.mean_ns)))
        .whole("response_ns_p50", results().map(|result| Some(result.response.p50_ns)))
        .whole("response_ns_p99", results().map(|result| Some(result.response.p99_ns)))
        .numbers("read_response_ns_mean", results().map(|r| Some(r.read_response.mean_ns)))
        .numbers("write_response_ns_mean", results().map(|r| Some(r.write_response.mean_ns)))
        .frame()
}

#[pymethods]
impl StudyReport {
    /// Sentences of the report: what follows from the study, most important first.
    #[getter]
    fn findings(&self) -> Vec<String> {
        self.report.findings.iter().map(|finding| finding.text()).collect()
    }

    /// Name of the drive.
    #[getter]
    fn drive(&self) -> &str {
        &self.report.study.drive.name
    }
}
