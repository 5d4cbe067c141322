//! Options of the curves.

use freewheel_model::cache::{POLICIES, usual_policies};
use freewheel_sim::config::TraceWorkload;
use serde::Serialize;

use super::compared::ComparedPolicy;
use super::sizes::{CacheSize, Share};
use crate::trace_runs::{CACHE_DEPTH, WARM_UP};

/// Policies that run with a drive, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ResponseRuns {
    /// LRU, if it is among the policies, and the other policy that misses least.
    Best,
    All,
    None,
}

/// Options of the curves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheCurvesOptions {
    /// The trace and how to play it.
    pub trace: TraceWorkload,
    /// Name of a shipped drive, or path of a drive file.
    pub drive: String,
    /// True if the drive's electronics take part, as far as its file describes them.
    pub electronics: bool,
    /// Policies to compare.
    pub policies: Vec<ComparedPolicy>,
    /// Sizes of the caches; a ladder from 1 MiB to the trace's footprint where there are none.
    pub sizes: Vec<CacheSize>,
    /// Share of the cache blocks that miss ratios are estimated from; all are counted where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Share>,
    /// Share of the requests that fill the caches and are not counted, from 0 to below 1.
    pub warm_up: f64,
    /// Policies that run with a drive, too.
    pub responses: ResponseRuns,
    /// Most requests in the storage system at once in these runs; further ones wait before the cache.
    pub cache_depth: u32,
    /// Seed of every random stream.
    pub seed: u64,
}

impl CacheCurvesOptions {
    /// Every usual policy, at sizes from 1 MiB to all that the trace touches, in front of this drive.
    pub fn new(trace: TraceWorkload, drive: &str) -> Self {
        Self {
            // A cache stands where that of the traced system stood.
            trace: TraceWorkload { cache_hits: true, ..trace },
            drive: drive.into(),
            electronics: true,
            policies: usual_policies().map(ComparedPolicy::from).collect(),
            sizes: Vec::new(),
            sample: None,
            warm_up: WARM_UP,
            responses: ResponseRuns::Best,
            cache_depth: CACHE_DEPTH,
            seed: 1,
        }
    }

    /// The policies, each once: those that ship in the order of the registry, then the others as they are given.
    pub(super) fn distinct_policies(&self) -> Vec<ComparedPolicy> {
        let shipped = POLICIES.iter().map(|row| ComparedPolicy::from(row.policy));
        let mut all: Vec<_> = shipped.filter(|policy| self.policies.contains(policy)).collect();
        for policy in &self.policies {
            if !all.contains(policy) {
                all.push(policy.clone());
            }
        }
        all
    }
}
