//! How long a scrub takes, in words.

use freewheel_sim::background::GapShares;

use super::{Finding, Study};
use crate::page::{ms, percent, rate, rounds, span};
use crate::scrub::{ArmScrub, ScrubEnd, ScrubEstimate, ScrubPoint};

/// None when it was not asked for.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let estimate = study.scrub.as_ref()?;
    let often = estimate.rounds_a_day();
    let mut detail =
        often.map_or(String::new(), |often| format!("That is {} scrubs a day. ", rounds(often)));
    detail.push_str(&course(study, estimate));
    detail.push_str(&switched_off(study, estimate));
    detail.push_str(&idle(study, estimate));
    if estimate.end() == ScrubEnd::OutOfReach {
        detail
            .push_str(" Where a load lies on parts of a drive the estimate tends to be too short.");
    }
    Some(Finding { headline: headline(study, estimate), detail })
}

/// Of all actuators together.
fn headline(study: &Study, estimate: &ScrubEstimate) -> String {
    let Some(seconds) = estimate.seconds() else {
        return "This load leaves no rotational gap in which a scrub could read anything.".into();
    };
    let (reached, time, cost) =
        (reached(estimate.read_share()), span(seconds), cost(study, estimate));
    let rest = match estimate.end() {
        ScrubEnd::Complete => {
            return format!(
                "A scrub of this drive would finish in about {time} under your load, {cost}."
            );
        }
        ScrubEnd::Unfinished => "how the rest fares is not known",
        ScrubEnd::OutOfReach | ScrubEnd::NoGaps => "hardly any gap reaches the rest",
    };
    format!(
        "A scrub would read {reached} of this drive in about {time} under your load, {cost}; {rest}."
    )
}

/// What the load pays: nothing for the scrub, but maybe for the gaps.
fn cost(study: &Study, estimate: &ScrubEstimate) -> String {
    let baseline = study.baseline();
    let before = baseline.result.response.mean_ns;
    if !estimate.free_blocks_before_switched_off || estimate.response_ns_mean <= before {
        return "at no cost to it".into();
    }
    match (ms(estimate.response_ns_mean), ms(before)) {
        (with, without) if with == without => "at hardly any cost to it".into(),
        (with, without) => {
            format!(
                "at the cost of a mean response of {with} ms instead of {without} ms {}",
                baseline.under()
            )
        }
    }
}

/// A share that is not all is not rounded up to all.
pub(super) fn reached(share: f64) -> String {
    match share {
        share if (0.995..1.0).contains(&share) => format!("{:.2} %", (share * 1e4).floor() / 100.0),
        share => percent(share),
    }
}

fn course(study: &Study, estimate: &ScrubEstimate) -> String {
    let arm = estimate.slowest();
    let whose = match estimate.arms.len() {
        1 => String::new(),
        _ => format!("Of actuator {}, the slowest: ", estimate.slowest_number() + 1),
    };
    let how = format!(
        " An estimate from {} simulated gaps {}, by a scheduler inside the drive, for a load that goes on like the trace.",
        arm.simulated_gaps,
        study.baseline().under()
    );
    whose + &course_of(arm) + &how + &latency_of(arm)
}

/// What became of the latency; nothing where there is none.
fn latency_of(arm: &ArmScrub) -> String {
    let (Some(efficiency), Some(all), [first, .., last]) =
        (arm.efficiency, arm.shares, arm.course.as_slice())
    else {
        return String::new();
    };
    let words = |shares: GapShares| {
        let GapShares { transfer_share, extra_seek_share, unused_share } = shares;
        [transfer_share, extra_seek_share, unused_share].map(reached)
    };
    let shares = |point: &ScrubPoint| words(point.shares);
    let [used_all, seeks_all, left_all] = words(all);
    let (potential, efficiency) = (rate(arm.potential_bytes_per_second), percent(efficiency));
    let ([used, seeks, left], [used_last, seeks_last, left_last]) = (shares(first), shares(last));
    format!(
        " The latency that a scrub can use would carry {potential} at the media rate, of which it reads {efficiency} over all: {used_all} of the latency goes into free transfers, {seeks_all} into extra seeks and {left_all} is left; at first {used}, {seeks} and {left}, at last {used_last}, {seeks_last} and {left_last}."
    )
}

fn course_of(arm: &ArmScrub) -> String {
    let Some(half) = arm.seconds_50_percent else {
        return match arm.end {
            ScrubEnd::NoGaps => "What the drive's buffer serves, and what follows on the request before, waits for no rotation.".into(),
            _ => "The requests lie where they lie; a gap is too short for the way to the rest.".into(),
        };
    };
    let late =
        arm.seconds_95_percent.map_or(String::new(), |s| format!(", 95 % after {}", span(s)));
    let of_read = || {
        let five = arm.last_5_percent_of_read?;
        Some(format!(" The last 5 % of what it reads take {} of the time.", percent(five)))
    };
    let last = arm.last_5_percent.zip(arm.last_1_percent).map(|(five, one)| {
        format!(" The last 5 % take {} of the time, the last 1 % {}; promoting the last blocks to requests of their own (`promote_tail` of `freewheel sim`) shortens that at a stated cost.", percent(five), percent(one))
    });
    let last = last.or_else(of_read).unwrap_or_default();
    format!("Half of it is read after {}{late}.{last}", span(half))
}

fn switched_off(study: &Study, estimate: &ScrubEstimate) -> String {
    if !estimate.free_blocks_before_switched_off {
        return String::new();
    }
    let baseline = &study.baseline().result.response;
    let [before, without] = [baseline.mean_ns, estimate.response_ns_mean].map(ms);
    let [before_p99, without_p99] =
        [baseline.p99_ns, estimate.response_ns_p99].map(|ns| ms(ns as f64));
    let effect = match before == without {
        true => format!("hardly changes the mean response time of {before} ms"),
        false => format!(
            "takes the mean response time from {before} to {without} ms, p99 from {before_p99} to {without_p99} ms"
        ),
    };
    format!(
        " The drive must give its gaps away: by its file it reads the blocks that pass before the wanted ones into its own buffer (`keep_free_blocks_before`). That is switched off here, which by itself {effect}."
    )
}

fn idle(study: &Study, estimate: &ScrubEstimate) -> String {
    if estimate.idle_share <= 0.0 {
        return " The drive is never idle.".into();
    }
    let seconds = study.drive.capacity_bytes as f64
        / (study.drive.media_bytes_per_second * estimate.arms.len() as f64)
        / estimate.idle_share;
    format!(
        " The drive is idle {} of the time. From that time alone all of it would be read in {} at best, but a request that comes meanwhile waits for the head.",
        percent(estimate.idle_share),
        span(seconds)
    )
}
