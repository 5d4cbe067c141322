//! C-LOOK: upwards through the addresses, then back to the lowest.

use std::collections::BTreeMap;

use freewheel_units::{Blocks, Lbn};

use super::{Moment, Policy, Waiting};

/// Serves the next request in ascending starting address; when there is none, the one with the
/// lowest starting address (osdi00 section 3.3).
///
/// A request that arrives for the address being swept waits for the next sweep: a block that is
/// written over and over would otherwise hold the arm for ever.
#[derive(Debug, Default)]
pub struct Clook {
    queue: BTreeMap<(Lbn, u64), Waiting>,
    /// Start of the request served last: the sweep continues from there.
    swept_to: Lbn,
    /// Sequence of the last request known when the sweep got there.
    known: u64,
    latest: u64,
}

impl Clook {
    fn ahead(&self) -> Option<(Lbn, u64)> {
        let key = *self.queue.range((self.swept_to, 0)..).next()?.0;
        if key.0 > self.swept_to || key.1 <= self.known {
            return Some(key);
        }
        let beyond = self.swept_to + Blocks::new(1);
        self.queue.range((beyond, 0)..).next().map(|(key, _)| *key)
    }
}

impl Policy for Clook {
    fn push(&mut self, waiting: Waiting) {
        // One that was held back comes behind others that arrived later.
        self.latest = self.latest.max(waiting.sequence);
        self.queue.insert((waiting.target.start, waiting.sequence), waiting);
    }

    fn pick(&mut self, _: &Moment<'_>) -> Option<Waiting> {
        let ahead = self.ahead();
        let key = ahead.or_else(|| self.queue.first_key_value().map(|(key, _)| *key))?;
        if key.0 != self.swept_to || ahead.is_none() {
            self.swept_to = key.0;
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
