//! Aged shortest access time first.

use freewheel_units::SimTime;

use super::by_cylinder::{ByCylinder, Candidate};
use super::{Moment, Policy, Waiting};

/// Serves the request with the smallest `T_pos - W * T_wait` (tr03 section 4.4, equation 1): SPTF
/// at W = 0, FCFS for large W, and no starvation in between.
///
/// Less credit than the oldest request has is a handicap, in which [`ByCylinder`] searches: no chunk is
/// looked through further than to the request that even its nearest cylinder would not let win.
#[derive(Debug)]
pub struct Asatf {
    queue: ByCylinder,
    /// W in units of 2^-32.
    age_factor_q32: u64,
}

impl Asatf {
    /// `age_factor` is W. Panics unless it is between 0 and 2^20.
    pub fn new(age_factor: f64) -> Self {
        assert!((0.0..=1_048_576.0).contains(&age_factor), "age factor of {age_factor}");
        Self { queue: ByCylinder::by_age(), age_factor_q32: (age_factor * 4_294_967_296.0) as u64 }
    }
}

/// A handicap that leaves room for a positioning time.
const HANDICAP_MAX_NS: u64 = u64::MAX / 2;

/// W * T_wait of a request that arrived at `arrival`, rounded down.
#[inline]
fn credit_ns(age_factor_q32: u64, now: SimTime, arrival: SimTime) -> u128 {
    (u128::from(now.saturating_since(arrival).ns()) * u128::from(age_factor_q32)) >> 32
}

impl Policy for Asatf {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let Self { queue, age_factor_q32 } = self;
        let from_head = moment.positionings();
        let credit_ns = |arrival| credit_ns(*age_factor_q32, moment.now, arrival);
        let most_ns = credit_ns(queue.oldest()?);
        let total = |request: &Candidate<'_>, limit_ns| request.total_ns(&from_head, limit_ns);
        match u64::try_from(most_ns) {
            // No credit is more than the oldest one, so 64 bits hold each.
            Ok(most_ns) if most_ns <= HANDICAP_MAX_NS => {
                let handicap_ns = |arrival| most_ns - credit_ns(arrival) as u64;
                queue.take_least(moment, handicap_ns, total)
            }
            _ => {
                // The oldest has no handicap, so no one with one of centuries is picked.
                let handicap_ns = |arrival| {
                    let handicap_ns = u64::try_from(most_ns - credit_ns(arrival));
                    handicap_ns.unwrap_or(u64::MAX).min(HANDICAP_MAX_NS)
                };
                queue.take_least(moment, handicap_ns, total)
            }
        }
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
