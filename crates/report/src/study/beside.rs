//! Results of the trace on several drives.

use freewheel_study::changes::relative;
use freewheel_study::{DriveSummary, PolicyRun, Study};
use freewheel_units::Bytes;
use maud::{Markup, html};

use super::signed;
use crate::drawing::length;
use crate::numbers::{ms, percent, rate, rpm};
use crate::page::marked_table;

fn all(study: &Study) -> impl Iterator<Item = (&DriveSummary, &PolicyRun)> {
    let first = (&study.drive, study.baseline());
    std::iter::once(first).chain(study.beside.iter().map(|beside| (&beside.drive, &beside.run)))
}

/// The drives in a line each, for a terminal.
pub(super) fn lines(study: &Study) -> Vec<String> {
    let today = study.baseline().result.response.mean_ns;
    if study.beside.is_empty() {
        Vec::new()
    } else {
        all(study)
            .map(|(drive, run)| {
                format!(
                    "{}: mean response {} ms ({}), p99 {} ms, busy {}",
                    drive.model,
                    ms(run.result.response.mean_ns),
                    signed(relative(today, run.result.response.mean_ns)),
                    ms(run.result.response.p99_ns as f64),
                    percent(run.result.utilisation)
                )
            })
            .collect()
    }
}

/// The card of the page; None without drives beside the first.
pub(super) fn card(study: &Study) -> Option<Markup> {
    if study.beside.is_empty() {
        return None;
    }
    let (best, run) = all(study).min_by(|a, b| mean(a.1).total_cmp(&mean(b.1)))?;
    let longest = all(study).map(|(_, run)| mean(run)).fold(1.0, f64::max);
    Some(html! {
        p.lead {
            "Each drive serves this trace in the order of its own queue, or as requests come. Fastest: "
            strong { (best.model) ", " (ms(mean(run))) " ms" } "."
        }
        ol.ranking {
            @for (drive, run) in all(study) {
                li {
                    span.name { (drive.model) small { (Bytes::new(drive.capacity_bytes).human_decimal()) } }
                    span.bar aria-hidden="true" {
                        i.drive style=(format!("left:0;width:{}", length(mean(run) / longest))) {}
                    }
                    span.value { (ms(mean(run))) " ms" }
                    span.value { small { "p99 " (ms(run.result.response.p99_ns as f64)) " ms" } }
                }
            }
        }
        details {
            summary { "Table" }
            (table(study, &best.model))
        }
    })
}

fn mean(run: &PolicyRun) -> f64 {
    run.result.response.mean_ns
}

fn table(study: &Study, best: &str) -> Markup {
    let today = study.baseline().result.response.mean_ns;
    let head = [
        "drive",
        "capacity",
        "rpm",
        "media rate",
        "order",
        "mean, ms",
        "change",
        "p50",
        "p99",
        "busy",
    ];
    marked_table(
        &head,
        &all(study)
            .map(|(drive, run)| {
                let response = &run.result.response;
                vec![
                    drive.model.clone(),
                    Bytes::new(drive.capacity_bytes).human_decimal(),
                    rpm(60e9 / drive.rotation_period_ns as f64),
                    rate(drive.media_bytes_per_second),
                    run.title.clone(),
                    ms(response.mean_ns),
                    signed(relative(today, response.mean_ns)),
                    ms(response.p50_ns as f64),
                    ms(response.p99_ns as f64),
                    percent(run.result.utilisation),
                ]
            })
            .collect::<Vec<_>>(),
        best,
    )
}
