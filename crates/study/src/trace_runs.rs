//! Common parts of all studies of a trace: the first pass, the experiment to begin with, and the test of a
//! growing queue.

use std::collections::BTreeSet;

use freewheel_model::cache::StorageCacheSpec;
use freewheel_sim::RunResult;
use freewheel_sim::config::{ConfigError, SimConfig, TraceWorkload, Workload, open};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{PlacementError, REPLAY_WINDOW};
use freewheel_trace::{InfoCollector, Record, TraceInfo, TraceReader};

/// Share of a trace that fills caches and is not measured: 3 of 7 days, as tr03 gave its shortest trace.
pub const WARM_UP: f64 = 0.43;

/// Requests from which a 99th percentile is not simply the longest response. A study of fewer
/// has no estimate and no advice: one request more might turn it round.
pub const REQUESTS_MIN: u64 = 100;

/// Requests in the storage system at once where a cache stands before the drive, unless another number is asked
/// for: the most that a cache takes, so that a hit does not wait for the disk.
pub const CACHE_DEPTH: u32 = StorageCacheSpec::QUEUE_DEPTH_MAX;

/// Shows `keep` the records of a trace, and `observe` those of the one device of it that was asked for, or all.
/// `progress` gets bytes of the file, done and total.
pub(crate) fn first_pass(
    trace: &TraceWorkload,
    mut reader: TraceReader,
    mut observe: impl FnMut(&Record),
    mut keep: impl FnMut(&Record),
    progress: impl Fn(u64, u64),
) -> Result<TraceReader, ConfigError> {
    let mut devices = BTreeSet::new();
    reader.read_through(
        |record| {
            devices.insert(record.device);
            keep(record);
            if trace.device.is_none_or(|device| device == record.device) {
                observe(record);
            }
        },
        &mut |reader| {
            progress(reader.compressed_bytes_read(), reader.compressed_bytes_total());
        },
    )?;
    match trace.device.filter(|device| !devices.contains(device)) {
        Some(device) => Err(PlacementError::no_device(device, devices).into()),
        None => Ok(reader),
    }
}

/// Contents of a trace, or of the one device of it that was asked for. Shows `keep` all its records.
pub(crate) fn overview(
    trace: &TraceWorkload,
    seed: u64,
    keep: impl FnMut(&Record),
    progress: impl Fn(u64, u64),
) -> Result<TraceInfo, ConfigError> {
    let reader = open(trace, seed)?;
    let mut collector = InfoCollector::new(reader.format());
    let reader = first_pass(trace, reader, |record| collector.observe(record), keep, progress)?;
    Ok(collector.finish().as_read_by(&reader))
}

/// A trace on one drive without caches. The host gives every request to the drive at once.
pub(crate) fn trace_on_drive(
    trace: &TraceWorkload,
    drive: &str,
    electronics: bool,
    seed: u64,
) -> SimConfig {
    SimConfig {
        seed,
        drive: drive.into(),
        electronics,
        workload: Workload::Trace(trace.clone()),
        ..SimConfig::default()
    }
}

/// A run that takes longer than this many times the span of its trace was kept from ending with it.
const OUTLASTS: f64 = 1.05;

/// Length of a run with its warm-up.
pub(crate) fn whole_ns(result: &RunResult) -> u64 {
    result.warm_up_ns + result.elapsed_ns
}

/// Experiment without a warm-up, on which free work is measured.
pub(crate) fn measured_whole(experiment: &Experiment) -> Experiment {
    let mut whole = experiment.clone();
    whole.config.warm_up = 0.0;
    whole
}

/// True if a run takes longer than the arrivals of its trace.
pub(crate) fn outlasts(elapsed_ns: u64, span_ns: u64) -> bool {
    elapsed_ns as f64 > OUTLASTS * span_ns as f64
}

/// True if a queue of this mean length is longer than that of a replay which waits for the drive.
fn is_long_queue(outstanding_mean: f64) -> bool {
    outstanding_mean > REPLAY_WINDOW as f64
}

/// True if more requests wait with every second of a replay. One by dependence waits for the drive instead.
pub(crate) fn has_growing_queue(is_dependent: bool, span_ns: u64, result: &RunResult) -> bool {
    !is_dependent && outlasts(whole_ns(result), span_ns) && is_long_queue(result.outstanding_mean)
}
