//! Miss ratios and response times as numbers.

use freewheel_model::cache::CachePolicy;
use freewheel_model::stats::Summary;
use freewheel_trace::Format;
use serde::Serialize;

use super::compared::ComparedPolicy;

/// The requests after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// Requests before, flushes and trims included, which fill the caches.
    pub warm_up_requests: u64,
    /// Reads that count.
    pub reads: u64,
    /// Bytes that they ask for.
    pub read_bytes: u64,
    /// Writes that count in response times.
    pub writes: u64,
    /// From the first arrival that counts to the latest.
    pub span_ns: u64,
}

/// Miss ratios of one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PolicyCurve {
    pub policy: ComparedPolicy,
    pub title: String,
    /// One for each size.
    pub miss_ratios: Vec<MissRatio>,
}

/// Shares of the reads that a cache did not serve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MissRatio {
    /// Memory of the cache.
    pub size_bytes: u64,
    /// Reads with a block that was not in the cache, as a share of the reads. A sample has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<f64>,
    /// Bytes that were not in the cache, as a share of the bytes read. Of a sample: uses of cache blocks.
    pub bytes: f64,
    /// At most the standard error of `bytes`, where it was estimated from a sample with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
}

impl MissRatio {
    /// By request where it was counted, else by byte.
    pub fn main(&self) -> f64 {
        self.requests.unwrap_or(self.bytes)
    }
}

/// Response times, or why there are none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Responses {
    /// From runs with a drive.
    Simulated(Box<SimulatedResponses>),
    /// The trace has no times, or no places on a disk.
    NoTiming {
        format: Format,
    },
    NotAsked,
}

impl Responses {
    /// Those from runs with a drive, if there are any.
    pub fn simulated(&self) -> Option<&SimulatedResponses> {
        match self {
            Self::Simulated(simulated) => Some(simulated),
            Self::NoTiming { .. } | Self::NotAsked => None,
        }
    }
}

/// Response times from runs with a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulatedResponses {
    /// Name of the drive.
    pub drive: String,
    /// Name given by the maker.
    pub model: String,
    /// Arms of the drive. Each has an equal part of the cache.
    pub arms: u32,
    /// True if requests were replayed a think time after the request they waited for.
    pub dependent_replay: bool,
    /// The drive without a cache.
    pub without_cache: ResponsePoint,
    /// Each policy that was run.
    pub policies: Vec<PolicyResponses>,
}

/// Response times of one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PolicyResponses {
    pub policy: CachePolicy,
    pub title: &'static str,
    /// One for each size.
    pub points: Vec<ResponsePoint>,
}

/// Response times with a cache of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ResponsePoint {
    /// Memory of the cache; 0 without one.
    pub size_bytes: u64,
    /// Reads, from memory or from the drive.
    pub reads: Summary,
    /// Writes, which go to the drive at once.
    pub writes: Summary,
    /// Both together.
    pub all: Summary,
    /// True if the drive could not keep up, so that response times are those of a queue that grows with the
    /// length of the trace.
    pub queue_grows: bool,
}
