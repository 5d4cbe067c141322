//! One task in words.

use freewheel_freeblock::tasks::{RoundKind, TaskKind};
use freewheel_freeblock::uses::CompareCounts;
use freewheel_sim::background::{CompareResult, UseResult};
use freewheel_units::{Bytes, grouped};

use crate::numbers::{self, percent, rate, span};
use freewheel_study::{DeadlineWork, TaskWork};

/// While the last requests end, a next round begins that is none.
const WORTH_SAYING: f64 = 0.001;

/// Part of a round from which its own course says how it slows down. Before that the end expected rests
/// on how rounds slow down behind requests that go everywhere (`TRUST` and `TailModel` of the model's
/// estimate): gaps of requests that keep to parts of the drive reach the last blocks seldom or never.
const SLOWING_SEEN: f64 = 0.5;

/// The rows about a task, which are the same for every task.
pub(super) fn task_rows(task: &TaskWork, arms: u64) -> Vec<(&'static str, String)> {
    let mut rows = vec![("kind", kind(task)), (rounds_are(task.kind), rounds(task, arms))];
    if let (Some(five), Some(one)) = (task.last_5_percent, task.last_1_percent) {
        let (five, one, round) = (percent(five), percent(one), task.kind.words());
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
    let moved = match task.kind.task {
        TaskKind::Write | TaskKind::Refresh => "written",
        _ => "delivered",
    };
    rows.push((moved, delivered(task.delivered_bytes_per_second, came.total(), ways)));
    match task.kind.task {
        TaskKind::Backup => rows.push(("copies", copies(task))),
        TaskKind::Write => rows.push(("superseded", superseded(task))),
        _ => {}
    }
    if let Some(UseResult::Compare(result)) = &task.used {
        rows.extend(compare_rows(result, task.block_bytes));
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
    let ways: Vec<String> = ways
        .into_iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, way)| format!("{} {way}", part(amount, total)))
        .collect();
    if ways.is_empty() {
        "nothing".to_owned()
    } else {
        format!("{}: {}", rate(bytes_per_second), ways.join(", "))
    }
}

fn kind(task: &TaskWork) -> String {
    let what = match (task.kind.task, task.kind.is_sample) {
        (TaskKind::Scrub, true) => "a number of blocks from the media, in any order",
        (_, true) => "a number of blocks, in any order",
        (TaskKind::Scan, _) => "every block, from any read or write",
        (TaskKind::Scrub, _) => "every block, from the media",
        (TaskKind::Backup, _) => "every block once, as it was at the beginning",
        (TaskKind::Write, _) => "every block once, unless a request writes it",
        (TaskKind::Compare, _) => "two versions of every block, both in memory to be compared",
        (TaskKind::Refresh, _) => "every block written with its own data, and read back",
    };
    let (words, size) = (task.kind.words(), Bytes::new(task.block_bytes).human());
    format!("{words}: {what}; {} of {size}", grouped(task.blocks))
}

fn compare_rows(result: &CompareResult, block_bytes: u64) -> Vec<(&'static str, String)> {
    let CompareResult { counts, memory_bytes } = *result;
    let CompareCounts { compared, unmatched_bytes_max } = counts;
    let [block, waited, memory] =
        [block_bytes, unmatched_bytes_max, memory_bytes].map(|bytes| Bytes::new(bytes).human());
    vec![
        (
            "compared",
            format!(
                "{} pairs of {block}; which differ a simulation does not know, its drives hold no data",
                grouped(compared)
            ),
        ),
        ("memory", format!("{waited} waited for their other version at most, of {memory}")),
    ]
}

fn part(count: u64, of: u64) -> String {
    percent(count as f64 / of.max(1) as f64)
}

fn rounds_are(kind: RoundKind) -> &'static str {
    match (kind.task, kind.is_sample) {
        (TaskKind::Scan, false) => "scans",
        (TaskKind::Scan, true) => "samples",
        (TaskKind::Scrub, false) => "scrubs",
        (TaskKind::Scrub, true) => "scrub samples",
        _ => kind.words(),
    }
}

fn rounds(task: &TaskWork, arms: u64) -> String {
    let mut words = format!("{} complete", grouped(task.rounds));
    match (task.rounds_a_day, task.round_ns) {
        (_, Some(ns)) if task.kind.is_once() => words += &format!(", in {}", seconds(ns)),
        (Some(a_day), Some(ns)) => {
            words += &format!(", {} a day, {} each", numbers::rounds(a_day), seconds(ns));
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

/// Cost of a backup to the foreground.
fn copies(task: &TaskWork) -> String {
    let came = &task.delivered;
    let (blocks, requests) = (came.copied, came.copied_requests);
    match (blocks, requests) {
        (0, 0) => "none: no request wrote over what was not read yet".to_owned(),
        // A scheduler outside the drive does not split head times by request.
        (_, 0) => format!("{} blocks, read before requests wrote over them", grouped(blocks)),
        _ => format!(
            "{} blocks in {} requests of their own, {} of the heads: read before requests \
             wrote over them, which waited; what responses grew by, the same run without `freeblock` tells",
            grouped(blocks),
            grouped(requests),
            seconds(came.copied_head_ns)
        ),
    }
}

/// Blocks of the task that the foreground has done.
fn superseded(task: &TaskWork) -> String {
    match task.delivered.superseded {
        0 => "none: no request brought newer data before".to_owned(),
        blocks => format!("{} blocks: a request brought newer data before", grouped(blocks)),
    }
}

fn end(task: &TaskWork) -> String {
    let (last, next) =
        if task.kind.is_once() { ("it", "it") } else { ("the last one", "the one under way") };
    let ended = task.ended_ns.map(|ns| format!("{last} ended after {}", seconds(ns)));
    let expected = is_under_way(task).then(|| match task.expected_end_ns {
        Some(ns) => format!("{next} was expected to end after {}{}", seconds(ns), grounds(task)),
        None => format!("too little of {next} has come to tell"),
    });
    let words: Vec<String> = ended.into_iter().chain(expected).collect();
    words.join("; ")
}

/// Basis of an expected end, where that is little.
fn grounds(task: &TaskWork) -> String {
    if has_seen_slowing(task) {
        return String::new();
    }
    let last = match task.kind.is_sample {
        // Whichever blocks are easy to get are enough.
        true => "",
        false => {
            ", if requests go everywhere alike; where they keep to parts of the drive the last blocks take longer"
        }
    };
    let elsewhere = match (task.kind.task, task.kind.is_sample) {
        (TaskKind::Scrub, false) => ", which of a trace `freewheel study` estimates",
        _ => "",
    };
    format!(", judging by the first {}{last}{elsewhere}", percent(task.unfinished))
}

/// True if the round under way has been seen to slow down. Each round is predicted from its own course
/// alone.
fn has_seen_slowing(task: &TaskWork) -> bool {
    task.unfinished >= SLOWING_SEEN
}

fn deadline(task: &TaskWork, due: &DeadlineWork) -> String {
    let DeadlineWork { deadline_ns, held, missed, longest_ns, due_ns, will_be_held } = *due;
    let mut words = format!("{} each", seconds(deadline_ns));
    if held + missed > 0 {
        let longest = seconds(longest_ns);
        words += &format!(
            ": held {} times, missed {} times, the longest took {longest}",
            grouped(held),
            grouped(missed)
        );
    }
    if is_under_way(task) {
        let expected = task.expected_end_ns.map(|ns| format!("expected after {}", seconds(ns)));
        let will = match will_be_held {
            Some(true) if !has_seen_slowing(task) => "would be held so",
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

#[cfg(test)]
mod tests {
    use freewheel_sim::config::SimConfig;
    use freewheel_sim::experiment::Experiment;

    use super::*;
    use freewheel_study::FreeWork;

    #[test]
    fn task_words_early_end_names_basis() {
        let text = "electronics = false\ndrive = \"atlas10k\"\n\
                    workload = { kind = \"closed\", outstanding = 2, requests = 2000 }\n\
                    [[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"64KiB\"\ndeadline = \"10h\"";
        let experiment = Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).unwrap();
        let early = FreeWork::new(&experiment.run().unwrap()).unwrap().tasks.remove(0);
        assert!((0.0..SLOWING_SEEN).contains(&early.unfinished) && early.expected_end_ns.is_some());
        let words = |task: &TaskWork| {
            let deadline = deadline(task, task.deadline.as_ref().unwrap());
            (end(task), deadline)
        };
        let (said, due) = words(&early);
        let first = format!(", judging by the first {}, if requests", percent(early.unfinished));
        assert!(said.contains(&first) && said.contains("`freewheel study`"), "{said}");
        assert!(due.ends_with("would be held so"), "{due}");
        let (said, due) = words(&TaskWork { rounds: 1, ..early.clone() });
        assert!(said.contains(&first) && due.ends_with("would be held so"), "{said}; {due}");
        let (said, due) = words(&TaskWork { unfinished: SLOWING_SEEN, ..early.clone() });
        assert!(!said.contains("judging") && due.ends_with("will be held"), "{said}; {due}");
        let (said, _) =
            words(&TaskWork { kind: RoundKind::whole(TaskKind::Backup), ..early.clone() });
        assert!(said.contains("the last blocks take longer") && !said.contains("study"), "{said}");
        let (said, _) =
            words(&TaskWork { kind: RoundKind { is_sample: true, ..early.kind }, ..early });
        assert!(said.contains("judging by the first") && !said.contains("last blocks"), "{said}");
    }
}
