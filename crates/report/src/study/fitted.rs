//! Fit of the drive to the recorded responses.

use freewheel_study::{
    DriveFit, FIT_REQUESTS_MAX, FIT_SLICES, FIT_USED_WITHIN, GOOD_SHARE, HalfFit, HalfResponses,
    LEFT_OUT, Study,
};
use freewheel_units::grouped;

use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{fine_ratio, ms, percent, rpm};

/// Distance between the drive and the recorded one, on the half of the trace that the fit has not seen.
pub(super) fn finding(study: &Study, fit: &DriveFit) -> Finding {
    let judged = fit.judged();
    let means = match study.measured.recorded_mean_ns() {
        Some(recorded) => format!(
            "The recorded system answered in {} ms on average, this drive in {} ms.",
            ms(recorded),
            ms(study.baseline().result.response.mean_ns)
        ),
        None => String::new(),
    };
    let all = study.trace.info.reads + study.trace.info.writes;
    let taken = fit.before.iter().map(|half| half.requests).sum::<u64>();
    let half = if taken < all {
        format!("half of {} of the requests", percent(taken as f64 / all as f64))
    } else {
        "half of the requests".into()
    };
    let off = percent(judged.demerit_share);
    let [before, after] = [&fit.before[1], &fit.after[1]].map(|half| percent(half.demerit_share));
    let headline = match (fit.is_good(), fit.is_used()) {
        (true, true) => format!(
            "Fitted to {half}, the drive has response times distributed like the recorded ones: on the other half off by {off} of the mean, before by {before}."
        ),
        (true, false) => format!(
            "The drive has response times distributed like the recorded ones as it is: off by {off} of the mean, and fitted by {after}."
        ),
        (false, true) => format!(
            "{means} The best drive of the search, fitted to {half}, is off by {off} of the mean on the other half, before by {before}: it is not the recorded one."
        ),
        (false, false) => format!(
            "{means} The drive is off by {off} of the mean, and the best of the search by {after}: neither is the recorded one. The study uses the drive's file."
        ),
    };
    let topic = if fit.is_good() { Topic::FittedDrive } else { Topic::RecordedResponses };
    let mut finding = Finding::new(topic, Confidence::Simulated, headline).number(
        "demerit as a share of the recorded mean",
        judged.demerit_share,
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
    let limit = if values.is_at_a_limit() { " It lies at a limit of the search." } else { "" };
    let is_used = if fit.is_used() { "It is used" } else { "It is not used" };
    let drive = format!(
        "The best of {} drives that were tried is {} with seek times x{}, {} turns a minute, {} ms more for each command, and {cache}. {is_used}.{limit}",
        grouped(fit.drives_tried),
        fit.drive,
        fine_ratio(values.seek),
        rpm(values.rpm),
        ms(values.overhead_ns as f64),
    );
    vec![
        drive,
        half("As its file says, on the half that is fitted", &fit.before[0]),
        half("Fitted, on the same half", &fit.after[0]),
        half("As its file says, on the other half", &fit.before[1]),
        half("Fitted, on the other half", &fit.after[1]),
        format!(
            "Fitted is every other of {FIT_SLICES} slices of the trace, of its first {} requests if it has more. Up to {} of the mean counts as alike, in both halves. A fit is used where it takes the demerit of the fitted half down to that, or to {} of what it was. The demerit is the root mean square of the distance between the distributions without their longest {}, reads and writes each for themselves: it does not say whether each request is answered alike.",
            grouped(FIT_REQUESTS_MAX as u64),
            percent(GOOD_SHARE),
            percent(FIT_USED_WITHIN),
            percent(LEFT_OUT)
        ),
    ]
}

fn half(words: &str, half: &HalfFit) -> String {
    format!(
        "{words}, {} requests, in ms: recorded {}; simulated {}; demerit {}.",
        grouped(half.requests),
        responses(half.recorded),
        responses(half.simulated),
        ms(half.demerit_ns)
    )
}

fn responses(of: HalfResponses) -> String {
    format!("mean {}, median {}, p99 {}", ms(of.mean_ns), ms(of.p50_ns), ms(of.p99_ns))
}
