//! The first screen of a study's page: four tiles, places and times, and where a request's time goes.

use freewheel_model::stats::Summary;
use freewheel_sim::{HeadTime, Stages};
use freewheel_study::changes::Goal;
use freewheel_study::{PlaceTime, Study};
use freewheel_units::grouped;
use maud::{Markup, html};

use super::findings::potential_bytes_per_second;
use super::scrub;
use crate::bars::{self, BarPart};
use crate::drawing::{hundredths, point};
use crate::legend;
use crate::numbers::{capital, per_second, percent, rate, ratio, response as time, size, span};

/// The part of the trace that the page's results are of.
pub(super) fn measured_part(study: &Study) -> String {
    let part = &study.measured;
    let all = study.trace.info.requests.max(1);
    match part.warm_up_requests {
        0 => "All requests count.".into(),
        before => format!(
            "Today and every change are measured over the last {} of the requests, {} in {}; the others fill caches before.{}",
            percent(1.0 - before as f64 / all as f64),
            grouped(all - before),
            span(part.seconds()),
            if study.scrub.is_some() { " A scrub has the gaps of all." } else { "" }
        ),
    }
}

/// The goal where it is not the mean, response, business, head time and free work, a tile each.
pub(super) fn tiles(study: &Study) -> Markup {
    let result = &study.baseline().result;
    let response = &result.response;
    let scrub = match study.scrub.as_ref().and_then(scrub::in_short) {
        Some(text) => text,
        None => "in rotational latency before requests".into(),
    };
    let recorded = study.measured.recorded_mean_ns();
    let reads = match result.read_response {
        Summary { count: 0, .. } => String::new(),
        reads => format!(", of reads {}", time(reads.p99_ns as f64)),
    };
    let tail = format!(
        "mean; median {}, p99 {}{reads}, worst {}{}",
        time(response.p50_ns as f64),
        time(response.p99_ns as f64),
        time(response.max_ns as f64),
        recorded.map_or(String::new(), |mean| format!("; recorded mean {}", time(mean)))
    );
    let busiest = format!(
        "requests of the busiest second: {} times the mean",
        ratio(study.trace.burstiness.peak_to_mean_1s)
    );
    html! {
        div.tiles {
            (goal_tile(study))
            (tile("Response", &time(response.mean_ns), &tail))
            (tile("Drive busy", &percent(result.utilisation), &busiest))
            div.tile {
                span.label { "Head time" }
                (head_bar(&result.head_time))
                span.words { (percent(result.head_time.transfer_share())) " moves data" }
            }
            (tile("Potential of the gaps", &rate(potential_bytes_per_second(study)), &scrub))
        }
    }
}

/// The quantity of a goal that no other tile has.
fn goal_tile(study: &Study) -> Markup {
    let (goal, result) = (study.options.goal, &study.baseline().result);
    let value = goal.ns(result);
    let words = match goal {
        Goal::Mean => return html! {},
        Goal::P99Reads => {
            let reads = &result.read_response;
            format!("1 % of {} reads take longer", grouped(reads.count))
        }
        Goal::Throughput => {
            format!("of the head: {} requests a second at most", per_second(1e9 / value.max(1.0)))
        }
    };
    tile(&capital(goal.quantity()), &time(value), &words)
}

fn tile(label: &str, value: &str, words: &str) -> Markup {
    html! {
        div.tile {
            span.label { (label) }
            strong { (value) }
            span.words { (words) }
        }
    }
}

fn head_bar(time: &HeadTime) -> Markup {
    let parts = [
        part_with_name("seek", "seek", time.seek_share()),
        part_with_name("rotation", "rotate", time.rotate_share()),
        part_with_name("transfer", "transfer", time.transfer_share()),
    ];
    bars::one(&parts, None)
}

/// A part with its name in it, if there is room.
fn part_with_name(name: &str, colour: &'static str, share: f64) -> BarPart {
    const NAME_FROM: f64 = 0.2;
    let words = if share >= NAME_FROM { name.into() } else { String::new() };
    BarPart { says: format!("{name} {}", percent(share)), colour, share, words }
}

/// A stage of requests.
struct Stage {
    name: &'static str,
    meaning: &'static str,
    ns: u128,
    colour: &'static str,
}

/// The stages in the order in which a request goes through them.
fn stages_of(stages: &Stages) -> Vec<Stage> {
    vec![
        stage("host queue", "before the drive has the command", stages.host_queue_ns(), "queue"),
        stage("drive queue", "other commands of the drive first", stages.drive_queue_ns, "waiting"),
        stage("seek", "moving the arm, changing heads", stages.seek_ns, "seek"),
        stage("rotation", "waiting for the sector", stages.rotate_ns, "rotate"),
        stage("transfer", "sectors under the head", stages.transfer_ns, "transfer"),
        stage("processing", "command processing", stages.overhead_ns, "processing"),
        stage("bus", "data to or from the host", stages.bus_ns, "bus"),
    ]
}

fn stage(name: &'static str, meaning: &'static str, ns: u128, colour: &'static str) -> Stage {
    Stage { name, meaning, ns, colour }
}

fn share_of(stage: &Stage, all: &[Stage]) -> f64 {
    let total: u128 = all.iter().map(|stage| stage.ns).sum();
    stage.ns as f64 / total.max(1) as f64
}

/// The stages of the mean response with their shares, in a line.
pub(super) fn stages_in_line(study: &Study) -> String {
    let all = stages_of(&study.baseline().result.stages);
    all.iter()
        .filter(|stage| stage.ns > 0)
        .map(|stage| format!("{} {}", stage.name, percent(share_of(stage, &all))))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The stages of the mean response.
pub(super) fn stages(study: &Study) -> Markup {
    let result = &study.baseline().result;
    let all = stages_of(&result.stages);
    let count = result.response.count.max(1) as f64;
    html! {
        p.lead {
            "Stages of the mean response of " (time(result.response.mean_ns))
            ". All of them are what btt calls Q2C; all but the host queue, D2C."
        }
        (bars::one(&all.iter().map(|stage| part(stage, &all)).collect::<Vec<_>>(), None))
        table.stages {
            @for stage in &all {
                tr {
                    td { (legend::mark(&legend::area(stage.name, stage.colour))) (stage.name) small { (stage.meaning) } }
                    td { (time(stage.ns as f64 / count)) }
                    td { (percent(share_of(stage, &all))) }
                }
            }
        }
    }
}

fn part(stage: &Stage, all: &[Stage]) -> BarPart {
    part_with_name(stage.name, stage.colour, share_of(stage, all))
}

/// Column of the map at which the measured part begins; None where it is the whole.
fn measured_from(study: &Study) -> Option<f64> {
    let begins_ns = study.baseline().result.warm_up_ns;
    (begins_ns > 0).then(|| begins_ns as f64 / study.place_time.bin_ns as f64)
}

/// A line where the measured part begins.
fn begin(at: Option<f64>, height: f64) -> Markup {
    html! { @if let Some(x) = at { line.begin x1=(hundredths(x)) x2=(hundredths(x)) y1="0" y2=(height) {} } }
}

/// Requests by place and time, and their 99th percentile below. The pictures are stretched to the place that
/// there is, and words beside them keep their size.
pub(super) fn where_and_when(study: &Study) -> Markup {
    let place_time = &study.place_time;
    let from = measured_from(study);
    let columns = place_time.counts.len();
    if columns == 0 {
        return html! {};
    }
    let rows = place_time.counts[0].len();
    let worst = place_time.p99_ns.iter().copied().max().unwrap_or(0).max(1);
    let seconds = columns as f64 * place_time.bin_ns as f64 / 1e9;
    html! {
        p.lead {
            "Requests by place on the drive over time; a stronger colour is more. Below, the 99th percentile of their responses. "
            (when_worst(place_time, worst)) " " (where_most(place_time))
            @if from.is_some() { " What is measured begins at the dashed line." }
        }
        div.map {
            div.names { span { "0" } span { (size(place_time.space_bytes)) } }
            svg.places viewBox=(format!("0 0 {columns} {rows}")) preserveAspectRatio="none" role="img"
                aria-label="Requests by place and time" { (places(place_time)) (begin(from, rows as f64)) }
            div.names { span { (time(worst as f64)) } span { "0" } }
            svg.tails viewBox=(format!("0 0 {columns} {TAIL_UNITS}")) preserveAspectRatio="none" role="img"
                aria-label="The 99th percentile of responses over time" {
                polyline points=(tails(place_time, worst)) {}
                (begin(from, TAIL_UNITS))
            }
            span {}
            div.times { span { "0" } span { (span(seconds)) } }
        }
    }
}

/// A square for each part of the space and of the time with requests.
fn places(place_time: &PlaceTime) -> Markup {
    let most = place_time.counts.iter().flatten().copied().max().unwrap_or(0).max(1);
    // Squares overlap a little, so that no gap is seen between them.
    html! {
        @for (column, counts) in place_time.counts.iter().enumerate() {
            @for (row, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                rect x=(column) y=(row) width="1.02" height="1.02" opacity=(hundredths(opacity(count, most))) {}
            }
        }
    }
}

/// Units of the height of the line of 99th percentiles.
const TAIL_UNITS: f64 = 100.0;

/// Points of the line of 99th percentiles; the worst is at the top.
fn tails(place_time: &PlaceTime, worst: u64) -> String {
    place_time
        .p99_ns
        .iter()
        .enumerate()
        .map(|(column, &p99)| {
            point(column as f64 + 0.5, TAIL_UNITS * (1.0 - p99 as f64 / worst as f64))
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Time of the highest 99th percentile, with the number of requests then.
fn when_worst(place_time: &PlaceTime, worst: u64) -> String {
    let Some(at) = place_time.p99_ns.iter().position(|&p99| p99 == worst) else {
        return String::new();
    };
    let all: u64 = place_time.counts.iter().map(|column| count(column)).sum();
    let mean = all as f64 / place_time.counts.len() as f64;
    let times = count(&place_time.counts[at]) as f64 / mean.max(f64::MIN_POSITIVE);
    let why = match times {
        times if times >= 2.0 => format!("in a burst: {} times as many requests come as on average", ratio(times)),
        times if times >= 0.5 => "with about as many requests as on average".into(),
        _ => "with fewer requests than on average: they are far apart or large, or wait for a burst before".into(),
    };
    let when = match at {
        0 => "at the beginning".into(),
        at => format!("after {}", span(at as f64 * place_time.bin_ns as f64 / 1e9)),
    };
    format!("It reaches {} {when}, {why}.", time(worst as f64))
}

fn count(column: &[u64]) -> u64 {
    column.iter().sum::<u64>()
}

/// Share of the load in the busiest part of the space.
fn where_most(place_time: &PlaceTime) -> String {
    let rows = place_time.counts[0].len();
    let by_row: Vec<u64> = (0..rows)
        .map(|row| place_time.counts.iter().map(|column| column[row]).sum::<u64>())
        .collect();
    let (all, most) = (by_row.iter().sum::<u64>(), by_row.iter().max().copied().unwrap_or(0));
    let share = most as f64 / all.max(1) as f64;
    if share >= 0.5 {
        format!("One sixteenth of the space gets {} of the requests.", percent(share))
    } else {
        let used = by_row.iter().filter(|&&count| count * 100 > all).count();
        format!("{used} of 16 parts of the space get more than 1 % of the requests each.")
    }
}

/// The root shows few requests beside many.
fn opacity(count: u64, most: u64) -> f64 {
    0.06 + 0.94 * libm::sqrt(count as f64 / most as f64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn stages_have_distinct_colours() {
        let stages = stages_of(&Stages::default());
        let value = |stage: &Stage| {
            let rule = format!(".{} {{ --part: ", stage.colour);
            let (_, rest) = crate::page::STYLE.split_once(&rule).expect("each has a colour");
            rest.split(';').next().expect("a value ends")
        };
        let colours: BTreeSet<&str> = stages.iter().map(value).collect();
        assert_eq!(colours.len(), stages.len());
    }
}
