//! Requests of clients to a storage system's cache, and requests of the cache to the disk.

use std::ops::Range;

use freewheel_units::{Blocks, Lbn, Op};

/// A request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRequest {
    /// Names the request in the answer.
    pub tag: u64,
    /// Read or write.
    pub op: Op,
    /// First block.
    pub start: Lbn,
    /// Number of blocks.
    pub blocks: Blocks,
    /// A read comes from the media, and a write is answered when they have it. Memory that a power cut
    /// does not clear counts as media; see [`super::WriteBufferSpec::volatile`].
    pub fua: bool,
}

impl CacheRequest {
    pub(super) fn range(&self) -> Range<u64> {
        self.start.get()..(self.start + self.blocks).get()
    }
}

/// Reason why a disk request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A read that missed waits for it.
    Fetch,
    /// A write that is not buffered waits for it.
    WriteThrough,
    /// Prefetching behind a fetch, without a pause.
    ReadAhead,
    /// Prefetching by an idle disk.
    Opportunistic,
    /// Data of the write buffer.
    Destage,
}

/// Request of the cache to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRequest {
    /// Names the request. Numbers rise, and their lowest bits are the request's [`slot`](Self::slot).
    pub id: u64,
    /// Reason for the request.
    pub purpose: Purpose,
    /// First block.
    pub start: Lbn,
    /// Number of blocks, at least one.
    pub blocks: Blocks,
    /// Blocks of a read that no client has asked for.
    pub prefetched: Blocks,
    /// The disk's own memory must not answer.
    pub fua: bool,
}

/// Lowest bits of an id. A storage system has fewer requests under way than these can tell apart.
const SLOT_BITS: u32 = 16;

impl DiskRequest {
    /// The request with this number, of all that were made, in this slot.
    pub(super) fn new(number: u64, slot: u32, purpose: Purpose, blocks: &Range<u64>) -> Self {
        assert!(slot < 1 << SLOT_BITS, "fewer than 2^{SLOT_BITS} disk requests are under way");
        let id = number << SLOT_BITS | u64::from(slot);
        let (start, blocks) = (Lbn::new(blocks.start), Blocks::new(blocks.end - blocks.start));
        let prefetched = match purpose {
            Purpose::ReadAhead | Purpose::Opportunistic => blocks,
            Purpose::Fetch | Purpose::WriteThrough | Purpose::Destage => Blocks::ZERO,
        };
        Self { id, purpose, start, blocks, prefetched, fua: false }
    }

    /// A small number that no other request under way has.
    #[inline]
    pub fn slot(id: u64) -> u32 {
        (id & ((1 << SLOT_BITS) - 1)) as u32
    }

    /// Read or write.
    pub fn op(&self) -> Op {
        match self.purpose {
            Purpose::WriteThrough | Purpose::Destage => Op::Write,
            _ => Op::Read,
        }
    }

    /// Blocks of the request.
    pub fn range(&self) -> Range<u64> {
        self.start.get()..(self.start + self.blocks).get()
    }
}
