//! Best-first search over the tree of bounds.
//!
//! **Problem.** Which cylinder holds the best, and how few nodes must be looked at to be sure? Nodes wait
//! in a heap by their bounds. The one with the greatest bound is taken, and either its children go to
//! the heap or, if it is a cylinder, its tracks are looked at.
//!
//! ```text
//!                  root 40                     taken    heap then         best
//!           /        |        \                root 40  B 40, A 24, C 9   0
//!        A 24      B 40       C 9              B 40     b2 32, A 24, C 9  0
//!       /   \     /    \                       b2 32    A 24, C 9         28
//!                b1 17  b2 32                  A 24     end               28
//! ```
//!
//! b1 never enters the heap if its bound does not beat the best. Cylinder b2 turns out to be worth 28. The
//! next bound, 24, is the greatest that is left, and bounds are never too low: no node can beat 28.
//! So two inner nodes and one cylinder were looked at, however many cylinders there are.
//!
//! The search can pause before any node and go on later: all that it knows is in [`Search`].

use super::field::Field;
use super::frontier::{Candidate, Frontier, ReachableNode};
use super::index::Node;
use super::known::Known;
use super::reach::Reach;
use super::wanted::Ceiling;

/// Nodes that a cylinder counts for in a step: with hundreds of pieces it takes far longer than an inner
/// node, so a caller with a deadline looks at a clock after each.
const CYLINDER_NODES: u64 = 8;

/// Progress of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchProgress {
    /// Nodes looked at for this decision.
    pub nodes: u64,
    /// Directions, reads and writes, that are not done, the current one included. Each should have an
    /// equal part of the time, or the last one starves.
    pub searches: u64,
}

impl SearchProgress {
    /// A search with no more to look at.
    pub const DONE: Self = Self { nodes: 0, searches: 0 };

    /// True if no direction is left.
    pub fn is_done(&self) -> bool {
        self.searches == 0
    }
}

/// Work of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SearchCost {
    pub nodes: u64,
    /// Pieces on cylinders that were ordered into paths.
    pub pieces: u64,
    /// True if a search ended before its end: there may be something better.
    pub exhausted: bool,
}

/// Pieces that are ordered into paths in the time of a node: on 24 TB a node took 1.2 us, and a piece 18 ns.
const PIECES_OF_A_NODE: u64 = 64;

impl SearchCost {
    /// In nodes.
    fn work(&self) -> u64 {
        self.nodes + self.pieces / PIECES_OF_A_NODE
    }
}

/// Outcome of the visit of a cylinder.
pub(crate) struct Visited {
    /// The best then.
    pub best: Known,
    /// Pieces that were ordered into paths.
    pub pieces: u32,
}

impl From<Known> for Visited {
    /// Without paths.
    fn from(best: Known) -> Self {
        Self { best, pieces: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The root is not in the frontier yet.
    New,
    Open,
    Over,
}

/// A search that can pause, with its memory.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    frontier: Frontier,
    /// Children of a node that is being opened.
    below: Vec<ReachableNode>,
    stage: Stage,
    best: Known,
    /// Most nodes of the decision.
    budget: u64,
    /// The search ends when no bound exceeds the best by more than this part of it, as a power of two.
    slack_log2: Option<u32>,
    /// Work in nodes after which a bound must be twice the best, or the search ends; None for no end before
    /// the best is sure.
    patience: Option<u64>,
    /// Work of the decision when the search was started.
    work_before: u64,
    pub cost: SearchCost,
    /// Cylinders that offered less than their tables say, in vain. Their tables are computed anew after
    /// the decision: for this one that would come too late.
    pub vain: Vec<u32>,
}

/// The fourth power of a part of the patience, in units of 2^-16, rounded down.
#[inline]
fn raise_by(done: u64, patience: u64) -> u64 {
    // Just below 256 times the patience: no bound is that far above the best, and the result still fits.
    let part = ((done << 16) / patience).min((1 << 24) - 1);
    let square = (part * part) >> 16;
    (square * square) >> 16
}

impl Search {
    pub fn new(slack_log2: Option<u32>, patience: Option<u64>) -> Self {
        Self {
            patience,
            work_before: 0,
            frontier: Frontier::default(),
            below: Vec::new(),
            stage: Stage::Over,
            best: Known::NONE,
            budget: 0,
            slack_log2,
            cost: SearchCost::default(),
            vain: Vec::new(),
        }
    }

    /// Starts anew with a best to beat. The nodes of the decision may be `budget` in all.
    pub fn start(&mut self, best: Known, budget: u64) {
        (self.stage, self.best, self.budget) = (Stage::New, best, budget);
        self.work_before = self.cost.work();
    }

    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Gives up an unfinished search: the best so far counts.
    pub fn give_up(&mut self) {
        self.cost.exhausted |= !self.is_over();
        self.stage = Stage::Over;
    }

    /// Value that a node must be able to beat. The work done raises it, by the fourth power of its part of
    /// the patience: a little more is given up before much more is.
    #[inline]
    fn to_beat(&self, best: Known) -> Known {
        let best = best.with_slack(self.slack_log2);
        let done = self.cost.work() - self.work_before;
        self.patience.map_or(best, |patience| best.raised(raise_by(done, patience)))
    }

    /// A node of the frontier, if it may hold something better than `best`.
    #[inline]
    fn candidate(
        &self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        region_weight: u64,
        ceiling: Ceiling,
        reached: ReachableNode,
        best: Known,
    ) -> Option<Candidate> {
        let ReachableNode { node, arc, length } = reached;
        let wanted = u64::from(field.index.bound(node, arc));
        let (best, cylinders) = (self.to_beat(best), field.index.cylinders(node));
        // The cheap bound first: most nodes end here.
        best.may_lose_to(wanted * region_weight, length, cylinders.first).then_some(())?;
        // Both the wanted blocks and the sectors that pass in the time bound the worth.
        let sectors = field.tracks.sectors_max(cylinders);
        let passing = ceiling.of(reach.sectors_in(length, sectors));
        let bound = passing.min(wanted) * region_weight;
        // Where the first found counts, room must not order.
        let room = if best.room < Known::FIRST { length } else { 0 };
        best.may_lose_to(bound, length, cylinders.first)
            .then(|| Candidate::new(bound, room, node, arc))
    }

    /// True if neither this node nor any that follows can be better.
    #[inline]
    fn is_end(&self, candidate: Candidate, best: Known) -> bool {
        // Candidates come in order of bounds and, where room counts, of room among equal ones.
        let floor = self.to_beat(best).floor();
        let is_equal = candidate.bound() == best.worth;
        candidate.bound() <= floor || is_equal && candidate.room_max() < best.room
    }

    /// Looks at nodes until `allowance` is used up, the budget is spent or the search is over. `visit` gets
    /// a cylinder, never that of source or destination, with the best so far.
    /// A bound is worth times `region_weight`, the greatest region weight under a node.
    pub fn run(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        region_weight: impl Fn(Node) -> u64,
        allowance: &mut u64,
        mut visit: impl FnMut(&Field<'_>, u32, Known) -> Visited,
    ) {
        if self.is_over() {
            return;
        }
        let (ceiling, mut best) = (field.ceiling(), self.best);
        if self.stage == Stage::New {
            self.open_root(field, reach, region_weight(field.index.root()), ceiling);
        }
        while let Some(candidate) = self.frontier.pop() {
            let node = candidate.node();
            if self.is_end(candidate, best) {
                break;
            }
            // The node came when the best may have had more extra seek: of equal worth it may be too far.
            if candidate.bound() == best.worth
                && ReachableNode::new(field, reach, node).is_none_or(|it| !it.may_beat(field, best))
            {
                continue;
            }
            if self.cost.nodes >= self.budget {
                self.cost.exhausted = true;
                break;
            }
            if *allowance == 0 {
                // Still the greatest: it is taken again next.
                self.frontier.push(candidate);
                self.best = best;
                return;
            }
            // From here on the node is looked at.
            self.cost.nodes += 1;
            for next in self.frontier.next() {
                field.index.prefetch(field.tracks, field.wanted, next.node(), next.arc());
            }
            if node.level > 0 {
                *allowance -= 1;
                self.open(field, reach, &region_weight, ceiling, candidate, best);
                continue;
            }
            *allowance = allowance.saturating_sub(CYLINDER_NODES);
            // Those of source and destination are looked at before the search.
            if ![reach.gap.from, reach.gap.to].iter().any(|end| end.cylinder == node.number) {
                let visited = visit(field, node.number, best);
                self.note_vain(field, node.number, visited.best == best);
                best = visited.best;
                self.cost.pieces += u64::from(visited.pieces);
            }
        }
        (self.stage, self.best) = (Stage::Over, best);
    }

    /// Puts the root into the frontier, if it may hold something better.
    fn open_root(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        region_weight: u64,
        ceiling: Ceiling,
    ) {
        let root = ReachableNode::new(field, reach, field.index.root());
        let best = self.best;
        let root =
            root.and_then(|root| self.candidate(field, reach, region_weight, ceiling, root, best));
        self.frontier.start(root);
        self.stage = Stage::Open;
    }

    /// Adds the children of a node to the frontier that may hold something better.
    #[inline]
    fn open(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        region_weight: impl Fn(Node) -> u64,
        ceiling: Ceiling,
        parent: Candidate,
        best: Known,
    ) {
        let node = parent.node();
        // The parent's arc holds those of its children: most are left out by it, in one line of memory,
        // before their own are computed. No child has a greater region weight than the parent.
        let known = u32::try_from(best.floor() / region_weight(node)).unwrap_or(u32::MAX);
        let mut below = std::mem::take(&mut self.below);
        ReachableNode::below(field, reach, node, parent.arc(), known, &mut below);
        for child in below.drain(..) {
            let of_child = region_weight(child.node);
            if let Some(candidate) = self.candidate(field, reach, of_child, ceiling, child, best)
                && self.frontier.push(candidate)
            {
                // Mostly the next to be taken.
                field.index.prefetch(field.tracks, field.wanted, child.node, child.arc);
            }
        }
        self.below = below;
    }

    /// Notes a stale cylinder that was looked at in vain. The best cylinder needs no note: its table is
    /// computed anew when its blocks are taken.
    #[inline]
    fn note_vain(&mut self, field: &Field<'_>, cylinder: u32, is_vain: bool) {
        if is_vain && field.index.is_stale(cylinder) {
            self.vain.push(cylinder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::raise_by;

    #[test]
    fn raise_by_is_fourth_power() {
        assert_eq!(
            [raise_by(0, 160), raise_by(80, 160), raise_by(160, 160)],
            [0, 1 << 12, 1 << 16]
        );
        for patience in [1, 160] {
            let far =
                [200, 255, 256, 257, 100_000].map(|times| raise_by(times * patience, patience));
            assert!(far.is_sorted() && far[0] > 1 << 46, "{far:?}");
        }
    }
}
