//! Completions of a trace that records none: a reference drive is simulated first, at the recorded arrivals.

use std::collections::BTreeMap;

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_trace::TraceInfo;
use freewheel_units::Blocks;

use super::Experiment;
use crate::completion::Completion;
use crate::config::{ConfigError, SimConfig, TraceWorkload, Workload, reopen};
use crate::library::{self, DriveError};
use crate::source::{
    Fit, InferredCompletions, InferredResponses, ParentComparison, ParentDoubt, Placement,
    ReplayMode, TracedThinkTime,
};

/// Inferred completions of one trace.
#[derive(Debug, Clone)]
pub(super) struct Inferred {
    pub completions: InferredCompletions,
    pub responses: InferredResponses,
}

/// The drive that a trace is simulated on first.
struct Reference {
    name: String,
    fit: Fit,
}

impl Inferred {
    /// Simulates the reference drive of a trace with this first pass. The drive has its electronics, and
    /// serves requests in the order of their arrival. `stream` is the number of the trace among those merged.
    pub fn of(
        workload: &TraceWorkload,
        trace: &TraceInfo,
        config: &SimConfig,
        stream: u32,
    ) -> Result<Self, ConfigError> {
        let reference = Reference::of(workload, trace)?;
        let config = reference.experiment(workload, config);
        let experiment = Experiment::with_trace_info(config, Some(trace.clone()))
            .map_err(|error| of_reference(&error))?;
        let (mut responses, mut sum_ns) = (Vec::new(), 0u128);
        let mut observer = |completion: &Completion| {
            let (index, response) = (completion.request.tag as usize, completion.response());
            if responses.len() <= index {
                responses.resize(index + 1, 0);
            }
            responses[index] = response.ns();
            sum_ns += u128::from(response.ns());
        };
        experiment.new_run().with_observer(&mut observer).simulate()?;
        let mean_response_ns = (sum_ns / responses.len().max(1) as u128) as u64;
        let responses = InferredResponses::new(responses);
        let parents = doubt(workload, trace, experiment.config.seed, &responses)?;
        let Reference { name, fit } = reference;
        let completions =
            InferredCompletions { stream, drive: name, fit, mean_response_ns, parents };
        Ok(Self { completions, responses })
    }
}

/// A pass over the trace that compares parents.
fn doubt(
    workload: &TraceWorkload,
    trace: &TraceInfo,
    seed: u64,
    responses: &InferredResponses,
) -> Result<ParentDoubt, ConfigError> {
    let mut comparison = ParentComparison::default();
    for record in reopen(workload, seed, trace)? {
        let record = record?;
        if workload.device.is_none_or(|device| device == record.device) {
            comparison.observe(&record, responses);
        }
    }
    Ok(comparison.doubt())
}

impl Reference {
    /// The drive named, or the smallest shipped one that holds the trace. On one that is smaller than the
    /// trace, addresses are scaled.
    fn of(workload: &TraceWorkload, trace: &TraceInfo) -> Result<Self, ConfigError> {
        let ends: BTreeMap<u32, u64> =
            trace.devices.iter().map(|(&id, device)| (id, device.end_block)).collect();
        let unlimited = Blocks::new(u64::MAX);
        let placement = Placement::new(&ends, workload.device, unlimited, Fit::AsIs)?;
        let space = placement.space().get().div_ceil(512);
        let fit = |drive: &Drive| match drive.total_blocks().get() >= space {
            true => Fit::AsIs,
            false => Fit::Scale,
        };
        if let Some(name) = &workload.reference_drive {
            let (_, drive) = library::drive(name).map_err(|error| of_reference(&error))?;
            return Ok(Self { name: name.clone(), fit: fit(&drive) });
        }
        let (name, drive) = suitable(space)?;
        Ok(Self { name: name.into(), fit: fit(&drive) })
    }

    fn experiment(&self, workload: &TraceWorkload, config: &SimConfig) -> SimConfig {
        let workload = TraceWorkload {
            fit: self.fit,
            replay: ReplayMode::Arrivals,
            think_time: TracedThinkTime::Kept,
            reference_drive: None,
            ..workload.clone()
        };
        SimConfig {
            seed: config.seed,
            drive: self.name.clone(),
            scheduler: PolicySpec::Fcfs,
            electronics: true,
            workload: Workload::Trace(workload),
            ..SimConfig::default()
        }
    }
}

/// The smallest shipped drive with this number of blocks, or else the largest. Host-managed drives do not
/// count: a trace that was not made for them is refused there. Nor do drives with a media cache, which
/// answer unlike others.
fn suitable(blocks: u64) -> Result<(&'static str, Drive), DriveError> {
    let is_usual = |spec: &DriveSpec| {
        let takes_all = spec.zoned.is_none_or(|zoned| zoned.kind != ZonedKind::HostManaged);
        takes_all && spec.electronics.media_cache.is_none()
    };
    let mut best: Option<(&str, Drive)> = None;
    for name in library::names() {
        let (spec, drive) = library::drive(name)?;
        let size = |drive: &Drive| {
            let held = drive.total_blocks().get();
            // All that hold it come before those that do not.
            if held >= blocks { (false, held) } else { (true, u64::MAX - held) }
        };
        if is_usual(&spec) && best.as_ref().is_none_or(|(_, best)| size(&drive) < size(best)) {
            best = Some((name, drive));
        }
    }
    Ok(best.expect("a drive that takes all requests ships"))
}

fn of_reference(error: &dyn std::error::Error) -> ConfigError {
    ConfigError::Workload { message: format!("`reference_drive`: {error}") }
}
