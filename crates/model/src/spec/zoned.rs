//! Shingled zones in a drive file.

use freewheel_units::Blocks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Zones of shingled recording: all of the same size, but the last may be smaller; the first ones
/// conventional. Not to be confused with zones of equal track size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZonedSpec {
    /// Who sees to it that zones are written in order.
    pub kind: ZonedKind,
    /// Size of a zone; 524288 blocks are 256 MiB.
    #[schemars(with = "u64")]
    pub zone_blocks: Blocks,
    /// Zones from the beginning of the drive that may be written anywhere.
    pub conventional_zones: u32,
    /// Sequential zones that may be open at once. A host-managed drive refuses more; to a
    /// host-aware one it is advice.
    pub max_open_zones: u32,
}

/// Who sees to it that zones are written in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZonedKind {
    /// The host; the drive refuses any other write.
    HostManaged,
    /// The host, if it will; the drive takes any write.
    HostAware,
    /// The drive; the host sees no zones.
    DriveManaged,
}
