//! What searches for paths that end early lose.

use std::num::NonZeroU32;
use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Options, PATIENCE_NODES, Patience, Planner, Rule, Scheduler};
use freewheel_model::drive::Drive;
use freewheel_testkit::drives::any_drive;
use freewheel_units::{Blocks, Op, Prng};
use proptest::prelude::*;

use super::case::{Case, any_gap, unlimited};
use super::oracle::Oracle;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..Default::default() })]

    #[test]
    fn a_plan_falls_short_of_the_best_path_by_no_more_than_its_work_allows(
        (spec, drive) in any_drive(), seed: u64, patience in 1u32..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options {
            rule: Rule::Paths, region_weights: false, patience: Patience::Nodes(NonZeroU32::new(patience).unwrap()), ..unlimited()
        };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let before = work(&case.scheduler);
            let (worth, best, in_time, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(in_time, "{:?}", runs);
            // Parts of a node before it may be one more together with those of this plan.
            let work = u128::from(work(&case.scheduler) - before + 1);
            let allowed = u128::from(worth) * work.pow(4) / u128::from(patience).pow(4);
            prop_assert!(u128::from(worth) + allowed >= best.into(), "{} of {} after {}", worth, best, work);
            prop_assert_eq!(worth > 0, best > 0, "something where there is something");
        }
    }
}

/// Work of all plans so far, in nodes: 64 pieces that are ordered into paths count as one.
fn work(scheduler: &Scheduler) -> u64 {
    let effort = scheduler.effort();
    effort.nodes + effort.pieces / 64
}

/// What plans took.
struct Planned {
    /// Blocks of 512 B of all plans.
    blocks: u64,
    /// Work of all plans in nodes.
    work: u64,
    /// Of the plan with the most work.
    work_max: u64,
}

/// Of 300 plans, where half of an Atlas 10K is wanted in blocks of 4 KiB and nothing of it ever comes.
fn planned(rule: Rule, patience: Patience) -> Planned {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    let options = Options { rule, patience, region_weights: false, ..unlimited() };
    let mut scheduler = Scheduler::new(&drive, options);
    let layer = scheduler.layer(LayerKey { op: Op::Read, size: 8, offset: 0, weight: 1 });
    let prng = &mut Prng::new(1, "patience");
    for block in 0..drive.blocks().get() / 8 {
        if prng.chance(0.5) {
            scheduler.want(layer, block, block + 1);
        }
    }
    let (mut planned, mut runs) = (Planned { blocks: 0, work: 0, work_max: 0 }, Vec::new());
    for _ in 0..300 {
        let before = work(&scheduler);
        scheduler.plan(&any_gap(prng, &drive), &mut runs);
        planned.blocks += runs.iter().map(|run| u64::from(run.blocks)).sum::<u64>();
        planned.work_max = planned.work_max.max(work(&scheduler) - before);
    }
    planned.work = work(&scheduler);
    planned
}

#[test]
fn the_usual_patience_takes_within_one_percent_of_the_best_paths_and_more_than_greedy() {
    let greedy = planned(Rule::Greedy, Patience::Endless);
    let best = planned(Rule::Paths, Patience::Endless);
    let taken =
        planned(Rule::Paths, Patience::Nodes(NonZeroU32::new(PATIENCE_NODES as u32).unwrap()));
    assert!(taken.work * 4 < best.work * 3, "{} nodes instead of {}", taken.work, best.work);
    let (taken, best, greedy) = (taken.blocks, best.blocks, greedy.blocks);
    assert!(taken < best && taken * 100 >= best * 99, "{taken} of {best}");
    assert!(taken > greedy, "{taken} of {greedy}");
}

#[test]
fn the_longest_plan_works_no_longer_than_its_patience_where_no_path_can_be_twice_the_best() {
    let endless = planned(Rule::Paths, Patience::Endless).work_max;
    let patient =
        planned(Rule::Paths, Patience::Nodes(NonZeroU32::new(PATIENCE_NODES as u32).unwrap()))
            .work_max;
    // The last cylinder is ordered as a whole, of 512 pieces at most.
    assert!(patient <= PATIENCE_NODES + 9 && endless > 2 * patient, "{patient} of {endless}");
}

#[test]
fn a_small_drive_has_no_end_of_patience_and_the_greedy_rule_none_on_any() {
    let drive = |toml| Drive::build(&toml::from_str(toml).unwrap()).unwrap();
    let small = drive(include_str!("../../../../../drives/atlas10k.toml"));
    let large = drive(include_str!("../../../../../drives/exos-x24-24tb.toml"));
    let nodes = |rule, drive| Options { rule, ..Options::default() }.patience_nodes(drive);
    assert_eq!(nodes(Rule::Paths, &small), None);
    assert_eq!(nodes(Rule::Paths, &large), Some(PATIENCE_NODES));
    assert_eq!(nodes(Rule::Greedy, &large), None);
}
