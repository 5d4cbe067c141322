//! Account of the delay that free work may still cause.

use freewheel_units::SimDuration;

/// Turns that can be saved up: a long time without delays does not pay for more of them at once.
const TURNS_MAX: i64 = 16;

/// Turns to begin with.
const TURNS_AT_FIRST: i64 = 4;

/// Doublings of the price of a late movement until the account is empty: four thousand turns are more than
/// any margin is worth.
const DOUBLINGS: i64 = 12;

/// A turn as a price, so that there are prices between one doubling and the next.
pub(crate) const TURN_PRICE: u32 = 16;

const MILLION: i64 = 1_000_000;

/// An account of time: earns a share of the head's time at work, and pays for delays.
///
/// In any stretch of time no more is spent than the share of it and what can be saved up, and one turn
/// and what is on its way when that is spent.
#[derive(Debug, Clone)]
pub(crate) struct DelayBudget {
    /// Parts of a million.
    share: i64,
    /// Millionths of a nanosecond: no part of the share is lost by rounding.
    saved: i64,
    most: i64,
}

impl DelayBudget {
    pub fn new(turn: SimDuration, share: u32) -> Self {
        // Periods are below 2^31 ns.
        let turn = turn.ns() as i64 * MILLION;
        Self { share: share.into(), saved: TURNS_AT_FIRST * turn, most: TURNS_MAX * turn }
    }

    /// Adds the share of this time of the head at work.
    pub fn earn(&mut self, head: SimDuration) {
        let head_ns = i64::try_from(head.ns()).unwrap_or(i64::MAX);
        self.saved = self.saved.saturating_add(head_ns.saturating_mul(self.share)).min(self.most);
    }

    /// Takes this delay of the foreground out.
    pub fn spend(&mut self, delay: SimDuration) {
        let delay_ns = i64::try_from(delay.ns()).unwrap_or(i64::MAX);
        self.saved = self.saved.saturating_sub(delay_ns.saturating_mul(MILLION));
    }

    pub fn is_overdrawn(&self) -> bool {
        self.saved < 0
    }

    /// The price of a late movement, where a turn is [`TURN_PRICE`]. On a full account it is a turn, which
    /// is its cost. It grows exponentially with the missing part, linearly between one doubling and the next.
    pub fn price(&self) -> u32 {
        let missing = i128::from(self.most - self.saved.clamp(0, self.most));
        let parts = i128::from(TURN_PRICE) * i128::from(DOUBLINGS);
        let missing = (missing * parts / i128::from(self.most)) as u32;
        let (doublings, rest) = (missing / TURN_PRICE, missing % TURN_PRICE);
        (TURN_PRICE + rest) << doublings
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TURN: SimDuration = SimDuration::from_ms(6);

    proptest! {
        /// Free work is asked for whenever it may be, and is late as an adversary likes.
        #[test]
        fn spending_is_at_most_share_and_savings(
            steps in prop::collection::vec((0u64..30_000_000, any::<bool>()), 1..400),
            share in 0u32..50_000,
        ) {
            let mut delay_budget = DelayBudget::new(TURN, share);
            // Nanoseconds of work, and turns spent, until each step.
            let mut sums = vec![(0u64, 0u64)];
            for (head_ns, is_late) in steps {
                let (worked, gap_use) = sums[sums.len() - 1];
                let is_late = is_late && !delay_budget.is_overdrawn();
                if is_late {
                    delay_budget.spend(TURN);
                }
                delay_budget.earn(SimDuration::from_ns(head_ns));
                sums.push((worked + head_ns, gap_use + u64::from(is_late)));
            }
            for from in 0..sums.len() {
                for to in from..sums.len() {
                    let worked = sums[to].0 - sums[from].0;
                    let gap_use = (sums[to].1 - sums[from].1) * TURN.ns();
                    let earned = u128::from(worked) * u128::from(share) / 1_000_000;
                    let saved = (TURNS_MAX as u128 + 1) * u128::from(TURN.ns());
                    prop_assert!(u128::from(gap_use) <= earned + saved, "{from} to {to}");
                }
            }
        }
    }

    #[test]
    fn price_rises_with_delay_and_recovers() {
        let mut delay_budget = DelayBudget::new(TURN, 5000);
        // A turn is earned in two hundred.
        delay_budget.earn(TURN * 200 * 16);
        assert_eq!(delay_budget.price(), TURN_PRICE);
        let mut last = TURN_PRICE;
        for _ in 0..16 {
            delay_budget.spend(TURN);
            assert!(delay_budget.price() > last, "{} after {last}", delay_budget.price());
            last = delay_budget.price();
        }
        assert_eq!(
            (delay_budget.price(), delay_budget.is_overdrawn()),
            (TURN_PRICE << DOUBLINGS, false)
        );
        delay_budget.spend(TURN);
        assert!(delay_budget.is_overdrawn());
        delay_budget.earn(TURN * 200 * 17);
        assert_eq!(delay_budget.price(), TURN_PRICE);
    }
}
