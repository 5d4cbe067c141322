//! What must be known of shingled drives before their numbers are believed.

use freewheel_model::zoned::spec::ZonedKind;
use freewheel_sim::{RefusedWrites, RunResult};
use freewheel_units::grouped;

use crate::finding::Finding;
use crate::page::percent;

/// The cautions that a run on a drive with zones of this kind calls for.
pub(crate) fn shingled_cautions(zoned: Option<ZonedKind>, result: &RunResult) -> Vec<Finding> {
    let unmodelled = zoned.and_then(unmodelled);
    refused(result).into_iter().chain(unmodelled).collect()
}

/// None when every write was taken.
fn refused(result: &RunResult) -> Option<Finding> {
    let refused = &result.refused_writes;
    let writes = result.write_response.count + refused.count;
    (refused.count > 0).then(|| Finding {
        headline: format!(
            "{} of the writes would be refused by this host-managed drive: {}.",
            percent(refused.count as f64 / writes as f64),
            reasons(refused)
        ),
        detail: "They take no time here and count in no response time. Every zone is empty at the start, and what was written to one is written again only after a trim of the whole zone. A system that runs on such a drive writes each zone in order: the times of the other requests are not those of that system.".into(),
    })
}

fn reasons(refused: &RefusedWrites) -> String {
    let all = [
        (refused.not_at_write_pointer, "they are not at the write pointer of their zone"),
        (refused.over_zone_boundary, "they reach over the boundary of their zone"),
        (refused.zone_full, "their zone is full"),
    ];
    let happened = all.into_iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> =
        happened.map(|(count, reason)| format!("{} because {reason}", grouped(count))).collect();
    reasons.join(", ")
}

/// What the drive would do behind the host's back and does not do here. A host-managed drive does
/// nothing of the kind.
pub(crate) fn unmodelled(kind: ZonedKind) -> Option<Finding> {
    let managed = match kind {
        ZonedKind::HostManaged => return None,
        ZonedKind::HostAware => "host-aware",
        ZonedKind::DriveManaged => "drive-managed",
    };
    Some(Finding {
        headline: format!(
            "This drive is shingled and {managed}; its internal media cache and the cleaning of its zones are not modelled."
        ),
        detail: "Writes out of order are served here as if tracks did not overlap. A real drive collects them in a cache on its media and rewrites whole zones later, which can take seconds: do not believe the times of random writes, nor those of reads meanwhile.".into(),
    })
}
