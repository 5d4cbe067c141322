//! What shapes a scheduler outside a drive.

use freewheel_units::SimDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::drive::Drive;
use crate::drive::spec::ByOp;

/// How a scheduler outside a drive deals with what it cannot see or change (fast02 sections 3, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExternalSpec {
    /// Commands at the drive at once. With two the drive has its next command when it is done with
    /// one, and nothing to reorder.
    pub at_drive: u32,
    /// How much longer than predicted a seek to or from free work may take.
    pub conservatism: SimDuration,
    /// Free work on the tracks of foreground requests.
    pub same_track: SameTrack,
    /// The next request is chosen so long before the drive needs its command, and not earlier: those
    /// that arrive meanwhile can be chosen too. With more than any command takes, as soon as the drive
    /// takes it.
    pub decide_before: SimDuration,
}

impl Default for ExternalSpec {
    /// fast02's: two commands, and the conservatism beyond which its foreground is all but untouched.
    /// As much time before the drive needs a command is many times what a decision takes.
    fn default() -> Self {
        Self {
            at_drive: 2,
            conservatism: SimDuration::from_us(300),
            same_track: SameTrack::default(),
            decide_before: SimDuration::from_us(300),
        }
    }
}

impl ExternalSpec {
    /// `drive` as planners of free work should see it: every movement takes longer by the margin, and
    /// the processing of commands no time.
    pub fn planners_drive(&self, drive: &Drive) -> Drive {
        let margin_ns = u32::try_from(self.conservatism.ns()).unwrap_or(u32::MAX / 4);
        drive.with_overhead(ByOp::default()).with_slower_seeks(|_| margin_ns)
    }
}

/// Free work on the track of a foreground request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SameTrack {
    /// On the destination track, in one command with the foreground request; on the source track not
    /// at all, for its command has been given (fast02 section 4.2).
    #[default]
    Merge,
    /// As a command of its own as well: for drives that do not take two commands on a track for a
    /// sequential stream.
    Distinct,
    /// Not at all.
    Never,
}
