//! The paper's rule (osdi00 section 4): the one track with most wanted blocks.

use super::best_first::Search;
use super::best_track::best_track;
use super::field::Field;
use super::reach::Reach;
use super::wanted::Timed;

/// Adds to `items` what can be had on the best track.
pub(crate) fn plan(
    field: &Field<'_>,
    reach: &Reach<'_>,
    search: &mut Search<'_>,
    items: &mut Vec<Timed>,
) {
    let Some(best) = best_track(field, reach, search) else { return };
    let Field { tracks, wanted, .. } = field;
    let stay = reach.stay(best.at, best.op);
    wanted.timed(tracks, reach, best.at, best.op, stay, &mut |timed| items.push(timed));
}
