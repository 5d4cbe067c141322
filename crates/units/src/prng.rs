//! A small seeded generator with an independent stream for every component.
//!
//! Goal: the same seed gives the same run on every machine and in every version of this crate. A
//! further component never shifts the numbers of another.
//! Non-goal: secrecy.

/// xoshiro256++ (Blackman and Vigna 2019), seeded through SplitMix64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// The stream of the component called `stream` in the run with this seed.
    pub fn new(seed: u64, stream: &str) -> Self {
        // FNV-1a over the name: a fixed published hash, unlike the standard library's.
        let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut mix = seed ^ name.rotate_left(32);
        let state = [(); 4].map(|()| split_mix(&mut mix));
        Self { state }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        let (b2, a2) = (b ^ c, a ^ d);
        self.state = [a2, b2, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in `0..bound`. Biased by less than `bound / 2^64`, as Lemire's multiplication
    /// without its rejection step is; `bound` here is at most a drive's block count.
    /// Panics when `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "empty range");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// True with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // libm and not the platform's logarithm: the same bits everywhere.
        -mean * libm::log(1.0 - self.unit())
    }

    /// Trials up to and including the first success, each with this probability: at least 1, in the mean
    /// 1 / `probability`. Panics unless `probability` is in (0, 1].
    pub fn geometric(&mut self, probability: f64) -> u64 {
        assert!(probability > 0.0 && probability <= 1.0, "a probability of {probability}");
        // log1p(-1) is minus infinity, and the quotient then 0: every first trial succeeds.
        let trials = libm::log(1.0 - self.unit()) / libm::log1p(-probability);
        (trials.ceil() as u64).max(1)
    }

    /// Normal with this mean and standard deviation (Box and Muller 1958, one of the pair).
    pub fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        mean + sd * radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prng_matches_published_generator() {
        // First outputs of xoshiro256++ from the state 1, 2, 3, 4 (reference implementation).
        let mut prng = Prng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| prng.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn prng_trials_follow_probability() {
        let mut prng = Prng::new(1, "geometric");
        let trials: Vec<u64> = (0..100_000).map(|_| prng.geometric(0.4)).collect();
        let share = |count: u64| trials.iter().filter(|&&t| t == count).count() as f64 / 1e5;
        assert_eq!(share(0), 0.0);
        // 0.4, 0.6 * 0.4, 0.6^2 * 0.4; the standard deviation of such a share is 0.0015 at most.
        for (count, expected) in [(1, 0.4), (2, 0.24), (3, 0.144)] {
            assert!((share(count) - expected).abs() < 0.006, "{count}: {}", share(count));
        }
        assert!((0..1000).all(|_| prng.geometric(1.0) == 1));
    }

    #[test]
    fn prng_stream_depends_on_seed_and_name() {
        let draw = |seed, name| Prng::new(seed, name).next_u64();
        assert_eq!(draw(1, "arrivals"), draw(1, "arrivals"));
        assert_ne!(draw(1, "arrivals"), draw(2, "arrivals"));
        assert_ne!(draw(1, "arrivals"), draw(1, "sizes"));
    }

    #[test]
    fn prng_has_requested_means_and_deviations() {
        let mut prng = Prng::new(7, "moments");
        let n = 200_000;
        let exponential: f64 = (0..n).map(|_| prng.exponential(30.0)).sum::<f64>() / f64::from(n);
        assert!((exponential - 30.0).abs() < 0.3, "mean {exponential}");
        let normal: Vec<f64> = (0..n).map(|_| prng.normal(5.0, 2.0)).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(n);
        let variance = normal.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!((mean - 5.0).abs() < 0.03 && (variance.sqrt() - 2.0).abs() < 0.03);
    }

    #[test]
    fn prng_below_reaches_every_value() {
        let mut prng = Prng::new(3, "range");
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[prng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
