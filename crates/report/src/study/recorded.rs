//! Recorded responses of the trace, beside those that are simulated.

use freewheel_study::{REQUESTS_MIN, Study};
use freewheel_trace::DurationSummary;

/// Recorded means within this factor of the simulated one are those of a drive like it.
const ALIKE: f64 = 1.5;

/// True if the recorded system answered much later or sooner than the drive does here.
pub(super) fn is_unlike_recorded(study: &Study) -> bool {
    let response = &study.baseline().result.response;
    let ratio = study.measured.recorded_mean_ns().map(|recorded| recorded / response.mean_ns);
    response.count >= REQUESTS_MIN
        && ratio.is_some_and(|ratio| !(1.0 / ALIKE..ALIKE).contains(&ratio))
}

/// Number and sum of recorded responses.
pub(super) fn recorded_sum(summaries: &[Option<DurationSummary>]) -> (u64, f64) {
    summaries.iter().flatten().fold((0, 0.0), |(count, sum_ns), summary| {
        (count + summary.count, sum_ns + summary.mean_ns * summary.count as f64)
    })
}
