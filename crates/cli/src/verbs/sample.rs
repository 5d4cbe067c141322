//! Random samples of a served drive, and what they say of all of it.

use std::time::Duration;

use clap::Args;
use freewheel::control::{SampleCounter, SampleRequest, Task, TaskState};
use freewheel::measures::{Bytes, SimDuration};

use crate::failure::Failure;

/// Options for a sample, and its time.
#[derive(Args)]
pub struct SampleArgs {
    /// Read a random sample of this share of the blocks instead of all, as 5%
    #[arg(
        long, value_name = "SHARE", value_parser = super::share,
        conflicts_with = "repeat"
    )]
    sample: Option<f64>,
    /// Size of a unit of the sample; if not given, a block
    #[arg(long, value_name = "SIZE", requires = "sample")]
    sample_unit: Option<Bytes>,
    /// Seed of the draw: the same one draws the same units
    #[arg(long, value_name = "N", default_value = "1", value_parser = super::seed, requires = "sample")]
    seed: u64,
    /// End the sample after this time, with what has come
    #[arg(long = "for", value_name = "TIME", requires = "sample", conflicts_with = "detach")]
    limit: Option<SimDuration>,
}

impl SampleArgs {
    /// The sample that the server is asked for.
    pub fn request(&self) -> Option<SampleRequest> {
        let unit_bytes = self.sample_unit.map(Bytes::get);
        self.sample.map(|share| SampleRequest { share, unit_bytes, seed: self.seed })
    }

    /// Longest time of the sample.
    pub fn limit(&self) -> Option<Duration> {
        self.limit.map(|limit| Duration::from_nanos(limit.ns()))
    }

    /// True if a task was ended because its time was over.
    pub fn is_over(&self, task: &Task) -> bool {
        task.state == TaskState::Aborted
            && self.limit.is_some_and(|limit| task.elapsed_ns >= limit.ns())
    }
}

/// A counter for the sample of a task.
pub fn counter(task: &Task) -> Result<SampleCounter, Failure> {
    let report = task.sample.clone();
    report.map(SampleCounter::new).ok_or_else(|| {
        Failure::failed("the server draws no samples: it is of another version of `freewheel`")
            .with_help("use one version of `freewheel` for both")
    })
}
