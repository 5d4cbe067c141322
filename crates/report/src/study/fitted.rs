//! What a fit to the recorded responses says of the drive.

use freewheel_study::{DriveFit, GOOD_SHARE, HalfFit, HalfResponses};
use freewheel_units::grouped;

use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{ms, percent};

/// How near the drive is to the recorded one, on the half of the trace that the fit has not seen.
pub(super) fn finding(fit: &DriveFit) -> Finding {
    let judged = fit.judged();
    let off = percent(judged.demerit_share());
    let [before, after] = [&fit.before[1], &fit.after[1]].map(|half| percent(half.demerit_share()));
    let headline = match (fit.is_good(), fit.is_used()) {
        (true, true) => format!(
            "Fitted to half of the trace, the drive answers the other half like the recorded one: off by {off} of the mean, before by {before}."
        ),
        (true, false) => format!(
            "The drive answers like the recorded one as it is: off by {off} of the mean, and fitted by {after}."
        ),
        (false, true) => format!(
            "No drive that was tried answers like the recorded one. The best, fitted to half of the trace, is off by {off} of the mean on the other half, before by {before}."
        ),
        (false, false) => format!(
            "No drive that was tried answers like the recorded one: this one is off by {off} of the mean, the best fit by {after}. The study uses the drive's file."
        ),
    };
    let topic = if fit.is_good() { Topic::FittedDrive } else { Topic::RecordedResponses };
    let mut finding = Finding::new(topic, Confidence::Simulated, headline).number(
        "demerit as a share of the recorded mean",
        judged.demerit_share(),
        Unit::Share,
    );
    if !fit.is_good() {
        finding = finding.action(
            "Record the responses at the drive, below caches and controllers, or measure the drive with `freewheel extract`.",
        );
    }
    details(fit).into_iter().fold(finding, Finding::detail)
}

fn details(fit: &DriveFit) -> Vec<String> {
    let values = fit.values;
    let cache =
        if values.write_cache_off { "its write cache off" } else { "its write cache as it is" };
    let is_used = if fit.is_used() { "It is used" } else { "It is not used" };
    let drive = format!(
        "The best of {} drives that were tried is {} with seek times x{:.2}, {:.0} turns a minute, {} ms more for each command, and {cache}. {is_used}.",
        grouped(fit.drives_tried),
        fit.drive,
        values.seek,
        values.rpm,
        ms(values.overhead_ns as f64),
    );
    let half = |words: &str, half: &HalfFit| {
        let of = |of: HalfResponses| {
            format!("mean {}, median {}, p99 {}", ms(of.mean_ns), ms(of.p50_ns), ms(of.p99_ns))
        };
        format!(
            "{words}, {} requests, in ms: recorded {}; simulated {}; demerit {}.",
            grouped(half.requests),
            of(half.recorded),
            of(half.simulated),
            ms(half.demerit_ns)
        )
    };
    vec![
        drive,
        half("As its file says, on the half that is fitted", &fit.before[0]),
        half("Fitted, on the same half", &fit.after[0]),
        half("As its file says, on the other half", &fit.before[1]),
        half("Fitted, on the other half", &fit.after[1]),
        format!(
            "The half that is fitted is every other twentieth of the trace, of its first 60,000 requests if it has more. Up to {} of the mean counts as alike. The demerit is the root mean square of the distance between the distributions without their longest thousandth, reads and writes each for themselves.",
            percent(GOOD_SHARE)
        ),
    ]
}
