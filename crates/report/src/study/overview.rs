//! The first screen of a study's page: four tiles, places and times, and where a request's time goes.

use freewheel_sim::HeadTime;
use freewheel_study::{PlaceTime, Study};
use maud::{Markup, html};

use super::scrub;
use crate::numbers::{ms, percent, rate, span};

/// Response, business, head time and free work, a tile each.
pub(super) fn tiles(study: &Study) -> Markup {
    let result = &study.baseline().result;
    let response = &result.response;
    let potential = match &study.scrub {
        Some(scrub) => scrub.arms.iter().map(|arm| arm.potential_bytes_per_second).sum(),
        None => study.potential_bytes_per_second(study.baseline()),
    };
    let scrub = match study.scrub.as_ref().and_then(scrub::in_short) {
        Some(text) => text,
        None => "in rotational latency before requests".into(),
    };
    let tail = format!(
        "mean; p99 {} ms, worst {} ms",
        ms(response.p99_ns as f64),
        ms(response.max_ns as f64)
    );
    let busiest =
        format!("busiest second {:.0} times the average", study.trace.burstiness.peak_to_mean_1s);
    html! {
        div.tiles {
            (tile("Response", &format!("{} ms", ms(response.mean_ns)), &tail))
            (tile("Drive busy", &percent(result.utilisation), &busiest))
            div.tile {
                span.label { "Head time" }
                (head_bar(&result.head_time))
                span.words { (percent(result.head_time.transfer_share())) " moves data" }
            }
            (tile("Free in the gaps", &rate(potential), &scrub))
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

/// The stages of the mean response.
pub(super) fn stages(study: &Study) -> Markup {
    let result = &study.baseline().result;
    let stages = &result.stages;
    let all = [
        (
            "waiting",
            "waiting for others, in the host or in the drive's queue",
            stages.queue_ns,
            "queue",
        ),
        ("seek", "moving the arm, changing heads", stages.seek_ns, "seek"),
        ("rotation", "waiting for the sector", stages.rotate_ns, "rotate"),
        ("transfer", "sectors under the head", stages.transfer_ns, "transfer"),
        ("processing", "command processing", stages.overhead_ns, "overhead"),
        ("bus", "data to or from the host", stages.bus_ns, "overhead"),
    ];
    let total: u128 = all.iter().map(|stage| stage.2).sum();
    let share = |ns: u128| ns as f64 / total.max(1) as f64;
    let bar: Vec<Part> =
        all.iter().map(|&(name, _, ns, class)| Part { name, share: share(ns), class }).collect();
    let count = result.response.count.max(1) as f64;
    html! {
        p.lead { "Stages of the mean response of " (ms(result.response.mean_ns)) " ms. The first is what blktrace's Q2C has beyond the drive's work." }
        (parts(&bar))
        dl.stages {
            @for (name, meaning, ns, _) in all {
                dt { (name) ", " (ms(ns as f64 / count)) " ms, " (percent(share(ns))) } dd { (meaning) }
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
            "Requests by place on the drive over time; a stronger colour is more. Below, the 99th percentile of their responses, which reaches "
            (ms(worst as f64)) " ms."
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
                text x="0" y="22" class="axis" { "start" }
                text x="0" y=(map_end - 2.0) class="axis" { "end" }
                text x="0" y=(map_end + 32.0) class="axis" { (ms(worst as f64)) " ms" }
                text x="0" y=(p99_end) class="axis" { "0" }
                line x1=(LEFT) x2=(LEFT + WIDTH) y1=(p99_end) y2=(p99_end) stroke="var(--line)" {}
                polyline points=(line.join(" ")) fill="none" stroke="var(--rotate)" stroke-width="2" {}
                text x=(LEFT) y=(height - 4.0) class="axis" { "0" }
                text x=(LEFT + WIDTH) y=(height - 4.0) text-anchor="end" class="axis" { (span(seconds)) }
            }
        }
    }
}

/// The root shows few requests beside many.
fn opacity(count: u64, most: u64) -> f64 {
    0.06 + 0.94 * libm::sqrt(count as f64 / most as f64)
}
