//! Searches in steps.

use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Options, Planner, ResumableSearch, Rule, Scheduler};
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Op, Prng};
use proptest::prelude::*;

use super::case::{Case, any_gap, unlimited};
use freewheel_testkit::drives::any_drive;

/// Plans gap after gap at once, and by a copy in steps of random sizes. Fails where anything differs, or
/// where a step looks at too many nodes. Returns the number of steps that looked at any.
fn steps_like_one_call(mut at_once: Scheduler, prng: &mut Prng) -> Result<u64, TestCaseError> {
    let drive = Arc::clone(at_once.drive());
    let (mut in_steps, mut steps) = (at_once.clone(), 0);
    for _ in 0..20 {
        let gap = any_gap(prng, &drive);
        let mut runs = [Vec::new(), Vec::new()];
        at_once.plan(&gap, &mut runs[0]);
        in_steps.begin_search(&gap);
        let mut looked = 0;
        loop {
            let most = prng.below(20);
            let so_far = in_steps.step(most);
            prop_assert!(so_far.nodes - looked <= most, "{} of {most}", so_far.nodes - looked);
            steps += u64::from(so_far.nodes > looked);
            looked = so_far.nodes;
            if so_far.is_done() {
                break;
            }
        }
        in_steps.end_search(&mut runs[1]);
        prop_assert_eq!(&runs[0], &runs[1]);
        prop_assert_eq!(at_once.effort(), in_steps.effort());
        for run in &runs[0] {
            at_once.done(run, gap.due);
            in_steps.done(run, gap.due);
        }
    }
    Ok(steps)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..Default::default() })]

    #[test]
    fn steps_make_same_plan_as_one_call(
        (spec, drive) in any_drive(), seed: u64, budget in prop_oneof![0u64..60, Just(u64::MAX)],
        region_weights: bool,
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        for rule in [Rule::Greedy, Rule::Paths] {
            let options = Options { rule, region_weights, budget, ..unlimited() };
            let Case { scheduler, mut prng, .. } = Case::with(spec.clone(), seed, options, 3);
            steps_like_one_call(scheduler, &mut prng)?;
        }
    }
}

#[test]
fn search_of_whole_drive_takes_many_steps() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    for rule in [Rule::Greedy, Rule::Paths] {
        let prng = &mut Prng::new(1, "steps");
        let mut scheduler = Scheduler::new(&drive, Options { rule, ..unlimited() });
        for op in [Op::Read, Op::Write] {
            let layer = scheduler.layer(LayerKey { op, size: 16, offset: 0, weight: 1 });
            for _ in 0..20_000 {
                let block = prng.below(drive.blocks().get() / 16);
                scheduler.want(layer, block, block + 1);
            }
        }
        let steps = steps_like_one_call(scheduler, prng).unwrap();
        // More than two in each of 20 gaps.
        assert!(steps > 40, "{rule:?}: {steps}");
    }
}
