//! The first pass over a trace: counts, footprint and devices.

use freewheel_sim::config::{TraceWorkload, open};
use freewheel_trace::{InfoCollector, TraceInfo};

use super::error::CacheCurvesError;
use super::progress::{CacheProgress, CacheProgressSink};
use crate::trace_runs::first_pass;

/// What the trace holds, or the one device of it that was asked for.
pub(super) fn overview(
    trace: &TraceWorkload,
    progress: CacheProgressSink<'_>,
) -> Result<TraceInfo, CacheCurvesError> {
    let reader = open(trace)?;
    let mut collector = InfoCollector::new(reader.format());
    let report = |done, total| progress(CacheProgress::Reading { done, total });
    let reader = first_pass(trace, reader, |record| collector.observe(record), report)?;
    Ok(collector.finish().as_read_by(&reader))
}
