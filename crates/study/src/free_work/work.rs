//! The free work of a run, summed over its tasks and arms.

use freewheel_freeblock::ByNodes;
use freewheel_sim::background::IdleStarts;
use freewheel_sim::{IdleTime, RunResult};
use serde::Serialize;

use super::delivered::Delivered;
use super::task::TaskWork;
use crate::head_use::HeadUse;
use crate::ratio::{mean, ratio};

/// The free work of a run in numbers, over all arms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FreeWork {
    /// Arms, each with its own rounds of every task.
    pub arms: u64,
    /// Every task, in the experiment's order.
    pub tasks: Vec<TaskWork>,
    /// Bytes a second that were delivered to all tasks, wherever they came from. What one read
    /// brings to several counts for each.
    pub delivered_bytes_per_second: f64,
    /// Blocks that came to all tasks in gaps and in passing over the potential free bandwidth (osdi00
    /// section 6.3); more than 1 where much passes anyway or is wanted by several.
    pub efficiency: f64,
    /// Part of the arms' time that promoted requests took of the heads.
    pub promoted_share: f64,
    /// Part of it that reads before foreground writes took, for backups.
    pub copied_share: f64,
    /// Gaps that were decided on.
    pub decisions: u64,
    /// Nodes of the search that a decision looked at, on average.
    pub nodes_mean: f64,
    /// Nodes after which a search for paths ends unless far more may be had, the most of all arms; None
    /// where each ends when the best is sure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_nodes: Option<u64>,
    /// Decisions by the most nodes that they looked at, cumulated over powers of two.
    pub by_nodes: ByNodes,
    /// Decisions that stopped for their budget: something better may have been missed.
    pub exhausted: u64,
    /// Memory for what is wanted and for finding it.
    pub memory_bytes: u64,
    /// Use of the heads' time.
    pub head_use: HeadUse,
    /// Cost of idle time to the foreground, where it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_cost: Option<IdleCost>,
}

/// Cost of work in idle time to the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IdleCost {
    /// Part of the foreground's requests that were the first behind such work.
    pub behind: f64,
    /// Mean delay of those that were delayed.
    pub delay_ns_mean: f64,
    /// Growth of the mean response of all requests, directly: waits behind a request that is late are not
    /// counted.
    pub response_ns_added: f64,
    /// Bytes moved a second of the run.
    pub bytes_per_second: f64,
    /// Number of times that such work began and a request ended it.
    pub starts: u64,
    /// Starts that cost the request more than an adaptive timeout accepts; None where it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_starts: Option<u64>,
    /// The timeout at the end, on average over the arms.
    pub timeout_ns_mean: f64,
}

impl FreeWork {
    /// None when the run had no background work.
    pub fn new(result: &RunResult) -> Option<Self> {
        let free = result.free.as_ref()?;
        let arms = result.background.as_slice();
        let tasks: Vec<TaskWork> =
            (0..arms.first()?.tasks.len()).map(|task| TaskWork::new(result, free, task)).collect();
        let decisions = arms.iter().map(|arm| arm.decisions).sum();
        let nodes = arms.iter().map(|arm| arm.nodes).sum::<u64>();
        let mut by_nodes = ByNodes::default();
        arms.iter().for_each(|arm| by_nodes.merge(&arm.by_nodes));
        let (promoted_ns, copied_ns) =
            (sum(|d| d.promoted_head_ns, &tasks), sum(|d| d.copied_head_ns, &tasks));
        Some(Self {
            arms: arms.len() as u64,
            delivered_bytes_per_second: tasks.iter().map(|t| t.delivered_bytes_per_second).sum(),
            efficiency: tasks.iter().map(|task| task.efficiency).sum(),
            promoted_share: ratio(promoted_ns as f64, result.arms_ns as f64),
            copied_share: ratio(copied_ns as f64, result.arms_ns as f64),
            decisions,
            nodes_mean: ratio(nodes as f64, decisions as f64),
            patience_nodes: arms.iter().filter_map(|arm| arm.patience_nodes).max(),
            by_nodes,
            exhausted: arms.iter().map(|arm| arm.exhausted).sum(),
            memory_bytes: arms.iter().map(|arm| arm.memory_bytes).sum(),
            head_use: HeadUse::new(result, &free.time),
            idle_cost: result.idle.as_ref().map(|idle| IdleCost::new(result, idle)),
            tasks,
        })
    }

    /// Bytes that came to all tasks by one of the ways.
    pub fn bytes(&self, way: impl Fn(&Delivered) -> u64) -> u64 {
        self.tasks.iter().map(|task| way(&task.delivered) * task.block_bytes).sum()
    }
}

fn sum(of: fn(&Delivered) -> u64, tasks: &[TaskWork]) -> u64 {
    tasks.iter().map(|t| of(&t.delivered)).sum::<u64>()
}

impl IdleCost {
    fn new(result: &RunResult, idle: &IdleTime) -> Self {
        let requests = result.response.count as f64;
        let seconds = result.elapsed_ns as f64 / 1e9;
        let starts: Vec<IdleStarts> =
            result.background.iter().filter_map(|arm| arm.idle_starts).collect();
        Self {
            behind: ratio(idle.requests_behind as f64, requests),
            delay_ns_mean: ratio(idle.delay_ns as f64, idle.requests_delayed as f64),
            response_ns_added: ratio(idle.delay_ns as f64 - idle.gain_ns as f64, requests),
            bytes_per_second: ratio((idle.read_bytes + idle.write_bytes) as f64, seconds),
            starts: starts.iter().map(|arm| arm.starts).sum(),
            wrong_starts: starts.iter().map(|arm| arm.wrong).sum(),
            timeout_ns_mean: mean(&starts, |arm| arm.timeout_ns as f64),
        }
    }
}
