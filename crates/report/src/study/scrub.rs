//! Duration of a scrub, in words.

use freewheel_study::changes::{NOTICEABLE, relative};
use freewheel_study::figure::{Axes, Figure};
use freewheel_study::{ArmScrub, PauseBeforeScrub, ScrubEnd, ScrubEstimate, Study, line};
use freewheel_units::{Bytes, grouped};

use super::scrub_by_command::by_command;
use super::signed;
use crate::finding::{Confidence, Cost, Finding, Topic, Unit};
use crate::numbers::{
    TIME_MAX_S, TOO_LONG, about, ms, percent, rate, rounds, span, whole_ms, whole_seconds,
};

/// None when no estimate was asked for.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let estimate = study.scrub.as_ref()?;
    let headline = format!("{} {}", in_idle_time(study), in_gaps(study, estimate));
    let finding = Finding::new(Topic::Scrub, Confidence::Estimated, headline.trim());
    let finding = match estimate.seconds() {
        Some(seconds) if seconds <= TIME_MAX_S => {
            let (share, seconds) = reached(estimate, seconds);
            let quantity = match share {
                1.0 => "time of a scrub".into(),
                _ => format!("time until {} are read", percent(share)),
            };
            finding
                .number(quantity, seconds, Unit::Seconds)
                .cost(cost(study, estimate))
                .figure(progress(estimate))
        }
        _ => finding,
    };
    Some(
        finding
            .detail(other_pauses(study))
            .detail(by_command(study, cost_of))
            .detail(course(estimate))
            .detail(idle(study, estimate))
            .detail(pace(study, estimate))
            .detail(latency_of(estimate.slowest()))
            .detail(switched_off(study, estimate))
            .detail(grounds(study, estimate))
            .detail(validity(estimate)),
    )
}

/// The part that a reader may count on, with its time: until a single arm's gaps fade, else to the end.
/// Several arms fade at different times, so only the end is common to them.
fn reached(estimate: &ScrubEstimate, seconds: f64) -> (f64, f64) {
    match (estimate.end(), &estimate.arms[..]) {
        (ScrubEnd::Complete, _) => (1.0, seconds),
        (_, [ArmScrub { faded: Some(faded), .. }]) => (faded.read_share, faded.seconds),
        _ => (estimate.read_share(), seconds),
    }
}

/// The scrub in a few words; None where its time is not known.
pub(super) fn in_short(estimate: &ScrubEstimate) -> Option<String> {
    let seconds = estimate.seconds().filter(|seconds| *seconds <= TIME_MAX_S)?;
    let (share, seconds) = reached(estimate, seconds);
    Some(format!("a scrub reads {} in {}", percent(share), about(seconds)))
}

/// Options of hosts today; empty where no idle time is left.
fn in_idle_time(study: &Study) -> String {
    let best = study.idle_scrub.as_ref().and_then(|idle| idle.best());
    let Some((best, seconds)) = best.and_then(|best| Some((best, best.seconds?))) else {
        return String::new();
    };
    let time = if seconds > TIME_MAX_S { TOO_LONG.into() } else { about(seconds) };
    let cost = if best.is_noticed() {
        format!("it costs requests: {}", cost_of(best))
    } else {
        format!("requests do not notice it ({})", cost_of(best))
    };
    let of = if best.requests < study.trace.info.requests {
        format!("; of the first {} requests", grouped(best.requests))
    } else {
        String::new()
    };
    let how = match best.pause_ns {
        0 => "A scrub in idle time, without a pause, takes".to_owned(),
        pause_ns => {
            format!("A scrub in idle time, after pauses of {}, takes", whole_ms(pause_ns))
        }
    };
    format!("{how} {time}, and {cost}{of}.")
}

fn cost_of(pause: &PauseBeforeScrub) -> String {
    let PauseBeforeScrub { mean, p99, reads_p99, .. } = *pause;
    let [mean, p99, reads_p99] = [mean, p99, reads_p99].map(signed);
    format!("mean {mean}, p99 {p99}, p99 of reads {reads_p99}")
}

/// The other pauses that were tried.
fn other_pauses(study: &Study) -> String {
    let Some(idle) = &study.idle_scrub else { return String::new() };
    let best = idle.best().map(|best| best.pause_ns);
    let others = idle.pauses.iter().filter(|pause| Some(pause.pause_ns) != best);
    let words = others.map(|pause| {
        let time = match pause.seconds {
            Some(seconds) if seconds <= TIME_MAX_S => about(seconds),
            Some(_) => TOO_LONG.into(),
            None => "no idle time".into(),
        };
        let name = whole_ms(pause.pause_ns);
        format!("{name}: {time} ({}, of {} requests)", cost_of(pause), grouped(pause.requests))
    });
    let measured = idle.best().map_or(String::new(), |pause| {
        let time = span(pause.measured_ns as f64 / 1e9);
        format!(", measured on the first {} requests in {time}", grouped(pause.requests))
    });
    format!(
        "In idle time it reads {} at once. Other pauses: {}. The times hold for this load all day{measured}, with the scrub half through.",
        Bytes::new(idle.run_bytes).human(),
        words.collect::<Vec<_>>().join("; ")
    )
}

/// Result of all actuators together.
fn in_gaps(study: &Study, estimate: &ScrubEstimate) -> String {
    let Some(seconds) = estimate.seconds() else {
        return "This load leaves no rotational gap in which a scrub could read.".into();
    };
    let load = match (study.has_growing_queue(), study.dependent_replay) {
        (true, _) => "this overload, if it lasts as long",
        (_, true) => "your load at this drive's pace",
        (_, false) => "your load",
    };
    if seconds > TIME_MAX_S {
        return format!(
            "In the rotational gaps of {load} a scrub of this drive takes {TOO_LONG}: too long to estimate."
        );
    }
    let (share, until) = reached(estimate, seconds);
    let time = about(until);
    let rest = match (estimate.end(), &estimate.arms[..]) {
        (ScrubEnd::Complete, _) => {
            return format!("A scrub in the gaps finishes in {time} under {load}.");
        }
        (_, [ArmScrub { faded: Some(_), .. }]) => "then less than a tenth as fast",
        (ScrubEnd::Unfinished | ScrubEnd::EffortSpent, _) => "and the estimate ends there",
        _ => "then hardly any gap reaches the rest",
    };
    format!(
        "A scrub in the gaps reads {} of this drive in {time} under {load}, {rest}.{}",
        percent(share),
        price_of_gaps(study, estimate)
    )
}

/// Cost to requests on a drive that gives its gaps away; empty where there is hardly any.
fn price_of_gaps(study: &Study, estimate: &ScrubEstimate) -> String {
    let before = study.baseline().result.response.mean_ns;
    let share = relative(before, estimate.response_ns_mean);
    let is_known = estimate.free_blocks_before_switched_off && !study.has_growing_queue();
    if is_known && share >= NOTICEABLE {
        format!(" Giving the gaps away makes the mean response {} longer.", percent(share))
    } else {
        String::new()
    }
}

/// The load pays for gaps that the drive gives away, never for the scrub itself.
fn cost(study: &Study, estimate: &ScrubEstimate) -> Cost {
    let added_ns = estimate.response_ns_mean - study.baseline().result.response.mean_ns;
    // Response times of a growing queue do not tell the cost; the scrub itself delays no request.
    let is_known = estimate.free_blocks_before_switched_off && !study.has_growing_queue();
    if is_known && added_ns > 0.0 { Cost::Response { added_ns } } else { Cost::Free }
}

/// Blocks read over time, of each actuator.
fn progress(estimate: &ScrubEstimate) -> Figure {
    let name = |number: usize| match estimate.arms.len() {
        1 => "read".into(),
        _ => format!("actuator {}", number + 1),
    };
    let (x, unit_seconds) = time_axis(estimate.seconds().unwrap_or(0.0));
    let lines = estimate.arms.iter().enumerate().map(|(number, arm)| {
        let points = arm.course.iter();
        let points = points.map(|at| (at.seconds / unit_seconds, 100.0 * at.read_share));
        line(&name(number), points.collect())
    });
    Figure::lines(lines.collect(), Axes { x, y: "read, %", log_x: false })
}

/// Name of the time axis and the seconds of its unit.
pub(super) fn time_axis(longest_seconds: f64) -> (&'static str, f64) {
    match longest_seconds {
        s if s >= 2.0 * 86_400.0 => ("time of the scrub, days", 86_400.0),
        s if s >= 2.0 * 3_600.0 => ("time of the scrub, hours", 3_600.0),
        _ => ("time of the scrub, s", 1.0),
    }
}

/// Words for the pace of the load.
fn pace(study: &Study, estimate: &ScrubEstimate) -> String {
    if study.dependent_replay && estimate.seconds().is_some() {
        "The load has this drive's pace: a request comes a think time after the one that it had waited for. `--replay arrivals` keeps the recorded times.".into()
    } else {
        String::new()
    }
}

fn course(estimate: &ScrubEstimate) -> String {
    let slowest = match estimate.arms.len() {
        1 => String::new(),
        _ => format!("Actuator {} is the slowest. ", estimate.slowest_number() + 1),
    };
    let often = estimate.rounds_a_day();
    let often =
        often.map_or(String::new(), |often| format!("That is {} scrubs a day. ", rounds(often)));
    often + &slowest + &course_of(estimate.slowest())
}

/// Basis of the estimate.
fn grounds(study: &Study, estimate: &ScrubEstimate) -> String {
    if estimate.slowest().simulated_gaps == 0 {
        return String::new();
    }
    let effort = estimate.effort;
    let error = estimate.slowest().error.map_or(String::new(), |error| {
        format!(
            " The time to the end has a standard error of {}, from chance and from the length of leaps.",
            percent(error)
        )
    });
    format!(
        "The estimate simulated {} gaps {}, by a scheduler inside the drive, for a load that repeats the trace.{error} It used {} of {} s of processor time, counted as work (`--scrub-effort`). {} of its decisions stopped at the limit of {} nodes.",
        grouped(estimate.slowest().simulated_gaps),
        study.baseline().under(),
        whole_seconds(effort.spent_seconds),
        effort.asked_seconds,
        percent(effort.cut_short as f64 / estimate.decisions.max(1) as f64),
        effort.nodes_max,
    )
}

/// Errors of estimates where whole scans were simulated.
fn validity(estimate: &ScrubEstimate) -> &'static str {
    match estimate.slowest().simulated_gaps {
        0 => "",
        _ => {
            "Against scans simulated gap by gap, estimates were up to a quarter too short on a small drive. On 24 TB they were within a tenth for the first 6 %; later times are not validated there (`freewheel reproduce beyond.scrub beyond.scrub-24tb`). The limits of effort changed times on 24 TB by less than a tenth for the first 10 % on most traces. On one of 1,000 requests, and after the gaps had faded, they changed times by up to a half."
        }
    }
}

/// Use of the latency; empty where there is none.
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
        "Until its end the scrub reads {efficiency} of the potential of {potential}, with what requests read anyway. Free transfers use {used} of the latency ({used_first} at first, {used_last} at last), extra seeks {seeks}; {left} is left."
    )
}

fn course_of(arm: &ArmScrub) -> String {
    if arm.end == ScrubEnd::NoGaps {
        return "Requests that the drive's buffer serves, or that follow on the request before, wait for no rotation.".into();
    }
    let times =
        [when("half of the drive", arm.seconds_50_percent), when("95 %", arm.seconds_95_percent)];
    let times: Vec<String> = times.into_iter().flatten().collect();
    let read = (!times.is_empty()).then(|| format!("The scrub has read {}.", times.join(", ")));
    let last = match arm.last_5_percent.zip(arm.last_1_percent) {
        Some((five, one)) => Some(format!(
            "The last 5 % take {} of the time, the last 1 % {}. Promoting the last blocks to requests (`promote_tail` of `freewheel sim`) shortens that at a stated cost.",
            percent(five),
            percent(one)
        )),
        None => rest_of(arm),
    };
    [read, last].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn when(name: &str, seconds: Option<f64>) -> Option<String> {
    seconds.map(|seconds| format!("{name} after {}", span(seconds)))
}

/// Progress at which the scan slows down, and its end if it does not read all.
fn rest_of(arm: &ArmScrub) -> Option<String> {
    let faded = arm.faded.map_or(String::new(), |faded| {
        format!(
            "After {}, with {} read, the gaps give less than a tenth of their first rate. ",
            span(faded.seconds),
            percent(faded.read_share)
        )
    });
    let why = match arm.end {
        ScrubEnd::Unfinished => "the simulated load is over",
        ScrubEnd::EffortSpent => "its effort is spent (`--scrub-effort`)",
        _ => "the gaps reach hardly any block that is left",
    };
    let (seconds, five) = (arm.seconds?, arm.last_5_percent_of_read?);
    Some(format!(
        "{faded}The estimate ends after {}, with {} read, because {why}. The last 5 % of the blocks that are read take {} of that time.",
        span(seconds),
        percent(arm.read_share),
        percent(five)
    ))
}

fn switched_off(study: &Study, estimate: &ScrubEstimate) -> String {
    if !estimate.free_blocks_before_switched_off {
        return String::new();
    }
    let given_away = "The drive must give its gaps away. By its file it reads the blocks that pass before the wanted ones into its buffer (`keep_free_blocks_before`); the estimate switches that off";
    if study.has_growing_queue() {
        return format!("{given_away}. In an overload the cost of that does not show.");
    }
    let baseline = &study.baseline().result.response;
    let [before, without] = [baseline.mean_ns, estimate.response_ns_mean].map(ms);
    let [before_p99, without_p99] =
        [baseline.p99_ns, estimate.response_ns_p99].map(|ns| ms(ns as f64));
    let p99 = if before_p99 == without_p99 {
        format!("p99 stays at {without_p99} ms")
    } else {
        format!("p99 goes from {before_p99} to {without_p99} ms")
    };
    if before == without {
        format!("{given_away}. That hardly changes the mean response time of {before} ms.")
    } else {
        format!(
            "{given_away}. The mean response time goes from {before} to {without} ms, and {p99}."
        )
    }
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
            format!("{} at best, and with idle time alone in {alone}", span(both))
        }
        _ => format!("{alone} at best"),
    };
    let the = match study.measured.warm_up_requests {
        0 => "The",
        _ => "Over the whole trace the",
    };
    format!(
        "{the} drive is idle {} of the time. At the media rate in all of that, without pauses and seeks (`freewheel scrub --idle-after`, `examples/idle.toml`), a scrub reads the whole drive in {best}.",
        percent(estimate.idle_share)
    )
}
