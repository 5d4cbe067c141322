//! Traces of too few requests: for anything, for more than hints, or for changes.

use freewheel_model::stats::Summary;
use freewheel_study::{REQUESTS_MIN, Study};
use freewheel_units::grouped;

use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::percent;

/// Uncertainty of the mean response, as a share of it, from which results are hints.
const UNCERTAIN: f64 = 0.1;

/// Validity of a small sample's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Nothing,
    Hints,
    AllButChanges,
}

/// There are not enough requests.
pub(super) struct SmallSample {
    pub finding: Finding,
    pub reach: Reach,
}

/// Two standard errors of the mean, as a share of it: were responses independent, 95 % of all such traces
/// would lie within.
pub(super) fn uncertainty(response: &Summary) -> f64 {
    2.0 * response.coefficient_of_variation / (response.count.max(1) as f64).sqrt()
}

/// None where there are enough. Of an idle drive it is sure that no change is needed.
pub(super) fn few(study: &Study, is_idle: bool) -> Option<SmallSample> {
    let response = &study.baseline().result.response;
    if response.count < REQUESTS_MIN {
        return Some(SmallSample { finding: too_few(response.count), reach: Reach::Nothing });
    }
    let is_without_changes = study.options.changes && study.changes.is_none();
    if let Some(finding) = hint(response, is_idle) {
        let no_changes = if is_without_changes { without_changes() } else { String::new() };
        return Some(SmallSample { finding: finding.detail(no_changes), reach: Reach::Hints });
    }
    let finding = || record_longer(without_changes());
    is_without_changes.then(|| SmallSample { finding: finding(), reach: Reach::AllButChanges })
}

fn record_longer(headline: String) -> Finding {
    Finding::new(Topic::FewRequests, Confidence::Counted, headline).action("Record for longer.")
}

fn too_few(count: u64) -> Finding {
    record_longer(format!(
        "This trace is too short to judge by: {} of its reads and writes were served.",
        grouped(count)
    ))
    .number("served reads and writes", count as f64, Unit::Count)
    .detail(format!(
        "From {REQUESTS_MIN} requests on this page reports the drive, its policies and a scrub. The 99th percentile of fewer is simply the longest response."
    ))
}

/// None where the mean is known well.
fn hint(response: &Summary, is_idle: bool) -> Option<Finding> {
    let uncertainty = uncertainty(response);
    let count = grouped(response.count);
    let headline = if is_idle {
        format!(
            "This trace is short, with {count} requests: times and gains below are hints. That nothing is needed does not hang on them."
        )
    } else {
        format!("This trace is short: with {count} requests every result below is a hint at most.")
    };
    (uncertainty > UNCERTAIN).then(|| {
        record_longer(headline)
            .number("uncertainty of the mean response", uncertainty, Unit::Share)
            .detail(format!(
                "Another piece of the same load may well have a mean response time that is {} higher or lower, and more where requests come in bursts.",
                percent(uncertainty)
            ))
    })
}

fn without_changes() -> String {
    format!(
        "No change was tried: fewer than {REQUESTS_MIN} reads and writes are left behind those that fill caches."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_requests_turn_mean_into_hint() {
        let of = |count, coefficient_of_variation| Summary {
            count,
            coefficient_of_variation,
            ..Summary::default()
        };
        let said = hint(&of(101, 0.6), false).unwrap();
        assert!(said.number.unwrap().value > UNCERTAIN && said.headline.contains("a hint at most"));
        assert!(hint(&of(101, 0.5), false).is_none());
        assert!(hint(&of(3000, 5.0), false).is_some(), "a mean of rare long responses");
        let idle = hint(&of(101, 0.6), true).unwrap();
        assert!(!idle.headline.contains("at most") && idle.headline.contains("nothing is needed"));
    }

    #[test]
    fn few_requests_not_excused_by_alike_responses() {
        let of = |count| Summary { count, ..Summary::default() };
        assert!([0, 99].iter().all(|&count| too_few(count).action.is_some()));
        assert!(hint(&of(REQUESTS_MIN), false).is_none());
    }
}
