//! A plan for a terminal.

use freewheel_study::plan::PlacePlan;
use freewheel_units::grouped;

use super::rows;
use super::words::PlaceConclusions;
use crate::rows::Rows;

/// Most new files that a terminal gets.
const PLACED_MAX: usize = 20;

pub(super) fn text(plan: &PlacePlan, conclusions: &PlaceConclusions) -> String {
    let PlaceConclusions { headline, details, cautions } = conclusions;
    let mut text = format!("{headline}\n\n");
    let mut table = |table: Rows, left: usize| {
        if !table.rows.is_empty() {
            text += &table.text(left);
            text.push('\n');
        }
    };
    table(rows::moves(plan), 3);
    let mut placed = rows::placed(plan);
    let more = placed.rows.len().saturating_sub(PLACED_MAX);
    placed.rows.truncate(PLACED_MAX);
    if more > 0 {
        placed.rows.push(vec![
            format!("{} more in the JSON document", grouped(more as u64)),
            String::new(),
        ]);
    }
    table(placed, 2);
    table(rows::outcomes(plan), 1);
    table(rows::disks(plan), 2);
    for sentence in details.iter().chain(cautions) {
        text += sentence;
        text.push('\n');
    }
    text
}
