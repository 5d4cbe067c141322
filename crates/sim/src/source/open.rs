//! Requests that arrive whether or not the drive keeps up: a Poisson process.

use freewheel_units::{Prng, SimDuration, SimTime};

use super::{Pattern, Request, Source, SourceError};

/// Exponential times between arrivals.
#[derive(Debug)]
pub struct Open {
    pattern: Pattern,
    mean_gap_ns: f64,
    prng: Prng,
    next: SimTime,
    issued: u64,
    requests: u64,
}

impl Open {
    /// `requests` in all, on average one every `mean_gap`.
    pub fn new(pattern: Pattern, mean_gap: SimDuration, requests: u64, seed: u64) -> Self {
        let mut source = Self {
            pattern,
            mean_gap_ns: mean_gap.ns() as f64,
            prng: Prng::new(seed, "open arrivals"),
            next: SimTime::ZERO,
            issued: 0,
            requests,
        };
        source.advance();
        source
    }

    #[inline]
    fn advance(&mut self) {
        self.next += SimDuration::from_ns(self.prng.exponential(self.mean_gap_ns) as u64);
    }
}

impl Source for Open {
    #[inline]
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok((self.issued < self.requests).then_some(self.next))
    }

    #[inline]
    fn take(&mut self) -> Request {
        let request = self.pattern.draw(self.issued);
        self.issued += 1;
        self.advance();
        request
    }

    fn completed(&mut self, _: u64, _: SimTime) {}

    fn progress(&self) -> (u64, u64) {
        (self.issued, self.requests)
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Blocks;

    use super::*;
    use crate::source::PatternSpec;

    #[test]
    fn arrivals_are_poisson_with_given_mean() {
        let pattern = Pattern::new(PatternSpec::default(), Blocks::new(1000), 1).unwrap();
        let mut source = Open::new(pattern, SimDuration::from_ms(3), 50_000, 1);
        let mut last = SimTime::ZERO;
        let mut gaps = Vec::new();
        while let Some(at) = source.next_arrival().unwrap() {
            source.take();
            gaps.push((at - last).as_ms_f64());
            last = at;
        }
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let sd = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
        // Of an exponential the deviation is the mean.
        assert!((mean - 3.0).abs() < 0.05 && (sd - 3.0).abs() < 0.1, "{mean} {sd}");
    }
}
