//! LIRS: keeps keys whose last two uses lie close together (Jiang and Zhang, SIGMETRICS 2002, section 3).

use super::eviction::{Admission, Eviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};
use crate::lru::{Links, List};

/// Each key has low (LIR) or high (HIR) inter-reference recency. One in a hundred residents, at least one, is HIR.
///
/// ```text
/// stack S, in order of last use      newest [h1][L1][g2][L2][h3][L3] oldest, always an L
/// queue Q, resident HIR              next victim [h3][h4][h1]
///   L: LIR    h: HIR, resident    g: HIR, a ghost, which is in S only
///
/// use of L              to the top of S
/// use of h or g in S    becomes LIR; the oldest L becomes HIR at Q's end
/// use of h outside S    to the top of S and to Q's end
/// after each            what is at the bottom of S and not LIR leaves S
/// ```
///
/// The paper sets no limit to ghosts. Here there are at most two for each resident key, and the one that
/// was evicted first goes first.
#[derive(Debug)]
pub(super) struct Lirs {
    capacity: u32,
    lir_capacity: u32,
    queues: Queues<3>,
    stack: List,
    stack_links: Links,
    /// True if a slot is in the stack.
    is_stacked: Vec<bool>,
}

const LIR: Queue = 0;
const HIR: Queue = 1;
const GHOST: Queue = 2;
/// Ghosts for each key of the capacity.
const GHOSTS: u64 = 2;

impl Lirs {
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            // Section 3.3 of the paper: 1 % for HIR.
            lir_capacity: capacity - (capacity / 100).max(1),
            queues: Queues::new(),
            stack: List::EMPTY,
            stack_links: Links::default(),
            is_stacked: Vec::new(),
        }
    }

    fn unstack(&mut self, slot: u32) {
        if std::mem::take(&mut self.is_stacked[slot as usize]) {
            self.stack.remove(&mut self.stack_links, slot);
        }
    }

    /// Puts a key to the top of the stack.
    fn stack(&mut self, slot: u32) {
        self.unstack(slot);
        self.stack.push(&mut self.stack_links, slot);
        self.is_stacked[slot as usize] = true;
    }

    fn insert(&mut self, key: u64, queue: Queue) -> u32 {
        let slot = self.queues.insert(key, queue);
        if slot as usize == self.is_stacked.len() {
            self.is_stacked.push(false);
            self.stack_links.grow();
        }
        slot
    }

    /// Makes HIR keys at the bottom of the stack leave it. Ghosts are forgotten with that.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.oldest() {
            match self.queues.queue(bottom) {
                LIR => return,
                HIR => self.unstack(bottom),
                _ => self.forget(bottom),
            }
        }
    }

    fn forget(&mut self, slot: u32) {
        self.unstack(slot);
        self.queues.remove(slot);
    }

    /// A HIR key in the stack becomes LIR, and the oldest LIR key HIR if there are too many.
    fn promote(&mut self, slot: u32) {
        self.queues.move_to(slot, LIR);
        self.stack(slot);
        if self.queues.len(LIR) > self.lir_capacity
            && let Some(bottom) = self.stack.oldest()
        {
            self.unstack(bottom);
            self.queues.move_to(bottom, HIR);
        }
    }

    /// Evicts a key; returns its slot.
    fn evict(&mut self) -> Option<u32> {
        // LIR keys never fill the cache, so a full cache has a resident HIR key.
        let victim = self.queues.oldest(HIR)?;
        if self.is_stacked[victim as usize] {
            self.queues.move_to(victim, GHOST)
        } else {
            self.queues.remove(victim)
        }
        Some(victim)
    }

    fn trim_ghosts(&mut self) {
        if u64::from(self.queues.len(GHOST)) > GHOSTS * u64::from(self.capacity)
            && let Some(oldest) = self.queues.oldest(GHOST)
        {
            self.forget(oldest);
        }
    }
}

impl Eviction for Lirs {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, slot: u32) -> bool {
        self.queues.queue(slot) != GHOST
    }

    fn hit(&mut self, slot: u32) {
        let is_lir = self.queues.queue(slot) == LIR;
        if !is_lir && self.is_stacked[slot as usize] {
            self.promote(slot);
        } else {
            self.queues.renew(slot);
            self.stack(slot);
        }
        self.prune();
    }

    fn admit(&mut self, key: u64, ghost: Option<u32>) -> Admission {
        let evicted = if self.len() == self.capacity { self.evict() } else { None };
        let slot = ghost.unwrap_or_else(|| {
            // Until there are enough, every new key is LIR.
            let is_lir = self.queues.len(LIR) < self.lir_capacity;
            self.insert(key, if is_lir { LIR } else { HIR })
        });
        match ghost {
            Some(slot) => self.promote(slot),
            None => self.stack(slot),
        }
        self.prune();
        self.trim_ghosts();
        Admission { slot, evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.forget(slot);
        self.prune();
    }

    fn len(&self) -> u32 {
        self.queues.len(LIR) + self.queues.len(HIR)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(HIR);
    }
}
