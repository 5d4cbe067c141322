//! Duration of a scrub, as charts and a table.

use freewheel_units::{Bytes, grouped};
use maud::{Markup, html};

use freewheel_study::{ArmScrub, ScrubEstimate, ScrubPoint, Study, latency_lines, line};

use super::scrub::time_axis;
use crate::free_work::{
    POTENTIAL_IS, bandwidth_chart, efficiency_chart, nodes_chart, shares_chart, titled,
};
use crate::numbers::{TIME_MAX_S, average, percent, rate, rounds, span};
use crate::page;
use freewheel_study::figure::{Axes, Line};

/// Actuators that can all be shown, and their lines told apart; of more the slowest is.
const SIDE_BY_SIDE: usize = 2;

pub(super) fn section(study: &Study, estimate: &ScrubEstimate) -> Markup {
    html! {
        (table(estimate))
        (parts(estimate))
        (head_use(estimate))
        (charts(estimate))
        (nodes_chart(&estimate.by_nodes))
        p.note {
            "A scrub in blocks of " (Bytes::new(estimate.block_bytes).human())
            " reads in the rotational gaps of the load " (study.baseline().under()) ". A scheduler inside the drive, which knows where its head is, plans it. Bursts of gaps are simulated on a sample of the trace, repeated without end. Between bursts the scan leaps: the time follows from the rates at both ends. The less work is left (" code { "--scrub-effort" } "), the longer are the leaps. The estimate ends where fewer than one gap in a hundred reads anything, where the last blocks are read, or when its work is done. It also ends where the gaps give less than a hundredth of their first rate and more than a hundredth of the drive is left. A write does not count as verified. All simulated foreground accesses together ended "
            (estimate.foreground_delay_ns) " ns later because of the gaps. A decision about a gap looked at "
            (average(estimate.nodes_mean)) " nodes of its search on average, each a part of the drive, of "
            (grouped(estimate.decisions)) " decisions. Their time depends on the machine, so it is printed to the terminal only."
        }
    }
}

/// Time of the heads in numbers; the picture is the finding's.
fn head_use(estimate: &ScrubEstimate) -> Markup {
    let head_use = estimate.head_use;
    let moves = |free: f64| percent(head_use.transfer + free);
    let given = if estimate.free_blocks_before_switched_off {
        ", while the drive gives away the blocks that pass before requests"
    } else {
        ""
    };
    html! {
        h3 { "Use of the head's time" }
        p.note {
            "Data pass under the head " (moves(0.0)) " of the time for requests and writing back, and "
            (moves(head_use.free_transfer)) " with the scrub. These are shares of all time while the arms scan" (given) "."
        }
    }
}

/// Figure 10 of osdi00 in numbers, and what the last blocks cost.
fn parts(estimate: &ScrubEstimate) -> Markup {
    let Some(number) = estimate.slowest_with_gaps() else { return html! {} };
    let arm = &estimate.arms[number];
    let rows: Vec<Vec<String>> = arm
        .parts
        .iter()
        .map(|part| {
            vec![
                percent(part.read_share),
                span(part.seconds),
                part.error.map_or("-".into(), percent),
                arm.seconds.map_or("-".into(), |all| percent(part.seconds / all)),
                rounds(part.rounds_a_day),
                part.efficiency.map_or("-".into(), percent),
            ]
        })
        .collect();
    let head = [
        "of the blocks",
        "in",
        "standard error",
        "of the time of all that is read",
        "times a day",
        "efficiency",
    ];
    html! {
        @if !rows.is_empty() {
            h3 { "If a part is enough" (of_arm(number, estimate)) }
            (page::table(&head, &rows))
        }
        @if let Some(five) = arm.last_5_percent_of_read {
            p.note { "The last 5 % of what is read take " (percent(five)) " of the time." }
        }
    }
}

/// None where there is no gap.
fn charts(estimate: &ScrubEstimate) -> Markup {
    let Some(slowest) = estimate.slowest_with_gaps() else { return html! {} };
    let count = estimate.arms.len();
    let shown = (0..count).filter(|&number| count <= SIDE_BY_SIDE || number == slowest);
    let shown: Vec<usize> = shown.filter(|&n| estimate.arms[n].seconds.is_some()).collect();
    let (time, unit_seconds) = time_axis(estimate.seconds().unwrap_or(0.0));
    let mut progress = each(estimate, |at| Some((at.seconds / unit_seconds, percent_read(at))));
    progress.extend(potential_lines(estimate, &shown, unit_seconds));
    let efficiency = each(estimate, |at| Some((percent_read(at), 100.0 * at.efficiency?)));
    let read = "read, %";
    html! {
        // Beyond what a drive lives a course says nothing.
        @if estimate.seconds().is_some_and(|seconds| seconds <= TIME_MAX_S) {
            (titled("Progress", "", &progress, &Axes { x: time, y: read, log_x: false }))
        }
        (bandwidth_chart(&bandwidth(estimate, &shown), read))
        p.note {
            "In gaps is what the gaps give, without what requests read anyway; " (POTENTIAL_IS)
            "; it does not depend on the blocks left to read. Latency in which the drive writes back from its buffer is not given away and does not count. Latency that counts is"
            @for (nth, &number) in shown.iter().enumerate() {
                @if nth > 0 { " and" }
                " " (percent(estimate.arms[number].gap_share)) " of the time of the whole trace, "
                (percent(estimate.arms[number].simulated_gap_share)) " in the bursts"
                @if count > 1 { " (" (name(number, estimate)) ")" }
            }
            "; times follow from the share of the whole trace. Bandwidth and shares are those of each burst, from its beginning to its end; lines between bursts are interpolated."
        }
        @for &number in &shown {
            (shares_chart(&of_arm(number, estimate), &shares_of(&estimate.arms[number]), read))
        }
        (efficiency_chart(&efficiency))
    }
}

/// Share read by time if tasks received the whole potential, up to 100 % (figure 9 (a) of osdi00).
fn potential_lines(estimate: &ScrubEstimate, shown: &[usize], unit_seconds: f64) -> Vec<Line> {
    shown
        .iter()
        .map(|&number| {
            let arm = &estimate.arms[number];
            let bytes = (arm.blocks * estimate.block_bytes) as f64;
            let seconds = (bytes / arm.potential_bytes_per_second).min(arm.seconds.unwrap_or(0.0));
            let share = seconds * arm.potential_bytes_per_second / bytes;
            let name = match estimate.arms.len() {
                1 => "potential".into(),
                _ => format!("{}, potential", name(number, estimate)),
            };
            line(&name, vec![(0.0, 0.0), (seconds / unit_seconds, 100.0 * share)])
        })
        .collect()
}

fn percent_read(point: &ScrubPoint) -> f64 {
    100.0 * point.read_share
}

/// A line for each actuator.
fn each(estimate: &ScrubEstimate, point: impl Fn(&ScrubPoint) -> Option<(f64, f64)>) -> Vec<Line> {
    let arms = estimate.arms.iter().enumerate();
    arms.map(|(number, arm)| {
        line(&name(number, estimate), arm.course.iter().filter_map(&point).collect())
    })
    .collect()
}

fn shares_of(arm: &ArmScrub) -> [Line; 3] {
    latency_lines(&arm.course.iter().map(|at| (percent_read(at), at.shares)).collect::<Vec<_>>())
}

/// Bandwidth of the gaps of these actuators, and their potential.
fn bandwidth(estimate: &ScrubEstimate, shown: &[usize]) -> Vec<Line> {
    let of = |number: usize, what: &str, rate: fn(&ScrubPoint) -> f64| {
        let points = estimate.arms[number].course.iter();
        let points = points.map(|at| (percent_read(at), rate(at) / 1e6)).collect();
        match estimate.arms.len() {
            1 => line(what, points),
            _ => line(&format!("{}, {what}", name(number, estimate)), points),
        }
    };
    shown
        .iter()
        .flat_map(|&number| {
            [
                of(number, "in gaps", |at| at.bytes_per_second),
                of(number, "potential", |at| at.potential_bytes_per_second),
            ]
        })
        .collect()
}

fn name(number: usize, estimate: &ScrubEstimate) -> String {
    match estimate.arms.len() {
        1 => "scrub".into(),
        _ => format!("actuator {}", number + 1),
    }
}

fn of_arm(number: usize, estimate: &ScrubEstimate) -> String {
    match estimate.arms.len() {
        1 => String::new(),
        _ => format!(", of {}", name(number, estimate)),
    }
}

fn table(estimate: &ScrubEstimate) -> Markup {
    let head = [
        "",
        "read",
        "in",
        "with all idle time, at best",
        "potential",
        "efficiency",
        "extra seeks",
        "latency left",
        "at first",
        "at last",
    ];
    let row = |(number, arm): (usize, &ArmScrub)| {
        let ends = [arm.course.first(), arm.course.last()];
        let [first, last] = ends.map(|at| at.map_or("-".into(), |at| rate(at.bytes_per_second)));
        vec![
            name(number, estimate),
            percent(arm.read_share),
            arm.seconds.map_or("-".into(), span),
            arm.seconds_with_idle_time.map_or("never".into(), span),
            rate(arm.potential_bytes_per_second),
            arm.efficiency.map_or("-".into(), percent),
            arm.shares.map_or("-".into(), |shares| percent(shares.extra_seek_share)),
            arm.shares.map_or("-".into(), |shares| percent(shares.unused_share)),
            first,
            last,
        ]
    };
    page::table(&head, &estimate.arms.iter().enumerate().map(row).collect::<Vec<_>>())
}
