//! Caches of objects for a trace.

use std::sync::Arc;

use freewheel::caches::{self as facade, CacheProgress, ComparedPolicy, ObjectCurvesOptions};
use freewheel::experiments::TraceWorkload;
use pyo3::prelude::*;

use crate::caches::{self, AnySize, Compared};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job;
use crate::report::{Parts, Report};
use crate::studies::json;
use crate::table::Columns;
use crate::trace;
use crate::values::{OneOrMore, argument};

/// The document of `freewheel cache --by-object`.
///
/// Its table has a row a policy and size.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct ObjectReport {
    report: Arc<facade::ObjectReport>,
}

/// Counts the misses of caches whose objects have sizes of their own, as a cache simulator does.
#[pyfunction]
#[pyo3(signature = (trace, *, policies=None, sizes=None, device=None, progress=None))]
pub fn object_curves(
    py: Python<'_>,
    trace: &Bound<'_, PyAny>,
    policies: Option<&Bound<'_, PyAny>>,
    sizes: Option<OneOrMore<AnySize>>,
    device: Option<u32>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<ObjectReport>> {
    let source = trace::source(trace)?;
    let trace = TraceWorkload { device, ..source.workload() };
    let mut options = ObjectCurvesOptions::new(trace);
    if let Some(policies) = policies {
        let named = caches::policies(policies)?.into_iter().map(named);
        options.policies = named.collect::<Result<_, _>>().map_err(|fault| fault.raise(py))?;
    }
    let sizes = sizes.map(OneOrMore::into_vec).unwrap_or_default();
    options.sizes = sizes.iter().map(AnySize::get).collect::<PyResult<_>>()?;
    let (report, frame) = job::run(py, progress, move |watch| {
        let report = facade::object_curves(&options, &|progress| match progress {
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
    let (of_json, of_text) = (Arc::clone(&report), Arc::clone(&report));
    let parts = Parts {
        json: Box::new(move || json(&*of_json)),
        html: None,
        text: Box::new(move || Ok(of_text.text())),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(ObjectReport { report }))
}

/// A policy that knows sizes; one of Python is asked for single blocks.
fn named(policy: Compared) -> Result<ComparedPolicy, Fault> {
    match policy {
        Compared::Named(policy) => Ok(policy),
        Compared::Own(own) => {
            let says =
                format!("policies={}: a policy in Python knows blocks of one size", own.name);
            let help =
                "object_curves takes names, as \"lru\" or \"belady\"; cache_curves takes a class";
            Err(argument(says, help))
        }
    }
}

/// A row a policy and size.
fn frame(report: &facade::ObjectReport) -> Result<Frame, Fault> {
    let curves = &report.curves;
    let rows: Vec<_> =
        curves.curves.iter().flat_map(|of| of.points.iter().map(move |at| (of, at))).collect();
    let policies: Vec<String> = rows.iter().map(|(of, _)| of.policy.to_string()).collect();
    Columns::default()
        .texts("policy", policies.iter().map(String::as_str))
        .texts("title", rows.iter().map(|(of, _)| &*of.title))
        .whole("size_bytes", rows.iter().map(|(_, at)| Some(at.size_bytes)))
        .whole("misses", rows.iter().map(|(_, at)| Some(at.misses)))
        .whole("missed_bytes", rows.iter().map(|(_, at)| Some(at.missed_bytes)))
        .numbers("miss_ratio", rows.iter().map(|(_, at)| share(at.misses, curves.uses)))
        .numbers(
            "byte_miss_ratio",
            rows.iter().map(|(_, at)| share(at.missed_bytes, curves.used_bytes)),
        )
        .frame()
}

fn share(part: u64, whole: u64) -> Option<f64> {
    Some(part as f64 / whole.max(1) as f64)
}

#[pymethods]
impl ObjectReport {
    /// Uses of objects.
    #[getter]
    fn uses(&self) -> u64 {
        self.report.curves.uses
    }

    /// Distinct objects.
    #[getter]
    fn objects(&self) -> u64 {
        self.report.curves.objects
    }

    /// Bytes of these, each with the size of its first use.
    #[getter]
    fn footprint_bytes(&self) -> u64 {
        self.report.curves.footprint_bytes
    }

    /// Sizes of the caches, ascending.
    #[getter]
    fn sizes_bytes(&self) -> Vec<u64> {
        self.report.curves.sizes_bytes.clone()
    }
}
