//! Cost and benefit of write-back for the foreground.

use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;
use freewheel_sim::background::UseResult;
use freewheel_sim::{ReferenceRun, WriteBackReferences};
use maud::{Markup, html};

use crate::chart;
use crate::finding::{Confidence, Cost, Finding, Topic, Unit};
use crate::numbers::ms;
use crate::page::section;
use freewheel_study::figure::{Axes, Line};

/// That write-back has taken no write, or that the foreground is better off without.
pub(crate) fn write_back_cautions(result: &RunResult) -> Vec<Finding> {
    let Some(references) = &result.write_back_references else { return Vec::new() };
    none_taken(result).or_else(|| worse(result, references)).into_iter().collect()
}

fn none_taken(result: &RunResult) -> Option<Finding> {
    let tasks = result.background.iter().flat_map(|background| &background.tasks);
    let uses = tasks.filter_map(|task| match task.used.as_ref()? {
        UseResult::WriteBack(came) => Some((came.writes, came.taken)),
        _ => None,
    });
    let (writes, taken) = uses.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    (writes > 0 && taken == 0).then(|| {
        Finding::new(
            Topic::WriteBack,
            Confidence::Simulated,
            "Write-back has taken none of the writes into memory.",
        )
        .number("writes taken", 0.0, Unit::Count)
        .cost(Cost::Setting)
        .action("Use a smaller `block_size` or more `memory`: write-back takes writes of whole blocks that fit.")
    })
}

fn worse(result: &RunResult, references: &WriteBackReferences) -> Option<Finding> {
    let WriteBackReferences { endless_memory, no_memory } = references;
    let (with, without) = (&result.read_response, &no_memory.read_response);
    let is_worse = with.mean_ns > without.mean_ns
        && result.requests_per_second <= no_memory.requests_per_second;
    let headline = format!(
        "Without write-back this load does better: {:.1} instead of {:.1} requests/s.",
        no_memory.requests_per_second, result.requests_per_second
    );
    is_worse.then(|| {
        Finding::new(Topic::WriteBack, Confidence::Simulated, headline)
            .number("without write-back", no_memory.requests_per_second, Unit::RequestsPerSecond)
            .cost(Cost::Setting)
            .detail(format!(
                "Reads take {} ms with write-back, and {} ms where every write is a request.",
                ms(with.mean_ns),
                ms(without.mean_ns)
            ))
            .detail(format!(
                "With endless `memory` they would take {} ms at {:.1} requests/s.",
                ms(endless_memory.read_response.mean_ns),
                endless_memory.requests_per_second
            ))
    })
}

/// The foreground of a run with write-back beside that with other memories.
pub(super) fn rows(
    result: &RunResult,
    references: &WriteBackReferences,
) -> Vec<(&'static str, String)> {
    let WriteBackReferences { endless_memory, no_memory } = references;
    let this = (&result.read_response, &result.write_response, result.requests_per_second);
    vec![
        ("this run", words(this)),
        (
            "endless memory",
            format!("{}: no request is made for a dirty block", words_of(endless_memory)),
        ),
        ("no memory", format!("{}: every write is a request", words_of(no_memory))),
        ("reads against endless memory", against_endless(result, references)),
    ]
}

fn words_of(run: &ReferenceRun) -> String {
    words((&run.read_response, &run.write_response, run.requests_per_second))
}

fn words((reads, writes, requests_per_second): (&Summary, &Summary, f64)) -> String {
    format!(
        "reads {}; writes {}; {requests_per_second:.1} requests/s",
        mean_and_p99(reads),
        mean_and_p99(writes)
    )
}

fn mean_and_p99(all: &Summary) -> String {
    format!("{} ms, p99 {} ms", ms(all.mean_ns), ms(all.p99_ns as f64))
}

/// Time of reads beyond that with endless memory, on average and at the 99th percentile: two loads where
/// clients wait for answers.
fn against_endless(result: &RunResult, references: &WriteBackReferences) -> String {
    let (this, free) = (&result.read_response, &references.endless_memory.read_response);
    let [mean, p99] = [this.mean_ns - free.mean_ns, this.p99_ns as f64 - free.p99_ns as f64]
        .map(|added| format!("{}{} ms", if added < 0.0 { "-" } else { "+" }, ms(added.abs())));
    format!(
        "{mean}, p99 {p99}, at {:.1} against {:.1} requests/s: clients that wait for answers ask \
         the sooner the faster they come",
        result.requests_per_second, references.endless_memory.requests_per_second
    )
}

/// The responses of reads in the three runs, drawn; empty without write-back.
pub(super) fn chart(result: &RunResult) -> Markup {
    let Some(WriteBackReferences { endless_memory, no_memory }) = &result.write_back_references
    else {
        return html! {};
    };
    let lines = [
        Line::cumulative_ms("this run", &result.read_distribution),
        Line::cumulative_ms("endless memory", &endless_memory.read_distribution),
        Line::cumulative_ms("no memory", &no_memory.read_distribution),
    ];
    let axes = Axes { x: "response time of reads, ms", y: "share of reads, %", log_x: true };
    section("Reads with write-back", &html! { (chart::lines(&lines, &axes)) })
}
