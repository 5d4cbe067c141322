//! Results of one task of a run, over all arms.

use freewheel_freeblock::tasks::RoundKind;
use freewheel_sim::background::{TaskResult, UseResult};
use freewheel_sim::{FreeResult, RunResult};
use serde::Serialize;

use super::delivered::Delivered;
use crate::ratio::{mean, per_second, ratio};

/// A task in numbers, over all arms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskWork {
    /// Name in the experiment, or else the kind.
    pub name: String,
    /// Scan, scrub, backup, and so on.
    pub kind: RoundKind,
    /// Blocks that make a round on one arm.
    pub blocks: u64,
    /// Size of one in bytes.
    pub block_bytes: u64,
    /// Rounds that were completed: every block once, or the wanted share of them.
    pub rounds: u64,
    /// Mean time of one; None when none was completed.
    pub round_ns: Option<u64>,
    /// Rounds of an arm a day at that time.
    pub rounds_a_day: Option<f64>,
    /// End of the last of them, on the last of the arms, from the beginning of the run on.
    pub ended_ns: Option<u64>,
    /// Part of its blocks that a round under way at the end had, on average over the arms.
    pub unfinished: f64,
    /// Expected end of the rounds under way on all arms, from the beginning of the run on. None before that
    /// could be told. Before half of a round it rests on what is known of requests that go everywhere
    /// alike; where they keep to parts of the drive it takes longer.
    pub expected_end_ns: Option<u64>,
    /// Deadline of the task, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineWork>,
    /// Part of a round's time that its last 5 % of the blocks took, on average.
    pub last_5_percent: Option<f64>,
    /// Time of the last 1 %.
    pub last_1_percent: Option<f64>,
    /// Sources of the blocks.
    pub delivered: Delivered,
    /// Bytes a second that were delivered, wherever they came from.
    pub delivered_bytes_per_second: f64,
    /// Blocks that came in gaps and in passing over the potential free bandwidth (osdi00 section 6.3); more
    /// than 1 where much passes anyway.
    pub efficiency: f64,
    /// Result of a task that asks for blocks as they come up; amounts are sums over all arms, maxima the
    /// largest.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub used: Option<UseResult>,
}

/// Rounds of a task against the time that each of them has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DeadlineWork {
    /// Time that a round has.
    pub deadline_ns: u64,
    /// Complete rounds that took no longer.
    pub held: u64,
    /// Complete rounds that took longer.
    pub missed: u64,
    /// The longest complete round; zero when there was none.
    pub longest_ns: u64,
    /// Deadline of the round under way, on the first of the arms, from the beginning of the run on.
    pub due_ns: u64,
    /// True if the rounds under way will be complete in time on all arms, as far as can be told.
    pub will_be_held: Option<bool>,
}

impl TaskWork {
    pub(super) fn new(result: &RunResult, free: &FreeResult, number: usize) -> Self {
        let arms: Vec<&TaskResult> =
            result.background.iter().map(|arm| &arm.tasks[number]).collect();
        let TaskResult { ref name, kind, blocks, block_bytes, .. } = *arms[0];
        let mut delivered = Delivered::default();
        arms.iter()
            .flat_map(|arm| arm.all_rounds())
            .for_each(|round| delivered.add(&round.deliveries));
        let potential = per_second(free.time.potential_ns) * free.media_bytes_per_second as f64;
        let rounds = arms.iter().map(|arm| arm.rounds.len() as u64).sum::<u64>();
        let elapsed_ns: u64 = arms.iter().map(|arm| arm.ended_ns()).sum();
        let round_ns = elapsed_ns.checked_div(rounds);
        let going_on = arms.iter().filter(|arm| !arm.is_done());
        let ends: Option<Vec<u64>> = going_on.map(|arm| arm.expected_end_ns).collect();
        Self {
            name: name.clone(),
            kind,
            blocks,
            block_bytes,
            rounds,
            round_ns,
            rounds_a_day: round_ns.map(|ns| 86_400e9 / ns as f64),
            ended_ns: arms.iter().map(|arm| arm.ended_ns()).max().filter(|_| rounds > 0),
            unfinished: mean(&arms, |arm| {
                ratio(arm.unfinished.deliveries.settled() as f64, arm.blocks as f64)
            }),
            expected_end_ns: ends.and_then(|ends| ends.into_iter().max()),
            deadline: arms[0].deadline_ns.map(|deadline| DeadlineWork::new(&arms, deadline)),
            last_5_percent: time_share_of_last(&arms, 0.05),
            last_1_percent: time_share_of_last(&arms, 0.01),
            delivered,
            delivered_bytes_per_second: ratio(
                bytes(delivered.total(), block_bytes),
                result.elapsed_ns as f64 / 1e9,
            ),
            efficiency: ratio(
                bytes(delivered.in_gaps + delivered.in_passing, block_bytes),
                potential,
            ),
            used: arms.iter().filter_map(|arm| arm.used).reduce(UseResult::and),
        }
    }
}

fn bytes(blocks: u64, block_bytes: u64) -> f64 {
    (blocks * block_bytes) as f64
}

impl DeadlineWork {
    fn new(arms: &[&TaskResult], deadline_ns: u64) -> Self {
        let times = || arms.iter().flat_map(|arm| arm.rounds.iter().map(|round| round.elapsed_ns));
        let held = times().filter(|&elapsed| elapsed <= deadline_ns).count() as u64;
        let due_ns = |arm: &&TaskResult| arm.ended_ns().saturating_add(deadline_ns);
        let going_on = arms.iter().filter(|arm| !arm.is_done());
        let all: Vec<Option<bool>> = going_on
            .map(|arm| match arm.expected_end_ns {
                _ if arm.unfinished.elapsed_ns > deadline_ns => Some(false),
                expected => expected.map(|end| end <= due_ns(arm)),
            })
            .collect();
        Self {
            deadline_ns,
            held,
            missed: times().count() as u64 - held,
            longest_ns: times().max().unwrap_or(0),
            due_ns: arms.iter().map(due_ns).min().unwrap_or(deadline_ns),
            will_be_held: if all.contains(&Some(false)) {
                Some(false)
            } else {
                (!all.is_empty() && all.iter().all(Option::is_some)).then_some(true)
            },
        }
    }
}

/// Mean over the arms that have completed a round.
fn time_share_of_last(arms: &[&TaskResult], part: f64) -> Option<f64> {
    let shares: Vec<f64> = arms.iter().filter_map(|arm| arm.time_share_of_last(part)).collect();
    (!shares.is_empty()).then(|| mean(&shares, |share| *share))
}
