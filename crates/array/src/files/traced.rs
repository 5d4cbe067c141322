//! Requests to files at the times of a trace.

use freewheel_units::{Blocks, Op, SimTime};

use super::map::{FileMap, VolumeRequest};

/// A request to a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FileRequest {
    pub arrival: SimTime,
    pub op: Op,
    /// The file, by number.
    pub file: u32,
    /// First block within the file.
    pub first: u64,
    /// Number of blocks, at least one; all lie within the file.
    pub blocks: Blocks,
}

/// Requests of a trace.
pub struct TracedRequests<'a> {
    map: &'a FileMap,
    requests: &'a [FileRequest],
    speedup: f64,
    next: usize,
}

impl<'a> TracedRequests<'a> {
    /// `requests` by arrival; times become shorter by the factor `speedup`.
    pub fn new(map: &'a FileMap, requests: &'a [FileRequest], speedup: f64) -> Self {
        Self { map, requests, speedup, next: 0 }
    }

    pub(super) fn next_arrival(&self) -> Option<SimTime> {
        let request = self.requests.get(self.next)?;
        Some(SimTime::from_ns((request.arrival.ns() as f64 / self.speedup) as u64))
    }

    pub(super) fn take(&mut self) -> VolumeRequest {
        let FileRequest { op, file, first, blocks, .. } = self.requests[self.next];
        let tag = self.next as u64;
        self.next += 1;
        VolumeRequest { op, start: self.map.address(file, first), blocks, tag }
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        (self.next as u64, self.requests.len() as u64)
    }
}
