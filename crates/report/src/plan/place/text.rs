//! A plan for a terminal.

use freewheel_study::plan::PlacePlan;
use freewheel_units::grouped;

use super::rows;
use super::words::PlaceConclusions;
use crate::numbers::percent;
use crate::rows::Rows;

/// Most new files that a terminal gets.
const PLACED_MAX: usize = 20;

/// Most disks that a terminal gets.
const DISKS_MAX: usize = 20;

/// The disks, or of many the busiest, now or after the plan.
fn busiest(plan: &PlacePlan) -> Rows {
    let mut disks = rows::disks(plan);
    let others = disks.rows.len().saturating_sub(DISKS_MAX);
    if others == 0 {
        return disks;
    }
    let busy = |disk: usize| f64::max(plan.before.disks[disk].busy, plan.after.disks[disk].busy);
    let mut order: Vec<usize> = (0..plan.disks.len()).collect();
    order.sort_by(|&a, &b| busy(b).total_cmp(&busy(a)));
    let mut shown: Vec<Vec<String>> =
        order[..DISKS_MAX].iter().map(|&disk| disks.rows[disk].clone()).collect();
    let mut last = vec![String::new(); disks.head.len()];
    let most = percent(busy(order[DISKS_MAX]));
    last[0] = format!("{} others, at most {most} busy", grouped(others as u64));
    shown.push(last);
    disks.rows = shown;
    disks
}

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
    table(busiest(plan), 2);
    for sentence in details.iter().chain(cautions) {
        text += sentence;
        text.push('\n');
    }
    text
}
