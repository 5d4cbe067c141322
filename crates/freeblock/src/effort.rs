//! Cost of decisions, in nodes of the search: the same on every machine.

use serde::{Serialize, Serializer};

/// Classes of decisions, by powers of two of their nodes.
const CLASSES: usize = 64;

/// Cost of decisions so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Gaps that were decided on.
    pub decisions: u64,
    /// Nodes looked at.
    pub nodes: u64,
    /// Pieces that were ordered into paths on cylinders that the search looked at.
    pub pieces: u64,
    /// Decisions that stopped for their budget, or when they might not go on, so that something better
    /// may have been missed.
    pub exhausted: u64,
    /// The decisions by the nodes that each looked at.
    pub by_nodes: ByNodes,
}

impl Effort {
    pub(super) fn add(&mut self, nodes: u64, pieces: u64, is_exhausted: bool) {
        self.decisions += 1;
        self.nodes += nodes;
        self.pieces += pieces;
        self.exhausted += u64::from(is_exhausted);
        self.by_nodes.add(nodes);
    }
}

/// Decisions by how many nodes each looked at, in powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByNodes([u64; CLASSES]);

impl Default for ByNodes {
    fn default() -> Self {
        Self([0; CLASSES])
    }
}

impl ByNodes {
    fn add(&mut self, nodes: u64) {
        // Up to 1, 2, 4, and so on: the least power of two that is no less.
        let class = nodes.max(1).next_power_of_two().trailing_zeros() as usize;
        self.0[class] += 1;
    }

    /// Adds the decisions of another planner.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(all, more)| *all += more);
    }

    /// For each power of two: that number of nodes, and the decisions that looked at this number at
    /// most. Ends with the power that all decisions reach; empty without decisions.
    pub fn up_to(&self) -> impl Iterator<Item = (u64, u64)> {
        let last = self.0.iter().rposition(|&decisions| decisions > 0);
        let classes = &self.0[..last.map_or(0, |last| last + 1)];
        classes.iter().enumerate().scan(0, |sum, (class, decisions)| {
            *sum += decisions;
            Some((1 << class, *sum))
        })
    }

    /// The least power of two that is no less than the nodes of this part of all decisions; one without
    /// decisions.
    pub fn no_more_than(&self, part: f64) -> u64 {
        let least = (self.0.iter().sum::<u64>() as f64 * part).ceil() as u64;
        self.up_to().find(|&(_, decisions)| decisions >= least).map_or(1, |(nodes, _)| nodes)
    }
}

/// One of [`ByNodes::up_to`].
#[derive(Serialize)]
struct NodeCount {
    nodes_max: u64,
    decisions: u64,
}

impl Serialize for ByNodes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.up_to().map(|(nodes_max, decisions)| NodeCount { nodes_max, decisions }),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn effort_counts_decisions_up_to_nodes(
            nodes in prop::collection::vec(0u64..5000, 1..200), part in 0.01f64..=1.0,
        ) {
            let mut effort = Effort::default();
            nodes.iter().for_each(|&nodes| effort.add(nodes, 0, false));
            for (most, decisions) in effort.by_nodes.up_to() {
                let counted = nodes.iter().filter(|&&nodes| nodes <= most).count() as u64;
                prop_assert_eq!(decisions, counted, "up to {}", most);
            }
            prop_assert_eq!(effort.by_nodes.up_to().last().unwrap().1, effort.decisions);
            let mut sorted = nodes.clone();
            sorted.sort_unstable();
            let of_part = sorted[(nodes.len() as f64 * part).ceil() as usize - 1];
            let most = effort.by_nodes.no_more_than(part);
            prop_assert_eq!(most, of_part.max(1).next_power_of_two());
        }
    }

    #[test]
    fn effort_classes_cover_any_node_count() {
        for nodes in [(1 << 23) + 1, 1 << 40, (1 << 40) + 1, 1 << 63] {
            let mut effort = Effort::default();
            effort.add(nodes, 0, false);
            assert_eq!(effort.by_nodes.no_more_than(1.0), nodes.next_power_of_two());
        }
    }

    #[test]
    fn effort_of_several_planners_adds_up() {
        let (mut one, mut other) = (Effort::default(), Effort::default());
        one.add(3, 0, false);
        other.add(4, 0, false);
        other.add(100, 0, true);
        one.by_nodes.merge(&other.by_nodes);
        let counts: Vec<_> = one.by_nodes.up_to().collect();
        assert_eq!(counts[..4], [(1, 0), (2, 0), (4, 2), (8, 2)]);
        assert_eq!(counts.last(), Some(&(128, 3)));
    }
}
