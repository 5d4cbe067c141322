//! Weights of tasks whose pace is not set by priority alone.

use std::cmp::Ordering;

use freewheel_units::SimTime;

use super::spec::{Pace, TaskId};
use super::task::Task;

/// Between two priorities. Assumed: with it a track with few blocks of one task beats a track full
/// of another's where both can be had, and the paper gives no weights.
pub(super) const WEIGHT_STEP: u32 = 4;

/// Greatest weight: above the highest priority there is room for lateness.
pub(super) const WEIGHT_MAX: u32 = WEIGHT_STEP * WEIGHT_STEP * WEIGHT_STEP;

/// By how much a task with a deadline must be worth more than its priority says: as many times as it
/// must become faster to make it, in powers of two, since every change may cost a new index; `most`
/// at most, a power of two.
fn lateness(delivered: u64, left: u64, elapsed_ns: u64, remaining_ns: u64, most: u32) -> u32 {
    if left == 0 {
        return 1;
    }
    let needed = u128::from(left) * u128::from(elapsed_ns);
    let had = u128::from(delivered) * u128::from(remaining_ns);
    let mut factor = 1;
    while factor < most && had * u128::from(factor) < needed {
        factor *= 2;
    }
    factor
}

/// Looks at the weights within which a task is to be back at its share. Assumed: the fewer, the
/// more often weights change, and after many it swings about its share for long.
const LOOKS: i128 = 4;

/// A weight changes when a task gets more or less than it should by one part in so many of its
/// share, or of that of all others if that is less. Assumed: weights are powers of two, so that no one of them is right, and every one
/// that rises costs a new index.
const TOLERANCE: i128 = 2;

/// What tasks with shares have got since the same ones compete.
#[derive(Debug, Clone, Default)]
pub(super) struct Contest {
    rivals: Vec<Known>,
}

/// What is known of a task in a contest, in blocks of 512 B.
#[derive(Debug, Clone, Copy)]
struct Known {
    task: TaskId,
    /// Delivered in all when the contest began.
    at_begin: u64,
    /// Delivered in all when weights were last looked at.
    at_last: u64,
}

/// Gains against what is due of them.
struct Balance {
    gains: Vec<u64>,
    all: i128,
    shares: i128,
}

impl Balance {
    fn new(rivals: &[Rival], gain: impl Fn((&Rival, &Known)) -> u64, known: &[Known]) -> Self {
        let gains: Vec<u64> = rivals.iter().zip(known).map(gain).collect();
        let all = gains.iter().copied().map(i128::from).sum();
        Self { gains, all, shares: rivals.iter().map(|rival| i128::from(rival.share)).sum() }
    }

    /// What is due to one with a share, times the sum of shares.
    fn due(&self, share: u32) -> i128 {
        self.all * i128::from(share)
    }

    /// The lesser of what is due to one with a share and to all others, which is what a rate is
    /// measured by: when there are two, both are off or none is.
    fn lesser_due(&self, share: u32) -> i128 {
        self.due(share).min(self.all * self.shares - self.due(share))
    }

    /// By how much the gain of the rival with number `n` is above that.
    fn above_due(&self, n: usize, share: u32) -> i128 {
        i128::from(self.gains[n]) * self.shares - self.due(share)
    }
}

/// A task with a share, in a contest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rival {
    pub task: TaskId,
    pub share: u32,
    pub weight: u32,
    /// Blocks of 512 B delivered in all.
    pub delivered: u64,
}

impl Contest {
    /// New weights for `rivals`. Whoever gets more than it should loses half of its weight; when
    /// none can, those that get less gain. Only ratios matter, and lowering costs no new index.
    /// What a rival should get between two looks is its share and a part of what it lacks, so that
    /// weights are back before it has that: to wait until then is to swing without end.
    pub fn weigh(&mut self, rivals: &[Rival]) -> Vec<(TaskId, u32)> {
        let same = |(rival, known): (&Rival, &Known)| rival.task == known.task;
        let are_same =
            rivals.len() == self.rivals.len() && rivals.iter().zip(&self.rivals).all(same);
        if !are_same {
            let known = |&Rival { task, delivered, .. }: &Rival| Known {
                task,
                at_begin: delivered,
                at_last: delivered,
            };
            self.rivals = rivals.iter().map(known).collect();
        }
        let known = &self.rivals;
        let total = Balance::new(rivals, |(now, then)| now.delivered - then.at_begin, known);
        let lately = Balance::new(rivals, |(now, then)| now.delivered - then.at_last, known);
        for (rival, known) in rivals.iter().zip(&mut self.rivals) {
            known.at_last = rival.delivered;
        }
        if lately.all == 0 {
            // Weights have had nothing to decide on.
            return Vec::new();
        }
        let is_off = |n: usize, side: Ordering| {
            let share = rivals[n].share;
            let above = LOOKS * lately.above_due(n, share) + total.above_due(n, share);
            above.cmp(&0) == side && above.abs() * TOLERANCE > LOOKS * lately.lesser_due(share)
        };
        let may_fall = |n: &usize| is_off(*n, Ordering::Greater) && rivals[*n].weight > 1;
        if (0..rivals.len()).any(|n| may_fall(&n)) {
            return (0..rivals.len())
                .filter(may_fall)
                .map(|n| (rivals[n].task, rivals[n].weight / 2))
                .collect();
        }
        (0..rivals.len())
            .filter(|&n| is_off(n, Ordering::Less) && rivals[n].weight < WEIGHT_MAX)
            .map(|n| (rivals[n].task, rivals[n].weight * 2))
            .collect()
    }
}

/// Weight of a task with a deadline now.
pub(super) fn by_deadline(task: &Task, left: u64, now: SimTime) -> Option<u32> {
    let Pace::Deadline(length) = task.spec.pace else { return None };
    let elapsed = now.saturating_since(task.since);
    let remaining = length.saturating_sub(elapsed);
    let weight = task.spec.priority.weight();
    let most = WEIGHT_MAX / weight;
    Some(weight * lateness(task.delivered, left, elapsed.ns(), remaining.ns(), most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_late_as_soon_as_it_is_behind_a_straight_line_to_its_deadline() {
        // A quarter of the time has gone.
        let after_quarter = |delivered| lateness(delivered, 100 - delivered, 25, 75, 16);
        assert_eq!(after_quarter(25), 1, "on the line");
        assert_eq!(after_quarter(24), 2, "behind it");
        // 14 in 25 is needed as 86 in 75: a rate of 1.147 against 0.56.
        assert_eq!(after_quarter(14), 4, "more than twice as fast as so far");
        assert_eq!(after_quarter(5), 8, "95 in 75 is 6.3 times as fast as 5 in 25");
        assert_eq!(after_quarter(0), 16);
        assert_eq!(lateness(99, 1, 200, 0, 16), 16, "past the deadline");
        assert_eq!(lateness(100, 0, 200, 0, 16), 1, "nothing left to do");
        assert_eq!(lateness(0, 100, 0, 100, 16), 1, "no time has passed");
    }

    fn rival(task: u64, share: u32, weight: u32, delivered: u64) -> Rival {
        Rival { task: TaskId(task), share, weight, delivered }
    }

    #[test]
    fn who_has_more_than_its_share_falls_and_only_when_none_can_do_others_rise() {
        let mut contest = Contest::default();
        let begin = [rival(1, 3, 4, 500), rival(2, 1, 4, 0)];
        assert_eq!(contest.weigh(&begin), [], "what was before does not count");
        let mut at = |got: (u64, u64), (first, second)| {
            contest.weigh(&[rival(1, 3, first, 500 + got.0), rival(2, 1, second, got.1)])
        };
        assert_eq!(at((200, 200), (4, 4)), [(TaskId(2), 2)], "300 are due of 400");
        assert_eq!(at((400, 400), (4, 1)), [(TaskId(1), 8)]);
        assert_eq!(at((600, 600), (WEIGHT_MAX, 1)), [], "at its limit");
    }

    #[test]
    fn weights_are_back_before_a_task_has_all_that_it_lacks() {
        let mut contest = Contest::default();
        let mut at = |first, second, weights: (u32, u32)| {
            contest.weigh(&[rival(1, 1, weights.0, first), rival(2, 1, weights.1, second)])
        };
        assert_eq!(at(0, 0, (1, 8)), []);
        assert_eq!(at(100, 700, (1, 8)), [(TaskId(2), 4)], "400 are due of 800");
        // 1 lacks 200 of 1200 then. Of 400 it has got 300, which is 100 more than its share where a
        // quarter of 200 was to be.
        assert_eq!(at(400, 800, (1, 4)), [], "50 too much in 200 is tolerated");
        // 1 lacks 90 of 1500, and has got 260 of 300: 110 more than its share.
        assert_eq!(at(660, 840, (4, 4)), [(TaskId(1), 2)], "87 too much in 150 are not");
        assert_eq!(at(660, 840, (2, 4)), [], "nothing came");
        assert_eq!(at(760, 940, (2, 4)), [], "22 too little in 100 are again");
    }

    #[test]
    fn a_new_rival_begins_a_new_contest() {
        let mut contest = Contest::default();
        contest.weigh(&[rival(1, 1, 4, 0), rival(2, 1, 4, 0)]);
        let three = [rival(1, 1, 4, 900), rival(2, 1, 4, 0), rival(3, 1, 4, 0)];
        assert_eq!(contest.weigh(&three), [], "900 were got before 3 was there");
    }
}
