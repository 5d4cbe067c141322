//! Any sequence of calls on any drive does what the slow registry says.

use std::collections::BTreeSet;

use freewheel_freeblock::tasks::{
    BlockSelection, Counts, Event, Extent, Pace, Priority, Promoted, TaskId, TaskSpec, Until,
};
use freewheel_freeblock::{Foreground, ForegroundEvent, ForegroundObserver, FreeRun, PromotionId};
use freewheel_units::{Lbn, Op, Prng, SimDuration};
use proptest::prelude::*;

use super::arm::{Arm, READ, WRITE};
use super::oracle::{Expected, Move, Oracle, Writer};
use freewheel_testkit::drives::any_drive;

struct World {
    prng: Prng,
    arm: Arm,
    oracle: Oracle,
    queue: Vec<Foreground>,
    sequence: u64,
    last_gap: Vec<FreeRun>,
}

impl World {
    fn new(arm: Arm, seed: u64) -> Self {
        let prng = Prng::new(seed, "tasks");
        let (oracle, queue, last_gap) = (Oracle::default(), Vec::new(), Vec::new());
        Self { prng, arm, oracle, queue, sequence: 0, last_gap }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.prng.below(choices.len() as u64) as usize]
    }

    fn any_task(&mut self) -> Option<TaskId> {
        let ids: Vec<TaskId> = self.oracle.tasks.keys().copied().collect();
        (!ids.is_empty()).then(|| self.one_of(&ids))
    }

    fn op(&mut self) -> Op {
        self.one_of(&[READ, WRITE])
    }

    /// One to three rows of whole blocks; with `aligned` none overlaps another by half.
    fn extents(&mut self, size: u64, aligned: bool) -> Vec<Extent> {
        let capacity = self.arm.capacity();
        let count = 1 + self.prng.below(3);
        let offset = self.prng.below(size);
        let mut extents = Vec::new();
        for _ in 0..count {
            let mut start = self.prng.below(capacity);
            if aligned {
                start = start / size * size + offset;
            }
            let most = capacity.saturating_sub(start) / size;
            if most > 0 {
                let share = self.one_of(&[1, 2, 20]);
                let blocks = 1 + self.prng.below((most / share).max(1));
                extents.push(Extent::new(start, blocks * size));
            }
        }
        extents
    }

    fn follow(&mut self, must: &[Expected], may: &[Expected]) {
        let events: Vec<Event> = self.arm.events();
        self.oracle.follow(&events, must, may);
        self.oracle.compare(&self.arm.tasks, self.arm.now);
    }

    fn register(&mut self) {
        let op = self.op();
        let size = self.one_of(&[1, 2, 3, 4, 8, 13]);
        let extents = self.extents(size, op == WRITE);
        let until = match self.prng.below(4) {
            0 => Until::Enough(1 + self.prng.below(9)),
            1 if op == READ => Until::Repeated,
            2 => Until::Standing,
            _ => Until::All,
        };
        let pace = match self.prng.below(4) {
            0 => Pace::Deadline(SimDuration::from_ms(1 + self.prng.below(2000))),
            1 => Pace::Share(1 + self.prng.below(3) as u32),
            2 => Pace::Room(1 + self.prng.below(200)),
            _ => Pace::ByPriority,
        };
        let mut spec = TaskSpec {
            priority: self.one_of(&[Priority::Low, Priority::Normal, Priority::High]),
            counts: self.one_of(&[Counts::ALL, Counts::READS, Counts::NONE]),
            pace,
            until,
            ..TaskSpec::new(op, size as u32, extents)
        };
        if let Some(other) = self.any_task()
            && self.prng.chance(0.5)
        {
            // One that shares its layer with another.
            let known = self.oracle.tasks[&other].spec.clone();
            let until = if spec.op == known.op { spec.until } else { Until::All };
            spec = TaskSpec { until, pace: Pace::ByPriority, ..known };
        }
        if let Ok(id) = self.arm.tasks.register(self.arm.now, spec.clone()) {
            let expected = self.oracle.begin(id, &spec);
            self.follow(&expected, &[]);
        }
    }

    fn extend(&mut self) {
        let Some(id) = self.any_task() else { return };
        let (op, size) = (self.oracle.tasks[&id].spec.op, self.oracle.tasks[&id].size());
        let extents = self.extents(size, op == WRITE);
        if self.arm.tasks.extend(self.arm.now, id, &extents).is_ok() {
            let expected = self.oracle.add(id, &extents);
            self.follow(&expected, &[]);
        }
    }

    fn abort(&mut self) {
        let Some(id) = self.any_task() else { return };
        let now = self.arm.now;
        if self.prng.chance(0.3) {
            let wanted = self.arm.tasks.progress(id, now).unwrap().wanted;
            assert_eq!(self.arm.tasks.abort(now, id, BlockSelection::All), Ok(wanted));
            self.oracle.tasks.remove(&id);
        } else if self.prng.chance(0.4) {
            self.withdraw(id);
        } else {
            let extents = self.extents(1, true);
            let aborted = self.arm.tasks.abort(now, id, BlockSelection::In(&extents));
            assert_eq!(aborted, Ok(self.oracle.abort(id, &extents)));
        }
        self.follow(&[], &[]);
    }

    /// Takes all blocks back that a write would touch.
    fn withdraw(&mut self, id: TaskId) {
        let extent = self.extents(1, true)[0];
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        let task = &self.oracle.tasks[&id];
        let size = task.size();
        let is_touched = |at: &u64| *at < to && from < *at + size;
        let wanted = task.free.keys().chain(&task.promoted).copied();
        let touched: BTreeSet<u64> = wanted.filter(is_touched).collect();
        // The next round does not want them either.
        let repeated = task.repeats.iter().copied().filter(is_touched);
        let gone = touched.iter().copied().chain(repeated);
        let gone: Vec<Extent> = gone.map(|at| Extent::new(at, size)).collect();
        let withdrawn = self.arm.tasks.withdraw(self.arm.now, id, extent).unwrap();
        let blocks = withdrawn.iter().flat_map(|one| {
            let start = one.start.get();
            (start..start + one.blocks.get()).step_by(size as usize)
        });
        let blocks: Vec<u64> = blocks.collect();
        assert_eq!(blocks.len(), touched.len(), "each once");
        assert_eq!(blocks.into_iter().collect::<BTreeSet<u64>>(), touched);
        self.oracle.abort(id, &gone);
    }

    fn promote(&mut self) {
        let Some(id) = self.any_task() else { return };
        let limit = 13 + self.prng.below(30) as u32;
        let all = self.arm.tasks.clone().promote(id, BlockSelection::All, limit).unwrap();
        assert_eq!(self.arm.tasks.promotable(id, limit), Ok(all.len() as u64));
        let requests: Vec<Promoted> = if self.prng.chance(0.5) {
            self.promote_next(id, limit, !all.is_empty())
        } else {
            let extents = self.extents(1, true);
            self.arm.tasks.promote(id, BlockSelection::In(&extents[..1]), limit).unwrap()
        };
        self.oracle.promoted(id, &requests);
        for Promoted { id, op, start, blocks, .. } in requests {
            assert!(blocks <= limit);
            self.enqueue(op, start.get(), blocks, Some(id));
        }
        self.follow(&[], &[]);
    }

    fn promote_next(&mut self, id: TaskId, limit: u32, is_something: bool) -> Vec<Promoted> {
        let from = self.prng.below(self.arm.capacity());
        let task = &self.oracle.tasks[&id];
        let free = || task.free.keys().copied().filter(|&block| task.may_be_taken(block));
        let first = free().filter(|&block| block >= from).min().or_else(|| free().min());
        let next = self.arm.tasks.promote_next(id, Lbn::new(from), limit).unwrap();
        assert_eq!(next.map(|next| next.start.get()), first);
        assert_eq!(next.is_some(), is_something);
        next.into_iter().collect()
    }

    fn arrive(&mut self) {
        let op = self.op();
        let mut start = self.prng.below(self.arm.capacity());
        let promoted = self.queue.iter().rev().find(|request| request.promotion.is_some());
        if let Some(promoted) = promoted
            && self.prng.chance(0.3)
        {
            // One that may overtake it.
            start = promoted.start.get();
        }
        let blocks = (1 + self.prng.below(20)).min(self.arm.capacity() - start) as u32;
        self.enqueue(op, start, blocks, None);
    }

    fn enqueue(&mut self, op: Op, start: u64, blocks: u32, promotion: Option<PromotionId>) {
        self.sequence += 1;
        let sequence = self.sequence;
        let request = Foreground { op, start: Lbn::new(start), blocks, sequence, promotion };
        self.queue.push(request);
        self.arm.tasks.foreground(ForegroundEvent::Arrived { request: &request, at: self.arm.now });
        let mut expected = Vec::new();
        if op == WRITE && promotion.is_none() {
            expected = self.oracle.arrived(sequence, (start, start + u64::from(blocks)));
        }
        self.follow(&expected, &[]);
    }

    /// A call while no gap is planned, or while one is.
    fn call(&mut self) {
        match self.prng.below(12) {
            0..3 => self.register(),
            3..5 => self.extend(),
            5 => self.abort(),
            6..8 => self.promote(),
            _ => self.arrive(),
        }
    }

    fn serve(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let request = self.queue.remove(self.prng.below(self.queue.len() as u64) as usize);
        let Foreground { op, start, blocks, sequence, promotion } = request;
        // What was not done of the last plan is given up with the next.
        for run in std::mem::take(&mut self.last_gap) {
            self.oracle.write_ends(Writer::Gap(run.start.get()));
        }
        let gap = self.arm.plan(op, start.get(), blocks);
        let bounds = |start: Lbn, blocks: u32| (start.get(), start.get() + u64::from(blocks));
        for run in &gap.runs {
            self.oracle.check_plan(run.op, bounds(run.start, run.blocks));
            if run.op == WRITE {
                let writer = Writer::Gap(run.start.get());
                self.oracle.write_begins(writer, bounds(run.start, run.blocks));
            }
        }
        let mut at = (gap.opportunity.begin, gap.opportunity.from);
        let is_cut_short = self.prng.chance(0.1);
        for run in gap.runs.iter().take(if is_cut_short { 1 } else { usize::MAX }) {
            if self.prng.chance(0.2) {
                self.call();
            }
            let (must, may) = self.oracle.moved(Move::Gap(run.op), bounds(run.start, run.blocks));
            self.arm.run(run, &mut at);
            self.oracle.write_ends(Writer::Gap(run.start.get()));
            self.follow(&must, &may);
        }
        let (must, may) = self.oracle.moved(Move::Foreground(op), bounds(start, blocks));
        self.arm.finish(&gap, at);
        self.follow(&must, &may);
        let must = promotion.map_or(Vec::new(), |promotion| {
            if op == WRITE { self.oracle.promotion_done(promotion) } else { Vec::new() }
        });
        self.oracle.write_ends(match promotion {
            Some(promotion) => Writer::Promoted(promotion),
            None => Writer::Foreground(sequence),
        });
        self.arm.tasks.foreground(ForegroundEvent::Done { request: &request, at: self.arm.now });
        self.follow(&must, &[]);
        self.last_gap = gap.runs;
    }
}

fn any_world(seed: u64, arm: Arm, steps: u64) -> World {
    let mut world = World::new(arm, seed);
    for _ in 0..steps {
        if world.prng.chance(0.5) {
            world.call();
        } else {
            world.serve();
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn blocks_are_delivered_once_per_round(
        (_, drive) in any_drive(),
        seed: u64,
    ) {
        let cadence = SimDuration::from_ms(seed % 300);
        any_world(seed, Arm::with_cadence(drive, cadence), 100);
    }
}

#[test]
fn random_sequences_reach_every_delivery_kind() {
    let mut seen = [0; 5];
    for seed in 0..16 {
        let oracle = any_world(seed, Arm::plain(), 200).oracle;
        let counts = [
            oracle.blocks_delivered,
            oracle.blocks_superseded,
            oracle.blocks_deferred,
            oracle.promoted_superseded,
            oracle.rounds,
        ];
        seen.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}
