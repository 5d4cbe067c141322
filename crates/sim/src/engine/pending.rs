//! Requests that have arrived and are not done.

use std::collections::VecDeque;

use freewheel_model::electronics::{Done, LimitEnd, Served};
use freewheel_units::SimTime;

use crate::source::Request;

/// A request that has arrived and is not done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    /// None if it was made for background work: neither the workload's nor a flush's business.
    pub request: Option<Request>,
    pub arrival: SimTime,
    /// Pieces that are not done; zero once all of it is.
    pub left: u32,
    /// True if buffers served all pieces that are done.
    pub hit: bool,
    /// Worst end by a duration limit of the pieces that are done.
    pub limit: LimitEnd,
}

/// Requests by their sequence: a window that slides along with the oldest that is not done.
#[derive(Default)]
pub(crate) struct PendingRequests {
    first: u64,
    window: VecDeque<Pending>,
}

impl PendingRequests {
    /// Adds the request that arrives next, and returns its sequence. It must have pieces before
    /// another request is done.
    #[inline]
    pub(crate) fn push(&mut self, request: Request, arrival: SimTime) -> u64 {
        self.push_pending(Pending {
            request: Some(request),
            arrival,
            left: 0,
            hit: true,
            limit: LimitEnd::Kept,
        })
    }

    /// Adds a request of one piece that is made for background work.
    pub(crate) fn push_promoted(&mut self, arrival: SimTime) -> u64 {
        self.push_pending(Pending {
            request: None,
            arrival,
            left: 1,
            hit: true,
            limit: LimitEnd::Kept,
        })
    }

    #[inline]
    fn push_pending(&mut self, pending: Pending) -> u64 {
        let sequence = self.next_sequence();
        self.window.push_back(pending);
        sequence
    }

    /// Sequence of the request that arrives next.
    #[inline]
    pub(crate) fn next_sequence(&self) -> u64 {
        self.first + self.window.len() as u64
    }

    /// True if everything that has arrived is done.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    #[inline]
    pub(crate) fn set_pieces(&mut self, sequence: u64, pieces: u32) {
        self.window[(sequence - self.first) as usize].left = pieces;
    }

    /// True if this is a piece of a request, and no flush or background work.
    pub(crate) fn is_piece(&self, done: &Done) -> bool {
        let pending = &self.window[(done.sequence - self.first) as usize];
        pending.request.is_some() && !done.flush
    }

    /// A piece is done; the request when it was the last.
    #[inline]
    pub(crate) fn piece_done(&mut self, sequence: u64, served: &Served) -> Option<Pending> {
        let pending = &mut self.window[(sequence - self.first) as usize];
        pending.hit &= served.hit;
        pending.limit = pending.limit.max(served.limit);
        pending.left -= 1;
        if pending.left > 0 {
            return None;
        }
        let whole = *pending;
        while self.window.front().is_some_and(|pending| pending.left == 0) {
            self.window.pop_front();
            self.first += 1;
        }
        Some(whole)
    }
}
