//! Aged shortest access time first.

use std::collections::VecDeque;

use super::by_cylinder::ByCylinder;
use super::{Moment, Policy, Waiting};

/// Serves the request with the smallest `T_pos - W * T_wait` (tr03 section 4.4, equation 1): SPTF
/// at W = 0, FCFS for large W, and no starvation in between.
#[derive(Debug)]
pub struct Asatf {
    queue: ByCylinder,
    /// W in units of 2^-32.
    age_factor_q32: u128,
    /// Arrivals in order, those already served included until they reach the front.
    arrivals: VecDeque<Waiting>,
    served: std::collections::BTreeSet<u64>,
}

impl Asatf {
    /// `age_factor` is W. Panics unless it is between 0 and 2^20.
    pub fn new(age_factor: f64) -> Self {
        assert!((0.0..=1_048_576.0).contains(&age_factor), "age factor of {age_factor}");
        Self {
            queue: ByCylinder::default(),
            age_factor_q32: (age_factor * 4_294_967_296.0) as u128,
            arrivals: VecDeque::new(),
            served: Default::default(),
        }
    }

    /// W * T_wait, rounded down.
    fn credit_ns(&self, moment: &Moment<'_>, waiting: &Waiting) -> i128 {
        let waited = moment.now.saturating_since(waiting.arrival).ns();
        ((u128::from(waited) * self.age_factor_q32) >> 32) as i128
    }

    fn oldest(&mut self) -> Option<Waiting> {
        while let Some(front) = self.arrivals.front() {
            if !self.served.remove(&front.sequence) {
                return Some(*front);
            }
            self.arrivals.pop_front();
        }
        None
    }
}

impl Policy for Asatf {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
        self.arrivals.push_back(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        // Nobody has more credit than the oldest, so nobody whose seek alone exceeds the best
        // effective time by more than that can win.
        let oldest = self.oldest()?;
        let most_credit_ns = self.credit_ns(moment, &oldest);
        let mut best = None;
        let mut best_key = (i128::MAX, u64::MAX);
        self.queue.outwards(moment, |found, waiting| {
            let positioning = moment.drive.positioning(moment.now, moment.head, &waiting.target);
            let credit_ns = self.credit_ns(moment, waiting);
            let key = (i128::from(positioning.total().ns()) - credit_ns, waiting.sequence);
            if key < best_key {
                best_key = key;
                best = Some(found);
            }
            u64::try_from(best_key.0 + most_credit_ns).unwrap_or(u64::MAX)
        });
        let picked = self.queue.remove(best?);
        self.served.insert(picked.sequence);
        Some(picked)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
