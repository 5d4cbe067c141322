//! Promoted requests, and foreground writes to the same blocks that came later.
//!
//! A promoted write has data that are older than those of every foreground write that arrives behind
//! it, a promoted read of a backup wants the older ones, and a policy may choose either first. So
//! whoever shares a block with one is held back until that is done: tasks ask for this order
//! (`model/src/freeblock/tasks`).

use freewheel_model::sched::Waiting;
use freewheel_units::Op;

/// Promoted requests that come before later writes and are not done, and who waits for them, each
/// with its arm.
#[derive(Default)]
pub(crate) struct PromotedRequests {
    under_way: Vec<(u32, Waiting)>,
    /// In the order of arrival.
    held: Vec<(u32, Waiting)>,
}

impl PromotedRequests {
    /// A promoted request is on its way that foreground writes behind it must not overtake.
    pub fn begin(&mut self, arm: u32, waiting: Waiting) {
        self.under_way.push((arm, waiting));
    }

    /// The request if it may go to the policy; else it is held back.
    #[inline]
    pub fn pass(&mut self, arm: u32, waiting: Waiting) -> Option<Waiting> {
        if self.under_way.is_empty() || !self.must_wait(arm, &waiting) {
            return Some(waiting);
        }
        self.held.push((arm, waiting));
        None
    }

    fn must_wait(&self, arm: u32, waiting: &Waiting) -> bool {
        let shares = |(of, other): &(u32, Waiting)| *of == arm && overlap(other, waiting);
        waiting.target.op == Op::Write && self.under_way.iter().any(shares)
    }

    /// A promoted request is done: those that wait no longer, with their arms.
    pub fn end(&mut self, sequence: u64) -> Vec<(u32, Waiting)> {
        self.under_way.retain(|(_, waiting)| waiting.sequence != sequence);
        let (held, free) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(arm, waiting)| self.must_wait(*arm, waiting));
        self.held = held;
        free
    }
}

fn overlap(one: &Waiting, other: &Waiting) -> bool {
    let bounds = |waiting: &Waiting| {
        let from = waiting.target.start.get();
        (from, from + u64::from(waiting.target.blocks))
    };
    let (one, other) = (bounds(one), bounds(other));
    one.0 < other.1 && other.0 < one.1
}
