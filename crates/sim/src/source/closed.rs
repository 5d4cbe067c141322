//! A fixed number of requests outstanding, each followed by a time to think.

use freewheel_units::{Prng, SimDuration, SimTime};

use super::{Pattern, Request, Source, SourceError};
use crate::events::EventQueue;

/// `outstanding` terminals (the multiprogramming level): each issues a request, waits for it,
/// thinks, and issues the next.
#[derive(Debug)]
pub struct Closed {
    pattern: Pattern,
    think_time: ThinkTime,
    prng: Prng,
    /// Time at which each thinking terminal will be ready.
    ready: EventQueue<u64>,
    issued: u64,
    requests: u64,
}

/// Think time of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkTime {
    /// Always this long.
    Constant(SimDuration),
    /// Exponential with this mean.
    Exponential(SimDuration),
}

impl Closed {
    /// `requests` in all, `outstanding` at once.
    pub fn new(
        pattern: Pattern,
        outstanding: u32,
        think_time: ThinkTime,
        requests: u64,
        seed: u64,
    ) -> Self {
        let mut source = Self {
            pattern,
            think_time,
            prng: Prng::new(seed, "closed think times"),
            ready: EventQueue::default(),
            issued: 0,
            requests,
        };
        for terminal in 0..u64::from(outstanding) {
            source.think_time(terminal, SimTime::ZERO);
        }
        source
    }

    #[inline]
    fn think_time(&mut self, terminal: u64, now: SimTime) {
        let length = match self.think_time {
            ThinkTime::Constant(length) => length,
            ThinkTime::Exponential(mean) => {
                SimDuration::from_ns(self.prng.exponential(mean.ns() as f64) as u64)
            }
        };
        self.ready.push(now + length, terminal);
    }
}

impl Source for Closed {
    #[inline]
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        let more = self.issued < self.requests;
        Ok(self.ready.next_time().filter(|_| more))
    }

    #[inline]
    fn take(&mut self) -> Request {
        let (_, terminal) = self.ready.pop().expect("next_arrival gave a time");
        self.issued += 1;
        self.pattern.draw(terminal)
    }

    #[inline]
    fn completed(&mut self, tag: u64, now: SimTime) {
        self.think_time(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        (self.issued, self.requests)
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Blocks;

    use super::*;
    use crate::source::PatternSpec;

    /// Gaps between completion and next arrival of one terminal.
    fn thoughts(think_time: ThinkTime) -> Vec<f64> {
        let pattern = Pattern::new(PatternSpec::default(), Blocks::new(1000), 1).unwrap();
        let mut source = Closed::new(pattern, 1, think_time, 20_000, 1);
        let mut done = SimTime::ZERO;
        let mut gaps = Vec::new();
        while let Some(at) = source.next_arrival().unwrap() {
            gaps.push((at - done).as_ms_f64());
            let tag = source.take().tag;
            done = at + SimDuration::from_ms(5);
            source.completed(tag, done);
        }
        gaps
    }

    #[test]
    fn terminal_thinks_as_long_as_told() {
        let thirty = SimDuration::from_ms(30);
        assert!(thoughts(ThinkTime::Constant(thirty)).iter().all(|&gap| gap == 30.0));
        let gaps = thoughts(ThinkTime::Exponential(thirty));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean - 30.0).abs() < 1.0, "mean of {mean}");
    }
}
