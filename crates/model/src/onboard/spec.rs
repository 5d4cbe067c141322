//! What a drive file says about the electronics.

use freewheel_units::SimDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On-board electronics: buffer, command overheads, bus. Without a buffer every command visits the
/// media; overheads and bus that are not given take no time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OnboardSpec {
    /// Read cache, read-ahead and write cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferSpec>,
    /// Command processing times that depend on what came before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overheads: Option<OverheadSpec>,
    /// The way to the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<BusSpec>,
}

impl OnboardSpec {
    /// Whether there is no part at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The buffer memory of a drive: a number of segments, each holding one run of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferSpec {
    /// Segments in all.
    pub segments: u32,
    /// Size of a segment.
    pub segment_blocks: u32,
    /// Most segments that hold written data at once.
    #[serde(default = "one")]
    pub write_segments: u32,
    /// How far the drive reads on after a read.
    #[serde(default)]
    pub read_ahead: ReadAhead,
    /// It reads on at most this far; 0 stands for the size of a segment.
    #[serde(default)]
    pub read_ahead_max_blocks: u32,
    /// Sectors of the same track that pass before the wanted ones are kept, too.
    #[serde(default)]
    pub keep_free_blocks_before: bool,
    /// Reads may be served from written data.
    #[serde(default)]
    pub read_hits_on_written: bool,
    /// When a write is reported done before it is on the media.
    #[serde(default)]
    pub write_cache: WriteCache,
    /// A write that follows on the one before joins its segment and its destage.
    #[serde(default)]
    pub combine_sequential_writes: bool,
    /// Any write ends reading ahead, also one that the buffer takes.
    #[serde(default)]
    pub write_stops_read_ahead: bool,
    /// How long the drive must be idle before it destages.
    #[serde(default)]
    pub destage_after_idle: SimDuration,
}

/// How far a drive reads on after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the next track after sequential reads, else to the end of this one.
    Adaptive,
}

/// When a write is reported done before it is on the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Never.
    #[default]
    Off,
    /// One write at a time, and the writes that follow on it while it is not on the media yet.
    Sequential,
    /// As many as there are write segments.
    On,
}

/// Command processing times by operation, by whether the buffer takes it (hit) or the media must
/// be visited (miss), and by what the command before was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverheadSpec {
    /// Of a read served by the buffer.
    pub read_hit: AfterOp,
    /// Of a read that visits the media.
    pub read_miss: AfterOp,
    /// Of a write that the buffer takes.
    pub write_hit: AfterOp,
    /// Of a write that visits the media first.
    pub write_miss: AfterOp,
    /// After the last byte of a read.
    pub read_completion: SimDuration,
    /// After the last byte of a write.
    pub write_completion: SimDuration,
}

/// A time by what the command before was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AfterOp {
    /// After a read.
    pub after_read: SimDuration,
    /// After a write.
    pub after_write: SimDuration,
}

/// The way between buffer and host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BusSpec {
    /// Time of a block of 512 bytes.
    pub block_time: SimDuration,
    /// Time to get hold of the bus.
    pub arbitration: SimDuration,
    /// Before the data of a read that had let go of the bus.
    pub reconnect: SimDuration,
    /// When a command lets go of the bus to visit the media.
    pub disconnect: SimDuration,
    /// The bus moves a block of a read only when the whole request is in the buffer.
    pub store_and_forward: bool,
}

const fn one() -> u32 {
    1
}
