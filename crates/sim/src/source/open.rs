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
