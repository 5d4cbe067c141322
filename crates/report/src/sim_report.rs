//! A run's result with what follows from it.

use freewheel_sim::RunResult;
use freewheel_sim::config::{SimConfig, WithoutEffect};
use freewheel_sim::experiment::Experiment;
use freewheel_study::FreeWork;
use freewheel_trace::TraceInfo;
use serde::Serialize;

use crate::cache_work::cache_rows;
use crate::command_work::command_rows;
use crate::drive_identity::DriveIdentity;
use crate::files_run;
use crate::finding::Finding;
use crate::free_work::{FreeWorkPart, free_work_parts};
use crate::postmark::{PassTable, pass_tables};
use crate::sim_page::{REGION_WEIGHTS, cautions, sim_html};
use crate::stages::{StageTable, stage_table};

/// The result of an experiment: as a document (it serialises), as a page, and as tables of a terminal.
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
    /// The meaning of `region_weights` in the text of an experiment.
    pub const REGION_WEIGHTS: &'static str = REGION_WEIGHTS;

    /// Works out what the sums of the run say.
    pub fn new(experiment: &'a Experiment, result: &'a RunResult) -> Self {
        let without_effect = experiment.without_effect(result);
        Self { experiment, result, free_work: FreeWork::new(result), without_effect }
    }

    /// Cautions about the result.
    pub fn cautions(&self) -> Vec<Finding> {
        cautions(self.experiment, self.result)
    }

    /// One HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        sim_html(self.experiment, self.result)
    }

    /// Mean time of each stage, and its share of head time.
    pub fn stage_table(&self) -> StageTable {
        stage_table(self.result)
    }

    /// Work of the caches before the drives: a subject and its words, for each part that was used.
    pub fn cache_rows(&self) -> Vec<(&'static str, String)> {
        cache_rows(self.result)
    }

    /// Duration limits that were missed, and a scrub from outside: a subject and its words for each that
    /// there was.
    pub fn command_rows(&self) -> Vec<(&'static str, String)> {
        command_rows(self.result)
    }

    /// Tables of files and disks for a terminal, if files were the workload.
    pub fn files_text(&self) -> Vec<String> {
        files_run::text(self.result)
    }

    /// A table for the passes of PostMark, if that was the workload.
    pub fn pass_tables(&self) -> Vec<PassTable> {
        self.result.postmark.iter().flat_map(pass_tables).collect()
    }

    /// The free work in words: a part for each subject.
    pub fn free_work_parts(&self) -> Vec<FreeWorkPart> {
        free_work_parts(self.result)
    }
}
