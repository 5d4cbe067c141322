//! Settings of a storage system's cache, as an experiment names them, and those of tr03's two systems.

use freewheel_units::{Blocks, Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::prefetch::PrefetchSpec;
use super::read_cache::ReadCacheSpec;
use super::spec::CachePolicy;
use super::write_buffer::WriteBufferSpec;

/// The cache of a storage system in front of each arm: read cache, prefetching and write buffer (tr03).
/// The drive's own buffer is part of `electronics`; each optimisation is best modelled once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "CacheConfig")]
pub struct StorageCacheSpec {
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
    pub prefetch: PrefetchSpec,
    /// Prefetching in time that is idle or lost.
    pub opportunistic: OpportunisticSpec,
    /// The write buffer. Without it, writes go to the drive at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_buffer: Option<WriteBufferSpec>,
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

/// Prefetching that costs no request any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "OpportunisticConfig")]
pub struct OpportunisticSpec {
    /// An idle drive reads on until this much was prefetched behind a read. Zero for none.
    pub read_ahead: Bytes,
    /// Blocks that pass the head on the track before the wanted ones enter the cache.
    pub free_blocks: bool,
    /// The head leaves its track as late as it can and reads on until then, where there is something to read
    /// on. Such an access has no time for `free_blocks`; others have.
    pub just_in_time_seek: bool,
}

impl Default for StorageCacheSpec {
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
            prefetch: PrefetchSpec::Off,
            opportunistic: OpportunisticSpec::default(),
            write_buffer: None,
        }
    }
}

impl StorageCacheSpec {
    /// Largest [`Self::queue_depth`].
    pub const QUEUE_DEPTH_MAX: u32 = 4096;

    /// tr03's system with few resources: 8 MB of cache, 32 KiB of read-ahead, opportunistic reading to
    /// 128 KiB, a write buffer of 4 MB.
    pub fn resource_poor() -> Self {
        Self {
            prefetch: PrefetchSpec::ReadAhead { amount: Bytes::new(32 << 10) },
            opportunistic: OpportunisticSpec::tr03(),
            write_buffer: Some(WriteBufferSpec::default()),
            ..Self::default()
        }
    }

    /// tr03's system with many resources, for this much storage in use: a cache of 1 %, conditional
    /// sequential prefetch, a separate prefetch buffer, a write buffer of 0.1 % with data of up to an
    /// hour.
    pub fn resource_rich(storage_used: Bytes) -> Self {
        let write_buffer = WriteBufferSpec {
            size: share(1000, storage_used),
            max_age: Some(SimDuration::from_secs(3600)),
            ..WriteBufferSpec::default()
        };
        Self {
            size: share(100, storage_used),
            prefetch_buffer: Some(Bytes::new(8 << 20)),
            prefetch: PrefetchSpec::conditional(Bytes::from_kib(8)),
            opportunistic: OpportunisticSpec::tr03(),
            write_buffer: Some(write_buffer),
            ..Self::default()
        }
    }

    /// Blocks of 512 bytes in a cache block.
    pub fn cache_block(&self) -> Blocks {
        self.block_size.blocks_rounded_up()
    }

    /// A read cache with this memory. Panics if a cache block has no bytes.
    pub fn read_cache(&self, size: Bytes) -> ReadCacheSpec {
        ReadCacheSpec {
            policy: self.policy,
            capacity: (size.get() / self.block_size.get()) as u32,
            cache_block: self.cache_block(),
            write_allocate: false,
        }
    }

    /// Blocks of 512 bytes in a buffer block of destages in gaps, if there are any.
    pub fn gaps_block(&self) -> Option<Blocks> {
        self.write_buffer.filter(|buffer| buffer.destage_in_gaps).map(|_| self.cache_block())
    }

    /// Most destages that wait for the disk or are on it.
    pub fn destages_max(&self) -> u32 {
        self.write_buffer.and_then(|buffer| buffer.destages).unwrap_or(self.queue_depth)
    }
}

fn share(part: u64, storage_used: Bytes) -> Bytes {
    Bytes::new((storage_used.get() / part).next_multiple_of(4096))
}

impl OpportunisticSpec {
    /// tr03's default: reading on to 128 KiB, and free blocks.
    pub const fn tr03() -> Self {
        Self { read_ahead: Bytes::new(128 << 10), free_blocks: true, just_in_time_seek: false }
    }
}
