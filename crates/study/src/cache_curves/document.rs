//! Everything about caches for a trace.

use freewheel_trace::TraceInfo;
use serde::Serialize;

use super::advice::Advice;
use super::miss_fit::MissFit;
use super::options::CacheCurvesOptions;
use super::result::{Counted, MissRatio, PolicyCurve, Responses};

/// Effect of caches of each size and policy on a trace.
#[derive(Debug, Serialize)]
pub struct CacheCurves {
    /// Version of this document's shape.
    pub schema_version: u32,
    /// Version of the program.
    pub version: &'static str,
    /// Options of the curves.
    pub options: CacheCurvesOptions,
    /// Contents of the trace, or of the one device of it that was asked for.
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
    /// Fall of LRU's misses with the size; absent without LRU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lru_fit: Option<MissFit>,
    /// Response times with a drive.
    pub responses: Responses,
    /// Amount of memory that is enough.
    pub advice: Advice,
}
