//! How requests fare in a run: responses without the warm-up, also by slices of the trace.

use freewheel_model::stats::{Distribution, Summary};
use freewheel_sim::Completion;
use freewheel_units::Op;
use serde::Serialize;

/// Which requests of a trace count, by their number in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Slices {
    /// Requests that fill caches, and do not count.
    pub warm_up: u64,
    /// Requests in all.
    pub requests: u64,
    /// Equal parts of those that count.
    pub slices: u32,
}

/// The share of a trace that fills caches: 3 of 7 days, as tr03 gave its shortest trace.
const WARM_UP: f64 = 0.43;

/// Slices of the rest.
const SLICES: u32 = 5;

impl Slices {
    /// tr03's warm-up, and five slices.
    pub fn of(requests: u64) -> Self {
        Self { warm_up: (requests as f64 * WARM_UP) as u64, requests, slices: SLICES }
    }

    /// The slice of a request; None for one that does not count.
    fn of_request(&self, number: u64) -> Option<usize> {
        let since = number.checked_sub(self.warm_up)?;
        let counted = self.requests.saturating_sub(self.warm_up).max(1);
        Some((since * u64::from(self.slices) / counted).min(u64::from(self.slices) - 1) as usize)
    }
}

/// Sum and number of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Responses {
    /// Sum in nanoseconds.
    pub sum_ns: u64,
    /// Number.
    pub count: u64,
}

impl Responses {
    /// Mean in nanoseconds; None of no response.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// Collects the responses of a run.
pub(super) struct Meter {
    slices: Slices,
    reads: Distribution,
    writes: Distribution,
    by_slice: Vec<Responses>,
}

impl Meter {
    pub fn new(slices: Slices) -> Self {
        let by_slice = vec![Responses::default(); slices.slices as usize];
        Self { slices, reads: Distribution::default(), writes: Distribution::default(), by_slice }
    }

    pub fn observe(&mut self, completion: &Completion) {
        let Some(slice) = self.slices.of_request(completion.request.tag) else { return };
        let response = completion.response();
        match completion.request.op {
            Op::Read => self.reads.record(response),
            Op::Write => self.writes.record(response),
            Op::Flush | Op::Trim => return,
        }
        self.by_slice[slice].sum_ns += response.ns();
        self.by_slice[slice].count += 1;
    }

    pub fn finish(self) -> Measured {
        let mut all = self.reads.clone();
        all.add(&self.writes);
        Measured {
            response: all.summary(),
            read_response: self.reads.summary(),
            write_response: self.writes.summary(),
            by_slice: self.by_slice,
            distribution: all,
        }
    }
}

/// The responses of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Of reads and writes.
    pub response: Summary,
    /// Of reads.
    pub read_response: Summary,
    /// Of writes.
    pub write_response: Summary,
    /// Of reads and writes, by slice.
    pub by_slice: Vec<Responses>,
    /// Of reads and writes.
    #[serde(skip)]
    pub distribution: Distribution,
}

/// How a mean or a percentile differs: (new - old) / old.
pub fn relative(old: f64, new: f64) -> f64 {
    if old > 0.0 { (new - old) / old } else { 0.0 }
}

impl Measured {
    /// The change of the mean response from `old` to this.
    pub fn from(&self, old: &Self) -> Effect {
        let slices = old.by_slice.iter().zip(&self.by_slice);
        let changes =
            slices.filter_map(|(old, new)| Some(relative(old.mean_ns()?, new.mean_ns()?)));
        let changes: Vec<f64> = changes.collect();
        let mean = relative(old.response.mean_ns, self.response.mean_ns);
        Effect {
            mean,
            least: changes.iter().copied().fold(mean, f64::min),
            most: changes.iter().copied().fold(mean, f64::max),
            p99: relative(old.response.p99_ns as f64, self.response.p99_ns as f64),
            reads: relative(old.read_response.mean_ns, self.read_response.mean_ns),
            writes: relative(old.write_response.mean_ns, self.write_response.mean_ns),
        }
    }
}

/// Changes of responses as (new - old) / old: -0.4 is 40 % less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    /// Of the mean.
    pub mean: f64,
    /// The smallest change of the mean in any slice, and of the whole.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// Of the 99th percentile.
    pub p99: f64,
    /// Of the mean of reads.
    pub reads: f64,
    /// Of the mean of writes.
    pub writes: f64,
}

/// Changes of the mean response below which times count as equal.
const NOTICEABLE: f64 = 0.02;

impl Effect {
    /// Whether slices disagree on its direction, or it is too small to notice.
    pub fn is_within_noise(&self) -> bool {
        self.mean.abs() < NOTICEABLE || self.least < 0.0 && self.most > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_equal_parts_of_what_follows_the_warm_up() {
        let slices = Slices { warm_up: 43, requests: 100, slices: 5 };
        let of = |number| slices.of_request(number);
        assert_eq!(
            [of(0), of(42), of(43), of(54), of(55), of(99)],
            [None, None, Some(0), Some(0), Some(1), Some(4)]
        );
        let mut counts = [0; 5];
        (43..100).for_each(|number| counts[of(number).unwrap()] += 1);
        assert!(counts.iter().all(|count| (11..=12).contains(count)), "{counts:?}");
    }

    fn measured(means_ns: [u64; 2]) -> Measured {
        let by_slice: Vec<Responses> =
            means_ns.map(|mean| Responses { sum_ns: 10 * mean, count: 10 }).into();
        let mean_ns = means_ns.iter().sum::<u64>() as f64 / 2.0;
        let response = Summary { mean_ns, ..Summary::default() };
        let (read_response, write_response) = (response, response);
        Measured {
            response,
            read_response,
            write_response,
            by_slice,
            distribution: Distribution::default(),
        }
    }

    #[test]
    fn an_effect_spans_its_slices_and_is_noise_where_they_disagree() {
        let old = measured([100, 200]);
        let better = measured([50, 150]).from(&old);
        assert_eq!((better.mean, better.least, better.most), (-1.0 / 3.0, -0.5, -0.25));
        assert!(!better.is_within_noise());
        let mixed = measured([50, 220]).from(&old);
        assert!(mixed.mean < -0.05 && mixed.is_within_noise());
        assert!(measured([99, 199]).from(&old).is_within_noise(), "less than 2 %");
    }
}
