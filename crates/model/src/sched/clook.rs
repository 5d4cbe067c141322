//! C-LOOK: upwards through the addresses, then back to the lowest.

use std::collections::BTreeMap;

use freewheel_units::Lbn;

use super::{Moment, Policy, Waiting};

/// Serves the next request in ascending starting address; when there is none, the one with the
/// lowest starting address (osdi00 section 3.3).
#[derive(Debug, Default)]
pub struct Clook {
    queue: BTreeMap<(Lbn, u64), Waiting>,
    /// Start of the request served last: the sweep goes on from there.
    swept_to: Lbn,
}

impl Policy for Clook {
    fn push(&mut self, waiting: Waiting) {
        self.queue.insert((waiting.target.start, waiting.sequence), waiting);
    }

    fn pick(&mut self, _: &Moment<'_>) -> Option<Waiting> {
        let ahead = self.queue.range((self.swept_to, 0)..).next();
        let key = *ahead.or_else(|| self.queue.first_key_value())?.0;
        self.swept_to = key.0;
        self.queue.remove(&key)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
