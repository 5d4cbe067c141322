//! Best first.

use super::field::Field;
use super::frontier::{Candidate, Frontier, ReachableNode};
use super::index::Node;
use super::known::Known;
use super::reach::Reach;

/// How often a search asks whether it may go on, in nodes. Who is asked looks at a clock, which takes a
/// part of what a node does. A cylinder with hundreds of pieces takes as long as hundreds of other
/// nodes, so before each it is asked as well.
const ASK_EVERY: u64 = 8;

/// What a search says of itself when it asks whether it may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchProgress {
    /// Nodes looked at for this decision.
    pub nodes: u64,
    /// Searches of this decision that are not done, this one included: one a direction. Whoever comes
    /// last must not starve.
    pub searches: u64,
}

/// Whether a search may go on. What is best so far is taken when it may not.
pub type GoOn<'a> = &'a mut dyn FnMut(SearchProgress) -> bool;

/// A search with what it may look at and has looked at.
pub(crate) struct Search<'a> {
    pub frontier: &'a mut Frontier,
    /// Cylinders that were looked at in vain and offer less than their tables say: to be worked out
    /// anew when the decision is made, as it changes nothing for this search.
    pub vain: &'a mut Vec<u32>,
    /// Most nodes to look at.
    pub budget: u64,
    /// What is best so far is enough if nothing is better by more than this part of it, as a power of two.
    pub slack_log2: Option<u32>,
    pub go_on: GoOn<'a>,
    /// This one and those of the same decision behind it.
    pub searches: u64,
    pub looked: SearchCost,
}

impl Search<'_> {
    #[inline]
    fn may_look_at(&mut self, node: Node) -> bool {
        let Self { looked: SearchCost { nodes, .. }, budget, searches, .. } = *self;
        let is_between = node.level > 0 && !nodes.is_multiple_of(ASK_EVERY);
        nodes < budget && (is_between || (self.go_on)(SearchProgress { nodes, searches }))
    }
}

/// How much a search has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SearchCost {
    pub nodes: u64,
    /// Whether it stopped for its budget: there may be something better.
    pub exhausted: bool,
}

impl Search<'_> {
    /// Shows the cylinders, but for those of source and destination, that might offer more than
    /// `best`, best bound first, until none is left, the budget of nodes is spent or it may not go on.
    /// `visit` gets a cylinder and the best known, and returns the best known then; a bound is its worth
    /// times the price of the node. With a slack the first found counts of what is worth as much.
    pub fn run(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        price: impl Fn(Node) -> u64,
        mut best: Known,
        mut visit: impl FnMut(&Field<'_>, u32, Known) -> Known,
    ) {
        let ceiling = field.ceiling();
        let slack_log2 = self.slack_log2;
        let enough = |best: Known| best.with_slack(slack_log2);
        let bound =
            |Field { tracks, index, .. }: &Field<'_>, reached: ReachableNode, best: Known| {
                let ReachableNode { node, arc, length } = reached;
                let (price, wanted) = (price(node), index.bound(node, arc).into());
                let (best, cylinders) = (enough(best), index.cylinders(node));
                best.may_lose_to(wanted * price, length, cylinders.first).then_some(())?;
                // Of what is wanted, and of what can pass in the time, the lesser.
                let sectors = tracks.sectors_max(cylinders);
                let passing = ceiling.of(reach.sectors_in(length, sectors));
                let bound = passing.min(wanted) * price;
                let room = if best.room < Known::FIRST { length } else { 0 };
                best.may_lose_to(bound, length, cylinders.first)
                    .then(|| Candidate::new(bound, room, node, arc))
            };
        let root = ReachableNode::new(field, reach, field.index.root());
        self.frontier.start(root.and_then(|root| bound(field, root, best)));
        while let Some(candidate) = self.frontier.pop() {
            let node = candidate.node();
            let is_equal = candidate.bound() == best.worth;
            // What follows offers no more and, of what is equal, leaves no more room.
            let floor = enough(best).floor();
            if candidate.bound() <= floor || is_equal && candidate.room_max() < best.room {
                break;
            }
            // The node may come from before the best took so little extra seek.
            let reached = || ReachableNode::new(field, reach, node);
            if is_equal && reached().is_none_or(|it| !it.may_beat(field, best)) {
                continue;
            }
            if !self.may_look_at(node) {
                self.looked.exhausted = true;
                break;
            }
            self.looked.nodes += 1;
            for next in self.frontier.next() {
                field.index.prefetch(field.tracks, field.wanted, next.node(), next.arc());
            }
            if node.level == 0 {
                if ![reach.gap.from, reach.gap.to].iter().any(|end| end.cylinder == node.number) {
                    let better = visit(field, node.number, best);
                    self.note_vain(field, node.number, better == best);
                    best = better;
                }
                continue;
            }
            // The slots of the whole node leave most children out before their own are worked out.
            let known = u32::try_from(best.floor() / price(node)).unwrap_or(u32::MAX);
            let mut below = std::mem::take(&mut self.frontier.below);
            ReachableNode::below(field, reach, node, candidate.arc(), known, &mut below);
            for child in below.drain(..) {
                if let Some(candidate) = bound(field, child, best)
                    && self.frontier.push(candidate)
                {
                    // Mostly the next one.
                    field.index.prefetch(field.tracks, field.wanted, child.node, child.arc);
                }
            }
            self.frontier.below = below;
        }
    }

    /// Keeps a cylinder in mind that offered nothing better although its table promised it. The table of
    /// the best cylinder is renewed anyway, as its blocks are taken.
    #[inline]
    fn note_vain(&mut self, field: &Field<'_>, cylinder: u32, is_vain: bool) {
        if is_vain && field.index.is_stale(cylinder) {
            self.vain.push(cylinder);
        }
    }
}
