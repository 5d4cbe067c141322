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

impl Asatf {
    /// Takes the request to serve next. `total` gives a positioning time if it is at most as long as its
    /// argument, else None.
    #[inline]
    fn take_by(
        &mut self,
        moment: &Moment<'_>,
        total: impl Fn(&Candidate<'_>, u64) -> Option<u64>,
    ) -> Option<Waiting> {
        let Self { queue, age_factor_q32 } = self;
        let credit_ns = |arrival| credit_ns(*age_factor_q32, moment.now, arrival);
        let most_ns = credit_ns(queue.oldest()?);
        match u64::try_from(most_ns) {
            // No credit is more than the oldest one, so 64 bits hold each.
            Ok(most_ns) if most_ns <= HANDICAP_MAX_NS => {
                queue.take_least(moment, |arrival| most_ns - credit_ns(arrival) as u64, total)
            }
            _ => {
                // The oldest has no handicap, so no one with one of centuries is picked.
                queue.take_least(
                    moment,
                    |arrival| {
                        let handicap_ns = u64::try_from(most_ns - credit_ns(arrival));
                        handicap_ns.unwrap_or(u64::MAX).min(HANDICAP_MAX_NS)
                    },
                    total,
                )
            }
        }
    }
}

impl Policy for Asatf {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let from_head = moment.positionings();
        self.take_by(moment, |request, limit_ns| request.total_ns(&from_head, limit_ns))
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        self.queue.take(sequence)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use freewheel_units::{Blocks, Lbn, Op, Prng};

    use super::*;
    use crate::drive::{Drive, Position};
    use crate::sched::CommandMark;

    /// Requests that wait at a time.
    const DEPTH: usize = 300;
    const PICKS: u64 = 60;
    /// Most that may be looked at, as a part of those that wait.
    const LOOKS_MAX: f64 = 0.2;

    /// Statistics of some picks' searches.
    #[derive(Debug, Default)]
    struct Searches {
        /// Searches in which the oldest credit was too great for sums in 64 bits.
        wide: u64,
        /// Searches that did not pick the oldest.
        not_oldest: u64,
        /// Requests that were looked at.
        looks: u64,
    }

    impl Searches {
        fn add(&mut self, other: &Self) {
            self.wide += other.wide;
            self.not_oldest += other.not_oldest;
            self.looks += other.looks;
        }

        /// Part of the waiting requests that were looked at, over some runs.
        fn part(&self, runs: usize) -> f64 {
            self.looks as f64 / (runs as u64 * PICKS * DEPTH as u64) as f64
        }
    }

    fn drives() -> [Drive; 2] {
        [
            include_str!("../../../../drives/atlas10k.toml"),
            include_str!("../../../../drives/exos-x24-24tb.toml"),
        ]
        .map(|spec| Drive::build(&toml::from_str(spec).unwrap()).unwrap())
    }

    /// A request anywhere, or at one of a few places, so that equal ones and crowded cylinders occur.
    fn waiting(prng: &mut Prng, drive: &Drive, arrival: SimTime, sequence: u64) -> Waiting {
        let all = drive.blocks().get() - 8;
        let start = if prng.chance(0.2) { all / 3 * prng.below(3) } else { prng.below(all) };
        let op = if prng.chance(0.6) { Op::Read } else { Op::Write };
        let target = drive.target(Lbn::new(start), Blocks::new(8), op);
        Waiting { target, arrival, sequence, fua: false, mark: CommandMark::None }
    }

    /// The request that the rule names, by looking at all of them.
    fn by_rule<'a>(queue: &'a [Waiting], age_factor: f64, moment: &Moment<'_>) -> &'a Waiting {
        // Factors are binary fractions, so that the product is exact.
        let factor_q32 = (age_factor * 4_294_967_296.0) as i128;
        let key = |w: &&Waiting| {
            let position = moment.drive.positioning(moment.now, moment.head, &w.target);
            let waited = i128::from(moment.now.ns() - w.arrival.ns());
            (i128::from(position.total().ns()) - ((waited * factor_q32) >> 32), w.sequence)
        };
        queue.iter().min_by_key(key).expect("a request waits")
    }

    /// Picks one request after the other from `now` on, each beside the rule. As many wait all the time.
    /// Of those at first, some have waited equally long but for some milliseconds of credit. The others
    /// have waited for any time, or they have all of 2^64 ns of credit less.
    fn follow_the_rule(drive: &Drive, age_factor: f64, mut now: SimTime, seed: u64) -> Searches {
        let prng = &mut Prng::new(seed, "aged");
        let mut policy = Asatf::new(age_factor);
        let spread = ((30_000_000.0 / age_factor.max(0.001)) as u64).clamp(1, now.ns());
        let later = (2f64.powi(64) / age_factor) as u64;
        let later = later.min(now.ns() - spread);
        // A few, after which the others are the oldest; or many.
        let oldest = if seed < 2 { 20 + prng.below(200) } else { 5 + prng.below(20) };
        let mut arrivals: Vec<u64> = (0..DEPTH as u64)
            .map(|at| match at < oldest {
                true => prng.below(spread),
                false if seed < 2 => prng.below(now.ns()),
                false => later + prng.below(spread),
            })
            .collect();
        arrivals.sort_unstable();
        let mut queue: Vec<Waiting> = (0..)
            .zip(arrivals)
            .map(|(sequence, ns)| waiting(prng, drive, SimTime::from_ns(ns), sequence))
            .collect();
        queue.iter().for_each(|w| policy.push(*w));
        let (mut head, mut searches) = (Position::default(), Searches::default());
        let looks = Cell::new(0);
        for sequence in DEPTH as u64..DEPTH as u64 + PICKS {
            let moment = Moment { now, head, drive };
            let expected = *by_rule(&queue, age_factor, &moment);
            let oldest = queue.iter().map(|w| w.arrival).min().unwrap();
            let credit = credit_ns(policy.age_factor_q32, now, oldest);
            searches.wide += u64::from(credit > u128::from(HANDICAP_MAX_NS));
            searches.not_oldest += u64::from(expected.arrival > oldest);
            let from_head = moment.positionings();
            let picked = policy.take_by(&moment, |request, limit_ns| {
                looks.set(looks.get() + 1);
                request.total_ns(&from_head, limit_ns)
            });
            assert_eq!(picked, Some(expected), "age factor {age_factor} at {now}");
            queue.retain(|w| w.sequence != expected.sequence);
            let access = drive.access(now, head, &expected.target);
            now += access.total();
            head = access.end;
            let next = waiting(prng, drive, now, sequence);
            policy.push(next);
            queue.push(next);
        }
        Searches { looks: looks.get(), ..searches }
    }

    #[test]
    fn asatf_looks_at_few_among_hundreds() {
        for drive in drives() {
            for age_factor in [0.0, 0.0078125, 0.5, 8.0, 1024.0] {
                let mut searches = Searches::default();
                for seed in 0..4 {
                    // Waits of up to ten seconds.
                    let now = SimTime::from_ns(10_000_000_000);
                    searches.add(&follow_the_rule(&drive, age_factor, now, seed));
                }
                assert_eq!(searches.wide, 0);
                assert!(searches.not_oldest > 2 * PICKS, "{searches:?}");
                assert!(searches.part(4) < LOOKS_MAX, "age factor {age_factor}: {searches:?}");
            }
        }
    }

    #[test]
    fn asatf_picks_right_beyond_64_bit_credit() {
        for drive in drives() {
            for age_factor in [1.0, 8.0, 1024.0, 1_048_576.0] {
                let unit = (9.3e18 / age_factor) as u64;
                let mut searches = Searches::default();
                for seed in 0..4 {
                    // 64 bits hold a credit of up to 1.98 units, and the branch begins with 0.99.
                    let [little, much] = [unit / 2 * 3, unit.saturating_mul(3)];
                    let now = if age_factor > 1.0 && seed % 2 == 1 { much } else { little };
                    let now = SimTime::from_ns(now);
                    searches.add(&follow_the_rule(&drive, age_factor, now, seed));
                }
                assert!(searches.wide > 2 * PICKS, "age factor {age_factor}: {searches:?}");
                assert!(searches.not_oldest > PICKS, "age factor {age_factor}: {searches:?}");
                assert!(searches.part(4) < LOOKS_MAX, "age factor {age_factor}: {searches:?}");
            }
        }
    }
}
