//! Experiments that run.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringViewBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use freewheel::experiments::{CompletionRows, SimDocument, run_collected, run_watched};
use freewheel::measures::Summary;
use freewheel::{Experiment, RunResult};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::config::{Overrides, SimConfig};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job::{self, Watch};
use crate::own_cache_policy::OwnCachePolicy;
use crate::own_policy::OwnPolicy;
use crate::report::{Parts, Report};
use crate::table::op_name;

/// The result of an experiment.
///
/// Its table has a row a completion, where they were kept.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct SimReport {
    ran: Arc<Ran>,
}

/// Policies of Python in place of the configured ones.
struct Own {
    policy: Option<OwnPolicy>,
    cache_policy: Option<OwnCachePolicy>,
}

impl Own {
    fn put_into(self, mut experiment: Experiment, watch: &Arc<Watch>) -> Result<Experiment, Fault> {
        if let Some(policy) = self.policy {
            let make = policy.watched(watch);
            experiment = experiment.with_policy(policy.name, make).map_err(Fault::experiment)?;
        }
        if let Some(policy) = self.cache_policy {
            let make = policy.watched(watch);
            let with = experiment.with_cache_policy(policy.name, make);
            experiment = with.map_err(Fault::experiment)?;
        }
        Ok(experiment)
    }
}

/// An experiment and what came out.
struct Ran {
    experiment: Experiment,
    result: RunResult,
}

impl Ran {
    fn new(
        config: freewheel::SimConfig,
        own: Own,
        completions: bool,
        watch: &Arc<Watch>,
    ) -> Result<(Self, Option<Frame>), Fault> {
        let experiment = Experiment::new(config).map_err(Fault::experiment)?;
        let experiment = own.put_into(experiment, watch)?;
        let mut progress = |done, total| watch.report(done, total);
        let (mut result, rows) = if completions {
            let (result, rows) =
                run_collected(&experiment, &mut progress).map_err(Fault::experiment)?;
            (result, Some(rows))
        } else {
            let result = run_watched(&experiment, None, None, &mut progress);
            (result.map_err(Fault::experiment)?, None)
        };
        let other = experiment.run_other_times(&mut progress);
        result.other_times = other.map_err(Fault::experiment)?;
        Ok((Self { experiment, result }, rows.map(completions_frame).transpose()?))
    }

    fn text(&self) -> String {
        let RunResult { requests, response, .. } = &self.result;
        let under = self.experiment.own_policy().map(|name| format!(" under {name}"));
        format!(
            "{}{}: {requests} requests, {:.1} a second, utilisation {:.1} %; response {:.3} ms on average, {:.3} ms at p99",
            self.experiment.config.drive,
            under.unwrap_or_default(),
            self.result.requests_per_second,
            100.0 * self.result.utilisation,
            response.mean_ns / 1e6,
            response.p99_ns as f64 / 1e6,
        )
    }

    fn parts(self: &Arc<Self>, frame: Option<Frame>) -> Parts {
        let [of_json, of_html, of_text] = [self, self, self].map(Arc::clone);
        Parts {
            json: Box::new(move || {
                let document = SimDocument::new(&of_json.experiment, &of_json.result);
                freewheel_cli::json_document(&document).map_err(Fault::json)
            }),
            html: Some(Box::new(move || {
                Ok(freewheel::SimReport::new(&of_html.experiment, &of_html.result).html())
            })),
            text: Box::new(move || Ok(of_text.text())),
            frame,
        }
    }
}

/// Runs an experiment.
#[pyfunction]
#[pyo3(signature = (
    config, *, overrides=None, seed=None, policy=None, cache_policy=None, completions=false, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn simulate(
    py: Python<'_>,
    config: &Bound<'_, PyAny>,
    overrides: Option<Overrides>,
    seed: Option<u64>,
    policy: Option<&Bound<'_, PyAny>>,
    cache_policy: Option<&Bound<'_, PyAny>>,
    completions: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<SimReport>> {
    let mut config = SimConfig::of(config, overrides)?;
    config.seed = seed.unwrap_or(config.seed);
    let own = Own {
        policy: policy.map(OwnPolicy::new).transpose()?,
        cache_policy: cache_policy.map(OwnCachePolicy::new).transpose()?,
    };
    let run = move |watch: &Arc<Watch>| Ran::new(config, own, completions, watch);
    let (ran, frame) = job::run(py, progress, run)?;
    let ran = Arc::new(ran);
    let report = Report::new(ran.parts(frame));
    Py::new(py, PyClassInitializer::from(report).add_subclass(SimReport { ran }))
}

#[pymethods]
impl SimReport {
    /// Reads, writes, flushes and trims, without the warm-up.
    #[getter]
    fn requests(&self) -> u64 {
        self.ran.result.requests
    }

    /// Virtual time from the start, or the end of the warm-up, to the last completion.
    #[getter]
    fn elapsed_ns(&self) -> u64 {
        self.ran.result.elapsed_ns
    }

    /// Reads and writes a second.
    #[getter]
    fn requests_per_second(&self) -> f64 {
        self.ran.result.requests_per_second
    }

    /// Bytes a second.
    #[getter]
    fn bytes_per_second(&self) -> f64 {
        self.ran.result.bytes_per_second
    }

    /// Share of time in which the drive had a command inside.
    #[getter]
    fn utilisation(&self) -> f64 {
        self.ran.result.utilisation
    }

    /// Mean response time of reads and writes.
    #[getter]
    fn response_ns_mean(&self) -> f64 {
        self.ran.result.response.mean_ns
    }

    /// Median response time of reads and writes.
    #[getter]
    fn response_ns_p50(&self) -> u64 {
        self.ran.result.response.p50_ns
    }

    /// 99 % of the response times of reads and writes are no longer.
    #[getter]
    fn response_ns_p99(&self) -> u64 {
        self.ran.result.response.p99_ns
    }

    /// Response times of reads: count, mean_ns, p50_ns and so on.
    #[getter]
    fn read_response<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        summary(py, &self.ran.result.read_response)
    }

    /// Response times of writes, likewise.
    #[getter]
    fn write_response<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        summary(py, &self.ran.result.write_response)
    }

    /// Hash over every completion: equal runs have equal hashes.
    #[getter]
    fn result_hash(&self) -> &str {
        &self.ran.result.result_hash
    }

    /// The experiment that ran, with every default.
    #[getter]
    fn config(&self) -> SimConfig {
        SimConfig::from(self.ran.experiment.config.clone())
    }
}

fn summary<'py>(py: Python<'py>, of: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("count", of.count)?;
    all.set_item("mean_ns", of.mean_ns)?;
    let numbers = [
        ("min_ns", of.min_ns),
        ("p50_ns", of.p50_ns),
        ("p90_ns", of.p90_ns),
        ("p95_ns", of.p95_ns),
        ("p99_ns", of.p99_ns),
        ("p999_ns", of.p999_ns),
        ("p9999_ns", of.p9999_ns),
        ("max_ns", of.max_ns),
    ];
    for (name, ns) in numbers {
        all.set_item(name, ns)?;
    }
    Ok(all)
}

/// The columns of the log that `freewheel sim --log` writes, in its order.
fn completions_schema() -> SchemaRef {
    let [first, others @ ..] = CompletionRows::INTEGERS;
    let mut fields = vec![field(first, DataType::Int64), field("op", DataType::Utf8View)];
    fields.extend(others.map(|name| field(name, DataType::Int64)));
    fields.extend(["refused", "fua", "is_warm_up"].map(|name| field(name, DataType::Boolean)));
    Arc::new(Schema::new(fields))
}

fn field(name: &str, of: DataType) -> Field {
    Field::new(name, of, false)
}

/// Completions as a table; the numbers are not copied.
fn completions_frame(groups: Vec<CompletionRows>) -> Result<Frame, Fault> {
    let schema = completions_schema();
    let batches = groups
        .into_iter()
        .map(|rows| {
            let mut ops = StringViewBuilder::with_capacity(rows.ops.len());
            rows.ops.iter().for_each(|op| ops.append_value(op_name(*op)));
            let flags = [&rows.refused, &rows.fua, &rows.is_warm_up];
            let flags = flags.map(|flags| -> ArrayRef {
                let mut array = BooleanBuilder::with_capacity(flags.len());
                array.append_slice(flags);
                Arc::new(array.finish())
            });
            let integers =
                rows.integers.map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
            let mut columns: Vec<ArrayRef> = integers.into();
            columns.insert(1, Arc::new(ops.finish()));
            columns.extend(flags);
            RecordBatch::try_new(Arc::clone(&schema), columns)
        })
        .collect::<Result<Vec<_>, _>>();
    let batches = batches.map_err(|error| Fault::Other(error.to_string()))?;
    Ok(Frame::new(schema, batches))
}
