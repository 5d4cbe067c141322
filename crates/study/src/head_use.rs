//! Use of the heads' time.

use freewheel_sim::{FreeTime, RunResult};
use serde::Serialize;

use crate::ratio::ratio;

/// Shares of the arms' time; the rest they were idle, or their electronics were at work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct HeadUse {
    pub seek: f64,
    /// Rotational latency of requests as it would be without free work.
    pub rotate: f64,
    pub transfer: f64,
    /// Latency used for free transfers.
    pub free_transfer: f64,
    /// Latency used for seeks to free transfers.
    pub extra_seek: f64,
    /// Work in idle time.
    pub idle_work: f64,
}

impl HeadUse {
    pub(crate) fn new(result: &RunResult, free: &FreeTime) -> Self {
        Self {
            seek: share(result.head_time.seek_ns as f64, result),
            rotate: share(result.head_time.rotate_ns as f64, result),
            transfer: share(result.head_time.transfer_ns as f64, result),
            free_transfer: share(free.transfer_ns as f64, result),
            extra_seek: share(free.extra_seek_ns as f64, result),
            idle_work: share(result.idle.map_or(0.0, |idle| idle.head_ns as f64), result),
        }
    }

    /// Rotational latency that free work has left.
    pub fn rotate_left(&self) -> f64 {
        self.rotate - self.free_transfer - self.extra_seek
    }
}

fn share(ns: f64, result: &RunResult) -> f64 {
    ratio(ns, result.arms_ns as f64)
}
