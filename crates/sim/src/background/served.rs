//! Tasks of a server's scheduler during a run.
//!
//! ```text
//!   [[freeblock.tasks]] --> ServedTasks of HostScheduler --> rounds, blocks by path --> BackgroundResult
//! ```
//! Goals: results as of tasks inside a drive. Non-goals: the use of gaps and the progress within a round, which
//! a server does not count. Head time of a promoted request that ends after its round is in none.

use std::mem;

use freewheel_freeblock::{Options, TaskOrder};
use freewheel_host::tasks::{ServedTaskError, ServedTaskOutput, ServedTasks, TaskState};
use freewheel_host::{Deliveries, PromotedWork};
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, SimTime};

use super::names::names;
use super::{BackgroundResult, FreeblockConfig, Gaps, Round, TaskResult, Unfinished};
use crate::digest::mix;

/// Tasks of one arm.
pub(crate) struct ServedBackground {
    runs: Vec<ServedRun>,
    unfinished: Option<Unfinished>,
    patience_nodes: Option<u64>,
    delivered_hash: u64,
}

/// One task of a server, and the rounds that have ended.
struct ServedRun {
    /// Number of the task at the server.
    id: u64,
    name: String,
    order: TaskOrder,
    rounds: Vec<Round>,
    /// Begin of the round under way.
    began: SimTime,
    /// Blocks of 512 B that came so far, in all rounds.
    delivered: u64,
    /// Blocks of 512 B of its rounds that the run still waits for.
    awaited: u64,
}

impl ServedBackground {
    /// Begins the tasks of an experiment at a server that has none, in front of `drive`.
    pub fn begin(
        tasks: &mut ServedTasks,
        config: &FreeblockConfig,
        drive: &Drive,
        options: Options,
        unfinished: Option<Unfinished>,
    ) -> Result<Self, ServedTaskError> {
        let mut runs = Vec::with_capacity(config.tasks.len());
        for (name, order) in names(&config.tasks).into_iter().zip(&config.tasks) {
            // Whole blocks alone, as inside a drive: a server would read a part at the end as well.
            let blocks = order.blocks_of_a_round(drive.blocks()) * u64::from(order.size());
            let served = TaskOrder {
                length: Some(Blocks::new(blocks).bytes()),
                block_size: Some(order.block()),
                repeat: !order.result_kind().is_once(),
                ..order.clone()
            };
            runs.push(ServedRun {
                id: tasks.create(SimTime::ZERO, served.into())?,
                name,
                order: order.clone(),
                rounds: Vec::new(),
                began: SimTime::ZERO,
                delivered: 0,
                awaited: order.rounds.unwrap_or(0) * blocks,
            });
        }
        let patience_nodes = options.patience_nodes(drive);
        Ok(Self { runs, unfinished, patience_nodes, delivered_hash: 0 })
    }

    /// Counts the rounds and the blocks that have ended until `now`.
    pub fn observe(&mut self, tasks: &mut ServedTasks, now: SimTime) {
        for output in tasks.outputs() {
            if let ServedTaskOutput::Round { task, at, deliveries } = output
                && let Some(run) = self.runs.iter_mut().find(|run| run.id == task)
            {
                run.end_round(deliveries, at);
            }
        }
        for run in &mut self.runs {
            let delivered = tasks.delivered(run.id);
            let came = delivered - mem::replace(&mut run.delivered, delivered);
            if came == 0 {
                continue;
            }
            self.delivered_hash =
                [now.ns(), run.id, came].into_iter().fold(self.delivered_hash, mix);
            let size = u64::from(run.order.size());
            let (before, awaited) = (run.awaited, run.awaited.saturating_sub(came));
            run.awaited = awaited;
            if let Some(unfinished) = &self.unfinished {
                // Whole blocks of the task count, also where parts of one come apart.
                unfinished.done(before.div_ceil(size) - awaited.div_ceil(size));
            }
        }
    }

    /// Results at the end of the run.
    pub fn result(self, tasks: &ServedTasks, end: SimTime) -> BackgroundResult {
        let effort = tasks.effort();
        BackgroundResult {
            tasks: self.runs.into_iter().map(|run| run.result(tasks, end)).collect(),
            decisions: effort.decisions,
            nodes: effort.nodes,
            patience_nodes: self.patience_nodes,
            by_nodes: effort.by_nodes,
            exhausted: effort.exhausted,
            memory_bytes: tasks.memory().get(),
            delivered_hash: self.delivered_hash,
            idle_starts: None,
        }
    }
}

impl ServedRun {
    fn end_round(&mut self, deliveries: Deliveries, at: SimTime) {
        let round = self.round(deliveries, at);
        self.rounds.push(round);
        self.began = at;
    }

    /// A round that began with this one and ends `at`.
    fn round(&self, deliveries: Deliveries, at: SimTime) -> Round {
        Round {
            elapsed_ns: at.saturating_since(self.began).ns(),
            deliveries: in_blocks_of(deliveries, u64::from(self.order.size())),
            gaps: Gaps::default(),
            progress: Vec::new(),
        }
    }

    fn result(mut self, tasks: &ServedTasks, end: SimTime) -> TaskResult {
        let report = tasks.report(self.id, end).expect("it was created");
        let mut deliveries = report.deliveries;
        if report.state == TaskState::Done {
            let ended = report.ended.unwrap_or(end);
            self.end_round(mem::take(&mut deliveries), ended);
        }
        let is_done = report.state.is_over();
        let unfinished = self.round(deliveries, if is_done { self.began } else { end });
        TaskResult {
            kind: self.order.result_kind(),
            blocks: report.blocks.get() / u64::from(self.order.size()),
            block_bytes: self.order.block().get(),
            deadline_ns: self.order.deadline.map(|deadline| deadline.ns()),
            rounds: self.rounds,
            unfinished,
            expected_end_ns: report.end.map(SimTime::ns),
            used: None,
            name: self.name,
        }
    }
}

/// Deliveries in blocks of 512 B, in blocks of `size` of them.
fn in_blocks_of(deliveries: Deliveries, size: u64) -> Deliveries {
    let Deliveries { in_gaps, in_passing, in_idle, promoted, copied, superseded } = deliveries;
    let all = in_gaps + in_passing + in_idle + promoted.blocks + copied.blocks + superseded;
    let promoted = PromotedWork { blocks: promoted.blocks / size, ..promoted };
    let copied = PromotedWork { blocks: copied.blocks / size, ..copied };
    let [in_passing, in_idle, superseded] =
        [in_passing, in_idle, superseded].map(|part| part / size);
    // A block that came in parts by several paths counts as of gaps, so that whole rounds have all their blocks.
    let others = in_passing + in_idle + promoted.blocks + copied.blocks + superseded;
    let in_gaps = all / size - others;
    Deliveries { in_gaps, in_passing, in_idle, promoted, copied, superseded }
}
