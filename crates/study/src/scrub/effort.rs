//! Limit of the cost of an estimate, in work that is the same on every machine.
//!
//! With a limit of processor time a result would depend on the machine. So the time that is asked for is
//! a limit of work: gaps, nodes of searches and blocks that leaps take away, each counted with the time
//! that it took on one core of a server of the 2020s. Making the index of the drive is not counted.

use std::ops::RangeInclusive;

use freewheel_freeblock::{Bounds, Options, Patience, Rule};
use freewheel_units::SimDuration;

/// Processor time of an estimate's bursts and leaps, unless said otherwise.
pub const SCRUB_EFFORT: SimDuration = SimDuration::from_ms(5_000);

/// Efforts that may be asked for. Less ends within the first bursts and knows no rate; more than a day is
/// no study any more.
pub const SCRUB_EFFORTS: RangeInclusive<SimDuration> =
    SimDuration::from_ms(1_000)..=SimDuration::from_ms(86_400_000);

/// Most nodes that a decision looks at with [`SCRUB_EFFORT`]. Searches look first at what may offer most:
/// most of the nodes behind these only show that there is no better run.
const NODES_MAX: u64 = 64;

/// Measured with the dev profile on a busy Xeon of 2 cores (0256e7f and since, 24 TB, blocks of 256 KiB,
/// studies of pgbench and of 10,000 requests by Heimdall's MSR): nanoseconds for a gap with what the
/// foreground does around it; for a node with the upkeep of bounds that it causes; and for a block that a
/// leap takes away in a run.
const GAP_NS: u64 = 8_000;
const NODE_NS: u64 = 2_500;
const LEAPT_BLOCK_NS: u64 = 150;

/// Work that has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Work {
    pub gaps: u64,
    /// Nodes of the searches of all decisions.
    pub nodes: u64,
    /// Blocks that leaps took away in runs.
    pub leapt: u64,
}

impl Work {
    /// Processor time on the core that was measured, in nanoseconds.
    pub fn ns(&self) -> u64 {
        let nodes = self.nodes.saturating_mul(NODE_NS);
        nodes.saturating_add(self.gaps * GAP_NS + self.leapt * LEAPT_BLOCK_NS)
    }
}

/// Most nodes that a decision looks at: twice the number with four times the effort, so that half of more
/// effort goes into better decisions and half into more of them.
pub(super) fn nodes_max(effort: SimDuration) -> u64 {
    let times = u128::from(effort.ns()) * u128::from(NODES_MAX * NODES_MAX);
    (times / u128::from(SCRUB_EFFORT.ns())).isqrt().clamp(16, u64::MAX.into()) as u64
}

/// Options of decisions of at most `nodes_max` nodes. With 64 nodes a search ends when no run can be better
/// by a sixteenth; with 256, by a sixty-fourth. Bounds are rough at first, because working out those of 24
/// TB takes as long as the rest of an estimate.
pub(super) fn decisions(rule: Rule, nodes_max: u64) -> Options {
    let slack_log2 = Some(nodes_max.ilog2() - 2);
    let patience = Patience::Endless;
    Options {
        rule,
        budget: nodes_max,
        slack_log2,
        patience,
        bounds: Bounds::RoughAtFirst,
        ..Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_fourfold_doubles_nodes() {
        let of = |ms| nodes_max(SimDuration::from_ms(ms));
        assert_eq!([of(5_000), of(20_000), of(80_000), of(0)], [64, 128, 256, 16]);
        let slack = |nodes| decisions(Rule::Paths, nodes).slack_log2;
        assert_eq!([slack(16), slack(64), slack(256)], [Some(2), Some(4), Some(6)]);
    }

    #[test]
    fn effort_counts_cost_of_each_part() {
        let work = |gaps, nodes, leapt| Work { gaps, nodes, leapt }.ns();
        assert_eq!(
            [work(1, 0, 0), work(0, 1, 0), work(0, 0, 1)],
            [GAP_NS, NODE_NS, LEAPT_BLOCK_NS]
        );
        assert_eq!(work(2, 3, 4), 2 * GAP_NS + 3 * NODE_NS + 4 * LEAPT_BLOCK_NS);
        assert_eq!(work(1, u64::MAX, 1), u64::MAX);
    }
}
