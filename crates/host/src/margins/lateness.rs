//! Shares of movements of one kind that are late, by their slack.
//!
//! Each movement tells whether its error was beyond its slack, but not the error. Such data are called
//! current status data (Groeneboom and Wellner, Information Bounds and Nonparametric Maximum Likelihood
//! Estimation, 1992). Their likeliest distribution is the regression of "late" on slack that never rises.
//! Pooling neighbours that are out of order finds it:
//!
//! ```text
//!   slack of a bin, in bins     0    1    2    3    4
//!   late of all               4/4  1/2  3/4  0/2  0/1     bin 2 is later than bin 1:
//!   pooled                    4/4  4/6  4/6  0/2  0/1     both get (1 + 3) of (2 + 4)
//! ```

use super::delay_budget::TURN_PRICE;

/// Number of bins of slack, all of one width, and the bins of a turn: 6 us each at 10,000 turns a
/// minute, a third of a sector.
pub(crate) const BINS: usize = 128;
pub(crate) const BINS_A_TURN: u64 = 1024;

/// Certainty, as a fixed-point number.
const ONE: u32 = 1 << 16;

/// Weight of a movement, so that parts of one can be counted.
const MOVEMENT: u32 = 64;

/// Most movements that are remembered. Beyond, the weight of all of them is halved: a drive changes as
/// it gets warm, and a burst of delayed movements is forgotten in time.
const MEMORY: u32 = 4096 * MOVEMENT;

/// Weight of the belief with which a bin begins: a 64th of a movement in the curve of all movements; a
/// quarter where the belief comes from all classes together, or from both directions.
pub(crate) const OF_START: u32 = MOVEMENT / 64;
pub(crate) const OF_OTHERS: u32 = MOVEMENT / 4;

/// Counts by slack.
#[derive(Debug, Clone)]
pub(crate) struct Lateness {
    bins: [Bin; BINS],
    weight: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    late: u32,
    all: u32,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { bins: [Bin::default(); BINS], weight: 0 }
    }
}

/// Parts of [`ONE`] that are late by slack, never more with more slack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Curve([u32; BINS]);

/// Neighbours that are pooled: `late / all` of them are late, as parts of [`ONE`].
#[derive(Debug, Clone, Copy)]
struct Pool {
    late: u64,
    all: u64,
    bins: usize,
}

impl Pool {
    fn is_later_than(&self, other: &Self) -> bool {
        u128::from(self.late) * u128::from(other.all)
            > u128::from(other.late) * u128::from(self.all)
    }

    fn and(self, other: Self) -> Self {
        Self {
            late: self.late + other.late,
            all: self.all + other.all,
            bins: self.bins + other.bins,
        }
    }
}

impl Lateness {
    /// Adds a movement with the slack of `bin`. The bin below gets an eighth of it. Plans leave each
    /// movement at least its margin as slack, so that shorter margins would otherwise be learned only where
    /// a foreground request happens to have less slack.
    pub fn add(&mut self, bin: usize, is_late: bool) {
        for (down, weight) in [(0, MOVEMENT), (1, MOVEMENT / 8)] {
            let Some(at) = bin.checked_sub(down) else { break };
            self.bins[at].all += weight;
            self.bins[at].late += if is_late { weight } else { 0 };
            self.weight += weight;
        }
        if self.weight > MEMORY {
            self.weight = 0;
            for bin in &mut self.bins {
                (bin.late, bin.all) = (bin.late / 2, bin.all / 2);
                self.weight += bin.all;
            }
        }
    }

    /// Curve of the observations; without any movement the belief itself.
    pub fn curve_or(&self, belief: &Curve, weight: u32) -> Curve {
        if self.weight == 0 { belief.clone() } else { self.curve(belief, weight) }
    }

    /// Share of movements that are late, by slack. Each bin begins with `belief` at this `weight`, above
    /// zero.
    pub fn curve(&self, belief: &Curve, weight: u32) -> Curve {
        let mut pools: Vec<Pool> = Vec::with_capacity(BINS);
        for (bin, &believed) in self.bins.iter().zip(&belief.0) {
            let late = u64::from(bin.late) * u64::from(ONE) + u64::from(weight * believed);
            let mut pool = Pool { late, all: u64::from(bin.all + weight), bins: 1 };
            while let Some(before) = pools.pop_if(|before| pool.is_later_than(before)) {
                pool = before.and(pool);
            }
            pools.push(pool);
        }
        let mut curve = Curve([0; BINS]);
        let mut at = 0;
        for Pool { late, all, bins } in pools {
            curve.0[at..at + bins].fill((late / all) as u32);
            at += bins;
        }
        curve
    }
}

impl Curve {
    /// As likely late as not below `bin`, and never from there on.
    pub fn step(bin: usize) -> Self {
        let mut curve = Self([0; BINS]);
        curve.0[..bin].fill(ONE / 2);
        curve
    }

    /// The bin that costs least: its slack, which is lost to every movement, and `price` for those that
    /// are late with it, a turn being [`TURN_PRICE`]. What no slack helps against asks for none.
    pub fn cheapest(&self, price: u32) -> usize {
        (0..BINS).min_by_key(|&bin| self.cost(bin, price)).unwrap_or(BINS)
    }

    fn cost(&self, bin: usize, price: u32) -> u64 {
        let slack = bin as u64 * u64::from(ONE) * u64::from(TURN_PRICE);
        slack + u64::from(self.0[bin]) * u64::from(price) * BINS_A_TURN
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;
    use proptest::prelude::*;

    use super::*;

    /// The regression by its formula: the least over all beginnings of the greatest over all ends of the
    /// mean between both.
    fn slow_curve(lateness: &Lateness, belief: &Curve, weight: u32) -> Vec<u32> {
        let parts: Vec<(u64, u64)> = lateness
            .bins
            .iter()
            .zip(&belief.0)
            .map(|(bin, &believed)| {
                let late = u64::from(bin.late) * u64::from(ONE) + u64::from(weight * believed);
                (late, u64::from(bin.all + weight))
            })
            .collect();
        let mean = |from: usize, to: usize| {
            let sums =
                parts[from..=to].iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
            (sums.0 / sums.1) as u32
        };
        let at = |bin: usize| {
            let greatest = |from| (bin..BINS).map(|to| mean(from, to)).max();
            (0..=bin).filter_map(greatest).min().unwrap()
        };
        (0..BINS).map(at).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20, ..Default::default() })]

        #[test]
        fn curve_is_nonincreasing_regression(
            movements in prop::collection::vec((0..BINS, any::<bool>()), 0..300),
            start in 0..=BINS,
        ) {
            let mut lateness = Lateness::default();
            movements.iter().for_each(|&(bin, is_late)| lateness.add(bin, is_late));
            let curve = lateness.curve(&Curve::step(start), OF_START);
            prop_assert!(curve.0.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(curve.0.to_vec(), slow_curve(&lateness, &Curve::step(start), OF_START));
        }
    }

    /// For errors of any shape and any slacks: the slack found costs little more than the best slack by a
    /// sorted list of the errors, which a scheduler cannot see.
    #[test]
    fn slack_costs_little_over_best() {
        let uniform = |prng: &mut Prng| prng.below(60) as usize;
        let skewed = |prng: &mut Prng| (prng.below(10) * prng.below(11)) as usize;
        let mixed = |prng: &mut Prng| {
            if prng.chance(0.05) { 50 + prng.below(20) as usize } else { prng.below(8) as usize }
        };
        let shapes: [fn(&mut Prng) -> usize; 3] = [uniform, skewed, mixed];
        for (number, shape) in shapes.into_iter().enumerate() {
            let prng = &mut Prng::new(number as u64, "errors and slacks");
            let (mut lateness, mut errors) = (Lateness::default(), Vec::new());
            for _ in 0..20_000 {
                let (error, slack) = (shape(prng), prng.below(BINS as u64) as usize);
                lateness.add(slack, error > slack);
                errors.push(error);
            }
            errors.sort_unstable();
            let curve = lateness.curve(&Curve::step(50), OF_START);
            for price in [1, 2] {
                let cost = |slack: usize| {
                    let late = errors.len() - errors.partition_point(|&error| error <= slack);
                    let turns = late as f64 / errors.len() as f64 * f64::from(price);
                    slack as f64 + turns * BINS_A_TURN as f64
                };
                let best = (0..BINS).map(cost).min_by(f64::total_cmp).unwrap();
                let found = curve.cheapest(price * TURN_PRICE);
                // Seen through some thirty movements a bin: what one in a hundred costs is not.
                let dearer = cost(found) / best;
                assert!(dearer < 1.4, "shape {number}, {price} turns: {found}, {dearer} times");
            }
        }
    }

    #[test]
    fn unpreventable_lateness_gets_no_margin() {
        let prng = &mut Prng::new(1, "activity");
        let mut lateness = Lateness::default();
        for _ in 0..20_000 {
            let slack = prng.below(BINS as u64) as usize;
            lateness.add(slack, slack < 10 || prng.chance(0.05));
        }
        let slack = lateness.curve(&Curve::step(50), OF_START).cheapest(TURN_PRICE);
        assert!((9..=12).contains(&slack), "{slack}");
    }
}
