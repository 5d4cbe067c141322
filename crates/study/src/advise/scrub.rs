//! How long a scrub takes, in words and as a chart.

use freewheel_units::Bytes;
use maud::{Markup, html};

use super::{Finding, Study};
use crate::chart::{self, Axes, Line};
use crate::page::{self, ms, percent, rate, span};
use crate::scrub::{ArmScrub, ScrubEnd, ScrubEstimate};

/// None when it was not asked for.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let estimate = study.scrub.as_ref()?;
    let mut detail = course(estimate);
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
    let before = study.fcfs().result.response.mean_ns;
    if !estimate.free_blocks_before_switched_off || estimate.response_ns_mean <= before {
        return "at no cost to it".into();
    }
    format!(
        "at the cost of a mean response of {} ms instead of {} ms",
        ms(estimate.response_ns_mean),
        ms(before)
    )
}

/// A share that is not all is not rounded up to all.
fn reached(share: f64) -> String {
    match share {
        share if (0.995..1.0).contains(&share) => format!("{:.2} %", (share * 1e4).floor() / 100.0),
        share => percent(share),
    }
}

fn course(estimate: &ScrubEstimate) -> String {
    let arm = estimate.slowest();
    let whose = match estimate.arms.len() {
        1 => String::new(),
        _ => format!("Of actuator {}, the slowest: ", estimate.slowest_number() + 1),
    };
    whose + &course_of(arm)
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
    let last = arm.time_share_of_last_5_percent().map_or(String::new(), |share| {
        format!(" The last 5 % take {} of the time; promoting the last blocks to requests of their own (`promote_tail` of `freewheel sim`) shortens that at a stated cost.", percent(share))
    });
    format!(
        "Half of it is read after {}{late}.{last} An estimate from {} simulated gaps under FCFS, for a load that goes on like the trace.",
        span(half),
        arm.simulated_gaps
    )
}

fn switched_off(study: &Study, estimate: &ScrubEstimate) -> String {
    if !estimate.free_blocks_before_switched_off {
        return String::new();
    }
    let before = &study.fcfs().result.response;
    format!(
        " The drive must give its gaps away: by its file it reads the blocks that pass before the wanted ones into its own buffer (`keep_free_blocks_before`). That is switched off here, which by itself takes the mean response time from {} to {} ms.",
        ms(before.mean_ns),
        ms(estimate.response_ns_mean)
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

pub(super) fn section(estimate: &ScrubEstimate) -> Markup {
    let longest = estimate.seconds().unwrap_or(0.0);
    let (unit, seconds) = if longest >= 2.0 * 86_400.0 {
        ("time of the scrub, days", 86_400.0)
    } else if longest >= 2.0 * 3_600.0 {
        ("time of the scrub, hours", 3_600.0)
    } else {
        ("time of the scrub, s", 1.0)
    };
    let lines = |value: fn(&crate::scrub::ScrubPoint) -> (f64, f64), scale: f64| -> Vec<Line> {
        let arms = estimate.arms.iter().enumerate();
        let line = |(number, arm): (usize, &ArmScrub)| Line {
            name: name(number, estimate.arms.len()),
            points: arm.course.iter().map(value).map(|(x, y)| (x / scale, y)).collect(),
            dots: false,
        };
        arms.map(line).collect()
    };
    let progress = lines(|point| (point.seconds, 100.0 * point.read_share), seconds);
    let rates = lines(|point| (100.0 * point.read_share, point.bytes_per_second / 1e6), 1.0);
    html! {
        (page::chart(&chart::lines(&progress, &Axes { x: unit, y: "read, %", log_x: false })))
        (page::chart(&chart::lines(&rates, &Axes { x: "read, %", y: "free reads, MB/s", log_x: false })))
        (table(estimate))
        p.note {
            "A scrub in blocks of " (Bytes::new(estimate.block_bytes).human())
            " that reads in the rotational gaps of the load, under FCFS. Bursts of gaps are simulated on a sample of the trace that goes on for ever, with ever less wanted where the gaps came by; the time between them follows from the rates at both ends. What is written does not count as verified. By the gaps all simulated foreground accesses together ended "
            (estimate.foreground_delay_ns) " ns later."
        }
    }
}

fn name(number: usize, arms: usize) -> String {
    if arms == 1 { "scrub".into() } else { format!("actuator {}", number + 1) }
}

fn table(estimate: &ScrubEstimate) -> Markup {
    let head =
        ["", "read", "in", "half after", "95 % after", "at first", "at last", "gaps simulated"];
    let time = |seconds: Option<f64>| seconds.map_or("not reached".into(), span);
    let rows: Vec<Vec<String>> = estimate
        .arms
        .iter()
        .enumerate()
        .map(|(number, arm)| {
            let ends = [arm.course.first(), arm.course.last()];
            let rate_at = ends.map(|at| at.map_or("none".into(), |at| rate(at.bytes_per_second)));
            let [first, last] = rate_at;
            vec![
                name(number, estimate.arms.len()),
                reached(arm.read_share),
                time(arm.seconds),
                time(arm.seconds_50_percent),
                time(arm.seconds_95_percent),
                first,
                last,
                arm.simulated_gaps.to_string(),
            ]
        })
        .collect();
    page::table(&head, &rows)
}
