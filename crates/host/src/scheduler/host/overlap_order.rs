//! Requests that overlap, in the order in which they came.

use std::collections::BTreeMap;
use std::ops::Range;

/// Holds back requests until those before them that they overlap with are done, if one of both
/// writes. All others may go in any order.
#[derive(Debug, Default)]
pub(crate) struct OverlapOrder {
    pending: BTreeMap<u64, Pending>,
}

#[derive(Debug)]
struct Pending {
    blocks: Range<u64>,
    writes: bool,
    /// Requests before it that are not done and that it waits for.
    waits_for: u32,
}

impl Pending {
    fn conflicts(&self, blocks: &Range<u64>, writes: bool) -> bool {
        (writes || self.writes) && self.blocks.start < blocks.end && blocks.start < self.blocks.end
    }
}

impl OverlapOrder {
    /// A request has come, with a number above all before; whether it may go at once.
    pub fn arrived(&mut self, id: u64, blocks: Range<u64>, writes: bool) -> bool {
        let before = self.pending.values().filter(|other| other.conflicts(&blocks, writes));
        let waits_for = before.count() as u32;
        self.pending.insert(id, Pending { blocks, writes, waits_for });
        waits_for == 0
    }

    /// True if no request touches these blocks.
    pub fn is_free(&self, blocks: Range<u64>) -> bool {
        self.pending.values().all(|other| !other.conflicts(&blocks, true))
    }

    /// True if a request waits for another one.
    pub fn waits(&self, id: u64) -> bool {
        self.pending.get(&id).is_some_and(|pending| pending.waits_for > 0)
    }

    /// A request is done; those that may go now.
    pub fn done(&mut self, id: u64) -> Vec<u64> {
        let Some(done) = self.pending.remove(&id) else { return Vec::new() };
        let mut free = Vec::new();
        for (&later, other) in self.pending.range_mut(id..) {
            if other.conflicts(&done.blocks, done.writes) {
                other.waits_for -= 1;
                if other.waits_for == 0 {
                    free.push(later);
                }
            }
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn write_waits_for_overlaps_read_for_writes() {
        let mut order = OverlapOrder::default();
        assert!(order.arrived(1, 0..8, false));
        assert!(order.arrived(2, 4..12, false), "reads of the same blocks");
        assert!(!order.arrived(3, 7..9, true));
        assert!(order.arrived(4, 12..20, true), "other blocks");
        assert!(!order.arrived(5, 0..9, false), "behind the write");
        assert_eq!(order.done(1), Vec::<u64>::new());
        assert_eq!(order.done(2), [3]);
        assert_eq!(order.done(3), [5]);
    }

    #[test]
    fn conflicting_requests_keep_arrival_order() {
        let mut prng = Prng::new(1, "requests that overlap");
        let mut order = OverlapOrder::default();
        let mut running: Vec<u64> = Vec::new();
        let mut all: Vec<(Range<u64>, bool)> = Vec::new();
        let mut ended = Vec::new();
        for id in 0..5000u64 {
            let start = prng.below(40);
            let (blocks, writes) = (start..start + 1 + prng.below(8), prng.chance(0.4));
            all.push((blocks.clone(), writes));
            if order.arrived(id, blocks, writes) {
                running.push(id);
            }
            while running.len() > prng.below(6) as usize {
                let at = prng.below(running.len() as u64) as usize;
                let done = running.swap_remove(at);
                ended.push(done);
                running.extend(order.done(done));
            }
            let conflict = |a: &u64, b: &u64| {
                let ((a, a_writes), (b, b_writes)) = (&all[*a as usize], &all[*b as usize]);
                (*a_writes || *b_writes) && a.start < b.end && b.start < a.end
            };
            for (at, one) in running.iter().enumerate() {
                assert!(running[at + 1..].iter().all(|other| !conflict(one, other)));
                // All earlier requests that conflict with it have ended.
                let before = (0..*one).filter(|other| conflict(other, one));
                let waits = before.filter(|other| !ended.contains(other)).count();
                assert_eq!(waits, 0, "{one}");
            }
            if ended.len() > 200 {
                let horizon = *running.iter().min().unwrap_or(&id);
                assert!(id - horizon < 4000, "nobody starves");
            }
        }
    }
}
