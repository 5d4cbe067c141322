//! Cost of a copy to the clients of both disks.
//!
//! A copy is compared with its original afterwards, which reads both once more, as fast as the disks allow.
//!
//! A copy is one customer that goes round: source queue, source, target queue, target. It is no stream of
//! arrivals, as it never has more than one command under way: a busy disk slows the copy down rather than
//! that the copy overloads the disk.

use super::load::{QueueLoad, TANGENT_FROM};
use crate::partition::Moments;

/// A copy piece by piece: the next piece is read when the one before is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyCost {
    /// Time that the copy takes, and to compare it with its original, in seconds.
    pub copy_s: f64,
    /// Seconds that clients wait longer, summed over all of them.
    pub waiting_s: f64,
}

/// A disk that takes part in a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    /// Load of the disk without the copy.
    pub load: QueueLoad,
    /// Service time of a piece.
    pub piece: Moments,
}

impl Side {
    /// Time that a piece stays: it waits as a client's request does, and is served.
    fn stay_s(&self) -> f64 {
        self.load.wait_of_copy_s() + self.piece.mean
    }

    /// Additional wait of a client's request while a piece comes every `cycle_s` seconds.
    ///
    /// A request that arrives meets the piece in service with the chance E\[p\] / cycle, and then waits
    /// for the rest of it, E\[p²\] / 2 E\[p\]. With the chance wait / cycle it meets the piece waiting,
    /// and waits for all of it. The requests that this delays delay those behind them in turn: the wait
    /// W = busy W + W0 (1 - busy) + d has the solution W0 + d / (1 - busy).
    fn longer_s(&self, cycle_s: f64) -> f64 {
        let met =
            (0.5 * self.piece.second + self.load.wait_of_copy_s() * self.piece.mean) / cycle_s;
        met / (1.0 - self.load.busy.min(TANGENT_FROM))
    }
}

impl CopyCost {
    /// The cost of `pieces` pieces. `least_cycle_s` is the time that a limit on the rate leaves for each;
    /// it does not hold for the comparison.
    pub(super) fn of(source: &Side, target: &Side, pieces: f64, least_cycle_s: f64) -> Self {
        let pass = |cycle_s: f64| {
            let copy_s = pieces * cycle_s;
            let longer = |side: &Side| side.load.rate * side.longer_s(cycle_s);
            Self { copy_s, waiting_s: copy_s * (longer(source) + longer(target)) }
        };
        let fastest_s = source.stay_s() + target.stay_s();
        let (copy, comparison) = (pass(fastest_s.max(least_cycle_s)), pass(fastest_s));
        Self {
            copy_s: copy.copy_s + comparison.copy_s,
            waiting_s: copy.waiting_s + comparison.waiting_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_cost_counts_unlimited_second_pass() {
        let piece = Moments { mean: 0.01, second: 0.0001, third: 0.0 };
        let side = |rate: f64| Side { load: QueueLoad::new(rate, &piece), piece };
        let idle = CopyCost::of(&side(0.0), &side(0.0), 100.0, 0.0);
        assert!((idle.copy_s - 2.0 * 100.0 * 0.02).abs() < 1e-9, "{idle:?}");
        let slow = CopyCost::of(&side(0.0), &side(0.0), 100.0, 0.05);
        assert!((slow.copy_s - 100.0 * (0.05 + 0.02)).abs() < 1e-9, "{slow:?}");
        // Clients wait in both passes, each piece as long however far apart they are.
        let [fast, slow] =
            [0.0, 1.0].map(|least| CopyCost::of(&side(20.0), &side(5.0), 100.0, least));
        assert!(fast.waiting_s > 0.0 && (slow.waiting_s / fast.waiting_s - 1.0).abs() < 1e-9);
    }
}
