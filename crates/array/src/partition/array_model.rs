//! An array of equal disks under a load: the degree of parallelism that Phase B chooses.

use super::disk::DiskModel;
use super::queueing::{DiskQueue, ForkJoin, closed_model_unit};

/// Equal disks, over which load is spread evenly.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayModel {
    /// Each of the disks.
    pub disk: DiskModel,
    /// D.
    pub disks: u32,
}

/// All requests to an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// lambda-bar: requests a second.
    pub rate: f64,
    /// R-bar: mean blocks of a request.
    pub request: f64,
}

/// A degree of parallelism and the mean response time in seconds that it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// P-bar.
    pub parallelism: u32,
    /// E\[T_resp\].
    pub response_s: f64,
}

impl ArrayModel {
    /// Each disk's queue when a request has `parallelism` subrequests (18, 19). None where the disks
    /// cannot serve the load.
    pub fn queue(&self, load: &Load, parallelism: u32) -> Option<DiskQueue> {
        let p = f64::from(parallelism);
        let rate = load.rate * p / f64::from(self.disks);
        DiskQueue::new(rate, self.disk.service(load.request / p))
    }

    /// E\[T_resp(R, P)\] in seconds (25). None where the disks cannot serve the load.
    pub fn response_s(&self, load: &Load, parallelism: u32, correction: ForkJoin) -> Option<f64> {
        let queue = self.queue(load, parallelism)?;
        Some(queue.request_response_s(parallelism, self.disks, correction))
    }

    /// P-bar: the whole P up to D and R with the least response. None when even P = 1 is too much.
    pub fn best(&self, load: &Load, correction: ForkJoin) -> Option<Choice> {
        let most = (load.request.max(1.0) as u64).min(u64::from(self.disks)) as u32;
        (1..=most)
            .filter_map(|parallelism| {
                let response_s = self.response_s(load, parallelism, correction)?;
                Some(Choice { parallelism, response_s })
            })
            .min_by(|a, b| a.response_s.total_cmp(&b.response_s))
    }

    /// Stripe unit in blocks by Chen's formula (1) for `multiprogramming` requests at a time.
    pub fn closed_model_unit(&self, request: f64, multiprogramming: f64) -> f64 {
        let symbols = self.disk.symbols();
        let rate = symbols.blocks_per_track / symbols.rotation_s;
        closed_model_unit(self.disk.latency_s(), rate, multiprogramming, request, self.disks)
    }
}
