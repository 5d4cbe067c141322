//! Free work in words, the same in a terminal and on a page.

use freewheel_sim::background::{BackgroundTask, BesideResult};
use freewheel_sim::{FreeResult, FreeTime, IdleTime, RunResult};
use freewheel_units::Bytes;

use super::{FreeWork, IdleCost};
use crate::page::{ms, percent, rate, span};

/// A part of what there is to say: a title, and what is said of what.
pub struct FreeWorkPart {
    /// What it is about.
    pub title: &'static str,
    /// Quantity and value.
    pub rows: Vec<(&'static str, String)>,
}

/// What there is to say of a run's free work: nothing where there was none planned.
pub fn free_work_parts(result: &RunResult) -> Vec<FreeWorkPart> {
    let Some(free) = &result.free else { return Vec::new() };
    let work = FreeWork::new(result);
    let part = |title, rows| FreeWorkPart { title, rows };
    let mut parts = Vec::new();
    if let Some(work) = &work {
        parts.push(part("Background work", background(work)));
    }
    let mut beside = beside(result);
    if !beside.is_empty() {
        beside
            .push(("together", "what one read brings to several tasks counts for each".to_owned()));
        parts.push(part("Beside it", beside));
    }
    parts.push(part("Rotational gaps", gaps(result, free, work.as_ref())));
    if let Some(work) = work.as_ref().filter(|work| work.delivered.promoted_requests > 0) {
        parts.push(part("Promotion of the last blocks", promotion(work)));
    }
    if let (Some(work), Some(idle)) = (&work, &result.idle) {
        parts.push(part("Idle time", idle_time(work, idle)));
    }
    parts.extend(work.as_ref().map(|work| part("Decisions", decisions(work))));
    parts
}

fn background(work: &FreeWork) -> Vec<(&'static str, String)> {
    let mut rows = vec![("scans", scans(work))];
    if let (Some(five), Some(one)) = (work.last_5_percent, work.last_1_percent) {
        let (five, one) = (percent(five), percent(one));
        let words = format!("the last 5 % take {five} of a scan's time, the last 1 % {one}");
        rows.push(("last blocks", words));
    }
    let delivered = &work.delivered;
    let sources = [
        (delivered.in_gaps, "in gaps"),
        (delivered.in_passing, "moved by requests anyway"),
        (delivered.in_idle, "in idle time"),
        (delivered.promoted, "promoted"),
    ];
    let total = delivered.total().max(1) as f64;
    let sources: Vec<String> = sources
        .into_iter()
        .filter(|(blocks, _)| *blocks > 0)
        .map(|(blocks, source)| format!("{} {source}", percent(blocks as f64 / total)))
        .collect();
    let bandwidth = rate(work.delivered_bytes_per_second);
    let delivered = match sources.is_empty() {
        true => "nothing".to_owned(),
        false => format!("{bandwidth}: {}", sources.join(", ")),
    };
    rows.push(("delivered", delivered));
    rows
}

/// Tasks beside the first, over all arms.
fn beside(result: &RunResult) -> Vec<(&'static str, String)> {
    let tasks = result.background.first().map_or(0, |arm| arm.beside.len());
    let words = |number: usize| {
        let arms: Vec<&BesideResult> =
            result.background.iter().map(|arm| &arm.beside[number]).collect();
        let BesideResult { task, blocks, block_bytes, .. } = arms[0];
        let name = match task {
            BackgroundTask::DataMining => "data mining",
            BackgroundTask::Scrub => "scrub",
        };
        let rounds: Vec<u64> = arms.iter().flat_map(|arm| arm.rounds_ns.iter().copied()).collect();
        let delivered: u64 = arms.iter().map(|arm| arm.delivered).sum();
        let seconds = result.elapsed_ns as f64 / 1e9;
        let mut words = rate((delivered * block_bytes) as f64 / seconds);
        words += &match rounds.iter().sum::<u64>().checked_div(rounds.len() as u64) {
            Some(mean) => format!(", {} complete, {} each", rounds.len(), span(mean as f64 / 1e9)),
            None => {
                let part = delivered as f64 / (blocks * arms.len() as u64) as f64;
                format!(", {} of the first round", percent(part))
            }
        };
        (name, words)
    };
    (0..tasks).map(words).collect()
}

/// While the last requests end, a next scan begins that is none.
const WORTH_SAYING: f64 = 0.001;

fn scans(work: &FreeWork) -> String {
    let mut words = format!("{} complete", work.scans);
    if let (Some(a_day), Some(ns)) = (work.scans_a_day, work.scan_ns) {
        words += &format!(", {a_day:.1} a day, {} each", span(ns as f64 / 1e9));
    }
    if work.scans == 0 || work.unfinished >= WORTH_SAYING {
        words += &format!("; {} of the next one", percent(work.unfinished));
    }
    if work.arms > 1 {
        words += &format!("; on {} arms, each with its own", work.arms);
    }
    words
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
        rows.push(("efficiency", format!("{efficiency} of that, with what passed anyway")));
    }
    let [used, left] = [free.transfer_share(), free.unused_share()].map(percent);
    let seeks = match free.extra_seek_share() {
        // A write behind a free read on its track need not settle.
        gained if gained < 0.0 => format!("{} gained on the way", percent(-gained)),
        lost => format!("{} lost to extra seeks", percent(lost)),
    };
    let holes = match result.external {
        Some(_) => ", with what lies between wanted blocks in a command",
        None => "",
    };
    let latency = format!("{used} used{holes}, {seeks}, {left} left");
    let FreeTime { gaps, gaps_used, gaps_late, runs, foreground_delay_ns, .. } = time;
    let count = match gaps {
        0 if result.head_time.rotate_ns > 0 => KEPT.to_owned(),
        _ => format!("{gaps}, of them {gaps_used} used, with {runs} runs"),
    };
    let late = match gaps_late {
        0 => "none: no gap ended late".to_owned(),
        _ => format!("{} ms, late behind {gaps_late} gaps", ms(*foreground_delay_ns as f64)),
    };
    rows.extend([("latency", latency), ("gaps", count), ("foreground delay", late)]);
    rows
}

fn promotion(work: &FreeWork) -> Vec<(&'static str, String)> {
    let delivered = &work.delivered;
    let (blocks, requests) = (delivered.promoted, delivered.promoted_requests);
    let seconds = span(delivered.promoted_head_ns as f64 / 1e9);
    let share = percent(work.promoted_share);
    vec![
        ("promoted", format!("{blocks} blocks in {requests} requests")),
        ("cost", format!("{seconds} of the heads, {share} of all time")),
        ("response", "what it grew by: the same run without `promote_tail` tells".to_owned()),
    ]
}

fn idle_time(work: &FreeWork, idle: &IdleTime) -> Vec<(&'static str, String)> {
    let Some(cost) = &work.idle_cost else { return Vec::new() };
    let [read, written] =
        [idle.read_bytes, idle.write_bytes].map(|bytes| Bytes::new(bytes).human());
    let (bandwidth, runs) = (rate(cost.bytes_per_second), idle.runs);
    let (delayed, behind) = (idle.requests_delayed, idle.requests_behind);
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
    let starts = cost.starts;
    match cost.wrong_starts {
        Some(wrong) => {
            format!("{after} ms at the end; {starts} starts, {wrong} of them found wrong")
        }
        None => format!("{after} ms, fixed; {starts} starts"),
    }
}

fn decisions(work: &FreeWork) -> Vec<(&'static str, String)> {
    let FreeWork { decisions, nodes_mean, exhausted, memory_bytes, .. } = *work;
    let memory = Bytes::new(memory_bytes).human();
    vec![
        ("decisions", format!("{decisions}, looking at {nodes_mean:.1} nodes on average")),
        ("beyond budget", format!("{exhausted}")),
        ("memory", memory),
        ("time of one", "`make bench-freeblock` measures it".to_owned()),
    ]
}
