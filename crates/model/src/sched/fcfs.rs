//! First come, first served.

use std::collections::VecDeque;

use super::{Moment, Policy, Waiting};

/// Serves requests in order of arrival.
#[derive(Debug, Default)]
pub struct Fcfs {
    queue: VecDeque<Waiting>,
}

impl Policy for Fcfs {
    #[inline]
    fn push(&mut self, waiting: Waiting) {
        self.queue.push_back(waiting);
    }

    #[inline]
    fn pick(&mut self, _: &Moment<'_>) -> Option<Waiting> {
        self.queue.pop_front()
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        let index = self.queue.iter().position(|waiting| waiting.sequence == sequence)?;
        self.queue.remove(index)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
