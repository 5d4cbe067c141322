//! A run's result with what follows from it.

use freewheel_model::stats::Distribution;
use freewheel_sim::RunResult;
use freewheel_sim::config::{SimConfig, WithoutEffect};
use freewheel_sim::experiment::Experiment;
use freewheel_study::FreeWork;
use freewheel_trace::TraceInfo;
use serde::Serialize;

use crate::drive_identity::DriveIdentity;
use crate::sim_page::sim_html;
use crate::sim_text;

/// The result of an experiment.
///
/// It is a document (it serialises), a page, and tables of a terminal.
#[derive(Serialize)]
pub struct SimReport<'a> {
    #[serde(skip)]
    experiment: &'a Experiment,
    #[serde(flatten)]
    result: &'a RunResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_work: Option<FreeWork>,
    /// Keys that are given and had no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without_effect: Vec<WithoutEffect>,
}

/// The result of an experiment with all that it depends on, as a document.
#[derive(Serialize)]
pub struct SimDocument<'a> {
    config: &'a SimConfig,
    /// Name of the caller's policy that decided in place of `config.scheduler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_policy: Option<&'a str>,
    /// Name of the one that evicted in place of `config.cache.policy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_cache_policy: Option<&'a str>,
    drive: DriveIdentity,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceInfo>,
    /// Those merged with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    merged_traces: Vec<&'a TraceInfo>,
    result: SimReport<'a>,
}

impl<'a> SimDocument<'a> {
    /// The document of this run.
    pub fn new(experiment: &'a Experiment, result: &'a RunResult) -> Self {
        Self {
            config: &experiment.config,
            own_policy: experiment.own_policy(),
            own_cache_policy: experiment.own_cache_policy(),
            drive: DriveIdentity::new(&experiment.spec, &experiment.drive),
            trace: experiment.trace.as_ref(),
            merged_traces: experiment.traces().skip(1).collect(),
            result: SimReport::new(experiment, result),
        }
    }
}

impl<'a> SimReport<'a> {
    /// Works out what the sums of the run say.
    pub fn new(experiment: &'a Experiment, result: &'a RunResult) -> Self {
        let without_effect = experiment.without_effect(result);
        Self { experiment, result, free_work: FreeWork::new(result), without_effect }
    }

    /// Cautions, the experiment and tables for a terminal; `decisions` are the times of decisions on this
    /// machine.
    ///
    /// Errors: an experiment that TOML cannot hold, such as one with a path that is not UTF-8.
    pub fn text(&self, decisions: &Distribution) -> Result<String, toml::ser::Error> {
        sim_text::text(self.experiment, self.result, decisions)
    }

    /// One HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        sim_html(self.experiment, self.result)
    }
}
