//! Parents of requests: the request of a trace for whose completion each one waited.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use freewheel_trace::Record;
use freewheel_units::{SimDuration, SimTime};

use super::Request;

/// Times of a trace from its first record on.
#[derive(Debug, Default)]
pub(crate) struct TracedTimes {
    /// Arrival of the first record of this drive: time zero of the replay. Earlier time, with records
    /// of other devices only, is no idle time of this drive.
    origin: Option<SimTime>,
    /// Latest arrival so far. A record with an earlier time arrives at this time.
    latest: SimTime,
}

impl TracedTimes {
    /// The arrival of the next record that takes part.
    pub fn arrival(&mut self, record: &Record) -> SimTime {
        self.origin.get_or_insert(record.arrival);
        self.latest = self.latest.max(self.since_origin(record.arrival));
        self.latest
    }

    /// The completion of the record whose arrival was asked for last. A record out of order arrives late,
    /// so its completion cannot precede that.
    pub fn completion(&self, record: &Record) -> Option<SimTime> {
        record.completion.map(|time| self.since_origin(time).max(self.latest))
    }

    fn since_origin(&self, time: SimTime) -> SimTime {
        SimTime::ZERO + time.saturating_since(self.origin.unwrap_or(time))
    }
}

/// Parents of requests: what the traced system had completed, and what the replay has completed.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// Traced completions after the arrival of the last record read.
    traced: BinaryHeap<Reverse<(SimTime, u64)>>,
    /// The requests in `traced`.
    pending: BTreeSet<u64>,
    /// The last request completed in the traced system before the record read last.
    parent: Option<(SimTime, u64)>,
    /// Requests that can still become a parent and have completed in the replay.
    pub replayed: BTreeMap<u64, Replayed>,
    /// Requests by the parent they wait for, with their think times.
    pub waiting: BTreeMap<u64, Vec<(SimDuration, Request)>>,
}

/// A completion in the replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replayed {
    pub at: SimTime,
    /// True if the full window has delayed the request, or an ancestor.
    pub held: bool,
}

/// Time at which a request arrives.
pub(super) enum Adoption {
    /// At its traced time, as no request had completed before.
    Orphan,
    /// This think time after the completion of the request with this index.
    After(u64, SimDuration),
}

impl Lineage {
    /// Finds the parent of a request. A request without a traced `completion` becomes no parent.
    pub fn adopt(&mut self, index: u64, arrival: SimTime, completion: Option<SimTime>) -> Adoption {
        // Arrivals rise, so each traced completion is passed once; the last one passed is the parent. A
        // parent that is replaced can get no more children, so its replay time is forgotten.
        while let Some(&Reverse((done, child))) = self.traced.peek().filter(|r| r.0.0 <= arrival) {
            self.traced.pop();
            self.pending.remove(&child);
            if let Some((_, superseded)) = self.parent.replace((done, child)) {
                self.replayed.remove(&superseded);
            }
        }
        if let Some(completion) = completion {
            self.traced.push(Reverse((completion, index)));
            self.pending.insert(index);
        }
        match self.parent {
            None => Adoption::Orphan,
            Some((done, parent)) => Adoption::After(parent, arrival - done),
        }
    }

    /// True if `index` can still become the parent of an unread record.
    pub fn may_be_parent(&self, index: u64) -> bool {
        self.parent.is_some_and(|(_, parent)| parent == index) || self.pending.contains(&index)
    }
}
