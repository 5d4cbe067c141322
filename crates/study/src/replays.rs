//! The other way to replay a trace. A change that helps when requests come at their traced times may harm
//! when they wait for each other, so a study looks at both.

use freewheel_model::zoned::spec::ZonedKind;
use freewheel_sim::config::{ConfigError, TraceWorkload, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{InferredCompletions, ReplayMode, TracedThinkTime};
use freewheel_trace::TraceInfo;
use serde::Serialize;

/// The replay that a study compares its own with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherReplay {
    /// True if requests are replayed a think time after the request they waited for.
    pub dependent: bool,
    /// The drive whose completions stand in for those that the trace does not record.
    pub inferred_completions: Vec<InferredCompletions>,
    /// True if more requests wait with every second in it. Then responses are those of a queue, and no
    /// results are compared under it.
    pub has_growing_queue: bool,
}

impl OtherReplay {
    /// Replay in a few words.
    pub fn words(&self) -> &'static str {
        words_of_replay(self.dependent)
    }
}

/// Replay in a few words.
pub(crate) fn words_of_replay(dependent: bool) -> &'static str {
    if dependent { "if requests wait for each other" } else { "at the traced times" }
}

/// Fills in what a study means by its replay: where completions must be inferred, they are those of its drive.
pub(crate) fn with_reference(
    trace: &TraceWorkload,
    drive: &str,
    tells_dependence: bool,
    zoned: Option<ZonedKind>,
) -> TraceWorkload {
    let infers = trace.replay == ReplayMode::Dependent && !tells_dependence;
    // A host-managed drive refuses requests of a trace that was not made for it.
    let can_stand_in = zoned != Some(ZonedKind::HostManaged);
    let reference = (infers && can_stand_in).then(|| drive.to_owned());
    let reference_drive = trace.reference_drive.clone().or(reference);
    TraceWorkload { reference_drive, ..trace.clone() }
}

/// True if the trace of `experiment` can be replayed in the other way. Changed think times or arrivals have
/// no counterpart, and nor have merged traces.
pub(crate) fn has_other(experiment: &Experiment) -> bool {
    let Workload::Trace(trace) = &experiment.config.workload else { return false };
    trace.merge.is_empty()
        && trace.think_time == TracedThinkTime::Kept
        && trace.arrival_speedup == TraceWorkload::default().arrival_speedup
}

/// Experiment under the other replay, where there is one.
pub(crate) fn other(experiment: &Experiment) -> Result<Option<Experiment>, ConfigError> {
    let Workload::Trace(trace) = &experiment.config.workload else { return Ok(None) };
    if !has_other(experiment) {
        return Ok(None);
    }
    let replay =
        if experiment.is_dependent() { ReplayMode::Arrivals } else { ReplayMode::Dependent };
    let trace = TraceWorkload { replay, reference_drive: None, ..trace.clone() };
    let tells_dependence = experiment.traces().all(TraceInfo::tells_dependence);
    let zoned = experiment.spec.zoned.map(|zoned| zoned.kind);
    let drive = &experiment.config.drive;
    experiment.replayed(with_reference(&trace, drive, tells_dependence, zoned)).map(Some)
}
