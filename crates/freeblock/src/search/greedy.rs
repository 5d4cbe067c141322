//! The paper's rule (osdi00 section 4): the one track with most wanted blocks, exactly.
//!
//! **Problem.** Over all tracks, how much wanted worth passes in this gap if the head goes to that track
//! and from there to the destination? The paper looks at tracks in ascending order of extra seek and
//! leaves out those that cannot beat the best. Of tracks of equal worth it takes the one with the least
//! extra seek; where that is equal too, this rule takes the lower cylinder, so that the order of looking
//! does not matter. It finds the same track by [`Search`], and looks at few however fragmented the wanted
//! blocks are.
//!
//! ```text
//!  source cylinder        third cylinder          destination cylinder
//!  |==24 blocks==|        |======40 blocks====|   |=8=|
//!    stay and leave late    detour                  arrive early
//! ```
//!
//! Source and destination are looked at first: 24 is to be beaten. A cylinder with a bound of 48 comes
//! next. Of its six tracks the words of [`BlockStartMask`](super::block_start_mask) bound two above 24,
//! by 40 and 32. The first holds 40, so the second is left out.

use freewheel_units::Op;

use super::best_first::Search;
use super::cylinder_range::CylinderRange;
use super::field::Field;
use super::frontier::COLD_LEVELS;
use super::index::{Index, Node, SurfaceBounds, SurfaceQuery};
use super::known::Known;
use super::reach::Reach;
use super::tracks::{Tracks, Window};
use super::wanted::{Ceiling, Timed};
use freewheel_model::drive::Position;

/// A track, and the worth that passes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Best {
    pub at: Position,
    /// Direction of all transfers there.
    pub op: Op,
    pub value: u32,
}

/// Constants of a search.
#[derive(Debug, Clone)]
struct Limits {
    /// Directions with wanted blocks.
    ops: &'static [Op],
    ceiling: Ceiling,
    /// Least time that a block takes to pass.
    block_ns: u64,
}

impl Limits {
    fn of(field: &Field<'_>, reach: &Reach<'_>) -> Self {
        let Field { tracks, wanted, index } = field;
        let sectors = tracks.sectors_max(tracks.all_cylinders());
        let block_ns = reach.passing_ns(index.least_sectors(), sectors);
        Self { ops: wanted.ops(), ceiling: field.ceiling(), block_ns }
    }
}

/// A stay on a surface.
#[derive(Clone, Copy)]
struct Visit {
    window: Window,
    /// Bound on the worth of the sectors that pass; zero without time for a stay.
    most: u64,
}

/// The visits to surfaces of one cylinder. They differ only by direction and by whether heads are switched
/// on the way there and on the way back, so eight are computed at most.
#[derive(Default)]
struct Visits([[Option<Visit>; 4]; 2]);

impl Visits {
    #[inline]
    fn get(
        &mut self,
        tracks: &Tracks,
        reach: &Reach<'_>,
        limits: &Limits,
        at: Position,
        op: Op,
    ) -> Visit {
        let [from, to] = [reach.gap.from, reach.gap.to].map(|there| there.surface == at.surface);
        let known =
            &mut self.0[usize::from(op == Op::Write)][usize::from(from) * 2 + usize::from(to)];
        *known.get_or_insert_with(|| {
            let stay = reach.stay(at, op);
            let length = stay.length();
            // Surfaces share a visit, and each may have another density.
            let sectors = tracks.sectors_max(CylinderRange::one(at.cylinder));
            let most = limits.ceiling.of(reach.sectors_in(length, sectors));
            let window = tracks.window(reach.time(stay.from), length);
            Visit { window, most: if length > 0 { most } else { 0 } }
        })
    }
}

/// Adds to `offers` the surfaces of a cylinder that may offer more than `known`.
#[inline]
fn offers_on(
    Field { tracks, index, .. }: &Field<'_>,
    reach: &Reach<'_>,
    limits: &Limits,
    cylinder: u32,
    known: u32,
    offers: &mut SurfaceBounds,
) {
    let all = u64::MAX >> (u64::BITS - tracks.surfaces());
    let ends = [reach.gap.from.surface, reach.gap.to.surface];
    let ends = ends.into_iter().fold(0, |bits, surface| bits | 1 << surface);
    let sectors = tracks.sectors_max(CylinderRange::one(cylinder));
    // A change of heads may take longer than the seek: two windows, one for the surfaces of source and
    // destination, and a shorter one for all others.
    for (surfaces, switches) in [(ends, false), (all & !ends, true)] {
        if let Some(stay) = reach.longest_at(cylinder, switches) {
            let passing = limits.ceiling.of(reach.sectors_in(stay.length(), sectors));
            if passing > known.into() {
                // All sectors that pass bound every surface alike.
                let passing = u32::try_from(passing).unwrap_or(u32::MAX);
                let begins_in = reach.begins_in(stay, limits.block_ns);
                let query = SurfaceQuery { cylinder, surfaces, known, passing, begins_in };
                index.offers(tracks, &query, offers);
            }
        }
    }
}

/// The better of reads and writes on a track, if it is worth more than `best`.
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
        let visit = visits.get(tracks, reach, limits, at, op);
        // The cheap bound first.
        if visit.most > known.into() {
            let passing = tracks.passing(&place, &visit.window);
            let value = wanted.value(tracks, at, &place, passing, op, known).value;
            if value > known {
                known = value;
                better = Some(Best { at, op, value });
            }
        }
    }
    better
}

/// The best track so far.
#[derive(Debug, Clone, Copy)]
struct Found {
    best: Best,
    room: u64,
    turn: u32,
    /// Order among equals: zero on source and destination, which come first.
    cylinder: u32,
}

impl Found {
    fn known(found: Option<Self>) -> Known {
        found.map_or(Known::NONE, |Self { best, room, cylinder, .. }| {
            let worth = best.value.into();
            Known { worth, room, cylinder }
        })
    }

    /// True if a track of this worth and room, with `turn` others of its cylinder before it, is better.
    fn loses_to(&self, value: u32, room: u64, cylinder: u32, turn: u32) -> bool {
        let before = (self.cylinder, self.turn).cmp(&(cylinder, turn));
        value.cmp(&self.best.value).then(room.cmp(&self.room)).then(before).is_gt()
    }
}

/// The rule, with the best track in the gap so far.
#[derive(Debug, Clone)]
pub(crate) struct Greedy {
    limits: Limits,
    found: Option<Found>,
    offers: SurfaceBounds,
}

impl Greedy {
    pub fn new() -> Self {
        let limits = Limits { ops: &[], ceiling: Ceiling::default(), block_ns: 0 };
        Self { limits, found: None, offers: SurfaceBounds::NONE }
    }

    /// Looks at the cylinders of source and destination: their tracks need no seek, or one change of heads.
    /// Returns what others have to beat.
    pub fn begin(&mut self, field: &Field<'_>, reach: &Reach<'_>) -> Known {
        (self.limits, self.found) = (Limits::of(field, reach), None);
        for at in [reach.gap.from, reach.gap.to] {
            if let Some(arc) = reach.arc_at(at.cylinder) {
                // The best track nearly always lies near.
                for level in 0..field.index.levels().min(COLD_LEVELS) {
                    let number = at.cylinder >> Index::cylinders_log2(level);
                    field.index.prefetch_bound(Node { level, number }, arc);
                }
            }
            field.index.prefetch_cylinder(field.tracks, field.wanted, at.cylinder);
        }
        let mut known = Known::NONE;
        for at in [reach.gap.from, reach.gap.to] {
            let node = Node { level: 0, number: at.cylinder };
            let offers = reach.arc_at(at.cylinder).map_or(0, |arc| field.index.bound(node, arc));
            if u64::from(offers) > known.floor() {
                // Of equal tracks on a cylinder that of the source or destination first: no change of
                // heads.
                known = self.consider(field, reach, at.cylinder, at.surface);
            }
        }
        known
    }

    /// Looks at `allowance` nodes.
    pub fn step(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search,
        allowance: &mut u64,
    ) {
        search.run(
            field,
            reach,
            |_| 1,
            allowance,
            |field, cylinder, _| self.consider(field, reach, cylinder, 0).into(),
        );
    }

    /// Looks at the tracks of a cylinder, of equal ones from surface `first` on and around.
    #[inline]
    fn consider(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        cylinder: u32,
        first: u32,
    ) -> Known {
        let Self { limits, offers, .. } = self;
        let least = |found| u32::try_from(Found::known(found).floor()).unwrap_or(u32::MAX);
        // Tracks of cylinders looked at before come first.
        let mut found = self.found.map(|found| Found { turn: 0, ..found });
        offers_on(field, reach, limits, cylinder, least(found), offers);
        let mut visits = Visits::default();
        let is_end = [reach.gap.from, reach.gap.to].iter().any(|end| end.cylinder == cylinder);
        let rank = if is_end { 0 } else { cylinder };
        // The greatest bound first: its worth leaves most of the others out.
        while let Some((turn, most)) = offers.take_greatest(first) {
            if most <= least(found) {
                offers.clear();
                break;
            }
            let at = Position { cylinder, surface: (first + turn) % u64::BITS };
            if let Some(found) = found.filter(|found| most == found.best.value) {
                // At best of equal worth: only room or order could make it better.
                let room = limits.ops.iter().map(|&op| reach.room(at, op)).max().unwrap_or(0);
                if !found.loses_to(most, room, rank, turn) {
                    continue;
                }
            }
            if let Some(best) = better_on(least(found), field, reach, limits, at, &mut visits) {
                let room = reach.room(at, best.op);
                if found.is_none_or(|found| found.loses_to(best.value, room, rank, turn)) {
                    found = Some(Found { best, room, turn, cylinder: rank });
                }
            }
        }
        self.found = found;
        Found::known(found)
    }

    /// The best track so far; None if no track offers anything.
    fn best(&self) -> Option<Best> {
        self.found.map(|found| found.best)
    }

    /// Adds to `items` what passes on the best track.
    pub fn take(&self, field: &Field<'_>, reach: &Reach<'_>, items: &mut Vec<Timed>) {
        let Some(best) = self.best() else { return };
        let stay = reach.stay(best.at, best.op);
        let Field { tracks, wanted, .. } = field;
        wanted.timed(tracks, reach, best.at, best.op, stay, &mut |timed| items.push(timed));
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::sync::{Arc, LazyLock};

    use freewheel_units::{Prng, SimDuration, SimTime};
    use proptest::prelude::*;

    use super::super::index::{Fineness, Objective};
    use super::super::wanted::{LayerKey, Wanted};
    use super::*;
    use crate::opportunity::{Ends, Opportunity};
    use freewheel_model::drive::Drive;

    static TRACKS: LazyLock<Tracks> = LazyLock::new(|| {
        let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
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
            let value = wanted.value(tracks, at, &place, passing, Op::Read, 0).value;
            let room = reach.room(at, Op::Read);
            if value > 0 && best.is_none_or(|(best, most)| (value, room) > (best.value, most)) {
                best = Some((Best { at, op: Op::Read, value }, room));
            }
        }
        best
    }

    proptest! {
        #[test]
        fn greedy_prefers_least_extra_seek(
            seed: u64, wanted_of in 1u64..40, fineness in prop_oneof![Just(Fineness::Coarse), Just(Fineness::Fine)],
        ) {
            let tracks = &*TRACKS;
            let prng = &mut Prng::new(seed, "search");
            let any = |prng: &mut Prng| Position {
                cylinder: prng.below(10_000) as u32,
                surface: prng.below(tracks.surfaces().into()) as u32,
            };
            let (from, to) = (any(prng), any(prng));
            // Some blocks on the source's cylinder and some others, and none elsewhere.
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
            let (mut greedy, mut search) = (Greedy::new(), Search::new(None, None));
            search.start(greedy.begin(field, &reach), u64::MAX);
            while !search.is_over() {
                greedy.step(field, &reach, &mut search, &mut { prng.below(9) });
            }
            let found = greedy.best();
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
