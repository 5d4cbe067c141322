//! What searches for paths that end early lose.

use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Options, Patience, Planner, Rule, Scheduler};
use freewheel_model::drive::Drive;
use freewheel_testkit::drives::any_drive;
use freewheel_units::{Blocks, Op, Prng};
use proptest::prelude::*;

use super::case::{Case, any_gap, unlimited};
use super::oracle::Oracle;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..Default::default() })]

    #[test]
    fn a_plan_falls_short_of_the_best_path_by_no_more_than_its_nodes_allow(
        (spec, drive) in any_drive(), seed: u64, patience in 1u32..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options {
            rule: Rule::Paths, region_weights: false, patience: Patience::Nodes(patience), ..unlimited()
        };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let before = case.scheduler.effort().nodes;
            let (worth, best, in_time, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(in_time, "{:?}", runs);
            let nodes = case.scheduler.effort().nodes - before;
            let allowed = worth * nodes.pow(2) / u64::from(patience).pow(2);
            prop_assert!(worth + allowed >= best, "{} of {} after {}", worth, best, nodes);
            prop_assert_eq!(worth > 0, best > 0, "something where there is something");
        }
    }
}

/// Blocks of 512 B of 300 plans, and nodes looked at, where half of an Atlas 10K is wanted in blocks of 4 KiB
/// and nothing of it ever comes.
fn planned(rule: Rule, patience: Patience) -> (u64, u64) {
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
    let (mut blocks, mut runs) = (0, Vec::new());
    for _ in 0..300 {
        scheduler.plan(&any_gap(prng, &drive), &mut runs);
        blocks += runs.iter().map(|run| u64::from(run.blocks)).sum::<u64>();
    }
    (blocks, scheduler.effort().nodes)
}

#[test]
fn a_patience_of_192_nodes_takes_within_one_percent_of_the_best_paths_and_more_than_greedy() {
    let (greedy, _) = planned(Rule::Greedy, Patience::Endless);
    let (best, nodes) = planned(Rule::Paths, Patience::Endless);
    let (taken, fewer) = planned(Rule::Paths, Patience::Nodes(192));
    assert!(fewer * 4 < nodes * 3, "{fewer} nodes instead of {nodes}");
    assert!(taken < best && taken * 100 >= best * 99, "{taken} of {best}");
    assert!(taken > greedy, "{taken} of {greedy}");
}

#[test]
fn a_small_drive_has_no_end_of_patience_and_the_greedy_rule_none_on_any() {
    let drive = |toml| Drive::build(&toml::from_str(toml).unwrap()).unwrap();
    let small = drive(include_str!("../../../../../drives/atlas10k.toml"));
    let large = drive(include_str!("../../../../../drives/exos-x24-24tb.toml"));
    let nodes = |rule, drive| Options { rule, ..Options::default() }.patience_nodes(drive);
    assert_eq!(nodes(Rule::Paths, &small), None);
    assert_eq!(nodes(Rule::Paths, &large), Some(192));
    assert_eq!(nodes(Rule::Greedy, &large), None);
}
