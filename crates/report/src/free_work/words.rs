//! Free work in words, the same in a terminal and on a page.

use freewheel_sim::{FreeResult, FreeTime, IdleTime, RunResult};
use freewheel_units::{Bytes, grouped};

use super::task_words::{delivered, task_rows};
use crate::numbers::{average, ms, percent, rate, span};
use freewheel_study::{Delivered, FreeWork, IdleCost, TaskWork};

/// A titled part of the free work: quantities and their values.
pub struct FreeWorkPart {
    /// The subject of the part.
    pub title: String,
    /// Quantity and value.
    pub rows: Vec<(&'static str, String)>,
}

/// A run's free work in words, by part; empty where none was planned.
pub fn free_work_parts(result: &RunResult) -> Vec<FreeWorkPart> {
    let Some(free) = &result.free else { return Vec::new() };
    let work = FreeWork::new(result);
    let mut parts = Vec::new();
    if let Some(work) = &work {
        parts.extend(
            work.tasks
                .iter()
                .map(|task| FreeWorkPart { title: title(task), rows: task_rows(task, work.arms) }),
        );
        if work.tasks.len() > 1 {
            parts.push(part("All background tasks", together(work)));
        }
    }
    parts.push(part("Rotational gaps", gaps(result, free, work.as_ref())));
    if let Some(work) = work.as_ref().filter(|work| of_tails(work, |d| d.promoted_requests) > 0) {
        parts.push(part("Promotion of the last blocks", promotion(work, result)));
    }
    if let (Some(work), Some(idle)) = (&work, &result.idle) {
        parts.push(part("Idle time", idle_time(work, idle)));
    }
    parts.extend(work.as_ref().map(|work| part("Decisions", decisions(work))));
    parts
}

fn part(title: &str, rows: Vec<(&'static str, String)>) -> FreeWorkPart {
    FreeWorkPart { title: title.into(), rows }
}

/// Title of the part about a task.
pub(super) fn title(task: &TaskWork) -> String {
    format!("Background task: {}", task.name)
}

fn together(work: &FreeWork) -> Vec<(&'static str, String)> {
    let total = work.bytes(Delivered::total);
    let ways = [
        (work.bytes(|d| d.in_gaps), "in gaps"),
        (work.bytes(|d| d.in_passing), "moved by requests anyway"),
        (work.bytes(|d| d.in_idle), "in idle time"),
        (work.bytes(|d| d.promoted), "promoted"),
        (work.bytes(|d| d.copied), "copied before writes"),
    ];
    let delivered = delivered(work.delivered_bytes_per_second, total, ways);
    vec![
        ("delivered", delivered),
        ("counted", "what one read brings to several tasks counts for each".to_owned()),
    ]
}

/// Heads wait for the data, and none of that is given away.
const KEPT: &str = "none: the drive reads the blocks that pass before the wanted ones into its own buffer (`keep_free_blocks_before`), or all latency is of writing back; `keep_free_blocks_before = false` in the experiment gives the latency of reads away, `electronics = false` all of it";

fn gaps(
    result: &RunResult,
    free: &FreeResult,
    work: Option<&FreeWork>,
) -> Vec<(&'static str, String)> {
    let time: &FreeTime = &free.time;
    let [achieved, potential] = [free.bytes_per_second, free.potential_bytes_per_second].map(rate);
    let [read, written] =
        [time.read_bytes, time.write_bytes].map(|bytes| Bytes::new(bytes).human());
    let mut rows = vec![
        (
            "free bandwidth",
            format!(
                "{achieved} of {potential}, the mean media rate times latency; may be exceeded while much is wanted"
            ),
        ),
        ("free blocks", format!("{read} read, {written} written")),
    ];
    if let Some(work) = work {
        let efficiency = percent(work.efficiency);
        let several = if work.tasks.len() > 1 { ", for each task that wanted it" } else { "" };
        rows.push((
            "efficiency",
            format!("{efficiency} of that, with what passed anyway{several}"),
        ));
    }
    let [used, left] = [free.transfer_share(), free.unused_share()].map(percent);
    let seeks = match free.extra_seek_share() {
        // A write behind a free read on its track need not settle.
        gained if gained < 0.0 => format!("{} gained on the way", percent(-gained)),
        lost => format!("{} lost to extra seeks", percent(lost)),
    };
    let holes = match result.host {
        Some(_) => ", with what lies between wanted blocks in a command",
        None => "",
    };
    let latency = format!("{used} used{holes}, {seeks}, {left} left");
    let &FreeTime { gaps, gaps_used, gaps_late, runs, foreground_delay_ns, .. } = time;
    let count = match gaps {
        0 if result.head_time.rotate_ns > 0 => KEPT.to_owned(),
        _ => {
            let [gaps, used, runs] = [gaps, gaps_used, runs].map(grouped);
            format!("{gaps}, of them {used} used, with {runs} runs")
        }
    };
    let late = match gaps_late {
        0 if work.is_some_and(has_requests) => {
            "none by gaps: none ended late; the cost of requests for free work is listed apart"
                .to_owned()
        }
        0 => "none: no gap ended late".to_owned(),
        _ => format!(
            "{} ms, late behind {} gaps",
            ms(foreground_delay_ns as f64),
            grouped(gaps_late)
        ),
    };
    rows.extend([("latency", latency), ("gaps", count), ("foreground delay", late)]);
    rows
}

/// True if any free work was done by requests made for it.
fn has_requests(work: &FreeWork) -> bool {
    work.tasks
        .iter()
        .any(|task| task.delivered.copied_requests + task.delivered.promoted_requests > 0)
}

/// Sum over the tasks, whose tails were promoted.
fn of_tails(work: &FreeWork, of: fn(&Delivered) -> u64) -> u64 {
    work.tasks.iter().map(|task| of(&task.delivered)).sum()
}

fn promotion(work: &FreeWork, result: &RunResult) -> Vec<(&'static str, String)> {
    let [blocks, requests] =
        [of_tails(work, |d| d.promoted), of_tails(work, |d| d.promoted_requests)];
    let head_ns = of_tails(work, |d| d.promoted_head_ns) as f64;
    let (seconds, share) = (span(head_ns / 1e9), percent(head_ns / result.arms_ns.max(1) as f64));
    vec![
        ("promoted", format!("{} blocks in {} requests", grouped(blocks), grouped(requests))),
        ("cost", format!("{seconds} of the heads, {share} of all time")),
        ("response", "compare with the same run without `promote_tail`".to_owned()),
    ]
}

fn idle_time(work: &FreeWork, idle: &IdleTime) -> Vec<(&'static str, String)> {
    let Some(cost) = &work.idle_cost else { return Vec::new() };
    let [read, written] =
        [idle.read_bytes, idle.write_bytes].map(|bytes| Bytes::new(bytes).human());
    let (bandwidth, runs) = (rate(cost.bytes_per_second), grouped(idle.runs));
    let [delayed, behind] = [idle.requests_delayed, idle.requests_behind].map(grouped);
    let (later, share) = (ms(cost.delay_ns_mean), percent(cost.behind));
    let added = cost.response_ns_added;
    let sign = if added < 0.0 { "-" } else { "+" };
    vec![
        ("moved", format!("{read} read, {written} written, {bandwidth}, with {runs} runs")),
        ("heads", format!("busy with it {} of the time", percent(work.head_use.idle_work))),
        ("requests behind", format!("{behind}, {share} of all")),
        ("of them delayed", format!("{delayed}, by {later} ms on average")),
        ("mean response", format!("{sign}{} ms, over all requests", ms(added.abs()))),
        ("timeout", timeout(cost)),
    ]
}

fn timeout(cost: &IdleCost) -> String {
    let after = ms(cost.timeout_ns_mean);
    let starts = grouped(cost.starts);
    match cost.wrong_starts {
        Some(wrong) => {
            let wrong = grouped(wrong);
            format!("{after} ms at the end; {starts} starts, {wrong} of them found wrong")
        }
        None => format!("{after} ms, fixed; {starts} starts"),
    }
}

fn decisions(work: &FreeWork) -> Vec<(&'static str, String)> {
    let &FreeWork { decisions, nodes_mean, patience_nodes, ref by_nodes, exhausted, .. } = work;
    let memory = Bytes::new(work.memory_bytes).human();
    if decisions == 0 {
        return vec![("decisions", "none".into()), ("memory", memory)];
    }
    let [half, most] = [0.5, 0.99].map(|part| grouped(by_nodes.no_more_than(part)));
    let nodes = format!(
        "{} nodes of the search on average, each a part of the drive; half at no more than \
         {half}, 99 % at no more than {most}",
        average(nodes_mean)
    );
    let cut_short = match exhausted {
        0 if patience_nodes.is_some() => "none by `nodes_max`".to_owned(),
        0 => "none: each was searched to its end".to_owned(),
        _ => format!(
            "{}, at `nodes_max` nodes: there may have been something better",
            grouped(exhausted)
        ),
    };
    let mut rows = vec![
        ("decisions", format!("{}, looking at {nodes}", grouped(decisions))),
        ("cut short", cut_short),
    ];
    if let Some(patience) = patience_nodes {
        let patience = grouped(patience);
        let end = "a search for paths ends when a little more would take much more work";
        rows.push(("patience", format!("{patience} nodes: {end}")));
    }
    rows.push(("memory", memory));
    rows
}
