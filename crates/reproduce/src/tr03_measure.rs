//! What tr03 measures of a run, and how it compares two.

use freewheel_sim::{CacheWork, RunResult, ServiceParts, SliceResponses};

/// Means over the reads or the writes of a run, or over both.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Means {
    /// From a request's arrival to its end.
    pub response_ms: f64,
    /// Time that the arms were busy for each request, hits included.
    pub service_ms: f64,
    /// Share of requests that needed the disk; of writes those that made a clean block dirty.
    pub miss_ratio: f64,
}

/// A run in tr03's terms.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub reads: Means,
    pub writes: Means,
    pub all: Means,
    /// Standard deviation of responses over their mean, of the whole run.
    pub variation: f64,
    /// Mean responses of reads in the slices of the trace.
    pub reads_by_slice: Vec<f64>,
    /// The same of writes.
    pub writes_by_slice: Vec<f64>,
    /// Head time of each disk request that is no reading on.
    pub access: Access,
    /// Parts of the response of reads.
    pub read_parts: Parts,
    /// Parts of the service of writes.
    pub write_parts: Parts,
}

/// Parts of a response or a service in per cent of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    pub seek: f64,
    pub rotate: f64,
    pub transfer: f64,
    /// The rest.
    pub wait: f64,
}

impl Parts {
    fn of(head: ServiceParts, total_ns: f64) -> Self {
        let [seek, rotate, transfer] = [head.seek_ns, head.rotate_ns, head.transfer_ns]
            .map(|ns| 100.0 * ns as f64 / total_ns.max(1.0));
        Self { seek, rotate, transfer, wait: 100.0 - seek - rotate - transfer }
    }
}

/// Mean parts of a disk request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Access {
    pub seek_ms: f64,
    pub rotate_ms: f64,
}

/// What a run on a trace counted in each of its parts.
#[derive(Debug, Clone)]
pub(super) struct TracedRun {
    slices: Vec<Slice>,
    /// Standard deviation of responses over their mean, of the whole run.
    variation: f64,
}

/// Sums over a part of a run.
#[derive(Debug, Clone, Copy, Default)]
struct Slice {
    reads: Responses,
    writes: Responses,
    cache: CacheWork,
}

#[derive(Debug, Clone, Copy, Default)]
struct Responses {
    requests: u64,
    sum_ns: u128,
}

impl Responses {
    fn of(responses: &SliceResponses) -> Self {
        Self { requests: responses.requests, sum_ns: responses.response_ns_sum }
    }

    fn and(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, sum_ns: self.sum_ns + other.sum_ns }
    }

    fn mean_ms(self) -> f64 {
        self.sum_ns as f64 / self.requests.max(1) as f64 / 1e6
    }
}

impl Slice {
    fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads.and(other.reads),
            writes: self.writes.and(other.writes),
            cache: self.cache.and(other.cache),
        }
    }
}

impl TracedRun {
    pub fn of(result: &RunResult) -> Self {
        let variation = result.response.coefficient_of_variation;
        Self {
            slices: result
                .slices
                .iter()
                .map(|slice| Slice {
                    reads: Responses::of(&slice.reads),
                    writes: Responses::of(&slice.writes),
                    cache: slice.cache.unwrap_or_default(),
                })
                .collect(),
            variation,
        }
    }
}

impl Measured {
    /// A run without one of its parts, or the whole of it.
    pub fn without(run: &TracedRun, left_out: Option<usize>) -> Self {
        let Slice { reads: read, writes: write, cache } = run
            .slices
            .iter()
            .enumerate()
            .filter(|(part, _)| Some(*part) != left_out)
            .map(|(_, slice)| *slice)
            .reduce(Slice::and)
            .unwrap_or_default();
        let reads = Means {
            response_ms: read.mean_ms(),
            service_ms: mean_ms(cache.read_service_ns, read.requests),
            miss_ratio: share(cache.read_misses, cache.reads),
        };
        let writes = Means {
            response_ms: write.mean_ms(),
            service_ms: mean_ms(cache.write_service_ns, write.requests),
            miss_ratio: share(cache.write_misses, cache.writes),
        };
        let both = read.and(write);
        let service_ns = cache.read_service_ns + cache.write_service_ns;
        let all = Means {
            response_ms: both.mean_ms(),
            service_ms: mean_ms(service_ns, both.requests),
            miss_ratio: share(cache.read_misses + cache.write_misses, cache.reads + cache.writes),
        };
        let by_slice = |of: fn(&Slice) -> Responses| {
            run.slices
                .iter()
                .enumerate()
                .filter(|(part, _)| Some(*part) != left_out)
                .map(|(_, slice)| of(slice).mean_ms())
                .collect()
        };
        Self {
            reads,
            writes,
            all,
            variation: run.variation,
            reads_by_slice: by_slice(|slice| slice.reads),
            writes_by_slice: by_slice(|slice| slice.writes),
            access: Access::of(&cache),
            // What reads on behind a fetch is service, and no read waits for it.
            read_parts: Parts::of(cache.fetch_head, read.sum_ns as f64),
            write_parts: Parts::of(cache.write_head, cache.write_service_ns as f64),
        }
    }
}

impl Access {
    /// Reads that miss and destages each position the arm once. What reads on behind a fetch does not.
    fn of(cache: &CacheWork) -> Self {
        let accesses = cache.read_misses + cache.destages;
        let mean = |of: fn(&ServiceParts) -> u64| {
            (of(&cache.read_head) + of(&cache.write_head)) as f64 / accesses.max(1) as f64 / 1e6
        };
        Self { seek_ms: mean(|head| head.seek_ns), rotate_ms: mean(|head| head.rotate_ns) }
    }
}

/// A number of a run.
pub(super) type Measure = fn(&Measured) -> f64;

pub(super) const READ_RESPONSE: Measure = |run| run.reads.response_ms;
pub(super) const READ_SERVICE: Measure = |run| run.reads.service_ms;
pub(super) const READ_MISSES: Measure = |run| run.reads.miss_ratio;
pub(super) const WRITE_RESPONSE: Measure = |run| run.writes.response_ms;
pub(super) const WRITE_SERVICE: Measure = |run| run.writes.service_ms;
pub(super) const WRITE_MISSES: Measure = |run| run.writes.miss_ratio;
pub(super) const RESPONSE: Measure = |run| run.all.response_ms;
pub(super) const SERVICE: Measure = |run| run.all.service_ms;

fn mean_ms(ns: u64, requests: u64) -> f64 {
    ns as f64 / requests.max(1) as f64 / 1e6
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// tr03's improvement in per cent: (old - new) / old; not a number where nothing can improve.
pub(super) fn improvement(old: f64, new: f64) -> f64 {
    100.0 * (old - new) / old
}

/// The same in table 11, which divides by the new value.
pub(super) fn improvement_by_new(old: f64, new: f64) -> f64 {
    100.0 * (old - new) / new
}

/// Mean of those that are numbers.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().filter(|value| !value.is_nan()).sum::<f64>()
        / values.iter().filter(|value| !value.is_nan()).count() as f64
}

/// Standard error of a mean.
pub(super) fn standard_error(samples: &[f64]) -> f64 {
    let (count, mean) = (samples.len() as f64, mean(samples));
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    if count < 2.0 { 0.0 } else { (squares / (count - 1.0) / count).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 11 and its section say both: 15.3 % by the new value are 13.3 % by the old one.
    #[test]
    fn improvements_of_paper_are_told_apart() {
        let (old, new) = (1.153, 1.0);
        assert!((improvement_by_new(old, new) - 15.3).abs() < 1e-9);
        assert!((improvement(old, new) - 13.3).abs() < 0.05);
    }

    #[test]
    fn mean_skips_what_cannot_improve() {
        assert!(improvement(0.0, 0.0).is_nan());
        assert_eq!(mean(&[10.0, improvement(0.0, 0.0), 20.0]), 15.0);
    }

    #[test]
    fn standard_error_matches_textbook() {
        assert_eq!(standard_error(&[3.0]), 0.0);
        // Deviation of 2 over the root of four samples.
        assert!(
            (standard_error(&[1.0, 3.0, 5.0, 3.0]) - (8.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12
        );
    }
}
