//! Loss of searches for paths that end early.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Options, PATIENCE_NODES, Patience, Planner, Rule, Scheduler};
use freewheel_model::drive::Drive;
use freewheel_testkit::drives::any_drive;
use freewheel_units::{Blocks, Op, Prng, SimTime};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::case::{Case, any_gap, unlimited};

/// Gaps that the patience made a difference to.
#[derive(Debug, Default)]
struct Rows {
    /// Searches of which an endless one did more work.
    shortened: Cell<u64>,
    /// Searches of which the endless one took more.
    lossy: Cell<u64>,
    /// Searches that may miss less than they took.
    bounded: Cell<u64>,
}

impl Rows {
    /// Adds a gap: what a search with patience took and did, and what one without took and did.
    fn add(&self, patience: u64, (taken, work): (u64, u64), (best, endless): (u64, u64)) {
        let add = |count: &Cell<u64>, is_one| count.set(count.get() + u64::from(is_one));
        let allowed = allowed(patience, taken, work);
        add(&self.shortened, work < endless);
        add(&self.lossy, work < endless && taken < best);
        add(&self.bounded, work < endless && allowed < taken.into());
        assert!(
            u128::from(taken) + allowed >= best.into(),
            "{taken} of {best} after {work} of {patience}"
        );
        assert_eq!(taken > 0, best > 0, "something where there is something");
    }

    /// True if enough searches were shortened, enough of them lost something, and enough might not have
    /// lost half of the best.
    fn check_something(&self, shortened: u64, lossy: u64) -> bool {
        let [all, lost, bounded] = [&self.shortened, &self.lossy, &self.bounded].map(Cell::get);
        all >= shortened && lost >= lossy && bounded >= lossy
    }
}

/// Greatest loss that a search may have that took this much: the fourth power of the part of the patience
/// that its work is.
fn allowed(patience: u64, taken: u64, work: u64) -> u128 {
    // Parts of a node before it may be one more together with those of this plan.
    let power = u128::from(work + 1).pow(4);
    u128::from(taken) * power / u128::from(patience).pow(4)
}

#[test]
fn plan_shortfall_is_bounded_by_work() {
    let rows = Rows::default();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        source_file: Some(file!()),
        ..Default::default()
    });
    let any = (any_drive(), any::<u64>(), 1u32..40);
    let result = runner.run(&any, |((spec, drive), seed, patience)| {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = |patience| Options {
            rule: Rule::Paths,
            region_weights: false,
            patience,
            ..unlimited()
        };
        let patient = options(Patience::Nodes(NonZeroU32::new(patience).unwrap()));
        let mut case = Case::with(spec.clone(), seed, patient, 1);
        // Gets the same gaps and blocks.
        let endless = Case::with(spec, seed, options(Patience::Endless), 1).scheduler;
        let endless = RefCell::new(endless);
        for _ in 0..30 {
            let before = [work(&case.scheduler), work(&endless.borrow())];
            let (worth, best, in_time, runs) = case.gap_beside(|oracle, gap| {
                endless.borrow_mut().plan(gap, &mut Vec::new());
                oracle.best_path(gap)
            });
            prop_assert!(in_time, "{:?}", runs);
            let endless = &mut *endless.borrow_mut();
            let after = [work(&case.scheduler), work(endless)];
            let [patient_work, endless_work] = [0, 1].map(|at| after[at] - before[at]);
            rows.add(patience.into(), (worth, patient_work), (best, endless_work));
            runs.iter().for_each(|run| endless.done(run, SimTime::ZERO));
            endless.deliveries().for_each(drop);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(rows.check_something(20, 3), "{rows:?}");
}

/// Work of all plans so far, in nodes: 64 pieces that are ordered into paths count as one.
fn work(scheduler: &Scheduler) -> u64 {
    let effort = scheduler.effort();
    effort.nodes + effort.pieces / 64
}

/// Results of plans.
struct Planned {
    /// Blocks of 512 B of all plans.
    blocks: u64,
    /// Work of all plans in nodes.
    work: u64,
    /// Work of the plan with the most of it.
    work_max: u64,
    /// Blocks and work of each.
    plans: Vec<(u64, u64)>,
}

/// Results of 300 plans, where half of an Atlas 10K is wanted in blocks of 4 KiB and none of it ever comes.
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
    let (mut planned, mut runs) =
        (Planned { blocks: 0, work: 0, work_max: 0, plans: Vec::new() }, Vec::new());
    for _ in 0..300 {
        let before = work(&scheduler);
        scheduler.plan(&any_gap(prng, &drive), &mut runs);
        let blocks = runs.iter().map(|run| u64::from(run.blocks)).sum();
        let work = work(&scheduler) - before;
        planned.blocks += blocks;
        planned.work_max = planned.work_max.max(work);
        planned.plans.push((blocks, work));
    }
    planned.work = work(&scheduler);
    planned
}

#[test]
fn usual_patience_is_within_one_percent() {
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
fn atlas_10k_plan_shortfall_is_bounded() {
    let endless = planned(Rule::Paths, Patience::Endless);
    for patience in [10, 20, 40, 80, 160] {
        let patient = Patience::Nodes(NonZeroU32::new(patience).unwrap());
        let patient = planned(Rule::Paths, patient);
        let rows = Rows::default();
        for (&plan, &endless) in patient.plans.iter().zip(&endless.plans) {
            rows.add(patience.into(), plan, endless);
        }
        assert!(rows.check_something(10, 1), "{patience} nodes: {rows:?}");
    }
}

#[test]
fn longest_plan_keeps_patience() {
    let endless = planned(Rule::Paths, Patience::Endless).work_max;
    let patient =
        planned(Rule::Paths, Patience::Nodes(NonZeroU32::new(PATIENCE_NODES as u32).unwrap()))
            .work_max;
    // The last cylinder is ordered as a whole, of 512 pieces at most.
    assert!(patient <= PATIENCE_NODES + 9 && endless > 2 * patient, "{patient} of {endless}");
}

#[test]
fn patience_is_endless_on_small_drive() {
    let drive = |toml| Drive::build(&toml::from_str(toml).unwrap()).unwrap();
    let small = drive(include_str!("../../../../../drives/atlas10k.toml"));
    let large = drive(include_str!("../../../../../drives/exos-x24-24tb.toml"));
    let nodes = |rule, drive| Options { rule, ..Options::default() }.patience_nodes(drive);
    assert_eq!(nodes(Rule::Paths, &small), None);
    assert_eq!(nodes(Rule::Paths, &large), Some(PATIENCE_NODES));
    assert_eq!(nodes(Rule::Greedy, &large), None);
}
