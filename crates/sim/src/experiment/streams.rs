//! The traces of an experiment: one, or several merged, each an independent stream.

use std::collections::BTreeMap;

use freewheel_trace::TraceInfo;
use freewheel_units::Blocks;

use super::inferred::Inferred;
use crate::config::{
    ConfigError, Layout, SimConfig, TraceWorkload, Workload, check_workload, open,
};
use crate::source::{Fit, KeptRecords, Placement, PlacementError, ReplayMode};

/// A trace that is replayed, alone or beside others.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    /// Replay of the stream: of merged traces without `merge`, and with one timing for all.
    pub workload: TraceWorkload,
    /// Result of the first pass over it.
    pub trace: TraceInfo,
    /// Inferred completions, where the replay needs them.
    pub inferred: Option<Inferred>,
    /// Records of the stream, where they were kept.
    pub kept: Option<KeptRecords>,
    /// Seed of its random moments: of merged traces each has its own, or requests would come together.
    pub seed: u64,
}

/// Err for merged traces and keys that exclude them.
pub(super) fn check_merge(config: &SimConfig) -> Result<(), ConfigError> {
    let Workload::Trace(workload) = &config.workload else { return Ok(()) };
    let wrong = |message: &str| Err(ConfigError::Workload { message: message.into() });
    if workload.merge.is_empty() {
        return Ok(());
    }
    if workload.device.is_some() {
        return wrong(
            "`merge` and `device` exclude each other, for merged traces are whole: `freewheel trace convert --device` writes a trace of one device",
        );
    }
    if config.array.layout == Layout::Independent {
        return wrong(
            "`merge` lays its traces onto one volume, and independent drives have one for each device: leave `merge` out, or give `array.layout = \"striped\"`",
        );
    }
    Ok(())
}

/// The streams of an experiment, of which `first` is the first pass over its `file`; empty where the workload
/// is no trace. Reads each further trace once, and simulates the reference drives that a replay needs.
pub(super) fn streams(
    config: &SimConfig,
    first: Option<&TraceInfo>,
) -> Result<Vec<Stream>, ConfigError> {
    let (Workload::Trace(workload), Some(first)) = (&config.workload, first) else {
        return Ok(Vec::new());
    };
    if !workload.merge.is_empty() {
        return merged(workload, first, config.seed);
    }
    Ok(vec![Stream::new(workload.clone(), first.clone(), config.seed)])
}

/// Err for streams that a volume does not take.
pub(super) fn check(streams: &[Stream], volume: Blocks) -> Result<(), ConfigError> {
    streams.iter().try_for_each(|Stream { workload, trace, .. }| {
        check_workload(&Workload::Trace(workload.clone()), Some(trace), volume)
    })
}

fn merged(
    workload: &TraceWorkload,
    first: &TraceInfo,
    seed: u64,
) -> Result<Vec<Stream>, ConfigError> {
    let mut streams = Vec::new();
    for (number, workload) in workload.streams().into_iter().enumerate() {
        let seed = seed.wrapping_add(number as u64);
        let trace = match number {
            0 => first.clone(),
            _ => TraceInfo::scan_without_footprint(&mut open(&workload, seed)?, &mut |_| {})?,
        };
        streams.push(Stream::new(workload, trace, seed));
    }
    // One timing for all: traces that wait and traces that do not would drift apart on another drive.
    if workload.replay == ReplayMode::Auto {
        let tell = streams.iter().all(|stream| stream.trace.tells_dependence());
        let replay = if tell { ReplayMode::Dependent } else { ReplayMode::Arrivals };
        streams.iter_mut().for_each(|stream| stream.workload.replay = replay);
    }
    Ok(streams)
}

impl Stream {
    fn new(workload: TraceWorkload, trace: TraceInfo, seed: u64) -> Self {
        Self { workload, trace, inferred: None, kept: None, seed }
    }

    /// Simulates the reference drive, if completions are to be inferred and are not yet. `number` is that of
    /// the stream.
    pub fn infer(&mut self, config: &SimConfig, number: u32) -> Result<(), ConfigError> {
        if !self.workload.infers(&self.trace) {
            return Ok(());
        }
        if config.array.layout == Layout::Independent {
            let message = "`replay` is dependent, and completions that the trace lacks are inferred for one volume only: take one device with `workload.device` and `layout = \"striped\"`, or give `replay = \"arrivals\"`".into();
            return Err(ConfigError::Workload { message });
        }
        if self.inferred.is_none() {
            self.inferred = Some(Inferred::of(&self.workload, &self.trace, config, number)?);
        }
        Ok(())
    }

    /// Requests that take part.
    pub fn requests(&self) -> u64 {
        let takes_part = |id: u32| self.workload.device.is_none_or(|device| device == id);
        let devices = self.trace.devices.iter().filter(|(id, _)| takes_part(**id));
        devices.map(|(_, device)| device.requests).sum()
    }

    fn ends(&self) -> BTreeMap<u32, u64> {
        self.trace.devices.iter().map(|(&id, device)| (id, device.end_block)).collect()
    }
}

/// Places of the streams on a volume, one after the other.
pub(super) fn placements(
    streams: &[Stream],
    device: Option<u32>,
    capacity: Blocks,
    fit: Fit,
) -> Result<Vec<Placement>, PlacementError> {
    let ends: Vec<BTreeMap<u32, u64>> = streams.iter().map(Stream::ends).collect();
    match &ends[..] {
        [one] => Ok(vec![Placement::new(one, device, capacity, fit)?]),
        several => Placement::end_to_end(several, capacity, fit),
    }
}
