//! Priorities, deadlines and shares, on a drive under random foreground reads.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_freeblock::tasks::{
    BlockSelection, Counts, Extent, Pace, Priority, TaskId, TaskSpec, Until,
};
use freewheel_freeblock::{FreeRun, Options, Planner, Rule};
use freewheel_model::drive::Drive;
use freewheel_units::{Prng, SimDuration, SimTime};

use super::arm::{Arm, READ, plain_spec};

const NOW: SimTime = SimTime::ZERO;
const CYLINDERS: u32 = 400;

fn arm() -> Arm {
    let drive = Drive::build(&plain_spec(CYLINDERS)).unwrap();
    Arm::with_cadence(drive, SimDuration::from_ms(500))
}

/// A task on every other cylinder from `first` on, which gets blocks in gaps only.
fn stripes(arm: &Arm, first: u64) -> TaskSpec {
    let cylinder = arm.capacity() / u64::from(CYLINDERS);
    let starts = (first..CYLINDERS.into()).step_by(2);
    let extents = starts.map(|at| Extent::new(at * cylinder, cylinder)).collect();
    TaskSpec { counts: Counts::NONE, until: Until::Repeated, ..TaskSpec::new(READ, 8, extents) }
}

fn serve(arm: &mut Arm, count: u32, seed: u64) {
    let mut prng = Prng::new(seed, "foreground");
    for _ in 0..count {
        let start = prng.below(arm.capacity());
        arm.serve(READ, start, 1);
    }
}

fn got(arm: &Arm, task: TaskId) -> u64 {
    arm.tasks.progress(task, arm.now).unwrap().delivered_total
}

#[test]
fn task_of_higher_priority_gets_more() {
    let mut arm = arm();
    let task = |arm: &mut Arm, first, priority| {
        let spec = TaskSpec { priority, ..stripes(arm, first) };
        arm.tasks.register(NOW, spec).unwrap()
    };
    let high = task(&mut arm, 0, Priority::High);
    let low = task(&mut arm, 1, Priority::Low);
    serve(&mut arm, 2000, 1);
    assert!(got(&arm, high) > 2 * got(&arm, low), "{} {}", got(&arm, high), got(&arm, low));
}

#[test]
fn equal_tasks_get_about_the_same() {
    let mut arm = arm();
    let tasks = [0, 1].map(|first| {
        let spec = stripes(&arm, first);
        arm.tasks.register(NOW, spec).unwrap()
    });
    serve(&mut arm, 2000, 1);
    let [even, odd] = tasks.map(|task| got(&arm, task));
    assert!(even.abs_diff(odd) * 10 < even + odd, "{even} {odd}");
}

#[test]
fn late_task_is_preferred() {
    let round = |deadline| Pace::Deadline(SimDuration::from_ms(deadline));
    let run = |pace| {
        let mut arm = self::arm();
        let spec = TaskSpec { pace, ..stripes(&arm, 0) };
        let task = arm.tasks.register(NOW, spec).unwrap();
        let spec = stripes(&arm, 1);
        let rival = arm.tasks.register(NOW, spec).unwrap();
        serve(&mut arm, 800, 1);
        (got(&arm, task), got(&arm, rival))
    };
    let equal = run(Pace::ByPriority);
    let relaxed = run(round(1_000_000));
    let late = run(round(100));
    // But for ties, which layers of their own break in another order.
    assert!(relaxed.0.abs_diff(equal.0) * 50 < equal.0, "a deadline far off changes nothing");
    assert!(late.0 > equal.0 * 4 / 3, "{late:?} {equal:?}");
    // Alone, lateness makes no difference.
    let alone = |pace| {
        let mut arm = self::arm();
        let spec = TaskSpec { pace, ..stripes(&arm, 0) };
        let task = arm.tasks.register(NOW, spec).unwrap();
        serve(&mut arm, 300, 1);
        got(&arm, task)
    };
    assert_eq!(alone(round(100)), alone(Pace::ByPriority));
}

#[test]
fn task_filling_room_is_preferred() {
    let blocks = stripes(&arm(), 0).blocks();
    let run = |pace| {
        let mut arm = self::arm();
        let spec = TaskSpec { pace, until: Until::Standing, ..stripes(&arm, 0) };
        let task = arm.tasks.register(NOW, spec).unwrap();
        let spec = stripes(&arm, 1);
        let rival = arm.tasks.register(NOW, spec).unwrap();
        serve(&mut arm, 800, 1);
        let weight = arm.tasks.progress(task, arm.now).unwrap().weight;
        (got(&arm, task), got(&arm, rival), weight)
    };
    let equal = run(Pace::ByPriority);
    let spare = run(Pace::Room(8 * blocks));
    let full = run(Pace::Room(blocks / 4));
    assert!(spare.0.abs_diff(equal.0) * 50 < equal.0, "{spare:?} {equal:?}");
    assert!(full.0 > equal.0 * 4 / 3, "{full:?} {equal:?}");
    assert_eq!([spare.2, full.2], [Priority::Normal.weight(), 4 * Priority::High.weight()]);
}

#[test]
fn task_that_caught_up_loses_preference() {
    // A quarter of its blocks by themselves: what takes a while, and not for the last ones.
    let part = |arm: &Arm, pace| {
        let spec = stripes(arm, 0);
        let enough = spec.blocks() / 4;
        TaskSpec { pace, until: Until::Enough(enough), ..spec }
    };
    let alone = {
        let mut arm = arm();
        let spec = part(&arm, Pace::ByPriority);
        let task = arm.tasks.register(NOW, spec).unwrap();
        let mut seed = 0;
        while arm.tasks.progress(task, arm.now).is_ok() {
            serve(&mut arm, 10, seed);
            seed += 1;
        }
        arm.now - NOW
    };
    // It needs a third of the blocks that it gets alone, and has less after a rival of high priority.
    let run = |pace| {
        let mut arm = arm();
        let spec = part(&arm, pace);
        let task = arm.tasks.register(NOW, spec).unwrap();
        let spec = TaskSpec { priority: Priority::High, ..stripes(&arm, 1) };
        let rival = arm.tasks.register(NOW, spec).unwrap();
        let mut most = 0;
        for seed in 0..20 {
            serve(&mut arm, 10, seed);
            most = most.max(arm.tasks.progress(task, arm.now).unwrap().weight);
        }
        let behind = got(&arm, task);
        arm.tasks.abort(arm.now, rival, BlockSelection::All).unwrap();
        let mut weights = Vec::new();
        let mut seed = 20;
        while let Ok(now) = arm.tasks.progress(task, arm.now) {
            weights.push(now.weight);
            serve(&mut arm, 10, seed);
            seed += 1;
        }
        (behind, most, weights, arm.now)
    };
    let deadline = SimDuration::from_ns(alone.ns() * 3);
    let (behind, most, weights, end) = run(Pace::Deadline(deadline));
    let normal = Priority::Normal.weight();
    assert!(most > normal, "late behind the rival: {most}");
    assert!(behind > run(Pace::ByPriority).0, "and preferred");
    assert_eq!(weights.last(), Some(&normal), "{weights:?}");
    assert!(end < NOW + deadline, "{end:?} of {deadline}");
}

#[test]
fn lateness_outweighs_any_priority() {
    for priority in [Priority::Low, Priority::Normal, Priority::High] {
        let mut arm = arm();
        let pace = Pace::Deadline(SimDuration::from_ms(1));
        let spec = TaskSpec { pace, priority, until: Until::All, ..stripes(&arm, 0) };
        let task = arm.tasks.register(NOW, spec).unwrap();
        serve(&mut arm, 200, 1);
        let weight = arm.tasks.progress(task, arm.now).unwrap().weight;
        assert!(weight > Priority::High.weight(), "{priority:?}: {weight}");
    }
}

/// By how much of itself the ratio of what two tasks with these shares have got is off, after the first
/// hundred gaps and then after each thousand of 16,000: some ten rounds of each, at whose ends little is left of one of them.
fn errors(rule: Rule, shares: (u32, u32)) -> Vec<f64> {
    let drive = Drive::build(&plain_spec(CYLINDERS)).unwrap();
    let options = Options { rule, ..Options::default() };
    let mut arm = Arm::with_options(drive, options, SimDuration::from_ms(500));
    let spec = |share, start| TaskSpec { pace: Pace::Share(share), ..stripes(&arm, start) };
    let specs = [spec(shares.0, 0), spec(shares.1, 1)];
    let tasks = specs.map(|spec| arm.tasks.register(NOW, spec).unwrap());
    let error = |seed| {
        serve(&mut arm, if seed == 0 { 100 } else { 1000 }, seed);
        let [one, other] = tasks.map(|task| got(&arm, task) as f64);
        (one / other * f64::from(shares.1) / f64::from(shares.0) - 1.0).abs()
    };
    (0..=16).map(error).collect()
}

#[test]
fn bytes_approach_shares_under_both_rules() {
    for rule in [Rule::Greedy, Rule::Paths] {
        for shares in [(1, 1), (2, 1), (3, 1), (5, 1)] {
            let errors = errors(rule, shares);
            let (early, late) = errors.split_at(9);
            let sum = |errors: &[f64]| errors.iter().sum::<f64>();
            assert!(sum(late) < sum(early), "{rule:?}: {errors:.3?} for {shares:?}");
            // It swings with the rounds' ends, more or less by what chance takes there.
            let near =
                sum(late) < 0.05 * late.len() as f64 && late.iter().all(|error| *error < 0.1);
            assert!(near, "{rule:?}: {errors:.3?} for {shares:?}");
        }
    }
}

/// Worth of a plan to tasks of these blocks, in order of their weights.
fn value(runs: &[FreeRun], wanted: &[(u32, BTreeSet<u64>)]) -> u32 {
    let within = |run: &FreeRun, block: u64| {
        let from = run.start.get();
        from <= block && block + 8 <= from + u64::from(run.blocks)
    };
    let worth = |(weight, blocks): &(u32, BTreeSet<u64>)| {
        let inside = |block: &&u64| runs.iter().any(|run| within(run, **block));
        weight * 8 * blocks.iter().filter(inside).count() as u32
    };
    wanted.iter().map(worth).sum()
}

#[test]
fn changed_weight_decides_like_original() {
    let deadline = Pace::Deadline(SimDuration::from_secs(12));
    let until = Until::All;
    let mut arm = arm();
    let late = TaskSpec { pace: deadline, until, ..stripes(&arm, 0) };
    let steady = TaskSpec { until, ..stripes(&arm, 1) };
    let blocks = |spec: &TaskSpec| -> BTreeSet<u64> {
        spec.extents.iter().flat_map(|extent| super::arm::blocks(extent, 8)).collect()
    };
    let mut wanted = [blocks(&late), blocks(&steady)];
    let tasks = [late, steady].map(|spec| arm.tasks.register(NOW, spec).unwrap());
    let mut prng = Prng::new(1, "foreground");
    let mut compared = BTreeMap::new();
    for nth in 0..3000 {
        let weights =
            tasks.map(|task| arm.tasks.progress(task, arm.now).map_or(0, |now| now.weight));
        if weights.contains(&0) {
            break;
        }
        let start = prng.below(arm.capacity());
        let gap = arm.plan(READ, start, 1);
        let weights_now = tasks.map(|task| arm.tasks.progress(task, arm.now).unwrap().weight);
        // Only the ratio of weights matters.
        let priorities = match weights_now {
            [4, 4] => Some([Priority::Normal, Priority::Normal]),
            [16, 4] => Some([Priority::High, Priority::Normal]),
            [64, 4] => Some([Priority::High, Priority::Low]),
            _ => None,
        };
        if (nth % 10 == 0 || weights != weights_now)
            && let Some([first, second]) = priorities
        {
            let mut fresh = self::arm();
            for (priority, blocks) in [(first, &wanted[0]), (second, &wanted[1])] {
                let extents = blocks.iter().map(|&block| Extent::new(block, 8)).collect();
                let spec = TaskSpec { priority, ..TaskSpec::new(READ, 8, extents) };
                fresh.tasks.register(NOW, spec).unwrap();
            }
            let mut runs = Vec::new();
            fresh.tasks.plan(&gap.opportunity, &mut runs);
            let valued = [0, 1].map(|n| (weights_now[n], wanted[n].clone()));
            assert_eq!(value(&gap.runs, &valued), value(&runs, &valued));
            *compared.entry(weights_now).or_insert(0) += 1;
        }
        let mut at = (gap.opportunity.begin, gap.opportunity.from);
        gap.runs.iter().for_each(|run| arm.run(run, &mut at));
        arm.finish(&gap, at);
        let events = arm.events();
        for (task, wanted) in tasks.iter().zip(&mut wanted) {
            for block in super::arm::delivered(&events, *task, 8) {
                assert!(wanted.remove(&block));
            }
        }
    }
    let late = compared[&[16, 4]] + compared[&[64, 4]];
    assert!(compared[&[4, 4]] > 20 && late > 20, "{compared:?}");
}

#[test]
fn weight_changes_keep_single_delivery() {
    let mut arm = arm();
    let spec = TaskSpec {
        pace: Pace::Deadline(SimDuration::from_ms(1)),
        until: Until::All,
        ..stripes(&arm, 0)
    };
    let blocks = arm.capacity() / 16;
    let task = arm.tasks.register(NOW, spec).unwrap();
    let mut delivered = Vec::new();
    for seed in 0..40 {
        serve(&mut arm, 500, seed);
        delivered.extend(super::arm::delivered(&arm.events(), task, 8));
    }
    let all = delivered.len();
    delivered.sort_unstable();
    delivered.dedup();
    assert_eq!((all, delivered.len() as u64), (all, blocks));
    assert_eq!(all as u64, blocks);
}
