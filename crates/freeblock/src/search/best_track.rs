//! The track that offers most in a gap, exactly.
//!
//! The paper's rule (osdi00 section 4): over all tracks, how many wanted blocks could be accessed in
//! this gap? Its search looks at tracks in ascending order of extra seek and leaves out those that
//! cannot beat the best: of tracks with as many blocks it takes the one with the least extra seek. Where
//! that too is equal, ours takes the lower cylinder, so that no order of looking changes what is found.
//! Ours descends a tree of bounds ([`Index`]) best first, so that it looks at few tracks however
//! fragmented the wanted blocks are, and takes the same track.

use freewheel_units::Op;

use super::best_first::Search;
use super::cylinder_range::CylinderRange;
use super::field::Field;
use super::frontier::COLD_LEVELS;
use super::index::{Index, Node, SurfaceBounds, SurfaceQuery};
use super::known::Known;
use super::reach::Reach;
use super::tracks::{Tracks, Window};
use super::wanted::Ceiling;
use freewheel_model::drive::Position;

/// The best track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Best {
    pub at: Position,
    /// What is done there.
    pub op: Op,
    /// Worth of what can be had.
    pub value: u32,
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
        let sectors = tracks.sectors_max(tracks.all_cylinders());
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
        at: Position,
        op: Op,
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
    cylinder: u32,
    known: u32,
    offers: &mut SurfaceBounds,
) {
    let all = u64::MAX >> (u64::BITS - tracks.surfaces());
    let ends = [reach.gap.from.surface, reach.gap.to.surface];
    let ends = ends.into_iter().fold(0, |bits, surface| bits | 1 << surface);
    let sectors = tracks.sectors_max(CylinderRange::one(cylinder));
    for (surfaces, switches) in [(ends, false), (all & !ends, true)] {
        if let Some(stay) = reach.longest_at(cylinder, switches) {
            let passing = limits.ceiling.of(reach.sectors_in(stay.length(), sectors));
            if passing > known.into() {
                let passing = u32::try_from(passing).unwrap_or(u32::MAX);
                let begins_in = reach.begins_in(stay, limits.block_ns);
                let query = SurfaceQuery { cylinder, surfaces, known, passing, begins_in };
                index.offers(tracks, &query, offers);
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
        let visit = visits.get(tracks, reach, limits, at, op, place.sectors());
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
    fn loses_to(&self, value: u32, room: u64, cylinder: u32, turn: u32) -> bool {
        let before = (self.cylinder, self.turn).cmp(&(cylinder, turn));
        value.cmp(&self.best.value).then(room.cmp(&self.room)).then(before).is_gt()
    }
}

/// The best track of all: the source's, the destination's, or a third. Of tracks with as much it is
/// the one with the least extra seek, and on a cylinder the first from the heads on. None when nothing
/// can be had.
pub(crate) fn best_track(
    field: &Field<'_>,
    reach: &Reach<'_>,
    search: &mut Search<'_>,
) -> Option<Best> {
    let mut found: Option<Found> = None;
    let limits = Limits::of(field, reach);
    let mut offers = SurfaceBounds::NONE;
    let mut consider = |field: &Field<'_>, cylinder: u32, first: u32| {
        let least = |found| u32::try_from(Found::known(found).floor()).unwrap_or(u32::MAX);
        offers_on(field, reach, &limits, cylinder, least(found), &mut offers);
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
                if !found.loses_to(most, room, rank, turn) {
                    continue;
                }
            }
            if let Some(best) = better_on(least(found), field, reach, &limits, at, &mut visits) {
                let room = reach.room(at, best.op);
                if found.is_none_or(|found| found.loses_to(best.value, room, rank, turn)) {
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

    use super::super::best_first::SearchCost;
    use super::super::frontier::Frontier;
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
