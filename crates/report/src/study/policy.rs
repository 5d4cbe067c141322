//! Scheduling policy that serves the load best, and the results of the others.

use freewheel_study::changes::NOTICEABLE;
use freewheel_study::figure::Figure;
use freewheel_study::{PolicyRun, Study};

use super::{overload, signed};
use crate::finding::{Confidence, Cost, Finding, Topic, Unit};
use crate::numbers::{average, ms, percent};

/// None when there is a single run.
pub(super) fn policy(study: &Study) -> Option<Finding> {
    let (baseline, best) = (study.baseline(), study.surest_policy());
    if study.policies().count() < 2 && !baseline.own_queue || baseline.result.response.count == 0 {
        return None;
    }
    if study.overload().is_some() {
        return Some(overload::policy(study));
    }
    let change = study.worse_mean_change(best);
    let finding = if baseline.own_queue && change > 0.0 {
        own_queue_is_best(study, baseline, study.best_policy())
    } else if change > -NOTICEABLE {
        none_helps(study, baseline)
    } else {
        one_helps(study, baseline, best)
    };
    Some(finding.figure(means(study)))
}

/// The policy that looks best under the study's replay, where it is not under the other one.
fn turning(study: &Study) -> String {
    let best = study.best_policy();
    let ((own, Some(other)), Some(replay)) = (study.mean_changes(best), &study.other_replay) else {
        return String::new();
    };
    if own <= -NOTICEABLE && other > -NOTICEABLE {
        format!(
            " {} changes it by {} here, but by {} {}.",
            best.title,
            signed(own),
            signed(other),
            replay.words()
        )
    } else {
        String::new()
    }
}

/// Effect of a policy under the other replay, in brackets.
fn under_other_replay(study: &Study, run: &PolicyRun) -> String {
    let both = study.mean_changes(run).1.zip(study.other_replay.as_ref());
    let words = both.map(|(change, replay)| format!(" ({} {})", signed(change), replay.words()));
    words.unwrap_or_default()
}

/// That a sentence holds for both replays, where there are two.
fn under_both(study: &Study) -> &'static str {
    if study.baseline().other_replay.is_some() { " under both replays" } else { "" }
}

/// The mean response of every run.
fn means(study: &Study) -> Figure {
    Figure::Values {
        quantity: "mean response time, ms",
        bars: study
            .runs
            .iter()
            .map(|run| (run.title.clone(), run.result.response.mean_ns / 1e6))
            .collect(),
    }
}

fn finding(headline: String) -> Finding {
    Finding::new(Topic::Policy, Confidence::Simulated, headline)
}

fn mean(run: &PolicyRun) -> String {
    ms(run.result.response.mean_ns)
}

fn p99(run: &PolicyRun) -> String {
    ms(run.result.response.p99_ns as f64)
}

fn one_helps(study: &Study, baseline: &PolicyRun, best: &PolicyRun) -> Finding {
    let (before, after) = (&baseline.result.response, &best.result.response);
    let gain = 1.0 - after.mean_ns / before.mean_ns;
    let sure = -study.worse_mean_change(best);
    let headline = format!(
        "{} would cut the mean response time by {}, from {} ms {} to {} ms{}.{}",
        best.title,
        percent(gain),
        mean(baseline),
        baseline.under(),
        mean(best),
        under_other_replay(study, best),
        longer_tail(baseline, best)
    );
    finding(headline)
        .number("shorter mean response", sure, Unit::Share)
        .cost(Cost::Setting)
        .detail(tails(study, baseline, best))
        .detail(others(study, &[baseline, best]))
        .detail(choice(baseline))
        .detail(one_at_a_time(baseline))
}

/// A shorter mean that is paid with a longer p99 is half of the truth.
fn longer_tail(baseline: &PolicyRun, best: &PolicyRun) -> String {
    let [before, after] = [baseline, best].map(|run| run.result.response.p99_ns as f64);
    if after > before * (1.0 + NOTICEABLE) {
        format!(" Its p99 is longer: {} ms instead of {} ms.", p99(best), p99(baseline))
    } else {
        String::new()
    }
}

fn tails(study: &Study, baseline: &PolicyRun, best: &PolicyRun) -> String {
    let [flush_before, flush_after] =
        [baseline, best].map(|run| ms(run.result.flush_response.mean_ns));
    let flushes = match study.trace.info.flushes {
        0 => String::new(),
        _ => format!(" A flush takes {flush_after} ms instead of {flush_before} ms on average."),
    };
    let [wait_before, wait_after] = [baseline, best].map(|run| ms(run.result.queue_ns_max as f64));
    format!(
        "p99 goes from {} ms to {} ms, and the longest wait for the head from {wait_before} ms to {wait_after} ms.{flushes}",
        p99(baseline),
        p99(best)
    )
}

/// That no policy lowers the mean is no reason to take any of them: some may raise it.
fn none_helps(study: &Study, baseline: &PolicyRun) -> Finding {
    let worst = study.worst_policy();
    let before = baseline.result.response.mean_ns;
    let loss = worst.result.response.mean_ns / before - 1.0;
    let harm = if loss >= NOTICEABLE {
        format!(" {} would raise it by {}, to {} ms.", worst.title, percent(loss), mean(worst))
    } else {
        String::new()
    };
    let headline = format!(
        "No policy that was compared lowers the mean response time of {} ms noticeably{}.{harm}{}{}",
        mean(baseline),
        under_both(study),
        turning(study),
        reads_alone(study, baseline)
    );
    finding(headline)
        .number(format!("mean response {}", baseline.under()), before, Unit::Nanoseconds)
        .detail(others(study, &[baseline]))
        .detail(choice(baseline))
        .detail(one_at_a_time(baseline))
}

fn own_queue_is_best(study: &Study, own: &PolicyRun, best: &PolicyRun) -> Finding {
    let headline = format!(
        "No policy outside the drive that gives it one command at a time beats the {}, whose mean response time is {} ms{}.{}{}",
        own.title,
        mean(own),
        under_both(study).replace(" under", ", under"),
        turning(study),
        reads_alone(study, own)
    );
    finding(headline)
        .number("mean response in the drive's queue", own.result.response.mean_ns, Unit::Nanoseconds)
        .detail(format!(
            "Under {} the drive has one command at a time and a mean of {} ms. While it works on one, it can neither take the next into its buffer nor serve it from there.",
            best.title,
            mean(best)
        ))
        .detail(format!(
            "p99 is {} ms in the drive's queue and {} ms under {}.",
            p99(own),
            p99(best),
            best.title
        ))
        .detail(others(study, &[own, best]))
        .detail(choice(own))
}

/// Words for a load whose mean no policy lowers: the policy that lowers the mean of reads, if one does.
fn reads_alone(study: &Study, baseline: &PolicyRun) -> String {
    let best = study.policies().min_by(|a, b| mean_read_ns(a).total_cmp(&mean_read_ns(b)));
    match best.filter(|best| 1.0 - mean_read_ns(best) / mean_read_ns(baseline) >= NOTICEABLE) {
        None => String::new(),
        Some(best) => format!(
            " Reads alone do better under {}: {} ms instead of {} ms.",
            best.title,
            ms(mean_read_ns(best)),
            ms(mean_read_ns(baseline))
        ),
    }
}

fn mean_read_ns(run: &PolicyRun) -> f64 {
    run.result.read_response.mean_ns
}

/// Comparison of policies with the drive's own queue.
fn one_at_a_time(baseline: &PolicyRun) -> &'static str {
    if baseline.own_queue { "Under a policy the drive has one command at a time." } else { "" }
}

/// Means of the policies that are not in `told`.
fn others(study: &Study, told: &[&PolicyRun]) -> String {
    let rest = study.policies().filter(|run| told.iter().all(|told| told.title != run.title));
    let rest: Vec<String> =
        rest.map(|run| format!("{} ms under {}", mean(run), run.title)).collect();
    if rest.is_empty() { String::new() } else { format!("The mean is {}.", rest.join(", ")) }
}

/// Number of requests that a policy chooses from.
fn choice(baseline: &PolicyRun) -> String {
    format!(
        "On average {} requests are outstanding {}: a policy can choose only among those that wait.",
        average(baseline.result.outstanding_mean),
        baseline.under()
    )
}
