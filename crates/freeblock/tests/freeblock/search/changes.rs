//! Weights that change, and layers that come to hold blocks of another size, between decisions.

use std::sync::Arc;

use freewheel_freeblock::tasks::{
    BlockSelection, Extent, Pace, Priority, TaskId, TaskSpec, Tasks, Until,
};
use freewheel_freeblock::{LayerKey, Opportunity, Options, Planner, Rule};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_units::{Blocks, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::case::{any_gap, execute, unlimited};
use super::oracle::Oracle;
use freewheel_testkit::drives::{any_drive, random_spec};

/// Decisions about one drive, and after how many of them a task gives its layer to another.
const DECISIONS: usize = 40;
const EVERY: usize = 8;

/// Tasks beside an oracle, to which each is a layer with the task's place in the list as its number.
struct Changing {
    tasks: Tasks,
    ids: Vec<(TaskId, Pace)>,
    oracle: Oracle,
    prng: Prng,
    /// Blocks of 512 B in the blocks of tasks that have not begun.
    sizes: Vec<u32>,
    /// Weights of wanted blocks that rose, and that fell, between two decisions.
    rises: u32,
    falls: u32,
    /// Rises of so few blocks that only their cylinders are computed again.
    rises_of_few: u32,
    cylinders: usize,
}

/// Worth of a plan and of the best track, and the plan's punctuality.
struct Decided {
    worth: u64,
    best: u64,
    in_time: bool,
}

impl Changing {
    fn new(spec: DriveSpec, seed: u64, rule: Rule) -> Self {
        // Out-of-order access is the foreground's; the oracle takes every piece from its beginning.
        let in_order = DriveSpec { zero_latency: ByOp { read: false, write: false }, ..spec };
        let drive = Arc::new(Drive::build(&in_order).unwrap());
        let options = Options { rule, region_weights: false, ..unlimited() };
        let mut changing = Self {
            // Weights are looked at before every decision.
            tasks: Tasks::new(&drive, options, SimDuration::ZERO),
            ids: Vec::new(),
            oracle: Oracle::new(&drive),
            prng: Prng::new(seed, "changes"),
            sizes: (1..=12).collect(),
            rises: 0,
            falls: 0,
            rises_of_few: 0,
            cylinders: drive.seek().distance_max() as usize + 1,
        };
        (0..3).for_each(|_| changing.begin(SimTime::ZERO));
        changing
    }

    /// A task wants a random part of the drive in blocks of a size that no other has: so it needs
    /// another layer.
    fn begin(&mut self, now: SimTime) {
        let prng = &mut self.prng;
        let size = self.sizes.swap_remove(prng.below(self.sizes.len() as u64) as usize);
        let offset = prng.below(size.into()) as u32;
        let blocks = self.oracle.drive.blocks().get().saturating_sub(offset.into());
        // Of a few blocks a weight that rises makes no new index.
        let share = [0.001, 0.02, 0.3, 1.0][prng.below(4) as usize];
        let wanted = (0..blocks / u64::from(size)).filter(|_| prng.chance(share));
        let wanted: Vec<u64> = wanted.collect();
        let start = |block| u64::from(offset) + block * u64::from(size);
        let extents = wanted.iter().map(|&block| Extent::new(start(block), size.into())).collect();
        let pace = match prng.below(4) {
            0 => Pace::ByPriority,
            1 => Pace::Room(1 + prng.below(3 * wanted.len() as u64 + 1)),
            2 => Pace::Deadline(SimDuration::from_ns(1 + prng.below(1 << 40))),
            _ => Pace::Share(1 + prng.below(5) as u32),
        };
        let priority = [Priority::Low, Priority::Normal, Priority::High][prng.below(3) as usize];
        let until = Until::Standing;
        let spec = TaskSpec { pace, priority, until, ..TaskSpec::new(Op::Read, size, extents) };
        self.ids.push((self.tasks.register(now, spec).unwrap(), pace));
        self.oracle.layers.push(LayerKey { op: Op::Read, size, offset, weight: priority.weight() });
        wanted.into_iter().for_each(|block| self.oracle.want(self.ids.len() - 1, block));
    }

    /// A random task ends, and another takes its layer over.
    fn replace(&mut self, now: SimTime) {
        let left: Vec<TaskId> = self.tasks.ids().collect();
        let gone = left[self.prng.below(left.len() as u64) as usize];
        self.tasks.abort(now, gone, BlockSelection::All).unwrap();
        self.oracle.wanted.retain(|&(layer, _), _| self.ids[layer].0 != gone);
        self.begin(now);
    }

    /// The weights of the last decision.
    fn weigh(&mut self) {
        for (layer, (&(id, pace), key)) in (0..).zip(self.ids.iter().zip(&mut self.oracle.layers)) {
            // A task that has ended, and one whose weight is its priority's for good.
            let Ok(progress) = self.tasks.progress(id, SimTime::ZERO) else { continue };
            if pace == Pace::ByPriority {
                continue;
            }
            let wanted = self.oracle.wanted.range((layer, 0)..(layer + 1, 0)).count();
            let is_wanted = wanted > 0;
            let is_rise = is_wanted && progress.weight > key.weight;
            self.rises += u32::from(is_rise);
            self.rises_of_few += u32::from(is_rise && 2 * wanted < self.cylinders);
            self.falls += u32::from(is_wanted && progress.weight < key.weight);
            key.weight = progress.weight;
        }
    }

    fn decide(&mut self, gap: &Opportunity) -> Decided {
        let drive = Arc::clone(&self.oracle.drive);
        let mut runs = Vec::new();
        self.tasks.plan(gap, &mut runs);
        self.weigh();
        let best = self.oracle.best(gap);
        let in_time = runs.is_empty() || execute(&drive, gap, &runs);
        let mut worth = 0;
        for run in &runs {
            self.tasks.done(run, gap.due);
            let (from, blocks) = (run.start.get(), u64::from(run.blocks));
            worth += self.oracle.take(from, from + blocks, run.op).0;
        }
        Decided { worth, best, in_time }
    }

    /// Decides about random gaps, one after the other.
    fn decisions(&mut self) -> impl Iterator<Item = Decided> {
        let drive = Arc::clone(&self.oracle.drive);
        let gaps = (0..DECISIONS).map(|_| any_gap(&mut self.prng, &drive));
        let mut gaps: Vec<Opportunity> = gaps.collect();
        gaps.sort_unstable_by_key(|gap| gap.begin);
        gaps.into_iter().enumerate().map(|(number, gap)| {
            if number % EVERY == EVERY - 1 {
                self.replace(gap.begin);
            }
            self.decide(&gap)
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn decision_keeps_worth_after_weight_changes(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        for rule in [Rule::Greedy, Rule::Paths] {
            let mut changing = Changing::new(spec.clone(), seed, rule);
            for Decided { worth, best, in_time } in changing.decisions() {
                prop_assert!(in_time);
                prop_assert!(worth >= best, "{rule:?}: {worth} of {best}");
                prop_assert!(rule == Rule::Paths || worth == best, "{worth} of {best}");
            }
        }
    }
}

#[test]
fn weights_rise_and_fall_between_decisions() {
    let (mut rises, mut falls, mut of_few) = (0, 0, 0);
    for seed in 0..60 {
        let spec = random_spec(seed);
        if Drive::build(&spec).is_ok() {
            let mut changing = Changing::new(spec, seed, Rule::Greedy);
            changing.decisions().for_each(drop);
            (rises, falls) = (rises + changing.rises, falls + changing.falls);
            of_few += changing.rises_of_few;
        }
    }
    assert!(rises > 50 && falls > 50, "{rises} rises, {falls} falls");
    assert!(of_few > 10, "{of_few} rises of weights of few blocks");
}
