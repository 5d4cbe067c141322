//! The pass that feeds every cache.

use std::collections::BTreeMap;

use freewheel_model::cache::BlockRange;
use freewheel_sim::config::{ConfigError, TraceWorkload, reopen};
use freewheel_sim::source::{Fit, Placement, PlacementError};
use freewheel_trace::{Record, TraceInfo};
use freewheel_units::{Blocks, Op, SimTime};
use rayon::prelude::*;

use super::counters::{Access, Counter};
use super::error::CacheCurvesError;
use super::options::CacheCurvesOptions;
use super::progress::{CacheProgress, CacheProgressSink};
use super::result::Counted;

/// Accesses that one cache takes after the other, so that its tables stay close to the processor.
const CHUNK: usize = 1 << 14;

/// The caches in the middle of the trace.
struct Pass<'a> {
    placement: Placement,
    counters: &'a mut [Box<dyn Counter>],
    chunk: Vec<Access>,
    requests: u64,
    counted: Counted,
    /// Arrival of the first request that counts.
    first_counted: Option<SimTime>,
}

/// Feeds the reads and writes of a trace to all counters, on all cores. Requests from number
/// `warm_up_requests` on count. Devices lie end to end; trims and flushes change no cache.
pub(super) fn count(
    options: &CacheCurvesOptions,
    info: &TraceInfo,
    warm_up_requests: u64,
    counters: &mut [Box<dyn Counter>],
    progress: CacheProgressSink<'_>,
) -> Result<Counted, CacheCurvesError> {
    let trace = &options.trace;
    let counted = Counted { warm_up_requests, ..Counted::default() };
    let (placement, chunk) = (placement(trace, info)?, Vec::with_capacity(CHUNK));
    let mut pass = Pass { placement, counters, chunk, requests: 0, counted, first_counted: None };
    let mut reader = reopen(trace, options.seed, info)?;
    let mut wrong = Ok(());
    reader.read_through(
        |record| {
            if wrong.is_ok() {
                wrong = pass.observe(record);
            }
        },
        &mut |reader| {
            let (done, total) = (reader.compressed_bytes_read(), reader.compressed_bytes_total());
            progress(CacheProgress::Counting { done, total });
        },
    )?;
    wrong.map_err(ConfigError::from)?;
    pass.feed();
    Ok(pass.counted)
}

/// Places of the trace in a separate address space, which no drive bounds.
fn placement(trace: &TraceWorkload, info: &TraceInfo) -> Result<Placement, ConfigError> {
    let ends: BTreeMap<u32, u64> =
        info.devices.iter().map(|(&id, device)| (id, device.end_block)).collect();
    Ok(Placement::new(&ends, trace.device, Blocks::new(u64::MAX), Fit::AsIs)?)
}

impl Pass<'_> {
    fn observe(&mut self, record: &Record) -> Result<(), PlacementError> {
        if !self.placement.includes(record) {
            return Ok(());
        }
        if self.requests == self.counted.warm_up_requests {
            self.feed();
            self.counters.par_iter_mut().for_each(|counter| counter.begin_counting());
        }
        self.requests += 1;
        if self.requests > self.counted.warm_up_requests {
            self.note(record);
        }
        if !record.op.moves_data() {
            return Ok(());
        }
        let range = BlockRange::new(self.placement.place(record)?, record.blocks);
        self.chunk.push(Access { range, is_read: record.op == Op::Read });
        if self.chunk.len() == CHUNK {
            self.feed();
        }
        Ok(())
    }

    /// Counts a request after the warm-up.
    fn note(&mut self, record: &Record) {
        let first = *self.first_counted.get_or_insert(record.arrival);
        let span_ns = record.arrival.saturating_since(first).ns();
        self.counted.span_ns = self.counted.span_ns.max(span_ns);
        match record.op {
            Op::Read => {
                self.counted.reads += 1;
                self.counted.read_bytes += record.bytes().get();
            }
            Op::Write => self.counted.writes += 1,
            Op::Flush | Op::Trim => {}
        }
    }

    /// Gives each cache the accesses that wait. Caches share no data, so they may run in any order.
    fn feed(&mut self) {
        let chunk = &self.chunk;
        self.counters.par_iter_mut().for_each(|counter| counter.process(chunk));
        self.chunk.clear();
    }
}
