//! Promoted requests, and later foreground writes to the same blocks.
//!
//! A policy may choose requests in any order. A promoted write has older data than a foreground write
//! that arrives behind it, and must reach the media first. A promoted read of a backup wants the older
//! data, and must also come first. So a foreground write that shares a block with such a request waits
//! until that request is done. Tasks request this order (`freeblock/src/tasks`).

use freewheel_model::sched::Waiting;
use freewheel_units::Op;

/// Promoted requests that must precede later writes, and the writes that wait for them, each with its
/// arm.
#[derive(Default)]
pub(crate) struct PromotedRequests {
    under_way: Vec<(u32, Waiting)>,
    /// In the order of arrival.
    held: Vec<(u32, Waiting)>,
}

impl PromotedRequests {
    /// Registers a promoted request that later foreground writes must not overtake.
    pub fn begin(&mut self, arm: u32, waiting: Waiting) {
        self.under_way.push((arm, waiting));
    }

    /// True if the request may go to the policy; else it is held back.
    #[inline]
    pub fn pass(&mut self, arm: u32, waiting: &Waiting) -> bool {
        let passes = self.under_way.is_empty() || !self.must_wait(arm, waiting);
        if !passes {
            self.held.push((arm, *waiting));
        }
        passes
    }

    fn must_wait(&self, arm: u32, waiting: &Waiting) -> bool {
        waiting.target.op == Op::Write
            && self.under_way.iter().any(|(of, other)| *of == arm && overlap(other, waiting))
    }

    /// A promoted request is done. Returns the writes that need not wait any longer, with their arms.
    pub fn end(&mut self, sequence: u64) -> Vec<(u32, Waiting)> {
        // A held write may overlap a second promoted request, so each is tested against those that
        // remain.
        self.under_way.retain(|(_, waiting)| waiting.sequence != sequence);
        let (held, free) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(arm, waiting)| self.must_wait(*arm, waiting));
        self.held = held;
        free
    }
}

fn overlap(one: &Waiting, other: &Waiting) -> bool {
    let (one, other) = (bounds(one), bounds(other));
    one.0 < other.1 && other.0 < one.1
}

fn bounds(waiting: &Waiting) -> (u64, u64) {
    let from = waiting.target.start.get();
    (from, from + u64::from(waiting.target.blocks))
}
