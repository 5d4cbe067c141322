//! Both rules beside exhaustive searches.

use std::sync::Arc;

use freewheel_freeblock::{Bounds, FreeRun, Options, Planner, Rule, SearchProgress};
use freewheel_units::{Blocks, Lbn, SimTime};
use proptest::prelude::*;

use super::case::{Case, any_gap, plan_in_steps, unlimited};
use super::oracle::Oracle;
use freewheel_testkit::drives::any_drive;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn greedy_takes_best_track(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let mut case = Case::new(spec, seed, Rule::Greedy);
        for _ in 0..30 {
            let (worth, best, in_time, runs) = case.gap();
            prop_assert_eq!(worth, best, "{:?}", runs);
            prop_assert!(in_time, "{:?}", runs);
            let track = |run: &FreeRun| {
                let at = case.oracle.drive.layout().locate(run.start);
                (at.cylinder, at.surface)
            };
            let first = runs.first().map(track);
            prop_assert!(runs.iter().all(|run| Some(track(run)) == first), "{:?}", runs);
        }
    }

    #[test]
    fn plans_stay_good_while_margins_change(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        for rule in [Rule::Greedy, Rule::Paths] {
            let mut case = Case::new(spec.clone(), seed, rule);
            let plain = Arc::clone(&case.oracle.drive);
            for _ in 0..8 {
                case.slow_down(&plain);
                for _ in 0..4 {
                    let (worth, best, in_time, runs) = case.gap();
                    prop_assert!(in_time, "{:?}", runs);
                    prop_assert!(rule == Rule::Paths || worth == best, "{:?}", runs);
                    prop_assert!((best > 0) == (worth > 0), "{:?}", runs);
                }
            }
        }
    }

    #[test]
    fn path_plan_is_in_time_and_nonempty(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let mut case = Case::new(spec, seed, Rule::Paths);
        for _ in 0..30 {
            let (worth, best, in_time, runs) = case.gap();
            prop_assert!(in_time, "seed {}: {:?}", seed, runs);
            prop_assert_eq!(worth > 0, best > 0, "{} of {}", worth, best);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn path_plan_matches_best_path(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        // Blocks of one layer do not overlap, and all are worth the same everywhere.
        let options = Options { rule: Rule::Paths, region_weights: false, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let (worth, best, _, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    #[test]
    fn path_plan_matches_with_rough_bounds(
        (spec, drive) in any_drive(), seed: u64, at_first: bool
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options {
            rule: Rule::Paths,
            region_weights: false,
            bounds: if at_first { Bounds::RoughAtFirst } else { Bounds::Rough },
            ..unlimited()
        };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let (worth, best, _, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    #[test]
    fn path_plan_with_slack_nears_best(
        (spec, drive) in any_drive(), seed: u64, log2 in 0u32..5
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let slack_log2 = Some(log2);
        let options = Options { rule: Rule::Paths, region_weights: false, slack_log2, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let (worth, best, _, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(worth + (worth >> log2) + 1 >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    #[test]
    fn path_plan_matches_after_size_change(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Paths, region_weights: false, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 1);
        for number in 0..30 {
            if number == 5 {
                case.change_size();
            }
            let (worth, best, _, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    /// Region weights change every 64 decisions.
    #[test]
    fn path_plan_matches_greatest_region_weight(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let mut case = Case::with(spec, seed, Options { rule: Rule::Paths, ..unlimited() }, 1);
        case.wear();
        for _ in 0..40 {
            let (worth, best, in_time, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(in_time, "{:?}", runs);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
            if case.prng.chance(0.1) {
                case.wear();
            }
        }
    }

    #[test]
    fn path_plan_with_few_steps_matches_track(
        (spec, drive) in any_drive(), seed: u64, steps_max in 0u32..20
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Paths, region_weights: false, steps_max, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 3);
        for _ in 0..30 {
            let (worth, best, in_time, runs) = case.gap();
            prop_assert!(in_time, "{:?}", runs);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    #[test]
    fn path_plan_matches_best_track(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Paths, region_weights: false, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 3);
        for _ in 0..30 {
            let (worth, best, _, runs) = case.gap();
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    #[test]
    fn greedy_with_budget_stays_in_time(
        (spec, drive) in any_drive(), seed: u64, budget in 0u64..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Greedy, budget, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 3);
        for _ in 0..30 {
            let exhausted = case.scheduler.effort().exhausted;
            let (worth, best, in_time, runs) = case.gap();
            prop_assert!(in_time, "{:?}", runs);
            prop_assert!(worth <= best, "{} of {}", worth, best);
            let counted = case.scheduler.effort().exhausted > exhausted;
            prop_assert!(worth == best || counted, "{} of {} without notice", worth, best);
        }
        prop_assert!(case.scheduler.effort().nodes <= 30 * budget);
    }

    #[test]
    fn path_plan_with_budget_counts_misses(
        (spec, drive) in any_drive(), seed: u64, budget in 0u64..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Paths, region_weights: false, budget, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let exhausted = case.scheduler.effort().exhausted;
            let (worth, best, in_time, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(in_time, "{:?}", runs);
            let counted = case.scheduler.effort().exhausted > exhausted;
            prop_assert!(worth >= best || counted, "{} of {} without notice", worth, best);
        }
        prop_assert!(case.scheduler.effort().nodes <= 30 * budget);
    }

    #[test]
    fn interrupted_search_plans_in_time(
        (spec, drive) in any_drive(), seed: u64, patience in prop_oneof![0u64..20, Just(u64::MAX)]
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        for rule in [Rule::Greedy, Rule::Paths] {
            let options = Options { rule, region_weights: false, ..unlimited() };
            let mut case = Case { patience, ..Case::with(spec.clone(), seed, options, 1) };
            for _ in 0..30 {
                let exhausted = case.scheduler.effort().exhausted;
                let (worth, best, in_time, runs) = match rule {
                    Rule::Greedy => case.gap(),
                    Rule::Paths => case.gap_beside(Oracle::best_path),
                };
                prop_assert!(in_time, "{:?}", runs);
                // Several stops also count blocks at both ends beside a third cylinder.
                prop_assert!(rule == Rule::Paths || worth <= best, "{} of {}", worth, best);
                prop_assert!(worth >= best || case.is_refused, "{} of {}", worth, best);
                let counted = case.scheduler.effort().exhausted > exhausted;
                prop_assert_eq!(counted, case.is_refused);
                prop_assert!(patience < u64::MAX || !counted);
            }
        }
    }

    #[test]
    fn longer_search_takes_no_less((spec, drive) in any_drive(), seed: u64) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let mut case = Case::with(spec, seed, Options { rule: Rule::Greedy, ..unlimited() }, 1);
        for _ in 0..10 {
            let gap = any_gap(&mut case.prng, &drive);
            let mut least = 0;
            for patience in 0..20 {
                let (mut asked, mut runs) = (0, Vec::new());
                let mut go_on = |_: SearchProgress| {
                    asked += 1;
                    asked <= patience
                };
                plan_in_steps(&mut case.scheduler.clone(), &gap, &mut go_on, &mut runs);
                let blocks: u32 = runs.iter().map(|run| run.blocks).sum();
                prop_assert!(blocks >= least, "{blocks} after {least}, asked {asked}");
                least = blocks;
            }
        }
    }

    #[test]
    fn next_on_track_finds_all_wanted(
        (spec, drive) in any_drive(), seed: u64, most in 1u64..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let Case { mut scheduler, mut oracle, mut prng, .. } = Case::new(spec, seed, Rule::Greedy);
        for layer in 0..oracle.layers.len() {
            let op = oracle.layers[layer].op;
            let mut from = 0;
            while scheduler.wanted(layer) > 0 {
                prop_assert_eq!(scheduler.wanted(layer), oracle.count(layer, 0, u64::MAX));
                let Some((first, end)) = scheduler.next_on_track(layer, from, most) else {
                    prop_assert!(from > 0, "{} are wanted somewhere", scheduler.wanted(layer));
                    from = 0;
                    continue;
                };
                prop_assert!(from <= first && first < end, "{first}..{end} from {from}");
                let start = Lbn::new(first);
                let track = oracle.drive.layout().track_bounds(start);
                prop_assert!(end <= track.1.get(), "{first}..{end} of {track:?}");
                prop_assert!(oracle.take(first, end, op).0 > 0, "nothing is wanted there");
                scheduler.done(&FreeRun { start, blocks: (end - first) as u32, op }, SimTime::ZERO);
                from = if prng.chance(0.5) { first } else { end };
            }
        }
    }
}
