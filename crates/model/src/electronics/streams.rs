//! A queue that serves sequential streams first, as some firmware does.
//!
//! Measured on drives: a deep queue beside a sequential stream leaves random reads waiting for seconds, until
//! an age limit; with one command at the drive they wait for one. A command belongs to a stream if it begins
//! where a recent one ended:
//!
//! ```text
//!   submitted   |=A=|     |=B=|  |=C=|        C touches A, so C is of a stream and B is not
//!   served       C before B, until B has waited for the age limit
//! ```
//! Non-goals: streams whose commands overlap, run backwards or leave blocks out.

use std::collections::{BTreeMap, VecDeque};

use freewheel_units::{Lbn, Op, SimDuration, SimTime};

use super::buffer::behind;
use crate::sched::{Moment, Policy, Waiting};

/// Ends of commands that are remembered. Assumed: largest number of streams at once.
const RECENT: usize = 32;

/// Commands of streams in the order of their arrival, and the others under a policy.
pub(super) struct StreamsFirst {
    others: Box<dyn Policy>,
    age_limit: SimDuration,
    streams: VecDeque<Waiting>,
    /// Arrivals of the others, by sequence.
    waiting_since: BTreeMap<u64, SimTime>,
    recent_ends: VecDeque<(Op, Lbn)>,
}

impl StreamsFirst {
    pub fn new(others: Box<dyn Policy>, age_limit: SimDuration) -> Self {
        Self {
            others,
            age_limit,
            streams: VecDeque::new(),
            waiting_since: BTreeMap::new(),
            recent_ends: VecDeque::with_capacity(RECENT),
        }
    }

    /// True if a command continues a recent one, whose end its own takes the place of.
    fn continues(&mut self, waiting: &Waiting) -> bool {
        let target = &waiting.target;
        let before = (target.op, target.start);
        let known = self.recent_ends.iter().position(|end| *end == before);
        if let Some(known) = known {
            self.recent_ends.remove(known);
        } else if self.recent_ends.len() == RECENT {
            self.recent_ends.pop_front();
        }
        self.recent_ends.push_back((target.op, behind(target.start, target.blocks)));
        known.is_some()
    }

    /// True if the oldest of the others has waited for the age limit.
    fn is_due(&self, now: SimTime) -> bool {
        let oldest = self.waiting_since.first_key_value();
        oldest.is_some_and(|(_, arrival)| *arrival + self.age_limit <= now)
    }
}

impl Policy for StreamsFirst {
    fn push(&mut self, waiting: Waiting) {
        if self.continues(&waiting) {
            self.streams.push_back(waiting);
        } else {
            self.waiting_since.insert(waiting.sequence, waiting.arrival);
            self.others.push(waiting);
        }
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        if !self.is_due(moment.now)
            && let Some(next) = self.streams.pop_front()
        {
            return Some(next);
        }
        let picked = self.others.pick(moment);
        match picked {
            Some(other) => {
                self.waiting_since.remove(&other.sequence);
                Some(other)
            }
            None => self.streams.pop_front(),
        }
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        let of_stream = self.streams.iter().position(|waiting| waiting.sequence == sequence);
        if let Some(index) = of_stream {
            return self.streams.remove(index);
        }
        self.waiting_since.remove(&sequence);
        self.others.take(sequence)
    }

    fn len(&self) -> usize {
        self.streams.len() + self.others.len()
    }
}
