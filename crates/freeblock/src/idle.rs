//! Search for the nearest work while no foreground request is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use freewheel_units::{Lbn, Op};

use crate::FreeRun;
use crate::opportunity::Opportunity;
use crate::search::{CylinderRange, DwellWindow, Field, Reach, Timed};
use freewheel_model::drive::{Departure, Drive, Position};

/// The run to do next with the head like this: on its cylinder the first to pass, changes of heads
/// included, else on the nearest cylinder with wanted blocks; of equals the higher. At most `most`
/// blocks of 512 B, unless one item is larger. None without wanted blocks.
pub(super) fn plan(
    field: &mut Field<'_>,
    drive: &Drive,
    head: &Departure,
    most: u32,
    items: &mut Vec<Timed>,
) -> Option<FreeRun> {
    let nowhere = Opportunity::none(head);
    let reach = Reach::new(drive, &nowhere, field.index.slots());
    nearest(field, head.from.cylinder, |field, cylinder| {
        first_on(field, &reach, cylinder, most, items)
    })
}

/// Result of `look` for the nearest cylinder that has any, of equals for the higher one. It is shown only
/// those on which something is wanted, by the bounds of the index: where they are out of date they are
/// worked out anew.
fn nearest<T>(
    field: &mut Field<'_>,
    here: u32,
    mut look: impl FnMut(&Field<'_>, u32) -> Option<T>,
) -> Option<T> {
    let root = field.index.root();
    let mut frontier =
        BinaryHeap::from([Reverse((distance(field.index.cylinders(root), here), root))]);
    while let Some(Reverse((_, node))) = frontier.pop() {
        if !field.index.may_offer(node) {
            continue;
        }
        if node.level > 0 {
            let offering = field.index.children(node, field.index.whole(), 0);
            frontier.extend(
                offering
                    .map(|child| (distance(field.index.cylinders(child), here), child))
                    .map(Reverse),
            );
            continue;
        }
        let Field { tracks, wanted, index } = &mut *field;
        if index.is_stale(node.number) {
            index.update(tracks, wanted, node.number);
            if !index.may_offer(node) {
                continue;
            }
        }
        let found = look(field, node.number);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Of equally near ones the higher first.
fn distance(cylinders: CylinderRange, here: u32) -> (u32, bool) {
    (cylinders.distance(here), cylinders.last < here)
}

/// The run on a cylinder that begins first.
fn first_on(
    field: &Field<'_>,
    reach: &Reach<'_>,
    cylinder: u32,
    most: u32,
    items: &mut Vec<Timed>,
) -> Option<FreeRun> {
    let mut first: Option<(Timed, Position)> = None;
    for surface in 0..field.tracks.surfaces() {
        let at = Position { cylinder, surface };
        for &op in field.wanted.ops() {
            items.clear();
            items_on(field, reach, at, op, items);
            for timed in items.iter() {
                if first.is_none_or(|(first, _)| key(timed) < key(&first)) {
                    first = Some((*timed, at));
                }
            }
        }
    }
    let (Timed { item: first, .. }, at) = first?;
    items.clear();
    items_on(field, reach, at, first.op, items);
    items.sort_unstable_by_key(key);
    let mut run = FreeRun { start: Lbn::new(first.first), blocks: first.blocks, op: first.op };
    for Timed { item, .. } in items.iter() {
        let end = run.start.get() + u64::from(run.blocks);
        if item.first == end && run.blocks + item.blocks <= most {
            run.blocks += item.blocks;
        }
    }
    Some(run)
}

fn key(timed: &Timed) -> (u64, u64) {
    (timed.at, timed.item.first)
}

/// Adds all that is wanted on a track in direction `op`, with the times at which it next begins
/// when the head goes there.
fn items_on(field: &Field<'_>, reach: &Reach<'_>, at: Position, op: Op, items: &mut Vec<Timed>) {
    let Field { tracks, wanted, .. } = field;
    let Some(place) = tracks.place(at) else { return };
    let rotation = tracks.drive().rotation();
    let period = rotation.period_ns();
    let arrival = reach.enter_ns(at, op);
    // A turn from the start of the track on has every item whole.
    let phase = rotation.phase_ns(reach.time(arrival));
    let from = arrival + rotation.forward_ns(phase, tracks.edge_ns(&place, 0));
    wanted.timed(tracks, reach, at, op, DwellWindow { from, to: from + period }, &mut |timed| {
        let before = timed.at.checked_sub(period).filter(|&at| at >= arrival);
        items.push(Timed { at: before.unwrap_or(timed.at), ..timed });
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use freewheel_units::Prng;
    use proptest::prelude::*;

    use super::*;
    use crate::search::{Fineness, Index, LayerKey, Objective, Tracks, Wanted};

    fn tracks() -> Tracks {
        let spec = toml::from_str(include_str!("../../../drives/atlas10k.toml")).unwrap();
        Tracks::new(&Arc::new(Drive::build(&spec).unwrap()))
    }

    /// True if anything is wanted on a cylinder, block by block.
    fn is_wanted(tracks: &Tracks, wanted: &Wanted, cylinder: u32) -> bool {
        let on = |surface| {
            let mut any = false;
            tracks.for_each_stretch(Position { cylinder, surface }, |stretch| {
                let blocks = stretch.first..stretch.end();
                any |= blocks.into_iter().any(|block| wanted.blocks(0).contains(block));
            });
            any
        };
        (0..tracks.surfaces()).any(on)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 8, ..Default::default() })]

        /// Everything but a few blocks has been read since the index was made.
        #[test]
        fn nearest_cylinder_matches_scan(
            seed: u64, left in 1usize..5,
            objective in prop::sample::select(
                vec![Objective::Track, Objective::Cylinder, Objective::Presence]
            ),
        ) {
            let prng = &mut Prng::new(seed, "idle");
            let tracks = &tracks();
            let capacity = tracks.drive().blocks().get();
            let wanted = &mut Wanted::new(tracks, 0);
            let key = LayerKey { op: Op::Read, size: 1, offset: 0, weight: 1 };
            wanted.layer(tracks, key);
            wanted.want(tracks, 0, 0, capacity);
            let index = &mut Index::new(tracks, wanted, objective, Fineness::BySize);
            wanted.unwant(tracks, 0, 0, capacity);
            (0..tracks.cylinders()).for_each(|cylinder| index.fewer(cylinder));
            for _ in 0..left {
                let block = prng.below(capacity);
                wanted.want(tracks, 0, block, block + 1);
            }
            let offering: Vec<u32> = (0..tracks.cylinders())
                .filter(|&cylinder| is_wanted(tracks, wanted, cylinder))
                .collect();
            let field = &mut Field { tracks, wanted, index };
            for _ in 0..9 {
                let here = prng.below(tracks.cylinders().into()) as u32;
                let scan = offering.iter().copied();
                let expected = scan.min_by_key(|&at| (here.abs_diff(at), at < here));
                let mut looked = Vec::new();
                let found = nearest(field, here, |_, cylinder| {
                    looked.push(cylinder);
                    Some(cylinder)
                });
                prop_assert_eq!(found, expected);
                prop_assert_eq!(looked, Vec::from_iter(expected));
                // Nothing found: all that offer are shown, in order of their distance.
                let mut all = offering.clone();
                all.sort_by_key(|&at| (here.abs_diff(at), at < here));
                let mut looked = Vec::new();
                prop_assert_eq!(nearest(field, here, |_, at| { looked.push(at); None::<u32> }), None);
                prop_assert_eq!(looked, all);
                prop_assert!((0..tracks.cylinders()).all(|at| !field.index.is_stale(at)));
            }
        }
    }
}
