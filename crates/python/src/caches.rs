//! Caches in memory for a trace.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel::caches::{
    CacheCurvesOptions, CacheProgress, CacheSize, ComparedPolicy, ResponseRuns, Share,
};
use freewheel::drives::DEFAULT_DRIVE;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::drive;
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job::{self, Watch};
use crate::own_cache_policy::OwnCachePolicy;
use crate::report::{Parts, Report};
use crate::studies::{Replay, check_cache_depth, json};
use crate::table::Columns;
use crate::trace::{self, Source};
use crate::values::{OneOrMore, argument, choice, not_a, parsed};

/// The document of `freewheel cache`.
///
/// Its table has a row a policy and size.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct CacheReport {
    report: Arc<freewheel::caches::CacheReport>,
}

/// A size: a whole number of bytes, a share of the footprint, or a text as `"64MiB"` or `"1%"`.
pub enum AnySize {
    Bytes(u64),
    /// A share above 0 and at most 1.
    Share(f64),
    Text(String),
}

impl<'py> FromPyObject<'_, 'py> for AnySize {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.extract() {
            return Ok(Self::Text(text));
        }
        if let Ok(bytes) = given.extract() {
            return Ok(Self::Bytes(bytes));
        }
        let help = "write a whole number of bytes, a text as \"64MiB\", or a share as 0.01";
        given.extract().map(Self::Share).map_err(|_| not_a(&given, "a size", help))
    }
}

impl AnySize {
    /// Size as the library has it.
    pub fn get(&self) -> PyResult<CacheSize> {
        match self {
            Self::Bytes(bytes) => parsed("sizes", &format!("{bytes}B")),
            Self::Share(share) => share_of("sizes", *share).map(CacheSize::OfFootprint),
            Self::Text(text) => parsed("sizes", text),
        }
    }
}

fn share_of(name: &str, share: f64) -> PyResult<Share> {
    Share::new(share).ok_or_else(|| {
        let says = format!("{name}={share}: a share is above 0 and at most 1");
        argument(says, "write 0.01 for one per cent, or a size as \"64MiB\"").raise_here()
    })
}

/// Works out what caches of each policy and size would do for a trace, with a drive behind them where the trace's
/// times permit that.
#[pyfunction]
#[pyo3(signature = (
    trace, *, drive=None, policies=None, sizes=None, sample=None, warm_up=None, responses="best",
    cache_depth=None, electronics=true, replay="auto", fit="as-is", coarse_times="spread", device=None,
    seed=1, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn cache_curves(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    drive: Option<Bound<'_, PyAny>>,
    policies: Option<&Bound<'_, PyAny>>,
    sizes: Option<OneOrMore<AnySize>>,
    sample: Option<f64>,
    warm_up: Option<f64>,
    responses: &str,
    cache_depth: Option<u32>,
    electronics: bool,
    replay: &str,
    fit: &str,
    coarse_times: &str,
    device: Option<u32>,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<CacheReport>> {
    let source = trace::source(trace)?;
    let workload = Replay { mode: replay, fit, coarse_times, device }.of(&source)?;
    let drive = drive.as_ref().map(drive::reference).transpose()?;
    let mut options = CacheCurvesOptions::new(workload, drive.as_deref().unwrap_or(DEFAULT_DRIVE));
    let policies = policies.map(self::policies).transpose()?;
    let sizes = sizes.map(OneOrMore::into_vec).unwrap_or_default();
    options.sizes = sizes.iter().map(AnySize::get).collect::<PyResult<_>>()?;
    options.sample = sample.map(|share| share_of("sample", share)).transpose()?;
    options.warm_up = warm_up.unwrap_or(options.warm_up);
    if !(0.0..1.0).contains(&options.warm_up) {
        let says = format!("warm_up={}: 0 to below 1 is allowed", options.warm_up);
        return Err(argument(says, "write warm_up=0.2 for a fifth of the requests").raise(py));
    }
    let kinds =
        [("best", ResponseRuns::Best), ("all", ResponseRuns::All), ("none", ResponseRuns::None)];
    options.responses = choice("responses", responses, &kinds)?;
    options.cache_depth = cache_depth.unwrap_or(options.cache_depth);
    check_cache_depth(options.cache_depth)?;
    run(py, CacheCurvesOptions { electronics, seed, ..options }, policies, source, progress)
}

/// A policy that ships, by its name, or one of Python.
pub enum Compared {
    /// One that ships, by its name.
    Named(ComparedPolicy),
    /// A class.
    Own(OwnCachePolicy),
}

impl Compared {
    fn of(policy: &Bound<'_, PyAny>) -> PyResult<Self> {
        match policy.extract::<String>() {
            Ok(name) => {
                let named = name.parse::<ComparedPolicy>();
                named.map(Self::Named).map_err(|error| Fault::from(error).raise(policy.py()))
            }
            Err(_) => OwnCachePolicy::new(policy).map(Self::Own),
        }
    }

    fn watched(self, watch: &Arc<Watch>) -> ComparedPolicy {
        match self {
            Self::Named(policy) => policy,
            Self::Own(own) => {
                let make = own.watched(watch);
                ComparedPolicy::own(own.name, make)
            }
        }
    }
}

/// One policy, or a list of them.
pub fn policies(policies: &Bound<'_, PyAny>) -> PyResult<Vec<Compared>> {
    if policies.is_instance_of::<PyString>() || policies.is_callable() {
        return Ok(vec![Compared::of(policies)?]);
    }
    let each = policies.try_iter().map_err(|_| {
        let says = format!("policies={policies}: names or classes are wanted");
        argument(says, "write policies=[\"lru\", \"arc\"]").raise(policies.py())
    })?;
    each.map(|policy| Compared::of(&policy?)).collect()
}

fn run(
    py: Python<'_>,
    mut options: CacheCurvesOptions,
    policies: Option<Vec<Compared>>,
    source: Arc<Source>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<CacheReport>> {
    let (report, frame) = job::run(py, progress, move |watch| {
        if let Some(policies) = policies {
            options.policies = policies.into_iter().map(|policy| policy.watched(watch)).collect();
        }
        let report = freewheel::cache_curves(&options, &|progress| match progress {
            CacheProgress::Reading { done, total }
            | CacheProgress::Counting { done, total }
            | CacheProgress::Running { done, total, .. } => watch.report(done, total),
        })?;
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
    Py::new(py, class.add_subclass(CacheReport { report }))
}

/// A row a policy and size; response times where they were simulated.
fn frame(report: &freewheel::caches::CacheReport) -> Result<Frame, Fault> {
    let curves = &report.curves.curves;
    let rows: Vec<_> = curves
        .iter()
        .flat_map(|curve| {
            curve.miss_ratios.iter().map(|ratio| (&curve.policy, &*curve.title, ratio))
        })
        .collect();
    let mut responses = BTreeMap::new();
    let simulated = report.curves.responses.simulated();
    for policy in simulated.iter().flat_map(|simulated| &simulated.policies) {
        for point in &policy.points {
            responses.insert((policy.title, point.size_bytes), point);
        }
    }
    let points = || rows.iter().map(|(_, title, ratio)| responses.get(&(*title, ratio.size_bytes)));
    let policies: Vec<String> = rows.iter().map(|(policy, ..)| policy.to_string()).collect();
    Columns::default()
        .texts("policy", policies.iter().map(String::as_str))
        .texts("title", rows.iter().map(|(_, title, _)| *title))
        .whole("size_bytes", rows.iter().map(|(.., ratio)| Some(ratio.size_bytes)))
        .numbers("miss_ratio", rows.iter().map(|(.., ratio)| Some(ratio.main())))
        .numbers("byte_miss_ratio", rows.iter().map(|(.., ratio)| Some(ratio.bytes)))
        .numbers("response_ns_mean", points().map(|point| point.map(|p| p.all.mean_ns)))
        .numbers("read_response_ns_mean", points().map(|point| point.map(|p| p.reads.mean_ns)))
        .whole("read_response_ns_p99", points().map(|point| point.map(|p| p.reads.p99_ns)))
        .frame()
}

#[pymethods]
impl CacheReport {
    /// Sizes of the caches, ascending.
    #[getter]
    fn sizes_bytes(&self) -> Vec<u64> {
        self.report.curves.sizes_bytes.clone()
    }
}
