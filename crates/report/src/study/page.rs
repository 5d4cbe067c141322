//! The study as a page.

use freewheel_model::sched::POLICIES;
use freewheel_sim::BusyShares;
use freewheel_units::{Bytes, grouped};
use maud::{Markup, html};

use freewheel_study::Study;

use super::{beside, changes, doubts, figures, how_sure, overview, responses, scrub_page};
use crate::finding::{Finding, Topic};
use crate::numbers::{ms, per_second, percent, rate, ratio, rpm, span, variation};
use crate::page::{self, fold, folds, section, table, trace_name};
use crate::{bars, chart};
use freewheel_study::figure::HeadTimeBar;

pub(super) fn html(study: &Study, findings: &[Finding]) -> String {
    let title = format!("{} on {}", trace_name(&study.options.trace), study.drive.model);
    let lead = format!(
        "{} requests over {}, replayed on {} under {} scheduling policies. {}",
        grouped(study.trace.info.requests),
        span(study.trace.info.span_ns as f64 / 1e9),
        study.drive.name,
        study.runs.len(),
        overview::measured_part(study)
    );
    let (first, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| doubts::is_doubt(finding));
    let (scrub, others): (Vec<&Finding>, Vec<&Finding>) =
        others.into_iter().partition(|finding| finding.topic == Topic::Scrub);
    page::page(
        &title,
        &lead,
        &html! {
            (overview::tiles(study))
            @if !first.is_empty() { (section("Read this first", &list(&first))) }
            @if let Some(changes) = &study.changes {
                (section("What would help", &changes::card(study, changes)))
            }
            div.panels {
                (section("Where and when", &overview::where_and_when(study)))
                (section("Where a request's time goes", &overview::stages(study)))
                @for finding in scrub { (section("A scrub", &page::finding(finding))) }
                (section("Response times", &responses::card(study)))
                (section("How sure is this?", &how_sure::card(study)))
            }
            @if let Some(drives) = beside::card(study) { (section("Drives beside each other", &drives)) }
            (folds(&html! {
                (fold("Findings", &list(&others)))
                (fold("Head time by policy", &head_time(study)))
                (fold("Response times by policy", &policy_table(study, &study.surest_policy_or_today().title)))
                @if let Some(estimate) = &study.scrub {
                    (fold("The estimate of the scrub", &scrub_page::section(study, estimate)))
                }
                (fold("Load over time", &load(study)))
                (fold("The workload", &workload(study)))
                (fold("Drive, replay and options", &setting(study)))
                (fold("Words", &words()))
            }))
        },
    )
}

fn list(findings: &[&Finding]) -> Markup {
    html! {
        ol.findings {
            @for finding in findings {
                li { (page::finding(finding)) }
            }
        }
    }
}

fn head_time(study: &Study) -> Markup {
    let bars: Vec<HeadTimeBar> = study.runs.iter().map(figures::head_time_bar).collect();
    html! {
        (bars::head_time(&bars))
        (busy_table(study))
        p.note { "Shares of head time a policy; below, shares of all time. The drive is busy while a command is in it or it writes back, each of its parts while it works; the busiest part is what limits the drive under more load. Latency while the drive writes back from its buffer is not given away." }
    }
}

fn busy_table(study: &Study) -> Markup {
    let rows: Vec<Vec<String>> = study
        .runs
        .iter()
        .map(|run| {
            let BusyShares { head, bus, electronics, busiest } = run.result.busy_shares;
            let shares = [run.result.utilisation, head, bus, electronics].map(percent);
            let ends = (run.title.clone(), busiest.title().to_owned());
            std::iter::once(ends.0).chain(shares).chain([ends.1]).collect()
        })
        .collect();
    table(&["policy", "drive busy", "head", "bus", "command processing", "busiest part"], &rows)
}

fn policy_table(study: &Study, best: &str) -> Markup {
    let head = [
        "policy",
        "mean",
        "other replay",
        "variation",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "p99.99",
        "longest wait",
        "busy",
        "reads and writes/s",
    ];
    let rows = study.runs.iter().map(|run| {
        let r = &run.result;
        let times = [r.response.p50_ns, r.response.p95_ns, r.response.p99_ns];
        let tails = [r.response.p999_ns, r.response.p9999_ns, r.queue_ns_max];
        let other = run.other_replay.map_or_else(|| "-".into(), |other| ms(other.mean_ns));
        let mut cells = vec![run.title.clone(), ms(r.response.mean_ns), other];
        cells.push(variation(r.response.coefficient_of_variation));
        cells.extend(times.into_iter().chain(tails).map(|ns| ms(ns as f64)));
        cells.push(percent(r.utilisation));
        cells.push(per_second(r.requests_per_second));
        cells
    });
    let by_operation = study.runs.iter().map(|run| {
        let r = &run.result;
        let summaries = [&r.read_response, &r.write_response, &r.flush_response];
        let times = summaries.into_iter().flat_map(|s| match s.count {
            0 => [String::from("-"), String::from("-")],
            _ => [ms(s.mean_ns), ms(s.p99_ns as f64)],
        });
        std::iter::once(run.title.clone()).chain(times).collect()
    });
    let operations = ["policy", "read mean", "p99", "write mean", "p99", "flush mean", "p99"];
    html! {
        (page::marked_table(&head, &rows.collect::<Vec<_>>(), best))
        (page::marked_table(&operations, &by_operation.collect::<Vec<_>>(), best))
        p.note { "Times in ms. Variation: standard deviation over mean. Busy: a command is in the drive, or the drive writes back. Other replay: the mean under it. Marked: what gains most under the replay under which it gains less." }
    }
}

fn load(study: &Study) -> Markup {
    let burst = &study.trace.burstiness;
    let [second, ten_seconds, minute] =
        [burst.peak_to_mean_1s, burst.peak_to_mean_10s, burst.peak_to_mean_60s].map(ratio);
    html! {
        (chart::draw(&figures::byte_rate(study)))
        p.note {
            "Busiest second, ten seconds and minute: " (format!("{second}, {ten_seconds} and {minute}"))
            " times the mean. Index of dispersion of counts in a second: " (ratio(burst.dispersion_1s))
            " (1 for a Poisson process)."
        }
    }
}

fn workload(study: &Study) -> Markup {
    let t = &study.trace;
    let rows = [
        operation_row("requests", grouped(t.info.reads), grouped(t.info.writes)),
        operation_row("with FUA", grouped(t.info.fua_reads), grouped(t.info.fua_writes)),
        operation_row("data", size(t.info.bytes_read), size(t.info.bytes_written)),
        operation_row(
            "mean size",
            Bytes::new(t.sizes.read.mean_bytes as u64).human(),
            Bytes::new(t.sizes.write.mean_bytes as u64).human(),
        ),
        operation_row(
            "median size",
            size(t.sizes.read.median_bytes),
            size(t.sizes.write.median_bytes),
        ),
        operation_row("largest", size(t.sizes.read.max_bytes), size(t.sizes.write.max_bytes)),
        operation_row(
            "sequential",
            percent(t.sequentiality.read_sequential_share),
            percent(t.sequentiality.write_sequential_share),
        ),
        operation_row(
            "footprint",
            size(t.reuse.footprint_read_bytes),
            size(t.reuse.footprint_written_bytes),
        ),
        operation_row(
            "again",
            percent(t.reuse.read_again_share),
            percent(t.reuse.overwritten_share),
        ),
    ];
    html! {
        (table(&["", "reads", "writes"], &rows))
        p.note { "Sequential: starts where the request before it ended. Again: share of 4 KiB blocks read that had been read or written before, and of those written that had been written before." }
        h3 { "Skew" }
        p {
            "Of " (grouped(t.skew.regions)) " touched regions of " (size(t.skew.region_bytes))
            " the hottest 1 %, 10 % and 20 % get " (percent(t.skew.hottest_1_percent_share)) ", "
            (percent(t.skew.hottest_10_percent_share)) " and " (percent(t.skew.hottest_20_percent_share))
            " of the accesses. All touched data: " (size(t.info.footprint_bytes.unwrap_or(0))) "."
        }
    }
}

fn size(bytes: u64) -> String {
    Bytes::new(bytes).human()
}

fn operation_row(name: &str, read: String, write: String) -> Vec<String> {
    vec![name.to_string(), read, write]
}

fn words() -> Markup {
    let terms = [
        ("seek", "moving the arm to another cylinder, changing heads, and settling"),
        ("rotational latency", "waiting, on the right track, until the wanted sector comes by"),
        ("head time", "seek, rotational latency and transfer together"),
        (
            "freeblock scheduling",
            "reading or writing other wanted blocks during the rotational latency, without delaying anybody (Lumb et al., OSDI 2000)",
        ),
        (
            "potential",
            "the mean media rate times the rotational latency; may be exceeded while much is wanted",
        ),
        ("busy", "of a drive: a command is in it, or it writes back from its buffer"),
        ("efficiency", "what was read for free over the potential until then"),
        ("extra seeks", "moving to free transfers and on, beyond the direct way of the requests"),
        ("scrub", "reading every block of the drive, to find those that cannot be read any more"),
        ("flush", "a command that is done when all earlier writes are on the media"),
        (
            "FUA",
            "force unit access: a write that is done only when it is on the media, even with a write cache",
        ),
        ("p99", "99 % of the requests took no longer"),
    ];
    html! {
        dl {
            @for (term, meaning) in terms { dt { (term) } dd { (meaning) } }
            @for row in POLICIES { dt { (row.title) } dd { (row.summary) } }
        }
    }
}

fn setting(study: &Study) -> Markup {
    let drive = &study.drive;
    let rpm = rpm(60e9 / drive.rotation_period_ns as f64);
    let replay = if study.dependent_replay {
        "by dependence: a request comes a think time after the request that it waited for in the traced system (tr03 section 3.1, window of 64)"
    } else {
        "at the traced arrival times"
    };
    let options = serde_json::to_string_pretty(&study.options).expect("options can be written");
    html! {
        p {
            (drive.model) ", " (Bytes::new(drive.capacity_bytes).human_decimal()) ", "
            (rpm) " rpm, mean media rate " (rate(drive.media_bytes_per_second))
            @if drive.electronics {
                ". With the drive's buffer, overheads and bus, and its own command queue where that is named; under a policy it is given one command at a time. Replay "
            } @else {
                ". Without the drive's electronics: every request goes to the media. Replay "
            }
            (replay)
            ". A flush is done when every write that came before it is on the media."
        }
        details { summary { "All options and the seed" } pre { (options) } }
    }
}
