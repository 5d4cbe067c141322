//! That the index is kept up between decisions, for any caller.

use std::sync::{Arc, Mutex};

use freewheel_freeblock::{
    ForegroundEvent, ForegroundObserver, FreeRun, LayerKey, Opportunity, Options, Planner, Rule,
    Scheduler, TimedPlanner,
};
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Op, Prng, SimTime};

use super::case::any_gap;

#[test]
fn vain_looks_are_not_repeated() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    for rule in [Rule::Greedy, Rule::Paths] {
        let mut schedulers = [(), ()].map(|()| {
            let mut scheduler = Scheduler::new(&drive, Options { rule, ..Options::default() });
            let layer = scheduler.layer(LayerKey { op: Op::Read, size: 8, offset: 0, weight: 1 });
            let prng = &mut Prng::new(1, "upkeep");
            for _ in 0..20_000 {
                let block = prng.below(drive.blocks().get() / 8);
                scheduler.want(layer, block, block + 1);
            }
            scheduler
        });
        let prng = &mut Prng::new(2, "upkeep");
        let (mut runs, mut nodes) = ([Vec::new(), Vec::new()], [0, 0]);
        for _ in 0..300 {
            let gap = any_gap(prng, &drive);
            for nodes in &mut nodes {
                let before = schedulers[0].effort().nodes;
                for (scheduler, runs) in schedulers.iter_mut().zip(&mut runs) {
                    scheduler.plan(&gap, runs);
                }
                schedulers[1].refresh();
                *nodes += schedulers[0].effort().nodes - before;
                assert_eq!(runs[0], runs[1], "{rule:?}");
                assert_eq!(schedulers[0].effort(), schedulers[1].effort(), "{rule:?}");
            }
            for (scheduler, runs) in schedulers.iter_mut().zip(&runs) {
                runs.iter().for_each(|run| scheduler.done(run, SimTime::ZERO));
            }
        }
        // Of one gap after the other, with no work between.
        assert!(nodes[1] < nodes[0], "{rule:?}: {nodes:?}");
    }
}

#[test]
fn short_memory_opens_one_cylinder_per_decision() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    let size = 128;
    let held_max = Blocks::new(40 * u64::from(size)).bytes();
    for rule in [Rule::Greedy, Rule::Paths] {
        let mut schedulers = [(), ()].map(|()| {
            let options = Options { rule, held_max, ..Options::default() };
            let mut scheduler = Scheduler::new(&drive, options);
            let layer = scheduler.layer(LayerKey { op: Op::Read, size, offset: 0, weight: 1 });
            scheduler.want(layer, 0, drive.blocks().get() / u64::from(size));
            scheduler
        });
        let prng = &mut Prng::new(1, "upkeep");
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..300 {
            let gap = any_gap(prng, &drive);
            for (scheduler, runs) in schedulers.iter_mut().zip(&mut runs) {
                scheduler.plan(&gap, runs);
                runs.iter().for_each(|run| scheduler.done(run, SimTime::ZERO));
            }
            assert_eq!(runs[0], runs[1], "{rule:?}");
            (0..prng.below(4)).for_each(|_| schedulers[1].refresh());
        }
    }
}

#[test]
fn plans_ignore_when_index_is_built() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    for rule in [Rule::Greedy, Rule::Paths] {
        let options = Options { rule, ..Options::default() };
        let mut schedulers = [(), ()].map(|()| Scheduler::new(&drive, options));
        let key = LayerKey { op: Op::Read, size: 8, offset: 0, weight: 1 };
        let layers = schedulers.each_mut().map(|scheduler| scheduler.layer(key));
        let prng = &mut Prng::new(3, "upkeep");
        let mut runs = [Vec::new(), Vec::new()];
        for at in 0..300 {
            if at % 100 == 0 {
                let all = drive.blocks().get() / 8;
                for (scheduler, layer) in schedulers.iter_mut().zip(layers) {
                    scheduler.want(layer, 0, all);
                }
            }
            let gap = any_gap(prng, &drive);
            let [plain, watched] = &mut schedulers;
            plain.plan(&gap, &mut runs[0]);
            TimedPlanner::new(watched, &|decide| decide()).plan(&gap, &mut runs[1]);
            assert_eq!(runs[0], runs[1], "{rule:?}");
            assert_eq!(plain.effort(), watched.effort(), "{rule:?}");
            for (scheduler, runs) in schedulers.iter_mut().zip(&runs) {
                runs.iter().for_each(|run| scheduler.done(run, SimTime::ZERO));
            }
        }
    }
}

/// Returns the value that was asked for.
struct Told(Arc<Mutex<Vec<&'static str>>>);

impl Planner for Told {
    fn prepare(&mut self, _: &Opportunity) {
        self.0.lock().unwrap().push("prepare");
    }

    fn plan(&mut self, _: &Opportunity, _: &mut Vec<FreeRun>) {
        self.0.lock().unwrap().push("plan");
    }

    fn done(&mut self, _: &FreeRun, _: SimTime) {}
}

impl ForegroundObserver for Told {
    fn foreground(&mut self, _: ForegroundEvent<'_>) {}
}

#[test]
fn new_round_is_outside_timed_decision() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let around = |decide: &mut dyn FnMut()| {
        told.lock().unwrap().push("begin");
        decide();
        told.lock().unwrap().push("end");
    };
    let mut planner = Told(Arc::clone(&told));
    let gap = any_gap(&mut Prng::new(4, "upkeep"), &drive);
    TimedPlanner::new(&mut planner, &around).plan(&gap, &mut Vec::new());
    assert_eq!(*told.lock().unwrap(), ["prepare", "begin", "plan", "end"]);
}
