//! Weights of tasks whose pace is not set by priority alone.

use std::cmp::Ordering;

use freewheel_units::SimTime;

use super::kind::WEIGHT_STEP;
use super::spec::{Pace, TaskId};
use super::task::Task;

/// Greatest weight: above the highest priority there is room for lateness.
pub(super) const WEIGHT_MAX: u32 = WEIGHT_STEP * WEIGHT_STEP * WEIGHT_STEP;

/// Factor on the weight of a task with a deadline: how much faster the task must become to meet it. A
/// power of two, as every change may cost a new index; `most`, a power of two, at most.
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

/// Largest weight as a power of two.
const POWER_MAX: u32 = WEIGHT_MAX.ilog2();

/// Looks at the weights within which a task is to be back at its share. Assumed: the fewer, the
/// more often weights change, and after many it swings about its share for long.
const LOOKS: i128 = 4;

/// A lead changes when a task is off by one part in this number of its share, or of that of all others
/// if that is less. Assumed: weights are powers of two, so that no one of them is right, and every one
/// that rises has its price in the index.
const TOLERANCE: i128 = 2;

/// Bytes that tasks with shares received since the same ones compete.
#[derive(Debug, Clone, Default)]
pub(super) struct Contest {
    rivals: Vec<Known>,
}

/// State of a task in a contest, in blocks of 512 B.
#[derive(Debug, Clone, Copy)]
struct Known {
    task: TaskId,
    /// Delivered in all when the contest began.
    at_begin: u64,
    /// Delivered in all when weights were last looked at.
    at_last: u64,
    /// Powers of two on top of its share over its remaining blocks.
    lead: i32,
}

/// Gains against what is due of them.
struct Balance {
    gains: Vec<u64>,
    all: i128,
    shares: i128,
}

impl Balance {
    fn new(
        rivals: &[WeightedTask],
        gain: impl Fn((&WeightedTask, &Known)) -> u64,
        known: &[Known],
    ) -> Self {
        let gains: Vec<u64> = rivals.iter().zip(known).map(gain).collect();
        let all = gains.iter().copied().map(i128::from).sum();
        Self { gains, all, shares: rivals.iter().map(|rival| i128::from(rival.share)).sum() }
    }

    /// Blocks due to a task with a share, times the sum of shares.
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
pub(super) struct WeightedTask {
    pub task: TaskId,
    pub share: u32,
    pub priority: u32,
    /// Blocks of 512 B delivered in all.
    pub delivered: u64,
    /// Blocks of 512 B that it may be given; more than none.
    pub left: u64,
}

impl Contest {
    /// Weights for `rivals`, in powers of two, of which only the ratios matter.
    ///
    /// A task gets blocks about in proportion to its weight times its remaining blocks. So the weight
    /// is the share over the remaining blocks, which is right at once even when a round begins; times a
    /// *lead* that is learned, for one task may lie better than another. When `is_due`, leads change: a
    /// task above its share loses half of its lead. If no task is above, those below their share gain.
    pub fn weigh(&mut self, rivals: &[WeightedTask], is_due: bool) -> Vec<(TaskId, u32)> {
        let are_same = rivals.len() == self.rivals.len()
            && rivals.iter().zip(&self.rivals).all(|(rival, known)| rival.task == known.task);
        if !are_same {
            self.rivals = rivals
                .iter()
                .map(|&WeightedTask { task, delivered, .. }| Known {
                    task,
                    at_begin: delivered,
                    at_last: delivered,
                    lead: 0,
                })
                .collect();
        } else if is_due {
            self.learn(rivals);
        }
        let weights = self.weights(rivals);
        rivals.iter().map(|rival| rival.task).zip(weights).collect()
    }

    /// Between two looks a rival should get its share and a part of its deficit, so that weights are
    /// back before the deficit is gone: to wait until then is to swing without end.
    fn learn(&mut self, rivals: &[WeightedTask]) {
        let known = &self.rivals;
        let total = Balance::new(rivals, |(now, then)| now.delivered - then.at_begin, known);
        let lately = Balance::new(rivals, |(now, then)| now.delivered - then.at_last, known);
        for (rival, known) in rivals.iter().zip(&mut self.rivals) {
            known.at_last = rival.delivered;
        }
        if lately.all == 0 {
            // Weights have not decided on any block.
            return;
        }
        let off = |side: Ordering| {
            (0..rivals.len()).filter(|&n| is_off(n, side, rivals, &lately, &total)).collect()
        };
        let above: Vec<usize> = off(Ordering::Greater);
        if above.is_empty() {
            self.change_leads(rivals, &off(Ordering::Less), 1)
        } else {
            self.change_leads(rivals, &above, -1)
        }
    }

    /// Unless weights would be farther apart than they can be: what is learnt then would have to be
    /// unlearnt.
    fn change_leads(&mut self, rivals: &[WeightedTask], of: &[usize], by: i32) {
        let before = self.rivals.clone();
        of.iter().for_each(|&n| self.rivals[n].lead += by);
        if self.powers(rivals).into_iter().any(|power| power > POWER_MAX) {
            self.rivals = before;
        }
    }

    /// By how many powers of two each is worth more than the one that is worth least.
    fn powers(&self, rivals: &[WeightedTask]) -> Vec<u32> {
        let exact: Vec<f64> = rivals
            .iter()
            .zip(&self.rivals)
            .map(|(rival, known)| {
                // By libm: the same on every machine.
                let share = libm::log2(f64::from(rival.share));
                share - libm::log2(rival.left.max(1) as f64) + f64::from(known.lead)
            })
            .collect();
        let least = exact.iter().copied().fold(f64::INFINITY, f64::min);
        exact.into_iter().map(|power| (power - least).round() as u32).collect()
    }

    /// The greatest is worth what its priority says, or more when the least could not be worth
    /// little enough else.
    fn weights(&self, rivals: &[WeightedTask]) -> Vec<u32> {
        let powers: Vec<u32> =
            self.powers(rivals).into_iter().map(|power| power.min(POWER_MAX)).collect();
        let greatest = powers.iter().copied().max().unwrap_or(0);
        let priority = rivals.iter().map(|rival| rival.priority.ilog2()).max().unwrap_or(0);
        let least = priority.saturating_sub(greatest);
        powers.into_iter().map(|power| 1 << (least + power)).collect()
    }
}

fn is_off(
    n: usize,
    side: Ordering,
    rivals: &[WeightedTask],
    lately: &Balance,
    total: &Balance,
) -> bool {
    let share = rivals[n].share;
    let above = LOOKS * lately.above_due(n, share) + total.above_due(n, share);
    above.cmp(&0) == side && above.abs() * TOLERANCE > LOOKS * lately.lesser_due(share)
}

pub(super) fn by_deadline(task: &Task, left: u64, now: SimTime) -> Option<u32> {
    let Pace::Deadline(length) = task.spec.pace else { return None };
    let elapsed = now.saturating_since(task.since);
    let remaining = length.saturating_sub(elapsed);
    let weight = task.spec.priority.weight();
    let most = WEIGHT_MAX / weight;
    Some(weight * lateness(task.delivered, left, elapsed.ns(), remaining.ns(), most))
}

/// Eighths of its room that a task may fill at what its priority says; with each further one it is
/// worth twice as much, up to the greatest weight. Assumed.
const EASY_EIGHTHS: u64 = 2;

/// Factor on the weight of a task by the part of its room that is filled: a power of two, `most` at
/// most.
fn pressure(filled: u64, room: u64, most: u32) -> u32 {
    let eighths = (u128::from(filled) * 8 / u128::from(room)) as u64;
    let power = eighths.saturating_sub(EASY_EIGHTHS).min(most.ilog2().into());
    1 << power
}

/// Weight of a task that fills a memory, with `filled` blocks in it; `weight` until now.
pub(super) fn by_room(task: &Task, weight: u32, filled: u64) -> Option<u32> {
    let Pace::Room(room) = task.spec.pace else { return None };
    let least = task.spec.priority.weight();
    // A higher weight has its price in the index, so it goes down an eighth later than up.
    Some(weight.clamp(
        least * pressure(filled, room, WEIGHT_MAX / least),
        least * pressure(filled.saturating_add(room.div_ceil(8)), room, WEIGHT_MAX / least),
    ))
}

#[cfg(test)]
mod tests {
    use freewheel_units::Op;

    use super::super::spec::{TaskSpec, Until};
    use super::*;

    #[test]
    fn task_behind_straight_line_is_late() {
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

    #[test]
    fn task_weight_rises_with_filled_room() {
        let spec = TaskSpec {
            pace: Pace::Room(80),
            until: Until::Standing,
            ..TaskSpec::new(Op::Write, 8, Vec::new())
        };
        let task = Task::new(spec, SimTime::ZERO);
        let mut weight = 4;
        let mut at = |filled| {
            weight = by_room(&task, weight, filled).unwrap();
            weight
        };
        assert_eq!([0, 29, 30, 40, 50, 59, 60].map(&mut at), [4, 4, 8, 16, 32, 32, WEIGHT_MAX]);
        assert_eq!([1000, 60, 50, 49, 40, 39].map(&mut at), [64, 64, 64, 32, 32, 16]);
        assert_eq!([30, 29, 20, 19, 0].map(&mut at), [16, 8, 8, 4, 4]);
    }

    /// Two tasks with these shares, deliveries and remaining blocks.
    fn two(shares: (u32, u32), delivered: (u64, u64), left: (u64, u64)) -> [WeightedTask; 2] {
        let rival = |task, share, delivered, left| WeightedTask {
            task: TaskId(task),
            share,
            priority: 4,
            delivered,
            left,
        };
        [rival(1, shares.0, delivered.0, left.0), rival(2, shares.1, delivered.1, left.1)]
    }

    fn weights(of: Vec<(TaskId, u32)>) -> Vec<u32> {
        of.into_iter().map(|(_, weight)| weight).collect()
    }

    #[test]
    fn weights_start_as_shares_over_rest() {
        let weigh =
            |shares, left| weights(Contest::default().weigh(&two(shares, (500, 0), left), true));
        assert_eq!(weigh((1, 1), (1000, 1000)), [4, 4]);
        assert_eq!(weigh((4, 1), (1000, 1000)), [4, 1]);
        assert_eq!(weigh((1, 1), (1000, 125)), [1, 8], "little is left of the second");
        assert_eq!(weigh((4, 1), (1000, 250)), [4, 4]);
        assert_eq!(weigh((1, 1), (1 << 40, 1)), [1, WEIGHT_MAX], "at its limit");
    }

    #[test]
    fn new_round_changes_weights_at_once() {
        let mut contest = Contest::default();
        let mut at =
            |delivered, left, is_due| weights(contest.weigh(&two((1, 1), delivered, left), is_due));
        assert_eq!(at((0, 0), (1000, 1000), true), [4, 4]);
        assert_eq!(at((900, 900), (100, 100), true), [4, 4]);
        assert_eq!(at((1000, 999), (1000, 1), false), [1, WEIGHT_MAX]);
        assert_eq!(at((1001, 1000), (999, 1000), false), [4, 4]);
    }

    #[test]
    fn leader_loses_half_of_lead() {
        let mut contest = Contest::default();
        let left = (1 << 30, 1 << 30);
        let mut at = |delivered| weights(contest.weigh(&two((4, 1), delivered, left), true));
        assert_eq!(at((500, 0)), [4, 1], "what was before does not count");
        assert_eq!(at((700, 200)), [8, 1], "320 are due of 400");
        assert_eq!(at((900, 400)), [16, 1]);
        for _ in 0..10 {
            assert!(at((900, 400)) == [16, 1], "nothing came");
        }
        let mut second = 400;
        for _ in 0..10 {
            second += 100;
            at((900, second));
        }
        assert_eq!(at((900, second + 100)), [WEIGHT_MAX, 1], "at its limit");
        // And not beyond: when it gets all, that is soon over.
        let mut first = 900;
        while at((first, second + 100)) == [WEIGHT_MAX, 1] {
            first += 2000;
        }
        assert!(first < 12_000, "{first}");
    }

    #[test]
    fn leads_return_before_task_catches_up() {
        let mut contest = Contest::default();
        let left = (1 << 30, 1 << 30);
        let mut at = |delivered| weights(contest.weigh(&two((1, 1), delivered, left), true));
        assert_eq!(at((0, 0)), [4, 4]);
        assert_eq!(at((100, 700)), [4, 2], "400 are due of 800");
        // 1 lacks 200 of 1200 then. Of 400 it has got 300, which is 100 more than its share where a
        // quarter of 200 was to be.
        assert_eq!(at((400, 800)), [4, 2], "50 too much in 200 is tolerated");
        // 1 lacks 90 of 1500, and has got 260 of 300: 110 more than its share.
        assert_eq!(at((660, 840)), [4, 4], "87 too much in 150 are not");
        assert_eq!(at((660, 840)), [4, 4], "nothing came");
        assert_eq!(at((760, 940)), [4, 4], "22 too little in 100 are again");
    }

    #[test]
    fn new_rival_begins_new_contest() {
        let mut contest = Contest::default();
        let [one, two] = two((1, 1), (0, 0), (1000, 1000));
        contest.weigh(&[one, two], true);
        let one = WeightedTask { delivered: 900, ..one };
        let three = WeightedTask { task: TaskId(3), ..two };
        let all = weights(contest.weigh(&[one, two, three], true));
        assert_eq!(all, [4, 4, 4], "900 were got before 3 was there");
    }
}
