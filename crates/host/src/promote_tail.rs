//! The last blocks of a round as foreground requests, at a stated cost.
//!
//! The last few blocks of a scan take most of its time: gaps seldom reach them (osdi00 section 6.3). A
//! budget of head time grows with the round. As soon as the budget covers all blocks that are missing,
//! the tail *promotes* them: it turns them into a few foreground requests at a time, within the budget.

use freewheel_freeblock::tasks::{Promoted, TaskId, Tasks};
use freewheel_freeblock::{Foreground, PromoteTail, PromotionId};
use freewheel_units::{BLOCK_BYTES, Bytes, Lbn, SimDuration, SimTime};

/// Progress of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundState {
    /// Number of the round, from 0.
    pub number: usize,
    /// Begin of the round.
    pub began: SimTime,
    /// Blocks of the task that the round still wants.
    pub left: u64,
    /// Head time of the requests that the tail has promoted in the round.
    pub spent: SimDuration,
}

/// Decides which blocks of a task to promote, and when.
///
/// The caller tells head times ([`took`](Self::took)) and ends ([`done`](Self::done)) of all foreground
/// requests, and makes the requests that [`promote`](Self::promote) returns.
#[derive(Debug, Clone)]
pub struct TailPromotion {
    config: PromoteTail,
    /// Most blocks of 512 B in a request.
    limit: u32,
    /// Blocks of 512 B in a block of the task.
    size: u32,
    waiting: Vec<PromotedRequest>,
    foreground: Mean,
    promoted: Mean,
    /// True if the tail promotes the blocks of this round.
    has_begun: bool,
    look: RecountAt,
    ahead: PromotionAnchor,
    /// Place near which the next promoted request will be served.
    from: Lbn,
}

/// Request near which a promoted one will be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromotionAnchor {
    /// The one in service: the policy prefers near requests.
    OfArm,
    /// The last to arrive: the policy keeps the order of arrival.
    OfQueue,
}

/// A promoted request that is not done.
#[derive(Debug, Clone)]
struct PromotedRequest {
    id: PromotionId,
    round: usize,
}

/// Time of the next count of missing blocks: a count searches all wanted blocks.
#[derive(Debug, Clone, Copy)]
struct RecountAt {
    /// Recount at this number of blocks, or fewer.
    left: u64,
    /// Recount when the budget covers the blocks of the last count.
    at: SimTime,
}

impl RecountAt {
    const AT_ONCE: Self = Self { left: u64::MAX, at: SimTime::ZERO };
}

/// Share of the missing blocks that must be delivered before a recount: a hundredth. Assumed: a tail
/// may begin that late.
const LOOK_STEP: u64 = 100;

#[derive(Debug, Clone, Default)]
struct Mean {
    sum_ns: u64,
    count: u64,
}

impl Mean {
    fn add(&mut self, time: SimDuration) {
        self.sum_ns += time.ns();
        self.count += 1;
    }

    fn ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

impl TailPromotion {
    /// Tail of a task with blocks of `size` x 512 B.
    pub fn new(config: PromoteTail, size: u32, ahead: PromotionAnchor) -> Self {
        Self {
            config,
            limit: (config.merged_max(Bytes::new(u64::from(size) * BLOCK_BYTES)).get()
                / BLOCK_BYTES) as u32,
            size,
            waiting: Vec::new(),
            foreground: Mean::default(),
            promoted: Mean::default(),
            has_begun: false,
            look: RecountAt::AT_ONCE,
            ahead,
            from: Lbn::ZERO,
        }
    }

    /// Takes the next blocks of `task` out of the gaps, if the tail may promote now.
    pub fn promote(
        &mut self,
        now: SimTime,
        tasks: &mut Tasks,
        task: TaskId,
        round: &RoundState,
    ) -> Option<Promoted> {
        if self.waiting.len() >= self.config.outstanding as usize || round.left == 0 {
            return None;
        }
        let mean_ns = self.promoted.ns().or(self.foreground.ns())?;
        let waiting_ns = mean_ns * self.waiting.len() as f64;
        let elapsed_ns = now.saturating_since(round.began).ns() as f64;
        let budget_ns = self.config.cost * elapsed_ns - round.spent.ns() as f64 - waiting_ns;
        if !self.has_begun && !self.begins(now, tasks, task, round.left, budget_ns / mean_ns) {
            return None;
        }
        self.has_begun = true;
        if budget_ns < mean_ns {
            return None;
        }
        let promoted = tasks.promote_next(task, self.from, self.limit).ok()??;
        self.waiting.push(PromotedRequest { id: promoted.id, round: round.number });
        Some(promoted)
    }

    /// True if the requests within the budget suffice for all missing blocks.
    fn begins(
        &mut self,
        now: SimTime,
        tasks: &Tasks,
        task: TaskId,
        left: u64,
        covered: f64,
    ) -> bool {
        // No request holds more than `limit` blocks, so a search is needless when even the fewest
        // requests exceed the budget.
        let fewest = left / u64::from(self.limit / self.size);
        if fewest as f64 > covered || left > self.look.left && now < self.look.at {
            return false;
        }
        let Ok(requests) = tasks.promotable(task, self.limit) else { return false };
        let missing = requests.min(left) as f64 - covered;
        if missing > 0.0 {
            let mean_ns = self.promoted.ns().or(self.foreground.ns()).unwrap_or(0.0);
            let wait = SimDuration::from_ns((missing * mean_ns / self.config.cost) as u64);
            self.look = RecountAt { left: left - left.div_ceil(LOOK_STEP), at: now + wait };
        }
        missing <= 0.0
    }

    /// A foreground request took this head time; if it was promoted for this tail, the number of
    /// the round for which.
    pub fn took(&mut self, promotion: Option<PromotionId>, head: SimDuration) -> Option<usize> {
        let Some(id) = promotion else {
            self.foreground.add(head);
            return None;
        };
        let round = self.waiting.iter().find(|waiting| waiting.id == id)?.round;
        self.promoted.add(head);
        Some(round)
    }

    /// Forgets a foreground request that is done.
    pub fn done(&mut self, promotion: Option<PromotionId>) {
        self.waiting.retain(|waiting| Some(waiting.id) != promotion);
    }

    /// Remembers where the foreground has left the head.
    pub fn passed(&mut self, start: Lbn, blocks: u32) {
        if self.ahead == PromotionAnchor::OfArm {
            self.from = Lbn::new(start.get() + u64::from(blocks));
        }
    }

    /// Remembers the last arrival, near which a policy in order of arrival will serve.
    pub fn arrived(&mut self, request: &Foreground) {
        if self.ahead == PromotionAnchor::OfQueue {
            self.from = Lbn::new(request.start.get() + u64::from(request.blocks));
        }
    }

    /// Starts the next round.
    pub fn end_round(&mut self) {
        self.has_begun = false;
        self.look = RecountAt::AT_ONCE;
    }
}
