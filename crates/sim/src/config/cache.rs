//! Storage system's cache in front of each drive, in an experiment.

use freewheel_model::cache::{
    AmpSpec, CachePolicy, ConditionalSpec, DestageOrder, OpportunisticSpec, PrefetchSpec,
    ReadCacheSpec, StorageCacheSpec, WriteBufferSpec,
};
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workload::SPAN_MAX;
use crate::toml_faults::check_whole;

/// The cache of a storage system in front of each arm: read cache, prefetching and write buffer (tr03).
/// The drive's own buffer is part of `electronics`; each optimisation is best modelled once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// A system of tr03, tr03-poor or tr03-rich, whose values stand for the keys that are not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<CachePreset>,
    /// Storage in use on the drive, of which tr03-rich takes 1 % for the read cache and 0.1 % for the write
    /// buffer. Without it, tr03-rich needs both sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_used: Option<Bytes>,
    /// Memory of the read cache: at least one block, or zero for none.
    pub size: Bytes,
    /// Eviction policy of a full read cache: lru, arc, lirs, 2q, s3-fifo, sieve, w-tinylfu,
    /// fifo, clock or lfu.
    #[schemars(with = "String")]
    pub policy: CachePolicy,
    /// Unit of the caches and of the write buffer, at most 32 KiB.
    pub block_size: Bytes,
    /// Memory of a separate cache for opportunistic data, at least one block. Without it they enter the
    /// read cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch_buffer: Option<Bytes>,
    /// Most requests in the storage system at once; further ones wait in front of the cache.
    pub queue_depth: u32,
    /// Prefetching with reads that miss.
    pub prefetch: PrefetchConfig,
    /// Prefetching in time that is idle or lost.
    pub opportunistic: OpportunisticConfig,
    /// The write buffer. Without it, writes go to the drive at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_buffer: Option<WriteBufferConfig>,
}

/// A storage system of tr03 (figure 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CachePreset {
    /// Disks and low-end adaptors alone.
    #[serde(rename = "tr03-poor")]
    Tr03Poor,
    /// A large controller in front.
    #[serde(rename = "tr03-rich")]
    Tr03Rich,
}

/// Blocks that are prefetched with a read that misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PrefetchConfig {
    /// Nothing.
    #[default]
    Off,
    /// Whole aligned units.
    LargeFetchUnit {
        /// Length of a unit.
        unit: Bytes,
    },
    /// A fixed amount after the missing blocks.
    ReadAhead {
        /// Length of the read-ahead.
        amount: Bytes,
    },
    /// An amount that grows with the sequential run that the read continues.
    Conditional {
        /// Unit in which runs are detected.
        segment: Bytes,
        /// Least run, in segments, that prefetches.
        #[serde(default = "one")]
        trigger: u32,
        /// Segments to prefetch for each segment of the run.
        #[serde(default = "two")]
        factor: u32,
        /// Most of one prefetch.
        #[serde(default = "conditional_maximum")]
        maximum: Bytes,
        /// True if descending runs prefetch, too.
        #[serde(default)]
        backward: bool,
    },
    /// An amount, and how early it is fetched, that each sequential stream learns (AMP).
    Amp {
        /// The first amount of a stream, at least 4 KiB.
        #[serde(default = "amp_initial")]
        initial: Bytes,
        /// Most of one prefetch.
        #[serde(default = "amp_maximum")]
        maximum: Bytes,
        /// Streams that are known at a time.
        #[serde(default = "amp_streams")]
        streams: u32,
    },
}

const fn amp_initial() -> Bytes {
    AmpSpec::DEFAULT.initial.bytes()
}

const fn amp_maximum() -> Bytes {
    AmpSpec::DEFAULT.maximum.bytes()
}

const fn amp_streams() -> u32 {
    AmpSpec::DEFAULT.streams as u32
}

const fn one() -> u32 {
    1
}

const fn two() -> u32 {
    2
}

const fn conditional_maximum() -> Bytes {
    Bytes::new(256 << 10)
}

/// Prefetching that costs no request any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OpportunisticConfig {
    /// An idle drive reads on until this much was prefetched behind a read. Zero for none.
    pub read_ahead: Bytes,
    /// Blocks that pass the head on the track before the wanted ones enter the cache.
    pub free_blocks: bool,
    /// The head leaves its track as late as it can and reads on until then, where there is something to read
    /// on. Such an access has no time for `free_blocks`; others have.
    pub just_in_time_seek: bool,
}

/// A buffer for writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WriteBufferConfig {
    /// Memory of the buffer.
    pub size: Bytes,
    /// Share of dirty blocks above which it destages, 0 to 1. At 1 it destages when a write finds no
    /// room.
    pub high_mark: f64,
    /// Share of dirty blocks below which it stops, at most `high_mark`.
    pub low_mark: f64,
    /// Order in which blocks are destaged.
    pub order: DestageOrderConfig,
    /// Age at which data are destaged regardless of the marks. Without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<SimDuration>,
    /// True if a power cut loses its data. If so, flushes wait for destages, and writes with FUA go to the
    /// media. If not, both end in the buffer, and writes to the drive carry FUA.
    pub volatile: bool,
    /// Most of one destage, at least one block. A request waits for a destage that has begun.
    pub destage_maximum: Bytes,
    /// Most destages at once, at least one: reads wait behind them where a write waits for room. The number
    /// of the cache's `queue_depth` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destages: Option<u32>,
    /// True if blocks that pass under the head while it waits for a client's data are written, too.
    #[serde(skip_serializing_if = "is_false")]
    pub destage_in_gaps: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Order in which blocks leave a write buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DestageOrderConfig {
    /// Least recently written.
    #[default]
    Lrw,
    /// Wise Ordering for Writes: ascending over the disk, and past blocks that were written again.
    Wow,
}

impl Default for CacheConfig {
    /// tr03's system with few resources, without prefetching and write buffer.
    fn default() -> Self {
        Self {
            preset: None,
            storage_used: None,
            size: Bytes::new(8 << 20),
            policy: CachePolicy::Lru,
            block_size: Bytes::new(4096),
            prefetch_buffer: None,
            queue_depth: 8,
            prefetch: PrefetchConfig::Off,
            opportunistic: OpportunisticConfig::default(),
            write_buffer: None,
        }
    }
}

impl Default for WriteBufferConfig {
    /// tr03's system with few resources.
    fn default() -> Self {
        Self {
            size: Bytes::new(4 << 20),
            high_mark: 0.8,
            low_mark: 0.2,
            order: DestageOrderConfig::Lrw,
            max_age: Some(SimDuration::from_secs(30)),
            volatile: false,
            destage_maximum: Bytes::new(1 << 20),
            destages: None,
            destage_in_gaps: false,
        }
    }
}

/// Most blocks of 512 bytes in a cache block: the bits of a word.
const CACHE_BLOCK_MAX: u64 = 64;
/// Most of one prefetch or destage. A disk reads it in several seconds.
const AMOUNT_MAX: Bytes = Bytes::new(1 << 30);

fn blocks(bytes: Bytes) -> Blocks {
    Blocks::new(bytes.get() / BLOCK_BYTES)
}

impl CacheConfig {
    /// Largest [`Self::queue_depth`].
    pub const QUEUE_DEPTH_MAX: u32 = 4096;

    /// tr03's system with few resources: 8 MB of cache, 32 KiB of read-ahead, opportunistic reading to
    /// 128 KiB, a write buffer of 4 MB.
    pub fn resource_poor() -> Self {
        Self {
            prefetch: PrefetchConfig::ReadAhead { amount: Bytes::new(32 << 10) },
            opportunistic: OpportunisticConfig::tr03(),
            write_buffer: Some(WriteBufferConfig::default()),
            ..Self::default()
        }
    }

    /// tr03's system with many resources, for this much storage in use: a cache of 1 %, conditional
    /// sequential prefetch, a separate prefetch buffer, a write buffer of 0.1 % with data of up to an
    /// hour.
    pub fn resource_rich(storage_used: Bytes) -> Self {
        let write_buffer = WriteBufferConfig {
            size: share(1000, storage_used),
            max_age: Some(SimDuration::from_secs(3600)),
            ..WriteBufferConfig::default()
        };
        Self {
            size: share(100, storage_used),
            prefetch_buffer: Some(Bytes::new(8 << 20)),
            prefetch: PrefetchConfig::conditional(Bytes::from_kib(8)),
            opportunistic: OpportunisticConfig::tr03(),
            write_buffer: Some(write_buffer),
            ..Self::default()
        }
    }

    /// Err names key, value, and what is allowed.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let (Some(used), None | Some(CachePreset::Tr03Poor)) = (self.storage_used, self.preset) {
            return Err(format!(
                "`storage_used` is {used}, and only `preset = \"tr03-rich\"` takes shares of it: leave it out"
            ));
        }
        let unit = self.block_size.get();
        if unit == 0 || !unit.is_multiple_of(BLOCK_BYTES) || unit > CACHE_BLOCK_MAX * BLOCK_BYTES {
            return Err(format!(
                "`block_size` is {}: multiples of 512B up to 32KiB are allowed",
                self.block_size
            ));
        }
        if !(1..=Self::QUEUE_DEPTH_MAX).contains(&self.queue_depth) {
            let depth = self.queue_depth;
            return Err(format!(
                "`queue_depth` is {depth}: 1 to {} requests are allowed",
                Self::QUEUE_DEPTH_MAX
            ));
        }
        let memories = [Some(self.size), self.prefetch_buffer, self.write_buffer.map(|w| w.size)];
        for (key, size) in ["size", "prefetch_buffer", "write_buffer.size"].iter().zip(memories) {
            let Some(size) = size else { continue };
            // Only the read cache may be absent in spite of its key.
            let is_absent = *key == "size" && size == Bytes::ZERO;
            if size.get() < unit && !is_absent {
                return Err(format!(
                    "`{key}` is {size}: at least one block of {} is needed, or leave `{key}` out",
                    self.block_size
                ));
            }
            if size.get() / unit >= u64::from(u32::MAX) {
                return Err(format!("`{key}` is {size}: fewer than 2^32 cache blocks are allowed"));
            }
        }
        self.prefetch.check()?;
        self.opportunistic.check()?;
        self.write_buffer.map_or(Ok(()), |buffer| buffer.check(self.block_size))
    }

    /// Err when the drive's sectors, of `least` bytes, would be split.
    pub(crate) fn check_sectors(&self, least: Bytes) -> Result<(), String> {
        check_whole("block_size", self.block_size, least)?;
        check_whole("opportunistic.read_ahead", self.opportunistic.read_ahead, least)?;
        let amounts = self.prefetch.amounts();
        amounts.iter().try_for_each(|(key, value)| check_whole(key, *value, least))
    }

    /// Buffer blocks of destages in gaps, if there are any.
    pub(crate) fn gaps_block(&self) -> Option<Blocks> {
        let destages_in_gaps = self.write_buffer.is_some_and(|buffer| buffer.destage_in_gaps);
        destages_in_gaps.then(|| blocks(self.block_size))
    }

    fn read_cache(&self, size: Bytes) -> ReadCacheSpec {
        ReadCacheSpec {
            policy: self.policy,
            capacity: (size.get() / self.block_size.get()) as u32,
            cache_block: blocks(self.block_size),
            write_allocate: false,
        }
    }

    /// The cache of one arm, whose drive may hold several requests at once. Call [`Self::check`] first.
    pub(crate) fn spec(&self, drive_has_queue: bool) -> StorageCacheSpec {
        let opportunistic = OpportunisticSpec {
            read_ahead: blocks(self.opportunistic.read_ahead),
            free_blocks: self.opportunistic.free_blocks,
            just_in_time_seek: self.opportunistic.just_in_time_seek,
        };
        StorageCacheSpec {
            read: self.read_cache(self.size),
            prefetch_buffer: self.prefetch_buffer.map(|size| self.read_cache(size)),
            prefetch: self.prefetch.spec(),
            read_ahead_in_fetch: drive_has_queue,
            opportunistic,
            write: self.write_buffer.map(|buffer| buffer.spec(self.block_size)),
            destages_max: self
                .write_buffer
                .and_then(|buffer| buffer.destages)
                .unwrap_or(self.queue_depth),
        }
    }
}

fn share(part: u64, storage_used: Bytes) -> Bytes {
    Bytes::new((storage_used.get() / part).next_multiple_of(4096))
}

impl PrefetchConfig {
    /// tr03's conditional sequential prefetch, with segments of this size.
    pub const fn conditional(segment: Bytes) -> Self {
        let maximum = conditional_maximum();
        Self::Conditional { segment, trigger: one(), factor: two(), maximum, backward: false }
    }

    /// Amounts to fetch, by keys.
    fn amounts(&self) -> Vec<(&'static str, Bytes)> {
        match *self {
            Self::Off => Vec::new(),
            Self::LargeFetchUnit { unit } => vec![("prefetch.unit", unit)],
            Self::ReadAhead { amount } => vec![("prefetch.amount", amount)],
            Self::Conditional { segment, maximum, .. } => {
                vec![("prefetch.segment", segment), ("prefetch.maximum", maximum)]
            }
            Self::Amp { initial, maximum, .. } => {
                vec![("prefetch.initial", initial), ("prefetch.maximum", maximum)]
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        self.amounts().iter().try_for_each(|(key, value)| check_amount(key, *value))?;
        match *self {
            Self::Amp { initial, maximum, streams } => check_amp(initial, maximum, streams),
            _ => Ok(()),
        }
    }

    fn spec(&self) -> PrefetchSpec {
        match *self {
            Self::Off => PrefetchSpec::Off,
            Self::LargeFetchUnit { unit } => PrefetchSpec::LargeFetchUnit { unit: blocks(unit) },
            Self::ReadAhead { amount } => PrefetchSpec::ReadAhead { amount: blocks(amount) },
            Self::Conditional { segment, trigger, factor, maximum, backward } => {
                PrefetchSpec::Conditional(ConditionalSpec {
                    trigger,
                    factor,
                    maximum: blocks(maximum),
                    backward,
                    ..ConditionalSpec::tr03(blocks(segment))
                })
            }
            Self::Amp { initial, maximum, streams } => PrefetchSpec::Amp(AmpSpec {
                initial: blocks(initial),
                maximum: blocks(maximum),
                streams: streams as usize,
            }),
        }
    }
}

/// Err unless some whole blocks may be moved at once.
fn check_amount(key: &str, value: Bytes) -> Result<(), String> {
    let is_whole = value.get().is_multiple_of(BLOCK_BYTES);
    if value == Bytes::ZERO || value > AMOUNT_MAX || !is_whole {
        return Err(format!(
            "`{key}` is {value}: multiples of 512B from 512B to {AMOUNT_MAX} are allowed"
        ));
    }
    Ok(())
}

/// Streams are searched one by one, so there may not be many.
const STREAMS_MAX: u32 = 4096;

fn check_amp(initial: Bytes, maximum: Bytes, streams: u32) -> Result<(), String> {
    if initial.get() < 4096 {
        return Err(format!("`prefetch.initial` is {initial}: at least 4KiB are needed"));
    }
    if maximum < initial {
        return Err(format!(
            "`prefetch.maximum` is {maximum}: at least `initial`, {initial}, is needed"
        ));
    }
    if !(1..=STREAMS_MAX).contains(&streams) {
        return Err(format!("`prefetch.streams` is {streams}: 1 to {STREAMS_MAX} are allowed"));
    }
    Ok(())
}

impl OpportunisticConfig {
    /// tr03's default: reading on to 128 KiB, and free blocks.
    pub const fn tr03() -> Self {
        Self { read_ahead: Bytes::new(128 << 10), free_blocks: true, just_in_time_seek: false }
    }

    fn check(&self) -> Result<(), String> {
        match self.read_ahead {
            Bytes::ZERO => Ok(()),
            amount => check_amount("opportunistic.read_ahead", amount),
        }
    }
}

impl WriteBufferConfig {
    fn check(&self, block_size: Bytes) -> Result<(), String> {
        let Self { high_mark, low_mark, destage_maximum, .. } = self;
        if !(0.0..=1.0).contains(high_mark) {
            return Err(format!("`write_buffer.high_mark` is {high_mark}: 0 to 1 is allowed"));
        }
        if !(0.0..=*high_mark).contains(low_mark) {
            return Err(format!(
                "`write_buffer.low_mark` is {low_mark}: 0 to `high_mark`, {high_mark}, is allowed"
            ));
        }
        if let Some(age) = self.max_age.filter(|age| *age > SPAN_MAX) {
            return Err(format!(
                "`write_buffer.max_age` is {age}: at most {SPAN_MAX} can be simulated; leave it out for no limit"
            ));
        }
        if *destage_maximum < block_size {
            return Err(format!(
                "`write_buffer.destage_maximum` is {destage_maximum}: at least `block_size`, {block_size}, is needed"
            ));
        }
        if self.destages == Some(0) {
            return Err("`write_buffer.destages` is 0: at least 1 is needed".into());
        }
        check_amount("write_buffer.destage_maximum", *destage_maximum)
    }

    fn spec(&self, block_size: Bytes) -> WriteBufferSpec {
        let order = match self.order {
            DestageOrderConfig::Lrw => DestageOrder::LeastRecentlyWritten,
            DestageOrderConfig::Wow => DestageOrder::Wow,
        };
        WriteBufferSpec {
            capacity: (self.size.get() / block_size.get()) as u32,
            buffer_block: blocks(block_size),
            high_mark: self.high_mark,
            low_mark: self.low_mark,
            order,
            max_age: self.max_age,
            is_volatile: self.volatile,
            destage_max: blocks(self.destage_maximum),
            destages_in_gaps: self.destage_in_gaps,
        }
    }
}
