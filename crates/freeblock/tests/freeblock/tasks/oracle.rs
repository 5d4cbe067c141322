//! The slow registry: a set of blocks a task, and the rules of the documentation one by one.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_freeblock::PromotionId;
use freewheel_freeblock::tasks::{Event, Extent, Promoted, TaskId, TaskSpec, Tasks, Until};
use freewheel_units::{Op, SimTime};

use super::arm::{READ, WRITE, blocks};

/// Reasons for which a pending block waits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waits {
    /// Writes that were under way when it was registered.
    writes: BTreeSet<Writer>,
    /// Until no freeblock write that is pending and no write under way touches it.
    any_write: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    Foreground(u64),
    Promoted(PromotionId),
    /// A run of the plan, by its first block.
    Gap(u64),
}

#[derive(Debug)]
pub struct Known {
    pub spec: TaskSpec,
    /// By first block.
    pub free: BTreeMap<u64, Waits>,
    pub promoted: BTreeSet<u64>,
    pub repeats: BTreeSet<u64>,
    pub delivered: u64,
    round: u64,
}

#[derive(Debug, Default)]
pub struct Oracle {
    pub tasks: BTreeMap<TaskId, Known>,
    /// Writes under way: `from..to`.
    writes: BTreeMap<Writer, (u64, u64)>,
    promotions: BTreeMap<PromotionId, (TaskId, Vec<u64>)>,
    /// Blocks of 512 B that have been read, or written.
    moved: BTreeSet<(Op, u64)>,
    pub blocks_delivered: u64,
    pub blocks_superseded: u64,
    pub blocks_deferred: u64,
    pub promoted_superseded: u64,
    pub rounds: u64,
}

/// Cause of a moved block.
#[derive(Debug, Clone, Copy)]
pub enum Move {
    Gap(Op),
    Foreground(Op),
}

fn touch(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

impl Known {
    pub fn size(&self) -> u64 {
        self.spec.block_size.into()
    }

    fn bounds(&self, block: u64) -> (u64, u64) {
        (block, block + self.size())
    }

    fn is_served_in_gap(&self, how: Move) -> bool {
        match how {
            Move::Gap(op) if self.spec.op == WRITE => op == WRITE,
            Move::Foreground(_) if self.spec.op == WRITE => false,
            Move::Gap(READ) => true,
            Move::Foreground(READ) => self.spec.counts.reads,
            Move::Gap(_) | Move::Foreground(_) => self.spec.counts.writes,
        }
    }

    fn is_served_promoted(&self, how: Move) -> bool {
        let Move::Foreground(op) = how else { return false };
        self.spec.op == READ && (op == READ || self.spec.counts.writes)
    }

    pub fn may_be_taken(&self, block: u64) -> bool {
        self.free.get(&block).is_some_and(|waits| *waits == Waits::default())
    }

    fn is_complete(&self) -> bool {
        match self.spec.until {
            Until::Standing => false,
            Until::Enough(enough) if self.delivered == enough => true,
            _ => self.free.is_empty() && self.promoted.is_empty(),
        }
    }
}

impl Oracle {
    fn write_before(&self, bounds: (u64, u64)) -> bool {
        if self.writes.values().any(|&write| touch(write, bounds)) {
            return true;
        }
        let mut writes = self.tasks.values().filter(|task| task.spec.op == WRITE);
        writes.any(|task| {
            let pending = task.free.keys().chain(&task.promoted);
            pending.into_iter().any(|&block| touch(task.bounds(block), bounds))
        })
    }

    pub fn begin(&mut self, id: TaskId, spec: &TaskSpec) -> Vec<Expected> {
        let known = Known {
            spec: spec.clone(),
            free: BTreeMap::new(),
            promoted: BTreeSet::new(),
            repeats: BTreeSet::new(),
            delivered: 0,
            round: 0,
        };
        self.tasks.insert(id, known);
        self.add(id, &spec.extents)
    }

    /// Effects on other tasks when blocks are added to one.
    pub fn add(&mut self, id: TaskId, extents: &[Extent]) -> Vec<Expected> {
        let (op, size) = (self.tasks[&id].spec.op, self.tasks[&id].size());
        let added: BTreeSet<u64> = extents.iter().flat_map(|e| blocks(e, size)).collect();
        let mut expected = Vec::new();
        if op == READ {
            self.want_reads(id, &added);
            if self.tasks[&id].spec.until == Until::Repeated {
                self.tasks.get_mut(&id).unwrap().repeats.extend(&added);
            }
        } else {
            for &block in &added {
                let bounds = self.tasks[&id].bounds(block);
                expected.extend(self.supersede(bounds, Some((id, block % size))));
                let overlapping = self.writes.iter().filter(|(_, write)| touch(**write, bounds));
                let writes: BTreeSet<Writer> = overlapping.map(|(&writer, _)| writer).collect();
                self.blocks_deferred += u64::from(!writes.is_empty());
                let waits = Waits { writes, any_write: false };
                self.tasks.get_mut(&id).unwrap().free.insert(block, waits);
            }
        }
        expected
    }

    fn want_reads(&mut self, id: TaskId, added: &BTreeSet<u64>) {
        for &block in added {
            let task = &self.tasks[&id];
            if task.free.contains_key(&block) && self.write_before(task.bounds(block)) {
                // Registered again: it is newer than the write now.
                let any_write = true;
                let waits = Waits { writes: BTreeSet::new(), any_write };
                self.tasks.get_mut(&id).unwrap().free.insert(block, waits);
            } else if !task.free.contains_key(&block) && !task.promoted.contains(&block) {
                let any_write = self.write_before(task.bounds(block));
                self.blocks_deferred += u64::from(any_write);
                let waits = Waits { writes: BTreeSet::new(), any_write };
                self.tasks.get_mut(&id).unwrap().free.insert(block, waits);
            }
        }
    }

    /// Pending freeblock writes that something newer replaces, but for those of one task with the
    /// same alignment.
    fn supersede(&mut self, bounds: (u64, u64), but_for: Option<(TaskId, u64)>) -> Vec<Expected> {
        let mut expected = Vec::new();
        for (&id, task) in self.tasks.iter_mut().filter(|(_, task)| task.spec.op == WRITE) {
            let size = task.size();
            let gone = task.free.keys().copied().filter(|&block| {
                touch((block, block + size), bounds) && but_for != Some((id, block % size))
            });
            for block in gone.collect::<Vec<u64>>() {
                task.free.remove(&block);
                expected.push(Expected::Superseded(id, block));
                self.blocks_superseded += 1;
            }
            // Promoted writes are in the queue: newer freeblock writes wait for them.
            let gone = task
                .promoted
                .iter()
                .copied()
                .filter(|&block| but_for.is_none() && touch((block, block + size), bounds));
            for block in gone.collect::<Vec<u64>>() {
                task.promoted.remove(&block);
                expected.push(Expected::Superseded(id, block));
                self.promoted_superseded += 1;
            }
        }
        expected
    }

    pub fn arrived(&mut self, sequence: u64, bounds: (u64, u64)) -> Vec<Expected> {
        self.writes.insert(Writer::Foreground(sequence), bounds);
        self.supersede(bounds, None)
    }

    pub fn write_begins(&mut self, writer: Writer, bounds: (u64, u64)) {
        self.writes.insert(writer, bounds);
    }

    pub fn write_ends(&mut self, writer: Writer) {
        self.writes.remove(&writer);
        for task in self.tasks.values_mut() {
            for waits in task.free.values_mut() {
                waits.writes.remove(&writer);
            }
        }
        self.release_reads();
    }

    pub fn abort(&mut self, id: TaskId, extents: &[Extent]) -> u64 {
        let task = self.tasks.get_mut(&id).unwrap();
        let size = task.size();
        let inside = |block: u64| {
            extents.iter().any(|extent| {
                let from = extent.start.get();
                from <= block && block + size <= from + extent.blocks.get()
            })
        };
        let before = task.free.len() + task.promoted.len();
        task.free.retain(|&block, _| !inside(block));
        task.promoted.retain(|&block| !inside(block));
        task.repeats.retain(|&block| !inside(block));
        (before - task.free.len() - task.promoted.len()) as u64
    }

    pub fn promoted(&mut self, id: TaskId, requests: &[Promoted]) {
        for request in requests {
            let task = self.tasks.get_mut(&id).unwrap();
            let extent = Extent::new(request.start.get(), request.blocks.into());
            let all: Vec<u64> = blocks(&extent, task.size()).collect();
            for block in &all {
                assert!(task.may_be_taken(*block), "{block} of {id} was promoted");
                task.free.remove(block);
                task.promoted.insert(*block);
            }
            if task.spec.op == WRITE {
                let bounds = (extent.start.get(), extent.start.get() + extent.blocks.get());
                self.writes.insert(Writer::Promoted(request.id), bounds);
                self.promotions.insert(request.id, (id, all));
            }
        }
    }

    /// Every sector of a plan belongs to a block that may be taken.
    pub fn check_plan(&self, op: Op, bounds: (u64, u64)) {
        for sector in bounds.0..bounds.1 {
            let wanted = self.tasks.values().filter(|task| task.spec.op == op).any(|task| {
                let size = task.size();
                let candidates = (sector + 1).saturating_sub(size)..=sector;
                candidates.into_iter().any(|block| task.may_be_taken(block))
            });
            assert!(wanted, "nobody wants to {op} {sector}");
        }
    }

    /// Blocks that a move of `bounds` completes for sure, and those it may complete, being the last
    /// piece of them.
    pub fn moved(&mut self, how: Move, bounds: (u64, u64)) -> (Vec<Expected>, Vec<Expected>) {
        let (Move::Gap(op) | Move::Foreground(op)) = how;
        self.moved.extend((bounds.0..bounds.1).map(|sector| (op, sector)));
        let (mut must, mut may) = (Vec::new(), Vec::new());
        for (&id, task) in &self.tasks {
            let in_gap = task.free.keys().filter(|&&block| task.may_be_taken(block));
            let in_gap = in_gap.filter(|_| task.is_served_in_gap(how)).copied();
            let promoted = task.promoted.iter().filter(|_| task.is_served_promoted(how)).copied();
            for block in in_gap.chain(promoted) {
                let (from, to) = task.bounds(block);
                if bounds.0 <= from && to <= bounds.1 {
                    must.push(Expected::Delivered(id, block));
                } else if touch((from, to), bounds) && !task.promoted.contains(&block) {
                    let op = task.spec.op;
                    let has = |sector| {
                        self.moved.contains(&(op, sector))
                            || op == READ && self.moved.contains(&(WRITE, sector))
                    };
                    if (from..to).all(has) {
                        may.push(Expected::Delivered(id, block));
                    }
                }
            }
        }
        (must, may)
    }

    pub fn promotion_done(&mut self, promotion: PromotionId) -> Vec<Expected> {
        let Some((id, blocks)) = self.promotions.remove(&promotion) else { return Vec::new() };
        let Some(task) = self.tasks.get(&id) else { return Vec::new() };
        let left = blocks.into_iter().filter(|block| task.promoted.contains(block));
        left.map(|block| Expected::Delivered(id, block)).collect()
    }

    /// Takes what has happened in and checks it: all that `must` be, and nothing but that and what
    /// `may` be. Then the consequences.
    pub fn follow(&mut self, events: &[Event], must: &[Expected], may: &[Expected]) {
        let mut happened: BTreeMap<Expected, usize> = BTreeMap::new();
        for event in events {
            match *event {
                Event::Delivered { task, extent, .. } => {
                    let known = self.tasks.get_mut(&task).expect("a task that goes on");
                    for block in blocks(&extent, known.size()) {
                        let what = Expected::Delivered(task, block);
                        assert!(must.contains(&what) || may.contains(&what), "{what:?}");
                        assert!(happened.insert(what, 1).is_none(), "{what:?} twice");
                        // What is promoted and wanted anew waits: it is not what was delivered.
                        if !known.promoted.remove(&block) {
                            assert!(known.free.remove(&block).is_some(), "{what:?} unwanted");
                        }
                        known.delivered += 1;
                        self.blocks_delivered += 1;
                    }
                }
                Event::Superseded { task, extent, .. } => {
                    let size = self.tasks[&task].size();
                    for block in blocks(&extent, size) {
                        let what = Expected::Superseded(task, block);
                        *happened.entry(what).or_default() += 1;
                    }
                }
                Event::Done { task, round, .. } => {
                    let known = self.tasks.get_mut(&task).expect("a task that goes on");
                    assert!(known.is_complete() && known.round == round, "{task} is not done");
                    self.rounds += 1;
                    known.round += 1;
                    known.delivered = 0;
                    let repeats = known.repeats.clone();
                    if repeats.is_empty() {
                        self.tasks.remove(&task);
                    } else {
                        self.want_reads(task, &repeats);
                    }
                }
            }
        }
        for what in must {
            let (Expected::Delivered(task, _) | Expected::Superseded(task, _)) = what;
            let is_over = !self.tasks.contains_key(task);
            // Of a block both promoted data and newer ones may be superseded.
            let times = must.iter().filter(|other| *other == what).count();
            assert!(happened.get(what) == Some(&times) || is_over, "{what:?} did not happen");
        }
        let expected = |what: &Expected| must.contains(what) || may.contains(what);
        assert!(happened.keys().all(expected), "{happened:?}");
        for (id, task) in &self.tasks {
            assert!(!task.is_complete(), "{id} is done and nobody says so");
        }
        self.release_reads();
    }

    fn release_reads(&mut self) {
        let waiting: Vec<(TaskId, u64)> = self
            .tasks
            .iter()
            .flat_map(|(&id, task)| task.free.iter().map(move |(&block, waits)| (id, block, waits)))
            .filter(|(_, _, waits)| waits.any_write)
            .map(|(id, block, _)| (id, block))
            .collect();
        for (id, block) in waiting {
            if !self.write_before(self.tasks[&id].bounds(block)) {
                let task = self.tasks.get_mut(&id).unwrap();
                task.free.insert(block, Waits::default());
            }
        }
    }

    /// The two registries are the same.
    pub fn compare(&self, tasks: &Tasks, now: SimTime) {
        assert_eq!(tasks.ids().collect::<Vec<_>>(), self.tasks.keys().copied().collect::<Vec<_>>());
        for (&id, known) in &self.tasks {
            let progress = tasks.progress(id, now).unwrap();
            let deferred = known.free.keys().filter(|&&block| !known.may_be_taken(block)).count();
            assert_eq!(progress.deferred, deferred as u64, "{id} waits");
            assert_eq!(progress.promoted, known.promoted.len() as u64, "{id} promoted");
            // The same block may be promoted, and wanted again with newer data.
            let wanted = known.free.len() + known.promoted.len();
            assert_eq!(progress.wanted, wanted as u64, "{id} wants");
            assert_eq!(progress.delivered, known.delivered, "{id} has got");
            assert_eq!(progress.rounds, known.round, "{id} has gone round");
        }
    }
}

/// One block's fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expected {
    Delivered(TaskId, u64),
    Superseded(TaskId, u64),
}
