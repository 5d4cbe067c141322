//! A scheduler with random wishes, beside its oracle, in random gaps.

use std::sync::Arc;

use freewheel_freeblock::{
    Ends, Fineness, FreeRun, LayerKey, Opportunity, Options, Planner, ResumableSearch, Rule,
    Scheduler, SearchProgress,
};
use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::drive::{Departure, Drive, Position, SEEK_CLASSES, SeekMargins};
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};

use super::oracle::Oracle;

pub fn position(prng: &mut Prng, drive: &Drive) -> Position {
    let at = drive.layout().locate(Lbn::new(prng.below(drive.blocks().get())));
    Position { cylinder: at.cylinder, surface: at.surface }
}

pub fn any_gap(prng: &mut Prng, drive: &Drive) -> Opportunity {
    let (from, to) = (position(prng, drive), position(prng, drive));
    let to = if prng.chance(0.2) { from } else { to };
    gap_between(drive, prng, from, to)
}

pub fn gap_between(drive: &Drive, prng: &mut Prng, from: Position, to: Position) -> Opportunity {
    let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
    let departure = Departure {
        begin: SimTime::from_ns((1 << 30) + prng.below(1 << 40)),
        from,
        last_op: if prng.chance(0.5) { Op::Read } else { Op::Write },
        read_write_switch: SimDuration::from_us(prng.below(3) * prng.below(700)),
    };
    let seek_error_ns = (prng.below(400_000) as i64 - 200_000) * prng.below(2) as i64;
    let seek = drive.travel(&departure, to, op, seek_error_ns);
    let Departure { begin, last_op, read_write_switch, .. } = departure;
    let latency = SimDuration::from_ns(prng.below(drive.rotation().period().ns()));
    let due = begin + seek + latency;
    let before = SimDuration::from_ns(prng.below((due - begin).ns() + 1));
    let ends = Ends {
        source_closed: prng.chance(0.3),
        destination_before: prng.chance(0.3).then_some(before),
    };
    Opportunity { begin, from, last_op, read_write_switch, to, op, seek, seek_error_ns, due, ends }
}

/// Does the runs one after the other; whether the head is on the destination in time.
pub fn execute(drive: &Drive, gap: &Opportunity, runs: &[FreeRun]) -> bool {
    let mut head = gap.departure();
    for run in runs {
        let target = drive.target(run.start, Blocks::new(run.blocks.into()), run.op);
        let access = drive.media_access_from(&head, &target, 0);
        head = head.after(&access, run.op);
    }
    gap.arrival(drive, &head) <= gap.due
}

/// With memory for the pieces of all blocks.
pub fn unlimited() -> Options {
    Options { held_max: Bytes::new(1 << 30), ..Options::default() }
}

pub struct Case {
    pub scheduler: Scheduler,
    pub oracle: Oracle,
    pub prng: Prng,
    /// Steps of a search in a gap before it gives up.
    pub patience: u64,
    /// Set if the last one refused them.
    pub is_refused: bool,
}

impl Case {
    /// Wants a random part of the drive in layers of random sizes.
    pub fn new(spec: DriveSpec, seed: u64, rule: Rule) -> Self {
        Self::with(spec, seed, Options { rule, ..unlimited() }, 3)
    }

    /// Case with at most `layers_max` layers.
    pub fn with(spec: DriveSpec, seed: u64, options: Options, layers_max: u64) -> Self {
        let mut case = Self::empty(spec, seed, options);
        let Self { scheduler, oracle, prng, .. } = &mut case;
        let drive = Arc::clone(&oracle.drive);
        for _ in 0..1 + prng.below(layers_max) {
            let size = 1 + prng.below(12) as u32;
            let op = if prng.chance(0.7) { Op::Read } else { Op::Write };
            let offset = prng.below(size.into()) as u32;
            let key = LayerKey { op, size, offset, weight: 1 + prng.below(3) as u32 };
            if oracle.layers.contains(&key) || u64::from(offset + size) > drive.blocks().get() {
                continue;
            }
            let layer = scheduler.layer(key);
            oracle.layers.push(key);
            let blocks = (drive.blocks().get() - u64::from(offset)) / u64::from(size);
            let share = [0.02, 0.3, 1.0][prng.below(3) as usize];
            for block in (0..blocks).filter(|_| prng.chance(share)) {
                assert_eq!(scheduler.want(layer, block, block + 1), 1);
                oracle.want(layer, block);
            }
        }
        case
    }

    /// Wants nothing.
    pub fn empty(spec: DriveSpec, seed: u64, options: Options) -> Self {
        let prng = Prng::new(seed, "freeblock");
        // Out-of-order access is the foreground's; the oracle takes every piece from its beginning.
        let in_order = DriveSpec { zero_latency: ByOp { read: false, write: false }, ..spec };
        let drive = Arc::new(Drive::build(&in_order).unwrap());
        // Of small drives both are tried, unless the case is about one.
        let fineness = match options.fineness {
            Fineness::BySize if seed.is_multiple_of(2) => Fineness::Coarse,
            Fineness::BySize => Fineness::Fine,
            asked_for => asked_for,
        };
        let options = Options { fineness, ..options };
        let (scheduler, oracle) = (Scheduler::new(&drive, options), Oracle::new(&drive));
        Self { scheduler, oracle, prng, patience: u64::MAX, is_refused: false }
    }

    /// Blocks of a layer, wanted or not.
    pub fn blocks(&self, layer: usize) -> u64 {
        let LayerKey { offset, size, .. } = self.oracle.layers[layer];
        (self.oracle.drive.blocks().get() - u64::from(offset)) / u64::from(size)
    }

    /// Has random parts of the drive pass, and takes wishes back: some regions are behind others
    /// then.
    pub fn wear(&mut self) {
        let capacity = self.oracle.drive.blocks().get();
        let parts = if self.oracle.layers.is_empty() { 0 } else { self.prng.below(4) };
        for _ in 0..parts {
            let from = self.prng.below(capacity);
            let blocks = 1 + self.prng.below((capacity - from).min(1 << 12)) as u32;
            let run = FreeRun { start: Lbn::new(from), blocks, op: Op::Read };
            self.scheduler.done(&run, SimTime::ZERO);
            self.oracle.take(from, from + u64::from(blocks), Op::Read);
            let layer = self.prng.below(self.oracle.layers.len() as u64) as usize;
            let all = self.blocks(layer);
            let first = self.prng.below(all);
            let end = first + 1 + self.prng.below((all - first).min(40));
            let gone = self.oracle.count(layer, first, end);
            assert_eq!(self.scheduler.unwant(layer, first, end), gone);
            self.oracle
                .wanted
                .retain(|&(of, block), _| of != layer || !(first..end).contains(&block));
        }
        self.scheduler.deliveries().for_each(drop);
    }

    /// In a random region blocks of another size become wanted in the place of those of the first
    /// layer.
    pub fn change_size(&mut self) {
        let Some(&LayerKey { op, size, offset, weight }) = self.oracle.layers.first() else {
            return;
        };
        let capacity = self.oracle.drive.blocks().get();
        let begin = self.prng.below(capacity);
        let end = begin + 1 + self.prng.below(capacity - begin);
        let (size, offset) = (u64::from(size), u64::from(offset));
        let first = begin.saturating_sub(offset) / size;
        let last = (end.saturating_sub(offset).div_ceil(size)).min(self.blocks(0));
        if first < last {
            self.scheduler.unwant(0, first, last);
            self.oracle.wanted.retain(|&(_, block), _| !(first..last).contains(&block));
        }
        let key = LayerKey { op, size: 1 + self.prng.below(12) as u32, offset: 0, weight };
        if self.oracle.layers.contains(&key) || u64::from(key.size) > capacity {
            return;
        }
        let layer = self.scheduler.layer(key);
        self.oracle.layers.push(key);
        let size = u64::from(key.size);
        for block in begin.div_ceil(size)..end / size {
            if self.prng.chance(0.5) {
                assert_eq!(self.scheduler.want(layer, block, block + 1), 1);
                self.oracle.want(layer, block);
            }
        }
    }

    /// From now on movements take longer than on `plain`, by a random margin for each class of them.
    pub fn slow_down(&mut self, plain: &Drive) {
        let mut margins = SeekMargins::constant(SimDuration::ZERO);
        for op in [Op::Read, Op::Write] {
            for class in 0..SEEK_CLASSES {
                let us = self.prng.below(2) * self.prng.below(600);
                margins.set(op, class, SimDuration::from_us(us));
            }
        }
        self.oracle.drive = Arc::new(plain.with_seek_margins(margins));
        self.scheduler.predict_with(&self.oracle.drive);
    }

    /// Plans a random gap and does the plan. Worth of the plan, what the oracle says is the best,
    /// and whether it was in time.
    pub fn gap(&mut self) -> (u64, u64, bool, Vec<FreeRun>) {
        self.gap_beside(Oracle::best)
    }

    pub fn gap_beside(
        &mut self,
        best: impl Fn(&Oracle, &Opportunity) -> u64,
    ) -> (u64, u64, bool, Vec<FreeRun>) {
        self.gap_with(|oracle, _, gap| best(oracle, gap))
    }

    /// Gap for an oracle that knows where blocks that come in pieces are begun.
    pub fn gap_with(
        &mut self,
        best: impl Fn(&Oracle, &Scheduler, &Opportunity) -> u64,
    ) -> (u64, u64, bool, Vec<FreeRun>) {
        let drive = Arc::clone(&self.oracle.drive);
        let gap = any_gap(&mut self.prng, &drive);
        let mut runs = Vec::new();
        let (mut asked, mut is_refused) = (0, false);
        let mut go_on = |_: SearchProgress| {
            asked += 1;
            is_refused |= asked > self.patience;
            !is_refused
        };
        plan_in_steps(&mut self.scheduler, &gap, &mut go_on, &mut runs);
        self.is_refused = is_refused;
        for (cylinder, weight) in (0..).zip(&mut self.oracle.region_weights) {
            *weight = self.scheduler.region_weight(cylinder);
        }
        let best = best(&self.oracle, &self.scheduler, &gap);
        let in_time = runs.is_empty() || execute(&drive, &gap, &runs);
        let (mut worth, mut complete) = (0, Vec::new());
        for run in &runs {
            let (from, to) = (run.start.get(), run.start.get() + u64::from(run.blocks));
            let (more, blocks) = self.oracle.take(from, to, run.op);
            worth += more;
            complete.extend(blocks);
            self.scheduler.done(run, gap.due);
        }
        let mut delivered: Vec<(usize, u64)> = Vec::new();
        for delivery in self.scheduler.deliveries() {
            let first = delivery.delivered.first;
            let blocks = first..first + delivery.delivered.blocks;
            delivered.extend(blocks.map(|block| (delivery.delivered.layer, block)));
        }
        delivered.sort_unstable();
        complete.sort_unstable();
        assert_eq!(delivered, complete, "just the blocks that are complete are delivered, once");
        let held = Blocks::new(self.oracle.held()).bytes();
        assert_eq!(self.scheduler.held(), held, "of blocks that have come in part");
        for layer in 0..self.oracle.layers.len() {
            let blocks = self.blocks(layer);
            let from = self.prng.below(blocks);
            let to = from + self.prng.below(blocks - from + 1);
            let wanted = self.scheduler.wanted_in(layer, from, to);
            assert_eq!(wanted, self.oracle.count(layer, from, to), "{from}..{to} of {layer}");
        }
        (worth, best, in_time, runs)
    }
}

/// Plans in steps of eight nodes, and gives up on a direction once `go_on` is false.
pub fn plan_in_steps(
    scheduler: &mut Scheduler,
    gap: &Opportunity,
    mut go_on: impl FnMut(SearchProgress) -> bool,
    runs: &mut Vec<FreeRun>,
) {
    scheduler.begin_search(gap);
    let mut nodes = 0;
    loop {
        let so_far = scheduler.step(nodes);
        if so_far.is_done() {
            break;
        }
        nodes = if go_on(so_far) { 8 } else { 0 };
        if nodes == 0 {
            scheduler.give_up();
        }
    }
    scheduler.end_search(runs);
}
