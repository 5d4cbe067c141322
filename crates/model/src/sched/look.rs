//! LOOK: up and down through the addresses, turning where no request lies ahead.
//!
//! SCAN serves the same requests in the same order and differs only in running on to the edge of
//! the disk before it turns, which no drive does; it is an alias of this policy.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use freewheel_units::Lbn;

use super::{Moment, Policy, Waiting};

/// The elevator.
#[derive(Debug, Default)]
pub struct Look {
    /// By start, then by arrival. A request that repeats the address served last counts as ahead
    /// in either direction.
    queue: BTreeMap<(Lbn, u64), Waiting>,
    at: Lbn,
    downwards: bool,
}

impl Look {
    fn ahead(&self) -> Option<(Lbn, u64)> {
        let above = || self.queue.range((self.at, 0)..).next();
        if !self.downwards {
            return above().map(|(key, _)| *key);
        }
        let below = self.queue.range((Unbounded, Excluded((self.at + ONE, 0)))).next_back()?;
        // Of those at the same address the one that arrived first.
        self.queue.range((below.0.0, 0)..).next().map(|(key, _)| *key)
    }
}

const ONE: freewheel_units::Blocks = freewheel_units::Blocks::new(1);

impl Policy for Look {
    fn push(&mut self, waiting: Waiting) {
        self.queue.insert((waiting.target.start, waiting.sequence), waiting);
    }

    fn pick(&mut self, _: &Moment<'_>) -> Option<Waiting> {
        if self.queue.is_empty() {
            return None;
        }
        let key = self.ahead().or_else(|| {
            self.downwards = !self.downwards;
            self.ahead()
        })?;
        self.at = key.0;
        self.queue.remove(&key)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
