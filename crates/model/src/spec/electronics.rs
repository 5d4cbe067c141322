//! Electronics in a drive file.

use std::fmt;

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Op, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Impossible;
use super::by_op::ByOp;
use super::duration_limits::DurationLimitsSpec;
use super::media_cache::MediaCacheSpec;
use super::policy::PolicySpec;

/// On-board electronics: buffer, command overheads, bus. Without a buffer every command visits the
/// media; overheads and bus that are not given take no time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ElectronicsSpec {
    /// Read cache, read-ahead and write cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferSpec>,
    /// Command processing times that depend on what came before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overheads: Option<OverheadSpec>,
    /// The way to the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<BusSpec>,
    /// Time between reading and writing within a cylinder, either way: the elements of a
    /// magneto-resistive head that read and write stand apart, and the arm moves by that offset.
    #[serde(skip_serializing_if = "is_zero")]
    pub read_write_switch: SimDuration,
    /// Beginning of writes to the media that do not follow on the write before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_start: Option<WriteStartSpec>,
    /// Commands held at once; one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// Descriptors of Command Duration Limits; a drive without the table looks at none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_limits: Option<DurationLimitsSpec>,
    /// The media cache of a drive that manages shingled tracks itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_cache: Option<MediaCacheSpec>,
    /// Sectors of the media, and the least that a host can ask for.
    #[serde(skip_serializing_if = "is_512n")]
    pub sector: SectorFormat,
}

impl ElectronicsSpec {
    /// True if there is no part at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Electronics with overheads: given ones, else `drive`'s times for commands of any kind.
    #[must_use]
    pub fn with_processing(&self, drive: ByOp<SimDuration>) -> Self {
        let (read, write) = (AfterOp::both(drive.read), AfterOp::both(drive.write));
        let plain = OverheadSpec {
            read_hit: read,
            read_miss: read,
            write_hit: write,
            write_miss: write,
            ..OverheadSpec::default()
        };
        Self { overheads: Some(self.overheads.unwrap_or(plain)), ..self.clone() }
    }

    /// Time between a command and the beginning of its work on the media, for schedulers outside
    /// the drive.
    pub fn command_overhead(&self) -> ByOp<SimDuration> {
        let (times, bus) = (self.overheads.unwrap_or_default(), self.bus.unwrap_or_default());
        ByOp {
            read: times.of(Op::Read, false, Op::Read) + bus.disconnect(Op::Read, Op::Read),
            write: times.of(Op::Write, false, Op::Write) + bus.disconnect(Op::Write, Op::Write),
        }
    }

    /// The first value that cannot be: its key, the value, and what is allowed.
    pub(crate) fn check(&self) -> Result<(), Impossible> {
        self.buffer.as_ref().map_or(Ok(()), BufferSpec::check)?;
        self.overheads.as_ref().map_or(Ok(()), OverheadSpec::check)?;
        self.bus.as_ref().map_or(Ok(()), BusSpec::check)?;
        at_most_a_second("electronics.read_write_switch", self.read_write_switch)?;
        self.write_start.as_ref().map_or(Ok(()), WriteStartSpec::check)?;
        let depth = self.queue.map_or(1, |queue| queue.depth);
        if !(1..=QUEUE_DEPTH_MAX).contains(&depth) {
            let rule = format!("1 to {QUEUE_DEPTH_MAX} commands can be held");
            return Err(("electronics.queue.depth", depth.to_string(), rule));
        }
        let queue = self.queue.unwrap_or_default();
        for (key, limit) in [
            ("electronics.queue.streams_first", queue.streams_first),
            ("electronics.queue.high_priority_first", queue.high_priority_first),
        ] {
            if let Some(limit) = limit.filter(|limit| *limit > IDLE_MAX) {
                let rule = format!("at most {IDLE_MAX} is allowed");
                return Err((key, limit.to_string(), rule));
            }
        }
        self.duration_limits.as_ref().map_or(Ok(()), DurationLimitsSpec::check)?;
        self.media_cache.as_ref().map_or(Ok(()), MediaCacheSpec::check)
    }
}

/// Times that add up must not overflow.
fn at_most_a_second(key: &'static str, time: SimDuration) -> Result<(), Impossible> {
    if time <= SimDuration::from_secs(1) {
        return Ok(());
    }
    Err((key, time.to_string(), "at most 1 s is allowed".into()))
}

/// Most segments of a buffer: they are searched one by one.
pub const SEGMENTS_MAX: u32 = 4096;

/// Most extents of written data: a gigabyte of blocks of 4 KiB.
pub const EXTENTS_MAX: u32 = 262_144;

/// Longest time for which written data wait without need.
const IDLE_MAX: SimDuration = SimDuration::from_secs(3600);

/// Deepest queue of commands. NVMe's limit, far beyond the 32 of SATA and the 256 of SAS drives.
pub const QUEUE_DEPTH_MAX: u32 = 65_536;

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
    /// The write segments serve writes alone, and the others reads; else any segment serves both.
    #[serde(default)]
    pub separate_write_segments: bool,
    /// Extent of reading on after a read.
    #[serde(default)]
    pub read_ahead: ReadAhead,
    /// Most blocks to read on; 0 stands for the size of a segment.
    #[serde(default)]
    pub read_ahead_max_blocks: u32,
    /// Fewest blocks to read on before the drive turns to another command.
    #[serde(default)]
    pub read_ahead_min_blocks: u32,
    /// Blocks read ahead never take the place of those that the host asked for last.
    #[serde(default)]
    pub keep_requested: bool,
    /// A read that the buffer serves whole sets the drive reading on from where the buffer ends.
    #[serde(default)]
    pub read_ahead_on_hit: bool,
    /// True if a read whose first blocks are in the buffer reads only the others from the media.
    #[serde(default)]
    pub partial_hits: bool,
    /// A read whose first block is just being read ahead counts as served by the buffer.
    #[serde(default)]
    pub almost_hits: bool,
    /// Sectors of the same track that pass before the wanted ones are kept, too.
    #[serde(default)]
    pub keep_free_blocks_before: bool,
    /// Reads may be served from written data.
    #[serde(default)]
    pub read_hits_on_written: bool,
    /// Condition under which a write is reported done before it is on the media.
    #[serde(default)]
    pub write_cache: WriteCache,
    /// A write that follows on the one before joins its segment and its destage.
    #[serde(default)]
    pub combine_sequential_writes: bool,
    /// Any write ends reading ahead, also one that the buffer takes.
    #[serde(default)]
    pub write_stops_read_ahead: bool,
    /// Time that the drive must be idle before it destages.
    #[serde(default)]
    pub destage_after_idle: SimDuration,
    /// Written data stand in extents of their own length; else each run of them takes a segment. Without
    /// effect unless the write cache is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<DirtySpec>,
}

/// Written data in extents: runs of blocks of any length, up to the size of a table. They share the
/// memory of the buffer with the segments, which make way for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirtySpec {
    /// Most extents at once.
    pub extents: u32,
    /// Most memory for them.
    pub bytes: Bytes,
    /// An extent that has waited for this time for the media goes before all younger ones.
    pub age_limit: SimDuration,
}

impl DirtySpec {
    /// Most blocks in extents.
    pub(crate) fn blocks_max(&self) -> u64 {
        self.bytes.get() / BLOCK_BYTES
    }

    fn check(&self, buffer: &BufferSpec) -> Result<(), Impossible> {
        if !(1..=EXTENTS_MAX).contains(&self.extents) {
            let rule = format!("1 to {EXTENTS_MAX} are allowed");
            return Err(("electronics.buffer.dirty.extents", self.extents.to_string(), rule));
        }
        let segment = u64::from(buffer.segment_blocks);
        let all = segment * (u64::from(buffer.segments) - 1);
        if !(segment..=all).contains(&self.blocks_max()) {
            let [least, most] = [segment, all].map(|blocks| blocks * BLOCK_BYTES);
            let rule =
                format!("{least} to {most} bytes are allowed: a segment, and all segments but one");
            return Err(("electronics.buffer.dirty.bytes", self.bytes.get().to_string(), rule));
        }
        if self.age_limit > IDLE_MAX {
            let rule = format!("at most {IDLE_MAX} is allowed");
            return Err(("electronics.buffer.dirty.age_limit", self.age_limit.to_string(), rule));
        }
        if buffer.write_segments != one() || buffer.separate_write_segments {
            let rule = "extents take the place of `write_segments` and `separate_write_segments`";
            return Err(("electronics.buffer.dirty", "given".into(), rule.into()));
        }
        Ok(())
    }
}

impl BufferSpec {
    /// Most memory that written data take.
    pub fn written_bytes_max(&self) -> Bytes {
        let blocks = u64::from(self.write_segments) * u64::from(self.segment_blocks);
        self.dirty.map_or(Blocks::new(blocks).bytes(), |dirty| dirty.bytes)
    }

    fn check(&self) -> Result<(), Impossible> {
        let Self { segments, segment_blocks, write_segments, .. } = *self;
        if !(1..=SEGMENTS_MAX).contains(&segments) {
            let rule = format!("1 to {SEGMENTS_MAX} are allowed, or no buffer at all");
            return Err(("electronics.buffer.segments", segments.to_string(), rule));
        }
        if segment_blocks == 0 {
            let rule = "at least 1 is needed".into();
            return Err(("electronics.buffer.segment_blocks", "0".into(), rule));
        }
        let most = segments - u32::from(self.separate_write_segments);
        if !(1..=most).contains(&write_segments) {
            let rule = format!("of these {segments} segments 1 to {most} can hold writes");
            return Err(("electronics.buffer.write_segments", write_segments.to_string(), rule));
        }
        if self.destage_after_idle > IDLE_MAX {
            let rule = format!("at most {IDLE_MAX} is allowed");
            let value = self.destage_after_idle.to_string();
            return Err(("electronics.buffer.destage_after_idle", value, rule));
        }
        if let Some(dirty) = self.dirty {
            dirty.check(self)?;
        }
        Ok(())
    }
}

/// Beginning of a write that visits the media first and does not follow on the blocks of a write before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WriteStartSpec {
    /// Least time of the movement before it.
    pub seek_at_least: SimDuration,
    /// After a write the drive lets go of the bus twice: before the data, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_disconnect: Option<ExtraDisconnectSpec>,
}

/// Times of a write before whose data the drive lets go of the bus, from the command on. They take the place of
/// `electronics.overheads.write_miss` and `electronics.bus.write_disconnect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtraDisconnectSpec {
    /// Time to the first movement.
    pub movement_after: SimDuration,
    /// Time to the data on the bus.
    pub data_after: SimDuration,
}

impl WriteStartSpec {
    fn check(&self) -> Result<(), Impossible> {
        at_most_a_second("electronics.write_start.seek_at_least", self.seek_at_least)?;
        let Some(extra) = self.extra_disconnect else { return Ok(()) };
        let ExtraDisconnectSpec { movement_after, data_after } = extra;
        let key = "electronics.write_start.extra_disconnect.movement_after";
        at_most_a_second(key, movement_after)?;
        let key = "electronics.write_start.extra_disconnect.data_after";
        at_most_a_second(key, data_after)?;
        if data_after < movement_after {
            Err((
                key,
                data_after.to_string(),
                format!("at least {movement_after} is needed, as in `movement_after`"),
            ))
        } else {
            Ok(())
        }
    }
}

/// Commands that a drive holds at once, and which of them it serves next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Most commands held.
    pub depth: u32,
    /// Order of the commands that need the media.
    #[serde(default)]
    pub scheduler: PolicySpec,
    /// Reads that the buffer can serve do not wait behind those that need the media.
    #[serde(default)]
    pub hits_out_of_turn: bool,
    /// Commands that begin where a recent one ended go first, until another has waited for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_first: Option<SimDuration>,
    /// Commands of high priority (NCQ priority) go first, until another has waited for this long in the drive.
    /// The standards leave the meaning of that priority to the drive. When absent, the drive does not look
    /// at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_priority_first: Option<SimDuration>,
}

impl Default for QueueSpec {
    /// One command.
    fn default() -> Self {
        Self {
            depth: 1,
            scheduler: PolicySpec::Fcfs,
            hits_out_of_turn: false,
            streams_first: None,
            high_priority_first: None,
        }
    }
}

/// Sectors of the media, and the least that a host can ask for, in the industry's terms. All else in a
/// drive file counts blocks of 512 bytes, with sectors of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum SectorFormat {
    /// Sectors of 512 bytes, asked for one by one.
    #[default]
    #[serde(rename = "512n")]
    Native512,
    /// Sectors of 4096 bytes, which answer to blocks of 512: what is read is read in whole sectors, and
    /// before a part of a sector is written the drive reads it, and writes it a turn later.
    #[serde(rename = "512e")]
    Emulated512,
    /// Sectors of 4096 bytes, asked for in whole ones.
    #[serde(rename = "4kn")]
    Native4096,
}

impl SectorFormat {
    /// Blocks of 512 bytes in a sector of the media.
    pub fn physical_blocks(self) -> u32 {
        if self == Self::Native512 { 1 } else { 8 }
    }

    /// Blocks of 512 bytes of which a host asks for multiples.
    pub fn logical_blocks(self) -> u32 {
        if self == Self::Native4096 { 8 } else { 1 }
    }
}

impl fmt::Display for SectorFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Native512 => "512n",
            Self::Emulated512 => "512e",
            Self::Native4096 => "4kn",
        })
    }
}

/// Extent of reading on after a read.
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
    /// The blocks of a segment.
    Segment,
    /// To the end of the next track after sequential reads, else to the end of this one.
    Adaptive,
    /// Only after a read that begins where the command before, a read, ended: to the end of the next track.
    AfterTouching,
}

impl ReadAhead {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Track,
        Self::Cylinder,
        Self::Segment,
        Self::Adaptive,
        Self::AfterTouching,
    ];
}

impl fmt::Display for ReadAhead {
    /// As in a drive file.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::None => "none",
            Self::Track => "track",
            Self::Cylinder => "cylinder",
            Self::Segment => "segment",
            Self::Adaptive => "adaptive",
            Self::AfterTouching => "after-touching",
        })
    }
}

/// Condition under which a write is reported done before it is on the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Never.
    #[default]
    Off,
    /// One write at a time; with combining, also those that follow on it while it is not on the
    /// media yet.
    Sequential,
    /// The number of write segments.
    On,
}

/// Command processing times by operation, by whether the buffer takes it (hit) or the media must
/// be visited (miss), and by what the command before was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverheadSpec {
    /// Overhead of a read served by the buffer.
    pub read_hit: AfterOp,
    /// Overhead of a read that visits the media.
    pub read_miss: AfterOp,
    /// Overhead of a write that the buffer takes.
    pub write_hit: AfterOp,
    /// Overhead of a write that visits the media first.
    pub write_miss: AfterOp,
    /// After the last byte of a read.
    pub read_completion: SimDuration,
    /// After the last byte of a write.
    pub write_completion: SimDuration,
}

impl OverheadSpec {
    fn check(&self) -> Result<(), Impossible> {
        for (key, by) in [
            ("electronics.overheads.read_hit", self.read_hit),
            ("electronics.overheads.read_miss", self.read_miss),
            ("electronics.overheads.write_hit", self.write_hit),
            ("electronics.overheads.write_miss", self.write_miss),
        ] {
            at_most_a_second(key, by.after_read.max(by.after_write))?;
        }
        at_most_a_second("electronics.overheads.read_completion", self.read_completion)?;
        at_most_a_second("electronics.overheads.write_completion", self.write_completion)
    }

    /// Processing time of a command that the buffer serves (`hit`) or not, after one that was
    /// `before`.
    pub(crate) fn of(&self, op: Op, hit: bool, before: Op) -> SimDuration {
        let by = match (op, hit) {
            (Op::Write, true) => &self.write_hit,
            (Op::Write, false) => &self.write_miss,
            (_, true) => &self.read_hit,
            (_, false) => &self.read_miss,
        };
        by.after(before)
    }

    pub(crate) fn completion(&self, op: Op) -> SimDuration {
        if op == Op::Write { self.write_completion } else { self.read_completion }
    }
}

impl AfterOp {
    /// One time, after any command.
    pub fn both(time: SimDuration) -> Self {
        Self { after_read: time, after_write: time }
    }

    pub(crate) fn after(&self, before: Op) -> SimDuration {
        if before == Op::Write { self.after_write } else { self.after_read }
    }
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
    /// Time of a written block, if another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_block_time: Option<SimDuration>,
    /// Time to get hold of the bus.
    pub arbitration: SimDuration,
    /// Before the data of a read that had let go of the bus.
    pub reconnect: SimDuration,
    /// Condition under which a read lets go of the bus to visit the media.
    pub read_disconnect: AfterOp,
    /// Delay after which a write lets go of the bus to visit the media.
    pub write_disconnect: SimDuration,
    /// Percent of a read's blocks that must be in the buffer before it takes the bus: 0 for the first block,
    /// 100 for all.
    pub read_water_mark: u32,
    /// A command keeps the bus as long as the media work on it.
    pub hold: bool,
}

impl BusSpec {
    fn check(&self) -> Result<(), Impossible> {
        let disconnect = self.read_disconnect.after_read.max(self.read_disconnect.after_write);
        at_most_a_second("electronics.bus.block_time", self.block_time)?;
        at_most_a_second("electronics.bus.write_block_time", self.of_block(Op::Write))?;
        at_most_a_second("electronics.bus.arbitration", self.arbitration)?;
        at_most_a_second("electronics.bus.reconnect", self.reconnect)?;
        at_most_a_second("electronics.bus.read_disconnect", disconnect)?;
        at_most_a_second("electronics.bus.write_disconnect", self.write_disconnect)?;
        if self.read_water_mark > 100 {
            let value = self.read_water_mark.to_string();
            return Err((
                "electronics.bus.read_water_mark",
                value,
                "0 to 100 % are allowed".into(),
            ));
        }
        Ok(())
    }

    /// Time of a block.
    pub(crate) fn of_block(&self, op: Op) -> SimDuration {
        self.write_block_time.filter(|_| op == Op::Write).unwrap_or(self.block_time)
    }

    /// Time to let go of the bus, where it is let go.
    pub(crate) fn disconnect(&self, op: Op, before: Op) -> SimDuration {
        match op {
            _ if self.hold => SimDuration::ZERO,
            Op::Write => self.write_disconnect,
            _ => self.read_disconnect.after(before),
        }
    }

    /// Time to get hold of the bus and to move this number of blocks.
    pub(crate) fn transfer(&self, op: Op, blocks: u32) -> SimDuration {
        self.arbitration + self.of_block(op) * u64::from(blocks)
    }
}

fn is_zero(time: &SimDuration) -> bool {
    *time == SimDuration::ZERO
}

fn is_512n(sector: &SectorFormat) -> bool {
    *sector == SectorFormat::Native512
}

const fn one() -> u32 {
    1
}
