//! Free work on a page.

use freewheel_freeblock::ByNodes;
use freewheel_sim::RunResult;
use maud::{Markup, html};

use super::words::free_work_parts;
use crate::numbers::{percent, span};
use crate::page::{self, section};
use crate::{bars, chart};
use freewheel_study::figure::{Axes, HeadUseBar, Line};
use freewheel_study::{Course, FreeWork, TaskWork, line, over_the_run};

/// The sections of a run's free work: none where there was none.
pub(crate) fn sections(result: &RunResult) -> Markup {
    let work = FreeWork::new(result);
    html! {
        @if let Some(work) = &work { (section("What free work does with the head's time", &head_use(work))) }
        @if result.free.is_some() { (section("Free work", &words(result))) }
        @if let Some(work) = &work { (all_courses(result, work)) }
    }
}

fn words(result: &RunResult) -> Markup {
    html! {
        @for part in free_work_parts(result) {
            h3 { (part.title) }
            dl { @for (what, value) in part.rows { dt { (what) } dd { (page::prose(&value)) } } }
        }
        @if let Some(work) = FreeWork::new(result) { (nodes_chart(&work.by_nodes)) }
    }
}

fn head_use(work: &FreeWork) -> Markup {
    html! {
        (bars::head_use(&[bar("requests alone", false, work), bar("with free work", true, work)]))
        p.note {
            "Data pass under the head " (moves(false, work)) " of the time for requests, " (moves(true, work))
            " with free work in the gaps."
            @if work.promoted_share + work.copied_share > 0.0 {
                " Promoted requests are among the requests."
            }
        }
    }
}

fn bar(label: &str, with: bool, work: &FreeWork) -> HeadUseBar {
    HeadUseBar { label: label.into(), head_use: work.head_use, with }
}

fn moves(with: bool, work: &FreeWork) -> String {
    let head = &work.head_use;
    let free = if with { head.free_transfer } else { 0.0 };
    percent(head.transfer + free)
}

const PROGRESS_AXES: Axes = Axes { x: "time of the run, minutes", y: "blocks, %", log_x: false };

/// Courses of the first arm's tasks: beside each other, and then one after the other.
fn all_courses(result: &RunResult, work: &FreeWork) -> Markup {
    let (Some(arm), Some(free)) = (result.background.first(), &result.free) else {
        return html! {};
    };
    let is_one = arm.tasks.len() == 1;
    let lines: Vec<Line> = arm.tasks.iter().map(over_the_run).collect();
    let of_arm = if work.arms > 1 { ", on the first arm" } else { "" };
    html! {
        @if !is_one {
            (section("How the tasks go on", &html! {
                p.note { "Each from the beginning of a round to its end, and again" (of_arm) "." }
                (chart::lines(&lines, &PROGRESS_AXES))
            }))
        }
        @for (number, (task, words)) in arm.tasks.iter().zip(&work.tasks).enumerate() {
            (course(&Course::new(task, free.media_bytes_per_second), words, work.arms, number == 0, is_one))
        }
    }
}

/// Course of a task's first round on the first arm. `with_latency` is where all latency went in that time,
/// which is the same for tasks whose rounds take the same time.
fn course(
    course: &Course<'_>,
    task: &TaskWork,
    arms: u64,
    with_latency: bool,
    is_one: bool,
) -> Markup {
    let [progress, bandwidth, shares] =
        [course.progress().to_vec(), course.bandwidth().to_vec(), course.shares().to_vec()];
    let round = task.kind.words();
    let (time, which) = match course.is_over() {
        false => ("time of the round so far, %", " under way"),
        true if task.kind.is_once() => ("time of the round, %", ""),
        true => ("time of the round, %", " that came first"),
    };
    let took = span(course.elapsed_ns() as f64 / 1e9);
    let of_arm = if arms > 1 { " on the first arm" } else { "" };
    let title = if is_one || task.name == round {
        format!("How a {round} goes on")
    } else {
        format!("How a {round} goes on: {}", task.name)
    };
    if course.is_over() && progress.iter().all(|line| line.points.is_empty()) {
        let why = "A server counts rounds and blocks, not their course.";
        return section(&title, &html! { p.note { (why) } });
    }
    if progress.iter().all(|line| line.points.is_empty()) {
        let too_little = "Too little has come in this time for its course to be drawn.";
        return section(&title, &html! { p.note { (too_little) } });
    }
    section(
        &title,
        &html! {
            p.note { "The " (round) (which) (of_arm) ", " (took) "." }
            (titled("Progress", "", &progress, &Axes { x: time, y: "blocks, %", log_x: false }))
            (bandwidth_chart(&bandwidth, time))
            p.note {
                "Delivered is what came in gaps and what requests moved anyway"
                @if task.delivered.in_idle > 0 { ", and what came in idle time" }
                @if task.delivered.copied > 0 { ", and what was copied before writes" }
                "; " (POTENTIAL_IS)
                @if task.delivered.promoted_requests > 0 { ", that of promoted requests included" }
                @if !is_one { "; tasks share it" }
                "."
            }
            @if with_latency {
                (shares_chart(if is_one { "" } else { ", for all tasks" }, &shares, time))
            }
            // In idle time blocks come without any latency of requests, and of a backup no part is
            // enough.
            @if task.delivered.in_idle == 0 && !task.kind.is_once() {
                (efficiency_chart(&[course.efficiency()]))
            }
        },
    )
}

/// Meaning of the potential, with which the lines of bandwidth are compared.
pub(crate) const POTENTIAL_IS: &str = "potential is what the rotational latency would carry at the mean media rate, which may be exceeded while much is wanted";

/// Figure 9 (b).
pub(crate) fn bandwidth_chart(bandwidth: &[Line], x: &'static str) -> Markup {
    titled("Bandwidth around then", "", bandwidth, &Axes { x, y: "MB/s", log_x: false })
}

/// Figure 9 (c), of what is added to the title.
pub(crate) fn shares_chart(whose: &str, shares: &[Line], x: &'static str) -> Markup {
    let axes = Axes { x, y: "of the latency, %", log_x: false };
    titled("Where the latency went", whose, shares, &axes)
}

/// Figure 10 of osdi00.
pub(crate) fn efficiency_chart(efficiency: &[Line]) -> Markup {
    let x = "part of the blocks that is enough, %";
    let axes = Axes { x, y: "of the potential, %", log_x: false };
    titled("Efficiency, if a part of the blocks is enough", "", efficiency, &axes)
}

/// Decisions by the nodes that they look at: their processor time, but for the machine. Empty without
/// decisions.
pub(crate) fn nodes_chart(by_nodes: &ByNodes) -> Markup {
    let all = by_nodes.up_to().last().map_or(0, |(_, decisions)| decisions) as f64;
    let shares = line(
        "decisions",
        by_nodes
            .up_to()
            .map(|(nodes, decisions)| (nodes as f64, 100.0 * decisions as f64 / all))
            .collect(),
    );
    let axes = Axes { x: "nodes of the search, at most", y: "of the decisions, %", log_x: true };
    html! { @if all > 0.0 { (titled("How much decisions look at", "", &[shares], &axes)) } }
}

/// A chart under its title.
pub(crate) fn titled(title: &str, whose: &str, lines: &[Line], axes: &Axes) -> Markup {
    html! {
        h3 { (title) (whose) }
        (chart::lines(lines, axes))
    }
}
