//! One simulation as a page.

use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;
use freewheel_sim::config::{SimConfig, WithoutEffect, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_units::grouped;
use maud::{Markup, html};

use crate::bars;
use crate::cache_work::cache_rows;
use crate::chart;
use crate::command_work::command_rows;
use crate::files_run;
use crate::finding::{Confidence, Finding, Topic};
use crate::free_work;
use crate::numbers::{average, ms, per_second, percent, rate, span, variation};
use crate::page::{self, section, table, trace_name};
use crate::postmark::{passes, postmark_cautions};
use crate::shingled::shingled_cautions;
use crate::stages::stage_table;
use crate::trace_order::trace_cautions;
use freewheel_study::figure::{Axes, HeadTimeBar, Line};

/// Cautions about a run's result.
pub fn cautions(experiment: &Experiment, result: &RunResult) -> Vec<Finding> {
    let (config, spec) = (&experiment.config, &experiment.spec);
    let other = result.other_times.as_ref();
    let files = config.trace_files();
    let traces = files.into_iter().zip(experiment.traces());
    let mut all = trace_cautions(traces, result, other);
    all.extend(shingled_cautions(spec.zoned.map(|zoned| zoned.kind), result));
    all.extend(postmark_cautions(config, spec, result));
    all.extend(files_run::overload(config, result));
    all.extend(experiment.without_effect(result).into_iter().map(without_effect));
    all
}

fn without_effect(WithoutEffect { key, why }: WithoutEffect) -> Finding {
    let says = format!("Without effect: `{key}`, as {why}.");
    Finding::new(Topic::WithoutEffect, Confidence::Given, says)
}

/// The page of `freewheel sim --report`.
pub fn sim_html(experiment: &Experiment, result: &RunResult) -> String {
    let config = &experiment.config;
    let title = title(experiment, result);
    let lead = format!(
        "{} requests in {} of virtual time; seed {}, result hash {}.",
        grouped(result.requests),
        span(result.elapsed_ns as f64 / 1e9),
        config.seed,
        result.result_hash
    );
    let cautions = cautions(experiment, result);
    page::page(
        &title,
        &lead,
        &html! {
            @for caution in &cautions {
                div.caution { (page::finding(caution)) }
            }
            (passes(result))
            (section("Where the head's time goes", &head_time(result)))
            (caches(result))
            (commands(result))
            @for (title, rows) in files_run::tables(result) { (section(title, &rows.html())) }
            (free_work::sections(result))
            (section("Response times", &responses(result)))
            (section("Configuration", &configuration(config)))
        },
    )
}

fn title(experiment: &Experiment, result: &RunResult) -> String {
    let (config, spec) = (&experiment.config, &experiment.spec);
    let load = match &config.workload {
        Workload::Closed { outstanding: 1, .. } => "one client".into(),
        Workload::Closed { outstanding, .. } => format!("{outstanding} clients"),
        Workload::Open { .. } => "Poisson arrivals".into(),
        Workload::Trace(trace) => trace_name(trace),
        Workload::Postmark(_) => "PostMark".into(),
        Workload::Files(_) => match result.disks.len() {
            1 => format!("files on {}", spec.model),
            disks => format!("files on {disks} disks"),
        },
    };
    // Files name how many disks there are, and their table says of which drives.
    let drive = match &config.workload {
        Workload::Files(_) => String::new(),
        _ => format!(" on {}", spec.model),
    };
    let policy = experiment.own_policy().map_or_else(|| config.scheduler.title(), str::to_owned);
    let mut title = format!("{load}{drive} under {policy}");
    if let Some(policy) = experiment.own_cache_policy() {
        title += &format!(", with a cache under {policy}");
    }
    if let Some(arm) = result.background.first() {
        let tasks: Vec<&str> = arm.tasks.iter().map(|task| &*task.name).collect();
        title += &format!(", free work: {}", tasks.join(", "));
    }
    title
}

fn head_time(result: &RunResult) -> Markup {
    let stages = stage_table(result);
    let rows: Vec<Vec<String>> =
        stages.rows.iter().map(|row| row.cells(stages.head.len())).collect();
    let bar = HeadTimeBar {
        label: "head time".into(),
        head_time: result.head_time,
        writing_back_rotate_ns: 0,
        rotate_share_elsewhere: None,
        note: format!("busy {} of the time", percent(result.utilisation)),
    };
    html! {
        (bars::head_time(&[bar]))
        (table(&stages.head, &rows))
        p.note {
            (format!("{} requests/s, ", per_second(result.requests_per_second))) (rate(result.bytes_per_second))
            (format!("; {} requests outstanding on average, {} at most; ", average(result.outstanding_mean), grouped(result.outstanding_max)))
            "longest wait for the head " (ms(result.queue_ns_max as f64)) " ms."
        }
    }
}

fn caches(result: &RunResult) -> Markup {
    let rows = cache_rows(result).into_iter().map(|(part, words)| vec![part.to_owned(), words]);
    let rows: Vec<Vec<String>> = rows.collect();
    html! {
        @if !rows.is_empty() {
            (section("What the caches did", &table(&["part", "work"], &rows)))
        }
    }
}

fn commands(result: &RunResult) -> Markup {
    let rows = command_rows(result).into_iter().map(|(part, words)| vec![part.to_owned(), words]);
    let rows: Vec<Vec<String>> = rows.collect();
    html! {
        @if !rows.is_empty() {
            (section("What the drive did with marked commands", &table(&["part", "work"], &rows)))
        }
    }
}

fn responses(result: &RunResult) -> Markup {
    let lines = [
        line("all", &result.response_distribution),
        line("reads", &result.read_distribution),
        line("writes", &result.write_distribution),
    ];
    let axes = Axes { x: "response time, ms", y: "requests that take longer, %", log_x: true };
    let mut all = vec![
        ("all", &result.response),
        ("reads", &result.read_response),
        ("writes", &result.write_response),
    ];
    all.extend(result.fua_write_response.as_ref().map(|forced| ("writes with FUA", forced)));
    all.push(("flushes", &result.flush_response));
    let happened = all.into_iter().filter(|(_, summary)| summary.count > 0);
    let rows: Vec<Vec<String>> = happened.map(|(name, summary)| row(name, summary)).collect();
    let head = ["", "count", "mean", "p50", "p95", "p99", "p99.9", "p99.99", "max", "variation"];
    html! {
        (chart::lines_over_log_y(&lines, &axes))
        (table(&head, &rows))
        p.note {
            "Times in ms. Variation: standard deviation over mean."
            @if result.write_response.count > 0 && result.write_response.max_ns == 0 {
                " All writes were done as they came, in no time, so the chart has no line of theirs."
            }
        }
    }
}

fn line(name: &str, distribution: &freewheel_model::stats::Distribution) -> Line {
    Line::longer_ms(name, distribution)
}

fn row(name: &str, s: &Summary) -> Vec<String> {
    let times = [s.p50_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.p9999_ns, s.max_ns];
    let mut cells = vec![name.to_string(), grouped(s.count), ms(s.mean_ns)];
    cells.extend(times.map(|ns| ms(ns as f64)));
    cells.push(variation(s.coefficient_of_variation));
    cells
}

/// Meaning of the key `region_weights` of a configuration.
pub const REGION_WEIGHTS: &str = "regions of the drive that lag behind count for more";

fn configuration(config: &SimConfig) -> Markup {
    html! {
        pre { (serde_json::to_string_pretty(config).expect("a configuration can be written")) }
        @if config.freeblock.is_some() { p.note { "With region weights, " (REGION_WEIGHTS) "." } }
    }
}
