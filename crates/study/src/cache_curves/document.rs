//! Everything about caches for a trace.

use freewheel_trace::TraceInfo;
use serde::Serialize;

use super::advice::Advice;
use super::miss_fit::MissFit;
use super::options::CacheCurvesOptions;
use super::result::{Counted, MissRatio, PolicyCurve, Responses};

/// What caches of each size and policy would do for a trace.
#[derive(Debug, Serialize)]
pub struct CacheCurves {
    /// Version of this document's shape.
    pub schema_version: u32,
    /// Version of the program.
    pub version: &'static str,
    /// What was asked.
    pub options: CacheCurvesOptions,
    /// What the trace holds, or the one device of it that was asked for.
    pub trace: TraceInfo,
    /// The requests that count.
    pub counted: Counted,
    /// Unit of the caches: the bytes of a cache block.
    pub cache_block_bytes: u64,
    /// Sizes of the caches, ascending.
    pub sizes_bytes: Vec<u64>,
    /// Miss ratios of each policy.
    pub curves: Vec<PolicyCurve>,
    /// LRU at further sizes, for a chart; empty without LRU.
    pub lru: Vec<MissRatio>,
    /// How LRU's misses fall with the size; absent without LRU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lru_fit: Option<MissFit>,
    /// Response times with a drive.
    pub responses: Responses,
    /// How much memory is enough.
    pub advice: Advice,
}
