//! Caches in memory: which data a full one evicts, a read cache over a volume, and miss-ratio curves.
//!
//! One policy is one file and one row of [`POLICIES`]. Every policy is made of queues over numbered
//! slots, and a key keeps its slot while it is known. [`ReadCache`] has a valid bit for each block of
//! 512 bytes in each slot; [`KeyCache`] is the same policy without them. Cache blocks come in runs, so a
//! [`ReadCache`] with LRU looks them up in groups of neighbours (`grouped_lru.rs`).
//!
//! [`ReadCache`] is a state machine without a disk. A read names what is missing, the caller fetches it, and
//! hands it back when it is here:
//!
//! ```
//! use freewheel_model::cache::{ReadCache, ReadCacheSpec, BlockRange};
//! use freewheel_units::{Blocks, Op, VolumeBlock};
//!
//! // 8 MB in cache blocks of 4 KiB, LRU, as tr03 section 4.1.
//! let mut cache = ReadCache::new(ReadCacheSpec::tr03(2048));
//! let range = |start, blocks| BlockRange::new(VolumeBlock::new(start), Blocks::new(blocks));
//! let mut missing = Vec::new();
//!
//! // Exactly the blocks that a read asks for are fetched: 2 of the 8 in the first cache block.
//! cache.access(range(6, 4), Op::Read, &mut missing);
//! assert_eq!(missing, [range(6, 4)]);
//! missing.drain(..).for_each(|fetched| cache.insert(fetched));
//!
//! // A write updates what is there. The next read misses on both sides of it.
//! cache.access(range(4, 1), Op::Write, &mut missing);
//! cache.access(range(3, 8), Op::Read, &mut missing);
//! assert_eq!(missing, [range(3, 1), range(5, 1), range(10, 1)]);
//! assert_eq!((cache.reads().requests, cache.reads().hits, cache.reads().hit_blocks), (2, 0, 5));
//! ```
//!
//! To add a policy: write `cache/<name>.rs` with a type that implements `Eviction`. Add a variant to
//! [`CachePolicy`] and a row to [`POLICIES`]. Where it is defined for objects of unlike sizes, it also implements
//! `ObjectEviction`. Add its rules to the oracles in `tests/model/cache/naive.rs`, which do not compile until every
//! variant has some. A policy from outside this crate implements [`KeyPolicy`].

mod amp;
mod arc;
mod belady;
mod clock;
pub mod curve;
mod disk_request;
mod eviction;
mod fifo;
mod grouped_lru;
mod index;
mod key_cache;
mod key_policy;
mod keys;
mod lfu;
mod lirs;
mod lru;
mod object_cache;
mod prefetch;
mod prefetch_counts;
mod queues;
mod range_index;
mod read_cache;
mod readings;
mod residents;
mod s3_fifo;
mod sieve;
mod sketch;
mod spec;
mod storage;
mod storage_spec;
mod two_q;
mod unread_marks;
mod valid_bits;
mod w_tiny_lfu;
mod write_buffer;

pub use belady::KnownFuture;
pub use disk_request::{CacheRequest, DiskRequest, Purpose};
pub use key_cache::KeyCache;
pub use key_policy::KeyPolicy;
pub use object_cache::ObjectCache;
pub use prefetch::{FetchPlan, PrefetchSpec, Prefetcher};
pub use prefetch_counts::{PrefetchCounts, PrefetchKind, PrefetchTally};
pub use read_cache::{BlockRange, HitCounts, ReadCache, ReadCacheSpec};
pub use spec::{CachePolicy, CachePolicyRow, POLICIES, ParseCachePolicyError, usual_policies};
pub use storage::{CacheCounts, StorageCache};
pub use storage_spec::{CachePreset, OpportunisticSpec, StorageCacheSpec};
pub use write_buffer::{DestageOrder, FlushPoint, WriteBuffer, WriteBufferSpec, WriteCounts};
