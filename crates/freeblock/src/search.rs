//! The track that offers most in a gap, exactly.
//!
//! The paper's rule (osdi00 section 4): over all tracks, how many wanted blocks could be accessed in
//! this gap? Its search looks at tracks in ascending order of extra seek and leaves out those that
//! cannot beat the best: of tracks with as many blocks it takes the one with the least extra seek. Where
//! that too is equal, ours takes the lower cylinder, so that no order of looking changes what is found.
//! Ours descends a tree of bounds ([`Index`]) best first, so that it looks at few tracks however
//! fragmented the wanted blocks are, and takes the same track.

use std::collections::BinaryHeap;

use freewheel_units::Op;

use super::arcs::SlotArc;
use super::index::{Index, Node, SurfaceBounds};
use super::reach::Reach;
use super::tracks::{Tracks, Window};
use super::wanted::{Ceiling, Wanted};
use freewheel_model::drive::Position;

/// The best track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Best {
    pub at: Position,
    /// What is done there.
    pub op: Op,
    /// Worth of what can be had.
    pub value: u32,
}

/// The best so far, which another has to beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub worth: u64,
    /// Of what is worth as much, only what leaves more time on its track is better: what takes less
    /// extra seek. [`Known::FIRST`] where the first found counts.
    pub room: u64,
    /// Of what leaves as much time too, only what lies on a lower cylinder is better.
    pub cylinder: u32,
}

impl Known {
    /// Room that nothing exceeds.
    pub const FIRST: u64 = u64::MAX;

    /// What is worth no more than this is not better.
    fn floor(self) -> u64 {
        self.worth.saturating_sub(u64::from(self.room < Self::FIRST))
    }

    /// What is to be beaten where the best is enough if nothing is better by more than this part of it, as
    /// a power of two.
    fn with_slack(self, slack_log2: Option<u32>) -> Self {
        slack_log2.map_or(self, |log2| {
            let worth = self.worth.saturating_add(self.worth >> log2);
            Self { worth, room: Self::FIRST, ..self }
        })
    }

    /// Whether something worth at most `worth` on tracks with at most this room, on this cylinder or
    /// above, may be better.
    #[inline]
    fn may_lose_to(self, worth: u64, room: u64, cylinder: u32) -> bool {
        let equal = worth == self.worth && worth > 0;
        let as_near = room == self.room && cylinder < self.cylinder;
        worth > self.worth || equal && (room > self.room || as_near)
    }
}

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

/// What a search has to look at.
pub(super) struct Field<'a> {
    pub tracks: &'a Tracks,
    pub wanted: &'a Wanted,
    pub index: &'a mut Index,
}

impl Field<'_> {
    /// What sectors that pass can be worth at most.
    fn ceiling(&self) -> Ceiling {
        self.wanted.ceiling(self.tracks.sectors_max((0, self.tracks.cylinders() - 1)))
    }
}

/// Nodes of the heap's top for which memory is asked before they are looked at: to wait for it takes
/// several times as long as to look.
const AHEAD: usize = 3;

/// Levels of the tree, from the cylinders up, that are larger than to stay in a near cache on a large
/// drive: those above have two families together on one of 600,000 cylinders.
const COLD_LEVELS: u32 = 4;

/// Nodes that still might hold something better, with their bounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Frontier {
    /// The greatest that came since one was last taken: mostly the next one too.
    latest: Option<Candidate>,
    heap: BinaryHeap<Candidate>,
    /// Memory for the children of a node.
    below: Vec<ReachableNode>,
}

impl Frontier {
    fn start(&mut self, root: Option<Candidate>) {
        self.latest = root;
        self.heap.clear();
    }

    /// Whether it is the greatest that came since one was last taken.
    #[inline]
    fn push(&mut self, candidate: Candidate) -> bool {
        let is_greatest = self.latest.is_none_or(|latest| latest <= candidate);
        let less = if is_greatest { self.latest.replace(candidate) } else { Some(candidate) };
        if let Some(less) = less {
            self.heap.push(less);
        }
        is_greatest
    }

    /// The greatest, and some that are among the next.
    #[inline]
    fn next(&self) -> impl Iterator<Item = &Candidate> {
        let heap = self.heap.as_slice();
        self.latest.iter().chain(&heap[..heap.len().min(AHEAD)])
    }

    /// Takes the greatest.
    #[inline]
    fn pop(&mut self) -> Option<Candidate> {
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
struct Candidate(u128);

impl Candidate {
    /// Bits of a node's number, of its height above the cylinders and of its window.
    const NUMBER: u32 = 27;
    const LEVEL: u32 = 5;
    const ARC: u32 = 24;
    /// Of the room, in nanoseconds, so many bits are left away: it orders and need not be exact.
    const ROOM_COARSE: u32 = 16;

    #[inline]
    fn new(bound: u64, room: u64, node: Node, arc: SlotArc) -> Self {
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
    fn bound(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// No more room is left at the node.
    #[inline]
    fn room_max(self) -> u64 {
        let coarse = self.0 as u64 >> (Self::LEVEL + Self::NUMBER + Self::ARC);
        if coarse == u64::from(u8::MAX) {
            u64::MAX
        } else {
            ((coarse + 1) << Self::ROOM_COARSE) - 1
        }
    }

    #[inline]
    fn node(self) -> Node {
        let of = (self.0 as u64 >> Self::ARC) as u32;
        let level = Self::mask(Self::LEVEL) - (of >> Self::NUMBER);
        Node { level, number: of & Self::mask(Self::NUMBER) }
    }

    #[inline]
    fn arc(self) -> SlotArc {
        SlotArc { first: usize::from((self.0 >> 8) as u16), slots: usize::from(self.0 as u8) }
    }
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
                best.may_lose_to(wanted * price, length, cylinders.0).then_some(())?;
                // Of what is wanted, and of what can pass in the time, the lesser.
                let sectors = tracks.sectors_max(cylinders);
                let passing = ceiling.of(reach.sectors_in(length, sectors));
                let bound = passing.min(wanted) * price;
                let room = if best.room < Known::FIRST { length } else { 0 };
                best.may_lose_to(bound, length, cylinders.0)
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
            ReachableNode::below(field, reach, (node, candidate.arc()), known, &mut below);
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

/// A node that there is time for: the slots of the longest stay there, and its length in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct ReachableNode {
    node: Node,
    arc: SlotArc,
    length: u64,
}

impl ReachableNode {
    #[inline]
    fn new(field: &Field<'_>, reach: &Reach<'_>, node: Node) -> Option<Self> {
        let (arc, length) = reach.arc(field.index.cylinders(node))?;
        Some(Self { node, arc, length })
    }

    /// Whether tracks there that offer as much as the best may be better than it.
    fn may_beat(&self, field: &Field<'_>, best: Known) -> bool {
        best.may_lose_to(best.worth, self.length, field.index.cylinders(self.node).0)
    }

    /// Adds to `below` the children of a node that may offer more than `known` in its slots. Memory of the
    /// bounds of all of them is asked for before any is waited for.
    #[inline]
    fn below(
        field: &Field<'_>,
        reach: &Reach<'_>,
        (node, arc): (Node, SlotArc),
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

/// A search with what it may look at and has looked at.
pub(super) struct Search<'a> {
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
pub(super) struct SearchCost {
    pub nodes: u64,
    /// Whether it stopped for its budget: there may be something better.
    pub exhausted: bool,
}

/// What holds for all of a search.
struct Limits {
    /// Directions in which anything is wanted.
    ops: &'static [Op],
    ceiling: Ceiling,
    /// No block takes less.
    block_ns: u64,
}

impl Limits {
    fn of(field: &Field<'_>, reach: &Reach<'_>) -> Self {
        let Field { tracks, wanted, index } = field;
        let sectors = tracks.sectors_max((0, tracks.cylinders() - 1));
        let block_ns = reach.passing_ns(index.least_sectors(), sectors);
        Self { ops: wanted.ops(), ceiling: field.ceiling(), block_ns }
    }
}

/// When the head can be on a surface of a cylinder, and what passes then at most.
#[derive(Clone, Copy)]
struct Visit {
    window: Window,
    /// Worth of the sectors that pass; none if there is no time.
    most: u64,
}

/// The visits to surfaces of one cylinder: they differ by direction and whether heads are switched
/// on the way there and on the way back.
#[derive(Default)]
struct Visits([[Option<Visit>; 4]; 2]);

impl Visits {
    #[inline]
    fn get(
        &mut self,
        tracks: &Tracks,
        reach: &Reach<'_>,
        limits: &Limits,
        (at, op): (Position, Op),
        sectors: u32,
    ) -> Visit {
        let [from, to] = [reach.gap.from, reach.gap.to].map(|there| there.surface == at.surface);
        let known =
            &mut self.0[usize::from(op == Op::Write)][usize::from(from) * 2 + usize::from(to)];
        *known.get_or_insert_with(|| {
            let stay = reach.stay(at, op);
            let length = stay.length();
            let most = limits.ceiling.of(reach.sectors_in(length, sectors));
            let window = tracks.window(reach.time(stay.from), length);
            Visit { window, most: if length > 0 { most } else { 0 } }
        })
    }
}

/// The surfaces of a cylinder on which more than `known` may be had.
#[inline]
fn offers_on(
    Field { tracks, index, .. }: &Field<'_>,
    reach: &Reach<'_>,
    limits: &Limits,
    (cylinder, known): (u32, u32),
    offers: &mut SurfaceBounds,
) {
    let all = u64::MAX >> (u64::BITS - tracks.surfaces());
    let ends = [reach.gap.from.surface, reach.gap.to.surface];
    let ends = ends.into_iter().fold(0, |bits, surface| bits | 1 << surface);
    let sectors = tracks.sectors_max((cylinder, cylinder));
    for (surfaces, switches) in [(ends, false), (all & !ends, true)] {
        if let Some(stay) = reach.longest_at(cylinder, switches) {
            let passing = limits.ceiling.of(reach.sectors_in(stay.1, sectors));
            if passing > known.into() {
                let passing = u32::try_from(passing).unwrap_or(u32::MAX);
                let begins_in = reach.begins_in(stay, limits.block_ns);
                let of = (cylinder, surfaces);
                index.offers(tracks, of, (known, passing), begins_in, offers);
            }
        }
    }
}

/// What can be had on one track in the gap when no other is visited, if it is worth more than
/// `best`: reads or writes, since a sector that passes can be either.
#[inline]
fn better_on(
    best: u32,
    Field { tracks, wanted, .. }: &Field<'_>,
    reach: &Reach<'_>,
    limits: &Limits,
    at: Position,
    visits: &mut Visits,
) -> Option<Best> {
    let place = tracks.place(at)?;
    let mut better = None;
    let mut known = best;
    for &op in limits.ops {
        let visit = visits.get(tracks, reach, limits, (at, op), place.sectors());
        if visit.most > known.into() {
            let passing = tracks.passing(&place, &visit.window);
            let value = wanted.value(tracks, at, &place, (passing, op), known).value;
            if value > known {
                known = value;
                better = Some(Best { at, op, value });
            }
        }
    }
    better
}

/// The best track so far, its room, and how many surfaces of its cylinder come before it; none of a
/// cylinder looked at before.
#[derive(Clone, Copy)]
struct Found {
    best: Best,
    room: u64,
    turn: u32,
    /// Only a lower one is better: zero on those of source and destination, which come first.
    cylinder: u32,
}

impl Found {
    fn known(found: Option<Self>) -> Known {
        let none = Known { worth: 0, room: 0, cylinder: 0 };
        found.map_or(none, |Self { best, room, cylinder, .. }| {
            let worth = best.value.into();
            Known { worth, room, cylinder }
        })
    }

    /// Whether a track of this worth and room, of this cylinder and behind `turn` others on it, is
    /// better.
    fn loses_to(&self, value: u32, room: u64, (cylinder, turn): (u32, u32)) -> bool {
        let before = (self.cylinder, self.turn).cmp(&(cylinder, turn));
        value.cmp(&self.best.value).then(room.cmp(&self.room)).then(before).is_gt()
    }
}

/// The best track of all: the source's, the destination's, or a third. Of tracks with as much it is
/// the one with the least extra seek, and on a cylinder the first from the heads on. None when nothing
/// can be had.
pub(super) fn best_track(
    field: &Field<'_>,
    reach: &Reach<'_>,
    search: &mut Search<'_>,
) -> Option<Best> {
    let mut found: Option<Found> = None;
    let limits = Limits::of(field, reach);
    let mut offers = SurfaceBounds::NONE;
    let mut consider = |field: &Field<'_>, cylinder: u32, first: u32| {
        let least = |found| u32::try_from(Found::known(found).floor()).unwrap_or(u32::MAX);
        offers_on(field, reach, &limits, (cylinder, least(found)), &mut offers);
        let mut visits = Visits::default();
        found = found.map(|found| Found { turn: 0, ..found });
        let is_end = [reach.gap.from, reach.gap.to].iter().any(|end| end.cylinder == cylinder);
        let rank = if is_end { 0 } else { cylinder };
        // What may offer most is looked at first, as it leaves most of the others out.
        while let Some((turn, most)) = offers.take_greatest(first) {
            if most <= least(found) {
                offers.clear();
                break;
            }
            let at = Position { cylinder, surface: (first + turn) % u64::BITS };
            if let Some(found) = found.filter(|found| most == found.best.value) {
                let room = limits.ops.iter().map(|&op| reach.room(at, op)).max().unwrap_or(0);
                if !found.loses_to(most, room, (rank, turn)) {
                    continue;
                }
            }
            if let Some(best) = better_on(least(found), field, reach, &limits, at, &mut visits) {
                let room = reach.room(at, best.op);
                if found.is_none_or(|found| found.loses_to(best.value, room, (rank, turn))) {
                    found = Some(Found { best, room, turn, cylinder: rank });
                }
            }
        }
        Found::known(found)
    };
    for at in [reach.gap.from, reach.gap.to] {
        if let Some(arc) = reach.arc_at(at.cylinder) {
            // Nearly always what is best lies near.
            for level in 0..field.index.levels().min(COLD_LEVELS) {
                let number = at.cylinder >> Index::cylinders_log2(level);
                field.index.prefetch_bound(Node { level, number }, arc);
            }
        }
        field.index.prefetch_cylinder(field.tracks, field.wanted, at.cylinder);
    }
    // The tracks of source and destination need no seek of their own, their cylinders at most one
    // head switch more.
    let mut known = Found::known(None);
    for at in [reach.gap.from, reach.gap.to] {
        let node = Node { level: 0, number: at.cylinder };
        let offers = reach.arc_at(at.cylinder).map_or(0, |arc| field.index.bound(node, arc));
        if u64::from(offers) > known.floor() {
            known = consider(field, at.cylinder, at.surface);
        }
    }
    search.run(field, reach, |_| 1, known, |field, cylinder, _| consider(field, cylinder, 0));
    found.map(|found| found.best)
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::sync::{Arc, LazyLock};

    use freewheel_units::{Prng, SimDuration, SimTime};
    use proptest::prelude::*;

    use super::super::index::{Fineness, Objective};
    use super::super::wanted::LayerKey;
    use super::super::{Ends, Opportunity};
    use super::*;
    use freewheel_model::drive::Drive;

    static TRACKS: LazyLock<Tracks> = LazyLock::new(|| {
        let spec = toml::from_str(include_str!("../../../drives/atlas10k.toml")).unwrap();
        Tracks::new(&Arc::new(Drive::build(&spec).unwrap()))
    });

    /// The best of a cylinder's surfaces in order from `first` on, and its room, one looked at after the
    /// other: more blocks, then less extra seek, then the first.
    fn in_order(
        field: &Field<'_>,
        reach: &Reach<'_>,
        cylinder: u32,
        first: u32,
    ) -> Option<(Best, u64)> {
        let Field { tracks, wanted, .. } = field;
        let mut best: Option<(Best, u64)> = None;
        for surface in (first..tracks.surfaces()).chain(0..first) {
            let at = Position { cylinder, surface };
            let place = tracks.place(at)?;
            let stay = reach.stay(at, Op::Read);
            if stay.length() == 0 {
                continue;
            }
            let window = tracks.window(reach.time(stay.from), stay.length());
            let passing = tracks.passing(&place, &window);
            let value = wanted.value(tracks, at, &place, (passing, Op::Read), 0).value;
            let room = reach.room(at, Op::Read);
            if value > 0 && best.is_none_or(|(best, most)| (value, room) > (best.value, most)) {
                best = Some((Best { at, op: Op::Read, value }, room));
            }
        }
        best
    }

    proptest! {
        #[test]
        fn of_tracks_that_offer_as_much_the_one_with_the_least_extra_seek_is_taken(
            seed: u64, wanted_of in 1u64..40, fineness in prop_oneof![Just(Fineness::Coarse), Just(Fineness::Fine)],
        ) {
            let tracks = &*TRACKS;
            let prng = &mut Prng::new(seed, "search");
            let any = |prng: &mut Prng| Position {
                cylinder: prng.below(10_000) as u32,
                surface: prng.below(tracks.surfaces().into()) as u32,
            };
            let (from, to) = (any(prng), any(prng));
            // Something here and there on the source's cylinder and some others, and nothing elsewhere.
            let others = prng.below(12);
            let near = (from.cylinder + 1..from.cylinder + 9).filter(|_| others > 3);
            let far = (0..others).map(|_| any(prng).cylinder).collect::<Vec<_>>();
            let mut cylinders: Vec<u32> = near.chain(far).filter(|&at| at != to.cylinder).collect();
            cylinders.insert(0, from.cylinder);
            let wanted = &mut Wanted::new(tracks, 0);
            wanted.layer(tracks, LayerKey { op: Op::Read, size: 8, offset: 0, weight: 1 });
            let each = cylinders.iter().flat_map(|&cylinder| {
                (0..tracks.surfaces()).map(move |surface| Position { cylinder, surface })
            });
            for at in each {
                let mut blocks = 0..0;
                tracks.for_each_stretch(at, |on| blocks = on.first..on.end());
                let blocks = blocks.start.div_ceil(8)..blocks.end / 8;
                for block in blocks.filter(|_| prng.below(40) < wanted_of) {
                    wanted.want(tracks, 0, block, block + 1);
                }
            }
            let begin = SimTime::from_ns(prng.below(1 << 40));
            let due = begin + SimDuration::from_ns(prng.below(12_000_000));
            let gap = Opportunity {
                begin, from, to, due, op: Op::Read, last_op: Op::Read,
                read_write_switch: SimDuration::ZERO, seek: SimDuration::ZERO, seek_error_ns: 0,
                ends: Ends::default(),
            };
            let index = &mut Index::new(tracks, wanted, Objective::Track, fineness);
            let reach = Reach::new(tracks.drive(), &gap, index.slots());
            let field = &Field { tracks, wanted, index };
            let mut search = Search {
                frontier: &mut Frontier::default(), vain: &mut Vec::new(), budget: u64::MAX,
                slack_log2: None, go_on: &mut |_| true, searches: 1, looked: SearchCost::default(),
            };
            let found = best_track(field, &reach, &mut search);
            let first = |cylinder| if cylinder == from.cylinder { from.surface } else { 0 };
            let here = |&cylinder: &u32| in_order(field, &reach, cylinder, first(cylinder));
            // Of equal ones the source's cylinder, then the lowest; on a cylinder the first from the heads on.
            let rank = |cylinder| if cylinder == from.cylinder { None } else { Some(cylinder) };
            let order = |(best, room): &(Best, u64)| (best.value, *room, Reverse(rank(best.at.cylinder)));
            let expected = cylinders.iter().filter_map(here).max_by_key(order);
            prop_assert_eq!(found, expected.map(|(best, _)| best));
        }
    }
}
