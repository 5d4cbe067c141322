//! What to do while no foreground request is there: what is nearest.

use freewheel_units::{Lbn, Op, SimDuration};

use super::reach::{Reach, Stay};
use super::search::Field;
use super::wanted::Timed;
use super::{FreeRun, Opportunity};
use crate::drive::{Departure, Drive, Position};

/// The run to do next with the head like this: on its cylinder whatever passes first, switches of
/// heads included, else on the nearest cylinder where something is wanted; of equals the higher. At
/// most `most` blocks of 512 B, unless one item is larger. None when nothing is wanted.
pub(super) fn plan(
    field: &Field<'_>,
    drive: &Drive,
    head: &Departure,
    most: u32,
    items: &mut Vec<Timed>,
) -> Option<FreeRun> {
    let nowhere = Opportunity {
        begin: head.begin,
        from: head.from,
        last_op: head.last_op,
        read_write_switch: head.read_write_switch,
        to: head.from,
        op: Op::Read,
        seek: SimDuration::ZERO,
        seek_error_ns: 0,
        due: head.begin,
    };
    let reach = Reach::new(drive, &nowhere);
    let cylinders = field.tracks.cylinders();
    let here = head.from.cylinder;
    (0..cylinders).find_map(|distance| {
        let above = here.checked_add(distance).filter(|&cylinder| cylinder < cylinders);
        let below = here.checked_sub(distance).filter(|_| distance > 0);
        [above, below]
            .into_iter()
            .flatten()
            .filter(|&cylinder| field.index.may_offer(cylinder))
            .find_map(|cylinder| first_on(field, &reach, cylinder, most, items))
    })
}

/// The run on a cylinder that begins first.
fn first_on(
    field: &Field<'_>,
    reach: &Reach<'_>,
    cylinder: u32,
    most: u32,
    items: &mut Vec<Timed>,
) -> Option<FreeRun> {
    let key = |timed: &Timed| (timed.at, timed.item.first);
    let mut first: Option<(Timed, Position)> = None;
    for surface in 0..field.tracks.surfaces() {
        let at = Position { cylinder, surface };
        for op in [Op::Read, Op::Write] {
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
    wanted.timed(tracks, reach, at, op, Stay { from, to: from + period }, &mut |timed| {
        let before = timed.at.checked_sub(period).filter(|&at| at >= arrival);
        items.push(Timed { at: before.unwrap_or(timed.at), ..timed });
    });
}
