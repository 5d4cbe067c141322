//! Nodes that wait to be looked at, the greatest bound first.
//!
//! A child often has its parent's bound and is taken next. So the greatest candidate since the last one
//! was taken is kept apart, and most candidates never pass through the heap.

use std::collections::BinaryHeap;

use super::arcs::SlotArc;
use super::field::Field;
use super::index::Node;
use super::known::Known;
use super::reach::Reach;

/// Nodes at the heap's top whose memory is prefetched: to wait for it takes several times as long as to
/// look at a node.
const AHEAD: usize = 3;

/// Levels of the tree, from the cylinders up, that a near cache does not hold on a large drive. With
/// 600,000 cylinders those above have two families together.
pub(crate) const COLD_LEVELS: u32 = 4;

/// Nodes that may hold something better.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frontier {
    /// The greatest candidate since the last one was taken.
    latest: Option<Candidate>,
    heap: BinaryHeap<Candidate>,
}

impl Frontier {
    pub fn start(&mut self, root: Option<Candidate>) {
        self.latest = root;
        self.heap.clear();
    }

    /// Adds a candidate. Returns whether it is the greatest since the last one was taken.
    #[inline]
    pub fn push(&mut self, candidate: Candidate) -> bool {
        // The lesser of both goes to the heap.
        let is_greatest = self.latest.is_none_or(|latest| latest <= candidate);
        let less = if is_greatest { self.latest.replace(candidate) } else { Some(candidate) };
        if let Some(less) = less {
            self.heap.push(less);
        }
        is_greatest
    }

    /// Candidates that are probably next, the greatest among them.
    #[inline]
    pub fn next(&self) -> impl Iterator<Item = &Candidate> {
        let heap = self.heap.as_slice();
        self.latest.iter().chain(&heap[..heap.len().min(AHEAD)])
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Candidate> {
        let Some(latest) = self.latest.take() else { return self.heap.pop() };
        // One sift instead of a push and a pop.
        match self.heap.peek_mut() {
            Some(mut greatest) if *greatest > latest => {
                Some(std::mem::replace(&mut *greatest, latest))
            }
            _ => Some(latest),
        }
    }
}

/// A node with its bound and arc in one number, so that comparing takes one instruction or two.
///
/// The order is by bound, then by room where room counts, then the node nearest to the cylinders: one of
/// equal bounds that is a cylinder may end the search before the others are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate(u128);

impl Candidate {
    /// Bits of a node's number, of its level and of its arc.
    const NUMBER: u32 = 27;
    const LEVEL: u32 = 5;
    const ARC: u32 = 24;
    /// Low bits of the room in ns that are dropped: it only orders.
    const ROOM_COARSE: u32 = 16;

    #[inline]
    pub fn new(bound: u64, room: u64, node: Node, arc: SlotArc) -> Self {
        let room = (room >> Self::ROOM_COARSE).min(u8::MAX.into());
        // Lower levels compare greater.
        let nearness = u64::from(Self::mask(Self::LEVEL) - node.level);
        debug_assert!(node.number <= Self::mask(Self::NUMBER));
        let of = (room << Self::LEVEL | nearness) << Self::NUMBER | u64::from(node.number);
        let of = of << Self::ARC | (arc.first << 8 | arc.slots) as u64;
        Self(u128::from(bound) << 64 | u128::from(of))
    }

    const fn mask(bits: u32) -> u32 {
        (1 << bits) - 1
    }

    #[inline]
    pub fn bound(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Upper bound of the room in ns at the node.
    #[inline]
    pub fn room_max(self) -> u64 {
        // The dropped bits count as set, and the greatest value as any: never too little.
        let coarse = self.0 as u64 >> (Self::LEVEL + Self::NUMBER + Self::ARC);
        if coarse == u64::from(u8::MAX) {
            u64::MAX
        } else {
            ((coarse + 1) << Self::ROOM_COARSE) - 1
        }
    }

    #[inline]
    pub fn node(self) -> Node {
        let of = (self.0 as u64 >> Self::ARC) as u32;
        let level = Self::mask(Self::LEVEL) - (of >> Self::NUMBER);
        Node { level, number: of & Self::mask(Self::NUMBER) }
    }

    #[inline]
    pub fn arc(self) -> SlotArc {
        SlotArc { first: usize::from((self.0 >> 8) as u16), slots: usize::from(self.0 as u8) }
    }
}

/// A node that there is time for, with arc and length in ns of the longest stay there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReachableNode {
    pub node: Node,
    pub arc: SlotArc,
    pub length: u64,
}

impl ReachableNode {
    #[inline]
    pub fn new(field: &Field<'_>, reach: &Reach<'_>, node: Node) -> Option<Self> {
        let (arc, length) = reach.arc(field.index.cylinders(node))?;
        Some(Self { node, arc, length })
    }

    /// True if a track there of the best's worth may be better.
    pub fn may_beat(&self, field: &Field<'_>, best: Known) -> bool {
        best.may_lose_to(best.worth, self.length, field.index.cylinders(self.node).first)
    }

    /// Adds to `below` the children that may offer more than `known` in the node's arc. The bounds of all are
    /// prefetched before any is waited for.
    #[inline]
    pub fn below(
        field: &Field<'_>,
        reach: &Reach<'_>,
        node: Node,
        arc: SlotArc,
        known: u32,
        below: &mut Vec<Self>,
    ) {
        for child in field.index.children(node, arc, known) {
            if let Some(reached) = Self::new(field, reach, child) {
                field.index.prefetch_bound(child, reached.arc);
                below.push(reached);
            }
        }
    }
}
