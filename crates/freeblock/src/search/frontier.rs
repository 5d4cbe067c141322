//! Nodes that are still to be looked at, best first.

use std::collections::BinaryHeap;

use super::arcs::SlotArc;
use super::field::Field;
use super::index::Node;
use super::known::Known;
use super::reach::Reach;

/// Nodes of the heap's top for which memory is asked before they are looked at: to wait for it takes
/// several times as long as to look.
const AHEAD: usize = 3;

/// Levels of the tree, from the cylinders up, that are larger than to stay in a near cache on a large
/// drive: those above have two families together on one of 600,000 cylinders.
pub(crate) const COLD_LEVELS: u32 = 4;

/// Nodes that still might hold something better, with their bounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frontier {
    /// The greatest that came since one was last taken: mostly the next one too.
    latest: Option<Candidate>,
    heap: BinaryHeap<Candidate>,
    /// Memory for the children of a node.
    pub below: Vec<ReachableNode>,
}

impl Frontier {
    pub fn start(&mut self, root: Option<Candidate>) {
        self.latest = root;
        self.heap.clear();
    }

    /// Whether it is the greatest that came since one was last taken.
    #[inline]
    pub fn push(&mut self, candidate: Candidate) -> bool {
        let is_greatest = self.latest.is_none_or(|latest| latest <= candidate);
        let less = if is_greatest { self.latest.replace(candidate) } else { Some(candidate) };
        if let Some(less) = less {
            self.heap.push(less);
        }
        is_greatest
    }

    /// The greatest, and some that are among the next.
    #[inline]
    pub fn next(&self) -> impl Iterator<Item = &Candidate> {
        let heap = self.heap.as_slice();
        self.latest.iter().chain(&heap[..heap.len().min(AHEAD)])
    }

    /// Takes the greatest.
    #[inline]
    pub fn pop(&mut self) -> Option<Candidate> {
        let Some(latest) = self.latest.take() else { return self.heap.pop() };
        match self.heap.peek_mut() {
            Some(mut greatest) if *greatest > latest => {
                Some(std::mem::replace(&mut *greatest, latest))
            }
            _ => Some(latest),
        }
    }
}

/// A bound, the node it is of and the window in which it holds, in one number that orders them: by the
/// bound, among equals by the room that is left there if that matters, and then the node nearest to the
/// leaves, since the first one of these ends the search of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate(u128);

impl Candidate {
    /// Bits of a node's number, of its height above the cylinders and of its window.
    const NUMBER: u32 = 27;
    const LEVEL: u32 = 5;
    const ARC: u32 = 24;
    /// Of the room, in nanoseconds, so many bits are left away: it orders and need not be exact.
    const ROOM_COARSE: u32 = 16;

    #[inline]
    pub fn new(bound: u64, room: u64, node: Node, arc: SlotArc) -> Self {
        let room = (room >> Self::ROOM_COARSE).min(u8::MAX.into());
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

    /// No more room is left at the node.
    #[inline]
    pub fn room_max(self) -> u64 {
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

/// A node that there is time for: the slots of the longest stay there, and its length in nanoseconds.
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

    /// Whether tracks there that offer as much as the best may be better than it.
    pub fn may_beat(&self, field: &Field<'_>, best: Known) -> bool {
        best.may_lose_to(best.worth, self.length, field.index.cylinders(self.node).first)
    }

    /// Adds to `below` the children of a node that may offer more than `known` in its slots. Memory of the
    /// bounds of all of them is asked for before any is waited for.
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
