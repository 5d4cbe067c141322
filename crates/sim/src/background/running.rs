//! A task during a run: its round, results, and expected end.

use std::mem;

use freewheel_freeblock::tasks::{Event, Extent, Promoted, TaskId, TaskSpec, Tasks};
use freewheel_freeblock::uses::{Compare, Pair};
use freewheel_freeblock::{GapUse, Opportunity, PromotionId, TaskOrder};
use freewheel_host::{DeliveryPath, PromotionAnchor, TailPromotion, TaskAccount};
use freewheel_units::{Blocks, SimDuration, SimTime};

use super::comparison::{BeginError, UseResult, begin_comparison};
use super::result::{Gaps, Progress, Round, TaskResult};

/// Parts of a round after which its progress is noted. The last blocks take most of the time, so notes
/// are denser towards the end.
const STEPS: u64 = 200;

/// Halvings of the last step with a note each.
const LAST_STEPS: u32 = 10;

/// A task of one arm.
#[derive(Clone)]
pub(super) struct Running {
    id: TaskId,
    spec: TaskSpec,
    blocks: u64,
    name: String,
    config: TaskOrder,
    rounds: Vec<Round>,
    /// Use of the gaps of the round under way, and its progress.
    gaps: Gaps,
    progress: Vec<Progress>,
    account: TaskAccount,
    /// Delivery at which the progress is noted next, and all such deliveries.
    note_at: u64,
    steps: Vec<u64>,
    /// Blocks of its rounds that the run still waits for.
    unfinished: u64,
    /// The comparison that asks for its blocks pair by pair, if the task is one.
    comparison: Option<Compare>,
}

impl Running {
    /// Registers a task; `anchor` says beside which requests its promoted ones are served.
    pub fn begin(
        tasks: &mut Tasks,
        name: String,
        config: TaskOrder,
        anchor: PromotionAnchor,
    ) -> Result<Self, BeginError> {
        let capacity = tasks.drive().blocks();
        let spec = config.spec(capacity);
        let blocks = config.blocks_of_a_round(capacity);
        let comparison = begin_comparison(tasks, &config)?;
        let id = match &comparison {
            Some(comparison) => comparison.task(),
            None => tasks.register(SimTime::ZERO, spec.clone())?,
        };
        let tail = config.promote_tail.map(|tail| TailPromotion::new(tail, config.size(), anchor));
        let mut running = Self {
            id,
            unfinished: config.rounds.unwrap_or(0) * blocks,
            account: TaskAccount::new(blocks, 1, tail, SimTime::ZERO),
            spec,
            blocks,
            name,
            config,
            rounds: Vec::new(),
            gaps: Gaps::default(),
            progress: Vec::new(),
            note_at: 0,
            steps: steps(blocks),
            comparison,
        };
        running.note_at = running.first_step();
        running.account.estimate().wears(tasks.wear(id)?);
        Ok(running)
    }

    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Blocks that the round under way still wants.
    fn left(&self) -> u64 {
        if self.is_done() { 0 } else { self.blocks - self.account.round().settled() }
    }

    /// Splits an extent into blocks of the task.
    pub fn blocks_of(&self, extent: Extent) -> impl Iterator<Item = Extent> + use<> {
        let (from, size) = (extent.start.get(), u64::from(self.spec.block_size));
        let starts = (from..from + extent.blocks.get()).step_by(size as usize);
        starts.map(move |start| Extent::new(start, size))
    }

    /// Counts the head time of a copy. The copy of the last block may end after its round and counts
    /// for that round.
    pub fn copy_took(&mut self, head: SimDuration) {
        let is_done = self.is_done();
        match self.rounds.last_mut().filter(|_| is_done) {
            Some(last) => last.deliveries.copied.took(head),
            None => self.account.copy_took(head),
        }
    }

    /// Passes an event of its blocks to the comparison.
    pub fn observe(&mut self, tasks: &mut Tasks, event: &Event, at: SimTime) {
        let Some(comparison) = &mut self.comparison else { return };
        // Simulated drives hold no data, so the contents of a pair are not compared.
        let mut pairs: Vec<Pair> = Vec::new();
        comparison.event(tasks, event, &mut pairs).expect("pairs within the drive");
        if comparison.is_done() && self.rounds.is_empty() {
            self.end_round(tasks, at);
        }
    }

    fn is_done(&self) -> bool {
        self.config.result_kind().is_once() && !self.rounds.is_empty()
    }

    /// True if foreground writes wait until its blocks are read.
    pub fn is_copied(&self) -> bool {
        self.spec.precedes_writes && !self.is_done()
    }

    /// Takes up to this number of blocks off those that the run waits for: how many.
    pub fn take_unfinished(&mut self, blocks: u64) -> u64 {
        let blocks = blocks.min(self.unfinished);
        self.unfinished -= blocks;
        blocks
    }

    pub fn tail(&mut self) -> Option<&mut TailPromotion> {
        self.account.tail()
    }

    /// A foreground request took this head time, perhaps one that the tail has promoted.
    pub fn tail_took(&mut self, promotion: Option<PromotionId>, head: SimDuration) {
        if let Some(number) = self.account.tail_took(promotion, head) {
            self.rounds[number].deliveries.promoted.took(head);
        }
    }

    /// The next request for the last blocks of the round, if it is time for one.
    pub fn promote_tail(&mut self, now: SimTime, tasks: &mut Tasks) -> Option<Promoted> {
        let left = self.left();
        let promoted = self.account.promote_tail(now, tasks, self.id, left)?;
        if !self.account.is_steady() {
            self.account.steady(left, now);
        }
        Some(promoted)
    }

    /// Counts a delivery of `blocks` of 512 B; returns it in blocks of the task.
    pub fn delivered(&mut self, blocks: Blocks, way: DeliveryPath, at: SimTime) -> u64 {
        let blocks = blocks.get() / u64::from(self.spec.block_size);
        self.account.delivered(blocks, way);
        self.note(at);
        blocks
    }

    /// Counts `blocks` of 512 B that newer data made unnecessary; returns them in blocks of the task.
    pub fn superseded(&mut self, blocks: Blocks, at: SimTime) -> u64 {
        let blocks = blocks.get() / u64::from(self.spec.block_size);
        self.account.superseded(blocks);
        self.note(at);
        blocks
    }

    /// Counts a gap for the task, whichever task used it.
    pub fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        if !self.is_done() {
            self.gaps.add(gap, gap_use);
        }
    }

    /// Ends a round. A repeating task continues, a sample wants every block again, and a task of one
    /// round is over.
    pub fn end_round(&mut self, tasks: &mut Tasks, at: SimTime) {
        let elapsed_ns = at.saturating_since(self.account.began()).ns();
        self.account.complete();
        let deliveries = self.account.begin(self.blocks, false, at);
        let (gaps, mut progress) = (mem::take(&mut self.gaps), mem::take(&mut self.progress));
        progress.push(Progress { elapsed_ns, blocks: deliveries.settled(), gaps });
        self.rounds.push(Round { elapsed_ns, deliveries, gaps, progress });
        self.note_at = self.first_step();
        if !self.is_done() && tasks.progress(self.id, at).is_err() {
            let begun = tasks.register(at, self.spec.clone());
            self.id = begun.expect("what could be registered before");
        }
        if let Ok(wear) = tasks.wear(self.id) {
            self.account.estimate().wears(wear);
        }
    }

    /// Results at the end of the run.
    pub fn result(self, end: SimTime) -> TaskResult {
        let expected = self.account.estimated().end(self.left(), end);
        let is_done = self.is_done();
        let since = end.saturating_since(self.account.began()).ns();
        let unfinished = Round {
            elapsed_ns: if is_done { 0 } else { since },
            deliveries: *self.account.round(),
            gaps: self.gaps,
            progress: self.progress,
        };
        TaskResult {
            name: self.name,
            kind: self.config.result_kind(),
            blocks: self.blocks,
            block_bytes: self.config.block().get(),
            deadline_ns: self.config.deadline.map(|deadline| deadline.ns()),
            rounds: self.rounds,
            unfinished,
            expected_end_ns: expected.filter(|_| !is_done).map(SimTime::ns),
            used: self.comparison.map(|comparison| UseResult::of(&comparison, &self.config)),
        }
    }

    fn first_step(&self) -> u64 {
        self.steps.first().copied().unwrap_or(u64::MAX)
    }

    fn note(&mut self, at: SimTime) {
        let left = self.left();
        self.account.estimate().at(left, at);
        let done = self.account.round().settled();
        while done >= self.note_at {
            let elapsed_ns = at.saturating_since(self.account.began()).ns();
            self.progress.push(Progress { elapsed_ns, blocks: done, gaps: self.gaps });
            let next = self.steps.get(self.progress.len());
            self.note_at = next.copied().unwrap_or(u64::MAX);
        }
    }
}

/// Deliveries of a round of `blocks` blocks at which progress is noted: distinct, rising, and before
/// the last.
fn steps(blocks: u64) -> Vec<u64> {
    let evenly = (1..STEPS).map(|step| blocks * step / STEPS);
    let late = (1..=LAST_STEPS).map(|half| blocks - ((blocks / STEPS) >> half));
    let mut steps: Vec<u64> =
        evenly.chain(late).filter(|step| (1..blocks).contains(step)).collect();
    steps.dedup();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_steps_are_few_and_distinct() {
        for blocks in [1, 2, 5, 199, 200, 201, 5_000, 1_000_000] {
            let steps = steps(blocks);
            assert!(steps.len() < blocks as usize, "{blocks}: {steps:?}");
            assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{blocks}: {steps:?}");
            assert!(steps.iter().all(|step| (1..blocks).contains(step)), "{blocks}: {steps:?}");
        }
        assert_eq!(steps(1_000_000).len() as u64, STEPS - 1 + u64::from(LAST_STEPS));
    }
}
