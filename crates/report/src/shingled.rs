//! Limits of the model of shingled drives.

use freewheel_model::zoned::spec::ZonedKind;
use freewheel_sim::{RefusedWrites, RunResult};
use freewheel_units::grouped;

use crate::finding::{Confidence, Cost, Finding, Topic, Unit};
use crate::numbers::percent;

/// The cautions that a run on a drive with zones of this kind calls for.
pub(crate) fn shingled_cautions(zoned: Option<ZonedKind>, result: &RunResult) -> Vec<Finding> {
    let unmodelled = zoned.and_then(unmodelled);
    refused(result).into_iter().chain(unmodelled).collect()
}

/// None when the drive accepted every write.
fn refused(result: &RunResult) -> Option<Finding> {
    let refused = &result.refused_writes;
    let share = refused.count as f64 / (result.write_response.count + refused.count) as f64;
    let headline = format!(
        "This host-managed drive would refuse {} of the writes: {}.",
        percent(share),
        reasons(refused)
    );
    (refused.count > 0).then(|| {
        Finding::new(Topic::RefusedWrites, Confidence::Simulated, headline)
            .number("refused writes", share, Unit::Share)
            .cost(Cost::Hardware)
            .action("Use a load that writes each zone in order, or a drive that accepts any write.")
            .detail("Refused writes take no time here and count in no response time.")
            .detail("Every zone is empty at the start. Blocks of a zone are written again only after a trim of the whole zone.")
            .detail("A system made for this drive writes each zone in order. Its other requests would take other times.")
    })
}

fn reasons(refused: &RefusedWrites) -> String {
    let all = [
        (refused.not_at_write_pointer, "are not at the write pointer of their zone"),
        (refused.over_zone_boundary, "cross the boundary of their zone"),
        (refused.zone_full, "go to a full zone"),
    ];
    let happened = all.into_iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> =
        happened.map(|(count, reason)| format!("{} {reason}", grouped(count))).collect();
    reasons.join(", ")
}

/// Finding about work of the drive that the host and the model leave out. A host-managed drive does none of
/// it.
pub(crate) fn unmodelled(kind: ZonedKind) -> Option<Finding> {
    let managed = match kind {
        ZonedKind::HostManaged => return None,
        ZonedKind::HostAware => "host-aware",
        ZonedKind::DriveManaged => "drive-managed",
    };
    let headline = format!(
        "This drive is shingled and {managed}; its internal media cache and the cleaning of its zones are not modelled."
    );
    let finding = Finding::new(Topic::ShingledModel, Confidence::Given, headline)
        .action("Do not rely on the times of random writes, nor on those of reads between them.")
        .detail("The model serves writes out of order as if tracks did not overlap.")
        .detail("A real drive collects such writes in a cache on its media and rewrites whole zones later, which can take seconds.");
    Some(finding)
}
