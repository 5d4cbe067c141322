//! Uncertainty of a burst's rate.

/// Rates of the pieces of a burst, which tell how much of its rate is chance: their spread includes the
/// differences between the parts of a load.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Spread {
    pieces: f64,
    blocks: f64,
    potential: f64,
    blocks_squared: f64,
    blocks_potential: f64,
    potential_squared: f64,
}

impl Spread {
    /// A piece gave this many blocks in this much latency.
    pub fn add(&mut self, blocks: u64, potential_ns: u64) {
        let (blocks, potential) = (blocks as f64, potential_ns as f64);
        self.pieces += 1.0;
        self.blocks += blocks;
        self.potential += potential;
        self.blocks_squared += blocks * blocks;
        self.blocks_potential += blocks * potential;
        self.potential_squared += potential * potential;
    }

    /// The standard error of blocks over latency, in parts of it (Cochran, Sampling Techniques, 1977,
    /// section 2.11: that of a ratio). Infinite while it cannot be told.
    pub fn error(&self) -> f64 {
        if self.pieces < 2.0 || self.blocks == 0.0 || self.potential == 0.0 {
            return f64::INFINITY;
        }
        let rate = self.blocks / self.potential;
        let squares = self.blocks_squared - 2.0 * rate * self.blocks_potential
            + rate * rate * self.potential_squared;
        let variance = squares.max(0.0) * self.pieces / (self.pieces - 1.0);
        variance.sqrt() / self.blocks
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn spread_error_is_distance_of_burst_rates() {
        const BURSTS: usize = 4000;
        let prng = &mut Prng::new(1, "spread");
        let (mut rates, mut told) = (Vec::new(), 0.0);
        for _ in 0..BURSTS {
            let mut spread = Spread::default();
            for _ in 0..12 {
                let potential = 1_000_000 + prng.below(1_000_000);
                spread.add(potential / 10_000 * (50 + prng.below(101)) / 100, potential);
            }
            rates.push(spread.blocks / spread.potential);
            told += spread.error() / BURSTS as f64;
        }
        let mean = rates.iter().sum::<f64>() / BURSTS as f64;
        let variance = rates.iter().map(|rate| (rate / mean - 1.0).powi(2)).sum::<f64>();
        let apart = (variance / BURSTS as f64).sqrt();
        assert!((told / apart - 1.0).abs() < 0.05, "{told} {apart}");
    }

    #[test]
    fn spread_unknown_for_one_piece() {
        let mut spread = Spread::default();
        spread.add(10, 1000);
        assert_eq!(spread.error(), f64::INFINITY);
        spread.add(10, 1000);
        assert_eq!(spread.error(), 0.0);
        let mut nothing = Spread::default();
        (0..3).for_each(|_| nothing.add(0, 1000));
        assert_eq!(nothing.error(), f64::INFINITY);
    }
}
