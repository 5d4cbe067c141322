//! Aged shortest access time first.

use std::collections::BTreeMap;

use super::by_cylinder::ByCylinder;
use super::{Moment, Policy, Waiting};

/// Serves the request with the smallest `T_pos - W * T_wait` (tr03 section 4.4, equation 1): SPTF
/// at W = 0, FCFS for large W, and no starvation in between.
///
/// Two searches run in step once the first few requests do not settle it, and the first to end has the
/// answer: outwards from the head, until no request beyond can win even with the oldest one's credit,
/// and from the oldest request on, until no younger one can win even without a seek. The first is short
/// while waits are short, the second when they are long.
#[derive(Debug)]
pub struct Asatf {
    queue: ByCylinder,
    /// The same requests by sequence.
    by_age: BTreeMap<u64, Waiting>,
    /// W in units of 2^-32.
    age_factor_q32: u128,
}

impl Asatf {
    /// `age_factor` is W. Panics unless it is between 0 and 2^20.
    pub fn new(age_factor: f64) -> Self {
        assert!((0.0..=1_048_576.0).contains(&age_factor), "age factor of {age_factor}");
        Self {
            queue: ByCylinder::default(),
            by_age: BTreeMap::new(),
            age_factor_q32: (age_factor * 4_294_967_296.0) as u128,
        }
    }

    /// W * T_wait, rounded down.
    fn credit_ns(&self, moment: &Moment<'_>, waiting: &Waiting) -> i128 {
        let waited = moment.now.saturating_since(waiting.arrival).ns();
        ((u128::from(waited) * self.age_factor_q32) >> 32) as i128
    }

    fn best(&self, moment: &Moment<'_>) -> Option<Waiting> {
        let most_credit_ns = self.credit_ns(moment, self.by_age.first_key_value()?.1);
        let mut best = Best { effective_ns: i128::MAX - most_credit_ns, waiting: None };
        let mut outwards = self.queue.outwards(moment);
        let mut oldest_first = self.by_age.values();
        for considered in 0.. {
            let limit_ns = u64::try_from(best.effective_ns + most_credit_ns).unwrap_or(u64::MAX);
            let Some((_, near)) = outwards.next(limit_ns) else { break };
            best.consider(self.effective_ns(moment, near), near);
            if considered >= NEAR_FIRST {
                let possible = |old: &&Waiting| -self.credit_ns(moment, old) <= best.effective_ns;
                let Some(old) = oldest_first.next().filter(possible) else { break };
                best.consider(self.effective_ns(moment, old), old);
            }
        }
        best.waiting
    }

    /// `T_eff` of equation 1.
    fn effective_ns(&self, moment: &Moment<'_>, waiting: &Waiting) -> i128 {
        let positioning = moment.drive.positioning(moment.now, moment.head, &waiting.target);
        i128::from(positioning.total().ns()) - self.credit_ns(moment, waiting)
    }
}

/// Requests near the head to look at before the search by age begins: short queues do without it.
const NEAR_FIRST: usize = 64;

/// The best request seen.
struct Best {
    effective_ns: i128,
    waiting: Option<Waiting>,
}

impl Best {
    fn consider(&mut self, effective_ns: i128, waiting: &Waiting) {
        let earlier = |best: &Waiting| waiting.sequence < best.sequence;
        let ties_earlier =
            effective_ns == self.effective_ns && self.waiting.is_some_and(|best| earlier(&best));
        if effective_ns < self.effective_ns || ties_earlier {
            *self = Self { effective_ns, waiting: Some(*waiting) };
        }
    }
}

impl Policy for Asatf {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
        self.by_age.insert(waiting.sequence, waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let best = self.best(moment)?;
        self.by_age.remove(&best.sequence);
        let found = self.queue.find(&best);
        Some(self.queue.remove(found))
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
