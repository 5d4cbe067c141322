//! What the trace records of responses, beside those that are simulated.

use freewheel_study::{REQUESTS_MIN, Study};
use freewheel_trace::{Character, DurationSummary};

/// Recorded means within this factor of the simulated one are those of a drive like it.
const ALIKE: f64 = 1.5;

/// The mean of the recorded responses of reads and writes; None where none was recorded.
pub(super) fn recorded_mean_ns(trace: &Character) -> Option<f64> {
    let times = &trace.response;
    let (count, sum_ns) = recorded_sum(&[times.read, times.write]);
    (count > 0).then(|| sum_ns / count as f64)
}

/// Whether the recorded system answered much later or sooner than the drive does here.
pub(super) fn is_unlike_recorded(study: &Study) -> bool {
    let response = &study.baseline().result.response;
    let ratio = recorded_mean_ns(&study.trace).map(|recorded| recorded / response.mean_ns);
    response.count >= REQUESTS_MIN
        && ratio.is_some_and(|ratio| !(1.0 / ALIKE..ALIKE).contains(&ratio))
}

/// Number and sum of recorded responses.
pub(super) fn recorded_sum(summaries: &[Option<DurationSummary>]) -> (u64, f64) {
    summaries.iter().flatten().fold((0, 0.0), |(count, sum_ns), summary| {
        (count + summary.count, sum_ns + summary.mean_ns * summary.count as f64)
    })
}
