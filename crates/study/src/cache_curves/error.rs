//! Reason why there are no curves.

use freewheel_sim::config::ConfigError;
use freewheel_trace::TraceError;
use freewheel_units::Bytes;
use thiserror::Error;

/// Reason why there are no curves.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum CacheCurvesError {
    /// Drive, trace, or both together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The trace has no read.
    #[error("{file}: the trace has no read, and a read cache serves reads alone")]
    NoReads { file: String },
    /// The trace has no read after the warm-up.
    #[error("{file}: the trace has no read after the warm-up, its first {warm_up} requests")]
    NoCountedReads {
        file: String,
        /// Requests that warm the caches up.
        warm_up: u64,
    },
    /// No policy that ships was asked for.
    #[error(
        "no cache policy that ships was given: at least one is needed, as lru, beside belady and your own"
    )]
    NoPolicy,
    /// A warm-up that leaves no request, or a negative one.
    #[error("the warm-up is {warm_up}: 0 to below 1 is allowed")]
    WarmUp { warm_up: f64 },
    /// A cache is too large.
    #[error("a cache of {size} is too large: less than 16 TiB is allowed")]
    Size { size: Bytes },
}

impl From<TraceError> for CacheCurvesError {
    fn from(error: TraceError) -> Self {
        Self::Config(error.into())
    }
}
