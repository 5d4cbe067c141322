//! What write-back costs the foreground, and what it is worth to it.

use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;
use freewheel_sim::config::{ReferenceRun, WriteBackReferences};
use maud::{Markup, html};

use crate::chart::{self, Axes, Line};
use crate::page::{self, ms, section};

/// The foreground of a run with write-back beside that with other memories.
pub(super) fn rows(
    result: &RunResult,
    references: &WriteBackReferences,
) -> Vec<(&'static str, String)> {
    let WriteBackReferences { endless_memory, no_memory } = references;
    let this = (&result.read_response, &result.write_response, result.requests_per_second);
    let of = |run: &ReferenceRun| {
        words((&run.read_response, &run.write_response, run.requests_per_second))
    };
    vec![
        ("this run", words(this)),
        ("endless memory", format!("{}: no request is made for a dirty block", of(endless_memory))),
        ("no memory", format!("{}: every write is a request", of(no_memory))),
        ("reads pay", reads_pay(result, references)),
    ]
}

fn words((reads, writes, requests_per_second): (&Summary, &Summary, f64)) -> String {
    let of = |all: &Summary| format!("{} ms, p99 {} ms", ms(all.mean_ns), ms(all.p99_ns as f64));
    format!("reads {}; writes {}; {requests_per_second:.1} requests/s", of(reads), of(writes))
}

/// What a read waits longer for the promoted requests, on average and at the 99th percentile.
fn reads_pay(result: &RunResult, references: &WriteBackReferences) -> String {
    let (this, free) = (&result.read_response, &references.endless_memory.read_response);
    let [mean, p99] = [this.mean_ns - free.mean_ns, this.p99_ns as f64 - free.p99_ns as f64]
        .map(|added| format!("{}{} ms", if added < 0.0 { "-" } else { "+" }, ms(added.abs())));
    format!(
        "{mean}, p99 {p99} for the writing that gaps have no room for; clients whose writes are done \
         at once ask sooner, so compare with no memory by requests/s as well"
    )
}

/// The responses of reads in the three runs, drawn: nothing where there is no write-back.
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
    section("What reads pay for write-back", &html! { (page::chart(&chart::lines(&lines, &axes))) })
}
