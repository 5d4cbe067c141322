//! The first pass over a trace: counts, footprint and devices.

use std::collections::BTreeSet;

use freewheel_sim::config::{TraceWorkload, open};
use freewheel_sim::source::PlacementError;
use freewheel_trace::{InfoCollector, Record, TraceInfo};

use super::error::CacheCurvesError;
use super::progress::{CacheProgress, CacheProgressSink};

/// What the trace holds, or the one device of it that was asked for.
pub(super) fn overview(
    trace: &TraceWorkload,
    progress: CacheProgressSink<'_>,
) -> Result<TraceInfo, CacheCurvesError> {
    let mut reader = open(trace)?;
    let mut collector = InfoCollector::new(reader.format());
    let mut devices = BTreeSet::new();
    let observe = |record: &Record| {
        devices.insert(record.device);
        if trace.device.is_none_or(|device| device == record.device) {
            collector.observe(record);
        }
    };
    reader.read_through(observe, &mut |reader| {
        let (done, total) = (reader.compressed_bytes_read(), reader.compressed_bytes_total());
        progress(CacheProgress::Reading { done, total });
    })?;
    if let Some(device) = trace.device.filter(|device| !devices.contains(device)) {
        return Err(CacheCurvesError::Config(PlacementError::no_device(device, devices).into()));
    }
    Ok(collector.finish().as_read_by(&reader))
}
