//! Free work on a page.

use freewheel_sim::RunResult;
use maud::{Markup, html};

use super::{Course, FreeWork, free_work_parts};
use crate::chart::{self, Axes, HeadUseBar};
use crate::page::{self, percent, section, span};

/// The sections of a run's free work: none where there was none.
pub(crate) fn sections(result: &RunResult) -> Markup {
    let work = FreeWork::new(result);
    html! {
        @if let Some(work) = &work { (section("What free work does with the head's time", &head_use(work))) }
        @if result.free.is_some() { (section("Free work", &words(result))) }
        @if let Some(work) = &work { (courses(result, work)) }
    }
}

fn words(result: &RunResult) -> Markup {
    html! {
        @for part in free_work_parts(result) {
            h3 { (part.title) }
            dl { @for (what, value) in part.rows { dt { (what) } dd { (value) } } }
        }
    }
}

fn head_use(work: &FreeWork) -> Markup {
    let bar =
        |label: &str, with: bool| HeadUseBar { label: label.into(), head_use: work.head_use, with };
    let moves = |with: bool| {
        let head = &work.head_use;
        let free = if with { head.free_transfer } else { 0.0 };
        percent(head.transfer + free)
    };
    html! {
        (page::chart(&chart::head_use(&[bar("requests alone", false), bar("with free work", true)])))
        p.note {
            "Data pass under the head " (moves(false)) " of the time for requests, " (moves(true))
            " with free work in the gaps."
            @if work.delivered.promoted_requests > 0 { " Promoted requests are among the requests." }
        }
    }
}

/// How the first scan of the first arm went.
fn courses(result: &RunResult, work: &FreeWork) -> Markup {
    let (Some(arm), Some(free)) = (result.background.first(), &result.free) else {
        return html! {};
    };
    let course = Course::new(arm, free.media_bytes_per_second);
    let [progress, bandwidth, shares] =
        [course.progress().to_vec(), course.bandwidth().to_vec(), course.shares().to_vec()];
    let time = "time of the scan, %";
    let lines = |lines: &[chart::Line], x, y| {
        page::chart(&chart::lines(lines, &Axes { x, y, log_x: false }))
    };
    let which = if arm.rounds.is_empty() { "The scan under way" } else { "The first scan" };
    let took = span(course.elapsed_ns() as f64 / 1e9);
    let of_arm = if work.arms > 1 { " of the first arm" } else { "" };
    section(
        "How a scan goes on",
        &html! {
            p.note { (which) (of_arm) ", " (took) "." }
            h3 { "Progress" }
            (lines(&progress, time, "blocks, %"))
            h3 { "Bandwidth around then" }
            (lines(&bandwidth, time, "MB/s"))
            p.note {
                "Delivered is what came in gaps and what requests moved anyway"
                @if work.delivered.in_idle > 0 { ", and what came in idle time" }
                "; potential is what the rotational latency would carry at the media rate"
                @if work.delivered.promoted_requests > 0 { ", that of promoted requests included" }
                "."
            }
            h3 { "Where the latency went" }
            (lines(&shares, time, "of the potential, %"))
            // In idle time blocks come without any latency of requests.
            @if work.delivered.in_idle == 0 {
                h3 { "Efficiency, if a part of the blocks is enough" }
                (lines(&[course.efficiency()], "part of the blocks that is enough, %", "of the potential, %"))
            }
        },
    )
}
