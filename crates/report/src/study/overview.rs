//! The first screen of a study's page: four tiles, places and times, and where a request's time goes.

use freewheel_sim::{HeadTime, RunResult};
use freewheel_study::{PlaceTime, Study};
use maud::{Markup, html};

use super::doubts::recorded_mean_ns;
use super::findings::potential_bytes_per_second;
use super::scrub;
use crate::numbers::{percent, rate, response as time, size, span};

/// Response, business, head time and free work, a tile each.
pub(super) fn tiles(study: &Study) -> Markup {
    let result = &study.baseline().result;
    let response = &result.response;
    let scrub = match study.scrub.as_ref().and_then(scrub::in_short) {
        Some(text) => text,
        None => "in rotational latency before requests".into(),
    };
    let recorded = recorded_mean_ns(&study.trace);
    let tail = format!(
        "mean; median {}, p99 {}, worst {}{}",
        time(response.p50_ns as f64),
        time(response.p99_ns as f64),
        time(response.max_ns as f64),
        recorded.map_or(String::new(), |mean| format!("; recorded mean {}", time(mean)))
    );
    let busiest =
        format!("busiest second {:.0} times the average", study.trace.burstiness.peak_to_mean_1s);
    html! {
        div.tiles {
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
    parts(&[
        Part { name: "seek", share: time.seek_share(), class: "seek" },
        Part { name: "rotation", share: time.rotate_share(), class: "rotate" },
        Part { name: "transfer", share: time.transfer_share(), class: "transfer" },
    ])
}

/// A part of a bar.
struct Part {
    name: &'static str,
    share: f64,
    class: &'static str,
}

/// A bar of parts of a whole. Small parts have no words in it.
fn parts(all: &[Part]) -> Markup {
    const WORDS_FROM: f64 = 0.2;
    let words = |part: &Part| format!("{} {}", part.name, percent(part.share));
    let all_words = all.iter().map(words).collect::<Vec<_>>().join(", ");
    html! {
        div.parts role="img" aria-label=(all_words) {
            @for part in all {
                span.(part.class) style=(format!("width:{:.2}%", part.share * 100.0)) title=(words(part)) {
                    @if part.share >= WORDS_FROM { (part.name) }
                }
            }
        }
    }
}

/// A stage of requests.
struct Stage {
    name: &'static str,
    meaning: &'static str,
    ns: u128,
    class: &'static str,
}

/// The stages in the order in which a request goes through them.
fn stages_of(result: &RunResult) -> Vec<Stage> {
    let stages = &result.stages;
    let stage = |name, meaning, ns, class| Stage { name, meaning, ns, class };
    vec![
        stage("host queue", "before the drive has the command", stages.host_queue_ns(), "queue"),
        stage("drive queue", "other commands of the drive first", stages.drive_queue_ns, "waiting"),
        stage("seek", "moving the arm, changing heads", stages.seek_ns, "seek"),
        stage("rotation", "waiting for the sector", stages.rotate_ns, "rotate"),
        stage("transfer", "sectors under the head", stages.transfer_ns, "transfer"),
        stage("processing", "command processing", stages.overhead_ns, "overhead"),
        stage("bus", "data to or from the host", stages.bus_ns, "overhead"),
    ]
}

fn share_of(stage: &Stage, all: &[Stage]) -> f64 {
    let total: u128 = all.iter().map(|stage| stage.ns).sum();
    stage.ns as f64 / total.max(1) as f64
}

/// The stages of the mean response with their shares, in a line.
pub(super) fn stages_in_line(study: &Study) -> String {
    let all = stages_of(&study.baseline().result);
    let words = |stage: &Stage| format!("{} {}", stage.name, percent(share_of(stage, &all)));
    all.iter().filter(|stage| stage.ns > 0).map(words).collect::<Vec<_>>().join(", ")
}

/// The stages of the mean response.
pub(super) fn stages(study: &Study) -> Markup {
    let result = &study.baseline().result;
    let all = stages_of(result);
    let part =
        |stage: &Stage| Part { name: stage.name, share: share_of(stage, &all), class: stage.class };
    let count = result.response.count.max(1) as f64;
    html! {
        p.lead {
            "Stages of the mean response of " (time(result.response.mean_ns))
            ". All of them are what btt calls Q2C; all but the host queue, D2C."
        }
        (parts(&all.iter().map(part).collect::<Vec<_>>()))
        dl.stages {
            @for stage in &all {
                dt { (stage.name) ", " (time(stage.ns as f64 / count)) ", " (percent(share_of(stage, &all))) }
                dd { (stage.meaning) }
            }
        }
    }
}

const LEFT: f64 = 64.0;
const WIDTH: f64 = 880.0;
const ROW_HEIGHT: f64 = 11.0;
const P99_HEIGHT: f64 = 60.0;

/// Requests by place and time, and their 99th percentile below.
pub(super) fn where_and_when(place_time: &PlaceTime) -> Markup {
    let columns = place_time.counts.len();
    if columns == 0 {
        return html! {};
    }
    let rows = place_time.counts[0].len();
    let most = place_time.counts.iter().flatten().copied().max().unwrap_or(0).max(1);
    let width = WIDTH / columns as f64;
    let map_end = 10.0 + ROW_HEIGHT * rows as f64;
    let p99_end = map_end + 20.0 + P99_HEIGHT;
    let worst = place_time.p99_ns.iter().copied().max().unwrap_or(0).max(1);
    let y = |p99: u64| p99_end - P99_HEIGHT * p99 as f64 / worst as f64;
    let x = |column: usize| LEFT + width * (column as f64 + 0.5);
    let line: Vec<String> = place_time
        .p99_ns
        .iter()
        .enumerate()
        .map(|(column, &p99)| format!("{:.1},{:.1}", x(column), y(p99)))
        .collect();
    let seconds = columns as f64 * place_time.bin_ns as f64 / 1e9;
    let height = p99_end + 24.0;
    html! {
        p.lead {
            "Requests by place on the drive over time; a stronger colour is more. Below, the 99th percentile of their responses. "
            (when_worst(place_time, worst)) " " (where_most(place_time))
        }
        div.scroll {
            svg viewBox=(format!("0 0 960 {height}")) role="img" {
                title { "Requests by place and time, and the 99th percentile of their responses" }
                @for (column, counts) in place_time.counts.iter().enumerate() {
                    @for (row, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                        rect x=(format!("{:.1}", LEFT + width * column as f64)) y=(format!("{:.1}", 10.0 + ROW_HEIGHT * row as f64))
                            width=(format!("{:.1}", width + 0.2)) height=(ROW_HEIGHT + 0.2) fill="var(--accent)"
                            opacity=(format!("{:.2}", opacity(count, most))) {}
                    }
                }
                text x="0" y="22" class="axis" { "0" }
                text x="0" y=(map_end - 2.0) class="axis" { (size(place_time.space_bytes)) }
                text x="0" y=(map_end + 32.0) class="axis" { (time(worst as f64)) }
                text x="0" y=(p99_end) class="axis" { "0" }
                line x1=(LEFT) x2=(LEFT + WIDTH) y1=(p99_end) y2=(p99_end) stroke="var(--line)" {}
                polyline points=(line.join(" ")) fill="none" stroke="var(--rotate)" stroke-width="2" {}
                text x=(LEFT) y=(height - 4.0) class="axis" { "0" }
                text x=(LEFT + WIDTH) y=(height - 4.0) text-anchor="end" class="axis" { (span(seconds)) }
            }
        }
    }
}

/// When the 99th percentile is highest, and whether more requests than usual come then.
fn when_worst(place_time: &PlaceTime, worst: u64) -> String {
    let Some(at) = place_time.p99_ns.iter().position(|&p99| p99 == worst) else {
        return String::new();
    };
    let count = |column: &[u64]| column.iter().sum::<u64>();
    let all: u64 = place_time.counts.iter().map(|column| count(column)).sum();
    let mean = all as f64 / place_time.counts.len() as f64;
    let times = count(&place_time.counts[at]) as f64 / mean.max(f64::MIN_POSITIVE);
    let why = match times {
        times if times >= 2.0 => format!("in a burst: {times:.0} times as many requests come as on average"),
        times if times >= 0.5 => "with about as many requests as on average".into(),
        _ => "with fewer requests than on average: they are far apart or large, or wait for a burst before".into(),
    };
    let from = at as f64 * place_time.bin_ns as f64 / 1e9;
    format!("It reaches {} after {}, {why}.", time(worst as f64), span(from))
}

/// How much of the load the busiest part of the space has.
fn where_most(place_time: &PlaceTime) -> String {
    let rows = place_time.counts[0].len();
    let row = |row: usize| place_time.counts.iter().map(|column| column[row]).sum::<u64>();
    let by_row: Vec<u64> = (0..rows).map(row).collect();
    let (all, most) = (by_row.iter().sum::<u64>(), by_row.iter().max().copied().unwrap_or(0));
    let share = most as f64 / all.max(1) as f64;
    match share >= 0.5 {
        true => format!("One sixteenth of the space gets {} of the requests.", percent(share)),
        false => {
            let used = by_row.iter().filter(|&&count| count * 100 > all).count();
            format!("{used} of 16 parts of the space get more than 1 % of the requests each.")
        }
    }
}

/// The root shows few requests beside many.
fn opacity(count: u64, most: u64) -> f64 {
    0.06 + 0.94 * libm::sqrt(count as f64 / most as f64)
}
