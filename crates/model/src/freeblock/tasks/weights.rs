//! Weights of tasks whose pace is not set by priority alone.

use freewheel_units::SimTime;

use super::spec::{Pace, TaskId};
use super::task::Task;

/// Between two priorities, and the most by which lateness raises a weight. Assumed: with it a track
/// with few blocks of one task beats a track full of another's where both can be had, and the paper
/// gives no weights.
pub(super) const WEIGHT_STEP: u32 = 4;

/// Greatest weight: a late task of the highest priority.
pub(super) const WEIGHT_MAX: u32 = WEIGHT_STEP * WEIGHT_STEP * WEIGHT_STEP;

/// By how much a task with a deadline must be worth more than its priority says: as many times as it
/// must become faster to make it, in powers of two, since every change may cost a new index.
pub(super) fn lateness(delivered: u64, left: u64, elapsed_ns: u64, remaining_ns: u64) -> u32 {
    if left == 0 {
        return 1;
    }
    let needed = u128::from(left) * u128::from(elapsed_ns);
    let had = u128::from(delivered) * u128::from(remaining_ns);
    let mut factor = 1;
    while factor < WEIGHT_STEP && had * u128::from(factor) < needed {
        factor *= 2;
    }
    factor
}

/// What tasks with shares have got since the same ones compete.
#[derive(Debug, Clone, Default)]
pub(super) struct Contest {
    /// Blocks of 512 B that each had been delivered at the beginning.
    rivals: Vec<(TaskId, u64)>,
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
    /// New weights for `rivals`. Whoever has more than its share loses half of its weight; when all
    /// who have are down to one, those with less than their share gain. Only ratios matter, and
    /// lowering costs no new index.
    pub fn weigh(&mut self, rivals: &[Rival]) -> Vec<(TaskId, u32)> {
        let same = |(rival, known): (&Rival, &(TaskId, u64))| rival.task == known.0;
        let are_same =
            rivals.len() == self.rivals.len() && rivals.iter().zip(&self.rivals).all(same);
        if !are_same {
            self.rivals = rivals.iter().map(|rival| (rival.task, rival.delivered)).collect();
        }
        let gain = |n: usize| u128::from(rivals[n].delivered - self.rivals[n].1);
        let all: u128 = (0..rivals.len()).map(gain).sum();
        let shares: u128 = rivals.iter().map(|rival| u128::from(rival.share)).sum();
        // Gains against what is due, both times the sum of shares.
        let balance = |n: usize| (gain(n) * shares).cmp(&(all * u128::from(rivals[n].share)));
        let may_fall = |n: &usize| balance(*n).is_gt() && rivals[*n].weight > 1;
        if (0..rivals.len()).any(|n| may_fall(&n)) {
            return (0..rivals.len())
                .filter(may_fall)
                .map(|n| (rivals[n].task, rivals[n].weight / 2))
                .collect();
        }
        (0..rivals.len())
            .filter(|&n| balance(n).is_lt() && rivals[n].weight < WEIGHT_MAX)
            .map(|n| (rivals[n].task, rivals[n].weight * 2))
            .collect()
    }
}

/// Weight of a task with a deadline now.
pub(super) fn by_deadline(task: &Task, left: u64, now: SimTime) -> Option<u32> {
    let Pace::Deadline(length) = task.spec.pace else { return None };
    let elapsed = now.saturating_since(task.since);
    let remaining = length.saturating_sub(elapsed);
    let late = lateness(task.delivered, left, elapsed.ns(), remaining.ns());
    Some(task.spec.priority.weight() * late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_late_as_soon_as_it_is_behind_a_straight_line_to_its_deadline() {
        // A quarter of the time has gone.
        let after_quarter = |delivered| lateness(delivered, 100 - delivered, 25, 75);
        assert_eq!(after_quarter(25), 1, "on the line");
        assert_eq!(after_quarter(24), 2, "behind it");
        // 14 in 25 is needed as 86 in 75: a rate of 1.147 against 0.56.
        assert_eq!(after_quarter(14), 4, "more than twice as fast as so far");
        assert_eq!(after_quarter(0), WEIGHT_STEP);
        assert_eq!(lateness(99, 1, 200, 0), WEIGHT_STEP, "past the deadline");
        assert_eq!(lateness(100, 0, 200, 0), 1, "nothing left to do");
        assert_eq!(lateness(0, 100, 0, 100), 1, "no time has passed");
    }

    fn rival(task: u64, share: u32, weight: u32, delivered: u64) -> Rival {
        Rival { task: TaskId(task), share, weight, delivered }
    }

    #[test]
    fn who_has_more_than_its_share_falls_and_only_when_none_can_do_others_rise() {
        let mut contest = Contest::default();
        let begin = [rival(1, 3, 4, 500), rival(2, 1, 4, 0)];
        assert_eq!(contest.weigh(&begin), [], "what was before does not count");
        // 1 is due 300 of 400 and has 200.
        let later = |first, second| [rival(1, 3, first, 700), rival(2, 1, second, 200)];
        assert_eq!(contest.weigh(&later(4, 4)), [(TaskId(2), 2)]);
        assert_eq!(contest.weigh(&later(4, 1)), [(TaskId(1), 8)]);
        assert_eq!(contest.weigh(&later(WEIGHT_MAX, 1)), [], "at its limit");
    }

    #[test]
    fn a_new_rival_begins_a_new_contest() {
        let mut contest = Contest::default();
        contest.weigh(&[rival(1, 1, 4, 0), rival(2, 1, 4, 0)]);
        let three = [rival(1, 1, 4, 900), rival(2, 1, 4, 0), rival(3, 1, 4, 0)];
        assert_eq!(contest.weigh(&three), [], "900 were got before 3 was there");
    }
}
