//! Waiting requests in cylinder order, searched outwards from the head.
//!
//! The arm needs at least [`SeekCurve::floor_ns`](crate::drive::SeekCurve::floor_ns) to reach a
//! cylinder or any beyond it. So a search that starts at the head's cylinder and goes outwards may
//! stop as soon as that bound alone exceeds the best answer found: with many requests waiting, most
//! of them are never looked at.

use super::{Moment, Waiting};

/// Requests by cylinder. Slots are stable while a request waits.
#[derive(Debug, Default)]
pub(super) struct ByCylinder {
    /// (cylinder, slot), sorted by cylinder.
    order: Vec<(u32, u32)>,
    slots: Vec<Waiting>,
    free: Vec<u32>,
}

/// The request a search has settled on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    rank: usize,
}

impl ByCylinder {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = waiting;
                slot
            }
            None => {
                self.slots.push(waiting);
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 waiting requests")
            }
        };
        let cylinder = waiting.target.at.cylinder;
        let rank = self.order.partition_point(|&(c, _)| c < cylinder);
        self.order.insert(rank, (cylinder, slot));
    }

    pub(super) fn remove(&mut self, found: Found) -> Waiting {
        let (_, slot) = self.order.remove(found.rank);
        self.free.push(slot);
        self.slots[slot as usize]
    }

    /// Takes the request with the smallest `key_ns`, of equals the one that arrived first. No
    /// request's key may be below the time to reach its cylinder.
    #[inline]
    pub(super) fn take_least(
        &mut self,
        moment: &Moment<'_>,
        key_ns: impl Fn(&Waiting) -> u64,
    ) -> Option<Waiting> {
        let mut best = None;
        let mut best_key = (u64::MAX, u64::MAX);
        self.outwards(moment, |found, waiting| {
            let key = (key_ns(waiting), waiting.sequence);
            if key < best_key {
                best_key = key;
                best = Some(found);
            }
            best_key.0
        });
        best.map(|found| self.remove(found))
    }

    /// Offers every request to `visit`, nearest cylinder first, until the time to reach the
    /// distance at hand is more than the limit in nanoseconds that `visit` returned last.
    #[inline]
    pub(super) fn outwards(
        &self,
        moment: &Moment<'_>,
        mut visit: impl FnMut(Found, &Waiting) -> u64,
    ) {
        let (cylinder, seek) = (moment.head.cylinder, moment.drive.seek());
        let mut limit_ns = u64::MAX;
        let mut above = self.order.partition_point(|&(c, _)| c < cylinder);
        let mut below = above;
        loop {
            let up = self.order.get(above).map(|&(c, _)| c - cylinder);
            let down = below.checked_sub(1).map(|i| cylinder - self.order[i].0);
            let (rank, distance) = match (up, down) {
                (Some(up), Some(down)) if up <= down => (above, up),
                (Some(up), None) => (above, up),
                (_, Some(down)) => (below - 1, down),
                (None, None) => return,
            };
            if seek.floor_ns(distance) > limit_ns {
                return;
            }
            if rank == above {
                above += 1;
            } else {
                below -= 1;
            }
            limit_ns = visit(Found { rank }, &self.slots[self.order[rank].1 as usize]);
        }
    }
}
