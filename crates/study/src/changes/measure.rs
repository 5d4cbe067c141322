//! Responses of a run after the warm-up, also by slices of the trace.

use freewheel_model::stats::{Distribution, Summary};
use freewheel_sim::RunResult;
use serde::{Deserialize, Serialize};

/// The quantity that changes are ranked by. Less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Mean response of reads and writes.
    #[default]
    Mean,
    /// 99th percentile of the responses of reads.
    P99Reads,
    /// Drive time a request: a drive that needs less for each serves more of them.
    Throughput,
}

impl Goal {
    /// The quantity in words.
    pub fn quantity(self) -> &'static str {
        match self {
            Self::Mean => "mean response",
            Self::P99Reads => "p99 of reads",
            Self::Throughput => "drive time a request",
        }
    }
}

impl Goal {
    /// The quantity of a run, in nanoseconds.
    pub fn ns(self, run: &RunResult) -> f64 {
        match self {
            Self::Mean => run.response.mean_ns,
            Self::P99Reads => run.read_response.p99_ns as f64,
            Self::Throughput => drive_time_ns(run),
        }
    }
}

/// Sum and number of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Responses {
    /// Sum in nanoseconds.
    pub sum_ns: u128,
    /// Number.
    pub count: u64,
}

impl Responses {
    /// Mean in nanoseconds; None of no response.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// The responses of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[allow(missing_docs)]
pub struct Measured {
    /// Responses of reads and writes.
    pub response: Summary,
    pub read_response: Summary,
    pub write_response: Summary,
    /// Responses of reads and writes, by slice.
    pub by_slice: Vec<Responses>,
    /// Head time of a drive, on average over all drives, for a read or write of the whole load: destages and reading
    /// ahead included, but not what a write buffer still holds at the end.
    pub drive_time_ns: f64,
    /// Distribution of reads and writes.
    #[serde(skip)]
    pub distribution: Distribution,
    /// Requests before those that count.
    #[serde(skip)]
    pub warm_up_requests: u64,
}

impl From<RunResult> for Measured {
    fn from(run: RunResult) -> Self {
        let by_slice = run.slices.iter().map(|slice| Responses {
            sum_ns: slice.reads.response_ns_sum + slice.writes.response_ns_sum,
            count: slice.reads.requests + slice.writes.requests,
        });
        Self {
            drive_time_ns: drive_time_ns(&run),
            response: run.response,
            read_response: run.read_response,
            write_response: run.write_response,
            by_slice: by_slice.collect(),
            distribution: run.response_distribution,
            warm_up_requests: run.warm_up_requests,
        }
    }
}

/// Head time of a drive for a read or write of the whole load, on average over all drives.
fn drive_time_ns(run: &RunResult) -> f64 {
    let requests = run.response.count.max(1) as f64;
    let arms = run.arms_ns as f64 / run.elapsed_ns.max(1) as f64;
    run.head_time.total_ns() as f64 / requests / arms.max(1.0)
}

/// Relative difference of a mean or a percentile: (new - old) / old.
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
            longest: relative(old.response.max_ns as f64, self.response.max_ns as f64),
            reads: relative(old.read_response.mean_ns, self.read_response.mean_ns),
            reads_p99: relative(old.read_response.p99_ns as f64, self.read_response.p99_ns as f64),
            writes: relative(old.write_response.mean_ns, self.write_response.mean_ns),
            drive_time: relative(old.drive_time_ns, self.drive_time_ns),
        }
    }
}

/// Changes of responses as (new - old) / old: -0.4 is 40 % less.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Effect {
    /// Difference of the mean.
    pub mean: f64,
    /// The smallest change of the mean in any slice, and of the whole.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// Difference of the 99th percentile.
    pub p99: f64,
    /// Difference of the longest response.
    pub longest: f64,
    /// Difference of the mean of reads.
    pub reads: f64,
    /// Difference of the 99th percentile of reads.
    pub reads_p99: f64,
    /// Difference of the mean of writes.
    pub writes: f64,
    /// Difference of the drive time a request.
    pub drive_time: f64,
}

/// Changes of a time below which it counts as equal.
pub const NOTICEABLE: f64 = 0.02;

impl Effect {
    /// The change of a goal's quantity.
    pub fn of(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Mean => self.mean,
            Goal::P99Reads => self.reads_p99,
            Goal::Throughput => self.drive_time,
        }
    }

    /// The smallest and the largest change of it. Only means are known by slice.
    pub fn spread(&self, goal: Goal) -> (f64, f64) {
        match goal {
            Goal::Mean => (self.least, self.most),
            Goal::P99Reads | Goal::Throughput => (self.of(goal), self.of(goal)),
        }
    }

    /// True if it reaches the goal noticeably, and makes the longest hundredth of all requests or of reads
    /// noticeably longer.
    pub fn is_paid_by_tail(&self, goal: Goal) -> bool {
        self.of(goal) <= -NOTICEABLE && self.p99.max(self.reads_p99) >= NOTICEABLE
    }

    /// True if it is noticeable, and a slice shows a noticeable effect in the other direction.
    pub fn is_disputed(&self, goal: Goal) -> bool {
        let (value, (least, most)) = (self.of(goal), self.spread(goal));
        let against = if value < 0.0 { most } else { -least };
        value.abs() >= NOTICEABLE && against >= NOTICEABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(means_ns: [u64; 2]) -> Measured {
        let by_slice: Vec<Responses> =
            means_ns.map(|mean| Responses { sum_ns: 10 * u128::from(mean), count: 10 }).into();
        let mean_ns = means_ns.iter().sum::<u64>() as f64 / 2.0;
        let response = Summary { mean_ns, ..Summary::default() };
        let (read_response, write_response) = (response, response);
        Measured {
            response,
            read_response,
            write_response,
            by_slice,
            drive_time_ns: 0.0,
            distribution: Distribution::default(),
            warm_up_requests: 0,
        }
    }

    #[test]
    fn effect_spans_slices_disputed_on_disagreement() {
        let old = measured([100, 200]);
        let better = measured([50, 150]).from(&old);
        assert_eq!((better.mean, better.least, better.most), (-1.0 / 3.0, -0.5, -0.25));
        assert!(!better.is_disputed(Goal::Mean));
        let mixed = measured([50, 220]).from(&old);
        assert!(mixed.mean < -0.05 && mixed.is_disputed(Goal::Mean));
        let worse = measured([90, 400]).from(&old);
        assert!(worse.mean > 0.5 && worse.is_disputed(Goal::Mean));
        assert!(
            !measured([50, 202]).from(&old).is_disputed(Goal::Mean),
            "the second slice is 1 % worse"
        );
        assert!(!measured([99, 199]).from(&old).is_disputed(Goal::Mean), "less than 2 %");
    }
}
