//! Account of a task: its rounds, the ways by which their blocks came, and the estimate of their end.
//!
//! Goals: one account for tasks in simulation and on a server. Blocks are counted in the caller's unit.
//! Non-goals: which blocks these are, and what gaps were used for.

use freewheel_freeblock::tasks::{Promoted, TaskId, Tasks};
use freewheel_freeblock::{Estimate, PromotionId};
use freewheel_units::{SimDuration, SimTime};
use serde::Serialize;

use crate::promote_tail::{RoundState, TailPromotion};

/// Path by which a block arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DeliveryPath {
    Gap,
    Idle,
    /// A foreground request that was made for another reason.
    Passing,
    /// A foreground request for the block.
    Promotion,
    /// A foreground request for the block before a foreground write replaces it.
    Copy,
}

/// Foreground requests for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PromotedWork {
    /// Number of requests.
    pub requests: u64,
    /// Blocks of the task that these requests delivered.
    pub blocks: u64,
    /// Head time. A write that the drive's buffer took counts with its share of the destage, by blocks.
    pub head_ns: u64,
}

impl PromotedWork {
    /// Counts a request and its head time.
    pub fn took(&mut self, head: SimDuration) {
        self.requests += 1;
        self.head_ns += head.ns();
    }
}

/// Blocks of a round by the path of their delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Deliveries {
    /// Blocks read in gaps.
    pub in_gaps: u64,
    /// Blocks that the foreground moved anyway.
    pub in_passing: u64,
    /// Blocks read in idle time.
    pub in_idle: u64,
    /// Foreground requests for the last blocks.
    pub promoted: PromotedWork,
    /// Copies of a backup's blocks before foreground writes.
    pub copied: PromotedWork,
    /// Blocks of a write task that newer foreground data made unnecessary.
    pub superseded: u64,
}

impl Deliveries {
    /// Blocks delivered.
    pub fn blocks(&self) -> u64 {
        self.in_gaps + self.in_passing + self.in_idle + self.promoted.blocks + self.copied.blocks
    }

    /// Blocks that were delivered or superseded.
    pub fn settled(&self) -> u64 {
        self.blocks() + self.superseded
    }

    fn of(&mut self, path: DeliveryPath) -> &mut u64 {
        match path {
            DeliveryPath::Gap => &mut self.in_gaps,
            DeliveryPath::Idle => &mut self.in_idle,
            DeliveryPath::Passing => &mut self.in_passing,
            DeliveryPath::Promotion => &mut self.promoted.blocks,
            DeliveryPath::Copy => &mut self.copied.blocks,
        }
    }
}

/// Account of a task.
#[derive(Debug, Clone)]
pub struct TaskAccount {
    /// Rounds that are complete.
    rounds: u64,
    /// Deliveries of the round under way, or of the last one.
    round: Deliveries,
    /// Blocks of a delivery.
    unit: u64,
    estimate: Estimate,
    /// Promotion of the last blocks of a round, if any.
    tail: Option<TailPromotion>,
    /// True if foreground requests are made for the rest of this round, which keeps its pace steady.
    is_steady: bool,
}

impl TaskAccount {
    /// A first round of `blocks` begins; a delivery has `unit` of them.
    pub fn new(blocks: u64, unit: u64, tail: Option<TailPromotion>, now: SimTime) -> Self {
        let estimate = Estimate::new(blocks, unit, now);
        Self { rounds: 0, round: Deliveries::default(), unit, estimate, tail, is_steady: false }
    }

    /// Rounds that are complete.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Deliveries of the round under way, or of the last one.
    pub fn round(&self) -> &Deliveries {
        &self.round
    }

    /// Time at which this round began.
    pub fn began(&self) -> SimTime {
        self.estimate.begun()
    }

    /// Estimate of the round's end.
    pub fn estimate(&mut self) -> &mut Estimate {
        &mut self.estimate
    }

    /// Estimate of the round's end, to look at.
    pub fn estimated(&self) -> &Estimate {
        &self.estimate
    }

    /// Promotion of the last blocks.
    pub fn tail(&mut self) -> Option<&mut TailPromotion> {
        self.tail.as_mut()
    }

    /// Counts blocks that have come.
    pub fn delivered(&mut self, blocks: u64, path: DeliveryPath) {
        *self.round.of(path) += blocks;
        match path {
            DeliveryPath::Gap => {}
            DeliveryPath::Passing | DeliveryPath::Copy => self.estimate.met(blocks),
            DeliveryPath::Idle | DeliveryPath::Promotion => self.estimate.asked(blocks),
        }
    }

    /// Counts blocks that newer data made unnecessary.
    pub fn superseded(&mut self, blocks: u64) {
        self.round.superseded += blocks;
        self.estimate.met(blocks);
    }

    /// Counts the head time of a copy.
    pub fn copy_took(&mut self, head: SimDuration) {
        self.round.copied.took(head);
    }

    /// A foreground request took this head time. If the tail made it in an earlier round, it counts for that:
    /// the number of the round.
    pub fn tail_took(
        &mut self,
        promotion: Option<PromotionId>,
        head: SimDuration,
    ) -> Option<usize> {
        let number = self.tail.as_mut()?.took(promotion, head)?;
        if number as u64 != self.rounds {
            return Some(number);
        }
        self.round.promoted.took(head);
        None
    }

    /// The tail's next request for the last blocks of the round, of which `left` are wanted, if it is time for
    /// one.
    pub fn promote_tail(
        &mut self,
        now: SimTime,
        tasks: &mut Tasks,
        task: TaskId,
        left: u64,
    ) -> Option<Promoted> {
        let round = RoundState {
            number: self.rounds as usize,
            began: self.began(),
            left,
            spent: SimDuration::from_ns(self.round.promoted.head_ns),
        };
        self.tail.as_mut()?.promote(now, tasks, task, &round)
    }

    /// True if foreground requests are made for the rest of the round.
    pub fn is_steady(&self) -> bool {
        self.is_steady
    }

    /// Foreground requests are made for the remaining `left` blocks of the round from now on.
    pub fn steady(&mut self, left: u64, now: SimTime) {
        self.is_steady = true;
        self.estimate.steady(left, now);
    }

    /// All blocks of the round are there.
    pub fn complete(&mut self) {
        self.rounds += 1;
    }

    /// Begins a round of `blocks`, and returns the deliveries of the one before. With `keeps_pace` foreground
    /// requests are made for all of it.
    pub fn begin(&mut self, blocks: u64, keeps_pace: bool, now: SimTime) -> Deliveries {
        if let Some(tail) = &mut self.tail {
            tail.end_round();
        }
        if keeps_pace {
            self.estimate.begin(blocks, now);
        } else {
            self.estimate = Estimate::new(blocks, self.unit, now);
            self.is_steady = false;
        }
        std::mem::take(&mut self.round)
    }
}
