//! LOOK: up and down through the addresses, turning where no request lies ahead.
//!
//! SCAN serves the same requests in the same order and differs only in running on to the edge of
//! the disk before it turns, which no drive does; it is an alias of this policy.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use freewheel_units::{Blocks, Lbn};

use super::{Moment, Policy, Waiting};

/// The elevator.
///
/// A request that arrives for the address being swept waits until the arm comes by again: a block
/// that is written over and over would otherwise hold it for ever.
#[derive(Debug, Default)]
pub struct Look {
    queue: BTreeMap<(Lbn, u64), Waiting>,
    at: Lbn,
    /// Sequence of the last request known when the sweep got there.
    known: u64,
    latest: u64,
    downwards: bool,
}

impl Look {
    /// The next request in the direction of the sweep.
    fn ahead(&self) -> Option<(Lbn, u64)> {
        let here = self.queue.range((Included((self.at, 0)), Included((self.at, self.known))));
        here.map(|(key, _)| *key).next().or_else(|| self.beyond())
    }

    fn beyond(&self) -> Option<(Lbn, u64)> {
        if !self.downwards {
            let above = self.at + Blocks::new(1);
            return self.queue.range((above, 0)..).next().map(|(key, _)| *key);
        }
        let (below, _) = self.queue.range((Unbounded, Excluded((self.at, 0)))).next_back()?;
        // Of those at the same address the one that arrived first.
        self.queue.range((below.0, 0)..).next().map(|(key, _)| *key)
    }

    fn turn(&mut self) {
        self.downwards = !self.downwards;
        self.known = self.latest;
    }
}

impl Policy for Look {
    fn push(&mut self, waiting: Waiting) {
        // One that was held back comes behind others that arrived later.
        self.latest = self.latest.max(waiting.sequence);
        self.queue.insert((waiting.target.start, waiting.sequence), waiting);
    }

    fn pick(&mut self, _: &Moment<'_>) -> Option<Waiting> {
        if self.queue.is_empty() {
            return None;
        }
        let key = self.ahead().or_else(|| {
            self.turn();
            self.ahead()
        })?;
        if key.0 != self.at {
            self.at = key.0;
            self.known = self.latest;
        }
        self.queue.remove(&key)
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        let key = *self.queue.keys().find(|key| key.1 == sequence)?;
        self.queue.remove(&key)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
