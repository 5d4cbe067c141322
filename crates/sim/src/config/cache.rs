//! What an experiment says of the storage system's cache in front of each drive.

use freewheel_model::cache::{
    AmpSpec, CachePolicy, ConditionalSpec, DestageOrder, OpportunisticSpec, PrefetchSpec,
    ReadCacheSpec, StorageCacheSpec, WriteBufferSpec,
};
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cache of a storage system in front of each arm: read cache, prefetching and write buffer (tr03).
/// The drive's own buffer is part of `electronics`; each optimisation is best modelled once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// Memory of the read cache. Zero for none.
    pub size: Bytes,
    /// Which block a full read cache evicts: lru, arc, lirs, 2q, s3-fifo, sieve or w-tinylfu.
    #[schemars(with = "String")]
    pub policy: CachePolicy,
    /// Unit of the caches and of the write buffer, at most 32 KiB.
    pub block_size: Bytes,
    /// Memory of a separate cache for opportunistic data. Without it they enter the read cache.
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

/// What is prefetched with a read that misses.
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
    /// A fixed amount behind the missing blocks.
    ReadAhead {
        /// How much.
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
        /// Whether descending runs prefetch, too.
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
    /// The head leaves its track as late as it can and reads on until then.
    pub just_in_time_seek: bool,
}

/// A buffer for writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WriteBufferConfig {
    /// Its memory.
    pub size: Bytes,
    /// Share of dirty blocks above which it destages, 0 to 1. At 1 it destages when a write finds no
    /// room.
    pub high_mark: f64,
    /// Share of dirty blocks below which it stops, at most `high_mark`.
    pub low_mark: f64,
    /// Which block it destages first.
    pub order: DestageOrderConfig,
    /// Age at which data are destaged regardless of the marks. Without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<SimDuration>,
    /// Whether a power cut loses its data. Then flushes wait for destages.
    pub volatile: bool,
    /// Whether blocks that pass under the head while it waits for a client's data are written, too.
    #[serde(skip_serializing_if = "is_false")]
    pub destage_in_gaps: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Which block of a write buffer goes first.
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
            destage_in_gaps: false,
        }
    }
}

/// Most blocks of 512 bytes in a cache block: the bits of a word.
const CACHE_BLOCK_MAX: u64 = 64;
const QUEUE_DEPTH_MAX: u32 = 4096;

fn blocks(bytes: Bytes) -> Blocks {
    Blocks::new(bytes.get() / BLOCK_BYTES)
}

impl CacheConfig {
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
        let share = |part: u64| Bytes::new((storage_used.get() / part).next_multiple_of(4096));
        let write_buffer = WriteBufferConfig {
            size: share(1000),
            max_age: Some(SimDuration::from_secs(3600)),
            ..WriteBufferConfig::default()
        };
        Self {
            size: share(100),
            prefetch_buffer: Some(Bytes::new(8 << 20)),
            prefetch: PrefetchConfig::conditional(Bytes::from_kib(8)),
            opportunistic: OpportunisticConfig::tr03(),
            write_buffer: Some(write_buffer),
            ..Self::default()
        }
    }

    /// Err names key, value, and what is allowed.
    pub(crate) fn check(&self) -> Result<(), String> {
        let unit = self.block_size.get();
        if unit == 0 || !unit.is_multiple_of(BLOCK_BYTES) || unit > CACHE_BLOCK_MAX * BLOCK_BYTES {
            return Err(format!(
                "`block_size` is {}: multiples of 512B up to 32KiB are allowed",
                self.block_size
            ));
        }
        if !(1..=QUEUE_DEPTH_MAX).contains(&self.queue_depth) {
            let depth = self.queue_depth;
            return Err(format!(
                "`queue_depth` is {depth}: 1 to {QUEUE_DEPTH_MAX} requests are allowed"
            ));
        }
        let memories = [Some(self.size), self.prefetch_buffer, self.write_buffer.map(|w| w.size)];
        for (key, size) in ["size", "prefetch_buffer", "write_buffer.size"].iter().zip(memories) {
            let Some(size) = size else { continue };
            if size.get() / unit >= u64::from(u32::MAX) {
                return Err(format!("`{key}` is {size}: fewer than 2^32 cache blocks are allowed"));
            }
        }
        self.prefetch.check()?;
        self.write_buffer.map_or(Ok(()), |buffer| buffer.check(unit))
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

    /// The cache of one arm. Call [`Self::check`] first.
    pub(crate) fn spec(&self) -> StorageCacheSpec {
        let opportunistic = OpportunisticSpec {
            read_ahead: blocks(self.opportunistic.read_ahead),
            free_blocks: self.opportunistic.free_blocks,
            just_in_time_seek: self.opportunistic.just_in_time_seek,
        };
        StorageCacheSpec {
            read: self.read_cache(self.size),
            prefetch_buffer: self.prefetch_buffer.map(|size| self.read_cache(size)),
            prefetch: self.prefetch.spec(),
            opportunistic,
            write: self.write_buffer.map(|buffer| buffer.spec(self.block_size)),
            destages_max: self.queue_depth,
        }
    }
}

impl PrefetchConfig {
    /// tr03's conditional sequential prefetch, with segments of this size.
    pub const fn conditional(segment: Bytes) -> Self {
        let maximum = conditional_maximum();
        Self::Conditional { segment, trigger: one(), factor: two(), maximum, backward: false }
    }

    fn check(&self) -> Result<(), String> {
        let (key, value) = match *self {
            Self::LargeFetchUnit { unit } => ("unit", unit),
            Self::Conditional { segment, .. } => ("segment", segment),
            Self::Amp { initial, maximum, streams } => {
                return check_amp(initial, maximum, streams);
            }
            Self::Off | Self::ReadAhead { .. } => return Ok(()),
        };
        if value.get() == 0 || !value.get().is_multiple_of(BLOCK_BYTES) {
            return Err(format!("`prefetch.{key}` is {value}: multiples of 512B are allowed"));
        }
        Ok(())
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
}

impl WriteBufferConfig {
    fn check(&self, block_bytes: u64) -> Result<(), String> {
        let Self { size, high_mark, low_mark, .. } = self;
        if size.get() < block_bytes {
            return Err(format!("`write_buffer.size` is {size}: at least one block is needed"));
        }
        if !(0.0..=1.0).contains(high_mark) {
            return Err(format!("`write_buffer.high_mark` is {high_mark}: 0 to 1 is allowed"));
        }
        if !(0.0..=*high_mark).contains(low_mark) {
            return Err(format!(
                "`write_buffer.low_mark` is {low_mark}: 0 to `high_mark`, {high_mark}, is allowed"
            ));
        }
        Ok(())
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
            destages_in_gaps: self.destage_in_gaps,
        }
    }
}
