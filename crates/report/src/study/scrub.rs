//! How long a scrub takes, in words.

use freewheel_study::{ArmScrub, ScrubEnd, ScrubEstimate, Study};

use super::Finding;
use crate::page::{TIME_MAX_S, TOO_LONG, about, ms, percent, rate, rounds, span};
use freewheel_units::grouped;

/// None when it was not asked for. A line of its detail is of one thing, what most ask first.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let estimate = study.scrub.as_ref()?;
    let lines = [
        course(estimate),
        idle(study, estimate),
        pace(study, estimate),
        latency_of(estimate.slowest()),
        switched_off(study, estimate),
        grounds(study, estimate),
    ];
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    Some(Finding { headline: headline(study, estimate), detail: lines.join("\n") })
}

/// Of all actuators together.
fn headline(study: &Study, estimate: &ScrubEstimate) -> String {
    let Some(seconds) = estimate.seconds() else {
        return "This load leaves no rotational gap in which a scrub could read anything.".into();
    };
    let time = about(seconds);
    let (load, cost) = match (study.has_growing_queue(), study.dependent_replay) {
        (true, _) => ("this overload", "if the overload went on as long".into()),
        (_, true) => ("your load at this drive's pace", cost(study, estimate)),
        (_, false) => ("your load", cost(study, estimate)),
    };
    let whole = estimate.seconds_with_idle_time().map_or(String::new(), |seconds| {
        format!(" In idle time as well it would read all of it in {} at best.", about(seconds))
    });
    if seconds > TIME_MAX_S {
        return format!(
            "In the rotational gaps of {load} a scrub of this drive takes {TOO_LONG}: too long to estimate.{whole}"
        );
    }
    let rest = match estimate.end() {
        ScrubEnd::Complete => {
            return format!("A scrub of this drive would finish in {time} under {load}, {cost}.");
        }
        ScrubEnd::Unfinished | ScrubEnd::EffortSpent => "how the rest fares is not known",
        ScrubEnd::OutOfReach | ScrubEnd::NoGaps => "hardly any gap reaches the rest",
    };
    // Of one arm: where several fade, each at another time, the end is what they have in common.
    let (share, time, rest) = match &estimate.arms[..] {
        [ArmScrub { faded: Some(faded), .. }] => (
            faded.read_share,
            about(faded.seconds),
            "after that it reads at less than a tenth of its first rate",
        ),
        _ => (estimate.read_share(), time, rest),
    };
    let reached = percent(share);
    format!(
        "A scrub would read {reached} of this drive in {time} under {load}, {cost}; {rest}.{whole}"
    )
}

/// Whose pace the load has.
fn pace(study: &Study, estimate: &ScrubEstimate) -> String {
    match study.dependent_replay && estimate.seconds().is_some() {
        true => "At this drive's pace: a request comes a think time after the one that it had waited for; `--replay arrivals` keeps the recorded times.".into(),
        false => String::new(),
    }
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
                "at the cost of a mean response of {with} ms instead of {without} ms, as the drive must give its gaps away"
            )
        }
    }
}

fn course(estimate: &ScrubEstimate) -> String {
    let whose = match estimate.arms.len() {
        1 => String::new(),
        _ => format!("Of actuator {}, the slowest: ", estimate.slowest_number() + 1),
    };
    let often = estimate.rounds_a_day();
    let often =
        often.map_or(String::new(), |often| format!("That is {} scrubs a day. ", rounds(often)));
    often + &whose + &course_of(estimate.slowest())
}

/// What the estimate rests on.
fn grounds(study: &Study, estimate: &ScrubEstimate) -> String {
    if estimate.slowest().simulated_gaps == 0 {
        return String::new();
    }
    let effort = estimate.effort;
    let error = estimate.slowest().error.map_or(String::new(), |error| {
        format!(
            " Its time to the end has a standard error of {}, from chance and from the length of leaps.",
            percent(error)
        )
    });
    format!(
        "The estimate simulated {} gaps {}, by a scheduler inside the drive, for a load that goes on like the trace.{error} It used {:.0} of {} s of processor time, counted as work (`--scrub-effort`). {} of its decisions were cut short at {} nodes. On 24 TB these limits changed times by up to 7 % for the first 15 % of the drive. Where the gaps give less than a tenth of their first rate, they changed them by up to two fifths. Beside scans simulated gap by gap, estimates were up to a quarter too short on a small drive, and within a tenth for the first 15 % of 24 TB (`freewheel reproduce beyond.scrub beyond.scrub-24tb`). Later times on so large a drive are not validated.",
        grouped(estimate.slowest().simulated_gaps),
        study.baseline().under(),
        effort.spent_seconds,
        effort.asked_seconds,
        percent(effort.cut_short as f64 / estimate.decisions.max(1) as f64),
        effort.nodes_max,
    )
}

/// What became of the latency; nothing where there is none. The page has more of it.
fn latency_of(arm: &ArmScrub) -> String {
    let (Some(efficiency), Some(all), [first, .., last]) =
        (arm.efficiency, arm.shares, arm.course.as_slice())
    else {
        return String::new();
    };
    let shares = [
        all.transfer_share,
        first.shares.transfer_share,
        last.shares.transfer_share,
        all.extra_seek_share,
        all.unused_share,
    ];
    let [used, used_first, used_last, seeks, left] = shares.map(percent);
    let (efficiency, potential) = (percent(efficiency), rate(arm.potential_bytes_per_second));
    format!(
        "Until the end it reads, with what requests read anyway, {efficiency} of the {potential} that the latency which it can use would carry at the mean media rate. Of that latency free transfers take {used} ({used_first} at first, {used_last} at last) and extra seeks {seeks}; {left} is left."
    )
}

fn course_of(arm: &ArmScrub) -> String {
    if arm.end == ScrubEnd::NoGaps {
        return "What the drive's buffer serves, and what follows on the request before, waits for no rotation.".into();
    }
    let when = |name: &str, seconds: Option<f64>| {
        seconds.map(|seconds| format!("{name} after {}", span(seconds)))
    };
    let times = [when("half", arm.seconds_50_percent), when("95 %", arm.seconds_95_percent)];
    let times: Vec<String> = times.into_iter().flatten().collect();
    let read =
        (!times.is_empty()).then(|| format!("Of the drive it has read {}.", times.join(", ")));
    let last = match arm.last_5_percent.zip(arm.last_1_percent) {
        Some((five, one)) => Some(format!(
            "The last 5 % take {} of the time, the last 1 % {}; promoting the last blocks to requests of their own (`promote_tail` of `freewheel sim`) shortens that at a stated cost.",
            percent(five),
            percent(one)
        )),
        None => rest_of(arm),
    };
    [read, last].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// When it gets slow, and where it ends, if it does not read all.
fn rest_of(arm: &ArmScrub) -> Option<String> {
    let faded = arm.faded.map_or(String::new(), |faded| {
        format!(
            "From {} on, with {} read, the gaps give less than a tenth of what they gave at first. ",
            span(faded.seconds),
            percent(faded.read_share)
        )
    });
    let why = match arm.end {
        ScrubEnd::Unfinished => "what was simulated of the load is over",
        ScrubEnd::EffortSpent => "its effort is spent (`--scrub-effort`)",
        _ => "next to nothing comes any more",
    };
    let (seconds, five) = (arm.seconds?, arm.last_5_percent_of_read?);
    Some(format!(
        "{faded}The estimate ends after {}, with {} read, as {why}; the last 5 % of what is read take {} of that time.",
        span(seconds),
        percent(arm.read_share),
        percent(five)
    ))
}

fn switched_off(study: &Study, estimate: &ScrubEstimate) -> String {
    if !estimate.free_blocks_before_switched_off {
        return String::new();
    }
    let given_away = "The drive must give its gaps away: by its file it reads the blocks that pass before the wanted ones into its own buffer (`keep_free_blocks_before`). That is switched off here";
    if study.has_growing_queue() {
        return format!("{given_away}; what that costs the load does not show in an overload.");
    }
    let baseline = &study.baseline().result.response;
    let [before, without] = [baseline.mean_ns, estimate.response_ns_mean].map(ms);
    let [before_p99, without_p99] =
        [baseline.p99_ns, estimate.response_ns_p99].map(|ns| ms(ns as f64));
    let p99 = match before_p99 == without_p99 {
        true => format!("leaves p99 at {without_p99} ms"),
        false => format!("p99 from {before_p99} to {without_p99} ms"),
    };
    let effect = match before == without {
        true => format!("hardly changes the mean response time of {before} ms"),
        false => format!("takes the mean response time from {before} to {without} ms and {p99}"),
    };
    format!("{given_away}, which by itself {effect}.")
}

fn idle(study: &Study, estimate: &ScrubEstimate) -> String {
    if estimate.idle_share <= 0.0 {
        return "The drive is never idle.".into();
    }
    let seconds = study.drive.capacity_bytes as f64
        / (study.drive.media_bytes_per_second * estimate.arms.len() as f64)
        / estimate.idle_share;
    let alone = span(seconds);
    let best = match estimate.seconds_with_idle_time() {
        Some(both) if estimate.seconds().is_some() => {
            format!("{} at best, from idle time alone in {alone}", span(both))
        }
        _ => format!("{alone} at best"),
    };
    format!(
        "The drive is idle {} of the time. If the scrub used all of that too (`freewheel scrub --idle-after`, `examples/idle.toml`), the whole drive would be read in {best}; but a request that comes meanwhile waits for the head.",
        percent(estimate.idle_share)
    )
}
