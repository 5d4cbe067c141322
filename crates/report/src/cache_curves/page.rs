//! The curves as a page.

use freewheel_model::cache::{CachePolicy, POLICIES};
use freewheel_study::{CacheCurves, MissRatio, ResponsePoint, Responses, SimulatedResponses};
use freewheel_units::grouped;
use maud::{Markup, html};

use super::rows::{self, Unit};
use super::words::{Conclusions, columns, counted};
use crate::page::{self, fold, folds, prose, section, table, trace_name};
use crate::rows::Rows;
use crate::size_chart::{SizeChart, SizeLine, SizePoint, draw, legend};

pub(super) fn html(curves: &CacheCurves, conclusions: &Conclusions) -> String {
    page::page(
        &format!("Caches for {}", trace_name(&curves.options.trace)),
        &counted(curves),
        &html! {
            (section("How much memory?", &conclusion(conclusions)))
            (section("Misses", &misses(curves)))
            @if let Responses::Simulated(simulated) = &curves.responses {
                (section("Response of reads", &responses(curves, simulated)))
            }
            (section("By size", &by_size(curves)))
            (folds(&html! {
                @if let Responses::Simulated(simulated) = &curves.responses {
                    (fold("Reads, writes and both", &all_responses(simulated)))
                }
                @if curves.options.sample.is_none() {
                    (fold("Misses by byte", &by_byte(curves)))
                }
                (fold("What is counted", &what_is_counted(curves)))
                (fold("Policies", &policies(curves)))
                (fold("Options", &options(curves)))
            }))
        },
    )
}

fn conclusion(conclusions: &Conclusions) -> Markup {
    let Conclusions { headline, details, cautions } = conclusions;
    html! {
        p.headline { (arrows(headline)) }
        @for sentence in details { p { (arrows(sentence)) } }
        @for sentence in cautions { p.outside { (sentence) } }
    }
}

/// A page has more letters than a terminal.
fn arrows(sentence: &str) -> String {
    sentence.replace("->", "\u{2192}")
}

/// Name of the charts' axis with the sizes.
const MEMORY: &str = "memory";

/// Number of a policy's colour: its place among all, so that it is the same on every page. Those that do not ship
/// follow in the order of their curves.
fn colour(curves: &CacheCurves, name: &str) -> usize {
    let place = POLICIES.iter().position(|row| row.title == name);
    let others = curves.curves.iter().filter(|curve| curve.policy.shipped().is_none());
    place
        .or(others
            .map(|curve| &curve.title)
            .position(|title| title == name)
            .map(|at| POLICIES.len() + at))
        .unwrap_or(0)
}

/// Ratios that differ by less look alike.
const VISIBLE_DIFFERENCE: f64 = 0.001;

fn misses(curves: &CacheCurves) -> Markup {
    let by_request = miss_lines(curves, |at| at.main());
    let by_byte = miss_lines(curves, |at| at.bytes);
    let all = curves.curves.iter().flat_map(|curve| &curve.miss_ratios);
    let differs = all.clone().any(|at| (at.main() - at.bytes).abs() > VISIBLE_DIFFERENCE);
    let title = match curves.options.sample {
        None => "reads that miss, %",
        Some(_) => "uses of cache blocks that miss, %",
    };
    html! {
        (legend(&by_request, false))
        div.panels {
            (draw(&SizeChart { title, axis: MEMORY, lines: &by_request, without_cache: None }))
            @if differs {
                (draw(&SizeChart { title: "bytes that miss, %", axis: MEMORY, lines: &by_byte, without_cache: None }))
            }
        }
    }
}

/// A line for each policy, in per cent.
fn miss_lines(curves: &CacheCurves, value: fn(&MissRatio) -> f64) -> Vec<SizeLine> {
    let point = |at: &MissRatio| SizePoint { size_bytes: at.size_bytes, value: 100.0 * value(at) };
    curves
        .curves
        .iter()
        .map(|curve| {
            let dots: Vec<SizePoint> = curve.miss_ratios.iter().map(point).collect();
            let is_lru = curve.policy == CachePolicy::Lru;
            let points = if is_lru { curves.lru.iter().map(point).collect() } else { dots.clone() };
            SizeLine {
                name: curve.title.clone(),
                colour: colour(curves, &curve.title),
                points,
                dots,
            }
        })
        .collect()
}

fn responses(curves: &CacheCurves, simulated: &SimulatedResponses) -> Markup {
    let means = response_lines(curves, simulated, |at| at.reads.mean_ns / 1e6);
    let p99s = response_lines(curves, simulated, |at| at.reads.p99_ns as f64 / 1e6);
    let without = &simulated.without_cache.reads;
    let mean = SizeChart {
        title: "mean, ms",
        axis: MEMORY,
        lines: &means,
        without_cache: Some(without.mean_ns / 1e6),
    };
    let p99 = SizeChart {
        title: "99th percentile, ms",
        lines: &p99s,
        axis: MEMORY,
        without_cache: Some(without.p99_ns as f64 / 1e6),
    };
    html! {
        (legend(&means, true))
        div.panels { (draw(&mean)) (draw(&p99)) }
    }
}

fn response_lines(
    curves: &CacheCurves,
    simulated: &SimulatedResponses,
    value: fn(&ResponsePoint) -> f64,
) -> Vec<SizeLine> {
    simulated
        .policies
        .iter()
        .map(|of| {
            let points: Vec<SizePoint> = of
                .points
                .iter()
                .map(|at| SizePoint { size_bytes: at.size_bytes, value: value(at) })
                .collect();
            let (name, colour) = (of.title.into(), colour(curves, of.title));
            SizeLine { name, colour, dots: points.clone(), points }
        })
        .collect()
}

fn shown(rows: &Rows) -> Markup {
    let head: Vec<&str> = rows.head.iter().map(String::as_str).collect();
    table(&head, &rows.rows)
}

/// Misses, and the responses that a terminal shows.
fn by_size(curves: &CacheCurves) -> Markup {
    html! {
        (shown(&rows::summary(curves)))
        p.note { (columns(curves)) }
    }
}

fn by_byte(curves: &CacheCurves) -> Markup {
    html! {
        (shown(&rows::miss_ratios(curves, Unit::Bytes)))
        p.note { "In % of the bytes that reads ask for." }
    }
}

fn all_responses(simulated: &SimulatedResponses) -> Markup {
    html! {
        @for of in &simulated.policies {
            h3 { (of.title) ", response in ms" }
            (shown(&rows::responses(&simulated.without_cache, of)))
        }
    }
}

fn what_is_counted(curves: &CacheCurves) -> Markup {
    let unit = curves.cache_block_bytes / 1024;
    html! {
        p {
            "Caches hold blocks of " (unit) " KiB, and know which 512 bytes of each are valid. A read fetches exactly what is missing. "
            "A write updates the blocks that are in the cache, brings none in, and is no use of them. It goes to the drive at once. "
            "Trims and flushes change no cache. Devices of the trace share one cache."
        }
        @if let Some(share) = curves.options.sample {
            p {
                "Miss ratios are estimated from " (share) " of the cache blocks, by uses of reads; writes are left out. "
                "LRU's error is at most the number behind ±, one standard error. Other policies are simulated in miniature, and their error is not known."
            }
        } @else {
            p { "LRU is exact at every size, by stack distances. Other policies are simulated at each size with a dot." }
        }
        p {
            "The first " (grouped(curves.counted.warm_up_requests))
            " requests fill the caches. Neither misses nor responses count there."
        }
        @if let Responses::Simulated(simulated) = &curves.responses { (drive_words(simulated, curves.options.cache_depth)) }
        p.note { (prose("`freewheel sim` with a table `[cache]` adds prefetching and a write buffer.")) }
    }
}

fn drive_words(simulated: &SimulatedResponses, cache_depth: u32) -> Markup {
    let replay = if simulated.dependent_replay {
        "a think time after the request that it waited for"
    } else {
        "at its traced time"
    };
    html! {
        p {
            "Responses are those of " (simulated.model) " (" (simulated.drive) "), whose own queue orders the misses. "
            "A hit takes no time, and at most " (grouped(cache_depth)) " requests are in the storage system at once. Each request arrives " (replay) ". "
            @if simulated.arms > 1 {
                "Each of the drive's " (simulated.arms) " arms has an equal part of the memory."
            }
        }
    }
}

fn policies(curves: &CacheCurves) -> Markup {
    html! {
        dl {
            @for curve in &curves.curves {
                dt { (curve.title) }
                dd { (curve.policy.summary()) }
            }
        }
    }
}

fn options(curves: &CacheCurves) -> Markup {
    let options = serde_json::to_string_pretty(&curves.options).expect("options can be written");
    html! { pre { (options) } }
}
