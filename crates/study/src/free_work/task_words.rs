//! One task in words.

use freewheel_sim::background::TaskKind;
use freewheel_units::Bytes;

use super::{DeadlineWork, TaskWork};
use crate::page::{self, percent, rate, span};

/// While the last requests end, a next round begins that is none.
const WORTH_SAYING: f64 = 0.001;

/// What there is to say of a task on so many arms: the same of each task.
pub(super) fn task_rows(task: &TaskWork, arms: u64) -> Vec<(&'static str, String)> {
    let mut rows = vec![("kind", kind(task)), (rounds_are(task.kind), rounds(task, arms))];
    if let (Some(five), Some(one)) = (task.last_5_percent, task.last_1_percent) {
        let (five, one, round) = (percent(five), percent(one), round_is(task.kind));
        let words = format!("the last 5 % take {five} of a {round}'s time, the last 1 % {one}");
        rows.push(("last blocks", words));
    }
    let came = &task.delivered;
    let ways = [
        (came.in_gaps, "in gaps"),
        (came.in_passing, "moved by requests anyway"),
        (came.in_idle, "in idle time"),
        (came.promoted, "promoted"),
        (came.copied, "copied before writes"),
    ];
    let moved = if task.kind == TaskKind::Write { "written" } else { "delivered" };
    rows.push((moved, delivered(task.delivered_bytes_per_second, came.total(), ways)));
    match task.kind {
        TaskKind::Backup => rows.push(("copies", copies(task))),
        TaskKind::Write => rows.push(("superseded", superseded(task))),
        _ => {}
    }
    rows.push(("end", end(task)));
    rows.extend(task.deadline.as_ref().map(|due| ("deadline", deadline(task, due))));
    rows
}

/// Bandwidth, and the parts of a total that came by each way.
pub(super) fn delivered<const N: usize>(
    bytes_per_second: f64,
    total: u64,
    ways: [(u64, &str); N],
) -> String {
    let part = |amount: u64| percent(amount as f64 / total.max(1) as f64);
    let ways: Vec<String> = ways
        .into_iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, way)| format!("{} {way}", part(amount)))
        .collect();
    match ways.is_empty() {
        true => "nothing".to_owned(),
        false => format!("{}: {}", rate(bytes_per_second), ways.join(", ")),
    }
}

fn kind(task: &TaskWork) -> String {
    let what = match task.kind {
        TaskKind::DataMining => "every block, from whatever moves it",
        TaskKind::Sample => "so many blocks, whichever come by",
        TaskKind::Scrub => "every block, from the media",
        TaskKind::ScrubSample => "so many blocks from the media, whichever come by",
        TaskKind::Backup => "every block once, as it was at the beginning",
        TaskKind::Write => "every block once, unless a request writes it",
    };
    let (words, size) = (task.kind.words(), Bytes::new(task.block_bytes).human());
    format!("{words}: {what}; {} of {size}", task.blocks)
}

/// What a round of a task is.
pub(super) fn round_is(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::DataMining => "scan",
        TaskKind::Sample => "sample",
        TaskKind::Scrub => "scrub",
        TaskKind::ScrubSample => "scrub sample",
        TaskKind::Backup => "backup",
        TaskKind::Write => "write",
    }
}

/// Several of them.
fn rounds_are(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::DataMining => "scans",
        TaskKind::Sample => "samples",
        TaskKind::Scrub => "scrubs",
        TaskKind::ScrubSample => "scrub samples",
        TaskKind::Backup => "backup",
        TaskKind::Write => "write",
    }
}

fn rounds(task: &TaskWork, arms: u64) -> String {
    let mut words = format!("{} complete", task.rounds);
    match (task.rounds_a_day, task.round_ns) {
        (_, Some(ns)) if task.kind.is_once() => words += &format!(", in {}", seconds(ns)),
        (Some(a_day), Some(ns)) => {
            words += &format!(", {} a day, {} each", page::rounds(a_day), seconds(ns));
        }
        _ => {}
    }
    if is_under_way(task) {
        let which = if task.kind.is_once() { "it" } else { "the next one" };
        words += &format!("; {} of {which}", percent(task.unfinished));
    }
    if arms > 1 {
        words += &format!("; on {arms} arms, each with its own");
    }
    words
}

fn is_under_way(task: &TaskWork) -> bool {
    task.rounds == 0 || task.unfinished >= WORTH_SAYING
}

/// What a backup cost the foreground.
fn copies(task: &TaskWork) -> String {
    let came = &task.delivered;
    let (blocks, requests) = (came.copied, came.copied_requests);
    match requests {
        0 => "none: no request wrote over what was not read yet".to_owned(),
        _ => format!(
            "{blocks} blocks in {requests} requests of their own, {} of the heads: read before requests \
             wrote over them, which waited; what responses grew by, the same run without `freeblock` tells",
            seconds(came.copied_head_ns)
        ),
    }
}

/// What the foreground has taken off it.
fn superseded(task: &TaskWork) -> String {
    match task.delivered.superseded {
        0 => "none: no request brought newer data before".to_owned(),
        blocks => format!("{blocks} blocks: a request brought newer data before"),
    }
}

fn end(task: &TaskWork) -> String {
    let (last, next) = match task.kind.is_once() {
        true => ("it", "it"),
        false => ("the last one", "the one under way"),
    };
    let ended = task.ended_ns.map(|ns| format!("{last} ended after {}", seconds(ns)));
    let expected = is_under_way(task).then(|| match task.expected_end_ns {
        Some(ns) => format!("{next} was expected to end after {}", seconds(ns)),
        None => format!("too little of {next} has come to tell"),
    });
    let words: Vec<String> = ended.into_iter().chain(expected).collect();
    words.join("; ")
}

fn deadline(task: &TaskWork, due: &DeadlineWork) -> String {
    let DeadlineWork { deadline_ns, held, missed, longest_ns, due_ns, will_be_held } = *due;
    let mut words = format!("{} each", seconds(deadline_ns));
    if held + missed > 0 {
        let longest = seconds(longest_ns);
        words += &format!(": held {held} times, missed {missed} times, the longest took {longest}");
    }
    if is_under_way(task) {
        let expected = task.expected_end_ns.map(|ns| format!("expected after {}", seconds(ns)));
        let will = match will_be_held {
            Some(true) => "will be held",
            Some(false) => "will be missed",
            None => "nobody can tell yet",
        };
        let expected = expected.map(|words| format!(", {words}")).unwrap_or_default();
        words += &format!("; the next one is due after {}{expected}: {will}", seconds(due_ns));
    }
    words
}

fn seconds(ns: u64) -> String {
    span(ns as f64 / 1e9)
}
