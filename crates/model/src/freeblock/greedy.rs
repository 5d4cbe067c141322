//! The paper's rule (osdi00 section 4): the one track with most wanted blocks.

use freewheel_units::Op;

use super::reach::Reach;
use super::search::{Field, Search, best_track};
use super::wanted::Timed;

/// Adds to `items` what can be had on the best track.
pub(super) fn plan(
    field: &mut Field<'_>,
    reach: &Reach<'_>,
    search: &mut Search<'_>,
    items: &mut Vec<Timed>,
) {
    let Some(best) = best_track(field, reach, search) else { return };
    let Field { tracks, wanted, .. } = field;
    let (at, start) = (tracks.position(best.track), items.len());
    // Reads or writes, whichever was the more valuable.
    for op in [Op::Read, Op::Write] {
        items.truncate(start);
        let mut value = 0;
        wanted.timed(tracks, reach, at, op, reach.stay(at, op), &mut |timed| {
            value += timed.item.value;
            items.push(timed);
        });
        if value == best.value {
            return;
        }
    }
}
